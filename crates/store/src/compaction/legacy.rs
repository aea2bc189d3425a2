//! Reads `site.packed` as programs of schemas 3 to 11 wrote it. Such a row is replaced when its site is visited.
//!
//! Its numbers use the postcard encoding, but its layout is custom: bit flags state which fields of a host follow.

use postcard::{Error, Result, take_from_bytes};
use serde::de::DeserializeOwned;

use super::{CompactedColumns, CompactedSite};
use crate::model::HostOrigin;
use crate::rows::dictionary::STRINGS;
use crate::rows::encodings::path_runs;
use crate::rows::{HostClock, HostRow, RobotsRow, StateRow};

/// First byte of these rows.
pub(super) const ENCODING_VERSION: u8 = 1;

/// Status, failures in a row and time of the last visit, which migration 12 copied into columns.
type Head = [u8; 7];
/// First seen, first visit, last hint.
type Times = (u64, u64, u64);

const NO_STRING: u8 = 254;
const STRING_FOLLOWS: u8 = 255;

const NAME_BITS: u8 = 0b11;
const NAME_IS_SITE: u8 = 0;
const NAME_IS_WWW: u8 = 1;
const NAME_FOLLOWS: u8 = 2;
const IS_SEEDED: u8 = 0b100;
const CLOCK_FOLLOWS: u8 = 0b1000;
const ROBOTS_FOLLOWS: u8 = 0b1_0000;
/// Has a meaning only together with [`IS_SEEDED`].
const IS_LISTED: u8 = 0b10_0000;

struct Reader<'a>(&'a [u8]);

/// Values for the columns that migration 12 adds; `None` if the bytes have another encoding.
pub(crate) fn columns(packed: &[u8]) -> Option<CompactedColumns> {
    let [ENCODING_VERSION, status, f1, f2, v1, v2, v3, v4, ..] = *packed else { return None };
    let statuses = STRINGS.get(..policy::Status::ALL.len())?;
    let failures = u16::from_be_bytes([f1, f2]);
    let last_visit = u32::from_be_bytes([v1, v2, v3, v4]);
    Some(CompactedColumns {
        compacted_status: Some((*statuses.get(usize::from(status))?).to_owned()),
        compacted_failures: (failures > 0).then_some(i32::from(failures)),
        compacted_last_visit_at_ms: (last_visit > 0).then_some(i64::from(last_visit) * 1_000),
        ..CompactedColumns::default()
    })
}

pub(super) fn decode(site: &str, body: &[u8]) -> Result<CompactedSite> {
    let mut from = Reader(body);
    let _: Head = from.next()?;
    let (last_end, next_visit_reason) = (from.string()?, from.string()?);
    let (first_seen, first_visit, hinted): Times = from.next()?;
    let (_visits, changes, negatives): (u32, u32, u32) = from.next()?;
    let state = StateRow {
        last_end,
        next_visit_reason,
        first_seen_at_ms: millis(first_seen)?.unwrap_or_default(),
        first_visit_at_ms: millis(first_visit)?,
        hinted_at_ms: millis(hinted)?,
        changes: count(changes)?,
        negatives_in_row: count(negatives)?,
        paths_checked: path_runs::expand(from.next()?),
        ..StateRow::default()
    };
    let length: u32 = from.next()?;
    let hosts = (0..length).map(|_| from.host(site)).collect::<Result<_>>()?;
    if from.0.is_empty() { Ok(CompactedSite { state, hosts }) } else { Err(Error::DeserializeBadEncoding) }
}

impl Reader<'_> {
    fn next<T: DeserializeOwned>(&mut self) -> Result<T> {
        let (value, rest) = take_from_bytes(self.0)?;
        self.0 = rest;
        Ok(value)
    }

    fn string(&mut self) -> Result<Option<String>> {
        match self.next()? {
            NO_STRING => Ok(None),
            STRING_FOLLOWS => self.next().map(Some),
            position => {
                let known = STRINGS.get(usize::from(position)).ok_or(Error::DeserializeBadEncoding)?;
                Ok(Some((*known).to_owned()))
            }
        }
    }

    fn host(&mut self, site: &str) -> Result<HostRow> {
        let flags: u8 = self.next()?;
        let host = match flags & NAME_BITS {
            NAME_IS_SITE => site.to_owned(),
            NAME_IS_WWW => format!("www.{site}"),
            NAME_FOLLOWS => self.next()?,
            _ => return Err(Error::DeserializeBadEncoding),
        };
        let origin = match (flags & IS_SEEDED != 0, flags & IS_LISTED != 0) {
            (false, _) => HostOrigin::Met,
            (true, false) => HostOrigin::Named,
            (true, true) => HostOrigin::Collected,
        };
        let seeded = origin.code();
        let mut row = HostRow { host, site: site.to_owned(), seeded, ..HostRow::default() };
        if flags & CLOCK_FOLLOWS != 0 {
            let (next_ok, not_before, today, day): (u64, u64, u32, u32) = self.next()?;
            row.clock = HostClock {
                next_ok_at_ms: millis(next_ok)?,
                not_before_ms: millis(not_before)?,
                requests_today: count(today)?,
                requests_day: count(day)?,
            };
        }
        if flags & ROBOTS_FOLLOWS != 0 {
            let (kind, cause) = (self.string()?, self.string()?);
            let (status, fetched, expires, failures): (u32, u64, u64, u32) = self.next()?;
            row.robots = RobotsRow {
                kind,
                cause,
                status: Some(count(status)?).filter(|status| *status > 0),
                fetched_at_ms: millis(fetched)?,
                expires_at_ms: millis(expires)?,
                failures_in_row: Some(count(failures)?),
                ..RobotsRow::default()
            };
        }
        Ok(row)
    }
}

/// Whole seconds plus one, 0 for none.
fn millis(seconds: u64) -> Result<Option<i64>> {
    let seconds = i64::try_from(seconds).map_err(|_| Error::DeserializeBadEncoding)?;
    Ok((seconds > 0).then(|| (seconds - 1).saturating_mul(1_000)))
}

fn count(number: u32) -> Result<i32> {
    i32::try_from(number).map_err(|_| Error::DeserializeBadEncoding)
}

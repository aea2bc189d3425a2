//! Numbers, words, times, paths and hosts as bytes.

use super::words::{self, NONE, WRITTEN_OUT};
use super::{ClockAtRest, HostAtRest, RobotsAtRest};
use crate::model::HostOrigin;

/// How a host is written: most are the site's name, or that with `www.` before it.
const HOST_IS_SITE: u8 = 0;
const HOST_IS_WWW: u8 = 1;
const HOST_IS_WRITTEN_OUT: u8 = 2;
const HOST_NAME_BITS: u8 = 0b11;
const HOST_SEEDED: u8 = 0b100;
const HOST_HAS_CLOCK: u8 = 0b1000;
const HOST_HAS_ROBOTS: u8 = 0b1_0000;
const HOST_LISTED: u8 = 0b10_0000;

/// Bytes of one slot of the path table: class and day.
const SLOT_BYTES: usize = 3;
/// Slots of the path table, at the most.
const SLOTS_MAX: usize = 256;
const LOW_BITS: u64 = 0x7f;
const MORE: u8 = 0x80;

#[derive(Default)]
pub(super) struct Writer(Vec<u8>);

impl Writer {
    pub(super) fn byte(&mut self, byte: u8) {
        self.0.push(byte);
    }

    pub(super) fn raw(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    /// Seven bits a byte, the lowest first.
    pub(super) fn number(&mut self, mut number: u64) {
        loop {
            let low = u8::try_from(number & LOW_BITS).unwrap_or_default();
            number >>= 7;
            if number == 0 {
                self.byte(low);
                return;
            }
            self.byte(low | MORE);
        }
    }

    pub(super) fn count(&mut self, count: i32) {
        self.number(u64::try_from(count).unwrap_or_default());
    }

    /// Whole seconds, 0 for none.
    pub(super) fn time(&mut self, at_ms: Option<i64>) {
        self.number(at_ms.map_or(0, |at_ms| u64::try_from(at_ms.div_euclid(1_000) + 1).unwrap_or(1)));
    }

    fn text(&mut self, text: &str) {
        self.number(text.len() as u64);
        self.raw(text.as_bytes());
    }

    pub(super) fn word(&mut self, word: Option<&str>) {
        match word.map(|word| (words::code(word), word)) {
            None => self.byte(NONE),
            Some((Some(code), _)) => self.byte(code),
            Some((None, word)) => {
                self.byte(WRITTEN_OUT);
                self.text(word);
            }
        }
    }

    /// Runs of equal slots: after a first visit all are alike.
    pub(super) fn paths(&mut self, slots: &[u8]) {
        let mut runs: Vec<(u64, &[u8])> = Vec::new();
        for slot in slots.chunks(SLOT_BYTES) {
            match runs.last_mut() {
                Some((length, last)) if *last == slot => *length += 1,
                _ => runs.push((1, slot)),
            }
        }
        self.number(runs.len() as u64);
        for (length, slot) in runs {
            self.number(length);
            self.raw(slot);
        }
    }

    pub(super) fn host(&mut self, site: &str, host: &HostAtRest) {
        let name = if host.host == site {
            HOST_IS_SITE
        } else if host.host.strip_prefix("www.") == Some(site) {
            HOST_IS_WWW
        } else {
            HOST_IS_WRITTEN_OUT
        };
        let flag = |is_set, flag| if is_set { flag } else { 0 };
        self.byte(
            name | flag(host.origin >= HostOrigin::Named, HOST_SEEDED)
                | flag(host.origin == HostOrigin::Listed, HOST_LISTED)
                | flag(host.clock.is_some(), HOST_HAS_CLOCK)
                | flag(host.robots.is_some(), HOST_HAS_ROBOTS),
        );
        if name == HOST_IS_WRITTEN_OUT {
            self.text(&host.host);
        }
        if let Some(clock) = &host.clock {
            self.time(clock.next_ok_at_ms);
            self.time(clock.not_before_ms);
            self.count(clock.requests_today);
            self.count(clock.requests_day);
        }
        if let Some(robots) = &host.robots {
            self.word(Some(&robots.kind));
            self.word(robots.cause.as_deref());
            self.count(robots.status.unwrap_or_default());
            self.time(Some(robots.fetched_at_ms));
            self.time(Some(robots.expires_at_ms));
            self.count(robots.failures_in_row);
        }
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.0
    }
}

/// Bytes that [`Writer`] did not write.
pub(super) struct Damaged;

type Read<T> = Result<T, Damaged>;

/// Reads what [`Writer`] wrote.
pub(super) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub(super) const fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(super) const fn is_at_end(&self) -> bool {
        self.0.is_empty()
    }

    fn take(&mut self, length: usize) -> Read<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or(Damaged)?;
        self.0 = rest;
        Ok(taken)
    }

    pub(super) fn array<const LENGTH: usize>(&mut self) -> Read<[u8; LENGTH]> {
        self.take(LENGTH)?.try_into().map_err(|_| Damaged)
    }

    pub(super) fn byte(&mut self) -> Read<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    pub(super) fn number(&mut self) -> Read<u64> {
        let mut number = 0_u64;
        for shift in (0..u64::BITS).step_by(7) {
            let byte = self.byte()?;
            number |= (u64::from(byte) & LOW_BITS) << shift;
            if byte & MORE == 0 {
                return Ok(number);
            }
        }
        Err(Damaged)
    }

    pub(super) fn count(&mut self) -> Read<i32> {
        i32::try_from(self.number()?).map_err(|_| Damaged)
    }

    pub(super) fn time(&mut self) -> Read<Option<i64>> {
        let seconds = i64::try_from(self.number()?).map_err(|_| Damaged)?;
        Ok((seconds > 0).then(|| (seconds - 1).saturating_mul(1_000)))
    }

    fn length(&mut self) -> Read<usize> {
        usize::try_from(self.number()?).map_err(|_| Damaged)
    }

    fn text(&mut self) -> Read<String> {
        let length = self.length()?;
        std::str::from_utf8(self.take(length)?).map(str::to_owned).map_err(|_| Damaged)
    }

    pub(super) fn word(&mut self) -> Read<Option<String>> {
        match self.byte()? {
            NONE => Ok(None),
            WRITTEN_OUT => self.text().map(Some),
            code => words::word(code).map(|word| Some(word.to_owned())).ok_or(Damaged),
        }
    }

    pub(super) fn paths(&mut self) -> Read<Vec<u8>> {
        let mut slots = Vec::new();
        for _ in 0..self.number()? {
            let length = self.length()?;
            if length > SLOTS_MAX {
                return Err(Damaged);
            }
            let slot: [u8; SLOT_BYTES] = self.array()?;
            slots.extend(slot.repeat(length));
        }
        Ok(slots)
    }

    pub(super) fn host(&mut self, site: &str) -> Read<HostAtRest> {
        let flags = self.byte()?;
        let host = match flags & HOST_NAME_BITS {
            HOST_IS_SITE => site.to_owned(),
            HOST_IS_WWW => format!("www.{site}"),
            HOST_IS_WRITTEN_OUT => self.text()?,
            _ => return Err(Damaged),
        };
        let clock = if flags & HOST_HAS_CLOCK == 0 { None } else { Some(self.clock()?) };
        let robots = if flags & HOST_HAS_ROBOTS == 0 { None } else { Some(self.robots()?) };
        let origin = match (flags & HOST_SEEDED != 0, flags & HOST_LISTED != 0) {
            (false, _) => HostOrigin::Met,
            (true, false) => HostOrigin::Named,
            (true, true) => HostOrigin::Listed,
        };
        Ok(HostAtRest { host, origin, clock, robots })
    }

    fn clock(&mut self) -> Read<ClockAtRest> {
        Ok(ClockAtRest {
            next_ok_at_ms: self.time()?,
            not_before_ms: self.time()?,
            requests_today: self.count()?,
            requests_day: self.count()?,
        })
    }

    fn robots(&mut self) -> Read<RobotsAtRest> {
        Ok(RobotsAtRest {
            kind: self.word()?.ok_or(Damaged)?,
            cause: self.word()?,
            status: Some(self.count()?).filter(|status| *status > 0),
            fetched_at_ms: self.time()?.ok_or(Damaged)?,
            expires_at_ms: self.time()?.ok_or(Damaged)?,
            failures_in_row: self.count()?,
        })
    }
}

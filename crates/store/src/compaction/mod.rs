//! Compaction: stores the whole state of a site without content in its single row of `site`.
//!
//! Most sites publish nothing. Between visits, their state, hosts, robots.txt verdicts and visits would take six rows with eleven index
//! entries. A compacted site keeps its state in `site.packed`, some 30 bytes of postcard that SQL never reads; statements select by other
//! columns of the row. The site is expanded (its rows are written again) when a visit, a clock or a new URL needs them.
//!
//! Compaction drops the text and validators of robots.txt, which have expired by then, clocks in the past, and the reports of individual
//! visits. All times except the first are whole seconds.
//!
//! A new column of `site_state` goes to the end of [`StateRow`], with `#[serde(default)]`. Postcard does not mark fields, so raise
//! [`ENCODING_VERSION`] then, and add a row to [`STATE_FIELDS`].

pub(crate) mod legacy;

use serde::de::{Deserializer, Visitor};
use serde::{Deserialize, Serialize, forward_to_deserialize_any};

use crate::StoreError;
use crate::convert::RowRef;
use crate::from_row::from_row;
use crate::model::{HostOrigin, SiteState};
use crate::rows::{HostClock, HostRow, RobotsRow, StateRow};

/// First byte of `site.packed`. [`legacy::ENCODING_VERSION`] is still read.
const ENCODING_VERSION: u8 = 2;
/// How many fields of [`StateRow`] each version encodes.
const STATE_FIELDS: &[(u8, usize)] = &[(ENCODING_VERSION, 8)];

/// A site whose rows are compacted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct CompactedSite {
    pub(crate) state: StateRow,
    pub(crate) hosts: Vec<HostRow>,
}

/// Columns of `site`; all null if the site has its own rows. `sql/compaction.rs` lists them.
#[derive(Debug, Clone, Default)]
pub(crate) struct CompactedColumns {
    pub(crate) packed: Option<Vec<u8>>,
    pub(crate) visits_at_rest: Option<i32>,
    pub(crate) compacted_status: Option<String>,
    pub(crate) compacted_failures: Option<i32>,
    pub(crate) compacted_last_visit_at_ms: Option<i64>,
}

from_row!(CompactedColumns {
    packed,
    visits_at_rest,
    compacted_status,
    compacted_failures,
    compacted_last_visit_at_ms
});

/// Reads the first fields of a struct. The others have their default.
struct FirstFields<D> {
    from: D,
    count: usize,
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for FirstFields<D> {
    type Error = D::Error;

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.from.deserialize_tuple(self.count, visitor)
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.from.deserialize_any(visitor)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

/// An encoded host.
#[derive(Serialize, Deserialize)]
struct PackedHost {
    /// The host name without the name of the site at its end: empty, or for example `www.`.
    prefix: String,
    /// Encoded as its [`HostOrigin::code`].
    origin: HostOrigin,
    clock: Option<HostClock>,
    robots: Option<RobotsRow>,
}

impl CompactedSite {
    /// A site that was seeded and never visited.
    pub(crate) fn pending<'a>(
        site: &str,
        hosts: impl IntoIterator<Item = (&'a str, HostOrigin)>,
        first_seen_at_ms: i64,
    ) -> Self {
        let status = policy::Status::Pending.as_str().to_owned();
        Self {
            state: StateRow { name: site.to_owned(), status, first_seen_at_ms, ..StateRow::default() },
            hosts: hosts.into_iter().map(|(host, origin)| HostRow::new(host, site, origin)).collect(),
        }
    }

    /// The bytes of `site.packed`; `None` if the site cannot be compacted, because one of its hosts is not a subdomain.
    pub(crate) fn encode(&self) -> Option<Vec<u8>> {
        let packed = |host: &HostRow| {
            Some(PackedHost {
                prefix: host.host.strip_suffix(&self.state.name)?.to_owned(),
                origin: host.origin(),
                clock: Some(host.clock).filter(|clock| *clock != HostClock::default()),
                robots: Some(host.robots.clone()).filter(|robots| robots.kind.is_some()),
            })
        };
        let hosts: Vec<PackedHost> = self.hosts.iter().map(packed).collect::<Option<_>>()?;
        postcard::to_extend(&(ENCODING_VERSION, &self.state, hosts), Vec::new()).ok()
    }

    /// Reads the columns of a site; `None` if it has its own rows.
    pub(crate) fn decode(site: &str, columns: CompactedColumns) -> Result<Option<Self>, StoreError> {
        let Some(bytes) = columns.packed else { return Ok(None) };
        let at = RowRef::new("site", site);
        let decoded = match bytes.split_first() {
            Some((&legacy::ENCODING_VERSION, body)) => legacy::decode(site, body),
            Some((version, body)) => match STATE_FIELDS.iter().find(|(known, _)| known == version) {
                Some((_, fields)) => Self::decode_body(site, body, *fields),
                None => Err(postcard::Error::DeserializeBadEncoding),
            },
            None => Err(postcard::Error::DeserializeBadEncoding),
        };
        let mut compacted = decoded.map_err(|error| at.damaged("packed", &error))?;
        compacted.state = StateRow {
            name: site.to_owned(),
            status: columns
                .compacted_status
                .ok_or_else(|| at.damaged("compacted_status", "is null although `packed` has a value"))?,
            visits: columns.visits_at_rest.unwrap_or_default(),
            failures_in_row: columns.compacted_failures.unwrap_or_default(),
            last_visit_at_ms: columns.compacted_last_visit_at_ms,
            ..compacted.state
        };
        Ok(Some(compacted))
    }

    fn decode_body(site: &str, body: &[u8], fields: usize) -> postcard::Result<Self> {
        let mut from = postcard::Deserializer::from_bytes(body);
        let state = StateRow::deserialize(FirstFields { from: &mut from, count: fields })?;
        let hosts = Vec::<PackedHost>::deserialize(&mut from)?;
        if !from.finalize()?.is_empty() {
            return Err(postcard::Error::DeserializeBadEncoding);
        }
        let host = |packed: PackedHost| HostRow {
            host: packed.prefix + site,
            site: site.to_owned(),
            seeded: packed.origin.code(),
            clock: packed.clock.unwrap_or_default(),
            robots: packed.robots.unwrap_or_default(),
        };
        Ok(Self { state, hosts: hosts.into_iter().map(host).collect() })
    }

    /// The state for a visit or for the site's owner.
    pub(crate) fn into_site_state(self) -> Result<SiteState, StoreError> {
        let mut state = SiteState::try_from(self.state)?;
        self.hosts.into_iter().try_for_each(|host| host.add_to(&mut state))?;
        Ok(state)
    }
}

#[cfg(test)]
mod tests;

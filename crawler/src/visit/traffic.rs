//! Records of the requests of a visit: counts, times, robots.txt files and resolved addresses.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use manifest::{Host, ManifestUrl};
use policy::delay::day_of;
use serde::{Deserialize, Serialize};
use store::{HostState, Phases, RobotsRecord, SiteState};

use super::task::{NamedBy, Task};
use crate::seeds::fingerprint;
use egress::Timings;

/// Maximum bytes of the robots.txt files of a parked visit. The others are fetched again.
const PARKED_ROBOTS_BYTES_MAX: usize = 4 * 1024 * 1024;
/// How long the next worker uses resolved addresses. Without reuse, a visit to a name that resolves differently each time would be handed
/// over endlessly.
const RESOLVED_AGE_MAX: TimeDelta = TimeDelta::minutes(10);
/// If the delay of a third-party host is longer than this, a visit may leave the host after requesting only its robots.txt.
const LONG_DELAY_MIN: TimeDelta = TimeDelta::minutes(5);

/// Addresses that names resolved to.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Resolved {
    at: DateTime<Utc>,
    addresses: BTreeMap<Host, Vec<SocketAddr>>,
}

/// The part of a visit's progress that its requests write.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Traffic {
    /// Time spent on requests and on DNS queries, without waits for permits.
    pub(crate) active: Duration,
    /// The parts of [`Self::active`] for links and for URLs that others name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) active_for: BTreeMap<NamedBy, Duration>,
    /// The parts of [`Self::active`] by the owner of the document ([`owner_key`]).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    active_for_owners: BTreeMap<String, Duration>,
    /// Boxed, because a map allocates space for eleven entries, and nearly every site has one host.
    pub(crate) robots: BTreeMap<Host, Box<RobotsRecord>>,
    /// Hosts whose robots.txt was applied to the plan. A file that is fetched again is applied again.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub(crate) robots_applied: BTreeSet<Host>,
    /// When the visit began, if earlier visits left third-party hosts because of their delays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) began_at: Option<DateTime<Utc>>,
    /// Hosts whose last request was the one for robots.txt.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub(crate) robots_last: BTreeSet<Host>,
    /// Redirects of robots.txt files that were followed before the visit was interrupted.
    #[serde(default)]
    pub(crate) robots_hops: BTreeMap<Host, Vec<ManifestUrl>>,
    /// Earliest time of the next request to any host of the site.
    #[serde(default)]
    pub(crate) site_next_ok_at: Option<DateTime<Utc>>,
    /// Address group of the host that was requested first; the next visit requests it first too.
    #[serde(default)]
    pub(crate) first_group: Option<u16>,
    #[serde(default)]
    resolved: Option<Resolved>,
    /// Addresses that accepted no connection in this visit. Other addresses of the same host are tried before them.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    unreachable: BTreeSet<IpAddr>,
    pub(crate) phases: Phases,
    pub(crate) requests: u32,
    pub(crate) bytes_in: u64,
}

impl Traffic {
    /// The traffic of a new visit. If third-party hosts asked for a long delay and received no request after the one for robots.txt, their
    /// copy of robots.txt may be used for one request.
    pub(crate) fn after_earlier_visits(
        site: &SiteState,
        is_own: impl Fn(&Host) -> bool,
        now: DateTime<Utc>,
    ) -> Self {
        let left = site.hosts.iter().filter(|state| !is_own(&state.host) && is_left_after_robots(state));
        let robots_last: BTreeSet<Host> = left.map(|state| state.host.clone()).collect();
        Self { began_at: (!robots_last.is_empty()).then_some(now), robots_last, ..Self::default() }
    }

    /// Adds the duration and the phases of a request.
    pub(crate) fn count(&mut self, took: Duration, timings: Timings, wire_bytes: u64) {
        self.active += took;
        self.bytes_in = self.bytes_in.saturating_add(wire_bytes);
        let Timings { connect, tls, first_byte, body } = timings;
        let Phases { connect_ms, tls_ms, ttfb_ms, body_ms, .. } = &mut self.phases;
        for (sum, phase) in [(connect_ms, connect), (tls_ms, tls), (ttfb_ms, first_byte), (body_ms, body)] {
            *sum = sum.saturating_add(millis(phase));
        }
    }

    /// Counts the time since `active_before`, which a task for a document of this owner took.
    pub(crate) fn count_for_links(&mut self, (task, owner): (&Task, &str), active_before: Duration) {
        if task.is_link() {
            let took = self.active.saturating_sub(active_before);
            *self.active_for.entry(task.named_by).or_default() += took;
            *self.active_for_owners.entry(owner_key(task.named_by, owner)).or_default() += took;
        }
    }

    /// The time that tasks for documents of this owner took.
    pub(crate) fn active_for_owner(&self, named_by: NamedBy, owner: &str) -> Duration {
        self.active_for_owners.get(&owner_key(named_by, owner)).copied().unwrap_or_default()
    }

    /// The total time for links and for URLs that others name.
    pub(crate) fn active_for_links(&self) -> Duration {
        self.active_for.values().sum()
    }

    /// Adds the duration of DNS queries. It counts because the site may run the name servers.
    pub(crate) fn count_resolution(&mut self, took: Duration) {
        self.active = self.active.saturating_add(took);
        self.phases.dns_ms = self.phases.dns_ms.saturating_add(millis(took));
    }

    /// Records that an address accepted no connection.
    pub(crate) fn add_unreachable(&mut self, address: IpAddr) {
        self.unreachable.insert(address);
    }

    /// The addresses of a host that may accept a connection, or all addresses if none of them did.
    pub(crate) fn reachable(&self, addresses: &[IpAddr]) -> Vec<IpAddr> {
        let (unreachable, others): (Vec<IpAddr>, Vec<IpAddr>) =
            addresses.iter().partition(|address| self.unreachable.contains(*address));
        if others.is_empty() { unreachable } else { others }
    }

    /// Stores resolved addresses for the next worker.
    pub(crate) fn keep_addresses(&mut self, addresses: BTreeMap<Host, Vec<SocketAddr>>, now: DateTime<Utc>) {
        self.resolved = Some(Resolved { at: now, addresses });
    }

    /// The addresses that another worker resolved up to [`RESOLVED_AGE_MAX`] ago.
    pub(crate) fn addresses_of(&self, host: &Host, now: DateTime<Utc>) -> Option<&[SocketAddr]> {
        let resolved = self.resolved.as_ref().filter(|resolved| now - resolved.at < RESOLVED_AGE_MAX)?;
        resolved.addresses.get(host).map(Vec::as_slice)
    }

    /// Bytes of the robots.txt files.
    pub(crate) fn robots_bytes(&self) -> usize {
        self.robots.values().map(|record| body_bytes(record)).sum()
    }

    /// Drops the largest robots.txt files beyond [`PARKED_ROBOTS_BYTES_MAX`].
    pub(crate) fn drop_large_robots(&mut self) {
        let mut bytes = self.robots_bytes();
        while bytes > PARKED_ROBOTS_BYTES_MAX
            && let Some(host) =
                self.robots.iter().max_by_key(|(_, record)| body_bytes(record)).map(|(host, _)| host.clone())
            && let Some(record) = self.robots.remove(&host)
        {
            bytes -= body_bytes(&record);
        }
    }
}

/// Whether a host received only the request for its robots.txt on the day of its last request, and asked for a long delay.
fn is_left_after_robots(state: &HostState) -> bool {
    let is_left = |fetched_at: DateTime<Utc>| {
        let is_last = (state.requests_today, state.requests_day) == (1, day_of(fetched_at));
        is_last && state.next_ok_at.is_some_and(|at| at - fetched_at > LONG_DELAY_MIN)
    };
    state.robots.as_ref().is_some_and(|record| is_left(record.fetched_at))
}

/// A fingerprint of the owner of documents. It is short, because it is written with each request.
fn owner_key(named_by: NamedBy, owner: &str) -> String {
    format!("{:016x}", fingerprint(&format!("{named_by:?} {owner}")))
}

fn body_bytes(record: &RobotsRecord) -> usize {
    record.body.as_ref().map_or(0, |body| body.len())
}

pub(super) fn millis(duration: Duration) -> u32 {
    u32::try_from(duration.as_millis()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use policy::RobotsKind;
    use store::HostOrigin;

    use super::super::fixtures::host;
    use super::*;

    #[test]
    fn adds_up_phases_and_bytes() {
        let mut traffic = Traffic::default();
        let timings = Timings { connect: Duration::from_millis(5), ..Timings::default() };
        traffic.count(Duration::from_millis(7), timings, 10);
        traffic.count(Duration::from_millis(3), timings, u64::MAX);
        assert_eq!((traffic.active, traffic.bytes_in), (Duration::from_millis(10), u64::MAX));
        traffic.count_resolution(Duration::from_secs(1));
        assert_eq!(traffic.active, Duration::from_millis(1_010), "name servers may be slow on purpose");
        traffic.count_resolution(Duration::MAX);
        assert_eq!((traffic.phases.connect_ms, traffic.phases.dns_ms), (10, u32::MAX));
    }

    #[test]
    fn robots_copy_is_valid_in_the_next_visit_after_a_long_delay() {
        let now = crate::clock::now();
        let fetched_at = now - TimeDelta::hours(25);
        let record = RobotsRecord {
            host: Host::parse("t1.a.example").unwrap(),
            kind: RobotsKind::Rules,
            cause: None,
            status: Some(200),
            body: None,
            fetched_at,
            expires_at: fetched_at + TimeDelta::days(1),
            failures_in_row: 0,
            etag: None,
            last_modified: None,
        };
        let left = HostState {
            robots: Some(record),
            next_ok_at: Some(fetched_at + TimeDelta::hours(2)),
            requests_today: 1,
            requests_day: day_of(fetched_at),
            ..host("t1.a.example", HostOrigin::Named)
        };
        let begun = |state: HostState, is_own| {
            let name = manifest::SiteName::parse("a.example").unwrap();
            let site = SiteState { hosts: vec![state], ..crate::dry_run::unknown(name) };
            let traffic = Traffic::after_earlier_visits(&site, |_| is_own, now);
            assert_eq!(traffic.began_at.is_some(), !traffic.robots_last.is_empty());
            !traffic.robots_last.is_empty()
        };
        assert!(begun(left.clone(), false));
        assert!(!begun(left.clone(), true), "a visit waits at the site's own hosts");
        assert!(!begun(HostState { requests_today: 2, ..left.clone() }, false));
        assert!(!begun(HostState { requests_day: day_of(now) + 1, ..left.clone() }, false));
        let short = Some(fetched_at + TimeDelta::minutes(5));
        assert!(!begun(HostState { next_ok_at: short, ..left.clone() }, false));
        assert!(!begun(HostState { robots: None, ..left }, false));
    }

    #[test]
    fn reuses_resolved_addresses_for_ten_minutes() {
        let (host, now) = (Host::parse("a.example").unwrap(), crate::clock::now());
        let addresses = vec!["93.184.216.34:0".parse().unwrap()];
        let mut traffic = Traffic::default();
        traffic.keep_addresses(BTreeMap::from([(host.clone(), addresses.clone())]), now);
        assert_eq!(traffic.addresses_of(&host, now), Some(addresses.as_slice()));
        assert_eq!(traffic.addresses_of(&Host::parse("b.example").unwrap(), now), None);
        assert_eq!(traffic.addresses_of(&host, now + RESOLVED_AGE_MAX), None);
    }
}

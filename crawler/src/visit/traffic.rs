//! Totals of the requests of a visit: counts, times, robots.txt records and resolved addresses.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use manifest::{Host, ManifestUrl};
use serde::{Deserialize, Serialize};
use store::{Phases, RobotsRecord};

use egress::Timings;

/// Maximum bytes of the robots.txt files of a parked visit. The others are fetched again.
const PARKED_ROBOTS_BYTES_MAX: usize = 4 * 1024 * 1024;
/// The next worker uses resolved addresses for this long. A name that resolves differently each time would otherwise be handed
/// over for ever.
const RESOLVED_AGE_MAX: TimeDelta = TimeDelta::minutes(10);

/// Addresses that names resolved to.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Resolved {
    at: DateTime<Utc>,
    addresses: BTreeMap<Host, Vec<SocketAddr>>,
}

/// The part of a visit's progress that its requests write.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Traffic {
    /// Time spent on requests, without waits for permits.
    pub(crate) active: Duration,
    /// Boxed, since a map allocates space for eleven hosts, and nearly every site has one.
    pub(crate) robots: BTreeMap<Host, Box<RobotsRecord>>,
    /// Hosts whose robots.txt was applied to the plan. One that is fetched again is applied again.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub(crate) robots_applied: BTreeSet<Host>,
    /// Hosts whose last request was that for their robots.txt.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub(crate) robots_last: BTreeSet<Host>,
    /// Redirects of robots.txt files that were followed before the visit was interrupted.
    #[serde(default)]
    pub(crate) robots_hops: BTreeMap<Host, Vec<ManifestUrl>>,
    /// No request to any host of the site before this.
    #[serde(default)]
    pub(crate) site_next_ok_at: Option<DateTime<Utc>>,
    /// Address group of the host that was requested first; the next visit requests it first too.
    #[serde(default)]
    pub(crate) first_group: Option<u16>,
    #[serde(default)]
    resolved: Option<Resolved>,
    /// Addresses that accepted no connection in this visit. Others of the same host come before them.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    unreachable: BTreeSet<IpAddr>,
    pub(crate) phases: Phases,
    pub(crate) requests: u32,
    pub(crate) bytes_in: u64,
}

impl Traffic {
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

    pub(crate) fn count_resolution(&mut self, took: Duration) {
        self.phases.dns_ms = self.phases.dns_ms.saturating_add(millis(took));
    }

    /// Notes that an address accepted no connection.
    pub(crate) fn add_unreachable(&mut self, address: IpAddr) {
        self.unreachable.insert(address);
    }

    /// The addresses of a host that may accept a connection; all of them if none did.
    pub(crate) fn reachable(&self, addresses: &[IpAddr]) -> Vec<IpAddr> {
        let (unreachable, others): (Vec<IpAddr>, Vec<IpAddr>) =
            addresses.iter().partition(|address| self.unreachable.contains(*address));
        if others.is_empty() { unreachable } else { others }
    }

    /// Keeps resolved addresses for the next worker.
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

fn body_bytes(record: &RobotsRecord) -> usize {
    record.body.as_ref().map_or(0, |body| body.len())
}

pub(super) fn millis(duration: Duration) -> u32 {
    u32::try_from(duration.as_millis()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adds_up_phases_and_bytes() {
        let mut traffic = Traffic::default();
        let timings = Timings { connect: Duration::from_millis(5), ..Timings::default() };
        traffic.count(Duration::from_millis(7), timings, 10);
        traffic.count(Duration::from_millis(3), timings, u64::MAX);
        traffic.count_resolution(Duration::MAX);
        assert_eq!((traffic.active, traffic.bytes_in), (Duration::from_millis(10), u64::MAX));
        assert_eq!((traffic.phases.connect_ms, traffic.phases.dns_ms), (10, u32::MAX));
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

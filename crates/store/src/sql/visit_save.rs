//! The rows that every visit writes: state, hosts, robots.txt and its report.
//!
//! The rows of a compacted site are merged with the rows of its visit, so the site need not be expanded first.

use std::collections::BTreeMap;

use sqlx::QueryBuilder;

use super::compaction::{packed_clear, robots_of};
use super::state::{INDEX_UNCHANGED, RobotsByHost, hosts_save, robots_save, states_add_visits};
use super::version::IndexCounts;
use super::{Connection, Database};
use crate::compaction::CompactedSite;
use crate::convert::{millis, text, to_i32, to_i64};
use crate::fault::Outcome;
use crate::model::{HostOrigin, VisitRecord};
use crate::plan::Plan;
use crate::prepare::VisitWrite;
use crate::rows::{HostRow, StateRow};

/// Visits kept for each site; older ones are deleted when a new one is saved.
pub(super) const VISITS_KEPT: i64 = 50;

/// A visit whose lease was held, and its changes.
pub(super) struct HeldVisit<'a> {
    pub(super) write: &'a VisitWrite<'a>,
    /// The site before the visit, if it was compacted.
    pub(super) compacted: Option<CompactedSite>,
    /// Counted if the visit changed the index.
    pub(super) index_counts: Option<IndexCounts>,
    pub(super) plan: Plan<'a>,
    /// The reports of the fetches and their counts by outcome, if some documents exceeded the limits of the site.
    pub(super) reports: Option<(Vec<u8>, String)>,
}

impl HeldVisit<'_> {
    /// The row of `site_state`. For a compacted site, this visit is added to its number of visits.
    fn state_row(&self) -> StateRow {
        let visit = self.write.visit;
        let before = self.compacted.as_ref().map(|site| site.state.clone());
        let uncounted = if before.is_some() { 0 } else { INDEX_UNCHANGED };
        let counts = self.index_counts.clone();
        let counts = counts.unwrap_or_else(|| IndexCounts { manifests: uncounted, ..IndexCounts::default() });
        let before = before.unwrap_or_default();
        let ended_at_ms = millis(visit.ended_at);
        StateRow {
            name: visit.site.as_str().to_owned(),
            status: visit.status.as_str().to_owned(),
            visits: before.visits.saturating_add(1),
            changes: before.changes.saturating_add(i32::from(visit.changed_any)),
            first_visit_at_ms: before.first_visit_at_ms.or(Some(ended_at_ms)),
            last_visit_at_ms: Some(ended_at_ms),
            last_end: Some(visit.end.as_str().to_owned()),
            next_visit_reason: Some(text(&visit.next_visit.reason).into_owned()),
            failures_in_row: to_i32(visit.failures_in_row),
            negatives_in_row: to_i32(visit.negatives_in_row),
            paths_checked: Some(visit.paths_checked.as_bytes().to_vec()),
            manifests: counts.manifests,
            capabilities: counts.capabilities,
            formats: counts.formats,
            ..before
        }
    }

    /// Stored bytes of the visit's new versions.
    pub(super) fn new_bytes(&self) -> usize {
        self.plan.versions.iter().map(|new| self.write.prepared.stored_bytes(&new.manifest.id)).sum()
    }

    fn compacted_hosts(&self) -> impl Iterator<Item = &HostRow> {
        self.compacted.iter().flat_map(|site| &site.hosts)
    }
}

type Visits<'a> = BTreeMap<&'a str, HeldVisit<'a>>;

/// Returns, by site, its number of visits and of capabilities in the index.
pub(super) async fn visit_states_save(
    connection: &mut Connection,
    visits: &Visits<'_>,
) -> Outcome<BTreeMap<String, (i32, i32)>> {
    let states: Vec<StateRow> = visits.values().map(HeldVisit::state_row).collect();
    states_add_visits(connection, &states).await
}

/// Saves the hosts that visits discovered, and the hosts of compacted sites.
pub(super) async fn visit_hosts_save(connection: &mut Connection, visits: &Visits<'_>) -> Outcome<()> {
    let mut rows: BTreeMap<&str, HostRow> = BTreeMap::new();
    for (site, held) in visits {
        for robots in &held.write.visit.robots {
            let host = robots.host.as_str();
            rows.insert(host, HostRow::new(host, site, HostOrigin::Met));
        }
        for host in held.compacted_hosts() {
            rows.insert(&host.host, host.clone());
        }
    }
    hosts_save(connection, &rows.into_values().collect::<Vec<_>>()).await
}

/// Saves the robots.txt records of the visits and of compacted sites.
pub(super) async fn visit_robots_save(connection: &mut Connection, visits: &Visits<'_>) -> Outcome<()> {
    let mut rows = RobotsByHost::new();
    for (site, held) in visits {
        rows.extend(robots_of(held.compacted_hosts()));
        let read = held.write.prepared.robots.iter();
        rows.extend(read.map(|(host, robots)| (host.as_str(), (*site, robots))));
    }
    robots_save(connection, &rows).await
}

/// Adds the visits themselves.
pub(super) async fn visits_insert(connection: &mut Connection, visits: &Visits<'_>) -> Outcome<()> {
    if visits.is_empty() {
        return Ok(());
    }
    let mut query = QueryBuilder::<Database>::new(
        "INSERT INTO visit (site, started_at_ms, ended_at_ms, visit_end, status, next_visit_at_ms, next_visit_reason,
                            requests, bytes_in, dns_ms, connect_ms, tls_ms, ttfb_ms, body_ms, outcomes,
                            crawler_version, fetches) ",
    );
    query.push_values(visits.values(), |mut row, held| {
        let (visit, prepared) = (held.write.visit, &held.write.prepared);
        let reports =
            held.reports.as_ref().map(|(fetches, outcomes)| (fetches.as_slice(), outcomes.as_str()));
        let (fetches, outcomes) = reports.unwrap_or((&prepared.fetches, &prepared.outcomes));
        row.push_bind(visit.site.as_str())
            .push_bind(millis(visit.started_at))
            .push_bind(millis(visit.ended_at))
            .push_bind(visit.end.as_str())
            .push_bind(visit.status.as_str())
            .push_bind(millis(visit.next_visit.at))
            .push_bind(text(&visit.next_visit.reason))
            .push_bind(to_i32(visit.requests))
            .push_bind(to_i64(visit.bytes_in))
            .push_bind(to_i32(visit.phases.dns_ms))
            .push_bind(to_i32(visit.phases.connect_ms))
            .push_bind(to_i32(visit.phases.tls_ms))
            .push_bind(to_i32(visit.phases.ttfb_ms))
            .push_bind(to_i32(visit.phases.body_ms))
            .push_bind(outcomes)
            .push_bind(text(&visit.crawler_version))
            .push_bind(fetches);
    });
    query.build().execute(&mut *connection).await?;
    Ok(())
}

/// Marks compacted sites as expanded, after their rows were written.
pub(super) async fn visits_expand(connection: &mut Connection, visits: &Visits<'_>) -> Outcome<()> {
    let expanded = visits.iter().filter(|(_, held)| held.compacted.is_some());
    packed_clear(connection, &expanded.map(|(site, _)| *site).collect::<Vec<_>>()).await
}

/// Deletes the oldest visits of a site that has more than are kept.
pub(super) async fn visits_trim(connection: &mut Connection, visit: &VisitRecord) -> Outcome<()> {
    sqlx::query(
        "DELETE FROM visit WHERE site = $1
         AND id <= (SELECT id FROM visit WHERE site = $1 ORDER BY id DESC LIMIT 1 OFFSET $2)",
    )
    .bind(visit.site.as_str())
    .bind(VISITS_KEPT)
    .execute(&mut *connection)
    .await?;
    Ok(())
}

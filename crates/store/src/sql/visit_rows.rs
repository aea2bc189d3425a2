//! The rows that every visit writes, whatever it found: state, hosts, robots.txt and the story.
//!
//! A site that had but one row gets them here, as what was packed there and what the visit found come to together.

use std::collections::{BTreeMap, HashMap};

use sqlx::QueryBuilder;

use super::visit::{Held, VISITS_KEPT};
use super::{Connection, Database, batches, listed};
use crate::fault::Outcome;
use crate::model::{RobotsRecord, VisitRecord};
use crate::pack::{count, millis, size, text, text_of};
use crate::rest::{HostAtRest, RobotsAtRest, SiteAtRest};

type Visits<'a> = BTreeMap<&'a str, Held<'a>>;

/// Says that the index was not counted, since nothing changed there.
const NOT_COUNTED: i32 = -1;

/// Returns how many visits each site has had, and its capabilities in the index.
pub(super) async fn states_save(
    connection: &mut Connection,
    visits: &Visits<'_>,
) -> Outcome<HashMap<String, (i32, i32)>> {
    if visits.is_empty() {
        return Ok(HashMap::new());
    }
    let mut query = QueryBuilder::<Database>::new(
        "INSERT INTO site_state (name, status, first_seen_at_ms, visits, changes, first_visit_at_ms, last_visit_at_ms,
                                 last_end, next_visit_reason, failures_in_row, negatives_in_row, paths_checked,
                                 hinted_at_ms, manifests, capabilities, formats) ",
    );
    let never = SiteAtRest::default();
    query.push_values(visits.values(), |mut row, held| {
        let (visit, counted) = (held.saving.visit, held.in_index.as_ref());
        let before = held.at_rest.as_ref().unwrap_or(&never);
        let uncounted = if held.at_rest.is_some() { 0 } else { NOT_COUNTED };
        let ended_at_ms = millis(visit.ended_at);
        row.push_bind(visit.site.as_str())
            .push_bind(visit.status.as_str())
            .push_bind(before.first_seen_at_ms)
            .push_bind(before.visits.saturating_add(1))
            .push_bind(before.changes.saturating_add(i32::from(visit.changed_any)))
            .push_bind(before.first_visit_at_ms.unwrap_or(ended_at_ms))
            .push_bind(ended_at_ms)
            .push_bind(visit.end.as_str())
            .push_bind(text(&visit.next_visit.reason))
            .push_bind(count(visit.failures_in_row))
            .push_bind(count(visit.negatives_in_row))
            .push_bind(visit.paths_checked.as_bytes())
            .push_bind(before.hinted_at_ms)
            .push_bind(counted.map_or(uncounted, |in_index| in_index.manifests))
            .push_bind(counted.map_or(0, |in_index| in_index.capabilities))
            .push_bind(counted.map_or("", |in_index| in_index.formats.as_str()));
    });
    query.push(
        " ON CONFLICT (name) DO UPDATE SET
             status = excluded.status, visits = site_state.visits + excluded.visits,
             changes = site_state.changes + excluded.changes,
             first_visit_at_ms = COALESCE(site_state.first_visit_at_ms, excluded.first_visit_at_ms),
             last_visit_at_ms = excluded.last_visit_at_ms, last_end = excluded.last_end,
             next_visit_reason = excluded.next_visit_reason, failures_in_row = excluded.failures_in_row,
             negatives_in_row = excluded.negatives_in_row, paths_checked = excluded.paths_checked,
             parked_until_ms = NULL, parked_reason = NULL, parked_progress = NULL,
             manifests = CASE WHEN excluded.manifests < 0 THEN site_state.manifests ELSE excluded.manifests END,
             capabilities = CASE WHEN excluded.manifests < 0 THEN site_state.capabilities ELSE excluded.capabilities END,
             formats = CASE WHEN excluded.manifests < 0 THEN site_state.formats ELSE excluded.formats END
         RETURNING name, visits, capabilities",
    );
    let rows: Vec<(String, i32, i32)> = query.build_query_as().fetch_all(&mut *connection).await?;
    Ok(rows.into_iter().map(|(name, visits, capabilities)| (name, (visits, capabilities))).collect())
}

/// Hosts that were met, and those of sites that had but one row. A host may have a row already: its clock is written before
/// a request, whether its site rests or not.
pub(super) async fn hosts_save(connection: &mut Connection, visits: &Visits<'_>) -> Outcome<()> {
    let mut rows: BTreeMap<&str, (&str, Option<&HostAtRest>)> = BTreeMap::new();
    for (site, held) in visits {
        for robots in &held.saving.visit.robots {
            rows.insert(robots.host.as_str(), (site, None));
        }
        for host in held.at_rest.iter().flat_map(|at_rest| &at_rest.hosts) {
            rows.insert(&host.host, (site, Some(host)));
        }
    }
    let rows: Vec<_> = rows.into_iter().collect();
    for rows in batches(&rows) {
        let mut query = QueryBuilder::<Database>::new(
            "INSERT INTO host (host, site, seeded, next_ok_at_ms, not_before_ms, requests_today, requests_day) ",
        );
        query.push_values(rows, |mut row, (host, (site, at_rest))| {
            let clock = at_rest.and_then(|host| host.clock.clone()).unwrap_or_default();
            row.push_bind(*host)
                .push_bind(*site)
                .push_bind(at_rest.map_or(0, |host| host.origin.code()))
                .push_bind(clock.next_ok_at_ms)
                .push_bind(clock.not_before_ms)
                .push_bind(clock.requests_today)
                .push_bind(clock.requests_day);
        });
        query.push(
            " ON CONFLICT (host) DO UPDATE SET
                 seeded = CASE WHEN excluded.seeded > host.seeded THEN excluded.seeded ELSE host.seeded END,
                 not_before_ms = COALESCE(host.not_before_ms, excluded.not_before_ms)
             WHERE excluded.seeded > host.seeded
                OR (host.not_before_ms IS NULL AND excluded.not_before_ms IS NOT NULL)",
        );
        query.build().execute(&mut *connection).await?;
    }
    Ok(())
}

/// What robots.txt of a host came to, now or before the site had but one row.
pub(super) enum Verdict<'a> {
    Read(&'a RobotsRecord, Option<&'a [u8]>),
    AtRest(&'a RobotsAtRest),
}

/// Replaces what is known of the robots.txt of each host.
pub(super) async fn robots_save(connection: &mut Connection, visits: &Visits<'_>) -> Outcome<()> {
    let mut rows: BTreeMap<&str, (&str, Verdict<'_>)> = BTreeMap::new();
    for (site, held) in visits {
        for host in held.at_rest.iter().flat_map(|at_rest| &at_rest.hosts) {
            if let Some(robots) = &host.robots {
                rows.insert(&host.host, (site, Verdict::AtRest(robots)));
            }
        }
        for (robots, body) in held.saving.visit.robots.iter().zip(&held.saving.packed.robots) {
            rows.insert(robots.host.as_str(), (site, Verdict::Read(robots, body.as_deref())));
        }
    }
    robots_put(connection, &rows).await
}

/// By host: its site, and what its robots.txt came to.
pub(super) async fn robots_put(
    connection: &mut Connection,
    rows: &BTreeMap<&str, (&str, Verdict<'_>)>,
) -> Outcome<()> {
    let rows: Vec<_> = rows.iter().collect();
    for rows in batches(&rows) {
        let mut query = QueryBuilder::<Database>::new(
            "INSERT INTO robots (host, site, kind, cause, status, body, fetched_at_ms, expires_at_ms, failures_in_row,
                                 etag, last_modified) ",
        );
        query.push_values(rows, |mut row, (host, (site, verdict))| {
            row.push_bind(**host).push_bind(*site);
            match verdict {
                Verdict::Read(robots, body) => row
                    .push_bind(robots.kind.as_str())
                    .push_bind(robots.cause.as_deref().map(text))
                    .push_bind(robots.status.map(i32::from))
                    .push_bind(*body)
                    .push_bind(millis(robots.fetched_at))
                    .push_bind(millis(robots.expires_at))
                    .push_bind(count(robots.failures_in_row))
                    .push_bind(text_of(robots.etag.as_ref()))
                    .push_bind(text_of(robots.last_modified.as_ref())),
                Verdict::AtRest(robots) => row
                    .push_bind(robots.kind.as_str())
                    .push_bind(robots.cause.as_deref())
                    .push_bind(robots.status)
                    .push_bind(None::<&[u8]>)
                    .push_bind(robots.fetched_at_ms)
                    .push_bind(robots.expires_at_ms)
                    .push_bind(robots.failures_in_row)
                    .push_bind(None::<&str>)
                    .push_bind(None::<&str>),
            };
        });
        query.push(
            " ON CONFLICT (host) DO UPDATE SET
                 kind = excluded.kind, cause = excluded.cause, status = excluded.status, body = excluded.body,
                 fetched_at_ms = excluded.fetched_at_ms, expires_at_ms = excluded.expires_at_ms,
                 failures_in_row = excluded.failures_in_row, etag = excluded.etag,
                 last_modified = excluded.last_modified",
        );
        query.build().execute(&mut *connection).await?;
    }
    Ok(())
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
        let (visit, packed) = (held.saving.visit, &held.saving.packed);
        row.push_bind(visit.site.as_str())
            .push_bind(millis(visit.started_at))
            .push_bind(millis(visit.ended_at))
            .push_bind(visit.end.as_str())
            .push_bind(visit.status.as_str())
            .push_bind(millis(visit.next_visit.at))
            .push_bind(text(&visit.next_visit.reason))
            .push_bind(count(visit.requests))
            .push_bind(size(visit.bytes_in))
            .push_bind(count(visit.phases.dns_ms))
            .push_bind(count(visit.phases.connect_ms))
            .push_bind(count(visit.phases.tls_ms))
            .push_bind(count(visit.phases.ttfb_ms))
            .push_bind(count(visit.phases.body_ms))
            .push_bind(packed.outcomes.as_str())
            .push_bind(text(&visit.crawler_version))
            .push_bind(packed.fetches.as_slice());
    });
    query.build().execute(&mut *connection).await?;
    Ok(())
}

/// Sites that had but one row have rows now.
pub(super) async fn sites_unpack(connection: &mut Connection, visits: &Visits<'_>) -> Outcome<()> {
    let woken: Vec<&str> =
        visits.iter().filter(|(_, held)| held.at_rest.is_some()).map(|(site, _)| *site).collect();
    if woken.is_empty() {
        return Ok(());
    }
    let mut query =
        QueryBuilder::<Database>::new("UPDATE site SET packed = NULL, visits_at_rest = NULL WHERE name IN (");
    listed(&mut query, &woken).push(")").build().execute(&mut *connection).await?;
    Ok(())
}

/// Drops the oldest visits of a site that has more than are kept.
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

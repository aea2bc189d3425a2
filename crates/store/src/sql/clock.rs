//! Politeness clocks: when a request may next be sent to an authority. Those of addresses are in [`super::address`].

use std::collections::{BTreeMap, BTreeSet, HashSet};

use policy::liveness::DAYS_COUNTED;
use sqlx::QueryBuilder;

use super::compaction::sites_expand;
use super::{Connection, Database, address, batches, group, lease};
use crate::convert::{millis, millis_of, names, to_i32};
use crate::fault::Outcome;
use crate::model::{ClockOutcome, ClockWrite, Housekeeping, VisitProgress};

/// How long passed clocks are kept. Clocks of correct machines differ by milliseconds; a day also covers workers with a wrong clock.
const CLOCK_KEPT_MS: i64 = 24 * 60 * 60 * 1_000;
/// How long an attempt is kept after its document was last seen. After three months it is no longer needed.
const ATTEMPT_KEPT_MS: i64 = 90 * 24 * 60 * 60 * 1_000;
/// How long a report is kept. After three months without action it is outdated, because the site has changed.
const REPORT_KEPT_MS: i64 = 90 * 24 * 60 * 60 * 1_000;
/// Retention of search counts: owners see the last three months.
const SEARCH_COUNTS_KEPT_MS: i64 = 90 * DAY_MS;
/// How long an entry of a registry is kept that was not read again. A registry that is followed is read whole every week.
const REGISTRY_ENTRY_KEPT_MS: i64 = 30 * DAY_MS;
/// How long the last failure of a background task is kept: longer than a month, the longest usual schedule.
const TASK_FAILURE_KEPT_MS: i64 = 35 * DAY_MS;
const DAY_MS: i64 = 24 * 60 * 60 * 1_000;
/// How long the progress of an interrupted visit is kept. After two days, the visit starts from the beginning anyway.
const PROGRESS_KEPT_MS: i64 = 2 * 24 * 60 * 60 * 1_000;

/// The writes of a batch to one host: the latest times, and the sum of the requests of the latest day.
#[derive(Default)]
struct HostWrite {
    site: String,
    next_ok_at_ms: i64,
    not_before_ms: Option<i64>,
    requests: u32,
    day: i32,
}

impl HostWrite {
    fn merge(&mut self, write: &ClockWrite) {
        write.host.site().as_str().clone_into(&mut self.site);
        self.next_ok_at_ms = self.next_ok_at_ms.max(millis(write.next_ok_at));
        self.not_before_ms = self.not_before_ms.max(millis_of(write.not_before));
        if write.day > self.day {
            (self.day, self.requests) = (write.day, 0);
        }
        if write.day == self.day {
            self.requests = self.requests.saturating_add(write.requests_add);
        }
    }
}

/// Moves clocks forward, never back. Rows are sorted by key, so concurrent batches lock them in one order. Writes nothing for ended leases
/// and memberships, and for addresses without a free time.
pub(crate) async fn clocks_save(
    connection: &mut Connection,
    writes: &[ClockWrite],
) -> Outcome<Vec<ClockOutcome>> {
    let members = group::members_of_clocks(connection, writes).await?;
    let leases = lease::leases_renew_with_clocks(connection, writes).await?;
    let ended = |write: &ClockWrite| {
        if write.lease.as_ref().is_some_and(|lease| leases.contains(lease)) {
            Some(ClockOutcome::LeaseEnded)
        } else if write.member.is_some_and(|membership| members.contains(&membership.member)) {
            Some(ClockOutcome::MembershipEnded)
        } else {
            None
        }
    };
    let mut outcomes: Vec<ClockOutcome> =
        writes.iter().map(|write| ended(write).unwrap_or(ClockOutcome::Saved)).collect();
    address::slots_take(connection, writes, &mut outcomes).await?;
    let is_saved =
        |outcome: &ClockOutcome| matches!(outcome, ClockOutcome::Saved | ClockOutcome::Reserved { .. });
    let saved: Vec<&ClockWrite> = writes
        .iter()
        .zip(&outcomes)
        .filter(|(_, outcome)| is_saved(outcome))
        .map(|(write, _)| write)
        .collect();
    if !saved.is_empty() {
        clocks_write(connection, &saved).await?;
    }
    Ok(outcomes)
}

async fn clocks_write(connection: &mut Connection, writes: &[&ClockWrite]) -> Outcome<()> {
    let mut hosts: BTreeMap<&str, HostWrite> = BTreeMap::new();
    for write in writes {
        hosts.entry(write.host.as_str()).or_default().merge(write);
    }
    // The clock is a column of the host's row, so the site must be expanded. A visit with progress did that with its first clock.
    let begins = writes.iter().filter(|write| write.progress.is_none());
    let sites: BTreeSet<&str> =
        begins.filter_map(|write| hosts.get(write.host.as_str())).map(|clock| clock.site.as_str()).collect();
    if !sites.is_empty() {
        sites_expand(connection, &names(sites)?).await?;
    }
    host_clocks_save(connection, &hosts).await?;
    progress_save(connection, writes).await
}

async fn host_clocks_save(connection: &mut Connection, hosts: &BTreeMap<&str, HostWrite>) -> Outcome<()> {
    let rows: Vec<_> = hosts.iter().collect();
    for rows in batches(&rows) {
        let mut query = QueryBuilder::<Database>::new(
            "INSERT INTO host (host, site, seeded, next_ok_at_ms, not_before_ms, requests_today, requests_day) ",
        );
        query.push_values(rows, |mut row, (host, clock)| {
            row.push_bind(**host)
                .push_bind(clock.site.as_str())
                .push("0")
                .push_bind(clock.next_ok_at_ms)
                .push_bind(clock.not_before_ms)
                .push_bind(to_i32(clock.requests))
                .push_bind(clock.day);
        });
        query.push(
            " ON CONFLICT (host) DO UPDATE SET
                 next_ok_at_ms = CASE WHEN host.next_ok_at_ms > excluded.next_ok_at_ms
                     THEN host.next_ok_at_ms ELSE excluded.next_ok_at_ms END,
                 not_before_ms = CASE
                     WHEN excluded.not_before_ms IS NULL OR host.not_before_ms > excluded.not_before_ms
                     THEN host.not_before_ms ELSE excluded.not_before_ms END,
                 requests_today = CASE WHEN host.requests_day = excluded.requests_day
                     THEN host.requests_today + excluded.requests_today
                     WHEN host.requests_day > excluded.requests_day THEN host.requests_today
                     ELSE excluded.requests_today END,
                 requests_day = CASE WHEN host.requests_day > excluded.requests_day
                     THEN host.requests_day ELSE excluded.requests_day END",
        );
        query.build().execute(&mut *connection).await?;
    }
    Ok(())
}

/// Saves the latest progress of each visit. A visit that has lost its lease writes nothing.
async fn progress_save(connection: &mut Connection, writes: &[&ClockWrite]) -> Outcome<()> {
    let progress = writes.iter().filter_map(|write| write.progress.as_ref());
    let latest: BTreeMap<&str, &VisitProgress> =
        progress.map(|progress| (progress.site.as_str(), progress)).collect();
    let mut rows: Vec<&VisitProgress> = latest.into_values().collect();
    let saved = progress_write(connection, &rows).await?;
    rows.retain(|progress| !saved.contains(progress.site.as_str()));
    if rows.is_empty() {
        return Ok(());
    }
    sites_expand(connection, &names(rows.iter().map(|progress| progress.site.as_str()))?).await?;
    progress_write(connection, &rows).await.map(drop)
}

/// Returns the sites that have a row and whose lease is held.
async fn progress_write(connection: &mut Connection, rows: &[&VisitProgress]) -> Outcome<HashSet<String>> {
    let mut saved = HashSet::with_capacity(rows.len());
    for rows in batches(rows) {
        let mut query =
            QueryBuilder::<Database>::new("UPDATE site_state SET parked_progress = column3 FROM (");
        query.push_values(rows, |mut row, progress| {
            row.push_bind(progress.site.as_str())
                .push_bind(progress.fence)
                .push_bind(progress.state.as_str());
        });
        query.push(
            ") AS progress WHERE name = column1
             AND EXISTS (SELECT 1 FROM site WHERE site.name = column1 AND site.fence = column2
                         AND site.lease_owner IS NOT NULL)
             RETURNING name",
        );
        let names: Vec<String> = query.build_query_scalar().fetch_all(&mut *connection).await?;
        saved.extend(names);
    }
    Ok(saved)
}

/// Deletes clocks that passed long ago, permits that were never released, progress that no worker will resume, attempts at
/// documents that were not seen again, old reports, and entries of registries that are no longer read.
pub(crate) async fn housekeeping(connection: &mut Connection, now_ms: i64) -> Outcome<Housekeeping> {
    let clocks = sqlx::query("DELETE FROM address_clock WHERE next_ok_at_ms < $1 AND reserved_until_ms < $1")
        .bind(now_ms - CLOCK_KEPT_MS)
        .execute(&mut *connection)
        .await?;
    for (statement, before) in [
        ("DELETE FROM suffix_clock WHERE next_ok_at_ms < $1", now_ms - CLOCK_KEPT_MS),
        ("DELETE FROM suffix_turn WHERE until_ms < $1", now_ms),
        ("DELETE FROM search_count WHERE day < $1", (now_ms - SEARCH_COUNTS_KEPT_MS) / DAY_MS),
        ("DELETE FROM capability_search_count WHERE day < $1", (now_ms - SEARCH_COUNTS_KEPT_MS) / DAY_MS),
        ("DELETE FROM host_check WHERE begun_day < $1", now_ms / DAY_MS - i64::from(DAYS_COUNTED)),
        (
            "DELETE FROM read_attempt WHERE quarantined_at_ms IS NULL AND began_at_ms < $1",
            now_ms - ATTEMPT_KEPT_MS,
        ),
        ("DELETE FROM report WHERE at_ms < $1", now_ms - REPORT_KEPT_MS),
        ("DELETE FROM task_failure WHERE last_ms < $1", now_ms - TASK_FAILURE_KEPT_MS),
        ("DELETE FROM registry_entry WHERE seen_at_ms < $1", now_ms - REGISTRY_ENTRY_KEPT_MS),
        (
            "DELETE FROM registry_position
             WHERE COALESCE(read_whole_at_ms, 0) < $1 AND COALESCE(began_at_ms, 0) < $1",
            now_ms - REGISTRY_ENTRY_KEPT_MS,
        ),
    ] {
        sqlx::query(statement).bind(before).execute(&mut *connection).await?;
    }
    let interrupted = sqlx::query(
        "UPDATE site_state SET parked_progress = NULL
         WHERE parked_progress IS NOT NULL AND parked_until_ms IS NULL
           AND name IN (SELECT name FROM site WHERE lease_owner IS NOT NULL AND lease_until_ms < $1)",
    )
    .bind(now_ms - PROGRESS_KEPT_MS)
    .execute(&mut *connection)
    .await?;
    Ok(Housekeeping {
        address_clocks: clocks.rows_affected(),
        interrupted_visits: interrupted.rows_affected(),
        ..Housekeeping::default()
    })
}

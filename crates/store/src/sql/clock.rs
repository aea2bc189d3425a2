//! Politeness clocks: when a request may next be sent to an authority or an address.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::net::IpAddr;

use chrono::{DateTime, Utc};
use sqlx::QueryBuilder;

use super::{Connection, Database, batches, group, rest};
use crate::fault::Outcome;
use crate::model::{ClockWrite, Housekeeping, MemberId};
use crate::pack::{Place, count, json, millis, millis_of, names};

/// A clock of an address is milliseconds ahead at most; a day covers any clock that was wrong.
const CLOCK_KEPT_MS: i64 = 24 * 60 * 60 * 1_000;
/// A document that ended its reader is read again within a visit's retries, or was not seen since.
const ATTEMPT_KEPT_MS: i64 = 90 * 24 * 60 * 60 * 1_000;
/// A visit that was broken off two days ago begins anew anyway.
const PROGRESS_KEPT_MS: i64 = 2 * 24 * 60 * 60 * 1_000;

/// Writes of one batch to the same host, as one row: the latest times, the sum of the requests of the latest day.
#[derive(Default)]
struct HostClock {
    site: String,
    next_ok_at_ms: i64,
    not_before_ms: Option<i64>,
    requests: u32,
    day: i32,
}

impl HostClock {
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

/// Moves clocks forward, never back. Rows go in sorted by key, so that concurrent batches lock them in the same order.
/// Returns the memberships that have ended, for whose clocks nothing is written.
pub(crate) async fn clocks_save(
    connection: &mut Connection,
    writes: &[ClockWrite],
) -> Outcome<HashSet<MemberId>> {
    let ended = group::members_of_clocks(connection, writes).await?;
    let is_lawful =
        |write: &&ClockWrite| !write.member.is_some_and(|membership| ended.contains(&membership.member));
    let writes: Vec<&ClockWrite> = writes.iter().filter(is_lawful).collect();
    if !writes.is_empty() {
        clocks_write(connection, &writes).await?;
    }
    Ok(ended)
}

async fn clocks_write(connection: &mut Connection, writes: &[&ClockWrite]) -> Outcome<()> {
    let mut hosts: BTreeMap<&str, HostClock> = BTreeMap::new();
    let mut addresses: BTreeMap<String, i64> = BTreeMap::new();
    for write in writes {
        hosts.entry(write.host.as_str()).or_default().merge(write);
        if let (Some(address), Some(at)) = (write.address, write.address_next_ok_at) {
            let latest = addresses.entry(address.to_string()).or_insert(i64::MIN);
            *latest = (*latest).max(millis(at));
        }
    }
    // A clock has its place in the row of a host. A visit that has done something has woken its site with its first clock.
    let begins = writes.iter().filter(|write| write.progress.is_none());
    let sites: BTreeSet<&str> =
        begins.filter_map(|write| hosts.get(write.host.as_str())).map(|clock| clock.site.as_str()).collect();
    if !sites.is_empty() {
        rest::sites_wake(connection, &names(sites)?).await?;
    }
    hosts_save(connection, &hosts).await?;
    progress_save(connection, writes).await?;
    if addresses.is_empty() {
        return Ok(());
    }
    sqlx::query(
        "INSERT INTO address_clock (address, next_ok_at_ms)
         SELECT value ->> 0, CAST(value ->> 1 AS BIGINT) FROM json_each($1) WHERE true
         ON CONFLICT (address) DO UPDATE SET next_ok_at_ms = excluded.next_ok_at_ms
         WHERE address_clock.next_ok_at_ms < excluded.next_ok_at_ms",
    )
    .bind(json(&addresses.iter().collect::<Vec<_>>(), "batch of address clocks")?)
    .execute(&mut *connection)
    .await?;
    Ok(())
}

async fn hosts_save(connection: &mut Connection, hosts: &BTreeMap<&str, HostClock>) -> Outcome<()> {
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
                .push_bind(count(clock.requests))
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

/// A site, the fence of the lease of its visit, and what the visit has done.
type Done<'a> = (&'a str, i64, &'a str);

/// Keeps what visits have done so far, of each the latest. A visit that has lost its lease writes nothing.
async fn progress_save(connection: &mut Connection, writes: &[&ClockWrite]) -> Outcome<()> {
    let latest: BTreeMap<&str, Done<'_>> = writes
        .iter()
        .filter_map(|write| write.progress.as_ref())
        .map(|progress| {
            (progress.site.as_str(), (progress.site.as_str(), progress.fence, progress.state.as_str()))
        })
        .collect();
    let mut rows: Vec<Done<'_>> = latest.into_values().collect();
    let kept = progress_keep(connection, &rows).await?;
    rows.retain(|(site, ..)| !kept.contains(*site));
    if rows.is_empty() {
        return Ok(());
    }
    rest::sites_wake(connection, &names(rows.iter().map(|(site, ..)| *site))?).await?;
    progress_keep(connection, &rows).await.map(drop)
}

/// Returns the sites that have a row and whose lease is held.
async fn progress_keep(connection: &mut Connection, rows: &[Done<'_>]) -> Outcome<HashSet<String>> {
    let mut kept = HashSet::with_capacity(rows.len());
    for rows in batches(rows) {
        let mut query =
            QueryBuilder::<Database>::new("UPDATE site_state SET parked_progress = column3 FROM (");
        query.push_values(rows, |mut row, (site, fence, state)| {
            row.push_bind(*site).push_bind(*fence).push_bind(*state);
        });
        query.push(
            ") AS kept WHERE name = column1
             AND EXISTS (SELECT 1 FROM site WHERE site.name = column1 AND site.fence = column2
                         AND site.lease_owner IS NOT NULL)
             RETURNING name",
        );
        let names: Vec<String> = query.build_query_scalar().fetch_all(&mut *connection).await?;
        kept.extend(names);
    }
    Ok(kept)
}

/// Removes clocks that have long passed, turns that were never ended, progress that nobody will go on with, and attempts at
/// documents that were not seen again.
pub(crate) async fn housekeeping(connection: &mut Connection, now_ms: i64) -> Outcome<Housekeeping> {
    let clocks = sqlx::query("DELETE FROM address_clock WHERE next_ok_at_ms < $1")
        .bind(now_ms - CLOCK_KEPT_MS)
        .execute(&mut *connection)
        .await?;
    for (statement, before) in [
        ("DELETE FROM suffix_clock WHERE next_ok_at_ms < $1", now_ms - CLOCK_KEPT_MS),
        ("DELETE FROM suffix_turn WHERE until_ms < $1", now_ms),
        (
            "DELETE FROM read_attempt WHERE quarantined_at_ms IS NULL AND began_at_ms < $1",
            now_ms - ATTEMPT_KEPT_MS,
        ),
    ] {
        sqlx::query(statement).bind(before).execute(&mut *connection).await?;
    }
    let broken_off = sqlx::query(
        "UPDATE site_state SET parked_progress = NULL
         WHERE parked_progress IS NOT NULL AND parked_until_ms IS NULL
           AND name IN (SELECT name FROM site WHERE lease_owner IS NOT NULL AND lease_until_ms < $1)",
    )
    .bind(now_ms - PROGRESS_KEPT_MS)
    .execute(&mut *connection)
    .await?;
    Ok(Housekeeping {
        address_clocks: clocks.rows_affected(),
        broken_off: broken_off.rows_affected(),
        ..Housekeeping::default()
    })
}

/// The clocks of these addresses, where there are any.
pub(crate) async fn address_clocks(
    connection: &mut Connection,
    addresses: &[IpAddr],
) -> Outcome<HashMap<IpAddr, DateTime<Utc>>> {
    let wanted: Vec<String> = addresses.iter().map(IpAddr::to_string).collect();
    let rows: Vec<(String, i64)> = sqlx::query_as(
        "SELECT address, next_ok_at_ms FROM address_clock
         WHERE address IN (SELECT value ->> 0 FROM json_each($1))",
    )
    .bind(names(wanted.iter().map(String::as_str))?)
    .fetch_all(&mut *connection)
    .await?;
    let mut clocks = HashMap::with_capacity(rows.len());
    for (address, next_ok_at_ms) in rows {
        let place = Place::new("address_clock", &address);
        clocks.insert(place.parse("address", &address)?, place.time("next_ok_at_ms", next_ok_at_ms)?);
    }
    Ok(clocks)
}

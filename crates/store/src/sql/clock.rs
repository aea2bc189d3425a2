//! Politeness clocks: when a request may next be sent to an authority or an address.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::net::IpAddr;

use chrono::{DateTime, Utc};

use super::{Connection, group, rest};
use crate::fault::Outcome;
use crate::model::{ClockWrite, Housekeeping, MemberId};
use crate::pack::{Place, count, json, millis, millis_of, names};

/// A clock of an address is milliseconds ahead at most; a day covers any clock that was wrong.
const CLOCK_KEPT_MS: i64 = 24 * 60 * 60 * 1_000;
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
    // A clock has its place in the row of a host.
    let sites: BTreeSet<&str> = hosts.values().map(|clock| clock.site.as_str()).collect();
    rest::sites_wake(connection, &names(sites)?).await?;
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
    let rows: Vec<_> = hosts
        .iter()
        .map(|(host, clock)| {
            (host, &clock.site, clock.next_ok_at_ms, clock.not_before_ms, count(clock.requests), clock.day)
        })
        .collect();
    sqlx::query(
        "INSERT INTO host (host, site, seeded, next_ok_at_ms, not_before_ms, requests_today, requests_day)
         SELECT value ->> 0, value ->> 1, 0, CAST(value ->> 2 AS BIGINT), CAST(value ->> 3 AS BIGINT),
                CAST(value ->> 4 AS INTEGER), CAST(value ->> 5 AS INTEGER)
         FROM json_each($1) WHERE true
         ON CONFLICT (host) DO UPDATE SET
             next_ok_at_ms = CASE WHEN host.next_ok_at_ms > excluded.next_ok_at_ms
                 THEN host.next_ok_at_ms ELSE excluded.next_ok_at_ms END,
             not_before_ms = CASE WHEN excluded.not_before_ms IS NULL OR host.not_before_ms > excluded.not_before_ms
                 THEN host.not_before_ms ELSE excluded.not_before_ms END,
             requests_today = CASE WHEN host.requests_day = excluded.requests_day
                 THEN host.requests_today + excluded.requests_today
                 WHEN host.requests_day > excluded.requests_day THEN host.requests_today
                 ELSE excluded.requests_today END,
             requests_day = CASE WHEN host.requests_day > excluded.requests_day
                 THEN host.requests_day ELSE excluded.requests_day END",
    )
    .bind(json(&rows, "batch of clocks")?)
    .execute(&mut *connection)
    .await?;
    Ok(())
}

/// Keeps what visits have done so far, of each the latest. A visit that has lost its lease writes nothing.
async fn progress_save(connection: &mut Connection, writes: &[&ClockWrite]) -> Outcome<()> {
    let latest: BTreeMap<&str, (i64, &str)> = writes
        .iter()
        .filter_map(|write| write.progress.as_ref())
        .map(|progress| (progress.site.as_str(), (progress.fence, progress.state.as_str())))
        .collect();
    if latest.is_empty() {
        return Ok(());
    }
    let rows: Vec<_> = latest.iter().map(|(site, (fence, state))| (site, fence, state)).collect();
    sqlx::query(
        "UPDATE site_state SET parked_progress = kept_state
         FROM (SELECT value ->> 0 AS kept_name, CAST(value ->> 1 AS BIGINT) AS kept_fence, value ->> 2 AS kept_state
               FROM json_each($1)) AS kept
         WHERE name = kept_name
           AND EXISTS (SELECT 1 FROM site WHERE site.name = kept_name AND site.fence = kept_fence
                       AND site.lease_owner IS NOT NULL)",
    )
    .bind(json(&rows, "batch of progress")?)
    .execute(&mut *connection)
    .await?;
    Ok(())
}

/// Removes clocks that have long passed and progress that nobody will go on with.
pub(crate) async fn housekeeping(connection: &mut Connection, now_ms: i64) -> Outcome<Housekeeping> {
    let clocks = sqlx::query("DELETE FROM address_clock WHERE next_ok_at_ms < $1")
        .bind(now_ms - CLOCK_KEPT_MS)
        .execute(&mut *connection)
        .await?;
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

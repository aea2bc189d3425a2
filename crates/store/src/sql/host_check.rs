//! Daily checks of hosts that endpoints name.

use chrono::{DateTime, Utc};
use manifest::Host;
use policy::delay::day_of;
use policy::liveness::{HOSTS_NAMED_BY_OTHERS_MAX, HOSTS_OF_SITE_MAX, HostCheckHistory, HostCheckOutcome};

use super::rows::decode;
use super::{Connection, block, for_update};
use crate::StoreError;
use crate::convert::{RowRef, intact, millis, names, to_u32};
use crate::fault::Outcome;
use crate::from_row::from_row;
use crate::model::{HostCheck, NamedHost};

struct CheckRow {
    host: String,
    history_day: i32,
    checked: i32,
    succeeded: i32,
    outcome: Option<String>,
    checked_at_ms: Option<i64>,
}

from_row!(CheckRow { host, history_day, checked, succeeded, outcome, checked_at_ms });

impl CheckRow {
    fn history(&self) -> HostCheckHistory {
        HostCheckHistory {
            day: self.history_day,
            checked: to_u32(self.checked),
            succeeded: to_u32(self.succeeded),
        }
    }
}

impl TryFrom<CheckRow> for HostCheck {
    type Error = StoreError;

    fn try_from(row: CheckRow) -> Result<Self, StoreError> {
        let at = RowRef::new("host_check", &row.host);
        let missing = |column| at.damaged(column, "is null although a check ended");
        let outcome: Option<HostCheckOutcome> = at.parse_of("outcome", row.outcome.as_ref())?;
        Ok(Self {
            host: at.parse("host", &row.host)?,
            outcome: outcome.ok_or_else(|| missing("outcome"))?,
            checked_at: at
                .time_of("checked_at_ms", row.checked_at_ms)?
                .ok_or_else(|| missing("checked_at_ms"))?,
            history: row.history(),
        })
    }
}

/// Whether the site itself names the host: its documents did so on the day of the last check or the day before.
macro_rules! is_own {
    () => {
        "host_check.own_day IS NOT NULL AND host_check.own_day >= host_check.begun_day - 1"
    };
}

/// Counts the other hosts of the site `$2` that are checked and that the site itself names, or does not.
macro_rules! count_others {
    ($kind:literal) => {
        concat!(
            "(SELECT COUNT(*) FROM host_check WHERE site = $2 AND host <> $1 AND begun_day >= CAST($3 AS INTEGER) - 1 AND ",
            $kind,
            "(",
            is_own!(),
            "))"
        )
    };
}

/// Begins the checks of these hosts on the day of `now`, and returns the hosts to check: those that were not checked on this day, whose
/// sites are neither blocked nor suspended and have no more hosts than the limit. Hosts that only documents of others name have a part
/// of the limit. The rows are written in one order, so that concurrent batches do not wait for each other in circles. Concurrent batches
/// may exceed the limit only for a site that is not known, whose hosts are not contacted.
pub(crate) async fn host_checks_begin(
    connection: &mut Connection,
    hosts: &[NamedHost],
    now: DateTime<Utc>,
) -> Outcome<Vec<Host>> {
    let mut sorted: Vec<_> = hosts.iter().map(|named| (named.host.site(), named)).collect();
    sorted.sort_unstable();
    let sites = names(sorted.iter().map(|(site, _)| site.as_str()))?;
    // concurrent batches count the hosts of a known site one after the other
    let lock = concat!("SELECT name FROM site WHERE name IN ", list!(), " ORDER BY name", for_update!());
    sqlx::query(lock).bind(&sites).fetch_all(&mut *connection).await?;
    let blocked = block::blocked_among(connection, &sites).await?;
    let mut begun = Vec::new();
    for (site, NamedHost { host, is_own }) in sorted {
        if blocked.contains(site.as_str()) {
            continue;
        }
        let (statements, hosts_max): (&[_], _) = if *is_own {
            (&[MARK_OWN, BEGIN_OWN], HOSTS_OF_SITE_MAX - HOSTS_NAMED_BY_OTHERS_MAX)
        } else {
            (&[BEGIN_OF_OTHERS], HOSTS_NAMED_BY_OTHERS_MAX)
        };
        let mut is_begun = false;
        for statement in statements {
            let written = sqlx::query(*statement)
                .bind(host.as_str())
                .bind(site.as_str())
                .bind(day_of(now))
                .bind(i64::from(hosts_max))
                .execute(&mut *connection)
                .await?;
            is_begun = written.rows_affected() > 0;
        }
        if is_begun {
            begun.push(host.clone());
        }
    }
    Ok(begun)
}

/// Another document may have named the host before, also on this day.
const MARK_OWN: &str = concat!(
    "UPDATE host_check SET own_day = CAST($3 AS INTEGER)
     WHERE host = $1 AND (own_day IS NULL OR own_day < CAST($3 AS INTEGER)) AND ",
    count_others!(""),
    " < $4"
);

/// Begins the check of a host, unless it was checked on this day.
macro_rules! begin {
    ($own_day:literal, $kind:literal) => {
        concat!(
            "INSERT INTO host_check (host, site, begun_day, own_day, history_day, checked, succeeded)
             SELECT $1, $2, CAST($3 AS INTEGER), ",
            $own_day,
            ", CAST($3 AS INTEGER), 0, 0 WHERE ",
            count_others!($kind),
            " < $4
             ON CONFLICT (host) DO UPDATE SET begun_day = excluded.begun_day
             WHERE host_check.begun_day < excluded.begun_day"
        )
    };
}
const BEGIN_OWN: &str = begin!("CAST($3 AS INTEGER)", "");
const BEGIN_OF_OTHERS: &str = begin!("CAST(NULL AS INTEGER)", "NOT ");

/// Gives back a check that began on the day of `now`, so that it can begin again on this day.
pub(crate) async fn host_check_abandon(
    connection: &mut Connection,
    host: &Host,
    now: DateTime<Utc>,
) -> Outcome<()> {
    sqlx::query("UPDATE host_check SET begun_day = begun_day - 1 WHERE host = $1 AND begun_day = $2")
        .bind(host.as_str())
        .bind(day_of(now))
        .execute(&mut *connection)
        .await?;
    Ok(())
}

/// Stores what a check found. Nothing is stored if the row was deleted since, because the site was blocked.
pub(crate) async fn host_check_end(
    connection: &mut Connection,
    host: &Host,
    outcome: HostCheckOutcome,
    at: DateTime<Utc>,
) -> Outcome<()> {
    let Some(row) = rows_of(connection, RowsOf::Host(host.as_str())).await?.pop() else { return Ok(()) };
    let history = outcome.succeeded().map_or_else(|| row.history(), |ok| row.history().with(ok, at));
    sqlx::query(
        "UPDATE host_check SET history_day = $2, checked = $3, succeeded = $4, outcome = $5, checked_at_ms = $6
         WHERE host = $1",
    )
    .bind(host.as_str())
    .bind(history.day)
    .bind(bits(history.checked))
    .bind(bits(history.succeeded))
    .bind(outcome.as_str())
    .bind(millis(at))
    .execute(&mut *connection)
    .await?;
    Ok(())
}

/// The 30 bits of a history.
fn bits(days: u32) -> i32 {
    i32::try_from(days).unwrap_or_default()
}

enum RowsOf<'a> {
    Host(&'a str),
    Site(&'a str),
}

async fn rows_of(connection: &mut Connection, rows: RowsOf<'_>) -> Outcome<Vec<CheckRow>> {
    let (statement, name) = match rows {
        RowsOf::Host(name) => (
            "SELECT host, history_day, checked, succeeded, outcome, checked_at_ms FROM host_check WHERE host = $1",
            name,
        ),
        RowsOf::Site(name) => (
            concat!(
                "SELECT host, history_day, checked, succeeded, outcome, checked_at_ms FROM host_check
                 WHERE site = $1 AND ",
                is_own!(),
                " AND own_day >= (SELECT MAX(own_day) FROM host_check WHERE site = $1) - 1 ORDER BY host"
            ),
            name,
        ),
    };
    let rows = sqlx::query(statement).bind(name).fetch_all(&mut *connection).await?;
    Ok(intact(decode::<CheckRow>(&["host_check"], &rows), Ok))
}

/// The checks of a host; `None` before the first one ended.
pub(crate) async fn host_check_find(connection: &mut Connection, host: &Host) -> Outcome<Option<HostCheck>> {
    let rows = rows_of(connection, RowsOf::Host(host.as_str())).await?;
    Ok(ended(rows).pop())
}

/// The last checks of the hosts of a registrable domain that the site itself names, sorted by host.
pub(crate) async fn host_checks_of_site(connection: &mut Connection, site: &str) -> Outcome<Vec<HostCheck>> {
    Ok(ended(rows_of(connection, RowsOf::Site(site)).await?))
}

fn ended(rows: Vec<CheckRow>) -> Vec<HostCheck> {
    let ended: Vec<_> = rows.into_iter().filter(|row| row.outcome.is_some()).map(Ok).collect();
    intact(ended, HostCheck::try_from)
}

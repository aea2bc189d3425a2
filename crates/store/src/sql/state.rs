//! Reads and writes `site_state`, `host` and `robots`. Only this file and `super::host` list their columns.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use policy::FetchOutcome;
use sqlx::QueryBuilder;

use super::rows::{decode, decode_by, decode_row};
use super::{Connection, Database, batches};
use crate::StoreError;
use crate::convert::{RowRef, decompressed_start, intact, log_damaged, names, to_i64};
use crate::fault::Outcome;
use crate::model::{HostOrigin, VisitRecord};
use crate::rows::{
    HostRow, MAIN_ROBOTS_BYTES_MAX, OWNER_REQUESTED, OWNER_REQUESTED_NEXT, RobotsRow, StateRow,
};

/// If a site has more hosts than this, hosts whose names do not resolve are removed: half of the hosts that links may add.
const HOSTS_WITH_DEAD_MAX: i64 = 500;
/// Value of `manifests` for a row whose stored index counts must not change.
pub(super) const INDEX_UNCHANGED: i32 = -1;

/// A row with the name of its site.
pub(super) type OfSite<T> = (String, Result<T, StoreError>);

/// The states of the listed sites that are not compacted.
pub(super) async fn states_of(connection: &mut Connection, sites: &str) -> Outcome<Vec<OfSite<StateRow>>> {
    let states = sqlx::query(concat!(
        "SELECT name, status, first_seen_at_ms, visits, changes, first_visit_at_ms, last_visit_at_ms, last_end,
                next_visit_reason, failures_in_row, negatives_in_row, paths_checked, hinted_at_ms, parked_until_ms,
                parked_reason, parked_progress, manifests, capabilities, formats
         FROM site_state WHERE name IN ",
        list!()
    ));
    let rows = states.bind(sites).fetch_all(&mut *connection).await?;
    Ok(decode_by(&["site_state"], "name", &rows))
}

fn states_insert(states: &[StateRow]) -> QueryBuilder<Database> {
    let mut query = QueryBuilder::new(
        "INSERT INTO site_state (name, status, first_seen_at_ms, visits, changes, first_visit_at_ms, last_visit_at_ms,
                                 last_end, next_visit_reason, failures_in_row, negatives_in_row, paths_checked,
                                 hinted_at_ms, manifests, capabilities, formats) ",
    );
    query.push_values(states, |mut row, state| {
        row.push_bind(state.name.clone())
            .push_bind(state.status.clone())
            .push_bind(state.first_seen_at_ms)
            .push_bind(state.visits)
            .push_bind(state.changes)
            .push_bind(state.first_visit_at_ms)
            .push_bind(state.last_visit_at_ms)
            .push_bind(state.last_end.clone())
            .push_bind(state.next_visit_reason.clone())
            .push_bind(state.failures_in_row)
            .push_bind(state.negatives_in_row)
            .push_bind(state.paths_checked.clone())
            .push_bind(state.hinted_at_ms)
            .push_bind(state.manifests)
            .push_bind(state.capabilities)
            .push_bind(state.formats.clone());
    });
    query
}

/// Writes the states of expanded sites.
pub(super) async fn states_restore(connection: &mut Connection, states: &[StateRow]) -> Outcome<()> {
    for states in batches(states) {
        let mut query = states_insert(states);
        query.push(" ON CONFLICT (name) DO NOTHING").build().execute(&mut *connection).await?;
    }
    Ok(())
}

/// Adds visits to states: the counters of a row are added to the stored ones. Returns, by site, its number of visits and of capabilities in
/// the index.
pub(super) async fn states_add_visits(
    connection: &mut Connection,
    states: &[StateRow],
) -> Outcome<BTreeMap<String, (i32, i32)>> {
    if states.is_empty() {
        return Ok(BTreeMap::new());
    }
    let mut query = states_insert(states);
    query.push(
        " ON CONFLICT (name) DO UPDATE SET
             status = excluded.status,
             visits = CASE WHEN site_state.visits < 2000000000 THEN site_state.visits + excluded.visits
                           ELSE site_state.visits END,
             changes = CASE WHEN site_state.changes < 2000000000 THEN site_state.changes + excluded.changes
                            ELSE site_state.changes END,
             first_visit_at_ms = COALESCE(site_state.first_visit_at_ms, excluded.first_visit_at_ms),
             last_visit_at_ms = excluded.last_visit_at_ms, last_end = excluded.last_end,
             next_visit_reason = CASE WHEN site_state.next_visit_reason = '",
    );
    query.push(OWNER_REQUESTED_NEXT).push("' THEN '").push(OWNER_REQUESTED).push(
        "' ELSE excluded.next_visit_reason END,
             failures_in_row = excluded.failures_in_row,
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

/// Which robots.txt files are read with their hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RobotsBodies {
    None,
    /// The files of main hosts, of at most [`MAIN_ROBOTS_BYTES_MAX`]. Others are read by [`robots_body`].
    OfMainHosts,
}

/// A limit of the hosts that are read.
pub(super) struct FirstHosts {
    pub(super) max: u32,
    /// The hosts that have manifests ([`names`]).
    pub(super) with_manifests: String,
}

/// The hosts of the listed sites, by name. With a limit, the main hosts of their sites are read first, then those that lists name or that have
/// manifests, then those that were requested. Anybody can name any number of hosts below a domain.
pub(super) async fn hosts_of(
    connection: &mut Connection,
    sites: &str,
    bodies: RobotsBodies,
    first: Option<FirstHosts>,
) -> Outcome<Vec<OfSite<HostRow>>> {
    let hosts = sqlx::query(concat!(
        "SELECT known.host, known.site, seeded, next_ok_at_ms, not_before_ms, requests_today, requests_day,
                kind, cause, status,
                CASE WHEN known.host IN (known.site, 'www.' || known.site) AND LENGTH(body) <= $2 THEN body END AS body,
                fetched_at_ms, expires_at_ms, failures_in_row, etag, last_modified
         FROM (SELECT * FROM host WHERE site IN ",
        list!(),
        "      ORDER BY CASE WHEN host IN (site, 'www.' || site) THEN 0
                              WHEN seeded >= $4 OR host IN (SELECT value ->> 0 FROM json_each($5)) THEN 1
                              WHEN next_ok_at_ms IS NOT NULL THEN 2 ELSE 3 END, host
               LIMIT $3) AS known
         LEFT JOIN robots ON robots.host = known.host
         ORDER BY known.host"
    ));
    let bytes_max = match bodies {
        RobotsBodies::None => -1,
        RobotsBodies::OfMainHosts => to_i64(MAIN_ROBOTS_BYTES_MAX),
    };
    let FirstHosts { max, with_manifests } =
        first.unwrap_or_else(|| FirstHosts { max: u32::MAX, with_manifests: "[]".to_owned() });
    let hosts = hosts.bind(sites).bind(bytes_max).bind(i64::from(max));
    let hosts = hosts.bind(HostOrigin::Collected.code()).bind(with_manifests);
    Ok(decode_by(&["host", "robots"], "site", &hosts.fetch_all(&mut *connection).await?))
}

/// The robots.txt of a host, if there is one.
pub(crate) async fn robots_body(connection: &mut Connection, host: &str) -> Outcome<Option<Vec<u8>>> {
    let query = sqlx::query("SELECT host, body FROM robots WHERE host = $1").bind(host);
    let Some(row) = query.fetch_optional(&mut *connection).await? else { return Ok(None) };
    let (host, body): (String, Option<Vec<u8>>) = decode_row(&["robots"], &row)?;
    let at = RowRef::new("robots", &host);
    Ok(body.map(|body| at.bytes("body", &body)).transpose()?)
}

/// Up to `bytes_max` bytes from the start of the robots.txt files of the listed hosts. Reads at most twice as many compressed bytes of each
/// file, so a file that hardly compresses may give fewer bytes. Damaged rows are left out.
pub(super) async fn robots_starts(
    connection: &mut Connection,
    hosts: &str,
    bytes_max: u64,
) -> Outcome<HashMap<String, Vec<u8>>> {
    let rows = sqlx::query(concat!(
        "SELECT host, substr(body, 1, $2) FROM robots WHERE body IS NOT NULL AND host IN ",
        list!()
    ))
    .bind(hosts)
    .bind(i32::try_from(2 * bytes_max).unwrap_or(i32::MAX))
    .fetch_all(&mut *connection)
    .await?;
    let starts = decode::<(String, Vec<u8>)>(&["robots"], &rows).into_iter().filter_map(log_damaged);
    Ok(starts.map(|(host, start)| (host, decompressed_start(&start, bytes_max))).collect())
}

/// How many hosts of a site have rows, and their latest Retry-After.
pub(super) async fn hosts_count(connection: &mut Connection, site: &str) -> Outcome<(i64, Option<i64>)> {
    let query = sqlx::query_as("SELECT COUNT(*), MAX(not_before_ms) FROM host WHERE site = $1");
    Ok(query.bind(site).fetch_one(&mut *connection).await?)
}

/// Removes hosts whose names a visit did not find, that only others name and that were never requested, if their site has more than
/// [`HOSTS_WITH_DEAD_MAX`] hosts. A later link may name them again.
pub(super) async fn dead_hosts_remove(connection: &mut Connection, visit: &VisitRecord) -> Outcome<()> {
    let dead = visit.fetches.iter().filter(|fetch| fetch.outcome == FetchOutcome::DnsFailed);
    let dead: BTreeSet<String> = dead.map(|fetch| fetch.url.host().to_string()).collect();
    if dead.is_empty() {
        return Ok(());
    }
    sqlx::query(concat!(
        "DELETE FROM host WHERE seeded = 1 AND next_ok_at_ms IS NULL AND not_before_ms IS NULL
           AND host NOT IN (site, 'www.' || site)
           AND (SELECT COUNT(*) FROM host AS other WHERE other.site = host.site) > $2
           AND host IN ",
        list!()
    ))
    .bind(names(dead.iter().map(String::as_str))?)
    .bind(HOSTS_WITH_DEAD_MAX)
    .execute(&mut *connection)
    .await?;
    Ok(())
}

/// Writes hosts, sorted by name so that concurrent transactions lock them in one order. A stored clock is kept, because clocks are written
/// before each request, even while the site is compacted.
pub(super) async fn hosts_save(connection: &mut Connection, hosts: &[HostRow]) -> Outcome<()> {
    for hosts in batches(hosts) {
        let mut query = QueryBuilder::<Database>::new(
            "INSERT INTO host (host, site, seeded, next_ok_at_ms, not_before_ms, requests_today, requests_day) ",
        );
        query.push_values(hosts, |mut row, host| {
            row.push_bind(host.host.as_str())
                .push_bind(host.site.as_str())
                .push_bind(host.seeded)
                .push_bind(host.clock.next_ok_at_ms)
                .push_bind(host.clock.not_before_ms)
                .push_bind(host.clock.requests_today)
                .push_bind(host.clock.requests_day);
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

/// The hosts of the listed sites that are not compacted: site, host and the code of its origin.
pub(super) async fn host_origins(
    connection: &mut Connection,
    sites: &str,
) -> Outcome<Vec<(String, String, i32)>> {
    let rows = sqlx::query(concat!("SELECT site, host, seeded FROM host WHERE site IN ", list!()))
        .bind(sites)
        .fetch_all(&mut *connection)
        .await?;
    Ok(intact(decode(&["host"], &rows), Ok))
}

/// Site and robots.txt verdict of each host.
pub(super) type RobotsByHost<'a> = BTreeMap<&'a str, (&'a str, &'a RobotsRow)>;

/// Replaces the stored robots.txt record of each host.
pub(super) async fn robots_save(connection: &mut Connection, rows: &RobotsByHost<'_>) -> Outcome<()> {
    let rows: Vec<_> = rows.iter().collect();
    for rows in batches(&rows) {
        let mut query = QueryBuilder::<Database>::new(
            "INSERT INTO robots (host, site, kind, cause, status, body, fetched_at_ms, expires_at_ms, failures_in_row,
                                 etag, last_modified) ",
        );
        query.push_values(rows, |mut row, (host, (site, robots))| {
            row.push_bind(**host)
                .push_bind(*site)
                .push_bind(robots.kind.as_deref())
                .push_bind(robots.cause.as_deref())
                .push_bind(robots.status)
                .push_bind(robots.body.as_deref())
                .push_bind(robots.fetched_at_ms)
                .push_bind(robots.expires_at_ms)
                .push_bind(robots.failures_in_row)
                .push_bind(robots.etag.as_deref())
                .push_bind(robots.last_modified.as_deref());
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

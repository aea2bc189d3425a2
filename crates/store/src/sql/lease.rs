//! Leases: short statements; the visit happens outside any transaction.

use std::collections::{HashMap, HashSet};

use chrono::{DateTime, Utc};
use manifest::SiteName;
use policy::claim::Claim;
use serde::Serialize;
use sqlx::QueryBuilder;

use super::block::blocked_among;
use super::claim::{claim_save, claims_of};
use super::compaction::{SiteRow, compacted_columns, sites_expand};
use super::rows::decode_by;
use super::site::{self, States};
use super::state::{OfSite, RobotsBodies};
use super::{Connection, Database, batch, skip_locked};
use crate::StoreError;
use crate::convert::{NEVER_MS, RowRef, json, millis, millis_of, names, text, until_ms};
use crate::fault::Outcome;
use crate::from_row::from_row;
use crate::model::seed::{PRIORITY_LINKED, PRIORITY_LISTED, PRIORITY_SUBMITTED};
use crate::model::{ClockWrite, LeaseRequest, LeaseToken, LeasedSite, ParkedVisit};

/// Values of `site.priority` of listed sites, in the order of leasing. [`PRIORITY_LINKED`] and [`PRIORITY_SUBMITTED`] get their share of a
/// batch before them, and the rest of the batch after them.
const PRIORITIES_LISTED: [i32; 4] = [PRIORITY_LISTED, 3, 4, 5];
/// One in this many slots of a batch is reserved for sites that were not submitted, because anyone can submit sites, and many clients
/// together may submit more sites than can be visited.
const NOT_SUBMITTED_ONE_IN: i64 = 2;
/// Linked sites get one in this many slots of a batch, so that neither they nor listed sites wait forever.
const LINKED_ONE_IN: i64 = 8;
/// A lease that ends later than this is damaged and counts as expired. Longer than [`LEASE_DURATION_MAX`], because the clock of its worker
/// may be ahead.
///
/// [`LEASE_DURATION_MAX`]: crate::model::LEASE_DURATION_MAX
pub(super) const LEASE_MAX_MS: i64 = 2 * 24 * 60 * 60 * 1_000;
/// How long a site with a damaged row is skipped.
const SET_ASIDE_MS: i64 = 24 * 60 * 60 * 1_000;
/// Maximum number of batches with only damaged sites that one call skips.
const DAMAGED_BATCHES_MAX: usize = 16;

struct LeasedRow {
    priority: i32,
    address_group: Option<i16>,
    site: SiteRow,
}

from_row!(LeasedRow { priority, address_group; site });

/// A lease in a batch.
#[derive(Serialize, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct LeaseRow<'a> {
    name: &'a str,
    worker: &'a str,
    fence: i64,
    lease_until_ms: i64,
    next_visit_at_ms: Option<i64>,
    address_group: Option<u16>,
    due_at_ms: i64,
}

impl<'a> LeaseRow<'a> {
    pub(super) fn new(token: &'a LeaseToken, next_visit_at: Option<DateTime<Utc>>) -> Self {
        Self {
            name: token.site.as_str(),
            worker: token.worker.as_str(),
            fence: token.fence,
            lease_until_ms: millis(token.expires_at),
            next_visit_at_ms: millis_of(next_visit_at),
            address_group: token.address_group,
            due_at_ms: millis(token.due_at),
        }
    }

    /// Sorted by site, the order in which every transaction locks rows.
    pub(super) fn batch(mut rows: Vec<Self>) -> Result<String, StoreError> {
        rows.sort_unstable();
        json(&rows, "batch of leases")
    }
}

/// The byte of a group that is not requested. The statement compares with `<>`, so the planner expects most rows to match and walks the
/// index in order.
const NOT_WANTED: &[u8] = &[0];

/// Leases due sites by priority and planned time. One statement for each priority scans the index in order and stops when the batch is
/// full. Sites with a damaged row are skipped for a day, and others are leased in their place.
pub(crate) async fn sites_lease(
    connection: &mut Connection,
    request: &LeaseRequest,
    now: DateTime<Utc>,
) -> Outcome<Vec<LeasedSite>> {
    for _ in 0..DAMAGED_BATCHES_MAX {
        let rows = match &request.only {
            Some(sites) => lease_named(connection, request, sites, now).await?,
            None => lease_due(connection, request, now).await?,
        };
        let is_last = rows.is_empty() || request.only.is_some();
        let leased = states_add(connection, request, rows, now).await?;
        if is_last || !leased.is_empty() {
            return Ok(leased);
        }
    }
    Ok(Vec::new())
}

/// Adds the states of leased sites. Sites with a damaged row are skipped for a day.
async fn states_add(
    connection: &mut Connection,
    request: &LeaseRequest,
    rows: Vec<OfSite<LeasedRow>>,
    now: DateTime<Utc>,
) -> Outcome<Vec<LeasedSite>> {
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    let (mut leased, mut damaged) = (Vec::with_capacity(rows.len()), Vec::new());
    let mut set_aside = |name: String, error: StoreError| {
        tracing::error!(site.name = name, %error, "a site with a damaged row is skipped for a day");
        damaged.push(name);
    };
    let mut intact: Vec<LeasedRow> = Vec::with_capacity(rows.len());
    for (name, row) in rows {
        match row {
            Ok(row) => intact.push(row),
            Err(error) => set_aside(name, error),
        }
    }
    let mut rows = intact;
    rows.sort_by_key(|row| (row.priority == PRIORITY_LINKED, row.priority, row.site.next_visit_at_ms));
    // A compacted site needs no other rows, and stays compacted until it is visited.
    let expanded = rows.iter().filter(|row| row.site.compacted.packed.is_none());
    let expanded = names(expanded.map(|row| row.site.name.as_str()))?;
    let mut states = site::states_load(connection, &expanded, RobotsBodies::OfMainHosts, None).await?;
    let compacted = rows.iter().filter(|row| row.site.compacted.packed.is_some());
    let compacted = names(compacted.map(|row| row.site.name.as_str()))?;
    let mut claims: HashMap<String, Claim> = claims_of(connection, &compacted).await?.into_iter().collect();
    for row in rows {
        let name = row.site.name.clone();
        match leased_site(row, &mut states, request, now) {
            Ok(mut lease) => {
                lease.site.claim = lease.site.claim.or_else(|| claims.remove(&name));
                leased.push(lease);
            }
            Err(error) => set_aside(name, error),
        }
    }
    if !damaged.is_empty() {
        let damaged = names(damaged.iter().map(String::as_str))?;
        sites_set_aside(connection, &damaged, millis(now) + SET_ASIDE_MS).await?;
    }
    Ok(leased)
}

fn leased_site(
    LeasedRow { priority, address_group, site }: LeasedRow,
    states: &mut States,
    request: &LeaseRequest,
    now: DateTime<Utc>,
) -> Result<LeasedSite, StoreError> {
    let name = site.name.clone();
    let at = RowRef::new("site", &name);
    let (fence, due_at) = (site.fence, at.time("next_visit_at_ms", site.next_visit_at_ms)?);
    let mut site = match site.decode()? {
        Some(compacted) => compacted.into_site_state()?,
        None => states.take(&name)?,
    };
    site.is_submitted = priority == PRIORITY_SUBMITTED;
    let token = LeaseToken {
        site: site.name.clone(),
        worker: request.worker.clone(),
        fence,
        expires_at: at.time("lease_until_ms", until_ms(now, request.duration))?,
        address_group: address_group.and_then(|group| u16::try_from(group).ok()),
        due_at,
    };
    Ok(LeasedSite { token, site })
}

async fn sites_set_aside(connection: &mut Connection, sites: &str, until_ms: i64) -> Outcome<()> {
    sqlx::query(concat!(
        "UPDATE site SET lease_owner = NULL, lease_until_ms = 0, next_visit_at_ms = $2 WHERE name IN ",
        list!()
    ))
    .bind(sites)
    .bind(until_ms)
    .execute(&mut *connection)
    .await?;
    Ok(())
}

/// Leases the sites that the sub-query `due` selects. A damaged fence, to which 1 cannot be added, is reset to 1.
macro_rules! lease_rows {
    ($condition:expr, $order:literal) => {
        concat!(
            "WITH due AS MATERIALIZED (
                 SELECT name FROM site
                 WHERE ",
            $condition,
            " AND next_visit_at_ms <= $2 AND (lease_until_ms <= $3 OR lease_until_ms > $9)
               AND (address_group IS NULL OR substr($7, address_group + 1, 1) <> $8)
             ORDER BY ",
            $order,
            " LIMIT $4",
            skip_locked!(),
            ")
             UPDATE site SET lease_owner = $5, lease_until_ms = $6,
                    fence = CASE WHEN fence BETWEEN 0 AND 4000000000000000000 THEN fence + 1 ELSE 1 END
             FROM due WHERE site.name = due.name
             RETURNING site.name AS name, fence, priority, next_visit_at_ms, address_group, ",
            compacted_columns!()
        )
    };
}

/// Binds the other parameters of [`lease_rows`].
macro_rules! bind_lease {
    ($query:expr, $request:expr, $max:expr, $now:expr) => {
        $query
            .bind(millis($request.due_before).min(NEVER_MS - 1))
            .bind(millis($now))
            .bind($max)
            .bind($request.worker.as_str())
            .bind(until_ms($now, $request.duration))
            .bind($request.groups.as_bytes())
            .bind(NOT_WANTED)
            .bind(millis($now) + LEASE_MAX_MS)
    };
}

async fn lease_due(
    connection: &mut Connection,
    request: &LeaseRequest,
    now: DateTime<Utc>,
) -> Outcome<Vec<OfSite<LeasedRow>>> {
    // Batches often have a single site; then the current time decides which kind of site gets it.
    let max = i64::from(request.sites_max);
    let linked_max = (max + millis(now).rem_euclid(LINKED_ONE_IN)) / LINKED_ONE_IN;
    let submitted_max = max - (max + millis(now).rem_euclid(NOT_SUBMITTED_ONE_IN)) / NOT_SUBMITTED_ONE_IN;
    let shares = [(PRIORITY_LINKED, linked_max), (PRIORITY_SUBMITTED, submitted_max)];
    let by_priority = PRIORITIES_LISTED.into_iter().chain([PRIORITY_SUBMITTED, PRIORITY_LINKED]);
    let mut leased = Vec::new();
    for (priority, max) in shares.into_iter().chain(by_priority.map(|priority| (priority, max))) {
        let max = max - i64::try_from(leased.len()).unwrap_or(i64::MAX);
        if max <= 0 {
            continue;
        }
        let query = sqlx::query(lease_rows!("priority = $1", "next_visit_at_ms")).bind(priority);
        let rows = bind_lease!(query, request, max, now).fetch_all(&mut *connection).await?;
        leased.extend(decode_by(&["site"], "name", &rows));
    }
    Ok(leased)
}

/// Sorts by an expression without an index; otherwise the planner would scan the whole queue for a few sites.
async fn lease_named(
    connection: &mut Connection,
    request: &LeaseRequest,
    sites: &[SiteName],
    now: DateTime<Utc>,
) -> Outcome<Vec<OfSite<LeasedRow>>> {
    let query = sqlx::query(lease_rows!(
        concat!("name IN ", list!()),
        "CASE priority WHEN 1 THEN 9 ELSE priority END, next_visit_at_ms"
    ))
    .bind(names(sites.iter().map(SiteName::as_str))?);
    let max = i64::from(request.sites_max);
    let rows = bind_lease!(query, request, max, now).fetch_all(&mut *connection).await?;
    Ok(decode_by(&["site"], "name", &rows))
}

/// Renews leases until their `expires_at`, including expired ones that no other worker has taken, and returns those that are held. A
/// renewal that arrives late does not shorten a lease. The worker is compared as an expression, so that the planner does not use the index
/// of workers, with which it would read every lease of the worker for each row.
pub(crate) async fn leases_renew(
    connection: &mut Connection,
    tokens: &[LeaseToken],
) -> Outcome<Vec<LeaseToken>> {
    let held: Vec<(String, i64)> = sqlx::query_as(concat!(
        "UPDATE site SET lease_until_ms = CASE
             WHEN site.lease_until_ms BETWEEN batch.lease_until_ms AND batch.lease_until_ms + $2
             THEN site.lease_until_ms ELSE batch.lease_until_ms END
         FROM ",
        batch!(name TEXT, worker TEXT, fence BIGINT, lease_until_ms BIGINT),
        " WHERE site.name = batch.name AND COALESCE(lease_owner, '') = worker AND site.fence = batch.fence
         RETURNING site.name, site.fence"
    ))
    .bind(LeaseRow::batch(tokens.iter().map(|token| LeaseRow::new(token, None)).collect())?)
    .bind(LEASE_MAX_MS)
    .fetch_all(&mut *connection)
    .await?;
    let held: HashSet<(&str, i64)> = held.iter().map(|(name, fence)| (name.as_str(), *fence)).collect();
    let is_held = |token: &&LeaseToken| held.contains(&(token.site.as_str(), token.fence));
    Ok(tokens.iter().filter(is_held).cloned().collect())
}

/// Renews the leases of clock writes in the same transaction, so that no clock is written after another worker has taken the lease. Returns
/// the leases that are no longer held.
pub(super) async fn leases_renew_with_clocks(
    connection: &mut Connection,
    writes: &[ClockWrite],
) -> Outcome<HashSet<LeaseToken>> {
    let mut leases: HashSet<LeaseToken> = writes.iter().filter_map(|write| write.lease.clone()).collect();
    if leases.is_empty() {
        return Ok(leases);
    }
    let tokens: Vec<LeaseToken> = leases.iter().cloned().collect();
    for renewed in leases_renew(connection, &tokens).await? {
        leases.remove(&renewed);
    }
    Ok(leases)
}

/// The end of the lease of a saved visit.
pub(super) struct LeaseEnd<'a> {
    pub(super) token: &'a LeaseToken,
    pub(super) next_visit_at_ms: i64,
    /// When the visit read the claim of the site. It is unaware of checks that were requested later.
    pub(super) claim_known_at_ms: i64,
}

/// Ends the leases of visits that are saved, each with the time of the next visit; returns the rows of the leases that were held, by site.
/// A site is due immediately if a visit was requested in the meantime, or if a check of its claim was requested after the visit had read
/// the claim.
pub(super) async fn leases_close(
    connection: &mut Connection,
    ends: &[LeaseEnd<'_>],
) -> Outcome<HashMap<String, SiteRow>> {
    let mut query = QueryBuilder::<Database>::new(
        "UPDATE site SET lease_owner = NULL, lease_until_ms = 0,
                next_visit_at_ms = COALESCE(
                    (SELECT asked_at_ms FROM site_claim
                     WHERE site_claim.site = column1 AND asked_at_ms > column6 AND asked_at_ms < column4
                       AND asked_at_ms > COALESCE(checked_at_ms, 0)),
                    CASE WHEN next_visit_at_ms <> column7 AND next_visit_at_ms < column4 THEN next_visit_at_ms END,
                    column4),
                address_group = COALESCE(column5, address_group)
         FROM (",
    );
    query.push_values(ends, |mut row, LeaseEnd { token, next_visit_at_ms, claim_known_at_ms }| {
        row.push_bind(token.site.as_str())
            .push_bind(token.worker.as_str())
            .push_bind(token.fence)
            .push_bind(*next_visit_at_ms)
            .push_bind(token.address_group.and_then(|group| i16::try_from(group).ok()))
            .push_bind(*claim_known_at_ms)
            .push_bind(millis(token.due_at));
    });
    query.push(concat!(
        ") AS held WHERE name = column1 AND COALESCE(lease_owner, '') = column2 AND fence = column3
         RETURNING name, fence, next_visit_at_ms, ",
        compacted_columns!()
    ));
    let rows: Vec<SiteRow> = query.build_query_as().fetch_all(&mut *connection).await?;
    Ok(rows.into_iter().map(|row| (row.name.clone(), row)).collect())
}

/// Ends a lease; `next_visit_at_ms` replaces the planned time, unless a visit was requested in the meantime.
pub(crate) async fn lease_end(
    connection: &mut Connection,
    token: &LeaseToken,
    next_visit_at_ms: Option<i64>,
) -> Outcome<()> {
    let ended = sqlx::query(
        "UPDATE site SET lease_owner = NULL, lease_until_ms = 0,
                next_visit_at_ms = CASE WHEN next_visit_at_ms <> $6 AND next_visit_at_ms < CAST($4 AS BIGINT)
                                        THEN next_visit_at_ms
                                        ELSE COALESCE(CAST($4 AS BIGINT), next_visit_at_ms) END,
                address_group = COALESCE(CAST($5 AS SMALLINT), address_group)
         WHERE name = $1 AND lease_owner = $2 AND fence = $3",
    )
    .bind(token.site.as_str())
    .bind(token.worker.as_str())
    .bind(token.fence)
    .bind(next_visit_at_ms)
    .bind(token.address_group.and_then(|group| i16::try_from(group).ok()))
    .bind(millis(token.due_at))
    .execute(&mut *connection)
    .await?;
    if ended.rows_affected() == 1 { Ok(()) } else { Err(lease_lost(connection, token).await?.into()) }
}

/// Why a lease is no longer held.
pub(super) async fn lease_lost(connection: &mut Connection, token: &LeaseToken) -> Outcome<StoreError> {
    let blocked = !blocked_among(connection, &names([token.site.as_str()])?).await?.is_empty();
    let site = token.site.clone();
    Ok(if blocked { StoreError::Blocked { site } } else { StoreError::LeaseLost { site } })
}

/// Saves a visit's progress, with the claim that it checked, and ends the lease until the visit may resume.
pub(crate) async fn visit_park(
    connection: &mut Connection,
    token: &LeaseToken,
    parked: &ParkedVisit,
) -> Outcome<()> {
    let resume_at_ms = millis(parked.resume_at);
    lease_end(connection, token, Some(resume_at_ms)).await?;
    if let Some(claim) = &parked.claim {
        claim_save(connection, token.site.as_str(), claim).await?;
    }
    sites_expand(connection, &names([token.site.as_str()])?).await?;
    sqlx::query(
        "UPDATE site_state SET parked_until_ms = $2, parked_reason = $3, parked_progress = $4,
             next_visit_reason = CASE WHEN next_visit_reason = $5 THEN next_visit_reason ELSE $3 END
         WHERE name = $1",
    )
    .bind(token.site.as_str())
    .bind(resume_at_ms)
    .bind(text(&parked.reason))
    .bind(json(&parked.progress, "progress of a visit")?)
    .bind(crate::rows::OWNER_REQUESTED_NEXT)
    .execute(&mut *connection)
    .await?;
    Ok(())
}

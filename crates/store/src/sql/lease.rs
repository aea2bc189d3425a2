//! Leases: short statements; the work happens outside any transaction.

use std::collections::{HashMap, HashSet};

use chrono::{DateTime, Utc};
use manifest::SiteName;
use sqlx::QueryBuilder;

use super::{Connection, Database, group, rest, site, skip_locked};
use crate::StoreError;
use crate::fault::Outcome;
use crate::model::seed::PRIORITY_LINKED;
use crate::model::{LeaseRequest, LeaseToken, LeasedSite, SiteState, WorkerId};
use crate::pack::{NEVER_MS, Place, json, millis, millis_of, names};

/// Classes in the order of leasing: asked for, then listed by rank. Sites that others link to come last, and have a share.
const CLASSES: [i32; 5] = [0, 2, 3, 4, 5];
/// Of so many places linked sites get one, so that neither they nor the listed sites wait for ever.
const LINKED_ONE_IN: i64 = 8;
/// A site with a damaged row is set aside for this long.
const SET_ASIDE_MS: i64 = 24 * 60 * 60 * 1_000;
/// Batches of damaged sites that one call passes over.
const DAMAGED_BATCHES_MAX: usize = 16;

#[derive(sqlx::FromRow)]
struct TakenRow {
    name: String,
    fence: i64,
    priority: i32,
    next_visit_at_ms: i64,
    packed: Option<Vec<u8>>,
    address_group: Option<i16>,
}

/// What the octet of a group is that is not asked for. Compared by "is not", so that the planner expects to find most rows
/// wanted and goes on walking the index in its order.
const NOT_WANTED: &[u8] = &[0];

/// Takes due sites by class and planned time. One statement a class walks the index in its order and stops as soon as
/// the batch is full. Sites with a damaged row are set aside, and others taken in their place.
pub(crate) async fn sites_lease(
    connection: &mut Connection,
    request: &LeaseRequest,
    now_ms: i64,
) -> Outcome<Vec<LeasedSite>> {
    for _ in 0..DAMAGED_BATCHES_MAX {
        let rows = match &request.only {
            Some(sites) => take_among(connection, request, sites, now_ms).await?,
            None => take_by_class(connection, request, now_ms).await?,
        };
        let is_end = rows.is_empty() || request.only.is_some();
        let leased = leased_of(connection, request, rows, now_ms).await?;
        if is_end || !leased.is_empty() {
            return Ok(leased);
        }
    }
    Ok(Vec::new())
}

/// The sites of the rows with what is known of them, those apart that are damaged.
async fn leased_of(
    connection: &mut Connection,
    request: &LeaseRequest,
    mut rows: Vec<TakenRow>,
    now_ms: i64,
) -> Outcome<Vec<LeasedSite>> {
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    rows.sort_by_key(|row| (order(row.priority), row.next_visit_at_ms));
    // Nothing is read of a site at rest but its row, and nothing is written before it is visited.
    let awake = rows.iter().filter(|row| row.packed.is_none());
    let listed = names(awake.map(|row| row.name.as_str()))?;
    let mut states = site::states_load(connection, &listed, None).await?;
    let until_ms = lease_until_ms(request, now_ms);
    let mut leased = Vec::with_capacity(rows.len());
    let mut damaged = Vec::new();
    for row in rows {
        let site = match &row.packed {
            Some(packed) => rest::state_at_rest(&row.name, packed),
            None => states.take(&row.name),
        };
        match site.and_then(|site| leased_site(request, &row, site, until_ms)) {
            Ok(site) => leased.push(site),
            Err(error) => {
                tracing::error!(site.name = row.name, %error, "a site with a damaged row is set aside for a day");
                damaged.push(row.name);
            }
        }
    }
    if !damaged.is_empty() {
        sites_set_aside(connection, &names(damaged.iter().map(String::as_str))?, now_ms + SET_ASIDE_MS)
            .await?;
    }
    Ok(leased)
}

fn leased_site(
    request: &LeaseRequest,
    row: &TakenRow,
    site: SiteState,
    until_ms: i64,
) -> Result<LeasedSite, StoreError> {
    let place = Place::new("site", &row.name);
    let token = LeaseToken {
        site: site.name.clone(),
        worker: request.worker.clone(),
        fence: row.fence,
        expires_at: place.time("lease_until_ms", until_ms)?,
        address_group: row.address_group.and_then(|group| u16::try_from(group).ok()),
    };
    Ok(LeasedSite { token, site, due_at: place.time("next_visit_at_ms", row.next_visit_at_ms)? })
}

async fn sites_set_aside(connection: &mut Connection, sites: &str, until_ms: i64) -> Outcome<()> {
    sqlx::query(
        "UPDATE site SET lease_owner = NULL, lease_until_ms = 0, next_visit_at_ms = $2
         WHERE name IN (SELECT value ->> 0 FROM json_each($1))",
    )
    .bind(sites)
    .bind(until_ms)
    .execute(&mut *connection)
    .await?;
    Ok(())
}

/// The place of a class in the order.
const fn order(priority: i32) -> i32 {
    if priority == PRIORITY_LINKED { i32::MAX } else { priority }
}

fn lease_until_ms(request: &LeaseRequest, now_ms: i64) -> i64 {
    now_ms.saturating_add(i64::try_from(request.duration.as_millis()).unwrap_or(i64::MAX))
}

fn due_before_ms(request: &LeaseRequest) -> i64 {
    millis(request.due_before).min(NEVER_MS - 1)
}

async fn take_by_class(
    connection: &mut Connection,
    request: &LeaseRequest,
    now_ms: i64,
) -> Outcome<Vec<TakenRow>> {
    // batches are often of one site: the time decides then whose turn it is
    let places = i64::from(request.sites_max);
    let share = (places + now_ms.rem_euclid(LINKED_ONE_IN)) / LINKED_ONE_IN;
    let steps = CLASSES.iter().map(|class| (*class, places)).chain([(PRIORITY_LINKED, places)]);
    let mut taken: Vec<TakenRow> = Vec::new();
    for (class, most) in std::iter::once((PRIORITY_LINKED, share)).chain(steps) {
        let wanted = most - i64::try_from(taken.len()).unwrap_or(i64::MAX);
        if wanted <= 0 {
            continue;
        }
        let rows = sqlx::query_as(concat!(
            "WITH due AS MATERIALIZED (
                 SELECT name FROM site
                 WHERE priority = $1 AND next_visit_at_ms <= $2 AND lease_until_ms <= $3
                   AND (address_group IS NULL OR substr($7, address_group + 1, 1) <> $8)
                 ORDER BY next_visit_at_ms LIMIT $4",
            skip_locked!(),
            ")
             UPDATE site SET lease_owner = $5, lease_until_ms = $6, fence = fence + 1
             FROM due WHERE site.name = due.name
             RETURNING site.name AS name, fence, priority, next_visit_at_ms, site.packed AS packed, address_group"
        ))
        .bind(class)
        .bind(due_before_ms(request))
        .bind(now_ms)
        .bind(wanted)
        .bind(request.worker.as_str())
        .bind(lease_until_ms(request, now_ms))
        .bind(request.groups.as_bytes())
        .bind(NOT_WANTED)
        .fetch_all(&mut *connection)
        .await?;
        taken.extend(rows);
    }
    Ok(taken)
}

/// By name: the order is written so that no index has it, else the whole queue would be walked for a few sites.
async fn take_among(
    connection: &mut Connection,
    request: &LeaseRequest,
    sites: &[SiteName],
    now_ms: i64,
) -> Outcome<Vec<TakenRow>> {
    let rows = sqlx::query_as(concat!(
        "WITH due AS MATERIALIZED (
             SELECT name FROM site
             WHERE name IN (SELECT value ->> 0 FROM json_each($1)) AND next_visit_at_ms <= $2 AND lease_until_ms <= $3
               AND (address_group IS NULL OR substr($7, address_group + 1, 1) <> $8)
             ORDER BY CASE priority WHEN 1 THEN 9 ELSE priority END, next_visit_at_ms LIMIT $4",
        skip_locked!(),
        ")
         UPDATE site SET lease_owner = $5, lease_until_ms = $6, fence = fence + 1
         FROM due WHERE site.name = due.name
         RETURNING site.name AS name, fence, priority, next_visit_at_ms, site.packed AS packed, address_group"
    ))
    .bind(names(sites.iter().map(SiteName::as_str))?)
    .bind(due_before_ms(request))
    .bind(now_ms)
    .bind(i64::from(request.sites_max))
    .bind(request.worker.as_str())
    .bind(lease_until_ms(request, now_ms))
    .bind(request.groups.as_bytes())
    .bind(NOT_WANTED)
    .fetch_all(&mut *connection)
    .await?;
    Ok(rows)
}

/// Renews what is still held, also where the lease ran out and nobody else came. By name: the owner is written so that its
/// index is not used, in which all leases of the worker would be looked at for each.
pub(crate) async fn leases_renew(
    connection: &mut Connection,
    tokens: &[LeaseToken],
    until_ms: i64,
) -> Outcome<Vec<LeaseToken>> {
    let mut rows: Vec<(&str, &str, i64)> =
        tokens.iter().map(|token| (token.site.as_str(), token.worker.as_str(), token.fence)).collect();
    rows.sort_unstable();
    let held: HashSet<String> = sqlx::query_scalar(
        "UPDATE site SET lease_until_ms = $2
         FROM (SELECT value ->> 0 AS held_name, value ->> 1 AS held_by, CAST(value ->> 2 AS BIGINT) AS held_fence
               FROM json_each($1)) AS held
         WHERE name = held_name AND COALESCE(lease_owner, '') = held_by AND fence = held_fence
         RETURNING name",
    )
    .bind(json(&rows, "batch of leases")?)
    .bind(until_ms)
    .fetch_all(&mut *connection)
    .await?
    .into_iter()
    .collect();
    let mut renewed = Vec::with_capacity(held.len());
    for token in tokens.iter().filter(|token| held.contains(token.site.as_str())) {
        let expires_at = Place::new("site", token.site.as_str()).time("lease_until_ms", until_ms)?;
        renewed.push(LeaseToken { expires_at, ..token.clone() });
    }
    Ok(renewed)
}

/// Gives leases back in one statement; returns the sites that were still held.
pub(crate) async fn leases_end(
    connection: &mut Connection,
    ends: &[(LeaseToken, Option<DateTime<Utc>>)],
) -> Outcome<Vec<SiteName>> {
    let mut rows: Vec<_> = ends
        .iter()
        .map(|(token, next)| (token.site.as_str(), token.worker.as_str(), token.fence, millis_of(*next)))
        .collect();
    rows.sort_unstable();
    let ended: Vec<String> = sqlx::query_scalar(
        "UPDATE site SET lease_owner = NULL, lease_until_ms = 0,
                next_visit_at_ms = COALESCE(planned_at_ms, next_visit_at_ms)
         FROM (SELECT value ->> 0 AS held_name, value ->> 1 AS held_by, CAST(value ->> 2 AS BIGINT) AS held_fence,
                      CAST(value ->> 3 AS BIGINT) AS planned_at_ms FROM json_each($1)) AS held
         WHERE name = held_name AND COALESCE(lease_owner, '') = held_by AND fence = held_fence
         RETURNING name",
    )
    .bind(json(&rows, "batch of leases")?)
    .fetch_all(&mut *connection)
    .await?;
    let parsed = ended.iter().map(|name| Place::new("site", name).parse("name", name));
    Ok(parsed.collect::<Result<_, _>>()?)
}

/// Ends the leases of visits that are saved, each with the time of the next one; of those that were still held, by site: the
/// fence, and what the site had packed.
pub(crate) async fn leases_close(
    connection: &mut Connection,
    ends: &[(&LeaseToken, i64)],
) -> Outcome<HashMap<String, (i64, Option<Vec<u8>>)>> {
    let mut query = QueryBuilder::<Database>::new(
        "UPDATE site SET lease_owner = NULL, lease_until_ms = 0, next_visit_at_ms = column4,
                address_group = COALESCE(column5, address_group)
         FROM (",
    );
    query.push_values(ends, |mut row, (token, next_visit_at_ms)| {
        row.push_bind(token.site.as_str())
            .push_bind(token.worker.as_str())
            .push_bind(token.fence)
            .push_bind(*next_visit_at_ms)
            .push_bind(token.address_group.and_then(|group| i16::try_from(group).ok()));
    });
    query.push(
        ") AS held WHERE name = column1 AND COALESCE(lease_owner, '') = column2 AND fence = column3
         RETURNING name, fence, packed",
    );
    let rows: Vec<(String, i64, Option<Vec<u8>>)> =
        query.build_query_as().fetch_all(&mut *connection).await?;
    Ok(rows.into_iter().map(|(name, fence, packed)| (name, (fence, packed))).collect())
}

/// Gives a lease back; `next_visit_at_ms` replaces the planned time when it is given. Fenced: an older holder is told so.
pub(crate) async fn lease_end(
    connection: &mut Connection,
    token: &LeaseToken,
    next_visit_at_ms: Option<i64>,
) -> Outcome<()> {
    let ended = sqlx::query(
        "UPDATE site SET lease_owner = NULL, lease_until_ms = 0,
                next_visit_at_ms = COALESCE(CAST($4 AS BIGINT), next_visit_at_ms),
                address_group = COALESCE(CAST($5 AS SMALLINT), address_group)
         WHERE name = $1 AND lease_owner = $2 AND fence = $3",
    )
    .bind(token.site.as_str())
    .bind(token.worker.as_str())
    .bind(token.fence)
    .bind(next_visit_at_ms)
    .bind(token.address_group.and_then(|group| i16::try_from(group).ok()))
    .execute(&mut *connection)
    .await?;
    if ended.rows_affected() == 1 {
        return Ok(());
    }
    let blocked = super::block::block_find(connection, token.site.as_str()).await?.is_some();
    let site = token.site.clone();
    Err(if blocked { StoreError::Blocked { site } } else { StoreError::LeaseLost { site } }.into())
}

/// Gives back whatever a worker holds: it has stopped, or was killed and starts again under the same name.
pub(crate) async fn worker_forget(connection: &mut Connection, worker: &WorkerId) -> Outcome<u64> {
    let ended = sqlx::query("UPDATE site SET lease_owner = NULL, lease_until_ms = 0 WHERE lease_owner = $1")
        .bind(worker.as_str())
        .execute(&mut *connection)
        .await?;
    group::worker_remove(connection, worker).await?;
    Ok(ended.rows_affected())
}

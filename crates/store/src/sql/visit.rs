//! A visit is saved in one transaction that begins by giving the lease back: whoever lost it writes nothing.

use manifest::ManifestId;

use super::resource::{Known as KnownResource, part_keep, resources_of, resources_save};
use super::version::{InIndex, index_count, manifest_remove, manifests_known, version_add, version_touch};
use super::{Connection, feed, lease, rest, robots, seed};
use crate::StoreError;
use crate::fault::Outcome;
use crate::model::seed::Ranking;
use crate::model::{FeedChange, LeaseToken, NextVisit, Phases, VisitRecord, VisitSaved, VisitStory};
use crate::pack::{Place, count, counted, millis, names, size, sized, text};
use crate::packed::PackedVisit;
use crate::plan::{self, Known, Plan};

/// Visits of a site that are kept; older ones are dropped when a new one is saved.
pub(crate) const VISITS_KEPT: i64 = 50;

/// Saves a visit whole.
pub(crate) async fn visit_save(
    connection: &mut Connection,
    token: &LeaseToken,
    visit: &VisitRecord,
    packed: &PackedVisit,
) -> Outcome<VisitSaved> {
    lease::lease_end(connection, token, Some(millis(visit.next_visit.at))).await?;
    rest::sites_wake(connection, &names([visit.site.as_str()])?).await?;
    for (record, body) in visit.robots.iter().zip(&packed.robots) {
        robots::robots_save(connection, &visit.site, record, body.as_deref()).await?;
    }
    let known = known_load(connection, visit).await?;
    let plan = plan::plan(visit, &known)?;
    plan_apply(connection, visit, &plan, packed).await?;
    let in_index =
        if plan.changes.is_empty() { None } else { Some(index_count(connection, &visit.site).await?) };
    let (visits, capabilities) = state_save(connection, visit, in_index.as_ref()).await?;
    visit_insert(connection, visit, packed).await?;
    if i64::from(visits) > VISITS_KEPT {
        visits_trim(connection, visit).await?;
    }
    if !visit.new_seeds.is_empty() {
        seed::seeds_add(connection, &visit.new_seeds, Ranking::Raise, millis(visit.ended_at)).await?;
    }
    Ok(VisitSaved {
        manifests_added: plan.count(FeedChange::Added),
        manifests_changed: plan.count(FeedChange::Changed),
        manifests_removed: plan.count(FeedChange::Removed),
        capabilities: counted(capabilities),
    })
}

async fn known_load(connection: &mut Connection, visit: &VisitRecord) -> Outcome<Known> {
    let mut known = Known { manifests: manifests_known(connection, &visit.site).await?, ..Known::default() };
    for row in resources_of(connection, &names([visit.site.as_str()])?).await? {
        match KnownResource::try_from(row)? {
            KnownResource::Fetched(resource) => {
                known.resources.insert(ManifestId::of(&resource.url), *resource);
            }
            KnownResource::Hint(url) => known.hints.push(ManifestId::of(&url)),
        }
    }
    Ok(known)
}

async fn plan_apply(
    connection: &mut Connection,
    visit: &VisitRecord,
    plan: &Plan<'_>,
    packed: &PackedVisit,
) -> Outcome<()> {
    resources_save(connection, visit.site.as_str(), &plan.resources).await?;
    for part in &plan.parts {
        part_keep(connection, part, packed.body(&part.id)).await?;
    }
    for new in &plan.versions {
        version_add(connection, &visit.site, new, packed).await?;
    }
    for touch in &plan.touches {
        version_touch(connection, &visit.site, touch, packed).await?;
    }
    for (id, status) in &plan.removals {
        manifest_remove(connection, id, *status, millis(visit.ended_at)).await?;
    }
    feed::feed_append(connection, &visit.site, &plan.changes).await
}

/// Returns how many visits the site has had, and its capabilities in the index.
async fn state_save(
    connection: &mut Connection,
    visit: &VisitRecord,
    in_index: Option<&InIndex>,
) -> Outcome<(i32, i32)> {
    let saved = sqlx::query_as(
        "UPDATE site_state SET
             status = $2, visits = visits + 1, changes = changes + $3,
             first_visit_at_ms = COALESCE(first_visit_at_ms, $4), last_visit_at_ms = $4, last_end = $5,
             next_visit_reason = $6, failures_in_row = $7, negatives_in_row = $8, paths_checked = $9,
             parked_until_ms = NULL, parked_reason = NULL, parked_progress = NULL,
             manifests = COALESCE($10, manifests), capabilities = COALESCE($11, capabilities),
             formats = COALESCE($12, formats)
         WHERE name = $1
         RETURNING visits, capabilities",
    )
    .bind(visit.site.as_str())
    .bind(visit.status.as_str())
    .bind(i32::from(visit.changed_any))
    .bind(millis(visit.ended_at))
    .bind(visit.end.as_str())
    .bind(text(&visit.next_visit.reason))
    .bind(count(visit.failures_in_row))
    .bind(count(visit.negatives_in_row))
    .bind(visit.paths_checked.as_bytes())
    .bind(in_index.map(|in_index| in_index.manifests))
    .bind(in_index.map(|in_index| in_index.capabilities))
    .bind(in_index.map(|in_index| in_index.formats.as_str()))
    .fetch_one(&mut *connection)
    .await?;
    Ok(saved)
}

async fn visit_insert(connection: &mut Connection, visit: &VisitRecord, packed: &PackedVisit) -> Outcome<()> {
    sqlx::query(
        "INSERT INTO visit (site, started_at_ms, ended_at_ms, visit_end, status, next_visit_at_ms, next_visit_reason,
                            requests, bytes_in, dns_ms, connect_ms, tls_ms, ttfb_ms, body_ms, outcomes,
                            crawler_version, fetches)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)",
    )
    .bind(visit.site.as_str())
    .bind(millis(visit.started_at))
    .bind(millis(visit.ended_at))
    .bind(visit.end.as_str())
    .bind(visit.status.as_str())
    .bind(millis(visit.next_visit.at))
    .bind(text(&visit.next_visit.reason))
    .bind(count(visit.requests))
    .bind(size(visit.bytes_in))
    .bind(count(visit.phases.dns_ms))
    .bind(count(visit.phases.connect_ms))
    .bind(count(visit.phases.tls_ms))
    .bind(count(visit.phases.ttfb_ms))
    .bind(count(visit.phases.body_ms))
    .bind(&packed.outcomes)
    .bind(text(&visit.crawler_version))
    .bind(packed.fetches.as_slice())
    .execute(&mut *connection)
    .await?;
    Ok(())
}

async fn visits_trim(connection: &mut Connection, visit: &VisitRecord) -> Outcome<()> {
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

#[derive(sqlx::FromRow)]
struct VisitRow {
    id: i64,
    started_at_ms: i64,
    ended_at_ms: i64,
    visit_end: String,
    next_visit_at_ms: i64,
    next_visit_reason: String,
    requests: i32,
    bytes_in: i64,
    dns_ms: i32,
    connect_ms: i32,
    tls_ms: i32,
    ttfb_ms: i32,
    body_ms: i32,
    fetches: Vec<u8>,
}

impl TryFrom<VisitRow> for VisitStory {
    type Error = StoreError;

    fn try_from(row: VisitRow) -> Result<Self, StoreError> {
        let id = row.id.to_string();
        let place = Place::new("visit", &id);
        Ok(Self {
            id: row.id,
            started_at: place.time("started_at_ms", row.started_at_ms)?,
            ended_at: place.time("ended_at_ms", row.ended_at_ms)?,
            end: place.parse("visit_end", &row.visit_end)?,
            next_visit: NextVisit {
                at: place.time("next_visit_at_ms", row.next_visit_at_ms)?,
                reason: row.next_visit_reason,
            },
            requests: counted(row.requests),
            bytes_in: sized(row.bytes_in),
            phases: Phases {
                dns_ms: counted(row.dns_ms),
                connect_ms: counted(row.connect_ms),
                tls_ms: counted(row.tls_ms),
                ttfb_ms: counted(row.ttfb_ms),
                body_ms: counted(row.body_ms),
            },
            fetches: place.json("fetches", &place.bytes("fetches", &row.fetches)?)?,
        })
    }
}

/// The last visits of a site, latest first.
pub(crate) async fn visits_of_site(
    connection: &mut Connection,
    site: &str,
    max: i64,
) -> Outcome<Vec<VisitStory>> {
    let rows: Vec<VisitRow> = sqlx::query_as(
        "SELECT id, started_at_ms, ended_at_ms, visit_end, next_visit_at_ms, next_visit_reason, requests, bytes_in,
                dns_ms, connect_ms, tls_ms, ttfb_ms, body_ms, fetches
         FROM visit WHERE site = $1 ORDER BY id DESC LIMIT $2",
    )
    .bind(site)
    .bind(max)
    .fetch_all(&mut *connection)
    .await?;
    Ok(rows.into_iter().map(VisitStory::try_from).collect::<Result<_, _>>()?)
}

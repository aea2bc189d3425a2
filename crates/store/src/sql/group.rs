//! Workers of a fleet and the address groups that they own.
//!
//! A worker inserts a row for each group that it takes and deletes the row when it releases the group; another worker deletes it when the
//! membership has expired. So a worker owns its groups as long as its membership row exists. Clock writes renew the membership row in the
//! same transaction, so a clock cannot be written after the membership has ended.

use std::collections::{BTreeMap, HashSet};

use manifest::SiteName;
use serde::Serialize;

use super::compaction::sites_expand;
use super::lease::LeaseRow;
use super::{Connection, batch, convert, for_update, numbers, skip_locked};
use crate::convert::{RowRef, json, millis, names};
use crate::fault::Outcome;
use crate::model::{ClockWrite, HandOver, LeaseToken, Member, MemberId, Share, SiteGroup, WorkerId};

/// Adds a member. Groups of an earlier run with the same name become free, because the names of running workers are unique.
pub(crate) async fn worker_join(
    connection: &mut Connection,
    worker: &WorkerId,
    share: Share,
    alive_until_ms: i64,
) -> Outcome<MemberId> {
    worker_remove(connection, worker).await?;
    let id = sqlx::query_scalar(
        "INSERT INTO worker (alive_until_ms, takes_groups, name) VALUES ($1, $2, $3) RETURNING id",
    )
    .bind(alive_until_ms)
    .bind(i32::from(share == Share::Full))
    .bind(worker.as_str())
    .fetch_one(&mut *connection)
    .await?;
    Ok(MemberId(id))
}

/// Ends every membership of a worker.
async fn worker_remove(connection: &mut Connection, worker: &WorkerId) -> Outcome<()> {
    let ended: Vec<i64> = sqlx::query_scalar("DELETE FROM worker WHERE name = $1 RETURNING id")
        .bind(worker.as_str())
        .fetch_all(&mut *connection)
        .await?;
    groups_free(connection, &ended).await
}

async fn groups_free(connection: &mut Connection, members: &[i64]) -> Outcome<()> {
    if members.is_empty() {
        return Ok(());
    }
    sqlx::query(concat!("DELETE FROM group_owner WHERE worker_id IN ", list!(BIGINT)))
        .bind(numbers(members)?)
        .execute(&mut *connection)
        .await?;
    Ok(())
}

/// Renews a membership, ends expired ones, and lists the members that take groups. `None` if the membership had ended.
pub(crate) async fn member_beat(
    connection: &mut Connection,
    member: MemberId,
    alive_until_ms: i64,
    now_ms: i64,
) -> Outcome<Option<Vec<Member>>> {
    if members_renew(connection, &[member.0], alive_until_ms).await?.is_empty() {
        return Ok(None);
    }
    // skip locked rows: they are being renewed
    let expired: Vec<i64> = sqlx::query_scalar(concat!(
        "DELETE FROM worker WHERE id IN (
             SELECT id FROM worker WHERE alive_until_ms < $1 ORDER BY id",
        skip_locked!(),
        ") RETURNING id"
    ))
    .bind(now_ms)
    .fetch_all(&mut *connection)
    .await?;
    groups_free(connection, &expired).await?;
    let rows: Vec<(i64, String)> =
        sqlx::query_as("SELECT id, name FROM worker WHERE takes_groups = 1 ORDER BY name, id")
            .fetch_all(&mut *connection)
            .await?;
    let member = |(id, name): (i64, String)| Member { id: MemberId(id), name: WorkerId::new(&name) };
    Ok(Some(rows.into_iter().map(member).collect()))
}

/// Renews the memberships that have not ended, and returns them.
async fn members_renew(
    connection: &mut Connection,
    members: &[i64],
    alive_until_ms: i64,
) -> Outcome<Vec<i64>> {
    let renewed = sqlx::query_scalar(concat!(
        "UPDATE worker SET alive_until_ms = CASE WHEN alive_until_ms > $2 THEN alive_until_ms ELSE $2 END
         WHERE id IN ",
        list!(BIGINT),
        " RETURNING id"
    ))
    .bind(numbers(members)?)
    .bind(alive_until_ms)
    .fetch_all(&mut *connection)
    .await?;
    Ok(renewed)
}

/// Renews the memberships of clocks; returns those that have ended.
pub(crate) async fn members_of_clocks(
    connection: &mut Connection,
    writes: &[ClockWrite],
) -> Outcome<HashSet<MemberId>> {
    let members: BTreeMap<i64, i64> = writes
        .iter()
        .filter_map(|write| write.member)
        .map(|membership| (membership.member.0, millis(membership.alive_until)))
        .collect();
    let mut ended = HashSet::new();
    for (member, alive_until_ms) in members {
        if members_renew(connection, &[member], alive_until_ms).await?.is_empty() {
            ended.insert(MemberId(member));
        }
    }
    Ok(ended)
}

/// Releases groups, and takes the wanted ones that have no owner. Returns all groups that the member owns.
pub(crate) async fn groups_settle(
    connection: &mut Connection,
    member: MemberId,
    given_up: &[u16],
    wanted: &[u16],
) -> Outcome<Vec<u16>> {
    let is_member: Option<i64> =
        sqlx::query_scalar(concat!("SELECT id FROM worker WHERE id = $1", for_update!()))
            .bind(member.0)
            .fetch_optional(&mut *connection)
            .await?;
    if is_member.is_none() {
        return Ok(Vec::new());
    }
    if !given_up.is_empty() {
        sqlx::query(concat!(
            "DELETE FROM group_owner WHERE worker_id = $2 AND address_group IN ",
            list!(SMALLINT)
        ))
        .bind(numbers(given_up)?)
        .bind(member.0)
        .execute(&mut *connection)
        .await?;
    }
    if !wanted.is_empty() {
        let rows: Vec<GroupRow> = wanted.iter().map(|&address_group| GroupRow { address_group }).collect();
        sqlx::query(concat!(
            "INSERT INTO group_owner (address_group, worker_id) SELECT address_group, $2 FROM ",
            batch!(address_group SMALLINT),
            " WHERE true ON CONFLICT (address_group) DO NOTHING"
        ))
        .bind(json(&rows, "batch of address groups")?)
        .bind(member.0)
        .execute(&mut *connection)
        .await?;
    }
    let owned: Vec<i32> =
        sqlx::query_scalar("SELECT CAST(address_group AS INTEGER) FROM group_owner WHERE worker_id = $1")
            .bind(member.0)
            .fetch_all(&mut *connection)
            .await?;
    Ok(owned.into_iter().filter_map(|group| u16::try_from(group).ok()).collect())
}

#[derive(Serialize)]
struct GroupRow {
    address_group: u16,
}

/// Ends leases so that the owners of their address groups can take them, and saves the progress of the visits. Returns the sites whose
/// lease was held; nothing is written for the others. A stored due time that differs and lies within the following year means that a visit
/// was requested in the meantime, and is kept; any other time is damaged.
pub(crate) async fn visits_hand_over(
    connection: &mut Connection,
    visits: &[(LeaseToken, HandOver)],
) -> Outcome<HashSet<SiteName>> {
    let leases = visits.iter().map(|(token, hand_over)| LeaseRow::new(token, Some(hand_over.due_at)));
    let held: Vec<String> = sqlx::query_scalar(concat!(
        "UPDATE site SET lease_owner = NULL, lease_until_ms = 0,
                next_visit_at_ms = CASE WHEN site.next_visit_at_ms > batch.due_at_ms
                                         AND site.next_visit_at_ms < batch.due_at_ms + 31536000000
                                        THEN site.next_visit_at_ms
                                        ELSE batch.next_visit_at_ms END,
                address_group = COALESCE(batch.address_group, site.address_group)
         FROM ",
        batch!(
            name TEXT, worker TEXT, fence BIGINT, next_visit_at_ms BIGINT, address_group SMALLINT, due_at_ms BIGINT
        ),
        " WHERE site.name = batch.name AND COALESCE(lease_owner, '') = worker AND site.fence = batch.fence
         RETURNING site.name"
    ))
    .bind(LeaseRow::batch(leases.collect())?)
    .fetch_all(&mut *connection)
    .await?;
    let held = convert(held, |name| RowRef::new("site", &name).parse("name", &name))?;
    let held: HashSet<SiteName> = held.into_iter().collect();
    let mut rows = BTreeMap::new();
    for (token, hand_over) in visits.iter().filter(|(token, _)| held.contains(&token.site)) {
        if let Some(progress) = &hand_over.progress {
            let progress = json(progress, "progress of a visit")?;
            rows.insert(token.site.as_str(), ProgressRow { site: token.site.as_str(), progress });
        }
    }
    progress_save(connection, &rows.into_values().collect::<Vec<_>>()).await?;
    Ok(held)
}

#[derive(Serialize)]
struct ProgressRow<'a> {
    site: &'a str,
    progress: String,
}

async fn progress_save(connection: &mut Connection, rows: &[ProgressRow<'_>]) -> Outcome<()> {
    if rows.is_empty() {
        return Ok(());
    }
    sites_expand(connection, &names(rows.iter().map(|row| row.site))?).await?;
    sqlx::query(concat!(
        "UPDATE site_state SET parked_until_ms = NULL, parked_reason = NULL, parked_progress = progress FROM ",
        batch!(site TEXT, progress TEXT),
        " WHERE name = site"
    ))
    .bind(json(&rows, "batch of progress")?)
    .execute(&mut *connection)
    .await?;
    Ok(())
}

/// The group of a site's address, and its owner.
pub(crate) async fn site_group(connection: &mut Connection, site: &SiteName) -> Outcome<Option<SiteGroup>> {
    let row: Option<(i32, Option<String>)> = sqlx::query_as(
        "SELECT CAST(site.address_group AS INTEGER), worker.name FROM site
         LEFT JOIN group_owner ON group_owner.address_group = site.address_group
         LEFT JOIN worker ON worker.id = group_owner.worker_id
         WHERE site.name = $1 AND site.address_group IS NOT NULL",
    )
    .bind(site.as_str())
    .fetch_optional(&mut *connection)
    .await?;
    let Some((group, owner)) = row else { return Ok(None) };
    let at = RowRef::new("site", site.as_str());
    let group = u16::try_from(group).map_err(|error| at.damaged("address_group", &error))?;
    Ok(Some(SiteGroup { group, owner: owner.map(|name| WorkerId::new(&name)) }))
}

/// Ends every lease and membership of a worker that stopped or restarts under the same name.
pub(crate) async fn worker_forget(connection: &mut Connection, worker: &WorkerId) -> Outcome<u64> {
    let ended = sqlx::query("UPDATE site SET lease_owner = NULL, lease_until_ms = 0 WHERE lease_owner = $1")
        .bind(worker.as_str())
        .execute(&mut *connection)
        .await?;
    worker_remove(connection, worker).await?;
    Ok(ended.rows_affected())
}

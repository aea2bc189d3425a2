//! Workers of a fleet and the address groups that they own.
//!
//! A group's row is written by the worker that takes it and removed by the worker that gives it up, or by whoever finds
//! that worker dead. So a worker whose own row is there owns what it took, and its clocks only have to look at that one
//! row: they renew it in the same transaction, which makes a clock and the end of a membership exclude each other.

use std::collections::{BTreeMap, HashSet};

use manifest::SiteName;

use super::{Connection, for_update, rest, skip_locked};
use crate::fault::Outcome;
use crate::model::{ClockWrite, HandOver, LeaseToken, Member, MemberId, Share, SiteGroup, WorkerId};
use crate::pack::{Place, json, millis, names};

/// Makes a worker a member. What an earlier run of the same name owned is free: two workers never have one name.
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
pub(crate) async fn worker_remove(connection: &mut Connection, worker: &WorkerId) -> Outcome<()> {
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
    sqlx::query(
        "DELETE FROM group_owner
         WHERE worker_id IN (SELECT CAST(value ->> 0 AS BIGINT) FROM json_each($1))",
    )
    .bind(numbers(members)?)
    .execute(&mut *connection)
    .await?;
    Ok(())
}

/// Renews a membership, ends those that were not renewed in time, and lists the members that take groups. `None` where
/// the membership had ended.
pub(crate) async fn member_beat(
    connection: &mut Connection,
    member: MemberId,
    alive_until_ms: i64,
    now_ms: i64,
) -> Outcome<Option<Vec<Member>>> {
    if members_renew(connection, &[member.0], alive_until_ms).await?.is_empty() {
        return Ok(None);
    }
    // a row that is locked is being renewed at this moment
    let dead: Vec<i64> = sqlx::query_scalar(concat!(
        "DELETE FROM worker WHERE id IN (
             SELECT id FROM worker WHERE alive_until_ms < $1 ORDER BY id",
        skip_locked!(),
        ") RETURNING id"
    ))
    .bind(now_ms)
    .fetch_all(&mut *connection)
    .await?;
    groups_free(connection, &dead).await?;
    let rows: Vec<(i64, String)> =
        sqlx::query_as("SELECT id, name FROM worker WHERE takes_groups = 1 ORDER BY name, id")
            .fetch_all(&mut *connection)
            .await?;
    Ok(Some(
        rows.into_iter().map(|(id, name)| Member { id: MemberId(id), name: WorkerId::new(&name) }).collect(),
    ))
}

/// Those of the memberships that have not ended, renewed.
async fn members_renew(
    connection: &mut Connection,
    members: &[i64],
    alive_until_ms: i64,
) -> Outcome<Vec<i64>> {
    let renewed = sqlx::query_scalar(
        "UPDATE worker SET alive_until_ms = CASE WHEN alive_until_ms > $2 THEN alive_until_ms ELSE $2 END
         WHERE id IN (SELECT CAST(value ->> 0 AS BIGINT) FROM json_each($1))
         RETURNING id",
    )
    .bind(numbers(members)?)
    .bind(alive_until_ms)
    .fetch_all(&mut *connection)
    .await?;
    Ok(renewed)
}

/// Renews the memberships under which clocks are written; returns those that have ended.
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

/// Gives groups up and takes those of the wanted ones that nobody owns; returns all that the member owns now.
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
        sqlx::query(
            "DELETE FROM group_owner
             WHERE worker_id = $1 AND address_group IN (SELECT CAST(value ->> 0 AS SMALLINT) FROM json_each($2))",
        )
        .bind(member.0)
        .bind(numbers(given_up)?)
        .execute(&mut *connection)
        .await?;
    }
    if !wanted.is_empty() {
        sqlx::query(
            "INSERT INTO group_owner (address_group, worker_id)
             SELECT CAST(value ->> 0 AS SMALLINT), $1 FROM json_each($2) WHERE true
             ON CONFLICT (address_group) DO NOTHING",
        )
        .bind(member.0)
        .bind(numbers(wanted)?)
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

fn numbers<T: serde::Serialize>(values: &[T]) -> Outcome<String> {
    let rows: Vec<[&T; 1]> = values.iter().map(|value| [value]).collect();
    Ok(json(&rows, "list of numbers")?)
}

/// Gives leases back to whoever owns the groups that the tokens name, in one statement, and keeps with the sites what their
/// visits have done. Returns the sites that were still held; of the others nothing is written.
pub(crate) async fn visits_hand_over(
    connection: &mut Connection,
    visits: &[(LeaseToken, HandOver)],
) -> Outcome<HashSet<SiteName>> {
    let of_lease = |(token, hand_over): &(LeaseToken, HandOver)| {
        let due_at_ms = millis(hand_over.due_at);
        (token.site.clone(), token.worker.clone(), token.fence, due_at_ms, token.address_group)
    };
    let mut leases: Vec<_> = visits.iter().map(of_lease).collect();
    leases.sort_unstable();
    let held: Vec<String> = sqlx::query_scalar(
        "UPDATE site SET lease_owner = NULL, lease_until_ms = 0, next_visit_at_ms = due_at_ms,
                address_group = COALESCE(found_in, address_group)
         FROM (SELECT value ->> 0 AS held_name, value ->> 1 AS held_by, CAST(value ->> 2 AS BIGINT) AS held_fence,
                      CAST(value ->> 3 AS BIGINT) AS due_at_ms, CAST(value ->> 4 AS SMALLINT) AS found_in
               FROM json_each($1)) AS held
         WHERE name = held_name AND COALESCE(lease_owner, '') = held_by AND fence = held_fence
         RETURNING name",
    )
    .bind(json(&leases, "batch of leases")?)
    .fetch_all(&mut *connection)
    .await?;
    let held: HashSet<SiteName> =
        held.iter().map(|name| Place::new("site", name).parse("name", name)).collect::<Result<_, _>>()?;
    let mut done = Vec::new();
    for (token, hand_over) in visits.iter().filter(|(token, _)| held.contains(&token.site)) {
        if let Some(progress) = &hand_over.progress {
            done.push((token.site.as_str(), json(progress, "progress of a visit")?));
        }
    }
    done.sort_unstable();
    progress_keep(connection, &done).await?;
    Ok(held)
}

/// What visits have done, by site.
async fn progress_keep(connection: &mut Connection, done: &[(&str, String)]) -> Outcome<()> {
    if done.is_empty() {
        return Ok(());
    }
    rest::sites_wake(connection, &names(done.iter().map(|(site, _)| *site))?).await?;
    sqlx::query(
        "UPDATE site_state SET parked_until_ms = NULL, parked_reason = NULL, parked_progress = done_so_far
         FROM (SELECT value ->> 0 AS done_at, value ->> 1 AS done_so_far FROM json_each($1)) AS done
         WHERE name = done_at",
    )
    .bind(json(&done, "batch of progress")?)
    .execute(&mut *connection)
    .await?;
    Ok(())
}

/// The group of a site's address, and who owns it.
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
    let place = Place::new("site", site.as_str());
    let group = u16::try_from(group).map_err(|error| place.damaged("address_group", &error))?;
    Ok(Some(SiteGroup { group, owner: owner.map(|name| WorkerId::new(&name)) }))
}

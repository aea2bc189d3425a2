//! Watches: added within caps, read, changed with their token, and deleted.

use manifest::SiteName;
use policy::webhook::{WatchStatus, WebhookSecret};

use super::rows::decode;
use super::{Connection, delivery, feed};
use crate::StoreError;
use crate::convert::{Page, RowRef, intact, log_damaged, millis, text, to_u64};
use crate::fault::Outcome;
use crate::from_row::from_row;
use crate::model::{
    FeedPosition, NewChallenge, NewWatch, SearchWatch, Watch, WatchCap, WatchCaps, WatchOutcome, WatchTarget,
    WatchWithChanges,
};

const DAY_MS: i64 = 24 * 60 * 60 * 1_000;
/// How long a message that was given up is listed.
const DEAD_KEPT_MS: i64 = 30 * DAY_MS;
/// How long a watch is kept whose receiver never answered a challenge.
const UNCONFIRMED_KEPT_MS: i64 = DAY_MS;
/// The site of a watch of a search: no site has this name.
const NO_SITE: &str = "";
/// How long a watch is kept whose receiver fails.
const FAILING_KEPT_MS: i64 = 35 * DAY_MS;

/// Adds a watch with its challenge, unless a cap is reached. Concurrent additions may exceed a cap by a few.
pub(crate) async fn watch_add(
    connection: &mut Connection,
    watch: &NewWatch,
    caps: WatchCaps,
) -> Outcome<WatchOutcome> {
    if let Some(cap) = cap_reached(connection, watch, caps).await? {
        return Ok(WatchOutcome::Full(cap));
    }
    let position = feed::feed_head(connection).await?;
    sqlx::query(
        "INSERT INTO watch (id, site, receiver, receiver_site, token_hash, secret, status, position, created_at_ms, client,
                            search)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)",
    )
    .bind(&watch.id)
    .bind(watch.target.site().map_or(NO_SITE, SiteName::as_str))
    .bind(watch.receiver.as_str())
    .bind(watch.receiver.site().as_str())
    .bind(watch.token_hash.as_str())
    .bind(watch.secret.as_str())
    .bind(WatchStatus::Pending.as_str())
    .bind(position.0)
    .bind(millis(watch.at))
    .bind(watch.client.number())
    .bind(watch.target.search().map(|search| text(search).into_owned()))
    .execute(&mut *connection)
    .await?;
    delivery::challenge_add(connection, &watch.id, &watch.challenge, millis(watch.at)).await?;
    Ok(WatchOutcome::Added)
}

/// Counts the watches, of which there are at most as many as all limits together allow.
async fn cap_reached(
    connection: &mut Connection,
    watch: &NewWatch,
    caps: WatchCaps,
) -> Outcome<Option<WatchCap>> {
    let counts: (i64, i64, i64, i64, i64, i64) = sqlx::query_as(
        "SELECT COUNT(CASE WHEN receiver_site = $1 AND confirmed_at_ms IS NOT NULL THEN 1 END),
                COUNT(CASE WHEN receiver_site = $1 AND confirmed_at_ms IS NULL THEN 1 END),
                COUNT(CASE WHEN client = $2 THEN 1 END),
                COUNT(CASE WHEN client = $2 AND confirmed_at_ms IS NULL THEN 1 END),
                COUNT(CASE WHEN confirmed_at_ms IS NOT NULL THEN 1 END),
                COUNT(CASE WHEN confirmed_at_ms IS NULL THEN 1 END)
         FROM watch",
    )
    .bind(watch.receiver.site().as_str())
    .bind(watch.client.number())
    .fetch_one(&mut *connection)
    .await?;
    let (of_receiver, unconfirmed_of_receiver, of_client, unconfirmed_of_client, of_all, unconfirmed) =
        counts;
    let counts = [
        (of_receiver, caps.of_receiver, WatchCap::Receiver),
        (unconfirmed_of_receiver, caps.unconfirmed_of_receiver, WatchCap::UnconfirmedOfReceiver),
        (of_client, caps.of_client, WatchCap::Client),
        (unconfirmed_of_client, caps.unconfirmed_of_client, WatchCap::UnconfirmedOfClient),
        (of_all, caps.of_all, WatchCap::All),
        (unconfirmed, caps.unconfirmed_of_all, WatchCap::UnconfirmedOfAll),
    ];
    Ok(counts.into_iter().find(|(count, max, _)| *count >= i64::from(*max)).map(|(.., cap)| cap))
}

/// Whether a site is the receiver of an active watch.
pub(crate) async fn site_receives(connection: &mut Connection, site: &SiteName) -> Outcome<bool> {
    let found: Option<i32> =
        sqlx::query_scalar("SELECT 1 FROM watch WHERE receiver_site = $1 AND status = $2 LIMIT 1")
            .bind(site.as_str())
            .bind(WatchStatus::Active.as_str())
            .fetch_optional(&mut *connection)
            .await?;
    Ok(found.is_some())
}

struct WatchRow {
    id: String,
    site: String,
    search: Option<String>,
    receiver: String,
    token_hash: String,
    status: String,
    created_at_ms: i64,
    confirmed_at_ms: Option<i64>,
    delivered_at_ms: Option<i64>,
    failing_since_ms: Option<i64>,
    dead_letters: i64,
}

from_row!(WatchRow {
    id,
    site,
    search,
    receiver,
    token_hash,
    status,
    created_at_ms,
    confirmed_at_ms,
    delivered_at_ms,
    failing_since_ms,
    dead_letters
});

impl TryFrom<WatchRow> for Watch {
    type Error = StoreError;

    fn try_from(row: WatchRow) -> Result<Self, StoreError> {
        let at = RowRef::new("watch", &row.id);
        Ok(Self {
            target: target(&at, &row.site, row.search)?,
            receiver: at.parse("receiver", &row.receiver)?,
            token_hash: at.parse("token_hash", &row.token_hash)?,
            status: at.parse("status", &row.status)?,
            created_at: at.time("created_at_ms", row.created_at_ms)?,
            confirmed_at: at.time_of("confirmed_at_ms", row.confirmed_at_ms)?,
            delivered_at: at.time_of("delivered_at_ms", row.delivered_at_ms)?,
            failing_since: at.time_of("failing_since_ms", row.failing_since_ms)?,
            dead_letters: to_u64(row.dead_letters),
            id: row.id,
        })
    }
}

/// The site or the search of a stored watch.
pub(super) fn target(at: &RowRef<'_>, site: &str, search: Option<String>) -> Result<WatchTarget, StoreError> {
    match search {
        Some(query) => Ok(WatchTarget::Search(query)),
        None => Ok(WatchTarget::Site(at.parse("site", site)?)),
    }
}

/// The columns of [`WatchRow`].
macro_rules! select_watches {
    ($rest:literal) => {
        concat!(
            "SELECT id, site, search, receiver, token_hash, status, created_at_ms, confirmed_at_ms, delivered_at_ms, failing_since_ms,
                    (SELECT COUNT(*) FROM delivery WHERE watch_id = watch.id AND dead_at_ms IS NOT NULL) AS dead_letters
             FROM watch ",
            $rest
        )
    };
}

/// The watch with an id.
pub(crate) async fn watch_find(connection: &mut Connection, id: &str) -> Outcome<Option<Watch>> {
    let rows = sqlx::query(select_watches!("WHERE id = $1")).bind(id).fetch_all(&mut *connection).await?;
    let found = decode::<WatchRow>(&["watch"], &rows).into_iter().next();
    Ok(found.and_then(|row| log_damaged(row.and_then(Watch::try_from))))
}

/// Watches after an id.
pub(crate) async fn watches_page(connection: &mut Connection, after: &str, max: i64) -> Outcome<Vec<Watch>> {
    let rows = sqlx::query(select_watches!("WHERE id > $1 ORDER BY id LIMIT $2"))
        .bind(after)
        .bind(max)
        .fetch_all(&mut *connection)
        .await?;
    let mut page = Page::new(max);
    page.add(decode::<WatchRow>(&["watch"], &rows), Watch::try_from);
    Ok(page.values)
}

/// Deletes a watch with its messages; false if there is none.
pub(crate) async fn watch_delete(connection: &mut Connection, id: &str) -> Outcome<bool> {
    sqlx::query("DELETE FROM delivery WHERE watch_id = $1").bind(id).execute(&mut *connection).await?;
    let gone = sqlx::query("DELETE FROM watch WHERE id = $1").bind(id).execute(&mut *connection).await?;
    Ok(gone.rows_affected() > 0)
}

/// Replaces the secret of a watch; false if there is none.
pub(crate) async fn watch_rotate(
    connection: &mut Connection,
    id: &str,
    secret: &WebhookSecret,
    old_until_ms: i64,
) -> Outcome<bool> {
    let rotated = sqlx::query(
        "UPDATE watch SET old_secret = secret, old_secret_until_ms = $2, secret = $3 WHERE id = $1",
    )
    .bind(id)
    .bind(old_until_ms)
    .bind(secret.as_str())
    .execute(&mut *connection)
    .await?;
    Ok(rotated.rows_affected() > 0)
}

/// Queues a challenge in place of a waiting one, unless the watch is active.
pub(crate) async fn watch_challenge(
    connection: &mut Connection,
    id: &str,
    challenge: &NewChallenge,
    now_ms: i64,
) -> Outcome<bool> {
    let pending = sqlx::query("UPDATE watch SET status = $2 WHERE id = $1 AND status <> $3")
        .bind(id)
        .bind(WatchStatus::Pending.as_str())
        .bind(WatchStatus::Active.as_str())
        .execute(&mut *connection)
        .await?;
    if pending.rows_affected() == 0 {
        return Ok(false);
    }
    sqlx::query("DELETE FROM delivery WHERE watch_id = $1 AND challenge IS NOT NULL")
        .bind(id)
        .execute(&mut *connection)
        .await?;
    delivery::challenge_add(connection, id, challenge, now_ms).await?;
    Ok(true)
}

/// The watches of blocked and suspended sites. An active watch is included only after it has delivered the removals.
pub(crate) async fn watches_ended(connection: &mut Connection, max: i64) -> Outcome<Vec<String>> {
    let ended = sqlx::query_scalar(
        "SELECT id FROM watch
         WHERE (EXISTS (SELECT 1 FROM block WHERE block.site = watch.site)
                OR EXISTS (SELECT 1 FROM suspension WHERE suspension.site = watch.site))
           AND (status <> $1
                OR NOT EXISTS (SELECT 1 FROM delivery WHERE watch_id = watch.id AND dead_at_ms IS NULL)
                   AND COALESCE((SELECT MAX(feed.position) FROM feed WHERE feed.site = watch.site), 0) <= watch.position)
         LIMIT $2",
    )
    .bind(WatchStatus::Active.as_str())
    .bind(max)
    .fetch_all(&mut *connection)
    .await?;
    Ok(ended)
}

struct BehindRow {
    id: String,
    site: String,
    position: i64,
    outrun: i32,
}

from_row!(BehindRow { id, site, position, outrun });

/// Active watches without a waiting message that have changes which are not in a message yet. The subquery for the last position of a site
/// is one index lookup per watch; a join could read the whole feed.
pub(crate) async fn watches_behind(connection: &mut Connection, max: i64) -> Outcome<Vec<WatchWithChanges>> {
    let rows = sqlx::query(
        "SELECT id, site, position,
                CASE WHEN position + 1 < (SELECT first_position FROM feed_state WHERE feed_state.id = 1)
                    THEN 1 ELSE 0 END AS outrun
         FROM watch
         WHERE status = $1
           AND (SELECT MAX(feed.position) FROM feed WHERE feed.site = watch.site) > watch.position
           AND NOT EXISTS (SELECT 1 FROM delivery WHERE watch_id = watch.id AND dead_at_ms IS NULL)
         ORDER BY position LIMIT $2",
    )
    .bind(WatchStatus::Active.as_str())
    .bind(max)
    .fetch_all(&mut *connection)
    .await?;
    Ok(intact(decode(&["watch"], &rows), |row: BehindRow| {
        Ok(WatchWithChanges {
            site: RowRef::new("watch", &row.id).parse("site", &row.site)?,
            id: row.id,
            position: FeedPosition(row.position),
            is_outrun: row.outrun > 0,
        })
    }))
}

/// Active watches of searches without a waiting message that have not been compared with all changes up to a position, those that are
/// furthest behind first. There are at most as many watches as all limits together allow.
pub(crate) async fn watches_of_searches(
    connection: &mut Connection,
    up_to: FeedPosition,
    max: i64,
) -> Outcome<Vec<SearchWatch>> {
    let rows = sqlx::query(
        "SELECT id, search, position FROM watch
         WHERE status = $1 AND search IS NOT NULL AND position < $2
           AND NOT EXISTS (SELECT 1 FROM delivery WHERE watch_id = watch.id AND dead_at_ms IS NULL)
         ORDER BY position, id LIMIT $3",
    )
    .bind(WatchStatus::Active.as_str())
    .bind(up_to.0)
    .bind(max)
    .fetch_all(&mut *connection)
    .await?;
    Ok(intact(decode(&["watch"], &rows), |(id, query, position): (String, String, i64)| {
        Ok(SearchWatch { id, query, position: FeedPosition(position) })
    }))
}

/// Moves a watch over changes that it does not deliver; false if another process has moved it.
pub(crate) async fn watch_advance(
    connection: &mut Connection,
    id: &str,
    from: FeedPosition,
    to: FeedPosition,
) -> Outcome<bool> {
    let moved = sqlx::query("UPDATE watch SET position = $3 WHERE id = $1 AND position = $2")
        .bind(id)
        .bind(from.0)
        .bind(to.0)
        .execute(&mut *connection)
        .await?;
    Ok(moved.rows_affected() > 0)
}

/// Deletes watches and messages by age, and counts of earlier days.
pub(crate) async fn watches_trim(connection: &mut Connection, now_ms: i64) -> Outcome<()> {
    for (statement, before) in [
        ("DELETE FROM delivery WHERE dead_at_ms < $1", now_ms - DEAD_KEPT_MS),
        (
            "DELETE FROM watch WHERE confirmed_at_ms IS NULL AND created_at_ms < $1",
            now_ms - UNCONFIRMED_KEPT_MS,
        ),
        ("DELETE FROM watch WHERE status <> 'active' AND failing_since_ms < $1", now_ms - FAILING_KEPT_MS),
        ("DELETE FROM receiver_day WHERE day < $1", now_ms / DAY_MS - 1),
    ] {
        sqlx::query(statement).bind(before).execute(&mut *connection).await?;
    }
    sqlx::query("DELETE FROM delivery WHERE NOT EXISTS (SELECT 1 FROM watch WHERE watch.id = watch_id)")
        .execute(&mut *connection)
        .await?;
    Ok(())
}

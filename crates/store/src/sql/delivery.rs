//! Messages to webhooks: how they are stored, claimed by one worker at a time, and completed or given up.

use manifest::SiteName;
use policy::webhook::{AfterFailure, Message, WatchStatus, WebhookSecrets};

use super::block::blocked_among;
use super::rows::decode;
use super::{Connection, watch};
use crate::StoreError;
use crate::convert::{Page, RowRef, intact, millis, names, text, to_u32};
use crate::fault::Outcome;
use crate::from_row::from_row;
use crate::model::{
    DeliveryEnd, DeliveryLine, DueContent, DueDelivery, FeedPosition, NewChallenge, NewDelivery, ReceiverCaps,
};

/// Stores a challenge, which is due now.
pub(crate) async fn challenge_add(
    connection: &mut Connection,
    watch_id: &str,
    challenge: &NewChallenge,
    now_ms: i64,
) -> Outcome<()> {
    sqlx::query(
        "INSERT INTO delivery (id, watch_id, challenge, created_at_ms, attempts, next_at_ms)
         VALUES ($1, $2, $3, $4, 0, $4)",
    )
    .bind(&challenge.id)
    .bind(watch_id)
    .bind(&challenge.challenge)
    .bind(now_ms)
    .execute(&mut *connection)
    .await?;
    Ok(())
}

/// Stores a message and moves its watch. The condition on the position serialises workers that read the same changes. False if another worker
/// was faster, or if a site with texts in the message has opted out or was suspended: the watch is then at the same position. The row of the
/// watch, which an opt-out updates as well, is locked before the sites are looked up, so that an opt-out at the same time deletes the message.
pub(crate) async fn delivery_add(connection: &mut Connection, delivery: &NewDelivery) -> Outcome<bool> {
    let moved = sqlx::query("UPDATE watch SET position = $3 WHERE id = $1 AND position = $2 AND status = $4")
        .bind(&delivery.watch_id)
        .bind(delivery.after.0)
        .bind(delivery.last.0)
        .bind(WatchStatus::Active.as_str())
        .execute(&mut *connection)
        .await?;
    if moved.rows_affected() == 0 {
        return Ok(false);
    }
    let sites = names(delivery.sites.iter().map(SiteName::as_str))?;
    if !blocked_among(connection, &sites).await?.is_empty() {
        sqlx::query("UPDATE watch SET position = $2 WHERE id = $1")
            .bind(&delivery.watch_id)
            .bind(delivery.after.0)
            .execute(&mut *connection)
            .await?;
        return Ok(false);
    }
    sqlx::query(
        "INSERT INTO delivery
             (id, watch_id, body, first_position, last_position, created_at_ms, attempts, next_at_ms)
         VALUES ($1, $2, $3, $4, $5, $6, 0, $6)",
    )
    .bind(&delivery.id)
    .bind(&delivery.watch_id)
    .bind(&*text(&delivery.body))
    .bind(delivery.first.0)
    .bind(delivery.last.0)
    .bind(millis(delivery.at))
    .execute(&mut *connection)
    .await?;
    Ok(true)
}

struct DueRow {
    id: String,
    watch_id: String,
    site: String,
    search: Option<String>,
    receiver: String,
    challenge: Option<String>,
    body: Option<String>,
    secret: String,
    old_secret: Option<String>,
    old_secret_until_ms: Option<i64>,
    created_at_ms: i64,
    attempts: i32,
    failing_since_ms: Option<i64>,
    unconfirmed_since_ms: Option<i64>,
}

from_row!(DueRow {
    id,
    watch_id,
    site,
    search,
    receiver,
    challenge,
    body,
    secret,
    old_secret,
    old_secret_until_ms,
    created_at_ms,
    attempts,
    failing_since_ms,
    unconfirmed_since_ms
});

impl TryFrom<DueRow> for DueDelivery {
    type Error = StoreError;

    fn try_from(row: DueRow) -> Result<Self, StoreError> {
        let (at, of_watch) = (RowRef::new("delivery", &row.id), RowRef::new("watch", &row.watch_id));
        let content = match (row.challenge, row.body) {
            (Some(challenge), _) => DueContent::Challenge(challenge),
            (None, Some(body)) => DueContent::Changes(body),
            (None, None) => return Err(at.damaged("body", "a message")),
        };
        let old = of_watch.parse_of("old_secret", row.old_secret.as_ref())?;
        let old_until = of_watch.time_of("old_secret_until_ms", row.old_secret_until_ms)?;
        Ok(Self {
            target: watch::target(&of_watch, &row.site, row.search)?,
            receiver: of_watch.parse("receiver", &row.receiver)?,
            content,
            secrets: WebhookSecrets {
                current: of_watch.parse("secret", &row.secret)?,
                old: old.zip(old_until),
            },
            created_at: at.time("created_at_ms", row.created_at_ms)?,
            attempts: to_u32(row.attempts),
            failing_since: of_watch.time_of("failing_since_ms", row.failing_since_ms)?,
            unconfirmed_since: of_watch.time_of("created_at_ms", row.unconfirmed_since_ms)?,
            id: row.id,
            watch_id: row.watch_id,
        })
    }
}

/// Whether a message of a kind is due.
pub(crate) async fn deliveries_wait(
    connection: &mut Connection,
    message: Message,
    now_ms: i64,
) -> Outcome<bool> {
    let due: Option<String> = sqlx::query_scalar(
        "SELECT id FROM delivery WHERE dead_at_ms IS NULL AND next_at_ms <= $1
             AND CASE WHEN challenge IS NULL THEN 0 ELSE 1 END = $2 LIMIT 1",
    )
    .bind(now_ms)
    .bind(i32::from(message == Message::Challenge))
    .fetch_optional(&mut *connection)
    .await?;
    Ok(due.is_some())
}

/// Claims due messages of one kind. The condition on the time is repeated, because another worker may have claimed a message in the
/// meantime.
pub(crate) async fn deliveries_claim(
    connection: &mut Connection,
    message: Message,
    now_ms: i64,
    until_ms: i64,
    max: i64,
) -> Outcome<Vec<DueDelivery>> {
    let claimed: Vec<String> = sqlx::query_scalar(
        "UPDATE delivery SET attempts = attempts + 1, next_at_ms = $2
         WHERE id IN (SELECT id FROM delivery WHERE dead_at_ms IS NULL AND next_at_ms <= $1
                          AND CASE WHEN challenge IS NULL THEN 0 ELSE 1 END = $4
                      ORDER BY next_at_ms, id LIMIT $3)
           AND dead_at_ms IS NULL AND next_at_ms <= $1
         RETURNING id",
    )
    .bind(now_ms)
    .bind(until_ms)
    .bind(max)
    .bind(i32::from(message == Message::Challenge))
    .fetch_all(&mut *connection)
    .await?;
    if claimed.is_empty() {
        return Ok(Vec::new());
    }
    let rows = sqlx::query(concat!(
        "SELECT delivery.id, watch_id, site, search, receiver, challenge, body, secret, old_secret, old_secret_until_ms,
                delivery.created_at_ms, attempts, failing_since_ms,
                CASE WHEN confirmed_at_ms IS NULL THEN watch.created_at_ms END AS unconfirmed_since_ms
         FROM delivery JOIN watch ON watch.id = watch_id WHERE delivery.id IN ",
        list!(),
        " ORDER BY delivery.id"
    ))
    .bind(names(claimed.iter().map(String::as_str))?)
    .fetch_all(&mut *connection)
    .await?;
    Ok(intact(decode::<DueRow>(&["delivery", "watch"], &rows), DueDelivery::try_from))
}

/// Counts a message on a day; false if a cap is reached. A day earlier than the last counted one counts as that day.
pub(crate) async fn receiver_count(
    connection: &mut Connection,
    receiver: &SiteName,
    day: i32,
    message: Message,
    caps: ReceiverCaps,
) -> Outcome<bool> {
    let counted = sqlx::query(
        "INSERT INTO receiver_day (receiver_site, day, requests, challenges) VALUES ($1, $2, 1, $3)
         ON CONFLICT (receiver_site) DO UPDATE SET
             requests = CASE WHEN receiver_day.day < excluded.day THEN 1 ELSE receiver_day.requests + 1 END,
             challenges = excluded.challenges
                 + CASE WHEN receiver_day.day < excluded.day THEN 0 ELSE receiver_day.challenges END,
             day = CASE WHEN receiver_day.day < excluded.day THEN excluded.day ELSE receiver_day.day END
         WHERE receiver_day.day < excluded.day
            OR (receiver_day.requests < $4 AND (excluded.challenges = 0 OR receiver_day.challenges < $5))",
    )
    .bind(receiver.as_str())
    .bind(day)
    .bind(i32::from(message == Message::Challenge))
    .bind(i64::from(caps.requests))
    .bind(i64::from(caps.challenges))
    .execute(&mut *connection)
    .await?;
    Ok(counted.rows_affected() > 0)
}

/// Stores the result of an attempt, unless another worker has sent the message since.
pub(crate) async fn delivery_end(
    connection: &mut Connection,
    delivery: &DueDelivery,
    end: &DeliveryEnd,
    now_ms: i64,
) -> Outcome<()> {
    match end {
        DeliveryEnd::Accepted => accepted(connection, delivery, now_ms).await,
        DeliveryEnd::Postponed { until, counted_on } => {
            postponed(connection, delivery, millis(*until), *counted_on).await
        }
        DeliveryEnd::Failed { reason, then } => failed(connection, delivery, reason, *then, now_ms).await,
        DeliveryEnd::Refused => watch::watch_delete(connection, &delivery.watch_id).await.map(drop),
    }
}

async fn accepted(connection: &mut Connection, delivery: &DueDelivery, now_ms: i64) -> Outcome<()> {
    let gone = sqlx::query("DELETE FROM delivery WHERE id = $1 AND dead_at_ms IS NULL")
        .bind(&delivery.id)
        .execute(&mut *connection)
        .await?;
    if gone.rows_affected() == 0 {
        return Ok(());
    }
    let update = match delivery.content.message() {
        Message::Challenge => {
            "UPDATE watch SET confirmed_at_ms = $2, status = 'active', failing_since_ms = NULL WHERE id = $1"
        }
        Message::Changes => "UPDATE watch SET delivered_at_ms = $2, failing_since_ms = NULL WHERE id = $1",
    };
    sqlx::query(update).bind(&delivery.watch_id).bind(now_ms).execute(&mut *connection).await?;
    Ok(())
}

async fn postponed(
    connection: &mut Connection,
    delivery: &DueDelivery,
    until_ms: i64,
    counted_on: Option<i32>,
) -> Outcome<()> {
    sqlx::query(
        "UPDATE delivery SET attempts = attempts - 1, next_at_ms = $3
         WHERE id = $1 AND attempts = $2 AND dead_at_ms IS NULL",
    )
    .bind(&delivery.id)
    .bind(i64::from(delivery.attempts))
    .bind(until_ms)
    .execute(&mut *connection)
    .await?;
    let Some(day) = counted_on else { return Ok(()) };
    sqlx::query(
        "UPDATE receiver_day SET requests = requests - 1, challenges = challenges - $3
         WHERE receiver_site = $1 AND day = $2",
    )
    .bind(delivery.receiver.site().as_str())
    .bind(day)
    .bind(i32::from(delivery.content.message() == Message::Challenge))
    .execute(&mut *connection)
    .await?;
    Ok(())
}

async fn failed(
    connection: &mut Connection,
    delivery: &DueDelivery,
    reason: &str,
    then: AfterFailure,
    now_ms: i64,
) -> Outcome<()> {
    let (retry_at_ms, dead_at_ms) = match then {
        AfterFailure::Retry(at) => (Some(millis(at)), None),
        AfterFailure::GiveUp | AfterFailure::Pause => (None, Some(now_ms)),
    };
    let updated = sqlx::query(
        "UPDATE delivery SET failure = $3, dead_at_ms = $4, next_at_ms = COALESCE($5, next_at_ms),
                body = CASE WHEN $4 IS NULL THEN body END
         WHERE id = $1 AND attempts = $2 AND dead_at_ms IS NULL",
    )
    .bind(&delivery.id)
    .bind(i64::from(delivery.attempts))
    .bind(&*text(reason))
    .bind(dead_at_ms)
    .bind(retry_at_ms)
    .execute(&mut *connection)
    .await?;
    if updated.rows_affected() == 0 {
        return Ok(());
    }
    let status = if then == AfterFailure::Pause { Some(WatchStatus::Paused.as_str()) } else { None };
    let unconfirmed: Option<i32> = sqlx::query_scalar(
        "UPDATE watch SET failing_since_ms = COALESCE(failing_since_ms, $2), status = COALESCE($3, status)
         WHERE id = $1 RETURNING CASE WHEN confirmed_at_ms IS NULL THEN 1 ELSE 0 END",
    )
    .bind(&delivery.watch_id)
    .bind(now_ms)
    .bind(status)
    .fetch_optional(&mut *connection)
    .await?;
    // the receiver has not confirmed the watch
    if then == AfterFailure::Pause && unconfirmed == Some(1) {
        watch::watch_delete(connection, &delivery.watch_id).await?;
    }
    Ok(())
}

struct LineRow {
    id: String,
    is_challenge: i32,
    first_position: Option<i64>,
    last_position: Option<i64>,
    created_at_ms: i64,
    attempts: i32,
    next_at_ms: i64,
    dead_at_ms: Option<i64>,
    failure: Option<String>,
}

from_row!(LineRow {
    id,
    is_challenge,
    first_position,
    last_position,
    created_at_ms,
    attempts,
    next_at_ms,
    dead_at_ms,
    failure
});

impl TryFrom<LineRow> for DeliveryLine {
    type Error = StoreError;

    fn try_from(row: LineRow) -> Result<Self, StoreError> {
        let at = RowRef::new("delivery", &row.id);
        let dead_at = at.time_of("dead_at_ms", row.dead_at_ms)?;
        let next_at = dead_at.is_none().then(|| at.time("next_at_ms", row.next_at_ms)).transpose()?;
        Ok(Self {
            message: if row.is_challenge > 0 { Message::Challenge } else { Message::Changes },
            positions: row.first_position.map(FeedPosition).zip(row.last_position.map(FeedPosition)),
            created_at: at.time("created_at_ms", row.created_at_ms)?,
            attempts: to_u32(row.attempts),
            next_at,
            dead_at,
            failure: row.failure,
            id: row.id,
        })
    }
}

/// The last messages of a watch that wait or were given up, newest first.
pub(crate) async fn deliveries_of(
    connection: &mut Connection,
    watch_id: &str,
    max: i64,
) -> Outcome<Vec<DeliveryLine>> {
    let rows = sqlx::query(
        "SELECT id, CASE WHEN challenge IS NULL THEN 0 ELSE 1 END AS is_challenge, first_position, last_position,
                created_at_ms, attempts, next_at_ms, dead_at_ms, failure
         FROM delivery WHERE watch_id = $1 ORDER BY created_at_ms DESC, id LIMIT $2",
    )
    .bind(watch_id)
    .bind(max)
    .fetch_all(&mut *connection)
    .await?;
    let mut page = Page::new(max);
    page.add(decode::<LineRow>(&["delivery"], &rows), DeliveryLine::try_from);
    Ok(page.values)
}

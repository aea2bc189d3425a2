//! Delivers the changes of watched sites, and the results of watched searches that the API found, to webhooks. Before that, sends the challenges that receivers have to answer.
//!
//! A receiver is requested like any site ([`StandaloneRequests`]): leased, robots.txt first, at checked addresses, with the clocks of
//! its host, without redirects. An attempt is stored before the request, and its result after it. If a worker is killed in between,
//! the message is sent again, with the same id.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use data_encoding::HEXLOWER;
use futures::future::join_all;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use policy::delay::{day_of, next_day};
use policy::webhook::{self, AfterFailure, Message as MessageKind};
use policy::{BodyKind, FetchOutcome, RetryAfter};
use serde_json::json;
use store::{
    DeliveryEnd, DueContent, DueDelivery, FeedEntry, NewDelivery, ReceiverCaps, StoreError, TaskFailure,
    TaskMonitor, WatchTarget, WatchWithChanges, WorkerId,
};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::retry::retry_while_unavailable;
use crate::visit::{Message, StandaloneError, StandaloneRequests, Stop, Tools};
use crate::{clock, metrics};
use egress::{Failure, Reply};

/// Poll interval for changes and due messages.
const POLL_INTERVAL: Duration = Duration::from_secs(5);
/// Time after which another worker may send a message that this worker has begun to send. A request with its robots.txt takes at most two
/// minutes.
const SENDING_MAX: TimeDelta = TimeDelta::minutes(10);
/// Maximum number of messages with changes that are sent concurrently, to different receivers.
const CHANGES_AT_ONCE: u32 = 8;
/// Maximum number of challenges that are sent concurrently. Anyone can cause a challenge, so they have their own limit, and slow receivers
/// do not delay changes.
const CHALLENGES_AT_ONCE: u32 = 4;
/// Time after which a round starts no further message, so that the next round can find new changes.
const ROUND_MAX: Duration = Duration::from_mins(1);
/// Maximum number of watches for which one round creates a message.
const WATCHES_OF_ROUND: u32 = 100;
/// Maximum number of changes in one message: about 30 KB.
const CHANGES_MAX: u32 = 100;
/// Minimum time before a message that could not be sent is tried again.
const POSTPONED_MIN: TimeDelta = TimeDelta::seconds(5);
/// Random bytes of the id of a message.
const ID_BYTES: usize = 16;
const CAPS: ReceiverCaps =
    ReceiverCaps { requests: webhook::REQUESTS_PER_DAY_MAX, challenges: webhook::CHALLENGES_PER_DAY_MAX };

const WEBHOOK_ID: HeaderName = HeaderName::from_static("webhook-id");
const WEBHOOK_TIMESTAMP: HeaderName = HeaderName::from_static("webhook-timestamp");
const WEBHOOK_SIGNATURE: HeaderName = HeaderName::from_static("webhook-signature");

/// Delivers until stopped.
pub(crate) async fn run(tools: Tools, worker: WorkerId, monitor: Arc<TaskMonitor>, stop: CancellationToken) {
    while stop.run_until_cancelled(tokio::time::sleep(POLL_INTERVAL)).await.is_some() {
        deliver_due(&tools, &worker, &monitor, &stop).await;
    }
}

/// Delivers what is due. Reports errors, because the next round tries again.
pub(crate) async fn deliver_due(
    tools: &Tools,
    worker: &WorkerId,
    monitor: &TaskMonitor,
    stop: &CancellationToken,
) {
    let began = Instant::now();
    let delivered = round(tools, worker, stop).await;
    let result = delivered.map_err(|error| TaskFailure::of_store(&error, began));
    monitor.ended(result, clock::now()).await;
}

async fn round(tools: &Tools, worker: &WorkerId, stop: &CancellationToken) -> Result<(), StoreError> {
    let store = &tools.store;
    for id in store.watches_ended(WATCHES_OF_ROUND).await? {
        tracing::info!(watch = id, "a watch ended because its site opted out or is suspended");
        store.watch_delete(&id).await?;
    }
    for watch in store.watches_behind(WATCHES_OF_ROUND).await? {
        compose(tools, &watch).await?;
    }
    let kinds = [MessageKind::Changes, MessageKind::Challenge];
    let sent = join_all(kinds.map(|kind| send_due(tools, worker, stop, kind))).await;
    sent.into_iter().collect()
}

/// Sends the due messages of a kind. Each of the concurrent senders sends one message after the other, so a slow receiver delays one
/// sender.
async fn send_due(
    tools: &Tools,
    worker: &WorkerId,
    stop: &CancellationToken,
    kind: MessageKind,
) -> Result<(), StoreError> {
    let ends_at = Instant::now() + ROUND_MAX;
    let is_over = || stop.is_cancelled() || Instant::now() >= ends_at;
    let send_from = async |first: DueDelivery| {
        let mut next = Some(first);
        while let Some(delivery) = next {
            deliver(tools, worker, stop, &delivery).await?;
            next = if is_over() { None } else { claim(tools, kind, 1).await?.pop() };
        }
        Ok(())
    };
    let senders = match kind {
        MessageKind::Changes => CHANGES_AT_ONCE,
        MessageKind::Challenge => CHALLENGES_AT_ONCE,
    };
    let due = if is_over() { Vec::new() } else { claim(tools, kind, senders).await? };
    join_all(due.into_iter().map(send_from)).await.into_iter().collect()
}

async fn claim(tools: &Tools, kind: MessageKind, max: u32) -> Result<Vec<DueDelivery>, StoreError> {
    let now = clock::now();
    tools.store.deliveries_claim(kind, now, now + SENDING_MAX, max).await
}

/// Stores a message with the next changes for a watch.
async fn compose(tools: &Tools, watch: &WatchWithChanges) -> Result<(), StoreError> {
    let changes = tools.store.feed_of_site_after(&watch.site, watch.position, CHANGES_MAX).await?;
    let (Some(first), Some(last)) = (changes.first(), changes.last()) else { return Ok(()) };
    let at = clock::now();
    let delivery = NewDelivery {
        id: message_id(),
        watch_id: watch.id.clone(),
        after: watch.position,
        first: first.position,
        last: last.position,
        body: changes_body(watch, &changes, at),
        // the removals of a site that opts out are delivered
        sites: Vec::new(),
        at,
    };
    tools.store.delivery_add(&delivery).await.map(drop)
}

fn message_id() -> String {
    format!("msg_{}", HEXLOWER.encode(&rand::random::<[u8; ID_BYTES]>()))
}

fn changes_body(watch: &WatchWithChanges, changes: &[FeedEntry], at: DateTime<Utc>) -> String {
    let data =
        json!({"watch": watch.id, "site": watch.site, "complete": !watch.is_outrun, "changes": changes});
    json!({"type": "agentdex.changes", "timestamp": timestamp(at), "data": data}).to_string()
}

/// A time in RFC 3339 with milliseconds: common parsers refuse more digits.
fn timestamp(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Millis, true)
}

/// The body of a message. It is the same in each attempt, also for a challenge.
fn body_of(delivery: &DueDelivery) -> String {
    match &delivery.content {
        DueContent::Changes(body) => body.clone(),
        DueContent::Challenge(challenge) => {
            let mut data = json!({"watch": delivery.watch_id, "challenge": challenge});
            // the text of a search is left out: anybody may name any receiver
            if let WatchTarget::Site(site) = &delivery.target {
                data["site"] = site.as_str().into();
            }
            json!({"type": "agentdex.challenge", "timestamp": timestamp(delivery.created_at), "data": data})
                .to_string()
        }
    }
}

/// Sends a message once and stores the result.
async fn deliver(
    tools: &Tools,
    worker: &WorkerId,
    stop: &CancellationToken,
    delivery: &DueDelivery,
) -> Result<(), StoreError> {
    let end = Box::pin(attempt(tools, worker, stop, delivery)).await?;
    let outcome = match &end {
        DeliveryEnd::Accepted => "accepted",
        DeliveryEnd::Postponed { .. } => "postponed",
        DeliveryEnd::Failed { .. } => "failed",
        DeliveryEnd::Refused => "refused",
    };
    metrics::delivery(outcome);
    tracing::debug!(watch = delivery.watch_id, message = delivery.id, outcome, "message to a webhook");
    let store = &tools.store;
    let end = &end;
    retry_while_unavailable("end delivery", || store.delivery_end(delivery, end, clock::now())).await
}

async fn attempt(
    tools: &Tools,
    worker: &WorkerId,
    stop: &CancellationToken,
    delivery: &DueDelivery,
) -> Result<DeliveryEnd, StoreError> {
    let now = clock::now();
    let (receiver, kind, day) = (delivery.receiver.site(), delivery.content.message(), day_of(now));
    if !tools.store.receiver_count(&receiver, day, kind, CAPS).await? {
        return Ok(DeliveryEnd::Postponed { until: next_day(now), counted_on: None });
    }
    let body = body_of(delivery);
    let headers = headers(delivery, &body, now);
    let soft = Stop { soft: stop.clone(), ..Stop::default() };
    let mut requests = StandaloneRequests::new(tools, worker.clone(), Duration::ZERO, soft);
    let message = Message::Deliver { headers: &headers, body: &body };
    let mut asked_until = None;
    let reason = match requests.send(&delivery.receiver, BodyKind::Other, message).await {
        Ok(reply) => match verdict(&delivery.content, &reply) {
            Verdict::Accepted => return Ok(DeliveryEnd::Accepted),
            Verdict::Refused => return Ok(DeliveryEnd::Refused),
            Verdict::Failed(reason) => {
                asked_until = asked_by(&reply);
                reason
            }
        },
        Err(StandaloneError::Failed(failure)) if was_accepted(kind, &failure) => {
            return Ok(DeliveryEnd::Accepted);
        }
        Err(StandaloneError::OptedOut(_)) => return Ok(DeliveryEnd::Refused),
        Err(StandaloneError::Waits { until, .. }) => return Ok(postponed(delivery, until, day)),
        Err(StandaloneError::Stopped) => return Ok(postponed(delivery, now, day)),
        Err(StandaloneError::Store(error)) => return Err(error),
        Err(
            error @ (StandaloneError::Failed(_)
            | StandaloneError::Disallowed { .. }
            | StandaloneError::RobotsUnread { .. }),
        ) => error.to_string(),
    };
    let then = kind.after_failure(&delivery.id, delivery.attempts, delivery.failing_since, clock::now());
    let then = match (then, asked_until) {
        (AfterFailure::Retry(_), Some(until)) if !may_wait(delivery, until) => AfterFailure::Pause,
        (AfterFailure::Retry(at), Some(until)) => AfterFailure::Retry(at.max(until)),
        (then, _) => then,
    };
    Ok(DeliveryEnd::Failed { reason, then })
}

/// The end of the delay that the receiver asked for. It holds for the message; the whole site waits for two hours at most.
fn asked_by(reply: &Reply) -> Option<DateTime<Utc>> {
    let outcome = FetchOutcome::of_response(reply.head.status.as_u16(), &reply.head.headers);
    let asked = RetryAfter::of_response(&reply.head.headers, outcome, clock::now())?;
    Some(asked.not_before())
}

/// What follows for a message that its host may not receive before a time. `day` is the day on which the attempt was counted.
fn postponed(delivery: &DueDelivery, until: DateTime<Utc>, day: i32) -> DeliveryEnd {
    let now = clock::now();
    let until = until.max(now + POSTPONED_MIN);
    if may_wait(delivery, until) {
        return DeliveryEnd::Postponed { until, counted_on: Some(day) };
    }
    let reason = format!("its host gets no request before {}", until.format("%Y-%m-%d %H:%M:%S UTC"));
    DeliveryEnd::Failed { reason, then: AfterFailure::Pause }
}

/// Whether a message may wait until a time. Messages of an unconfirmed watch wait for a few hours at most.
fn may_wait(delivery: &DueDelivery, until: DateTime<Utc>) -> bool {
    delivery.unconfirmed_since.is_none_or(|made_at| webhook::may_challenge_wait(made_at, until, clock::now()))
}

/// The headers of Standard Webhooks for one attempt.
fn headers(delivery: &DueDelivery, body: &str, at: DateTime<Utc>) -> HeaderMap {
    let fields = [
        (WEBHOOK_ID, delivery.id.clone()),
        (WEBHOOK_TIMESTAMP, at.timestamp().to_string()),
        (WEBHOOK_SIGNATURE, delivery.secrets.signature(&delivery.id, at, body)),
    ];
    // all of it is printable ASCII
    fields.into_iter().filter_map(|(name, text)| Some((name, HeaderValue::try_from(text).ok()?))).collect()
}

/// The effect of a response on a message.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    Accepted,
    Refused,
    Failed(String),
}

fn verdict(content: &DueContent, reply: &Reply) -> Verdict {
    let status = reply.head.status;
    if status == StatusCode::GONE {
        return Verdict::Refused;
    }
    if status.is_redirection() {
        return Verdict::Failed(format!("it answered {}; redirects are not followed", status.as_u16()));
    }
    if !status.is_success() {
        return Verdict::Failed(format!("it answered {}", status.as_u16()));
    }
    let DueContent::Challenge(challenge) = content else { return Verdict::Accepted };
    let body = reply.body.as_ref().map(|body| body.bytes.as_slice()).unwrap_or_default();
    if status == StatusCode::OK && webhook::is_confirmed_by(challenge, body) {
        Verdict::Accepted
    } else {
        Verdict::Failed("its response to the challenge was not 200 with the challenge as its body".to_owned())
    }
}

/// Whether the receiver accepted changes, although the body of its response could not be read.
fn was_accepted(kind: MessageKind, failure: &Failure) -> bool {
    kind == MessageKind::Changes && failure.head.as_ref().is_some_and(|head| head.status.is_success())
}

#[cfg(test)]
mod tests;

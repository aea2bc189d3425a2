//! Watches: confirmation of receivers, ordered delivery at least once, dead letters, caps, and deletion after an opt-out.

use std::time::Duration;

use anyhow::{Context as _, Result};
use chrono::{DateTime, TimeDelta, Utc};
use manifest::SiteName;
use policy::key::{IssuedKey, KeyKind};
use policy::webhook::{AfterFailure, Message, SECRET_BYTES, WatchClient, WatchStatus, WebhookSecret};
use sqlx::{Connection as _, PgConnection};
use store::{
    DatabaseUrl, DeliveryEnd, DueDelivery, FeedEntry, FeedPosition, NewChallenge, NewDelivery, NewWatch,
    ReceiverCaps, Store, Watch, WatchCap, WatchCaps, WatchOutcome, WatchTarget, WatchWithChanges,
};

use crate::build::{found, later, site, start, url, visited};
use crate::harness::Db;

const CAPS: WatchCaps = WatchCaps {
    of_receiver: 2,
    unconfirmed_of_receiver: 2,
    of_client: 99,
    unconfirmed_of_client: 99,
    of_all: 3,
    unconfirmed_of_all: 3,
};
const SITE: &str = "shop.example";
const RECEIVER: &str = "https://hooks.reader.example/changes";

fn secret(byte: u8) -> WebhookSecret {
    WebhookSecret::new(&[byte; SECRET_BYTES])
}

fn challenge(id: &str) -> NewChallenge {
    NewChallenge { id: format!("challenge-{id}"), challenge: format!("answer-{id}") }
}

/// Caps that no test reaches.
pub(crate) const MANY: WatchCaps = WatchCaps {
    of_receiver: 99,
    unconfirmed_of_receiver: 99,
    of_client: 99,
    unconfirmed_of_client: 99,
    of_all: 99,
    unconfirmed_of_all: 99,
};

/// A watch of a search.
pub(crate) fn search_watch(id: &str) -> NewWatch {
    NewWatch { target: WatchTarget::Search("q=book&format=awp".to_owned()), ..watch(id, RECEIVER) }
}

/// A watch of another site.
pub(crate) fn watch_of(id: &str, site: SiteName, at: DateTime<Utc>) -> NewWatch {
    NewWatch { target: WatchTarget::Site(site), at, ..watch(id, RECEIVER) }
}

fn watch(id: &str, receiver: &str) -> NewWatch {
    NewWatch {
        id: id.to_owned(),
        target: WatchTarget::Site(site(SITE)),
        receiver: url(receiver),
        client: client(1),
        token_hash: IssuedKey::new(KeyKind::Watch, &[1; 32]).hash,
        secret: secret(1),
        at: start(),
        challenge: challenge(id),
    }
}

fn client(number: u32) -> WatchClient {
    WatchClient::new("secret", std::net::Ipv4Addr::from_bits(number).into())
}

async fn add(store: &Store, id: &str, receiver: &str) -> Result<WatchOutcome> {
    Ok(store.watch_add(&watch(id, receiver), CAPS).await?)
}

async fn claim(store: &Store, now: DateTime<Utc>) -> Result<Vec<DueDelivery>> {
    let mut claimed = claim_of(store, Message::Challenge, now).await?;
    claimed.extend(claim_of(store, Message::Changes, now).await?);
    Ok(claimed)
}

async fn claim_of(store: &Store, message: Message, now: DateTime<Utc>) -> Result<Vec<DueDelivery>> {
    Ok(store.deliveries_claim(message, now, now + TimeDelta::minutes(10), 9).await?)
}

async fn claim_one(store: &Store, now: DateTime<Utc>) -> Result<DueDelivery> {
    claim(store, now).await?.pop().context("a message is due")
}

/// A watch whose receiver has answered.
async fn confirmed(store: &Store, id: &str, receiver: &str) -> Result<()> {
    assert_eq!(add(store, id, receiver).await?, WatchOutcome::Added);
    let challenge = claim_one(store, start()).await?;
    Ok(store.delivery_end(&challenge, &DeliveryEnd::Accepted, start()).await?)
}

async fn change(store: &Store, text: &str, minute: i64) -> Result<()> {
    let at = format!("https://{SITE}/agent.json");
    visited(store, SITE, later(minute), vec![found(&at, text, &["book"], later(minute))]).await?;
    Ok(())
}

async fn entries(store: &Store, behind: &WatchWithChanges) -> Result<Vec<FeedEntry>> {
    Ok(store.feed_of_site_after(&behind.site, behind.position, 9).await?)
}

/// Stores the next message of the watch that is behind; false if there is none or another worker was faster.
async fn compose(store: &Store, id: &str, now: DateTime<Utc>) -> Result<bool> {
    let Some(behind) = store.watches_behind(9).await?.pop() else { return Ok(false) };
    Ok(store.delivery_add(&message(&behind, &entries(store, &behind).await?, id, now)).await?)
}

fn message(behind: &WatchWithChanges, changes: &[FeedEntry], id: &str, at: DateTime<Utc>) -> NewDelivery {
    NewDelivery {
        id: id.to_owned(),
        watch_id: behind.id.clone(),
        after: behind.position,
        first: changes[0].position,
        last: changes[changes.len() - 1].position,
        body: format!("{} changes", changes.len()),
        sites: Vec::new(),
        at,
    }
}

async fn find(store: &Store, id: &str) -> Result<Watch> {
    store.watch_find(id).await?.context("the watch")
}

fn failed(then: AfterFailure) -> DeliveryEnd {
    DeliveryEnd::Failed { reason: "it answered 500".into(), then }
}

/// Rows in each table of watches, for a dump.
pub(crate) async fn fill(store: &Store) -> Result<()> {
    confirmed(store, "moved", RECEIVER).await?;
    assert!(store.watch_rotate("moved", &secret(2), later(9)).await?);
    let caps = ReceiverCaps { requests: 9, challenges: 9 };
    assert!(store.receiver_count(&site("reader.example"), 20_000, Message::Challenge, caps).await?);
    assert_eq!(add(store, "waits", RECEIVER).await?, WatchOutcome::Added);
    let waits = claim_one(store, start()).await?;
    store.delivery_end(&waits, &failed(AfterFailure::Retry(later(9))), start()).await?;
    assert_eq!(store.watch_add(&search_watch("searches"), MANY).await?, WatchOutcome::Added);
    Ok(())
}

pub(crate) async fn a_watch_delivers_only_after_its_receiver_answered(Db { store, .. }: Db) -> Result<()> {
    change(&store, "before", 0).await?;
    assert_eq!(add(&store, "w1", RECEIVER).await?, WatchOutcome::Added);
    change(&store, "after", 1).await?;
    assert!(store.watches_behind(9).await?.is_empty(), "the receiver has not answered");
    let challenge = claim_one(&store, start()).await?;
    assert_eq!(challenge.content.message(), Message::Challenge);
    assert_eq!((challenge.attempts, challenge.receiver.as_str()), (1, RECEIVER));
    assert_eq!(challenge.unconfirmed_since, Some(start()));
    assert!(claim(&store, start()).await?.is_empty(), "the challenge is already being sent");
    let receiver = url(RECEIVER).site();
    assert!(!store.site_receives_messages(&receiver).await?, "anybody can add a watch");
    store.delivery_end(&challenge, &DeliveryEnd::Accepted, later(2)).await?;
    assert!(store.site_receives_messages(&receiver).await?);
    let watch = find(&store, "w1").await?;
    assert_eq!((watch.status, watch.confirmed_at), (WatchStatus::Active, Some(later(2))));
    let behind = store.watches_behind(9).await?.pop().context("a watch with changes")?;
    let changes = entries(&store, &behind).await?;
    assert_eq!(changes.len(), 1, "changes from before the watch are not delivered: {changes:?}");
    assert!(!behind.is_outrun);
    assert!(store.watch_delete("w1").await? && !store.watch_delete("w1").await?);
    assert_eq!(store.watch_find("w1").await?, None);
    Ok(())
}

const fn full(cap: WatchCap) -> WatchOutcome {
    WatchOutcome::Full(cap)
}

/// A client with many names cannot use up the watches of the others.
pub(crate) async fn a_client_has_a_share_of_the_watches(Db { store, .. }: Db) -> Result<()> {
    let caps = WatchCaps { of_client: 3, unconfirmed_of_client: 2, ..MANY };
    let add = async |number: u32, of: u32| {
        let receiver = format!("https://reader{number}.example/");
        let watch = NewWatch { client: client(of), ..watch(&format!("w{number}"), &receiver) };
        anyhow::Ok(store.watch_add(&watch, caps).await?)
    };
    let answer = async || {
        for challenge in claim(&store, start()).await? {
            store.delivery_end(&challenge, &DeliveryEnd::Accepted, start()).await?;
        }
        anyhow::Ok(())
    };
    for number in [1, 2] {
        assert_eq!(add(number, 7).await?, WatchOutcome::Added);
    }
    assert_eq!(add(3, 7).await?, full(WatchCap::UnconfirmedOfClient));
    assert_eq!(add(3, 8).await?, WatchOutcome::Added, "another client");
    answer().await?;
    assert_eq!(add(4, 7).await?, WatchOutcome::Added);
    assert_eq!(add(5, 7).await?, full(WatchCap::Client), "confirmed or not");
    answer().await?;
    assert_eq!(add(5, 7).await?, full(WatchCap::Client));
    assert_eq!(add(5, 8).await?, WatchOutcome::Added);
    assert!(store.watch_delete("w1").await?);
    assert_eq!(add(6, 7).await?, WatchOutcome::Added, "the deleted one makes room");
    Ok(())
}

pub(crate) async fn watches_have_caps(Db { store, .. }: Db) -> Result<()> {
    let other = |number: u8| format!("https://reader{number}.example/");
    assert_eq!(add(&store, "a", RECEIVER).await?, WatchOutcome::Added);
    assert_eq!(add(&store, "b", "https://other.reader.example/").await?, WatchOutcome::Added);
    assert_eq!(add(&store, "c", RECEIVER).await?, full(WatchCap::UnconfirmedOfReceiver));
    assert_eq!(add(&store, "c", &other(1)).await?, WatchOutcome::Added);
    assert_eq!(add(&store, "d", &other(2)).await?, full(WatchCap::UnconfirmedOfAll));
    for challenge in claim(&store, start()).await? {
        store.delivery_end(&challenge, &DeliveryEnd::Accepted, start()).await?;
    }
    let active = store.watches_page(None, 9).await?;
    assert!(active.iter().all(|watch| watch.status == WatchStatus::Active), "{active:?}");
    assert_eq!(add(&store, "d", RECEIVER).await?, full(WatchCap::Receiver));
    assert_eq!(add(&store, "d", &other(2)).await?, full(WatchCap::All));
    let page = store.watches_page(Some("a"), 1).await?;
    assert_eq!(page.iter().map(|watch| watch.id.as_str()).collect::<Vec<_>>(), ["b"]);
    Ok(())
}

pub(crate) async fn changes_are_delivered_in_order(Db { store, .. }: Db) -> Result<()> {
    change(&store, "before", 0).await?;
    confirmed(&store, "w1", RECEIVER).await?;
    change(&store, "first", 1).await?;
    assert!(compose(&store, "m1", later(1)).await?);
    change(&store, "second", 2).await?;
    assert!(!compose(&store, "m2", later(2)).await?, "one message waits");
    let first = claim_one(&store, later(2)).await?;
    store.delivery_end(&first, &failed(AfterFailure::Retry(later(5))), later(2)).await?;
    assert!(claim(&store, later(4)).await?.is_empty(), "later");
    assert!(!compose(&store, "m2", later(4)).await?, "it still waits");
    let again = claim_one(&store, later(5)).await?;
    assert_eq!((&again.id, again.attempts, &again.content), (&first.id, 2, &first.content));
    store.delivery_end(&again, &DeliveryEnd::Accepted, later(5)).await?;
    assert!(compose(&store, "m2", later(6)).await?);
    assert_eq!(claim_one(&store, later(6)).await?.id, "m2");
    let watch = find(&store, "w1").await?;
    assert_eq!((watch.delivered_at, watch.failing_since), (Some(later(5)), None));
    Ok(())
}

/// Anyone may cause challenges, so challenges to slow receivers must not delay changes.
pub(crate) async fn challenges_and_changes_are_claimed_separately(Db { store, .. }: Db) -> Result<()> {
    confirmed(&store, "w1", RECEIVER).await?;
    change(&store, "first", 1).await?;
    assert_eq!(add(&store, "w2", "https://third.example/").await?, WatchOutcome::Added);
    assert!(claim_of(&store, Message::Changes, later(1)).await?.is_empty());
    assert!(compose(&store, "m1", later(1)).await?);
    let ids = |due: Vec<DueDelivery>| due.into_iter().map(|delivery| delivery.id).collect::<Vec<_>>();
    assert_eq!(ids(claim_of(&store, Message::Changes, later(1)).await?), ["m1"]);
    assert_eq!(ids(claim_of(&store, Message::Challenge, later(1)).await?), ["challenge-w2"]);
    Ok(())
}

pub(crate) async fn a_message_is_sent_again_if_its_worker_was_killed(Db { store, .. }: Db) -> Result<()> {
    confirmed(&store, "w1", RECEIVER).await?;
    change(&store, "first", 1).await?;
    assert!(compose(&store, "m1", later(1)).await?);
    let lost = claim_one(&store, later(1)).await?;
    assert!(claim(&store, later(10)).await?.is_empty());
    let again = claim_one(&store, later(11)).await?;
    assert_eq!((&again.id, again.attempts), (&lost.id, 2), "the same message, with its id");
    let postponed = DeliveryEnd::Postponed { until: later(99), counted_on: None };
    for late in [failed(AfterFailure::Pause), postponed] {
        store.delivery_end(&lost, &late, later(12)).await?;
    }
    assert_eq!(
        find(&store, "w1").await?.status,
        WatchStatus::Active,
        "the end of the lost attempt is ignored"
    );
    store.delivery_end(&again, &DeliveryEnd::Accepted, later(12)).await?;
    assert!(claim(&store, later(999)).await?.is_empty());
    Ok(())
}

pub(crate) async fn two_workers_send_different_messages(Db { store, .. }: Db) -> Result<()> {
    confirmed(&store, "w1", RECEIVER).await?;
    change(&store, "first", 1).await?;
    let behind = store.watches_behind(9).await?.pop().context("a watch with changes")?;
    let changes = entries(&store, &behind).await?;
    let (one, two) = tokio::join!(
        async { store.delivery_add(&message(&behind, &changes, "m1", later(1))).await },
        async { store.delivery_add(&message(&behind, &changes, "m2", later(1))).await },
    );
    assert!(one? ^ two?, "one of them has moved the watch");
    let (one, two) = tokio::join!(claim(&store, later(1)), claim(&store, later(1)));
    assert_eq!(one?.len() + two?.len(), 1);
    Ok(())
}

pub(crate) async fn a_dead_receiver_leaves_dead_letters_and_pauses_its_watch(
    Db { store, .. }: Db,
) -> Result<()> {
    confirmed(&store, "w1", RECEIVER).await?;
    change(&store, "first", 1).await?;
    assert!(compose(&store, "m1", later(1)).await?);
    let due = claim_one(&store, later(1)).await?;
    store.delivery_end(&due, &failed(AfterFailure::GiveUp), later(2)).await?;
    let watch = find(&store, "w1").await?;
    assert_eq!((watch.dead_letters, watch.failing_since), (1, Some(later(2))));
    let line = store.deliveries_of("w1", 9).await?.pop().context("a dead letter")?;
    assert_eq!((line.dead_at, line.next_at, line.attempts), (Some(later(2)), None, 1));
    assert_eq!(line.failure.as_deref(), Some("it answered 500"));
    assert!(line.positions.is_some() && line.message == Message::Changes);
    assert!(claim(&store, later(999)).await?.is_empty(), "the message was given up");

    change(&store, "second", 3).await?;
    assert!(compose(&store, "m2", later(3)).await?, "the next changes follow");
    let due = claim_one(&store, later(3)).await?;
    assert_eq!((due.failing_since, due.unconfirmed_since), (Some(later(2)), None));
    store.delivery_end(&due, &failed(AfterFailure::Pause), later(4)).await?;
    assert_eq!(find(&store, "w1").await?.status, WatchStatus::Paused);
    change(&store, "third", 5).await?;
    assert!(!compose(&store, "m3", later(5)).await?, "a paused watch gets no message");

    assert!(store.watch_challenge("w1", &challenge("again"), later(6)).await?);
    let due = claim_one(&store, later(6)).await?;
    assert_eq!(due.content.message(), Message::Challenge);
    store.delivery_end(&due, &DeliveryEnd::Accepted, later(6)).await?;
    assert!(
        !store.watch_challenge("w1", &challenge("more"), later(7)).await?,
        "an active watch gets no challenge"
    );
    assert!(compose(&store, "m3", later(7)).await?, "it continues where it stopped");
    let due = claim_one(&store, later(7)).await?;
    store.delivery_end(&due, &DeliveryEnd::Refused, later(7)).await?;
    assert_eq!(store.watch_find("w1").await?, None, "410 ends it");

    assert_eq!(add(&store, "w2", RECEIVER).await?, WatchOutcome::Added);
    let due = claim_one(&store, later(8)).await?;
    store.delivery_end(&due, &failed(AfterFailure::Pause), later(8)).await?;
    assert_eq!(store.watch_find("w2").await?, None, "its receiver never answered");
    Ok(())
}

pub(crate) async fn messages_to_a_domain_are_counted_by_day(Db { store, .. }: Db) -> Result<()> {
    let caps = ReceiverCaps { requests: 3, challenges: 1 };
    let reader = site("reader.example");
    let count = async |day, message| store.receiver_count(&reader, day, message, caps).await;
    assert!(count(20_000, Message::Challenge).await?);
    assert!(!count(20_000, Message::Challenge).await?);
    assert!(count(20_000, Message::Changes).await? && count(20_000, Message::Changes).await?);
    assert!(!count(20_000, Message::Changes).await? && !count(19_999, Message::Changes).await?);
    assert!(count(20_001, Message::Challenge).await?, "another day");

    confirmed(&store, "w1", RECEIVER).await?;
    change(&store, "first", 1).await?;
    assert!(compose(&store, "m1", later(1)).await?);
    assert!(count(20_001, Message::Changes).await? && count(20_001, Message::Changes).await?);
    assert!(!count(20_001, Message::Changes).await?);
    let due = claim_one(&store, later(1)).await?;
    let unsent = DeliveryEnd::Postponed { until: later(3), counted_on: Some(20_001) };
    store.delivery_end(&due, &unsent, later(1)).await?;
    assert!(count(20_001, Message::Changes).await?, "an unsent message does not count");
    assert!(claim(&store, later(2)).await?.is_empty());
    assert_eq!(claim_one(&store, later(3)).await?.attempts, 1, "an unsent message is not an attempt");
    Ok(())
}

pub(crate) async fn an_opt_out_ends_watches_of_both_sides(Db { store, .. }: Db) -> Result<()> {
    change(&store, "first", 0).await?;
    confirmed(&store, "w1", RECEIVER).await?;
    confirmed(&store, "w2", "https://elsewhere.example/").await?;
    assert_eq!(add(&store, "w3", "https://third.example/").await?, WatchOutcome::Added);
    store.site_block(&site("reader.example"), "asked", later(1)).await?;
    assert_eq!(store.watch_find("w1").await?, None, "the receiver opted out");
    store.site_block(&site(SITE), "asked", later(2)).await?;
    assert_eq!(store.watches_ended(9).await?, ["w3"], "w2 has to deliver the removal first");
    assert!(compose(&store, "m1", later(3)).await?);
    let due = claim(&store, later(3)).await?;
    let due = due.iter().find(|delivery| delivery.id == "m1").context("the removal")?;
    assert_eq!(store.watches_ended(9).await?, ["w3"]);
    store.delivery_end(due, &DeliveryEnd::Accepted, later(3)).await?;
    let mut ended = store.watches_ended(9).await?;
    ended.sort_unstable();
    assert_eq!(ended, ["w2", "w3"]);
    Ok(())
}

pub(crate) async fn an_opt_out_removes_the_site_from_waiting_messages_of_searches(
    Db { store, .. }: Db,
) -> Result<()> {
    change(&store, "before", 0).await?;
    store.watch_add(&search_watch("w1"), CAPS).await?;
    let challenge = claim_one(&store, start()).await?;
    store.delivery_end(&challenge, &DeliveryEnd::Accepted, start()).await?;
    let after = store.feed_head().await?;
    change(&store, "after", 1).await?;
    let head = store.feed_head().await?;
    let message = NewDelivery {
        id: "m1".to_owned(),
        watch_id: "w1".to_owned(),
        after,
        first: FeedPosition(after.0 + 1),
        last: head,
        body: format!(r#"{{"data":{{"results":[{{"name":"Book","site":"{SITE}"}}]}}}}"#),
        sites: vec![site(SITE)],
        at: later(1),
    };
    assert!(store.delivery_add(&message).await?);
    store.site_block(&site("other.example"), "asked", later(2)).await?;
    assert!(store.watches_of_searches(head, 9).await?.is_empty(), "its message waits");
    store.site_block(&site(SITE), "asked", later(3)).await?;
    assert!(claim(&store, later(9)).await?.is_empty(), "the message is deleted");
    let behind = store.watches_of_searches(head, 9).await?;
    assert_eq!(behind.iter().map(|watch| watch.position).collect::<Vec<_>>(), [after]);
    assert!(!store.delivery_add(&message).await?, "composed before the opt-out, stored after it");
    assert!(claim(&store, later(9)).await?.is_empty());
    assert_eq!(store.watches_of_searches(head, 9).await?, behind, "the watch has not moved");
    Ok(())
}

pub(crate) async fn an_opt_out_composes_a_message_again_that_is_just_being_stored(db: Db) -> Result<()> {
    let DatabaseUrl::Postgres(url) = &db.config.url else {
        // SQLite has one writer at a time
        return Ok(());
    };
    let store = &db.store;
    change(store, "before", 0).await?;
    store.watch_add(&search_watch("w1"), CAPS).await?;
    let challenge = claim_one(store, start()).await?;
    store.delivery_end(&challenge, &DeliveryEnd::Accepted, start()).await?;
    let after = store.feed_head().await?;
    change(store, "after", 1).await?;
    let head = store.feed_head().await?;
    // the statements of `delivery_add`, not yet committed
    let mut worker = PgConnection::connect(url).await?;
    let mut storing = worker.begin().await?;
    sqlx::query("UPDATE watch SET position = $1 WHERE id = 'w1'").bind(head.0).execute(&mut *storing).await?;
    sqlx::query(
        "INSERT INTO delivery (id, watch_id, body, first_position, last_position, created_at_ms, attempts, next_at_ms)
         VALUES ('m1', 'w1', $1, $2, $3, 0, 0, 0)",
    )
    .bind(format!(r#"{{"data":{{"results":[{{"name":"Book","site":"{SITE}"}}]}}}}"#))
    .bind(after.0 + 1)
    .bind(head.0)
    .execute(&mut *storing)
    .await?;
    let commit = async {
        while db.number("SELECT COUNT(*) FROM pg_locks WHERE NOT granted").await? == 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        anyhow::Ok(storing.commit().await?)
    };
    let opted_out = site(SITE);
    let (committed, blocked) = tokio::join!(commit, store.site_block(&opted_out, "asked", later(3)));
    committed?;
    blocked?;
    assert!(claim(store, later(9)).await?.is_empty(), "the message is deleted");
    let behind = store.watches_of_searches(head, 9).await?;
    assert_eq!(behind.iter().map(|watch| watch.position).collect::<Vec<_>>(), [after]);
    Ok(())
}

pub(crate) async fn watches_are_deleted_by_age(db: Db) -> Result<()> {
    let store = db.store.clone();
    let days = |count| start() + TimeDelta::days(count);
    let caps = ReceiverCaps { requests: 9, challenges: 9 };
    assert!(store.receiver_count(&site("reader.example"), 20_000, Message::Challenge, caps).await?);
    confirmed(&store, "kept", "https://kept.example/").await?;
    change(&store, "first", 1).await?;
    assert!(compose(&store, "m1", later(1)).await?);
    let due = claim_one(&store, later(1)).await?;
    store.delivery_end(&due, &failed(AfterFailure::Pause), later(2)).await?;
    assert_eq!(add(&store, "unanswered", RECEIVER).await?, WatchOutcome::Added);
    store.housekeeping(days(1)).await?;
    assert_eq!(db.number("SELECT COUNT(*) FROM receiver_day").await?, 1);
    assert!(store.watch_find("unanswered").await?.is_some());
    store.housekeeping(days(2)).await?;
    assert_eq!(db.number("SELECT COUNT(*) FROM receiver_day").await?, 0);
    assert_eq!(store.watch_find("unanswered").await?, None);
    assert!(claim(&store, days(2)).await?.is_empty(), "nor is its challenge sent");
    assert_eq!(find(&store, "kept").await?.dead_letters, 1);
    store.housekeeping(days(31)).await?;
    assert_eq!(find(&store, "kept").await?.dead_letters, 0);
    store.housekeeping(days(36)).await?;
    assert_eq!(store.watch_find("kept").await?, None, "it was paused for weeks");
    Ok(())
}

pub(crate) async fn rotation_keeps_the_previous_secret(Db { store, .. }: Db) -> Result<()> {
    assert_eq!(add(&store, "w1", RECEIVER).await?, WatchOutcome::Added);
    assert!(store.watch_rotate("w1", &secret(2), later(9)).await?);
    assert!(!store.watch_rotate("w2", &secret(2), later(9)).await?);
    let due = claim_one(&store, start()).await?;
    assert_eq!(due.secrets.current, secret(2));
    assert_eq!(due.secrets.old, Some((secret(1), later(9))));
    Ok(())
}

pub(crate) async fn a_watch_of_a_search_moves_over_every_change(Db { store, .. }: Db) -> Result<()> {
    store.watch_add(&search_watch("w1"), CAPS).await?;
    assert_eq!(find(&store, "w1").await?.target.search(), Some("q=book&format=awp"));
    change(&store, "after", 1).await?;
    let head = store.feed_head().await?;
    assert!(store.watches_of_searches(head, 9).await?.is_empty(), "the receiver has not answered");
    let challenge = claim_one(&store, start()).await?;
    assert_eq!(challenge.target.search(), Some("q=book&format=awp"));
    store.delivery_end(&challenge, &DeliveryEnd::Accepted, start()).await?;
    assert!(store.watches_behind(9).await?.is_empty(), "it has no site");
    assert!(store.watches_ended(9).await?.is_empty(), "it ends with its receiver");
    let behind = store.watches_of_searches(head, 9).await?;
    let [watch] = behind.as_slice() else { panic!("{behind:?}") };
    assert_eq!((watch.query.as_str(), watch.position < head), ("q=book&format=awp", true));
    assert!(store.watch_advance("w1", watch.position, head).await?);
    assert!(!store.watch_advance("w1", watch.position, head).await?, "another process has moved it");
    assert!(store.watches_of_searches(head, 9).await?.is_empty());
    change(&store, "again", 2).await?;
    let next = store.feed_head().await?;
    let message = NewDelivery {
        id: "m1".to_owned(),
        watch_id: "w1".to_owned(),
        after: head,
        first: next,
        last: next,
        body: "results".to_owned(),
        sites: vec![site("another.example")],
        at: later(3),
    };
    assert!(store.delivery_add(&message).await?);
    change(&store, "more", 4).await?;
    let behind = store.watches_of_searches(store.feed_head().await?, 9).await?;
    assert!(behind.is_empty(), "a message waits: {behind:?}");
    Ok(())
}

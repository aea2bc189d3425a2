//! Times of requests at addresses: the owner keeps its own pace, other workers reserve a time, and none of them come close to each other.

use std::time::Duration;

use anyhow::{Context, Result};
use chrono::{DateTime, TimeDelta, Utc};
use store::{AddressSlot, ClockOutcome, ClockWrite, SlotClaim, Store};

use crate::build::{host, later, seed, site, start};
use crate::harness::Db;

const ADDRESS: [u8; 4] = [192, 0, 2, 9];
const HOLD: TimeDelta = TimeDelta::milliseconds(600);

fn write(claim: SlotClaim, from: DateTime<Utc>) -> ClockWrite {
    let (hold, latest) = (Duration::from_millis(600), from + TimeDelta::seconds(15));
    ClockWrite {
        host: host("shop.example"),
        address: Some(AddressSlot { address: ADDRESS.into(), claim, from, hold, latest }),
        next_ok_at: from + TimeDelta::seconds(3),
        not_before: None,
        requests_add: 1,
        day: 20_000,
        progress: None,
        member: None,
        lease: None,
    }
}

async fn outcome(store: &Store, claim: SlotClaim, from: DateTime<Utc>) -> Result<ClockOutcome> {
    store.clocks_save(&[write(claim, from)]).await?.pop().context("an outcome")
}

async fn next_ok_at(store: &Store) -> Result<Option<DateTime<Utc>>> {
    Ok(store.address_clocks(&[ADDRESS.into()]).await?.get(&ADDRESS.into()).copied())
}

pub(crate) async fn requests_of_owners_and_guests_are_a_gap_apart(Db { store, .. }: Db) -> Result<()> {
    let now = start();
    assert_eq!(outcome(&store, SlotClaim::Owner, now).await?, ClockOutcome::Saved);
    let second = now + HOLD;
    assert_eq!(outcome(&store, SlotClaim::Guest, now).await?, ClockOutcome::Reserved { at: second });
    let third = second + HOLD;
    assert_eq!(outcome(&store, SlotClaim::Guest, now).await?, ClockOutcome::Reserved { at: third });
    assert_eq!(next_ok_at(&store).await?, Some(third + HOLD), "later visits read the reserved times");
    // the owner plans a time between those of the two guests
    let fourth = third + HOLD;
    let planned = second + TimeDelta::milliseconds(100);
    assert_eq!(outcome(&store, SlotClaim::Owner, planned).await?, ClockOutcome::Reserved { at: fourth });
    let fifth = fourth + HOLD;
    assert_eq!(outcome(&store, SlotClaim::Owner, fifth).await?, ClockOutcome::Saved, "all have passed");
    assert_eq!(outcome(&store, SlotClaim::Owner, fifth).await?, ClockOutcome::Saved, "it keeps its own gap");
    assert_eq!(outcome(&store, SlotClaim::Guest, fifth).await?, ClockOutcome::Reserved { at: fifth + HOLD });
    let much_later = later(60);
    assert_eq!(outcome(&store, SlotClaim::Guest, much_later).await?, ClockOutcome::Saved);
    Ok(())
}

pub(crate) async fn an_owner_keeps_its_own_gap_after_the_last_guest(Db { store, .. }: Db) -> Result<()> {
    const GAP: TimeDelta = TimeDelta::milliseconds(500);
    let now = start();
    assert_eq!(outcome(&store, SlotClaim::Guest, now).await?, ClockOutcome::Saved);
    let mut at = now + HOLD;
    assert_eq!(outcome(&store, SlotClaim::Owner, now).await?, ClockOutcome::Reserved { at });
    for _ in 0..3 {
        assert_eq!(next_ok_at(&store).await?, Some(at + HOLD), "guests see the request");
        at += GAP;
        assert_eq!(outcome(&store, SlotClaim::Owner, at).await?, ClockOutcome::Saved);
    }
    assert_eq!(outcome(&store, SlotClaim::Guest, at).await?, ClockOutcome::Reserved { at: at + HOLD });
    Ok(())
}

/// The rate of a platform is that of its owner, which other workers do not exceed by more than an address allows.
pub(crate) async fn the_owner_of_a_platform_waits_for_nobody(Db { store, .. }: Db) -> Result<()> {
    let now = start();
    assert_eq!(outcome(&store, SlotClaim::Guest, now).await?, ClockOutcome::Saved, "the first request");
    assert_eq!(outcome(&store, SlotClaim::PlatformOwner, now).await?, ClockOutcome::Saved);
    let both =
        [write(SlotClaim::Guest, now), write(SlotClaim::PlatformOwner, now), write(SlotClaim::Guest, now)];
    let outcomes = store.clocks_save(&both).await?;
    let at = |number| ClockOutcome::Reserved { at: now + HOLD * number };
    assert_eq!(outcomes, [at(1), ClockOutcome::Saved, at(2)], "also within one batch");
    Ok(())
}

pub(crate) async fn a_time_that_is_too_late_is_not_reserved(Db { store, .. }: Db) -> Result<()> {
    let now = start();
    store.seeds_add(&[seed("shop.example")], now).await?;
    let soon = |claim| {
        let mut write = write(claim, now);
        write.address = write.address.map(|slot| AddressSlot { latest: now + HOLD, ..slot });
        write
    };
    let outcomes = store.clocks_save(&[soon(SlotClaim::Guest), soon(SlotClaim::Guest)]).await?;
    assert_eq!(outcomes, [ClockOutcome::Saved, ClockOutcome::Reserved { at: now + HOLD }]);
    let until = now + HOLD * 2;
    for claim in [SlotClaim::Guest, SlotClaim::Owner, SlotClaim::Guest] {
        assert_eq!(store.clocks_save(&[soon(claim)]).await?, [ClockOutcome::AddressTaken { until }]);
    }
    assert_eq!(next_ok_at(&store).await?, Some(until), "a refused request moves no clock");
    let report = store.site_report(&site("shop.example"), 1).await?.context("a report")?;
    let requests = report.state.hosts.first().context("a host")?.requests_today;
    assert_eq!(requests, 2, "a refused request is not counted");
    store.housekeeping(later(3 * 24 * 60)).await?;
    assert_eq!(next_ok_at(&store).await?, None);
    Ok(())
}

/// Several workers, each with its own connections to the database, use one address at the same time.
pub(crate) async fn concurrent_workers_use_an_address_at_successive_times(db: Db) -> Result<()> {
    const REQUESTS: usize = 8;
    let now = start();
    let stores = [Store::open(&db.config).await?, Store::open(&db.config).await?, db.store.clone()];
    let guest = async |store: &Store| {
        let mut times = Vec::new();
        while times.len() < REQUESTS {
            match outcome(store, SlotClaim::Guest, now).await? {
                ClockOutcome::Saved => times.push(now),
                ClockOutcome::Reserved { at } => times.push(at),
                other => anyhow::bail!("{other:?}"),
            }
        }
        Ok(times)
    };
    // the owner sends its next request when the gap of the one before has passed
    let owner = async |store: &Store| {
        let (mut times, mut from) = (Vec::new(), now);
        while times.len() < REQUESTS {
            let at = match outcome(store, SlotClaim::Owner, from).await? {
                ClockOutcome::Saved => from,
                ClockOutcome::Reserved { at } => at,
                other => anyhow::bail!("{other:?}"),
            };
            times.push(at);
            from = at + HOLD;
        }
        Ok::<Vec<DateTime<Utc>>, anyhow::Error>(times)
    };
    let [first, second, third] = &stores;
    let (one, two, three) = tokio::try_join!(guest(first), guest(second), owner(third))?;
    let mut times: Vec<DateTime<Utc>> = [one, two, three].concat();
    times.sort_unstable();
    let gaps: Vec<TimeDelta> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(gaps.iter().all(|gap| *gap >= HOLD), "{gaps:?}");
    for store in &stores[..2] {
        store.close().await;
    }
    Ok(())
}

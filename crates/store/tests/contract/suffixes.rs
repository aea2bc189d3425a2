//! Permits for public suffixes such as github.io: one clock for all workers.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context, Result};
use chrono::{DateTime, TimeDelta, Utc};
use store::{Store, SuffixPermit, SuffixPermitOutcome, SuffixPermitRequest};

use crate::build::start;
use crate::harness::Db;

const GAP: TimeDelta = TimeDelta::milliseconds(500);
const LIFE: TimeDelta = TimeDelta::minutes(1);

fn request(suffix: &str, from: DateTime<Utc>) -> SuffixPermitRequest {
    SuffixPermitRequest {
        suffix: suffix.to_owned(),
        from,
        latest: from + TimeDelta::seconds(15),
        gap: Duration::from_millis(500),
        open_max: 4,
        life: Duration::from_mins(1),
    }
}

async fn taken(store: &Store, request: &SuffixPermitRequest) -> Result<SuffixPermit> {
    match store.suffix_permit_take(request).await? {
        SuffixPermitOutcome::Taken(turn) => Ok(turn),
        other => anyhow::bail!("no permit: {other:?}"),
    }
}

pub(crate) async fn suffix_permits_are_a_gap_apart_and_at_most_four_are_open(
    Db { store, .. }: Db,
) -> Result<()> {
    let now = start();
    let mut turns = Vec::new();
    for number in 0..4 {
        let turn = taken(&store, &request("pages.example", now)).await?;
        assert_eq!(turn.at, now + GAP * number);
        turns.push(turn.number);
    }
    assert_eq!(store.suffix_permit_take(&request("pages.example", now)).await?, SuffixPermitOutcome::Full);
    let elsewhere = taken(&store, &request("other.example", now)).await?;
    assert_eq!(elsewhere.at, now, "each suffix has its own clock");
    store.suffix_permits_release(&[turns[1], -7]).await?;
    assert_eq!(taken(&store, &request("pages.example", now)).await?.at, now + GAP * 4);
    assert_eq!(store.suffix_permit_take(&request("pages.example", now)).await?, SuffixPermitOutcome::Full);
    store.suffix_permits_release(&turns).await?;
    store.suffix_permits_release(&[]).await?;
    let later = now + TimeDelta::minutes(5);
    assert_eq!(
        taken(&store, &request("pages.example", later)).await?.at,
        later,
        "missed slots cannot be used later"
    );
    Ok(())
}

pub(crate) async fn refuses_a_suffix_permit_that_would_start_too_late(Db { store, .. }: Db) -> Result<()> {
    let now = start();
    let soon = SuffixPermitRequest { latest: now + GAP, ..request("pages.example", now) };
    let first = taken(&store, &soon).await?;
    let second = taken(&store, &soon).await?;
    let until = now + GAP * 2;
    for _ in 0..2 {
        assert_eq!(
            store.suffix_permit_take(&soon).await?,
            SuffixPermitOutcome::Late { until },
            "a refused request does not move the clock"
        );
    }
    store.suffix_permits_release(&[first.number, second.number]).await?;
    assert_eq!(
        store.suffix_permit_take(&soon).await?,
        SuffixPermitOutcome::Late { until },
        "a release does not move the clock"
    );
    assert_eq!(taken(&store, &request("pages.example", now)).await?.at, until);
    Ok(())
}

pub(crate) async fn suffix_permits_outlive_their_worker_and_expire(db: Db) -> Result<()> {
    let now = start();
    for _ in 0..4 {
        taken(&db.store, &request("pages.example", now)).await?;
    }
    // the killed worker releases no permit, and another worker opens the database
    let other = Store::open(&db.config).await?;
    assert_eq!(
        other.suffix_permit_take(&request("pages.example", now + LIFE)).await?,
        SuffixPermitOutcome::Full
    );
    let turn = taken(&other, &request("pages.example", now + LIFE + GAP * 2)).await?;
    assert_eq!(turn.at, now + LIFE + GAP * 2, "the first two have expired");
    taken(&other, &request("pages.example", turn.at)).await?;
    assert_eq!(
        other.suffix_permit_take(&request("pages.example", turn.at)).await?,
        SuffixPermitOutcome::Full
    );
    other.housekeeping(now + TimeDelta::days(30)).await?;
    let anew = taken(&other, &request("pages.example", now)).await?;
    assert_eq!(anew.at, now, "old clocks and permits are removed");
    other.close().await;
    Ok(())
}

pub(crate) async fn concurrent_workers_get_successive_suffix_permits(Db { store, .. }: Db) -> Result<()> {
    let now = start();
    let wide = SuffixPermitRequest { open_max: 100, ..request("pages.example", now) };
    let asked = futures::future::try_join_all((0..24).map(|_| taken(&store, &wide))).await?;
    let times: BTreeSet<DateTime<Utc>> = asked.iter().map(|turn| turn.at).collect();
    let all: BTreeSet<DateTime<Utc>> = (0..24).map(|number| now + GAP * number).collect();
    assert_eq!(times, all);
    let numbers: BTreeSet<i64> = asked.iter().map(|turn| turn.number).collect();
    assert_eq!(numbers.len(), 24);
    let narrow = request("narrow.example", now);
    let asked = futures::future::try_join_all((0..24).map(|_| store.suffix_permit_take(&narrow))).await?;
    let taken = asked.iter().filter(|answer| matches!(answer, SuffixPermitOutcome::Taken(_))).count();
    assert_eq!(taken, 4, "at most four permits are open, for all workers: {asked:?}");
    asked.iter().find(|answer| **answer == SuffixPermitOutcome::Full).context("a refusal")?;
    Ok(())
}

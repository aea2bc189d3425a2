//! Leases and clocks.

use std::collections::HashSet;
use std::net::IpAddr;
use std::time::Duration;

use anyhow::{Context, Result};
use chrono::{DateTime, TimeDelta, Utc};
use policy::RobotsKind;
use serde_json::json;
use store::{
    Backend, ClockOutcome, ClockWrite, Housekeeping, LeaseRequest, LeaseToken, ParkedVisit, RobotsRecord,
    Seed, StoreError, VisitProgress, VisitRecord,
};

use crate::build::{
    found, host, later, lease, leased, request, seed, site, slot_until, start, url, visit, visited, worker,
};
use crate::harness::Db;

const LEASE: Duration = Duration::from_mins(3);

pub(crate) async fn only_one_of_two_workers_gets_a_lease(Db { store, .. }: Db) -> Result<()> {
    store.seeds_add(&[seed("one.example")], start()).await?;
    let names: Vec<String> = (0..16).map(|number| format!("w{number}")).collect();
    let requests: Vec<LeaseRequest> = names.iter().map(|name| request(name, 5, start())).collect();
    let attempts = requests.iter().map(|request| store.sites_lease(request, start()));
    let won: Vec<_> = futures::future::try_join_all(attempts).await?.into_iter().flatten().collect();
    assert_eq!(won.len(), 1);
    assert_eq!(won.first().map(|leased| leased.token.fence), Some(1));
    assert_eq!(store.stats(start()).await?.sites_leased, 1);
    Ok(())
}

pub(crate) async fn many_workers_lease_distinct_sites(Db { store, .. }: Db) -> Result<()> {
    let seeds: Vec<Seed> = (0..300).map(|number| seed(&format!("s{number}.example"))).collect();
    store.seeds_add(&seeds, start()).await?;
    let take_all = async |name: String| -> Result<Vec<String>> {
        let mut taken = Vec::new();
        loop {
            let batch = store.sites_lease(&request(&name, 7, start()), start()).await?;
            if batch.is_empty() {
                return Ok(taken);
            }
            taken.extend(batch.into_iter().map(|leased| leased.token.site.to_string()));
        }
    };
    let workers = (0..8).map(|number| take_all(format!("w{number}")));
    let taken: Vec<String> = futures::future::try_join_all(workers).await?.into_iter().flatten().collect();
    assert_eq!(taken.len(), 300);
    assert_eq!(taken.iter().collect::<HashSet<_>>().len(), 300);
    Ok(())
}

pub(crate) async fn expired_lease_goes_to_another_worker_and_its_holder_is_refused(
    Db { store, .. }: Db,
) -> Result<()> {
    let old = leased(&store, "slow.example", start()).await?.token;
    assert_eq!(old.expires_at, later(3));
    let next = request("next", 1, later(2));
    assert!(store.sites_lease(&next, later(2)).await?.is_empty(), "the lease still holds");
    let new = store.sites_lease(&next, later(3)).await?.pop().context("the lease expired")?.token;
    assert_eq!((old.fence, new.fence), (1, 2));
    let record = visit("slow.example", later(3), Vec::new());
    for error in [
        store.visit_save(&old, &record).await.err(),
        store.standalone_end(&old, &[]).await.err(),
        store.visit_park(&old, &parked(), later(3)).await.err(),
    ] {
        assert!(matches!(error, Some(StoreError::LeaseLost { .. })), "{error:?}");
    }
    assert!(store.leases_renew(std::slice::from_ref(&old), LEASE, later(3)).await?.is_empty());
    assert_eq!(store.stats(later(3)).await?.visits, 0);
    store.visit_save(&new, &record).await?;
    assert_eq!(store.stats(later(3)).await?.visits, 1);
    let again = store.visit_save(&new, &record).await.err();
    assert!(matches!(again, Some(StoreError::LeaseLost { .. })), "a visit is saved once: {again:?}");
    Ok(())
}

pub(crate) async fn renews_held_leases_only(Db { store, .. }: Db) -> Result<()> {
    let kept = leased(&store, "kept.example", start()).await?.token;
    let given_back = leased(&store, "back.example", start()).await?.token;
    store.standalone_end(&given_back, &[]).await?;
    let renewed = store.leases_renew(&[kept.clone(), given_back], LEASE, later(2)).await?;
    assert_eq!(renewed.len(), 1);
    assert_eq!(renewed.first().map(|token| (token.fence, token.expires_at)), Some((1, later(5))));
    let only = Some(vec![site("kept.example")]);
    let other = LeaseRequest { only, ..request("other", 1, later(4)) };
    assert!(store.sites_lease(&other, later(4)).await?.is_empty());
    // The lease expired, but no other worker took it: the holder may continue.
    assert_eq!(store.leases_renew(&renewed, LEASE, later(9)).await?.len(), 1);
    assert!(store.leases_renew(&[], LEASE, later(9)).await?.is_empty());
    Ok(())
}

fn parked() -> ParkedVisit {
    let progress = json!({ "next_path": 7, "text": "ümläut \u{0} and \"quotes\"" });
    ParkedVisit { resume_at: later(30), reason: "Crawl-delay: 1800".into(), progress, claim: None }
}

pub(crate) async fn released_site_is_due_again_and_keeps_its_progress(Db { store, .. }: Db) -> Result<()> {
    let token = leased(&store, "slow.example", start()).await?.token;
    store.visit_park(&token, &parked(), start()).await?;
    let resumed = lease(&store, "slow.example", later(30)).await?;
    store.standalone_end(&resumed.token, &[]).await?;
    let again =
        store.sites_lease(&request("w", 1, later(31)), later(31)).await?.pop().context("due again")?;
    assert_eq!(again.site.parked, Some(parked()));
    assert_eq!(again.token.fence, 3);
    Ok(())
}

pub(crate) async fn parked_visit_resumes_at_its_progress(Db { store, .. }: Db) -> Result<()> {
    let token = leased(&store, "slow.example", start()).await?.token;
    assert!(store.parked_list(10).await?.is_empty());
    store.visit_park(&token, &parked(), start()).await?;
    let listed = (site("slow.example"), later(30), "Crawl-delay: 1800".to_owned());
    assert_eq!(store.parked_idle_list(start(), 10).await?, std::slice::from_ref(&listed));
    assert_eq!(store.stats(start()).await?.sites_parked, 1);
    assert_eq!(store.next_due_at().await?, Some(later(30)));
    assert!(store.sites_lease(&request("w", 1, later(29)), later(29)).await?.is_empty());
    let resumed = store.sites_lease(&request("w", 1, later(30)), later(30)).await?.pop().context("due")?;
    assert_eq!(resumed.site.parked, Some(parked()));
    assert_eq!(store.parked_list(10).await?, [listed]);
    assert!(store.parked_idle_list(later(30), 10).await?.is_empty(), "a worker resumes it");
    assert_eq!(store.stats(later(30)).await?.sites_parked, 0);
    store.visit_save(&resumed.token, &visit("slow.example", later(30), Vec::new())).await?;
    assert_eq!(lease(&store, "slow.example", later(31)).await?.site.parked, None);
    assert!(store.parked_list(10).await?.is_empty());
    Ok(())
}

pub(crate) async fn leases_a_thousand_sites_by_priority_and_time(Db { store, .. }: Db) -> Result<()> {
    for round in 0..10_u32 {
        let ranked = |number: u32| Seed {
            rank: Some([1, 50_000, 500_000, 5_000_000].get(number as usize % 4).copied().unwrap_or(1)),
            ..seed(&format!("s{round}-{number}.example"))
        };
        let seeds: Vec<Seed> = (0..100).map(ranked).collect();
        store.seeds_add(&seeds, later(i64::from(100 - round))).await?;
    }
    let mut order = Vec::new();
    loop {
        let batch = store.sites_lease(&request("w", 150, later(200)), later(200)).await?;
        if batch.is_empty() {
            break;
        }
        order.extend(batch.into_iter().map(|leased| leased.token.site.to_string()));
    }
    assert_eq!(order.len(), 1_000);
    let key = |name: &String| {
        let (round, number) = name.trim_start_matches('s').split_once('-')?;
        let number: u32 = number.split('.').next()?.parse().ok()?;
        Some((number % 4, std::cmp::Reverse(round.parse::<u32>().ok()?)))
    };
    assert!(order.is_sorted_by_key(key), "not by priority, then by planned time");
    Ok(())
}

pub(crate) async fn leases_only_the_listed_sites(Db { store, .. }: Db) -> Result<()> {
    store.seeds_add(&["a", "b", "c"].map(|name| seed(&format!("{name}.example"))), start()).await?;
    let only = Some(vec![site("c.example"), site("a.example"), site("unknown.example")]);
    let batch = store.sites_lease(&LeaseRequest { only, ..request("w", 9, start()) }, start()).await?;
    let names: HashSet<&str> = batch.iter().map(|leased| leased.token.site.as_str()).collect();
    assert_eq!(names, HashSet::from(["a.example", "c.example"]));
    Ok(())
}

/// For the host of a seed list, clocks and robots.txt are stored, but no visit is planned, and no list removes it. The first seed plans a
/// visit.
pub(crate) async fn host_of_a_seed_list_can_be_leased_and_is_never_due(Db { store, .. }: Db) -> Result<()> {
    let name = site("lists.example");
    store.site_add_unplanned(&name, start()).await?;
    assert!(store.sites_lease(&request("w", 9, later(1)), later(1)).await?.is_empty());
    assert_eq!((store.next_due_at().await?, store.sites_listed(None, 9).await?), (None, Vec::new()));
    let only = Some(vec![name.clone()]);
    let whenever = LeaseRequest { only, due_before: DateTime::<Utc>::MAX_UTC, ..request("w", 1, start()) };
    let token = store
        .sites_lease(&whenever, start())
        .await?
        .pop()
        .context("the site cannot be leased by name")?
        .token;
    assert!(store.sites_lease(&whenever, start()).await?.is_empty(), "one worker at a time");
    store.clocks_save(&[clock("lists.example", 5, 1, 1)]).await?;
    let robots = RobotsRecord {
        host: host("lists.example"),
        kind: RobotsKind::Rules,
        cause: None,
        status: Some(200),
        body: Some(b"User-agent: *\n".as_slice().into()),
        fetched_at: start(),
        expires_at: later(60),
        failures_in_row: 0,
        etag: None,
        last_modified: None,
    };
    store.standalone_end(&token, std::slice::from_ref(&robots)).await?;
    let lost = store.standalone_end(&token, &[]).await.err();
    assert!(matches!(lost, Some(StoreError::LeaseLost { .. })), "{lost:?}");
    store.site_add_unplanned(&name, later(1)).await?;
    let again =
        store.sites_lease(&whenever, later(1)).await?.pop().context("the site cannot be leased again")?;
    let known = again.site.hosts.first().context("its host")?;
    assert_eq!(
        (known.robots.as_ref(), known.next_ok_at, known.is_seeded()),
        (Some(&robots), Some(later(5)), false)
    );
    store.standalone_end(&again.token, &[]).await?;
    let report = store.site_report(&name, 1).await?.context("a known site")?;
    assert_eq!((report.summary.next_visit_at, report.summary.last_visit_at), (None, None));
    store.seeds_add(&[seed("lists.example")], later(2)).await?;
    assert_eq!(store.next_due_at().await?, Some(later(2)));
    assert_eq!(store.sites_lease(&request("w", 1, later(2)), later(2)).await?.len(), 1);
    Ok(())
}

pub(crate) async fn releases_the_leases_of_a_killed_worker(Db { store, .. }: Db) -> Result<()> {
    store.seeds_add(&["a", "b", "c"].map(|name| seed(&format!("{name}.example"))), start()).await?;
    store.sites_lease(&request("killed", 2, start()), start()).await?;
    store.sites_lease(&request("alive", 1, start()), start()).await?;
    assert_eq!(store.worker_forget(&worker("killed")).await?, 2);
    assert_eq!(store.sites_lease(&request("killed", 9, start()), start()).await?.len(), 2);
    Ok(())
}

fn clock(name: &str, minutes: i64, requests_add: u32, day: i32) -> ClockWrite {
    ClockWrite {
        host: host(name),
        address: Some(slot_until([192, 0, 2, 1].into(), later(minutes) - TimeDelta::seconds(10))),
        next_ok_at: later(minutes),
        not_before: None,
        requests_add,
        day,
        progress: None,
        member: None,
        lease: None,
    }
}

/// The clock of a request under a lease, which it renews for three minutes.
fn clock_under(token: &LeaseToken, minutes: i64) -> ClockWrite {
    let renewed = LeaseToken { expires_at: later(minutes + 3), ..token.clone() };
    ClockWrite { lease: Some(renewed), ..clock(token.site.as_str(), minutes, 1, 1) }
}

pub(crate) async fn saves_a_clock_only_under_a_lease_that_is_held(Db { store, .. }: Db) -> Result<()> {
    let old = leased(&store, "slow.example", start()).await?.token;
    let other = leased(&store, "other.example", start()).await?.token;
    let next = LeaseRequest { only: Some(vec![site("slow.example")]), ..request("next", 1, start()) };
    // a clock renews its lease, even if the lease has expired and no other worker has taken it
    assert_eq!(store.clocks_save(&[clock_under(&old, 4)]).await?, [ClockOutcome::Saved]);
    assert!(store.sites_lease(&next, later(6)).await?.is_empty(), "the clock renewed the lease");
    // a renewal that arrives late does not shorten it
    store.clocks_save(&[clock_under(&old, 1)]).await?;
    store.leases_renew(std::slice::from_ref(&old), LEASE, later(2)).await?;
    assert!(store.sites_lease(&next, later(6)).await?.is_empty());

    let new = store.sites_lease(&next, later(7)).await?.pop().context("the lease expired")?;
    let known = new.site.hosts.first().context("a host")?.next_ok_at;
    assert_eq!(known, Some(later(4)), "the next worker reads the last clock");
    let (late, held) = (clock_under(&old, 8), clock_under(&other, 8));
    let outcomes = store.clocks_save(&[late, held, clock_under(&new.token, 8)]).await?;
    assert_eq!(
        outcomes,
        [ClockOutcome::LeaseEnded, ClockOutcome::Saved, ClockOutcome::Saved],
        "only the lease that was taken over has ended"
    );
    let requests = |name: &'static str| {
        let store = &store;
        async move {
            let report = store.site_report(&site(name), 1).await?.context("a report")?;
            Ok::<_, anyhow::Error>(report.state.hosts.first().context("a host")?.requests_today)
        }
    };
    assert_eq!(requests("slow.example").await?, 3, "two of the first worker, one of the next");
    assert_eq!(requests("other.example").await?, 1, "the valid clocks of the batch are written");
    store.visit_save(&new.token, &visit("slow.example", later(8), Vec::new())).await?;
    let ended = store.clocks_save(&[clock_under(&new.token, 9)]).await?;
    assert_eq!(ended, [ClockOutcome::LeaseEnded], "a lease ends with its visit");
    Ok(())
}

/// If a takeover races with a clock write, either the write is refused or the next worker reads the clock.
pub(crate) async fn concurrent_takeover_of_a_site_refuses_or_reads_a_clock(
    Db { store, .. }: Db,
) -> Result<()> {
    let mut token = leased(&store, "slow.example", start()).await?.token;
    for round in 1..=40 {
        let now = 10 * round;
        let take_over = async {
            let leased = store.sites_lease(&request(&format!("w{round}"), 1, later(now)), later(now)).await?;
            Ok::<_, anyhow::Error>(leased.into_iter().next())
        };
        let write = async { Ok::<_, anyhow::Error>(store.clocks_save(&[clock_under(&token, now)]).await?) };
        let (successor, outcomes) = tokio::try_join!(take_over, write)?;
        if let Some(successor) = successor {
            let known = successor.site.hosts.first().context("a host")?.next_ok_at;
            let is_written = outcomes == [ClockOutcome::Saved];
            assert_eq!(is_written, known == Some(later(now)), "round {round}: {known:?} {outcomes:?}");
            token = successor.token;
        }
    }
    Ok(())
}

pub(crate) async fn next_visit_gets_the_progress_of_a_killed_visit(Db { store, .. }: Db) -> Result<()> {
    let token = leased(&store, "shop.example", start()).await?.token;
    let state = json!({ "next_path": 3, "text": "ümläut \u{0} and \"quotes\"" });
    let write = |fence, state: &serde_json::Value| ClockWrite {
        progress: Some(VisitProgress { site: site("shop.example"), fence, state: state.to_string() }),
        ..clock("shop.example", 1, 1, 1)
    };
    store.clocks_save(&[write(token.fence, &json!("older")), write(token.fence, &state)]).await?;
    let again = lease(&store, "shop.example", later(9)).await?;
    assert_eq!((again.site.interrupted, again.site.parked), (Some(state.clone()), None));
    store.clocks_save(&[write(token.fence, &json!("late"))]).await?;
    let kept = lease(&store, "shop.example", later(20)).await?;
    assert_eq!(kept.site.interrupted, Some(state), "a worker that lost its lease writes nothing");
    store.visit_save(&kept.token, &visit("shop.example", later(20), Vec::new())).await?;
    assert_eq!(lease(&store, "shop.example", later(30)).await?.site.interrupted, None);
    Ok(())
}

pub(crate) async fn housekeeping_removes_expired_clocks_and_progress(Db { store, .. }: Db) -> Result<()> {
    let token = leased(&store, "shop.example", start()).await?.token;
    let progress = VisitProgress { site: site("shop.example"), fence: token.fence, state: "{}".to_owned() };
    let write = ClockWrite { progress: Some(progress), ..clock("shop.example", 1, 1, 1) };
    store.clocks_save(std::slice::from_ref(&write)).await?;
    assert_eq!(store.housekeeping(later(60)).await?, Housekeeping::default());
    let days = |count: i64| later(count * 24 * 60);
    assert_eq!(
        store.housekeeping(days(3)).await?,
        Housekeeping { address_clocks: 1, interrupted_visits: 1, sites_compacted: 0 }
    );
    assert_eq!(lease(&store, "shop.example", days(3)).await?.site.interrupted, None);
    Ok(())
}

pub(crate) async fn saved_clocks_never_move_backward(Db { store, .. }: Db) -> Result<()> {
    visited(&store, "shop.example", start(), Vec::new()).await?;
    let retry_after = ClockWrite { not_before: Some(later(90)), ..clock("api.shop.example", 5, 1, 1) };
    store.clocks_save(&[clock("shop.example", 3, 1, 1), retry_after, clock("shop.example", 4, 1, 1)]).await?;
    store.clocks_save(&[clock("shop.example", 2, 1, 1), clock("api.shop.example", 6, 1, 1)]).await?;
    store.clocks_save(&[]).await?;
    let state = lease(&store, "shop.example", later(10)).await?.site;
    let clocks: Vec<_> =
        state.hosts.iter().map(|host| (host.host.as_str(), host.is_seeded(), host.next_ok_at)).collect();
    assert_eq!(clocks, [("api.shop.example", false, Some(later(6))), ("shop.example", true, Some(later(4)))]);
    assert_eq!(state.not_before, Some(later(90)), "Retry-After stays when a later write has none");
    let (known, unknown): (IpAddr, IpAddr) = ([192, 0, 2, 1].into(), "2001:db8::1".parse()?);
    let clocks = store.address_clocks(&[known, unknown]).await?;
    assert_eq!(clocks.len(), 1);
    assert_eq!(clocks.get(&known), Some(&(later(6) - TimeDelta::seconds(10))));
    Ok(())
}

pub(crate) async fn counts_requests_by_day(Db { store, .. }: Db) -> Result<()> {
    store.seeds_add(&[seed("shop.example")], start()).await?;
    let counted = async || -> Result<(u32, i32)> {
        let leased = lease(&store, "shop.example", start()).await?;
        store.standalone_end(&leased.token, &[]).await?;
        let host = leased.site.hosts.first().context("a host")?;
        Ok((host.requests_today, host.requests_day))
    };
    store.clocks_save(&[clock("shop.example", 1, 2, 20_000), clock("shop.example", 2, 3, 20_000)]).await?;
    assert_eq!(counted().await?, (5, 20_000));
    store.clocks_save(&[clock("shop.example", 3, 1, 20_000)]).await?;
    assert_eq!(counted().await?, (6, 20_000));
    store.clocks_save(&[clock("shop.example", 4, 1, 20_001)]).await?;
    assert_eq!(counted().await?, (1, 20_001));
    store.clocks_save(&[clock("shop.example", 5, 9, 20_000)]).await?;
    assert_eq!(counted().await?, (1, 20_001), "a late write of yesterday does not count for today");
    let writers = (0..16).map(|_| {
        let store = store.clone();
        async move {
            store.clocks_save(&[clock("shop.example", 6, 1, 20_001), clock("b.example", 6, 1, 20_001)]).await
        }
    });
    futures::future::try_join_all(writers).await?;
    assert_eq!(counted().await?, (17, 20_001));
    Ok(())
}

pub(crate) async fn postpones_a_damaged_site_and_leases_the_others(db: Db) -> Result<()> {
    let store = &db.store;
    let bytes = match store.backend() {
        Backend::Postgres => "decode('00', 'hex')",
        Backend::Sqlite => "x'00'",
    };
    let packed = format!("UPDATE site SET packed = {bytes} WHERE name = 'd5.example'");
    let damages = [
        "UPDATE site_state SET status = 'nonsense' WHERE name = 'd0.example'",
        "UPDATE host SET host = 'no host' WHERE host = 'd1.example'",
        "UPDATE robots SET kind = 'nonsense' WHERE host = 'd2.example'",
        "UPDATE resource SET url = 'nonsense' WHERE site = 'd3.example'",
        "UPDATE resource SET cache = 'nonsense' WHERE site = 'd4.example'",
        &packed,
    ];
    for number in 0..damages.len() {
        let name = format!("d{number}.example");
        if number == 5 {
            store.seeds_add(&[seed(&name)], start()).await?;
            continue;
        }
        let token = leased(store, &name, start()).await?.token;
        let robots = RobotsRecord {
            host: host(&name),
            kind: RobotsKind::Rules,
            cause: None,
            status: Some(200),
            body: None,
            fetched_at: start(),
            expires_at: later(1),
            failures_in_row: 0,
            etag: None,
            last_modified: None,
        };
        let manifest = found(&format!("https://{name}/agent.json"), "one", &["book"], start());
        let record = VisitRecord { robots: vec![robots], ..visit(&name, start(), vec![manifest]) };
        store.visit_save(&token, &record).await?;
    }
    for damage in damages {
        db.execute(damage).await?;
    }
    let now = start() + TimeDelta::days(30);
    let taken = async |places, now| -> Result<Vec<String>> {
        let leased = store.sites_lease(&request("w", places, now), now).await?;
        Ok(leased.into_iter().map(|leased| leased.token.site.to_string()).collect())
    };
    let linked =
        |name: &str| Seed::linked(url(&format!("https://{name}/b.json")), url("https://from.example/"));
    store.seeds_add(&[linked("d5.example"), seed("d5.example"), seed("whole.example")], now).await?;
    let leased = taken(2, now + TimeDelta::minutes(1)).await?;
    assert_eq!(leased, ["whole.example"], "a damaged site does not hide intact ones");
    assert!(taken(2, now + TimeDelta::minutes(2)).await?.is_empty(), "it is not leased again immediately");
    assert_eq!(store.next_due_at().await?, Some(now + TimeDelta::days(1) + TimeDelta::minutes(1)));
    db.execute("UPDATE site_state SET status = 'pending' WHERE name = 'd0.example'").await?;
    let again = taken(9, now + TimeDelta::days(2)).await?;
    assert!(again.contains(&"d0.example".to_owned()), "it is leased again after a day: {again:?}");
    Ok(())
}

pub(crate) async fn lists_a_postponed_parked_site_by_its_due_time(db: Db) -> Result<()> {
    let store = &db.store;
    let names = ["whole.example", "aside.example", "time.example", "name.example"];
    for name in names {
        let token = leased(store, name, start()).await?.token;
        store.visit_park(&token, &parked(), start()).await?;
    }
    for damage in [
        "UPDATE site_state SET status = 'nonsense' WHERE name = 'aside.example'",
        "UPDATE site SET next_visit_at_ms = -9223372036854775808 WHERE name = 'time.example'",
        "UPDATE site SET name = '!!' WHERE name = 'name.example'",
        "UPDATE site_state SET name = '!!' WHERE name = 'name.example'",
    ] {
        db.execute(damage).await?;
    }
    let listed = async || -> Result<Vec<(String, DateTime<Utc>)>> {
        let parked = store.parked_list(10).await?;
        Ok(parked.into_iter().map(|(site, at, _)| (site.to_string(), at)).collect())
    };
    let before = [("aside.example".to_owned(), later(30)), ("whole.example".to_owned(), later(30))];
    assert_eq!(listed().await?, before, "damaged sites are omitted");
    let now = later(31);
    let taken = store.sites_lease(&request("w", 9, now), now).await?;
    assert_eq!(taken.len(), 1, "the others are postponed");
    let aside = now + TimeDelta::days(1);
    let after = ["whole.example", "aside.example", "time.example"];
    let after = after.into_iter().zip([later(30), aside, aside]).map(|(name, at)| (name.to_owned(), at));
    let mut after: Vec<_> = after.collect();
    after.sort_by_key(|(name, at)| (*at, name.clone()));
    assert_eq!(listed().await?, after);
    Ok(())
}

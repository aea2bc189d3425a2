//! Sites without content are compacted into one row; reads and updates behave as before.

use anyhow::{Context, Result};
use chrono::{DateTime, TimeDelta, Utc};
use policy::{FetchOutcome, RobotsKind, Status, VisitEnd};
use serde_json::json;
use store::{
    ClockWrite, Housekeeping, LeaseToken, NextVisit, ParkedVisit, PathCheck, PathSlots, RobotsRecord, Seed,
    SeedOrigin, SeedsAdded, SitesRequest, Store, StoreError, VisitRecord,
};

use crate::build::{
    feed_after, fetch, found, host, later, lease, leased, request, says, seed, site, start, url, visit,
    visited,
};
use crate::harness::Db;

/// Number of sites without content in the test of their size, and the number of copies of each.
const NEGATIVES: usize = 100;
const NEGATIVES_OF_EACH: usize = 200;
/// Maximum size of a compacted site, including indexes.
const NEGATIVE_BYTES_MAX: i64 = 300;

fn days(count: i64) -> DateTime<Utc> {
    start() + TimeDelta::days(count)
}

/// A visit that requested twenty paths and found nothing.
fn nothing_found(name: &str, now: DateTime<Utc>) -> VisitRecord {
    let mut paths_checked = PathSlots::new();
    let day = u16::try_from(now.timestamp() / 86_400).unwrap_or_default();
    (0..20).for_each(|slot| paths_checked.set(slot, PathCheck { class: 4, day }));
    let paths = (0..20).map(|path| fetch(&format!("https://{name}/{path}"), FetchOutcome::NotFound, now));
    let robots = RobotsRecord {
        host: host(name),
        kind: RobotsKind::Rules,
        cause: None,
        status: Some(200),
        body: Some(b"User-agent: *\nDisallow: /cart\n".as_slice().into()),
        fetched_at: now,
        expires_at: now + TimeDelta::days(1),
        failures_in_row: 0,
        etag: Some("\"abc\"".into()),
        last_modified: None,
    };
    VisitRecord {
        next_visit: NextVisit { at: now + TimeDelta::days(14), reason: "nothing was found".into() },
        robots: vec![robots],
        negatives_in_row: 1,
        paths_checked,
        ..visit(name, now, paths.collect())
    }
}

async fn visited_without_content(store: &Store, name: &str, now: DateTime<Utc>) -> Result<()> {
    let token = leased(store, name, now).await?.token;
    store.visit_save(&token, &nothing_found(name, now)).await?;
    Ok(())
}

/// Number of rows in the tables in which only expanded sites have rows.
async fn rows(db: &Db) -> Result<i64> {
    db.number(
        "SELECT (SELECT COUNT(*) FROM site_state) + (SELECT COUNT(*) FROM host) + (SELECT COUNT(*) FROM robots)
              + (SELECT COUNT(*) FROM visit) + (SELECT COUNT(*) FROM resource)",
    )
    .await
}

async fn compact(store: &Store, now: DateTime<Utc>) -> Result<u64> {
    Ok(store.housekeeping(now).await?.sites_compacted)
}

pub(crate) async fn compacts_a_site_without_content_and_expands_it(db: Db) -> Result<()> {
    let store = &db.store;
    let name = site("shop.example");
    visited_without_content(store, "shop.example", start()).await?;
    let before = store.site_report(&name, 9).await?.context("the report of the site")?;
    assert_eq!(compact(store, days(1)).await?, 0, "reports of the last days are kept");
    assert_eq!(compact(store, days(3)).await?, 1);
    assert_eq!(compact(store, days(3)).await?, 0);
    assert_eq!(rows(&db).await?, 0);

    let report = store.site_report(&name, 9).await?.context("the report of the site")?;
    assert_eq!(report.summary, before.summary);
    assert_eq!(report.state.paths_checked, before.state.paths_checked);
    assert!(report.visits.is_empty() && report.state.hosts[0].is_seeded());
    let page = |status| SitesRequest { max: 9, status, ..SitesRequest::default() };
    let listed = store.sites_page(&page(Some(Status::Fresh))).await?;
    assert_eq!(listed, std::slice::from_ref(&before.summary));
    assert_eq!(store.sites_count(&page(Some(Status::Fresh))).await?, 1);
    assert_eq!(store.sites_count(&page(Some(Status::Pending))).await?, 0);
    let stats = store.stats(days(3)).await?;
    assert_eq!(
        (stats.sites, stats.visits, stats.last_visit_at),
        (1, 1, Some(start() + TimeDelta::seconds(30)))
    );
    assert_eq!(stats.sites_by_status, [(Status::Fresh, 1)]);
    assert_eq!(store.next_due_at().await?, Some(days(14)));

    // A lease reads the site without expanding it, and a release changes nothing.
    let taken = lease(store, "shop.example", days(14)).await?;
    assert_eq!((taken.site.visits, taken.site.negatives_in_row, taken.token.fence), (1, 1, 2));
    assert_eq!(taken.site.hosts[0].robots, None, "an old robots.txt is fetched again");
    store.standalone_end(&taken.token, &[]).await?;
    assert_eq!(rows(&db).await?, 0);
    let taken = lease(store, "shop.example", days(14)).await?;
    store.visit_save(&taken.token, &nothing_found("shop.example", days(14))).await?;
    let report = store.site_report(&name, 9).await?.context("the report of the site")?;
    assert_eq!((report.state.visits, report.visits.len()), (2, 1));
    assert_eq!(report.summary.first_seen_at, before.summary.first_seen_at);
    assert_eq!(report.state.first_visit_at, before.state.first_visit_at);
    assert_eq!(compact(store, days(17)).await?, 1);
    assert_eq!(store.sites_revisit(days(16), days(18)).await?, 1, "compacted sites are revisited too");
    assert_eq!(store.next_due_at().await?, Some(days(18)));
    store.site_block(&name, "requested by mail", days(18)).await?;
    assert_eq!(store.stats(days(18)).await?.sites_by_status, [(Status::OptedOut, 1)]);
    assert_eq!(compact(store, days(30)).await?, 0, "a tombstone is not compacted");
    Ok(())
}

pub(crate) async fn does_not_compact_sites_whose_rows_are_needed(db: Db) -> Result<()> {
    let store = &db.store;
    visited(
        store,
        "rich.example",
        start(),
        vec![found("https://rich.example/agent.json", "a", &["book"], start())],
    )
    .await?;
    visited_without_content(store, "held.example", start()).await?;
    lease(store, "held.example", days(3)).await?;
    visited_without_content(store, "parked.example", start()).await?;
    let token = lease(store, "parked.example", days(3)).await?.token;
    let parked = ParkedVisit {
        resume_at: days(9),
        reason: "Crawl-delay: 86400".into(),
        progress: json!({}),
        claim: None,
    };
    store.visit_park(&token, &parked, days(3)).await?;
    let hinted = Seed { url: Some(url("https://hinted.example/agents.json")), ..seed("hinted.example") };
    store.seeds_add(&[hinted], start()).await?;
    assert_eq!(store.housekeeping(days(4)).await?, Housekeeping::default());

    // Writing a clock expands the site: the clock must be stored before the request is sent.
    visited_without_content(store, "clock.example", start()).await?;
    assert_eq!(compact(store, days(4)).await?, 1);
    let write = ClockWrite {
        host: host("clock.example"),
        next_ok_at: days(5),
        not_before: Some(days(20)),
        requests_add: 1,
        day: 20_004,
        address: None,
        progress: None,
        member: None,
        lease: None,
    };
    store.clocks_save(&[write]).await?;
    let state = store.site_report(&site("clock.example"), 1).await?.context("the report of the site")?.state;
    assert_eq!((state.visits, state.not_before), (1, Some(days(20))));
    // A compacted site keeps its Retry-After.
    assert_eq!(compact(store, days(6)).await?, 1);
    assert_eq!(lease(store, "clock.example", days(7)).await?.site.not_before, Some(days(20)));
    Ok(())
}

pub(crate) async fn compacts_seeds_until_they_have_more_data(db: Db) -> Result<()> {
    let store = &db.store;
    let seeds = [seed("shop.example"), seed("www.shop.example"), seed("inn.example")];
    let added = |added, known| SeedsAdded { added, known, ..SeedsAdded::default() };
    assert_eq!(store.seeds_add(&seeds, start()).await?, added(3, 0));
    assert_eq!(store.seeds_add(&seeds, later(1)).await?, added(0, 3));
    assert_eq!(rows(&db).await?, 0, "a seed is one row");
    assert_eq!(store.stats(later(1)).await?.sites_by_status, [(Status::Pending, 2)]);
    let state = store.site_report(&site("shop.example"), 1).await?.context("the report of the site")?.state;
    assert_eq!((state.hosts.len(), state.status, state.visits), (2, Status::Pending, 0));

    assert_eq!(
        store.seeds_add(&[seed("api.shop.example"), seed("shop.example")], later(2)).await?,
        added(1, 1)
    );
    let linked = Seed::linked(url("https://inn.example/a.json"), url("https://from.example/b.json"));
    assert_eq!(store.seeds_add(std::slice::from_ref(&linked), later(2)).await?, added(1, 0));
    assert_eq!(store.seeds_add(&[linked], later(2)).await?, added(0, 1));
    let shop = lease(store, "shop.example", later(3)).await?.site;
    let hosts: Vec<&str> = shop.hosts.iter().map(|host| host.host.as_str()).collect();
    assert_eq!(hosts, ["api.shop.example", "shop.example", "www.shop.example"]);
    assert_eq!(
        lease(store, "inn.example", later(3)).await?.site.hints[0].url,
        url("https://inn.example/a.json")
    );
    Ok(())
}

pub(crate) async fn compacted_site_keeps_its_robots_verdict(db: Db) -> Result<()> {
    let store = &db.store;
    let token = leased(store, "closed.example", start()).await?.token;
    let refused = RobotsRecord {
        host: host("closed.example"),
        kind: RobotsKind::Unreachable,
        cause: Some("HTTP 503".into()),
        status: Some(503),
        body: None,
        fetched_at: start(),
        expires_at: later(60),
        failures_in_row: 3,
        etag: None,
        last_modified: None,
    };
    let record = VisitRecord {
        end: VisitEnd::RobotsUnreachable,
        status: Status::Unreachable,
        robots: vec![refused.clone()],
        failures_in_row: 3,
        ..visit("closed.example", start(), Vec::new())
    };
    store.visit_save(&token, &record).await?;
    assert_eq!(compact(store, days(3)).await?, 1);
    let failing = store.sites_failing(9).await?;
    assert_eq!((failing.len(), failing[0].failures_in_row), (1, 3));
    assert_eq!(failing[0].last_end, Some(VisitEnd::RobotsUnreachable));
    let again = lease(store, "closed.example", days(3)).await?;
    assert_eq!(again.site.hosts[0].robots, Some(refused));
    assert_eq!(again.site.failures_in_row, 3);
    let report = store.site_report(&site("closed.example"), 1).await?.context("the site is known")?;
    assert_eq!(report.lease.map(|lease| lease.until > days(3)), Some(true));
    // a site that is not visited is not listed as failing
    store.site_block(&site("closed.example"), "by letter", days(3)).await?;
    assert!(store.sites_failing(9).await?.is_empty());
    let report = store.site_report(&site("closed.example"), 1).await?.context("the site is known")?;
    assert_eq!(report.lease, None);
    Ok(())
}

pub(crate) async fn compacted_site_takes_at_most_300_bytes(db: Db) -> Result<()> {
    let store = &db.store;
    let names: Vec<String> = (0..NEGATIVES).map(|number| format!("negative-{number}.example")).collect();
    let seeds: Vec<Seed> = names.iter().map(|name| seed(name)).collect();
    store.seeds_add(&seeds, start()).await?;
    loop {
        let batch = store.sites_lease(&request("w", 500, start()), start()).await?;
        if batch.is_empty() {
            break;
        }
        for taken in batch {
            // as in a fleet, where each site has a group
            let token = LeaseToken { address_group: Some(4_000), ..taken.token };
            store.visit_save(&token, &nothing_found(token.site.as_str(), start())).await?;
        }
    }
    assert_eq!(compact(store, days(3)).await?, NEGATIVES as u64);
    let copies: Vec<usize> = (1..NEGATIVES_OF_EACH).collect();
    let copies = serde_json::to_string(&copies)?;
    db.execute(&format!(
        "INSERT INTO site (name, priority, next_visit_at_ms, fence, packed, visits_at_rest, address_group,
                           compacted_status, compacted_failures, compacted_last_visit_at_ms)
         SELECT 'c' || value || '-' || name, priority, next_visit_at_ms + CAST(CAST(value AS TEXT) AS INTEGER), fence,
                packed, visits_at_rest, address_group, compacted_status, compacted_failures,
                compacted_last_visit_at_ms
         FROM site, json_each('{copies}')"
    ))
    .await?;
    assert_eq!(store.sites_count(&SitesRequest::default()).await?, 20_000);
    db.vacuum().await?;
    let bytes = db.bytes().await? - db.bytes_when_empty;
    let each = bytes / 20_000;
    assert!(each <= NEGATIVE_BYTES_MAX, "{each} bytes a negative site");
    Ok(())
}

pub(crate) async fn removes_sites_that_left_a_list(db: Db) -> Result<()> {
    let store = &db.store;
    let ranked = |name: &str, rank| Seed { rank: Some(rank), ..seed(name) };
    store
        .seeds_add(&[ranked("first.example", 1), ranked("fallen.example", 2), seed("left.example")], start())
        .await?;
    store.seeds_add(&[Seed { origin: SeedOrigin::Submitted, ..seed("asked.example") }], start()).await?;
    let rich = vec![found("https://left.example/agent.json", "a", &["book"], start())];
    visited(store, "left.example", start(), rich).await?;
    store.seeds_add(&[seed("gone.example"), seed("blocked.example")], start()).await?;
    store.site_block(&site("blocked.example"), "requested by mail", start()).await?;

    let list =
        [ranked("first.example", 1), ranked("fallen.example", 500_000), ranked("asked.example", 2_000_000)];
    store.seeds_relist(&list, later(1)).await?;
    let listed = store.sites_listed(None, 9).await?;
    assert_eq!(listed, ["fallen.example", "first.example", "gone.example", "left.example"].map(site));
    assert_eq!(store.sites_listed(Some(&site("first.example")), 1).await?, [site("gone.example")]);
    let held = lease(store, "gone.example", later(2)).await?.token;
    assert_eq!(store.sites_unlist(&[site("gone.example"), site("left.example")], later(2)).await?, 2);
    let late = store.visit_save(&held, &visit("gone.example", later(3), Vec::new())).await;
    assert!(matches!(late, Err(StoreError::LeaseLost { .. })), "{late:?}");
    assert_eq!(feed_after(store, 1).await?, says(&[("removed", "unlisted")]));
    assert!(store.site_report(&site("left.example"), 1).await?.is_none());
    assert_eq!(store.stats(later(3)).await?.documents, 0);
    let leased = store.sites_lease(&request("w", 9, later(4)), later(4)).await?;
    let names: Vec<&str> = leased.iter().map(|leased| leased.token.site.as_str()).collect();
    assert_eq!(
        names,
        ["first.example", "fallen.example", "asked.example"],
        "a submitted site is not among those that a list removes"
    );
    Ok(())
}

//! Claims to sites: requests to check them, their owners, and the secret of the tokens.

use anyhow::{Context as _, Result};
use chrono::{DateTime, TimeDelta, Utc};
use manifest::CapabilityId;
use policy::claim::{CheckResult, Claim, Proof};
use policy::key::KeyHash;
use serde_json::json;
use store::{CapabilitySearchCount, ParkedVisit, SearchCount, Store, VisitRecord};

use crate::build::{later, leased, request, seed, site, start, visit};
use crate::harness::Db;

/// The claim of a site whose owner has the key of this number.
pub(crate) fn owned(key: u8, now: DateTime<Utc>) -> Claim {
    Claim::default().after(CheckResult::Proven { keys: vec![hash(key)], proof: Proof::Dns }, now)
}

fn hash(key: u8) -> KeyHash {
    format!("{key:064x}").parse().expect("a hash")
}

async fn checked(store: &Store, name: &str, now: DateTime<Utc>, claim: Claim) -> Result<()> {
    let leased = leased(store, name, now).await?;
    store
        .visit_save(&leased.token, &VisitRecord { claim: Some(claim), ..visit(name, now, Vec::new()) })
        .await?;
    Ok(())
}

pub(crate) async fn a_check_is_requested_once_in_ten_minutes(Db { store, .. }: Db) -> Result<()> {
    let sky = site("sky.example");
    assert_eq!(store.claim_find(&sky).await?, None);
    let ask = async |minutes| {
        let now = later(minutes);
        store.claim_ask(&sky, now, Claim::earlier_request_max(now)).await
    };
    assert_eq!((ask(0).await?, ask(9).await?), (true, false));
    let asked = Claim { asked_at: Some(start()), ..Claim::default() };
    assert_eq!(store.claim_find(&sky).await?, Some(asked));
    assert!(ask(10).await?);
    let other = site("other.example");
    assert!(store.claim_ask(&other, later(10), start()).await?, "the limit applies to each site separately");
    Ok(())
}

pub(crate) async fn a_visit_saves_the_owner_and_keeps_the_request(Db { store, .. }: Db) -> Result<()> {
    let sky = site("sky.example");
    store.seeds_add(&[seed("sky.example")], start()).await?;
    assert!(store.claim_ask(&sky, later(1), start()).await?);
    let leased = leased(&store, "sky.example", later(2)).await?;
    assert_eq!(leased.site.claim.as_ref().and_then(|claim| claim.asked_at), Some(later(1)));
    // another request arrives during the visit
    assert!(store.claim_ask(&sky, later(20), later(10)).await?);
    let claim = owned(7, later(21));
    let record = VisitRecord { claim: Some(claim.clone()), ..visit("sky.example", later(21), Vec::new()) };
    store.visit_save(&leased.token, &record).await?;
    let saved = store.claim_find(&sky).await?.context("a claim")?;
    assert_eq!(saved, Claim { asked_at: Some(later(20)), ..claim });
    let report = store.site_report(&sky, 1).await?.context("a report")?;
    assert_eq!(report.state.claim, Some(saved.clone()));

    let unchecked = crate::build::leased(&store, "sky.example", later(2_000)).await?;
    store.visit_save(&unchecked.token, &visit("sky.example", later(2_000), Vec::new())).await?;
    assert_eq!(store.claim_find(&sky).await?.as_ref(), Some(&saved), "a visit that checked nothing");
    let missed = saved.after(CheckResult::Nothing { reason: "no\0 record".into() }, later(4_000));
    checked(&store, "sky.example", later(4_000), missed).await?;
    let missed = store.claim_find(&sky).await?.context("a claim")?;
    assert_eq!(missed.owner.as_ref().and_then(|owner| owner.missing_since), Some(later(4_000)));
    assert_eq!(missed.finding.as_deref(), Some("no proof was found: no record"));
    let ended =
        missed.after(CheckResult::Nothing { reason: "gone".into() }, later(4_000) + TimeDelta::days(15));
    checked(&store, "sky.example", later(4_000) + TimeDelta::days(15), ended).await?;
    assert_eq!(store.claim_find(&sky).await?.context("a claim")?.owner, None);
    Ok(())
}

pub(crate) async fn a_check_requested_during_a_visit_causes_another_one(Db { store, .. }: Db) -> Result<()> {
    let sky = site("sky.example");
    let due = async |minutes| {
        let now = later(minutes);
        Ok::<_, anyhow::Error>(store.sites_lease(&request("w", 1, now), now).await?.pop())
    };
    let unaware = leased(&store, "sky.example", later(1)).await?;
    assert!(store.claim_ask(&sky, later(3), start()).await?);
    let record = VisitRecord { started_at: later(2), ..visit("sky.example", later(4), Vec::new()) };
    store.visit_save(&unaware.token, &record).await?;

    let unsuccessful = due(5).await?.context("the site is due again, for the check")?;
    store.visit_save(&unsuccessful.token, &visit("sky.example", later(6), Vec::new())).await?;
    assert_eq!(due(7).await?, None, "a visit that could not check causes no other");

    let checking = due(6 + 24 * 60).await?.context("the next day")?;
    assert!(store.claim_ask(&sky, later(7 + 24 * 60), later(24 * 60)).await?);
    let claim = owned(7, later(8 + 24 * 60));
    let record = visit("sky.example", later(6 + 24 * 60), Vec::new());
    store.visit_save(&checking.token, &VisitRecord { claim: Some(claim), ..record }).await?;
    assert_eq!(due(9 + 24 * 60).await?, None, "the check was after the request");
    Ok(())
}

pub(crate) async fn a_parked_visit_saves_the_claim_that_it_checked(Db { store, .. }: Db) -> Result<()> {
    let sky = site("sky.example");
    let running = leased(&store, "sky.example", later(1)).await?;
    assert!(store.claim_ask(&sky, later(3), start()).await?);
    let parked = ParkedVisit {
        resume_at: later(24 * 60),
        reason: "Crawl-delay: 86400".into(),
        progress: json!({}),
        claim: Some(owned(7, later(5))),
    };
    store.visit_park(&running.token, &parked, later(6)).await?;
    let saved = Claim { asked_at: Some(later(3)), ..owned(7, later(5)) };
    assert_eq!(store.claim_find(&sky).await?.as_ref(), Some(&saved));

    let resumed = crate::build::lease(&store, "sky.example", later(24 * 60)).await?;
    assert_eq!(resumed.site.claim, Some(saved));
    let record = VisitRecord { started_at: later(1), ..visit("sky.example", later(25 * 60), Vec::new()) };
    store.visit_save(&resumed.token, &record).await?;
    let now = later(26 * 60);
    let due = store.sites_lease(&request("w", 1, now), now).await?;
    assert!(due.is_empty(), "the request was answered before the visit was parked: {due:?}");
    Ok(())
}

pub(crate) async fn a_compacted_site_keeps_its_owner(Db { store, .. }: Db) -> Result<()> {
    store.seeds_add(&[seed("sky.example")], start()).await?;
    checked(&store, "sky.example", start(), owned(7, start())).await?;
    let day_five = start() + TimeDelta::days(5);
    assert!(store.housekeeping(day_five).await?.sites_compacted > 0);
    let leased = leased(&store, "sky.example", day_five).await?;
    assert_eq!(leased.site.claim, Some(owned(7, start())));
    Ok(())
}

pub(crate) async fn a_block_removes_the_owner(Db { store, .. }: Db) -> Result<()> {
    store.seeds_add(&[seed("sky.example")], start()).await?;
    checked(&store, "sky.example", start(), owned(7, start())).await?;
    store.site_block(&site("sky.example"), "asked by mail", later(2)).await?;
    assert_eq!(store.claim_find(&site("sky.example")).await?, None);
    Ok(())
}

pub(crate) async fn counts_searches_of_sites_with_owners(Db { store, .. }: Db) -> Result<()> {
    checked(&store, "sky.example", start(), owned(7, start())).await?;
    checked(&store, "wet.example", start(), owned(8, start())).await?;
    let owned_sites = store.sites_owned(9).await?;
    let names: Vec<&str> = owned_sites.iter().map(|(site, _)| site.as_str()).collect();
    assert_eq!(names, ["sky.example", "wet.example"]);
    assert_eq!(store.sites_owned(1).await?.len(), 1);
    let day = i32::try_from(start().timestamp() / 86_400)?;
    let count = |name: &str, day, searches| SearchCount { site: site(name), day, searches };
    store.search_counts_add(&[count("sky.example", day, 2), count("free.example", day, 5)]).await?;
    store.search_counts_add(&[count("wet.example", day, 1), count("sky.example", day, 3)]).await?;
    store.search_counts_add(&[count("sky.example", day - 90, 1), count("sky.example", day - 91, 1)]).await?;
    let of_sky = store.search_counts_of(&site("sky.example"), day - 100).await?;
    assert_eq!(
        of_sky.iter().map(|count| (day - count.day, count.searches)).collect::<Vec<_>>(),
        [(0, 5), (90, 1), (91, 1)]
    );
    assert!(
        store.search_counts_of(&site("free.example"), 0).await?.is_empty(),
        "a site without an owner is not counted"
    );
    let shown = |name: &str, day, key: &str, searches| CapabilitySearchCount {
        site: site(name),
        day,
        capability: CapabilityId::of_key(key),
        searches,
    };
    let of_sky = async || store.capability_search_counts_of(&site("sky.example"), 0, 9).await;
    let counts = [
        shown("sky.example", day, "book", 2),
        shown("sky.example", day, "pay", 4),
        shown("free.example", day, "pay", 1),
    ];
    store.capability_search_counts_add(&counts).await?;
    store
        .capability_search_counts_add(&[
            shown("sky.example", day - 1, "book", 3),
            shown("sky.example", day - 91, "pay", 9),
        ])
        .await?;
    let books = [shown("sky.example", day, "book", 2), shown("sky.example", day - 1, "book", 3)];
    let payments = [shown("sky.example", day, "pay", 4), shown("sky.example", day - 91, "pay", 9)];
    assert_eq!(of_sky().await?, [&payments[..], &books].concat(), "the highest sum first");
    let first = store.capability_search_counts_of(&site("sky.example"), day - 1, 1).await?;
    assert_eq!(first, books, "a sum is of the days since the given one");
    assert!(store.capability_search_counts_of(&site("free.example"), 0, 9).await?.is_empty());
    for batch in 0..3 {
        let many: Vec<_> =
            (0..60).map(|number| shown("wet.example", day, &format!("{batch} {number}"), 1)).collect();
        store.capability_search_counts_add(&many).await?;
    }
    let counted = store.capability_search_counts_of(&site("wet.example"), day, 999).await?.len();
    assert!(
        (100..=120).contains(&counted),
        "a day of a site has room for 100, which one batch exceeds: {counted}"
    );
    store.housekeeping(start()).await?;
    assert_eq!(of_sky().await?, [&books[..], &payments[..1]].concat());
    let kept = store.search_counts_of(&site("sky.example"), 0).await?;
    assert_eq!(kept, [count("sky.example", day, 5), count("sky.example", day - 90, 1)]);
    store.site_block(&site("sky.example"), "asked by mail", later(2)).await?;
    assert!(store.search_counts_of(&site("sky.example"), 0).await?.is_empty());
    assert!(of_sky().await?.is_empty());
    assert_eq!(store.search_counts_of(&site("wet.example"), day).await?, [count("wet.example", day, 1)]);
    Ok(())
}

pub(crate) async fn keeps_the_first_secret(db: Db) -> Result<()> {
    assert_eq!(db.store.claim_secret_find().await?, None);
    assert_eq!(db.store.claim_secret_keep("first").await?, "first");
    assert_eq!(db.store.claim_secret_keep("second").await?, "first");
    assert_eq!(db.store.claim_secret_find().await?.as_deref(), Some("first"));
    assert_eq!(db.number("SELECT COUNT(*) FROM claim_secret").await?, 1);
    Ok(())
}

pub(crate) async fn a_visit_that_the_owner_requests_is_a_check(Db { store, .. }: Db) -> Result<()> {
    let sky = site("sky.example");
    store.seeds_add(&[seed("sky.example")], start()).await?;
    checked(&store, "sky.example", later(1), owned(7, later(1))).await?;
    let again = || store::Seed { revisit_now: true, ..seed("sky.example") };
    store.seeds_add(&[again()], later(2_000)).await?;
    let usual = crate::build::lease(&store, "sky.example", later(2_000)).await?;
    assert!(!usual.site.is_checked, "anybody may request a visit");
    // the owner requests a visit while another one is in progress
    store.visit_request_of_owner(&sky, later(2_001)).await?;
    store.seeds_add(&[again()], later(2_001)).await?;
    store.visit_save(&usual.token, &visit("sky.example", later(2_002), Vec::new())).await?;
    let next = crate::build::lease(&store, "sky.example", later(2_003)).await?;
    assert!(next.site.is_checked, "the visit after the one in progress");
    store.visit_save(&next.token, &visit("sky.example", later(2_004), Vec::new())).await?;
    let later_on = crate::build::lease(&store, "sky.example", later(99_000)).await?;
    assert!(!later_on.site.is_checked, "one visit for each request");
    store.visit_save(&later_on.token, &visit("sky.example", later(99_001), Vec::new())).await?;
    // housekeeping compacts the site
    store.housekeeping(later(200_000)).await?;
    store.visit_request_of_owner(&sky, later(200_001)).await?;
    store.seeds_add(&[again()], later(200_001)).await?;
    let report = store.site_report(&sky, 1).await?.context("a report")?;
    assert!(report.state.is_checked, "explain shows what this visit requests");
    assert!(crate::build::lease(&store, "sky.example", later(200_002)).await?.site.is_checked);
    Ok(())
}

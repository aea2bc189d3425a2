//! Who names each manifest: stored with every visit, and reported when it changes.

use anyhow::{Context as _, Result};
use chrono::{DateTime, Utc};
use manifest::{CapabilityId, Discovery, Format, ManifestId, NamedBy, Publisher};
use policy::FetchOutcome;
use store::{FetchRecord, LinkChanges, NewSource, Seed, SeedOrigin, Store, VisitRecord};

use crate::build::{feed_after, fetch, found, host, later, lease, leased, says, seed, url, visit, visited};
use crate::harness::Db;

const SHOP: &str = "shop.example";
const AWP: &str = "https://shop.example/agent.json";
const UPLOAD: &str = "https://shop.example/u/someone/agent.json";
const TENANT: &str = "https://tenant.shop.example/agent.json";
const EVIL: &str = "https://evil.example/.well-known/ai-catalog.json";

async fn named_by(store: &Store, at: &str) -> Result<NamedBy> {
    Ok(store.manifest_find(&ManifestId::of(&url(at))).await?.context("a manifest")?.named_by)
}

async fn publisher(store: &Store, at: &str) -> Result<Publisher> {
    Ok(store.manifest_find(&ManifestId::of(&url(at))).await?.context("a manifest")?.publisher)
}

fn linked(from: &str, fetch: FetchRecord) -> FetchRecord {
    FetchRecord { discovery: Discovery::CatalogEntry, linked_from: Some(url(from)), ..fetch }
}

fn upload(from: &str, now: DateTime<Utc>) -> FetchRecord {
    linked(from, found(UPLOAD, "upload", &["cancel"], now))
}

pub(crate) async fn stores_who_names_a_document_and_reports_a_change(db: Db) -> Result<()> {
    let store = &db.store;
    let own = found(AWP, "own", &["book"], later(0));
    visited(store, SHOP, later(0), vec![own, upload(EVIL, later(0))]).await?;
    assert_eq!(named_by(store, AWP).await?, NamedBy::Site);
    assert_eq!(named_by(store, UPLOAD).await?, NamedBy::Others);
    let of_sites = store.manifest_sizes_of_formats_after(&[Format::Awp], None, 9).await?;
    let of_sites: Vec<&ManifestId> = of_sites.iter().map(|size| &size.id).collect();
    assert_eq!(of_sites, [&ManifestId::of(&url(AWP))], "without those that only others name");
    let ids = [AWP, UPLOAD].map(|at| ManifestId::of(&url(at)));
    for stored in store.manifests_load(&ids).await? {
        assert_eq!(stored.is_of_site(), stored.manifest.url.as_str() == AWP);
        assert_eq!(
            stored.identity().binding.as_str(),
            if stored.is_of_site() { "bound" } else { "named_by_others" }
        );
    }
    let declared = CapabilityId::of_key(&format!("{UPLOAD}#awp:cancel"));
    let loaded = store.declarations_load(&[declared]).await?;
    assert_eq!(loaded.first().context("a declaration")?.named_by, NamedBy::Others);

    let head = store.feed_head().await?.0;
    let fresh = linked(AWP, fetch(UPLOAD, FetchOutcome::Fresh, later(9)));
    visited(store, SHOP, later(9), vec![fresh]).await?;
    assert_eq!(
        named_by(store, UPLOAD).await?,
        NamedBy::Site,
        "the site links to it, and its content is the same"
    );
    assert_eq!(feed_after(store, head).await?, says(&[("status_changed", "named_by_site")]));

    let head = store.feed_head().await?.0;
    visited(store, SHOP, later(20), vec![upload(AWP, later(20))]).await?;
    assert_eq!(feed_after(store, head).await?, says(&[]), "nothing changes again");
    visited(store, SHOP, later(30), vec![upload(EVIL, later(30))]).await?;
    assert_eq!(named_by(store, UPLOAD).await?, NamedBy::Others);
    assert_eq!(feed_after(store, head).await?, says(&[("status_changed", "named_by_others")]));
    Ok(())
}

pub(crate) async fn a_document_without_its_source_is_no_longer_named_by_the_site(db: Db) -> Result<()> {
    let store = &db.store;
    let catalog = FetchRecord {
        etag: Some("\"1\"".into()),
        cache: Some(serde_json::json!({})),
        ..found(AWP, "own", &["book"], later(0))
    };
    visited(store, SHOP, later(0), vec![catalog, upload(AWP, later(0))]).await?;
    assert_eq!(named_by(store, UPLOAD).await?, NamedBy::Site);
    let head = store.feed_head().await?.0;
    let unlinked = vec![url(UPLOAD)];
    let links = LinkChanges { unlinked, unread: vec![url(AWP)], ..LinkChanges::default() };
    // the visit requested it before the catalog, so it still has the stored source
    let changed = linked(AWP, found(UPLOAD, "changed", &["cancel"], later(9)));
    let unchanged = fetch(AWP, FetchOutcome::NotModified, later(9));
    let record = VisitRecord { links, ..visit(SHOP, later(9), vec![changed, unchanged]) };
    let token = leased(store, SHOP, later(9)).await?.token;
    store.visit_save(&token, &record).await?;
    assert_eq!(named_by(store, UPLOAD).await?, NamedBy::Others, "in the same visit");
    assert_eq!(feed_after(store, head).await?, says(&[("changed", "")]));
    visited(store, SHOP, later(20), Vec::new()).await?;
    assert_eq!(named_by(store, UPLOAD).await?, NamedBy::Others, "and from then on");
    let resources = lease(store, SHOP, later(30)).await?.site.resources;
    let of = |at: &str| resources.iter().find(|resource| resource.url == url(at)).context("a resource");
    assert_eq!(of(UPLOAD)?.linked_from, None);
    assert_eq!(
        (&of(AWP)?.etag, &of(AWP)?.cache),
        (&None, &None),
        "without validators, the next response is complete"
    );
    let relinked = vec![NewSource {
        url: url(UPLOAD),
        discovery: Discovery::Agentmap,
        linked_from: url("https://shop.example/robots.txt"),
    }];
    let links = LinkChanges { relinked, ..LinkChanges::default() };
    let token = leased(store, SHOP, later(60)).await?.token;
    let record = VisitRecord { links, ..visit(SHOP, later(60), Vec::new()) };
    store.visit_save(&token, &record).await?;
    assert_eq!(named_by(store, UPLOAD).await?, NamedBy::Site, "another source, without a request");
    Ok(())
}

/// Links that visits do not follow or find missing have no other limit on their number.
pub(crate) async fn the_links_that_a_site_keeps_are_bounded(db: Db) -> Result<()> {
    let store = &db.store;
    visited(store, SHOP, later(0), vec![found(AWP, "own", &["book"], later(0))]).await?;
    for round in 0..3 {
        let at = later(10 * (round + 1));
        let left = (0..1_000).map(|number| {
            let url = format!("https://t1.shop.example/{round}/{number}.json");
            linked(AWP, fetch(&url, FetchOutcome::NotReached, at))
        });
        visited(store, SHOP, at, left.collect()).await?;
    }
    let resources = lease(store, SHOP, later(60)).await?.site.resources;
    assert_eq!(resources.len(), 2_000);
    assert!(resources.iter().any(|resource| resource.url == url(AWP)), "the manifest stays");
    let newest = resources.iter().filter(|resource| resource.url.path().starts_with("/2/")).count();
    assert_eq!(newest, 1_000, "the oldest are deleted");
    Ok(())
}

pub(crate) async fn others_name_a_new_version_and_a_returned_document_too(db: Db) -> Result<()> {
    let store = &db.store;
    visited(store, SHOP, later(0), vec![upload(AWP, later(0))]).await?;
    assert_eq!(named_by(store, UPLOAD).await?, NamedBy::Site);
    let changed = linked(EVIL, found(UPLOAD, "changed", &["cancel"], later(9)));
    visited(store, SHOP, later(9), vec![changed]).await?;
    assert_eq!(named_by(store, UPLOAD).await?, NamedBy::Others);
    visited(store, SHOP, later(20), vec![linked(EVIL, fetch(UPLOAD, FetchOutcome::Gone, later(20)))]).await?;
    let head = store.feed_head().await?.0;
    let returned = linked(AWP, found(UPLOAD, "changed", &["cancel"], later(30)));
    visited(store, SHOP, later(30), vec![returned]).await?;
    assert_eq!(named_by(store, UPLOAD).await?, NamedBy::Site);
    assert_eq!(feed_after(store, head).await?, says(&[("added", "")]), "the only entry");
    Ok(())
}

pub(crate) async fn the_operator_names_the_host_of_a_customer(db: Db) -> Result<()> {
    let store = &db.store;
    let submitted = Seed { origin: SeedOrigin::Submitted, ..Seed::of_host(host("tenant.shop.example")) };
    let collected = Seed { origin: SeedOrigin::Collected, ..Seed::of_host(host("tenant.shop.example")) };
    store.seeds_add(&[seed(SHOP), submitted, collected], later(0)).await?;
    let card = || FetchRecord { discovery: Discovery::Root, ..found(TENANT, "card", &["book"], later(0)) };
    visited(store, SHOP, later(0), vec![card()]).await?;
    assert_eq!(
        named_by(store, TENANT).await?,
        NamedBy::Others,
        "a submission and a collected list name its host"
    );
    store.seeds_add(&[seed("tenant.shop.example")], later(1)).await?;
    let head = store.feed_head().await?.0;
    // No document is fetched.
    visited(store, SHOP, later(9), Vec::new()).await?;
    assert_eq!(named_by(store, TENANT).await?, NamedBy::Site);
    assert_eq!(feed_after(store, head).await?, says(&[("status_changed", "named_by_site")]));
    Ok(())
}

pub(crate) async fn a_change_of_naming_regroups_the_declarations(db: Db) -> Result<()> {
    let store = &db.store;
    // Equal documents at two paths are one capability if the site publishes both: its home page links to the second.
    let both = |from: &str, now| {
        vec![found(AWP, "same", &["book"], now), linked(from, found(UPLOAD, "same", &["book"], now))]
    };
    visited(store, SHOP, later(0), both(EVIL, later(0))).await?;
    let own = CapabilityId::of_key(&format!("{AWP}#awp:book"));
    assert_eq!(store.capability_shared(&own).await?, None);
    let head = store.feed_head().await?.0;
    let fresh = |from, now| vec![linked(from, fetch(UPLOAD, FetchOutcome::Fresh, now))];
    let at_home = FetchRecord {
        discovery: Discovery::HtmlLink,
        ..linked("https://shop.example/", fetch(UPLOAD, FetchOutcome::Fresh, later(9)))
    };
    visited(store, SHOP, later(9), vec![at_home]).await?;
    let shared = store.capability_shared(&own).await?.context("one capability")?;
    assert_eq!(shared.members.len(), 2);
    let mut changes: Vec<String> =
        feed_after(store, head).await?.into_iter().map(|(change, _)| change).collect();
    changes.sort();
    changes.dedup();
    assert_eq!(changes, ["merged", "status_changed"]);
    let head = store.feed_head().await?.0;
    visited(store, SHOP, later(20), fresh(EVIL, later(20))).await?;
    let changes: Vec<String> = feed_after(store, head).await?.into_iter().map(|(change, _)| change).collect();
    assert!(changes.contains(&"split".to_owned()), "{changes:?}");
    let shared = store.capability_shared(&own).await?;
    assert!(shared.is_none_or(|shared| shared.members.len() == 1));
    Ok(())
}

pub(crate) async fn the_url_decides_until_the_next_visit_of_an_earlier_schema(db: Db) -> Result<()> {
    let store = &db.store;
    let fetches = |now| vec![found(AWP, "own", &["book"], now), upload(AWP, now)];
    visited(store, SHOP, later(0), fetches(later(0))).await?;
    db.execute("UPDATE manifest SET named_by = NULL, publisher = NULL").await?;
    assert_eq!(named_by(store, AWP).await?, NamedBy::Site, "a usual path of the domain");
    assert_eq!(named_by(store, UPLOAD).await?, NamedBy::Others, "users may write there");
    assert_eq!(
        (publisher(store, AWP).await?, publisher(store, UPLOAD).await?),
        (Publisher::Site, Publisher::Unknown)
    );
    let head = store.feed_head().await?.0;
    visited(store, SHOP, later(9), fetches(later(9))).await?;
    assert_eq!(named_by(store, UPLOAD).await?, NamedBy::Site);
    assert_eq!(feed_after(store, head).await?, says(&[("status_changed", "named_by_site")]));
    assert_eq!(db.number("SELECT COUNT(*) FROM manifest WHERE named_by IS NULL").await?, 0);
    Ok(())
}

/// A catalog that does not change links to a document that fails at first.
pub(crate) async fn a_link_that_failed_stays_until_it_was_missed_in_a_row(
    Db { store, .. }: Db,
) -> Result<()> {
    const LINK: &str = "https://t1.shop.example/z.json";
    visited(&store, SHOP, later(0), vec![found(AWP, "own", &["book"], later(0))]).await?;
    for (minutes, outcome, misses) in [
        (10, FetchOutcome::RateLimited, 1),
        (20, FetchOutcome::NotReached, 1),
        (30, FetchOutcome::Timeout, 2),
        (40, FetchOutcome::NotFound, 3),
    ] {
        let failed = linked(AWP, fetch(LINK, outcome, later(minutes)));
        let of_others = linked(EVIL, fetch("https://shop.example/x.json", outcome, later(minutes)));
        visited(&store, SHOP, later(minutes), vec![failed, of_others]).await?;
        let resources = lease(&store, SHOP, later(minutes + 5)).await?.site.resources;
        let known = resources.iter().find(|known| known.url == url(LINK)).context("a row")?;
        assert_eq!(known.misses_in_row, misses, "{outcome}");
        assert_eq!(known.linked_from, Some(url(AWP)));
        assert_eq!(resources.len(), 2, "another site names it by a hint");
    }
    visited(&store, SHOP, later(50), vec![linked(AWP, found(LINK, "z", &["cancel"], later(50)))]).await?;
    let failed = linked(AWP, fetch(LINK, FetchOutcome::ServerError, later(60)));
    visited(&store, SHOP, later(60), vec![failed]).await?;
    let resources = lease(&store, SHOP, later(70)).await?.site.resources;
    let known = resources.iter().find(|known| known.url == url(LINK)).context("a row")?;
    assert_eq!(
        (known.misses_in_row, known.manifest_id.is_some()),
        (0, true),
        "an error does not count as a miss of a manifest"
    );
    Ok(())
}

/// A document that a catalog of the site lists may be a user's, until the home page links to it, too.
pub(crate) async fn a_change_of_publisher_regroups_the_declarations(db: Db) -> Result<()> {
    const CATALOG: &str = "https://shop.example/.well-known/ai-catalog.json";
    let store = &db.store;
    let own = crate::declarations::books(AWP, later(0));
    let listed = linked(CATALOG, crate::declarations::books(UPLOAD, later(0)));
    let catalog = found(CATALOG, "catalog", &["other"], later(0));
    visited(store, SHOP, later(0), vec![own, listed, catalog]).await?;
    let declared = CapabilityId::of_key(&format!("{UPLOAD}#awp:book"));
    assert_eq!(store.capability_shared(&declared).await?, None);
    assert_eq!(publisher(store, UPLOAD).await?, Publisher::Unknown);
    let page = (Discovery::HtmlLink, "https://shop.example/");
    let listed = (Discovery::CatalogEntry, CATALOG);
    for (hour, (discovery, from), moved, counts_as) in [
        (9, page, Some("merged"), Some(Publisher::Site)),
        (20, page, None, None),
        (30, listed, Some("split"), Some(Publisher::Unknown)),
    ] {
        let head = store.feed_head().await?.0;
        let relinked = vec![NewSource { url: url(UPLOAD), discovery, linked_from: url(from) }];
        let links = LinkChanges { relinked, ..LinkChanges::default() };
        let token = leased(store, SHOP, later(hour)).await?.token;
        let record = VisitRecord { links, ..visit(SHOP, later(hour), Vec::new()) };
        store.visit_save(&token, &record).await?;
        assert_eq!(store.capability_shared(&declared).await?.is_some(), hour < 30, "{hour}");
        let (statuses, moves): (Vec<_>, Vec<_>) =
            feed_after(store, head).await?.into_iter().partition(|(change, _)| change == "status_changed");
        assert_eq!(moves.first().map(|(change, _)| change.as_str()), moved, "{hour}");
        let reason = counts_as.map(|publisher| ("status_changed", format!("published_by_{publisher}")));
        let expected: Vec<(&str, &str)> =
            reason.iter().map(|(change, why)| (*change, why.as_str())).collect();
        assert_eq!(statuses, says(&expected), "{hour}");
        if let Some(expected) = counts_as {
            assert_eq!(publisher(store, UPLOAD).await?, expected, "{hour}");
            let loaded = store.declarations_load(std::slice::from_ref(&declared)).await?;
            assert_eq!(loaded.first().context("a declaration")?.publisher, expected, "{hour}");
        }
    }
    Ok(())
}

/// A program of an earlier schema does not know the publisher, and may group the declarations differently.
pub(crate) async fn what_an_earlier_program_grouped_is_grouped_again(db: Db) -> Result<()> {
    let store = &db.store;
    let own = crate::declarations::books(AWP, later(0));
    let linked = FetchRecord {
        discovery: Discovery::HtmlLink,
        ..linked("https://shop.example/", crate::declarations::books(UPLOAD, later(0)))
    };
    visited(store, SHOP, later(0), vec![own, linked]).await?;
    let declared = CapabilityId::of_key(&format!("{UPLOAD}#awp:book"));
    assert!(store.capability_shared(&declared).await?.is_some());
    visited(store, SHOP, later(9), Vec::new()).await?;
    for table in ["manifest", "manifest_version"] {
        db.execute(&format!("UPDATE {table} SET version = version + 1")).await?;
    }
    db.execute("DELETE FROM declaration").await?;
    visited(store, SHOP, later(20), Vec::new()).await?;
    assert!(store.capability_shared(&declared).await?.is_some());
    Ok(())
}

//! Limits on the indexed documents of a site.

use anyhow::{Context as _, Result};
use manifest::{Discovery, ManifestId};
use policy::{FetchOutcome, Status};
use store::{Backend, FetchRecord, FetchReport, Store};

use crate::build::{fetch, found, later, random, site, url, visited};
use crate::harness::Db;

const SHOP: &str = "shop.example";
const OWN: &str = "https://shop.example/agent.json";
const EVIL: &str = "https://evil.example/.well-known/ai-catalog.json";

fn upload(number: usize) -> String {
    format!("https://shop.example/u/{number:03}/x.json")
}

/// A document that another site links to.
fn linked(number: usize, text: &str, minutes: i64) -> FetchRecord {
    let document = found(&upload(number), text, &["book"], later(minutes));
    FetchRecord { discovery: Discovery::CatalogEntry, linked_from: Some(url(EVIL)), ..document }
}

async fn in_index(db: &Db) -> Result<i64> {
    db.number("SELECT COUNT(*) FROM manifest WHERE removed_at_ms IS NULL").await
}

/// The report of the last visit about a document.
async fn reported(store: &Store, at: &str) -> Result<FetchReport> {
    let report = store.site_report(&site(SHOP), 1).await?.context("a report")?;
    let last = report.visits.into_iter().next().context("a visit")?;
    last.fetches.into_iter().find(|fetch| fetch.url == url(at)).context("a fetch")
}

pub(crate) async fn a_site_has_at_most_500_manifests_that_it_does_not_name(db: Db) -> Result<()> {
    let store = &db.store;
    visited(store, SHOP, later(0), vec![linked(0, "first", 0)]).await?;
    let fetches = (0..501).map(|number| linked(number, "first", 1)).collect();
    assert_eq!(visited(store, SHOP, later(1), fetches).await?.manifests_added, 499);
    let documents = db.number("SELECT COUNT(*) FROM resource").await?;
    assert_eq!((in_index(&db).await?, documents), (500, 500), "nothing of the last one is stored");

    let fetches =
        vec![linked(600, "another", 9), found(OWN, "own", &["book"], later(9)), linked(0, "changed", 9)];
    visited(store, SHOP, later(9), fetches).await?;
    assert_eq!(in_index(&db).await?, 501, "the site has room for its own");
    let refused = reported(store, &upload(600)).await?;
    assert_eq!((refused.outcome, refused.manifest_id), (FetchOutcome::TooLarge, None));
    let reason = refused.reason.context("a reason")?;
    assert!(reason.contains("500 manifests that it does not name itself"), "{reason}");
    let changed = store.manifest_find(&ManifestId::of(&url(&upload(0)))).await?.context("a manifest")?;
    assert_eq!(changed.versions, 2, "a change of an indexed document is accepted");

    visited(store, SHOP, later(20), vec![fetch(&upload(0), FetchOutcome::Gone, later(20))]).await?;
    let saved = visited(store, SHOP, later(30), vec![linked(600, "another", 30)]).await?;
    assert_eq!(saved.manifests_added, 1, "a removed manifest frees its slot");
    Ok(())
}

pub(crate) async fn what_a_site_does_not_name_takes_at_most_256_mib(db: Db) -> Result<()> {
    let store = &db.store;
    let fetches = (0..9).map(|number| linked(number, &format!("text {number}"), 0)).collect();
    visited(store, SHOP, later(0), fetches).await?;
    // Sets the stored sizes of large documents.
    let bytes = 29 * 1024 * 1024;
    db.execute(&match store.backend() {
        Backend::Postgres => format!("UPDATE document SET body = decode(repeat('00', {bytes}), 'hex')"),
        Backend::Sqlite => format!("UPDATE document SET body = zeroblob({bytes})"),
    })
    .await?;
    // others still name it
    let source = linked(1, "text 1", 9);
    let unchanged = FetchRecord {
        discovery: source.discovery,
        linked_from: source.linked_from,
        ..fetch(&upload(1), FetchOutcome::NotModified, later(9))
    };
    let part = FetchRecord { manifest: None, ..linked(700, "part", 9) };
    let fetches = vec![
        linked(600, "another", 9),
        part,
        found(OWN, "own", &["book"], later(9)),
        unchanged,
        linked(0, "small", 9),
    ];
    visited(store, SHOP, later(9), fetches).await?;
    for number in [600, 700] {
        let refused = reported(store, &upload(number)).await?;
        assert_eq!(refused.outcome, FetchOutcome::TooLarge, "{number}");
        assert!(refused.reason.is_some_and(|reason| reason.contains("256 MiB")), "{number}");
    }
    assert_eq!(in_index(&db).await?, 10, "the site has room for its own");
    let changed = store.manifest_find(&ManifestId::of(&url(&upload(0)))).await?.context("a manifest")?;
    assert_eq!(changed.versions, 2, "the size does not grow");
    let saved = visited(store, SHOP, later(20), vec![linked(600, "another", 20)]).await?;
    assert_eq!(saved.manifests_added, 1, "there is room again");
    Ok(())
}

pub(crate) async fn a_manifest_takes_the_place_of_one_of_the_owner_with_the_most(db: Db) -> Result<()> {
    let store = &db.store;
    let fetches = (0..500).map(|number| linked(number, "first", i64::from(number == 7))).collect();
    assert_eq!(visited(store, SHOP, later(0), fetches).await?.manifests_added, 500);
    let good = url("https://good.example/agents.json");
    let of_good =
        |number, minutes| FetchRecord { linked_from: Some(good.clone()), ..linked(number, "good", minutes) };
    let saved = visited(store, SHOP, later(9), vec![of_good(600, 9), of_good(601, 9)]).await?;
    assert_eq!((saved.manifests_added, saved.manifests_removed), (2, 2));
    assert_eq!(in_index(&db).await?, 500);
    let ids = [600, 601, 7].map(|number| ManifestId::of(&url(&upload(number))));
    let stored = store.manifests_load(&ids).await?;
    let stored: Vec<_> = stored.iter().map(|stored| stored.manifest.id.clone()).collect();
    assert!(!stored.contains(&ids[2]), "the newest one left the index");
    assert_eq!(stored.len(), 2);
    Ok(())
}

/// A later version of the reader may store more of a document that is unchanged.
pub(crate) async fn a_larger_reading_of_an_unchanged_document_needs_room(db: Db) -> Result<()> {
    let store = &db.store;
    let fetches = (0..10).map(|number| linked(number, &format!("text {number}"), 0)).collect();
    visited(store, SHOP, later(0), fetches).await?;
    let bytes = 29 * 1024 * 1024;
    let body = match store.backend() {
        Backend::Postgres => format!("decode(repeat('00', {bytes}), 'hex')"),
        Backend::Sqlite => format!("zeroblob({bytes})"),
    };
    let again = |minutes, is_large: bool| {
        let mut read = linked(0, "text 0", minutes);
        let capabilities = read.manifest.iter_mut().flat_map(|manifest| &mut manifest.capabilities);
        for capability in capabilities.filter(|_| is_large) {
            capability.description = Some(random(7, 300_000));
        }
        FetchRecord { outcome: FetchOutcome::NotModified, ..read }
    };
    let hash = again(0, false).content_hash.context("a hash")?;
    db.execute(&format!("UPDATE document SET body = {body} WHERE hash <> '{hash}'")).await?;
    let outdated = "SELECT COUNT(*) FROM manifest WHERE reader_version = 1";
    for (minutes, is_large, left) in [(9, true, 10), (20, false, 9)] {
        db.execute("UPDATE manifest SET reader_version = 1").await?;
        visited(store, SHOP, later(minutes), vec![again(minutes, is_large)]).await?;
        assert_eq!(db.number(outdated).await?, left);
        assert_eq!(reported(store, &upload(0)).await?.outcome, FetchOutcome::NotModified);
        let stored = store.manifest_find(&ManifestId::of(&url(&upload(0)))).await?.context("a manifest")?;
        let capability = stored.manifest.capabilities.first().context("a capability")?;
        assert_eq!((stored.status, &capability.description), (Status::Fresh, &None));
    }
    assert_eq!(in_index(&db).await?, 10);
    Ok(())
}

//! Versions, removals, and the status of manifests.

use anyhow::{Context, Result};
use manifest::model::PolicyChoice;
use manifest::{ContentHash, Discovery, ManifestId};
use policy::{FetchOutcome, Status, VisitEnd};
use store::{Backend, FetchRecord, Store, VisitRecord};

use crate::build::{
    body, feed_after, fetch, found, later, leased, manifest, random, says, site, start, url, visit, visited,
};
use crate::harness::Db;

const AT: &str = "https://sky.example/agent.json";

fn id() -> ManifestId {
    ManifestId::of(&url(AT))
}

async fn standing(store: &Store) -> Result<Status> {
    Ok(store.manifest_find(&id()).await?.context("the manifest")?.status)
}

/// Saves a visit with one fetch of the manifest's URL.
async fn tried(store: &Store, minutes: i64, outcome: FetchOutcome) -> Result<()> {
    visited(store, "sky.example", later(minutes), vec![fetch(AT, outcome, later(minutes))]).await?;
    Ok(())
}

async fn read(store: &Store, minutes: i64, text: &str) -> Result<()> {
    visited(store, "sky.example", later(minutes), vec![found(AT, text, &["book", text], later(minutes))])
        .await?;
    Ok(())
}

pub(crate) async fn stores_a_version_for_each_change(Db { store, .. }: Db) -> Result<()> {
    for (minutes, text) in [(0, "one"), (1, "two"), (2, "one")] {
        read(&store, minutes, text).await?;
    }
    let expected = says(&[("added", ""), ("changed", ""), ("changed", "")]);
    assert_eq!(feed_after(&store, 0).await?, expected);
    let versions = store.manifest_versions(&id(), 100).await?;
    let listed: Vec<_> =
        versions.iter().map(|version| (version.hash.clone(), version.first_seen_at)).collect();
    let (one, two) = (ContentHash::of(&body("one")), ContentHash::of(&body("two")));
    assert_eq!(listed, [(one.clone(), later(2)), (two.clone(), later(1)), (one.clone(), start())]);
    assert_eq!(versions.first().map(|version| version.capabilities), Some(2));
    let latest = store.manifest_versions(&id(), 2).await?;
    assert_eq!(latest[..], versions[..2], "at most the requested number");
    assert_eq!(store.versions_until(&id(), &two).await?, versions[1..]);
    assert_eq!(store.versions_until(&id(), &one).await?, versions[..2], "the latest where content returned");
    assert!(store.versions_until(&id(), &ContentHash::of(b"none")).await?.is_empty());
    let stored = store.manifest_find(&id()).await?.context("the manifest")?;
    assert_eq!((stored.versions, stored.first_seen_at, stored.changed_at), (3, start(), later(2)));
    let old = store.version_find(&id(), &two).await?.context("the old version")?;
    assert_eq!(old, manifest(AT, &body("two"), &["book", "two"]));
    assert_eq!(store.document_find(&two).await?, Some(body("two")));
    let types: Vec<String> = store.semantic_types().await?.into_iter().map(|count| count.name).collect();
    assert_eq!(types, ["travel:book", "travel:one"], "only the current version is in the index");
    Ok(())
}

pub(crate) async fn removes_a_manifest_after_two_misses_and_adds_it_again(
    Db { store, .. }: Db,
) -> Result<()> {
    read(&store, 0, "one").await?;
    tried(&store, 1, FetchOutcome::NotFound).await?;
    assert_eq!(standing(&store).await?, Status::Stale);
    assert_eq!(store.manifests_load(&[id()]).await?.len(), 1, "one miss does not remove it");
    tried(&store, 2, FetchOutcome::Timeout).await?;
    tried(&store, 3, FetchOutcome::Html).await?;
    assert_eq!(standing(&store).await?, Status::CatchAll);
    assert!(store.manifests_load(&[id()]).await?.is_empty());
    assert!(store.manifests_of_site(&site("sky.example")).await?.is_empty());
    assert!(store.manifests_page(None, 9).await?.is_empty() && store.semantic_types().await?.is_empty());
    let gone = says(&[
        ("added", ""),
        ("status_changed", "not_found"),
        ("status_changed", "timeout"),
        ("removed", "html"),
    ]);
    assert_eq!(feed_after(&store, 0).await?, gone);
    tried(&store, 4, FetchOutcome::NotFound).await?;
    assert_eq!(feed_after(&store, 4).await?, says(&[]), "a removed manifest is not removed again");
    // It returns with its earlier content: this is not a new version, but it is added to the index again.
    read(&store, 5, "one").await?;
    assert_eq!(feed_after(&store, 4).await?, says(&[("added", "")]));
    let stored = store.manifests_load(&[id()]).await?;
    assert_eq!(stored.first().map(|stored| (stored.status, stored.versions)), Some((Status::Fresh, 1)));
    assert_eq!(store.stats(later(5)).await?.capabilities, 2);
    Ok(())
}

pub(crate) async fn removes_a_manifest_immediately_when_gone_or_denied(Db { store, .. }: Db) -> Result<()> {
    for (minutes, outcome) in [(0, FetchOutcome::Gone), (10, FetchOutcome::RobotsDenied)] {
        let head = store.feed_head().await?;
        read(&store, minutes, "one").await?;
        tried(&store, minutes + 1, outcome).await?;
        assert_eq!(standing(&store).await?, Status::Denied);
        assert!(store.manifest_is_withdrawn(&id()).await?);
        tried(&store, minutes + 2, FetchOutcome::NotFound).await?;
        assert!(store.manifest_is_withdrawn(&id()).await?, "a 404 does not revoke a denial");
        let rows = says(&[("added", ""), ("removed", outcome.as_str())]);
        assert_eq!(feed_after(&store, head.0).await?, rows);
        let summary =
            store.site_report(&site("sky.example"), 1).await?.context("the report of the site")?.summary;
        assert_eq!((summary.manifests, summary.capabilities, summary.formats.len()), (0, 0, 0));
    }
    read(&store, 20, "one").await?;
    assert!(!store.manifest_is_withdrawn(&id()).await?, "it is in the index again");
    for minutes in [21, 22] {
        tried(&store, minutes, FetchOutcome::NotFound).await?;
    }
    assert_eq!(standing(&store).await?, Status::Gone);
    assert!(!store.manifest_is_withdrawn(&id()).await?, "it is only missing");
    tried(&store, 23, FetchOutcome::RobotsDenied).await?;
    assert!(store.manifest_is_withdrawn(&id()).await?, "robots.txt forbids it now");
    Ok(())
}

pub(crate) async fn errors_do_not_remove_a_manifest(Db { store, .. }: Db) -> Result<()> {
    read(&store, 0, "one").await?;
    for minutes in 1..6 {
        tried(&store, minutes, FetchOutcome::ServerError).await?;
    }
    assert_eq!(standing(&store).await?, Status::Stale);
    for minutes in 6..9 {
        tried(&store, minutes, FetchOutcome::ConnectFailed).await?;
    }
    assert_eq!(standing(&store).await?, Status::Unreachable);
    tried(&store, 9, FetchOutcome::OverBudget).await?;
    assert_eq!(standing(&store).await?, Status::Unreachable, "the manifest is still in the index");
    tried(&store, 10, FetchOutcome::NotModified).await?;
    assert_eq!(standing(&store).await?, Status::Fresh);
    let rows = says(&[
        ("added", ""),
        ("status_changed", "server_error"),
        ("status_changed", "connect_failed"),
        ("status_changed", "not_modified"),
    ]);
    assert_eq!(feed_after(&store, 0).await?, rows);
    Ok(())
}

pub(crate) async fn removes_the_manifests_of_a_dead_site(Db { store, .. }: Db) -> Result<()> {
    read(&store, 0, "one").await?;
    let ended = async |minutes, end, status| -> Result<()> {
        let token = leased(&store, "sky.example", later(minutes)).await?.token;
        let record = VisitRecord { end, status, ..visit("sky.example", later(minutes), Vec::new()) };
        store.visit_save(&token, &record).await?;
        Ok(())
    };
    ended(1, VisitEnd::DnsDead, Status::Unreachable).await?;
    assert_eq!(standing(&store).await?, Status::Unreachable);
    ended(2, VisitEnd::DnsDead, Status::Unreachable).await?;
    ended(3, VisitEnd::Completed, Status::Fresh).await?;
    ended(4, VisitEnd::DnsDead, Status::Gone).await?;
    assert_eq!(standing(&store).await?, Status::Gone);
    read(&store, 5, "one").await?;
    ended(6, VisitEnd::RobotsDenied, Status::Denied).await?;
    assert_eq!(standing(&store).await?, Status::Denied);
    let rows = says(&[
        ("added", ""),
        ("status_changed", "dns_dead"),
        ("removed", "dns_dead"),
        ("added", ""),
        ("removed", "robots_denied"),
    ]);
    assert_eq!(feed_after(&store, 0).await?, rows);
    Ok(())
}

/// The main host forbids everything in a visit that did not request the document of a customer.
pub(crate) async fn an_end_at_the_sites_own_hosts_does_not_remove_documents_of_a_customer(
    Db { store, .. }: Db,
) -> Result<()> {
    const CUSTOMER: &str = "https://t1.sky.example/card.json";
    read(&store, 0, "one").await?;
    visited(&store, "sky.example", later(1), vec![found(CUSTOMER, "theirs", &["stay"], later(1))]).await?;
    let token = leased(&store, "sky.example", later(2)).await?.token;
    let denied = visit("sky.example", later(2), Vec::new());
    let denied = VisitRecord { end: VisitEnd::RobotsDenied, status: Status::Denied, ..denied };
    store.visit_save(&token, &denied).await?;
    assert_eq!(standing(&store).await?, Status::Denied);
    let theirs = ManifestId::of(&url(CUSTOMER));
    let theirs = store.manifest_find(&theirs).await?.context("the document of the customer")?;
    assert_eq!(theirs.status, Status::Fresh);
    Ok(())
}

pub(crate) async fn does_not_store_a_document_with_no_store(Db { store, .. }: Db) -> Result<()> {
    let hash = ContentHash::of(&body("one"));
    let fetched =
        |minutes, store_body| FetchRecord { store_body, ..found(AT, "one", &["book"], later(minutes)) };
    for (minutes, may_keep) in [(0, false), (1, true), (2, false), (3, true)] {
        visited(&store, "sky.example", later(minutes), vec![fetched(minutes, may_keep)]).await?;
        let stored = store.manifest_find(&id()).await?.context("the manifest is stored in any case")?;
        assert_eq!((stored.body_kept, stored.manifest.capabilities.len()), (may_keep, 1));
        assert_eq!(store.document_find(&hash).await?, may_keep.then(|| body("one")));
    }
    assert_eq!(feed_after(&store, 1).await?, says(&[]));
    // A response without a body does not change whether the document may be stored.
    let unread = FetchRecord { store_body: false, ..fetch(AT, FetchOutcome::NotModified, later(4)) };
    visited(&store, "sky.example", later(4), vec![unread]).await?;
    assert!(store.document_find(&hash).await?.is_some());
    Ok(())
}

pub(crate) async fn keeps_the_training_preference_of_the_last_response(Db { store, .. }: Db) -> Result<()> {
    let stated = |training, outcome, minutes| match outcome {
        FetchOutcome::Found => FetchRecord { training, ..found(AT, "one", &["book"], later(minutes)) },
        outcome => FetchRecord { training, ..fetch(AT, outcome, later(minutes)) },
    };
    let steps = [
        (PolicyChoice::Deny, FetchOutcome::Found, PolicyChoice::Deny),
        (PolicyChoice::Deny, FetchOutcome::NotModified, PolicyChoice::Deny),
        // a response without the document does not change its training preference
        (PolicyChoice::Unset, FetchOutcome::Fresh, PolicyChoice::Deny),
        (PolicyChoice::Unset, FetchOutcome::NotModified, PolicyChoice::Unset),
        (PolicyChoice::Allow, FetchOutcome::Found, PolicyChoice::Allow),
    ];
    for (minutes, (training, outcome, expected)) in (0..).zip(steps) {
        visited(&store, "sky.example", later(minutes), vec![stated(training, outcome, minutes)]).await?;
        let stored = store.manifest_find(&id()).await?.context("the manifest")?;
        assert_eq!(
            (stored.training, stored.training_policy()),
            (expected, expected),
            "after {minutes} minutes"
        );
    }
    // each change is in the feed, for the index and other readers
    let rows = feed_after(&store, 0).await?;
    assert_eq!(rows.iter().filter(|row| row.0 == "status_changed").count(), 2, "{rows:?}");
    Ok(())
}

pub(crate) async fn stores_equal_documents_once(Db { store, .. }: Db) -> Result<()> {
    for name in ["a", "b", "c"] {
        let (name, at) = (format!("{name}.example"), format!("https://{name}.example/agent.json"));
        visited(&store, &name, start(), vec![found(&at, "same", &["book"], start())]).await?;
    }
    let stats = store.stats(start()).await?;
    assert_eq!((stats.manifests, stats.documents, stats.capabilities), (3, 1, 3));
    let forbidden = FetchRecord {
        store_body: false,
        ..found("https://a.example/agent.json", "same", &["book"], later(1))
    };
    visited(&store, "a.example", later(1), vec![forbidden]).await?;
    assert!(store.document_find(&ContentHash::of(&body("same"))).await?.is_some(), "other sites permit it");
    Ok(())
}

pub(crate) async fn keeps_parts_of_manifests_while_permitted(Db { store, .. }: Db) -> Result<()> {
    const PART: &str = "https://sky.example/openapi.json";
    let part = |minutes, text: &str, store_body| FetchRecord {
        content_hash: Some(ContentHash::of(&body(text))),
        body: Some(body(text)),
        store_body,
        linked_from: Some(url(AT)),
        ..fetch(PART, FetchOutcome::Found, later(minutes))
    };
    let kept = async |text: &str| store.document_find(&ContentHash::of(&body(text))).await;
    let whole = found(AT, "one", &["book"], start());
    visited(&store, "sky.example", start(), vec![whole, part(0, "part", true)]).await?;
    assert_eq!(kept("part").await?, Some(body("part")));
    let unchanged = fetch(PART, FetchOutcome::NotModified, later(1));
    visited(&store, "sky.example", later(1), vec![unchanged]).await?;
    assert_eq!(kept("part").await?, Some(body("part")));
    visited(&store, "sky.example", later(2), vec![part(2, "other part", true)]).await?;
    assert_eq!((kept("part").await?, kept("other part").await?), (None, Some(body("other part"))));
    visited(&store, "sky.example", later(3), vec![part(3, "other part", false)]).await?;
    assert_eq!(kept("other part").await?, None, "it may no longer be kept");
    visited(&store, "sky.example", later(4), vec![part(4, "part", true)]).await?;

    // A part has changed although the manifest itself was not requested: this is also a new version.
    let fresh = FetchRecord { outcome: FetchOutcome::Fresh, ..found(AT, "two", &["book", "pay"], later(5)) };
    visited(&store, "sky.example", later(5), vec![fresh]).await?;
    let expected = says(&[("added", ""), ("changed", "")]);
    assert_eq!(feed_after(&store, 0).await?, expected);
    let report = store.site_report(&site("sky.example"), 1).await?.context("the report of the site")?;
    let whole = report.state.resources.iter().find(|known| known.url == url(AT)).context("the resource")?;
    assert_eq!(whole.content_hash, Some(ContentHash::of(&body("two"))));
    assert_eq!((whole.fetched_at, whole.changed_at), (start(), Some(later(5))));
    store.site_block(&site("sky.example"), "asked", later(6)).await?;
    assert_eq!(store.stats(later(6)).await?.documents, 0);
    Ok(())
}

pub(crate) async fn bounds_old_versions_of_a_site_by_bytes(db: Db) -> Result<()> {
    const LEFT: &str = "https://sky.example/left.json";
    let store = &db.store;
    let left = ManifestId::of(&url(LEFT));
    visited(store, "sky.example", start(), vec![found(LEFT, "left", &["book"], start())]).await?;
    visited(store, "sky.example", later(1), vec![fetch(LEFT, FetchOutcome::Gone, later(1))]).await?;
    for minutes in 2..6 {
        read(store, minutes, &minutes.to_string()).await?;
    }
    let other = vec![found("https://other.example/agent.json", "other", &["book"], start())];
    visited(store, "other.example", start(), other).await?;
    // Sets the stored sizes of large documents.
    let bytes = 20 * 1024 * 1024;
    db.execute(&match store.backend() {
        Backend::Postgres => format!("UPDATE document SET body = decode(repeat('00', {bytes}), 'hex')"),
        Backend::Sqlite => format!("UPDATE document SET body = zeroblob({bytes})"),
    })
    .await?;
    let hashes = async || -> Result<Vec<ContentHash>> {
        Ok(store.manifest_versions(&id(), 100).await?.into_iter().map(|version| version.hash).collect())
    };
    read(store, 10, "small").await?;
    assert_eq!(hashes().await?.len(), 5, "small visits check no old versions");
    assert!(store.manifest_find(&left).await?.is_some());

    let mut large = found(AT, "large", &["book"], later(11));
    if let Some(manifest) = &mut large.manifest {
        manifest.description = Some(random(7, 400 * 1024));
    }
    visited(store, "sky.example", later(11), vec![large]).await?;
    let kept = ["large", "small", "5", "4", "3"].map(|text| ContentHash::of(&body(text)));
    assert_eq!(hashes().await?, kept, "the last 64 MiB are kept");
    assert!(store.manifest_find(&left).await?.is_none(), "manifests that left the index are deleted too");
    let standing = store.manifest_find(&id()).await?.context("the manifest")?;
    assert_eq!((standing.versions, standing.body_kept), (6, true));
    assert_eq!(store.stats(start()).await?.documents, 6, "documents are deleted with their versions");
    assert_eq!(
        store.manifest_versions(&ManifestId::of(&url("https://other.example/agent.json")), 100).await?.len(),
        1
    );
    // A deleted manifest may return.
    visited(store, "sky.example", later(12), vec![found(LEFT, "left", &["book"], later(12))]).await?;
    assert_eq!(store.manifest_find(&left).await?.context("the manifest did not return")?.versions, 1);
    Ok(())
}

/// Anybody can submit large documents at a host of a customer, and change them.
pub(crate) async fn old_versions_of_others_are_deleted_first(db: Db) -> Result<()> {
    const EVIL: &str = "https://evil.example/.well-known/ard.json";
    const OF_OTHERS: &str = "https://a0.sky.example/u.json";
    let store = &db.store;
    let of_others = ManifestId::of(&url(OF_OTHERS));
    for minutes in 2..5 {
        read(store, minutes, &minutes.to_string()).await?;
    }
    for minutes in 5..9 {
        let document = found(OF_OTHERS, &minutes.to_string(), &["book"], later(minutes));
        let linked =
            FetchRecord { discovery: Discovery::CatalogEntry, linked_from: Some(url(EVIL)), ..document };
        visited(store, "sky.example", later(minutes), vec![linked]).await?;
    }
    // Sets the stored sizes of large documents.
    let bytes = 20 * 1024 * 1024;
    db.execute(&match store.backend() {
        Backend::Postgres => format!("UPDATE document SET body = decode(repeat('00', {bytes}), 'hex')"),
        Backend::Sqlite => format!("UPDATE document SET body = zeroblob({bytes})"),
    })
    .await?;
    let mut large = found(AT, "large", &["book"], later(11));
    if let Some(manifest) = &mut large.manifest {
        manifest.description = Some(random(7, 400 * 1024));
    }
    visited(store, "sky.example", later(11), vec![large]).await?;
    assert_eq!(
        store.manifest_versions(&id(), 100).await?.len(),
        4,
        "all versions of the site's own document"
    );
    assert_eq!(store.manifest_versions(&of_others, 100).await?.len(), 1, "the current one");
    Ok(())
}

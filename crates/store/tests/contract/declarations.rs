//! Declarations of one operation in several documents of a site.

use anyhow::{Context as _, Result};
use chrono::{DateTime, Utc};
use manifest::declaration::Member;
use manifest::model::Protocol;
use manifest::{CapabilityId, Discovery, ManifestId};
use policy::FetchOutcome;
use store::{FetchRecord, SharedCapability, Store, StoredDeclaration};

use crate::build::{feed_after, fetch, found, later, says, site, url, visited};
use crate::harness::Db;

const SHOP: &str = "shop.example";
const AWP: &str = "https://shop.example/agent.json";
const CARD: &str = "https://shop.example/.well-known/agents.json";
const OPEN_API: &str = "https://shop.example/openapi.json";

/// A manifest whose capabilities are called with POST at these paths. The text distinguishes its versions; with more examples, the
/// declaration is more complete.
fn declares(at: &str, text: &str, calls: &[(&str, &str)], is_full: bool, now: DateTime<Utc>) -> FetchRecord {
    let names: Vec<&str> = calls.iter().map(|(name, _)| *name).collect();
    let mut fetch = found(at, &format!("{at} {text}"), &names, now);
    let capabilities = fetch.manifest.iter_mut().flat_map(|manifest| &mut manifest.capabilities);
    for (capability, (_, path)) in capabilities.zip(calls) {
        capability.invocation.protocol = Some(Protocol::Http);
        capability.invocation.method = Some("POST".into());
        capability.invocation.url = Some(format!("https://shop.example{path}"));
        capability.description = is_full.then(|| "stated".into());
        capability.version = is_full.then(|| "1".into());
    }
    fetch
}

/// A manifest with one capability. The address of its call is the same in all manifests that this builds.
pub(crate) fn books(at: &str, now: DateTime<Utc>) -> FetchRecord {
    declares(at, "1", &[("book", "/book")], false, now)
}

fn id(at: &str, native_id: &str) -> CapabilityId {
    CapabilityId::of_key(&format!("{at}#awp:{native_id}"))
}

fn shared(own: &CapabilityId, members: &[(&str, &str)]) -> SharedCapability {
    let member =
        |(at, native_id): &(&str, &str)| Member { id: id(at, native_id), manifest: ManifestId::of(&url(at)) };
    SharedCapability { id: own.clone(), members: members.iter().map(member).collect() }
}

/// The manifest with the leading declaration of the capability with this id.
async fn leads_to(store: &Store, id: &CapabilityId) -> Result<String> {
    let stored = store.manifest_of_capability(id).await?.context("a manifest")?;
    let size = store.manifest_size_of_capability(id).await?.context("a size")?;
    assert_eq!(size.id, stored.manifest.id);
    Ok(stored.manifest.url.to_string())
}

/// The merges and splits in the entries after a position, without duplicates.
async fn moves(store: &Store, position: i64) -> Result<Vec<(String, String)>> {
    let mut moves = feed_after(store, position).await?;
    moves.retain(|(change, _)| change == "merged" || change == "split");
    moves.sort_unstable();
    moves.dedup();
    Ok(moves)
}

pub(crate) async fn two_declarations_of_one_operation_are_one_capability(db: Db) -> Result<()> {
    let book = [("book", "/book"), ("pay", "/pay")];
    let saved = visited(
        &db.store,
        SHOP,
        later(0),
        vec![
            declares(AWP, "1", &book, true, later(0)),
            declares(CARD, "1", &[("reserve", "/book")], false, later(0)),
        ],
    )
    .await?;
    assert_eq!(saved.capabilities, 2, "each counts once");
    assert_eq!(db.store.stats(later(1)).await?.capabilities, 2);
    let (own, other) = (id(AWP, "book"), id(CARD, "reserve"));
    let expected = shared(&own, &[(AWP, "book"), (CARD, "reserve")]);
    for asked in [&own, &other] {
        assert_eq!(db.store.capability_shared(asked).await?.as_ref(), Some(&expected));
        assert_eq!(leads_to(&db.store, asked).await?, AWP);
    }
    assert_eq!(db.store.capability_shared(&id(AWP, "pay")).await?, None);
    assert_eq!(leads_to(&db.store, &id(AWP, "pay")).await?, AWP);
    for manifest in [AWP, CARD] {
        let by = db.store.capabilities_shared_by(&[ManifestId::of(&url(manifest))]).await?;
        assert_eq!(by, std::slice::from_ref(&expected));
    }
    assert_eq!(db.store.capabilities_shared_of_site(&site(SHOP)).await?, [expected]);
    let moved = format!("{other} into {own}");
    let mut feed = feed_after(&db.store, 0).await?;
    feed.sort_unstable();
    assert_eq!(feed, says(&[("added", ""), ("added", ""), ("merged", &moved), ("merged", &moved)]));
    Ok(())
}

pub(crate) async fn a_document_that_others_name_does_not_lead_a_capability_of_its_site(db: Db) -> Result<()> {
    const UPLOAD: &str = "https://shop.example/u/evil/api.json";
    let book = [("book", "/book")];
    let visit = async |text: &str, linked_from: &str, hour: i64| {
        let upload = FetchRecord {
            discovery: Discovery::CatalogEntry,
            linked_from: Some(url(linked_from)),
            ..declares(UPLOAD, text, &book, true, later(hour))
        };
        let fetches = vec![declares(AWP, text, &book, false, later(hour)), upload];
        visited(&db.store, SHOP, later(hour), fetches).await
    };
    visit("1", "https://evil.example/", 0).await?;
    let (own, other) = (id(AWP, "book"), id(UPLOAD, "book"));
    assert_eq!(db.store.capability_shared(&own).await?, None);
    assert_eq!(leads_to(&db.store, &own).await?, AWP);
    assert_eq!(leads_to(&db.store, &other).await?, UPLOAD);
    // a catalog of the site links to it, as it links to agents of its users
    visit("2", CARD, 9).await?;
    for (asked, document) in [(&own, AWP), (&other, UPLOAD)] {
        assert_eq!(db.store.capability_shared(asked).await?, None);
        assert_eq!(leads_to(&db.store, asked).await?, document);
    }
    Ok(())
}

pub(crate) async fn a_semantic_type_counts_a_shared_capability_once(db: Db) -> Result<()> {
    let book = [("book", "/book")];
    let fetches = vec![
        declares(AWP, "1", &book, true, later(0)),
        declares(CARD, "1", &book, false, later(0)),
        declares(OPEN_API, "1", &[("book", "/other")], false, later(0)),
    ];
    visited(&db.store, SHOP, later(0), fetches).await?;
    let types = db.store.semantic_types().await?;
    let counts: Vec<(&str, u64, u64)> =
        types.iter().map(|kind| (kind.name.as_str(), kind.capabilities, kind.declared)).collect();
    assert_eq!(counts, [("travel:book", 2, 2)]);
    assert_eq!(db.store.semantic_namespaces(&types).await?.first().map(|one| one.capabilities), Some(2));
    Ok(())
}

pub(crate) async fn a_change_of_leader_keeps_the_id(db: Db) -> Result<()> {
    let book = [("book", "/book")];
    let first = vec![declares(AWP, "1", &book, true, later(0)), declares(CARD, "1", &book, false, later(0))];
    visited(&db.store, SHOP, later(0), first).await?;
    let head = db.store.feed_head().await?.0;
    let second = vec![declares(AWP, "2", &book, false, later(9)), declares(CARD, "2", &book, true, later(9))];
    visited(&db.store, SHOP, later(9), second).await?;
    let own = id(AWP, "book");
    let expected = shared(&own, &[(CARD, "book"), (AWP, "book")]);
    assert_eq!(db.store.capability_shared(&own).await?, Some(expected));
    assert_eq!(leads_to(&db.store, &own).await?, CARD);
    assert_eq!(feed_after(&db.store, head).await?, says(&[("changed", ""), ("changed", "")]));
    Ok(())
}

pub(crate) async fn known_capabilities_that_become_one_are_merged(db: Db) -> Result<()> {
    visited(&db.store, SHOP, later(0), vec![declares(AWP, "1", &[("book", "/book")], false, later(0))])
        .await?;
    visited(&db.store, SHOP, later(9), vec![declares(CARD, "1", &[("book", "/old")], false, later(9))])
        .await?;
    let (awp, card) = (id(AWP, "book"), id(CARD, "book"));
    assert_eq!(db.store.capability_shared(&card).await?, None);
    let head = db.store.feed_head().await?.0;
    visited(&db.store, SHOP, later(20), vec![declares(CARD, "2", &[("book", "/book")], true, later(20))])
        .await?;
    let expected = shared(&card, &[(CARD, "book"), (AWP, "book")]);
    for asked in [&awp, &card] {
        assert_eq!(
            db.store.capability_shared(asked).await?.as_ref(),
            Some(&expected),
            "the id of the leading declaration"
        );
    }
    assert_eq!(moves(&db.store, head).await?, says(&[("merged", &format!("{awp} into {card}"))]));
    let stored = db.store.manifest_find(&ManifestId::of(&url(AWP))).await?.context("a manifest")?;
    assert_eq!(stored.manifest.capabilities.len(), 1, "a manifest still lists its own capability");
    Ok(())
}

pub(crate) async fn a_split_is_reported_and_gives_each_its_own_id(db: Db) -> Result<()> {
    let book = [("book", "/book")];
    let first = vec![declares(AWP, "1", &book, true, later(0)), declares(CARD, "1", &book, false, later(0))];
    visited(&db.store, SHOP, later(0), first).await?;
    let head = db.store.feed_head().await?.0;
    let moved = declares(CARD, "2", &[("book", "/elsewhere")], false, later(9));
    let saved = visited(&db.store, SHOP, later(9), vec![moved]).await?;
    assert_eq!(saved.capabilities, 2);
    let (awp, card) = (id(AWP, "book"), id(CARD, "book"));
    for (asked, at) in [(&awp, AWP), (&card, CARD)] {
        assert_eq!(db.store.capability_shared(asked).await?, None);
        assert_eq!(leads_to(&db.store, asked).await?, at);
    }
    let mut feed = feed_after(&db.store, head).await?;
    feed.sort_unstable();
    let reason = format!("{card} out of {awp}");
    assert_eq!(feed, says(&[("changed", ""), ("split", &reason), ("split", &reason)]));
    Ok(())
}

pub(crate) async fn an_id_stays_valid_after_its_declaration_is_gone(db: Db) -> Result<()> {
    let book = [("book", "/book")];
    let first = vec![declares(AWP, "1", &book, true, later(0)), declares(CARD, "1", &book, false, later(0))];
    visited(&db.store, SHOP, later(0), first).await?;
    let head = db.store.feed_head().await?.0;
    visited(&db.store, SHOP, later(9), vec![fetch(AWP, FetchOutcome::Gone, later(9))]).await?;
    let (awp, card) = (id(AWP, "book"), id(CARD, "book"));
    let expected = shared(&awp, &[(CARD, "book")]);
    for asked in [&awp, &card] {
        assert_eq!(db.store.capability_shared(asked).await?.as_ref(), Some(&expected));
        assert_eq!(leads_to(&db.store, asked).await?, CARD);
    }
    assert_eq!(db.store.stats(later(10)).await?.capabilities, 1);
    assert_eq!(moves(&db.store, head).await?, says(&[("split", &format!("{awp} out of {awp}"))]));

    visited(&db.store, SHOP, later(20), vec![declares(AWP, "1", &book, true, later(20))]).await?;
    let expected = shared(&awp, &[(AWP, "book"), (CARD, "book")]);
    assert_eq!(db.store.capability_shared(&card).await?, Some(expected), "it returned");

    let gone = vec![fetch(AWP, FetchOutcome::Gone, later(30)), fetch(CARD, FetchOutcome::Gone, later(30))];
    visited(&db.store, SHOP, later(30), gone).await?;
    assert_eq!(db.store.capability_shared(&awp).await?, None);
    assert!(db.store.manifest_of_capability(&awp).await?.is_none(), "the capability has no declaration left");
    assert_eq!(db.number("SELECT COUNT(*) FROM declaration").await?, 0);
    Ok(())
}

pub(crate) async fn manifests_of_an_earlier_schema_are_grouped_at_the_next_visit(db: Db) -> Result<()> {
    let fetches = || {
        let book = [("book", "/book")];
        vec![declares(AWP, "1", &book, true, later(0)), declares(CARD, "1", &book, false, later(0))]
    };
    visited(&db.store, SHOP, later(0), fetches()).await?;
    db.execute("UPDATE capability SET operation = NULL, fullness = NULL").await?;
    db.execute("DELETE FROM declaration").await?;
    let head = db.store.feed_head().await?.0;
    let saved = visited(&db.store, SHOP, later(9), fetches()).await?;
    assert_eq!(saved.capabilities, 1, "unchanged documents");
    let own = id(AWP, "book");
    let expected = shared(&own, &[(AWP, "book"), (CARD, "book")]);
    assert_eq!(db.store.capability_shared(&own).await?, Some(expected));
    assert_eq!(
        moves(&db.store, head).await?,
        says(&[("merged", &format!("{} into {own}", id(CARD, "book")))])
    );
    let head = db.store.feed_head().await?.0;
    visited(&db.store, SHOP, later(20), fetches()).await?;
    assert_eq!(feed_after(&db.store, head).await?, says(&[]), "nothing changes again");
    Ok(())
}

pub(crate) async fn a_block_removes_the_shared_capabilities_of_its_site(db: Db) -> Result<()> {
    let book = [("book", "/book")];
    let fetches =
        vec![declares(AWP, "1", &book, true, later(0)), declares(CARD, "1", &book, false, later(0))];
    visited(&db.store, SHOP, later(0), fetches).await?;
    db.store.site_block(&site(SHOP), "asked for", later(1)).await?;
    assert_eq!(db.store.capability_shared(&id(AWP, "book")).await?, None);
    assert_eq!(db.number("SELECT COUNT(*) FROM declaration").await?, 0);
    Ok(())
}

pub(crate) async fn the_feed_names_a_bounded_number_of_moves(db: Db) -> Result<()> {
    let names: Vec<String> = (0..30).map(|number| format!("n{number}")).collect();
    let paths: Vec<String> = names.iter().map(|name| format!("/{name}")).collect();
    let calls: Vec<(&str, &str)> =
        names.iter().zip(&paths).map(|(name, path)| (name.as_str(), path.as_str())).collect();
    let fetches =
        vec![declares(AWP, "1", &calls, true, later(0)), declares(CARD, "1", &calls, false, later(0))];
    visited(&db.store, SHOP, later(0), fetches).await?;
    for (_, reason) in moves(&db.store, 0).await? {
        assert_eq!(reason.matches(" into ").count(), 20);
        assert!(reason.ends_with(" and 10 more"), "{reason}");
    }
    Ok(())
}

/// The native ids of the declarations whose statements are stored.
async fn stated(store: &Store, ids: &[CapabilityId]) -> Result<Vec<String>> {
    let loaded = store.declarations_load(ids).await?;
    let mut named: Vec<String> = loaded.into_iter().map(|one| one.excerpt.statement.native_id).collect();
    named.sort_unstable();
    Ok(named)
}

pub(crate) async fn statements_are_stored_when_a_site_has_several_manifests(db: Db) -> Result<()> {
    let (awp, card) = (id(AWP, "book"), id(CARD, "reserve"));
    let ids = [awp.clone(), card.clone(), id(AWP, "pay")];
    let first = declares(AWP, "1", &[("book", "/book"), ("pay", "/pay")], true, later(0));
    visited(&db.store, SHOP, later(0), vec![first]).await?;
    assert!(stated(&db.store, &ids).await?.is_empty(), "a single manifest shares nothing");
    let second = declares(CARD, "1", &[("reserve", "/book")], false, later(9));
    visited(&db.store, SHOP, later(9), vec![second]).await?;
    assert_eq!(stated(&db.store, &ids).await?, ["book", "pay", "reserve"]);
    let sizes = db.store.declaration_sizes(&ids).await?;
    assert!(sizes.len() == 3 && sizes.iter().all(|(_, bytes)| (100..2_000).contains(bytes)), "{sizes:?}");

    let loaded = db.store.declarations_load(std::slice::from_ref(&awp)).await?;
    let stored = db.store.manifest_of_capability(&awp).await?.context("a manifest")?;
    let capability = stored.manifest.capabilities.first().context("a capability")?;
    assert_eq!(loaded, [StoredDeclaration::of(&stored, capability)], "as read from the manifest");

    let changed = declares(CARD, "2", &[("order", "/book")], false, later(20));
    visited(&db.store, SHOP, later(20), vec![changed]).await?;
    assert_eq!(stated(&db.store, &[awp.clone(), card, id(CARD, "order")]).await?, ["book", "order"]);
    visited(&db.store, SHOP, later(30), vec![fetch(AWP, FetchOutcome::Gone, later(30))]).await?;
    assert!(stated(&db.store, &[awp]).await?.is_empty(), "it left the index");
    Ok(())
}

pub(crate) async fn statements_of_an_earlier_schema_are_stored_at_the_next_visits(db: Db) -> Result<()> {
    let urls: Vec<String> = (0..20).map(|number| format!("https://shop.example/{number}.json")).collect();
    let fetches = |now| urls.iter().map(|at| declares(at, "1", &[("book", "/book")], false, now)).collect();
    visited(&db.store, SHOP, later(0), fetches(later(0))).await?;
    let ids: Vec<CapabilityId> = urls.iter().map(|at| id(at, "book")).collect();
    assert_eq!(stated(&db.store, &ids).await?.len(), 20);
    db.execute("UPDATE capability SET statement = NULL").await?;
    assert!(stated(&db.store, &ids).await?.is_empty());
    let mut completed = Vec::new();
    for number in 1..=2 {
        visited(&db.store, SHOP, later(9 * number), fetches(later(9 * number))).await?;
        completed.push(stated(&db.store, &ids).await?.len());
    }
    assert_eq!(completed, [16, 20], "a bounded number of manifests for each visit");
    let head = db.store.feed_head().await?.0;
    visited(&db.store, SHOP, later(30), fetches(later(30))).await?;
    assert_eq!(feed_after(&db.store, head).await?, says(&[]), "nothing changes again");
    Ok(())
}

pub(crate) async fn a_damaged_statement_is_left_out(db: Db) -> Result<()> {
    let book = [("book", "/book")];
    let fetches =
        vec![declares(AWP, "1", &book, true, later(0)), declares(CARD, "1", &book, false, later(0))];
    visited(&db.store, SHOP, later(0), fetches).await?;
    db.execute(&format!("UPDATE capability SET statement = '{{' WHERE id = '{}'", id(AWP, "book"))).await?;
    assert_eq!(stated(&db.store, &[id(AWP, "book"), id(CARD, "book")]).await?.len(), 1);
    db.execute("UPDATE capability SET statement = 'ü'").await?;
    let both = [id(AWP, "book"), id(CARD, "book")];
    let sizes = db.store.declaration_sizes(&both).await?;
    assert!(
        sizes.len() == 2 && sizes.iter().all(|(_, bytes)| *bytes == 2),
        "bytes, not characters: {sizes:?}"
    );
    db.execute("UPDATE capability SET statement = ''").await?;
    assert!(stated(&db.store, &both).await?.is_empty());
    assert_eq!(db.store.declaration_sizes(&both).await?, []);
    Ok(())
}

pub(crate) async fn the_declarations_that_are_read_with_a_manifest_are_bounded(db: Db) -> Result<()> {
    let urls: Vec<String> = (0..40).map(|number| format!("https://shop.example/{number}.json")).collect();
    let fetches = urls.iter().map(|at| declares(at, "1", &[("book", "/book")], false, later(0))).collect();
    visited(&db.store, SHOP, later(0), fetches).await?;
    let of_site = db.store.capabilities_shared_of_site(&site(SHOP)).await?;
    let [all] = of_site.as_slice() else { anyhow::bail!("one capability") };
    assert_eq!(all.members.len(), 40);
    let last = all.members.last().context("a declaration")?;
    let by_last = db.store.capabilities_shared_by(std::slice::from_ref(&last.manifest)).await?;
    let [by_last] = by_last.as_slice() else { anyhow::bail!("one capability") };
    assert_eq!(by_last.members.len(), 17, "the listed declarations, and the declaration of the manifest");
    assert_eq!((by_last.members.first(), by_last.members.last()), (all.members.first(), Some(last)));
    let by_id = db.store.capability_shared(&last.id).await?.context("a capability")?;
    assert_eq!(by_id.members.as_slice(), all.members.get(..16).context("16")?);
    Ok(())
}

/// Processor time of this process in hundredths of a second; zero if the system does not report it.
pub(crate) fn cpu_ticks() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit(')').next().unwrap_or_default().split_ascii_whitespace();
    // User and system time are the fields 14 and 15; the name of the program is the second.
    fields.skip(11).take(2).filter_map(|ticks| ticks.parse::<u64>().ok()).sum()
}

/// On SQLite, the statements run in this process and hold the write lock, so quadratic time would block all sites. Eight times as many
/// declarations may take twenty times as long, plus two seconds of tolerance; in quadratic time, they would take 64 times as long.
pub(crate) async fn many_declarations_are_saved_in_linear_time(Db { store, .. }: Db) -> Result<()> {
    let mut times = Vec::new();
    for (count, minutes) in [(300, 1), (2_400, 10)] {
        let names: Vec<String> = (0..count).map(|number| format!("call{number}")).collect();
        let paths: Vec<String> = (0..count).map(|number| format!("/call{number}")).collect();
        let calls: Vec<(&str, &str)> =
            names.iter().map(String::as_str).zip(paths.iter().map(String::as_str)).collect();
        let text = count.to_string();
        let before = cpu_ticks();
        let documents = [AWP, CARD].map(|at| declares(at, &text, &calls, false, later(minutes)));
        visited(&store, SHOP, later(minutes), documents.into()).await?;
        times.push(cpu_ticks() - before);
    }
    let [few, many] = times.as_slice() else { anyhow::bail!("two times") };
    assert!(*many <= 20 * few + 200, "{few} become {many} hundredths of a second");
    Ok(())
}

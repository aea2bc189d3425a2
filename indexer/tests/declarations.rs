//! The indexer follows capabilities that several documents of a site declare.

#![expect(clippy::unwrap_used, reason = "a failed step fails the test")]

mod support;
mod visits;

use std::path::Path;

use chrono::{DateTime, TimeDelta, Utc};
use indexer::follow::{self, Mode};
use indexer::{DeclarationRole, FacetKey, Hit, IndexConfig, SearchRequest, Searcher, SharedCapabilities};
use manifest::declaration::Member;
use manifest::model::Protocol;
use manifest::{CapabilityId, ContentHash, Format, Manifest, ManifestId, ManifestUrl};
use store::{FetchRecord, SharedCapability, Store};
use tokio_util::sync::CancellationToken;

const SITE: &str = "shop.example";
const AWP: &str = "https://shop.example/agent.json";
const ATP: &str = "https://shop.example/atp.json";

fn hour(number: i64) -> DateTime<Utc> {
    DateTime::UNIX_EPOCH + TimeDelta::hours(480_000 + number)
}

fn own_id(at: &str) -> CapabilityId {
    CapabilityId::of_key(&format!("{at}#juggle"))
}

/// A manifest that declares one capability at a path of the site. With a higher level, the declaration is more complete.
fn declares(at: &str, description: &str, path: &str, level: u8) -> Manifest {
    let mut stored = support::manifest(SITE, SITE);
    support::add(&mut stored, "juggle", description);
    let mut manifest = stored.manifest;
    manifest.url = ManifestUrl::parse(at).unwrap();
    manifest.id = ManifestId::of(&manifest.url);
    manifest.detection.format = if at == AWP { Format::Awp } else { Format::Atp };
    manifest.content_hash = ContentHash::of(format!("{at} {description} {path} {level}").as_bytes());
    let capability = &mut manifest.capabilities[0];
    capability.key = format!("{at}#juggle");
    capability.id = own_id(at);
    capability.invocation.protocol = Some(Protocol::Http);
    capability.invocation.method = Some("POST".into());
    capability.invocation.url = Some(format!("https://{SITE}{path}"));
    capability.version = (level > 0).then(|| "1".into());
    capability.examples = if level > 1 { vec!["juggle five balls".into()] } else { Vec::new() };
    manifest
}

fn fetch(at: &str, manifest: Option<Manifest>, now: DateTime<Utc>) -> FetchRecord {
    visits::fetched(at, manifest, None, now)
}

async fn visit(store: &Store, fetches: Vec<FetchRecord>, now: DateTime<Utc>) {
    visits::save(store, SITE, fetches, now).await;
}

/// Follows the feed to its end, and returns everything in the index.
async fn index(store: &Store, dir: &Path) -> Vec<Hit> {
    let config = IndexConfig::in_data_dir(dir);
    follow::run(store.clone(), config, CancellationToken::new(), Mode::Once).await.unwrap();
    search(dir, "juggle")
}

fn search(dir: &Path, query: &str) -> Vec<Hit> {
    let searcher = Searcher::open(&IndexConfig::in_data_dir(dir).dir).unwrap();
    let request = SearchRequest { phrasings: vec![query.to_owned()], ..SearchRequest::default() };
    searcher.search(&request).unwrap().hits
}

fn formats(hit: &Hit) -> Vec<Format> {
    hit.declarations.iter().map(|declaration| declaration.format).collect()
}

#[tokio::test]
async fn a_second_declaration_joins_leads_and_leaves_the_document() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open_in_data_dir(dir.path()).await.unwrap();
    visit(&store, vec![fetch(AWP, Some(declares(AWP, "Toss.", "/juggle", 1)), hour(0))], hour(0)).await;
    let hits = index(&store, dir.path()).await;
    assert_eq!((hits.len(), &hits[0].id, formats(&hits[0])), (1, &own_id(AWP), vec![]));

    // the second declaration is merged
    let plain = declares(ATP, "Throw.", "/juggle", 0);
    visit(&store, vec![fetch(ATP, Some(plain), hour(1))], hour(1)).await;
    let hits = index(&store, dir.path()).await;
    assert_eq!((hits.len(), &hits[0].id), (1, &own_id(AWP)));
    assert_eq!(hits[0].declarations.len(), 2);
    assert_eq!(search(dir.path(), "throw").len(), 1);

    // it changes, but is not the leading one
    let changed = declares(ATP, "Hurl.", "/juggle", 0);
    visit(&store, vec![fetch(ATP, Some(changed), hour(2))], hour(2)).await;
    assert_eq!(index(&store, dir.path()).await.len(), 1);
    assert_eq!((search(dir.path(), "hurl").len(), search(dir.path(), "throw").len()), (1, 0));

    // it becomes the leading one
    let full = declares(ATP, "Hurl.", "/juggle", 2);
    visit(&store, vec![fetch(ATP, Some(full), hour(3))], hour(3)).await;
    let hits = index(&store, dir.path()).await;
    assert_eq!((hits.len(), &hits[0].id, hits[0].format), (1, &own_id(AWP), Format::Atp));
    assert_eq!(formats(&hits[0]), [Format::Atp, Format::Awp]);
    assert_eq!(hits[0].declared_id(), &own_id(ATP));

    // the first declaration is removed, and the id does not change
    visit(&store, vec![fetch(AWP, None, hour(4))], hour(4)).await;
    let hits = index(&store, dir.path()).await;
    assert_eq!((hits.len(), &hits[0].id, formats(&hits[0])), (1, &own_id(AWP), vec![Format::Atp]));
    assert_eq!(hits[0].declared_id(), &own_id(ATP));

    // the first declaration returns
    let returned = declares(AWP, "Toss.", "/juggle", 1);
    visit(&store, vec![fetch(AWP, Some(returned), hour(5))], hour(5)).await;
    let hits = index(&store, dir.path()).await;
    assert_eq!((hits.len(), &hits[0].id, hits[0].declarations.len()), (1, &own_id(AWP), 2));

    // they become two capabilities
    let elsewhere = declares(ATP, "Hurl.", "/elsewhere", 2);
    visit(&store, vec![fetch(ATP, Some(elsewhere), hour(6))], hour(6)).await;
    let mut hits = index(&store, dir.path()).await;
    hits.sort_by_key(|hit| hit.format);
    let found: Vec<_> = hits.iter().map(|hit| (hit.format, &hit.id, hit.declarations.len())).collect();
    assert_eq!(found, [(Format::Awp, &own_id(AWP), 0), (Format::Atp, &own_id(ATP), 0)]);
}

#[tokio::test]
async fn a_rebuilt_index_has_one_document_for_a_capability() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open_in_data_dir(dir.path()).await.unwrap();
    let fetches = vec![
        fetch(AWP, Some(declares(AWP, "Toss.", "/juggle", 1)), hour(0)),
        fetch(ATP, Some(declares(ATP, "Throw.", "/juggle", 0)), hour(0)),
    ];
    visit(&store, fetches, hour(0)).await;
    let config = IndexConfig::in_data_dir(dir.path());
    let summary = follow::rebuild(store.clone(), config).await.unwrap();
    assert_eq!((summary.manifests, summary.capabilities), (2, 1));
    let searcher = Searcher::open(&IndexConfig::in_data_dir(dir.path()).dir).unwrap();
    for format in ["awp", "atp"] {
        let mut request = SearchRequest { facets: vec![FacetKey::Format], ..SearchRequest::default() };
        request.filters.add(FacetKey::Format, format).unwrap();
        let answer = searcher.search(&request).unwrap();
        assert_eq!(answer.total, 1, "{format}");
        let counts = &answer.facets[&FacetKey::Format];
        assert!(counts.iter().all(|count| count.count == 1) && counts.len() == 2, "{counts:?}");
    }
}

#[test]
fn a_bounded_amount_is_held_for_each_capability() {
    let declared: Vec<Manifest> = (0..4)
        .map(|number| declares(&format!("https://{SITE}/{number}.json"), "Toss.", "/juggle", 0))
        .collect();
    let member = |manifest: &Manifest| Member {
        id: manifest.capabilities[0].id.clone(),
        manifest: manifest.id.clone(),
    };
    let of = |members: &[Manifest]| SharedCapability {
        id: members[0].capabilities[0].id.clone(),
        members: members.iter().map(member).collect(),
    };
    let mut shared = SharedCapabilities::new(vec![of(&declared[..3]), of(&declared[3..])], 500);
    for manifest in &declared {
        let mut stored = support::manifest(SITE, SITE);
        stored.manifest = manifest.clone();
        shared.add(&stored, |declaration| (declaration.excerpt.key, 100));
    }
    let DeclarationRole::Leads(id, others) = shared.role_of(&declared[0].capabilities[0].id) else {
        panic!("it leads")
    };
    assert_eq!(id, &declared[0].capabilities[0].id);
    assert_eq!(others, [&declared[1].capabilities[0].key], "250 bytes for each of two capabilities");
    assert!(matches!(shared.role_of(&declared[2].capabilities[0].id), DeclarationRole::Follows));
    assert_eq!(shared.read_of(&shared.capabilities()[1].members).count(), 1);
}

/// Manifests that declare the same capabilities, so that each contains the leading declarations of some.
fn sharing(manifests: usize, capabilities: usize) -> Vec<Manifest> {
    let declaring = |number: usize| {
        let at = format!("https://{SITE}/{number}.json");
        let mut manifest = declares(&at, "Toss.", "/juggle", 0);
        let one = manifest.capabilities.remove(0);
        for operation in 0..capabilities {
            let mut capability = one.clone();
            capability.native_id = format!("o{operation}");
            capability.key = format!("{at}#o{operation}");
            capability.id = CapabilityId::of_key(&capability.key);
            capability.invocation.url = Some(format!("https://{SITE}/o{operation}"));
            capability.version = (operation % manifests == number).then(|| "1".into());
            manifest.capabilities.push(capability);
        }
        manifest
    };
    (0..manifests).map(declaring).collect()
}

#[tokio::test]
async fn indexing_all_manifests_of_a_site_reads_each_shared_declaration_once() {
    for manifests in [4, 8, 16] {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open_in_data_dir(dir.path()).await.unwrap();
        let declared = sharing(manifests, 32);
        let fetches =
            declared.iter().map(|manifest| fetch(manifest.url.as_str(), Some(manifest.clone()), hour(0)));
        visit(&store, fetches.collect(), hour(0)).await;
        let (read, mut led) = (std::cell::Cell::new(0), 0);
        for manifest in &declared {
            let ids = [manifest.id.clone()];
            let shared = store.capabilities_shared_by(&ids).await.unwrap();
            let mut shared = SharedCapabilities::new(shared, 1 << 20);
            let count = |_| {
                read.set(read.get() + 1);
                ((), 1)
            };
            shared.load_led_by(&store, &ids, count).await.unwrap();
            let leads = |capability: &&manifest::Capability| matches!(shared.role_of(&capability.id), DeclarationRole::Leads(_, others) if others.len() == manifests - 1);
            led += manifest.capabilities.iter().filter(leads).count();
        }
        assert_eq!((read.get(), led), (32 * (manifests - 1), 32), "{manifests} manifests");
    }
}

/// A copy of a store whose rows are changed: the name of the table, and the values.
async fn copy_with(store: &Store, dir: &Path, each: impl Fn(&str, &mut [serde_json::Value])) -> Store {
    let (sender, mut lines) = tokio::sync::mpsc::channel(64);
    let export = async {
        store.export(&sender).await.unwrap();
        drop(sender);
    };
    let (copy, mut copied) = tokio::sync::mpsc::channel(64);
    let change = async {
        while let Some(line) = lines.recv().await {
            let changed = match serde_json::from_str::<(String, Vec<serde_json::Value>)>(&line) {
                Ok((table, mut values)) => {
                    each(&table, &mut values);
                    serde_json::to_string(&(table, values)).unwrap()
                }
                Err(_) => line,
            };
            copy.send(changed).await.unwrap();
        }
        drop(copy);
    };
    let to = Store::open_in_data_dir(dir).await.unwrap();
    let import = async { to.import(&mut copied).await.unwrap() };
    tokio::join!(export, change, import);
    to
}

#[tokio::test]
async fn a_declaration_that_follows_is_indexed_without_its_manifest() {
    let (dir, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let store = Store::open_in_data_dir(dir.path()).await.unwrap();
    let fetches = vec![
        fetch(AWP, Some(declares(AWP, "Toss.", "/juggle", 1)), hour(0)),
        fetch(ATP, Some(declares(ATP, "Throw.", "/juggle", 0)), hour(0)),
    ];
    visit(&store, fetches, hour(0)).await;
    let damaged = ManifestId::of(&ManifestUrl::parse(ATP).unwrap());
    let copy = copy_with(&store, other.path(), |table, values| {
        if table == "manifest_version" && values[0] == damaged.as_str() {
            values[4] = "00".into();
        }
    })
    .await;
    assert_eq!(copy.manifests_load(&[damaged]).await.unwrap(), [], "it cannot be read");
    let summary = follow::rebuild(copy, IndexConfig::in_data_dir(other.path())).await.unwrap();
    assert_eq!(summary.capabilities, 1);
    let hits = search(other.path(), "throw");
    assert_eq!((hits.len(), formats(&hits[0])), (1, vec![Format::Awp, Format::Atp]));
}

#[tokio::test]
async fn a_declaration_without_a_statement_is_read_from_its_manifest() {
    let (dir, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let store = Store::open_in_data_dir(dir.path()).await.unwrap();
    let fetches = vec![
        fetch(AWP, Some(declares(AWP, "Toss.", "/juggle", 1)), hour(0)),
        fetch(ATP, Some(declares(ATP, "Throw.", "/juggle", 0)), hour(0)),
    ];
    visit(&store, fetches, hour(0)).await;
    let copy = copy_with(&store, other.path(), |table, values| {
        if table == "capability" {
            *values.last_mut().unwrap() = serde_json::Value::Null;
        }
    })
    .await;
    assert_eq!(copy.declarations_load(&[own_id(AWP), own_id(ATP)]).await.unwrap(), []);
    follow::rebuild(copy, IndexConfig::in_data_dir(other.path())).await.unwrap();
    let hits = search(other.path(), "throw");
    assert_eq!((hits.len(), formats(&hits[0])), (1, vec![Format::Awp, Format::Atp]));
}

#[tokio::test]
async fn statements_that_do_not_fit_are_not_read() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open_in_data_dir(dir.path()).await.unwrap();
    let fetches = vec![
        fetch(AWP, Some(declares(AWP, "Toss.", "/juggle", 1)), hour(0)),
        fetch(ATP, Some(declares(ATP, "Throw.", "/juggle", 0)), hour(0)),
    ];
    visit(&store, fetches, hour(0)).await;
    let site = ManifestUrl::parse(AWP).unwrap().site();
    let capabilities = store.capabilities_shared_of_site(&site).await.unwrap();
    for (bytes_max, count) in [(300, 0), (100_000, 2)] {
        let mut shared = SharedCapabilities::new(capabilities.clone(), bytes_max);
        let selected = shared.select(&store, |_, _| true).await.unwrap();
        assert_eq!(selected.count(), count);
        assert!(selected.bytes() <= bytes_max as u64);
        let without_statement =
            shared.load(&store, selected, |stored| (stored.excerpt.key, 1)).await.unwrap();
        assert_eq!((without_statement.len(), shared.bytes_kept()), (0, count));
    }
}

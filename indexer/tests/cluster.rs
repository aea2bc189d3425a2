//! Searches a cluster: the contract of a search over an engine in this process, its feed, and what happens while shards are away.

#![expect(clippy::unwrap_used, reason = "a failed step fails the test")]

mod contract;
mod explained;
mod fake_engine;
mod support;
mod visits;

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use contract::request;
use fake_engine::FakeEngine;
use indexer::cluster::{Cluster, EngineError, MissingShards};
use indexer::follow::{self, FollowError, Mode, Summary};
use indexer::{
    ExploreRequest, FacetKey, FacetRequest, Filters, IndexBuilder, IndexConfig, IndexError, SearchAnswer,
    SearchError, SearchRequest, Searcher, Sort, WordWeights,
};
use manifest::ContentHash;
use serde_json::Value;
use store::{FeedPosition, Store, StoredManifest};
use tempfile::TempDir;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

const SHARDS: usize = 3;
/// Maximum time until a search shows a change, with retries.
const SHOWN_MAX: Duration = Duration::from_secs(30);

/// The directory of a vocabulary, which exists as long as its searcher is used.
type Guard = TempDir;

fn cluster(engine: &Arc<FakeEngine>, missing_shards: MissingShards) -> Cluster {
    let engine: Arc<FakeEngine> = Arc::clone(engine);
    Cluster { engine, missing_shards }
}

fn config(dir: &Path, engine: &Arc<FakeEngine>) -> IndexConfig {
    IndexConfig { cluster: Some(cluster(engine, MissingShards::Fail)), ..IndexConfig::at(dir.to_owned()) }
}

fn build(dir: &Path, engine: &Arc<FakeEngine>, manifests: &[StoredManifest]) {
    let builder = IndexBuilder::begin_with(&config(dir, engine), "feed").unwrap();
    for stored in manifests {
        builder.add(stored).unwrap();
    }
    builder.finish(FeedPosition(1)).unwrap();
}

fn opened(dir: &Path, engine: &Arc<FakeEngine>, missing_shards: MissingShards) -> Searcher {
    Searcher::over_cluster(dir, &WordWeights::built_in(), cluster(engine, missing_shards)).unwrap()
}

/// The searcher of the contract.
fn searcher(manifests: &[StoredManifest]) -> (TempDir, Searcher) {
    let (dir, engine) = (tempfile::tempdir().unwrap(), FakeEngine::new(SHARDS));
    build(dir.path(), &engine, manifests);
    let searcher = opened(dir.path(), &engine, MissingShards::Fail);
    (dir, searcher)
}

/// The searcher of an index on this machine.
fn local(manifests: &[StoredManifest]) -> (TempDir, Searcher) {
    let dir = tempfile::tempdir().unwrap();
    let builder = IndexBuilder::begin(dir.path(), "feed").unwrap();
    for stored in manifests {
        builder.add(stored).unwrap();
    }
    builder.finish(FeedPosition(1)).unwrap();
    let searcher = Searcher::open(dir.path()).unwrap();
    (dir, searcher)
}

/// More shops than a search orders: a third of them sell the same things, with texts of different lengths.
fn shops() -> Vec<StoredManifest> {
    let goods = ["tea", "coffee", "biscuits", "bicycles", "umbrellas", "candles", "books"];
    let shop = |at: usize| {
        let mut stored = support::manifest(&format!("shop{at}.example"), &format!("Shop {at}"));
        for kind in 0..5 {
            let good = goods[(at + kind * 3) % goods.len()];
            let verb = ["Order", "Cancel", "Track", "Compare", "Return"][kind];
            let filler = "on a quiet afternoon ".repeat((at * 7 + kind) % 9);
            let text = format!("{verb} {good} {filler}from the shop.");
            let method = if kind == 0 { "POST" } else { "GET" };
            let added = support::add(&mut stored, &format!("{}_{good}", verb.to_lowercase()), &text);
            added.invocation.method = Some(method.to_owned());
        }
        stored
    };
    (0..400).map(shop).collect()
}

fn ids(answer: &SearchAnswer) -> Vec<&str> {
    answer.hits.iter().map(|hit| hit.id.as_str()).collect()
}

#[test]
fn ranks_and_counts_like_an_index_on_this_machine() {
    let web = shops();
    let (_dir, local) = local(&web);
    let (_cluster_dir, cluster) = searcher(&web);
    for query in [
        "tea",
        "order tea",
        "compare umbrellas and candles. Then return the books!",
        "cofee",
        "shop17.example",
        "order tea at shop17.example",
        "a zeppelin from shop399.example, or from shop3.example",
        "order_tea",
        "\"quiet afternoon\" bicycles -cancel",
        "method:get track biscuits",
    ] {
        let facets = vec![FacetKey::Method, FacetKey::Format];
        let asked = SearchRequest { facets, limit: 10, ..request(query) };
        let (expected, found) = (local.search(&asked).unwrap(), cluster.search(&asked).unwrap());
        let scores = |answer: &SearchAnswer| answer.hits.iter().map(|hit| hit.score).collect::<Vec<_>>();
        for (expected, found) in scores(&expected).iter().zip(scores(&found)) {
            // documents with the same text may be different ones
            assert!((expected - found).abs() < 0.01 * expected, "{query}: {expected} {found}");
        }
        assert_eq!(found.hits.len(), expected.hits.len(), "{query}");
        assert_eq!(
            (found.total, found.relevant.is_some()),
            (expected.total, expected.relevant.is_some()),
            "{query}"
        );
        assert_eq!(found.did_you_mean, expected.did_you_mean, "{query}");
        let counts = |answer: &SearchAnswer| -> Vec<(String, u64)> {
            let counts = answer.facets.values().flatten();
            let mut counts: Vec<_> = counts.map(|count| (count.value.clone(), count.count)).collect();
            counts.sort_unstable();
            counts
        };
        assert_eq!(counts(&found), counts(&expected), "{query}");
        assert_eq!(found.completeness, expected.completeness, "{query}");
    }
    let facets = vec![FacetRequest { key: FacetKey::Method, values_max: 9, count_min: 1 }];
    let explored = ExploreRequest { facets, ..ExploreRequest::default() };
    assert_eq!(cluster.explore(&explored).unwrap(), local.explore(&explored).unwrap());
}

#[test]
fn pages_repeat_nothing_and_end_after_a_thousand_results_and_their_spam() {
    let (_dir, searcher) = searcher(&shops());
    let mut page = SearchRequest { limit: 100, ..request("shop") };
    let mut found = Vec::new();
    loop {
        let answer = searcher.search(&page).unwrap();
        assert_eq!(answer.total, 2_000);
        found.extend(answer.hits.into_iter().map(|hit| hit.id));
        let Some(cursor) = answer.next_cursor else { break };
        page.cursor = Some(cursor);
    }
    let distinct: std::collections::HashSet<_> = found.iter().collect();
    assert_eq!(distinct.len(), found.len());
    assert!((1_000..2_000).contains(&found.len()), "{}", found.len());
}

#[test]
fn sorts_by_a_column_what_fits_into_a_shortlist() {
    let (_dir, searcher) = searcher(&shops());
    let by_name = SearchRequest { sort: Sort::Name, limit: 100, ..request("") };
    let error = searcher.search(&by_name).unwrap_err();
    assert!(matches!(error, SearchError::Index(IndexError::Cluster(EngineError::Unsorted))), "{error}");
    let filters = Filters::default().with(FacetKey::Method, ["post"]).unwrap();
    let answer = searcher.search(&SearchRequest { filters, ..by_name }).unwrap();
    assert_eq!((answer.total, answer.hits.len()), (400, 100));
    assert!(answer.hits.is_sorted_by(|a, b| a.name <= b.name));
}

#[test]
fn a_missing_shard_is_an_error_or_named_in_the_answer() {
    let (dir, engine) = (tempfile::tempdir().unwrap(), FakeEngine::new(SHARDS));
    build(dir.path(), &engine, &shops());
    let strict = opened(dir.path(), &engine, MissingShards::Fail);
    let lenient = opened(dir.path(), &engine, MissingShards::Partial);
    let accepting = SearchRequest { accepts_missing_shards: true, ..request("order tea") };
    let whole = lenient.search(&accepting).unwrap();
    assert!(whole.completeness.missing_shards.is_empty());
    engine.set_away(&[1]);
    for refused in [strict.search(&accepting), lenient.search(&request("order tea"))] {
        let error = refused.unwrap_err();
        let is_named =
            matches!(error, SearchError::Index(IndexError::Cluster(EngineError::MissingShards { .. })));
        assert!(is_named, "{error}");
    }
    let part = lenient.search(&accepting).unwrap();
    assert_eq!(part.completeness.missing_shards, ["shard 1"]);
    assert!(!part.hits.is_empty() && part.total < whole.total);
    let id = whole.hits[0].id.clone();
    assert!(lenient.find(&id).is_err(), "an answer that cannot name the shard is refused");
    assert!(lenient.explore(&ExploreRequest::default()).is_err());
    assert!(lenient.similar(&id, 5).is_err());
    engine.set_away(&[0, 1, 2]);
    assert!(lenient.search(&accepting).is_err(), "no shard answers");
    engine.set_away(&[]);
    assert_eq!(ids(&strict.search(&accepting).unwrap()), ids(&whole));
}

#[test]
fn spam_does_not_crowd_out_other_results() {
    let mut web = shops();
    let mut loud = support::manifest("loud.example", "Loud");
    for at in 0..600 {
        let text = "tea ".repeat(60);
        support::add(&mut loud, &format!("tea_{at}"), &text);
    }
    web.push(loud);
    let (_dir, local) = local(&web);
    let (_cluster_dir, cluster) = searcher(&web);
    let (expected, found) =
        (local.search(&request("tea")).unwrap(), cluster.search(&request("tea")).unwrap());
    let honest =
        |answer: &SearchAnswer| answer.hits.iter().filter(|hit| hit.site.as_str() != "loud.example").count();
    assert_eq!((found.total, honest(&found)), (expected.total, honest(&expected)));
    assert_eq!(cluster.spam(10).unwrap().len(), local.spam(10).unwrap().len());
}

fn day(number: i64) -> DateTime<Utc> {
    DateTime::UNIX_EPOCH + TimeDelta::days(20_000 + number)
}

/// Saves a visit that finds one manifest with one capability, or that finds the manifest removed.
async fn visit(store: &Store, name: &str, capability: Option<&str>, now: DateTime<Utc>) {
    let manifest = capability.map(|capability| {
        let mut stored = support::manifest(name, name);
        support::add(&mut stored, capability, &format!("Can {capability} for you."));
        stored.manifest.content_hash = ContentHash::of(capability.as_bytes());
        stored.manifest
    });
    let body = capability.map(|capability| capability.as_bytes().to_vec());
    let fetched = visits::fetched(&format!("https://{name}/agent.json"), manifest, body, now);
    visits::save(store, name, vec![fetched], now).await;
}

async fn follow_once(store: &Store, dir: &Path, engine: &Arc<FakeEngine>) -> Result<Summary, FollowError> {
    follow::run(store.clone(), config(dir, engine), CancellationToken::new(), Mode::Once).await
}

#[tokio::test]
async fn the_engine_follows_the_feed_and_repeats_what_was_not_committed() {
    let dir = tempfile::tempdir().unwrap();
    let (store, engine) = (Store::open_in_data_dir(dir.path()).await.unwrap(), FakeEngine::new(SHARDS));
    let vocabulary = dir.path().join("vocabulary");
    let found = |query: &str| {
        let searcher = opened(&vocabulary, &engine, MissingShards::Fail);
        searcher.search(&request(query)).unwrap().hits.len()
    };
    visit(&store, "one.example", Some("juggle"), day(0)).await;
    visit(&store, "two.example", Some("somersault"), day(0)).await;
    assert!(follow_once(&store, &vocabulary, &engine).await.unwrap().was_rebuilt);
    assert_eq!((found("juggle"), found("somersault")), (1, 1));

    visit(&store, "one.example", Some("yodel"), day(1)).await;
    visit(&store, "two.example", None, day(1)).await;
    engine.fail_next_commit();
    let error = follow_once(&store, &vocabulary, &engine).await.unwrap_err();
    assert!(matches!(error, FollowError::Index(IndexError::Cluster(_))), "{error}");
    assert_eq!((found("juggle"), found("yodel")), (1, 0), "nothing of a failed commit is visible");
    let repeated = follow_once(&store, &vocabulary, &engine).await.unwrap();
    assert_eq!((repeated.manifests, repeated.was_rebuilt), (2, false));
    assert_eq!((found("juggle"), found("yodel"), found("somersault")), (0, 1, 0));
    let suggested = opened(&vocabulary, &engine, MissingShards::Fail).suggest("jug", 5).unwrap();
    assert!(suggested.is_empty(), "{suggested:?}");

    let before = engine.index_names();
    let old = opened(&vocabulary, &engine, MissingShards::Fail);
    follow::rebuild(store.clone(), config(&vocabulary, &engine)).await.unwrap();
    assert_eq!((found("yodel"), engine.index_names().len()), (1, 2));
    assert_eq!(old.search(&request("yodel")).unwrap().total, 1, "a rebuild writes into an index of its own");
    visit(&store, "one.example", Some("whistle"), day(2)).await;
    follow_once(&store, &vocabulary, &engine).await.unwrap();
    assert_eq!((found("whistle"), engine.index_names().len()), (1, 1), "the old index is removed");
    assert_ne!(engine.index_names(), before);
}

#[tokio::test]
async fn a_follower_drops_what_the_cluster_did_not_commit_and_continues_from_the_last_commit() {
    let dir = tempfile::tempdir().unwrap();
    let (store, engine) = (Store::open_in_data_dir(dir.path()).await.unwrap(), FakeEngine::new(SHARDS));
    let vocabulary = dir.path().join("vocabulary");
    visit(&store, "one.example", Some("juggle"), day(0)).await;
    engine.set_away(&[0]);
    let cancel = CancellationToken::new();
    let following = follow::run(store.clone(), config(&vocabulary, &engine), cancel.clone(), Mode::Follow);
    let mut tasks = JoinSet::new();
    tasks.spawn(following);
    let shown = async |query: &str, count: usize| {
        let shown = async {
            loop {
                let searcher = Searcher::of(&config(&vocabulary, &engine));
                let hits = searcher.ok().and_then(|searcher| searcher.search(&request(query)).ok());
                if hits.is_some_and(|answer| answer.hits.len() == count) {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(SHOWN_MAX, shown)
            .await
            .unwrap_or_else(|_| panic!("{query} has not {count} hits"));
    };
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert!(tasks.try_join_next().is_none(), "an indexer waits for a cluster that is away");
    engine.set_away(&[]);
    shown("juggle", 1).await;
    engine.fail_next_commit();
    visit(&store, "one.example", Some("yodel"), day(1)).await;
    visit(&store, "two.example", Some("yodel"), day(1)).await;
    shown("yodel", 2).await;
    shown("juggle", 0).await;
    cancel.cancel();
    assert!(tasks.join_next().await.unwrap().unwrap().is_ok());
}

#[tokio::test]
async fn a_vocabulary_is_not_opened_without_its_cluster_and_is_rebuilt_by_an_indexer_without_it() {
    let dir = tempfile::tempdir().unwrap();
    let (store, engine) = (Store::open_in_data_dir(dir.path()).await.unwrap(), FakeEngine::new(SHARDS));
    let vocabulary = dir.path().join("vocabulary");
    visit(&store, "one.example", Some("juggle"), day(0)).await;
    follow_once(&store, &vocabulary, &engine).await.unwrap();
    let without = IndexConfig::at(vocabulary.clone());
    let error = Searcher::of(&without).unwrap_err();
    assert!(
        matches!(error, IndexError::OnCluster { .. }) && error.to_string().contains("--cluster"),
        "{error}"
    );
    let once = (CancellationToken::new(), Mode::Once);
    assert!(follow::run(store.clone(), without.clone(), once.0, once.1).await.unwrap().was_rebuilt);
    assert_eq!(Searcher::of(&without).unwrap().search(&request("juggle")).unwrap().total, 1);
    let error = Searcher::of(&config(&vocabulary, &engine)).unwrap_err();
    assert!(matches!(error, IndexError::NotOnCluster { .. }), "{error}");
    assert!(follow_once(&store, &vocabulary, &engine).await.unwrap().was_rebuilt);
}

/// Requests of one set that are compared.
const REQUESTS_MAX: usize = 40;

/// One of the public tool-retrieval sets: its tools as manifests of their sites, and some requests with the numbers of the right tools.
fn public_set(folder: &Path) -> (Vec<StoredManifest>, Vec<(String, Vec<String>)>) {
    let lines = |file: &str| -> Vec<Value> {
        let text = std::fs::read_to_string(folder.join(file)).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let (mut sites, mut numbers) = (BTreeMap::new(), HashMap::new());
    for (number, tool) in lines("tools.jsonl").into_iter().enumerate() {
        let text = |key: &str| tool[key].as_str().unwrap_or_default().to_owned();
        let params = tool["params"].as_array().into_iter().flatten();
        let params = params.flat_map(|param| [param["name"].clone(), param["description"].clone()]);
        let params: Vec<String> = params.filter_map(|text| Some(format!("{}.", text.as_str()?))).collect();
        let host = format!("s{}.example", text("site").bytes().map(usize::from).sum::<usize>());
        let site = sites.entry(host.clone()).or_insert_with(|| support::manifest(&host, &text("site")));
        let description = format!("{}. {}", text("description"), params.join(" "));
        support::add(site, &format!("t{number}"), &description).name = text("name");
        numbers.insert(text("id"), format!("t{number}"));
    }
    let requests = lines("queries.jsonl");
    let step = (requests.len() / REQUESTS_MAX).max(1);
    let requests = requests.iter().step_by(step).map(|request| {
        let relevant = request["relevant"].as_array().unwrap().iter();
        let relevant = relevant.filter_map(|id| numbers.get(id.as_str()?).cloned());
        (request["text"].as_str().unwrap().to_owned(), relevant.collect())
    });
    (sites.into_values().collect(), requests.collect())
}

/// The nDCG of the first ten results.
fn ndcg(searcher: &Searcher, text: &str, relevant: &[String]) -> f64 {
    let answer = searcher.search(&SearchRequest { limit: 10, ..request(text) }).unwrap();
    let gain = |place: u32| 1.0 / f64::from(place + 2).log2();
    let places = answer.hits.iter().zip(0..).filter(|(hit, _)| relevant.contains(&hit.native_id));
    let best: f64 = (0..10).take(relevant.len()).map(gain).sum();
    if best > 0.0 { places.map(|(_, place)| gain(place)).sum::<f64>() / best } else { 0.0 }
}

#[test]
fn the_first_ten_are_as_good_as_those_of_an_index_on_this_machine() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folders = here.ancestors().map(|parent| parent.join("shared/relevance"));
    let Some(folder) = folders.into_iter().find(|path| path.is_dir()) else {
        println!("skipped: no relevance data next to the workspace");
        return;
    };
    let mut compared = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if !path.is_dir() {
            continue;
        }
        let (manifests, requests) = public_set(&path);
        let (_dir, local) = local(&manifests);
        let (_cluster_dir, cluster) = searcher(&manifests);
        let mean = |searcher: &Searcher| {
            let sum: f64 = requests.iter().map(|(text, relevant)| ndcg(searcher, text, relevant)).sum();
            sum / f64::from(u32::try_from(requests.len()).unwrap())
        };
        let (expected, found) = (mean(&local), mean(&cluster));
        println!("{}: {expected:.4} here, {found:.4} on a cluster", path.display());
        assert!((expected - found).abs() < 0.01, "{}: {expected:.4} {found:.4}", path.display());
        compared += 1;
    }
    assert!(compared > 0);
}

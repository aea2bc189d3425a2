//! The indexer against a real store: it follows the feed, resumes where it stopped, and rebuilds an index that it cannot continue.

#![expect(clippy::unwrap_used, reason = "a failed step fails the test")]

mod support;
mod visits;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use indexer::follow::{self, Mode, Summary};
use indexer::{Examples, IndexConfig, IndexError, SearchRequest, Searcher};
use manifest::{ContentHash, Discovery, ManifestId, ManifestUrl, SiteName};
use policy::AbuseReason;
use store::{FeedPosition, FetchRecord, Store, SuspensionRecord};
use tokio_util::sync::CancellationToken;

fn day(number: i64) -> DateTime<Utc> {
    DateTime::UNIX_EPOCH + TimeDelta::days(20_000 + number)
}

/// Saves a visit that finds one manifest with one capability, or that finds the manifest removed.
async fn visit(store: &Store, name: &str, capability: Option<&str>, now: DateTime<Utc>) {
    visits::save(store, name, vec![fetched(name, capability, now)], now).await;
}

fn fetched(name: &str, capability: Option<&str>, now: DateTime<Utc>) -> FetchRecord {
    let manifest = capability.map(|capability| {
        let mut stored = support::manifest(name, name);
        support::add(&mut stored, capability, &format!("Can {capability} for you."));
        stored.manifest.content_hash = ContentHash::of(capability.as_bytes());
        stored.manifest
    });
    let body = capability.map(|capability| capability.as_bytes().to_vec());
    visits::fetched(&format!("https://{name}/agent.json"), manifest, body, now)
}

async fn once(store: &Store, dir: &Path) -> Summary {
    let config = IndexConfig::in_data_dir(dir);
    follow::run(store.clone(), config, CancellationToken::new(), Mode::Once).await.unwrap()
}

fn finds(dir: &Path, query: &str) -> bool {
    let searcher = Searcher::open(&IndexConfig::in_data_dir(dir).dir).unwrap();
    let request = SearchRequest { phrasings: vec![query.to_owned()], ..SearchRequest::default() };
    !searcher.search(&request).unwrap().hits.is_empty()
}

#[tokio::test]
async fn resumes_the_feed_at_the_committed_position() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open_in_data_dir(dir.path()).await.unwrap();
    visit(&store, "one.example", Some("juggle"), day(0)).await;
    let first = once(&store, dir.path()).await;
    assert!(first.was_rebuilt && first.capabilities == 1);
    assert!(finds(dir.path(), "juggle"));

    visit(&store, "two.example", Some("somersault"), day(0)).await;
    visit(&store, "one.example", Some("yodel"), day(1)).await;
    let second = once(&store, dir.path()).await;
    assert!(!second.was_rebuilt && second.position > first.position);
    assert!(finds(dir.path(), "somersault") && finds(dir.path(), "yodel"));
    assert!(!finds(dir.path(), "juggle"), "a version that was replaced is still found");

    let third = once(&store, dir.path()).await;
    assert_eq!((third.manifests, third.position), (0, second.position));

    visit(&store, "one.example", None, day(2)).await;
    once(&store, dir.path()).await;
    assert!(!finds(dir.path(), "yodel"), "a removed manifest is still found");
    assert!(finds(dir.path(), "somersault"));
}

#[tokio::test]
async fn a_requested_rebuild_is_repeated_until_it_succeeds() {
    let dir = tempfile::tempdir().unwrap();
    let config = IndexConfig::in_data_dir(dir.path());
    let store = Store::open_in_data_dir(dir.path()).await.unwrap();
    visit(&store, "one.example", Some("juggle"), day(0)).await;
    once(&store, dir.path()).await;
    follow::request_rebuild(&config).unwrap();
    store.close().await;
    follow::run(store, config, CancellationToken::new(), Mode::Once).await.unwrap_err();
    let store = Store::open_in_data_dir(dir.path()).await.unwrap();
    assert!(once(&store, dir.path()).await.was_rebuilt);
    assert!(!once(&store, dir.path()).await.was_rebuilt, "one request is one rebuild");
    assert!(finds(dir.path(), "juggle"));
}

/// The content is unchanged, so the index learns of the change only from the feed entry.
#[tokio::test]
async fn follows_a_change_of_who_names_a_document() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open_in_data_dir(dir.path()).await.unwrap();
    let url = |text: &str| ManifestUrl::parse(text).unwrap();
    let linked = async |from: &str, number: i64| {
        let mut fetch = fetched("one.example", Some("juggle"), day(number));
        fetch.url = url("https://one.example/u/someone/agent.json");
        (fetch.discovery, fetch.linked_from) = (Discovery::CatalogEntry, Some(url(from)));
        let manifest = fetch.manifest.as_mut().unwrap();
        (manifest.id, manifest.url) = (ManifestId::of(&fetch.url), fetch.url.clone());
        visits::save(&store, "one.example", vec![fetch], day(number)).await;
        let summary = once(&store, dir.path()).await;
        let searcher = Searcher::open(&IndexConfig::in_data_dir(dir.path()).dir).unwrap();
        let request = SearchRequest { phrasings: vec!["juggle".to_owned()], ..SearchRequest::default() };
        let is_of_site = searcher.search(&request).unwrap().hits[0].is_of_site();
        (is_of_site, summary.was_rebuilt)
    };
    assert_eq!(linked("https://other.example/", 0).await, (false, true));
    assert_eq!(linked("https://one.example/agent.json", 1).await, (true, false), "the site names it");
    assert_eq!(linked("https://other.example/", 2).await, (false, false), "the site no longer names it");
}

#[tokio::test]
async fn examples_of_the_operator_are_indexed_and_removed_with_their_lines() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open_in_data_dir(dir.path()).await.unwrap();
    visit(&store, "one.example", Some("juggle"), day(0)).await;
    once(&store, dir.path()).await;
    let index = IndexConfig::in_data_dir(dir.path());
    let request = SearchRequest { phrasings: vec!["juggle".to_owned()], ..SearchRequest::default() };
    let id = Searcher::open(&index.dir).unwrap().search(&request).unwrap().hits[0].id.clone();
    let file = dir.path().join("examples.jsonl");
    let with = async |lines: String| {
        std::fs::write(&file, lines).unwrap();
        let examples = Arc::new(Examples::read(&file).unwrap());
        let config = IndexConfig { examples, ..index.clone() };
        follow::run(store.clone(), config, CancellationToken::new(), Mode::Once).await.unwrap()
    };
    let line = |query: &str| format!("{{\"query\":\"{query}\",\"capability\":\"{id}\",\"clients\":3}}\n");
    let first = with(line("keep balls in the air")).await;
    assert!(first.was_rebuilt && finds(dir.path(), "balls in the air"));
    let again = with(line("keep balls in the air")).await;
    assert!(!again.was_rebuilt, "the same examples rebuild nothing");
    let removed = with(String::new()).await;
    assert!(removed.was_rebuilt && !finds(dir.path(), "balls"), "an example that was removed is still found");

    let explained = with(line("keep balls in the air") + &line("circus")).await;
    assert!(explained.was_rebuilt);
    let request = SearchRequest { phrasings: vec!["circus".to_owned()], explain: true, ..request };
    let answer = Searcher::open(&index.dir).unwrap().search(&request).unwrap();
    let explanation = answer.hits[0].explanation.as_ref().unwrap().as_str();
    assert!(explanation.contains("\"example\""), "{explanation}");

    std::fs::write(&file, (0..20).map(|at| line(&format!("request {at}"))).collect::<String>()).unwrap();
    assert_ne!(Examples::read(&file).unwrap(), Examples::default());
    for wrong in ["{}", "no json", "{\"query\":\"x\",\"capability\":\"x\"}"] {
        std::fs::write(&file, format!("\n{wrong}\n")).unwrap();
        let refused = Examples::read(&file).unwrap_err().to_string();
        assert!(refused.contains("line 2"), "{refused}");
    }
}

/// Copies a database and damages rows: in lines of the dump that start with `row`, replaces `word` by `damage`.
async fn damaged(store: &Store, dir: &Path, damages: &[(&str, &str, &str)]) -> Store {
    let (sender, mut lines) = tokio::sync::mpsc::channel(1_000);
    store.export(&sender).await.unwrap();
    drop(sender);
    let (sender, mut copy) = tokio::sync::mpsc::channel(1_000);
    while let Some(mut line) = lines.recv().await {
        for (row, word, damage) in damages {
            if line.starts_with(row) && line.contains(word) {
                line = line.replace(word, damage);
            }
        }
        sender.send(line).await.unwrap();
    }
    drop(sender);
    let copied = Store::open_in_data_dir(dir).await.unwrap();
    copied.import(&mut copy).await.unwrap();
    copied
}

#[tokio::test]
async fn skips_damaged_rows_when_it_follows_and_when_it_rebuilds() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open_in_data_dir(dir.path()).await.unwrap();
    visit(&store, "one.example", Some("juggle"), day(0)).await;
    once(&store, dir.path()).await;
    for (name, capability) in
        [("two.example", "somersault"), ("three.example", "yodel"), ("four.example", "hop")]
    {
        visit(&store, name, Some(capability), day(0)).await;
    }
    let other = tempfile::tempdir().unwrap();
    let feed = [("[\"feed\",[2,", "\"added\"", "\"zzz\""), ("[\"feed\",[4,", "\"added\"", "\"zzz\"")];
    let copy = damaged(&store, other.path(), &feed).await;
    let followed = once(&copy, dir.path()).await;
    assert!(!followed.was_rebuilt);
    assert_eq!(followed.position, FeedPosition(4), "the feed is read to its end");
    assert!(finds(dir.path(), "yodel") && !finds(dir.path(), "somersault") && !finds(dir.path(), "hop"));

    let other = tempfile::tempdir().unwrap();
    let status = [(
        "[\"manifest\",[",
        "\"https://three.example/agent.json\",\"awp\",\"fresh\"",
        "\"x\",\"awp\",\"zzz\"",
    )];
    let copy = damaged(&store, other.path(), &status).await;
    let rebuilt = follow::rebuild(copy, IndexConfig::in_data_dir(other.path())).await.unwrap();
    assert_eq!(rebuilt.manifests, 3, "without the damaged one");
    assert!(finds(other.path(), "hop") && !finds(other.path(), "yodel"));
}

#[test]
fn a_commit_sets_the_metrics() {
    let recorder = metrics_exporter_prometheus::PrometheusBuilder::new().build_recorder();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    metrics::with_local_recorder(&recorder, || {
        runtime.block_on(async {
            let dir = tempfile::tempdir().unwrap();
            let store = Store::open_in_data_dir(dir.path()).await.unwrap();
            once(&store, dir.path()).await;
            visit(&store, "one.example", Some("juggle"), day(0)).await;
            visit(&store, "two.example", Some("yodel"), day(0)).await;
            once(&store, dir.path()).await;
        });
    });
    let rendered = recorder.handle().render();
    assert!(rendered.contains("agentdex_indexer_documents 2"), "{rendered}");
    assert!(rendered.contains("agentdex_indexer_feed_lag 0"), "{rendered}");
    assert!(rendered.contains("agentdex_indexer_commit_seconds"), "{rendered}");
}

#[tokio::test]
async fn rebuilds_an_index_that_cannot_be_continued() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open_in_data_dir(dir.path()).await.unwrap();
    visit(&store, "one.example", Some("juggle"), day(0)).await;
    once(&store, dir.path()).await;

    let index = IndexConfig::in_data_dir(dir.path()).dir;
    let generation = index.join(std::fs::read_to_string(index.join("current")).unwrap().trim());
    let damaged = std::fs::read_dir(&generation)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(|path| path.extension().is_some_and(|extension| extension == "idx"))
        .unwrap();
    std::fs::write(damaged, b"damaged").unwrap();
    assert!(once(&store, dir.path()).await.was_rebuilt);
    assert!(finds(dir.path(), "juggle"));

    let other_dir = tempfile::tempdir().unwrap();
    let other = Store::open_in_data_dir(other_dir.path()).await.unwrap();
    visit(&other, "two.example", Some("somersault"), day(0)).await;
    assert!(once(&other, dir.path()).await.was_rebuilt, "another database has another feed");
    assert!(finds(dir.path(), "somersault") && !finds(dir.path(), "juggle"));
}

/// The directory of the current generation of an index.
fn generation(index: &Path) -> PathBuf {
    index.join(std::fs::read_to_string(index.join("current")).unwrap().trim())
}

/// A killed rebuild leaves its own generation or the previous one.
#[tokio::test]
async fn removes_other_generations_at_the_start() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open_in_data_dir(dir.path()).await.unwrap();
    visit(&store, "one.example", Some("juggle"), day(0)).await;
    once(&store, dir.path()).await;
    let index = IndexConfig::in_data_dir(dir.path()).dir;
    let current = generation(&index);
    let left: Vec<PathBuf> =
        ["generation-000000", "generation-000007"].iter().map(|name| index.join(name)).collect();
    for left in &left {
        std::fs::create_dir(left).unwrap();
        for file in std::fs::read_dir(&current).unwrap() {
            let file = file.unwrap();
            std::fs::copy(file.path(), left.join(file.file_name())).unwrap();
        }
    }
    std::fs::write(index.join("current"), "generation-000000\n").unwrap();
    let reader = Searcher::open(&index).unwrap();
    std::fs::write(index.join("current"), current.file_name().unwrap().as_encoded_bytes()).unwrap();
    let summary = once(&store, dir.path()).await;
    assert!(!summary.was_rebuilt);
    assert_eq!(left.iter().filter(|left| left.exists()).count(), 0);
    assert!(current.exists() && finds(dir.path(), "juggle"));
    let request = SearchRequest { phrasings: vec!["juggle".to_owned()], ..SearchRequest::default() };
    assert_eq!(reader.search(&request).unwrap().hits.len(), 1, "open files remain readable");
}

#[tokio::test]
async fn rebuilds_a_damaged_index_at_the_start() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open_in_data_dir(dir.path()).await.unwrap();
    visit(&store, "one.example", Some("juggle"), day(0)).await;
    once(&store, dir.path()).await;
    let index = IndexConfig::in_data_dir(dir.path()).dir;
    let damages: [fn(&Path); 4] = [
        |generation| std::fs::write(generation.join("meta.json"), "{").unwrap(),
        |generation| {
            for file in files(generation, "term") {
                let bytes = std::fs::read(&file).unwrap();
                std::fs::write(&file, &bytes[..bytes.len() / 2]).unwrap();
            }
        },
        |generation| files(generation, "store").iter().for_each(|file| std::fs::remove_file(file).unwrap()),
        |generation| std::fs::remove_dir_all(generation).unwrap(),
    ];
    for (at, damage) in damages.iter().enumerate() {
        damage(&generation(&index));
        assert!(once(&store, dir.path()).await.was_rebuilt, "damage {at} was not detected");
        assert!(finds(dir.path(), "juggle"), "damage {at}");
        assert!(!once(&store, dir.path()).await.was_rebuilt, "damage {at} was not repaired");
    }
}

fn files(generation: &Path, extension: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(generation).unwrap().map(|entry| entry.unwrap().path());
    let found: Vec<PathBuf> =
        entries.filter(|path| path.extension().is_some_and(|found| found == extension)).collect();
    assert!(!found.is_empty(), "no file of the index ends with .{extension}");
    found
}

#[tokio::test]
async fn rebuilds_an_index_of_another_schema_version() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open_in_data_dir(dir.path()).await.unwrap();
    visit(&store, "one.example", Some("juggle"), day(0)).await;
    once(&store, dir.path()).await;
    let index = IndexConfig::in_data_dir(dir.path()).dir;
    let meta = generation(&index).join("meta.json");
    let text = std::fs::read_to_string(&meta).unwrap();
    let ours = format!("\\\"schema_version\\\":{}", indexer::SCHEMA_VERSION);
    assert!(text.contains(&ours), "{text}");
    std::fs::write(&meta, text.replace(&ours, "\\\"schema_version\\\":1")).unwrap();
    let refused = Searcher::open(&index).unwrap_err();
    assert!(matches!(refused, IndexError::SchemaOther { found: 1, .. }), "{refused}");
    assert!(once(&store, dir.path()).await.was_rebuilt);
    assert!(finds(dir.path(), "juggle"));
}

#[tokio::test]
async fn follows_new_changes_until_cancelled() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open_in_data_dir(dir.path()).await.unwrap();
    let config = IndexConfig::in_data_dir(dir.path());
    let cancel = CancellationToken::new();
    let follower = follow::run(store.clone(), config.clone(), cancel.clone(), Mode::Follow);
    let watch = async {
        visit(&store, "one.example", Some("juggle"), day(0)).await;
        let mut tick = tokio::time::interval(Duration::from_millis(50));
        loop {
            tick.tick().await;
            if Searcher::open(&config.dir).is_ok() && finds(dir.path(), "juggle") {
                break cancel.cancel();
            }
        }
    };
    let (summary, ()) =
        tokio::time::timeout(Duration::from_mins(1), Box::pin(async { tokio::join!(follower, watch) }))
            .await
            .unwrap();
    assert!(summary.unwrap().capabilities >= 1);
    let rebuilt = follow::rebuild(store, config).await.unwrap();
    assert!(rebuilt.was_rebuilt && rebuilt.capabilities == 1);
}

#[tokio::test]
async fn nothing_of_a_suspended_site_is_suggested() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open_in_data_dir(dir.path()).await.unwrap();
    for number in 0..30 {
        visit(&store, &format!("site{number}.example"), Some("somersault"), day(0)).await;
    }
    visit(&store, "circus.example", Some("juggle"), day(0)).await;
    once(&store, dir.path()).await;
    let suggested = |typed: &str| {
        let searcher = Searcher::open(&IndexConfig::in_data_dir(dir.path()).dir).unwrap();
        let found = searcher.suggest(typed, 5).unwrap();
        let request = SearchRequest { phrasings: vec![format!("{typed}x")], ..SearchRequest::default() };
        let corrected = searcher.search(&request).unwrap().did_you_mean;
        (found.into_iter().map(|found| found.text).collect::<Vec<_>>(), corrected)
    };
    let (found, corrected) = suggested("juggle");
    assert_eq!((found.first().map(String::as_str), corrected.as_deref()), (Some("juggle"), Some("juggle")));
    assert_eq!(suggested("circus.").0, ["circus.example"]);
    let suspension =
        SuspensionRecord { reason: AbuseReason::Spam, note: String::new(), places: Vec::new(), at: day(1) };
    store.site_suspend(&SiteName::parse("circus.example").unwrap(), &suspension).await.unwrap();
    assert!(!once(&store, dir.path()).await.was_rebuilt, "the dictionary of the segment still has its words");
    assert_eq!(suggested("juggle"), (Vec::new(), None));
    assert_eq!(suggested("circus.").0, Vec::<String>::new());
    assert_eq!(suggested("somersaul").0, ["somersault"]);
}

//! The indexer follows a PostgreSQL feed: from the beginning, from its last position, and after a rebuild.

#![expect(clippy::unwrap_used, reason = "a failed step fails the test")]

use agentdex_tests::harness::TestDatabase;
use agentdex_tests::relevance::sets::{Tool, capability, manifest};
use agentdex_tests::speed::stored;
use indexer::follow::{self, Mode};
use indexer::{IndexConfig, SearchRequest, Searcher};
use store::{DatabaseUrl, Store, StoreConfig, StoredManifest};
use tokio_util::sync::CancellationToken;

fn site(name: &str, does: &str) -> StoredManifest {
    let mut stored = manifest(name, name).unwrap();
    let tool: Tool = serde_json::from_value(serde_json::json!({
        "id": does, "name": does, "description": format!("Can {does} for you."),
    }))
    .unwrap();
    let capability = capability(&stored.manifest, &tool);
    stored.manifest.capabilities.push(capability);
    stored
}

fn finds(config: &IndexConfig, text: &str) -> bool {
    let searcher = Searcher::open(&config.dir).unwrap();
    let request = SearchRequest { phrasings: vec![text.to_owned()], ..SearchRequest::default() };
    !searcher.search(&request).unwrap().hits.is_empty()
}

#[tokio::test]
async fn follows_a_postgres_feed_from_the_committed_position() {
    let database = TestDatabase::create().await.unwrap();
    let dir = tempfile::tempdir().unwrap();
    let config = IndexConfig::in_data_dir(dir.path());
    let url = DatabaseUrl::parse(&database.url()).unwrap();
    let store = Store::open(&StoreConfig::new(url)).await.unwrap();
    let once = || follow::run(store.clone(), config.clone(), CancellationToken::new(), Mode::Once);

    stored::fill(&store, &[site("one.example", "juggle")]).await.unwrap();
    let first = once().await.unwrap();
    assert!(first.was_rebuilt && first.capabilities == 1);
    assert!(finds(&config, "juggle"));

    stored::fill(&store, &[site("two.example", "yodel")]).await.unwrap();
    let second = once().await.unwrap();
    assert!(!second.was_rebuilt && second.position > first.position);
    assert!(finds(&config, "yodel") && finds(&config, "juggle"));

    let rebuilt = follow::rebuild(store.clone(), config.clone()).await.unwrap();
    assert!(rebuilt.was_rebuilt && rebuilt.capabilities == 2);
    assert!(finds(&config, "yodel") && finds(&config, "juggle"));
    drop(store);
    database.drop_database().await.unwrap();
}

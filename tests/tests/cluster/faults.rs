//! Faults of the programs, the engine and the network between them: an orderly error, and nothing lost or doubled afterwards.

use std::time::Duration;

use reqwest::StatusCode;
use serde_json::json;

use crate::programs::{Clustered, Indexer, SITE, ids};
use crate::servers::Reads;

/// All results of the site that changes.
fn all() -> String {
    format!("/search?site={SITE}&limit=50")
}

#[tokio::test(flavor = "multi_thread")]
async fn each_killed_process_is_an_orderly_error_and_nothing_is_lost_or_doubled() {
    let mut of = Clustered::start(Reads::Strict, &[]).await;
    for (shard, word) in ["bravo", "charlie", "delta"].into_iter().enumerate() {
        of.servers.shards[shard].kill();
        assert_eq!(of.status().await, StatusCode::SERVICE_UNAVAILABLE);
        of.change(20 + shard, word).await;
        of.servers.shards[shard].restart();
        of.wait_until_recovered().await;
        of.wait_until_equal(&all()).await;
    }
    of.servers.broker.kill();
    assert_eq!(of.status().await, StatusCode::SERVICE_UNAVAILABLE);
    of.servers.broker.restart();
    of.wait_until_recovered().await;
    for (kill, word) in ["echo", "foxtrot", "golf"].into_iter().enumerate() {
        of.change(25, word).await;
        // it reads the feed twice a second, so kills happen before, while and after it writes
        tokio::time::sleep(Duration::from_millis(250 * kill as u64)).await;
        of.indexer.kill();
        of.indexer = Indexer::start(&of.world, &of.servers);
        of.wait_until_equal(&all()).await;
    }
    let found = of.remote.get(&all()).await;
    assert_eq!((&found["total"], ids(&found).len()), (&json!(25), 25));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cut_network_to_a_shard_is_an_error_in_time_and_changes_are_not_lost() {
    let of = Clustered::start(Reads::Strict, &[]).await;
    of.servers.networks[2].cut();
    let answered = tokio::time::timeout(Duration::from_secs(10), of.status()).await;
    assert_eq!(answered.expect("an answer in time"), StatusCode::SERVICE_UNAVAILABLE);
    of.change(20, "bravo").await;
    of.servers.networks[2].mend();
    of.wait_until_recovered().await;
    of.wait_until_equal(&all()).await;
    let found = of.remote.get(&all()).await;
    assert_eq!((&found["total"], ids(&found).len()), (&json!(20), 20));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rebuild_spreads_the_index_over_an_added_shard() {
    let mut of = Clustered::start(Reads::Strict, &[]).await;
    of.servers.add_shard("agentdex_generation_000001");
    of.rebuild();
    of.wait_until_recovered().await;
    of.wait_until_equal(&all()).await;
    of.servers.shards[3].kill();
    assert_eq!(of.status().await, StatusCode::SERVICE_UNAVAILABLE, "the new shard has a part of the index");
    of.servers.shards[3].restart();
    of.wait_until_recovered().await;
    of.change(20, "bravo").await;
    of.wait_until_equal(&all()).await;
}

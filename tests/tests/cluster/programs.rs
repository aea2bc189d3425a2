//! The indexer and the API over a cluster, beside a local index of the same crawl of the demo.

use std::collections::BTreeSet;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use agentdex_tests::relevance::labelled;
use reqwest::StatusCode;
use serde_json::{Value, json};
use testweb::{Host, demo};

use crate::servers::{Reads, Servers};
use crate::world::{Api, Backend, TIMEOUT, World, output, text_of};

const SHARDS: usize = 3;
/// Maximum time until searches succeed after a killed process is back.
const RECOVERY_MAX: Duration = Duration::from_secs(30);
/// Maximum loss of nDCG, with the first ten results of the local index as the ideal.
const LOSS_MAX: f64 = 0.01;
/// A site that changes during a test.
pub(crate) const SITE: &str = "changing.test";
/// A search with results in the demo.
pub(crate) const SEARCH: &str = "/search?q=book+flight";

/// A crawl of the demo and of [`SITE`], a local index of it, and the same index on a cluster.
pub(crate) struct Clustered {
    pub(crate) world: World,
    pub(crate) servers: Servers,
    pub(crate) indexer: Indexer,
    pub(crate) local: Api,
    pub(crate) remote: Api,
}

/// An indexer that follows the feed into the cluster.
pub(crate) struct Indexer(Child);

impl Indexer {
    pub(crate) fn start(world: &World, servers: &Servers) -> Self {
        let log = std::fs::File::options().create(true).append(true).open(world.path("indexer.log")).unwrap();
        let mut command = world.program("indexer");
        command.args(flags(world, servers)).stdout(Stdio::null()).stderr(log);
        Self(command.spawn().unwrap())
    }

    /// SIGKILL.
    pub(crate) fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Indexer {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

fn flags(world: &World, servers: &Servers) -> Vec<String> {
    let vocabulary = world.path("vocabulary").display().to_string();
    ["--index-dir", &vocabulary, "--cluster", &servers.address()].map(str::to_owned).to_vec()
}

/// A manifest of [`SITE`].
fn manifest(actions: usize, word: &str) -> String {
    let actions: Vec<Value> = (0..actions)
        .map(|number| {
            json!({"id": format!("{word}_{number}"), "description": format!("Does {word} number {number}"),
                   "auth_required": false, "inputs": {}, "outputs": {}, "endpoint": format!("/api/{word}/{number}"),
                   "method": "GET"})
        })
        .collect();
    json!({"awp_version": "0.1", "domain": SITE, "intent": "Changes often.", "actions": actions}).to_string()
}

impl Clustered {
    /// `more` are flags of the API over the cluster.
    pub(crate) async fn start(reads: Reads, more: &[&str]) -> Self {
        let host = Host::new(SITE).file("/agent.json", "application/json", manifest(30, "alpha"));
        let world = World::start(Backend::Sqlite, demo::web().host(host)).await;
        world.write_seeds(demo::seeds().into_iter().chain([SITE]));
        world.crawl(&[]);
        world.index();
        let local = world.api().await;
        let servers = Servers::start(SHARDS, reads);
        let indexer = Indexer::start(&world, &servers);
        let remote = Api::start(&world, |command: &mut Command| {
            command.args(flags(&world, &servers)).args(more);
        });
        let of = Self { world, servers, indexer, local, remote };
        of.wait_until_equal("/search?q=number&limit=50").await;
        of
    }

    /// Waits until a search has the same results on both.
    pub(crate) async fn wait_until_equal(&self, path: &str) {
        let equal = async {
            loop {
                let here = ids(&self.local.get(path).await);
                if let Some(answer) = self.remote.try_get(path).await
                    && answer.status().is_success()
                    && same(&here, &ids(&self.remote.get(path).await))
                {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
        };
        let is_equal = tokio::time::timeout(TIMEOUT, equal).await.is_ok();
        assert!(is_equal, "{path} differs: {}", self.logs());
    }

    /// Changes [`SITE`], crawls it, and indexes the change on this machine.
    pub(crate) async fn change(&self, actions: usize, word: &str) {
        self.world.web.set_file(SITE, "/agent.json", "application/json", manifest(actions, word));
        self.world.crawl(&["--revisit", "0s"]);
        self.world.index();
        let path = format!("/search?q={word}&site={SITE}&limit=50");
        let shown = async {
            while self.local.get(&path).await["total"] != actions as u64 {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        tokio::time::timeout(TIMEOUT, shown).await.expect("the local index shows the change");
    }

    /// The status of a search over the cluster.
    pub(crate) async fn status(&self) -> StatusCode {
        self.remote.try_get(SEARCH).await.expect("the api responds").status()
    }

    /// Waits until the API over the cluster answers again; returns the time that it took.
    pub(crate) async fn wait_until_recovered(&self) -> Duration {
        let began = Instant::now();
        loop {
            let status = self.status().await;
            if status == StatusCode::OK {
                return began.elapsed();
            }
            assert!(began.elapsed() < RECOVERY_MAX, "{status}: {}", self.logs());
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// Rebuilds the index on the cluster. The indexer is stopped in the meantime.
    pub(crate) fn rebuild(&mut self) {
        self.indexer.kill();
        let mut command = self.world.program("indexer");
        command.arg("rebuild").args(flags(&self.world, &self.servers));
        let rebuilt = output(command);
        assert!(rebuilt.status.success(), "{}\n{}", text_of(&rebuilt), self.logs());
        self.indexer = Indexer::start(&self.world, &self.servers);
    }

    fn logs(&self) -> String {
        let log = std::fs::read_to_string(self.world.path("indexer.log")).unwrap_or_default();
        format!("{log}\n{}", self.servers.logs())
    }
}

/// The ids of the results, best first.
pub(crate) fn ids(answer: &Value) -> Vec<String> {
    let results = answer["results"].as_array().unwrap_or_else(|| panic!("{answer}"));
    results.iter().map(|result| result["id"].as_str().unwrap().to_owned()).collect()
}

fn same(one: &[String], other: &[String]) -> bool {
    one.iter().collect::<BTreeSet<_>>() == other.iter().collect::<BTreeSet<_>>()
}

/// nDCG@10 of the results, with those of the local index as the ideal.
fn agreement(ideal: &[String], found: &[String]) -> f64 {
    let gain =
        |id: &String| ideal.iter().take(10).position(|other| other == id).map_or(0.0, |at| (10 - at) as f64);
    let sum = |list: &[String]| -> f64 {
        let of_rank = |(rank, id): (usize, &String)| gain(id) / ((rank + 2) as f64).log2();
        list.iter().take(10).enumerate().map(of_rank).sum()
    };
    let best = sum(ideal);
    if best == 0.0 { f64::from(u8::from(found.is_empty())) } else { sum(found) / best }
}

/// The texts of suggestions. Their counts are those of manifests on a cluster.
fn texts(answer: &Value) -> Vec<String> {
    let suggestions = answer["suggestions"].as_array().unwrap_or_else(|| panic!("{answer}"));
    suggestions.iter().map(|suggestion| suggestion["text"].to_string()).collect()
}

fn query(text: &str) -> String {
    url::form_urlencoded::byte_serialize(text.as_bytes()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn searches_over_a_cluster_agree_with_the_local_index() {
    let of = Clustered::start(Reads::Strict, &[]).await;
    let requests = labelled::requests().unwrap();
    let mut sum = 0.0;
    for request in &requests {
        let path = format!("/search?q={}", query(&request.text));
        sum += agreement(&ids(&of.local.get(&path).await), &ids(&of.remote.get(&path).await));
    }
    let mean = sum / requests.len() as f64;
    println!("agreement of {} requests with the local index, nDCG@10: {mean:.4}", requests.len());
    assert!(mean >= 1.0 - LOSS_MAX, "{mean}");
    for path in [
        "/search?q=book&safety=read",
        "/search?q=book&format=awp&limit=20",
        "/search?q=type:travel:*",
        "/search?q=%22book+a%22",
        "/search?q=book+-flight",
        "/search?site=skyhop.example&limit=50",
    ] {
        let (here, there) = (of.local.get(path).await, of.remote.get(path).await);
        assert!(same(&ids(&here), &ids(&there)), "{path}: {here} {there}");
        assert_eq!(here["total"], there["total"], "{path}");
    }
    for path in ["/suggest?q=bo", "/suggest?q=fligh"] {
        let (here, there) = (of.local.get(path).await, of.remote.get(path).await);
        assert_eq!(texts(&here), texts(&there), "{path}");
    }
    let facets = "/search?q=book&facets=format,safety";
    let (here, there) = (of.local.get(facets).await, of.remote.get(facets).await);
    assert_eq!(here["facets"], there["facets"], "all matches fit into the shortlist");
    let first = ids(&of.local.get(SEARCH).await).remove(0);
    let similar = format!("/capabilities/{first}/similar");
    let (here, there) = (of.local.get(&similar).await, of.remote.get(&similar).await);
    assert!(agreement(&ids(&here), &ids(&there)) >= 1.0 - LOSS_MAX, "{here} {there}");
    for start in ["/search?q=number&limit=7".to_owned(), format!("/search?site={SITE}&limit=7")] {
        let mut found = Vec::new();
        let mut path = start.clone();
        loop {
            let page = of.remote.get(&path).await;
            found.extend(ids(&page));
            let Some(cursor) = page["next_cursor"].as_str() else { break };
            path = format!("{start}&cursor={}", query(cursor));
        }
        let distinct: BTreeSet<_> = found.iter().collect();
        assert_eq!(distinct.len(), found.len(), "{start}: a result is on two pages");
        let all = of.local.get(&start).await;
        assert_eq!(all["total"], found.len() as u64, "{start}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_shard_is_an_error_and_changes_in_the_meantime_are_not_lost() {
    let mut of = Clustered::start(Reads::Strict, &[]).await;
    of.servers.shards[0].kill();
    let refused = of.remote.try_get(SEARCH).await.expect("the api responds");
    assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
    of.change(20, "bravo").await;
    of.servers.shards[0].restart();
    println!("searches succeed {:?} after the shard is back", of.wait_until_recovered().await);
    of.wait_until_equal(&format!("/search?site={SITE}&limit=50")).await;
    let all = of.remote.get(&format!("/search?site={SITE}&limit=50")).await;
    assert_eq!((&all["total"], ids(&all).len()), (&json!(20), 20));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_partial_answer_names_the_missing_shard_if_the_operator_allows_it() {
    let mut of = Clustered::start(Reads::Partial, &["--cluster-missing-shards", "partial"]).await;
    let whole = of.remote.get(SEARCH).await;
    assert_eq!((whole.get("partial"), whole.get("missing_shards")), (None, None), "{whole}");
    of.servers.shards[1].kill();
    of.wait_until_recovered().await;
    let partial = of.remote.get(SEARCH).await;
    assert_eq!(partial["partial"], true, "{partial}");
    let missing = partial["missing_shards"].as_array().unwrap();
    assert!(missing == &[json!("s1")] || missing == &[json!("unknown")], "{partial}");
    let first = ids(&whole).remove(0);
    let other = of.remote.try_get(&format!("/capabilities/{first}/similar")).await.expect("the api responds");
    assert_eq!(other.status(), StatusCode::SERVICE_UNAVAILABLE, "this response cannot name the shard");
}

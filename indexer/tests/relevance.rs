//! Ranks the public tool-retrieval sets through the real index and the real query path, where they are present beside
//! the workspace, and holds the mean of nDCG@10 above the bar. It prints one line a set.

#![expect(clippy::unwrap_used, reason = "a test ends where something is amiss")]
#![expect(clippy::cast_precision_loss, reason = "ranks and counts are small")]

mod support;

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

use indexer::{IndexBuilder, SearchRequest, Searcher};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use store::{FeedPosition, StoredManifest};

/// Mean of nDCG@10 over the five sets below which the ranking has become worse.
const MEAN_MIN: f64 = 0.68;
const SETS: [&str; 5] = ["metatool", "sealtools", "stabletoolbench", "bfcl", "livemcp"];
const CUT: usize = 10;

#[derive(Deserialize)]
struct Tool {
    id: String,
    name: String,
    #[serde(default)]
    title: Option<String>,
    #[serde(default)]
    description: String,
    #[serde(default)]
    extra: String,
    #[serde(default)]
    site: String,
    #[serde(default)]
    site_description: String,
    #[serde(default)]
    category: String,
    #[serde(default)]
    method: Option<String>,
    #[serde(default)]
    params: Vec<Field>,
    #[serde(default)]
    outputs: Vec<Field>,
}

#[derive(Deserialize)]
struct Field {
    name: String,
    #[serde(default)]
    description: Option<String>,
    #[serde(default, rename = "enum")]
    values: Vec<Value>,
}

#[derive(Deserialize)]
struct Query {
    text: String,
    relevant: Vec<String>,
}

#[derive(Default, Clone, Copy)]
struct Scores {
    ndcg: f64,
    recall: f64,
    reciprocal_rank: f64,
}

fn folder() -> Option<PathBuf> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let places = ["../../shared/relevance", "../../../shared/relevance"];
    places.iter().map(|place| here.join(place)).find(|path| path.is_dir())
}

fn read<T: for<'a> Deserialize<'a>>(path: &Path) -> Vec<T> {
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn schema(fields: &[Field]) -> Value {
    let property = |field: &Field| {
        let mut property = Map::new();
        property.insert("description".into(), json!(field.description.clone().unwrap_or_default()));
        if !field.values.is_empty() {
            property.insert("enum".into(), json!(field.values));
        }
        (field.name.clone(), Value::Object(property))
    };
    json!({"type": "object", "properties": fields.iter().map(property).collect::<Map<_, _>>()})
}

/// Tools of one site become one manifest; a tool without a site gets one of its own, of letters that mean nothing.
fn manifests(tools: &[Tool]) -> Vec<StoredManifest> {
    let mut by_site: BTreeMap<String, StoredManifest> = BTreeMap::new();
    for (at, tool) in tools.iter().enumerate() {
        let slug: String = tool
            .site
            .to_lowercase()
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
            .collect();
        let number: String = format!("{at:05}").bytes().map(|b| char::from(b'q' + (b - b'0') % 10)).collect();
        let slug = slug.trim_matches('-');
        let host = if slug.is_empty() { format!("qx{number}.example") } else { format!("{slug}.example") };
        let stored = by_site.entry(host.clone()).or_insert_with(|| support::manifest(&host, &tool.site));
        let about = format!("{} {}", tool.site_description, tool.extra);
        if !about.trim().is_empty() {
            stored.manifest.description = Some(about.trim().to_owned());
        }
        let capability = support::add(stored, &tool.id, &tool.description);
        capability.name.clone_from(&tool.name);
        capability.title.clone_from(&tool.title);
        capability.invocation.method.clone_from(&tool.method);
        if !tool.category.is_empty() {
            capability.tags = vec![tool.category.clone()];
        }
        capability.parameters = Some(schema(&tool.params));
        capability.response = Some(schema(&tool.outputs));
    }
    by_site.into_values().collect()
}

fn judge(found: &[String], relevant: &[String]) -> Scores {
    let relevant: HashSet<&String> = relevant.iter().collect();
    let gain = |rank: usize| 1.0 / (rank as f64 + 2.0).log2();
    let hits: Vec<usize> = found
        .iter()
        .take(CUT)
        .enumerate()
        .filter(|(_, id)| relevant.contains(id))
        .map(|(rank, _)| rank)
        .collect();
    let ideal: f64 = (0..relevant.len().min(CUT)).map(gain).sum();
    Scores {
        ndcg: hits.iter().map(|rank| gain(*rank)).sum::<f64>() / ideal,
        recall: hits.len() as f64 / relevant.len() as f64,
        reciprocal_rank: hits.first().map_or(0.0, |rank| 1.0 / (*rank as f64 + 1.0)),
    }
}

fn evaluate(folder: &Path, set: &str) -> (Scores, usize, usize) {
    let tools: Vec<Tool> = read(&folder.join(set).join("tools.jsonl"));
    let queries: Vec<Query> = read(&folder.join(set).join("queries.jsonl"));
    let dir = tempfile::tempdir().unwrap();
    let builder = IndexBuilder::begin(dir.path(), "relevance").unwrap();
    for stored in manifests(&tools) {
        builder.add(&stored).unwrap();
    }
    builder.finish(FeedPosition(1)).unwrap();
    let searcher = Searcher::open(dir.path()).unwrap();
    let mut sum = Scores::default();
    let mut lost = 0;
    for query in &queries {
        let request =
            SearchRequest { phrasings: vec![query.text.clone()], limit: CUT, ..SearchRequest::default() };
        let answer = match searcher.search(&request) {
            Ok(answer) => answer,
            Err(error) => panic!("{}: {error}", query.text),
        };
        lost += usize::from(answer.nothing_good);
        let found: Vec<String> = answer.hits.into_iter().map(|hit| hit.native_id).collect();
        let scores = judge(&found, &query.relevant);
        sum.ndcg += scores.ndcg;
        sum.recall += scores.recall;
        sum.reciprocal_rank += scores.reciprocal_rank;
    }
    let n = queries.len() as f64;
    let mean =
        Scores { ndcg: sum.ndcg / n, recall: sum.recall / n, reciprocal_rank: sum.reciprocal_rank / n };
    (mean, queries.len(), lost)
}

#[test]
fn the_public_sets_rank_above_the_bar() {
    let Some(folder) = folder() else {
        println!("no relevance data beside the workspace: nothing to rank");
        return;
    };
    let results: Vec<(Scores, usize, usize)> = std::thread::scope(|scope| {
        let threads: Vec<_> = SETS.iter().map(|set| scope.spawn(|| evaluate(&folder, set))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    println!(
        "{:<16} {:>7} {:>8} {:>10} {:>8} {:>13}",
        "set", "queries", "nDCG@10", "Recall@10", "MRR", "nothing good"
    );
    for (set, (scores, queries, lost)) in SETS.iter().zip(&results) {
        let Scores { ndcg, recall, reciprocal_rank } = scores;
        println!("{set:<16} {queries:>7} {ndcg:>8.4} {recall:>10.4} {reciprocal_rank:>8.4} {lost:>13}");
    }
    let mean = results.iter().map(|(scores, _, _)| scores.ndcg).sum::<f64>() / results.len() as f64;
    println!("{:<16} {:>7} {mean:>8.4}", "mean", "");
    assert!(mean >= MEAN_MIN, "the mean of nDCG@10 is {mean:.4} and must be at least {MEAN_MIN}");
}

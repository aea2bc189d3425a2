//! Prints nDCG@10, Recall@10 and MRR of the public sets: our index through its own query path, compared with FTS5 of SQLite
//! and the full text search of PostgreSQL over the same tools and requests, in the same run.
//!
//! `relevance [--postgres URL] [--embedder DIR] [--json FILE] [--record]`; `--record` stores our numbers as those that the gate
//! compares with. With the feature `embedder`, a model's directory adds our index with the vectors of that model.

#![expect(clippy::print_stdout, reason = "a program that prints its results")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use agentdex_tests::relevance::engines::{OwnIndex, Rankings, postgres, scores, sqlite};
use agentdex_tests::relevance::judge::{Scores, mean};
use agentdex_tests::relevance::labelled;
use agentdex_tests::relevance::sets::{self, PublicSet};
use anyhow::Context;
use indexer::{WordWeights, vectors};

/// Our index with the vectors of the given model; the gate compares results without vectors.
const WITH_EMBEDDER: &str = "agentdex with the embedder";

type Table = BTreeMap<String, BTreeMap<String, Scores>>;

#[derive(Default)]
struct Arguments {
    postgres: Option<String>,
    embedder: Option<PathBuf>,
    json: Option<PathBuf>,
    is_recorded: bool,
}

fn arguments() -> anyhow::Result<Arguments> {
    let mut found = Arguments::default();
    let mut typed = std::env::args().skip(1);
    while let Some(flag) = typed.next() {
        let mut value = || typed.next().with_context(|| format!("{flag} needs a value"));
        match flag.as_str() {
            "--postgres" => found.postgres = Some(value()?),
            "--embedder" => found.embedder = Some(value()?.into()),
            "--json" => found.json = Some(value()?.into()),
            "--record" => found.is_recorded = true,
            _ => anyhow::bail!(
                "unknown flag {flag}: known are --postgres URL, --embedder DIR, --json FILE, --record"
            ),
        }
    }
    Ok(found)
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let arguments = arguments()?;
    let sets = sets::read_all()?.context("there are no shared/relevance sets beside the workspace")?;
    let embedder = arguments.embedder.as_deref().map(vectors::open_embedder).transpose()?;
    let mut table = Table::new();
    for set in &sets {
        let index = OwnIndex::of(set)?;
        add(&mut table, "agentdex", set, &index.rank(&set.requests, &WordWeights::built_in(), None)?);
        let none = Arc::new(WordWeights::default());
        add(&mut table, "agentdex, nothing learnt", set, &index.rank(&set.requests, &none, None)?);
        if let Some(embedder) = &embedder {
            index.embed(&**embedder)?;
            let with = Some(Arc::clone(embedder));
            let ranked = index.rank(&set.requests, &WordWeights::built_in(), with)?;
            add(&mut table, WITH_EMBEDDER, set, &ranked);
        }
        add(&mut table, "SQLite FTS5", set, &sqlite(set).await?);
        if let Some(url) = &arguments.postgres {
            add(&mut table, "PostgreSQL ts_rank", set, &postgres(url, set).await?);
        }
    }
    for scores in table.values_mut() {
        let all: Vec<Scores> = scores.values().copied().collect();
        scores.insert("mean".to_owned(), mean(&all));
    }
    print(&table);
    let judged = labelled::judge_all()?;
    let of_demo: Vec<_> = judged.iter().filter(|of| of.request.is_of_demo()).cloned().collect();
    let own = labelled::mean_of(&of_demo);
    println!(
        "own labelled requests over the demo: nDCG@10 {:.3}, Recall@10 {:.3}, MRR {:.3}",
        own.ndcg, own.recall, own.mrr
    );
    if let Some(path) = arguments.json {
        std::fs::write(path, serde_json::to_string_pretty(&table)?)?;
    }
    if arguments.is_recorded {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("relevance/recorded.json");
        table.retain(|engine, _| engine.starts_with("agentdex") && engine != WITH_EMBEDDER);
        table.insert("own requests".to_owned(), BTreeMap::from([("mean".to_owned(), own)]));
        std::fs::write(path, serde_json::to_string_pretty(&table)? + "\n")?;
    }
    Ok(())
}

fn add(table: &mut Table, engine: &str, set: &PublicSet, rankings: &Rankings) {
    let scores = scores(&set.requests, rankings);
    table.entry(engine.to_owned()).or_default().insert(set.name.to_owned(), scores);
}

fn print(table: &Table) {
    let sets: Vec<&str> = sets::SETS.into_iter().chain(["mean"]).collect();
    let heads: Vec<String> = sets.iter().map(|set| format!("{set:>16}")).collect();
    println!("{:<26} {}", "nDCG@10 Recall@10 MRR", heads.join(" "));
    for (engine, scores) in table {
        let cell = |set: &&str| {
            let of = scores.get(*set).copied().unwrap_or_default();
            format!("{:>6.3} {:.2} {:.2}", of.ndcg, of.recall, of.mrr)
        };
        let cells: Vec<String> = sets.iter().map(cell).collect();
        println!("{engine:<26} {}", cells.join(" "));
    }
}

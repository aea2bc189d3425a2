//! Prints the relevance of search results: our index through its own query path, compared with SQLite FTS5 and PostgreSQL full-text search
//! over the same tools and requests, in the same run.
//!
//! `relevance [--sets DIR] [--postgres URL] [--embedder DIR] [--json FILE] [--examples] [--record]`. Without `--sets`, it ranks the public
//! sets next to the workspace and the labelled requests. With `--sets`, it ranks every set in a directory: each is a directory with
//! `tools.jsonl` and `queries.jsonl` in the same format. `--examples` measures the effect of requests as examples of tools. `--record`
//! stores our numbers as the reference of the regression test. With the feature `embedder`, `--embedder` also measures our index with the
//! vectors of the model in that directory.

#![expect(clippy::print_stdout, reason = "a program that prints its results")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use agentdex_tests::relevance::engines::{OwnIndex, outcomes, postgres, sqlite};
use agentdex_tests::relevance::examples;
use agentdex_tests::relevance::labelled;
use agentdex_tests::relevance::measures::{Measures, Outcome, interval, mean_of_sets, measures};
use agentdex_tests::relevance::sets::{self, PublicSet};
use anyhow::Context;
use indexer::{Embedder, WordWeights, vectors};

const LEARNT: &str = "agentdex";
const NOTHING_LEARNT: &str = "agentdex, nothing learnt";
/// Our index with the vectors of the given model; the regression test compares results without vectors.
const WITH_EMBEDDER: &str = "agentdex with the embedder";

/// Measures by engine, then by set.
type Table = BTreeMap<String, BTreeMap<String, Measures>>;

#[derive(Default)]
struct Arguments {
    sets: Option<PathBuf>,
    postgres: Option<String>,
    embedder: Option<PathBuf>,
    json: Option<PathBuf>,
    has_examples: bool,
    is_recorded: bool,
}

fn arguments() -> anyhow::Result<Arguments> {
    let mut found = Arguments::default();
    let mut typed = std::env::args().skip(1);
    while let Some(flag) = typed.next() {
        let mut value = || typed.next().with_context(|| format!("{flag} needs a value"));
        match flag.as_str() {
            "--sets" => found.sets = Some(value()?.into()),
            "--postgres" => found.postgres = Some(value()?),
            "--embedder" => found.embedder = Some(value()?.into()),
            "--json" => found.json = Some(value()?.into()),
            "--examples" => found.has_examples = true,
            "--record" => found.is_recorded = true,
            _ => anyhow::bail!(
                "unknown flag {flag}: the flags are --sets DIR, --postgres URL, --embedder DIR, --json FILE, --examples, --record"
            ),
        }
    }
    anyhow::ensure!(
        !(found.is_recorded && found.sets.is_some()),
        "--record stores the numbers of the sets next to the workspace, so it cannot be used with --sets"
    );
    Ok(found)
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let arguments = arguments()?;
    let sets = match &arguments.sets {
        Some(folder) => sets::read_folder(folder)?,
        None => sets::read_all()?.context("there are no shared/relevance sets next to the workspace")?,
    };
    let embedder = arguments.embedder.as_deref().map(vectors::open_embedder).transpose()?;
    let mut run = Run { postgres: arguments.postgres, embedder, table: Table::new(), ndcg: BTreeMap::new() };
    for set in &sets {
        run.rank(set).await?;
    }
    run.add_means();
    let names: Vec<&str> = sets.iter().map(|set| set.name.as_str()).collect();
    print(&run, &names);
    if arguments.has_examples {
        print_examples(&sets)?;
    }
    if arguments.sets.is_none() {
        labelled_requests(&mut run.table)?;
    }
    if let Some(path) = arguments.json {
        std::fs::write(path, serde_json::to_string_pretty(&run.table)?)?;
    }
    if arguments.is_recorded {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("relevance/recorded.json");
        run.table.retain(|engine, _| engine.starts_with(LEARNT) && engine != WITH_EMBEDDER);
        std::fs::write(path, serde_json::to_string_pretty(&run.table)? + "\n")?;
    }
    Ok(())
}

struct Run {
    postgres: Option<String>,
    embedder: Option<Arc<dyn Embedder>>,
    table: Table,
    /// nDCG of the requests with an answer, by engine and set.
    ndcg: BTreeMap<String, Vec<Vec<f64>>>,
}

impl Run {
    async fn rank(&mut self, set: &PublicSet) -> anyhow::Result<()> {
        let index = OwnIndex::of(set)?;
        for (engine, known) in [(LEARNT, WordWeights::built_in()), (NOTHING_LEARNT, Arc::default())] {
            self.add(engine, set, &index.outcomes(set, &known)?);
        }
        if let Some(embedder) = &self.embedder {
            index.embed(&**embedder)?;
            let with = Some(Arc::clone(embedder));
            let ranked = index.rank(&set.requests, &WordWeights::built_in(), with)?;
            self.add(WITH_EMBEDDER, set, &outcomes(&set.requests, &ranked));
        }
        self.add("SQLite FTS5", set, &outcomes(&set.requests, &sqlite(set).await?));
        if let Some(url) = self.postgres.clone() {
            let ranked = postgres(&url, set).await?;
            self.add("PostgreSQL ts_rank", set, &outcomes(&set.requests, &ranked));
        }
        Ok(())
    }

    fn add(&mut self, engine: &str, set: &PublicSet, outcomes: &[Outcome]) {
        let answered = outcomes.iter().filter(|outcome| outcome.has_answer);
        let ndcg = answered.map(|outcome| outcome.scores.ndcg).collect();
        self.ndcg.entry(engine.to_owned()).or_default().push(ndcg);
        self.table.entry(engine.to_owned()).or_default().insert(set.name.clone(), measures(outcomes));
    }

    fn add_means(&mut self) {
        for sets in self.table.values_mut() {
            let mean = mean_of_sets(sets.values());
            sets.insert("mean".to_owned(), mean);
        }
    }
}

fn print(run: &Run, sets: &[&str]) {
    let names: Vec<&str> = sets.iter().copied().chain(["mean"]).collect();
    let heads: Vec<String> = names.iter().map(|set| format!("{set:>16}")).collect();
    println!("{:<26} {}  95 % of the mean", "nDCG@10", heads.join(" "));
    for (engine, sets) in &run.table {
        let (low, high) = run.ndcg.get(engine).map(|of| interval(of)).unwrap_or_default();
        println!("{engine:<26} {}  {low:.3} to {high:.3}", cells(sets, &names, "ndcg"));
    }
    let Some(own) = run.table.get(NOTHING_LEARNT) else { return };
    let measures: std::collections::BTreeSet<&String> = own.values().flat_map(BTreeMap::keys).collect();
    println!(
        "\n{NOTHING_LEARNT}: right results among the first ten (found), first (first), requests with an answer that keep"
    );
    println!(
        "a result (kept), requests without an answer that keep none (no answer), the share of those without an answer among all"
    );
    println!("requests that keep none (no answer precision), and parts of the requests");
    for measure in measures {
        println!("{measure:<26} {}", cells(own, &names, measure));
    }
}

fn cells(sets: &BTreeMap<String, Measures>, names: &[&str], measure: &str) -> String {
    let cell = |set: &&str| match sets.get(*set).and_then(|of| of.get(measure)) {
        Some(value) => format!("{value:>16.3}"),
        None => format!("{:>16}", "-"),
    };
    names.iter().map(cell).collect::<Vec<_>>().join(" ")
}

/// Evaluates half of the requests: without examples, with up to two requests of the other half as examples of each tool, and with an
/// attacker.
fn print_examples(sets: &[PublicSet]) -> anyhow::Result<()> {
    println!(
        "\nhalf of the requests, nothing learnt: nDCG@10 without examples, with two for each tool, and with an attacker"
    );
    println!(
        "that claims one request in each of its tools; claimed requests for which it is first, and on the first page"
    );
    for set in sets {
        let effect = examples::effect(set, &Arc::default())?;
        let [without, with, attacked] = [effect.without, effect.with, effect.attacked].map(|of| of.ndcg);
        println!(
            "{:<16} {without:.3} {with:.3} {attacked:.3}; first {:.2}, on the first page {:.2}",
            set.name, effect.first, effect.on_page
        );
    }
    Ok(())
}

/// Measures the labelled requests, by half, and the publishers' own examples.
fn labelled_requests(table: &mut Table) -> anyhow::Result<()> {
    println!();
    let judged = labelled::judge_all(&Arc::default())?;
    for (name, found) in labelled::parts(&judged) {
        println!("{name}");
        for (measure, value) in &found {
            println!("  {measure:<24} {value:.3}");
        }
        table.entry(NOTHING_LEARNT.to_owned()).or_default().insert(name, found);
    }
    let examples = labelled::examples_found()?;
    println!(
        "of {} example requests of publishers, {} find their capability among the first ten, {} without the examples in the index",
        examples.all, examples.found, examples.found_without
    );
    Ok(())
}

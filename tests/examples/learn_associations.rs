//! Learns which words of requests are associated with which words of capabilities, from the public sets beside the workspace,
//! and evaluates the result on requests that it was not trained on.
//!
//! `learn_associations` prints the mean nDCG@10 without associations, on held-out halves (learned from one half of
//! every set's requests, evaluated on the other, both ways), with a whole set held out, with and without what goes with
//! a word, and on the training requests.
//! `learn_associations --write FILE` writes the weights of the words of all requests; the shipped file is
//! `indexer/data/associations.txt`. What goes with a word is not written: it costs on sets that it was not learned from.

#![expect(clippy::print_stdout, reason = "a program that prints its results")]

use std::sync::Arc;

use agentdex_tests::relevance::engines::{OwnIndex, scores};
use agentdex_tests::relevance::judge::{Scores, mean};
use agentdex_tests::relevance::learning::{Lesson, Pool, learn};
use agentdex_tests::relevance::sets::{self, PublicSet, Request};
use anyhow::Context;
use indexer::Associations;

const HEADER: &str = "\
# Learnt from requests of public tool-retrieval sets (MetaTool, Seal-Tools, StableToolBench, BFCL, LiveMCPBench) by
# `tests/bench learn`: the stem of a word of requests, and how much it says about what is wanted (1 is a usual word).
";

struct Taught {
    set: PublicSet,
    pool: Pool,
    index: OwnIndex,
}

fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let sets = sets::read_all()?.context("there are no shared/relevance sets beside the workspace")?;
    let taught: Vec<Taught> = sets.into_iter().map(taught).collect::<anyhow::Result<_>>()?;
    if arguments.next().as_deref() == Some("--write") {
        let path = arguments.next().context("--write needs a file")?;
        let all = weights_of(&learnt(&taught, |_, _| true));
        std::fs::write(&path, format!("{HEADER}{all}"))?;
        println!("{} words written to {path}", all.len());
        return Ok(());
    }
    let none = Arc::new(Associations::default());
    print_row("set", &taught.iter().map(|taught| taught.set.name.to_owned()).collect::<Vec<_>>(), "mean");
    report("without", &judged(&taught, |_, _| true, |_| Arc::clone(&none))?);
    let mut held_out = Vec::new();
    for half in [0, 1] {
        let known = Arc::new(learnt(&taught, |_, request| half_of(request) == half));
        let judged = judged(&taught, |_, request| half_of(request) != half, |_| Arc::clone(&known))?;
        report(&format!("half {half} held out"), &judged);
        held_out.push(judged);
    }
    let both: Vec<Scores> =
        (0..taught.len()).map(|at| mean(&held_out.iter().map(|half| half[at]).collect::<Vec<_>>())).collect();
    report("halves held out", &both);
    let others: Vec<Arc<Associations>> =
        (0..taught.len()).map(|held| Arc::new(learnt(&taught, |set, _| set != held))).collect();
    report("set held out", &judged(&taught, |_, _| true, |set| Arc::clone(&others[set]))?);
    let weights: Vec<Arc<Associations>> = others.iter().map(|known| Arc::new(weights_of(known))).collect();
    report("set held out, weights", &judged(&taught, |_, _| true, |set| Arc::clone(&weights[set]))?);
    let all = Arc::new(learnt(&taught, |_, _| true));
    report("not held out", &judged(&taught, |_, _| true, |_| Arc::clone(&all))?);
    report("as shipped", &judged(&taught, |_, _| true, |_| Associations::built_in())?);
    Ok(())
}

/// The weights of words without what goes with them.
fn weights_of(known: &Associations) -> Associations {
    let text = known.to_string();
    let weights = text.lines().map(|line| line.split(' ').take(2).collect::<Vec<_>>().join(" ") + "\n");
    Associations::parse(&weights.collect::<String>())
}

fn taught(set: PublicSet) -> anyhow::Result<Taught> {
    let pool = Pool::of(&set.manifests()?);
    let index = OwnIndex::of(&set)?;
    Ok(Taught { set, pool, index })
}

/// The half of a request, by its text (FNV-1a), so that neighbours are in different halves.
fn half_of(request: &Request) -> u64 {
    let hash = request.text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    (hash >> 32) % 2
}

fn learnt(taught: &[Taught], is_taught: impl Fn(usize, &Request) -> bool) -> Associations {
    let mut lessons = Vec::new();
    for (at, Taught { set, pool, .. }) in taught.iter().enumerate() {
        let chosen = set.requests.iter().filter(|request| is_taught(at, request));
        lessons.extend(chosen.map(|of| Lesson { request: &of.text, meant: &of.relevant, pool }));
    }
    learn(&lessons)
}

fn judged(
    taught: &[Taught],
    is_judged: impl Fn(usize, &Request) -> bool,
    known: impl Fn(usize) -> Arc<Associations>,
) -> anyhow::Result<Vec<Scores>> {
    let one = |(at, taught): (usize, &Taught)| {
        let requests: Vec<Request> =
            taught.set.requests.iter().filter(|request| is_judged(at, request)).cloned().collect();
        Ok(scores(&requests, &taught.index.rank(&requests, &known(at), None)?))
    };
    taught.iter().enumerate().map(one).collect()
}

fn report(what: &str, scores: &[Scores]) {
    let cells: Vec<String> = scores.iter().map(|of| format!("{:.4}", of.ndcg)).collect();
    print_row(what, &cells, &format!("{:.4}", mean(scores).ndcg));
}

fn print_row(what: &str, cells: &[String], last: &str) {
    let cells: Vec<String> = cells.iter().map(|cell| format!("{cell:>15}")).collect();
    println!("{what:<22} {} {last:>8}", cells.join(" "));
}

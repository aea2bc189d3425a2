//! Benchmark of the API: requests per second and latencies at a hundred connections, compared with a server that sends a constant response
//! of the same size; a steady load at half of the capacity; overload at twice and ten times the capacity, and the recovery; an export.
//!
//! The load generator runs on the same machine and competes with the API for the processor.

#![expect(clippy::print_stdout, reason = "a program that prints its results")]

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use agentdex_tests::speed::generated::{CAPABILITIES_PER_SITE, Seeded, Texts};
use agentdex_tests::speed::load::{Load, Outcome, Pace, drive};
use agentdex_tests::speed::measure::{in_parallel, resident_kib};
use agentdex_tests::speed::stored;
use anyhow::Context;
use axum::Router;
use axum::routing::get;
use clap::Parser;
use indexer::{IndexConfig, SearchRequest, Searcher};
use serde::Serialize;
use store::{FeedPosition, Store};
use tokio::task::JoinSet;

const CONNECTIONS: usize = 100;
/// More connections than the API has slots for.
const CONNECTIONS_OVERLOAD: usize = 1_000;
const REQUESTS: usize = 1_000;
/// Names of the loads above the capacity, and of the load after them.
const TWICE: &str = "search at twice the capacity";
const TEN_TIMES: &str = "search at ten times the capacity";
const AFTERWARDS: &str = "search at half, after the overload";
/// Sites saved per batch while the store is filled.
const SITES_PER_BATCH: usize = 500;

/// Benchmark of the API.
#[derive(Parser)]
struct Arguments {
    /// Program to measure, as target/release/api
    #[arg(long, value_name = "PROGRAM")]
    api: PathBuf,
    /// Number of generated capabilities
    #[arg(long, default_value_t = 200_000)]
    capabilities: usize,
    /// Data directory. It is kept, and reused if it already contains the data
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// Seconds of every load except the overloads
    #[arg(long, default_value = "10", value_name = "SECONDS", value_parser = seconds)]
    seconds: Duration,
    /// Seconds of the loads at twice and ten times the capacity
    #[arg(long, default_value = "30", value_name = "SECONDS", value_parser = seconds)]
    overload_seconds: Duration,
    /// File for the report
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Require only that overload causes no errors. The targets apply to a release build at full size
    #[arg(long)]
    smoke: bool,
}

fn seconds(text: &str) -> Result<Duration, std::num::ParseIntError> {
    text.parse().map(Duration::from_secs)
}

#[derive(Default, Serialize)]
struct Report {
    capabilities: usize,
    loads: BTreeMap<String, Outcome>,
    searches_in_process_per_second: f64,
    export_lines: u64,
    export_seconds: f64,
    /// Resident memory of the API in KiB before the export, and its peak during the export.
    export_memory_kib: (u64, u64),
    bars: Vec<Bar>,
}

#[derive(Serialize)]
struct Bar {
    what: &'static str,
    wanted: &'static str,
    found: String,
    is_met: bool,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let texts = Texts::present()?;
    let scratch = tempfile::tempdir()?;
    let dir = arguments.data_dir.as_deref().unwrap_or_else(|| scratch.path());
    let mut report = Report { capabilities: arguments.capabilities, ..Report::default() };
    let sample = fill(&arguments, &texts, dir).await?;
    let paths = Paths::of(&texts, &sample);
    report.searches_in_process_per_second = in_process(&arguments, &paths.words, dir)?;
    let served = Served::start(&arguments.api, dir).await?;
    each_kind(&arguments, &served, &paths, &mut report).await?;
    steady_and_overload(&arguments, &served, &paths, &mut report).await?;
    export(&served, &mut report).await?;
    judge(&mut report);
    print(&report);
    if let Some(path) = &arguments.json {
        std::fs::write(path, serde_json::to_string_pretty(&report)? + "\n")?;
    }
    let failed = if arguments.smoke { failures_of_overload(&report) } else { unmet(&report) };
    anyhow::ensure!(failed.is_empty(), "not met: {}", failed.join("; "));
    Ok(())
}

/// Fills a store with visits and indexes it; returns the ids of some capabilities with their sites.
async fn fill(arguments: &Arguments, texts: &Texts, dir: &Path) -> anyhow::Result<Vec<(String, String)>> {
    std::fs::create_dir_all(dir)?;
    let store = Store::open_in_data_dir(dir).await?;
    if store.feed_head().await? == FeedPosition(0) {
        let sites = (arguments.capabilities / CAPABILITIES_PER_SITE).max(1);
        for first in (0..sites).step_by(SITES_PER_BATCH) {
            let last = (first + SITES_PER_BATCH).min(sites);
            let made = (first..last).map(|at| texts.site(at)).collect::<anyhow::Result<Vec<_>>>()?;
            stored::fill(&store, &made).await?;
        }
        let made = indexer::follow::rebuild(store.clone(), IndexConfig::in_data_dir(dir)).await?;
        println!("{} capabilities stored and indexed", made.capabilities);
    }
    let some = store.manifests_page(None, 200).await?;
    let sample = some.iter().flat_map(|stored| {
        let site = stored.manifest.url.site().to_string();
        stored.manifest.capabilities.iter().take(5).map(move |of| (of.id.to_string(), site.clone()))
    });
    anyhow::ensure!(store.feed_head().await? > FeedPosition(0), "the store is empty");
    let sample = sample.collect();
    store.close().await;
    Ok(sample)
}

/// The requested paths.
struct Paths {
    words: Vec<String>,
    kinds: [(&'static str, Vec<String>); 4],
}

impl Paths {
    fn of(texts: &Texts, sample: &[(String, String)]) -> Self {
        let mut seeded = Seeded::new(7);
        let words: Vec<String> = (0..REQUESTS).map(|_| texts.keywords(&mut seeded)).collect();
        let asked = |path: &str, text: &String| {
            let pairs = url::form_urlencoded::Serializer::new(String::new()).append_pair("q", text).finish();
            format!("{path}?{pairs}")
        };
        let prefixes: Vec<String> = (0..REQUESTS)
            .map(|_| texts.prefix(&mut seeded))
            .filter(|prefix| !prefix.trim().is_empty())
            .collect();
        Self {
            kinds: [
                ("search", words.iter().map(|text| asked("/search", text)).collect()),
                ("suggest", prefixes.iter().map(|text| asked("/suggest", text)).collect()),
                ("capability", sample.iter().map(|(id, _)| format!("/capabilities/{id}")).collect()),
                ("site", sample.iter().map(|(_, site)| format!("/sites/{site}")).collect()),
            ],
            words,
        }
    }
}

/// Measures the upper bound: the searcher on every core, without HTTP.
fn in_process(arguments: &Arguments, words: &[String], dir: &Path) -> anyhow::Result<f64> {
    let searcher = Searcher::open(&IndexConfig::in_data_dir(dir).dir)?;
    let requests: Vec<SearchRequest> = words
        .iter()
        .map(|text| SearchRequest { phrasings: vec![text.clone()], ..SearchRequest::default() })
        .collect();
    in_parallel(arguments.seconds, &requests, |request| {
        searcher.search(request)?;
        Ok(())
    })
}

/// The running program.
struct Served {
    child: Child,
    address: SocketAddr,
}

impl Served {
    async fn start(program: &Path, data_dir: &Path) -> anyhow::Result<Self> {
        let address = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?;
        let child = Command::new(program)
            .args(["-q", "--listen", &address.to_string(), "--data-dir"])
            .arg(data_dir)
            // All clients of the benchmark have the same address.
            .env("AGENTDEX_API_LIMITS_CONNECTIONS_PER_CLIENT", "2000")
            .env("AGENTDEX_API_LIMITS_REQUESTS_PER_CLIENT", "512")
            .env("AGENTDEX_API_LIMITS_BUFFERED_MIB_PER_CLIENT", "32")
            .stdout(Stdio::null())
            .spawn()
            .with_context(|| format!("{} cannot be started", program.display()))?;
        let served = Self { child, address };
        for _ in 0..600 {
            let load = Load {
                address,
                connections: 1,
                pace: Pace::PerSecond(5.0),
                time: Duration::from_millis(150),
            };
            if drive(load, &["/readyz".to_owned()]).await?.answers.contains_key(&200) {
                return Ok(served);
            }
        }
        anyhow::bail!("the api does not respond")
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // It may have exited already.
        self.child.kill().and_then(|()| self.child.wait()).ok();
    }
}

/// A server that sends a constant response of this size.
async fn constant(bytes: usize) -> anyhow::Result<(SocketAddr, JoinSet<()>)> {
    let body: &'static str = Box::leak("x".repeat(bytes).into_boxed_str());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let mut serving = JoinSet::new();
    serving.spawn(async move {
        axum::serve(listener, Router::new().route("/", get(move || async move { body }))).await.ok();
    });
    Ok((address, serving))
}

async fn each_kind(
    arguments: &Arguments,
    served: &Served,
    paths: &Paths,
    report: &mut Report,
) -> anyhow::Result<()> {
    let flat_out =
        |address| Load { address, connections: CONNECTIONS, pace: Pace::AsAnswered, time: arguments.seconds };
    for (kind, paths) in &paths.kinds {
        let warm = Load { time: arguments.seconds / 5, ..flat_out(served.address) };
        drive(warm, paths).await?;
        let ours = drive(flat_out(served.address), paths).await?;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "bytes of an answer")]
        let (address, _serving) = constant(ours.bytes as usize).await?;
        let bare = drive(flat_out(address), &["/".to_owned()]).await?;
        report.loads.insert((*kind).to_owned(), ours);
        report.loads.insert(format!("{kind}: axum, a constant response of the same size"), bare);
    }
    Ok(())
}

async fn steady_and_overload(
    arguments: &Arguments,
    served: &Served,
    paths: &Paths,
    report: &mut Report,
) -> anyhow::Result<()> {
    let (_, searches) = &paths.kinds[0];
    let capacity = report.loads.get("search").map_or(1.0, |found| found.per_second).max(2.0);
    let half = Load {
        address: served.address,
        connections: CONNECTIONS,
        pace: Pace::PerSecond(capacity / 2.0),
        time: arguments.seconds,
    };
    report.loads.insert("search at half of the capacity".to_owned(), drive(half.clone(), searches).await?);
    let twice = Load {
        connections: CONNECTIONS_OVERLOAD,
        pace: Pace::PerSecond(capacity * 2.0),
        time: arguments.overload_seconds,
        ..half.clone()
    };
    report.loads.insert(TWICE.to_owned(), drive(twice.clone(), searches).await?);
    let ten_times = Load { pace: Pace::Offered(capacity * 10.0), ..twice };
    report.loads.insert(TEN_TIMES.to_owned(), drive(ten_times, searches).await?);
    report.loads.insert(AFTERWARDS.to_owned(), drive(half, searches).await?);
    Ok(())
}

/// Reads the whole export and measures the memory of the program at the same time.
async fn export(served: &Served, report: &mut Report) -> anyhow::Result<()> {
    use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
    let pid = served.child.id();
    let before = resident_kib(pid)?;
    let mut most = before;
    let start = agentdex_tests::speed::measure::now();
    let mut stream = tokio::net::TcpStream::connect(served.address).await?;
    stream.write_all(b"GET /export.jsonl HTTP/1.0\r\nhost: localhost\r\n\r\n").await?;
    let mut lines = BufReader::new(stream).lines();
    while let Some(line) = lines.next_line().await? {
        if line.starts_with('{') {
            report.export_lines += 1;
            if report.export_lines.is_multiple_of(500) {
                most = most.max(resident_kib(pid)?);
            }
        }
    }
    report.export_seconds = start.elapsed().as_secs_f64();
    report.export_memory_kib = (before, most.max(resident_kib(pid)?));
    Ok(())
}

fn bar(what: &'static str, wanted: &'static str, found: Option<(String, bool)>) -> Bar {
    let (found, is_met) = found.unwrap_or_else(|| ("not run".to_owned(), false));
    Bar { what, wanted, found, is_met }
}

fn judge(report: &mut Report) {
    let load = |name: &str| report.loads.get(name);
    let share = load("search").map(|found| found.per_second / report.searches_in_process_per_second);
    let half = load("search at half of the capacity").map(|found| found.times.p99_ms);
    let twice = load(TWICE).map(|found| (found.errors(), found.shed));
    let ten_times = load(TEN_TIMES);
    let goodput =
        ten_times.zip(load("search")).map(|(found, all)| found.per_second / all.per_second.max(1.0));
    let served = ten_times.map(|found| found.times.p99_ms);
    let after = load(AFTERWARDS);
    let after = after.map(|found| (found.errors() + found.shed, found.times.p99_ms));
    let (before, most) = report.export_memory_kib;
    let grown = most.saturating_sub(before) / 1024;
    report.bars = vec![
        bar(
            "searches per second over HTTP, relative to in process",
            "at least 0.5",
            share.map(|share| (format!("{share:.2}"), share >= 0.5)),
        ),
        bar(
            "p99 of a search at half of the capacity",
            "at most 50 ms",
            half.map(|p99| (format!("{p99:.1} ms"), p99 <= 50.0)),
        ),
        bar(
            "errors at twice the capacity, except 503 with Retry-After",
            "0",
            twice.map(|(errors, shed)| (format!("{errors}, and {shed} shed"), errors == 0)),
        ),
        bar(
            "searches served at ten times the capacity, relative to the capacity",
            "at least 0.8",
            goodput.map(|share| (format!("{share:.2}"), share >= 0.8)),
        ),
        bar(
            "p99 of served searches at ten times the capacity",
            "below 100 ms",
            served.map(|p99| (format!("{p99:.1} ms"), p99 < 100.0)),
        ),
        bar(
            "after the overload at half: refused or failed, and p99",
            "0, at most 50 ms",
            after.map(|(wrong, p99)| (format!("{wrong}, {p99:.1} ms"), wrong == 0 && p99 <= 50.0)),
        ),
        // Freed pages that the allocator keeps are included.
        bar("memory that the export adds", "at most 128 MiB", Some((format!("{grown} MiB"), grown <= 128))),
    ];
}

fn unmet(report: &Report) -> Vec<String> {
    let unmet = report.bars.iter().filter(|bar| !bar.is_met);
    unmet.map(|bar| format!("{}: {} (wanted {})", bar.what, bar.found, bar.wanted)).collect()
}

/// Failures at any size and speed: during an overload, every response must be a success or a 503 with Retry-After, and the API must
/// continue to serve.
fn failures_of_overload(report: &Report) -> Vec<String> {
    let mut failed = Vec::new();
    for name in [TWICE, TEN_TIMES, AFTERWARDS] {
        match report.loads.get(name) {
            Some(load) if load.errors() == 0 && load.per_second > 0.0 => {}
            Some(load) => failed.push(format!("{name}: {} errors, {}/s", load.errors(), load.per_second)),
            None => failed.push(format!("{name}: not run")),
        }
    }
    if report.loads.get(TEN_TIMES).is_none_or(|load| load.shed == 0) {
        failed.push(format!("{TEN_TIMES}: no request was shed"));
    }
    failed
}

fn print(report: &Report) {
    println!(
        "{:<46} {:>9} {:>9} {:>9} {:>8} {:>8} {:>8}",
        "", "good/s", "p50 ms", "p99 ms", "bytes", "503", "errors"
    );
    for (what, found) in &report.loads {
        let (rate, bytes, times) = (found.per_second, found.bytes, &found.times);
        let (p50, p99, shed, errors) = (times.p50_ms, times.p99_ms, found.shed, found.errors());
        println!("{what:<46} {rate:>9} {p50:>9.2} {p99:>9.2} {bytes:>8} {shed:>8} {errors:>8}");
    }
    println!("searches in process: {} per second", report.searches_in_process_per_second);
    let (before, most) = report.export_memory_kib;
    println!(
        "export: {} lines in {:.1} s, memory {} MiB before and {} MiB at most",
        report.export_lines,
        report.export_seconds,
        before / 1024,
        most / 1024
    );
    for bar in &report.bars {
        let verdict = if bar.is_met { "met" } else { "NOT MET" };
        println!("{verdict:<8} {}: {} (wanted {})", bar.what, bar.found, bar.wanted);
    }
}

//! The Rust parts of `tests/bench crawl`: the crawled web, a loop over a plain HTTP client, and the audit.
//!
//! `crawl_bench farm DIR SITES PROFILE` serves until its standard input ends, and writes the log to DIR/log.jsonl; a line `change` on its
//! standard input changes the manifests of some sites. `crawl_bench loop DIR CONCURRENCY` requests the nine paths from every host in
//! DIR/hosts, without any politeness rule. `crawl_bench judge DIR DELAY_MS` counts the violations of politeness in DIR/log.jsonl.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use agentdex_tests::audit;
use anyhow::{Context, bail};
use testweb::{Addresses, Answer, Hit, Host, Web};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// robots.txt and the eight most likely paths. Every measured tool requests these.
const PATHS: [&str; 9] = [
    "/robots.txt",
    "/.well-known/agent.json",
    "/.well-known/agents.json",
    "/.well-known/mcp/server-card.json",
    "/.well-known/agent-manifest.json",
    "/agents.txt",
    "/agent.json",
    "/.well-known/mcp.json",
    "/.well-known/api-catalog",
];
/// Percentage of sites that publish something.
const POSITIVES: usize = 30;
/// Percentage of sites whose manifest differs after a change.
const CHANGED: usize = 3;
/// The sustained rate excludes this percentage of sites at the start and at the end of a pass, where it ramps up and drains.
const ENDS_PERCENT: usize = 20;
const MANIFEST: &str = r#"{"awp_version":"0.1","domain":"site.test","intent":"Sell books and more","actions":[
    {"id":"buy_book","description":"Buy a book","method":"POST","endpoint":"/api/books"}]}"#;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["farm", dir, sites, profile] => farm(Path::new(dir), sites.parse()?, profile).await,
        ["loop", dir, concurrency] => bare_loop(Path::new(dir), concurrency.parse()?).await,
        ["judge", dir, delay_ms] => judge(Path::new(dir), delay_ms.parse()?),
        _ => bail!(
            "usage: crawl_bench farm DIR SITES polite|plain|hostile | loop DIR CONCURRENCY | judge DIR DELAY_MS"
        ),
    }
}

/// Every site has its own address. robots.txt forbids all other paths, so all tools request the same paths.
async fn farm(dir: &Path, sites: usize, profile: &str) -> anyhow::Result<()> {
    let profile = profile.to_owned();
    let make = move |index: usize| site(index, &profile);
    let web = Web::builder()
        .addresses(Addresses::OneEach)
        .many(sites, "site{}.test", make)
        .log_file(dir.join("log.jsonl"))
        .start()
        .await?;
    web.write_files(dir)?;
    let names: Vec<String> = (0..sites).map(|index| format!("site{index}.test\n")).collect();
    std::fs::write(dir.join("seeds.txt"), names.concat())?;
    std::fs::write(dir.join("paths.txt"), PATHS.join("\n"))?;
    std::fs::write(dir.join("port"), web.port().to_string())?;
    writeln!(std::io::stdout(), "ready")?;
    let (sender, mut orders) = tokio::sync::mpsc::channel::<String>(1);
    let listening = tokio::task::spawn_blocking(move || {
        std::io::stdin().lines().map_while(Result::ok).all(|line| sender.blocking_send(line).is_ok())
    });
    while let Some(order) = orders.recv().await {
        anyhow::ensure!(order == "change", "unknown command: {order}");
        let manifest = MANIFEST.replace("Buy a book", "Buy a book or two");
        for index in (0..sites).filter(|index| is_changed(*index)) {
            web.set_file(&format!("site{index}.test"), "/agent.json", "application/json", manifest.clone());
        }
        writeln!(std::io::stdout(), "changed")?;
    }
    listening.await?;
    web.stop().await;
    Ok(())
}

const fn is_positive(index: usize) -> bool {
    index % 100 < POSITIVES
}

const fn is_changed(index: usize) -> bool {
    index % 100 < CHANGED
}

fn site(index: usize, profile: &str) -> Host {
    let allowed = PATHS[1..].join("$\nAllow: ");
    let delay = if profile == "polite" && index.is_multiple_of(10) { "Crawl-delay: 5\n" } else { "" };
    let host = Host::new("").robots(&format!("User-agent: *\n{delay}Allow: {allowed}$\nDisallow: /\n"));
    match (profile, index % 20) {
        ("hostile", 0..=5) => host.refusing_connections(),
        ("hostile", 6 | 7) => host.route(
            PATHS[1],
            Answer::json("x").dripping(1, Duration::from_secs(1)).with_content_length(9_000),
        ),
        ("hostile", 8) => host.route(PATHS[1], Answer::retry_after(503, "120")),
        _ if is_positive(index) => host.file("/agent.json", "application/json", MANIFEST),
        _ => host,
    }
}

/// Requests as fast as a client can: one connection per host, the paths one after another, no other limit.
async fn bare_loop(dir: &Path, concurrency: usize) -> anyhow::Result<()> {
    let pem = std::fs::read(dir.join("ca.pem"))?;
    drop(rustls::crypto::ring::default_provider().install_default());
    let slots = Arc::new(Semaphore::new(concurrency));
    let mut running = JoinSet::new();
    for line in BufReader::new(std::fs::File::open(dir.join("hosts"))?).lines() {
        let line = line?;
        let (socket, name) = line.split_once(' ').context("an address and a name")?;
        let (socket, name): (SocketAddr, String) = (socket.parse()?, name.to_owned());
        let slot = Arc::clone(&slots).acquire_owned().await?;
        let authority = reqwest::Certificate::from_pem(&pem)?;
        running.spawn(async move {
            let _slot = slot;
            visit(&name, socket, authority).await
        });
        while let Some(done) = running.try_join_next() {
            drop(done);
        }
    }
    while running.join_next().await.is_some() {}
    Ok(())
}

#[expect(clippy::disallowed_methods, reason = "a client of the local test web")]
async fn visit(name: &str, socket: SocketAddr, authority: reqwest::Certificate) -> anyhow::Result<()> {
    let client = reqwest::Client::builder()
        .tls_certs_only([authority])
        .resolve(name, socket)
        .no_proxy()
        .timeout(Duration::from_secs(20))
        .build()?;
    for path in PATHS {
        client.get(format!("https://{name}:{}{path}", socket.port())).send().await?.bytes().await?;
    }
    Ok(())
}

/// Prints the results from the server's log as one JSON object.
fn judge(dir: &Path, delay_ms: u64) -> anyhow::Result<()> {
    let mut hits: Vec<Hit> = Vec::new();
    for line in BufReader::new(std::fs::File::open(dir.join("log.jsonl"))?).lines() {
        let line = line?;
        let record: serde_json::Value = serde_json::from_str(&line)?;
        if record["record"] == "hit" {
            hits.push(serde_json::from_value(record)?);
        }
    }
    hits.sort_by_key(|hit| hit.id);
    let report = audit::check(&hits, &audit::Policy::with_delay(Duration::from_millis(delay_ms)));
    let mut last_us: BTreeMap<&str, u64> = BTreeMap::new();
    for hit in &hits {
        let last = last_us.entry(hit.host.as_str()).or_default();
        *last = hit.ended_us.max(*last);
    }
    let counts = report.counts();
    // a client without an identifying User-Agent breaks a rule with every request, which would hide other violations
    let is_counted =
        |rule: &audit::Rule| !matches!(rule, audit::Rule::UserAgent | audit::Rule::TrackingHeader);
    let violations: usize = counts.iter().filter(|(rule, _)| is_counted(rule)).map(|(_, count)| count).sum();
    let found = hits.iter().filter(|hit| hit.path == "/agent.json" && hit.status == Some(200)).count();
    let of_positives = || hits.iter().filter(|hit| index_of(&hit.host).is_some_and(is_positive));
    let whole = hits.iter().filter(|hit| hit.path == "/agent.json" && hit.status == Some(200));
    let mut times: BTreeMap<&str, usize> = BTreeMap::new();
    for hit in whole.filter(|hit| index_of(&hit.host).is_some_and(is_changed)) {
        *times.entry(hit.host.as_str()).or_default() += 1;
    }
    let seconds = match (hits.first(), hits.iter().map(|hit| hit.ended_us).max()) {
        (Some(first), Some(last)) => Duration::from_micros(last - first.started_us).as_secs_f64(),
        _ => 0.0,
    };
    let summary = serde_json::json!({
        "requests": hits.len(), "hosts": last_us.len(), "found": found, "body_bytes": bytes(hits.iter()),
        "positive": {"requests": of_positives().count(), "body_bytes": bytes(of_positives())},
        "changes_seen": times.values().filter(|times| **times > 1).count(),
        "server_seconds": seconds, "sustained_per_second": sustained(last_us.into_values().collect()),
        "violations": violations, "by_rule": counts,
    });
    Ok(writeln!(std::io::stdout(), "{summary}")?)
}

fn bytes<'a>(hits: impl Iterator<Item = &'a Hit>) -> u64 {
    hits.map(|hit| hit.body_bytes).sum()
}

fn index_of(host: &str) -> Option<usize> {
    host.strip_prefix("site")?.strip_suffix(".test")?.parse().ok()
}

/// Finished sites per second, without those at the start and at the end.
fn sustained(mut ends_us: Vec<u64>) -> f64 {
    ends_us.sort_unstable();
    let (first, last) = (ends_us.len() * ENDS_PERCENT / 100, ends_us.len() * (100 - ENDS_PERCENT) / 100);
    match (ends_us.get(first), ends_us.get(last)) {
        (Some(from), Some(to)) if to > from => {
            let finished = u32::try_from(last - first).unwrap_or(u32::MAX);
            f64::from(finished) / Duration::from_micros(to - from).as_secs_f64()
        }
        _ => 0.0,
    }
}

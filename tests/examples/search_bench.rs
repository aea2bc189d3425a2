//! Benchmark of searches over many generated capabilities: in process, over HTTP, and compared with a plain tantivy index, SQLite,
//! Xapian and PostgreSQL in the same run.

#![expect(clippy::print_stdout, reason = "a program that prints its results")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use agentdex_tests::speed::generated::{CAPABILITIES_PER_SITE, Seeded, Texts};
use agentdex_tests::speed::measure::{Times, anonymous_kib, each, now};
use agentdex_tests::speed::{peers, stored};
use anyhow::Context;
use clap::Parser;
use indexer::{FacetKey, Filters, IndexBuilder, IndexConfig, SearchRequest, Searcher};
use serde::Serialize;
use store::{FeedPosition, Store};

/// The allocator of the programs.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Requests of each kind that are measured first, after the index has been dropped from the page cache.
const COLD_REQUESTS: usize = 50;
/// Maximum number of requests of each kind for a slow peer.
const PEER_QUERIES_MAX: usize = 100;

/// Benchmark of searches over many generated capabilities.
#[derive(Parser)]
struct Arguments {
    /// Number of generated capabilities
    #[arg(long, default_value_t = 200_000)]
    capabilities: usize,
    /// Requests of each kind
    #[arg(long, default_value_t = 1_000)]
    queries: usize,
    /// Capabilities indexed from a store; 0 skips this
    #[arg(long, default_value_t = 200_000)]
    stored: usize,
    /// PostgreSQL server to measure too
    #[arg(long, value_name = "URL")]
    postgres: Option<String>,
    /// Program to measure over HTTP too
    #[arg(long, value_name = "PROGRAM")]
    api: Option<PathBuf>,
    /// Program that indexes more sites while searches over HTTP are measured
    #[arg(long, value_name = "PROGRAM", requires = "api")]
    indexer: Option<PathBuf>,
    /// Capabilities that are indexed during these searches
    #[arg(long, default_value_t = 20_000)]
    added: usize,
    /// Skip SQLite, Xapian and PostgreSQL
    #[arg(long)]
    alone: bool,
    /// Kinds of requests measured in process; all by default
    #[arg(long, value_name = "KIND", value_delimiter = ',')]
    kinds: Vec<String>,
    /// Runs of each request in process: only the fastest counts, because other load on the machine affects it least
    #[arg(long, default_value_t = 1)]
    rounds: usize,
    /// Directory for the index, which is kept and reused by the next run with the same number of capabilities. Cannot be combined with
    /// peers
    #[arg(long, value_name = "DIR", requires = "alone")]
    data_dir: Option<PathBuf>,
    /// File for the report
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

#[derive(Default, Serialize)]
struct Report {
    capabilities: usize,
    /// Documents per second.
    indexing: BTreeMap<String, f64>,
    bytes_per_capability: f64,
    /// Most memory of the process `api` without mapped files, in KiB.
    anonymous_kib: u64,
    times: BTreeMap<String, Times>,
    /// Requests per second of a search, relative to plain tantivy with the same query objects and collector; and documents per second of
    /// indexing, relative to plain tantivy with the same documents.
    share_of_bare: BTreeMap<String, f64>,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let texts = Texts::present()?;
    let scratch = tempfile::tempdir()?;
    let dir = arguments.data_dir.as_deref().unwrap_or_else(|| scratch.path());
    let mut report = Report { capabilities: arguments.capabilities, ..Report::default() };
    println!("{} capabilities generated from {} texts", arguments.capabilities, texts.tools.len());
    if arguments.stored > 0 {
        from_the_store(&arguments, &texts, &mut report).await?;
    }
    let store = Store::open_in_data_dir(dir).await?;
    let index = IndexConfig::in_data_dir(dir).dir;
    if !index.exists() {
        build(&arguments, &texts, &index, &store.feed_id().await?, &mut report)?;
    }
    let searcher = Searcher::open(&index)?;
    let mut seeded = Seeded::new(7);
    let mut some = |make: &dyn Fn(&Texts, &mut Seeded) -> String, count: usize| -> Vec<String> {
        (0..count).map(|_| make(&texts, &mut seeded)).collect()
    };
    let keywords = some(&Texts::keywords, arguments.queries);
    let sentences = some(&Texts::sentence, arguments.queries);
    let misspelt = some(&Texts::misspelt, arguments.queries);
    let prefixes = some(&Texts::prefix, arguments.queries);
    // agentdex is measured first, with cold caches; plain tantivy then runs with warm ones.
    for text in some(&Texts::sentence, arguments.queries) {
        searcher.search(&asked(&text))?;
    }
    in_process(&arguments, &searcher, (&keywords, &sentences, &misspelt, &prefixes), &mut report)?;
    drop(searcher);
    if let Some(program) = &arguments.api {
        let requests = HttpRequests { keywords: &keywords, sentences: &sentences, prefixes: &prefixes };
        over_http(program, dir, requests, &mut report).await?;
        if let Some(indexer) = &arguments.indexer {
            let added = (arguments.capabilities, arguments.added);
            add_sites(&store, &texts, added).await?;
            while_indexing((program, indexer), dir, requests, &mut report).await?;
        }
    }
    if !arguments.alone {
        beside(&arguments, dir, &texts, (&keywords, &sentences), &mut report).await?;
    }
    print(&report);
    if let Some(path) = &arguments.json {
        std::fs::write(path, serde_json::to_string_pretty(&report)? + "\n")?;
    }
    Ok(())
}

fn rate(count: usize, time: Duration) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "counts of documents are small")]
    let count = count as f64;
    (count / time.as_secs_f64().max(1e-9)).round()
}

/// Measures indexing end to end: from a store of visits, read page by page, to a finished index.
async fn from_the_store(arguments: &Arguments, texts: &Texts, report: &mut Report) -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let store = Store::open_in_data_dir(dir.path()).await?;
    let count = arguments.stored.min(arguments.capabilities);
    let made = (0..count / CAPABILITIES_PER_SITE).map(|at| texts.site(at));
    let made = made.collect::<anyhow::Result<Vec<_>>>()?;
    stored::fill(&store, &made).await?;
    let feed_id = store.feed_id().await?;
    let start = now();
    let summary = indexer::follow::rebuild(store, IndexConfig::in_data_dir(dir.path())).await?;
    let indexed = usize::try_from(summary.capabilities)?;
    let ours = rate(indexed, start.elapsed());
    report.indexing.insert("agentdex, from the store".to_owned(), ours);
    let builder = IndexBuilder::begin(&dir.path().join("bare"), &feed_id)?;
    let prepared = builder.prepare(&made)?;
    let start = now();
    builder.add_prepared(prepared)?;
    builder.finish(FeedPosition(0))?;
    let bare = rate(indexed, start.elapsed());
    report.indexing.insert("bare tantivy, the same documents".to_owned(), bare);
    report.share_of_bare.insert("indexing from the store".to_owned(), (ours / bare * 100.0).round() / 100.0);
    Ok(())
}

/// Builds our index from memory.
fn build(
    arguments: &Arguments,
    texts: &Texts,
    index: &Path,
    feed_id: &str,
    report: &mut Report,
) -> anyhow::Result<()> {
    let mut built = 0;
    let builder = IndexBuilder::begin(index, feed_id)?;
    let mut time = Duration::ZERO;
    for at in 0..arguments.capabilities / CAPABILITIES_PER_SITE {
        let stored = texts.site(at)?;
        built += stored.manifest.capabilities.len();
        let start = now();
        builder.add(&stored)?;
        time += start.elapsed();
    }
    let start = now();
    builder.finish(FeedPosition(0))?;
    report.indexing.insert("agentdex, from memory".to_owned(), rate(built, time + start.elapsed()));
    #[expect(clippy::cast_precision_loss, reason = "sizes are far below the precision")]
    let per_capability = bytes_below(index)? as f64 / built.max(1) as f64;
    report.bytes_per_capability = per_capability.round();
    Ok(())
}

fn bytes_below(dir: &Path) -> anyhow::Result<u64> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        bytes += if metadata.is_dir() { bytes_below(&entry.path())? } else { metadata.len() };
    }
    Ok(bytes)
}

fn asked(text: &str) -> SearchRequest {
    SearchRequest { phrasings: vec![text.to_owned()], ..SearchRequest::default() }
}

fn filtered(text: &str) -> SearchRequest {
    let filters = Filters::default()
        .with(FacetKey::Method, ["GET"])
        .and_then(|filters| filters.with(FacetKey::Namespace, ["travel"]))
        .expect("known values");
    SearchRequest { filters, ..asked(text) }
}

fn faceted(text: &str) -> SearchRequest {
    let facets = vec![FacetKey::Format, FacetKey::Method, FacetKey::Safety, FacetKey::SemanticType];
    SearchRequest { facets, ..asked(text) }
}

/// A name, texts, and a function that makes a request from a text.
type Kind<'a> = (&'a str, &'a [String], fn(&str) -> SearchRequest);
type Requests<'a> = (&'a [String], &'a [String], &'a [String], &'a [String]);

/// Page sizes that are measured: the default, ten, and one, which measures finding and ranking
/// only.
const PAGES: [(&str, usize); 3] = [("a page of twenty", 20), ("a page of ten", 10), ("one row", 1)];

fn in_process(
    arguments: &Arguments,
    searcher: &Searcher,
    (keywords, sentences, misspelt, prefixes): Requests<'_>,
    report: &mut Report,
) -> anyhow::Result<()> {
    let kinds: [Kind<'_>; 5] = [
        ("keyword", keywords, asked),
        ("sentence", sentences, asked),
        ("filtered", keywords, filtered),
        ("faceted", keywords, faceted),
        ("fuzzy", misspelt, asked),
    ];
    let rounds = arguments.rounds;
    let is_wanted = |kind: &str| arguments.kinds.is_empty() || arguments.kinds.iter().any(|of| of == kind);
    for (kind, texts, make) in kinds.into_iter().filter(|(kind, ..)| is_wanted(kind)) {
        let mut requests: Vec<SearchRequest> = Vec::with_capacity(texts.len());
        let mut bare: Vec<_> = Vec::with_capacity(texts.len());
        // If all words are stop words, there is no query for plain tantivy.
        for request in texts.iter().map(|text| make(text)) {
            if let Some(same) = searcher.engine_query(&request)? {
                bare.push(same);
                requests.push(request);
            }
        }
        let mut ours = Vec::new();
        for (page, limit) in PAGES {
            for request in &mut requests {
                request.limit = limit;
            }
            let run = |request: &SearchRequest| {
                searcher.search(request)?;
                Ok(())
            };
            ours.push((page, each(&requests, rounds, run)?));
        }
        let bare = each(&bare, rounds, |bare| {
            bare.run()?;
            Ok(())
        })?;
        for (page, of) in ours {
            let share = (of.per_second / bare.per_second * 100.0).round() / 100.0;
            report.share_of_bare.insert(format!("{kind}, {page}"), share);
            report.times.insert(format!("{kind}: agentdex, {page}"), of);
        }
        report.times.insert(format!("{kind}: bare tantivy, same query"), bare);
    }
    if is_wanted("suggest") {
        let suggested = each(prefixes, rounds, |prefix| {
            searcher.suggest(prefix, 10)?;
            Ok(())
        })?;
        report.times.insert("suggest: agentdex".to_owned(), suggested);
    }
    Ok(())
}

/// A running program.
struct Served(Child);

impl Drop for Served {
    fn drop(&mut self) {
        // It may have exited already.
        self.0.kill().and_then(|()| self.0.wait()).ok();
    }
}

/// The texts of requests over HTTP.
#[derive(Clone, Copy)]
struct HttpRequests<'a> {
    keywords: &'a [String],
    sentences: &'a [String],
    prefixes: &'a [String],
}

impl HttpRequests<'_> {
    /// The URLs of each kind of request.
    fn urls(&self, base: &str) -> anyhow::Result<Vec<(&'static str, Vec<url::Url>)>> {
        let of = |path: &str, texts: &[String], more: &[(&str, &str)]| {
            let one = |text: &String| {
                let pairs = [("q", text.as_str())].into_iter().chain(more.iter().copied());
                url::Url::parse_with_params(&format!("{base}{path}"), pairs)
            };
            texts.iter().map(one).collect::<Result<Vec<_>, _>>()
        };
        Ok(vec![
            ("keyword", of("/search", self.keywords, &[])?),
            ("filtered", of("/search", self.keywords, &[("method", "GET"), ("namespace", "travel")])?),
            ("faceted", of("/search", self.keywords, &[("facets", "format,method,safety,semantic_type")])?),
            ("sentence", of("/search", self.sentences, &[])?),
            ("suggest", of("/suggest", self.prefixes, &[])?),
        ])
    }

    fn first(&self, count: usize) -> Self {
        let first = |texts| <[String]>::get(texts, ..count).unwrap_or(texts);
        Self {
            keywords: first(self.keywords),
            sentences: first(self.sentences),
            prefixes: first(self.prefixes),
        }
    }
}

/// Starts the API and measures its requests: the first ones with the index read from disk, then all.
async fn over_http(
    program: &Path,
    data_dir: &Path,
    requests: HttpRequests<'_>,
    report: &mut Report,
) -> anyhow::Result<()> {
    drop_from_page_cache(&IndexConfig::in_data_dir(data_dir).dir)?;
    let (served, base) = serve(program, data_dir)?;
    let client = reqwest_client()?;
    let start = now();
    ready(&client, &base).await?;
    println!("the api responds after {:.1} s, with the index read from disk", start.elapsed().as_secs_f64());
    for (kind, urls) in requests.first(COLD_REQUESTS).urls(&base)? {
        timed(&client, &urls, &format!("{kind}: agentdex over HTTP, first requests"), report).await?;
    }
    for (kind, urls) in requests.urls(&base)? {
        timed(&client, &urls, &format!("{kind}: agentdex over HTTP"), report).await?;
    }
    report.anonymous_kib = anonymous_kib(served.0.id())?;
    Ok(())
}

async fn timed(
    client: &reqwest::Client,
    urls: &[url::Url],
    name: &str,
    report: &mut Report,
) -> anyhow::Result<()> {
    let mut times = Vec::with_capacity(urls.len());
    for url in urls {
        let start = now();
        get(client, url).await?;
        times.push(start.elapsed());
    }
    if !times.is_empty() {
        report.times.insert(name.to_owned(), Times::of(times));
    }
    Ok(())
}

/// Stores sites that the index does not contain yet. The first site comes after the number of indexed capabilities.
async fn add_sites(store: &Store, texts: &Texts, (indexed, added): (usize, usize)) -> anyhow::Result<()> {
    let first = indexed.div_ceil(CAPABILITIES_PER_SITE);
    let sites: Vec<usize> = (first..first + added.div_ceil(CAPABILITIES_PER_SITE)).collect();
    for numbers in sites.chunks(100) {
        let made = numbers.iter().map(|number| texts.site(*number)).collect::<anyhow::Result<Vec<_>>>()?;
        stored::fill(store, &made).await?;
    }
    Ok(())
}

/// Searches over HTTP until an indexer has indexed the stored sites, with its commits and merges.
async fn while_indexing(
    (api, indexer): (&Path, &Path),
    data_dir: &Path,
    requests: HttpRequests<'_>,
    report: &mut Report,
) -> anyhow::Result<()> {
    let (served, base) = serve(api, data_dir)?;
    let client = reqwest_client()?;
    ready(&client, &base).await?;
    let mut command = Command::new(indexer);
    command.args(["-q", "--once", "--data-dir"]).arg(data_dir).stdout(Stdio::null());
    let start = now();
    let mut running =
        Served(command.spawn().with_context(|| format!("{} cannot be started", indexer.display()))?);
    let urls: BTreeMap<_, _> = requests.urls(&base)?.into_iter().collect();
    let mut times: BTreeMap<&str, Vec<Duration>> = BTreeMap::new();
    for at in 0.. {
        if let Some(ended) = running.0.try_wait()? {
            anyhow::ensure!(ended.success(), "the indexer ended with {ended}");
            break;
        }
        for kind in ["keyword", "sentence"] {
            let Some(url) = urls.get(kind).and_then(|urls| urls.get(at % urls.len().max(1))) else {
                continue;
            };
            let start = now();
            get(&client, url).await?;
            times.entry(kind).or_default().push(start.elapsed());
        }
    }
    println!("the indexer took {:.1} s", start.elapsed().as_secs_f64());
    for (kind, times) in times {
        report.times.insert(format!("{kind}: agentdex over HTTP, while indexing"), Times::of(times));
    }
    report.anonymous_kib = report.anonymous_kib.max(anonymous_kib(served.0.id())?);
    Ok(())
}

/// Starts the API on a free port of this machine; returns it with its base URL.
fn serve(program: &Path, data_dir: &Path) -> anyhow::Result<(Served, String)> {
    let port = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    let child = Command::new(program)
        .args(["-q", "--listen", &format!("127.0.0.1:{port}"), "--data-dir"])
        .arg(data_dir)
        .stdout(Stdio::null())
        .spawn()
        .with_context(|| format!("{} cannot be started", program.display()))?;
    Ok((Served(child), format!("http://127.0.0.1:{port}")))
}

/// Makes the system forget the content of files, so that they are read from disk again.
fn drop_from_page_cache(dir: &Path) -> anyhow::Result<()> {
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        if entry.metadata()?.is_dir() {
            drop_from_page_cache(&entry.path())?;
            continue;
        }
        let mut input = std::ffi::OsString::from("if=");
        input.push(entry.path());
        let done = Command::new("dd").arg(input).args(["iflag=nocache", "count=0", "status=none"]).status();
        anyhow::ensure!(done?.success(), "dd cannot drop {} from the page cache", entry.path().display());
    }
    Ok(())
}

#[expect(clippy::disallowed_methods, reason = "a client of the local server")]
fn reqwest_client() -> anyhow::Result<reqwest::Client> {
    // Another part of the program may already have installed one.
    rustls::crypto::ring::default_provider().install_default().ok();
    Ok(reqwest::Client::builder().build()?)
}

/// The size of the body of a successful response, in bytes.
#[expect(clippy::disallowed_methods, reason = "a client of the local server")]
async fn get(client: &reqwest::Client, url: &url::Url) -> anyhow::Result<usize> {
    let answer = client.get(url.clone()).send().await?;
    anyhow::ensure!(answer.status().is_success(), "{url}: {}", answer.status());
    Ok(answer.bytes().await?.len())
}

async fn ready(client: &reqwest::Client, base: &str) -> anyhow::Result<()> {
    let url = url::Url::parse(&format!("{base}/search?q=ready"))?;
    let mut tick = tokio::time::interval(Duration::from_millis(100));
    for _ in 0..600 {
        tick.tick().await;
        if get(client, &url).await.is_ok() {
            return Ok(());
        }
    }
    anyhow::bail!("the api does not respond")
}

async fn beside(
    arguments: &Arguments,
    dir: &Path,
    texts: &Texts,
    (keywords, sentences): (&[String], &[String]),
    report: &mut Report,
) -> anyhow::Result<()> {
    let bare = dir.join("bare");
    std::fs::create_dir_all(&bare)?;
    let sites = arguments.capabilities / CAPABILITIES_PER_SITE;
    let count = sites * CAPABILITIES_PER_SITE;
    let plain = || peers::batches(texts, sites);
    let time = peers::tantivy_filled(&bare, plain())?;
    report.indexing.insert("bare tantivy, plain texts".to_owned(), rate(count, time));
    let (mut sqlite, time) = peers::Fts5::filled(&dir.join("fts5.db"), plain()).await?;
    report.indexing.insert("SQLite FTS5, from memory".to_owned(), rate(count, time));
    for (kind, texts) in [("keyword", keywords), ("sentence", sentences)] {
        let mut times = Vec::new();
        for text in texts.iter().take(PEER_QUERIES_MAX) {
            let start = now();
            sqlite.search(text).await?;
            times.push(start.elapsed());
        }
        report.times.insert(format!("{kind}: SQLite FTS5"), Times::of(times));
    }
    let few = |texts| <[String]>::get(texts, ..PEER_QUERIES_MAX).unwrap_or(texts);
    let requests = BTreeMap::from([("keyword", few(keywords)), ("sentence", few(sentences))]);
    beside_xapian(dir, (count, plain()), &requests, report)?;
    let Some(url) = &arguments.postgres else { return Ok(()) };
    let (mut postgres, time) = peers::Postgres::filled(url, plain()).await?;
    report.indexing.insert("PostgreSQL, from memory".to_owned(), rate(count, time));
    for (kind, texts) in [("keyword", keywords), ("sentence", sentences)] {
        let mut times = Vec::new();
        for text in texts.iter().take(PEER_QUERIES_MAX) {
            let start = now();
            postgres.search(text).await?;
            times.push(start.elapsed());
        }
        report.times.insert(format!("{kind}: PostgreSQL ts_rank"), Times::of(times));
    }
    Ok(())
}

fn beside_xapian(
    dir: &Path,
    (count, plain): (usize, impl Iterator<Item = anyhow::Result<Vec<peers::PlainText>>>),
    requests: &BTreeMap<&str, &[String]>,
    report: &mut Report,
) -> anyhow::Result<()> {
    let dir = dir.join("beside-xapian");
    std::fs::create_dir_all(&dir)?;
    let Some(found) = peers::Xapian::measured(&dir, plain, requests)? else {
        println!("Xapian is not installed: install the Debian package python3-xapian");
        return Ok(());
    };
    let time = Duration::from_secs_f64(found.indexing);
    report.indexing.insert("Xapian, from memory".to_owned(), rate(count, time));
    for (kind, seconds) in found.requests {
        let times = seconds.into_iter().map(Duration::from_secs_f64).collect();
        report.times.insert(format!("{kind}: Xapian"), Times::of(times));
    }
    Ok(())
}

fn print(report: &Report) {
    println!("{} bytes per capability", report.bytes_per_capability);
    println!("{} MiB of memory of the api without mapped files", report.anonymous_kib / 1024);
    for (what, rate) in &report.indexing {
        println!("{what:<40} {rate:>9} documents/s");
    }
    println!("{:<40} {:>9} {:>9} {:>9} {:>10}", "", "p50 ms", "p95 ms", "p99 ms", "per second");
    for (what, Times { p50_ms, p95_ms, p99_ms, per_second, .. }) in &report.times {
        println!("{what:<40} {p50_ms:>9.3} {p95_ms:>9.3} {p99_ms:>9.3} {per_second:>10}");
    }
    for (what, share) in &report.share_of_bare {
        println!("{what:<40} {share:>9.2} of the throughput of bare tantivy");
    }
}

//! A fleet with `--strict` on well-behaved and hostile sites: the hostile servers send slowly, endlessly or nothing, stall handshakes, or
//! send decompression bombs.
//!
//! `tests/faults full` uses 2,000 well-behaved and 4,000 hostile sites; an ordinary run uses a few dozen of each.

use std::collections::BTreeSet;
use std::process::{Child, Stdio};
use std::time::Duration;

use agentdex_tests::audit;
use testweb::{Addresses, Answer, Handshake, Hit, Host, Web};
use tokio::time::Instant;

use crate::flow::airline;
use crate::world::{Backend, World};

/// The full requirement on the pace applies from this size; other work on the machine dominates smaller runs.
const FULL: usize = 1_000;
/// Minimum pace of well-behaved sites among hostile ones, in per cent of their pace without hostile sites.
const PACE_PERCENT_MIN: f64 = 90.0;
const PACE_PERCENT_MIN_SMALL: f64 = 40.0;
const GOOD_SITES_DEFAULT: usize = 40;
const HOSTILE_DEFAULT: usize = 64;
const CRAWLERS: usize = 2;
/// The delay between requests to one host. In a full run it is long enough that politeness, not the processor, determines when a site is
/// finished: six thousand sites are visited concurrently, and the crawlers share two cores with the test web.
const DELAY: Duration = Duration::from_secs(1);
const DELAY_FULL: Duration = Duration::from_secs(30);
/// The limits of `--strict`.
const SITE_GAP: Duration = Duration::from_secs(1);
const ADDRESS_GAP: Duration = Duration::from_millis(500);
/// Memory limits of an idle crawler and of each open visit, as in the test of slow servers.
const LOADED_KIB_MAX: u64 = 40 * 1024;
const OPEN_VISIT_KIB_MAX: u64 = 60;
/// Memory for the bodies and heads that are read concurrently, and for the allocator.
const READING_KIB_MAX: u64 = 128 * 1024;
/// Interval between two memory measurements.
const SAMPLE_EVERY: Duration = Duration::from_millis(200);
/// Allows a few paths of each site, so that a pass is short.
const ROBOTS: &str = "User-agent: *\nAllow: /agent.json$\nAllow: /.well-known/agent.json$\nDisallow: /\n";
const JSON: &str = "application/json";

#[expect(clippy::disallowed_methods, reason = "the settings for the full size of one test")]
fn count_from(variable: &str, small: usize) -> usize {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(small)
}

fn well_behaved(index: usize) -> Host {
    Host::new(&format!("good{index}.test")).robots(ROBOTS).file("/agent.json", JSON, airline("book_flight"))
}

/// The kinds of hostile sites, in rotation.
fn hostile(index: usize) -> Host {
    let host = Host::new(&format!("hostile{index}.test"));
    let second = Duration::from_secs(1);
    let open = host.clone().robots(ROBOTS);
    match index % 9 {
        0 => {
            let head = format!("HTTP/1.1 200 OK\r\nx-slow: {}\r\n\r\n", "a".repeat(1_000));
            host.catch_all(Answer::raw(head).dripping(1, second))
        }
        1 => open.route("/agent.json", Answer::json("x".repeat(10_000)).dripping(1, second)),
        2 => open.catch_all(Answer::endless(JSON)),
        3 => open.catch_all(Answer::gzip_bomb(JSON, 1 << 30)),
        4 => open.catch_all(Answer::json("{}").padded(60, 16 * 1024)),
        5 => open.route("/agent.json", Answer::silence()).route("/.well-known/agent.json", Answer::reset()),
        6 => host.handshake(Handshake::Stall),
        7 => open.route("/agent.json", Answer::json("[".repeat(200_000))),
        _ => {
            let brackets = format!("openapi: 3.0.0\nx: {}", "[".repeat(200_000));
            open.file("/agent.json", "application/yaml", brackets)
        }
    }
}

struct Run {
    /// Finished well-behaved sites per minute, from the first to the last request to them.
    pace: f64,
    /// Peak memory of one crawler.
    peak_kib: u64,
    violations: audit::Report,
    /// Well-behaved sites whose manifest was received completely.
    read: usize,
}

/// The peak resident memory of a process so far.
fn peak_kib(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.split_whitespace().next()?.parse().ok()
}

fn spawn(world: &World, places: usize) -> Vec<Child> {
    let places = places.to_string();
    let flags = ["--strict", "--concurrency", &places, "--park-wait", "2m", "-q"];
    // each command writes files that the others read, so all commands are created before the first one starts
    let commands: Vec<_> = (0..CRAWLERS).map(|_| world.crawler(&flags)).collect();
    let start = |mut command: std::process::Command| {
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    };
    commands.into_iter().map(start).collect()
}

/// Waits for all crawlers, and returns the highest peak memory.
async fn watch(mut fleet: Vec<Child>) -> u64 {
    let mut peak = 0;
    loop {
        let mut running = false;
        for crawler in &mut fleet {
            peak = peak_kib(crawler.id()).unwrap_or_default().max(peak);
            match crawler.try_wait().unwrap() {
                None => running = true,
                Some(status) => assert!(status.success(), "a crawler failed: {status}"),
            }
        }
        if !running {
            return peak;
        }
        tokio::time::sleep(SAMPLE_EVERY).await;
    }
}

fn is_honest(hit: &Hit) -> bool {
    hit.host.starts_with("good")
}

#[expect(clippy::cast_precision_loss, reason = "a count of sites and of microseconds, far below 2^52")]
fn pace(hits: &[Hit], sites: usize) -> f64 {
    let began = hits.iter().map(|hit| hit.started_us).min().unwrap_or_default();
    let ended = hits.iter().filter(|hit| is_honest(hit)).map(|hit| hit.ended_us).max().unwrap_or_default();
    sites as f64 * 60_000_000.0 / ended.saturating_sub(began).max(1) as f64
}

async fn run(good_sites: usize, hostile_sites: usize) -> Run {
    let web = Web::builder()
        .addresses(Addresses::OneEach)
        .hosts((0..good_sites).map(well_behaved))
        .hosts((0..hostile_sites).map(hostile));
    let mut world = World::start(Backend::Postgres, web).await;
    world.delay = if good_sites >= FULL { DELAY_FULL } else { DELAY };
    let hostile = (0..hostile_sites).map(|index| format!("hostile{index}.test"));
    world.write_seeds((0..good_sites).map(|index| format!("good{index}.test")).chain(hostile));
    let peak_kib = watch(spawn(&world, good_sites + hostile_sites)).await;
    let hits = world.web.log().hits();
    let policy = audit::Policy {
        site_gap: Some(SITE_GAP),
        address_gap: Some(ADDRESS_GAP),
        site_in_flight_max: Some(2),
        address_in_flight_max: Some(1),
        authority_budget: Some(40),
        ..world.policy()
    };
    let is_read =
        |hit: &&Hit| is_honest(hit) && hit.path == "/agent.json" && hit.complete && hit.status == Some(200);
    let read: BTreeSet<&str> = hits.iter().filter(is_read).map(|hit| hit.host.as_str()).collect();
    Run {
        pace: pace(&hits, good_sites),
        peak_kib,
        violations: audit::check(&hits, &policy),
        read: read.len(),
    }
}

/// Requires that every well-behaved site is read, no rule is broken, memory stays within the limit for the number of open visits, and
/// well-behaved sites finish at nine tenths or more of their pace without hostile ones.
#[expect(clippy::print_stdout, reason = "the measurement, for the table of faults")]
pub(crate) async fn well_behaved_sites_keep_their_pace_among_hostile_ones() {
    let good_sites = count_from("AGENTDEX_TEST_GOOD_SITES", GOOD_SITES_DEFAULT);
    let hostile_sites = count_from("AGENTDEX_TEST_HOSTILE_SITES", HOSTILE_DEFAULT);
    let began = Instant::now();
    let alone = run(good_sites, 0).await;
    let among = run(good_sites, hostile_sites).await;
    let kept = 100.0 * among.pace / alone.pace;
    println!(
        "{good_sites} well-behaved sites alone: {:.0} a minute, {} KiB at the most; among {hostile_sites} hostile ones: {:.0} a \
         minute ({kept:.0} %), {} KiB; {:?} in all",
        alone.pace,
        alone.peak_kib,
        among.pace,
        among.peak_kib,
        began.elapsed()
    );
    for run in [&alone, &among] {
        run.violations.assert_clean();
        assert_eq!(run.read, good_sites, "some well-behaved sites were not read");
    }
    let open = u64::try_from(good_sites + hostile_sites).unwrap();
    let most = LOADED_KIB_MAX + OPEN_VISIT_KIB_MAX * open + READING_KIB_MAX;
    assert!(
        among.peak_kib <= most,
        "{} KiB with at most {open} open visits; the limit is {most} KiB",
        among.peak_kib
    );
    let least = if good_sites >= FULL { PACE_PERCENT_MIN } else { PACE_PERCENT_MIN_SMALL };
    assert!(kept >= least, "well-behaved sites keep {kept:.0} % of their pace; {least} % are required");
}

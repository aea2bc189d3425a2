//! Thousands of servers that each send one byte per second.
//!
//! `tests/faults full` uses 5,000 servers; the usual run uses a few hundred.

use std::collections::BTreeMap;
use std::process::Stdio;
use std::time::Duration;

use testweb::{Answer, Host};

use crate::fixture::{Fixture, text};
use crate::full::wanted;
use crate::support::AWP;

const OPEN_DEFAULT: usize = 100;
/// Twice as many sites as slots, so that the second half uses slots that the first half released.
const TIMES: usize = 2;
/// Maximum duration of a request: its headers, or its body.
const REQUEST_MAX: Duration = Duration::from_secs(20);
/// Maximum memory of an open visit, as assumed for large crawls.
const OPEN_VISIT_KIB_MAX: u64 = 150;
/// Memory of an idle crawler with an open database.
const LOADED_KIB_MAX: u64 = 40 * 1024;
/// Permitted growth of memory between two halves of the same crawl, caused by the allocator and by visits that are being saved.
const GROWTH_PERCENT_MAX: u64 = 10;
const SLACK_KIB: u64 = 8 * 1024;

fn dripping(index: usize) -> Host {
    let host = Host::new(&format!("drip{index}.example")).robots("");
    let second = Duration::from_secs(1);
    if index.is_multiple_of(2) {
        let head = format!("HTTP/1.1 200 OK\r\nx-slow: {}\r\n\r\n", "a".repeat(1_000));
        host.catch_all(Answer::raw(head).dripping(1, second))
    } else {
        host.catch_all(Answer::json("x".repeat(10_000)).dripping(1, second))
    }
}

/// Resident memory of a process.
fn resident_kib(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// Pass criteria: each request is stopped within 20 s, its slot is released, and memory is flat.
#[tokio::test(flavor = "multi_thread")]
async fn stops_servers_that_send_one_byte_per_second() {
    let open = wanted("AGENTDEX_TEST_DRIPS", OPEN_DEFAULT);
    let drips = TIMES * open;
    // seeds are visited in the order of a hash, which spreads the good ones among the others
    let good = open / 20;
    let hosts = (0..drips).map(dripping).chain((0..good).map(|index| {
        Host::new(&format!("good{index}.example")).file("/agent.json", "application/json", AWP)
    }));
    let fixture = Fixture::with(hosts).await;
    let names: Vec<String> = fixture.web.hosts().into_iter().map(|(name, _)| name).collect();
    fixture.file("seeds", &names.join("\n"));
    let (places, rate) = (open.to_string(), (open / 10).max(20).to_string());
    let limits = ["--concurrency", &places, "--rate", &rate];
    let child = fixture
        .command(&["--seeds", "seeds", "--delay", "0s", "--format", "json", "-q"])
        .args(limits)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let pid = child.id().unwrap();
    let mut ended = std::pin::pin!(child.wait_with_output());
    // number of requests, and peak memory of the process at that time
    let mut peaks: BTreeMap<usize, u64> = BTreeMap::new();
    let ended = loop {
        if let Some(now) = resident_kib(pid) {
            let peak = peaks.entry(fixture.web.log().hit_count()).or_default();
            *peak = now.max(*peak);
        }
        tokio::select! {
            ended = &mut ended => break ended.unwrap(),
            () = tokio::time::sleep(Duration::from_millis(250)) => {}
        }
    };
    assert!(ended.status.success(), "{}", text(&ended.stderr));
    let summary: serde_json::Value = serde_json::from_slice(&ended.stdout).unwrap();
    assert_eq!(
        (&summary["sites_visited"], &summary["failed"]),
        (&(drips + good).into(), &0.into()),
        "{summary}"
    );
    assert_eq!(summary["manifests"]["awp"], good, "{summary}");
    let hits = fixture.web.log().hits();
    let longest = hits.iter().map(|hit| Duration::from_micros(hit.ended_us - hit.started_us)).max().unwrap();
    assert!(longest <= REQUEST_MAX, "a request took {longest:?}");
    let most_at_once = most_at_once(hits.iter().filter(|hit| hit.path != "/robots.txt"));
    let memory = judge_memory(&peaks, open);
    println!("{memory}");
    println!("{drips} dripping sites, {most_at_once} requests at once, the longest took {longest:?}");
    // a visit sends three requests, two of them slow; how many begin per second depends on the machine
    assert!(most_at_once * 4 >= open, "at most {most_at_once} requests were in flight at the same time");
}

/// Maximum number of concurrent requests.
fn most_at_once<'a>(hits: impl Iterator<Item = &'a testweb::Hit>) -> usize {
    let mut steps: Vec<(u64, i64)> = hits.flat_map(|hit| [(hit.started_us, 1), (hit.ended_us, -1)]).collect();
    steps.sort_unstable();
    let mut now = 0;
    let highest = steps.into_iter().map(|(_, step)| {
        now += step;
        now
    });
    usize::try_from(highest.max().unwrap_or_default()).unwrap_or_default()
}

/// Describes the memory usage. Panics if it grew.
fn judge_memory(peaks: &BTreeMap<usize, u64>, open: usize) -> String {
    let highest = |from: usize, to: usize| peaks.range(from..to).map(|(_, kib)| *kib).max();
    if peaks.is_empty() {
        return "memory is not checked: this system does not report it under /proc".to_owned();
    }
    // a visit ends after its third request
    let (first, second) = (highest(0, 3 * open), highest(9 * open / 2, usize::MAX));
    let (Some(first), Some(second)) = (first, second) else { panic!("too few samples: {peaks:?}") };
    let measured = format!("memory: {first} KiB in the first half, {second} KiB in the second");
    let flat_max = first + first * GROWTH_PERCENT_MAX / 100 + SLACK_KIB;
    assert!(second <= flat_max, "{measured}");
    let open_max = LOADED_KIB_MAX + OPEN_VISIT_KIB_MAX * open as u64 + SLACK_KIB;
    assert!(first.max(second) <= open_max, "{open} visits open; {measured}");
    measured
}

//! The crawler is killed (SIGKILL) again and again in the middle of its visits.
//!
//! `tests/faults full` kills it a hundred times; the usual run kills it a few times.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Stdio;
use std::time::Duration;

use testweb::{Answer, Hit, Host};
use tokio::process::Child;

use crate::fixture::{Fixture, text};
use crate::full::wanted;
use crate::support::AWP;

const KILLS_DEFAULT: usize = 6;
const DELAY: Duration = Duration::from_millis(80);
/// Number of requests after which a run of the crawler is killed.
const HITS_PER_RUN: usize = 40;
const ARGUMENTS: [&str; 10] =
    ["--seeds", "seeds", "--delay", "80ms", "--lease", "1s", "--concurrency", "8", "--format", "json"];

fn start(fixture: &Fixture) -> Child {
    let mut command = fixture.command(&ARGUMENTS);
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// Pass criteria: no site is lost, no gap is shortened, and a killed visit repeats at most the request in flight.
#[tokio::test]
async fn repeated_kills_lose_no_site_and_repeat_one_request_at_most() {
    let kills = wanted("AGENTDEX_TEST_KILLS", KILLS_DEFAULT);
    let names: Vec<String> = (0..20 + 2 * kills).map(|index| format!("shop{index}.example")).collect();
    let hosts = names.iter().map(|name| Host::new(name).file("/agent.json", "application/json", AWP));
    let fixture = Fixture::with(hosts).await;
    fixture.file("seeds", &names.join("\n"));
    let mut killed_at_us = Vec::new();
    for _ in 0..kills {
        let before = fixture.web.log().hit_count();
        let mut child = start(&fixture);
        let enough = fixture.web.log().wait_until(|log| log.hit_count() >= before + HITS_PER_RUN);
        tokio::time::timeout(Duration::from_mins(1), enough).await.expect("requests after a restart");
        child.kill().await.unwrap();
        killed_at_us.push(fixture.web.log().now_us());
    }
    let ended = fixture.run(&ARGUMENTS).await;
    assert!(ended.status.success(), "{}", text(&ended.stderr));
    let status = fixture.json(&["status", "--format", "json"]).await;
    assert_eq!(status["sites"], names.len(), "{status}");
    assert_eq!((&status["manifests"], &status["sites_leased"]), (&names.len().into(), &0.into()), "{status}");
    let hits = fixture.web.log().hits();
    let repeated = count_repeats(&hits, &names, &killed_at_us);
    println!("{} requests, {kills} kills, {repeated} requests repeated", hits.len());
}

/// Number of repeated requests.
fn count_repeats(hits: &[Hit], names: &[String], killed_at_us: &[u64]) -> usize {
    let mut repeated = 0;
    for name in names {
        let hits: Vec<&Hit> = hits.iter().filter(|hit| hit.host == *name).collect();
        for pair in hits.windows(2) {
            // a response that a kill interrupted ends when the server notices it
            let ended_us = if pair[0].complete { pair[0].ended_us } else { pair[0].started_us };
            let gap = Duration::from_micros(pair[1].started_us.saturating_sub(ended_us));
            assert!(gap >= DELAY, "{gap:?} on {name} between {} and {}", pair[0].path, pair[1].path);
        }
        let paths: BTreeSet<&str> = hits.iter().map(|hit| hit.path.as_str()).collect();
        let (first, last) = (hits.first().expect("a visit"), hits.last().expect("a visit"));
        let kills_of_visit =
            killed_at_us.iter().filter(|at| (first.started_us..last.started_us).contains(at)).count();
        let repeats = hits.len() - paths.len();
        assert!(
            repeats <= kills_of_visit,
            "{name}: {repeats} requests repeated after {kills_of_visit} kills: {:?}",
            counted(&hits)
        );
        repeated += repeats;
    }
    repeated
}

fn counted<'a>(hits: &[&'a Hit]) -> BTreeMap<&'a str, usize> {
    hits.iter().fold(BTreeMap::new(), |mut counts, hit| {
        *counts.entry(hit.path.as_str()).or_default() += 1;
        counts
    })
}

/// Pass criterion: no request for the full time, across a kill.
#[tokio::test]
async fn keeps_retry_after_across_a_kill() {
    let busy = Host::new("busy.example")
        .robots("")
        .route("/.well-known/agent.json", Answer::retry_after(429, "120"));
    let others = (0..8).map(|index| Host::new(&format!("shop{index}.example")));
    let names: Vec<String> = std::iter::once("busy.example".to_owned())
        .chain((0..8).map(|index| format!("shop{index}.example")))
        .collect();
    let fixture = Fixture::with(std::iter::once(busy).chain(others)).await;
    fixture.file("seeds", &names.join("\n"));
    let mut child = start(&fixture);
    let log = fixture.web.log();
    log.wait_until(|log| log.hits_on("busy.example").len() >= 2).await;
    // three requests to another site later, the delay has been stored
    let others = log.hit_count();
    log.wait_until(|log| log.hit_count() >= others + 24).await;
    child.kill().await.unwrap();
    let ended =
        fixture.run(&["--seeds", "seeds", "--delay", "80ms", "--lease", "1s", "--revisit", "0s"]).await;
    assert!(ended.status.success(), "{}", text(&ended.stderr));
    assert_eq!(log.hits_on("busy.example").len(), 2, "a request was sent during the delay");
}

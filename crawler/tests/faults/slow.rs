//! Slow servers: each request ends within its limit, and its slot is released.

use std::time::Duration;

use policy::{FetchOutcome, VisitEnd};
use testweb::{Answer, Handshake, Host};

use crate::support::{AWP, Crawl};

const FIRST: &str = "/.well-known/agent.json";
/// Number of sites of each kind. There are six kinds, so twice as many sites as visits that may be open.
const EACH: usize = 40;
const OPEN_MAX: usize = 120;
/// Maximum duration of each request.
const REQUEST_MAX: Duration = Duration::from_secs(20);

fn dripping_head() -> Answer {
    Answer::raw(format!("HTTP/1.1 200 OK\r\nx-slow: {}\r\n\r\n", "a".repeat(1_000)))
        .dripping(1, Duration::from_secs(1))
}

fn dripping_body() -> Answer {
    Answer::json("x".repeat(10_000)).dripping(1, Duration::from_secs(1))
}

/// Pass criterion: a response that sends one byte per second, in its headers or its body, is aborted within 20 s, and other visits get the
/// slot.
#[tokio::test]
async fn slow_servers_do_not_delay_others() {
    let slow = |kind: &str, make: &dyn Fn(Host) -> Host| -> Vec<Host> {
        (0..EACH).map(|index| make(Host::new(&format!("{kind}{index}.example")))).collect()
    };
    let hosts: Vec<Host> = [
        slow("head", &|host| host.robots("").route(FIRST, dripping_head())),
        slow("body", &|host| host.robots("").route(FIRST, dripping_body())),
        slow("silent", &|host| host.robots("").route(FIRST, Answer::silence())),
        slow("robots", &|host| host.route("/robots.txt", dripping_body())),
        slow("stalled", &|host| host.handshake(Handshake::Stall)),
        slow("good", &|host| host.file("/agent.json", "application/json", AWP)),
    ]
    .concat();
    let sites = hosts.len();
    let mut crawl = Crawl::of(hosts).await;
    crawl.config.concurrency = OPEN_MAX;
    let summary = crawl.pass().await;
    assert_eq!((summary.sites_visited, summary.failed), (sites as u64, 0), "{summary:?}");
    assert_eq!(summary.manifests_added, EACH as u64, "slow sites did not delay the others");
    for hit in crawl.web.log().hits() {
        let took = Duration::from_micros(hit.ended_us - hit.started_us);
        assert!(took <= REQUEST_MAX, "{}{} took {took:?}", hit.host, hit.path);
    }
    for (kind, end, outcome) in [
        ("head", VisitEnd::Completed, Some(FetchOutcome::Timeout)),
        ("body", VisitEnd::Completed, Some(FetchOutcome::Timeout)),
        ("silent", VisitEnd::Completed, Some(FetchOutcome::Timeout)),
        ("robots", VisitEnd::RobotsUnreachable, None),
        ("stalled", VisitEnd::RobotsUnreachable, None),
    ] {
        let name = format!("{kind}7.example");
        let visit = &crawl.report(&name).await.visits[0];
        assert_eq!(visit.end, end, "{name}: {visit:?}");
        if let Some(outcome) = outcome {
            assert_eq!(crawl.outcome(&name, FIRST).await, outcome, "{name}");
        }
    }
}

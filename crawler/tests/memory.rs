//! Measures the peak memory of this process, including the test web. This is a separate test program because other tests would affect the
//! result.

#![expect(clippy::unwrap_used, reason = "a failed test should show the line")]

#[path = "support/skipped.rs"]
mod skipped;
#[expect(dead_code, reason = "each test program uses its own part")]
mod support;

use manifest::Host;
use policy::FetchOutcome;
use skipped::skipped;
use store::Seed;
use support::{Crawl, now};
use testweb::Answer;

const FIRST: &str = "/.well-known/agent.json";
const BOMBS: usize = 8;
/// The pass criterion for a bomb.
const GROWTH_KIB_MAX: u64 = 2 * 1024;

/// Peak of resident memory so far.
fn peak_kib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// Sets the response to the first path of every host, visits the hosts one after another, and returns the outcome.
async fn visit_all(crawl: &Crawl, answer: &Answer) -> FetchOutcome {
    for index in 0..BOMBS {
        let host: Host = format!("bomb{index}.example").parse().unwrap();
        crawl.web.set(host.as_str(), FIRST, answer.clone());
        // a visit that the owner requests covers every path
        crawl.store.visit_request_of_owner(&host.site(), now()).await.unwrap();
        let again = Seed { revisit_now: true, ..Seed::of_host(host) };
        crawl.store.seeds_add(&[again], now()).await.unwrap();
    }
    crawl.pass().await;
    crawl.outcome("bomb0.example", FIRST).await
}

/// Pass criterion: a body that decodes to gigabytes costs no more than one that does not.
#[tokio::test]
async fn gzip_bombs_take_no_memory() {
    let Some(_) = peak_kib() else {
        skipped("this system does not report its peak memory under /proc");
        return;
    };
    // text of the maximum size of a body
    let large = Answer::json(format!("{{\"text\":\"{}\"}}", "lorem ipsum ".repeat(10_000))).gzip();
    let brotli = Answer::brotli_bomb("application/json", 64 << 20);
    let hosts = (0..BOMBS)
        .map(|index| testweb::Host::new(&format!("bomb{index}.example")).route(FIRST, large.clone()));
    let mut crawl = Crawl::of(hosts).await;
    crawl.config.concurrency = 1;
    crawl.pass().await;
    for _ in 0..6 {
        visit_all(&crawl, &large).await;
    }
    // the first refused bomb allocates some memory that later ones reuse
    visit_all(&crawl, &Answer::gzip_bomb("application/json", 1 << 20)).await;
    let before = peak_kib().unwrap();
    for bytes in [10 << 20, 1 << 30, 10 << 30] {
        let bomb = Answer::gzip_bomb("application/json", bytes);
        assert_eq!(visit_all(&crawl, &bomb).await, FetchOutcome::BadEncoding);
    }
    // the body is neither requested nor decoded
    assert_eq!(visit_all(&crawl, &brotli).await, FetchOutcome::BadEncoding);
    let growth = peak_kib().unwrap() - before;
    assert!(growth <= GROWTH_KIB_MAX, "bombs cost {growth} KiB");
}

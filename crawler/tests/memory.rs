//! Measures the peak of the bytes that this process has allocated, including the test web. This is a separate test program because other
//! tests would affect the result. Resident memory is not measured: it varies by megabytes with the allocator's caches.

#![expect(clippy::unwrap_used, reason = "a failed test should show the line")]

#[expect(dead_code, reason = "each test program uses its own part")]
mod support;

use manifest::Host;
use peak_alloc::PeakAlloc;
use policy::FetchOutcome;
use store::Seed;
use support::{Crawl, now};
use testweb::Answer;

const FIRST: &str = "/.well-known/agent.json";
const BOMBS: usize = 8;
/// The pass criterion for a bomb.
const GROWTH_BYTES_MAX: usize = 2 << 20;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

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
    // text of the maximum size of a body
    let large = Answer::json(format!("{{\"text\":\"{}\"}}", "lorem ipsum ".repeat(10_000))).gzip();
    let hosts = (0..BOMBS)
        .map(|index| testweb::Host::new(&format!("bomb{index}.example")).route(FIRST, large.clone()));
    let mut crawl = Crawl::of(hosts).await;
    crawl.config.concurrency = 1;
    crawl.pass().await;
    let usual = peak_bytes(&crawl, &large).await.1;
    let bombs = [10 << 20, 1 << 30, 10 << 30].map(|bytes| Answer::gzip_bomb("application/json", bytes));
    // the brotli body is neither requested nor decoded
    for bomb in bombs.into_iter().chain([Answer::brotli_bomb("application/json", 64 << 20)]) {
        let (outcome, peak) = peak_bytes(&crawl, &bomb).await;
        assert_eq!(outcome, FetchOutcome::BadEncoding);
        assert!(
            peak <= usual + GROWTH_BYTES_MAX,
            "visits with a bomb allocate {peak} bytes at once, others {usual}"
        );
    }
}

/// Visits all hosts with a response; returns the outcome, and how many bytes were allocated at once.
async fn peak_bytes(crawl: &Crawl, answer: &Answer) -> (FetchOutcome, usize) {
    let before = ALLOCATOR.current_usage();
    ALLOCATOR.reset_peak_usage();
    let outcome = visit_all(crawl, answer).await;
    (outcome, ALLOCATOR.peak_usage().saturating_sub(before))
}

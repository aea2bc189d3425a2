//! Tests that a pass finishes parked visits of another worker, even if that worker died.

#![expect(clippy::unwrap_used, reason = "a failed test should show the line")]

#[expect(dead_code, reason = "each test program uses its own part")]
mod support;

use std::time::Duration;

use chrono::TimeDelta;
use crawler::config::Mode;
use store::{GroupSet, HandOver, LeaseRequest, LeaseToken, ParkedVisit, Seed, WorkerId};
use support::{Crawl, now, shop};
use testweb::Host;

/// How long a pass waits for a parked visit.
const PARK_WAIT: Duration = Duration::from_secs(20);
/// Time after which the visits of these tests resume. It is after the start of the pass, so that they are neither due nor ready at the
/// start.
const RESUMED_AFTER: TimeDelta = TimeDelta::seconds(1);

/// Another worker that shares the queue.
struct Other<'a>(&'a Crawl);

impl Other<'_> {
    async fn lease(&self, duration: Duration) -> LeaseToken {
        let request = LeaseRequest {
            worker: WorkerId::new("other"),
            sites_max: 1,
            duration,
            due_before: now() + TimeDelta::hours(1),
            only: Some(vec![manifest::SiteName::parse("shop.example").unwrap()]),
            groups: GroupSet::all(),
        };
        let mut leased = self.0.store.sites_lease(&request, now()).await.unwrap();
        assert_eq!(leased.len(), 1, "the other worker holds the site");
        leased.remove(0).token
    }

    async fn park(&self, token: &LeaseToken) {
        let (reason, progress) = ("the site asked for a delay".to_owned(), serde_json::Value::Null);
        let parked = ParkedVisit { resume_at: now() + RESUMED_AFTER, reason, progress, claim: None };
        self.0.store.visit_park(token, &parked, now()).await.unwrap();
    }
}

/// A crawl of shops that are in the store before it begins.
async fn known(shops: &[Host]) -> Crawl {
    let mut crawl = Crawl::of(shops.iter().cloned()).await;
    let host = |shop: &Host| manifest::Host::parse(shop.name()).unwrap();
    let seeds: Vec<Seed> = shops.iter().map(|shop| Seed::of_host(host(shop))).collect();
    crawl.store.seeds_add(&seeds, now()).await.unwrap();
    crawl.config.mode = Mode::Once { park_wait: PARK_WAIT, goes_on: false };
    crawl
}

/// The other worker resumed a parked visit and died: its lease ends after the time at which the visit was to be resumed.
#[tokio::test]
async fn waits_for_a_parked_visit_until_the_lease_of_a_dead_worker_ends() {
    let mut crawl = known(&[shop()]).await;
    let other = Other(&crawl);
    let token = other.lease(Duration::from_mins(1)).await;
    other.park(&token).await;
    other.lease(Duration::from_secs(4)).await;
    crawl.config.lease = Duration::from_secs(4);
    let summary = crawl.pass().await;
    assert_eq!((summary.sites_visited, summary.parked.len()), (1, 0), "{summary:?}");
}

/// The other worker parked a visit after this pass had listed the parked ones, and died.
#[tokio::test]
async fn resumes_visits_that_were_parked_during_the_pass() {
    let mut crawl = known(&[shop(), Host::new("other.example").robots("")]).await;
    crawl.config.lease = Duration::from_secs(6);
    let other = Other(&crawl);
    let token = other.lease(Duration::from_secs(6)).await;
    let parks_later = async {
        while crawl.hits("other.example").is_empty() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        other.park(&token).await;
    };
    let (summary, ()) = tokio::join!(crawl.pass(), parks_later);
    assert_eq!((summary.sites_visited, summary.parked.len()), (2, 0), "{summary:?}");
}

/// The visit is parked, and its site was postponed by a day because one of its rows is damaged.
#[tokio::test]
async fn does_not_wait_for_a_postponed_site() {
    let crawl = known(&[shop()]).await;
    let other = Other(&crawl);
    let token = other.lease(Duration::from_mins(1)).await;
    other.park(&token).await;
    let token = other.lease(Duration::from_mins(1)).await;
    // moves the planned time as for a postponed site, and keeps the parked visit
    let aside = HandOver { due_at: now() + TimeDelta::days(1), progress: None };
    assert_eq!(crawl.store.visits_hand_over(&[(token, aside)]).await.unwrap().len(), 1);
    let began = tokio::time::Instant::now();
    let summary = crawl.pass().await;
    assert!(began.elapsed() < PARK_WAIT, "the pass waited");
    assert_eq!((summary.sites_visited, crawl.web.log().hit_count()), (0, 0), "{summary:?}");
}

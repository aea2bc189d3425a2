//! Tests which paths a visit requests: few at a site without manifests, all at a site that has a manifest or was submitted.
//!
//! The simulation applies the decisions to a web with the shares of the counted sites. The other tests count the requests that servers
//! received.

#![expect(clippy::unwrap_used, reason = "a failed test should show the line")]

mod support;

use std::collections::{BTreeMap, BTreeSet};

use crawler::{Cancel, Summary};
use policy::plan::{FullTableReason, LastCheck, PATHS, Priors};
use policy::{FetchOutcome, HostKnowledge, PathClass, Status, VisitEnd, plan};
use store::{Seed, SeedOrigin};
use support::{AWP, Crawl, now, shop};
use testweb::{Answer, Host, Web, shares};

/// robots.txt, the other paths of the table, and the home page.
const FULL_TABLE: usize = PATHS.len() + 1;
/// robots.txt and the likeliest paths.
const FIRST_VISIT: usize = 10;

/// A simulated site.
struct Site {
    published: Vec<&'static str>,
    checked: BTreeMap<u8, LastCheck>,
    found: BTreeSet<&'static str>,
    visits: u32,
}

impl Site {
    fn new(published: Vec<&'static str>) -> Self {
        Self { published, checked: BTreeMap::new(), found: BTreeSet::new(), visits: 0 }
    }

    /// Visits the site as a crawler does, and returns the number of requests. robots.txt is always one of them.
    fn visit(&mut self, priors: &Priors) -> usize {
        let knowledge = match (self.found.is_empty(), self.visits) {
            (false, _) => HostKnowledge::Positive,
            (true, 0) => HostKnowledge::Unknown,
            (true, visits) => HostKnowledge::Negative { visits },
        };
        let known = self.found.len();
        let mut reason = (known > 0).then_some(FullTableReason::ManifestKnown);
        let before = self.checked.clone();
        let last = |slot: u8| before.get(&slot).copied();
        let mut planned = plan::paths(knowledge, reason, priors, last).requested;
        let mut requested = 0;
        while let Some(row) = planned.get(requested).copied() {
            requested += 1;
            let is_published = self.published.contains(&row.path);
            let class = if is_published { PathClass::Present } else { PathClass::Absent };
            self.checked.insert(
                row.slot,
                LastCheck { class, day: 20_000 + u16::try_from(self.visits).unwrap(), turn: 0 },
            );
            if is_published {
                self.found.insert(row.path);
            }
            if is_published && reason.is_none() {
                reason = Some(FullTableReason::ManifestFound);
                let more = plan::paths(knowledge, reason, priors, last).requested;
                let more: Vec<_> = more.into_iter().filter(|row| !planned.contains(row)).collect();
                planned.extend(more);
            }
        }
        self.visits += 1;
        1 + known + requested
    }
}

/// Simulates a web with the shares of the counted sites, where one site in a hundred has a manifest.
#[test]
fn ten_requests_find_98_percent_of_the_manifests_and_three_visits_find_all() {
    let priors = Priors::default();
    let mut sites: Vec<Site> = shares::paths(shares::SITES).map(Site::new).collect();
    let published: usize = sites.iter().map(|site| site.published.len()).sum();
    let mut requests_of_empty = Vec::new();
    let mut found = Vec::new();
    for _ in 0..3 {
        let mut requests = 0;
        for site in &mut sites {
            let sent = site.visit(&priors);
            requests += if site.published.is_empty() { sent } else { 0 };
        }
        let empty = sites.iter().filter(|site| site.published.is_empty()).count();
        assert_eq!(requests % empty, 0, "each site without manifests gets the same number of requests");
        requests_of_empty.push(requests / empty);
        found.push(sites.iter().map(|site| site.found.len()).sum::<usize>());
    }
    assert_eq!(requests_of_empty, [10, 4, 8], "requests to a site with nothing, by visit");
    assert_eq!((published, found.as_slice()), (212, [208, 210, 212].as_slice()));
    assert!(found[0] * 100 >= published * 98);
    assert!(sites.iter().all(|site| site.checked.len() == PATHS.len()), "every path of every site");
}

#[tokio::test]
async fn a_site_without_manifests_gets_ten_requests_and_three_visits_cover_the_table() {
    let mut crawl = Crawl::of([Host::new("empty.example")]).await;
    let summary = crawl.pass().await;
    let mut requested = crawl.paths("empty.example");
    assert_eq!((requested.len(), summary.requests), (FIRST_VISIT, 10), "{requested:?}");
    assert_eq!(crawl.outcome("empty.example", "/agents.txt").await, FetchOutcome::NotFound);
    // the copy of robots.txt is used
    for count in [3, 7] {
        crawl.pass_again().await;
        let paths = crawl.paths("empty.example");
        assert_eq!(paths.len(), count, "{paths:?}");
        requested.extend(paths);
    }
    let distinct: BTreeSet<&str> = requested.iter().map(String::as_str).collect();
    assert_eq!((requested.len(), distinct.len()), (FULL_TABLE, FULL_TABLE), "{requested:?}");
    assert!(PATHS.iter().all(|row| distinct.contains(row.path)));
    crawl.pass_again().await;
    assert_eq!(crawl.paths("empty.example").len(), 3, "the paths that were checked longest ago");
}

#[tokio::test]
async fn three_visits_find_the_manifests_of_the_counted_sites() {
    let mut declaring = 0;
    let hosts = shares::paths(shares::SITES).enumerate().filter_map(|(number, paths)| {
        declaring += usize::from(!paths.is_empty());
        let is_taken = !paths.is_empty() || number < 10;
        is_taken.then(|| shares::host(&format!("s{number}.example"), &paths))
    });
    let mut crawl = Crawl::of(hosts.collect::<Vec<_>>()).await;
    let first = crawl.pass().await;
    let empty: Vec<usize> = (1..10).map(|number| crawl.paths(&format!("s{number}.example")).len()).collect();
    assert_eq!(empty, [FIRST_VISIT; 9]);
    let later = [crawl.pass_again().await, crawl.pass_again().await].map(|summary| summary.manifests_added);
    assert_eq!((first.manifests_added, later), (208, [2, 2]), "{first:?}");
}

#[tokio::test]
async fn a_submitted_site_gets_the_full_table() {
    let hosts = [Host::new("empty.example"), Host::new("known.example")];
    let crawl = Crawl::on(Web::builder().hosts(hosts).start().await.unwrap(), "known.example").await;
    crawl.pass().await;
    assert_eq!(crawl.paths("known.example").len(), FIRST_VISIT);
    let submit = |host: &str| Seed {
        origin: SeedOrigin::Submitted,
        revisit_now: true,
        ..Seed::of_host(host.parse().unwrap())
    };
    let seeds = [submit("empty.example"), submit("known.example")];
    crawl.store.seeds_add(&seeds, now()).await.unwrap();
    assert!(crawl.report("empty.example").await.state.is_submitted);
    crawl.pass().await;
    assert_eq!(crawl.paths("empty.example").len(), FULL_TABLE);
    // anyone may submit a listed site: this requests a visit, but does not change the state of the site
    assert!(!crawl.report("known.example").await.state.is_submitted);
    assert_eq!(crawl.paths("known.example").len(), FIRST_VISIT + 3);
    let seed = submit("known.example");
    crawler::check(crawl.config.clone(), crawl.store.clone(), Cancel::default(), seed, &|_| ())
        .await
        .unwrap();
    let known = crawl.paths("known.example");
    assert_eq!(known.len(), FIRST_VISIT + 3 + PATHS.len(), "a check requests every path: {known:?}");
    assert_eq!(known.iter().collect::<BTreeSet<_>>().len(), FULL_TABLE);
}

/// Checks a host as the operator does.
async fn check(crawl: &Crawl, host: &str) -> Summary {
    let seed = Seed { revisit_now: true, ..Seed::of_host(host.parse().unwrap()) };
    crawl.web.log().clear();
    crawler::check(crawl.config.clone(), crawl.store.clone(), Cancel::default(), seed, &|_| ()).await.unwrap()
}

/// Owners publish a file, check, correct it, and check again.
#[tokio::test]
async fn a_check_finds_what_was_published_after_a_check_of_the_same_day() {
    let crawl = Crawl::of([Host::new("mine.example")]).await;
    crawl.pass().await;
    for number in 1..=5 {
        assert_eq!(check(&crawl, "mine.example").await.manifests_added, 0);
        let report = crawl.report("mine.example").await;
        assert_eq!(crawl.paths("mine.example").len(), PATHS.len(), "check {number} requests every path");
        assert_eq!(report.state.negatives_in_row, 1, "the interval grows once a day");
        let days = (report.summary.next_visit_at.unwrap() - now()).num_days();
        assert!((11..17).contains(&days), "{days}");
    }
    crawl.web.set_file("mine.example", "/agent.json", "application/json", AWP.replace("shop.", "mine."));
    assert_eq!(check(&crawl, "mine.example").await.manifests_added, 1);
}

/// Hosts of single-page applications answer every path that does not exist with a page.
#[tokio::test]
async fn a_check_requests_every_path_of_a_host_that_answers_every_path_with_a_page() {
    let spa = Host::new("spa.example").robots("").catch_all(Answer::html("<!doctype html><p>welcome"));
    let crawl = Crawl::of([spa, Host::new("other.example")]).await;
    crawl.pass().await;
    assert_eq!(crawl.paths("spa.example").len(), 1 + 2, "robots.txt and two pages");
    check(&crawl, "spa.example").await;
    assert_eq!(crawl.paths("spa.example").len(), PATHS.len());
    let report = crawl.report("spa.example").await;
    assert_eq!((report.visits[0].end, report.summary.status), (VisitEnd::CatchAll, Status::CatchAll));
    crawl.web.set_file("spa.example", "/llms.txt", "application/json", AWP.replace("shop.", "spa."));
    assert_eq!(check(&crawl, "spa.example").await.manifests_added, 1);
    assert_eq!(crawl.report("spa.example").await.visits[0].end, VisitEnd::Completed);
}

#[tokio::test]
async fn a_seed_that_names_a_url_gets_the_full_table() {
    let web = Web::builder().host(Host::new("empty.example")).start().await.unwrap();
    let crawl = Crawl::on(web, "https://empty.example/special.json").await;
    crawl.pass().await;
    assert_eq!(crawl.paths("empty.example").len(), FULL_TABLE + 1);
}

#[tokio::test]
async fn agentmaps_and_manifests_lead_to_the_full_table_in_the_same_visit() {
    let mapped = Host::new("mapped.example").robots("User-agent: *\nAllow: /\nAgentmap: /maps/agents.json\n");
    let found = shop().file("/llms.txt", "application/json", AWP.replace("buy_book", "lend_book"));
    let crawl = Crawl::of([mapped, found]).await;
    let summary = crawl.pass().await;
    assert_eq!(crawl.paths("mapped.example").len(), FULL_TABLE + 1);
    assert_eq!(crawl.paths("shop.example").len(), FULL_TABLE);
    assert_eq!(summary.manifests_added, 2, "{summary:?}");
}

#[tokio::test]
async fn links_of_a_home_page_cause_requests_of_the_full_table() {
    let page = "<html><head><link rel='agent-manifest' href='/hidden/awp.json'></head></html>";
    let host = Host::new("shop.example")
        .route("/", Answer::html(page))
        .file("/hidden/awp.json", "application/json", AWP)
        .file("/.well-known/woa.json", "application/json", AWP.replace("buy_book", "lend_book"));
    let mut crawl = Crawl::of([host]).await;
    assert_eq!(crawl.pass().await.manifests_added, 0);
    let second = crawl.pass_again().await;
    assert_eq!(second.manifests_added, 2, "{second:?}");
    // ten paths that the first visit left, and the linked one
    assert_eq!(crawl.paths("shop.example").len(), 11);
}

//! Sites that misbehave: each is classified, costs little, and does not make the crawler break rules of politeness.

#![expect(clippy::unwrap_used, reason = "a failed test should show the line")]

mod support;

use std::time::Duration;

use crawler::config::{Mode, SeedLists, SeedSource};
use crawler::{Cancel, Progress};
use policy::{FetchOutcome, VisitEnd};
use store::Seed;
use support::{AWP, Crawl, now, shop};
use testweb::{Answer, Certificate, Handshake, Host};

const MANIFEST: &str = "/.well-known/agent.json";

/// A host with this response to the first manifest path.
fn answering(answer: Answer) -> Host {
    Host::new("bad.example").robots("User-agent: *\nAllow: /\n").route(MANIFEST, answer)
}

async fn outcome_of(answer: Answer) -> FetchOutcome {
    let crawl = Crawl::of([answering(answer)]).await;
    crawl.pass().await;
    crawl.outcome("bad.example", MANIFEST).await
}

async fn end_of(host: Host) -> (VisitEnd, Crawl) {
    let name = host.name().to_owned();
    let crawl = Crawl::of([host]).await;
    crawl.pass().await;
    let end = crawl.report(&name).await.visits[0].end;
    (end, crawl)
}

#[tokio::test]
async fn bodies_beyond_their_caps_are_refused() {
    assert_eq!(outcome_of(Answer::endless("application/json")).await, FetchOutcome::TooLarge);
    assert_eq!(outcome_of(Answer::gzip_bomb("application/json", 10 << 30)).await, FetchOutcome::BadEncoding);
    assert_eq!(
        outcome_of(Answer::brotli_bomb("application/json", 64 << 20)).await,
        FetchOutcome::BadEncoding
    );
    let nested = Answer::json("{}").header("content-encoding", "gzip, gzip");
    assert_eq!(outcome_of(nested).await, FetchOutcome::BadEncoding);
}

#[tokio::test]
async fn classifies_answers_that_are_not_http() {
    for raw in ["HTTP/1.1 two hundred\r\n\r\n", "SSH-2.0-OpenSSH\r\n", "HTTP/1.1 200 OK\r\nno colon\r\n\r\n"]
    {
        assert_eq!(outcome_of(Answer::raw(raw)).await, FetchOutcome::ProtocolError, "{raw:?}");
    }
    assert_eq!(outcome_of(Answer::reset()).await, FetchOutcome::ProtocolError);
    assert_eq!(outcome_of(Answer::json("{}").with_content_length(100)).await, FetchOutcome::ProtocolError);
    assert_eq!(outcome_of(Answer::json("{}").padded(101, 1)).await, FetchOutcome::ProtocolError);
    assert_eq!(outcome_of(Answer::json("{}").padded(20, 2_000)).await, FetchOutcome::ProtocolError);
}

#[tokio::test]
async fn broken_certificates_end_the_visit_after_one_attempt() {
    let certificates = [
        Certificate::Expired,
        Certificate::NotYetValid,
        Certificate::WrongName,
        Certificate::SelfSigned,
        Certificate::UnknownAuthority,
    ];
    for certificate in certificates {
        let (end, crawl) = end_of(shop().certificate(certificate)).await;
        assert_eq!(end, VisitEnd::TlsFailed, "{certificate:?}");
        assert_eq!(crawl.web.log().hit_count(), 0);
    }
    for handshake in [Handshake::Reset, Handshake::Close] {
        let (end, crawl) = end_of(shop().handshake(handshake)).await;
        assert!(matches!(end, VisitEnd::TlsFailed | VisitEnd::Unreachable), "{handshake:?}: {end}");
        assert_eq!(crawl.web.log().hit_count(), 0);
    }
}

#[tokio::test]
async fn refused_connections_end_the_visit() {
    assert_eq!(end_of(shop().refusing_connections()).await.0, VisitEnd::Unreachable);
}

#[tokio::test]
async fn never_connects_to_private_addresses() {
    let mut crawl = Crawl::of([shop()]).await;
    crawl.config.egress.own_networks = policy::OwnNetworks::default();
    crawl.pass().await;
    let report = crawl.report("shop.example").await;
    assert_eq!(report.visits[0].end, VisitEnd::AddressRefused);
    assert!(crawl.web.log().connections().is_empty());
}

#[tokio::test]
async fn keeps_retry_after_across_runs() {
    for (status, value) in [(429, "120"), (503, "300"), (429, "soon"), (503, "-5")] {
        let mut crawl = Crawl::of([answering(Answer::retry_after(status, value))]).await;
        crawl.pass().await;
        let report = crawl.report("bad.example").await;
        assert_eq!(report.visits[0].end, VisitEnd::RateLimited, "{status} {value}");
        assert_eq!(crawl.paths("bad.example"), ["/robots.txt", MANIFEST]);
        let wait = report.state.not_before.unwrap() - report.visits[0].ended_at;
        assert!(wait.num_seconds() >= 55, "{status} {value}: {wait}");
        // a visit that the operator requests also waits
        let summary = crawl.pass_again().await;
        assert_eq!(crawl.web.log().hit_count(), 0, "{status} {value}");
        assert_eq!(summary.parked.len(), 1, "{summary:?}");
    }
}

#[tokio::test]
async fn robots_failures_never_allow_requests() {
    for answer in [
        Answer::status(500),
        Answer::status(429),
        Answer::status(503),
        Answer::reset(),
        Answer::status(401),
        Answer::status(403),
        Answer::redirect(301, "/robots.txt"),
        Answer::redirect(301, "http://shop.example/robots.txt"),
    ] {
        let what = format!("{answer:?}");
        let (end, crawl) = end_of(shop().route("/robots.txt", answer)).await;
        assert!(
            matches!(end, VisitEnd::RobotsUnreachable | VisitEnd::RobotsDenied | VisitEnd::RateLimited),
            "{what}: {end}"
        );
        assert!(crawl.paths("shop.example").iter().all(|path| path == "/robots.txt"), "{what}");
    }
}

/// An HTTP/2 server may send any number of informational responses, which the client would keep in memory.
#[tokio::test]
async fn requests_use_http_1_where_the_server_offers_http_2() {
    let (end, crawl) = end_of(shop()).await;
    assert_eq!(end, VisitEnd::Completed);
    let versions: std::collections::BTreeSet<String> =
        crawl.web.log().hits().into_iter().map(|hit| hit.http_version).collect();
    assert_eq!(versions.into_iter().collect::<Vec<_>>(), ["HTTP/1.1"]);
}

/// Truncated responses, one for each way in which HTTP marks the end of a body.
fn truncated_answers(part: &str) -> Vec<(&'static str, Answer)> {
    let head = |version: &str, headers: &str| {
        format!("HTTP/{version} 200 OK\r\ncontent-type: text/plain\r\n{headers}\r\n")
    };
    let chunk = format!("{:x}\r\n{part}\r\n", part.len());
    let chunked = head("1.1", "transfer-encoding: chunked\r\n") + &chunk;
    let sized = head("1.1", &format!("content-length: {}\r\n", part.len() + 1)) + part;
    let (until_closed, of_http10) = (head("1.1", "") + part, head("1.0", "") + part);
    vec![
        ("no last chunk", Answer::raw(chunked.clone())),
        ("a truncated chunk", Answer::raw(chunked.trim_end().to_owned())),
        ("no last chunk and no close_notify", Answer::raw(chunked).without_close_notify()),
        ("less than its Content-Length", Answer::raw(sized)),
        ("until closed, without close_notify", Answer::raw(until_closed).without_close_notify()),
        ("HTTP/1.0, without close_notify", Answer::raw(of_http10).without_close_notify()),
    ]
}

#[tokio::test]
async fn a_file_that_ends_early_is_not_used() {
    for (what, answer) in truncated_answers("User-agent: *\nAllow: /\n") {
        let (end, crawl) = end_of(shop().route("/robots.txt", answer)).await;
        assert_eq!(end, VisitEnd::RobotsUnreachable, "{what}");
        assert!(crawl.paths("shop.example").iter().all(|path| path == "/robots.txt"), "{what}");
    }
    for (what, answer) in truncated_answers(AWP) {
        assert_eq!(outcome_of(answer).await, FetchOutcome::ProtocolError, "{what}");
    }
    let closed = format!("HTTP/1.0 200 OK\r\ncontent-type: application/json\r\n\r\n{AWP}");
    assert_eq!(
        outcome_of(Answer::raw(closed)).await,
        FetchOutcome::Found,
        "close_notify of TLS marks the end of the body"
    );
}

#[tokio::test]
async fn accepts_missing_robots_pages_and_five_redirects() {
    let missing = shop().route("/robots.txt", Answer::status(404));
    let page = shop().route("/robots.txt", Answer::html("<html>welcome</html>"));
    let mut far = shop().redirect("/robots.txt", 301, "/r1");
    for hop in 1..5 {
        far = far.redirect(&format!("/r{hop}"), 302, &format!("/r{}", hop + 1));
    }
    let far_enough = far.clone().file("/r5", "text/plain", "User-agent: *\nDisallow: /agents.json\n");
    for host in [missing, page, far_enough] {
        let (end, crawl) = end_of(host).await;
        assert_eq!(end, VisitEnd::Completed);
        assert_eq!(crawl.outcome("shop.example", "/agent.json").await, FetchOutcome::Found);
    }
    let too_far = far.redirect("/r5", 302, "/r6").file("/r6", "text/plain", "");
    assert_eq!(end_of(too_far).await.0, VisitEnd::RobotsDenied);
}

#[tokio::test]
async fn detects_hosts_that_answer_every_path() {
    let pages = Host::new("page.example").robots("").catch_all(Answer::html("<!doctype html><p>welcome"));
    let (end, crawl) = end_of(pages).await;
    assert_eq!(end, VisitEnd::CatchAll);
    assert_eq!(crawl.paths("page.example").len(), 3, "{:?}", crawl.paths("page.example"));
    let copies = Host::new("copy.example").robots("").catch_all(Answer::json(AWP));
    let (end, crawl) = end_of(copies).await;
    assert_eq!(end, VisitEnd::CatchAll);
    let site = manifest::SiteName::parse("copy.example").unwrap();
    assert!(crawl.store.manifests_of_site(&site).await.unwrap().is_empty());
}

#[tokio::test]
async fn ends_visits_after_denials_and_server_errors() {
    let walled = Host::new("wall.example").robots("").catch_all(Answer::status(403));
    let (end, crawl) = end_of(walled).await;
    assert_eq!((end, crawl.paths("wall.example").len()), (VisitEnd::Blocked, 4));
    let broken = Host::new("broken.example").robots("").catch_all(Answer::status(500));
    let (end, crawl) = end_of(broken).await;
    assert_eq!((end, crawl.paths("broken.example").len()), (VisitEnd::ServerErrors, 3));
}

#[tokio::test]
async fn parks_a_visit_for_a_long_crawl_delay_and_resumes_in_the_next_run() {
    let crawl = Crawl::of([shop().robots("User-agent: *\nCrawl-delay: 30\n")]).await;
    let summary = crawl.pass().await;
    assert_eq!(crawl.paths("shop.example"), ["/robots.txt"]);
    assert_eq!(summary.parked.len(), 1, "{summary:?}");
    let wait = summary.parked[0].resume_at - now();
    assert!((25..=31).contains(&wait.num_seconds()), "{wait}");
    // no request is sent before its time, even after several restarts of the crawler
    let summary = crawl.pass().await;
    assert_eq!((summary.parked.len(), crawl.web.log().hit_count()), (1, 1));
}

#[tokio::test]
async fn resumes_a_stopped_crawl_at_the_next_path() {
    let mut crawl = Crawl::of([shop()]).await;
    crawl.config.delay = Duration::from_millis(100);
    let web = &crawl.web;
    let cancel = Cancel::default();
    let stopper = async {
        web.log().wait_until(|log| log.hit_count() >= 5).await;
        cancel.soft.cancel();
    };
    let run = crawler::run(crawl.config.clone(), crawl.store.clone(), cancel.clone(), &|_| ());
    let (summary, ()) = tokio::join!(run, stopper);
    let summary = summary.unwrap();
    assert!(summary.interrupted && summary.sites_visited == 0, "{summary:?}");
    crawl.config.delay = Duration::ZERO;
    let summary = crawl.pass().await;
    assert_eq!((summary.sites_visited, summary.manifests_added), (1, 1), "{summary:?}");
    let mut paths = crawl.paths("shop.example");
    let asked = paths.len();
    paths.sort();
    paths.dedup();
    assert_eq!((asked, paths.len()), (20, 20), "no path is requested twice");
}

#[tokio::test]
async fn opt_out_during_a_visit_suppresses_the_next_request() {
    let mut crawl = Crawl::of([shop()]).await;
    crawl.config.delay = Duration::from_millis(50);
    let site = manifest::SiteName::parse("shop.example").unwrap();
    let blocker = async {
        crawl.web.log().wait_until(|log| log.hit_count() >= 3).await;
        crawl.store.site_block(&site, "by letter", now()).await.unwrap();
        crawl.web.log().hit_count()
    };
    let run = crawler::run(crawl.config.clone(), crawl.store.clone(), Cancel::default(), &|_| ());
    let (summary, hits_before) = tokio::join!(run, blocker);
    summary.unwrap();
    let hits = crawl.web.log().hit_count();
    // one request may have been in flight when the site was blocked
    assert!(hits <= hits_before + 1, "{hits} requests, {hits_before} before the opt-out");
    crawl.store.seeds_add(&[Seed::of_host("shop.example".parse().unwrap())], now()).await.unwrap();
    assert_eq!(crawl.pass().await.sites_visited, 0);
}

#[tokio::test]
async fn requests_to_a_host_keep_their_gap() {
    let mut crawl = Crawl::of([shop()]).await;
    crawl.config.delay = Duration::from_millis(60);
    crawl.pass().await;
    let hits = crawl.hits("shop.example");
    for pair in hits.windows(2) {
        let gap_us = pair[1].started_us.saturating_sub(pair[0].ended_us);
        assert!(gap_us >= 60_000, "{gap_us} us between {} and {}", pair[0].path, pair[1].path);
    }
}

#[tokio::test]
async fn aborts_slow_bodies() {
    let drip = Answer::json("x".repeat(10_000)).dripping(1, Duration::from_secs(1));
    assert_eq!(outcome_of(drip).await, FetchOutcome::Timeout);
}

/// The HTTP client keeps no informational response (RFC 9110 §15.2) and does not limit their number, so the time is limited.
#[tokio::test]
async fn informational_responses_are_not_kept_and_end_with_the_time_limit_of_the_headers() {
    let hints = "HTTP/1.1 103 Early Hints\r\nlink: </a.css>\r\n\r\n".repeat(20_000);
    let head = format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}", AWP.len());
    let found = format!("{hints}{head}\r\n\r\n{AWP}");
    assert_eq!(outcome_of(Answer::raw(found)).await, FetchOutcome::Found);
    let endless = Answer::raw(hints).dripping(1_000, Duration::from_millis(50));
    assert_eq!(outcome_of(endless).await, FetchOutcome::Timeout);
}

/// Flow sequences that are opened and never closed. A YAML parser that keeps a list of them takes quadratic time.
#[tokio::test]
async fn deeply_nested_linked_documents_do_not_stop_the_crawl() {
    let brackets = format!("openapi: 3.0.0\nx: {}", "[".repeat(200_000));
    let wide = format!("{{\"openapi\":\"3.0.0\",\"x\":[{}0]}}", "0,".repeat(4_000_000));
    let hostile = (0..4).map(|number| {
        Host::new(&format!("hostile{number}.example"))
            .robots("Agentmap: /agents.json")
            .file(
                "/",
                "text/html",
                "<link rel=service-desc href=/openapi.yaml><link rel=service-desc href=/wide.json>",
            )
            .file("/openapi.yaml", "application/yaml", brackets.clone())
            .file("/wide.json", "application/json", wide.clone())
    });
    let crawl = Crawl::of(hostile.chain([shop()])).await;
    let summary = crawl.pass().await;
    assert_eq!((summary.sites_visited, summary.failed), (5, 0), "{summary:?}");
    assert!(crawl.outcome("shop.example", "/agent.json").await.is_present());
    for number in 0..4 {
        let host = format!("hostile{number}.example");
        for path in ["/openapi.yaml", "/wide.json"] {
            let fetch = crawl.fetch(&host, path).await;
            assert_eq!(fetch.status, Some(200), "{path}: {:?}", fetch.reason);
            assert_ne!(
                fetch.outcome,
                FetchOutcome::Quarantined,
                "reading must end at its work limit, not at its deadline"
            );
        }
    }
}

/// A daemon reads such a list again when it is complete.
#[tokio::test]
async fn a_list_that_is_being_written_does_not_delete_sites() {
    let dir = tempfile::tempdir().unwrap();
    let list = dir.path().join("list");
    let write = |text: &str, age: u64| {
        std::fs::write(&list, text).unwrap();
        let file = std::fs::File::options().append(true).open(&list).unwrap();
        file.set_modified((now() - Duration::from_secs(age)).into()).unwrap();
    };
    let mut crawl = Crawl::of(["a.example", "b.example"].map(Host::new)).await;
    crawl.config.seeds = vec![SeedSource::File(list.clone())];
    crawl.config.seed_lists = SeedLists::Followed;
    write("a.example\nb.example\n", 60);
    assert_eq!(crawl.pass().await.seeds.read, 2);
    crawl.config.mode = Mode::Daemon;
    for (age, forgotten) in [(0, 0), (60, 1)] {
        write("a.example\n", age);
        let cancel = Cancel::default();
        let soft = cancel.soft.clone();
        let stop_when_seeded = move |progress: Progress<'_>| {
            if matches!(progress, Progress::Seeded { .. }) {
                soft.cancel();
            }
        };
        let run = crawler::run(crawl.config.clone(), crawl.store.clone(), cancel, &stop_when_seeded);
        assert_eq!(run.await.unwrap().seeds.sites_forgotten, forgotten, "{age} s old");
    }
}

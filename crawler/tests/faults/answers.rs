//! Invalid and excessive responses: each is classified, costs little, and is never indexed.

use std::time::Duration;

use policy::{FetchOutcome, VisitEnd};
use testweb::hit::HandshakeOutcome;
use testweb::{Answer, Certificate, Handshake, Host, Web};
use tokio::net::TcpListener;

use crate::support::{AWP, Crawl};

const FIRST: &str = "/.well-known/agent.json";
const KIB: u64 = 1024;

/// One host for each response to the first manifest path, visited in one pass.
async fn outcomes(answers: impl IntoIterator<Item = Answer>) -> (Vec<FetchOutcome>, Crawl) {
    let host = |(index, answer)| Host::new(&format!("bad{index}.example")).robots("").route(FIRST, answer);
    let hosts: Vec<Host> = answers.into_iter().enumerate().map(host).collect();
    let count = hosts.len();
    let crawl = Crawl::of(hosts).await;
    let summary = crawl.pass().await;
    assert_eq!((summary.sites_visited, summary.failed), (count as u64, 0), "{summary:?}");
    let mut outcomes = Vec::new();
    for index in 0..count {
        outcomes.push(crawl.outcome(&format!("bad{index}.example"), FIRST).await);
    }
    (outcomes, crawl)
}

/// The cases of Nutch's `TestBadServerResponses`, and more malformed HTTP.
#[tokio::test]
async fn malformed_answers_are_classified() {
    use FetchOutcome::{Found, NotAManifest, ProtocolError};
    let long = format!("HTTP/1.1 200 OK\r\nx-long: {}\r\n\r\n{{}}", "a".repeat(64 * 1024));
    let many = format!("HTTP/1.1 200 OK\r\n{}\r\n{{}}", "x-one: 1\r\n".repeat(2_000));
    let manifest = |head: &str| format!("{head}\r\n\r\n{AWP}");
    let table = [
        (manifest("HTTP/1.1 200 OK"), Found, "no header at all"),
        (manifest("HTTP/1.0 200 OK\r\ncontent-type: application/json"), Found, "the older version"),
        (manifest("HTTP/1.1 200"), Found, "no reason phrase"),
        (manifest("HTTP/1.1 200 OK\r\nx-folded: one\r\n two"), ProtocolError, "a header over two lines"),
        (manifest("HTTP/1.1 200 OK\r\ncontent-length: many"), ProtocolError, "a length that is not a number"),
        (manifest("HTTP/1.1 200 OK\r\ncontent-length: -1"), ProtocolError, "a negative length"),
        (manifest("HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-length: 6"), ProtocolError, "two lengths"),
        (manifest("HTTP/1.1 200 OK\r\ncontent-length: 99999"), ProtocolError, "a body that is cut short"),
        (manifest("HTTP/1.1 200 OK\r\nx-nul: a\0b"), ProtocolError, "NUL in a header"),
        (manifest("HTTP/1.1 200 OK\r\nno colon"), ProtocolError, "a line without colon"),
        (manifest("HTTP/1.1 200 OK\r\n: no name"), ProtocolError, "a header without name"),
        (manifest("HTTP/1.1 2000 OK"), ProtocolError, "four digits of status"),
        (manifest("HTTP/1.1 abc OK"), ProtocolError, "no digits of status"),
        (manifest("HTTP/9.9 200 OK"), ProtocolError, "a version from the future"),
        (manifest("ICY 200 OK"), ProtocolError, "another protocol"),
        (AWP.to_owned(), ProtocolError, "a body without a head"),
        (
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n".to_owned(),
            ProtocolError,
            "a broken chunk",
        ),
        (
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nab".to_owned(),
            ProtocolError,
            "half a chunk",
        ),
        ("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n".to_owned(), NotAManifest, "no body"),
        (String::new(), ProtocolError, "nothing"),
        ("\0\0\0\0".to_owned(), ProtocolError, "NULs"),
        (long, ProtocolError, "64 KiB of one header"),
        (many, ProtocolError, "two thousand headers"),
        ("HTTP/1.1 100 Continue\r\n\r\n".to_owned(), ProtocolError, "nothing but 100"),
    ];
    let (found, crawl) = outcomes(table.iter().map(|(raw, ..)| Answer::raw(raw.clone()))).await;
    for ((raw, wanted, what), found) in table.iter().zip(found) {
        let head: String = raw.chars().take(60).collect();
        assert_eq!(found, *wanted, "{what}: {head:?}");
    }
    // a fault ends the visit early: it requests robots.txt, the path, and what the rules still allow
    for index in 0..table.len() {
        let paths = crawl.paths(&format!("bad{index}.example"));
        assert!(paths.iter().filter(|path| *path == FIRST).count() <= 1, "{paths:?}");
    }
}

#[tokio::test]
async fn never_indexes_documents_that_are_not_manifests() {
    let utf16 = |text: &str| -> Vec<u8> {
        [0xff, 0xfe].into_iter().chain(text.encode_utf16().flat_map(u16::to_le_bytes)).collect()
    };
    let page = "<!doctype html><html><title>Oops</title></html>";
    let table = [
        (Answer::json(page), FetchOutcome::Html),
        (Answer::json(format!("\u{feff}\n  {page}")), FetchOutcome::Html),
        (Answer::ok("application/json", utf16(page)), FetchOutcome::NotAManifest),
        (Answer::ok("application/json", utf16(AWP)), FetchOutcome::NotAManifest),
        (Answer::ok("image/png", b"\x89PNG\r\n\x1a\n".to_vec()), FetchOutcome::NotAManifest),
        (Answer::json("null"), FetchOutcome::NotAManifest),
        (Answer::json(""), FetchOutcome::NotAManifest),
        // a byte order mark is forbidden in JSON but harmless
        (Answer::json(format!("\u{feff}{AWP}")), FetchOutcome::Found),
        (Answer::ok("text/html", AWP), FetchOutcome::Found),
    ];
    let (found, crawl) = outcomes(table.iter().map(|(answer, _)| answer.clone())).await;
    let wanted: Vec<FetchOutcome> = table.iter().map(|(_, outcome)| *outcome).collect();
    assert_eq!(found, wanted);
    for (index, outcome) in found.iter().enumerate() {
        let site = manifest::SiteName::parse(&format!("bad{index}.example")).unwrap();
        let kept = crawl.store.manifests_of_site(&site).await.unwrap().len();
        assert_eq!(kept, usize::from(*outcome == FetchOutcome::Found), "bad{index}.example");
    }
}

/// The cap of each kind of body, with a path to which it applies.
const CAPS: [(&str, &str, u16, u64); 5] = [
    ("/robots.txt", "text/plain", 200, 512 * KIB),
    (FIRST, "application/json", 200, 4 * 1024 * KIB),
    ("/llms.txt", "text/plain", 200, 1024 * KIB),
    ("/", "text/html", 200, 64 * KIB),
    ("/agents.json", "text/html", 404, 16 * KIB),
];
/// Permitted deviation from the cap in bytes.
const TOLERANCE: u64 = 64 * KIB;

/// Visits hosts with endless bodies, one for each cap. Returns the hits on them.
async fn endless(paced: impl Fn(Answer) -> Answer) -> (Vec<testweb::Hit>, Crawl) {
    let host = |(index, (path, kind, status, _)): (usize, &(&str, &str, u16, u64))| {
        let answer = paced(Answer::endless(kind)).with_status(*status);
        Host::new(&format!("endless{index}.example")).robots("").route(path, answer)
    };
    let web = Web::builder().hosts(CAPS.iter().enumerate().map(host)).start().await.unwrap();
    // a seed that names a URL makes the first visit request every path
    let seeds: Vec<String> =
        (0..CAPS.len()).map(|index| format!("https://endless{index}.example/agents.json")).collect();
    let crawl = Crawl::on(web, &seeds.join("\n")).await;
    crawl.pass().await;
    let hit = |(index, (path, ..)): (usize, &(&str, &str, u16, u64))| {
        let hits = crawl.hits(&format!("endless{index}.example"));
        hits.into_iter().find(|hit| hit.path == *path).unwrap()
    };
    (CAPS.iter().enumerate().map(hit).collect(), crawl)
}

/// Pass criterion: truncated at the cap within 64 KiB, as counted by a server that sends no faster than the crawler reads.
#[tokio::test]
async fn bodies_are_truncated_at_their_caps() {
    let (hits, crawl) =
        endless(|answer| answer.dripping(usize::try_from(16 * KIB).unwrap(), Duration::from_millis(2))).await;
    for (hit, (path, .., cap)) in hits.iter().zip(CAPS) {
        assert!(
            hit.body_bytes.abs_diff(cap) <= TOLERANCE,
            "{path}: {} of {cap} bytes were sent",
            hit.body_bytes
        );
    }
    assert_eq!(crawl.outcome("endless1.example", FIRST).await, FetchOutcome::TooLarge);
    assert_eq!(crawl.report("endless0.example").await.visits[0].end, VisitEnd::Completed);
}

/// A server that sends as fast as it can also fills the socket buffers of both ends. The operating systems limit these buffers.
#[tokio::test]
async fn bounds_data_that_servers_send_ahead() {
    // what the sockets of both ends may hold: 6 MiB of `tcp_rmem` and 4 MiB of `tcp_wmem` on Linux
    const BUFFERS: u64 = 12 * 1024 * KIB;
    let (hits, crawl) = endless(|answer| answer).await;
    for (hit, (path, .., cap)) in hits.iter().zip(CAPS) {
        assert!(hit.body_bytes <= cap + TOLERANCE + BUFFERS, "{path}: {} bytes were sent", hit.body_bytes);
    }
    let read = crawl.fetch("endless4.example", "/agents.json").await.bytes;
    assert!(read <= 16 * KIB + TOLERANCE, "{read} bytes of an error page were read");
}

/// Pass criterion: no packet to a forbidden address, port or scheme.
#[tokio::test]
async fn redirects_obey_robots_of_their_target() {
    let private = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = private.local_addr().unwrap().port();
    let targets = [
        format!("https://127.0.0.1:{port}/x"),
        format!("https://shop.example:{port}/x"),
        "https://10.0.0.1/x".to_owned(),
        "https://[::1]/x".to_owned(),
        "https://2130706433/x".to_owned(),
        "https://shop.example:22/x".to_owned(),
        "file:///etc/passwd".to_owned(),
        "gopher://shop.example/x".to_owned(),
        "http://shop.example/x".to_owned(),
        "https://user:secret@shop.example/x".to_owned(),
        "javascript:alert(1)".to_owned(),
        "https://metadata.invalid/x".to_owned(),
        String::new(),
    ];
    let host = |(index, target): (usize, &String)| {
        Host::new(&format!("bad{index}.example")).robots("").redirect(FIRST, 301, target)
    };
    let robots = targets.iter().enumerate().map(|(index, target)| {
        Host::new(&format!("robots{index}.example")).redirect("/robots.txt", 301, target)
    });
    let crawl = Crawl::of(targets.iter().enumerate().map(host).chain(robots)).await;
    crawl.pass().await;
    for (index, target) in targets.iter().enumerate() {
        let name = format!("bad{index}.example");
        let outcome = crawl.outcome(&name, FIRST).await;
        assert!(
            matches!(
                outcome,
                FetchOutcome::RedirectRefused | FetchOutcome::RedirectedAway | FetchOutcome::ProtocolError
            ),
            "{target}: {outcome}"
        );
        assert_eq!(crawl.paths(&format!("robots{index}.example")), ["/robots.txt"], "{target}");
    }
    let knock = tokio::time::timeout(Duration::ZERO, private.accept()).await;
    assert!(knock.is_err(), "a connection to the private listener was opened");
    assert!(crawl.hits("shop.example").is_empty());
}

/// Pass criterion: classified, one attempt, no further path.
#[tokio::test]
async fn broken_handshakes_are_tried_once() {
    let certificates = [
        Certificate::Expired,
        Certificate::NotYetValid,
        Certificate::WrongName,
        Certificate::SelfSigned,
        Certificate::UnknownAuthority,
    ];
    let handshakes = [Handshake::Reset, Handshake::Close, Handshake::OldVersion];
    let certified = certificates.iter().enumerate().map(|(index, certificate)| {
        Host::new(&format!("certificate{index}.example")).certificate(*certificate)
    });
    let shaken = handshakes
        .iter()
        .enumerate()
        .map(|(index, handshake)| Host::new(&format!("handshake{index}.example")).handshake(*handshake));
    let hosts: Vec<Host> = certified.chain(shaken).collect();
    let names: Vec<String> = hosts.iter().map(|host| host.name().to_owned()).collect();
    let crawl = Crawl::of(hosts).await;
    crawl.pass().await;
    assert_eq!(crawl.web.log().hit_count(), 0);
    let connections = crawl.web.log().connections();
    for name in &names {
        let tries: Vec<&HandshakeOutcome> = connections
            .iter()
            .filter(|connection| connection.host.as_deref() == Some(name))
            .map(|connection| &connection.handshake)
            .collect();
        assert_eq!(tries.len(), 1, "{name}: {tries:?}");
        let visit = crawl.report(name).await.visits[0].clone();
        let is_classified =
            matches!(visit.end, VisitEnd::TlsFailed | VisitEnd::Unreachable | VisitEnd::RobotsUnreachable);
        assert!(is_classified, "{name}: {}", visit.end);
        if name.starts_with("certificate") || name == "handshake2.example" {
            assert_eq!(visit.end, VisitEnd::TlsFailed, "{name}");
        }
    }
}

/// Responses to robots.txt, and whether other requests follow.
#[tokio::test]
async fn robots_answers_by_the_table() {
    let rules = |text: &str| Answer::text(text.to_owned());
    let two_mib = format!("User-agent: *\nDisallow: /agent.json\n{}", "# padding\n".repeat(200_000));
    let table: Vec<(&str, Answer, bool)> = vec![
        ("404", Answer::status(404), true),
        ("410", Answer::status(410), true),
        ("400", Answer::status(400), true),
        ("401", Answer::status(401), false),
        ("403", Answer::status(403), false),
        ("451", Answer::status(451), false),
        ("429", Answer::status(429), false),
        ("500", Answer::status(500), false),
        ("502", Answer::status(502), false),
        ("503", Answer::status(503), false),
        ("reset", Answer::reset(), false),
        ("closed", Answer::close(), false),
        ("not HTTP", Answer::raw("hello\r\n\r\n"), false),
        ("gzip bomb", Answer::gzip_bomb("text/plain", 1 << 30), false),
        ("a page", Answer::html("<html>welcome</html>"), true),
        ("empty", rules(""), true),
        ("2 MiB", rules(&two_mib), true),
        ("a file that forbids", rules("User-agent: *\nDisallow: /\n"), false),
        ("a loop", Answer::redirect(302, "/robots.txt"), false),
    ];
    let host = |(index, (_, answer, _)): (usize, &(&str, Answer, bool))| {
        Host::new(&format!("robots{index}.example")).route("/robots.txt", answer.clone())
    };
    let crawl = Crawl::of(table.iter().enumerate().map(host)).await;
    crawl.pass().await;
    for (index, (what, _, is_open)) in table.iter().enumerate() {
        let name = format!("robots{index}.example");
        let others = crawl.paths(&name).iter().filter(|path| *path != "/robots.txt").count();
        assert_eq!(others > 0, *is_open, "{what}: {:?}", crawl.paths(&name));
        if *what == "2 MiB" {
            assert!(
                !crawl.paths(&name).contains(&"/agent.json".to_owned()),
                "the rule at the start was not read"
            );
        }
    }
}

/// Retry-After in every form: no request for the full time, by the stored clock.
#[tokio::test]
async fn keeps_retry_after_in_every_form() {
    let date = |seconds: u64| {
        httpdate::fmt_http_date(
            std::time::SystemTime::from(crate::support::now()) + Duration::from_secs(seconds),
        )
    };
    let (minute, week) = (60, 7 * 24 * 3_600);
    let table = [
        ("120".to_owned(), 120, 120),
        ("5".to_owned(), minute, minute),
        ("0".to_owned(), minute, minute),
        ("-5".to_owned(), minute, 3_600),
        ("1000000000000".to_owned(), week, week),
        ("99999999999999999999999".to_owned(), week, week),
        (date(600), 590, 601),
        ("Sun, 06 Nov 1994 08:49:37 GMT".to_owned(), minute, 3_600),
        (date(40 * 24 * 3_600), week, week),
        ("soon".to_owned(), minute, 3_600),
        ("12 minutes".to_owned(), minute, 3_600),
        (String::new(), minute, 3_600),
    ];
    let hosts = table.iter().enumerate().map(|(index, (value, ..))| {
        let status = if index % 2 == 0 { 429 } else { 503 };
        Host::new(&format!("busy{index}.example")).robots("").route(FIRST, Answer::retry_after(status, value))
    });
    let mut crawl = Crawl::of(hosts).await;
    crawl.pass().await;
    for (index, (value, least_s, most_s)) in table.iter().enumerate() {
        let report = crawl.report(&format!("busy{index}.example")).await;
        assert_eq!(report.visits[0].end, VisitEnd::RateLimited, "{value:?}");
        let wait_s = (report.state.not_before.unwrap() - report.visits[0].ended_at).num_seconds() + 1;
        assert!((*least_s..=*most_s + 1).contains(&wait_s), "{value:?}: {wait_s} s");
        assert_eq!(crawl.paths(&format!("busy{index}.example")), ["/robots.txt", FIRST], "{value:?}");
    }
    // the operator requests another visit to all sites, but no request is sent
    crawl.pass_again().await;
    assert_eq!(crawl.web.log().hit_count(), 0);
}

/// Fifty thousand names below one domain are one site; its visit sends no more requests than one with fifty names.
#[tokio::test]
async fn fifty_thousand_names_below_a_domain_are_one_site() {
    let (few, many) = (requests_to_names(50).await, requests_to_names(50_000).await);
    assert!(many <= few, "{many} requests, {few} with fifty names");
}

/// Number of requests of the visit to a site with `count` names.
async fn requests_to_names(count: usize) -> u64 {
    let web = Web::builder().many(count, "n{}.shop.example", |_| Host::new("any.example"));
    let web = web.start().await.unwrap();
    let seeds: Vec<String> = (0..count).map(|index| format!("n{index}.shop.example")).collect();
    let crawl = Crawl::on(web, &seeds.join("\n")).await;
    let summary = crawl.pass().await;
    assert_eq!((summary.seeds.read, summary.sites_visited), (count as u64, 1));
    summary.requests
}

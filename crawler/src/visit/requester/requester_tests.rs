//! Tests of requests to a leased site. Each test has its own test web and store.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use policy::{OwnNetworks, RobotsResponse};
use runtime::ReaderLimits;
use store::{
    GroupSet, HostOrigin, HostState, LeaseRequest, LeasedSite, PathSlots, RobotsRecord, Seed, Store, WorkerId,
};
use testweb::{Answer, Web};
use tokio::net::UdpSocket;
use tokio::task::JoinSet;
use tokio_util::task::TaskTracker;

use super::names::Records;
use super::*;
use crate::config::TextRecords;
use crate::events::Events;
use crate::groups::{Groups, Lifetimes};
use crate::pace::Pace;
use crate::priors::PathPriors;
use crate::reading::{MemoryBudget, Reader};
use crate::visit::fixtures::host;
use egress::{Contact, CrawlerIdentity, Egress, EgressSettings, HostsFile, OwnRules, Reach};

const CARD: &str = "/.well-known/agent-card.json";

pub(in crate::visit) struct Fixture {
    pub(in crate::visit) web: Web,
    pub(in crate::visit) tools: Tools,
    pub(in crate::visit) leased: LeasedSite,
    _dir: tempfile::TempDir,
}

pub(in crate::visit) async fn fixture(host: testweb::Host) -> Fixture {
    fixture_behind(&[], host, None).await
}

/// A site with another host.
pub(in crate::visit) async fn fixture_with(host: testweb::Host, other: testweb::Host) -> Fixture {
    fixture_behind(&[], host, Some(other)).await
}

/// A host whose first addresses accept no connection.
async fn fixture_behind(closed: &[&str], host: testweb::Host, other: Option<testweb::Host>) -> Fixture {
    fixture_of((closed, Vec::new()), host, other).await
}

/// A host whose first addresses accept no connection, with these name servers.
async fn fixture_of(
    (closed, name_servers): (&[&str], Vec<SocketAddr>),
    host: testweb::Host,
    other: Option<testweb::Host>,
) -> Fixture {
    let name = host.name().to_owned();
    let closed: Vec<String> = closed.iter().map(|address| format!("{address}:1 {name}\n")).collect();
    let web = Web::builder().hosts([host]).hosts(other).start().await.unwrap();
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open_in_data_dir(dir.path()).await.unwrap();
    let settings = EgressSettings {
        identity: CrawlerIdentity::new(&Contact::default()),
        additional_roots_pem: Some(web.ca_pem().into_bytes()),
        own_networks: OwnNetworks::new(["127.0.0.0/8".parse().unwrap()]),
        own_rules: OwnRules::Relaxed,
        reach: Reach::Everywhere,
        hosts: HostsFile::parse(&(closed.concat() + &web.hosts_file())).unwrap(),
        name_servers,
        signer: None,
    };
    let egress = Egress::new(settings, clock::now);
    let tracker = TaskTracker::new();
    let rate = 10_000.try_into().unwrap();
    let tools = Tools {
        sources_on_web: Arc::default(),
        activity: crate::activity::Activity::default(),
        egress: egress.unwrap(),
        pace: Pace::start(
            store.clone(),
            Duration::ZERO,
            rate,
            Lifetimes::of(Duration::from_mins(3)),
            &tracker,
        ),
        groups: Groups::unshared(),
        events: Events::default(),
        text_records: TextRecords::Ignored,
        revisit_every: None,
        priors: PathPriors::default(),
        reader: Reader::start(store.clone(), None, &tracker),
        store,
    };
    let leased = lease(&tools.store, &name).await;
    Fixture { web, tools, leased, _dir: dir }
}

/// A name server that answers after it has received `questions` queries and after a delay. It resolves hosts, and answers that names with
/// an underscore do not exist.
async fn slow_name_server(questions: usize, delay: Duration) -> (SocketAddr, JoinSet<()>) {
    const A: u8 = 1;
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let (address, mut tasks) = (socket.local_addr().unwrap(), JoinSet::new());
    tasks.spawn(async move {
        let (mut packet, mut waiting) = ([0; 512], Vec::new());
        loop {
            let (length, peer) = socket.recv_from(&mut packet).await.unwrap();
            let labels = packet[12..length].iter().position(|byte| *byte == 0).unwrap();
            let question = packet[12..12 + labels + 5].to_vec();
            waiting.push((packet[..2].to_vec(), question, peer));
            if waiting.len() < questions {
                continue;
            }
            tokio::time::sleep(delay).await;
            for (id, question, peer) in waiting.drain(..) {
                let is_missing = question[1] == b'_';
                let has_address = !is_missing && question[question.len() - 3] == A;
                let code = if is_missing { 3 } else { 0 };
                let header = [0x81, 0x80 | code, 0, 1, 0, u8::from(has_address), 0, 0, 0, 0];
                let record = [0xc0, 12, 0, A, 0, 1, 0, 0, 0, 60, 0, 4, 127, 67, 0, 9];
                let record = if has_address { &record[..] } else { &[] };
                let answer = [&id[..], &header[..], &question[..], record].concat();
                socket.send_to(&answer, peer).await.unwrap();
            }
        }
    });
    (address, tasks)
}

async fn lease(store: &Store, name: &str) -> LeasedSite {
    let now = clock::now();
    store.seeds_add(&[Seed::of_host(Host::parse(name).unwrap())], now).await.unwrap();
    store.sites_lease(&lease_request("test", None), now).await.unwrap().remove(0)
}

fn lease_request(worker: &str, only: Option<Vec<manifest::SiteName>>) -> LeaseRequest {
    LeaseRequest {
        worker: WorkerId::new(worker),
        sites_max: 1,
        duration: Duration::from_mins(3),
        due_before: DateTime::<Utc>::MAX_UTC,
        only,
        groups: GroupSet::all(),
    }
}

fn begun() -> Progress {
    Progress::new(clock::now(), PathSlots::default())
}

impl Fixture {
    fn requester<'a>(&'a self, stop: &'a Stop) -> Requester<'a> {
        let site = &self.leased.site;
        let session = self.tools.egress.session(site.name.clone());
        let lease = (self.leased.token.clone(), site);
        Requester::new(&self.tools, stop, lease, session, &Traffic::default())
    }

    fn url(&self, path: &str) -> ManifestUrl {
        ManifestUrl::parse(&format!("https://{}{path}", self.leased.site.name)).unwrap()
    }

    pub(in crate::visit) fn paths(&self) -> Vec<String> {
        self.web.log().hits_on(self.leased.site.name.as_str()).into_iter().map(|hit| hit.path).collect()
    }
}

#[tokio::test]
async fn fetches_robots_once_per_visit_and_counts_its_requests() {
    let fixture = fixture(testweb::Host::new("a.example").robots("User-agent: *\nDisallow: /x\n")).await;
    let (stop, mut progress) = (Stop::default(), begun());
    let mut requester = fixture.requester(&stop);
    let host = Host::parse("a.example").unwrap();
    for (path, allowed) in [("/x", false), ("/y", true)] {
        let Ok(Robots::Verdict(verdict)) = requester.robots(&mut progress, &host).await else {
            panic!("a verdict")
        };
        assert_eq!(
            requester.decision(&verdict, path.to_owned()).await.unwrap().is_allowed(),
            allowed,
            "{path}"
        );
    }
    assert_eq!(fixture.paths(), ["/robots.txt"]);
    assert_eq!(requester.network(), Network::Own);
    assert_eq!(fixture.requester(&stop).network(), Network::Global, "no address is known");
    assert_eq!((progress.traffic.requests, progress.traffic.robots.len()), (1, 1));
    assert!(progress.traffic.active > Duration::ZERO && progress.traffic.bytes_in > 0);
}

/// The name server answers no query before it has received those for all records.
#[tokio::test]
async fn queries_records_concurrently_and_counts_their_time_for_the_visit() {
    let delay = Duration::from_millis(200);
    let (server, _tasks) = slow_name_server(4, delay).await;
    let fixture = fixture_of((&[], vec![server]), testweb::Host::new("a.example"), None).await;
    let (stop, mut progress) = (Stop::default(), begun());
    let requester = fixture.requester(&stop);
    let host = Host::parse("t1.a.example").unwrap();
    let labels = (&["_atp", "_agent"][..], &["_entries._agents", "_search._agents"][..]);
    let Records { texts, services } = requester.records(&mut progress.traffic, &host, labels).await;
    let answers: Vec<_> = texts.into_iter().chain(services).map(Result::unwrap).collect();
    assert_eq!(answers, vec![Vec::<String>::new(); 4], "each query was answered");
    assert!(progress.traffic.active >= delay, "{:?}", progress.traffic.active);
}

#[tokio::test]
async fn slow_address_queries_count_as_time_of_the_visit() {
    let delay = Duration::from_millis(200);
    let (server, _tasks) = slow_name_server(1, delay).await;
    let fixture = fixture_of((&[], vec![server]), testweb::Host::new("a.example"), None).await;
    let (stop, mut progress) = (Stop::default(), begun());
    let mut requester = fixture.requester(&stop);
    let url = ManifestUrl::parse("https://t1.a.example/agent.json").unwrap();
    let refused = requester.get(&mut progress, &url, BodyKind::Manifest, &HeaderMap::new()).await.unwrap();
    assert_eq!(refused.answer.unwrap_err().cause, Cause::Connect, "the address was resolved");
    let Traffic { active, phases, .. } = &progress.traffic;
    assert!(*active >= delay && phases.dns_ms >= 200, "{active:?}, {phases:?}");
}

#[tokio::test]
async fn a_visit_waits_while_the_reader_threads_are_busy() {
    let rules = format!("User-agent: *\n{}", "Disallow: /*x*\n".repeat(10_000));
    let mut fixture = fixture(testweb::Host::new("a.example").robots(&rules)).await;
    let limits =
        ReaderLimits { threads: 1, queue: 0, queue_wait: Duration::ZERO, deadline: Duration::from_mins(1) };
    fixture.tools.reader = fixture.tools.reader.with_limits(limits);
    let (release, released) = std::sync::mpsc::channel::<()>();
    let reader = fixture.tools.reader.clone();
    TaskTracker::new().spawn(async move { reader.run(move || released.recv().ok()).await });
    tokio::task::yield_now().await;
    let (stop, mut progress) = (Stop::default(), begun());
    let mut requester = fixture.requester(&stop);
    let host = Host::parse("a.example").unwrap();
    let waits = |interrupt: &Interrupt| matches!(interrupt, Interrupt::Park { .. });
    assert!(requester.robots(&mut progress, &host).await.is_err_and(|interrupt| waits(&interrupt)));
    let answer = RobotsResponse::Answered { status: 200, body: Some(rules.as_bytes()) };
    let verdict = Arc::new(RobotsVerdict::of(answer, policy::robots::PRODUCT_TOKEN));
    let decided = requester.decision(&verdict, "/y".to_owned()).await;
    assert!(decided.is_err_and(|interrupt| waits(&interrupt)));
    drop(release);
    let verdict = loop {
        match requester.robots(&mut progress, &host).await {
            Ok(Robots::Verdict(verdict)) => break verdict,
            _ => tokio::task::yield_now().await,
        }
    };
    assert!(requester.decision(&verdict, "/y".to_owned()).await.unwrap().is_allowed());
}

#[tokio::test]
async fn a_request_tries_two_addresses() {
    let closed = ["127.67.0.1", "127.67.0.2"];
    let fixture = fixture_behind(&closed, testweb::Host::new("a.example"), None).await;
    let (stop, mut progress, url) = (Stop::default(), begun(), fixture.url(CARD));
    let mut requester = fixture.requester(&stop);
    let first = requester.get(&mut progress, &url, BodyKind::Manifest, &HeaderMap::new()).await.unwrap();
    assert_eq!(first.answer.unwrap_err().cause, Cause::Connect);
    assert_eq!(progress.traffic.requests, 2, "each address counts");
    let second = requester.get(&mut progress, &url, BodyKind::Manifest, &HeaderMap::new()).await.unwrap();
    assert!(second.answer.is_ok());
    // after a delay it goes to the address that answered
    let state = serde_json::to_value(&progress).unwrap();
    let mut resumed: Progress = serde_json::from_value(state).unwrap();
    let mut requester = fixture.requester(&stop);
    let third = requester.get(&mut resumed, &url, BodyKind::Manifest, &HeaderMap::new()).await.unwrap();
    assert!(third.answer.is_ok());
    assert_eq!((resumed.traffic.requests, fixture.paths().len()), (5, 2));
}

#[tokio::test]
async fn sends_nothing_to_other_sites() {
    let fixture = fixture(testweb::Host::new("a.example")).await;
    let (stop, mut progress) = (Stop::default(), begun());
    let other = ManifestUrl::parse("https://b.example/agent.json").unwrap();
    let mut requester = fixture.requester(&stop);
    let exchange = requester.get(&mut progress, &other, BodyKind::Manifest, &HeaderMap::new()).await.unwrap();
    assert_eq!(exchange.answer.unwrap_err().cause, Cause::OtherSite);
    assert_eq!(progress.traffic.requests, 0);
}

#[tokio::test]
async fn keeps_retry_after_of_any_response() {
    let busy = Answer::status(429).header("retry-after", "3600");
    let fixture = fixture(testweb::Host::new("a.example").route(CARD, busy)).await;
    let (stop, mut progress, before) = (Stop::default(), begun(), clock::now());
    let mut requester = fixture.requester(&stop);
    let url = fixture.url(CARD);
    requester.get(&mut progress, &url, BodyKind::Manifest, &HeaderMap::new()).await.unwrap();
    assert!(requester.not_before().is_some_and(|at| at >= before + TimeDelta::hours(1)));
    let next = requester.get(&mut progress, &url, BodyKind::Manifest, &HeaderMap::new()).await;
    assert!(matches!(next, Err(Interrupt::Park { until, .. }) if until > before + TimeDelta::minutes(59)));
    assert_eq!(fixture.paths(), [CARD]);
}

#[tokio::test]
async fn sends_nothing_after_a_stop_or_a_lost_lease() {
    let fixture = fixture(testweb::Host::new("a.example")).await;
    let (url, conditions) = (fixture.url(CARD), HeaderMap::new());
    let stopped = Stop::default();
    stopped.soft.cancel();
    let sent = fixture.requester(&stopped).get(&mut begun(), &url, BodyKind::Manifest, &conditions).await;
    assert!(matches!(sent, Err(Interrupt::End(VisitEnd::Interrupted))));
    let lost = Stop::default();
    lost.lost.cancel();
    let sent = fixture.requester(&lost).get(&mut begun(), &url, BodyKind::Manifest, &conditions).await;
    assert!(matches!(sent, Err(Interrupt::LeaseLost)));
    // another worker has taken over the site, and this worker does not know it yet
    let only = Some(vec![fixture.leased.site.name.clone()]);
    let taken = lease_request("next", only);
    let after = clock::now() + TimeDelta::minutes(10);
    assert_eq!(fixture.tools.store.sites_lease(&taken, after).await.unwrap().len(), 1);
    let unaware = Stop::default();
    let sent = fixture.requester(&unaware).get(&mut begun(), &url, BodyKind::Manifest, &conditions).await;
    assert!(matches!(sent, Err(Interrupt::LeaseLost)));
    assert_eq!(fixture.paths(), [""; 0]);
}

/// The test sets the clock, so that time passes while a connection is opened. A request that is too late is not sent, neither over a new
/// connection nor over an open one.
#[tokio::test]
async fn sends_no_request_after_its_deadline() {
    let fixture = fixture(testweb::Host::new("a.example")).await;
    let session = fixture.tools.egress.session(fixture.leased.site.name.clone());
    let url = fixture.url(CARD);
    session.resolve(&url.host()).await.unwrap();
    // the time of each check in seconds; the request may be sent before second 30
    let fetch = async |times: &'static [u64]| {
        let checks = AtomicUsize::new(0);
        let leave = LeaveCheck::new(move || {
            let at = checks.fetch_add(1, Ordering::Relaxed).min(times.len() - 1);
            times.get(at).is_some_and(|seconds| *seconds < 30)
        });
        session.fetch(&url, BodyKind::Manifest, &HeaderMap::new(), leave).await
    };
    assert_eq!(fetch(&[30]).await.unwrap_err().cause, Cause::Late, "before the connection");
    assert_eq!(fixture.web.log().connections().len(), 0);
    assert_eq!(fetch(&[0, 31]).await.unwrap_err().cause, Cause::Late, "while it was opened");
    assert_eq!(fixture.paths(), [""; 0]);
    assert!(fetch(&[0, 29]).await.is_ok());
    assert_eq!(fetch(&[30]).await.unwrap_err().cause, Cause::Late, "over an open connection");
    assert_eq!(fixture.paths(), [CARD]);
}

/// A visit waits if its requests cannot be sent in time.
#[tokio::test]
async fn a_visit_waits_while_its_requests_are_late() {
    let mut fixture = fixture(testweb::Host::new("a.example")).await;
    let (store, tracker) = (fixture.tools.store.clone(), TaskTracker::new());
    let rate = 10_000.try_into().unwrap();
    let pace = |lease| Pace::start(store.clone(), Duration::ZERO, rate, Lifetimes::of(lease), &tracker);
    let (stop, url, conditions) = (Stop::default(), fixture.url(CARD), HeaderMap::new());
    // with a limit of zero, every request is late
    fixture.tools.pace = pace(Duration::ZERO);
    let mut progress = begun();
    let sent = fixture.requester(&stop).get(&mut progress, &url, BodyKind::Manifest, &conditions).await;
    assert!(matches!(sent, Err(Interrupt::Park { .. })));
    assert_eq!((fixture.paths().len(), progress.traffic.requests), (0, 0));
    fixture.tools.pace = pace(Duration::from_mins(3));
    let sent = fixture.requester(&stop).get(&mut progress, &url, BodyKind::Manifest, &conditions).await;
    assert!(sent.unwrap().answer.is_ok());
    assert_eq!((fixture.paths().len(), progress.traffic.requests), (1, 1));
}

#[tokio::test]
async fn does_not_contact_a_site_that_has_opted_out() {
    let fixture = fixture(testweb::Host::new("a.example")).await;
    fixture.tools.store.site_block(&fixture.leased.site.name, "asked", clock::now()).await.unwrap();
    let stop = Stop::default();
    let mut requester = fixture.requester(&stop);
    let url = fixture.url(CARD);
    let sent = requester.get(&mut begun(), &url, BodyKind::Manifest, &HeaderMap::new()).await;
    assert!(matches!(sent, Err(Interrupt::End(VisitEnd::OptedOut))));
    assert_eq!(fixture.paths(), [""; 0]);
}

#[test]
fn requests_of_earlier_days_do_not_count_for_the_daily_budget_of_a_site() {
    let host = |name: &str, requests_today, requests_day| HostState {
        requests_today,
        requests_day,
        ..host(name, HostOrigin::Listed)
    };
    let hosts =
        [host("a.example", 40, 20_000), host("b.a.example", 3, 20_001), host("c.a.example", 4, 20_001)];
    assert_eq!(requests_of_last_day(&hosts), (7, 20_001));
    assert_eq!(requests_of_last_day(&[]), (0, 0));
}

/// Whether the robots.txt of a host allows a path.
async fn allows(requester: &mut Requester<'_>, progress: &mut Progress, host: &str, path: &str) -> bool {
    let Robots::Verdict(verdict) = requester.robots(progress, &Host::parse(host).unwrap()).await.unwrap()
    else {
        panic!("{host} has a name");
    };
    verdict.decide(path).is_allowed()
}

#[tokio::test]
async fn keeps_the_rules_of_one_host_and_requests_each_file_once() {
    let robots = |path: &str| format!("User-agent: *\nCrawl-delay: 0\nDisallow: {path}\n");
    let mut fixture = fixture(testweb::Host::new("a.example").robots(&robots("/a"))).await;
    // a visit reads the rules of another host from the copy in the store
    let other = Host::parse("h.a.example").unwrap();
    let copy = RobotsRecord {
        host: other.clone(),
        kind: policy::RobotsKind::Rules,
        cause: None,
        status: Some(200),
        body: Some(robots("/h").into_bytes().into()),
        fetched_at: clock::now(),
        expires_at: clock::now() + TimeDelta::hours(1),
        failures_in_row: 0,
        etag: None,
        last_modified: None,
    };
    let (store, token) = (&fixture.tools.store, &fixture.leased.token);
    store.standalone_end(token, std::slice::from_ref(&copy)).await.unwrap();
    let robots = Some(RobotsRecord { body: None, ..copy });
    let state = HostState { robots, ..host(other.as_str(), HostOrigin::Met) };
    fixture.leased = lease(&fixture.tools.store, "a.example").await;
    fixture.leased.site.hosts.push(state);
    let (stop, mut progress) = (Stop::default(), begun());
    let mut requester = fixture.requester(&stop);
    for _ in 0..2 {
        assert!(!allows(&mut requester, &mut progress, "a.example", "/a").await);
        assert!(allows(&mut requester, &mut progress, "a.example", "/h").await);
        assert_eq!(requester.parsed.as_ref().unwrap().host.as_str(), "a.example");
        assert!(!allows(&mut requester, &mut progress, "h.a.example", "/h").await);
        assert!(allows(&mut requester, &mut progress, "h.a.example", "/a").await);
        assert_eq!(requester.parsed.as_ref().unwrap().host, other);
    }
    assert_eq!(progress.traffic.requests, 1);
}

#[test]
fn requested_visits_ignore_robots_results_without_a_server() {
    let now = clock::now();
    let hours = TimeDelta::hours;
    let record = |host: &str, cause: &str| RobotsRecord {
        host: Host::parse(host).unwrap(),
        kind: policy::RobotsKind::Unreachable,
        cause: Some(cause.to_owned()),
        status: None,
        body: None,
        fetched_at: now - hours(30),
        expires_at: now + hours(100),
        failures_in_row: 4,
        etag: None,
        last_modified: None,
    };
    let site = |last_visit: i64| SiteState {
        hosts: vec![host("api.a.example", HostOrigin::Listed), host("t1.a.example", HostOrigin::Named)],
        last_visit_at: Some(now - hours(last_visit)),
        ..crate::dry_run::unknown(manifest::SiteName::parse("a.example").unwrap())
    };
    for (at, cause, last_visit, expected) in [
        ("a.example", "connect_failed", 29, true),
        ("www.a.example", "dns_failed", 29, true),
        ("a.example", "tls_failed", 29, true),
        ("api.a.example", "connect_failed", 29, true),
        // scheduled visits rarely request robots.txt at a host without a server
        ("t1.a.example", "connect_failed", 29, false),
        ("t1.a.example", "connect_failed", 23, true),
        // no visit has requested it, only a request for a list of seeds
        ("t1.a.example", "connect_failed", 40, true),
        ("t1.a.example", "address_refused", 29, true),
        // a server was reached
        ("a.example", "timeout", 1, false),
        ("a.example", "protocol_error", 1, false),
        ("a.example", "rate_limited", 1, false),
    ] {
        let (site, record) = (site(last_visit), record(at, cause));
        assert_eq!(is_without_evidence(&site, &record, now), expected, "{at} {cause} {last_visit}");
        // this visit has requested it
        let mut traffic = Traffic::default();
        traffic.robots.insert(record.host.clone(), Box::new(record.clone()));
        assert_eq!(robots_use(&site, &traffic, &record.host, now), policy::robots::CopyUse::Current);
    }
}

#[tokio::test]
async fn a_large_robots_file_waits_for_the_memory_of_all_visits() {
    let long = format!("User-agent: *\n{}", "Allow:/a\n".repeat(40_000));
    let mut fixture = fixture(testweb::Host::new("a.example").robots(&long)).await;
    fixture.tools.reader.memory = MemoryBudget::new(Duration::from_millis(20));
    let memory = fixture.tools.reader.memory.clone();
    let mut others = Vec::new();
    loop {
        let mut held = HeldMemory::default();
        if memory.hold_body(&mut held, 1024 * 1024).await.is_err() {
            break;
        }
        others.push(held);
    }
    let (stop, mut progress) = (Stop::default(), begun());
    let mut requester = fixture.requester(&stop);
    let host = Host::parse("a.example").unwrap();
    let parked = requester.robots(&mut progress, &host).await;
    assert!(matches!(parked, Err(Interrupt::Park { .. })));
    others.clear();
    assert!(matches!(requester.robots(&mut progress, &host).await, Ok(Robots::Verdict(_))));
    assert!(progress.traffic.robots_bytes() > 256 * 1024);
}

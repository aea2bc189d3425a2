//! Name servers that fail, do not respond, truncate responses, or change their answer between two queries.

use std::collections::HashMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crawler::Cancel;
use crawler::config::TextRecords;
use crawler::egress::HostsFile;
use policy::claim::{self, ClaimAuthority};
use policy::{OwnNetworks, VisitEnd};
use testweb::{Addresses, Host, Web};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, UdpSocket};
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::skipped::skipped;
use crate::support::{AWP, Crawl};

const A: u16 = 1;
const TXT: u16 = 16;
const SVCB: u16 = 64;
const SERVFAIL: u8 = 2;
pub(crate) const NXDOMAIN: u8 = 3;
/// Maximum time of both attempts of a lookup on a slow machine.
const LOOKUP_MAX: Duration = Duration::from_secs(14);

/// Response of the name server for a name.
#[derive(Clone)]
pub(crate) enum Zone {
    Silent,
    Code(u8),
    /// No record of any type.
    Empty,
    /// Returns these addresses one after another, then always the last one.
    Addresses(Vec<Ipv4Addr>),
    /// The complete response over TCP only.
    Truncated(Ipv4Addr),
    Text(String),
    /// A service at this name and port.
    Service(&'static str, u16),
}

/// A name server on a loopback port. Dropping it ends its tasks.
pub(crate) struct Responder {
    pub(crate) address: SocketAddr,
    asked: Arc<Mutex<HashMap<(String, u16), usize>>>,
    _tasks: JoinSet<()>,
}

impl Responder {
    pub(crate) async fn start(zones: impl IntoIterator<Item = (&str, Zone)>) -> Self {
        let zones: Arc<HashMap<String, Zone>> =
            Arc::new(zones.into_iter().map(|(name, zone)| (name.to_owned(), zone)).collect());
        let asked = Arc::new(Mutex::new(HashMap::new()));
        let (udp, tcp, address) = loop {
            let udp = UdpSocket::bind("127.0.0.1:0").await.unwrap();
            let address = udp.local_addr().unwrap();
            // the port is free for UDP, and may be taken for TCP
            match TcpListener::bind(address).await {
                Ok(tcp) => break (udp, tcp, address),
                Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::AddrInUse),
            }
        };
        let mut tasks = JoinSet::new();
        let (of_udp, counts) = (Arc::clone(&zones), Arc::clone(&asked));
        tasks.spawn(async move {
            let mut packet = [0; 1_500];
            loop {
                let (length, peer) = udp.recv_from(&mut packet).await.unwrap();
                if let Some(answer) = answer(&packet[..length], &of_udp, &counts, Transport::Udp) {
                    udp.send_to(&answer, peer).await.unwrap();
                }
            }
        });
        let counts = Arc::clone(&asked);
        tasks.spawn(async move {
            loop {
                let (mut stream, _) = tcp.accept().await.unwrap();
                let length = stream.read_u16().await.unwrap();
                let mut packet = vec![0; usize::from(length)];
                stream.read_exact(&mut packet).await.unwrap();
                if let Some(answer) = answer(&packet, &zones, &counts, Transport::Tcp) {
                    stream.write_u16(u16::try_from(answer.len()).unwrap()).await.unwrap();
                    stream.write_all(&answer).await.unwrap();
                }
            }
        });
        Self { address, asked, _tasks: tasks }
    }

    fn asked(&self, name: &str, kind: u16) -> usize {
        self.asked.lock().unwrap().get(&(name.to_owned(), kind)).copied().unwrap_or(0)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Transport {
    Udp,
    Tcp,
}

/// RFC 1035 §4: repeats the question and adds the records of the zone.
fn answer(
    packet: &[u8],
    zones: &HashMap<String, Zone>,
    asked: &Mutex<HashMap<(String, u16), usize>>,
    transport: Transport,
) -> Option<Vec<u8>> {
    let (mut at, mut labels) = (12, Vec::new());
    while packet[at] != 0 {
        let end = at + 1 + usize::from(packet[at]);
        labels.push(String::from_utf8_lossy(&packet[at + 1..end]).to_ascii_lowercase());
        at = end;
    }
    let (name, question_end) = (labels.join("."), at + 5);
    let kind = u16::from_be_bytes([packet[at + 1], packet[at + 2]]);
    let count = {
        let mut asked = asked.lock().unwrap();
        let count = asked.entry((name.clone(), kind)).or_default();
        *count += 1;
        *count
    };
    let (mut code, mut truncated, mut records) = (0, false, Vec::<Vec<u8>>::new());
    match zones.get(&name)? {
        Zone::Silent => return None,
        Zone::Code(wanted) => code = *wanted,
        Zone::Truncated(_) if transport == Transport::Udp => truncated = true,
        Zone::Truncated(address) if kind == A => records.push(address.octets().to_vec()),
        Zone::Addresses(addresses) if kind == A => {
            records.push(addresses[(count - 1).min(addresses.len() - 1)].octets().to_vec());
        }
        Zone::Text(text) if kind == TXT => {
            records.push([&[u8::try_from(text.len()).unwrap()], text.as_bytes()].concat());
        }
        Zone::Service(target, port) if kind == SVCB => records.push(service(target, *port)),
        Zone::Empty | Zone::Truncated(_) | Zone::Addresses(_) | Zone::Text(_) | Zone::Service(..) => {}
    }
    let mut answer = packet[..2].to_vec();
    answer.extend([0x81 | if truncated { 2 } else { 0 }, 0x80 | code, 0, 1, 0]);
    answer.push(u8::try_from(records.len()).unwrap());
    answer.extend([0, 0, 0, 0]);
    answer.extend(&packet[12..question_end]);
    for record in records {
        answer.extend([0xc0, 12]);
        answer.extend(kind.to_be_bytes());
        // class IN, TTL zero
        answer.extend([0, 1, 0, 0, 0, 0]);
        answer.extend(u16::try_from(record.len()).unwrap().to_be_bytes());
        answer.extend(record);
    }
    Some(answer)
}

/// The data of an SVCB record (RFC 9460 §2.2): a priority, the name, and the parameter `port`.
fn service(target: &str, port: u16) -> Vec<u8> {
    let mut data = 1_u16.to_be_bytes().to_vec();
    for label in target.split('.') {
        data.push(u8::try_from(label.len()).unwrap());
        data.extend(label.as_bytes());
    }
    // the end of the name, then key 3 with two bytes
    data.extend([0, 0, 3, 0, 2]);
    data.extend(port.to_be_bytes());
    data
}

/// A crawl of names that only this name server resolves.
async fn crawl_with(responder: &Responder, web: Web, seeds: &[&str]) -> Crawl {
    let mut crawl = Crawl::on(web, &seeds.join("\n")).await;
    crawl.config.egress.hosts = HostsFile::default();
    crawl.config.egress.name_servers = vec![responder.address];
    crawl
}

/// Pass criteria: at most 10 s, no request, and only nonexistent names count as dead.
#[tokio::test]
async fn distinguishes_failing_name_servers_from_dead_names() {
    let zones = [
        ("silent.example", Zone::Silent),
        ("failing.example", Zone::Code(SERVFAIL)),
        ("refused.example", Zone::Code(5)),
        ("missing.example", Zone::Code(NXDOMAIN)),
        ("empty.example", Zone::Empty),
        ("private.example", Zone::Addresses(vec![Ipv4Addr::new(10, 0, 0, 1)])),
    ];
    let names = zones.clone().map(|(name, _)| name);
    let responder = Responder::start(zones).await;
    let web = Web::builder().start().await.unwrap();
    let crawl = crawl_with(&responder, web, &names).await;
    let began = Instant::now();
    let summary = crawl.pass().await;
    assert!(began.elapsed() < LOOKUP_MAX, "{:?}", began.elapsed());
    assert_eq!((summary.sites_visited, summary.requests, summary.failed), (6, 0, 0), "{summary:?}");
    let ends = [
        ("silent.example", vec![VisitEnd::DnsFailed, VisitEnd::RobotsUnreachable]),
        ("failing.example", vec![VisitEnd::DnsFailed, VisitEnd::RobotsUnreachable]),
        ("refused.example", vec![VisitEnd::DnsFailed, VisitEnd::RobotsUnreachable]),
        ("missing.example", vec![VisitEnd::DnsDead]),
        ("empty.example", vec![VisitEnd::DnsDead]),
        ("private.example", vec![VisitEnd::AddressRefused]),
    ];
    for (name, allowed) in ends {
        let report = crawl.report(name).await;
        assert!(allowed.contains(&report.visits[0].end), "{name}: {}", report.visits[0].end);
        assert_ne!(report.summary.status, policy::Status::Gone, "{name}");
    }
}

/// A test web on port 443, if this machine permits it. Each test has its own address.
/// Pass criterion: a stop does not wait for name servers.
#[tokio::test]
async fn a_stop_ends_a_visit_that_waits_for_a_name_server() {
    let responder = Responder::start([("silent.example", Zone::Silent)]).await;
    let web = Web::builder().start().await.unwrap();
    let crawl = crawl_with(&responder, web, &["silent.example"]).await;
    let cancel = Cancel::default();
    let soft = cancel.soft.clone();
    let run = crawler::run(crawl.config.clone(), crawl.store.clone(), cancel, &|_| ());
    let stop = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        soft.cancel();
        Instant::now()
    };
    let (summary, stopped_at) = tokio::join!(run, stop);
    assert!(stopped_at.elapsed() < Duration::from_secs(2), "{:?}", stopped_at.elapsed());
    assert_eq!(summary.unwrap().requests, 0);
}

async fn web_on_443(address: Ipv4Addr, host: Host) -> Option<Web> {
    let web = Web::builder().addresses(Addresses::Shared(address)).port(443).host(host);
    web.start().await.ok()
}

/// Pass criterion: one resolution per visit, and the connector refuses the address of a later one.
#[tokio::test]
async fn ignores_a_name_that_resolves_differently_during_a_visit() {
    let (public, private) = (Ipv4Addr::new(127, 53, 0, 1), Ipv4Addr::new(127, 66, 0, 1));
    let Some(web) =
        web_on_443(public, Host::new("rebind.example").file("/agent.json", "application/json", AWP)).await
    else {
        skipped(&format!("port 443 of {public} cannot be listened on here"));
        return;
    };
    let trap = TcpListener::bind(SocketAddr::from((private, 443))).await.unwrap();
    let responder = Responder::start([("rebind.example", Zone::Addresses(vec![public, private]))]).await;
    let mut crawl = crawl_with(&responder, web, &["rebind.example"]).await;
    crawl.config.egress.own_networks = OwnNetworks::new(["127.53.0.0/16".parse().unwrap()]);
    let summary = crawl.pass().await;
    assert_eq!((summary.sites_visited, summary.manifests_added), (1, 1), "{summary:?}");
    assert_eq!(responder.asked("rebind.example", A), 1, "the name is resolved once per visit");
    let summary = crawl.pass_again().await;
    assert_eq!((summary.requests, crawl.web.log().hit_count()), (0, 0), "{summary:?}");
    assert_eq!(crawl.report("rebind.example").await.visits[0].end, VisitEnd::AddressRefused);
    assert!(
        tokio::time::timeout(Duration::ZERO, trap.accept()).await.is_err(),
        "the private address was connected to"
    );
}

#[tokio::test]
async fn retries_truncated_dns_answers_over_tcp_and_follows_txt_records() {
    let address = Ipv4Addr::new(127, 53, 0, 2);
    let host = Host::new("long.example").file("/declared/agent.json", "application/json", AWP);
    let Some(web) = web_on_443(address, host).await else {
        skipped(&format!("port 443 of {address} cannot be listened on here"));
        return;
    };
    let responder = Responder::start([
        ("long.example", Zone::Truncated(address)),
        ("_atp.long.example", Zone::Text("v=atp1; manifest=/declared/agent.json".to_owned())),
        ("_agent.long.example", Zone::Code(NXDOMAIN)),
    ])
    .await;
    let mut crawl = crawl_with(&responder, web, &["long.example"]).await;
    let summary = crawl.pass().await;
    assert_eq!((summary.sites_visited, summary.manifests_added), (1, 0), "{summary:?}");
    assert_eq!(
        responder.asked("_atp.long.example", TXT),
        0,
        "TXT records are queried only if the operator enables it"
    );
    crawl.config.text_records = TextRecords::Queried;
    let summary = crawl.pass_again().await;
    assert_eq!(summary.manifests_added, 1, "{summary:?}");
    let found = crawl.fetch("long.example", "/declared/agent.json").await;
    assert_eq!(found.discovery, manifest::Discovery::Dns);
}

#[tokio::test]
async fn follows_svcb_records_on_port_443() {
    let address = Ipv4Addr::new(127, 53, 0, 6);
    let catalog = r#"{"entries": [{"identifier": "urn:air:served.example:api:orders", "displayName": "Orders",
        "type": "application/openapi+json", "url": "https://served.example/openapi.json"}]}"#;
    let hosts = ["served.example", "ported.example"].map(Host::new);
    let catalogs = ["catalog.served.example", "catalog.ported.example"]
        .map(|name| Host::new(name).file("/.well-known/ard.json", "application/json", catalog));
    let web = Web::builder().addresses(Addresses::Shared(address)).port(443).hosts(hosts).hosts(catalogs);
    let Ok(web) = web.start().await else {
        skipped(&format!("port 443 of {address} cannot be listened on here"));
        return;
    };
    let at = || Zone::Addresses(vec![address]);
    let responder = Responder::start([
        ("served.example", at()),
        ("catalog.served.example", at()),
        ("_entries._agents.served.example", Zone::Service("catalog.served.example", 443)),
        ("_search._agents.served.example", Zone::Service("registry.example", 443)),
        ("_atp.served.example", Zone::Empty),
        ("_agent.served.example", Zone::Empty),
        ("ported.example", at()),
        ("catalog.ported.example", at()),
        ("_entries._agents.ported.example", Zone::Service("catalog.ported.example", 8443)),
        ("_search._agents.ported.example", Zone::Empty),
        ("_atp.ported.example", Zone::Empty),
        ("_agent.ported.example", Zone::Empty),
    ])
    .await;
    let mut crawl = crawl_with(&responder, web, &["served.example", "ported.example"]).await;
    crawl.config.text_records = TextRecords::Queried;
    crawl.pass().await;
    let found = crawl.fetch("catalog.served.example", "/.well-known/ard.json").await;
    assert_eq!(
        (found.outcome, found.discovery),
        (policy::FetchOutcome::Found, manifest::Discovery::Dns),
        "{found:?}"
    );
    assert!(responder.asked("_search._agents.served.example", SVCB) > 0);
    let registry = manifest::SiteName::parse("registry.example").unwrap();
    assert!(
        crawl.store.site_summary(&registry).await.unwrap().is_some(),
        "the host of the registry is a site to visit"
    );
    assert!(crawl.web.log().hits_on("catalog.ported.example").is_empty(), "the service is on another port");
}

#[tokio::test]
async fn a_txt_record_proves_a_claim_for_any_response_of_the_site() {
    let address = Ipv4Addr::new(127, 53, 0, 4);
    let host = Host::new("closed.example").robots("User-agent: *\nDisallow: /\n");
    let Some(web) = web_on_443(address, host).await else {
        skipped(&format!("port 443 of {address} cannot be listened on here"));
        return;
    };
    let site = manifest::SiteName::parse("closed.example").unwrap();
    let issued = ClaimAuthority::new("secret").issue(&site, &[7; policy::key::KEY_BYTES]);
    let responder = Responder::start([
        ("closed.example", Zone::Addresses(vec![address])),
        ("_agentdex.closed.example", Zone::Text(format!("{}{}", claim::TOKEN_PREFIX, issued.token))),
    ])
    .await;
    let crawl = crawl_with(&responder, web, &["closed.example"]).await;
    crawl.store.claim_secret_keep("secret").await.unwrap();
    let now = crate::support::now();
    assert!(crawl.store.claim_ask(&site, now, now).await.unwrap());
    crawl.pass().await;
    assert_eq!(crawl.paths("closed.example"), ["/robots.txt"]);
    assert_eq!(responder.asked("_agentdex.closed.example", TXT), 1, "queried once per visit");
    let claim = crawl.store.claim_find(&site).await.unwrap().unwrap();
    assert_eq!(claim.owner.unwrap().proof, claim::Proof::Dns);
}

#[tokio::test]
async fn a_failure_of_the_name_servers_does_not_count_as_a_missing_proof() {
    let address = Ipv4Addr::new(127, 53, 0, 5);
    let host = Host::new("owned.example").file("/agent.json", "application/json", AWP);
    let Some(web) = web_on_443(address, host).await else {
        skipped(&format!("port 443 of {address} cannot be listened on here"));
        return;
    };
    let site = manifest::SiteName::parse("owned.example").unwrap();
    let issued = ClaimAuthority::new("secret").issue(&site, &[7; policy::key::KEY_BYTES]);
    let record = Zone::Text(format!("{}{}", claim::TOKEN_PREFIX, issued.token));
    let answers = async |record: Zone| {
        let address = ("owned.example", Zone::Addresses(vec![address]));
        Responder::start([address, ("_agentdex.owned.example", record)]).await
    };
    let proving = answers(record).await;
    let mut crawl = crawl_with(&proving, web, &["owned.example"]).await;
    crawl.store.claim_secret_keep("secret").await.unwrap();
    crawl.pass().await;
    let now = crate::support::now();
    assert!(crawl.store.claim_ask(&site, now, now).await.unwrap());
    crawl.pass_again().await;
    for (zone, is_missed) in [(Zone::Code(SERVFAIL), false), (Zone::Code(NXDOMAIN), true)] {
        let responder = answers(zone).await;
        crawl.config.egress.name_servers = vec![responder.address];
        crawl.pass_again().await;
        let owner = crawl.store.claim_find(&site).await.unwrap().unwrap().owner.unwrap();
        assert_eq!(owner.missing_since.is_some(), is_missed, "{owner:?}");
    }
}

#[tokio::test]
async fn a_txt_record_proves_a_claim_without_a_request_for_the_file() {
    let address = Ipv4Addr::new(127, 53, 0, 3);
    let host = Host::new("owned.example").file("/agent.json", "application/json", AWP);
    let Some(web) = web_on_443(address, host).await else {
        skipped(&format!("port 443 of {address} cannot be listened on here"));
        return;
    };
    let site = manifest::SiteName::parse("owned.example").unwrap();
    let issued = ClaimAuthority::new("secret").issue(&site, &[7; policy::key::KEY_BYTES]);
    let responder = Responder::start([
        ("owned.example", Zone::Addresses(vec![address])),
        ("_agentdex.owned.example", Zone::Text(format!("{}{}", claim::TOKEN_PREFIX, issued.token))),
    ])
    .await;
    let mut crawl = crawl_with(&responder, web, &["owned.example"]).await;
    crawl.store.claim_secret_keep("secret").await.unwrap();
    crawl.pass().await;
    assert_eq!(responder.asked("_agentdex.owned.example", TXT), 0, "nobody requested a check");
    let now = crate::support::now();
    assert!(crawl.store.claim_ask(&site, now, now).await.unwrap());
    crawl.pass_again().await;
    let claim = crawl.store.claim_find(&site).await.unwrap().unwrap();
    let owner = claim.owner.unwrap();
    assert_eq!(owner.proof, claim::Proof::Dns);
    assert_eq!(Some(owner.key_hash), policy::key::KeyHash::of_key(policy::key::KeyKind::Owner, &issued.key));
    assert!(
        !crawl.paths("owned.example").contains(&claim::FILE_PATH.to_owned()),
        "{:?}",
        crawl.paths("owned.example")
    );
}

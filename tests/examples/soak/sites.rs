//! The test web of a soak test: shops whose manifests change, sites with faults that change, and the sites of the demo.

use std::collections::BTreeMap;
use std::time::Duration;

use agentdex_tests::audit;
use serde_json::json;
use testweb::{Addresses, Answer, Handshake, Host, Web};

use crate::fleet::{CONTACT_EMAIL, DELAY, Stopped};

const SHOPS: usize = 60;
const FAULTY_SITES: usize = 30;
/// Number of faults; the last one is a site without a fault.
const FAULTS: usize = 22;
const PATH: &str = "/agent.json";
const JSON: &str = "application/json";
const OPEN: &str = "User-agent: *\nDisallow: /private/\n";
const CLOSED: &str = "User-agent: *\nDisallow: /agent.json\n";

/// Pseudo-random numbers, the same in every run (xorshift).
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// A number from 0 to `bound - 1`.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap_or_default() % bound
    }
}

pub(crate) struct SoakSites {
    pub(crate) web: Web,
    /// How often each shop has changed; the name of its action contains this number.
    versions: BTreeMap<String, usize>,
    pub(crate) changes: usize,
}

impl SoakSites {
    pub(crate) async fn start() -> anyhow::Result<Self> {
        let shops = (0..SHOPS).map(|index| shop(&format!("shop{index}.test"), 0));
        let odd = (0..FAULTY_SITES).map(|index| shop(&format!("odd{index}.test"), 0));
        let web = Web::builder().addresses(Addresses::OneEach).hosts(shops).hosts(odd);
        let web = web.hosts(testweb::demo::hosts()).start().await?;
        let versions = (0..SHOPS).map(|index| (format!("shop{index}.test"), 0)).collect();
        Ok(Self { web, versions, changes: 0 })
    }

    pub(crate) fn seeds(&self) -> Vec<String> {
        let odd = (0..FAULTY_SITES).map(|index| format!("odd{index}.test"));
        self.versions
            .keys()
            .cloned()
            .chain(odd)
            .chain(testweb::demo::seeds().into_iter().map(str::to_owned))
            .collect()
    }

    pub(crate) fn count(&self) -> usize {
        self.seeds().len()
    }

    /// The actions that a polite crawler finds at each shop: those that the shop declares now, or none if the last fetched robots.txt
    /// forbids its manifest. The crawler uses a copy of robots.txt for at least an hour.
    pub(crate) fn findable(&self) -> Vec<(&str, Vec<String>)> {
        let hits = self.web.log().hits();
        let mut robots: BTreeMap<&str, &str> = BTreeMap::new();
        for hit in &hits {
            if let Some(body) = &hit.robots_body {
                robots.insert(&hit.host, body);
            }
        }
        let actions = |name: &str, version| {
            if robots.get(name) == Some(&CLOSED) { Vec::new() } else { vec![action(version)] }
        };
        self.versions.iter().map(|(name, version)| (name.as_str(), actions(name, *version))).collect()
    }

    /// Changes one site: a shop's manifest or robots.txt, or the fault of a faulty site.
    pub(crate) fn change(&mut self, random: &mut Random) {
        self.changes += 1;
        if random.below(3) == 0 {
            let name = format!("odd{}.test", random.below(FAULTY_SITES));
            let fault = random.below(FAULTS);
            return self.web.set_host(faulty(&name, fault, self.changes));
        }
        let name = format!("shop{}.test", random.below(SHOPS));
        match random.below(10) {
            0 => self.web.remove(&name, PATH),
            1 => self.web.set_file(&name, "/robots.txt", "text/plain", CLOSED),
            2 => self.web.set_file(&name, "/robots.txt", "text/plain", OPEN),
            _ => {
                let version = self.versions.entry(name.clone()).or_default();
                *version += 1;
                self.web.set_file(&name, PATH, JSON, manifest(&name, *version));
            }
        }
    }

    /// Allows every shop with its newest version again, and removes the faults.
    pub(crate) fn restore(&mut self) {
        for (name, version) in &self.versions {
            self.web.set_host(shop(name, *version));
        }
        for index in 0..FAULTY_SITES {
            self.web.set_host(shop(&format!("odd{index}.test"), 0));
        }
    }

    /// Audits the log of the test web.
    pub(crate) fn audit(&self, stopped: &Stopped) -> audit::Report {
        let policy = audit::Policy {
            passes_began_us: stopped.passes_began_us.clone(),
            repeats_allowed: stopped.kills,
            from: Some(CONTACT_EMAIL.to_owned()),
            ..audit::Policy::with_delay(DELAY)
        };
        audit::check(&self.web.log().hits(), &policy)
    }
}

fn action(version: usize) -> String {
    format!("order_parcel_{version}")
}

fn shop(name: &str, version: usize) -> Host {
    Host::new(name).robots(OPEN).file(PATH, JSON, manifest(name, version))
}

fn manifest(domain: &str, version: usize) -> String {
    json!({"awp_version": "0.1", "domain": domain, "intent": "A shop that sends parcels.", "actions": [{
        "id": action(version), "description": "Order a parcel for delivery", "auth_required": false,
        "inputs": {"item": {"type": "string", "required": true}}, "outputs": {"order": "string"},
        "endpoint": "/api/orders", "method": "POST"}]})
    .to_string()
}

/// Hostile sites: expensive documents, endless headers and robots.txt files, and links to forbidden targets.
fn hostile(host: &Host, fault: usize) -> Host {
    let host = host.clone();
    let second = Duration::from_secs(1);
    match fault {
        13 => host.route(PATH, Answer::json("{}").padded(60, 16 * 1024)),
        14 => host.route("/robots.txt", Answer::text(OPEN.repeat(1_000)).dripping(1, second)),
        15 => host.handshake(Handshake::Stall),
        16 => host.route(PATH, Answer::json("[".repeat(200_000))),
        17 => host.route(PATH, Answer::json(format!("[{}0]", "0,".repeat(500_000)))),
        18 => {
            let yaml = format!("openapi: 3.0.0\nx: {}", "[".repeat(200_000));
            let page = Answer::html("").header("link", "</openapi.yaml>; rel=\"service-desc\"");
            host.route("/", page).file("/openapi.yaml", "application/yaml", yaml)
        }
        19 => host.redirect("/robots.txt", 302, "https://shop0.test/robots.txt"),
        _ => host.route(
            "/",
            Answer::html("").header(
                "link",
                "<https://a.internal/x>; rel=ard, <https://x.onion/x>; rel=ard, <https://co.uk/x>; rel=ard",
            ),
        ),
    }
}

/// Sites with faults that real sites have.
fn faulty(name: &str, fault: usize, version: usize) -> Host {
    let host = Host::new(name).robots(OPEN);
    match fault {
        0 => host.route(PATH, Answer::silence()),
        1 => host.route(PATH, Answer::reset()),
        2 => host.route(PATH, Answer::close()),
        3 => host.route(PATH, Answer::endless(JSON)),
        4 => host.route(PATH, Answer::gzip_bomb(JSON, 1 << 30)),
        5 => host.route(PATH, Answer::json(manifest(name, version)).dripping(16, Duration::from_millis(200))),
        6 => host.route(PATH, Answer::retry_after(503, "3")),
        7 => host.route(PATH, Answer::retry_after(429, "2")),
        8 => host.redirect(PATH, 302, PATH),
        9 => host.route(PATH, Answer::json("{\"awp_version\": \"0.1\", ")),
        10 => host.route(PATH, Answer::status(500)),
        11 => host.route("/robots.txt", Answer::status(503)),
        12 => host.refusing_connections(),
        13..=20 => hostile(&host, fault),
        _ => shop(name, version),
    }
}

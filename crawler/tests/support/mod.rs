//! A crawler, a test web and a store for each test.

use std::time::Duration;

use crawler::config::{CrawlConfig, EndpointChecks, Mode, SeedLists, SeedSource, TextRecords, WithoutSeeds};
use crawler::egress::{Contact, CrawlerIdentity, EgressSettings, HostsFile, OwnRules, Reach};
use crawler::{Cancel, Schedules, Summary};
use manifest::SiteName;
use policy::{FetchOutcome, OwnNetworks};
use store::{FetchReport, Retention, SiteReport, Store, WorkerId};
use testweb::{Hit, Host, Web};

/// An AWP manifest with one action.
pub(crate) const AWP: &str = r#"{"awp_version":"0.1","domain":"shop.example","intent":"Sell books","actions":[
    {"id":"buy_book","description":"Buy a book","method":"POST","endpoint":"/api/books"}]}"#;

/// A crawl: its test web, its store and its settings.
pub(crate) struct Crawl {
    pub(crate) web: Web,
    pub(crate) store: Store,
    pub(crate) config: CrawlConfig,
    _dir: tempfile::TempDir,
}

impl Crawl {
    /// A crawl of a test web with these hosts, which are all seeded, without a gap between requests.
    pub(crate) async fn of(hosts: impl IntoIterator<Item = Host>) -> Self {
        let hosts: Vec<Host> = hosts.into_iter().collect();
        let seeds: Vec<String> = hosts.iter().map(|host| host.name().to_owned()).collect();
        let web = Web::builder().hosts(hosts).start().await.unwrap();
        Self::on(web, &seeds.join("\n")).await
    }

    /// A crawl of `web` with these seeds.
    pub(crate) async fn on(web: Web, seeds: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open_in_data_dir(dir.path()).await.unwrap();
        let egress = EgressSettings {
            identity: CrawlerIdentity::new(&Contact::default()),
            additional_roots_pem: Some(web.ca_pem().into_bytes()),
            own_networks: OwnNetworks::new(["127.0.0.0/8".parse().unwrap()]),
            own_rules: OwnRules::Relaxed,
            reach: Reach::Everywhere,
            hosts: HostsFile::parse(&web.hosts_file()).unwrap(),
            name_servers: Vec::new(),
            signer: None,
        };
        let config = CrawlConfig {
            reader: None,
            seed_lists: SeedLists::Added,
            without_seeds: WithoutSeeds::Fails,
            seeds_read_at: None,
            lease: store::LEASE_DURATION_DEFAULT,
            egress,
            seeds: vec![SeedSource::Text { name: "seeds".to_owned(), text: seeds.to_owned() }],
            mode: Mode::Once { park_wait: Duration::ZERO, goes_on: false },
            delay: Duration::ZERO,
            rate: 10_000.try_into().unwrap(),
            concurrency: 16,
            revisit_older_than: None,
            revisit_every: None,
            worker: WorkerId::new("test"),
            locked_database: None,
            lock: None,
            schedules: Schedules::default(),
            retention: Retention::default(),
            events: None,
            text_records: TextRecords::Ignored,
            endpoint_checks: EndpointChecks::Off,
        };
        Self { web, store, config, _dir: dir }
    }

    /// Crawls once.
    pub(crate) async fn pass(&self) -> Summary {
        let crawl = crawler::run(self.config.clone(), self.store.clone(), Cancel::default(), &|_| ());
        tokio::time::timeout(Duration::from_mins(3), crawl)
            .await
            .expect("a pass within three minutes")
            .unwrap()
    }

    /// Crawls everything again, regardless of planned times.
    pub(crate) async fn pass_again(&mut self) -> Summary {
        self.config.revisit_older_than = Some(Duration::ZERO);
        self.web.log().clear();
        self.pass().await
    }

    pub(crate) async fn report(&self, site: &str) -> SiteReport {
        let site = SiteName::parse(site).unwrap();
        self.store.site_report(&site, 10).await.unwrap().expect("a known site")
    }

    /// The last visit's fetch of a path.
    pub(crate) async fn fetch(&self, host: &str, path: &str) -> FetchReport {
        let url = format!("https://{host}{path}");
        let report = self.report(host).await;
        let visit = report.visits.first().expect("a visit");
        let found = visit.fetches.iter().find(|fetch| fetch.url.as_str() == url);
        found.unwrap_or_else(|| panic!("no fetch of {url} in {:?}", visit.fetches)).clone()
    }

    pub(crate) async fn outcome(&self, host: &str, path: &str) -> FetchOutcome {
        self.fetch(host, path).await.outcome
    }

    /// The requested paths of a host, in order.
    pub(crate) fn paths(&self, host: &str) -> Vec<String> {
        self.hits(host).into_iter().map(|hit| hit.path).collect()
    }

    pub(crate) fn hits(&self, host: &str) -> Vec<Hit> {
        self.web.log().hits_on(host)
    }
}

/// A shop with an AWP manifest.
pub(crate) fn shop() -> Host {
    Host::new("shop.example").robots("User-agent: *\nAllow: /\n").file("/agent.json", "application/json", AWP)
}

#[expect(clippy::disallowed_methods, reason = "the only place of the test that reads the clock")]
pub(crate) fn now() -> chrono::DateTime<chrono::Utc> {
    chrono::Utc::now()
}

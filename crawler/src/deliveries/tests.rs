//! Tests of deliveries. Each test has its own test web and store, and sets the clock ahead.

use manifest::{ManifestUrl, SiteName};
use policy::OwnNetworks;
use policy::key::{IssuedKey, KeyKind};
use policy::webhook::{
    SECRET_BYTES, WatchClient, WatchStatus, WebhookSecret, WebhookSecrets, old_secret_until,
};
use serde_json::Value;
use store::{
    BackgroundTask, ClockWrite, DeliveryLine, NewChallenge, NewWatch, Retention, Store, TaskMonitor, Watch,
    WatchCaps, WatchOutcome,
};
use testweb::{Answer, Hit, Host, Web};
use tokio_util::task::TaskTracker;

use super::*;
use crate::config::{CrawlConfig, EndpointChecks, Mode, SeedLists, SeedSource, TextRecords, WithoutSeeds};
use crate::events::Events;
use crate::groups::Groups;
use crate::schedule::Schedules;
use crate::worker::Cancel;
use egress::{Contact, CrawlerIdentity, EgressSettings, HostsFile, OwnRules, Reach};

const SITE: &str = "shop.example";
const RECEIVER: &str = "hooks.reader.example";
const PATH: &str = "/changes";
const EVENTS: &str = "events.jsonl";
const CHALLENGE: &str = "answer_1";
const CAPS: WatchCaps = WatchCaps {
    of_receiver: 99,
    unconfirmed_of_receiver: 99,
    of_client: 99,
    unconfirmed_of_client: 99,
    of_all: 99,
    unconfirmed_of_all: 99,
};

struct Fixture {
    web: Web,
    config: CrawlConfig,
    tools: Tools,
    dir: tempfile::TempDir,
}

fn manifest(action: &str) -> String {
    format!(
        r#"{{"awp_version":"0.1","domain":"shop.example","intent":"Sell books","actions":[
            {{"id":"{action}","description":"Buy a book","method":"POST","endpoint":"/api/books"}}]}}"#
    )
}

/// A receiver that answers the challenge, and all later requests with `then`.
fn receiver(then: Answer) -> Host {
    Host::new(RECEIVER).route(PATH, confirming().times(1, then))
}

fn accepting() -> Answer {
    Answer::status(200).taking_posts()
}

fn confirming() -> Answer {
    Answer::text(CHALLENGE).taking_posts()
}

fn config(web: &Web, hosts: &str) -> CrawlConfig {
    let egress = EgressSettings {
        identity: CrawlerIdentity::new(&Contact::default()),
        additional_roots_pem: Some(web.ca_pem().into_bytes()),
        own_networks: OwnNetworks::new(["127.0.0.0/8".parse().unwrap()]),
        own_rules: OwnRules::Relaxed,
        reach: Reach::Everywhere,
        hosts: HostsFile::parse(hosts).unwrap(),
        name_servers: Vec::new(),
        signer: None,
    };
    CrawlConfig {
        reader: None,
        seed_lists: SeedLists::Added,
        without_seeds: WithoutSeeds::Fails,
        seeds_read_at: None,
        lease: store::LEASE_DURATION_DEFAULT,
        egress,
        seeds: vec![SeedSource::Text { name: "seeds".to_owned(), text: SITE.to_owned() }],
        mode: Mode::Once { park_wait: Duration::ZERO, goes_on: false },
        delay: Duration::ZERO,
        rate: 10_000.try_into().unwrap(),
        concurrency: 4,
        revisit_older_than: Some(Duration::ZERO),
        revisit_every: None,
        worker: WorkerId::new("test"),
        locked_database: None,
        lock: None,
        schedules: Schedules::default(),
        retention: Retention::default(),
        events: None,
        text_records: TextRecords::Ignored,
        endpoint_checks: EndpointChecks::Off,
    }
}

impl Fixture {
    /// A test web with the shop and these hosts, and a watch of the shop for [`RECEIVER`].
    async fn with(hosts: impl IntoIterator<Item = Host>) -> Self {
        Self::at(hosts, |hosts| hosts).await
    }

    /// A test web with the shop and these hosts, and a watch of the shop. `change` is applied to the hosts file.
    async fn at(hosts: impl IntoIterator<Item = Host>, change: impl Fn(String) -> String) -> Self {
        let shop = Host::new(SITE).robots("").file("/agent.json", "application/json", manifest("buy_book"));
        let web = Web::builder().hosts([shop]).hosts(hosts).start().await.unwrap();
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open_in_data_dir(dir.path()).await.unwrap();
        let config = config(&web, &change(web.hosts_file()));
        let tracker = TaskTracker::new();
        let events = Events::append(&dir.path().join(EVENTS)).unwrap();
        let shared = (Groups::unshared(), events);
        let tools = Tools::start(&config, &store, shared, &tracker).await.unwrap();
        let fixture = Self { web, config, tools, dir };
        fixture.watch().await;
        fixture
    }

    async fn watch(&self) {
        self.watch_for(1, RECEIVER).await;
    }

    /// A watch of the shop for a receiver.
    async fn watch_for(&self, number: u8, receiver: &str) {
        let watch = NewWatch {
            id: format!("w{number}"),
            target: WatchTarget::Site(SiteName::parse(SITE).unwrap()),
            receiver: ManifestUrl::parse(&format!("https://{receiver}{PATH}")).unwrap(),
            client: WatchClient::new("secret", std::net::Ipv4Addr::LOCALHOST.into()),
            token_hash: IssuedKey::new(KeyKind::Watch, &[1; 32]).hash,
            secret: secret(1),
            at: clock::now(),
            challenge: NewChallenge { id: format!("msg_{number}"), challenge: CHALLENGE.to_owned() },
        };
        assert_eq!(self.tools.store.watch_add(&watch, CAPS).await.unwrap(), WatchOutcome::Added);
    }

    /// Visits the shop, and delivers what is due before and after that.
    async fn crawl(&self, action: &str) {
        self.web.set_file(SITE, "/agent.json", "application/json", manifest(action));
        let store = self.tools.store.clone();
        crate::run(self.config.clone(), store, Cancel::default(), &|_| ()).await.unwrap();
    }

    async fn deliver(&self) {
        let monitor = TaskMonitor::new(self.tools.store.clone(), BackgroundTask::Deliveries);
        deliver_due(&self.tools, &self.config.worker, &monitor, &CancellationToken::new()).await;
    }

    /// Sets the clock ahead by `wait`, then delivers.
    async fn deliver_after(&self, wait: TimeDelta) {
        clock::advance(wait);
        self.deliver().await;
    }

    /// A confirmed watch with a change that is not delivered yet.
    async fn confirmed(then: Answer) -> Self {
        let fixture = Self::with([receiver(then)]).await;
        fixture.deliver().await;
        assert_eq!(fixture.state().await.unwrap().status, WatchStatus::Active);
        fixture
    }

    async fn state(&self) -> Option<Watch> {
        self.tools.store.watch_find("w1").await.unwrap()
    }

    async fn lines(&self) -> Vec<DeliveryLine> {
        self.tools.store.deliveries_of("w1", 99).await.unwrap()
    }

    async fn failure(&self) -> String {
        self.lines().await.into_iter().find_map(|line| line.failure).expect("a failure")
    }

    /// The messages that a host received.
    fn posts_on(&self, host: &str) -> Vec<Hit> {
        self.web.log().hits_on(host).into_iter().filter(|hit| hit.method == "POST").collect()
    }

    fn posts(&self) -> Vec<Hit> {
        self.posts_on(RECEIVER)
    }
}

fn secret(byte: u8) -> WebhookSecret {
    WebhookSecret::new(&[byte; SECRET_BYTES])
}

fn body(hit: &Hit) -> Value {
    serde_json::from_str(hit.posted.as_deref().unwrap()).unwrap()
}

fn id(hit: &Hit) -> &str {
    hit.request.webhook_id.as_deref().unwrap()
}

/// The signature that a message must have.
fn signature(secrets: &WebhookSecrets, hit: &Hit) -> String {
    let seconds = hit.request.webhook_timestamp.as_deref().unwrap().parse().unwrap();
    let at = DateTime::from_timestamp(seconds, 0).unwrap();
    secrets.signature(id(hit), at, hit.posted.as_deref().unwrap())
}

fn only(byte: u8) -> WebhookSecrets {
    WebhookSecrets { current: secret(byte), old: None }
}

#[tokio::test]
async fn changes_follow_an_answered_challenge_and_are_signed() {
    let fixture = Fixture::confirmed(Answer::status(204).taking_posts()).await;
    fixture.crawl("buy_book").await;
    fixture.deliver().await;
    let posts = fixture.posts();
    assert_eq!(posts.len(), 2, "{posts:?}");
    let (challenge, changes) = (body(&posts[0]), body(&posts[1]));
    assert_eq!(
        (&challenge["type"], &challenge["data"]["challenge"]),
        (&json!("agentdex.challenge"), &json!(CHALLENGE))
    );
    assert_eq!((&changes["type"], &changes["data"]["site"]), (&json!("agentdex.changes"), &json!(SITE)));
    let data = &changes["data"];
    assert_eq!((&data["changes"][0]["change"], &data["complete"]), (&json!("added"), &json!(true)), "{data}");
    for post in &posts {
        assert_eq!(post.request.webhook_signature, Some(signature(&only(1), post)));
        assert!(post.request.user_agent.as_deref().unwrap().starts_with("agentdex/"), "{post:?}");
    }
    assert_ne!(id(&posts[0]), id(&posts[1]));
    assert_eq!(fixture.web.log().hits_on(RECEIVER)[0].path, "/robots.txt", "robots.txt comes first");
    assert!(fixture.lines().await.is_empty());
    fixture.crawl("buy_two").await;
    fixture.deliver().await;
    assert_eq!(body(&fixture.posts()[2])["data"]["changes"][0]["change"], "changed");
}

/// Counts requests to the receiver as if they had been sent today.
async fn spend(store: &Store, requests_add: u32) {
    let spent = ClockWrite {
        host: RECEIVER.parse().unwrap(),
        address: None,
        next_ok_at: clock::now(),
        not_before: None,
        requests_add,
        day: day_of(clock::now()),
        progress: None,
        member: None,
        lease: None,
    };
    store.clocks_save(&[spent]).await.unwrap();
}

/// Anybody can submit URLs at the host of a receiver, and visits would use up its daily requests.
#[tokio::test]
async fn visits_leave_a_part_of_the_daily_budget_to_messages() {
    // at 22:00, because a challenge waits for four hours at most, and here it waits for the next day
    clock::advance(next_day(clock::now()) - clock::now() + TimeDelta::hours(22));
    let mut fixture = Fixture::with([receiver(accepting())]).await;
    let store = fixture.tools.store.clone();
    fixture.config.egress.own_rules = OwnRules::Strict;
    let seeds = SeedSource::Text { name: "seeds".to_owned(), text: RECEIVER.to_owned() };
    fixture.config.seeds = vec![seeds];
    let tracker = TaskTracker::new();
    let shared = (Groups::unshared(), Events::default());
    let tools = Tools::start(&fixture.config, &store, shared, &tracker).await.unwrap();
    let url = ManifestUrl::parse(&format!("https://{RECEIVER}{PATH}")).unwrap();
    let site = url.site();
    store.site_add_unplanned(&site, clock::now()).await.unwrap();
    let visit = async || {
        fixture.web.log().clear();
        crate::run(fixture.config.clone(), store.clone(), Cancel::default(), &|_| ()).await.unwrap();
        fixture.web.log().hits_on(RECEIVER).into_iter().filter(|hit| hit.method == "GET").count()
    };
    spend(&store, 39).await;
    assert_eq!(visit().await, 1, "anybody can add a watch, so one without an answer keeps nothing");

    // a watch without an answer is kept for a day
    let tomorrow = next_day(clock::now()) - clock::now();
    fixture.deliver_after(tomorrow + TimeDelta::seconds(1)).await;
    assert_eq!(fixture.state().await.unwrap().status, WatchStatus::Active);
    let today = day_of(clock::now());
    let hosts = store.site_report(&site, 1).await.unwrap().unwrap().state.hosts;
    let requests = hosts.iter().filter(|host| host.requests_day == today).map(|host| host.requests_today);
    spend(&store, 30 - requests.sum::<u32>()).await;
    assert_eq!(visit().await, 0, "the rest is kept for messages");
    let wait = Duration::from_secs(20);
    let mut requests = StandaloneRequests::new(&tools, fixture.config.worker.clone(), wait, Stop::default());
    let headers = HeaderMap::new();
    let message = Message::Deliver { headers: &headers, body: "{}" };
    assert!(requests.send(&url, BodyKind::Other, message).await.unwrap().head.status.is_success());
}

#[tokio::test]
async fn a_message_is_repeated_with_its_id_and_a_new_time() {
    let fixture = Fixture::confirmed(Answer::status(500).taking_posts().times(1, accepting())).await;
    fixture.crawl("buy_book").await;
    fixture.deliver().await;
    assert_eq!(fixture.failure().await, "it answered 500");
    fixture.deliver_after(TimeDelta::seconds(30)).await;
    assert_eq!(fixture.posts().len(), 2, "not before a minute");
    fixture.deliver_after(TimeDelta::minutes(2)).await;
    let posts = fixture.posts();
    let [_, first, again] = posts.as_slice() else { panic!("{posts:?}") };
    assert_eq!((id(first), &first.posted), (id(again), &again.posted));
    assert_ne!(first.request.webhook_timestamp, again.request.webhook_timestamp);
    assert_ne!(first.request.webhook_signature, again.request.webhook_signature);
    assert_eq!(again.request.webhook_signature, Some(signature(&only(1), again)));
    assert!(fixture.lines().await.is_empty() && fixture.state().await.unwrap().failing_since.is_none());
}

/// Others create watches for their own hosts, which answer no request.
#[tokio::test]
async fn receivers_that_never_answer_challenges_do_not_delay_changes() {
    let slow = |number: u8| format!("hooks.slow{number}.example");
    let silent = confirming().after(Duration::from_hours(1));
    let hosts = (2..22).map(|number| Host::new(&slow(number)).robots("").route(PATH, silent.clone()));
    let fixture = Fixture::with(hosts.chain([receiver(accepting())])).await;
    // the challenge is answered after this visit, so the change waits
    fixture.crawl("buy_book").await;
    for number in 2..22 {
        fixture.watch_for(number, &slow(number)).await;
    }
    clock::advance(TimeDelta::seconds(1));
    let delivery = async {
        while fixture.posts().len() < 2 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let arrived = tokio::time::timeout(Duration::from_secs(8), delivery);
    tokio::select! {
        () = fixture.deliver() => {}
        arrived = arrived => assert!(arrived.is_ok(), "the changes wait for challenges"),
    }
    assert_eq!(body(&fixture.posts()[1])["type"], "agentdex.changes");
}

/// The process is killed after the receiver has answered and before the result is stored.
#[tokio::test]
async fn a_message_is_delivered_again_after_a_kill() {
    let fixture = Fixture::with([receiver(accepting())]).await;
    // the challenge is answered after this visit, so the change waits
    fixture.crawl("buy_book").await;
    for watch in fixture.tools.store.watches_behind(9).await.unwrap() {
        compose(&fixture.tools, &watch).await.unwrap();
    }
    let now = clock::now();
    let kind = MessageKind::Changes;
    let due = fixture.tools.store.deliveries_claim(kind, now, now + SENDING_MAX, 9).await.unwrap();
    let stop = CancellationToken::new();
    let end = attempt(&fixture.tools, &fixture.config.worker, &stop, &due[0]).await.unwrap();
    assert_eq!(end, DeliveryEnd::Accepted);
    fixture.deliver().await;
    assert_eq!(fixture.posts().len(), 2, "another worker may still be sending it");
    fixture.deliver_after(SENDING_MAX + TimeDelta::seconds(1)).await;
    let posts = fixture.posts();
    assert_eq!((posts.len(), id(&posts[1]), &posts[1].posted), (3, id(&posts[2]), &posts[2].posted));
    assert!(fixture.lines().await.is_empty());
}

#[tokio::test]
async fn the_watch_of_a_dead_receiver_is_paused_after_eight_attempts() {
    let fixture = Fixture::confirmed(Answer::status(500).taking_posts()).await;
    fixture.crawl("buy_book").await;
    let begin = clock::now();
    let mut dead = 0;
    for changes in ["buy_two", "buy_three", "buy_four", "buy_five"] {
        fixture.deliver().await;
        while let Some(next_at) = fixture.lines().await.iter().find_map(|line| line.next_at) {
            fixture.deliver_after(next_at - clock::now() + TimeDelta::seconds(1)).await;
        }
        dead += 1;
        let state = fixture.state().await.unwrap();
        assert_eq!(state.dead_letters, dead);
        if dead == 1 {
            let attempts = fixture.posts().len() - 1;
            assert_eq!((attempts, fixture.lines().await[0].attempts), (8, 8));
            assert!(clock::now() - begin >= TimeDelta::hours(44));
        }
        if state.status == WatchStatus::Paused {
            break;
        }
        fixture.crawl(changes).await;
    }
    let state = fixture.state().await.unwrap();
    assert_eq!(state.status, WatchStatus::Paused, "{:?}", clock::now() - begin);
    assert!(clock::now() - begin >= TimeDelta::days(5));
    let posts = fixture.posts().len();
    fixture.crawl("buy_six").await;
    fixture.deliver_after(TimeDelta::days(1)).await;
    assert_eq!(fixture.posts().len(), posts);
}

#[tokio::test]
async fn a_receiver_that_answers_410_ends_its_watch() {
    let fixture = Fixture::confirmed(Answer::status(410).taking_posts()).await;
    fixture.crawl("buy_book").await;
    fixture.deliver().await;
    assert_eq!(fixture.state().await, None);
    assert!(fixture.lines().await.is_empty());
}

/// A watch names a URL of a third party, whose server answers requests in different ways.
#[tokio::test]
async fn a_third_party_gets_three_challenges_and_no_changes() {
    for answer in
        [Answer::html("<p>Hello</p>"), Answer::status(404), Answer::json(format!("\"{CHALLENGE}\""))]
    {
        let victim = Host::new(RECEIVER).robots("").catch_all(answer.taking_posts());
        let fixture = Fixture::with([victim]).await;
        fixture.crawl("buy_book").await;
        for _ in 0..30 {
            fixture.deliver_after(TimeDelta::minutes(20)).await;
        }
        let posts = fixture.posts();
        assert!(posts.len() <= 3 && !posts.is_empty(), "{}", posts.len());
        assert!(posts.iter().all(|post| body(post)["type"] == "agentdex.challenge"), "{posts:?}");
        assert_eq!(fixture.state().await, None, "the watch is deleted");
    }
}

/// Such a watch would otherwise occupy the room of the others for a day.
#[tokio::test]
async fn an_unconfirmed_watch_ends_if_its_receiver_asks_for_a_long_wait() {
    let (week, hour) = (Answer::retry_after(429, "604800"), Answer::retry_after(503, "3600"));
    let host = || Host::new(RECEIVER).robots("");
    for (busy, status) in [
        (host().route(PATH, week.clone().taking_posts()), None),
        (host().route("/robots.txt", week).route(PATH, confirming()), None),
        (host().route(PATH, hour.taking_posts().times(1, confirming())), Some(WatchStatus::Active)),
    ] {
        let fixture = Fixture::with([busy]).await;
        fixture.deliver().await;
        for _ in 0..6 {
            fixture.deliver_after(TimeDelta::minutes(20)).await;
        }
        assert_eq!(fixture.state().await.map(|watch| watch.status), status, "{:?}", fixture.posts());
    }
}

#[tokio::test]
async fn challenges_to_one_domain_are_limited() {
    let fixture = Fixture::with([receiver(accepting())]).await;
    let (reader, day) = (SiteName::parse("reader.example").unwrap(), day_of(clock::now()));
    for _ in 0..webhook::CHALLENGES_PER_DAY_MAX {
        assert!(
            fixture
                .tools
                .store
                .receiver_count(&reader, day, MessageKind::Challenge, super::CAPS)
                .await
                .unwrap()
        );
    }
    fixture.deliver().await;
    assert!(fixture.web.log().hits_on(RECEIVER).is_empty());
    let next = fixture.lines().await[0].next_at.unwrap();
    assert_eq!(next, next_day(clock::now()));
    fixture.deliver_after(next - clock::now() + TimeDelta::seconds(1)).await;
    assert_eq!(fixture.posts().len(), 1);
}

/// The holder of the token of a watch requests new challenges all the time.
#[tokio::test]
async fn repeated_requests_for_challenges_send_at_most_ten_a_day_and_no_changes() {
    let silent = Host::new(RECEIVER).robots("").catch_all(Answer::status(404).taking_posts());
    let fixture = Fixture::with([silent]).await;
    // all challenges belong to one day
    let left_of_day = next_day(clock::now()) - clock::now();
    if left_of_day < TimeDelta::hours(1) {
        clock::advance(left_of_day);
    }
    fixture.crawl("buy_book").await;
    for number in 0..3 * webhook::CHALLENGES_PER_DAY_MAX {
        let challenge = NewChallenge { id: format!("again_{number}"), challenge: CHALLENGE.to_owned() };
        assert!(fixture.tools.store.watch_challenge("w1", &challenge, clock::now()).await.unwrap());
        fixture.deliver_after(TimeDelta::minutes(1)).await;
    }
    let posts = fixture.posts();
    assert_eq!(posts.len(), usize::try_from(webhook::CHALLENGES_PER_DAY_MAX).unwrap());
    assert!(posts.iter().all(|post| body(post)["type"] == "agentdex.challenge"), "{posts:?}");
}

#[tokio::test]
async fn private_addresses_get_no_request() {
    for address in ["10.0.0.1", "169.254.169.254", "[::1]", "192.168.1.1"] {
        let fixture = Fixture::at([receiver(accepting())], |hosts| {
            let others: Vec<&str> = hosts.lines().filter(|line| !line.contains(RECEIVER)).collect();
            format!("{}\n{address}:443 {RECEIVER}\n", others.join("\n"))
        })
        .await;
        fixture.deliver().await;
        let failure = fixture.failure().await;
        assert!(failure.contains("address refused"), "{address}: {failure}");
        assert!(fixture.web.log().connections().iter().all(|one| one.host.as_deref() != Some(RECEIVER)));
    }
}

#[tokio::test]
async fn redirects_are_not_followed() {
    let target = format!("https://victim.example{PATH}");
    let same = format!("https://{RECEIVER}/other");
    for (status, target) in [(307, &target), (302, &target), (308, &same)] {
        let away = Host::new(RECEIVER)
            .route(PATH, Answer::redirect(status, target).taking_posts())
            .route("/other", confirming());
        let fixture = Fixture::with([away, Host::new("victim.example").catch_all(confirming())]).await;
        fixture.deliver().await;
        assert_eq!(fixture.failure().await, format!("it answered {status}; redirects are not followed"));
        assert!(fixture.web.log().hits_on("victim.example").is_empty());
        assert_eq!(fixture.posts().len(), 1);
    }
}

#[tokio::test]
async fn robots_txt_of_the_receiver_applies() {
    let fixture =
        Fixture::with([receiver(accepting()).robots("User-agent: agentdex\nDisallow: /changes\n")]).await;
    fixture.deliver().await;
    assert!(fixture.failure().await.contains("robots.txt"), "{}", fixture.failure().await);
    assert!(fixture.posts().is_empty());
}

#[tokio::test]
async fn retry_after_of_the_receiver_delays_the_next_attempt() {
    let busy = Answer::retry_after(503, "3600").taking_posts();
    let fixture = Fixture::confirmed(busy.times(1, accepting())).await;
    fixture.crawl("buy_book").await;
    fixture.deliver().await;
    assert_eq!(fixture.posts().len(), 2);
    fixture.deliver_after(TimeDelta::minutes(10)).await;
    assert_eq!(fixture.posts().len(), 2, "it asked for an hour");
    let waiting = fixture.lines().await;
    assert_eq!(waiting[0].attempts, 1, "nothing was sent");
    fixture.deliver_after(TimeDelta::minutes(52)).await;
    assert_eq!(fixture.posts().len(), 3);
}

#[tokio::test]
async fn both_secrets_sign_after_a_rotation() {
    let fixture = Fixture::confirmed(accepting()).await;
    let until = old_secret_until(clock::now());
    assert!(fixture.tools.store.watch_rotate("w1", &secret(2), until).await.unwrap());
    fixture.crawl("buy_book").await;
    fixture.deliver().await;
    let post = fixture.posts().pop().unwrap();
    let both = WebhookSecrets { current: secret(2), old: Some((secret(1), until)) };
    assert_eq!(post.request.webhook_signature, Some(signature(&both, &post)));
    assert_eq!(post.request.webhook_signature.as_deref().unwrap().matches("v1,").count(), 2);
    clock::advance(TimeDelta::hours(25));
    fixture.crawl("buy_two").await;
    fixture.deliver().await;
    let post = fixture.posts().pop().unwrap();
    assert_eq!(body(&post)["type"], "agentdex.changes");
    assert_eq!(post.request.webhook_signature, Some(signature(&only(2), &post)));
}

#[tokio::test]
async fn an_opt_out_of_the_watched_site_is_delivered_and_ends_the_watch() {
    let fixture = Fixture::confirmed(accepting()).await;
    fixture.crawl("buy_book").await;
    fixture.deliver().await;
    let store = &fixture.tools.store;
    store.site_block(&SiteName::parse(SITE).unwrap(), "asked", clock::now()).await.unwrap();
    fixture.deliver().await;
    let removal = body(&fixture.posts().pop().unwrap());
    let change = &removal["data"]["changes"][0];
    assert_eq!((&change["change"], &change["reason"]), (&json!("removed"), &json!("opted_out")));
    assert!(fixture.state().await.is_some());
    fixture.deliver().await;
    assert_eq!(fixture.state().await, None);
}

#[tokio::test]
async fn a_long_response_is_accepted_without_reading_all_of_it() {
    let fixture = Fixture::confirmed(Answer::endless("text/plain").taking_posts()).await;
    fixture.crawl("buy_book").await;
    fixture.deliver().await;
    assert!(fixture.lines().await.is_empty(), "{:?}", fixture.lines().await);
}

#[tokio::test]
async fn events_name_the_host_of_a_receiver_without_its_path() {
    let fixture = Fixture::confirmed(accepting()).await;
    let events = std::fs::read_to_string(fixture.dir.path().join(EVENTS)).unwrap();
    assert!(events.contains(&format!("https://{RECEIVER}/\"")), "{events}");
    assert!(!events.contains(PATH), "{events}");
}

/// The receiver of a watch is stored like any other host that was requested.
#[tokio::test]
async fn the_record_of_a_receiver_does_not_name_its_watch() {
    let fixture = Fixture::confirmed(accepting()).await;
    let reader = SiteName::parse("reader.example").unwrap();
    let report = fixture.tools.store.site_report(&reader, 10).await.unwrap().expect("its limits are stored");
    let record = format!("{report:?}");
    for private in [PATH, "w1", CHALLENGE, SITE] {
        assert!(!record.contains(private), "{private}: {record}");
    }
    assert!(
        report.summary.next_visit_at.is_none_or(|at| at > clock::now() + TimeDelta::days(9_000)),
        "no visit"
    );
}

#[test]
fn times_of_messages_have_milliseconds() {
    let at = DateTime::from_timestamp(1_800_000_000, 535_519_131).unwrap();
    assert_eq!(timestamp(at), "2027-01-15T08:00:00.535Z");
}

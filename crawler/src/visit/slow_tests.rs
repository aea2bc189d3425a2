//! Tests of visits to a site that asks for long delays. The tests set the clock ahead.

use policy::claim::{ClaimAuthority, FILE_PATH, Proof, TOKEN_PREFIX};
use policy::key::KEY_BYTES;
use store::{GroupSet, LeaseRequest, Seed, SeedOrigin, WorkerId};
use testweb::Answer;

use super::requester::tests::{Fixture, fixture, fixture_with};
use super::*;

pub(super) const NAME: &str = "slow.example";
pub(super) const MANIFEST: &str = "/agent.json";
pub(super) const AWP: &str = r#"{"awp_version":"0.1","domain":"slow.example","intent":"Sell books","actions":[
    {"id":"buy_book","description":"Buy a book","method":"POST","endpoint":"/api/books"}]}"#;
/// Delay with which a due visit is resumed.
const LATE: TimeDelta = TimeDelta::seconds(60);
/// Maximum number of openings: twice as many as a visit to all paths of the table needs.
const OPENINGS_MAX: usize = 100;

/// What happened between the start or the resumption of a visit and its end or its parking.
pub(super) struct Opening {
    began_at: DateTime<Utc>,
    ended_at: DateTime<Utc>,
    pub(super) requested: Vec<String>,
    is_parked: bool,
}

/// A site with a manifest and this robots.txt.
async fn slow_site(robots: Answer) -> Fixture {
    let host = testweb::Host::new(NAME).route("/robots.txt", robots).file(MANIFEST, "application/json", AWP);
    let fixture = fixture(host).await;
    fixture.tools.store.standalone_end(&fixture.leased.token, &[]).await.unwrap();
    fixture
}

/// Leases the due site, begins or resumes its visit, and saves the outcome.
pub(super) async fn open(fixture: &Fixture) -> Opening {
    let (store, began_at) = (&fixture.tools.store, clock::now());
    let request = LeaseRequest {
        worker: WorkerId::new("test"),
        sites_max: 1,
        duration: Duration::from_mins(3),
        due_before: began_at,
        only: None,
        groups: GroupSet::all(),
    };
    let leased = store.sites_lease(&request, began_at).await.unwrap().pop().expect("the site is due");
    let before = fixture.paths().len();
    let visited = visit(&fixture.tools, Box::new(leased), Scope::Site, &Stop::default()).await.unwrap();
    let is_parked = match &visited.outcome {
        Outcome::Parked(parked) => {
            store.visit_park(&visited.token, parked, clock::now()).await.unwrap();
            true
        }
        Outcome::Ended(record) => {
            store.visit_save(&visited.token, record).await.unwrap();
            false
        }
        outcome => panic!("{outcome:?}"),
    };
    Opening { began_at, ended_at: clock::now(), requested: fixture.paths().split_off(before), is_parked }
}

/// Sets the clock to the time at which the site is due, and a little later.
pub(super) async fn advance_until_due(fixture: &Fixture) {
    let due_at = report(fixture).await.summary.next_visit_at.expect("a planned visit");
    clock::advance(due_at - clock::now() + LATE);
}

pub(super) async fn report(fixture: &Fixture) -> store::SiteReport {
    fixture.tools.store.site_report(&fixture.leased.site.name, 9).await.unwrap().expect("a known site")
}

#[tokio::test]
async fn a_site_with_a_long_delay_is_read_over_days() {
    let day = Answer::text("User-agent: *\nCrawl-delay: 86400\n");
    let two_hours = Answer::text("User-agent: *\nCrawl-delay: 7200\n").max_age(60);
    for (robots, delay) in [(day, TimeDelta::days(1)), (two_hours, TimeDelta::hours(2))] {
        let fixture = slow_site(robots).await;
        let mut last: Option<Opening> = None;
        for number in 0..OPENINGS_MAX {
            let opening = open(&fixture).await;
            assert!(opening.requested.len() <= 1, "{:?} in opening {number}", opening.requested);
            if let (Some(last), false) = (&last, opening.requested.is_empty()) {
                assert!(opening.began_at - last.ended_at >= delay, "opening {number}");
            }
            if !opening.is_parked {
                break;
            }
            let plan = parked_plan(&report(&fixture).await.state).expect("the rest of the visit");
            let is_robots_next = plan.next.path() == ROBOTS_PATH;
            let was_robots = opening.requested == [ROBOTS_PATH];
            assert!(
                is_robots_next != was_robots,
                "opening {number}: {} after {:?}",
                plan.next,
                opening.requested
            );
            assert_eq!(usize::try_from(plan.requests).unwrap(), fixture.paths().len());
            last = Some(opening);
            advance_until_due(&fixture).await;
        }
        let paths = fixture.paths();
        assert_eq!(paths.last().map(String::as_str), Some(MANIFEST), "{paths:?}");
        let robots = paths.iter().step_by(2).all(|path| path == ROBOTS_PATH);
        let others = paths.iter().skip(1).step_by(2).all(|path| path != ROBOTS_PATH);
        assert!(robots && others && paths.len() <= 20, "{paths:?}");
        let saved = report(&fixture).await;
        assert_eq!(saved.summary.manifests, 1, "a new manifest does not wait for the other paths");

        // the next visit continues with the other paths
        let requested = fixture.paths().len();
        for _ in 0..6 {
            advance_until_due(&fixture).await;
            open(&fixture).await;
        }
        let more: Vec<String> = fixture.paths().split_off(requested);
        assert!(more.iter().any(|path| path == MANIFEST), "{more:?}");
        assert!(more.iter().any(|path| path != MANIFEST && !paths.contains(path)), "{more:?}");
    }
}

pub(super) fn submitted(at: &str) -> Seed {
    let url = ManifestUrl::parse(at).unwrap();
    Seed { host: url.host(), url: Some(url), rank: None, origin: SeedOrigin::Submitted, revisit_now: true }
}

/// Opens the visit repeatedly until it ends. Returns the requests of each opening.
pub(super) async fn open_until_the_end(fixture: &Fixture) -> Vec<Opening> {
    let mut openings = Vec::new();
    while openings.len() < OPENINGS_MAX {
        let opening = open(fixture).await;
        let is_parked = opening.is_parked;
        openings.push(opening);
        if !is_parked {
            return openings;
        }
        advance_until_due(fixture).await;
    }
    panic!("{:?}", fixture.paths());
}

/// When the visit is resumed for the last time, only URLs that others named are left, and robots.txt forbids them.
#[tokio::test]
async fn disallowed_links_of_third_parties_do_not_mark_the_site_as_denied() {
    let robots = "User-agent: *\nCrawl-delay: 60\nDisallow: /private/\n";
    let fixture = slow_site(Answer::text(robots)).await;
    let private = (0..4).map(|number| submitted(&format!("https://{NAME}/private/{number}.json")));
    fixture.tools.store.seeds_add(&private.collect::<Vec<_>>(), clock::now()).await.unwrap();
    clock::advance(LATE);
    for pass in 0..2 {
        let openings = open_until_the_end(&fixture).await;
        assert!(openings.len() > 2, "the visit is resumed");
        let report = report(&fixture).await;
        assert_eq!(report.visits[0].end, VisitEnd::Completed, "pass {pass}");
        assert_eq!(report.summary.status, policy::Status::Fresh, "pass {pass}");
        assert_eq!(report.summary.manifests, 1, "pass {pass}");
        advance_until_due(&fixture).await;
    }
    assert!(!fixture.paths().iter().any(|path| path.starts_with("/private/")));
}

/// robots.txt forbids the usual paths, but not a document to which others link.
#[tokio::test]
async fn an_allowed_document_is_requested_where_robots_forbids_the_usual_paths() {
    let fixture = slow_site(Answer::text("User-agent: *\nDisallow: /\nAllow: /agents/\n")).await;
    let seed = submitted(&format!("https://{NAME}/agents/1.json"));
    fixture.tools.store.seeds_add(&[seed], clock::now()).await.unwrap();
    clock::advance(LATE);
    for _ in 0..2 {
        open_until_the_end(&fixture).await;
        advance_until_due(&fixture).await;
    }
    assert!(fixture.paths().iter().any(|path| path == "/agents/1.json"), "{:?}", fixture.paths());
}

/// The catalog of the site lists documents at the host of a customer, or others submit them. This host asks for a delay of 50 minutes.
#[tokio::test]
async fn delays_of_a_customers_host_prolong_a_visit_by_at_most_an_hour() {
    const CUSTOMER: &str = "t1.slow.example";
    let listed: Vec<String> = (0..5).map(|number| format!("https://{CUSTOMER}/u/{number}.json")).collect();
    for is_listed in [true, false] {
        let links: Vec<String> = listed.iter().map(|url| format!(r#"{{"href":"{url}"}}"#)).collect();
        let catalog =
            format!(r#"{{"linkset":[{{"anchor":"https://{NAME}/","service-desc":[{}]}}]}}"#, links.join(","));
        let mut site = testweb::Host::new(NAME).robots("").file(MANIFEST, "application/json", AWP);
        if is_listed {
            site = site.file("/.well-known/api-catalog", "application/linkset+json", catalog);
        }
        let customer = testweb::Host::new(CUSTOMER).robots("User-agent: *\nCrawl-delay: 3000\n");
        let fixture = fixture_with(site, customer).await;
        fixture.tools.store.standalone_end(&fixture.leased.token, &[]).await.unwrap();
        if !is_listed {
            let seeds: Vec<Seed> = listed.iter().map(|url| submitted(url)).collect();
            fixture.tools.store.seeds_add(&seeds, clock::now()).await.unwrap();
            clock::advance(LATE);
        }
        let openings = open_until_the_end(&fixture).await;
        let time = openings.last().expect("an opening").ended_at - openings[0].began_at;
        assert!(time < TimeDelta::hours(2), "listed: {is_listed}: {time}");
        let parked = openings.iter().filter(|opening| opening.is_parked).count();
        assert!(parked <= 1, "listed: {is_listed}: {parked}");
        let report = report(&fixture).await;
        assert_eq!(report.visits[0].end, VisitEnd::Completed, "listed: {is_listed}");
        assert!(report.summary.manifests >= 1, "listed: {is_listed}");
        assert!(!fixture.web.log().hits_on(CUSTOMER).is_empty(), "listed: {is_listed}");
    }
}

/// The catalog of the site lists a document at the host of a customer, or a path of the site redirects there. This host asks for a delay
/// that is longer than any visit waits.
#[tokio::test]
async fn a_customers_host_with_a_long_delay_is_requested_in_the_next_visit() {
    const CUSTOMER: &str = "t1.slow.example";
    const LISTED: &str = "/u/listed.json";
    let listed = format!("https://{CUSTOMER}{LISTED}");
    let catalog =
        format!(r#"{{"linkset":[{{"anchor":"https://{NAME}/","service-desc":[{{"href":"{listed}"}}]}}]}}"#);
    for (delay, is_redirect) in [(86_400, false), (3_700, false), (86_400, true)] {
        let site = testweb::Host::new(NAME).robots("").file(MANIFEST, "application/json", AWP);
        let site = if is_redirect {
            site.redirect("/.well-known/agents.json", 302, &listed)
        } else {
            site.file("/.well-known/api-catalog", "application/linkset+json", catalog.clone())
        };
        let customer = testweb::Host::new(CUSTOMER)
            .robots(&format!("User-agent: *\nCrawl-delay: {delay}\n"))
            .file(LISTED, "application/json", AWP.replace("buy_book", "sell_book"));
        let fixture = fixture_with(site, customer).await;
        fixture.tools.store.standalone_end(&fixture.leased.token, &[]).await.unwrap();
        let requested = || {
            let hits = fixture.web.log().hits_on(CUSTOMER);
            hits.into_iter().map(|hit| hit.path).collect::<Vec<_>>()
        };
        for number in 0..4 {
            let began_at = clock::now();
            open_until_the_end(&fixture).await;
            assert!(clock::now() - began_at < TimeDelta::hours(1), "{delay}: no visit waits");
            let paths = requested();
            let expected: Vec<&str> = [ROBOTS_PATH, LISTED].into_iter().cycle().take(paths.len()).collect();
            assert_eq!(paths, expected, "delay of {delay}, visit {number}");
            let state = report(&fixture).await.state;
            let waiting = |known: &&store::ResourceState| known.outcome == policy::FetchOutcome::NotReached;
            let left = state.resources.iter().filter(waiting).count();
            if number < 2 {
                assert_eq!((paths.len(), left), (number + 1, 1 - number), "delay of {delay}: {paths:?}");
            }
            advance_until_due(&fixture).await;
        }
        assert!(requested().len() >= 3, "its robots.txt is requested again: {:?}", requested());
    }
}

/// The time for URLs to which documents link is used up.
#[tokio::test]
async fn slow_links_are_left_for_later_and_do_not_end_the_visit() {
    let linked: Vec<String> = (0..20).map(|number| format!("/u/{number}.json")).collect();
    let links: Vec<String> =
        linked.iter().map(|path| format!(r#"{{"href":"https://{NAME}{path}"}}"#)).collect();
    let catalog =
        format!(r#"{{"linkset":[{{"anchor":"https://{NAME}/","service-desc":[{}]}}]}}"#, links.join(","));
    let slow = Answer::status(404).after(Duration::from_millis(20));
    let site = testweb::Host::new(NAME).robots("").file(MANIFEST, "application/json", AWP).file(
        "/.well-known/api-catalog",
        "application/linkset+json",
        catalog,
    );
    let fixture = fixture(linked.iter().fold(site, |site, path| site.route(path, slow.clone()))).await;
    let stop = Stop::default();
    for is_used_up in [true, false] {
        let before = fixture.paths().len();
        let session = fixture.tools.egress.session(fixture.leased.token.site.clone());
        let mut visit = Visit::new(&fixture.tools, &stop, &fixture.leased, Scope::Site, session);
        if is_used_up {
            let (traffic, time) = (&mut visit.progress.traffic, UrlLimits::of(NamedBy::Document).time);
            traffic.active = time;
            traffic.active_for.insert(NamedBy::Document, time);
        }
        let time_before = visit.progress.traffic.active_for_links();
        assert!(matches!(visit.work().await, Ok(VisitEnd::Completed)), "used up: {is_used_up}");
        let paths = fixture.paths().split_off(before);
        for own in [MANIFEST, "/llms.txt", "/.well-known/llms.txt", "/"] {
            assert!(paths.iter().any(|path| path == own), "used up: {is_used_up}: {own} in {paths:?}");
        }
        let requested = paths.iter().filter(|path| linked.contains(path)).count();
        assert_eq!(requested, if is_used_up { 0 } else { linked.len() }, "{paths:?}");
        let fetched = visit.progress.findings.fetched.iter();
        let left = fetched.filter(|fetched| fetched.outcome == policy::FetchOutcome::NotReached).count();
        assert_eq!(left, if is_used_up { linked.len() } else { 0 });
        let took = visit.progress.traffic.active_for_links().saturating_sub(time_before);
        assert_eq!(took >= Duration::from_millis(20 * 20), !is_used_up, "{took:?}");
    }
}

/// The catalog of the site lists documents at its own host, which asks for a delay of a day.
#[tokio::test]
async fn links_of_a_site_with_a_long_delay_are_requested_in_later_visits() {
    let listed = format!(r#"{{"href":"https://{NAME}/x/listed.json"}}"#);
    let catalog = format!(r#"{{"linkset":[{{"anchor":"https://{NAME}/","service-desc":[{listed}]}}]}}"#);
    let robots = format!(
        "User-agent: *\nCrawl-delay: 86400\nAllow: {MANIFEST}$\nAllow: /.well-known/api-catalog$\nAllow: /x/\nDisallow: /\n"
    );
    let fixture = slow_site(Answer::text(robots)).await;
    fixture.web.set_file(NAME, "/.well-known/api-catalog", "application/linkset+json", catalog);
    fixture.web.set_file(NAME, "/x/listed.json", "application/json", AWP.replace("buy_book", "sell_book"));
    for _ in 0..4 {
        open_until_the_end(&fixture).await;
        advance_until_due(&fixture).await;
    }
    let paths = fixture.paths();
    assert!(paths.contains(&"/x/listed.json".to_owned()), "{paths:?}");
}

/// The catalog of the site lists documents of users, one of which asks for a delay of a day with each answer.
#[tokio::test]
async fn documents_of_users_do_not_prevent_saving_published_documents() {
    let links = (0..3).map(|number| format!(r#"{{"href":"https://{NAME}/u/{number}.json"}}"#));
    let links = links.collect::<Vec<_>>().join(",");
    let catalog = format!(r#"{{"linkset":[{{"anchor":"https://{NAME}/","service-desc":[{links}]}}]}}"#);
    let slow = Answer::status(404).header("Retry-After", "86400");
    let site = testweb::Host::new(NAME).robots("").file(MANIFEST, "application/json", AWP);
    let site = site.file("/.well-known/api-catalog", "application/linkset+json", catalog);
    let fixture =
        fixture((0..3).fold(site, |site, number| site.route(&format!("/u/{number}.json"), slow.clone())));
    let fixture = fixture.await;
    fixture.tools.store.standalone_end(&fixture.leased.token, &[]).await.unwrap();
    let mut requested = Vec::new();
    for visit in 0..5 {
        let opening = open(&fixture).await;
        assert!(!opening.is_parked, "visit {visit}: {:?}", opening.requested);
        requested.extend(opening.requested.into_iter().filter(|path| path.starts_with("/u/")));
        assert_eq!(requested.len(), visit + 1, "{requested:?}");
        advance_until_due(&fixture).await;
    }
    requested.sort();
    requested.dedup();
    assert_eq!(requested, ["/u/0.json", "/u/1.json", "/u/2.json"], "each has its turn");
}

#[tokio::test]
async fn waits_for_links_are_bounded_for_each_host() {
    let fixture = slow_site(Answer::text("")).await;
    let stop = Stop::default();
    let session = fixture.tools.egress.session(fixture.leased.token.site.clone());
    let mut visit = Visit::new(&fixture.tools, &stop, &fixture.leased, Scope::Site, session);
    let task = |host: &str, named_by| {
        let url = ManifestUrl::parse(&format!("https://{host}/x/1.json")).unwrap();
        Task { named_by, ..Task::new(url, policy::BodyKind::Manifest, manifest::Discovery::CatalogEntry) }
    };
    let mut waits = |task: &Task, wait: TimeDelta| {
        let until = clock::now() + wait;
        let is_left = visit.is_left(task, until);
        if !is_left {
            visit.count_wait(task, until);
        }
        !is_left
    };
    let [t1, t2] = ["t1.slow.example", "t2.slow.example"].map(|host| task(host, NamedBy::Others));
    assert!(!waits(&t1, TimeDelta::minutes(50)) && waits(&t1, TimeDelta::minutes(15)));
    assert!(!waits(&t1, TimeDelta::minutes(15)), "the time of this host is used up");
    assert!(waits(&t2, TimeDelta::minutes(15)), "the other host has its own time");
    let own = task(NAME, NamedBy::Document);
    assert!(!waits(&own, TimeDelta::hours(2)), "the visit is saved instead of waiting");
    assert!((0..60).all(|_| waits(&own, TimeDelta::seconds(59))), "short waits are not counted");
    let turns = (0..20).filter(|_| waits(&own, TimeDelta::minutes(10))).count();
    assert_eq!(turns, usize::try_from(WAITS_AT_OWN_HOSTS_MAX).unwrap());
    let t3 = task("t3.slow.example", NamedBy::Others);
    assert!(!waits(&t3, TimeDelta::minutes(1)), "the hour is used up");
}

#[tokio::test]
async fn a_file_proves_a_claim_to_a_site_with_a_delay_of_a_day() {
    let fixture = slow_site(Answer::text("User-agent: *\nCrawl-delay: 86400\n")).await;
    let (store, site) = (&fixture.tools.store, &fixture.leased.site.name);
    store.claim_secret_keep("secret").await.unwrap();
    let proof = |key| {
        let issued = ClaimAuthority::new("secret").issue(site, &[key; KEY_BYTES]);
        format!("{TOKEN_PREFIX}{}\n", issued.token)
    };
    let ask = async || {
        // a check that is requested in the same millisecond would count as done
        clock::advance(TimeDelta::seconds(1));
        assert!(store.claim_ask(site, clock::now(), clock::now()).await.unwrap());
    };
    let owner = async || store.claim_find(site).await.unwrap().and_then(|claim| claim.owner);

    ask().await;
    fixture.web.set_file(NAME, FILE_PATH, "text/plain", proof(1));
    assert_eq!(open(&fixture).await.requested, [ROBOTS_PATH]);
    advance_until_due(&fixture).await;
    let checked = open(&fixture).await;
    assert_eq!((checked.requested, checked.is_parked), (vec![FILE_PATH.to_owned()], true));
    let first = owner().await.expect("the claim is saved while the visit waits");
    assert_eq!(first.proof, Proof::File);

    // if a check is requested while the visit waits, its file is requested after some other paths
    fixture.web.set_file(NAME, FILE_PATH, "text/plain", proof(2));
    ask().await;
    for number in 0..=4 {
        advance_until_due(&fixture).await;
        assert_eq!(open(&fixture).await.requested, [ROBOTS_PATH]);
        advance_until_due(&fixture).await;
        let requested = open(&fixture).await.requested;
        assert_eq!(requested == [FILE_PATH], number == 4, "{requested:?} after {number}");
    }
    assert_ne!(owner().await.expect("an owner").key_hash, first.key_hash);
}

/// Number of openings until the manifest is requested. A check of the claim is requested before each of them, or never.
async fn openings_until_the_manifest(is_checked: bool) -> usize {
    let fixture = slow_site(Answer::text("User-agent: *\nCrawl-delay: 86400\n")).await;
    let (store, site) = (&fixture.tools.store, &fixture.leased.site.name);
    store.claim_secret_keep("secret").await.unwrap();
    for number in 1..=OPENINGS_MAX {
        if is_checked {
            store.claim_ask(site, clock::now(), clock::now()).await.unwrap();
        }
        if open(&fixture).await.requested == [MANIFEST] {
            return number;
        }
        advance_until_due(&fixture).await;
    }
    panic!("{:?}", fixture.paths());
}

#[tokio::test]
async fn requested_checks_of_a_claim_do_not_displace_manifests() {
    let (usual, checked) =
        (openings_until_the_manifest(false).await, openings_until_the_manifest(true).await);
    // the file is requested first, and again after every four results; each request needs robots.txt again
    assert!(checked <= usual + usual / 4 + 4, "{checked} instead of {usual}");
}

/// The proof is in a record, and the name servers fail.
#[tokio::test]
async fn an_open_check_of_a_claim_does_not_repeat_its_request_after_each_delay() {
    let fixture = slow_site(Answer::text("User-agent: *\nCrawl-delay: 86400\n")).await;
    let (store, site) = (&fixture.tools.store, &fixture.leased.site.name);
    assert_eq!(open(&fixture).await.requested, [ROBOTS_PATH]);
    assert!(store.claim_ask(site, clock::now(), clock::now()).await.unwrap());
    let mut resumed = report(&fixture).await.state;
    let parked = resumed.parked.clone().expect("a parked visit");
    let next = |site: &SiteState, now| {
        let progress = Progress::resume(site, now).expect("progress");
        progress.plan.tasks().next().map(|task| task.url.path().to_owned())
    };
    assert_eq!(next(&resumed, parked.resume_at).as_deref(), Some(FILE_PATH));
    let mut progress = Progress::resume(&resumed, parked.resume_at).expect("progress");
    assert!(progress.plan.next(&Scope::Site).is_some(), "the file is requested");
    progress.claim_file_at = Some(parked.resume_at);
    let url = ManifestUrl::parse("https://slow.example/x.json").unwrap();
    let task = Task::new(url, policy::BodyKind::Manifest, manifest::Discovery::Root);
    for _ in 0..4 {
        let result = fetched::Fetched::unanswered(&task, policy::FetchOutcome::NotFound, None, clock::now());
        progress.findings.record(None, result);
    }
    resumed.parked = Some(ParkedVisit { progress: progress.park().unwrap(), ..parked.clone() });
    let later = |days| parked.resume_at + TimeDelta::days(days);
    assert_ne!(next(&resumed, later(1)).as_deref(), Some(FILE_PATH));
    resumed.claim.as_mut().expect("a claim").asked_at = Some(later(2));
    assert_eq!(next(&resumed, later(3)).as_deref(), Some(FILE_PATH), "a check was requested since then");
}

#[tokio::test]
async fn a_visit_that_is_requested_while_another_one_is_parked_follows_it() {
    let robots = format!("User-agent: *\nCrawl-delay: 86400\nAllow: {MANIFEST}$\nDisallow: /\n");
    let fixture = slow_site(Answer::text(robots)).await;
    let store = &fixture.tools.store;
    assert_eq!(open(&fixture).await.requested, [ROBOTS_PATH]);
    let again = Seed { revisit_now: true, ..Seed::of_host(fixture.leased.site.name.apex()) };
    store.seeds_add(&[again], clock::now()).await.unwrap();
    clock::advance(LATE);
    assert!(open(&fixture).await.requested.is_empty(), "the delay comes first");
    advance_until_due(&fixture).await;
    assert_eq!(open(&fixture).await.requested, [MANIFEST]);
    let ended = report(&fixture).await;
    assert_eq!(ended.visits.len(), 1);
    assert!(ended.summary.next_visit_at.expect("a visit") <= clock::now(), "{:?}", ended.summary);
    // its requests wait for the delay like any other
    assert!(open(&fixture).await.requested.is_empty());
    advance_until_due(&fixture).await;
    assert_eq!(open(&fixture).await.requested, [ROBOTS_PATH]);
}

//! Tests of signed agent cards. Keys are requested like any document of the site, and changed keys change the result.

#![expect(clippy::unwrap_used, reason = "a failed test should show the line")]

#[path = "support/moved.rs"]
mod moved;
#[expect(dead_code, reason = "each test program uses its own part")]
mod support;

use manifest::model::SignatureCheck;
use manifest::{CardSigner, ManifestId, ManifestUrl, NamedBy};
use moved::moved;
use policy::FetchOutcome;
use serde_json::{Map, Value, json};
use support::Crawl;
use testweb::{Answer, Host};

const HOST: &str = "agents.example";
const CARD: &str = "/.well-known/agent-card.json";
const KEYS: &str = "/keys.json";

/// A key of Ed25519 in PKCS #8 with this seed.
fn signer(seed: u8) -> CardSigner {
    let prefix = data_encoding::HEXLOWER.decode(b"302e020100300506032b657004220420").unwrap();
    CardSigner::from_pkcs8(&[prefix, vec![seed; 32]].concat()).unwrap()
}

/// An agent card that links to its key set.
fn card(signer: &CardSigner, keys: &str) -> String {
    let card = json!({"name": "Seats", "description": "Books seats", "version": "1.0.0", "capabilities": {},
        "supportedInterfaces": [{"url": "https://agents.example/a2a", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}],
        "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"],
        "skills": [{"id": "book", "name": "Book", "description": "Books a seat", "tags": ["seats"]}]});
    let mut card: Map<String, Value> = card.as_object().unwrap().clone();
    signer.sign(&mut card, &[], keys);
    Value::Object(card).to_string()
}

fn own_keys() -> String {
    format!("https://{HOST}{KEYS}")
}

fn host(robots: &str) -> Host {
    Host::new(HOST).robots(robots).file(CARD, "application/json", card(&signer(1), &own_keys()))
}

fn with_keys(host: Host) -> Host {
    host.file(KEYS, "application/json", signer(1).key_set().to_string())
}

async fn check(crawl: &Crawl) -> SignatureCheck {
    let url = ManifestUrl::parse(&format!("https://{HOST}{CARD}")).unwrap();
    let stored = crawl.store.manifest_find(&ManifestId::of(&url)).await.unwrap().expect("the card");
    stored.manifest.identity(NamedBy::Site).signature.into_owned()
}

async fn status(crawl: &Crawl) -> &'static str {
    check(crawl).await.status.as_str()
}

#[tokio::test]
async fn keys_are_requested_once_and_verify_the_card() {
    let mut crawl = Crawl::of([with_keys(host(""))]).await;
    crawl.pass().await;
    let check = check(&crawl).await;
    assert_eq!(check.status.as_str(), "verified", "{check:?}");
    assert_eq!(check.key_source, Some(own_keys()));
    assert!(check.checked_at.is_some());
    let requests = |crawl: &Crawl| crawl.paths(HOST).iter().filter(|path| *path == KEYS).count();
    assert_eq!(requests(&crawl), 1);
    let fetched = crawl.fetch(HOST, KEYS).await;
    assert_eq!(fetched.outcome, FetchOutcome::Found);
    assert!(fetched.linked_from.unwrap().as_str().ends_with(CARD));
    let summary = crawl.pass_again().await;
    assert_eq!((requests(&crawl), summary.manifests_changed), (1, 0), "{summary:?}");
    assert_eq!(crawl.outcome(HOST, KEYS).await, FetchOutcome::NotModified);
    assert_eq!(status(&crawl).await, "verified");
}

#[tokio::test]
async fn a_changed_key_set_is_checked_with_the_stored_card() {
    let mut crawl = Crawl::of([with_keys(host(""))]).await;
    crawl.pass().await;
    crawl.web.set_file(HOST, KEYS, "application/json", signer(2).key_set().to_string());
    crawl.pass_again().await;
    assert_eq!(crawl.outcome(HOST, CARD).await, FetchOutcome::NotModified);
    assert_eq!(status(&crawl).await, "invalid");
    crawl.web.set_file(HOST, CARD, "application/json", card(&signer(2), &own_keys()));
    crawl.pass_again().await;
    assert_eq!(crawl.outcome(HOST, KEYS).await, FetchOutcome::NotModified);
    assert_eq!(status(&crawl).await, "verified");
}

#[tokio::test]
async fn a_key_set_that_is_missing_twice_in_a_row_verifies_nothing() {
    let mut crawl = Crawl::of([with_keys(host(""))]).await;
    crawl.pass().await;
    crawl.web.set(HOST, KEYS, Answer::status(404));
    crawl.pass_again().await;
    assert_eq!(status(&crawl).await, "verified", "a key set that is missing once is kept");
    crawl.pass_again().await;
    assert_eq!(status(&crawl).await, "unresolvable");
    crawl.web.set_file(HOST, KEYS, "application/json", signer(1).key_set().to_string());
    crawl.pass_again().await;
    assert_eq!(status(&crawl).await, "verified");
}

#[tokio::test]
async fn an_expired_key_is_detected_without_any_change() {
    let keys = |offset_s: i64| {
        let mut keys = signer(1).key_set();
        keys["keys"][0]["exp"] = json!(support::now().timestamp() + offset_s);
        keys.to_string()
    };
    let mut crawl = Crawl::of([host("").file(KEYS, "application/json", keys(-298))]).await;
    crawl.pass().await;
    assert_eq!(status(&crawl).await, "verified", "within the skew of clocks");
    for _ in 0..200 {
        crawl.pass_again().await;
        if status(&crawl).await != "verified" {
            break;
        }
    }
    assert_eq!(crawl.outcome(HOST, KEYS).await, FetchOutcome::NotModified);
    assert_eq!(status(&crawl).await, "invalid");
}

/// The index shows the card as verified until a visit finds that the key has expired.
#[tokio::test]
async fn a_key_that_expires_brings_the_next_visit_forward() {
    let expires_at = support::now() + chrono::TimeDelta::days(3);
    let mut keys = signer(1).key_set();
    keys["keys"][0]["exp"] = json!(expires_at.timestamp());
    let mut crawl = Crawl::of([host("").file(KEYS, "application/json", keys.to_string())]).await;
    crawl.config.revisit_every = Some(std::time::Duration::from_hours(10 * 24));
    crawl.pass().await;
    assert_eq!(status(&crawl).await, "verified");
    let summary = crawl.report(HOST).await.summary;
    let late = summary.next_visit_at.unwrap() - expires_at;
    assert!((4..=6).contains(&late.num_minutes()), "{late}: after the skew of clocks");
}

#[tokio::test]
async fn robots_txt_applies_to_keys() {
    let crawl = Crawl::of([with_keys(host(&format!("User-agent: *\nDisallow: {KEYS}\n")))]).await;
    crawl.pass().await;
    assert_eq!(status(&crawl).await, "unresolvable");
    assert_eq!(crawl.outcome(HOST, KEYS).await, FetchOutcome::RobotsDenied);
    assert!(!crawl.paths(HOST).contains(&KEYS.to_owned()));
}

#[tokio::test]
async fn keys_of_other_sites_cause_no_request() {
    let victim = || {
        Host::new("victim.example").robots("").file(KEYS, "application/json", signer(1).key_set().to_string())
    };
    let host = Host::new(HOST).robots("").file(
        CARD,
        "application/json",
        card(&signer(1), &format!("https://victim.example{KEYS}")),
    );
    let web = testweb::Web::builder().hosts([host, victim()]).start().await.unwrap();
    let crawl = Crawl::on(web, HOST).await;
    crawl.pass().await;
    assert_eq!(status(&crawl).await, "unresolvable");
    assert!(crawl.paths("victim.example").is_empty());
    let victim = manifest::SiteName::parse("victim.example").unwrap();
    assert!(crawl.store.site_report(&victim, 1).await.unwrap().is_none(), "it does not become a seed either");
}

/// A year in seconds.
const YEAR_S: u32 = 365 * 86_400;

/// The card and its key set, both fresh for a year, as the site says.
fn fresh_for_a_year() -> Host {
    let card = Answer::json(card(&signer(1), &own_keys())).max_age(YEAR_S);
    let keys = Answer::json(signer(1).key_set().to_string()).max_age(YEAR_S);
    Host::new(HOST).robots("").route(CARD, card).route(KEYS, keys)
}

/// Moves a crawl to a database in which every copy was received this much earlier and is fresh for the rest of a year, as an earlier
/// version stored it.
async fn received_earlier(crawl: &mut Crawl, earlier: chrono::TimeDelta) -> tempfile::TempDir {
    const FRESH_UNTIL: usize = 10;
    const FETCHED_AT: usize = 12;
    moved(crawl, |table, values| {
        if table == "resource" && values[FRESH_UNTIL].is_i64() {
            let fetched_at = values[FETCHED_AT].as_i64().unwrap() - earlier.num_milliseconds();
            values[FETCHED_AT] = fetched_at.into();
            values[FRESH_UNTIL] = (fetched_at + i64::from(YEAR_S) * 1_000).into();
        }
        true
    })
    .await
}

/// The paths other than robots.txt that the last pass requested of the card and its keys.
fn requested(crawl: &Crawl) -> Vec<String> {
    crawl.paths(HOST).into_iter().filter(|path| path == CARD || path == KEYS).collect()
}

/// The domain may have another holder by then.
#[tokio::test]
async fn a_card_that_is_fresh_for_a_year_is_requested_again_after_30_days() {
    let mut crawl = Crawl::of([fresh_for_a_year()]).await;
    crawl.pass().await;
    assert_eq!(status(&crawl).await, "verified");
    let next = crawl.report(HOST).await.summary.next_visit_at.unwrap() - support::now();
    assert!(next.num_days() <= 30, "{next}");
    let _dir = received_earlier(&mut crawl, chrono::TimeDelta::days(29)).await;
    crawl.pass_again().await;
    assert_eq!(requested(&crawl), [KEYS], "the card is fresh, its keys are not");
    let _dir = received_earlier(&mut crawl, chrono::TimeDelta::days(30)).await;
    crawl.web.set(HOST, CARD, Answer::status(410));
    crawl.pass_again().await;
    assert_eq!(requested(&crawl), [CARD]);
    assert_eq!(crawl.outcome(HOST, CARD).await, FetchOutcome::Gone);
}

#[tokio::test]
async fn a_removed_key_is_noticed_after_a_day() {
    let mut crawl = Crawl::of([fresh_for_a_year()]).await;
    crawl.pass().await;
    let next = crawl.report(HOST).await.summary.next_visit_at.unwrap() - support::now();
    assert!(next.num_hours() <= 24, "the card alone does not delay the next visit: {next}");
    crawl.web.set_file(HOST, KEYS, "application/json", signer(2).key_set().to_string());
    crawl.pass_again().await;
    assert_eq!((requested(&crawl).is_empty(), status(&crawl).await), (true, "verified"));
    let _dir = received_earlier(&mut crawl, chrono::TimeDelta::days(1)).await;
    crawl.pass_again().await;
    assert_eq!(requested(&crawl), [KEYS]);
    assert_eq!(status(&crawl).await, "invalid");
}

/// A copy answers a request of the operator's `check` or of the owner only if the server confirms it.
#[tokio::test]
async fn a_visit_that_the_owner_requests_does_not_use_fresh_copies() {
    let mut crawl = Crawl::of([fresh_for_a_year()]).await;
    crawl.pass().await;
    let site = manifest::SiteName::parse(HOST).unwrap();
    for replaced in [false, true] {
        if replaced {
            crawl.web.set_file(HOST, KEYS, "application/json", signer(2).key_set().to_string());
        }
        crawl.store.visit_request_of_owner(&site, support::now()).await.unwrap();
        crawl.pass_again().await;
        assert_eq!(requested(&crawl), [CARD, KEYS]);
        assert_eq!(crawl.outcome(HOST, CARD).await, FetchOutcome::NotModified, "with its validators");
    }
    assert_eq!(status(&crawl).await, "invalid");
}

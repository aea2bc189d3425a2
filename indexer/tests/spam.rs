//! Spam ranks lower, with a reason: repeated words, near copies, names of other publishers, look-alikes and siblings.

#![expect(clippy::unwrap_used, reason = "a failed step fails the test")]

mod support;
mod visits;

use std::collections::BTreeMap;
use std::path::Path;

use chrono::{DateTime, TimeDelta, Utc};
use indexer::follow::{self, Mode};
use indexer::{Hit, IndexBuilder, IndexConfig, SearchRequest, Searcher};
use manifest::model::{Format, Link};
use manifest::{CapabilityId, ContentHash, ManifestId, ManifestUrl, Publisher};
use serde_json::{Value, json};
use store::{FeedPosition, Store, StoredManifest};
use tokio_util::sync::CancellationToken;

const FORECAST: &str =
    "Forecast of the weather at a place for the next ten days, with rain, wind and sunshine by hour.";

fn site(domain: &str, name: &str, day: i64, capabilities: &[(&str, &str)]) -> StoredManifest {
    let mut stored = support::manifest(domain, name);
    stored.first_seen_at += TimeDelta::days(day);
    for (id, description) in capabilities {
        support::add(&mut stored, id, description);
    }
    stored
}

/// A site that is old and large enough to be known.
fn known(domain: &str, name: &str) -> StoredManifest {
    let capabilities =
        [("forecast", FORECAST), ("past_days", "The weather of past days."), ("warn", "Warns of storms.")];
    site(domain, name, 0, &capabilities)
}

fn index(web: &[StoredManifest]) -> (tempfile::TempDir, Searcher) {
    let dir = tempfile::tempdir().unwrap();
    let builder = IndexBuilder::begin(dir.path(), "feed").unwrap();
    for stored in web {
        builder.add(stored).unwrap();
    }
    builder.finish(FeedPosition(1)).unwrap();
    let searcher = Searcher::open(dir.path()).unwrap();
    (dir, searcher)
}

/// The reasons of each spam site, with the other site of a reason.
fn spam(searcher: &Searcher) -> BTreeMap<String, Vec<String>> {
    let sites = searcher.spam(100).unwrap().into_iter();
    let cause = |cause: indexer::SpamCause| match cause.of {
        Some(of) => format!("{} {of}", cause.reason),
        None => cause.reason.to_string(),
    };
    sites.map(|of| (of.site.to_string(), of.causes.into_iter().map(cause).collect())).collect()
}

fn search(searcher: &Searcher, query: &str) -> Vec<Hit> {
    let phrasings = vec![query.to_owned()];
    let request = SearchRequest { phrasings, explain: true, limit: 20, ..SearchRequest::default() };
    searcher.search(&request).unwrap().hits
}

fn explained(hit: &Hit) -> Value {
    serde_json::from_str(hit.explanation.as_ref().unwrap().as_str()).unwrap()
}

#[test]
fn stuffed_texts_rank_below_honest_ones_and_have_a_reason() {
    let stuffed = "weather forecast ".repeat(20);
    let web = [
        known("skycast.example", "Skycast"),
        site("stuffed.example", "Weather Forecast", 0, &[("weather_forecast", &stuffed)]),
    ];
    let (_dir, searcher) = index(&web);
    let hits = search(&searcher, "weather forecast");
    assert_eq!(hits[0].site.as_str(), "skycast.example");
    assert_eq!(explained(&hits[0]).get("spam"), None);
    let last = hits.iter().find(|hit| hit.site.as_str() == "stuffed.example").unwrap();
    let factor = f64::from(0.1_f32);
    let spam = explained(last)["spam"].clone();
    assert_eq!(spam["causes"], json!([{"reason": "repeated_words"}]));
    assert!((spam["factor"].as_f64().unwrap() - factor).abs() < 1e-3, "{spam}");
    let suggested = searcher.suggest("weather f", 10).unwrap();
    assert!(suggested.iter().all(|of| of.text != "weather forecast"), "no suggestions: {suggested:?}");
    // spam is still found by its name, and by words that no other site uses
    assert_eq!(search(&searcher, "stuffed.example")[0].site.as_str(), "stuffed.example");
}

#[test]
fn thousands_of_near_copies_do_not_keep_others_from_being_ranked() {
    let described =
        |at: usize| format!("Weather forecast tomorrow for city{at}: cheap, best, free and official");
    let texts: Vec<(String, String)> =
        (0..400).map(|at| (format!("weather_forecast_{at}"), described(at))).collect();
    let copies: Vec<(&str, &str)> = texts.iter().map(|(id, text)| (id.as_str(), text.as_str())).collect();
    let web = [known("skycast.example", "Skycast"), site("doorways.example", "Weather Forecast", 0, &copies)];
    let (_dir, searcher) = index(&web);
    assert_eq!(spam(&searcher)["doorways.example"], ["near_copies"]);
    assert_eq!(search(&searcher, "weather forecast tomorrow")[0].site.as_str(), "skycast.example");
    let listed = searcher.spam(100).unwrap();
    assert_eq!((listed.len(), listed[0].capabilities), (1, 400));
}

#[test]
fn a_look_alike_has_the_name_of_an_older_publisher() {
    let old = known("harbourbank.example", "Harbour Bank");
    let of = |domain: &str, name: &str, day: i64| site(domain, name, day, &[("balance", "Shows a balance.")]);
    let web = [
        old.clone(),
        of("harb0urbank.example", "Harbour Bank", 60),
        of("harbourbnak.example", "Harbourbank Online", 60),
        // another publisher that uses its own similar name, the same name with another hyphen, and a look-alike of the same age
        of("harbourbanks.example", "Harbour Banks", 60),
        of("harbour-bank.example", "Harbour Bank", 60),
        of("harborbank.example", "Harbour Bank", 20),
    ];
    let (_dir, searcher) = index(&web);
    let expected = |site: &str| (site.to_owned(), vec!["look_alike harbourbank.example".to_owned()]);
    let both = BTreeMap::from([expected("harb0urbank.example"), expected("harbourbnak.example")]);
    assert_eq!(spam(&searcher), both);

    let mut linking = old;
    linking.manifest.links = vec![Link::new("related", "https://harb0urbank.example/".to_owned(), None)];
    let mut listing = linking.clone();
    listing.manifest.detection.format = Format::Ard;
    let mut marketplace = listing.clone();
    let sellers = (1..=3).map(|at| Link::new("related", format!("https://seller{at}.example/"), None));
    marketplace.manifest.links.extend(sellers);
    for own in [linking, listing] {
        let (_dir, searcher) = index(&[own, web[1].clone()]);
        assert!(spam(&searcher).is_empty(), "a site of the publisher itself");
    }
    let (_dir, searcher) = index(&[marketplace, web[1].clone()]);
    assert_eq!(
        spam(&searcher),
        BTreeMap::from([expected("harb0urbank.example")]),
        "one of four listed sites"
    );
    let few = site("harbourbank.example", "Harbour Bank", 0, &[("balance", "Shows a balance.")]);
    let (_dir, searcher) = index(&[few, web[1].clone()]);
    assert!(spam(&searcher).is_empty(), "not known");
}

/// An attacker registers a look-alike of a publisher that is not in the index yet, or signs a document.
#[test]
fn an_imitation_does_not_make_a_later_publisher_spam() {
    let later = |domain: &str, name: &str| {
        let mut stored = known(domain, name);
        stored.first_seen_at += TimeDelta::days(60);
        stored
    };
    for (imitation, publisher, name) in [
        ("harb0urbank.example", "harbourbank.example", "Harbour Bank"),
        ("xn--harburbank-hvi.example", "harbourbank.example", "Harbour Bank"), // a Cyrillic о
        ("rnelonfarm.example", "melonfarm.example", "Melonfarm"),              // r and n look like m
    ] {
        let of = |site: &str| vec![format!("look_alike {site}")];
        let (_dir, searcher) = index(&[known(imitation, name), later(publisher, name)]);
        assert!(spam(&searcher).is_empty(), "{imitation} was first: {:?}", spam(&searcher));
        let (_dir, searcher) = index(&[known(publisher, name), later(imitation, name)]);
        assert_eq!(spam(&searcher), BTreeMap::from([(imitation.to_owned(), of(publisher))]));
    }
}

#[test]
fn lists_of_names_are_spam_and_integrations_are_not() {
    let names = [
        "Skyhop",
        "Lindenhof",
        "Claykiln",
        "Northstitch",
        "Brightsmile",
        "Daybook",
        "Skycast",
        "Quickbite",
        "Hirewell",
    ];
    let mut web: Vec<StoredManifest> =
        names.iter().map(|name| known(&format!("{}.example", name.to_lowercase()), name)).collect();
    let list = format!("Forecast like {}.", names.join(", "));
    web.push(site("names.example", "Names", 60, &[("forecast", &list)]));
    let few = format!("Sends a forecast to {}.", names[..4].join(", "));
    web.push(site("integration.example", "Integration", 60, &[("send", &few)]));
    let each: Vec<(String, String)> = names
        .iter()
        .map(|name| (format!("{name}_create"), format!("Creates a record in {name} for the account.")))
        .collect();
    let each: Vec<(&str, &str)> = each.iter().map(|(id, text)| (id.as_str(), text.as_str())).collect();
    web.push(site("hub.example", "Hub", 60, &each));
    // A document with more names and many other words does not hide another document of its site.
    web.push(site("decoy.example", "Names", 60, &[("forecast", &list)]));
    let made_up: Vec<String> =
        ('a'..='z').flat_map(|a| ('a'..='c').map(move |b| format!("zz{a}{b}q"))).collect();
    let mut decoy = site("decoy.example", "Decoy", 60, &[("read", &made_up.join(" "))]);
    let url = ManifestUrl::parse("https://decoy.example/.well-known/agent-card.json").unwrap();
    (decoy.manifest.id, decoy.manifest.url) = (ManifestId::of(&url), url);
    decoy.manifest.capabilities[0].id = CapabilityId::of_key("decoy");
    web.push(decoy);
    let (_dir, searcher) = index(&web);
    let brand_names = |site: &str| (site.to_owned(), vec!["brand_names".to_owned()]);
    assert_eq!(spam(&searcher), ["decoy.example", "names.example"].map(brand_names).into());
}

/// Anybody may register domains with the words of a text.
#[test]
fn domains_with_two_common_words_do_not_make_a_text_spam() {
    let words: Vec<&str> =
        "book flight hotel train weather calendar invoice order parcel music".split(' ').collect();
    let mut web: Vec<StoredManifest> =
        words.windows(2).map(|pair| known(&format!("{}.example", pair.concat()), &pair.concat())).collect();
    web.push(site("victim.example", "Victim", 60, &[("book", &words.join(" "))]));
    let (_dir, searcher) = index(&web);
    assert_eq!(spam(&searcher), BTreeMap::new());
}

/// The documents of the domain may come after those of any number of customers.
#[test]
fn a_customer_of_a_site_does_not_make_the_site_spam() {
    let names =
        ["Skyhop", "Lindenhof", "Claykiln", "Northstitch", "Brightsmile", "Daybook", "Skycast", "Quickbite"];
    let mut web: Vec<StoredManifest> =
        names.iter().map(|name| known(&format!("{}.example", name.to_lowercase()), name)).collect();
    let list = format!("Forecast like {}.", names.join(", "));
    for customer in 0..70 {
        let mut card = site("plat.example", "Customer", 60, &[("forecast", &list)]);
        let url = format!("https://t{customer}.plat.example/.well-known/agent-card.json");
        let url = ManifestUrl::parse(&url).unwrap();
        (card.manifest.id, card.manifest.url) = (ManifestId::of(&url), url);
        card.manifest.capabilities[0].id = CapabilityId::of_key(&format!("customer {customer}"));
        card.publisher = Publisher::Host;
        web.push(card);
    }
    web.push(site("plat.example", "Platform", 60, &[("translate", "Translates documents.")]));
    let (_dir, searcher) = index(&web);
    assert_eq!(spam(&searcher), BTreeMap::new());
}

/// A platform whose catalog lists the documents of its customers, one of whom lists names of other publishers.
#[test]
fn customers_do_not_make_other_documents_of_their_platform_spam() {
    let names: Vec<String> = ('a'..='l').map(|letter| format!("Brand{letter}name")).collect();
    let web: Vec<StoredManifest> =
        names.iter().map(|name| known(&format!("{}.example", name.to_lowercase()), name)).collect();
    let of_customer = |at: usize, description: &str| {
        let mut stored = site("platform.example", "Customer", 60, &[("forecast", description)]);
        let host = format!("c{at}.platform.example");
        let url = ManifestUrl::parse(&format!("https://{host}/.well-known/agent-card.json")).unwrap();
        stored.publisher = Publisher::Host;
        (stored.manifest.id, stored.manifest.url) = (ManifestId::of(&url), url);
        stored.manifest.capabilities[0].id = CapabilityId::of_key(&host);
        stored
    };
    let list = format!("Forecast like {}.", names.join(", "));
    let spammer = of_customer(0, &list);
    let honest = (1..100).map(|at| of_customer(at, &format!("Sends letters number {at}.")));
    let own = site("platform.example", "Platform", 60, &[("translate", "Translates documents.")]);
    // the documents of customers are indexed first
    let all: Vec<StoredManifest> =
        web.iter().cloned().chain([spammer.clone()]).chain(honest).chain([own]).collect();
    let (_dir, searcher) = index(&all);
    assert!(spam(&searcher).is_empty(), "the platform has a document of its own: {:?}", spam(&searcher));
    let (_dir, searcher) = index(&all[..all.len() - 1]);
    assert!(spam(&searcher).is_empty(), "other customers: {:?}", spam(&searcher));
    let copies = (0..70).map(|at| {
        let mut copy = spammer.clone();
        let url = ManifestUrl::parse(&format!("https://c0.platform.example/{at}/agent-card.json")).unwrap();
        (copy.manifest.id, copy.manifest.url) = (ManifestId::of(&url), url);
        copy.manifest.capabilities[0].id = CapabilityId::of_key(&at.to_string());
        copy
    });
    let other = of_customer(1, "Sends letters.");
    let (_dir, searcher) = index(&web.iter().cloned().chain(copies).chain([other]).collect::<Vec<_>>());
    assert!(spam(&searcher).is_empty(), "a customer that was not read: {:?}", spam(&searcher));
    let alone: Vec<StoredManifest> = web.into_iter().chain([spammer]).collect();
    let (_dir, searcher) = index(&alone);
    let expected = BTreeMap::from([("platform.example".to_owned(), vec!["brand_names".to_owned()])]);
    assert_eq!(spam(&searcher), expected, "a site with one publisher is judged");
}

#[test]
fn siblings_link_to_each_other_and_have_the_same_texts() {
    let ring = |at: usize, description: &str, links: &[usize]| {
        let stored = site(
            &format!("ring{at}.example"),
            "Ring",
            i64::try_from(at).unwrap(),
            &[("forecast", description)],
        );
        let link = |at: &usize| Link::new("related", format!("https://ring{at}.example/"), None);
        let mut stored = stored;
        stored.manifest.links = links.iter().map(link).collect();
        stored
    };
    let (_dir, searcher) = index(&[
        ring(1, FORECAST, &[2, 3]),
        ring(2, FORECAST, &[1]),
        ring(3, FORECAST, &[1, 4, 5, 6]),
        ring(4, "Something else that partners offer.", &[3]),
        ring(5, FORECAST, &[]),
    ]);
    let expected = ["ring2.example", "ring3.example"]
        .map(|site| (site.to_owned(), vec!["sibling_sites ring1.example".to_owned()]));
    assert_eq!(spam(&searcher), BTreeMap::from(expected));
    let (_dir, searcher) = index(&[ring(1, FORECAST, &[2]), ring(2, FORECAST, &[1])]);
    assert!(spam(&searcher).is_empty(), "two domains of one publisher");
    let mut catalog = ring(1, FORECAST, &[2, 3]);
    catalog.manifest.detection.format = Format::Ard;
    let (_dir, searcher) = index(&[catalog, ring(2, FORECAST, &[1]), ring(3, FORECAST, &[1])]);
    assert!(spam(&searcher).is_empty(), "a catalog lists the sites of others");
}

/// A visit that finds this manifest.
async fn visit(store: &Store, stored: StoredManifest, now: DateTime<Utc>) {
    let mut manifest = stored.manifest;
    let body = serde_json::to_vec(&manifest).unwrap();
    manifest.content_hash = ContentHash::of(&body);
    let (site, url) = (manifest.url.site(), manifest.url.to_string());
    let fetched = visits::fetched(&url, Some(manifest), Some(body), now);
    visits::save(store, site.as_str(), vec![fetched], now).await;
}

async fn commit(store: &Store, dir: &Path) {
    let config = IndexConfig::in_data_dir(dir);
    follow::run(store.clone(), config, CancellationToken::new(), Mode::Once).await.unwrap();
}

/// A reader that follows all commits gets the same results as a reader that opens the last commit.
#[tokio::test]
async fn each_commit_compares_new_sites_with_known_ones() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open_in_data_dir(dir.path()).await.unwrap();
    let day = |number: i64| DateTime::UNIX_EPOCH + TimeDelta::days(20_000 + number);
    let index_dir = IndexConfig::in_data_dir(dir.path()).dir;
    let names =
        ["Skyhop", "Lindenhof", "Claykiln", "Northstitch", "Brightsmile", "Daybook", "Skycast", "Quickbite"];
    for name in &names[1..] {
        visit(&store, known(&format!("{}.example", name.to_lowercase()), name), day(0)).await;
    }
    visit(&store, known("harbourbank.example", "Harbour Bank"), day(0)).await;
    commit(&store, dir.path()).await;
    let following = Searcher::open(&index_dir).unwrap();
    let check = |expected: &[&str]| {
        following.reload().unwrap();
        let found: Vec<String> = spam(&following).into_keys().collect();
        assert_eq!(found, expected, "following");
        let opened = Searcher::open(&index_dir).unwrap();
        assert_eq!(spam(&opened), spam(&following), "opened");
    };
    check(&[]);

    let alike = |name: &str| site("harb0urbank.example", name, 0, &[("balance", "Shows a balance.")]);
    visit(&store, alike("Harbour Bank"), day(60)).await;
    let list = format!("Forecast like {}.", names.join(", "));
    visit(&store, site("names.example", "Names", 0, &[("forecast", &list)]), day(60)).await;
    commit(&store, dir.path()).await;
    check(&["harb0urbank.example"]);

    // a site with one of the listed names is added in a later commit, although it was first seen long before
    visit(&store, known("skyhop.example", "Skyhop"), day(0)).await;
    commit(&store, dir.path()).await;
    check(&["harb0urbank.example", "names.example"]);

    visit(&store, alike("Harbour Zero"), day(61)).await;
    commit(&store, dir.path()).await;
    check(&["names.example"]);
}

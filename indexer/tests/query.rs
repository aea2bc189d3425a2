//! Queries: phrases, exact names, languages, time limits, and a hundred thousand hostile texts, twenty thousand per seed.

#![expect(clippy::unwrap_used, reason = "a failed step fails the test")]

mod indexed;
mod support;

use std::time::Duration;

use indexed::searcher;
use indexer::{FacetKey, SearchError, SearchRequest, Searcher};
use manifest::model::{SemanticType, TypeSource};
use store::StoredManifest;

fn request(query: &str) -> SearchRequest {
    SearchRequest { phrasings: vec![query.to_owned()], ..SearchRequest::default() }
}

fn found(searcher: &Searcher, query: &str) -> Vec<String> {
    let answer = searcher.search(&request(query)).unwrap();
    answer.hits.into_iter().map(|hit| hit.native_id).collect()
}

fn semantic_type(name: &str) -> SemanticType {
    SemanticType { name: name.to_owned(), source: TypeSource::Declared, confidence: 1.0, rule: None }
}

fn web() -> Vec<StoredManifest> {
    let mut air = support::manifest("skyhop.example", "SkyHop");
    support::add(&mut air, "book_seat", "Book a flight: reserves a seat and takes the payment.");
    support::add(&mut air, "flight_status", "Tells whether a flight is on time, and at which gate.");
    let mut shop = support::manifest("shop.example", "Corner Shop");
    let cart = support::add(&mut shop, "cart_add", "Put a product into the cart.");
    cart.semantic_types = vec![semantic_type("commerce:cart-add")];
    let order = support::add(&mut shop, "order", "Order what is in the cart. Time on the road: two days.");
    order.semantic_types = vec![semantic_type("commerce:order-create")];
    support::add(
        &mut shop,
        "bookings",
        "Talk about flight simulators and flights of stairs, flight after flight.",
    );
    let mut bahn = support::manifest("bahn.example", "Bahn");
    bahn.manifest.language = Some("de".to_owned());
    support::add(
        &mut bahn,
        "suche",
        "Sucht freie Plätze in Zügen und bucht sie für die angegebenen Reisenden.",
    );
    vec![air, shop, bahn]
}

#[test]
fn a_phrase_matches_adjacent_words_of_one_text() {
    let (_dir, searcher) = searcher(&web());
    assert_eq!(found(&searcher, "\"on time\" flight"), ["flight_status"]);
    assert_eq!(found(&searcher, "\"flight is on time\""), ["flight_status"]);
    assert_eq!(found(&searcher, "\"in the cart\""), ["order"]);
    assert!(found(&searcher, "\"time on a flight\"").is_empty());
    // The end of one text and the beginning of the next are not a phrase.
    assert!(found(&searcher, "\"seat book\"").is_empty());
    assert_eq!(found(&searcher, "cart -\"two days\""), ["cart_add"]);
}

#[test]
fn ranks_an_exact_id_name_or_site_first() {
    let (_dir, searcher) = searcher(&web());
    assert_eq!(found(&searcher, "bookings")[0], "bookings");
    assert_eq!(found(&searcher, "Flight Status")[0], "flight_status");
    let id = searcher.search(&request("book a flight")).unwrap().hits[0].id.clone();
    let by_id = searcher.search(&request(id.as_str())).unwrap();
    assert_eq!((&by_id.hits[0].id, by_id.total >= by_id.hits.len() as u64), (&id, true));
    let of_site = found(&searcher, "shop.example");
    assert_eq!(of_site.len(), 3, "{of_site:?}");
}

/// Sixty capabilities of another site whose names are a domain, an id and an identifier.
#[test]
fn a_domain_or_an_id_does_not_match_other_names() {
    let id = searcher(&web()).1.search(&request("cart add")).unwrap().hits[0].id.clone();
    let mut squatter = support::manifest("squatter.example", "shop.example");
    for number in 0..60 {
        for name in ["shop.example", id.as_str(), "urn:air:shop.example:awp:cart_add"] {
            let capability = support::add(&mut squatter, &format!("{name} {number}"), name);
            capability.name = name.to_owned();
            capability.title = Some(name.to_owned());
        }
    }
    let mut web = web();
    web.insert(0, squatter);
    let (_dir, searcher) = searcher(&web);
    for (query, count) in [("shop.example", 3), ("SHOP.example", 3), (id.as_str(), 1)] {
        let answer = searcher.search(&request(query)).unwrap();
        let sites: Vec<&str> = answer.hits.iter().take(count).map(|hit| hit.site.as_str()).collect();
        assert_eq!(sites, vec!["shop.example"; count], "{query}");
    }
}

#[test]
fn a_namespace_with_a_star_matches_all_its_types() {
    let (_dir, searcher) = searcher(&web());
    let mut names = found(&searcher, "type:commerce:*");
    names.sort();
    assert_eq!(names, ["cart_add", "order"]);
    assert_eq!(found(&searcher, "type:commerce:* site:shop.example order")[0], "order");
    assert_eq!(found(&searcher, "type:commerce:cart-add"), ["cart_add"]);
}

#[test]
fn stems_words_in_their_own_language() {
    let (_dir, searcher) = searcher(&web());
    assert_eq!(
        found(&searcher, "Ich suche einen freien Platz im Zug für zwei Reisende, bitte buchen")[0],
        "suche"
    );
}

#[test]
fn limits_the_results_of_one_site_while_there_are_others() {
    let mut crowd = support::manifest("crowd.example", "Crowd");
    for at in 0..30 {
        support::add(&mut crowd, &format!("tea_{at}"), &format!("Order tea, the best tea, number {at}."));
    }
    let mut all = vec![crowd];
    for at in 0..10 {
        let mut stored = support::manifest(&format!("shop{at}.example"), "Shop");
        support::add(
            &mut stored,
            &format!("order_{at}"),
            "Order tea and many other things from far away places.",
        );
        all.push(stored);
    }
    let (_dir, searcher) = searcher(&all);
    let of_crowd = |query: &str, first: usize| {
        let answer = searcher.search(&SearchRequest { limit: 40, ..request(query) }).unwrap();
        let scores: Vec<f32> = answer.hits.iter().map(|hit| hit.score).collect();
        assert!(scores.is_sorted_by(|a, b| a >= b), "{scores:?}");
        answer.hits.iter().take(first).filter(|hit| hit.site.as_str() == "crowd.example").count()
    };
    assert!(of_crowd("order tea", 10) <= 6);
    assert_eq!(of_crowd("order tea", 40), 30, "no result is lost");
    assert_eq!(of_crowd("order tea site:crowd.example", 10), 10, "a site alone fills its page");
}

#[test]
fn fails_when_the_time_limit_is_over() {
    let (_dir, searcher) = searcher(&web());
    let error =
        searcher.search(&SearchRequest { time_max: Duration::ZERO, ..request("flight") }).unwrap_err();
    assert!(matches!(error, SearchError::OutOfTime { .. }), "{error}");
}

#[test]
fn rejects_a_filter_with_too_many_values() {
    let (_dir, searcher) = searcher(&web());
    let sites = |count: usize| (0..count).map(|at| format!("s{at}.example")).collect::<Vec<_>>().join(",");
    let error = searcher.search(&request(&format!("order site:{}", sites(101)))).unwrap_err();
    assert_eq!(error.to_string(), "a filter has 101 different values; the maximum is 100");
    assert_eq!(found(&searcher, &format!("order site:{},shop.example", sites(99)))[0], "order");
    let copies = "commerce:*,".repeat(2_000);
    assert_eq!(found(&searcher, &format!("order type:{copies}"))[0], "order");
}

#[test]
fn several_phrasings_rank_better_than_the_worst_one() {
    let (_dir, searcher) = searcher(&web());
    let phrasings = vec!["aeroplane punctuality".to_owned(), "is the flight on time".to_owned()];
    let answer = searcher.search(&SearchRequest { phrasings, ..SearchRequest::default() }).unwrap();
    assert_eq!(answer.hits[0].native_id, "flight_status");
}

/// A small generator with a seed (`SplitMix64`).
struct Seeded(u64);

impl Seeded {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((z ^ (z >> 31)) % bound as u64).unwrap()
    }
}

/// Twenty thousand of the hundred thousand texts, so that each test is short.
fn searches_hostile_texts(seed: u64) {
    const PIECES: [&str; 40] = [
        "\"",
        "'",
        "-",
        "--",
        ":",
        "site:",
        "type:",
        "type:*",
        "type:commerce:*",
        "format:",
        "format:awp",
        "method:get",
        "safety:read",
        "auth:",
        "*",
        "~",
        "^2",
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        "\\",
        "/",
        " ",
        "  ",
        "flight",
        "book",
        "AND",
        "OR",
        "NOT",
        "\u{202e}",
        "\u{0}",
        "漢字",
        "zurich\u{308}",
        "🛫",
        "a",
        ".",
        "é",
    ];
    let (_dir, searcher) = searcher(&web());
    let (mut seeded, mut answered) = (Seeded(seed), 0);
    for _ in 0..20_000 {
        let pieces = 1 + seeded.below(12);
        let query: String = (0..pieces).map(|_| PIECES[seeded.below(PIECES.len())]).collect();
        let facets = if seeded.below(50) == 0 { FacetKey::ALL.to_vec() } else { Vec::new() };
        match searcher.search(&SearchRequest { facets, limit: 3, ..request(&query) }) {
            Ok(answer) => {
                assert!(answer.hits.len() <= 3, "{query:?}");
                answered += 1;
            }
            Err(error) => assert!(matches!(error, SearchError::UnknownValue(_)), "{query:?}: {error}"),
        }
    }
    assert!(answered > 10_000, "only {answered} were answered");
}

#[test]
fn hostile_queries_with_seed_1_return_results_or_an_error() {
    searches_hostile_texts(1);
}

#[test]
fn hostile_queries_with_seed_2_return_results_or_an_error() {
    searches_hostile_texts(2);
}

#[test]
fn hostile_queries_with_seed_3_return_results_or_an_error() {
    searches_hostile_texts(3);
}

#[test]
fn hostile_queries_with_seed_4_return_results_or_an_error() {
    searches_hostile_texts(4);
}

#[test]
fn hostile_queries_with_seed_5_return_results_or_an_error() {
    searches_hostile_texts(5);
}

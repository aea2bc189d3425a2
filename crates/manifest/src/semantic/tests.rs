//! Tests inference on small cases, and measures precision and coverage on capabilities that were labelled by hand.

use std::collections::BTreeSet;

use serde::Deserialize;

use super::*;
use crate::model::{CapabilityKind, Format};
use crate::name::ManifestUrl;

/// Percentages: the precision of the inferred types, and the share of the capabilities with a correct type for which it is inferred.
const PRECISION_MIN: usize = 95;
const COVERAGE_MIN: usize = 40;

#[derive(Deserialize)]
struct Judged {
    half: String,
    site_name: Option<String>,
    site_description: Option<String>,
    native_id: String,
    name: String,
    title: Option<String>,
    description: Option<String>,
    #[serde(default)]
    tags: Vec<String>,
    accepted: BTreeSet<String>,
}

impl Judged {
    fn capability(&self) -> Capability {
        let url = ManifestUrl::parse("https://site.example/agent.json").unwrap();
        let kind = CapabilityKind::Action;
        let mut capability =
            Capability::new(&url, Format::Awp, &self.native_id, &self.name, kind, String::new());
        capability.title.clone_from(&self.title);
        capability.description.clone_from(&self.description);
        capability.tags.clone_from(&self.tags);
        capability
    }

    fn site(&self) -> Site {
        let name = self.site_name.as_deref().unwrap_or_default();
        Site::new(name, self.site_description.as_deref().unwrap_or_default())
    }
}

fn judged(half: &str) -> Vec<Judged> {
    let lines = include_str!("../../tests/semantic_types/labels.jsonl").lines();
    let all = lines.map(|line| serde_json::from_str(line).expect("a line is a labelled capability"));
    all.filter(|judged: &Judged| judged.half == half).collect()
}

/// Numbers of labelled capabilities.
#[derive(Debug, Default)]
struct Counts {
    typable: usize,
    shown: usize,
    right: usize,
    wrong: Vec<String>,
    missed: Vec<String>,
}

fn counts(half: &str) -> Counts {
    let mut counts = Counts::default();
    for judged in judged(half) {
        let capability = judged.capability();
        counts.typable += usize::from(!judged.accepted.is_empty());
        let line = |answer: &str| {
            let Judged { native_id, description, accepted, .. } = &judged;
            format!("{native_id}: {answer}, not {accepted:?} {}", description.as_deref().unwrap_or_default())
        };
        if let Some(found) = inferred(&capability, &judged.site()) {
            counts.shown += 1;
            counts.right += usize::from(judged.accepted.contains(&found.name));
            if !judged.accepted.contains(&found.name) {
                counts.wrong.push(line(&found.name));
            }
        } else if !judged.accepted.is_empty() {
            counts.missed.push(line("none"));
        }
    }
    counts
}

#[test]
fn inferred_types_are_correct_for_95_percent_of_labelled_capabilities() {
    for half in ["tune", "held-out"] {
        let found = counts(half);
        assert!(found.right * 100 >= found.shown * PRECISION_MIN, "precision, {half}: {found:#?}");
        assert!(found.right * 100 >= found.typable * COVERAGE_MIN, "coverage, {half}: {found:#?}");
    }
}

fn found(id: &str, description: &str, site: &str) -> Option<(String, f64)> {
    let url = ManifestUrl::parse("https://a.example/agent.json").unwrap();
    let mut capability = Capability::new(&url, Format::Awp, id, id, CapabilityKind::Action, String::new());
    capability.description = Some(description.to_owned());
    let site = Site { texts: site.to_owned(), ..Site::default() };
    inferred(&capability, &site).map(|found| (found.name, found.confidence))
}

#[test]
fn infers_types_from_phrases() {
    for (id, description, site, expected) in [
        ("book_flight", "", "", Some("travel:flight-booking")),
        ("searchFlights", "", "", Some("travel:flight-search")),
        ("cart.add", "", "", Some("commerce:cart-add")),
        ("get-forecast", "Weather for the next days", "", Some("weather:forecast")),
        ("reserve", "Reserve a table at our restaurant", "", Some("travel:restaurant-booking")),
        ("send_message", "", "", Some("communication:message-send")),
        ("quick_purchase", "Buy in one step; no refund or cancel", "", Some("commerce:order-create")),
        ("check_in", "", "Skyways Airline", Some("travel:check-in")),
        ("list_product_reviews", "", "", Some("commerce:review")),
        ("frobnicate", "", "", None),
        ("list_product_variants", "", "", None),
        // The words occur with another meaning.
        ("positions_get", "Get Open Positions", "Trading API", None),
        ("validator", "", "", None),
        ("sell_tickets", "List events to find one with tickets", "Concerts", None),
        ("route", "Route a request to an agent", "", None),
        ("list_jobs", "List scheduled cron jobs", "", None),
    ] {
        let name = found(id, description, site).map(|(name, _)| name);
        assert_eq!(name.as_deref(), expected, "{id}");
    }
}

#[test]
fn ambiguous_words_need_evidence_from_the_site() {
    let order = |site| found("place_order", "", site).map(|(name, _)| name);
    assert_eq!(order("Handmade mugs").as_deref(), Some("commerce:order-create"));
    assert_eq!(order("Futures and options trading").as_deref(), Some("finance:trade"));
    let jobs = |site| found("browse_jobs", "", site).map(|(name, _)| name);
    assert_eq!(jobs("Careers at Acme").as_deref(), Some("jobs:search"));
    assert_eq!(jobs("A scheduler"), None);
}

#[test]
fn words_from_the_description_lower_the_confidence() {
    let by_name = found("book_flight", "", "").unwrap().1;
    let by_description = found("book", "Book a flight", "").unwrap().1;
    assert!(by_name > by_description);
}

#[test]
fn a_method_excludes_types() {
    let of_call = |id: &str, method: &str| {
        let url = ManifestUrl::parse("https://site.example/agent.json").unwrap();
        let kind = CapabilityKind::Operation;
        let mut capability = Capability::new(&url, Format::Generic, id, id, kind, String::new());
        capability.invocation.method = Some(method.to_owned());
        inferred(&capability, &Site::new("Ropes", "A shop for ropes")).map(|inferred| inferred.name)
    };
    for (id, method, expected) in [
        ("update_cart", "PUT", Some("commerce:cart-update")),
        ("update_cart", "GET", None),
        ("update_cart", "DELETE", None),
        ("remove_cart_item", "DELETE", Some("commerce:cart-remove")),
        ("view_cart", "GET", Some("commerce:cart-view")),
        ("place_order", "GET", Some("commerce:order-create")),
    ] {
        assert_eq!(of_call(id, method).as_deref(), expected, "{id} {method}");
    }
}

#[test]
fn an_iri_has_its_own_namespace() {
    for (name, namespace) in [
        ("travel:book", Some("travel")),
        ("acme:travel:book", Some("acme")),
        ("https://acme.example/travel:book", Some("https://acme.example/travel")),
        ("https://acme.example/types#travel", Some("https://acme.example/types")),
        ("https://acme.example/travel/book", Some("https://acme.example/travel")),
        ("urn:acme:travel:book", Some("urn:acme:travel")),
        ("book", None),
    ] {
        assert_eq!(semantic_namespace(name), namespace, "{name}");
    }
}

#[test]
fn every_entry_is_well_formed() {
    assert!(VOCABULARY.iter().all(|entry| entry.name.split(':').count() == 2));
    assert!(VOCABULARY.iter().all(|entry| entry.groups.len() <= 3 && entry.confidence <= 0.95));
    assert!(VOCABULARY.iter().all(|entry| entry.required() != 0));
    let words = VOCABULARY.iter().flat_map(|entry| entry.groups).flat_map(|words| words.split(' '));
    let words = words.map(|word| word.trim_start_matches('?')).filter(|word| *word != "*");
    let unusable: Vec<&str> = words.filter(|word| lexicon::letter(word).is_none()).collect();
    assert!(unusable.is_empty(), "a word without a first letter is never found: {unusable:?}");
}

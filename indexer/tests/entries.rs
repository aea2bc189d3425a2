//! Capabilities as entries of a catalog: found by type, publisher, tag and identifier, and counted by them.

#![expect(clippy::unwrap_used, reason = "a failed step fails the test")]

mod support;

use chrono::{DateTime, TimeDelta, Utc};
use indexer::{
    ExploreRequest, FacetBuckets, FacetKey, FacetRequest, Filters, IndexBuilder, SearchRequest, Searcher,
};
use manifest::model::{CapabilityKind, Format, Payment};
use store::{FeedPosition, StoredManifest};
use tempfile::TempDir;

fn first_seen_at() -> DateTime<Utc> {
    DateTime::from_timestamp(1_780_000_000, 0).unwrap()
}

/// A shop with two capabilities and a card with one.
fn web() -> Vec<StoredManifest> {
    let mut shop = support::manifest("shop.example", "Shop");
    shop.first_seen_at = first_seen_at();
    support::add(&mut shop, "find_shoes", "Search for shoes.").tags = vec!["Shoes".into(), "search".into()];
    let order = support::add(&mut shop, "order_shoes", "Order shoes.");
    order.tags = vec!["shoes".into()];
    order.price = Some(priced("$2.50", Some("X402")));
    let mut card = support::manifest("agent.example", "Agent");
    card.first_seen_at = first_seen_at() + TimeDelta::days(30);
    card.manifest.detection.format = Format::A2a;
    let skill = support::add(&mut card, "shoe-advice", "Advises on shoes.");
    skill.tags = vec!["search".into()];
    skill.kind = CapabilityKind::Skill;
    skill.degraded = true;
    skill.price = Some(priced("free", None));
    card.manifest.payments = vec![priced("5", Some("mpp"))];
    vec![shop, card]
}

fn priced(price: &str, scheme: Option<&str>) -> Payment {
    Payment { price: Some(price.to_owned()), scheme: scheme.map(str::to_owned), ..Payment::default() }
}

fn searcher() -> (TempDir, Searcher) {
    let dir = tempfile::tempdir().unwrap();
    let builder = IndexBuilder::begin(dir.path(), "feed").unwrap();
    for stored in web() {
        builder.add(&stored).unwrap();
    }
    builder.finish(FeedPosition(1)).unwrap();
    let searcher = Searcher::open(dir.path()).unwrap();
    (dir, searcher)
}

fn found(searcher: &Searcher, filters: Filters) -> Vec<String> {
    let request = SearchRequest { filters, ..SearchRequest::default() };
    let mut names: Vec<String> =
        searcher.search(&request).unwrap().hits.into_iter().map(|hit| hit.native_id).collect();
    names.sort();
    names
}

fn filters<T: AsRef<str>>(key: FacetKey, values: impl IntoIterator<Item = T>) -> Filters {
    Filters::default().with(key, values).unwrap()
}

/// The words of a scheme, such as "air" of `urn:air:`, are in every identifier.
#[test]
fn scheme_of_an_identifier_is_not_searched() {
    let identifiers = [
        "urn:air:agent.example:cards:kestrel",
        "did:web:agent.example:feldspar",
        "https://agent.example/quillmoor",
    ];
    let mut stored = support::manifest("agent.example", "Agent");
    for identifier in identifiers {
        support::add(&mut stored, identifier, "Gives advice.").name = "Advice".to_owned();
    }
    // a name that is an identifier
    support::add(&mut stored, "urn:air:agent.example:cards:gloves", "Advises on gloves.");
    let dir = tempfile::tempdir().unwrap();
    let builder = IndexBuilder::begin(dir.path(), "feed").unwrap();
    builder.add(&stored).unwrap();
    builder.finish(FeedPosition(1)).unwrap();
    let searcher = Searcher::open(dir.path()).unwrap();
    let found = |text: &str| {
        let request = SearchRequest { phrasings: vec![text.to_owned()], ..SearchRequest::default() };
        let hits = searcher.search(&request).unwrap().hits;
        hits.into_iter().map(|hit| hit.native_id).collect::<Vec<_>>()
    };
    for scheme in ["air", "urn", "did", "web", "https"] {
        assert_eq!(found(scheme), [""; 0], "{scheme}");
    }
    for (identifier, word) in identifiers.into_iter().zip(["kestrel", "feldspar", "quillmoor"]) {
        assert_eq!(found(word), [identifier]);
        assert_eq!(found(identifier).first().map(String::as_str), Some(identifier));
    }
    assert_eq!(found("gloves").len(), 1);
}

/// A publisher chooses its titles and names freely.
#[test]
fn a_title_does_not_hold_the_identifier_of_another_publisher() {
    const OTHER: &str = "urn:air:victim.example:cards:pay";
    let mut stored = support::manifest("shop.example", OTHER);
    let capability = support::add(&mut stored, OTHER, "Search for shoes.");
    capability.title = Some(OTHER.to_owned());
    let own = stored.entry_of(&stored.manifest.capabilities[0]).identifier.urn;
    let dir = tempfile::tempdir().unwrap();
    let builder = IndexBuilder::begin(dir.path(), "feed").unwrap();
    builder.add(&stored).unwrap();
    builder.finish(FeedPosition(1)).unwrap();
    let searcher = Searcher::open(dir.path()).unwrap();
    let identifiers = [own.to_uppercase().replace("URN:AIR", "urn:air"), own, OTHER.to_owned()];
    let held = searcher.held_among(&identifiers).unwrap();
    assert_eq!(held, identifiers[..2].iter().cloned().collect(), "in any case");
}

#[test]
fn every_value_of_a_facet_filters_to_its_count() {
    let (_dir, searcher) = searcher();
    let request = SearchRequest { facets: FacetKey::ALL.to_vec(), ..SearchRequest::default() };
    let facets = searcher.search(&request).unwrap().facets;
    for key in FacetKey::ALL {
        for count in &facets[key] {
            let request =
                SearchRequest { filters: filters(*key, [&count.value]), ..SearchRequest::default() };
            assert_eq!(searcher.search(&request).unwrap().total, count.count, "{key}: {}", count.value);
        }
    }
    assert!(FacetKey::ALL.iter().filter(|key| !facets[key].is_empty()).count() > 8);
}

#[test]
fn filters_by_the_members_of_catalog_entries() {
    let (_dir, searcher) = searcher();
    let of = |filters| found(&searcher, filters);
    assert_eq!(of(filters(FacetKey::MediaType, ["Application/A2A-agent-card+json"])), ["shoe-advice"]);
    assert_eq!(of(filters(FacetKey::Publisher, ["SHOP.example"])).len(), 2);
    assert_eq!(of(filters(FacetKey::Tag, ["Shoes"])).len(), 2);
    assert_eq!(of(filters(FacetKey::Degraded, ["true"])), ["shoe-advice"]);
    assert_eq!(of(filters(FacetKey::Degraded, ["false"])), ["find_shoes", "order_shoes"]);
    let both = filters(FacetKey::Tag, ["search"]).with(FacetKey::Kind, ["skill"]).unwrap();
    assert_eq!(of(both), ["shoe-advice"]);
    for stored in web() {
        for capability in &stored.manifest.capabilities {
            let urn = stored.entry_of(capability).identifier.urn;
            assert_eq!(
                of(Filters { names: vec![urn.clone()], ..Filters::default() }),
                std::slice::from_ref(&capability.native_id)
            );
        }
    }
    assert_eq!(of(Filters { names: vec!["Find_Shoes".into()], ..Filters::default() }), ["find_shoes"]);
    let since = Some(first_seen_at() + TimeDelta::seconds(1));
    assert_eq!(of(Filters { first_seen_since: since, ..Filters::default() }), ["shoe-advice"]);
}

#[test]
fn filters_by_declared_prices() {
    let (_dir, searcher) = searcher();
    let of = |key, value: &str| found(&searcher, filters(key, [value]));
    assert_eq!(of(FacetKey::Price, "paid"), ["order_shoes"]);
    assert_eq!(of(FacetKey::Price, "free"), ["shoe-advice"]);
    assert_eq!(of(FacetKey::Payment, "x402"), ["order_shoes"]);
    assert!(
        of(FacetKey::Payment, "mpp").is_empty(),
        "a free capability is not listed under the payment scheme of its service"
    );
}

#[test]
fn exploring_counts_exactly_the_matches() {
    let (_dir, searcher) = searcher();
    let explore = |text: &str, filters: Filters, values_max: usize| -> Vec<FacetBuckets> {
        let facet = |key| FacetRequest { key, values_max, count_min: 1 };
        let phrasings = if text.is_empty() { Vec::new() } else { vec![text.to_owned()] };
        let facets = vec![facet(FacetKey::Tag), facet(FacetKey::MediaType)];
        searcher.explore(&ExploreRequest { phrasings, filters, facets }).unwrap()
    };
    let pairs = |buckets: &FacetBuckets| -> Vec<(String, u64)> {
        buckets.values.iter().map(|value| (value.value.clone(), value.count)).collect()
    };
    let all = explore("", Filters::default(), 20);
    assert_eq!(pairs(&all[0]), [("search".to_owned(), 2), ("shoes".to_owned(), 2)]);
    assert_eq!(all[1].values.iter().map(|value| value.count).sum::<u64>(), 3);
    assert_eq!(all[1].other_count, 0);

    let cut = explore("", Filters::default(), 1);
    assert_eq!((cut[1].values[0].count, cut[1].other_count), (2, 1));

    let filtered = explore("", filters(FacetKey::Tag, ["shoes"]), 20);
    assert_eq!(pairs(&filtered[0]), [("shoes".to_owned(), 2), ("search".to_owned(), 1)]);

    let advice = explore("advice on shoes", filters(FacetKey::Format, ["a2a"]), 20);
    assert_eq!(pairs(&advice[0]), [("search".to_owned(), 1)]);
    let nothing = explore("photosynthesis of seaweed", Filters::default(), 20);
    assert_eq!(nothing, [FacetBuckets::default(), FacetBuckets::default()]);
}

//! Capabilities in any language are found by their own words.

#![expect(clippy::unwrap_used, reason = "a failed step fails the test")]

mod support;

use indexer::{IndexBuilder, SearchRequest, Searcher, stems_of};
use serde::Deserialize;
use store::FeedPosition;
use tempfile::TempDir;

/// A capability of the generated set. A bar separates words that are written together.
#[derive(Deserialize)]
struct Made {
    language: String,
    name: String,
    description: String,
}

impl Made {
    fn words(&self) -> Vec<&str> {
        let words = [self.name.as_str(), self.description.as_str()].into_iter().flat_map(|text| {
            text.split(|c: char| c.is_whitespace() || matches!(c, '|' | ',' | '.' | '。' | '\''))
        });
        // Stop words of English are not searched for.
        words.filter(|word| !stems_of(word).is_empty()).collect()
    }
}

fn made() -> Vec<Made> {
    let text = include_str!("languages.jsonl");
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// An index of the generated set, with declared or detected languages.
fn searcher(made: &[Made], is_declared: bool) -> (TempDir, Searcher) {
    let dir = tempfile::tempdir().unwrap();
    let builder = IndexBuilder::begin(dir.path(), "feed").unwrap();
    for (at, of) in made.iter().enumerate() {
        let mut stored = support::manifest(&format!("qx{at}.example"), "");
        stored.manifest.language = is_declared.then(|| of.language.clone());
        let description = of.description.replace('|', "");
        support::add(&mut stored, &format!("n{at}"), &description).name = of.name.replace('|', "");
        builder.add(&stored).unwrap();
    }
    builder.finish(FeedPosition(1)).unwrap();
    let searcher = Searcher::open(dir.path()).unwrap();
    (dir, searcher)
}

fn found(searcher: &Searcher, query: &str) -> Vec<String> {
    let request = SearchRequest { phrasings: vec![query.to_owned()], limit: 10, ..SearchRequest::default() };
    searcher.search(&request).unwrap().hits.into_iter().map(|hit| hit.native_id).collect()
}

#[test]
fn every_word_finds_its_capability_in_every_language() {
    let made = made();
    for is_declared in [true, false] {
        let (_dir, searcher) = searcher(&made, is_declared);
        for (at, of) in made.iter().enumerate() {
            // too many capabilities in several languages contain the word "de" for one page
            for word in of.words().into_iter().filter(|word| *word != "de") {
                let id = format!("n{at}");
                for query in [word.to_owned(), word.to_uppercase(), format!("\"{word}\"")] {
                    let found = found(&searcher, &query);
                    assert!(found.contains(&id), "{query} of {} ({}) finds {found:?}", of.name, of.language);
                }
            }
        }
    }
}

#[test]
fn inflected_words_find_capabilities_of_their_language() {
    let made = made();
    let (_dir, searcher) = searcher(&made, true);
    for (query, name) in [
        ("Zugverbindung", "Zugverbindungen"),
        ("Pakete", "Paket verfolgen"),
        ("tren", "horarios de trenes"),
        ("bicicleta", "alquilar bicicletas"),
        ("поезда", "расписание поездов"),
        ("날씨", "날씨 조회"),
        ("parcels", "track_parcel"),
    ] {
        let first = found(&searcher, query).into_iter().next();
        let at = first.and_then(|id| id.strip_prefix('n').and_then(|at| at.parse::<usize>().ok()));
        assert_eq!(at.map(|at| made[at].name.as_str()), Some(name), "{query}");
    }
}

#[test]
fn words_of_a_language_are_not_corrected() {
    let made: Vec<Made> = made().into_iter().filter(|of| of.language == "en").collect();
    let (_dir, searcher) = searcher(&made, true);
    for query in ["train", "météo", "argent", "is the train on time"] {
        let request = SearchRequest { phrasings: vec![query.to_owned()], ..SearchRequest::default() };
        let answer = searcher.search(&request).unwrap();
        assert_eq!(answer.did_you_mean, None, "{query}");
        assert!(answer.hits.is_empty(), "{query}: {:?}", answer.hits.first().map(|hit| &hit.name));
    }
    let request = SearchRequest { phrasings: vec!["parcle".to_owned()], ..SearchRequest::default() };
    assert_eq!(searcher.search(&request).unwrap().did_you_mean.as_deref(), Some("parcel"));
}

#[test]
fn words_of_other_languages_are_marked_in_snippets() {
    let made = made();
    let (_dir, searcher) = searcher(&made, true);
    let request = SearchRequest { phrasings: vec!["Zugverbindung".to_owned()], ..SearchRequest::default() };
    let hits = searcher.search(&request).unwrap().hits;
    assert!(hits[0].snippet.contains("<mark>Zugverbindungen</mark>"), "{}", hits[0].snippet);
}

#[test]
fn everyday_words_of_other_languages_find_english_capabilities() {
    let english = [
        ("book_flight", "Book a flight between two airports."),
        ("get_forecast", "The weather of the next days at a place."),
        ("find_rooms", "Search for free hotel rooms by date."),
        ("track_parcel", "Where a parcel is now."),
        ("translate_text", "Translate a text into another language."),
        ("cancel_order", "Cancel an order before it is sent."),
        ("search_jobs", "Open jobs by profession and region."),
    ];
    let of = |(name, description): (&str, &str)| Made {
        language: "en".to_owned(),
        name: name.to_owned(),
        description: description.to_owned(),
    };
    let (_dir, searcher) = searcher(&english.map(of), true);
    for (query, name) in [
        ("Wetter morgen", "get_forecast"),
        ("einen Flug buchen", "book_flight"),
        ("Hotelzimmer in Berlin", "find_rooms"),
        ("Paket verfolgen", "track_parcel"),
        ("réserver un vol", "book_flight"),
        ("météo à Paris", "get_forecast"),
        ("annuler ma commande", "cancel_order"),
        ("reservar vuelo", "book_flight"),
        ("traducir un texto", "translate_text"),
        ("previsão do tempo", "get_forecast"),
        ("prenotare un volo", "book_flight"),
        ("vacatures in Utrecht", "search_jobs"),
        ("pogoda w Krakowie", "get_forecast"),
        ("otel odası ara", "find_rooms"),
        ("отследить посылку", "track_parcel"),
        ("حجز رحلة طيران", "book_flight"),
        ("天気", "get_forecast"),
        ("天气预报", "get_forecast"),
        ("翻译", "translate_text"),
    ] {
        let first = found(&searcher, query).into_iter().next();
        let at = first.and_then(|id| id.strip_prefix('n').and_then(|at| at.parse::<usize>().ok()));
        assert_eq!(at.map(|at| english[at].0), Some(name), "{query}");
    }
    // a word that also exists in English is not translated
    assert!(found(&searcher, "stage lighting").is_empty());
}

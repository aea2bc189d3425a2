//! Example requests of publishers: they select their capabilities, and a check reports examples that would not find their capability by its
//! other texts.

#![expect(clippy::unwrap_used, reason = "a failed step fails the test")]

mod support;

use indexer::{IndexBuilder, SearchRequest, Searcher, check_examples};
use store::FeedPosition;

fn web() -> store::StoredManifest {
    let mut stored = support::manifest("lawnworks.example", "Lawnworks");
    support::add(&mut stored, "book_mowing", "Book a gardener who cuts the grass.").examples =
        vec!["tidy up the backyard".to_owned(), "cut my grass".to_owned(), "price to cut a hedge".to_owned()];
    support::add(&mut stored, "get_quote", "The price of a hedge or a lawn.");
    stored
}

#[test]
fn a_capability_is_found_by_words_that_only_its_examples_have() {
    let dir = tempfile::tempdir().unwrap();
    let builder = IndexBuilder::begin(dir.path(), "feed").unwrap();
    builder.add(&web()).unwrap();
    builder.finish(FeedPosition(1)).unwrap();
    let request = SearchRequest { phrasings: vec!["backyard".to_owned()], ..SearchRequest::default() };
    let answer = Searcher::open(dir.path()).unwrap().search(&request).unwrap();
    assert_eq!(answer.hits.iter().map(|hit| hit.name.as_str()).collect::<Vec<_>>(), ["book_mowing"]);
}

#[test]
fn examples_that_do_not_find_their_capability_are_reported() {
    let check = check_examples(&web().manifest);
    let unfound: Vec<(&str, Option<usize>, Option<&str>)> =
        check.unfound.iter().map(|of| (of.example.as_str(), of.place, of.first.as_deref())).collect();
    assert_eq!(check.checked, 3);
    assert_eq!(
        unfound,
        [("tidy up the backyard", None, None), ("price to cut a hedge", Some(2), Some("get_quote"))]
    );
    assert_eq!(check.unfound[0].capability, "book_mowing");
}

#[test]
fn the_check_of_examples_is_bounded() {
    let mut stored = support::manifest("many.example", "Many");
    for at in 0..3_000 {
        let words = (0..100).map(|word| format!("w{at}x{word}")).collect::<Vec<_>>().join(" ");
        support::add(&mut stored, &format!("do_{at}"), &words).examples = vec![format!("w{at}x1"); 50];
    }
    let check = check_examples(&stored.manifest);
    assert_eq!((check.checked, check.unfound.len()), (100, 0));
}

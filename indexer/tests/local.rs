//! Searches an index on this machine: the contract of a search, and commits that become visible between searches.

#![expect(clippy::unwrap_used, reason = "a failed step fails the test")]

mod contract;
mod explained;
mod support;

use std::collections::HashSet;

use contract::{many, names, request, walk, web};
use indexer::{IndexBuilder, IndexError, SearchRequest, Searcher};
use store::{FeedPosition, StoredManifest};
use tempfile::TempDir;

/// The directory of an index, which exists as long as its searcher is used.
type Guard = TempDir;

fn index(dir: &TempDir, manifests: &[StoredManifest], position: i64) {
    let builder = IndexBuilder::begin(dir.path(), "feed").unwrap();
    for stored in manifests {
        builder.add(stored).unwrap();
    }
    builder.finish(FeedPosition(position)).unwrap();
}

fn searcher(manifests: &[StoredManifest]) -> (TempDir, Searcher) {
    let dir = tempfile::tempdir().unwrap();
    index(&dir, manifests, 1);
    let searcher = Searcher::open(dir.path()).unwrap();
    (dir, searcher)
}

#[test]
fn paging_over_a_commit_repeats_nothing() {
    let (dir, searcher) = searcher(&many());
    let mut manifests = many();
    let mut swapped = false;
    let found = walk(&searcher, SearchRequest { limit: 50, ..request("order tea") }, |seen| {
        if seen >= 100 && !swapped {
            swapped = true;
            manifests.truncate(250);
            index(&dir, &manifests, 2);
            assert!(searcher.reload().unwrap());
        }
    });
    assert!(swapped);
    assert_eq!(found.iter().collect::<HashSet<_>>().len(), found.len(), "a result is repeated");
    assert!(found.len() >= 250);
}

#[test]
fn swaps_the_index_while_it_is_searched() {
    let (dir, searcher) = searcher(&web());
    let before = searcher.generation();
    index(&dir, &web()[1..], 9);
    assert_eq!(names(&searcher.search(&request("book flight")).unwrap())[0], "book_seat");
    assert!(searcher.reload().unwrap());
    assert!(!searcher.reload().unwrap());
    assert_ne!(searcher.generation(), before);
    assert_eq!(searcher.generation().position, FeedPosition(9));
    let answer = searcher.search(&request("book flight")).unwrap();
    assert!(!names(&answer).contains(&"book_seat"));
    assert!(matches!(searcher.check_feed("other"), Err(IndexError::FeedOther { .. })));
}

#[test]
fn a_missing_index_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let error = Searcher::open(dir.path()).unwrap_err();
    assert!(matches!(error, IndexError::Missing { .. }), "{error}");
    let (dir, _) = searcher(&web());
    for entry in std::fs::read_dir(dir.path().join("generation-000001")).unwrap() {
        std::fs::write(entry.unwrap().path(), b"damaged").unwrap();
    }
    let error = Searcher::open(dir.path()).unwrap_err();
    assert!(matches!(error, IndexError::Corrupt { .. }), "{error}");
    assert!(error.to_string().contains("indexer rebuild"));
}

//! Searches while the index changes: all files are opened before an index is served, and commits and rebuilds do not delay searches.

#![expect(clippy::unwrap_used, reason = "a failed step fails the test")]

mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use indexer::{FacetKey, IndexBuilder, IndexError, SearchRequest, Searcher};
use store::FeedPosition;

fn build(dir: &Path, words: &[&str], position: i64) {
    let builder = IndexBuilder::begin(dir, "feed").unwrap();
    for (at, word) in words.iter().enumerate() {
        let mut stored = support::manifest(&format!("site{at}.example"), "Site");
        support::add(&mut stored, word, &format!("Can {word} for you."));
        builder.add(&stored).unwrap();
    }
    builder.finish(FeedPosition(position)).unwrap();
}

fn generation(dir: &Path) -> PathBuf {
    dir.join(fs::read_to_string(dir.join("current")).unwrap().trim())
}

fn request(query: &str) -> SearchRequest {
    let facets = vec![FacetKey::Format, FacetKey::Site];
    SearchRequest { phrasings: vec![query.to_owned()], facets, ..SearchRequest::default() }
}

/// After the files are deleted, an index can read only files that it had already opened.
#[cfg(unix)]
#[test]
fn reads_ahead_before_it_serves() {
    let dir = tempfile::tempdir().unwrap();
    build(dir.path(), &["juggle", "yodel"], 1);
    let searcher = Searcher::open(dir.path()).unwrap();
    fs::remove_dir_all(generation(dir.path())).unwrap();
    let answer = searcher.search(&request("juggle")).unwrap();
    assert_eq!(answer.hits[0].native_id, "juggle");
    assert_eq!(answer.facets[&FacetKey::Site][0].count, 1);
    assert_eq!(searcher.search(&request("jugle")).unwrap().did_you_mean.as_deref(), Some("juggle"));
    assert_eq!(searcher.suggest("yo", 5).unwrap()[0].text, "yodel");
}

#[test]
fn searches_do_not_wait_for_reloads() {
    let dir = tempfile::tempdir().unwrap();
    build(dir.path(), &["juggle"], 1);
    let searcher = Searcher::open(dir.path()).unwrap();
    let (is_over, answered) = (AtomicBool::new(false), AtomicU32::new(0));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    let answer = searcher.search(&request("juggle")).unwrap();
                    assert_eq!(answer.hits[0].native_id, "juggle");
                    answered.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        for position in 2..12 {
            let before = answered.load(Ordering::Relaxed);
            build(dir.path(), &["juggle", "yodel"], position);
            assert!(searcher.reload().unwrap(), "a new index is seen");
            while answered.load(Ordering::Relaxed) < before + 2 {
                std::thread::yield_now();
            }
        }
        is_over.store(true, Ordering::Relaxed);
    });
    assert_eq!(searcher.generation().position, FeedPosition(11));
    assert_eq!(searcher.search(&request("yodel")).unwrap().hits.len(), 1);
}

#[test]
fn keeps_serving_the_old_commit_when_the_index_breaks() {
    let dir = tempfile::tempdir().unwrap();
    build(dir.path(), &["juggle"], 1);
    let searcher = Searcher::open(dir.path()).unwrap();
    build(dir.path(), &["juggle", "yodel"], 2);
    fs::write(generation(dir.path()).join("meta.json"), "{").unwrap();
    assert!(matches!(searcher.reload(), Err(IndexError::Corrupt { .. })));
    assert_eq!(searcher.search(&request("juggle")).unwrap().hits.len(), 1);
    assert!(matches!(Searcher::open(dir.path()), Err(IndexError::Corrupt { .. })));
}

//! A searcher over manifests.

use indexer::{IndexBuilder, Searcher};
use store::{FeedPosition, StoredManifest};
use tempfile::TempDir;

/// Indexes the manifests in a new directory.
pub(crate) fn searcher(manifests: &[StoredManifest]) -> (TempDir, Searcher) {
    let dir = tempfile::tempdir().unwrap();
    let builder = IndexBuilder::begin(dir.path(), "feed").unwrap();
    for stored in manifests {
        builder.add(stored).unwrap();
    }
    builder.finish(FeedPosition(1)).unwrap();
    let searcher = Searcher::open(dir.path()).unwrap();
    (dir, searcher)
}

//! Snapshots: what is published is what replicas serve, whole or not at all.

#![expect(clippy::unwrap_used, reason = "a test ends where something unexpected happens")]

mod support;

use std::fs;
use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};
use indexer::snapshot::{Fetched, Published, Snapshot, SnapshotError, fetch, publish};
use indexer::{IndexBuilder, SearchRequest, Searcher};
use store::FeedPosition;
use support::{add, manifest};

struct World {
    folder: tempfile::TempDir,
}

impl World {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Builds an index anew with one capability a word.
    fn build(&self, words: &[&str], position: i64) {
        let builder = IndexBuilder::begin(&self.path("index"), "feed").unwrap();
        for (at, word) in words.iter().enumerate() {
            let mut stored = manifest(&format!("site{at}.example"), "Site");
            add(&mut stored, "do_it", word);
            builder.add(&stored).unwrap();
        }
        builder.finish(FeedPosition(position)).unwrap();
    }

    fn publish(&self) -> Published {
        publish(&self.path("index"), &self.path("snapshots"), now()).unwrap()
    }

    fn fetch(&self) -> Result<Fetched, SnapshotError> {
        fetch(&self.path("snapshots"), &self.path("replica"))
    }

    /// Overwrites one published file, keeping its length.
    fn damage_one_file(&self) {
        let snapshot = Snapshot::current(&self.path("snapshots")).unwrap();
        let largest = snapshot.files.iter().max_by_key(|file| file.bytes).unwrap();
        let path = self.path("snapshots").join("files").join(&largest.sha256);
        let mut bytes = fs::read(&path).unwrap();
        bytes[0] ^= 1;
        fs::write(&path, bytes).unwrap();
    }
}

fn now() -> DateTime<Utc> {
    DateTime::from_timestamp(1_790_000_000, 0).unwrap()
}

fn found(searcher: &Searcher, word: &str) -> u64 {
    let request = SearchRequest { phrasings: vec![word.to_owned()], ..SearchRequest::default() };
    searcher.search(&request).unwrap().total
}

fn files_in(dir: &Path) -> usize {
    fs::read_dir(dir).unwrap().count()
}

#[test]
fn a_replica_serves_what_was_published_and_swaps_while_it_searches() {
    let world = World::new();
    world.build(&["flight"], 5);
    let Published::New { snapshot, bytes_new } = world.publish() else { panic!("it is new") };
    assert_eq!((snapshot.position, snapshot.feed_id.as_str()), (FeedPosition(5), "feed"));
    assert_eq!(bytes_new, snapshot.files.iter().map(|file| file.bytes).sum::<u64>());
    assert_eq!(world.publish(), Published::Unchanged);

    let fetched = world.fetch().unwrap();
    assert_eq!(fetched, Fetched::New { snapshot: snapshot.clone(), bytes_copied: bytes_new });
    let searcher = Searcher::open(&world.path("replica")).unwrap();
    assert_eq!((found(&searcher, "flight"), found(&searcher, "hotel")), (1, 0));
    assert_eq!(world.fetch().unwrap(), Fetched::Unchanged(snapshot));

    world.build(&["flight", "hotel"], 9);
    world.publish();
    assert!(matches!(world.fetch().unwrap(), Fetched::New { .. }));
    assert_eq!(found(&searcher, "hotel"), 0, "a search under way sees the state that it began with");
    assert!(searcher.reload().unwrap());
    assert_eq!((found(&searcher, "flight"), found(&searcher, "hotel")), (1, 1));
    assert_eq!(searcher.generation().position, FeedPosition(9));
}

#[test]
fn what_was_fetched_before_is_not_copied_again() {
    let world = World::new();
    world.build(&["flight"], 5);
    let Published::New { snapshot, .. } = world.publish() else { panic!("it is new") };
    world.fetch().unwrap();
    // the same files under a manifest of another time
    let path = world.path("snapshots").join("current.json");
    let text = fs::read_to_string(&path).unwrap();
    let shown = serde_json::to_value(&snapshot).unwrap()["published_at"].as_str().unwrap().to_owned();
    fs::write(&path, text.replace(&shown, "2030-01-01T00:00:00Z")).unwrap();
    let Fetched::New { bytes_copied, .. } = world.fetch().unwrap() else { panic!("it is another manifest") };
    assert_eq!(bytes_copied, 0);
    assert_eq!(found(&Searcher::open(&world.path("replica")).unwrap(), "flight"), 1);
}

#[test]
fn a_damaged_snapshot_leaves_what_serves_as_it_was() {
    let world = World::new();
    world.build(&["flight"], 5);
    world.publish();
    world.fetch().unwrap();
    world.build(&["hotel"], 9);
    world.publish();
    world.damage_one_file();
    let error = world.fetch().unwrap_err().to_string();
    assert!(error.contains("is not what the manifest says"), "{error}");
    let searcher = Searcher::open(&world.path("replica")).unwrap();
    assert_eq!((found(&searcher, "flight"), found(&searcher, "hotel")), (1, 0));
    // the publisher sees nothing wrong with a state that it has published; the next one is whole
    world.build(&["hotel", "train"], 12);
    world.publish();
    world.fetch().unwrap();
    assert!(searcher.reload().unwrap());
    assert_eq!(found(&searcher, "train"), 1);
}

#[test]
fn a_manifest_that_leads_elsewhere_or_is_of_another_version_is_refused() {
    let world = World::new();
    assert!(matches!(world.fetch(), Err(SnapshotError::Missing { .. })));
    world.build(&["flight"], 5);
    world.publish();
    let path = world.path("snapshots").join("current.json");
    let whole = fs::read_to_string(&path).unwrap();
    for (from, to, reason) in [
        ("\"meta.json\"", "\"../../meta.json\"", "is not a file of an index"),
        ("\"format\": 1", "\"format\": 2", "its format is 2"),
        ("\"position\": 5", "\"position\": 6", "another position"),
        ("{", "[", "expected"),
    ] {
        assert!(whole.contains(from), "{from} is not in {whole}");
        fs::write(&path, whole.replacen(from, to, 1)).unwrap();
        let error = world.fetch().unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
        assert!(Searcher::open(&world.path("replica")).is_err());
    }
}

#[test]
fn old_files_go_but_those_of_the_snapshot_before_stay() {
    let world = World::new();
    let files = world.path("snapshots").join("files");
    world.build(&["one"], 1);
    world.publish();
    let first = files_in(&files);
    fs::write(files.join(".part-cut-short"), "x").unwrap();
    let before = Snapshot::current(&world.path("snapshots")).unwrap();
    for position in 2..6 {
        world.build(&["one", "two"], position);
        world.publish();
        assert!(files_in(&files) <= 3 * first, "files pile up");
    }
    assert!(!files.join(".part-cut-short").exists());
    assert!(before.files.iter().any(|file| !files.join(&file.sha256).exists()));
    assert!(!world.path("index").join("snapshot-staging").exists());
}

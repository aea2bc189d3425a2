//! Snapshots: replicas serve exactly the published index, or keep serving the previous one.

#![expect(clippy::unwrap_used, reason = "a failed step fails the test")]

mod support;

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use futures::TryStreamExt as _;
use indexer::snapshot::{
    Bucket, Directory, FetchResult, PublishResult, SnapshotError, SnapshotStorage, fetch, publish,
};
use indexer::{IndexBuilder, SearchRequest, Searcher};
use object_store::memory::InMemory;
use object_store::{ObjectStore as _, ObjectStoreExt as _};
use store::FeedPosition;
use support::{add, manifest};
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;

/// The storage of the snapshots of a test.
enum Storage {
    Directory,
    /// An object store in memory, and the runtime that its calls run on.
    Bucket(Arc<InMemory>, Runtime),
}

const PREFIX: &str = "agentdex/index";

struct World {
    folder: tempfile::TempDir,
    storage: Storage,
}

/// Runs a test with each kind of storage.
fn for_each_storage(test: impl Fn(&World)) {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    for storage in [Storage::Directory, Storage::Bucket(Arc::new(InMemory::new()), runtime)] {
        test(&World { folder: tempfile::tempdir().unwrap(), storage });
    }
}

impl World {
    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn storage(&self) -> Box<dyn SnapshotStorage> {
        match &self.storage {
            Storage::Directory => Box::new(Directory::new(self.path("snapshots"))),
            Storage::Bucket(store, runtime) => {
                let _entered = runtime.enter();
                let location = format!("s3://books/{PREFIX}");
                Box::new(Bucket::new(Arc::clone(store) as _, location, PREFIX, CancellationToken::new()))
            }
        }
    }

    /// Rebuilds the index with one capability per word.
    fn build(&self, words: &[&str], position: i64) {
        let builder = IndexBuilder::begin(&self.path("index"), "feed").unwrap();
        for (at, word) in words.iter().enumerate() {
            let mut stored = manifest(&format!("site{at}.example"), "Site");
            add(&mut stored, "do_it", word);
            builder.add(&stored).unwrap();
        }
        builder.finish(FeedPosition(position)).unwrap();
    }

    fn publish(&self) -> PublishResult {
        publish(&self.path("index"), &*self.storage(), now()).unwrap()
    }

    fn fetch(&self) -> Result<FetchResult, SnapshotError> {
        fetch(&*self.storage(), &self.path("replica"))
    }

    fn read(&self, name: &str) -> Vec<u8> {
        match &self.storage {
            Storage::Directory => fs::read(self.path("snapshots").join(name)).unwrap(),
            Storage::Bucket(store, runtime) => runtime
                .block_on(async { store.get(&key(name)).await.unwrap().bytes().await.unwrap().to_vec() }),
        }
    }

    fn write(&self, name: &str, bytes: Vec<u8>) {
        match &self.storage {
            Storage::Directory => fs::write(self.path("snapshots").join(name), bytes).unwrap(),
            Storage::Bucket(store, runtime) => {
                runtime.block_on(store.put(&key(name), bytes.into())).unwrap();
            }
        }
    }

    /// Names below `files/`.
    fn files(&self) -> BTreeSet<String> {
        match &self.storage {
            Storage::Directory => fs::read_dir(self.path("snapshots").join("files"))
                .unwrap()
                .map(|entry| entry.unwrap().file_name().into_string().unwrap())
                .collect(),
            Storage::Bucket(store, runtime) => runtime
                .block_on(
                    store
                        .list(Some(&key("files")))
                        .map_ok(|object| object.location.filename().unwrap().to_owned())
                        .try_collect(),
                )
                .unwrap(),
        }
    }

    /// Overwrites one published file, keeping its length.
    fn damage_one_file(&self) {
        let snapshot = self.storage().current().unwrap();
        let largest = snapshot.files.iter().max_by_key(|file| file.bytes).unwrap();
        let name = format!("files/{}", largest.sha256);
        let mut bytes = self.read(&name);
        bytes[0] ^= 1;
        self.write(&name, bytes);
    }
}

fn key(name: &str) -> object_store::path::Path {
    format!("{PREFIX}/{name}").into()
}

fn now() -> DateTime<Utc> {
    DateTime::from_timestamp(1_790_000_000, 0).unwrap()
}

fn found(searcher: &Searcher, word: &str) -> u64 {
    let request = SearchRequest { phrasings: vec![word.to_owned()], ..SearchRequest::default() };
    searcher.search(&request).unwrap().total
}

#[test]
fn a_replica_serves_the_published_index_and_swaps_while_searching() {
    for_each_storage(|world| {
        world.build(&["flight"], 5);
        let PublishResult::New { snapshot, bytes_new } = world.publish() else {
            panic!("the snapshot must be new")
        };
        assert_eq!((snapshot.position, snapshot.feed_id.as_str()), (FeedPosition(5), "feed"));
        assert_eq!(bytes_new, snapshot.files.iter().map(|file| file.bytes).sum::<u64>());
        assert_eq!(world.publish(), PublishResult::Unchanged);

        let fetched = world.fetch().unwrap();
        assert_eq!(fetched, FetchResult::New { snapshot: snapshot.clone(), bytes_copied: bytes_new });
        let searcher = Searcher::open(&world.path("replica")).unwrap();
        assert_eq!((found(&searcher, "flight"), found(&searcher, "hotel")), (1, 0));
        assert_eq!(world.fetch().unwrap(), FetchResult::Unchanged(snapshot));

        world.build(&["flight", "hotel"], 9);
        world.publish();
        assert!(matches!(world.fetch().unwrap(), FetchResult::New { .. }));
        assert_eq!(found(&searcher, "hotel"), 0, "a search in progress uses the state that it started with");
        assert!(searcher.reload().unwrap());
        assert_eq!((found(&searcher, "flight"), found(&searcher, "hotel")), (1, 1));
        assert_eq!(searcher.generation().position, FeedPosition(9));
    });
}

#[test]
fn copies_only_new_files() {
    for_each_storage(|world| {
        world.build(&["flight"], 5);
        let PublishResult::New { snapshot, .. } = world.publish() else { panic!("the snapshot must be new") };
        world.fetch().unwrap();
        // the same files with a manifest from another time
        let text = String::from_utf8(world.read("current.json")).unwrap();
        let shown = serde_json::to_value(&snapshot).unwrap()["published_at"].as_str().unwrap().to_owned();
        world.write("current.json", text.replace(&shown, "2030-01-01T00:00:00Z").into_bytes());
        let FetchResult::New { bytes_copied, .. } = world.fetch().unwrap() else {
            panic!("the manifest must count as new")
        };
        assert_eq!(bytes_copied, 0);
        assert_eq!(found(&Searcher::open(&world.path("replica")).unwrap(), "flight"), 1);
    });
}

#[test]
fn a_damaged_snapshot_does_not_replace_the_index() {
    for_each_storage(|world| {
        world.build(&["flight"], 5);
        world.publish();
        world.fetch().unwrap();
        world.build(&["hotel"], 9);
        world.publish();
        world.damage_one_file();
        let error = world.fetch().unwrap_err().to_string();
        assert!(error.contains("does not match the manifest"), "{error}");
        let searcher = Searcher::open(&world.path("replica")).unwrap();
        assert_eq!((found(&searcher, "flight"), found(&searcher, "hotel")), (1, 0));
        // the publisher does not check files that are already published; the next snapshot replaces them
        world.build(&["hotel", "train"], 12);
        world.publish();
        world.fetch().unwrap();
        assert!(searcher.reload().unwrap());
        assert_eq!(found(&searcher, "train"), 1);
    });
}

#[test]
fn rejects_a_manifest_with_unsafe_paths_or_another_version() {
    for_each_storage(|world| {
        assert!(matches!(world.fetch(), Err(SnapshotError::Missing { .. })));
        world.build(&["flight"], 5);
        world.publish();
        let whole = String::from_utf8(world.read("current.json")).unwrap();
        for (from, to, reason) in [
            ("\"meta.json\"", "\"../../meta.json\"", "is not a file of an index"),
            ("\"format\": 1", "\"format\": 2", "its format is 2"),
            ("\"position\": 5", "\"position\": 6", "another feed position"),
            ("\"bytes\": ", "\"bytes\": 9999999999999", "the most is"),
            ("{", "[", "expected"),
        ] {
            assert!(whole.contains(from), "{from} is not in {whole}");
            world.write("current.json", whole.replacen(from, to, 1).into_bytes());
            let error = world.fetch().unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
            assert!(Searcher::open(&world.path("replica")).is_err());
        }
    });
}

#[test]
fn removes_old_files_except_those_of_the_previous_snapshot() {
    for_each_storage(|world| {
        world.build(&["one"], 1);
        world.publish();
        let first = world.files().len();
        let cut_short = "0".repeat(64);
        world.write(&format!("files/{cut_short}"), vec![1]);
        let before = world.storage().current().unwrap();
        for position in 2..6 {
            world.build(&["one", "two"], position);
            world.publish();
            assert!(world.files().len() <= 3 * first, "old files are not removed");
        }
        assert!(!world.files().contains(&cut_short));
        assert!(before.files.iter().any(|file| !world.files().contains(&file.sha256)));
        assert!(!world.path("index").join("snapshot-staging").exists());
    });
}

#[test]
fn only_one_of_two_concurrent_publications_succeeds() {
    for_each_storage(|world| {
        world.build(&["one"], 1);
        let storage = world.storage();
        let first = storage.begin().unwrap();
        let location = match &world.storage {
            Storage::Directory => world.path("snapshots").display().to_string(),
            Storage::Bucket(..) => format!("s3://books/{PREFIX}"),
        };
        let refused = match publish(&world.path("index"), &*world.storage(), now()) {
            // a directory is locked from the beginning
            Err(error) => error,
            // a bucket accepts the manifest of the first publication that ends
            Ok(PublishResult::New { snapshot, .. }) => first.end(&snapshot).unwrap_err(),
            Ok(PublishResult::Unchanged) => panic!("nothing was published before"),
        };
        assert!(matches!(refused, SnapshotError::Locked { .. }), "{refused}");
        assert!(refused.to_string().contains(&location), "{refused}");
    });
}

#[test]
fn the_write_check_removes_its_file() {
    for_each_storage(|world| {
        world.storage().check_writable().unwrap();
        assert!(!world.path("snapshots").exists(), "the check does not create the directory");
        world.build(&["one"], 1);
        world.publish();
        let names = || match &world.storage {
            Storage::Directory => {
                let entries = fs::read_dir(world.path("snapshots")).unwrap();
                entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
            }
            Storage::Bucket(store, runtime) => {
                let all = store.list(None).map_ok(|object| object.location.to_string());
                runtime.block_on(all.try_collect::<BTreeSet<_>>()).unwrap()
            }
        };
        let before = names();
        world.storage().check_writable().unwrap();
        assert_eq!(names(), before);
    });
    let nowhere = Directory::new("/proc/1/snapshots").check_writable().unwrap_err();
    assert!(nowhere.to_string().contains("/proc/1"), "{nowhere}");
}

#[test]
fn keeps_files_of_other_programs_below_a_prefix() {
    for_each_storage(|world| {
        if matches!(world.storage, Storage::Directory) {
            return; // only agentdex uses a directory
        }
        world.build(&["one"], 1);
        world.publish();
        world.write("files/readme.txt", b"ours".to_vec());
        world.build(&["two"], 2);
        world.publish();
        assert_eq!(world.read("files/readme.txt"), b"ours");
    });
}

#[test]
fn transfers_large_files_in_parts() {
    let bytes: Vec<u8> = (0..20_000_000_u32).map(|at| at.to_le_bytes()[(at % 3) as usize]).collect();
    for_each_storage(|world| {
        let from = world.path("large");
        fs::write(&from, &bytes).unwrap();
        let storage = world.storage();
        let mut publication = storage.begin().unwrap();
        let put = publication.put("large", &from).unwrap();
        assert!(publication.has(&put.sha256, 20_000_000));
        drop(publication);
        let file = indexer::snapshot::SnapshotFile {
            name: "large".to_owned(),
            bytes: put.bytes,
            sha256: put.sha256.clone(),
        };
        let to = world.path("copied");
        assert_eq!(storage.copy(&file, &to).unwrap(), put);
        assert_eq!(fs::read(&to).unwrap(), bytes);
    });
}

#[test]
fn cancellation_ends_calls_to_a_bucket() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let _entered = runtime.enter();
    let cancel = CancellationToken::new();
    let bucket = Bucket::new(Arc::new(InMemory::new()), "s3://books".to_owned(), "", cancel.clone());
    assert!(matches!(bucket.current(), Err(SnapshotError::Missing { .. })));
    cancel.cancel();
    assert!(matches!(bucket.current(), Err(SnapshotError::Stopped { .. })));
}

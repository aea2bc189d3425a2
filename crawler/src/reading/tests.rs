//! Tests of the quarantine of documents, and of the work on the reader threads.

use std::path::PathBuf;

use manifest::model::Served;
use manifest::{Discovery, ManifestUrl};

use super::*;

struct Fixture {
    reader: Reader,
    store: Store,
    dir: tempfile::TempDir,
}

async fn fixture(deadline: Duration, program: Option<&str>) -> Fixture {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open_in_data_dir(dir.path()).await.unwrap();
    let program = program.map(|path| ReaderProgram { path: PathBuf::from(path), arguments: Vec::new() });
    let reader = Reader::start(store.clone(), program, &TaskTracker::new());
    let limits = ReaderLimits { threads: 1, queue: 8, queue_wait: DEADLINE, deadline };
    Fixture { reader: Reader { pool: ReaderPool::new("test", limits), ..reader }, store, dir }
}

fn shell(script: String) -> ReaderProgram {
    ReaderProgram { path: PathBuf::from("/bin/sh"), arguments: vec!["-c".to_owned(), script] }
}

fn document(host: &str, text: &str) -> Arc<OwnedDocument> {
    Arc::new(OwnedDocument {
        bytes: text.as_bytes().to_vec(),
        url: ManifestUrl::parse(&format!("https://{host}/agent.json")).unwrap(),
        final_url: None,
        discovery: Discovery::Root,
        served: Some(Served::default()),
        linked: Vec::new(),
        force: None,
    })
}

async fn read(fixture: &Fixture, host: &str, text: &str) -> Reading {
    fixture.reader.read(&SiteName::parse(host).unwrap(), document(host, text)).await.unwrap()
}

fn reason(reading: Reading) -> String {
    match reading {
        Reading::Quarantined(reason) => reason,
        Reading::Read { manifest, .. } => panic!("read: {:?}", manifest.detection),
    }
}

#[tokio::test]
async fn quarantines_a_document_on_all_sites_after_it_misses_its_deadline() {
    let slow = format!(r#"{{"awp_version":"0.1","x":[{}0]}}"#, "0,".repeat(100_000));
    let stalled = fixture(Duration::from_micros(1), None).await;
    let first = reason(read(&stalled, "a.example", &slow).await);
    assert!(first.contains("did not end"), "{first}");
    let elsewhere = reason(read(&stalled, "b.example", &slow).await);
    assert_eq!(elsewhere, first, "the document is not read again");
}

#[tokio::test]
async fn reads_a_document_repeatedly_while_it_succeeds() {
    let fixture = fixture(DEADLINE, None).await;
    for host in ["a.example", "a.example", "b.example"] {
        assert!(matches!(read(&fixture, host, r#"{"awp_version":"0.1"}"#).await, Reading::Read { .. }));
    }
}

#[tokio::test]
async fn quarantines_a_document_that_ends_two_readers_and_no_other() {
    let quarantined = fixture(DEADLINE, Some("/bin/false")).await;
    let long = format!(r#"{{"awp_version":"0.1","x":"{}"}}"#, "x".repeat(5_000));
    let reason = reason(read(&quarantined, "a.example", &long).await);
    assert!(reason.contains("ended without a result") && reason.contains("256 MiB"), "{reason}");
    assert!(
        matches!(read(&quarantined, "a.example", "{}").await, Reading::Read { .. }),
        "read in this process"
    );

    let missing = fixture(DEADLINE, Some("/nonexistent/program")).await;
    let site = SiteName::parse("a.example").unwrap();
    let unread = missing.reader.read(&site, document("a.example", &long)).await;
    assert!(matches!(unread, Err(ReadingError::Busy(_))), "the cause is not the document: {unread:?}");
}

/// The attempt is stored before the document is read, because a crawler that is killed cannot store it later.
#[tokio::test]
async fn the_attempt_is_stored_while_the_document_is_read() {
    let Fixture { mut reader, store, dir } = fixture(DEADLINE, None).await;
    let runs = dir.path().join("runs");
    let counted = |rest: &str| shell(format!("echo run >> {}; {rest}", runs.display()));
    reader.program = Some(counted("exec sleep 5"));
    let long = format!(r#"{{"awp_version":"0.1","x":"{}"}}"#, "x".repeat(5_000));
    let site = SiteName::parse("a.example").unwrap();
    let started = async {
        while !runs.exists() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::select! {
        read = reader.read(&site, document("a.example", &long)) => panic!("it was read: {read:?}"),
        () = started => {} // the future that reads the document is dropped
    }
    let restarted = Reader::start(store, Some(counted("exit 1")), &TaskTracker::new());
    let reason = reason(restarted.read(&site, document("a.example", &long)).await.unwrap());
    assert!(reason.contains("ended without a result"), "{reason}");
    let runs = std::fs::read_to_string(runs).unwrap();
    assert_eq!(runs.lines().count(), 2, "after an unfinished attempt a document is read once, not twice");
}

/// A process that gets no processor time misses the deadline, whatever it reads.
#[tokio::test]
async fn a_process_that_misses_its_deadline_on_a_busy_machine_does_not_quarantine_the_document() {
    let mut late = fixture(Duration::from_millis(50), None).await;
    late.reader.program =
        Some(ReaderProgram { path: PathBuf::from("/bin/sleep"), arguments: vec!["1".to_owned()] });
    let long = format!(r#"{{"awp_version":"0.1","x":"{}"}}"#, "x".repeat(5_000));
    let site = SiteName::parse("a.example").unwrap();
    for _ in 0..2 {
        let refused = late.reader.read(&site, document("a.example", &long)).await;
        assert!(matches!(refused, Err(ReadingError::Busy(_))), "{refused:?}");
        tokio::time::sleep(Duration::from_millis(1_100)).await;
    }
}

/// Occupies the only thread of a pool until the sender is dropped.
fn occupy(reader: &Reader) -> std::sync::mpsc::Sender<()> {
    let (release, released) = std::sync::mpsc::channel::<()>();
    let (pool, tracker) = (reader.pool.clone(), TaskTracker::new());
    tracker.spawn(async move { pool.read(move || released.recv().ok()).await });
    release
}

#[tokio::test]
async fn does_long_work_on_the_reader_threads() {
    let Fixture { reader, .. } = fixture(DEADLINE, None).await;
    let release = occupy(&reader);
    tokio::task::yield_now().await;
    assert_eq!(reader.run_unless_short(true, || 1).await.unwrap(), 1);
    let mut long = std::pin::pin!(reader.run_unless_short(false, || 2));
    let waits = tokio::time::timeout(Duration::from_millis(50), &mut long).await;
    assert!(waits.is_err(), "the thread is occupied");
    drop(release);
    assert_eq!(long.await.unwrap(), 2);
}

#[tokio::test]
async fn does_not_parse_a_stalled_or_failed_page_again() {
    let Fixture { reader, .. } = fixture(Duration::from_millis(500), None).await;
    let (release, released) = std::sync::mpsc::channel::<()>();
    let stalled = reader.run_unless_failed(b"<stalls>", move || released.recv().ok().map(|()| 0)).await;
    assert!(matches!(stalled, Err(ReadError::TimedOut { .. })), "{stalled:?}");
    let failed: Result<(), _> = reader.run_unless_failed(b"<fails>", || panic!("as a parser may")).await;
    // a busy machine may miss the deadline first
    assert!(failed.as_ref().is_err_and(ReadError::is_caused_by_document), "{failed:?}");
    for bytes in [&b"<stalls>"[..], b"<fails>"] {
        let again: Result<(), _> = reader.run_unless_failed(bytes, || panic!("it was parsed again")).await;
        let Err(ReadError::Panicked { message }) = again else { panic!("{again:?}") };
        assert!(message.contains("an earlier attempt"), "{message}");
    }
    assert_eq!(reader.run_unless_failed(b"<other>", || 1).await.unwrap(), 1);
    drop(release);
}

#[tokio::test]
async fn documents_are_deferred_while_reader_threads_are_busy() {
    let fixture = fixture(DEADLINE, None).await;
    let limits = ReaderLimits { threads: 1, queue: 0, queue_wait: Duration::ZERO, deadline: DEADLINE };
    let busy = Fixture { reader: fixture.reader.with_limits(limits), ..fixture };
    let release = occupy(&busy.reader);
    tokio::task::yield_now().await;
    let site = SiteName::parse("a.example").unwrap();
    let refused = busy.reader.read(&site, document("a.example", "{}")).await;
    assert!(matches!(refused, Err(ReadingError::Busy(_))), "{refused:?}");
    drop(release);
    let again = Fixture { reader: fixture.reader, ..busy };
    assert!(matches!(read(&again, "a.example", "{}").await, Reading::Read { .. }), "not quarantined");
}

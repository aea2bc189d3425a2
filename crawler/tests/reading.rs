//! A document that crashed its reader is read once more in a separate process, and skipped if that fails too.

#![expect(clippy::unwrap_used, reason = "a failed test should show the line")]

#[path = "support/program.rs"]
mod program_path;
#[expect(dead_code, reason = "each test program uses its own part")]
mod support;

use std::path::PathBuf;
use std::time::Duration;

use crawler::Summary;
use manifest::{ContentHash, Discovery, Host as SiteHost, ManifestUrl, READER_VERSION, SiteName};
use policy::FetchOutcome;
use runtime::{OwnedDocument, ReaderProgram, Unread};
use store::{ReadAttempt, ReadAttemptWrite, Seed};
use support::{AWP, Crawl, now};
use testweb::Host;
use tokio::time::Instant;

const SHOP: &str = "shop.example";
const PATH: &str = "/.well-known/agent.json";

/// A shop with the stored attempt of a crawler that was killed while it read a document of the shop.
fn attempt(reader_version: u32) -> ReadAttemptWrite {
    ReadAttemptWrite::Begin(ReadAttempt {
        hash: ContentHash::of(AWP.as_bytes()),
        reader_version,
        site: SiteName::parse(SHOP).unwrap(),
        url: ManifestUrl::parse(&format!("https://{SHOP}{PATH}")).unwrap(),
        began_at: now(),
    })
}

async fn shop_after_a_kill(reader: impl Into<PathBuf>, reader_version: u32) -> Crawl {
    let mut crawl = Crawl::of([Host::new(SHOP).file(PATH, "application/json", AWP)]).await;
    let arguments = vec!["read-document".to_owned()];
    crawl.config.reader = Some(ReaderProgram { path: reader.into(), arguments });
    assert_eq!(crawl.store.read_attempts_write(&[attempt(reader_version)]).await.unwrap(), [None]);
    crawl
}

#[tokio::test]
async fn reads_a_valid_document_in_a_second_process() {
    let mut crawl = shop_after_a_kill(program_path::crawler(), READER_VERSION).await;
    let summary = crawl.pass().await;
    assert_eq!((summary.manifests_added, summary.capabilities), (1, 1), "{summary:?}");
    // the attempt has ended, so the document is read normally from now on
    assert_eq!(crawl.store.read_attempts_write(&[attempt(READER_VERSION)]).await.unwrap(), [None]);
    let end = ReadAttemptWrite::End { hash: ContentHash::of(AWP.as_bytes()) };
    crawl.store.read_attempts_write(&[end]).await.unwrap();
    crawl.pass_again().await;
    assert!(crawl.outcome(SHOP, PATH).await.is_present());
}

#[tokio::test]
async fn quarantines_a_document_that_crashes_two_readers_until_it_changes() {
    let mut crawl = shop_after_a_kill("/bin/false", READER_VERSION).await;
    let summary = crawl.pass().await;
    assert_eq!(summary.manifests_added, 0, "{summary:?}");
    let fetch = crawl.fetch(SHOP, PATH).await;
    assert_eq!(fetch.outcome, FetchOutcome::Quarantined);
    let reason = fetch.reason.unwrap();
    assert!(reason.contains("quarantined on") && reason.contains("ended without a result"), "{reason}");
    // a reader that would succeed is not run again
    crawl.config.reader.as_mut().unwrap().path = program_path::crawler();
    visit_for_owner(&crawl).await;
    let again = crawl.fetch(SHOP, PATH).await;
    assert_eq!((again.outcome, again.reason), (FetchOutcome::Quarantined, Some(reason)));
    let changed = AWP.replace("Sell books", "Sell more books");
    crawl.web.set_file(SHOP, PATH, "application/json", changed);
    let summary = visit_for_owner(&crawl).await;
    assert_eq!(summary.manifests_added, 1, "{summary:?}");
}

/// A visit that the owner requests, which covers every path.
async fn visit_for_owner(crawl: &Crawl) -> Summary {
    let host: SiteHost = SHOP.parse().unwrap();
    crawl.store.visit_request_of_owner(&host.site(), now()).await.unwrap();
    let again = Seed { revisit_now: true, ..Seed::of_host(host) };
    crawl.store.seeds_add(&[again], now()).await.unwrap();
    crawl.pass().await
}

#[tokio::test]
async fn a_newer_reader_version_reads_quarantined_documents_again() {
    let crawl = shop_after_a_kill("/bin/false", READER_VERSION - 1).await;
    let summary = crawl.pass().await;
    assert_eq!(summary.manifests_added, 1, "{summary:?}");
}

/// A stop waits neither for the document nor for its deadline. The next pass reads the document.
#[tokio::test]
async fn a_stop_ends_a_crawl_whose_reader_hangs() {
    let long = AWP.replace("Sell books", &"Sell books. ".repeat(1_000));
    let mut crawl = Crawl::of([Host::new(SHOP).file(PATH, "application/json", long)]).await;
    let dir = tempfile::tempdir().unwrap();
    let reads = dir.path().join("reads");
    let script = format!("echo > {}; exec sleep 60", reads.display());
    let hanging = ReaderProgram { path: "/bin/sh".into(), arguments: vec!["-c".to_owned(), script] };
    crawl.config.reader = Some(hanging);
    let cancel = crawler::Cancel::default();
    let stops = async {
        while !reads.exists() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        cancel.soft.cancel();
        Instant::now()
    };
    let run = crawler::run(crawl.config.clone(), crawl.store.clone(), cancel.clone(), &|_| ());
    let (summary, stopped_at) =
        tokio::time::timeout(Duration::from_mins(1), async { tokio::join!(run, stops) }).await.unwrap();
    assert!(stopped_at.elapsed() < Duration::from_secs(10), "{:?}", stopped_at.elapsed());
    assert!(summary.unwrap().interrupted);
    let arguments = vec!["read-document".to_owned()];
    crawl.config.reader = Some(ReaderProgram { path: program_path::crawler(), arguments });
    let summary = crawl.pass().await;
    assert_eq!((summary.sites_visited, summary.manifests_added), (1, 1), "{summary:?}");
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn the_reader_process_has_limits_of_memory_and_processor_time() {
    let mut process = std::process::Command::new(program_path::crawler())
        .arg("read-document")
        .stdin(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let limits = || std::fs::read_to_string(format!("/proc/{}/limits", process.id())).unwrap();
    let is_limited = |name: &str, value: &str| {
        limits().lines().any(|line| {
            line.starts_with(name) && line.split_whitespace().filter(|word| *word == value).count() == 2
        })
    };
    let expected = [
        ("Max data size", "268435456"),
        ("Max cpu time", if cfg!(debug_assertions) { "30" } else { "3" }),
        ("Max core file size", "0"),
    ];
    let all = || expected.iter().all(|(name, value)| is_limited(name, value));
    let limited = async {
        while !all() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let limited = tokio::time::timeout(Duration::from_secs(30), limited).await;
    assert!(limited.is_ok(), "{}", limits());
    drop(process.stdin.take());
    assert_eq!(process.wait().unwrap().code(), Some(75), "no document");
}

/// A reader that waits without using the processor, like one that hangs.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn the_reader_process_ends_with_the_program_that_started_it() {
    use std::io::BufRead as _;

    let mut parent = std::process::Command::new("/bin/sh")
        .args(["-c", "exec 3<&0; \"$0\" read-document <&3 & echo $!; wait"])
        .arg(program_path::crawler())
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut id = String::new();
    std::io::BufReader::new(parent.stdout.take().unwrap()).read_line(&mut id).unwrap();
    let file =
        |name: &str| std::fs::read_to_string(format!("/proc/{}/{name}", id.trim())).unwrap_or_default();
    let is_limited =
        || file("limits").lines().any(|line| line.starts_with("Max data size") && line.contains("268435456"));
    let has_ended = || {
        let state = file("stat");
        state.is_empty() || state.contains(") Z ")
    };
    let until = async |is_so: &dyn Fn() -> bool| {
        let waiting = async {
            while !is_so() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(30), waiting).await.is_ok()
    };
    assert!(until(&is_limited).await, "{}", file("limits"));
    let input = parent.stdin.take();
    assert!(!has_ended());
    parent.kill().unwrap();
    parent.wait().unwrap();
    assert!(until(&has_ended).await, "{}", file("stat"));
    drop(input);
}

#[cfg(target_os = "linux")]
fn read_in_a_process(document: &OwnedDocument) -> Result<manifest::Manifest, Unread> {
    let program =
        ReaderProgram { path: program_path::crawler(), arguments: vec!["read-document".to_owned()] };
    program.read(document)
}

#[cfg(target_os = "linux")]
fn document(bytes: Vec<u8>, linked: Vec<Vec<u8>>) -> OwnedDocument {
    let url = |path: String| ManifestUrl::parse(&format!("https://shop.example/{path}")).unwrap();
    OwnedDocument {
        bytes,
        url: url("agent.json".to_owned()),
        final_url: None,
        discovery: Discovery::Root,
        served: None,
        linked: linked
            .into_iter()
            .enumerate()
            .map(|(index, bytes)| (url(format!("part{index}")), bytes))
            .collect(),
        force: None,
    }
}

/// The bytes of the document alone exceed the limit, in one piece or in many. So the test shows that the limit applies to every document.
#[cfg(target_os = "linux")]
#[test]
fn a_document_beyond_the_memory_limit_ends_only_the_reader_process() {
    const MIB: usize = 1_024 * 1_024;
    assert!(read_in_a_process(&document(vec![b' '; 16 * MIB], Vec::new())).is_ok());
    let in_one_piece = document(vec![b' '; 300 * MIB], Vec::new());
    let in_many = document(vec![b' '; 100], vec![vec![b' '; MIB / 8]; 8 * 300]);
    for too_large in [in_one_piece, in_many] {
        let unread = read_in_a_process(&too_large);
        assert!(matches!(&unread, Err(Unread::Document(reason)) if reason.contains("256 MiB")), "{unread:?}");
    }
}

/// The limit counts used memory. Memory that the allocator reserves, which differs with each start, does not count.
#[cfg(target_os = "linux")]
#[test]
fn the_reader_process_never_ends_without_a_result_for_a_valid_document() {
    let manifest = document(AWP.as_bytes().to_vec(), vec![vec![b' '; 50_000]]);
    for _ in 0..300 {
        assert!(read_in_a_process(&manifest).is_ok());
    }
}

//! A document that crashed its reader is read once more in a separate process, and skipped if that fails too.

#![expect(clippy::unwrap_used, reason = "a failed test should show the line")]

#[expect(dead_code, reason = "each test program uses its own part")]
mod support;

use std::path::PathBuf;

use crawler::ReaderProgram;
use manifest::{ContentHash, ManifestUrl, READER_VERSION, SiteName};
use policy::FetchOutcome;
use store::{ReadAttempt, ReadAttemptWrite};
use support::{AWP, Crawl, now, shop};

const SHOP: &str = "shop.example";
const PATH: &str = "/agent.json";

/// The attempt of a crawler that was killed while it read a document of the shop.
fn attempt(reader_version: u32) -> ReadAttemptWrite {
    ReadAttemptWrite::Begin(ReadAttempt {
        hash: ContentHash::of(AWP.as_bytes()),
        reader_version,
        site: SiteName::parse(SHOP).unwrap(),
        url: ManifestUrl::parse(&format!("https://{SHOP}{PATH}")).unwrap(),
        began_at: now(),
    })
}

async fn shop_after_a_kill(reader: &str, reader_version: u32) -> Crawl {
    let mut crawl = Crawl::of([shop()]).await;
    let arguments = vec!["read-document".to_owned()];
    crawl.config.reader = Some(ReaderProgram { path: PathBuf::from(reader), arguments });
    assert_eq!(crawl.store.read_attempts_write(&[attempt(reader_version)]).await.unwrap(), [None]);
    crawl
}

#[tokio::test]
async fn reads_a_valid_document_in_a_second_process() {
    let mut crawl = shop_after_a_kill(env!("CARGO_BIN_EXE_crawler"), READER_VERSION).await;
    let summary = crawl.pass().await;
    assert_eq!((summary.manifests_added, summary.capabilities), (1, 1), "{summary:?}");
    // the attempt has ended: the document is read normally from now on
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
    assert!(reason.contains("quarantined on") && reason.contains("second reader"), "{reason}");
    // a reader that would succeed is not run again
    crawl.config.reader.as_mut().unwrap().path = PathBuf::from(env!("CARGO_BIN_EXE_crawler"));
    crawl.pass_again().await;
    let again = crawl.fetch(SHOP, PATH).await;
    assert_eq!((again.outcome, again.reason), (FetchOutcome::Quarantined, Some(reason)));
    let changed = AWP.replace("Sell books", "Sell more books");
    crawl.web.set_file(SHOP, PATH, "application/json", changed);
    let summary = crawl.pass_again().await;
    assert_eq!(summary.manifests_added, 1, "{summary:?}");
}

#[tokio::test]
async fn a_newer_reader_version_reads_quarantined_documents_again() {
    let crawl = shop_after_a_kill("/bin/false", READER_VERSION - 1).await;
    let summary = crawl.pass().await;
    assert_eq!(summary.manifests_added, 1, "{summary:?}");
}

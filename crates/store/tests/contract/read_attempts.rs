//! Documents that are being read, and documents that crashed or stalled a reader.

use anyhow::Result;
use chrono::TimeDelta;
use manifest::ContentHash;
use store::{EarlierAttempt, ReadAttempt, ReadAttemptWrite};

use crate::build::{site, start, url};
use crate::harness::Db;

fn attempt(content: &str, host: &str) -> ReadAttempt {
    ReadAttempt {
        hash: ContentHash::of(content.as_bytes()),
        reader_version: 1,
        site: site(host),
        url: url(&format!("https://{host}/openapi.yaml")),
        began_at: start(),
    }
}

fn begin(content: &str, host: &str) -> ReadAttemptWrite {
    ReadAttemptWrite::Begin(attempt(content, host))
}

pub(crate) async fn keeps_an_attempt_until_its_document_is_read(Db { store, .. }: Db) -> Result<()> {
    let batch = [begin("one", "a.example"), begin("two", "b.example"), begin("one", "c.example")];
    let earlier =
        |host: &str| Some(EarlierAttempt { site: site(host), began_at: start(), quarantined: None });
    assert_eq!(store.read_attempts_write(&batch).await?, [None, None, earlier("a.example")]);
    let again = [begin("two", "d.example"), begin("three", "d.example")];
    assert_eq!(store.read_attempts_write(&again).await?, [earlier("b.example"), None]);
    let end = ReadAttemptWrite::End { hash: ContentHash::of(b"one") };
    assert_eq!(store.read_attempts_write(&[begin("one", "e.example"), end]).await?, [None, None]);
    assert_eq!(store.read_attempts_write(&[]).await?, []);
    Ok(())
}

/// Two workers begin and end attempts at one document. If a worker receives no earlier attempt, its own is stored.
pub(crate) async fn stores_an_attempt_unless_an_earlier_one_exists(Db { store, .. }: Db) -> Result<()> {
    let end = || ReadAttemptWrite::End { hash: ContentHash::of(b"one") };
    let worker = |host: &'static str| {
        let store = store.clone();
        async move {
            for round in 0..150 {
                if store.read_attempts_write(&[begin("one", host)]).await?[0].is_none() {
                    let seen = store.read_attempts_write(&[begin("one", "c.example")]).await?;
                    let by = seen[0].as_ref().map(|earlier| earlier.site.clone());
                    anyhow::ensure!(by == Some(site(host)), "round {round} of {host}: {by:?}");
                    store.read_attempts_write(&[end()]).await?;
                }
            }
            Ok(())
        }
    };
    futures::try_join!(worker("a.example"), worker("b.example"))?;
    Ok(())
}

pub(crate) async fn reads_a_quarantined_document_again_only_with_another_version(
    Db { store, .. }: Db,
) -> Result<()> {
    let reason = "the document was not read within 20 s\0".to_owned() + &"x".repeat(1_000);
    let quarantine =
        ReadAttemptWrite::Quarantine { attempt: attempt("one", "a.example"), at: start(), reason };
    assert_eq!(store.read_attempts_write(&[begin("one", "a.example")]).await?, [None]);
    assert_eq!(store.read_attempts_write(&[quarantine.clone(), quarantine]).await?, [None, None]);
    let seen = store.read_attempts_write(&[begin("one", "b.example")]).await?;
    let reason = seen[0].as_ref().and_then(|earlier| earlier.quarantined.clone()).unwrap_or_default();
    assert!(reason.starts_with("the document was not read within 20 sxxx"), "{reason}");
    assert_eq!(reason.chars().count(), 300);
    let newer = ReadAttempt { reader_version: 2, ..attempt("one", "b.example") };
    assert_eq!(store.read_attempts_write(&[ReadAttemptWrite::Begin(newer)]).await?, [None]);
    let seen = store.read_attempts_write(&[begin("one", "c.example")]).await?;
    assert!(seen[0].is_some(), "an older reader does not change the newer attempt");
    Ok(())
}

pub(crate) async fn block_and_expiry_remove_attempts(Db { store, .. }: Db) -> Result<()> {
    let now = start();
    store.read_attempts_write(&[begin("one", "a.example"), begin("two", "b.example")]).await?;
    let quarantine = ReadAttemptWrite::Quarantine {
        attempt: attempt("three", "b.example"),
        at: now,
        reason: "it ended its reader".to_owned(),
    };
    store.read_attempts_write(&[quarantine]).await?;
    store.site_block(&site("a.example"), "asked by mail", now).await?;
    assert_eq!(store.read_attempts_write(&[begin("one", "c.example")]).await?, [None]);
    store.housekeeping(now + TimeDelta::days(100)).await?;
    let after = store.read_attempts_write(&[begin("two", "c.example"), begin("three", "c.example")]).await?;
    assert_eq!(after[0], None);
    assert!(after[1].as_ref().is_some_and(|earlier| earlier.quarantined.is_some()), "{after:?}");
    Ok(())
}

//! Reader keys: one per name, listed and revoked.

use anyhow::Result;
use policy::key::{IssuedKey, KeyKind};
use store::{ReaderKey, ReaderKeyOutcome};

use crate::build::{later, start};
use crate::harness::Db;

pub(crate) fn key(name: &str, byte: u8) -> ReaderKey {
    ReaderKey {
        name: name.to_owned(),
        hash: IssuedKey::new(KeyKind::Reader, &[byte; 32]).hash,
        reads_per_second: std::num::NonZeroU32::MIN,
        created_at: start(),
    }
}

pub(crate) async fn a_reader_has_one_key_until_it_is_revoked(Db { store, .. }: Db) -> Result<()> {
    let (web, batch) = (key("web", 1), key("batch", 2));
    assert_eq!(store.reader_key_add(&web).await?, ReaderKeyOutcome::Added);
    assert_eq!(store.reader_key_add(&batch).await?, ReaderKeyOutcome::Added);
    let again = ReaderKey { created_at: later(9), ..key("web", 3) };
    assert_eq!(store.reader_key_add(&again).await?, ReaderKeyOutcome::NameTaken);
    assert_eq!(store.reader_keys().await?, [batch.clone(), web]);
    assert!(store.reader_key_revoke("web").await?);
    assert!(!store.reader_key_revoke("web").await?);
    assert_eq!(store.reader_key_add(&again).await?, ReaderKeyOutcome::Added);
    assert_eq!(store.reader_keys().await?, [batch, again]);
    Ok(())
}

pub(crate) async fn reader_keys_have_a_cap(Db { store, .. }: Db) -> Result<()> {
    for number in 0..store::READER_KEYS_MAX {
        let random = IssuedKey::new(KeyKind::Reader, &{
            let mut random = [0; 32];
            random[..4].copy_from_slice(&number.to_be_bytes());
            random
        });
        let one = ReaderKey { hash: random.hash, ..key(&format!("reader-{number}"), 0) };
        assert_eq!(store.reader_key_add(&one).await?, ReaderKeyOutcome::Added);
    }
    assert_eq!(store.reader_key_add(&key("one-more", 255)).await?, ReaderKeyOutcome::Full);
    Ok(())
}

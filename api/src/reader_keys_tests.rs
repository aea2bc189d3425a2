//! Tests for where a key is read from, when it is refused, and how the table is cached.

use policy::key::IssuedKey;

use super::*;
use crate::test_app;
use crate::timeouts::ClientTimeouts;

const RANDOM: [u8; 32] = [7; 32];

fn headers(authorization: &str) -> HeaderMap {
    HeaderMap::from_iter([(header::AUTHORIZATION, authorization.parse().unwrap())])
}

fn two_a_second(name: &str) -> ReaderKey {
    ReaderKey {
        name: name.to_owned(),
        hash: IssuedKey::new(KeyKind::Reader, &RANDOM).hash,
        reads_per_second: NonZeroU32::new(2).unwrap(),
        created_at: crate::clock::now(),
    }
}

#[test]
fn reads_keys_from_bearer_tokens_and_passwords() {
    let key = IssuedKey::new(KeyKind::Reader, &RANDOM).key;
    let basic = |text: &str| format!("Basic {}", BASE64.encode(text.as_bytes()));
    for sent in [format!("Bearer {key}"), format!("bearer  {key} "), basic(&format!("anyone:{key}"))] {
        assert_eq!(key_in(&sent).as_deref(), Some(key.as_str()), "{sent}");
    }
    let owner = IssuedKey::new(KeyKind::Owner, &RANDOM).key;
    for other in [format!("Bearer {owner}"), key.clone(), basic(&key), "Basic !".into(), "Digest x".into()] {
        assert_eq!(key_in(&other), None, "{other}");
    }
}

#[tokio::test]
async fn a_revoked_key_is_refused_after_the_cache_ends() {
    let (app, _dir) = test_app::app(limits::LimitsConfig::default(), ClientTimeouts::default()).await;
    let sent = headers(&format!("Bearer {}", IssuedKey::new(KeyKind::Reader, &RANDOM).key));
    let keys = ReaderKeys::default();
    let end_cache = async || {
        if let Some(table) = &mut *keys.locked() {
            table.read_at = table.read_at.checked_sub(CACHED_FOR).unwrap();
        }
    };
    let status = async || {
        let admitted = keys.admit(&app.store, &sent).await;
        admitted.map(|reader| reader.is_some()).map_err(|problem| problem.body().status.as_u16())
    };
    assert_eq!(status().await, Err(401));
    app.store.reader_key_add(&two_a_second("web")).await.unwrap();
    end_cache().await;
    assert_eq!(status().await, Ok(true));
    app.store.reader_key_revoke("web").await.unwrap();
    assert_eq!(status().await, Ok(true), "the key is still cached");
    end_cache().await;
    assert_eq!(status().await, Err(401));
    assert!(keys.admit(&app.store, &HeaderMap::new()).await.unwrap().is_none());
}

#[tokio::test]
async fn one_request_reads_the_table_again_and_the_others_do_not_queue() {
    let (app, _dir) = test_app::app(limits::LimitsConfig::default(), ClientTimeouts::default()).await;
    let keys = ReaderKeys::default();
    let asked = async || {
        timeout(READ_MAX + READ_MAX / 2, keys.readers(&app.store, CACHED_FOR)).await.unwrap().is_ok()
    };
    let age = |age: Duration| {
        if let Some(table) = &mut *keys.locked() {
            table.read_at = Instant::now().checked_sub(age).unwrap();
        }
    };
    // a database that hangs: the request that reads the table has the lock
    let hanging = keys.refresh.lock().await;
    let waiting = tokio::join!(asked(), asked(), asked());
    assert_eq!(waiting, (false, false, false), "there is no previous table, and all requests end in time");
    drop(hanging);
    assert!(asked().await);
    let _hanging = keys.refresh.lock().await;
    age(CACHED_FOR);
    let at_once = timeout(READ_MAX / 4, asked()).await;
    assert_eq!(at_once, Ok(true), "the last table is used meanwhile");
    // after a long time without requests, the old table is not used, so a revoked key is not accepted
    age(10 * CACHED_FOR);
    let began = Instant::now();
    assert!(asked().await && began.elapsed() >= READ_MAX, "the database is unavailable");
    assert!(asked().await && began.elapsed() < READ_MAX + READ_MAX / 4);
}

#[test]
fn a_reader_keeps_its_bucket_when_the_table_is_read_again() {
    let key = two_a_second("web");
    let first = renewed(std::slice::from_ref(&key), &Readers::default());
    let reader = &first[&key.hash];
    let taken: Vec<bool> = (0..9).map(|_| reader.take().is_ok()).collect();
    assert_eq!(taken.iter().filter(|taken| **taken).count(), 8, "a burst of four seconds");
    let second = renewed(std::slice::from_ref(&key), &first);
    assert!(second[&key.hash].take().is_err());
    let expected =
        ReaderUsage { name: "web".into(), reads_per_second: key.reads_per_second, requests: 10, refused: 2 };
    assert_eq!(second[&key.hash].usage(), expected);
    let wider = ReaderKey { reads_per_second: NonZeroU32::new(9).unwrap(), ..key };
    assert!(renewed(std::slice::from_ref(&wider), &second)[&wider.hash].take().is_ok());
}

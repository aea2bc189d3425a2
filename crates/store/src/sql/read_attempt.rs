//! Documents that are being read, and documents that ended or stalled a reader.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde::Serialize;

use super::Connection;
use crate::fault::Outcome;
use crate::model::read_attempt::REASON_CHARS_MAX;
use crate::model::{EarlierAttempt, ReadAttempt, ReadAttemptWrite};
use crate::pack::{Place, json, logged, millis, names, text};

/// Tries to begin an attempt that others of the same document begin and end meanwhile.
const BEGINS_MAX: usize = 5;

/// A row as it is read back: hash, site, begin, quarantine, reason.
type EarlierRow = (String, String, i64, Option<i64>, Option<String>);

/// A row as the statements take it: hash, reader version, site, URL, begin, quarantine, reason.
#[derive(Serialize)]
struct Row<'a>(&'a str, u32, &'a str, &'a str, i64, Option<i64>, Option<String>);

impl<'a> Row<'a> {
    fn begun(attempt: &'a ReadAttempt) -> Self {
        Self(
            attempt.hash.as_str(),
            attempt.reader_version,
            attempt.site.as_str(),
            attempt.url.as_str(),
            millis(attempt.began_at),
            None,
            None,
        )
    }
}

/// Writes a batch: ends first, then quarantines, then begins. Returns, for each begin, the attempt of the same reader version
/// that was there before; nothing is written for such a begin.
pub(crate) async fn attempts_write(
    connection: &mut Connection,
    writes: &[ReadAttemptWrite],
) -> Outcome<Vec<Option<EarlierAttempt>>> {
    end(connection, writes).await?;
    quarantine(connection, writes).await?;
    begin(connection, writes).await
}

async fn end(connection: &mut Connection, writes: &[ReadAttemptWrite]) -> Outcome<()> {
    let ended = writes.iter().filter_map(|write| match write {
        ReadAttemptWrite::End { hash } => Some(hash.as_str()),
        _ => None,
    });
    let ended: Vec<&str> = ended.collect();
    if ended.is_empty() {
        return Ok(());
    }
    sqlx::query("DELETE FROM read_attempt WHERE hash IN (SELECT value ->> 0 FROM json_each($1))")
        .bind(names(ended)?)
        .execute(&mut *connection)
        .await?;
    Ok(())
}

async fn quarantine(connection: &mut Connection, writes: &[ReadAttemptWrite]) -> Outcome<()> {
    // one row for each document, in the order of the key, so that concurrent batches lock them in the same order
    let mut rows = BTreeMap::new();
    for write in writes {
        if let ReadAttemptWrite::Quarantine { attempt, at, reason } = write {
            let reason = text(reason).chars().take(REASON_CHARS_MAX).collect();
            let Row(hash, version, site, url, began, ..) = Row::begun(attempt);
            rows.insert(hash, Row(hash, version, site, url, began, Some(millis(*at)), Some(reason)));
        }
    }
    if rows.is_empty() {
        return Ok(());
    }
    sqlx::query(
        "INSERT INTO read_attempt (hash, reader_version, site, url, began_at_ms, quarantined_at_ms, reason)
         SELECT value ->> 0, CAST(value ->> 1 AS BIGINT), value ->> 2, value ->> 3, CAST(value ->> 4 AS BIGINT),
                CAST(value ->> 5 AS BIGINT), value ->> 6
         FROM json_each($1) WHERE true
         ON CONFLICT (hash) DO UPDATE SET
             reader_version = excluded.reader_version, site = excluded.site, url = excluded.url,
             began_at_ms = excluded.began_at_ms, quarantined_at_ms = excluded.quarantined_at_ms,
             reason = excluded.reason",
    )
    .bind(json(&rows.values().collect::<Vec<_>>(), "batch of quarantined documents")?)
    .execute(&mut *connection)
    .await?;
    Ok(())
}

/// Another worker may end its attempt between the insert, which it stands against, and the search for it: then the insert is
/// repeated.
async fn begin(
    connection: &mut Connection,
    writes: &[ReadAttemptWrite],
) -> Outcome<Vec<Option<EarlierAttempt>>> {
    let mut attempts: BTreeMap<&str, &ReadAttempt> = BTreeMap::new();
    for write in writes {
        if let ReadAttemptWrite::Begin(attempt) = write {
            attempts.entry(attempt.hash.as_str()).or_insert(attempt);
        }
    }
    if attempts.is_empty() {
        return Ok(vec![None; writes.len()]);
    }
    let begins = writes.iter().filter(|write| matches!(write, ReadAttemptWrite::Begin(_))).count();
    let (mut begun, mut earlier) = (HashSet::new(), HashMap::new());
    for _ in 0..BEGINS_MAX {
        let open = |hash: &str| !begun.contains(hash) && !earlier.contains_key(hash);
        let rows: Vec<Row<'_>> =
            attempts.iter().filter(|(hash, _)| open(hash)).map(|(_, attempt)| Row::begun(attempt)).collect();
        if rows.is_empty() {
            break;
        }
        begun.extend(insert(connection, &rows).await?);
        if begun.len() < begins {
            earlier.extend(find_earlier(connection, &attempts).await?);
        }
    }
    let answer = |write: &ReadAttemptWrite| match write {
        // the first of several begins of one document in this batch is the one that was written
        ReadAttemptWrite::Begin(attempt) if !begun.remove(attempt.hash.as_str()) => {
            earlier.get(attempt.hash.as_str()).cloned()
        }
        _ => None,
    };
    Ok(writes.iter().map(answer).collect())
}

/// Writes the attempts that no row of the same reader version stands against; returns their hashes.
async fn insert(connection: &mut Connection, rows: &[Row<'_>]) -> Outcome<Vec<String>> {
    let begun = sqlx::query_scalar(
        "INSERT INTO read_attempt (hash, reader_version, site, url, began_at_ms)
         SELECT value ->> 0, CAST(value ->> 1 AS BIGINT), value ->> 2, value ->> 3, CAST(value ->> 4 AS BIGINT)
         FROM json_each($1) WHERE true
         ON CONFLICT (hash) DO UPDATE SET
             reader_version = excluded.reader_version, site = excluded.site, url = excluded.url,
             began_at_ms = excluded.began_at_ms, quarantined_at_ms = NULL, reason = NULL
         WHERE read_attempt.reader_version < excluded.reader_version
         RETURNING hash",
    )
    .bind(json(&rows, "batch of documents to read")?)
    .fetch_all(&mut *connection)
    .await?;
    Ok(begun)
}

async fn find_earlier(
    connection: &mut Connection,
    attempts: &BTreeMap<&str, &ReadAttempt>,
) -> Outcome<HashMap<String, EarlierAttempt>> {
    let rows: Vec<EarlierRow> = sqlx::query_as(
        "SELECT hash, site, began_at_ms, quarantined_at_ms, reason FROM read_attempt
         WHERE hash IN (SELECT value ->> 0 FROM json_each($1))",
    )
    .bind(names(attempts.keys().copied())?)
    .fetch_all(&mut *connection)
    .await?;
    let mut earlier = HashMap::with_capacity(rows.len());
    for (hash, site, began_at_ms, quarantined_at_ms, reason) in rows {
        let place = Place::new("read_attempt", &hash);
        // A damaged row still says that there was an attempt.
        let asked = attempts.get(hash.as_str()).map(|attempt| attempt.site.clone());
        let Some(site) = logged(place.parse("site", &site)).or(asked) else { continue };
        let attempt = EarlierAttempt {
            site,
            began_at: place.nearest_time("began_at_ms", began_at_ms),
            quarantined: quarantined_at_ms.map(|_| reason.unwrap_or_default()),
        };
        earlier.insert(hash, attempt);
    }
    Ok(earlier)
}

//! Documents that are being read, and documents that ended or stalled a reader.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde::Serialize;

use super::rows::decode_by;
use super::{Connection, batch};
use crate::convert::{RowRef, json, log_damaged, millis, names, text};
use crate::fault::Outcome;
use crate::model::read_attempt::REASON_CHARS_MAX;
use crate::model::{EarlierAttempt, ReadAttempt, ReadAttemptWrite};

/// Maximum number of retries to begin an attempt while other attempts at the same document begin and end.
const BEGINS_MAX: usize = 5;

/// The columns of a row: hash, site, begin, quarantine, reason.
type EarlierRow = (String, String, i64, Option<i64>, Option<String>);

/// An attempt in a batch.
#[derive(Serialize)]
struct AttemptRow<'a> {
    hash: &'a str,
    reader_version: u32,
    site: &'a str,
    url: &'a str,
    began_at_ms: i64,
    quarantined_at_ms: Option<i64>,
    reason: Option<String>,
}

impl<'a> AttemptRow<'a> {
    fn begun(attempt: &'a ReadAttempt) -> Self {
        Self {
            hash: attempt.hash.as_str(),
            reader_version: attempt.reader_version,
            site: attempt.site.as_str(),
            url: attempt.url.as_str(),
            began_at_ms: millis(attempt.began_at),
            quarantined_at_ms: None,
            reason: None,
        }
    }
}

/// Writes a batch: ends first, then quarantines, then begins. For each begin, returns the attempt by the same reader version that was
/// already stored, if any; such a begin is not written.
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
    sqlx::query(concat!("DELETE FROM read_attempt WHERE hash IN ", list!()))
        .bind(names(ended)?)
        .execute(&mut *connection)
        .await?;
    Ok(())
}

async fn quarantine(connection: &mut Connection, writes: &[ReadAttemptWrite]) -> Outcome<()> {
    // One row for each document, sorted by the key, so concurrent batches lock them in one order.
    let mut rows = BTreeMap::new();
    for write in writes {
        if let ReadAttemptWrite::Quarantine { attempt, at, reason } = write {
            let reason = text(reason).chars().take(REASON_CHARS_MAX).collect();
            let row = AttemptRow {
                quarantined_at_ms: Some(millis(*at)),
                reason: Some(reason),
                ..AttemptRow::begun(attempt)
            };
            rows.insert(row.hash, row);
        }
    }
    if rows.is_empty() {
        return Ok(());
    }
    sqlx::query(concat!(
        "INSERT INTO read_attempt (hash, reader_version, site, url, began_at_ms, quarantined_at_ms, reason)
         SELECT hash, reader_version, site, url, began_at_ms, quarantined_at_ms, reason FROM ",
        batch!(
            hash TEXT, reader_version BIGINT, site TEXT, url TEXT, began_at_ms BIGINT, quarantined_at_ms BIGINT,
            reason TEXT
        ),
        " WHERE true
         ON CONFLICT (hash) DO UPDATE SET
             reader_version = excluded.reader_version, site = excluded.site, url = excluded.url,
             began_at_ms = excluded.began_at_ms, quarantined_at_ms = excluded.quarantined_at_ms,
             reason = excluded.reason"
    ))
    .bind(json(&rows.values().collect::<Vec<_>>(), "batch of quarantined documents")?)
    .execute(&mut *connection)
    .await?;
    Ok(())
}

/// Repeats the insert if another worker's attempt prevented it but ended before it could be found.
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
        let rows: Vec<AttemptRow<'_>> = attempts
            .iter()
            .filter(|(hash, _)| open(hash))
            .map(|(_, attempt)| AttemptRow::begun(attempt))
            .collect();
        if rows.is_empty() {
            break;
        }
        begun.extend(insert(connection, &rows).await?);
        if begun.len() < begins {
            earlier.extend(find_earlier(connection, &attempts).await?);
        }
    }
    let answer = |write: &ReadAttemptWrite| match write {
        // If a document begins several times in this batch, the first attempt was written.
        ReadAttemptWrite::Begin(attempt) if !begun.remove(attempt.hash.as_str()) => {
            earlier.get(attempt.hash.as_str()).cloned()
        }
        _ => None,
    };
    Ok(writes.iter().map(answer).collect())
}

/// Writes the attempts that have no row of the same reader version yet, and returns their hashes.
async fn insert(connection: &mut Connection, rows: &[AttemptRow<'_>]) -> Outcome<Vec<String>> {
    let begun = sqlx::query_scalar(concat!(
        "INSERT INTO read_attempt (hash, reader_version, site, url, began_at_ms)
         SELECT hash, reader_version, site, url, began_at_ms FROM ",
        batch!(hash TEXT, reader_version BIGINT, site TEXT, url TEXT, began_at_ms BIGINT),
        " WHERE true
         ON CONFLICT (hash) DO UPDATE SET
             reader_version = excluded.reader_version, site = excluded.site, url = excluded.url,
             began_at_ms = excluded.began_at_ms, quarantined_at_ms = NULL, reason = NULL
         WHERE read_attempt.reader_version < excluded.reader_version
         RETURNING hash"
    ))
    .bind(json(&rows, "batch of documents to read")?)
    .fetch_all(&mut *connection)
    .await?;
    Ok(begun)
}

async fn find_earlier(
    connection: &mut Connection,
    attempts: &BTreeMap<&str, &ReadAttempt>,
) -> Outcome<HashMap<String, EarlierAttempt>> {
    let rows = sqlx::query(concat!(
        "SELECT hash, site, began_at_ms, quarantined_at_ms, reason FROM read_attempt WHERE hash IN ",
        list!()
    ))
    .bind(names(attempts.keys().copied())?)
    .fetch_all(&mut *connection)
    .await?;
    let mut earlier = HashMap::with_capacity(rows.len());
    for (hash, row) in decode_by::<EarlierRow>(&["read_attempt"], "hash", &rows) {
        let at = RowRef::new("read_attempt", &hash);
        // a damaged row still proves that there was an attempt
        let (_, site, began_at_ms, quarantined_at_ms, reason) = log_damaged(row).unwrap_or_default();
        let requested = attempts.get(hash.as_str()).map(|attempt| attempt.site.clone());
        let Some(site) = log_damaged(at.parse("site", &site)).or(requested) else { continue };
        let attempt = EarlierAttempt {
            site,
            began_at: at.nearest_time("began_at_ms", began_at_ms),
            quarantined: quarantined_at_ms.map(|_| reason.unwrap_or_default()),
        };
        earlier.insert(hash, attempt);
    }
    Ok(earlier)
}

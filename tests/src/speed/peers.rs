//! The capabilities of the search benchmark in other engines: a plain tantivy index as in its examples, SQLite FTS5, PostgreSQL full-text
//! search, and Xapian if its Python binding is installed.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::Context;
use serde::Deserialize;
use serde_json::json;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{ConnectOptions, Connection, PgConnection};
use store::StoredManifest;
use tantivy::schema::{IndexRecordOption, STORED, STRING, Schema, TextFieldIndexing, TextOptions};

use super::generated::Texts;
use super::measure::now;
use crate::relevance::engines::{fts5_query, split, tsquery};

/// Memory and threads as in the indexer.
const MEMORY_BYTES: usize = 128 << 20;
const THREADS: usize = 2;
/// Sites whose capabilities are generated and inserted together. A batch takes a few MiB, regardless of the number of capabilities.
const SITES_PER_BATCH: usize = 100;

/// A capability for a peer.
#[derive(Debug, Clone)]
pub struct PlainText {
    pub id: String,
    pub text: String,
    /// The displayed row, as JSON.
    pub row: String,
}

/// The capabilities of a manifest as plain texts.
fn plain(stored: &StoredManifest) -> anyhow::Result<Vec<PlainText>> {
    let text = |capability: &manifest::model::Capability| {
        let parameters = capability.parameters.as_ref().map(ToString::to_string).unwrap_or_default();
        let description = capability.description.as_deref().unwrap_or_default();
        Ok(PlainText {
            id: capability.id.as_str().to_owned(),
            text: split(&format!("{} {description} {parameters}", capability.name)),
            row: serde_json::to_string(capability)?,
        })
    };
    stored.manifest.capabilities.iter().map(text).collect()
}

/// The capabilities of the first generated sites, in batches that are generated as they are read.
pub fn batches(texts: &Texts, sites: usize) -> impl Iterator<Item = anyhow::Result<Vec<PlainText>>> {
    (0..sites).step_by(SITES_PER_BATCH).map(move |first| {
        let mut batch = Vec::new();
        for number in first..sites.min(first + SITES_PER_BATCH) {
            batch.extend(plain(&texts.site(number)?)?);
        }
        Ok(batch)
    })
}

/// Fills a plain index: an id, one text with the engine's own English analysis and positions, and a stored row. Returns the time from the
/// first document to the end of the merges, without that of generating the texts.
pub fn tantivy_filled(
    dir: &Path,
    batches: impl Iterator<Item = anyhow::Result<Vec<PlainText>>>,
) -> anyhow::Result<Duration> {
    let mut builder = Schema::builder();
    let indexing = TextFieldIndexing::default()
        .set_tokenizer("en_stem")
        .set_index_option(IndexRecordOption::WithFreqsAndPositions);
    let id = builder.add_text_field("id", STRING | STORED);
    let text = builder.add_text_field("text", TextOptions::default().set_indexing_options(indexing));
    let row = builder.add_text_field("row", STORED);
    let index = tantivy::Index::create_in_dir(dir, builder.build())?;
    let mut writer = index.writer_with_num_threads(THREADS, MEMORY_BYTES)?;
    let mut time = Duration::ZERO;
    for batch in batches {
        let batch = batch?;
        let start = now();
        for of in &batch {
            writer.add_document(
                tantivy::doc!(id => of.id.as_str(), text => of.text.as_str(), row => of.row.as_str()),
            )?;
        }
        time += start.elapsed();
    }
    let start = now();
    writer.commit()?;
    writer.wait_merging_threads()?;
    Ok(time + start.elapsed())
}

/// FTS5 in a database file.
pub struct Fts5 {
    db: SqliteConnection,
}

impl Fts5 {
    pub async fn filled(
        path: &Path,
        batches: impl Iterator<Item = anyhow::Result<Vec<PlainText>>>,
    ) -> anyhow::Result<(Self, Duration)> {
        let options = SqliteConnectOptions::new().filename(path).create_if_missing(true);
        let mut db = options.connect().await?;
        sqlx::query("CREATE VIRTUAL TABLE tools USING fts5(id UNINDEXED, text, tokenize='porter')")
            .execute(&mut db)
            .await?;
        let mut time = Duration::ZERO;
        let mut transaction = db.begin().await?;
        for batch in batches {
            let batch = batch?;
            let start = now();
            for of in &batch {
                sqlx::query("INSERT INTO tools VALUES (?, ?)")
                    .bind(&of.id)
                    .bind(&of.text)
                    .execute(&mut *transaction)
                    .await?;
            }
            time += start.elapsed();
        }
        let start = now();
        transaction.commit().await?;
        Ok((Self { db }, time + start.elapsed()))
    }

    pub async fn search(&mut self, text: &str) -> anyhow::Result<usize> {
        let sql = "SELECT id FROM tools WHERE tools MATCH ? ORDER BY rank LIMIT 20";
        let found: Vec<String> =
            sqlx::query_scalar(sql).bind(fts5_query(text)).fetch_all(&mut self.db).await?;
        Ok(found.len())
    }
}

/// A GIN index and `ts_rank`.
pub struct Postgres {
    db: PgConnection,
}

impl Postgres {
    pub async fn filled(
        url: &str,
        batches: impl Iterator<Item = anyhow::Result<Vec<PlainText>>>,
    ) -> anyhow::Result<(Self, Duration)> {
        let mut db = PgConnection::connect(url).await.context("PostgreSQL cannot be reached")?;
        sqlx::query("CREATE TEMPORARY TABLE tools (id text, words tsvector)").execute(&mut db).await?;
        let mut time = Duration::ZERO;
        for batch in batches {
            let batch = batch?;
            let start = now();
            let (ids, words): (Vec<&str>, Vec<&str>) =
                batch.iter().map(|of| (of.id.as_str(), of.text.as_str())).unzip();
            sqlx::query(
                "INSERT INTO tools SELECT id, to_tsvector('english', words) FROM UNNEST($1::text[], $2::text[]) AS rows(id, words)",
            )
            .bind(ids)
            .bind(words)
            .execute(&mut db)
            .await?;
            time += start.elapsed();
        }
        let start = now();
        sqlx::query("CREATE INDEX ON tools USING gin (words)").execute(&mut db).await?;
        sqlx::query("ANALYZE tools").execute(&mut db).await?;
        Ok((Self { db }, time + start.elapsed()))
    }

    pub async fn search(&mut self, text: &str) -> anyhow::Result<usize> {
        let sql = "SELECT id FROM tools, to_tsquery('english', $1) AS wanted WHERE words @@ wanted \
                   ORDER BY ts_rank(words, wanted, 1) DESC LIMIT 20";
        let found: Vec<String> = sqlx::query_scalar(sql).bind(tsquery(text)).fetch_all(&mut self.db).await?;
        Ok(found.len())
    }
}

/// Run times of Xapian in seconds.
#[derive(Debug, Deserialize)]
pub struct Xapian {
    pub indexing: f64,
    /// The time of each request, by kind.
    pub requests: BTreeMap<String, Vec<f64>>,
}

impl Xapian {
    /// Runs Xapian in a separate directory; `None` if no installed Python has the binding.
    pub fn measured(
        dir: &Path,
        batches: impl Iterator<Item = anyhow::Result<Vec<PlainText>>>,
        requests: &BTreeMap<&str, &[String]>,
    ) -> anyhow::Result<Option<Self>> {
        let has_binding = |python: &&str| {
            let tried = Command::new(python).args(["-c", "import xapian"]).output();
            tried.is_ok_and(|tried| tried.status.success())
        };
        // Only the Python of the distribution has its packages, although another one may come first in the path.
        let Some(python) = ["python3", "/usr/bin/python3"].into_iter().find(has_binding) else {
            return Ok(None);
        };
        let mut lines = BufWriter::new(File::create(dir.join("texts.jsonl"))?);
        for batch in batches {
            for of in batch? {
                writeln!(lines, "{}", json!({"id": of.id, "text": of.text}))?;
            }
        }
        lines.into_inner()?.sync_all()?;
        std::fs::write(dir.join("requests.json"), serde_json::to_string(requests)?)?;
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/bench-search/xapian_peer.py");
        let done = Command::new(python).arg(script).arg(dir).output().context("Xapian cannot be run")?;
        anyhow::ensure!(done.status.success(), "Xapian: {}", String::from_utf8_lossy(&done.stderr));
        Ok(Some(serde_json::from_slice(&done.stdout)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn xapian_answers_each_request_where_it_is_installed() {
        let dir = tempfile::tempdir().unwrap();
        let text = |id: &str, text: &str| PlainText { id: id.into(), text: text.into(), row: String::new() };
        let texts = [text("a", "book a flight"), text("b", "cancel the booking")];
        let asked = ["book".to_owned(), "flight to oslo".to_owned()];
        let requests = BTreeMap::from([("keyword", asked.as_slice())]);
        let batches = std::iter::once(Ok(texts.to_vec()));
        if let Some(found) = Xapian::measured(dir.path(), batches, &requests).unwrap() {
            assert_eq!(found.requests["keyword"].len(), 2);
            assert!(found.indexing > 0.0);
        }
    }
}

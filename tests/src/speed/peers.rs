//! The same capabilities in other engines: a bare index of tantivy as its examples make one, FTS5 of SQLite, the full text
//! of PostgreSQL.

use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{ConnectOptions, Connection, PgConnection};
use store::StoredManifest;
use tantivy::schema::{IndexRecordOption, STORED, STRING, Schema, TextFieldIndexing, TextOptions};

use super::measure::now;
use crate::relevance::engines::{fts5_query, split, tsquery};

/// Memory and threads as our own indexer has them.
const MEMORY_BYTES: usize = 128 << 20;
const THREADS: usize = 2;
/// Rows that PostgreSQL is sent at once.
const ROWS_AT_ONCE: usize = 2_000;

/// A capability as a peer gets it.
#[derive(Debug, Clone)]
pub struct PlainText {
    pub id: String,
    pub text: String,
    /// What an answer shows, as JSON.
    pub row: String,
}

/// The capabilities of a manifest as plain texts.
pub fn plain(stored: &StoredManifest) -> anyhow::Result<Vec<PlainText>> {
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

/// Fills a bare index: an id, one text with the engine's own English analysis and positions, a stored row. Returns the
/// time from the first document to the end of merges.
pub fn tantivy_filled(dir: &Path, texts: &[PlainText]) -> anyhow::Result<Duration> {
    let mut builder = Schema::builder();
    let indexing = TextFieldIndexing::default()
        .set_tokenizer("en_stem")
        .set_index_option(IndexRecordOption::WithFreqsAndPositions);
    let id = builder.add_text_field("id", STRING | STORED);
    let text = builder.add_text_field("text", TextOptions::default().set_indexing_options(indexing));
    let row = builder.add_text_field("row", STORED);
    let index = tantivy::Index::create_in_dir(dir, builder.build())?;
    let mut writer = index.writer_with_num_threads(THREADS, MEMORY_BYTES)?;
    let start = now();
    for of in texts {
        writer.add_document(
            tantivy::doc!(id => of.id.as_str(), text => of.text.as_str(), row => of.row.as_str()),
        )?;
    }
    writer.commit()?;
    writer.wait_merging_threads()?;
    Ok(start.elapsed())
}

/// FTS5 in a file.
pub struct Fts5 {
    db: SqliteConnection,
}

impl Fts5 {
    pub async fn filled(path: &Path, texts: &[PlainText]) -> anyhow::Result<(Self, Duration)> {
        let options = SqliteConnectOptions::new().filename(path).create_if_missing(true);
        let mut db = options.connect().await?;
        sqlx::query("CREATE VIRTUAL TABLE tools USING fts5(id UNINDEXED, text, tokenize='porter')")
            .execute(&mut db)
            .await?;
        let start = now();
        let mut transaction = db.begin().await?;
        for of in texts {
            sqlx::query("INSERT INTO tools VALUES (?, ?)")
                .bind(&of.id)
                .bind(&of.text)
                .execute(&mut *transaction)
                .await?;
        }
        transaction.commit().await?;
        Ok((Self { db }, start.elapsed()))
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
    pub async fn filled(url: &str, texts: &[PlainText]) -> anyhow::Result<(Self, Duration)> {
        let mut db = PgConnection::connect(url).await.context("PostgreSQL cannot be reached")?;
        sqlx::query("CREATE TEMPORARY TABLE tools (id text, words tsvector)").execute(&mut db).await?;
        let start = now();
        for batch in texts.chunks(ROWS_AT_ONCE) {
            let (ids, words): (Vec<&str>, Vec<&str>) =
                batch.iter().map(|of| (of.id.as_str(), of.text.as_str())).unzip();
            sqlx::query(
                "INSERT INTO tools SELECT id, to_tsvector('english', words) FROM UNNEST($1::text[], $2::text[]) AS rows(id, words)",
            )
            .bind(ids)
            .bind(words)
            .execute(&mut db)
            .await?;
        }
        sqlx::query("CREATE INDEX ON tools USING gin (words)").execute(&mut db).await?;
        sqlx::query("ANALYZE tools").execute(&mut db).await?;
        Ok((Self { db }, start.elapsed()))
    }

    pub async fn search(&mut self, text: &str) -> anyhow::Result<usize> {
        let sql = "SELECT id FROM tools, to_tsquery('english', $1) AS wanted WHERE words @@ wanted \
                   ORDER BY ts_rank(words, wanted, 1) DESC LIMIT 20";
        let found: Vec<String> = sqlx::query_scalar(sql).bind(tsquery(text)).fetch_all(&mut self.db).await?;
        Ok(found.len())
    }
}

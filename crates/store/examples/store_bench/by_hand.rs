//! Writes the rows of a visit without the store: one transaction with one prepared statement per table, with bound or inlined values. It
//! does no lookups, planning, compression or serialisation.

use manifest::{ContentHash, ManifestId, SiteName};
use sqlx::{Connection as _, PgConnection, SqliteConnection};
use store::{DatabaseUrl, LeaseToken};

use crate::visits::{Finding, capabilities, document, next_visit_at, start, url};

/// Values in the store's own encoding, taken from a visit that the store saved, so that they have the same size.
#[derive(Debug, Clone, Default)]
pub(crate) struct Forms {
    pub(crate) fetches: Vec<u8>,
    pub(crate) model: Vec<u8>,
    pub(crate) document: Vec<u8>,
}

const ALWAYS: [&str; 3] = [
    "INSERT INTO host (host, site, seeded, requests_today, requests_day) VALUES ($1, $1, 1, 0, 0)",
    "INSERT INTO robots (host, site, kind, status, fetched_at_ms, expires_at_ms, failures_in_row)
     VALUES ($1, $1, 'no_file', 404, $2, $2 + 86400000, 0)",
    "UPDATE site SET lease_owner = NULL, lease_until_ms = 0, next_visit_at_ms = $2, packed = NULL, visits_at_rest = NULL,
            compacted_status = NULL, compacted_failures = NULL, compacted_last_visit_at_ms = NULL
     WHERE name = $1 AND lease_owner = $3 AND fence = $4",
];

const STATE: &str = "INSERT INTO site_state (name, status, first_seen_at_ms, visits, changes, first_visit_at_ms,
         last_visit_at_ms, last_end, next_visit_reason, failures_in_row, negatives_in_row, paths_checked, manifests,
         capabilities, formats)
     VALUES ($1, 'fresh', $2, 2, $3, $2 + 30000, $2 + 30000, 'completed', 'nothing was found', 0, $4, $5, $3, $6, $7)";

const VISIT: &str = "INSERT INTO visit (site, started_at_ms, ended_at_ms, visit_end, status, next_visit_at_ms,
         next_visit_reason, requests, bytes_in, dns_ms, connect_ms, tls_ms, ttfb_ms, body_ms, outcomes, crawler_version,
         fetches)
     VALUES ($1, $2, $2 + 30000, 'completed', 'fresh', $3, 'nothing was found', 21, 10240, 0, 0, 0, 0, 0, $4, '0.1.0', $5)";

const RESOURCE: &str =
    "INSERT INTO resource (id, site, url, discovery, outcome, status, etag, content_hash, fetched_at_ms,
         changed_at_ms, misses_in_row)
     VALUES ($1, $2, $3, 'well_known', 'found', 200, '\"1\"', $4, $5, $5, 0)";

const DOCUMENT: &str = "INSERT INTO document (hash, body, bytes, first_seen_at_ms) VALUES ($1, $2, $3, $4)";

const MANIFEST: &str =
    "INSERT INTO manifest (id, site, url, format, status, version, content_hash, capabilities,
         first_seen_at_ms, last_seen_at_ms, changed_at_ms, conformance)
     VALUES ($1, $2, $3, 'awp', 'fresh', 1, $4, 5, $5, $5, $5, 'conforms')";

const VERSION: &str =
    "INSERT INTO manifest_version (manifest_id, version, content_hash, document_hash, model, capabilities,
         findings, first_seen_at_ms, last_seen_at_ms)
     VALUES ($1, 1, $2, $2, $3, 5, 0, $4, $4)";

const CAPABILITIES: &str = "INSERT INTO capability (id, manifest_id, site, native_id, name, kind)
     VALUES ($3, $1, $2, 'book_0', 'book_0', 'action'), ($4, $1, $2, 'book_1', 'book_1', 'action'),
            ($5, $1, $2, 'book_2', 'book_2', 'action'), ($6, $1, $2, 'book_3', 'book_3', 'action'),
            ($7, $1, $2, 'book_4', 'book_4', 'action')";

const TYPES: &str = "INSERT INTO capability_type (name, capability_id, manifest_id, site, declared)
     VALUES ('travel:book_0', $3, $1, $2, 1), ('travel:book_1', $4, $1, $2, 1), ('travel:book_2', $5, $1, $2, 1),
            ('travel:book_3', $6, $1, $2, 1), ('travel:book_4', $7, $1, $2, 1)";

/// PostgreSQL assigns feed positions after the commit, for many visits in one statement.
const FEED_POSTGRES: &[&str] =
    &["INSERT INTO feed_pending (at_ms, change, site, manifest_id) VALUES ($1, 'added', $2, $3)"];
const FEED_SQLITE: &[&str] = &[
    "UPDATE feed_state SET last_position = last_position + 1 WHERE id = 1",
    "INSERT INTO feed (position, at_ms, change, site, manifest_id)
     SELECT last_position, $1, 'added', $2, $3 FROM feed_state WHERE id = 1",
];

macro_rules! save {
    ($connection:expr, $begin:literal, $feed:expr, $token:expr, $finding:expr, $forms:expr) => {{
        let (site, start_ms) = ($token.site.as_str(), start().timestamp_millis());
        let next_ms = next_visit_at().timestamp_millis();
        let is_found = i32::from($finding == Finding::Manifest);
        let mut transaction = $connection.begin_with($begin).await.unwrap();
        let [host, robots, lease] = ALWAYS;
        let ended = sqlx::query(lease)
            .bind(site)
            .bind(next_ms)
            .bind($token.worker.as_str())
            .bind($token.fence)
            .execute(&mut *transaction)
            .await
            .unwrap();
        assert_eq!(ended.rows_affected(), 1);
        sqlx::query(host).bind(site).execute(&mut *transaction).await.unwrap();
        sqlx::query(robots).bind(site).bind(start_ms).execute(&mut *transaction).await.unwrap();
        sqlx::query(STATE)
            .bind(site)
            .bind(start_ms)
            .bind(is_found)
            .bind(1 - is_found)
            .bind([4_u8, 0x20, 0x4e].repeat(20))
            .bind(is_found * 5)
            .bind(if is_found == 1 { "awp" } else { "" })
            .execute(&mut *transaction)
            .await
            .unwrap();
        sqlx::query(VISIT)
            .bind(site)
            .bind(start_ms)
            .bind(next_ms)
            .bind(if is_found == 1 { "found=1,not_found=19" } else { "not_found=20" })
            .bind($forms.fetches.as_slice())
            .execute(&mut *transaction)
            .await
            .unwrap();
        if $finding == Finding::Manifest {
            let found = ManifestNames::at(&$token.site);
            for (statement, with_model) in [(DOCUMENT, false), (VERSION, true)] {
                let query = sqlx::query(statement);
                let query = if with_model {
                    query.bind(&found.id).bind(&found.hash).bind($forms.model.as_slice())
                } else {
                    query.bind(&found.hash).bind($forms.document.as_slice()).bind(found.document_bytes)
                };
                query.bind(start_ms).execute(&mut *transaction).await.unwrap();
            }
            for statement in [RESOURCE, MANIFEST] {
                sqlx::query(statement)
                    .bind(&found.id)
                    .bind(site)
                    .bind(&found.url)
                    .bind(&found.hash)
                    .bind(start_ms)
                    .execute(&mut *transaction)
                    .await
                    .unwrap();
            }
            for statement in [CAPABILITIES, TYPES] {
                let mut query = sqlx::query(statement).bind(&found.id).bind(site);
                for id in &found.capabilities {
                    query = query.bind(id);
                }
                query.execute(&mut *transaction).await.unwrap();
            }
            for statement in $feed {
                let query = sqlx::query(*statement);
                let query = if statement.contains("$1") {
                    query.bind(start_ms).bind(site).bind(&found.id)
                } else {
                    query
                };
                query.execute(&mut *transaction).await.unwrap();
            }
        }
        transaction.commit().await.unwrap();
    }};
}

/// Long, arbitrary names of a manifest.
struct ManifestNames {
    id: String,
    url: String,
    hash: String,
    document_bytes: i64,
    capabilities: Vec<String>,
}

impl ManifestNames {
    fn at(site: &SiteName) -> Self {
        let (url, document) = (url(site, 0), document(site));
        Self {
            id: ManifestId::of(&url).to_string(),
            url: url.to_string(),
            hash: ContentHash::of(&document).to_string(),
            document_bytes: i64::try_from(document.len()).unwrap(),
            capabilities: capabilities(site).iter().map(|capability| capability.id.to_string()).collect(),
        }
    }
}

/// A separate connection with the same settings as the store's connections.
pub(crate) enum Hand {
    Postgres(PgConnection),
    Sqlite(SqliteConnection),
}

impl Hand {
    pub(crate) async fn open(url: &DatabaseUrl) -> Self {
        match url {
            DatabaseUrl::Postgres(url) => Self::Postgres(PgConnection::connect(url).await.unwrap()),
            DatabaseUrl::Sqlite(path) => {
                let url = format!("sqlite:{}", path.display());
                let mut connection = SqliteConnection::connect(&url).await.unwrap();
                let settings =
                    "PRAGMA busy_timeout = 60000; PRAGMA synchronous = NORMAL; PRAGMA foreign_keys = ON;
                     PRAGMA cache_size = -32768; PRAGMA wal_autocheckpoint = 8000";
                sqlx::raw_sql(settings).execute(&mut connection).await.unwrap();
                Self::Sqlite(connection)
            }
        }
    }

    pub(crate) async fn save(&mut self, token: &LeaseToken, finding: Finding, forms: &Forms) {
        match self {
            Self::Postgres(connection) => save!(connection, "BEGIN", FEED_POSTGRES, token, finding, forms),
            Self::Sqlite(connection) => {
                save!(connection, "BEGIN IMMEDIATE", FEED_SQLITE, token, finding, forms);
            }
        }
    }

    /// One value of one row.
    pub(crate) async fn bytes(&mut self, statement: &'static str, site: &SiteName) -> Vec<u8> {
        match self {
            Self::Postgres(connection) => {
                sqlx::query_scalar(statement).bind(site.as_str()).fetch_one(connection).await.unwrap()
            }
            Self::Sqlite(connection) => {
                sqlx::query_scalar(statement).bind(site.as_str()).fetch_one(connection).await.unwrap()
            }
        }
    }

    /// A column of text.
    pub(crate) async fn lines(&mut self, statement: String) -> Vec<String> {
        let statement = sqlx::AssertSqlSafe(statement);
        match self {
            Self::Postgres(connection) => sqlx::query_scalar(statement).fetch_all(connection).await.unwrap(),
            Self::Sqlite(connection) => sqlx::query_scalar(statement).fetch_all(connection).await.unwrap(),
        }
    }

    /// Statements without values.
    pub(crate) async fn run(&mut self, statements: String) {
        let statements = sqlx::raw_sql(sqlx::AssertSqlSafe(statements));
        match self {
            Self::Postgres(connection) => drop(statements.execute(connection).await.unwrap()),
            Self::Sqlite(connection) => drop(statements.execute(connection).await.unwrap()),
        }
    }

    /// Frees the space of dead rows, as autovacuum does; SQLite reuses such space automatically.
    pub(crate) async fn vacuum(&mut self) {
        if let Self::Postgres(connection) = self {
            sqlx::raw_sql("VACUUM").execute(connection).await.unwrap();
        }
    }
}

//! Opening an empty, an existing, a newer and an unreachable database.

use anyhow::Result;
use policy::Status;
use sqlx::{Connection, SqliteConnection};
use store::{Backend, DatabaseUrl, SitesRequest, Store, StoreConfig, StoreError};

use crate::build::{later, lease, seed, start, visit};
use crate::harness::Db;

pub(crate) async fn eight_concurrent_opens_migrate_once(db: Db) -> Result<()> {
    // The opened database is emptied, so that eight processes find it empty.
    db.store.close().await;
    db.empty().await?;
    let opens = (0..8).map(|_| Store::open(&db.config));
    let stores = futures::future::try_join_all(opens).await?;
    for store in &stores {
        store.ping().await?;
    }
    let files = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../../migrations/postgres"))?.count();
    assert_eq!(db.number("SELECT COUNT(*) FROM _sqlx_migrations").await?, i64::try_from(files)?);
    let id = stores.first().map(Store::feed_id);
    let other = stores.last().map(Store::feed_id);
    let (Some(id), Some(other)) = (id, other) else { anyhow::bail!("eight stores") };
    assert_eq!(id.await?, other.await?);
    for store in stores {
        store.close().await;
    }
    Ok(())
}

/// A database that refuses writes, as a streaming replica does. SQLite has none.
fn read_only(config: &StoreConfig) -> Option<StoreConfig> {
    let DatabaseUrl::Postgres(url) = &config.url else { return None };
    let joint = if url.contains('?') { '&' } else { '?' };
    let url = format!("{url}{joint}options=-c%20default_transaction_read_only%3Don");
    Some(StoreConfig { url: DatabaseUrl::Postgres(url), ..config.clone() })
}

pub(crate) async fn writes_of_a_replica_go_to_its_primary(db: Db) -> Result<()> {
    let dir = tempfile::tempdir()?;
    let elsewhere = Store::open_in_data_dir(dir.path()).await?;
    elsewhere.close().await;
    let other = StoreConfig::new(DatabaseUrl::in_data_dir(dir.path()));
    let wrong = Store::open(&db.config).await?.with_primary(other);
    let refused = wrong.seeds_add(&[seed("sky.example")], start()).await;
    assert!(matches!(refused, Err(StoreError::PrimaryOther { .. })), "{refused:?}");
    assert_eq!(wrong.feed_head().await?, store::FeedPosition(0), "reads do not use the primary");
    wrong.close().await;
    if let Some(replica) = read_only(&db.config) {
        let alone = Store::open(&replica).await?;
        assert!(alone.is_read_only().await?);
        let refused = alone.seeds_add(&[seed("sky.example")], start()).await;
        let refused = refused.expect_err("a replica without a primary stores nothing");
        assert!(refused.is_read_only(), "{refused}");
        alone.close().await;
    }
    let replica = read_only(&db.config).unwrap_or_else(|| db.config.clone());
    let store = Store::open(&replica).await?.with_primary(db.config.clone());
    assert!(!store.is_read_only().await?);
    assert_eq!(store.seeds_add(&[seed("sky.example")], start()).await?.added, 1);
    assert!(store.site_summary(&crate::build::site("sky.example")).await?.is_some());
    store.check_available().await?;
    store.close().await;
    Ok(())
}

/// Data that a program of the first schema wrote: a visited site, a leased site and a waiting site.
const LEFT_BEHIND: &str = "
    INSERT INTO site (name, priority, next_visit_at_ms, lease_owner, lease_until_ms, fence) VALUES
        ('old.example', 2, 5, NULL, 0, 7), ('held.example', 0, 6, 'w', 1728000060000, 3),
        ('new.example', 5, 7, NULL, 0, 0);
    INSERT INTO site_state (name, status, first_seen_at_ms, visits, last_visit_at_ms, negatives_in_row, next_visit_reason)
        VALUES ('old.example', 'fresh', 1000, 4, 2000, 4, 'nothing was found'),
               ('held.example', 'pending', 1000, 0, NULL, 0, NULL), ('new.example', 'pending', 1000, 0, NULL, 0, NULL);
    INSERT INTO host (host, site, seeded) VALUES ('old.example', 'old.example', 1),
        ('held.example', 'held.example', 1), ('new.example', 'new.example', 1);
    INSERT INTO feed (position, at_ms, change, site, manifest_id) VALUES (1, 5, 'added', 'old.example', 'maaaaaaaaaaaaaaaa');
    UPDATE feed_state SET last_position = 1;";

pub(crate) async fn migrates_every_released_schema(db: Db) -> Result<()> {
    let known = db.number("SELECT MAX(version) FROM _sqlx_migrations").await?;
    assert!(known >= 3);
    db.store.close().await;
    for version in 1..=known {
        db.empty().await?;
        db.migrate_to(version).await?;
        db.execute(LEFT_BEHIND).await?;
        let store = Store::open(&db.config).await?;
        let stats = store.stats(start()).await?;
        assert_eq!((stats.sites, stats.visits, stats.sites_leased), (3, 4, 1), "from schema {version}");
        assert_eq!(store.feed_read(store::FeedPosition(0), 9).await?.len(), 1);
        let old = lease(&store, "old.example", start()).await?;
        assert_eq!((old.token.fence, old.site.visits, old.site.negatives_in_row), (8, 4, 4));
        store.standalone_end(&old.token, &[]).await?;
        store.seeds_add(&[seed("new.example"), seed("later.example")], start()).await?;
        assert_eq!(store.housekeeping(start()).await?.sites_compacted, 2, "from schema {version}");
        assert_eq!(lease(&store, "old.example", start()).await?.site.visits, 4);
        assert_eq!(db.number("SELECT fence FROM site WHERE name = 'held.example'").await?, 3);
        store.close().await;
    }
    Ok(())
}

/// A compacted site as programs of schemas 3 to 11 encoded it: unreachable after three failures, five visits, one host.
const COMPACTED: &str = "0103000366ff30000f2281e0fcb70681e0fcb70600050000000104";

pub(crate) async fn reads_compacted_sites_of_earlier_schemas(db: Db) -> Result<()> {
    db.store.close().await;
    let packed = match db.store.backend() {
        Backend::Postgres => format!("'\\x{COMPACTED}'"),
        Backend::Sqlite => format!("x'{COMPACTED}'"),
    };
    for version in [3, 11] {
        db.empty().await?;
        db.migrate_to(version).await?;
        db.execute(&format!(
            "INSERT INTO site (name, priority, next_visit_at_ms, fence, packed, visits_at_rest)
             VALUES ('old.example', 2, 5, 5, {packed}, 5)"
        ))
        .await?;
        let store = Store::open(&db.config).await?;
        let unreachable =
            SitesRequest { max: 9, status: Some(Status::Unreachable), ..SitesRequest::default() };
        let listed = store.sites_page(&unreachable).await?;
        assert_eq!((listed.len(), listed[0].last_visit_at), (1, Some(start())), "from schema {version}");
        assert_eq!(listed[0].next_visit_reason.as_deref(), Some("it could not be reached"));
        assert_eq!(store.sites_failing(9).await?[0].failures_in_row, 3);
        assert_eq!(store.stats(start()).await?.visits, 5);
        let leased = lease(&store, "old.example", start()).await?;
        assert_eq!((leased.site.visits, leased.site.failures_in_row, leased.site.hosts.len()), (5, 3, 1));
        store.visit_save(&leased.token, &visit("old.example", later(1), Vec::new())).await?;
        assert_eq!(lease(&store, "old.example", later(2)).await?.site.visits, 6);
        store.close().await;
    }
    Ok(())
}

pub(crate) async fn refuses_incompatible_newer_schemas(db: Db) -> Result<()> {
    db.execute(
        "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
         SELECT 9998, 'expand of the future', success, checksum, execution_time FROM _sqlx_migrations WHERE version = 1",
    )
    .await?;
    // An expanding migration stays compatible with the previous program.
    let store = Store::open(&db.config).await?;
    store.ping().await?;
    store.close().await;
    db.execute(
        "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
         SELECT 9999, 'contract of the future', success, checksum, execution_time FROM _sqlx_migrations WHERE version = 1",
    )
    .await?;
    let error = Store::open(&db.config).await.err();
    let Some(StoreError::SchemaNewer { found: 9999, known }) = error else { anyhow::bail!("{error:?}") };
    assert!(known >= 1);
    // A migration that this program does not know, so the schema is unknown.
    db.execute("DELETE FROM _sqlx_migrations WHERE version >= 9998").await?;
    Store::open(&db.config).await?.close().await;
    let other = match db.store.backend() {
        Backend::Postgres => "UPDATE _sqlx_migrations SET checksum = decode('00', 'hex')",
        Backend::Sqlite => "UPDATE _sqlx_migrations SET checksum = x'00'",
    };
    db.execute(other).await?;
    let error = Store::open(&db.config).await.err();
    assert!(matches!(error, Some(StoreError::Migration { .. })), "{error:?}");
    Ok(())
}

/// Only on PostgreSQL, whose users may have no right to create tables.
pub(crate) async fn says_that_its_user_has_to_own_the_database(db: Db) -> Result<()> {
    let DatabaseUrl::Postgres(url) = &db.config.url else { return Ok(()) };
    let Some((_, server)) = url.split_once('@') else { anyhow::bail!("{} names no user", db.config.url) };
    let guest = format!("guest_of_{}", url.rsplit('/').next().unwrap_or_default());
    db.store.close().await;
    db.empty().await?;
    db.execute(&format!("CREATE ROLE {guest} LOGIN; REVOKE CREATE ON SCHEMA public FROM PUBLIC; GRANT USAGE ON SCHEMA public TO PUBLIC")).await?;
    let config = StoreConfig::new(DatabaseUrl::parse(&format!("postgres://{guest}@{server}"))?);
    let opened = Store::open(&config).await.err();
    db.execute(&format!("DROP ROLE {guest}")).await?;
    let Some(error) = opened else { anyhow::bail!("a guest migrated the database") };
    let text = error.to_string();
    assert!(text.contains("(permission denied for schema public)"), "{text}");
    assert!(text.contains("make it the owner of the database") && !error.is_transient(), "{text}");
    Ok(())
}

pub(crate) async fn reports_unreachable_databases_with_advice(db: Db) -> Result<()> {
    let Backend::Sqlite = db.store.backend() else {
        // A port without a listener.
        let url = DatabaseUrl::parse("postgres://me:secret@127.0.0.1:1/agentdex")?;
        let error = Store::open(&StoreConfig::new(url)).await.err();
        let Some(error) = error else { anyhow::bail!("a port without a listener was opened") };
        let text = error.to_string();
        assert!(
            text.contains("postgres://me:***@127.0.0.1:1/agentdex") && text.contains("--database-url"),
            "{text}"
        );
        assert!(!format!("{error:?}").contains("secret") && error.is_transient());
        return Ok(());
    };
    let dir = tempfile::tempdir()?;
    let file = dir.path().join("file");
    std::fs::write(&file, "not a directory")?;
    let error = Store::open(&StoreConfig::new(DatabaseUrl::in_data_dir(&file))).await.err();
    let Some(error @ StoreError::DirIsFile { .. }) = error else { anyhow::bail!("{error:?}") };
    assert!(error.to_string().contains("--data-dir") && !error.is_transient(), "{error}");
    let existing = StoreConfig::new(DatabaseUrl::in_data_dir(&file));
    let error = Store::open_existing(&existing).await.err();
    assert!(matches!(error, Some(StoreError::DirIsFile { .. })), "{error:?}");
    let cut = dir.path().join("cut.db");
    let config = StoreConfig::new(DatabaseUrl::Sqlite(cut.clone()));
    Store::open(&config).await?.close().await;
    let bytes = std::fs::metadata(&cut)?.len();
    std::fs::File::options().write(true).open(&cut)?.set_len(bytes / 2)?;
    for error in [Store::open(&config).await.err(), Store::open_existing(&config).await.err()] {
        assert!(matches!(error, Some(StoreError::Damaged { .. })), "{error:?}");
    }
    let other = dir.path().join("agentdex.db");
    std::fs::write(&other, "this is not a database, but as long as one".repeat(100))?;
    assert!(Store::open(&StoreConfig::new(DatabaseUrl::Sqlite(other))).await.is_err());
    Ok(())
}

pub(crate) async fn data_survives_reopening(db: Db) -> Result<()> {
    db.store.seeds_add(&[seed("kept.example")], start()).await?;
    let id = db.store.feed_id().await?;
    db.store.close().await;
    assert!(db.store.ping().await.is_err_and(|error| error.is_transient()));
    let store = Store::open(&db.config).await?;
    assert_eq!(store.feed_id().await?, id);
    assert_eq!(lease(&store, "kept.example", start()).await?.token.fence, 1);
    store.close().await;
    Ok(())
}

pub(crate) async fn recovers_from_lost_connections_and_waits_for_other_writers(db: Db) -> Result<()> {
    let seeds = [seed("one.example"), seed("two.example")];
    match &db.config.url {
        DatabaseUrl::Postgres(_) => {
            // The server closes its connections, as during a restart.
            db.store.ping().await?;
            db.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                 WHERE datname = current_database() AND pid <> pg_backend_pid()",
            )
            .await?;
            db.store.seeds_add(&seeds, start()).await?;
        }
        DatabaseUrl::Sqlite(path) => {
            let mut other = SqliteConnection::connect(&format!("sqlite:{}", path.display())).await?;
            let mut held = other.begin_with("BEGIN IMMEDIATE").await?;
            sqlx::query("UPDATE feed_state SET last_position = last_position").execute(&mut *held).await?;
            let write = db.store.seeds_add(&seeds, start());
            let release = async {
                // A writer does not block readers, and waits for the other writer.
                db.store.ping().await?;
                held.commit().await?;
                anyhow::Ok(())
            };
            let (written, released) = tokio::join!(write, release);
            released?;
            written?;
        }
    }
    assert_eq!(db.store.stats(start()).await?.sites, 2);
    Ok(())
}

pub(crate) async fn reports_schema_version_and_size(db: Db) -> Result<()> {
    let known = db.number("SELECT MAX(version) FROM _sqlx_migrations").await?;
    assert_eq!(Store::schema(&db.config).await?, store::SchemaState { found: known, known });
    db.store.seeds_add(&[seed("one.example")], start()).await?;
    let space = db.store.space().await?;
    assert!(space.iter().all(|space| space.bytes > 0 && space.vacuum_advice().is_none()), "{space:?}");
    let names: Vec<&str> = space.iter().map(|space| space.name.as_str()).collect();
    match db.store.backend() {
        Backend::Postgres => assert!(names.contains(&"site") && names.contains(&"feed"), "{names:?}"),
        Backend::Sqlite => assert_eq!(names, ["file"]),
    }
    db.store.close().await;
    db.empty().await?;
    assert_eq!(Store::schema(&db.config).await?, store::SchemaState { found: 0, known });
    db.migrate_to(2).await?;
    assert_eq!(Store::schema(&db.config).await?, store::SchemaState { found: 2, known });
    Ok(())
}

pub(crate) async fn opening_for_reading_creates_nothing(db: Db) -> Result<()> {
    let known = Store::open_existing(&db.config).await?;
    known.ping().await?;
    known.close().await;
    db.store.close().await;
    db.empty().await?;
    let error = Store::open_existing(&db.config).await.err();
    let Some(error) = error else { anyhow::bail!("an empty database was opened for reading") };
    assert!(error.is_missing() && error.to_string().contains("--database-url"), "{error}");
    assert_eq!(Store::schema(&db.config).await?.found, 0, "no table was created");
    if let DatabaseUrl::Sqlite(path) = &db.config.url {
        assert!(!path.exists(), "no file was created");
        std::fs::write(path, [])?;
        let error = Store::open_existing(&db.config).await.err();
        assert!(matches!(error, Some(StoreError::WithoutTables { .. })), "{error:?}");
        assert_eq!(std::fs::metadata(path)?.len(), 0, "the file was changed");
        let beside = path.with_file_name("nowhere").join("agentdex.db");
        let error = Store::open_existing(&StoreConfig::new(DatabaseUrl::Sqlite(beside.clone()))).await.err();
        assert!(matches!(error, Some(StoreError::Missing { .. })), "{error:?}");
        assert!(beside.parent().is_some_and(|folder| !folder.exists()), "a directory was created");
    }
    Ok(())
}

/// A user without rights must not be told that the database is empty. SQLite has no users.
pub(crate) async fn tables_that_the_user_may_not_read_are_not_missing(db: Db) -> Result<()> {
    let DatabaseUrl::Postgres(url) = &db.config.url else { return Ok(()) };
    let joint = if url.contains('?') { '&' } else { '?' };
    let url = format!("{url}{joint}options=-c%20role%3Dpg_read_all_settings");
    let config = StoreConfig { url: DatabaseUrl::Postgres(url), ..db.config.clone() };
    for opened in [Store::open_existing(&config).await, Store::open(&config).await] {
        let error = opened.err().ok_or_else(|| anyhow::anyhow!("the role may read"))?;
        assert!(matches!(error, StoreError::NotReadable { .. }), "{error}");
        assert!(error.to_string().contains("permission denied") && !error.is_missing(), "{error}");
    }
    Ok(())
}

pub(crate) async fn damaged_pages_of_a_file_are_found(db: Db) -> Result<()> {
    let limit = std::time::Duration::from_mins(1);
    assert_eq!(db.store.damage(limit).await?, None);
    let DatabaseUrl::Sqlite(path) = &db.config.url else { return Ok(()) };
    let page = db.number("SELECT rootpage FROM sqlite_master WHERE name = 'feedback'").await?;
    db.store.close().await;
    let mut bytes = std::fs::read(path)?;
    let from = 4_096 * (usize::try_from(page)? - 1);
    bytes[from..from + 4_096].fill(0x5a);
    std::fs::write(path, &bytes)?;
    let store = Store::open(&db.config).await?;
    match store.damage(limit).await {
        Ok(found) => assert!(found.is_some()),
        Err(error) => {
            assert!(matches!(error, StoreError::DamagedPage { .. }), "{error}");
            assert!(error.to_string().contains("restore a backup"), "{error}");
        }
    }
    store.close().await;
    Ok(())
}

/// The database holds the secrets of webhooks.
pub(crate) async fn only_the_owner_of_a_new_database_file_can_read_it(db: Db) -> Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    let mode =
        |path: &std::path::Path| -> Result<u32> { Ok(std::fs::metadata(path)?.permissions().mode() & 0o777) };
    let dir = tempfile::tempdir()?;
    let path = dir.path().join("new.db");
    let config = StoreConfig { url: DatabaseUrl::Sqlite(path.clone()), ..db.config.clone() };
    let store = Store::open(&config).await?;
    crate::build::visited(&store, "sky.example", start(), Vec::new()).await?;
    for file in ["new.db", "new.db-wal", "new.db-shm"] {
        assert_eq!(mode(&dir.path().join(file))?, 0o600, "{file}");
    }
    store.close().await;
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640))?;
    Store::open(&config).await?.close().await;
    assert_eq!(mode(&path)?, 0o640, "the mode of an existing file is the choice of the operator");
    Ok(())
}

pub(crate) async fn a_directory_is_no_database_file(db: Db) -> Result<()> {
    let dir = tempfile::tempdir()?;
    let url = DatabaseUrl::Sqlite(dir.path().to_owned());
    let config = StoreConfig { url, ..db.config.clone() };
    let error = Store::open_existing(&config).await.err().ok_or_else(|| anyhow::anyhow!("a directory"))?;
    assert!(error.to_string().contains("is a directory: name a file, as in sqlite:"), "{error}");
    Ok(())
}

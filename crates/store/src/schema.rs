//! Brings a database to the schema of this program, and refuses one that is newer.

use sqlx::migrate::{Migrate, MigrateError, Migration, Migrator};

use crate::StoreError;
use crate::fault::Fault;

/// Migrates under the driver's lock. A database that is up to date is not written to at all, so that a replica serves.
pub(crate) async fn migrate<C: Migrate>(connection: &mut C, migrations: &Migrator) -> Result<(), StoreError> {
    let known = migrations.iter().map(|migration| migration.version).max().unwrap_or_default();
    // An empty database has no table of migrations to list.
    let applied = connection.list_applied_migrations(&migrations.table_name).await.unwrap_or_default();
    let found = applied.iter().map(|migration| migration.version).max().unwrap_or_default();
    let is_applied = |ours: &Migration| {
        applied.iter().any(|theirs| theirs.version == ours.version && theirs.checksum == ours.checksum)
    };
    if found == known && migrations.iter().all(is_applied) {
        return Ok(());
    }
    if found > known {
        return Err(StoreError::SchemaNewer { found, known });
    }
    match migrations.run_direct(None, connection, false).await {
        Ok(()) => Ok(()),
        Err(MigrateError::VersionMissing(found)) => Err(StoreError::SchemaNewer { found, known }),
        Err(error) => Err(refused(error, found, known)),
    }
}

fn refused(error: MigrateError, found: i64, needed: i64) -> StoreError {
    let driver = match error {
        MigrateError::Execute(driver) | MigrateError::ExecuteMigration(driver, _) => driver,
        other => return StoreError::Migration { source: Box::new(other) },
    };
    let fault = Fault::Driver(driver);
    if fault.is_read_only() {
        return StoreError::SchemaOlder { found, needed };
    }
    match fault.during("migrate") {
        StoreError::Refused { source, .. } => {
            StoreError::Migration { source: Box::new(MigrateError::Execute(source)) }
        }
        transient => transient,
    }
}

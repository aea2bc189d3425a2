//! Brings a database to the schema of this program, and refuses one that is newer.

use sqlx::migrate::{Migrate, MigrateError, Migrator};

use crate::StoreError;
use crate::fault::Fault;

/// Migrates under the driver's lock. A database that is up to date is not written to at all, so that a replica serves.
pub(crate) async fn migrate<C: Migrate>(connection: &mut C, migrations: &Migrator) -> Result<(), StoreError> {
    let known = migrations.iter().map(|migration| migration.version).max().unwrap_or_default();
    let found = version_found(connection, migrations).await;
    if found == known {
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

/// Number of the last migration that was applied; 0 for an empty database.
async fn version_found<C: Migrate>(connection: &mut C, migrations: &Migrator) -> i64 {
    let applied = connection.list_applied_migrations(&migrations.table_name).await;
    applied.unwrap_or_default().iter().map(|migration| migration.version).max().unwrap_or_default()
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

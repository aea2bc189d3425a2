//! Migrates a database to the schema of this program. A newer schema is accepted if its migrations only added to it, so that an upgrade can
//! be rolled back.

use std::borrow::Cow;

use sqlx::SqlStr;
use sqlx::migrate::{AppliedMigration, Migrate, MigrateError, Migration, MigrationType, Migrator};

use crate::StoreError;
use crate::error::POSTGRES_NO_PRIVILEGE;
use crate::fault::Fault;
use crate::model::SchemaState;

/// How the schema of a database compares with this program's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Schema {
    Current,
    /// It has every migration of this program, and more.
    Newer {
        found: i64,
        known: i64,
    },
}

impl Schema {
    /// Checks whether this program can use the schema. `contractions` counts the newer migrations that removed something.
    pub(crate) fn check(self, contractions: i64) -> Result<(), StoreError> {
        match self {
            Self::Newer { found, known } if contractions > 0 => Err(StoreError::SchemaNewer { found, known }),
            Self::Newer { found, known } => {
                tracing::warn!(
                    schema.found = found,
                    schema.known = known,
                    "the database has a newer schema that this program can use"
                );
                Ok(())
            }
            Self::Current => Ok(()),
        }
    }
}

/// The migrations that `build.rs` lists: version, description and SQL.
///
/// `sqlx::migrate!` reads the same files, but with its crate, the build compiles both drivers a second time for the proc macro.
pub(crate) fn migrator<const COUNT: usize>(
    migrations: [(i64, &'static str, &'static str); COUNT],
) -> Migrator {
    let migration = |(version, description, sql): (i64, &'static str, &'static str)| {
        let is_without_transaction = sql.starts_with("-- no-transaction");
        let (description, statements) = (Cow::Borrowed(description), SqlStr::from_static(sql));
        Migration::new(version, description, MigrationType::Simple, statements, is_without_transaction)
    };
    Migrator::with_migrations(migrations.into_iter().map(migration).collect())
}

/// Migrates under the driver's lock. Does not write to a database that is up to date, so that a replica can be opened.
pub(crate) async fn migrate<C: Migrate>(
    connection: &mut C,
    migrations: &Migrator,
) -> Result<Schema, StoreError> {
    let known = known(migrations);
    let applied = applied(connection, migrations).await?;
    let found = applied.iter().map(|migration| migration.version).max().unwrap_or_default();
    let is_applied = |ours: &Migration| {
        applied.iter().any(|theirs| theirs.version == ours.version && theirs.checksum == ours.checksum)
    };
    let has_all = migrations.iter().all(is_applied);
    if found == known && has_all {
        return Ok(Schema::Current);
    }
    if found > known {
        let newer = Schema::Newer { found, known };
        return if has_all { Ok(newer) } else { Err(StoreError::SchemaNewer { found, known }) };
    }
    match migrations.run_direct(None, connection, false).await {
        Ok(()) => Ok(Schema::Current),
        Err(MigrateError::VersionMissing(found)) => Err(StoreError::SchemaNewer { found, known }),
        Err(error) => Err(migration_error(error, found, known)),
    }
}

/// Number of the last migration of this program.
pub(crate) fn known(migrations: &Migrator) -> i64 {
    migrations.iter().map(|migration| migration.version).max().unwrap_or_default()
}

/// Compares the migrations of a database with the migrations of this program.
pub(crate) async fn state<C: Migrate>(
    connection: &mut C,
    migrations: &Migrator,
) -> Result<SchemaState, StoreError> {
    let applied = applied(connection, migrations).await?;
    let found = applied.iter().map(|migration| migration.version).max().unwrap_or_default();
    Ok(SchemaState { found, known: known(migrations) })
}

/// The migrations that were applied. An empty database has no table of them; if this user may not read the table, it is not empty.
async fn applied<C: Migrate>(
    connection: &mut C,
    migrations: &Migrator,
) -> Result<Vec<AppliedMigration>, StoreError> {
    let error = match connection.list_applied_migrations(&migrations.table_name).await {
        Ok(applied) => return Ok(applied),
        Err(MigrateError::Execute(error)) => error,
        Err(_) => return Ok(Vec::new()),
    };
    match Fault::Driver(error).during("reading the schema") {
        StoreError::Refused { source: sqlx::Error::Database(refusal), .. }
            if refusal.code().as_deref() == Some(POSTGRES_NO_PRIVILEGE) =>
        {
            Err(StoreError::NotReadable { reason: refusal.message().to_owned() })
        }
        StoreError::Refused { .. } => Ok(Vec::new()),
        other => Err(other),
    }
}

fn migration_error(error: MigrateError, found: i64, needed: i64) -> StoreError {
    let driver = match error {
        MigrateError::Execute(driver) | MigrateError::ExecuteMigration(driver, _) => driver,
        other => return StoreError::Migration { source: Box::new(other) },
    };
    let fault = Fault::Driver(driver);
    if fault.is_read_only() {
        return StoreError::SchemaOlder { found, needed };
    }
    match fault.during("migrate") {
        StoreError::Refused { source: sqlx::Error::Database(refusal), .. }
            if refusal.code().as_deref() == Some(POSTGRES_NO_PRIVILEGE) =>
        {
            StoreError::NotOwner { reason: refusal.message().to_owned() }
        }
        StoreError::Refused { source, .. } => {
            StoreError::Migration { source: Box::new(MigrateError::Execute(source)) }
        }
        transient => transient,
    }
}

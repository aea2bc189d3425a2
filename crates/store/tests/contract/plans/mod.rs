//! Plans of the real statements on a PostgreSQL of realistic size: no hot table is read from end to end.
//!
//! The server's `auto_explain` sends the plan and row counts of every statement as a notice to the session that ran it,
//! so the test checks the statements of the store's own functions under its own planner settings. Each function runs more
//! often than the five times after which the server may switch to a generic plan.

mod fill;
mod judge;
mod operations;

use anyhow::{Context as _, Result};
use store::Store;

use crate::harness::{self, Db};
use judge::Judge;

#[tokio::test]
async fn postgres_no_hot_table_is_read_from_end_to_end() {
    harness::run(harness::postgres, |db| Box::pin(judged(db))).await;
}

async fn judged(db: Db) -> Result<()> {
    fill::fill(&db).await.context("the database is filled")?;
    db.store.close().await;
    db.execute(EXPLAIN_EVERYTHING).await?;
    let judge = Judge::default();
    let _listening = judge.listen();
    let store = Store::open(&db.config).await?;
    judge.forget();
    operations::run_all(&store, &judge).await?;
    store.close().await;
    judge.assert_good();
    Ok(())
}

/// Applies to every new session.
const EXPLAIN_EVERYTHING: &str = "
    DO $$ BEGIN
        EXECUTE format('ALTER DATABASE %I SET session_preload_libraries = auto_explain', current_database());
        EXECUTE format('ALTER DATABASE %I SET auto_explain.log_min_duration = 0', current_database());
        EXECUTE format('ALTER DATABASE %I SET auto_explain.log_analyze = on', current_database());
        EXECUTE format('ALTER DATABASE %I SET auto_explain.log_timing = off', current_database());
        EXECUTE format('ALTER DATABASE %I SET auto_explain.log_nested_statements = on', current_database());
        EXECUTE format('ALTER DATABASE %I SET auto_explain.log_format = json', current_database());
        EXECUTE format('ALTER DATABASE %I SET auto_explain.log_level = notice', current_database());
    END $$";

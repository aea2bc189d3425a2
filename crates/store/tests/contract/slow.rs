//! Statements beyond the slow threshold are logged.

use std::fmt::Write as _;
use std::sync::{Mutex, Once};
use std::time::Duration;

use anyhow::Result;
use store::{Store, StoreConfig};
use tracing::field::{Field, Visit};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt as _};

use crate::harness::Db;

/// Log target of the driver.
const TARGET: &str = "sqlx::query";
/// SQLite runs statements on its own thread, so the subscriber is global.
static LINES: Mutex<Vec<String>> = Mutex::new(Vec::new());
static SUBSCRIBED: Once = Once::new();

struct CaptureLines;

impl<S: tracing::Subscriber> Layer<S> for CaptureLines {
    fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, S>) {
        let metadata = event.metadata();
        if metadata.target() == TARGET && *metadata.level() == tracing::Level::WARN {
            let mut line = Line::default();
            event.record(&mut line);
            LINES.lock().expect("the lock is not poisoned").push(line.0);
        }
    }
}

#[derive(Default)]
struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        write!(self.0, "{}={value:?} ", field.name()).expect("writing to a string cannot fail");
    }
}

fn logged_line(part: &str) -> Option<String> {
    LINES.lock().expect("the lock is not poisoned").iter().find(|line| line.contains(part)).cloned()
}

fn subscribe() {
    SUBSCRIBED.call_once(|| {
        let everything = tracing_subscriber::registry().with(CaptureLines);
        tracing::subscriber::set_global_default(everything).expect("no other subscriber is set");
    });
}

/// Programs that start together wait for the one that migrates.
pub(crate) async fn waiting_for_a_migration_is_not_slow(db: Db) -> Result<()> {
    subscribe();
    db.store.close().await;
    db.empty().await?;
    let config = StoreConfig { slow_statement: Duration::ZERO, ..db.config.clone() };
    Store::open(&config).await?.close().await;
    assert_eq!(logged_line("pg_advisory_lock"), None);
    Ok(())
}

pub(crate) async fn logs_slow_statements(db: Db) -> Result<()> {
    subscribe();
    let slow_from = |slow_statement| StoreConfig { slow_statement, ..db.config.clone() };
    let tolerant = Store::open(&slow_from(Duration::from_hours(1))).await?;
    tolerant.semantic_types().await?;
    tolerant.close().await;
    assert_eq!(logged_line("FROM capability_type"), None);
    let strict = Store::open(&slow_from(Duration::ZERO)).await?;
    strict.feed_id().await?;
    strict.close().await;
    let line = logged_line("SELECT feed_id FROM feed_state").expect("a line about the statement");
    for part in ["slow statement", "elapsed=", "slow_threshold=0ns", "rows_returned=1"] {
        assert!(line.contains(part), "{part} is missing: {line}");
    }
    Ok(())
}

//! Statements that take longer than was asked for are named in the log.

use std::fmt::Write as _;
use std::sync::{Mutex, Once};
use std::time::Duration;

use anyhow::Result;
use store::{Store, StoreConfig};
use tracing::field::{Field, Visit};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt as _};

use crate::harness::Db;

/// What the driver calls itself in the log.
const TARGET: &str = "sqlx::query";
/// Statements of SQLite run in a thread of their own, so the whole process is listened to.
static LINES: Mutex<Vec<String>> = Mutex::new(Vec::new());
static LISTENING: Once = Once::new();

struct CaptureLines;

impl<S: tracing::Subscriber> Layer<S> for CaptureLines {
    fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, S>) {
        let metadata = event.metadata();
        if metadata.target() == TARGET && *metadata.level() == tracing::Level::WARN {
            let mut line = Line::default();
            event.record(&mut line);
            LINES.lock().expect("nobody panicked").push(line.0);
        }
    }
}

#[derive(Default)]
struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        write!(self.0, "{}={value:?} ", field.name()).expect("a string takes everything");
    }
}

fn logged_line(part: &str) -> Option<String> {
    LINES.lock().expect("nobody panicked").iter().find(|line| line.contains(part)).cloned()
}

pub(crate) async fn slow_statements_are_named(db: Db) -> Result<()> {
    LISTENING.call_once(|| {
        let everything = tracing_subscriber::registry().with(CaptureLines);
        tracing::subscriber::set_global_default(everything).expect("nobody else listens");
    });
    let slow_from = |slow_statement| StoreConfig { slow_statement, ..db.config.clone() };
    let patient = Store::open(&slow_from(Duration::from_hours(1))).await?;
    patient.semantic_types().await?;
    patient.close().await;
    assert_eq!(logged_line("FROM capability_type"), None);
    let hasty = Store::open(&slow_from(Duration::ZERO)).await?;
    hasty.feed_id().await?;
    hasty.close().await;
    let line = logged_line("SELECT feed_id FROM feed_state").expect("a line about the statement");
    for part in ["slow statement", "elapsed=", "slow_threshold=0ns", "rows_returned=1"] {
        assert!(line.contains(part), "{part} is missing: {line}");
    }
    Ok(())
}

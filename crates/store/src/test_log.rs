//! The log lines of a test.

use std::fmt;
use std::sync::{Arc, Mutex};

use tracing::field::{Field, Visit};
use tracing::subscriber::DefaultGuard;
use tracing_subscriber::layer::{Context, Layer, SubscriberExt as _};

/// Levels and messages of the lines of this crate about failures, without those at `debug`.
#[derive(Clone, Default)]
pub(crate) struct LogLines(Arc<Mutex<Vec<String>>>);

impl LogLines {
    /// Collects the lines of this thread until the guard is dropped.
    pub(crate) fn collect() -> (Self, DefaultGuard) {
        let lines = Self::default();
        let guard = tracing::subscriber::set_default(tracing_subscriber::registry().with(lines.clone()));
        (lines, guard)
    }

    pub(crate) fn all(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

impl<S: tracing::Subscriber> Layer<S> for LogLines {
    fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, S>) {
        let (target, level) = (event.metadata().target(), event.metadata().level());
        if ["store::outage", "store::tasks"].contains(&target) && *level <= tracing::Level::INFO {
            event.record(&mut Message(self, *level));
        }
    }
}

struct Message<'l>(&'l LogLines, tracing::Level);

impl Visit for Message<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "message" {
            self.0.0.lock().unwrap().push(format!("{} {value:?}", self.1));
        }
    }
}

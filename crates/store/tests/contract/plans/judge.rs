//! Collects the plans that the server sends, and checks them.

use std::fmt::Write as _;
use std::sync::{Arc, Mutex, MutexGuard};

use serde_json::Value;
use tracing::field::{Field, Visit};
use tracing::subscriber::DefaultGuard;
use tracing_subscriber::layer::{Context, Layer, SubscriberExt as _};

/// Log target of the driver for notices of the server.
const NOTICES: &str = "sqlx::postgres::notice";
/// Tables that grow with the number of sites and visits.
const HOT_TABLES: [&str; 15] = [
    "site_state",
    "host",
    "robots",
    "resource",
    "document",
    "manifest",
    "manifest_version",
    "capability",
    "capability_type",
    "declaration",
    "visit",
    "feed",
    "feed_pending",
    "address_clock",
    "registry_entry",
];
/// Statements that may read a whole table: the hourly cleaning of the clocks of addresses and of entries of registries.
const READ_WHOLE: [&str; 2] = ["DELETE FROM address_clock", "DELETE FROM registry_entry WHERE seen_at_ms"];
/// Maximum number of rows of hot tables that one statement may read beyond the requested ones: a fraction of any hot table.
const ROWS_MAX: f64 = 2_000.0;

/// The plans since the last check, and the violations of earlier plans.
#[derive(Clone, Default)]
pub(crate) struct Judge {
    plans: Arc<Mutex<Vec<Value>>>,
    judged: Arc<Mutex<(usize, Vec<String>)>>,
}

impl Judge {
    /// Collects the notices to this thread's sessions until the guard is dropped.
    pub(crate) fn listen(&self) -> DefaultGuard {
        tracing::subscriber::set_default(tracing_subscriber::registry().with(self.clone()))
    }

    pub(crate) fn forget(&self) {
        self.plans().clear();
    }

    /// Checks the plans of `operation`, for which `rows` rows were requested.
    pub(crate) fn judge(&self, operation: &str, rows: u32) {
        let plans = std::mem::take(&mut *self.plans());
        assert!(!plans.is_empty(), "no plan of {operation} was received: is auto_explain loaded?");
        let mut judged = self.judged.lock().expect("the lock is not poisoned");
        judged.0 += plans.len();
        for plan in plans {
            let mut found = PlanSummary::default();
            found.read(&plan["Plan"]);
            let statement = plan["Query Text"].as_str().unwrap_or_default();
            let is_meant = READ_WHOLE.iter().any(|start| statement.starts_with(start));
            let is_bounded = found.read_whole.is_empty() && found.rows <= ROWS_MAX + f64::from(rows);
            let is_good = is_meant || is_bounded;
            if !is_good {
                let what = format!("{operation}: {statement}");
                if !judged.1.iter().any(|earlier| earlier.starts_with(&what)) {
                    let (whole, rows, outline) = (found.read_whole, found.rows, found.outline);
                    judged.1.push(format!(
                        "{what}\nreads {whole:?} from end to end, {rows} rows in all:\n{outline}"
                    ));
                }
            }
        }
    }

    pub(crate) fn assert_good(&self) {
        let judged = self.judged.lock().expect("the lock is not poisoned");
        assert!(judged.0 > 200, "{} plans are too few for all operations of the store", judged.0);
        assert!(judged.1.is_empty(), "{}", judged.1.join("\n\n"));
    }

    fn plans(&self) -> MutexGuard<'_, Vec<Value>> {
        self.plans.lock().expect("the lock is not poisoned")
    }
}

/// Rows and tables that a plan reads.
#[derive(Default)]
struct PlanSummary {
    read_whole: Vec<String>,
    rows: f64,
    outline: String,
    depth: usize,
}

impl PlanSummary {
    fn read(&mut self, node: &Value) {
        let word = |key: &str| node[key].as_str().unwrap_or_default();
        let number = |key: &str| node[key].as_f64().unwrap_or_default();
        let (kind, table) = (word("Node Type"), word("Relation Name"));
        let rows = (number("Actual Rows")
            + number("Rows Removed by Filter")
            + number("Rows Removed by Index Recheck"))
            * number("Actual Loops");
        let indent = " ".repeat(2 * self.depth);
        writeln!(
            self.outline,
            "{indent}{kind} {table} {} rows={rows} {} {}",
            word("Index Name"),
            word("Index Cond"),
            word("Filter")
        )
        .expect("writing to a string cannot fail");
        if is_hot(table) && kind.ends_with("Scan") {
            self.rows += rows;
            if kind == "Seq Scan" {
                self.read_whole.push(table.to_owned());
            }
        }
        self.depth += 1;
        node["Plans"].as_array().into_iter().flatten().for_each(|child| self.read(child));
        self.depth -= 1;
    }
}

/// The table of sites is partitioned.
fn is_hot(table: &str) -> bool {
    let part = table.strip_prefix("site_").and_then(|part| part.parse::<u8>().ok());
    part.is_some() || HOT_TABLES.contains(&table)
}

impl<S: tracing::Subscriber> Layer<S> for Judge {
    fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, S>) {
        if event.metadata().target() == NOTICES {
            event.record(&mut Plans(&mut self.plans()));
        }
    }
}

/// Extracts the plan from a notice: `duration: 0.1 ms  plan:` and an object.
struct Plans<'a>(&'a mut Vec<Value>);

impl Visit for Plans<'_> {
    fn record_str(&mut self, _: &Field, notice: &str) {
        let Some((_, plan)) = notice.split_once("plan:") else { return };
        self.0.push(serde_json::from_str(plan).expect("auto_explain writes JSON"));
    }

    fn record_debug(&mut self, _: &Field, _: &dyn std::fmt::Debug) {}
}

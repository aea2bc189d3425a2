//! Memory, file descriptors and lag of the processes that run for the whole test, sampled repeatedly.

use std::collections::BTreeMap;

use crate::fleet::{Fleet, STEADY};
use crate::load::client;

/// Growth of memory between the second and the last third that counts as a leak, in per cent and in MiB: both must be exceeded.
const GROWTH_PERCENT: u64 = 20;
const GROWTH_MIB: u64 = 32;
/// Maximum growth of file descriptors between the second and the last third.
const GROWTH_FILES: u64 = 12;

#[derive(Default)]
pub(crate) struct Series {
    pub(crate) resident_mib: Vec<u64>,
    pub(crate) open_files: Vec<u64>,
}

/// A sampled number: its medians in the second and in the last third, and its maximum.
pub(crate) struct Growth {
    pub(crate) middle: u64,
    pub(crate) end: u64,
    pub(crate) max: u64,
}

#[derive(Default)]
pub(crate) struct Measurements {
    pub(crate) processes: BTreeMap<&'static str, Series>,
    /// Values from `/metrics` by name, over time.
    pub(crate) metrics: BTreeMap<&'static str, Vec<f64>>,
}

/// Sampled metrics; those with labels are summed.
const OF_THE_CRAWLER: [&str; 6] = [
    "agentdex_crawler_visits_total",
    "agentdex_crawler_requests_total",
    "agentdex_crawler_own_failures_total",
    "agentdex_crawler_leases_lost_total",
    "agentdex_crawler_database_waits_total",
    "agentdex_crawler_lag_seconds",
];
const OF_THE_INTERFACE: [&str; 2] = ["agentdex_api_index_changes_behind", "agentdex_api_turned_away_total"];

impl Measurements {
    pub(crate) async fn take(&mut self, fleet: &Fleet) {
        for name in STEADY {
            let Some(pid) = fleet.pid(name) else { continue };
            let series = self.processes.entry(name).or_default();
            series.resident_mib.extend(resident_mib(pid));
            series.open_files.extend(open_files(pid));
        }
        let interface = format!("{}/metrics", fleet.interfaces()[0]);
        self.read(&fleet.crawler_metrics(), &OF_THE_CRAWLER).await;
        self.read(&interface, &OF_THE_INTERFACE).await;
    }

    #[expect(clippy::disallowed_methods, reason = "a client of the local metrics")]
    async fn read(&mut self, url: &str, names: &[&'static str]) {
        let Ok(answer) = client().get(url).send().await else { return };
        let Ok(bytes) = answer.bytes().await else { return };
        let text = String::from_utf8_lossy(&bytes);
        for name in names {
            let values = text.lines().filter_map(|line| value_of(line, name));
            self.metrics.entry(name).or_default().push(values.fold(0.0, |sum, value| sum + value));
        }
    }
}

/// The number of a line such as `name{label="x"} 3`.
fn value_of(line: &str, name: &str) -> Option<f64> {
    let rest = line.strip_prefix(name)?;
    let value = if rest.starts_with('{') { rest.rsplit_once("} ")?.1 } else { rest.strip_prefix(' ')? };
    value.trim().parse().ok()
}

fn resident_mib(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    Some(line.split_whitespace().next()?.parse::<u64>().ok()? / 1024)
}

fn open_files(pid: u32) -> Option<u64> {
    Some(std::fs::read_dir(format!("/proc/{pid}/fd")).ok()?.count() as u64)
}

impl Growth {
    pub(crate) fn of(values: &[u64]) -> Self {
        let third = values.len() / 3;
        Self {
            middle: median(&values[third..2 * third]),
            end: median(&values[2 * third..]),
            max: values.iter().copied().max().unwrap_or_default(),
        }
    }
}

impl Series {
    pub(crate) fn leaks(&self) -> Vec<&'static str> {
        let (memory, files) = (Growth::of(&self.resident_mib), Growth::of(&self.open_files));
        let grown = memory.end.saturating_sub(memory.middle);
        let mut leaks = Vec::new();
        if grown > GROWTH_MIB && grown * 100 > GROWTH_PERCENT * memory.middle {
            leaks.push("memory grows");
        }
        if files.end.saturating_sub(files.middle) > GROWTH_FILES {
            leaks.push("descriptors grow");
        }
        leaks
    }
}

fn median(values: &[u64]) -> u64 {
    let mut values = values.to_vec();
    values.sort_unstable();
    values.get(values.len() / 2).copied().unwrap_or_default()
}

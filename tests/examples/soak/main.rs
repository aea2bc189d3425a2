//! Runs a whole fleet for some minutes against a web that changes and misbehaves, with restarts, kills and broken database
//! connections, and prints a report. `tests/soak MINUTES [FILE]` builds and starts it.
//!
//! It checks politeness by an audit of the test web's log, failed searches, memory and file descriptors of the processes that run for the
//! whole test, warnings in the logs, and that a search finds everything that is declared at the end exactly once.

mod checks;
mod fleet;
mod load;
mod measure;
mod report;
mod sites;

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use agentdex_tests::harness::TestDatabase;
use anyhow::{Context as _, bail};
use tokio::time::{Instant, sleep_until};

use fleet::Fleet;
use load::Load;
use measure::Measurements;
use report::Report;
use sites::{Random, SoakSites};

/// Interval of measurements.
const MEASUREMENT_INTERVAL: Duration = Duration::from_secs(5);
/// Interval of changes of the sites.
const CHANGE_INTERVAL: Duration = Duration::from_millis(400);
/// Maximum time after the faults are removed until searches return the current actions of every shop.
const RECOVERY_MAX: Duration = Duration::from_mins(5);

#[tokio::main]
async fn main() -> anyhow::Result<ExitCode> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (minutes, file) = match arguments.as_slice() {
        [minutes] => (minutes.parse::<f64>()?, None),
        [minutes, file] => (minutes.parse::<f64>()?, Some(PathBuf::from(file))),
        _ => bail!("usage: soak MINUTES [FILE]"),
    };
    let report = soak(Duration::from_secs_f64(60.0 * minutes)).await?;
    let text = report.to_string();
    writeln!(std::io::stdout(), "{text}")?;
    if let Some(file) = file {
        std::fs::write(&file, &text).with_context(|| format!("cannot write {}", file.display()))?;
    }
    Ok(ExitCode::from(u8::from(!report.is_good())))
}

async fn soak(duration: Duration) -> anyhow::Result<Report> {
    let mut random = Random::new(duration.as_secs());
    let mut sites = SoakSites::start().await?;
    let database = TestDatabase::create().await?;
    let mut fleet = Fleet::start(&sites, &database)?;
    fleet.wait_until_ready().await?;
    let load = Load::on(&fleet.interfaces());
    let mut measurements = Measurements::default();

    let until = Instant::now() + duration;
    let (mut next_measurement, mut next_change) = (Instant::now(), Instant::now());
    while Instant::now() < until {
        sleep_until(next_measurement.min(next_change)).await;
        if Instant::now() >= next_change {
            sites.change(&mut random);
            next_change += CHANGE_INTERVAL;
        }
        if Instant::now() >= next_measurement {
            measurements.take(&fleet).await;
            fleet.disturb(&mut random, &sites, &database).await?;
            next_measurement += MEASUREMENT_INTERVAL;
        }
    }

    sites.restore();
    let found = checks::wait_until_found(&mut fleet, &sites, RECOVERY_MAX).await?;
    let changes = checks::changes(&fleet).await?;
    let answers = load.stop().await;
    let stopped = fleet.stop().await?;
    let audit = sites.audit(&stopped);
    database.drop_database().await?;
    Ok(Report { duration, audit, answers, measurements, stopped, found, changes, sites: sites.count() })
}

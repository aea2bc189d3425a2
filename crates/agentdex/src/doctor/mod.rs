//! `agentdex doctor`: checks everything that agentdex needs, and explains how to correct problems.
//!
//! Checks change nothing, except that opening the database migrates an older schema. A SQLite database that does not exist
//! is not created.

mod checks;
mod machine;
mod snapshots;

use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use api::ApiSettings;
use clap::ValueEnum;
use crawler::cli::CrawlFlags;
use crawler::output::OutputFormat;
use indexer::cli::{ReaderFlags, Settings};
use indexer::snapshot::SnapshotLocation;
use serde::Serialize;
use settings::command_line::with_flags;
use settings::{SharedFlags, escape};

use self::snapshots::SnapshotLocations;

/// Check the settings, the database, the clock, name servers, limits, the disk, the index and its snapshots
#[derive(Debug, clap::Args)]
pub(crate) struct DoctorArgs {
    /// Run only these checks
    #[arg(long, value_enum, value_delimiter = ',')]
    only: Vec<Subject>,
    /// Directory of the index, if it is not in the data directory
    #[arg(long, value_name = "DIR")]
    index_dir: Option<PathBuf>,
    /// Where the indexer publishes snapshots, if the configuration does not name it
    #[arg(long, value_name = "LOCATION")]
    publish: Option<SnapshotLocation>,
    /// Where the API fetches snapshots, if the configuration does not name it
    #[arg(long, value_name = "LOCATION")]
    index_from: Option<SnapshotLocation>,
}

/// Subject of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Subject {
    Settings,
    Database,
    Clock,
    Dns,
    Files,
    Disk,
    Index,
    Snapshots,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Health {
    Good,
    /// It works, but is close to a limit or incomplete.
    Doubtful,
    Bad,
}

/// The result of a check.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Finding {
    subject: Subject,
    health: Health,
    found: String,
    /// How to correct it; `None` if it is good.
    advice: Option<String>,
}

impl Finding {
    pub(crate) fn good(subject: Subject, found: impl Into<String>) -> Self {
        Self { subject, health: Health::Good, found: found.into(), advice: None }
    }

    pub(crate) fn doubtful(subject: Subject, found: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { subject, health: Health::Doubtful, found: found.into(), advice: Some(advice.into()) }
    }

    pub(crate) fn bad(subject: Subject, found: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { subject, health: Health::Bad, found: found.into(), advice: Some(advice.into()) }
    }
}

/// The exit code is 1 if a result is bad.
pub(crate) async fn run(
    args: &DoctorArgs,
    shared: &SharedFlags,
    crawl: &CrawlFlags,
    out: &mut impl Write,
) -> anyhow::Result<ExitCode> {
    let mut findings = Vec::new();
    match resolve(args, shared, crawl) {
        Ok(Resolved { settings, locations, obstacles, crawl }) => {
            findings.push(checks::settings(&obstacles));
            findings.extend(checks::all(&settings, &crawl, |subject| is_wanted(args, subject)).await);
            if is_wanted(args, Subject::Snapshots) {
                findings.extend(snapshots::all(&locations).await);
            }
        }
        Err(error) => findings.push(Finding::bad(
            Subject::Settings,
            error.to_string(),
            "correct this first: the other checks need valid settings",
        )),
    }
    let location = shared.location(store::url_to_type);
    for advice in findings.iter_mut().filter_map(|finding| finding.advice.as_mut()) {
        *advice = with_flags(advice, &location);
    }
    let is_bad = findings.iter().any(|finding| finding.health == Health::Bad);
    findings.retain(|finding| is_wanted(args, finding.subject) || finding.health == Health::Bad);
    match crawl.format.unwrap_or_default() {
        OutputFormat::Json => writeln!(out, "{}", serde_json::to_string(&findings)?)?,
        OutputFormat::Text => findings.iter().try_for_each(|finding| show(finding, out))?,
    }
    Ok(ExitCode::from(u8::from(is_bad)))
}

fn is_wanted(args: &DoctorArgs, subject: Subject) -> bool {
    args.only.is_empty() || args.only.contains(&subject)
}

/// The settings that are checked.
struct Resolved {
    settings: Settings,
    locations: SnapshotLocations,
    /// Why a crawl would not start.
    obstacles: Vec<String>,
    crawl: CrawlContext,
}

/// Data about the crawl that the checks need.
pub(crate) struct CrawlContext {
    /// Name servers to use instead of the system's.
    name_servers: Vec<SocketAddr>,
    /// The command that starts it.
    command: String,
}

fn resolve(args: &DoctorArgs, shared: &SharedFlags, crawl: &CrawlFlags) -> anyhow::Result<Resolved> {
    let obstacles = crate::configuration::check(shared, crawl)?.obstacles;
    let (shared_flags, index_dir) = (shared.clone(), args.index_dir.clone());
    let reader = ReaderFlags { shared: shared_flags, index_dir, ..ReaderFlags::default() };
    let mut settings = reader.settings()?;
    settings.open_cluster()?;
    let api = ApiSettings { index_from: args.index_from.clone(), ..ApiSettings::default() };
    let locations = SnapshotLocations {
        publish: args.publish.clone().or_else(|| settings.publish.clone()),
        index_from: api.or_file(shared.config.as_deref())?.index_from,
    };
    let name_servers = crawler::cli::resolve(shared, crawl)?.crawl.egress.name_servers;
    let crawl = CrawlContext { name_servers, command: crate::configuration::crawl_command(shared, crawl) };
    Ok(Resolved { settings, locations, obstacles, crawl })
}

fn show(finding: &Finding, out: &mut impl Write) -> std::io::Result<()> {
    let subject = finding.subject.to_possible_value().map(|value| value.get_name().to_owned());
    let health = match finding.health {
        Health::Good => "good",
        Health::Doubtful => "doubtful",
        Health::Bad => "BAD",
    };
    writeln!(out, "{:<10}{health:<10}{}", subject.unwrap_or_default(), escape::line(&finding.found))?;
    match &finding.advice {
        Some(advice) => writeln!(out, "{:<20}-> {}", "", escape::line(advice)),
        None => Ok(()),
    }
}

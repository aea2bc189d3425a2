//! `agentdex doctor`: looks at everything that agentdex needs, and says what to do about what is missing.
//!
//! A check reads and measures; it mends nothing. The database is opened as every program opens it, which brings an older
//! schema up to date; an embedded database that does not exist yet is not made.

mod checks;
mod machine;
mod snapshots;

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use api::ApiSettings;
use clap::ValueEnum;
use crawler::cli::{CrawlFlags, SharedFlags};
use crawler::output::OutputFormat;
use indexer::cli::Settings;
use indexer::snapshot::SnapshotLocation;
use serde::Serialize;
use settings::escape;

use self::snapshots::Places;
use crate::configuration::shared_arguments;

/// Look at the database, the clock, name servers, limits, the disk, the index and its snapshots, and say what to do
#[derive(Debug, clap::Args)]
pub(crate) struct DoctorArgs {
    /// Only these
    #[arg(long, value_enum, value_delimiter = ',')]
    only: Vec<Subject>,
    /// Where the index lies, where that is not in the data directory
    #[arg(long, value_name = "DIR")]
    index_dir: Option<PathBuf>,
    /// Where the indexer publishes snapshots, where the configuration does not say so
    #[arg(long, value_name = "PLACE")]
    publish: Option<SnapshotLocation>,
    /// Where the interface fetches snapshots, where the configuration does not say so
    #[arg(long, value_name = "PLACE")]
    index_from: Option<SnapshotLocation>,
}

/// What is looked at.
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
    /// It works, and will not for long or not for much.
    Doubtful,
    Bad,
}

/// What was found about one subject.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Finding {
    subject: Subject,
    health: Health,
    found: String,
    /// What to do; nothing where all is well.
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

/// Ends with 1 where something is bad.
pub(crate) async fn run(
    args: &DoctorArgs,
    shared: &SharedFlags,
    crawl: &CrawlFlags,
    out: &mut impl Write,
) -> anyhow::Result<ExitCode> {
    let mut findings = Vec::new();
    match settled(args, shared, crawl) {
        Ok((settings, places)) => {
            findings.push(Finding::good(Subject::Settings, "every program can use them"));
            findings.extend(checks::all(&settings, |subject| is_wanted(args, subject)).await);
            if is_wanted(args, Subject::Snapshots) {
                findings.extend(snapshots::all(&places).await);
            }
        }
        Err(error) => findings.push(Finding::bad(
            Subject::Settings,
            error.to_string(),
            "mend that first: nothing else can be looked at without settings",
        )),
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

fn settled(
    args: &DoctorArgs,
    shared: &SharedFlags,
    crawl: &CrawlFlags,
) -> anyhow::Result<(Settings, Places)> {
    crate::configuration::check(shared, crawl)?;
    let mut arguments = shared_arguments(shared);
    arguments.index_dir.clone_from(&args.index_dir);
    let settings = arguments.settings()?;
    let api = ApiSettings { index_from: args.index_from.clone(), ..ApiSettings::default() };
    let places = Places {
        publish: args.publish.clone().or_else(|| settings.publish.clone()),
        index_from: api.or_file(shared.config.as_deref())?.index_from,
    };
    Ok((settings, places))
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

//! `agentdex reports`: lists and dismisses reports of clients about sites (`POST /reports`), and lists and answers the objections of owners of
//! suspended sites.

use std::io::Write;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use crawler::cli::UsageError;
use manifest::SiteName;
use policy::abuse::OBJECTION_CHARS_MAX;
use settings::SharedFlags;
use settings::command_line::with_flags;
use store::{ReportFilter, ReportedSite, Store};

use crate::serve;

#[derive(Debug, Args)]
pub(crate) struct ReportsArgs {
    #[command(subcommand)]
    command: ReportsCommand,
}

#[derive(Debug, Subcommand)]
enum ReportsCommand {
    /// Print the sites with reports, the one with the most first
    Sites {
        /// Sites shown
        #[arg(long, value_name = "N", default_value_t = 50)]
        limit: u32,
    },
    /// Print reports as lines of JSON, newest first
    List {
        /// Only reports about this site
        #[arg(long, value_name = "DOMAIN")]
        site: Option<String>,
        /// Reports shown
        #[arg(long, value_name = "N", default_value_t = 50)]
        limit: u32,
    },
    /// Delete reports that need no action, or on which you acted
    Dismiss {
        /// All reports about this site
        #[arg(long, value_name = "DOMAIN")]
        site: Option<String>,
        /// One report, as `list` prints it
        #[arg(long, value_name = "ID")]
        id: Option<i64>,
        /// All reports
        #[arg(long, conflicts_with_all = ["site", "id"])]
        all: bool,
    },
    /// Print the objections of owners of suspended sites as lines of JSON, those without an answer first
    Objections {
        /// Objections shown
        #[arg(long, value_name = "N", default_value_t = 50)]
        limit: u32,
    },
    /// Answer the objection of an owner, who sees the text; `agentdex unsuspend` lifts the suspension
    Answer {
        /// Domain, such as example.org
        domain: String,
        /// The answer, at most 1,000 characters
        #[arg(long, value_name = "TEXT")]
        text: String,
    },
}

pub(crate) async fn run(
    args: &ReportsArgs,
    shared: &SharedFlags,
    out: &mut impl Write,
) -> anyhow::Result<ExitCode> {
    let settings = serve::reader_settings(shared, shared.data_dir.as_deref())?;
    let _log = settings.start_logging("agentdex-reports");
    let store = Store::open_existing(&settings.store).await?;
    match &args.command {
        ReportsCommand::Sites { limit } => {
            let reported = store.reports_by_site(*limit).await?;
            if reported.is_empty() {
                writeln!(out, "no site is reported")?;
            }
            for site in reported {
                writeln!(out, "{}", with_flags(&line(&site), &shared.location(store::url_to_type)))?;
            }
        }
        ReportsCommand::List { site, limit } => {
            let reports = store.reports_page(&filter(site.as_deref(), None)?, None, *limit).await?;
            if reports.is_empty() {
                // standard output has only JSON
                writeln!(std::io::stderr(), "no report matches")?;
            }
            for report in reports {
                writeln!(out, "{}", serde_json::to_string(&report)?)?;
            }
        }
        ReportsCommand::Dismiss { site, id, all } => {
            let filter = filter(site.as_deref(), *id)?;
            let is_named = filter != ReportFilter::default();
            if !is_named && !*all {
                return Err(UsageError("name what to dismiss: --site, --id, or --all".to_owned()).into());
            }
            writeln!(out, "{} dismissed", store.reports_dismiss(&filter).await?)?;
        }
        ReportsCommand::Objections { limit } => {
            let objections = store.objections_list(*limit).await?;
            if objections.is_empty() {
                // standard output has only JSON
                writeln!(std::io::stderr(), "no owner objects to a suspension")?;
            }
            for objection in objections {
                writeln!(out, "{}", serde_json::to_string(&objection)?)?;
            }
        }
        ReportsCommand::Answer { domain, text } => {
            writeln!(out, "{}", answer(&store, domain, text.trim()).await?)?;
        }
    }
    store.close().await;
    Ok(ExitCode::SUCCESS)
}

/// Answers the objection of an owner.
#[expect(clippy::disallowed_methods, reason = "the time at which an operator answers")]
async fn answer(store: &Store, domain: &str, text: &str) -> anyhow::Result<String> {
    let site = SiteName::parse(domain)?;
    if text.is_empty() || text.chars().count() > OBJECTION_CHARS_MAX {
        return Err(UsageError(format!("--text has to have 1 to {OBJECTION_CHARS_MAX} characters")).into());
    }
    anyhow::ensure!(
        store.objection_answer(&site, text, chrono::Utc::now()).await?,
        "{site} is not suspended, or its owner has sent no objection"
    );
    Ok(format!("answered: the owner of {site} sees it"))
}

fn filter(site: Option<&str>, id: Option<i64>) -> anyhow::Result<ReportFilter> {
    Ok(ReportFilter { id, site: site.map(SiteName::parse).transpose()? })
}

/// A site with the number of its reports, and advice.
fn line(reported: &ReportedSite) -> String {
    let ReportedSite { site, reports, latest_at, is_suspended } = reported;
    let noun = if *reports == 1 { "report" } else { "reports" };
    let next = if *is_suspended {
        "suspended".to_owned()
    } else {
        format!("`agentdex suspend {site} --reason REASON`")
    };
    format!("{site}  {reports} {noun}, the latest {}; {next}", latest_at.format("%Y-%m-%d"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono::DateTime;
    use policy::AbuseReason;
    use store::{DatabaseUrl, Report, ReportCaps, ReportOutcome, StoreConfig, SuspensionRecord};

    #[tokio::test]
    async fn lists_and_dismisses_reports() {
        let dir = tempfile::tempdir().unwrap();
        let shared = SharedFlags { data_dir: Some(dir.path().to_owned()), ..SharedFlags::default() };
        let store = Store::open(&StoreConfig::new(DatabaseUrl::in_data_dir(dir.path()))).await.unwrap();
        let site = |name: &str| SiteName::parse(name).unwrap();
        for (about, note) in [("spam.example", "one"), ("spam.example", "two"), ("bad.example", "one")] {
            let report = Report {
                at: DateTime::UNIX_EPOCH,
                site: site(about),
                capability: None,
                reason: AbuseReason::Spam,
                note: note.into(),
            };
            let caps = ReportCaps { of_site: 9, of_all: 9 };
            assert_eq!(store.report_save(&report, caps).await.unwrap(), ReportOutcome::Saved);
        }
        let reason = AbuseReason::Spam;
        let suspension =
            SuspensionRecord { reason, note: String::new(), places: Vec::new(), at: DateTime::UNIX_EPOCH };
        store.site_suspend(&site("spam.example"), &suspension).await.unwrap();
        let output_of = async |command| {
            let mut out = Vec::new();
            run(&ReportsArgs { command }, &shared, &mut out).await.map(|_| String::from_utf8(out).unwrap())
        };
        let sites = output_of(ReportsCommand::Sites { limit: 9 }).await.unwrap();
        let location = shared.location(store::url_to_type);
        let expected = format!(
            "spam.example  2 reports, the latest 1970-01-01; suspended\n\
             bad.example  1 report, the latest 1970-01-01; `agentdex suspend bad.example --reason REASON{location}`\n"
        );
        assert_eq!(sites, expected);
        let of_spam = Some("spam.example".to_owned());
        let listed = output_of(ReportsCommand::List { site: of_spam.clone(), limit: 9 }).await.unwrap();
        assert_eq!(listed.lines().count(), 2);
        assert!(listed.contains(r#""note":"two""#) && listed.contains(r#""reason":"spam""#), "{listed}");
        store
            .objection_save(&site("spam.example"), "we removed the copies", DateTime::UNIX_EPOCH)
            .await
            .unwrap();
        let objections = output_of(ReportsCommand::Objections { limit: 9 }).await.unwrap();
        assert!(objections.contains(r#""text":"we removed the copies""#), "{objections}");
        let answer =
            |domain: &str, text: &str| ReportsCommand::Answer { domain: domain.into(), text: text.into() };
        assert!(output_of(answer("spam.example", "")).await.unwrap_err().to_string().contains("--text"));
        assert!(
            output_of(answer("bad.example", "no")).await.unwrap_err().to_string().contains("not suspended")
        );
        let answered = output_of(answer("spam.example", "lifted soon")).await.unwrap();
        assert_eq!(answered, "answered: the owner of spam.example sees it\n");
        let objections = output_of(ReportsCommand::Objections { limit: 9 }).await.unwrap();
        assert!(objections.contains("lifted soon"), "{objections}");
        let dismiss = |site, all| ReportsCommand::Dismiss { site, id: None, all };
        let unclear = output_of(dismiss(None, false)).await.unwrap_err();
        assert!(unclear.to_string().contains("--site"), "{unclear}");
        assert_eq!(output_of(dismiss(of_spam, false)).await.unwrap(), "2 dismissed\n");
        assert_eq!(output_of(dismiss(None, true)).await.unwrap(), "1 dismissed\n");
        let none = output_of(ReportsCommand::Sites { limit: 9 }).await.unwrap();
        assert_eq!(none, "no site is reported\n");
    }
}

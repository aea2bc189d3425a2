//! `agentdex feedback`: lists, removes, exports and evaluates the choices of clients (`POST /feedback`). Feedback does not influence the
//! ranking.

use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use clap::{Args, Subcommand};
use crawler::cli::UsageError;
use indexer::{SearchRequest, Searcher};
use manifest::{CapabilityId, SiteName};
use settings::SharedFlags;
use store::{FeedbackFilter, FeedbackPair, Store};

use crate::serve;

/// Pairs per page.
const PAGE: u32 = 1_000;
/// Number of first results in which a choice is looked up.
const RESULTS_MAX: usize = 10;

#[derive(Debug, Args)]
pub(crate) struct FeedbackArgs {
    #[command(subcommand)]
    command: FeedbackCommand,
}

#[derive(Debug, Subcommand)]
enum FeedbackCommand {
    /// Print feedback, newest first
    List {
        #[command(flatten)]
        filter: FilterArgs,
        /// Lines shown
        #[arg(long, value_name = "N", default_value_t = 50)]
        limit: u32,
    },
    /// Remove feedback about a site or a capability, or of a client
    Remove {
        #[command(flatten)]
        filter: FilterArgs,
        /// All feedback
        #[arg(long, conflicts_with_all = ["site", "client", "capability"])]
        all: bool,
    },
    /// Write queries with the chosen capabilities as lines of JSON
    Export {
        /// `-` for standard output
        file: PathBuf,
        /// Only choices of at least this many clients
        #[arg(long, value_name = "N", default_value_t = 1)]
        clients: u32,
    },
    /// Report how well the index ranks the choices
    Judge {
        /// Only choices of at least this many clients
        #[arg(long, value_name = "N", default_value_t = 2)]
        clients: u32,
    },
}

#[derive(Debug, Args)]
struct FilterArgs {
    /// About this site
    #[arg(long, value_name = "DOMAIN")]
    site: Option<String>,
    /// Of this client of one day, as `list` prints it
    #[arg(long, value_name = "HASH")]
    client: Option<String>,
    /// About this capability
    #[arg(long, value_name = "ID")]
    capability: Option<String>,
}

impl FilterArgs {
    fn read(&self) -> anyhow::Result<FeedbackFilter> {
        let site = self.site.as_deref().map(SiteName::parse).transpose()?;
        let capability = self.capability.as_deref().map(CapabilityId::parse).transpose();
        let capability = capability.context("the id of a capability is \"c\" and 16 characters")?;
        Ok(FeedbackFilter { id: None, site, client: self.client.clone(), capability })
    }
}

pub(crate) async fn run(
    args: &FeedbackArgs,
    shared: &SharedFlags,
    out: &mut impl Write,
) -> anyhow::Result<ExitCode> {
    let mut settings = serve::reader_settings(shared, shared.data_dir.as_deref())?;
    let _log = settings.start_logging("agentdex-feedback");
    let store = Store::open_existing(&settings.store).await?;
    match &args.command {
        FeedbackCommand::List { filter, limit } => {
            let lines = store.feedback_page(&filter.read()?, None, *limit).await?;
            if lines.is_empty() {
                // standard output has only JSON
                writeln!(std::io::stderr(), "no feedback matches")?;
            }
            for line in lines {
                writeln!(out, "{}", serde_json::to_string(&line)?)?;
            }
        }
        FeedbackCommand::Remove { filter, all } => {
            let filter = filter.read()?;
            let is_named = filter != FeedbackFilter::default();
            if !is_named && !*all {
                let why = "specify what to remove: --site, --client, --capability, or --all";
                return Err(UsageError(why.to_owned()).into());
            }
            writeln!(out, "{} removed", store.feedback_remove(&filter).await?)?;
        }
        FeedbackCommand::Export { file, clients } => {
            let pairs = pairs(&store, *clients).await?;
            match file.to_str() {
                Some("-") => write(&pairs, out)?,
                _ => export(&pairs, file)?,
            }
            // standard output may hold the export
            writeln!(std::io::stderr(), "{}", exported(pairs.len()))?;
        }
        FeedbackCommand::Judge { clients } => {
            let pairs = pairs(&store, *clients).await?;
            settings.open_cluster()?;
            let searcher = Searcher::of(&settings.index)?;
            writeln!(out, "{}", judge(&searcher, &pairs)?)?;
        }
    }
    store.close().await;
    Ok(ExitCode::SUCCESS)
}

/// All pairs. The caps of the API limit their number.
async fn pairs(store: &Store, clients_min: u32) -> anyhow::Result<Vec<FeedbackPair>> {
    let mut pairs: Vec<FeedbackPair> = Vec::new();
    loop {
        let page = store.feedback_pairs(pairs.last(), clients_min, PAGE).await?;
        let is_last = u32::try_from(page.len()).is_ok_and(|found| found < PAGE);
        pairs.extend(page);
        if is_last {
            return Ok(pairs);
        }
    }
}

/// What an export wrote.
fn exported(pairs: usize) -> String {
    match pairs {
        0 => "no feedback matches: nothing was exported".to_owned(),
        1 => "1 query with a chosen capability exported".to_owned(),
        pairs => format!("{pairs} queries with chosen capabilities exported"),
    }
}

fn write(pairs: &[FeedbackPair], out: &mut impl Write) -> anyhow::Result<()> {
    for pair in pairs {
        writeln!(out, "{}", serde_json::to_string(pair)?)?;
    }
    Ok(())
}

fn export(pairs: &[FeedbackPair], file: &Path) -> anyhow::Result<()> {
    let created = std::fs::File::create_new(file);
    let mut file = BufWriter::new(created.with_context(|| format!("cannot write {}", file.display()))?);
    write(pairs, &mut file)?;
    Ok(file.flush()?)
}

/// Repeats every query and reports the ranks of the choices.
fn judge(searcher: &Searcher, pairs: &[FeedbackPair]) -> anyhow::Result<String> {
    let (mut found, mut reciprocal) = (0_u32, 0.0);
    for pair in pairs {
        let phrasings = vec![pair.query.clone()];
        let request = SearchRequest { phrasings, limit: RESULTS_MAX, ..SearchRequest::default() };
        let answer = searcher.search(&request).with_context(|| pair.query.clone())?;
        let rank = (1_u32..).zip(&answer.hits).find(|(_, hit)| hit.id == pair.capability);
        if let Some((rank, _)) = rank {
            found += 1;
            reciprocal += 1.0 / f64::from(rank);
        }
    }
    let judged = u32::try_from(pairs.len()).unwrap_or(u32::MAX);
    if judged == 0 {
        return Ok("nothing to evaluate: no query has a choice of enough clients".to_owned());
    }
    let mean = reciprocal / f64::from(judged);
    let queries = if judged == 1 { "query" } else { "queries" };
    Ok(format!(
        "{judged} {queries} with a choice: {found} of the choices among the first {RESULTS_MAX}, mean reciprocal rank {mean:.3}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono::DateTime;
    use store::{DatabaseUrl, Feedback, FeedbackCaps, FeedbackOutcome, StoreConfig};

    #[tokio::test]
    async fn lists_exports_and_removes_feedback() {
        let dir = tempfile::tempdir().unwrap();
        let shared = SharedFlags { data_dir: Some(dir.path().to_owned()), ..SharedFlags::default() };
        let store = Store::open(&StoreConfig::new(DatabaseUrl::in_data_dir(dir.path()))).await.unwrap();
        let caps = FeedbackCaps { of_client: 9, of_client_for_site: 9, of_site: 9, of_all: 9 };
        for (client, query) in [("a", "flight"), ("b", "flight"), ("a", "rain")] {
            let feedback = Feedback {
                at: DateTime::UNIX_EPOCH,
                query: query.into(),
                capability: CapabilityId::of_key(query),
                site: SiteName::parse("sky.example").unwrap(),
                place: 1,
                client: client.into(),
            };
            assert_eq!(store.feedback_save(&feedback, caps).await.unwrap(), FeedbackOutcome::Saved);
        }
        let output_of = async |command| {
            let mut out = Vec::new();
            run(&FeedbackArgs { command }, &shared, &mut out).await.map(|_| String::from_utf8(out).unwrap())
        };
        let no_filter = || FilterArgs { site: None, client: None, capability: None };
        let listed = output_of(FeedbackCommand::List { filter: no_filter(), limit: 9 }).await.unwrap();
        assert_eq!(listed.lines().count(), 3);
        let exported = output_of(FeedbackCommand::Export { file: "-".into(), clients: 2 }).await.unwrap();
        assert!(
            exported.contains(r#""query":"flight""#) && exported.contains(r#""clients":2"#),
            "{exported}"
        );
        assert_eq!(exported.lines().count(), 1);
        let unclear =
            output_of(FeedbackCommand::Remove { filter: no_filter(), all: false }).await.unwrap_err();
        assert!(unclear.to_string().contains("--site"), "{unclear}");
        let of_client = FilterArgs { client: Some("a".into()), ..no_filter() };
        let removed = output_of(FeedbackCommand::Remove { filter: of_client, all: false }).await.unwrap();
        assert_eq!(removed, "2 removed\n");
    }

    #[test]
    fn an_export_says_how_much_it_wrote() {
        assert_eq!(exported(0), "no feedback matches: nothing was exported");
        assert_eq!(exported(2), "2 queries with chosen capabilities exported");
    }

    #[test]
    fn reports_the_ranks_of_choices() {
        let dir = tempfile::tempdir().unwrap();
        let builder = indexer::IndexBuilder::begin(dir.path(), "test").unwrap();
        let url = manifest::ManifestUrl::parse("https://skyhop.example/agent.json").unwrap();
        let bytes = br#"{"awp_version":"0.1","domain":"skyhop.example","intent":"Flights","actions":[
            {"id":"book_flight","description":"Book a flight","endpoint":"/book","method":"POST"}]}"#;
        let manifest = manifest::read(&manifest::Document {
            bytes,
            url: &url,
            final_url: None,
            discovery: manifest::Discovery::WellKnown,
            served: None,
            linked: &[],
            force: None,
        });
        let capability = manifest.capabilities[0].id.clone();
        let seen = DateTime::UNIX_EPOCH;
        builder
            .add(&store::StoredManifest {
                manifest,
                training: manifest::model::PolicyChoice::Unset,
                named_by: manifest::NamedBy::Site,
                publisher: manifest::Publisher::Site,
                status: policy::Status::Fresh,
                first_seen_at: seen,
                last_seen_at: seen,
                changed_at: seen,
                versions: 1,
                body_kept: true,
            })
            .unwrap();
        builder.finish(store::FeedPosition(1)).unwrap();
        let searcher = Searcher::open(dir.path()).unwrap();
        let pair = |query: &str| FeedbackPair {
            query: query.into(),
            capability: capability.clone(),
            site: SiteName::parse("skyhop.example").unwrap(),
            clients: 2,
        };
        let report = judge(&searcher, &[pair("book flight"), pair("zzzz")]).unwrap();
        assert!(report.contains("2 queries with a choice: 1 of") && report.ends_with("0.500"), "{report}");
        assert!(judge(&searcher, &[]).unwrap().contains("nothing to evaluate"));
    }
}

//! What may be typed.

use std::io::Write;
use std::path::PathBuf;

use clap::{Args, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use crawler::cli::{CrawlFlags, SHARED, SharedFlags, THE_WAY, show_only_used};

use crate::db::DbArgs;
use crate::doctor::DoctorArgs;
use crate::feedback::FeedbackArgs;
use crate::manual::{CompletionsArgs, ManArgs};
use crate::probe::ProbeArgs;
use crate::validate::ValidateArgs;

/// The discovery index of the agentic web on one machine: crawls, indexes and serves in one process.
///
/// `agentdex demo` shows it on a small web of its own; `agentdex --seeds FILE` does the same for the real one.
#[derive(Debug, Parser)]
#[command(name = "agentdex", version, max_term_width = 100)]
pub(crate) struct Flags {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
    #[command(flatten)]
    pub(crate) shared: SharedFlags,
    #[command(flatten)]
    pub(crate) serve: ServeFlags,
    #[command(flatten)]
    pub(crate) crawl: CrawlFlags,
}

/// Flags of serving.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Serving")]
pub(crate) struct ServeFlags {
    /// Where the dashboard and the API listen [default: 127.0.0.1:8080]
    #[arg(long, global = true, value_name = "ADDRESS:PORT")]
    pub(crate) listen: Option<String>,
    /// How the world reaches the API, where that differs from --listen
    #[arg(long, global = true, value_name = "URL")]
    pub(crate) public_url: Option<String>,
    /// File with the hashes of the tokens of /admin; without it nobody administers
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) admin_tokens: Option<PathBuf>,
    /// Keep what people choose (POST /feedback); without it nothing is kept
    #[arg(long, global = true)]
    pub(crate) feedback: bool,
    /// A directory with a sentence model, to find also what means alike in other words (needs the feature `embedder`)
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) embedder: Option<PathBuf>,
    /// Open the dashboard in a browser
    #[arg(long, global = true)]
    pub(crate) open: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Start a small local web, crawl it, index it and serve the result
    Demo,
    Validate(ValidateArgs),
    /// Serve the index to one MCP client over standard input and output
    Mcp,
    /// Look after the database, and move it
    Db(DbArgs),
    /// What people said they chose: look at it, remove it, judge by it
    Feedback(FeedbackArgs),
    /// The configuration file and the environment
    #[command(subcommand)]
    Config(ConfigCommand),
    Doctor(DoctorArgs),
    Probe(ProbeArgs),
    Completions(CompletionsArgs),
    Man(ManArgs),
    /// Read one document from standard input under limits of the operating system; the crawl calls this itself
    #[command(hide = true)]
    ReadDocument,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Read the settings as every program would; end with 2 where one is wrong
    Check,
    /// Print every key with its value and where that comes from
    Print,
}

/// What a subcommand makes of the flags that may be typed anywhere; those that are not named here use all of them.
const USED: [(&str, &[&[&str]]); 10] = [
    ("validate", &[&["config", "log_format", "quiet", "verbose"], THE_WAY]),
    ("mcp", &[SHARED, &["public_url", "embedder"]]),
    ("db", &[SHARED]),
    ("feedback", &[SHARED]),
    ("config", &[SHARED]),
    ("doctor", &[SHARED, &["format"]]),
    ("probe", &[]),
    ("completions", &[]),
    ("man", &[]),
    ("read-document", &[]),
];

/// The command line, where each subcommand shows the flags that do something there. The others may still be typed.
pub(crate) fn command() -> clap::Command {
    show_only_used(Flags::command(), &USED)
}

/// What was typed; ends the program where that cannot be meant.
pub(crate) fn parse() -> Flags {
    let typed = Flags::from_arg_matches_mut(&mut command().get_matches());
    typed.unwrap_or_else(|error| error.format(&mut command()).exit())
}

pub(crate) fn print_help(out: &mut impl Write) -> std::io::Result<()> {
    write!(out, "{}", command().render_long_help())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flags_are_consistent() {
        command().debug_assert();
    }

    #[test]
    fn each_subcommand_shows_the_flags_that_do_something_there() {
        let help = |words: &[&str]| {
            let words = ["agentdex"].iter().chain(words).chain(&["--help"]);
            command().try_get_matches_from(words).unwrap_err().to_string()
        };
        for (words, shown, hidden) in [
            (["validate"].as_slice(), ["--hosts", "--output"], ["--concurrency", "--format "]),
            (&["doctor"], ["--data-dir", "--format"], ["--delay", "--listen"]),
            (&["probe"], ["--help", "[ADDRESS"], ["--data-dir", "--rate"]),
            (&["db", "status"], ["--data-dir", "--database-url"], ["--listen", "--delay"]),
            (&["demo"], ["--delay", "--listen"], ["--nothing", "--less"]),
        ] {
            let help = help(words);
            assert!(shown.iter().all(|flag| help.contains(flag)), "{help}");
            assert!(!hidden.iter().any(|flag| help.contains(flag)), "{help}");
        }
        let known: Vec<clap::Id> =
            Flags::command().get_arguments().map(|flag| flag.get_id().to_owned()).collect();
        for (name, used) in USED {
            assert!(used.concat().iter().all(|flag| known.iter().any(|known| known == flag)), "{name}");
        }
    }

    #[test]
    fn flags_that_are_not_shown_arrive_all_the_same() {
        let words = ["agentdex", "validate", "x.json", "--format", "json", "--concurrency", "3"];
        let flags = Flags::from_arg_matches_mut(&mut command().get_matches_from(words)).unwrap();
        assert_eq!(flags.crawl.concurrency, Some(3));
        assert_eq!(flags.crawl.format, Some(crawler::output::OutputFormat::Json));
    }

    /// Flags of the crawl are global, so a subcommand's own must not share their names.
    #[test]
    fn subcommands_are_read_with_the_flags_of_the_crawl() {
        let flags = Flags::try_parse_from(["agentdex", "validate", "-", "--output", "sarif"]).unwrap();
        assert!(matches!(flags.command, Some(Command::Validate(_))));
        let words = [
            "agentdex",
            "validate",
            "https://a.example/agent.json",
            "--hosts",
            "h",
            "--allow-addresses",
            "10.0.0.0/8",
        ];
        assert_eq!(Flags::try_parse_from(words).unwrap().crawl.allow_addresses, ["10.0.0.0/8"]);
        let flags =
            Flags::try_parse_from(["agentdex", "demo", "--delay", "1s", "--listen", "127.0.0.1:0"]).unwrap();
        assert!(matches!(flags.command, Some(Command::Demo)));
        assert_eq!(flags.crawl.delay.as_deref(), Some("1s"));
    }
}

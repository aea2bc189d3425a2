//! The command line.

use std::io::Write;

use clap::{CommandFactory as _, Parser, Subcommand};
use crawler::cli::{CrawlFlags, REQUEST_FLAGS, show_only_used};
use settings::SharedFlags;

use crate::configuration::ConfigCommand;
use crate::db::DbArgs;
use crate::doctor::DoctorArgs;
use crate::feedback::FeedbackArgs;
use crate::manual::{CompletionsArgs, ManArgs};
use crate::probe::ProbeArgs;
use crate::serve::ServeFlags;
use crate::validate::ValidateArgs;

/// Crawls, indexes and serves the capabilities that web sites declare to AI agents, in one process.
///
/// `agentdex demo` does so for a small local web; `agentdex --seeds FILE` for the real one.
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

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Start a small local web, crawl it, index it and serve the result
    Demo,
    Validate(ValidateArgs),
    /// Serve the index to one MCP client over standard input and output
    Mcp,
    /// Maintain, export and import the database
    Db(DbArgs),
    /// List, remove, export or evaluate the feedback of clients
    Feedback(FeedbackArgs),
    /// Check or print the settings
    #[command(subcommand)]
    Config(ConfigCommand),
    Doctor(DoctorArgs),
    Probe(ProbeArgs),
    Completions(CompletionsArgs),
    Man(ManArgs),
    /// Read one document from standard input under limits of the operating system; run by the crawler
    #[command(hide = true)]
    ReadDocument,
}

const SHARED: &[&str] = SharedFlags::NAMES;

/// The global flags that each subcommand uses. Subcommands that are not listed use all of them.
const USED: [(&str, &[&[&str]]); 10] = [
    ("validate", &[&["config", "log_format", "quiet", "verbose"], REQUEST_FLAGS]),
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

/// The command line. Each subcommand shows only the flags that it uses, and accepts all of them.
pub(crate) fn command() -> clap::Command {
    show_only_used(Flags::command(), &USED)
}

/// Parses the arguments of the program; exits if they are invalid.
pub(crate) fn parse() -> Flags {
    crawler::cli::typed(&mut command(), &USED, std::env::args_os()).unwrap_or_else(|error| error.exit())
}

pub(crate) fn print_help(out: &mut impl Write) -> std::io::Result<()> {
    write!(out, "{}", command().render_long_help())
}

#[cfg(test)]
mod tests {
    use clap::FromArgMatches as _;

    use super::*;

    #[test]
    fn the_flags_are_consistent() {
        command().debug_assert();
    }

    #[test]
    fn each_subcommand_shows_the_flags_that_it_uses() {
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
    fn flags_that_are_not_shown_are_accepted() {
        let words = ["agentdex", "validate", "x.json", "--format", "json", "--concurrency", "3"];
        let flags = Flags::from_arg_matches_mut(&mut command().get_matches_from(words)).unwrap();
        assert_eq!(flags.crawl.concurrency, Some(3));
        assert_eq!(flags.crawl.format, Some(crawler::output::OutputFormat::Json));
    }

    /// Crawl flags are global, so the flags of a subcommand must have other names.
    #[test]
    fn subcommands_accept_crawl_flags() {
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

//! What may be typed.

use std::io::Write;
use std::path::PathBuf;

use clap::{Args, CommandFactory as _, Parser, Subcommand};
use crawler::cli::{CrawlFlags, SharedFlags};

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
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Read the settings as every program would; end with 2 where one is wrong
    Check,
    /// Print every key with its value and where that comes from
    Print,
}

pub(crate) fn print_help(out: &mut impl Write) -> std::io::Result<()> {
    write!(out, "{}", Flags::command().render_long_help())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flags_are_consistent() {
        Flags::command().debug_assert();
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

//! The command line.

use std::io::Write;

use clap::{CommandFactory as _, Parser, Subcommand};
use crawler::cli::{CrawlFlags, REQUEST_FLAGS, SUBCOMMAND_FLAGS, show_only_used};
use settings::SharedFlags;
use settings::command_line::typed;

use crate::configuration::ConfigCommand;
use crate::db::DbArgs;
use crate::demo;
use crate::doctor::DoctorArgs;
use crate::embedder::EmbedderCommand;
use crate::feedback::FeedbackArgs;
use crate::manual::{CompletionsArgs, ManArgs};
use crate::probe::ProbeArgs;
use crate::reports::ReportsArgs;
use crate::search::SearchArgs;
use crate::serve::ServeFlags;
use crate::validate::ValidateArgs;

/// Crawls, indexes and serves the capabilities that web sites declare to AI agents, in one process.
///
/// `agentdex demo` does so for a small local web, and `agentdex --seeds FILE --contact-email YOU` for the real one. The list
/// that ships, `--seeds starter`, has sixty domains whose owners published a manifest in a public repository.
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
    ///
    /// Its data is in `./agentdex-data/demo`, in a separate database even if `DATABASE_URL` or a file names one. Requests to a host are 50
    /// ms apart, and sites are visited again after ten minutes. The options --data-dir, --database-url, --delay and --revisit-every change
    /// this.
    Demo,
    Validate(ValidateArgs),
    Search(SearchArgs),
    #[command(flatten)]
    Crawler(crawler::cli::Command),
    /// Serve the index to one MCP client over standard input and output
    Mcp,
    /// Maintain, export and import the database
    Db(DbArgs),
    /// List, remove, export or judge the feedback of clients
    Feedback(FeedbackArgs),
    /// List reports of clients about sites, and dismiss them
    Reports(ReportsArgs),
    /// Check or print the settings
    #[command(subcommand)]
    Config(ConfigCommand),
    Doctor(DoctorArgs),
    /// Check a sentence model for search by meaning
    #[command(subcommand)]
    Embedder(EmbedderCommand),
    Probe(ProbeArgs),
    Completions(CompletionsArgs),
    Man(ManArgs),
}

const SHARED: &[&str] = SharedFlags::NAMES;

/// Flags of requests that decide whether a crawl can start.
const CONTACT: &[&str] = &["allow_addresses", "contact_url", "contact_email"];
/// Flags of the crawl of the demo, whose addresses and certificates are its own.
const DEMO: &[&str] = &[
    "concurrency",
    "rate",
    "delay",
    "lease",
    "park_wait",
    "revisit",
    "revisit_every",
    "contact_url",
    "contact_email",
    "format",
    "strict",
    "name_servers",
    "text_records",
    "events",
    "signing_key",
    "signature_agent",
];
const SERVING: &[&str] = &["listen", "public_url", "admin_tokens", "feedback", "embedder", "open"];

/// The flags that each subcommand uses, including those of the crawler's subcommands.
const USED: [(&str, &[&[&str]]); 14] = [
    ("demo", &[SHARED, SERVING, DEMO]),
    ("validate", &[&["config", "log_format", "quiet", "verbose"], REQUEST_FLAGS]),
    ("search", &[SHARED, &["format", "embedder"]]),
    ("mcp", &[SHARED, &["public_url", "embedder"]]),
    ("db", &[SHARED]),
    ("feedback", &[SHARED]),
    ("reports", &[SHARED]),
    ("config", &[SHARED, CONTACT]),
    ("config print", &[SHARED]),
    ("doctor", &[SHARED, CONTACT, &["format", "name_servers"]]),
    ("embedder", &[]),
    ("probe", &[]),
    ("completions", &[]),
    ("man", &[]),
];

/// The subcommands by purpose.
const GROUPS: [(&str, &[&str]); 5] = [
    ("Crawl and serve", &["demo", "mcp"]),
    ("Show results", &["search", "status", "explain", "paths"]),
    ("Exclude sites", &["reports", "suspend", "unsuspend", "block", "unblock"]),
    ("Check documents", &["validate", "check"]),
    ("Maintain", &["doctor", "config", "db", "feedback", "keys", "embedder", "probe", "completions", "man"]),
];

fn used() -> Vec<(&'static str, &'static [&'static [&'static str]])> {
    USED.into_iter().chain(SUBCOMMAND_FLAGS).collect()
}

/// The command line. Each subcommand shows the flags that it uses. It accepts only them and the shared options.
pub(crate) fn command() -> clap::Command {
    let whole = with_defaults_of_the_demo(Flags::command().after_long_help(settings::exit::help()));
    // `agentdex` refuses these flags, which belong to `crawler`
    let whole = ["dry_run", "metrics"]
        .into_iter()
        .fold(whole, |whole, name| whole.mut_arg(name, |flag| flag.hide(true)));
    let whole =
        whole.mut_subcommand("doctor", |doctor| doctor.after_long_help(settings::exit::help_of("doctor")));
    show_only_used(whole, &used())
}

/// The defaults of the demo, which its help shows in place of the general ones.
const DEMO_DEFAULTS: [(&str, &str); 5] = [
    ("data_dir", "./agentdex-data/demo"),
    ("database_url", "SQLite in the data directory, whatever DATABASE_URL is"),
    ("delay", demo::DELAY),
    ("park_wait", demo::PARK_WAIT),
    ("revisit_every", demo::REVISIT_EVERY),
];

fn with_defaults_of_the_demo(whole: clap::Command) -> clap::Command {
    let flags = DEMO_DEFAULTS.iter().filter_map(|(name, default)| {
        let flag = whole.get_arguments().find(|flag| flag.get_id() == name)?;
        let help = flag.get_help()?.to_string();
        let (text, _) = help.split_once(" [default: ")?;
        Some(flag.clone().help(format!("{text} [default: {default}]")))
    });
    let flags: Vec<clap::Arg> = flags.collect();
    whole.mut_subcommand("demo", |demo| demo.args(flags))
}

/// The command line with its subcommands in groups, and all options.
fn grouped() -> clap::Command {
    with_groups("{all-args}{after-help}")
}

/// The command line with its subcommands in groups, which `clap` cannot show: they are part of the help template, and hidden from the list
/// that `clap` generates. `rest` is the template for the text after them.
fn with_groups(rest: &str) -> clap::Command {
    let command = command();
    let (header, literal) = (*command.get_styles().get_header(), *command.get_styles().get_literal());
    let mut groups = format!(
        "{header}Crawl and serve:{header:#}\n  {literal}--seeds FILE{literal:#}  Crawl these sites, index and serve the results, and go \
         on, with --contact-email YOU; with --once end after one pass\n"
    );
    for (index, (title, names)) in GROUPS.into_iter().enumerate() {
        if index > 0 {
            groups = format!("{groups}\n{header}{title}:{header:#}\n");
        }
        for name in names {
            let about = command.find_subcommand(name).and_then(clap::Command::get_about);
            let about = about.map(ToString::to_string).unwrap_or_default();
            groups = format!("{groups}  {literal}{name:<12}{literal:#}  {about}\n");
        }
    }
    let template =
        format!("{{before-help}}{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{groups}\n{rest}");
    let names: Vec<String> = command.get_subcommands().map(|sub| sub.get_name().to_owned()).collect();
    names
        .into_iter()
        .fold(command, |command, name| command.mut_subcommand(name, |subcommand| subcommand.hide(true)))
        .override_usage("agentdex [OPTIONS] [COMMAND]")
        .help_template(template)
}

/// Parses the arguments of the program; exits if they are invalid.
pub(crate) fn parse() -> Flags {
    typed(&mut grouped(), std::env::args_os()).unwrap_or_else(|error| error.exit())
}

/// Prints the purpose of the program and its subcommands, without the options.
pub(crate) fn print_overview(out: &mut impl Write) -> std::io::Result<()> {
    let rest = "`agentdex --help` lists the options, `agentdex COMMAND --help` those of a command.\n";
    write!(out, "{}", with_groups(rest).render_long_help())
}

#[cfg(test)]
mod tests {
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
            (&["doctor"], ["Exit codes:", "1  a check found a problem"], ["--fail-on", "3  "]),
            (&["doctor"], ["0  success", "2  the command line"], ["whatever the sites", "the pass"]),
            (&["probe"], ["--help", "[ADDRESS"], ["--data-dir", "--rate"]),
            (&["embedder", "check"], ["--help", "<DIR>"], ["--data-dir", "--listen"]),
            (&["db", "status"], ["--data-dir", "--database-url"], ["--listen", "--delay"]),
            (&["demo"], ["--delay", "[default: 50ms]"], ["[default: 3s]", "[default: ./agentdex-data]"]),
            (&["demo"], ["--revisit-every", "[default: 10m]"], ["--hosts", "[default: 60s]"]),
            (&["search"], ["--filter", "--limit"], ["--listen", "--delay"]),
            (&["status"], ["--data-dir", "--format"], ["--listen", "--delay"]),
            (&["check"], ["--delay", "--ca-file"], ["--listen", "--concurrency"]),
        ] {
            let help = help(words);
            assert!(shown.iter().all(|flag| help.contains(flag)), "{help}");
            assert!(!hidden.iter().any(|flag| help.contains(flag)), "{help}");
        }
        let known: Vec<clap::Id> =
            Flags::command().get_arguments().map(|flag| flag.get_id().to_owned()).collect();
        for (name, used) in used() {
            assert!(used.concat().iter().all(|flag| known.iter().any(|known| known == flag)), "{name}");
        }
    }

    #[test]
    fn the_help_lists_every_subcommand_in_a_group() {
        let help = grouped().render_long_help().to_string();
        let mut named: Vec<&str> = GROUPS.into_iter().flat_map(|(_, names)| names).copied().collect();
        for (title, _) in GROUPS {
            assert!(help.contains(&format!("\n{title}:\n")), "{title} is not in {help}");
        }
        for name in &named {
            let line = help.lines().find(|line| line.starts_with(&format!("  {name} ")));
            assert!(line.is_some_and(|line| line.len() > 16), "{name} has no line in {help}");
        }
        named.push("read-document");
        named.sort_unstable();
        let whole = command();
        let mut known: Vec<&str> = whole.get_subcommands().map(clap::Command::get_name).collect();
        known.sort_unstable();
        assert_eq!(known, named);
        assert!(!help.contains("\nCommands:"), "{help}");
        assert!(help.contains("--seeds") && help.contains("Exit codes:"), "{help}");
        assert!(
            !help.contains("--dry-run") && !help.contains("--metrics"),
            "these belong to crawler: {help}"
        );
        grouped().debug_assert();
    }

    #[test]
    fn the_overview_fits_on_a_screen_and_its_command_starts_a_crawl() {
        let mut out = Vec::new();
        print_overview(&mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(text.lines().count() <= 50 && !text.contains("--concurrency"), "{text}");
        assert!(text.ends_with("those of a command.\n"), "{text}");
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let (_, rest) = words.split_once("`agentdex --seeds").expect("a command that crawls");
        let (command, _) = rest.split_once('`').unwrap();
        let typed = format!("agentdex --seeds{}", command.replace("YOU", "you@example.org"));
        let flags = Flags::try_parse_from(typed.split(' ')).unwrap();
        let settings = crawler::cli::resolve(&flags.shared, &flags.crawl).unwrap();
        assert!(settings.continuous().is_ok(), "{typed}");
    }

    #[test]
    fn refuses_flags_that_a_subcommand_does_not_use() {
        let error = |line: &str| typed::<Flags>(&mut grouped(), line.split(' ')).err().map(|e| e.to_string());
        for (line, why) in [
            (
                "agentdex --seeds=x status",
                "--seeds has no effect on `status`: leave it out; use it with a crawl",
            ),
            ("agentdex --daemon search", "--daemon has no effect on `search`"),
            ("agentdex --once demo", "--once has no effect on `demo`"),
            (
                "agentdex --delay 3s status",
                "use it with a crawl (`agentdex --seeds FILE`), `demo`, `validate` and `check`",
            ),
            (
                "agentdex --listen 127.0.0.1:1 status",
                "use it with a crawl (`agentdex --seeds FILE`) and `demo`",
            ),
            ("agentdex validate x.json --concurrency 3 --open", "--open and --concurrency have no effect"),
            ("agentdex --delay 3s db status", "--delay has no effect on `db status`"),
            ("agentdex --format json config print", "--format has no effect on `config print`"),
            ("agentdex --metrics 127.0.0.1:1 status", "--metrics has no effect on `status`: leave it out\n"),
            ("agentdex demo --hosts h", "--hosts has no effect on `demo`"),
        ] {
            let error = error(line).unwrap_or_default();
            assert!(error.contains(why), "{line}: {error}");
        }
        for line in [
            "agentdex --data-dir d --database-url u --config c --log-format json -v probe",
            "agentdex --delay 3s check a.example",
            "agentdex demo --revisit-every 1m --listen 127.0.0.1:0",
            "agentdex --contact-email a@b.example config check",
            "agentdex validate x.json --format json",
        ] {
            assert_eq!(error(line), None, "{line}");
        }
    }

    #[test]
    fn the_short_help_of_search_has_the_hint_on_quoting() {
        let help = command().try_get_matches_from(["agentdex", "search", "-h"]).unwrap_err().to_string();
        assert!(help.contains("'\"book flight\" -hotel'"), "{help}");
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

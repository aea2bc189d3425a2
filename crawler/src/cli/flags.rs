//! The flags of the command line; [`super::settings`] interprets them.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use ::settings::SharedFlags;
use policy::AbuseReason;

use super::reader_keys::KeysCommand;
use crate::output::OutputFormat;

/// Visits web sites politely and reads what they declare to AI agents.
///
/// Without a subcommand, adds the seeds and visits every site that is due; run it again to continue where it stopped.
#[derive(Debug, Parser)]
#[command(name = "crawler", version, max_term_width = 100)]
pub struct Flags {
    #[command(subcommand)]
    pub command: Option<Command>,
    #[command(flatten)]
    pub shared: SharedFlags,
    #[command(flatten)]
    pub crawl: CrawlFlags,
}

/// Flags of crawling.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Crawling")]
pub struct CrawlFlags {
    /// Seeds: files of domains (text, CSV, Tranco's zip, OPML, sitemap, certificates in JSON, Common Crawl's graphs, links in
    /// Markdown; also in gzip), - for stdin, the https URL of such a list, ard:https://registry for another registry of agents,
    /// mcp:https://registry for a registry of MCP servers, or `starter` for the list that ships
    #[arg(long, value_name = "FILE", num_args = 1..)]
    pub seeds: Vec<PathBuf>,
    /// Follow the lists of --seeds: delete sites that they no longer name, and also move sites back in the queue when their rank drops
    #[arg(long)]
    pub follow_seeds: bool,
    /// Visit what is due once, and exit, as `crawler` does by default; `agentdex` continues without it
    #[arg(long, conflicts_with = "daemon")]
    pub once: bool,
    /// Visit sites as they become due, until stopped; outside --allow-addresses it needs a contact
    #[arg(long)]
    pub daemon: bool,
    /// How long a pass waits for visits that are parked [default: 60s]
    #[arg(long, global = true, value_name = "DURATION")]
    pub park_wait: Option<String>,
    /// Visits open at the same time [default: 256]
    #[arg(long, global = true, value_name = "COUNT")]
    pub concurrency: Option<u32>,
    /// Requests a second of this process, over all sites [default: 1000]
    #[arg(long, global = true, value_name = "COUNT")]
    pub rate: Option<u32>,
    /// Minimum delay between two requests to a host [default: 3s]
    #[arg(long, global = true, value_name = "DURATION")]
    pub delay: Option<String>,
    /// How long a killed process keeps its sites from others, at least 2m outside --allow-addresses [default: 3m]
    #[arg(long, global = true, value_name = "DURATION")]
    pub lease: Option<String>,
    /// Also visit sites now that were visited longer ago than this
    #[arg(long, global = true, value_name = "DURATION")]
    pub revisit: Option<String>,
    /// Visit each site that answers again after this time, at least a day outside --allow-addresses [default: as often as its
    /// manifests change, between a day and a month; without manifests, after weeks]
    #[arg(long, global = true, value_name = "DURATION")]
    pub revisit_every: Option<String>,
    /// Addresses for names, as lines of `address[:port] name…`
    #[arg(long, global = true, value_name = "FILE")]
    pub hosts: Option<PathBuf>,
    /// Certificate authorities to trust besides Mozilla's
    #[arg(long, global = true, value_name = "PEM")]
    pub ca_file: Option<PathBuf>,
    /// Networks of your own that may be visited although they are not public
    #[arg(long, global = true, value_name = "CIDR", value_delimiter = ',')]
    pub allow_addresses: Vec<String>,
    /// Page about your crawler, named in every request
    #[arg(long, global = true, value_name = "URL")]
    pub contact_url: Option<String>,
    /// Address for complaints, named in every request
    #[arg(long, global = true, value_name = "EMAIL")]
    pub contact_email: Option<String>,
    /// How results are written to stdout [default: text]
    #[arg(long, global = true, value_name = "FORMAT", help_heading = "Shared options")]
    pub format: Option<OutputFormat>,
    #[command(flatten)]
    pub operator: OperatorFlags,
}

/// Flags for long-running crawlers.
#[expect(clippy::struct_excessive_bools, reason = "independent flags of the command line")]
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Operating")]
pub struct OperatorFlags {
    /// Apply every rule of public addresses (lowest delay, gaps, budgets) in networks of your own too
    #[arg(long, global = true)]
    pub strict: bool,
    /// Name servers to use instead of the system's
    #[arg(long, global = true, value_name = "ADDRESS[:PORT]", value_delimiter = ',')]
    pub name_servers: Vec<String>,
    /// Query TXT records (`_atp`, `_agent`) and SVCB records (`_entries._agents`, `_search._agents`) of hosts for manifests
    #[arg(long, global = true)]
    pub text_records: bool,
    /// Check once a day whether the hosts of endpoints resolve and complete a TLS handshake; sends no request
    #[arg(long)]
    pub check_endpoints: bool,
    /// List what would be requested, and send nothing
    #[arg(long, conflicts_with = "daemon")]
    pub dry_run: bool,
    /// Append events to this file, one JSON object per line
    #[arg(long, global = true, value_name = "FILE")]
    pub events: Option<PathBuf>,
    /// Serve metrics for Prometheus
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub metrics: Option<std::net::SocketAddr>,
    /// When a crawl that keeps running reads its seeds again, as five crontab fields in UTC
    #[arg(long, value_name = "CRONTAB")]
    pub schedule_seeds: Option<String>,
    /// When it removes expired data
    #[arg(long, value_name = "CRONTAB")]
    pub schedule_housekeeping: Option<String>,
    /// When it logs its state
    #[arg(long, value_name = "CRONTAB")]
    pub schedule_report: Option<String>,
    /// How long it keeps changes in the feed that every registered reader has read [default: forever]
    #[arg(long, value_name = "DURATION")]
    pub retain_feed: Option<String>,
    /// How long it keeps versions of manifests that are no longer current [default: forever]
    #[arg(long, value_name = "DURATION")]
    pub retain_versions: Option<String>,
    /// Ed25519 key (PEM) that signs every request, for Web Bot Auth
    #[arg(long, global = true, value_name = "FILE")]
    pub signing_key: Option<PathBuf>,
    /// Origin that serves the key directory, such as `https://crawler.example.org`
    #[arg(long, global = true, value_name = "URL")]
    pub signature_agent: Option<String>,
}

#[derive(Debug, Clone, Subcommand)]
pub enum Command {
    /// Show what was fetched from a site, why, and what comes next
    Explain {
        /// A domain, such as example.org
        domain: String,
        /// Visits shown
        #[arg(long, value_name = "COUNT", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
        visits: u32,
    },
    /// Visit a site now and show its manifests and what is wrong with them
    Check {
        /// A domain, such as example.org
        domain: String,
    },
    /// Exclude sites from now on, and delete what was read from them
    Block {
        /// Domains, such as example.org
        #[arg(required = true)]
        domains: Vec<String>,
        /// The reason, which the page of the site shows
        #[arg(long, default_value = "by decision of the operator")]
        reason: String,
    },
    /// Allow blocked sites again
    Unblock {
        /// Domains, such as example.org
        #[arg(required = true)]
        domains: Vec<String>,
    },
    /// Suspend sites for abuse: exclude them, delete what was read from them, and show why
    Suspend {
        /// Domains, such as example.org
        #[arg(required = true)]
        domains: Vec<String>,
        /// spam, impersonation, malware, illegal, privacy or other
        #[arg(long)]
        reason: AbuseReason,
        /// An explanation, shown with the reason; `other` needs one
        #[arg(long, value_name = "TEXT", default_value = "")]
        note: String,
        /// A document or capability that it is about, as a URL or an id, for the owner; may be repeated
        #[arg(long = "place", value_name = "PLACE")]
        places: Vec<String>,
    },
    /// Lift the suspension of sites; those that are not blocked are visited again
    Unsuspend {
        /// Domains, such as example.org
        #[arg(required = true)]
        domains: Vec<String>,
    },
    /// Show the queue, the outcomes of the last day, and the failing and slow sites
    Status,
    /// Show the paths that are requested, in order, and what was found under each
    Paths,
    /// Manage the API keys of clients; alone, print the key directory of --signing-key
    ///
    /// The key directory is to be served at --signature-agent.
    Keys {
        #[command(subcommand)]
        command: Option<KeysCommand>,
    },
    /// Read one document from standard input under limits of the operating system; the crawler calls this itself
    #[command(hide = true)]
    ReadDocument,
}

/// The database that a subcommand needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DatabaseUse {
    None,
    /// An existing database. The command affects only programs with this database, so it does not create one.
    Existing,
    /// Any database. The command stores something, and creates the database if it does not exist.
    New,
}

impl Command {
    /// The database that this subcommand needs.
    pub(super) const fn database(&self) -> DatabaseUse {
        match self {
            Self::Keys { command: None } | Self::ReadDocument => DatabaseUse::None,
            Self::Keys { command: Some(_) }
            | Self::Explain { .. }
            | Self::Status
            | Self::Paths
            | Self::Block { .. }
            | Self::Unblock { .. }
            | Self::Suspend { .. }
            | Self::Unsuspend { .. } => DatabaseUse::Existing,
            Self::Check { .. } => DatabaseUse::New,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_flags_are_consistent() {
        Flags::command().debug_assert();
    }

    #[test]
    fn several_seed_files_and_global_flags_are_read() {
        let flags = Flags::try_parse_from([
            "crawler",
            "--seeds",
            "a",
            "-",
            "--delay",
            "100ms",
            "--allow-addresses",
            "127.0.0.0/8,10.0.0.0/8",
        ])
        .unwrap();
        assert_eq!(flags.crawl.seeds.len(), 2);
        assert_eq!(flags.crawl.allow_addresses.len(), 2);
        let flags = Flags::try_parse_from(["crawler", "explain", "a.example", "--data-dir", "d"]).unwrap();
        assert_eq!(flags.shared.data_dir, Some("d".into()));
        assert!(Flags::try_parse_from(["crawler", "--once", "--daemon"]).is_err());
        assert!(Flags::try_parse_from(["crawler", "--sedes", "a"]).is_err());
        let none = Flags::try_parse_from(["crawler", "explain", "a.example", "--visits", "0"]).unwrap_err();
        assert!(none.to_string().contains("0 is not in 1.."), "{none}");
    }
}

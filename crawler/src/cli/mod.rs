//! The command line: flags, settings, and commands.

mod app;
mod check;
mod commands;
mod duration;
mod egress_settings;
mod explain;
mod file;
mod flags;
mod given;
mod paths;
mod program_name;
mod progress;
mod reader_keys;
mod report;
mod seed_sources;
mod settings;
mod shown;
mod status;
mod watch;

pub use app::{is_closed_pipe, is_usage, main, perform};
pub use check::refuse_demo_host;
pub use flags::{Command, CrawlFlags, Flags, OperatorFlags};
pub use report::{failure_reasons, pass_reasons, summary_text};
pub use settings::{Settings, SharedSettings, UsageError, Verbosity, log_level, resolve};
pub use shown::{REQUEST_FLAGS, SUBCOMMAND_FLAGS, command, show_only_used};
pub use watch::Watch;

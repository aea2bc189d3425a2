//! How every program is told what to do: one configuration file, environment variables over it, secrets by file, and
//! where the log and the spans go.
//!
//! Each program keeps the struct of its own table, and the flags that override it; here is only how a file is read, so
//! that all of them read it alike. An unknown key is an error, since a misspelt limit is a limit that does not hold.

mod environment;
mod error;
pub mod escape;
mod file;
mod keys;
mod lines;
pub mod log;
mod secret;
mod traces;

pub use environment::{Variables, variables};
pub use error::SettingsError;
pub use file::load;
pub use keys::{DOCUMENTED, Key, keys};
pub use secret::secret;
pub use traces::TracesUrl;

/// The tables of the file, one for each program, after those inside them.
pub const TABLES: [&str; 4] = ["crawler", "indexer", "api.limits", "api"];
/// The keys above the tables, known to every program.
pub const SHARED_KEYS: [&str; 7] = [
    "data_dir",
    "database_url",
    "database_url_file",
    "log_format",
    "log_level",
    "slow_statement_ms",
    "traces_url",
];

//! The settings of every program: shared flags, one configuration file, environment variables that override it, secrets
//! in files, and the log.
//!
//! Each program defines the struct of its table and the flags that override it. An unknown key is an error, because a misspelt limit would
//! have no effect.

pub mod command_line;
mod environment;
mod error;
pub mod escape;
pub mod exit;
mod feature;
mod file;
mod flags;
mod keys;
mod lines;
pub mod log;
mod secret;
#[cfg(feature = "opentelemetry")]
mod spans;
#[cfg(not(feature = "opentelemetry"))]
mod spans_left_out;
mod traces;
mod unused_flags;

pub use environment::{Variables, nearest, variables};
pub use error::SettingsError;
pub use feature::{Feature, MissingFeature};
pub use file::load;
pub use flags::{DATABASE_URL_VARIABLE, SharedFlags, database_url_variable};
pub use keys::{Key, keys};
pub use secret::secret;
pub use traces::TracesUrl;

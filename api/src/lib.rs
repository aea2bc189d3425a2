//! Serves search, sites and manifests as JSON and as pages.
//!
//! One file per resource under `routes` (parameters, answer, handler); pages under `dashboard`. No SQL and no ranking
//! live here: the store answers for records, the indexer for searches.

mod admin;
mod answer;
mod app;
mod ard;
mod assets;
mod atom;
mod buffers;
pub mod cli;
mod client;
mod clock;
mod config;
mod cursor;
mod dashboard;
mod diff;
mod fair;
mod guard;
mod index;
mod kept;
mod limits;
mod load;
mod manifests;
mod mcp;
mod metrics;
mod middleware;
mod names;
mod negotiate;
mod offer;
mod openapi;
mod origin;
mod pace;
mod parameters;
mod problem;
mod replica;
mod routes;
mod self_description;
mod server;
mod slots;
mod suppressed;
#[cfg(test)]
mod test_app;
mod text;
mod tool;
mod totals;
mod validation;

pub use app::{ApiError, App, STOP_MAX, bind, router, serve};
pub use config::{ApiConfig, ApiSettings, COUNTS_KEPT_FOR, ConfigError, LISTEN_DEFAULT};
pub use dashboard::search::EXAMPLES;
pub use limits::LimitsConfig;
pub use mcp::{McpError, serve_stdio};
pub use pace::{Pace, Patience};

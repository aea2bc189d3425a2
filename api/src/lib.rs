//! Serves search, sites and manifests as JSON and as pages.
//!
//! One file per resource under `routes` (parameters, answer, handler); pages under `dashboard`. No SQL and no ranking
//! live here: the store answers for records, the indexer for searches.

mod answer;
mod app;
mod assets;
mod clock;
mod config;
mod cursor;
mod dashboard;
mod diff;
mod index;
mod middleware;
mod negotiate;
mod openapi;
mod parameters;
mod problem;
mod routes;
mod slots;
mod text;
mod tool;

pub use app::{ApiError, App, bind, router, serve};
pub use config::{ApiConfig, ApiSettings, ConfigError, LISTEN_DEFAULT};

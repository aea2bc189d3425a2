//! Visits web sites politely and reads what they declare to agents.
//!
//! This crate coordinates four others: `policy` makes the decisions, [`egress`] sends the requests, `manifest` reads documents, and `store`
//! keeps the results.

mod activity;
mod ard_registry;
mod batcher;
pub mod cli;
mod clock;
pub mod config;
mod crontab;
mod daemon;
mod database_lock;
mod deliveries;
mod dry_run;
mod endpoint_checks;
mod error;
mod events;
mod groups;
mod harvest;
mod inspect;
mod mcp_registry;
mod metrics;
pub mod output;
mod pace;
mod page_size;
mod priors;
mod reading;
mod registry_pages;
mod remote_seeds;
mod retry;
mod run;
mod schedule;
mod seed_files;
mod seeding;
pub mod seeds;
mod sources_on_web;
pub mod summary;
mod visit;
mod worker;

pub use activity::ActivityCounts;
pub use cli::UsageError;
pub use config::{CrawlConfig, Mode, SeedSource};
pub use crontab::{Crontab, CrontabError};
pub use database_lock::{DatabaseLock, LockError, holder_of_lock};
pub use dry_run::{DryRequest, DryRun, DrySite, dry_run};
pub use egress;
pub use error::CrawlError;
pub use inspect::{Inspection, inspect};
pub use priors::{PathEstimate, PathTable, path_table};
pub use run::{check, run, site_of};
pub use schedule::{ScheduledTask, Schedules};
pub use summary::Summary;
pub use worker::{Cancel, CrawlState, Progress, STOP_MAX};

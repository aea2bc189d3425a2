//! Visits web sites politely and reads what they declare to agents.
//!
//! The only crate that talks to the open web, through one module, [`egress`]. Decisions come from `policy`, meaning from
//! `manifest`, memory from `store`; what remains here is IO in the right order.

pub mod cli;
mod clock;
pub mod config;
mod crontab;
mod daemon;
mod dry_run;
pub mod egress;
mod error;
mod events;
mod fleet;
mod gather;
mod groups;
mod harvest;
mod look;
mod metrics;
mod metrics_listener;
pub mod output;
mod pace;
mod patience;
mod priors;
mod reading;
mod run;
mod schedule;
mod seeding;
pub mod seeds;
mod sole;
pub mod summary;
mod visit;

pub use cli::UsageError;
pub use config::{CrawlConfig, Mode, SeedSource};
pub use crontab::{Crontab, CrontabError};
pub use dry_run::{DryRequest, DryRun, DrySite, dry_run};
pub use error::CrawlError;
pub use fleet::{Cancel, Progress, STOP_MAX};
pub use look::{Look, look};
pub use metrics::serve as serve_metrics;
pub use priors::{PathEstimate, path_estimates};
pub use reading::{ReaderProgram, read_from_stdin};
pub use run::{check, end_in_words, run, site_of};
pub use schedule::{ScheduledTask, Schedules};
pub use sole::SoleError;
pub use summary::Summary;

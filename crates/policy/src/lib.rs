//! Decides what a polite crawler may do and when.
//!
//! All functions are pure: they use no clock, no randomness and no network. `now` is an argument, and jitter comes from a hash. Every
//! decision is an enum whose variants contain the reason. Reasons have stable slugs, because they are stored, shown to site owners and
//! counted in metrics.

pub mod abuse;
pub mod address;
pub mod claim;
pub mod delay;
pub mod freshness;
pub mod groups;
pub mod key;
pub mod liveness;
pub mod naming;
pub mod outcome;
pub mod plan;
pub mod quarantine;
pub mod redirect;
pub mod retry;
pub mod robots;
pub mod schedule;
mod spread;
mod time;
pub mod usage;
pub mod visit;
pub mod webhook;

pub use abuse::AbuseReason;
pub use address::{AddressVerdict, OwnNetworks};
pub use delay::{AuthorityPace, Network, Pace, Scope, ScopeState};
pub use freshness::{CacheRecord, Freshness};
pub use manifest::AddressRefusal;
pub use outcome::{FetchOutcome, RobotsKind, Status, VisitEnd};
pub use plan::{BodyKind, HostKnowledge, PathClass, PlannedPath};
pub use redirect::{RedirectDecision, RedirectRefusal};
pub use retry::RetryAfter;
pub use robots::{RobotsCause, RobotsDecision, RobotsFile, RobotsResponse, RobotsVerdict};
pub use schedule::{NextVisit, NextVisitReason, SiteHistory};
pub use spread::{Seed, take_turns};
pub use usage::ContentUsage;
pub use visit::{NextStep, VisitRules, failed_host};

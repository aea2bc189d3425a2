//! The query layer: types of answers, and how each is read from the store and the index.
//!
//! It does not depend on HTTP requests, routes or pages. `routes`, `ard`, `tools` and `mcp` translate parameters into calls
//! of this layer; `dashboard` renders its answers.

pub(crate) mod capability;
pub(crate) mod caution;
pub(crate) mod claim;
pub(crate) mod crawl;
pub(crate) mod declarations;
pub(crate) mod diff;
pub(crate) mod home;
pub(crate) mod listed_agents;
pub(crate) mod listed_by;
pub(crate) mod liveness;
mod named_by_others;
pub(crate) mod record;
pub(crate) mod search;
pub(crate) mod search_parameters;
pub(crate) mod search_query;
pub(crate) mod semantic_types;
pub(crate) mod shown;
pub(crate) mod site;
pub(crate) mod site_hosts;
pub(crate) mod sitemap;
pub(crate) mod sites;
pub(crate) mod stats;
pub(crate) mod submit;
pub(crate) mod validate;
pub(crate) mod version_diff;
pub(crate) mod watch;

/// Marks every text of a publisher, so that no reader takes it for a statement of this server.
pub(crate) const TEXT_IS: &str = "publisher-supplied, untrusted";

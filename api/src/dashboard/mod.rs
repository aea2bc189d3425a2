//! Pages for people, rendered on the server, complete without scripts.
//!
//! Every page shows what its JSON twin on the same address says. Text of publishers is escaped by the templates, and
//! isolated so that its direction and length cannot disturb the page; an address becomes a link only when it is https or
//! http. The words for closed values are all in `labels`.

mod bars;
pub(crate) mod capability;
mod card;
pub(crate) mod changes;
mod chart;
pub(crate) mod crawl;
mod curl;
pub(crate) mod diff;
mod frame;
mod graph;
mod labels;
mod links;
mod problem;
mod schema;
pub(crate) mod search;
pub(crate) mod semantic_types;
pub(crate) mod site;
pub(crate) mod sites;
pub(crate) mod stats;
mod time;
pub(crate) mod validate;

pub(crate) use problem::ProblemPage;

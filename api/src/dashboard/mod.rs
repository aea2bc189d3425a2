//! HTML pages, rendered on the server and usable without scripts.
//!
//! Each page renders the response that its URL also serves as JSON. Templates escape the text of publishers, limit its length and isolate
//! its text direction; only http and https addresses become links. Labels of closed vocabularies are in `labels`.

mod bars;
pub(crate) mod capability;
mod card;
mod change_words;
pub(crate) mod changes;
mod chart;
pub(crate) mod claim;
pub(crate) mod crawl;
pub(crate) mod diff;
pub(crate) mod docs;
pub(crate) mod facet_groups;
mod frame;
mod graph;
mod icons;
mod inline_code;
mod labels;
mod links;
mod problem;
pub(crate) mod reported;
mod schema;
pub(crate) mod search;
pub(crate) mod semantic_types;
pub(crate) mod site;
mod site_contradictions;
mod site_diagnosis;
mod site_documents;
mod site_profile;
mod site_robots;
mod site_state;
pub(crate) mod sites;
pub(crate) mod stats;
pub(crate) mod styleguide;
mod time;
mod trust_words;
mod type_words;
mod use_it;
pub(crate) mod validate;

pub(crate) use labels::{is_unreadable, site_status};
pub(crate) use problem::ProblemPage;
pub(crate) use type_words::type_words;

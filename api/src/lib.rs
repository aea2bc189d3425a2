//! Serves search, sites and manifests as JSON and as pages.
//!
//! Layers, from the bottom: `answers` reads the store and the index; `state` holds both with caches and limits; `routes`, `ard`, `tools`,
//! `mcp` and `self_description` are handlers side by side, and `dashboard` renders pages; `middleware`, `router` and `server` are on top.
//! `federation` queries other registries as part of a search, and is the only module that sends requests. SQL is in the store, ranking in
//! the indexer.

mod admin;
mod answers;
mod ard;
mod assets;
mod atom;
mod body;
mod buffers;
mod capacity;
mod catalog_entry;
pub mod cli;
mod client;
mod clock;
mod concurrency;
mod config;
mod count_cache;
mod cursor;
mod dashboard;
mod declared_by;
mod document_readers;
mod fair_permits;
mod federation;
mod index;
mod json_text;
mod limits;
mod load;
mod local_search;
mod manifests;
mod mcp;
mod metrics;
mod middleware;
mod negotiate;
mod openapi;
mod overload;
mod own_origin;
mod owner;
mod page_context;
mod parameters;
mod permitted;
mod problem;
pub mod program;
mod quota;
mod reader_keys;
mod replica;
mod request;
mod response;
mod router;
mod routes;
mod scan_cache;
mod search_counts;
mod search_watches;
mod self_description;
mod server;
mod server_names;
mod state;
mod suppressed;
#[cfg(test)]
mod test_app;
mod text;
mod timeouts;
mod tool_export;
mod tools;
mod ttl_cache;
mod value_size;
mod xml;

pub use answers::home::EXAMPLES;
pub use config::{ApiConfig, ApiSettings, COUNTS_KEPT_FOR, ConfigError, LISTEN_DEFAULT};
pub use federation::{FederationConfig, FederationError, FederationSettings};
pub use limits::LimitsConfig;
pub use local_search::{LocalResults, LocalSearchError, search};
pub use mcp::{McpError, MessageError, serve_stdio};
pub use reader_keys::Reads;
pub use router::router;
pub use server::{bind, serve};
pub use state::{ApiError, App, STOP_MAX};
pub use timeouts::{ClientTimeouts, MinRate};

//! The addresses, one file per resource: parameters, answer, handler.

pub(crate) mod admin;
pub(crate) mod admin_abuse;
pub(crate) mod admin_feedback;
pub(crate) mod admin_keys;
pub(crate) mod admin_spam;
pub(crate) mod assets;
pub(crate) mod badge;
pub(crate) mod bot_keys;
pub(crate) mod capability;
pub(crate) mod card_keys;
pub(crate) mod changes;
pub(crate) mod changes_stream;
pub(crate) mod claim;
pub(crate) mod crawl;
pub(crate) mod crawl_stream;
pub(crate) mod export;
pub(crate) mod feedback;
pub(crate) mod feeds;
pub(crate) mod health;
pub(crate) mod home;
pub(crate) mod manifest;
pub(crate) mod manifest_diff;
pub(crate) mod mcp_server_versions;
pub(crate) mod mcp_servers;
pub(crate) mod metrics;
pub(crate) mod opensearch;
pub(crate) mod owner;
pub(crate) mod rank;
pub(crate) mod raw;
pub(crate) mod report;
pub(crate) mod search;
pub(crate) mod semantic_types;
pub(crate) mod similar;
pub(crate) mod site;
pub(crate) mod site_changes;
pub(crate) mod sitemap;
pub(crate) mod sites;
pub(crate) mod stats;
pub(crate) mod styleguide;
pub(crate) mod submit;
pub(crate) mod suggest;
pub(crate) mod tool;
pub(crate) mod validate;
pub(crate) mod validator;

#[cfg(test)]
mod page_tests;

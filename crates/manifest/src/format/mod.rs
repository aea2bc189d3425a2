//! Detection, checks and parsers of the dialects, listed in [`dialects`].

mod a2a;
mod acp;
mod addresses;
mod agents_json;
mod agents_json_jm;
mod agents_json_lt;
mod agents_txt;
mod ahp;
mod ai_plugin;
mod ai_txt;
mod air;
mod anp;
mod api_catalog;
mod ard;
mod arws;
mod asset_contracts;
mod atp;
mod auth_remarks;
mod auth_sentences;
mod awas;
mod awp;
mod call_examples;
mod call_paths;
mod call_prices;
mod clauses;
mod commands;
mod contacts;
mod credential_headers;
mod credential_lines;
mod described_block;
mod described_calls;
mod described_prices;
pub(crate) mod detect;
pub(crate) mod dialects;
mod embedded;
mod endpoint;
mod erc8004;
mod facts;
mod generic;
mod goods;
mod header;
mod idempotency;
mod inline;
mod inner_auth;
mod instructed_credentials;
mod key_parameters;
mod labels;
mod language;
mod lenient;
mod link_class;
mod link_remarks;
mod list;
mod listed_calls;
mod listed_tools;
mod llms_txt;
mod manifest_v1;
mod mcp;
mod mcp_hosts;
mod named_keys;
mod named_skills;
mod named_tools;
mod needed_credentials;
mod oauth;
mod openapi;
mod outbound;
mod own_credentials;
mod package;
mod paid_lists;
mod paired_calls;
mod payment_chain;
mod payment_handlers;
mod payment_header;
mod payment_words;
mod payments;
mod plan_limits;
mod plan_lines;
mod plan_tools;
mod pointer;
mod price_list;
mod priced_calls;
mod product_lines;
mod query_parameters;
mod request_headers;
mod required_tokens;
mod shown_calls;
mod shown_servers;
mod skills_index;
mod stated_auth;
mod stated_base;
mod terms;
mod topic;
mod transports;
mod ucp;
mod use_cases;
mod w2a;
mod web_bot_auth;
mod webmcp;
mod whole_variables;
mod wildcard;
mod woa;
mod written_tools;
mod x402;
mod x402_input;

use crate::document::{self, Body};
use crate::draft::Draft;
use crate::model::Format;
use dialects::{Read, dialect};

/// Whether documents of the format are text, even if they parse as JSON.
pub(crate) const fn is_text(format: Format) -> bool {
    matches!(dialect(format).read, Read::Text(_))
}

/// Reads a body as the format that was detected or forced, and the blocks of other formats in it.
pub(crate) fn read(body: &Body<'_>, draft: &mut Draft<'_>) {
    let root = body.root().filter(|_| !draft.format().is_core() && draft.format() != Format::OpenApi);
    draft.resolve_below(root.and_then(|root| generic::folder_of(&root, draft.base())));
    match (dialect(draft.format()).read, body.root(), body.text()) {
        (Read::Object(read), Some(root), _) => read(&root, draft),
        (Read::Text(read), _, Some(text)) => read(text, draft),
        (Read::Body(read), ..) => read(body, draft),
        (Read::Object(_), ..) => draft.report_rule(&document::NO_OBJECT, String::new()),
        (Read::Text(_) | Read::Nothing, ..) => {}
    }
    read_embedded(body, draft);
}

/// Reads the blocks of other formats inside a document.
pub(crate) fn read_embedded(body: &Body<'_>, draft: &mut Draft<'_>) {
    if let Some(root) = body.root() {
        embedded::read(&root, draft);
    } else if let Some(text) = body.text() {
        embedded::read_text(text, draft);
    }
}

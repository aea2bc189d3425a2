//! One file per dialect, one row per format: adding a dialect is a file, its fixtures and a row in [`read`] and in
//! [`DIALECTS`].

mod a2a;
mod acp;
mod addresses;
mod agents_json;
mod agents_json_others;
mod agents_txt;
mod ahp;
mod ai_plugin;
mod ai_txt;
mod air;
mod anp;
mod api_catalog;
mod ard;
mod arws;
mod atp;
mod awas;
mod awp;
mod blocks;
mod erc8004;
mod facts;
pub(crate) mod generic;
mod inline;
mod list;
mod llms_txt;
mod loose;
mod manifest_v1;
mod mcp;
pub(crate) mod openapi;
mod pointer;
mod skills_index;
mod ucp;
mod w2a;
mod web_bot_auth;
mod webmcp;
mod wildcard;
mod woa;
mod x402;

use serde_json::Value;

use crate::draft::Draft;
use crate::model::Format;
use crate::object::Object;
use crate::rule::Dialect;

/// A document as its syntax gives it.
pub(crate) enum Body<'b> {
    Json(&'b Value),
    Text(&'b str),
}

impl<'b> Body<'b> {
    /// The root object, when the document is one.
    pub(crate) fn root(&self) -> Option<Object<'b>> {
        match self {
            Self::Json(Value::Object(map)) => Some(Object::root(map)),
            _ => None,
        }
    }

    pub(crate) const fn text(&self) -> Option<&'b str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Json(_) => None,
        }
    }
}

/// Reads a body as the format that was detected or forced.
pub(crate) fn read(body: &Body<'_>, draft: &mut Draft<'_>) {
    match (draft.format(), body.root(), body.text()) {
        (Format::Awp, Some(root), _) => awp::read(&root, draft),
        (Format::Woa, Some(root), _) => woa::read(&root, draft),
        (Format::Arws, Some(root), _) => arws::read(&root, draft),
        (Format::Atp, Some(root), _) => atp::read(&root, draft),
        (Format::AgentsJson, Some(root), _) => agents_json::read(&root, draft),
        (Format::A2a, Some(root), _) => a2a::read(&root, draft),
        (Format::Ard, Some(root), _) => ard::read(&root, draft),
        (Format::McpCard | Format::McpRegistry | Format::McpFreeform, Some(root), _) => {
            mcp::read(&root, draft);
        }
        (Format::McpConfig, Some(root), _) => mcp::read_config(&root, draft),
        (Format::OpenApi, ..) => openapi::read(body, draft),
        (Format::ApiCatalog, Some(root), _) => api_catalog::read(&root, draft),
        (Format::AiPlugin, Some(root), _) => ai_plugin::read(&root, draft),
        (Format::SkillsIndex, Some(root), _) => skills_index::read(&root, draft),
        (Format::Wildcard, Some(root), _) => wildcard::read(&root, draft),
        (Format::Ahp, Some(root), _) => ahp::read(&root, draft),
        (Format::Air, Some(root), _) => air::read(&root, draft),
        (Format::Facts, Some(root), _) => facts::read(&root, draft),
        (Format::ManifestV1, Some(root), _) => manifest_v1::read(&root, draft),
        (Format::W2a, Some(root), _) => w2a::read(&root, draft),
        (Format::Ucp, Some(root), _) => ucp::read(&root, draft),
        (Format::Acp, Some(root), _) => acp::read(&root, draft),
        (Format::X402, Some(root), _) => x402::read(&root, draft),
        (Format::Erc8004, Some(root), _) => erc8004::read(&root, draft),
        (Format::Anp, Some(root), _) => anp::read(&root, draft),
        (Format::WebMcp, Some(root), _) => webmcp::read(&root, draft),
        (Format::WebBotAuth, Some(root), _) => web_bot_auth::read(&root, draft),
        (Format::Awas, Some(root), _) => awas::read(&root, draft),
        (Format::AgentsJsonJm, Some(root), _) => agents_json_others::read_intents(&root, draft),
        (Format::AgentsJsonLt, Some(root), _) => agents_json_others::read_data(&root, draft),
        (Format::AgentsTxt, ..) => agents_txt::read(body, draft),
        (Format::LlmsTxt, _, Some(text)) => llms_txt::read(text, draft),
        (Format::AiTxt, _, Some(text)) => ai_txt::read(text, draft),
        (Format::Pointer, Some(root), _) => pointer::read(&root, draft),
        (Format::List, ..) => list::read(body, draft),
        (Format::Opaque | Format::Unrelated | Format::Malformed, ..) => {}
        (_, Some(root), _) => generic::read(&root, draft),
        _ => {}
    }
    read_around(body, draft);
}

/// Reads what a document holds beside its own format: blocks of others.
pub(crate) fn read_around(body: &Body<'_>, draft: &mut Draft<'_>) {
    if let Some(root) = body.root() {
        blocks::extract(&root, draft);
    }
}

/// Every dialect's tables, in the order of the catalogue.
pub(crate) const DIALECTS: &[&Dialect] = &[
    &awp::DIALECT,
    &woa::DIALECT,
    &arws::DIALECT,
    &atp::DIALECT,
    &agents_json::DIALECT,
    &agents_txt::V0_DIALECT,
    &a2a::DIALECT,
    &ard::DIALECT,
    &mcp::DIALECT,
    &openapi::DIALECT,
    &api_catalog::DIALECT,
    &ai_plugin::DIALECT,
    &skills_index::DIALECT,
    &agents_txt::V1_DIALECT,
    &agents_txt::LAYERS_DIALECT,
    &agents_txt::PROSE_DIALECT,
    &llms_txt::DIALECT,
    &ai_txt::DIALECT,
    &wildcard::DIALECT,
    &ahp::DIALECT,
    &air::DIALECT,
    &facts::DIALECT,
    &manifest_v1::DIALECT,
    &w2a::DIALECT,
    &ucp::DIALECT,
    &acp::DIALECT,
    &x402::DIALECT,
    &erc8004::DIALECT,
    &anp::DIALECT,
    &webmcp::DIALECT,
    &web_bot_auth::DIALECT,
    &awas::DIALECT,
    &agents_json_others::INTENTS_DIALECT,
    &agents_json_others::DATA_DIALECT,
];

//! Blocks of other formats inside a document of any format: an MCP server in an agent card, an A2A endpoint or x402 terms
//! in a file of no format, the addresses of further manifests.
//!
//! Adds the interfaces, payment methods and links of such blocks. It adds no capability, so that nothing is counted twice, and
//! skips known addresses.

use serde_json::Value;

use crate::draft::Draft;
use crate::format::{addresses, lenient, outbound};
use crate::model::{Format, Interface, Payment, Protocol};
use crate::object::Object;

/// Blocks and links of one kind that are kept.
const ITEMS_MAX: usize = 50;
/// Members that hold the address of a server in a block.
const ADDRESS_KEYS: &[&str] = &["url", "endpoint", "httpUrl", "serverUrl", "server_url", "streamable_http"];
/// Members of the root with the address of a manifest or of a text for models.
const LINK_KEYS: &[&str] = &[
    "openapi",
    "openapi_spec",
    "openapi_url",
    "openapiUrl",
    "llms",
    "llms_txt",
    "llmsTxt",
    "agent_card",
    "agentCard",
    "agents_json",
    "ai_catalog",
    "api_catalog",
];
/// Members of the root that are maps of addresses.
const LINK_MAPS: &[&str] =
    &["endpoints", "links", "discovery", "related", "integrations", "interfaces", "resources"];

pub(crate) fn read(root: &Object<'_>, draft: &mut Draft<'_>) {
    if matches!(draft.format(), Format::OpenApi | Format::Unrelated | Format::Malformed) {
        return;
    }
    for key in ["mcp", "mcp_endpoint", "mcpEndpoint", "mcp_server", "mcp_url", "mcpUrl"] {
        add_server(root.value(key), Protocol::Mcp, draft);
    }
    for (_, server) in root.object("mcpServers").iter().flat_map(Object::members).take(ITEMS_MAX) {
        add_server(Some(&Value::Object(server.map.clone())), Protocol::Mcp, draft);
    }
    for key in ["a2a", "a2a_endpoint", "a2aEndpoint"] {
        add_server(root.value(key), Protocol::A2a, draft);
    }
    if draft.format() != Format::X402
        && let Some(terms) = root.object("x402")
    {
        add_payments(&terms, draft);
    }
    match draft.format() {
        Format::Generic | Format::Pointer | Format::McpFreeform => outbound::read(root.map, draft),
        _ => add_links(root, draft),
    }
}

/// A server by its address alone, or by an object that holds it.
fn add_server(block: Option<&Value>, protocol: Protocol, draft: &mut Draft<'_>) {
    let (published, transport) = match block {
        Some(Value::String(text)) => (Some(text.as_str()), None),
        Some(Value::Object(map)) => {
            let block = Object { map, pointer: String::new() };
            (block.text_of(ADDRESS_KEYS), block.text_of(&["transport", "type"]))
        }
        _ => return,
    };
    let Some(url) = published.and_then(|text| absolute(text, draft)) else { return };
    if addresses::classify(&url).follow.is_some() {
        return addresses::keep(&addresses::LinkInText { title: None, address: &url }, draft);
    }
    let known = draft.has_interface(&url);
    if !known && draft.manifest.interfaces.len() < ITEMS_MAX {
        let mut interface = Interface::new(protocol, Some(url));
        interface.transport = transport.map(str::to_owned);
        draft.keep(interface);
    }
}

/// Terms of payment: one for each network.
fn add_payments(terms: &Object<'_>, draft: &mut Draft<'_>) {
    let base = Payment { scheme: Some("x402".to_owned()), ..priced(terms).unwrap_or_default() };
    let networks: Vec<Payment> =
        terms.objects("networks").take(ITEMS_MAX).filter_map(|network| priced(&network)).collect();
    let found = if networks.is_empty() { vec![base] } else { networks };
    for payment in found {
        let payment = Payment { scheme: Some("x402".to_owned()), ..payment };
        if !draft.manifest.payments.contains(&payment) {
            draft.keep(payment);
        }
    }
}

fn priced(object: &Object<'_>) -> Option<Payment> {
    lenient::price(&Value::Object(object.map.clone()))
}

/// Adds addresses of manifests, not of pages.
fn add_links(root: &Object<'_>, draft: &mut Draft<'_>) {
    let named = LINK_KEYS.iter().filter_map(|key| root.text(key));
    let maps: Vec<Object<'_>> = LINK_MAPS.iter().filter_map(|key| root.object(key)).collect();
    let mapped = maps.iter().flat_map(|map| map.map.values()).filter_map(Value::as_str);
    for published in named.chain(mapped).take(ITEMS_MAX) {
        let Some(url) = absolute(published, draft) else { continue };
        if addresses::classify(&url).rel != "page" {
            addresses::keep(&addresses::LinkInText { title: None, address: &url }, draft);
        }
    }
}

/// An address on the served origin. Without a finding, since no format requires these members.
fn absolute(published: &str, draft: &Draft<'_>) -> Option<String> {
    let plain = published.starts_with('/') || published.starts_with("https://");
    plain.then(|| draft.origin_url(published)).flatten()
}

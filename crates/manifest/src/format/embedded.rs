//! Parts of other formats inside a document of any format: an MCP server in an agent card, operations in a plugin, terms of payment,
//! contacts, addresses of further documents.
//!
//! Adds only parts that the parser of the format has not read. A call with a known method and address is not added again.

use std::collections::HashSet;

use serde_json::Value;
use url::Url;

use crate::address;
use crate::auth;
use crate::draft::{self, Draft};
use crate::format::link_class;
use crate::format::outbound::Texts;
use crate::format::{
    addresses, ai_txt, auth_remarks, commands, described_calls, described_prices, generic, header, inline,
    inner_auth, lenient, mcp, mcp_hosts, named_tools, needed_credentials, oauth, outbound, package,
    paid_lists, payment_header, payment_words, payments, plan_tools, request_headers, terms, use_cases, x402,
};
use crate::model::{
    Auth, AuthScheme, CapabilityAuth, CapabilityKind, Cost, Format, Interface, Link, Payment, Protocol,
    SafetyClass, Tristate,
};
use crate::object::Object;
use crate::safety;
use crate::text;
use crate::unread;

/// Maximum number of servers of one document that are kept.
const SERVERS_MAX: usize = 50;
/// Members of a block with the address of a server.
const ADDRESS_KEYS: &[&str] = &["url", "endpoint", "httpUrl", "serverUrl", "server_url", "streamable_http"];

pub(crate) fn read(root: &Object<'_>, draft: &mut Draft<'_>) {
    if matches!(draft.format(), Format::OpenApi | Format::Unrelated | Format::Malformed) {
        return;
    }
    let texts = Texts::of(root.map);
    read_servers(root, draft);
    add_webmcp_page(root, draft);
    payments::read(root, &texts, draft);
    if !draft.format().is_core() && draft.format() != Format::X402 {
        x402::read_block(root, draft);
    }
    if matches!(draft.format(), Format::X402 | Format::McpConfig) {
        add_tools_beside(root, draft);
    }
    if may_hold_operations(draft.format()) {
        generic::read_operations(root, draft);
    }
    read_agents_by_name(root, draft);
    if !draft.format().is_core() {
        read_extensions(root, draft);
        read_cards(root, draft);
    }
    if draft.format() == Format::X402 {
        x402::complete_prices(root, draft);
        x402::check_resources(draft);
    }
    if !draft.format().is_core() {
        mark_free_lists(draft);
        paid_lists::read(root, draft);
        mark_paid(0, draft);
    }
    generic::read_workflows(root, draft);
    header::complete(root, draft);
    generic::apply_by_name(root, draft);
    if !draft.format().is_core() {
        described_prices::read(0, draft);
        mark_paid(0, draft);
        oauth::read_endpoints(root, draft);
        request_headers::read(root, draft);
        inner_auth::read(root.map, draft);
        needed_credentials::read_of_root(&texts, draft);
        generic::read_openness(root, draft);
    }
    terms::read(root, draft);
    if let Some(profile) = root.object("ucp").filter(|_| draft.format() == Format::Ucp) {
        payments::read(&profile, &Texts::of(profile.map), draft);
        oauth::read_endpoints(&profile, draft);
        header::complete(&profile, draft);
        terms::read(&profile, draft);
    }
    let (base, document) = (generic::base_of(root, draft), draft.base());
    lenient::resolve(draft, |published| {
        // A path may repeat the start of the path of the base: `/api/keys` below `https://shop.example/api/v1`.
        let first = |path: &str| path.split('/').nth(1).map(str::to_owned);
        let repeats = |base: &&Url| first(published).is_some_and(|own| first(base.path()) == Some(own));
        let root = base.as_ref().filter(repeats).and_then(|base| base.join("/").ok());
        generic::absolute(published, root.as_ref().or(base.as_ref()), document)
    });
    let calling = outbound::read(root.map, base.as_ref(), draft);
    if matches!(draft.format(), Format::McpCard | Format::McpRegistry | Format::McpFreeform) {
        mcp::check_reachable(root, draft);
    }
    if !draft.format().is_core() {
        let listed = draft.manifest.capabilities.len();
        named_tools::read(&texts, draft);
        mcp_hosts::read(&texts, draft);
        described_calls::read(&calling, root, draft);
        mark_paid(listed, draft);
        complete_calls(listed, (root, &texts), draft);
    }
}

/// Completes the credentials and the payments of all calls. Calls from the index `first_described` on are named only in texts.
fn complete_calls(first_described: usize, (root, texts): (&Object<'_>, &Texts<'_>), draft: &mut Draft<'_>) {
    auth_remarks::read(root, draft);
    generic::open_registration(draft);
    apply_described_effects(first_described, draft);
    mark_described_open(first_described, draft);
    plan_tools::read(root, draft);
    payment_words::mark_calls(draft);
    payment_header::read(root, texts, draft);
    open_free_calls(draft);
}

/// Marks free calls as open, if payment is the only credential of the document.
fn open_free_calls(draft: &mut Draft<'_>) {
    let manifest = &mut draft.manifest;
    let is_payment = |auth: &Auth| matches!(auth.scheme, AuthScheme::Payment | AuthScheme::None);
    let pays = manifest.auth.iter().any(|auth| auth.scheme == AuthScheme::Payment)
        || manifest.payments.iter().any(|payment| payment.scheme.is_some());
    if !pays || !manifest.auth.iter().all(is_payment) {
        return;
    }
    for call in manifest.capabilities.iter_mut().filter(|call| call.auth == CapabilityAuth::default()) {
        if call.price.as_ref().and_then(Payment::cost) == Some(Cost::Free) {
            call.auth.required = Tristate::No;
        }
    }
}

/// The MCP servers, the commands that start servers, and the A2A endpoints at the root.
fn read_servers(root: &Object<'_>, draft: &mut Draft<'_>) {
    for key in ["mcp", "mcp_endpoint", "mcpEndpoint", "mcp_server", "mcp_url", "mcpUrl"] {
        let transport = root.text("transport").filter(|_| root.text(key).is_some());
        add_server(root.value(key), Protocol::Mcp, transport, draft);
    }
    let servers = root.object("mcpServers").into_iter().flat_map(|servers| servers.map.values());
    for server in servers.filter(|server| server.is_object()).take(SERVERS_MAX) {
        add_server(Some(server), Protocol::Mcp, None, draft);
    }
    commands::read(root, draft);
    for key in ["a2a", "a2a_endpoint", "a2aEndpoint"] {
        add_server(root.value(key), Protocol::A2a, None, draft);
    }
}

/// Applies a sentence about the credentials of reads or writes to the calls that are named only in texts: "Write operations require a
/// bearer token."
fn apply_described_effects(first_described: usize, draft: &mut Draft<'_>) {
    let manifest = &mut draft.manifest;
    let has_scheme = manifest.auth.iter().any(|auth| auth.scheme != AuthScheme::None);
    if !has_scheme || manifest.capabilities.len() == first_described {
        return;
    }
    let description = manifest.description.clone().map(Value::String);
    let Some((reads, writes)) = description.as_ref().and_then(lenient::by_effect) else { return };
    let described = manifest.capabilities.iter_mut().skip(first_described);
    for capability in described.filter(|capability| capability.auth == CapabilityAuth::default()) {
        match safety::effect(capability) {
            SafetyClass::Read => capability.auth = reads.clone(),
            SafetyClass::Unknown => {}
            _ => capability.auth = writes.clone(),
        }
    }
}

/// Adds the tools that a file lists next to its resources or servers. They belong to its only server.
fn add_tools_beside(root: &Object<'_>, draft: &mut Draft<'_>) {
    let Some(tools @ Value::Array(_)) = root.value("tools") else { return };
    let servers = draft.manifest.interfaces.iter().filter(|known| known.protocol == Protocol::Mcp);
    let servers: Vec<Option<String>> = servers.map(|known| known.url.clone()).take(2).collect();
    if let [server] = servers.as_slice() {
        mcp::read_tools(tools, &root.at("tools"), server.as_deref(), draft);
    }
}

/// Maximum number of extensions of one document that are read.
const EXTENSIONS_MAX: usize = 50;

/// The tools of MCP servers that extensions describe by their parameters: `{"uri": "urn:shop:mcp", "params": {"transport": "stdio",
/// "tools": […]}}`.
fn read_extensions(root: &Object<'_>, draft: &mut Draft<'_>) {
    let inner = root.object("capabilities");
    let listed = std::iter::once(root).chain(inner.as_ref()).flat_map(|holder| holder.objects("extensions"));
    for extension in listed.take(EXTENSIONS_MAX) {
        add_payment_extension(&extension, draft);
        let names_mcp =
            extension.text("uri").is_some_and(|uri| text::words(uri).iter().any(|word| word == "mcp"));
        let Some(params) = extension.object("params").filter(|_| names_mcp) else { continue };
        let server = params.text_of(ADDRESS_KEYS).and_then(|published| draft.origin_url(published));
        if let Some(command) = params.text_of(&["install", "command"]) {
            commands::add_started(command, draft);
        }
        if let Some(tools) = params.value("tools").filter(|tools| tools.is_array()) {
            mcp::read_tools(tools, &params.at("tools"), server.as_deref(), draft);
        }
    }
}

/// Payment schemes that occur in the URIs of extensions.
const PAYMENT_SCHEMES: [&str; 2] = ["x402", "ap2"];

/// The payment that an extension of an agent card declares by its URI, with the terms in its parameters.
fn add_payment_extension(extension: &Object<'_>, draft: &mut Draft<'_>) {
    let uri = extension.text("uri").unwrap_or_default();
    let mut words = uri.split(|letter: char| !letter.is_ascii_alphanumeric());
    let Some(scheme) =
        words.find_map(|word| PAYMENT_SCHEMES.iter().find(|known| word.eq_ignore_ascii_case(known)))
    else {
        return;
    };
    let is_scheme =
        |payment: &Payment| payment.scheme.as_deref().is_some_and(|known| known.eq_ignore_ascii_case(scheme));
    if draft.manifest.payments.iter().any(is_scheme) {
        return;
    }
    let terms = extension.value("params").and_then(lenient::price).unwrap_or_default();
    draft.keep(Payment { scheme: Some((*scheme).to_owned()), ..terms });
}

/// Reads the member `agents` of a free-form `mcp.json`: a map from agent names to services.
fn read_agents_by_name(root: &Object<'_>, draft: &mut Draft<'_>) {
    let is_map =
        |agents: &&Value| agents.as_object().is_some_and(|agents| agents.values().all(Value::is_object));
    let agents = root.value("agents").filter(is_map).filter(|_| draft.format() == Format::McpFreeform);
    if let Some(agents) = agents {
        generic::read_service_list("agents", agents, &root.at("agents"), draft);
    }
}

/// Members with an agent card inside a document of another format.
const CARD_KEYS: &[&str] = &["a2a_profile", "a2aProfile", "a2a_card", "a2aCard", "agent_card", "agentCard"];

/// Reads embedded agent cards whose skills are not in a list of the document.
fn read_cards(root: &Object<'_>, draft: &mut Draft<'_>) {
    for card in CARD_KEYS.iter().filter_map(|key| root.object(key)) {
        let below = [&card.pointer, "/"].concat();
        let is_read = draft.manifest.capabilities.iter().any(|known| known.pointer.starts_with(&below));
        if !is_read {
            inline::read(&card, draft);
        }
    }
}

/// Marks calls that only the text of a service names as open, if the service requires no credentials.
fn mark_described_open(first_described: usize, draft: &mut Draft<'_>) {
    let manifest = &mut draft.manifest;
    let is_open = |auth: &Auth| auth.scheme == AuthScheme::None;
    // Calls without credentials may still require payment.
    if manifest.auth.is_empty() || !manifest.auth.iter().all(is_open) || !manifest.payments.is_empty() {
        return;
    }
    for capability in manifest.capabilities.iter_mut().skip(first_described) {
        let is_paid = capability.price.as_ref().and_then(Payment::cost) == Some(Cost::Paid);
        if capability.auth == CapabilityAuth::default() && !is_paid {
            capability.auth.required = Tristate::No;
        }
    }
}

/// Marks calls with a price as paid, if the price or the document states a payment scheme and no other credentials. In other formats than
/// x402 and AIR, plans or other ways to pay leave it unknown how a call is paid, unless its price is per call. So does a price that may be
/// zero.
fn mark_paid(first_described: usize, draft: &mut Draft<'_>) {
    let manifest = &mut draft.manifest;
    let is_scheme =
        |payment: &Payment| payment.scheme.as_deref().is_some_and(|s| auth::scheme(s) == AuthScheme::Payment);
    let is_of_calls = matches!(manifest.detection.format, Format::X402 | Format::Air);
    let payments = &manifest.payments;
    let names_scheme = payments.iter().any(is_scheme);
    let pays_calls = names_scheme
        && (is_of_calls
            || payments
                .iter()
                .all(|payment| payment.plan.is_none() && (payment.scheme.is_none() || is_scheme(payment))));
    for capability in manifest.capabilities.iter_mut().skip(first_described) {
        let has_paid_model =
            |price: &Payment| price.price.is_none() && price.model.as_deref() == Some("paid");
        let costs = |price: &&Payment| price.cost() == Some(Cost::Paid) || has_paid_model(price);
        let Some(price) = capability.price.as_ref().filter(costs) else {
            continue;
        };
        let is_in_currency = || {
            price.asset.is_some()
                || price.price.as_deref().is_some_and(|text| {
                    text.starts_with(['$', '\u{20ac}']) || lenient::names_amount_of_call(text)
                })
        };
        let is_stated =
            has_paid_model(price) || price.amount().is_some() || is_in_currency() && has_amounts(price);
        // A skill may state an address without a method.
        let is_skill_at_address =
            || capability.kind == CapabilityKind::Skill && capability.invocation.endpoint().is_some();
        let is_call = || capability.is_invocable() || is_skill_at_address();
        let is_due = || price.scheme.is_none() && is_stated && is_call();
        let is_per_call = price.model.as_deref().is_some_and(|model| model.starts_with("per_"));
        let is_paid = is_scheme(price)
            || (pays_calls && (is_of_calls || is_due()))
            || (is_per_call && names_scheme && is_due());
        if is_paid && capability.auth == CapabilityAuth::default() {
            capability.auth.required = Tristate::Yes;
            capability.auth.schemes.push(AuthScheme::Payment);
        }
    }
}

/// Marks the calls in a list of free calls (`"free_endpoints": […]`) as free and as open, unless they state a price or credentials.
fn mark_free_lists(draft: &mut Draft<'_>) {
    for capability in &mut draft.manifest.capabilities {
        if !capability.pointer.split('/').any(is_free_list) {
            continue;
        }
        let price = capability
            .price
            .get_or_insert_with(|| Payment { price: Some("free".to_owned()), ..Payment::default() });
        if price.cost() == Some(Cost::Free) && capability.auth == CapabilityAuth::default() {
            capability.auth.required = Tristate::No;
        }
    }
}

fn is_free_list(name: &str) -> bool {
    name.starts_with("free")
        && matches!(text::words(name).as_slice(), [free, .., what] if free == "free" && FREE_LISTS.contains(&what.as_str()))
}

/// Last words in the names of lists of free calls.
const FREE_LISTS: &[&str] = &["endpoints", "tools", "resources", "calls", "routes", "operations", "actions"];

/// Whether a price in words has amounts, none of which is zero, and does not contain "free": `toll rate (0.001 to 1.0)`.
fn has_amounts(price: &Payment) -> bool {
    let text = price.price.as_deref().unwrap_or_default();
    let numbers = text.split(|letter: char| !(letter.is_ascii_digit() || letter == '.'));
    let mut amounts = numbers.filter_map(|number| number.parse::<f64>().ok()).peekable();
    let is_free = || text.to_ascii_lowercase().contains("free");
    amounts.peek().is_some() && amounts.all(|amount| amount > 0.0) && !is_free()
}

/// Reads the parts that texts share: prices, required credentials, the payment header, and in ai.txt the JSON object below the comments.
pub(crate) fn read_text(text: &str, draft: &mut Draft<'_>) {
    described_prices::read(0, draft);
    mark_paid(0, draft);
    if !matches!(draft.format(), Format::OpenApi | Format::Unrelated | Format::Malformed) {
        needed_credentials::read(0, draft);
    }
    payment_header::read_text(text, draft);
    use_cases::read_text(text, draft);
    let inner = Some(text).filter(|_| draft.format() == Format::AiTxt);
    if let Some(document) = inner.and_then(ai_txt::object_below_comments) {
        if let Value::Object(map) = &document {
            draft.resolve_below(generic::folder_of(&Object::root(map), draft.base()));
            generic::read_below_comments(&Object::root(map), draft);
            read(&Object::root(map), draft);
        }
        drop_pages_of_calls(draft);
        unread::keep(&document, draft);
    } else {
        drop_pages_of_calls(draft);
    }
}

/// Removes links to pages that are addresses of calls.
fn drop_pages_of_calls(draft: &mut Draft<'_>) {
    let manifest = &mut draft.manifest;
    let operations = manifest.capabilities.iter().filter(|known| known.kind == CapabilityKind::Operation);
    let called: HashSet<&str> = operations.filter_map(|known| known.invocation.endpoint()).collect();
    manifest.links.retain(|link| link.rel != "page" || !called.contains(link.url.as_str()));
}

/// Formats whose files often describe a plain HTTP API in members of their own. False for formats whose specifications define where
/// operations are, and for formats from which nothing else is read.
const fn may_hold_operations(format: Format) -> bool {
    matches!(
        format,
        Format::A2a
            | Format::AiPlugin
            | Format::Anp
            | Format::Erc8004
            | Format::McpCard
            | Format::McpFreeform
            | Format::Ucp
            | Format::X402
    )
}

/// Adds the page whose tools a browser calls (WebMCP), which may be the home page.
fn add_webmcp_page(root: &Object<'_>, draft: &mut Draft<'_>) {
    let blocks = ["interfaces", "protocols", "agent_protocols", "endpoints"];
    let blocks = blocks.iter().filter_map(|key| root.object(key));
    let stated = std::iter::once(root.clone()).chain(blocks).find_map(|block| block.text("webmcp"));
    // A file of tools is a declaration, not a page.
    let page = stated.filter(|text| !text.contains("/webmcp") && !text.contains(char::is_whitespace));
    if let Some(url) = page.filter(|text| text.contains("://")).and_then(|text| draft.origin_url(text)) {
        draft.keep(Link::new("webmcp", url, None));
    }
}

/// Adds a server from its address, or from an object that contains it.
fn add_server(block: Option<&Value>, protocol: Protocol, transport: Option<&str>, draft: &mut Draft<'_>) {
    let (published, own) = match block {
        Some(Value::String(text)) => (Some(outbound::address_before_remark(text).unwrap_or(text)), None),
        Some(Value::Object(map)) => {
            let block = Object::root(map);
            (block.text_of(ADDRESS_KEYS), block.text_of(&["transport", "type"]))
        }
        _ => return,
    };
    let is_block = matches!(block, Some(Value::Object(_)));
    let stated = |key| block?.get(key)?.as_str();
    let version = draft::name(stated("protocol_version").or_else(|| stated("protocolVersion")));
    let Some(url) = published.and_then(|text| absolute(text, is_block, draft)) else {
        // A server that the caller starts has no address.
        if own == Some("stdio") && published.is_none() {
            let mut interface = Interface::new(protocol, None);
            interface.transport = own.map(str::to_owned);
            draft.keep(interface);
        }
        return;
    };
    if let Some(package) = package::of_page(&url) {
        return draft.keep(package::server(&package));
    }
    if link_class::classify(&url).follow.is_some() {
        return addresses::keep(&addresses::LinkInText { title: None, address: &url }, draft);
    }
    let known = draft.has_interface(&url);
    if !known && draft.manifest.interfaces.len() < SERVERS_MAX {
        let mut interface = Interface::new(protocol, Some(url));
        interface.transport = own.or(transport).map(str::to_owned);
        interface.version = version;
        draft.keep(interface);
    }
}

/// Resolves an address against the served origin. Only paths and `https://` URLs count. Reports no finding, because no format requires
/// these members.
fn absolute(published: &str, is_block: bool, draft: &Draft<'_>) -> Option<String> {
    let completed = address::completed(published).or_else(|| {
        let is_name = is_block && is_path_segment(published);
        is_name.then(|| ["/", published].concat())
    });
    let published = completed.as_deref().unwrap_or(published);
    let plain = published.starts_with('/') || published.starts_with("https://");
    plain.then(|| draft.origin_url(published)).flatten()
}

/// Whether a word in a member for addresses is a path, and not the name of a transport.
fn is_path_segment(word: &str) -> bool {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_');
    let is_transport =
        ["stdio", "http", "https", "sse", "streamable", "streamable-http", "websocket", "none", "local"]
            .contains(&word.to_ascii_lowercase().as_str());
    !word.is_empty() && word.chars().all(is_plain) && !is_transport
}

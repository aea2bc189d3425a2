//! A2A agent cards, versions 0.1 to 1.0.
//!
//! Reads skills, interfaces and credentials. No version defines an address for a skill: a skill is invoked by a message to the preferred
//! interface of the card. If a skill has an `endpoint` nevertheless, it is read.
//!
//! Follows the A2A protocol specification 0.1.0, 0.2.6 §5.5, 0.3.0 §5.5, 1.0.1 (`AgentCard`).

mod current;
mod rules;
mod security;

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use crate::address::{self, Address};
use crate::auth;
use crate::draft::{self, Draft};
use crate::format::detect::candidate::{Marker, strong};
use crate::format::{call_examples, endpoint, header, lenient, link_class};
use crate::model::{Capability, CapabilityKind, ExecutionModel, Interface, Invocation, Protocol};
use crate::name::parse_url;
use crate::object::Object;
use crate::rule::FindingTable;
use crate::schema;
use crate::text::capped;

pub(crate) const FINDING_TABLES: &[&FindingTable] = &[&rules::FINDINGS, &current::FINDINGS];

pub(crate) const MARKERS: &[Marker] = &[strong(|c| {
    c.objects("supportedInterfaces").map(|_| "`supportedInterfaces` is a list of objects".to_owned())
})];

/// Versions with different shapes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Generation {
    /// 0.1 to 0.3: the card's own `url`.
    Url,
    /// 1.0: `supportedInterfaces`.
    Interfaces,
}

impl Generation {
    /// A card without the address of either generation, and without other members of the older one, is treated as an invalid card of 1.0.
    fn of(root: &Object<'_>) -> Self {
        let is_older = OLDER_MEMBERS.iter().any(|key| root.has(key));
        if root.has("supportedInterfaces") || !is_older { Self::Interfaces } else { Self::Url }
    }
}

/// Names of features of the protocol.
const FEATURES: &[&str] =
    &["streaming", "pushNotifications", "stateTransitionHistory", "extendedAgentCard", "extensions"];
/// Members of cards before 1.0.
const OLDER_MEMBERS: [&str; 6] = [
    "url",
    "protocolVersion",
    "preferredTransport",
    "additionalInterfaces",
    "supportsAuthenticatedExtendedCard",
    "authentication",
];

pub(crate) fn read(root: &Object<'_>, draft: &mut Draft<'_>) {
    let generation = Generation::of(root);
    draft.dialect(Some(version(root)), None);
    rules::check_card(root, generation, draft);
    read_header(root, draft);
    read_features(root, draft);
    draft.manifest.integrity.signed = root.list("signatures").is_some_and(|list| !list.is_empty());
    merge(root, draft);
}

/// Adds a card's interfaces, credentials and skills to a manifest, whether it is the manifest or embedded in one.
pub(crate) fn merge(root: &Object<'_>, draft: &mut Draft<'_>) {
    let generation = Generation::of(root);
    let streams = root.object("capabilities").and_then(|features| features.flag("streaming")) == Some(true);
    let interfaces = match generation {
        Generation::Interfaces => {
            let listed = supported_interfaces(root, draft);
            // If all interfaces use another protocol, the `url` of older cards may be the address of the agent.
            let may_be_of_agent =
                ["protocolVersion", "preferredTransport"].iter().any(|key| root.has(key)) || !has_home(root);
            let is_other = !listed.is_empty() && preferred(&listed).is_none() && may_be_of_agent;
            let own = if is_other { url_interfaces(root, draft) } else { Vec::new() };
            listed.into_iter().chain(own).collect()
        }
        Generation::Url => url_interfaces(root, draft),
    };
    let schemes = security::read(root, draft);
    for skill in root.objects("skills") {
        if draft.is_full() {
            break;
        }
        let mut capability = read_skill(&skill, draft);
        keep_modes(&skill, &capability.native_id, draft);
        own_endpoint(&skill, &interfaces, draft, &mut capability);
        capability.auth = schemes.of_skill(&skill);
        if capability.invocation.endpoint().is_none() {
            invoke(&mut capability, &interfaces, generation);
        }
        // The features of the card apply to its interfaces.
        if streams && capability.invocation.protocol == Some(Protocol::A2a) {
            capability.execution.model = ExecutionModel::Stream;
        }
        draft.push(capability);
    }
    // If `capabilities` is a list instead of an object of features, it names what the agent does.
    let known: HashSet<String> =
        draft.manifest.capabilities.iter().map(|capability| capability.native_id.clone()).collect();
    let named = root.list("capabilities").into_iter().flatten();
    for (index, name) in named.enumerate().filter_map(|(index, name)| Some((index, name.as_str()?))) {
        if name.trim().is_empty() || known.contains(name.trim()) || FEATURES.contains(&name.trim()) {
            continue;
        }
        let pointer = format!("{}/{index}", root.at("capabilities"));
        let mut capability = draft.capability(CapabilityKind::Skill, name, "", pointer);
        capability.auth = schemes.of_skill(root);
        invoke(&mut capability, &interfaces, generation);
        draft.push(capability);
    }
    draft.keep_all(interfaces);
}

/// The declared version, or the one that matches the shape.
fn version<'v>(root: &Object<'v>) -> &'v str {
    let listed = root.objects("supportedInterfaces").find_map(|interface| interface.text("protocolVersion"));
    match root.text("protocolVersion").or(listed) {
        Some(stated) => stated,
        None if Generation::of(root) == Generation::Interfaces => "1.0",
        None if root.has("preferredTransport") || root.has("additionalInterfaces") => "0.3",
        None if root.has("securitySchemes") || !root.has("authentication") => "0.2",
        None => "0.1",
    }
}

fn read_header(root: &Object<'_>, draft: &mut Draft<'_>) {
    let served = draft.base();
    let manifest = &mut draft.manifest;
    manifest.name = draft::name(root.text("name"));
    manifest.description = draft::description(root.text("description"));
    manifest.document_version = draft::name(root.text("version"));
    manifest.provider.logo = root.string_of(&["iconUrl", "logo"]);
    if let Some(contact) = root.value("contact") {
        manifest.contact = header::contact(contact);
    }
    if let Some(provider) = root.object("provider") {
        manifest.provider.name = draft::name(provider.text_of(&["organization", "name"]));
        manifest.provider.url = provider.string("url");
        manifest.contact.email = manifest.contact.email.take().or_else(|| provider.string("email"));
    }
    // The page of the provider may be on another site than the agent.
    let page = manifest.provider.url.clone().filter(|page| header::is_of_site(page, served));
    let own = root.string("url").filter(|url| parse_url(url).is_ok_and(|url| url.has_host()));
    manifest.declared_origin = own.or(page);
    draft.link(root, "documentationUrl", "docs", None);
}

fn read_features(root: &Object<'_>, draft: &mut Draft<'_>) {
    let features = &mut draft.manifest.features;
    for key in ["supportsAuthenticatedExtendedCard", "defaultInputModes", "defaultOutputModes"] {
        if let Some(value) = root.value(key) {
            features.other.insert(key.to_owned(), value.clone());
        }
    }
    let Some(capabilities) = root.object("capabilities") else { return };
    features.streaming = capabilities.flag("streaming");
    features.webhooks = capabilities.flag("pushNotifications");
    for (name, value) in capabilities.map {
        if !matches!(name.as_str(), "streaming" | "pushNotifications") {
            features.other.insert(name.clone(), value.clone());
        }
    }
}

/// 1.0: an ordered list, the preferred one first.
fn supported_interfaces(root: &Object<'_>, draft: &mut Draft<'_>) -> Vec<Interface> {
    let mut interfaces = Vec::new();
    for listed in root.objects("supportedInterfaces") {
        draft.check(&listed, &rules::INTERFACE);
        let mut interface = Interface::new(protocol_of(&listed), draft.server_url(&listed, "url"));
        interface.version =
            listed.string("protocolVersion").or_else(|| draft::name(root.text("protocolVersion")));
        interface.transport = listed.string_of(&["protocolBinding", "transport"]);
        let tenant = listed.text("tenant").map(|tenant| capped(tenant, draft::NAME_CHARS_MAX));
        interface.settings.extend(tenant.map(|tenant| ("tenant".to_owned(), json!(tenant))));
        let method = http_method(&listed).filter(|_| interface.protocol == Protocol::Http);
        interface.settings.extend(method.map(|method| ("method".to_owned(), json!(method))));
        interfaces.push(interface);
    }
    interfaces
}

/// The protocol of an interface. An interface with an A2A binding uses A2A unless `protocol` names another protocol. Interfaces of another
/// type or with an HTTP method do not use A2A: `"protocol": "MCP"`, `"type": "mcp"`, `"transport": "http"`.
fn protocol_of(interface: &Object<'_>) -> Protocol {
    if let Some(named) =
        interface.text("protocol").map(auth::protocol).filter(|named| *named != Protocol::Other)
    {
        return named;
    }
    let binding = interface.text_of(&["protocolBinding", "transport"]).unwrap_or_default();
    if BINDINGS.iter().any(|known| binding.eq_ignore_ascii_case(known)) {
        return Protocol::A2a;
    }
    let stated = [interface.text("type"), Some(binding), interface.text("protocol")];
    let is_named = |words: &[&str]| {
        stated.iter().flatten().any(|text| words.iter().any(|word| text.eq_ignore_ascii_case(word)))
    };
    if is_named(&["mcp", "mcp-server"]) || names_mcp(binding) {
        Protocol::Mcp
    } else if http_method(interface).is_some() || is_named(OTHER_TYPES) {
        Protocol::Http
    } else {
        Protocol::A2a
    }
}

/// The protocol of a card's `url`: MCP if its transport is one of MCP (`MCP-STREAMABLE-HTTP`), or if `protocols` names MCP and no A2A.
fn protocol_of_card(root: &Object<'_>) -> Protocol {
    let protocols = root.texts("protocols");
    let is_named = |word: &str| protocols.iter().any(|named| named.eq_ignore_ascii_case(word));
    let is_of_protocols = !root.has("preferredTransport") && is_named("mcp") && !is_named("a2a");
    if is_of_protocols || root.text("preferredTransport").is_some_and(names_mcp) {
        Protocol::Mcp
    } else {
        Protocol::A2a
    }
}

/// Whether a binding is one of MCP.
fn names_mcp(binding: &str) -> bool {
    binding
        .get(..4)
        .is_some_and(|start| start.eq_ignore_ascii_case("mcp-") || start.eq_ignore_ascii_case("mcp+"))
}

/// Bindings of A2A.
const BINDINGS: &[&str] = &["JSONRPC", "GRPC", "HTTP+JSON"];
/// Types of interfaces over plain HTTP.
const OTHER_TYPES: &[&str] = &["http", "https", "rest", "sse", "health"];

/// The method that an interface states, which no version defines.
fn http_method<'v>(interface: &Object<'v>) -> Option<&'v str> {
    interface.text("method").filter(|method| address::is_method(method))
}

/// The call of an agent that does not use A2A: the first interface with a method that sends data.
fn call_of(interfaces: &[Interface]) -> Option<(&str, &str)> {
    let is_other = interfaces.iter().all(|interface| interface.protocol != Protocol::A2a);
    interfaces.iter().filter(|_| is_other).find_map(|interface| {
        let method = interface.settings.get("method")?.as_str()?;
        Some((method, interface.url.as_deref()?)).filter(|_| method != "GET")
    })
}

/// The interface to which messages are sent: the first that speaks A2A.
fn preferred(interfaces: &[Interface]) -> Option<&Interface> {
    interfaces.iter().find(|interface| interface.protocol == Protocol::A2a)
}

/// 0.1 to 0.3: the card's `url` over its preferred transport, then the additional ones.
fn url_interfaces(root: &Object<'_>, draft: &mut Draft<'_>) -> Vec<Interface> {
    // The `url` may be the address of the card itself, or of the document that contains the card.
    let own = [draft.document.url.to_string(), draft.base().to_string()];
    let is_server = |url: &String| {
        !own.contains(url) && (root.pointer.is_empty() || link_class::classify(url).follow.is_none())
    };
    let mut preferred =
        Interface::new(protocol_of_card(root), draft.server_url(root, "url").filter(is_server));
    // The home page of an agent that uses MCP is not its server.
    let is_page = preferred.protocol == Protocol::Mcp && !root.has("preferredTransport");
    preferred.url = preferred.url.filter(|url| !is_page || !is_home(url));
    let version = draft::name(root.text("protocolVersion"));
    if preferred.protocol == Protocol::A2a {
        preferred.version.clone_from(&version);
    }
    let transport = root.text("preferredTransport").or_else(|| (!is_page).then_some("JSONRPC"));
    preferred.transport = transport.map(str::to_owned);
    let task = task_interface(root, &preferred, draft);
    let mut interfaces: Vec<Interface> =
        task.into_iter().chain([preferred]).filter(|first| first.url.is_some() || is_page).collect();
    let mut seen: HashSet<Interface> = interfaces.iter().cloned().collect();
    for additional in root.objects("additionalInterfaces") {
        draft.check(&additional, &rules::ADDITIONAL);
        let mut interface = Interface::new(protocol_of(&additional), draft.server_url(&additional, "url"));
        if interface.protocol == Protocol::A2a {
            interface.version.clone_from(&version);
        }
        interface.transport = additional.string("transport");
        if interface.url.is_some() && seen.insert(interface.clone()) {
            interfaces.push(interface);
        }
    }
    interfaces
}

/// Members with the address for messages in cards whose `url` is a home page.
const TASK_KEYS: [&str; 10] = [
    "taskEndpoint",
    "task_endpoint",
    "a2aEndpoint",
    "a2a_endpoint",
    "agentEndpoint",
    "agent_endpoint",
    "rpcUrl",
    "rpc_url",
    "serviceEndpoint",
    "endpoint",
];

/// Members of `endpoints` with the address for messages.
const ENDPOINT_KEYS: [&str; 6] = ["a2a", "tasks", "task", "rpc", "jsonrpc", "message"];

fn is_home(url: &str) -> bool {
    url.split_once("://").is_none_or(|(_, rest)| rest.trim_end_matches('/').split_once('/').is_none())
}

/// Whether the `url` of a card is a home page.
fn has_home(root: &Object<'_>) -> bool {
    root.text("url").is_some_and(is_home)
}

/// The interface for messages of a card whose `url` is a home page.
fn task_interface(root: &Object<'_>, page: &Interface, draft: &mut Draft<'_>) -> Option<Interface> {
    let stated = |holder: &Object<'_>, keys: &[&'static str]| {
        keys.iter().copied().find(|key| holder.text(key).is_some())
    };
    let inner = root.object("endpoints");
    let (holder, key) = match stated(root, &TASK_KEYS) {
        Some(key) => (root, key),
        None => (inner.as_ref()?, stated(inner.as_ref()?, &ENDPOINT_KEYS)?),
    };
    let url = draft.server_url(holder, key).filter(|_| page.url.as_deref().is_none_or(is_home))?;
    Some(Interface { url: Some(url), ..page.clone() })
}

fn read_skill(skill: &Object<'_>, draft: &mut Draft<'_>) -> Capability {
    rules::check_skill(skill, draft);
    let mut capability = draft.begin(CapabilityKind::Skill, skill, &["id", "name"], &["name", "id"]);
    capability.tags = draft::tags(skill.texts("tags"));
    capability.examples = draft::tags(skill.texts("examples"));
    capability.published.extend(call_examples::shown(skill));
    lenient::read_prices(skill, &mut capability);
    capability.parameters =
        skill.value("inputSchema").and_then(|value| schema::lenient(value, &Invocation::default()));
    capability.response = skill.value("outputSchema").and_then(lenient::response);
    capability
}

/// Reads the endpoint of a skill, which no version defines. If it is an interface of the card, messages are sent to it.
fn own_endpoint(
    skill: &Object<'_>,
    interfaces: &[Interface],
    draft: &mut Draft<'_>,
    capability: &mut Capability,
) {
    let Some(key) = ["endpoint", "url", "path"].into_iter().find(|key| skill.text(key).is_some()) else {
        return;
    };
    let (prefixed, published) = address::split_method(skill.text(key).unwrap_or_default());
    let method = skill.text("method").map(str::to_ascii_uppercase).or_else(|| prefixed.map(str::to_owned));
    let method = method.filter(|method| address::is_method(method));
    let is_address = published.starts_with('/') || published.contains("://");
    let completed = (!is_address).then(|| address::completed(published)).flatten();
    // The web page of a skill is not a call.
    if (!is_address && completed.is_none()) || (key != "endpoint" && method.is_none()) {
        return;
    }
    let published = completed.as_deref().unwrap_or(published);
    let Some(address) = draft.on_origin(published, &skill.at(key)) else { return };
    let is_interface = interfaces.iter().any(|known| known.url.as_deref() == Some(address.as_str()));
    match method {
        Some(method) => endpoint::set_call(capability, &method, address),
        None if is_interface => {}
        None => endpoint::set(capability, address),
    }
}

/// Keeps the media types of a skill, which replace the card's defaults, by its id.
fn keep_modes(skill: &Object<'_>, id: &str, draft: &mut Draft<'_>) {
    let stated = ["inputModes", "outputModes"].map(|key| Some((key.to_owned(), skill.value(key)?.clone())));
    let modes: Map<String, Value> = stated.into_iter().flatten().collect();
    if modes.is_empty() {
        return;
    }
    let kept = draft.manifest.features.other.entry("skillModes".to_owned()).or_insert_with(|| json!({}));
    if let Some(kept) = kept.as_object_mut() {
        kept.insert(id.to_owned(), Value::Object(modes));
    }
}

/// Sets how a skill is called: by a message, or by the HTTP call of an agent that does not use A2A.
fn invoke(capability: &mut Capability, interfaces: &[Interface], generation: Generation) {
    let preferred = preferred(interfaces);
    match call_of(interfaces) {
        Some((method, url)) => endpoint::set_call(capability, method, Address::Fixed(url.to_owned())),
        // It is unknown how servers of other protocols offer the skills.
        None if preferred.is_none() && !interfaces.is_empty() => {}
        None => invoke_by_message(capability, preferred, generation),
    }
}

/// Every message to an interface of a tenant names the tenant (1.0 §8.3.2).
fn invoke_by_message(capability: &mut Capability, interface: Option<&Interface>, generation: Generation) {
    let stated = interface.and_then(|interface| interface.version.as_deref());
    let is_older = stated.map_or(generation == Generation::Url, |version| version.trim().starts_with("0."));
    // The gRPC binding uses this name in every version.
    let is_grpc = interface
        .and_then(|interface| interface.transport.as_deref())
        .is_some_and(|binding| binding.eq_ignore_ascii_case("GRPC"));
    // Some cards list a page with a form among the bindings; it accepts no messages.
    let binding = interface.and_then(|interface| interface.transport.as_deref());
    let is_page = binding.is_some_and(|binding| binding.to_ascii_uppercase().contains("HTML"));
    let message = if is_older && !is_grpc { "message/send" } else { "SendMessage" };
    capability.invocation.protocol = Some(Protocol::A2a);
    capability.invocation.url = interface.and_then(|interface| interface.url.clone());
    let tenant = interface.and_then(|interface| interface.settings.get("tenant"));
    capability.invocation.envelope =
        tenant.map(|tenant| json!({"tenant": tenant, "message": "{parameters}"}));
    capability.invocation.native = (!is_page).then(|| message.to_owned());
}

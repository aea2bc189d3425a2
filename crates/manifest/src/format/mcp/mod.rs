//! What sites publish about their MCP servers: server cards of both generations, registry entries, client configurations and files without
//! a specification.
//!
//! Reads the servers and the listed tools, resources and prompts. The final card lists no tools; the older one and the free forms do. A
//! server is an interface, and the capability of a card or an entry that lists nothing; it is never contacted.
//!
//! Follows SEP-2127 (server card v1), SEP-1649 (its draft), the MCP registry's server.json 2025-07-09 to 2025-12-11.

mod access;
mod content;
mod docstring;
mod named_resources;
mod registry;
mod rules;
mod schema;
mod servers;
mod tools;

use std::collections::HashSet;

use serde_json::Value;
use url::Url;

use crate::draft::{self, Draft};
use crate::format::detect::candidate::{Marker, at_path, medium, strong};
use crate::format::{header, lenient};
use crate::identity::host_of;
use crate::model::{
    AppliesTo, Auth, Capability, CapabilityAuth, CapabilityKind, Format, Interface, Link, Protocol,
};
use crate::object::{Object, children};
use crate::text;

pub(crate) use content::{prompt_call, resource_call};
pub(crate) use rules::{FINDINGS, check_reachable};
pub(crate) use servers::{command_line, secret_of_environment, secrets_of_environment};
pub(crate) use tools::{annotate, payable_id, read as read_tools};

pub(crate) const CONFIG_MARKERS: &[Marker] = &[strong(|c| {
    let servers = c.object("mcpServers").is_some() && c.list("skills").is_none();
    servers.then(|| "`mcpServers` without skills".to_owned())
})];

pub(crate) const CARD_MARKERS: &[Marker] = &[
    strong(|c| c.schema_is(|schema| schema::is_of_cards(schema, c.has("packages")))),
    strong(|c| {
        let name = c.text("name").filter(|name| name.contains('/'))?;
        c.list("remotes").map(|_| format!("`remotes` beside the name {name}"))
    }),
    medium(|c| {
        let name = c.text("name").filter(|name| name.split('/').count() == 2 && !name.contains("://"))?;
        let described = c.text("version").is_some() && c.text("description").is_some() && c.size() <= 6;
        described.then(|| format!("little more than the namespaced name {name}, a version and a description"))
    }),
    strong(|c| c.object("serverInfo").map(|_| "`serverInfo` is an object".to_owned())),
];

pub(crate) const REGISTRY_MARKERS: &[Marker] =
    &[strong(|c| c.schema_is(|schema| schema::is_of_registry(schema, c.has("packages"))))];

pub(crate) const FREEFORM_MARKERS: &[Marker] =
    &[at_path(|c| c.agrees(MCP_FILES, MCP_KEYS)), at_path(|c| c.agrees(&["/server.json"], &["packages"]))];

/// Files that describe MCP servers without a specification.
const MCP_FILES: &[&str] = &[
    "/mcp.json",
    "/.well-known/mcp",
    "server-card.json",
    "/mcp/manifest.json",
    "/mcp-server.json",
    "/mcp-manifest.json",
];
/// A description of a server has at least one of these members.
const MCP_KEYS: &[&str] = &[
    "tools",
    "transport",
    "transports",
    "endpoint",
    "url",
    "server",
    "servers",
    "mcp",
    "protocol",
    "serverUrl",
    "mcpVersion",
    "protocol_version",
    "packages",
    "remotes",
    "endpoints",
    "methods",
];

/// Maximum number of names of capabilities, and of tools outside lists, that are read from one file.
const NAMES_MAX: usize = 500;
/// Maximum number of features of one file that are kept.
const FLAGS_MAX: usize = 50;

/// Reads a server card, a registry entry or a free form.
pub(crate) fn read(root: &Object<'_>, draft: &mut Draft<'_>) {
    rules::check(root, draft);
    read_header(root, draft);
    let names_capabilities = root.value("capabilities").is_some_and(Value::is_array);
    let is_server = matches!(draft.format(), Format::McpCard | Format::McpRegistry | Format::McpFreeform);
    read_parts(root, is_server && !names_capabilities, draft);
    if let Some(names) = root.value("capabilities").filter(|names| names.is_array()) {
        read_names(names, &root.at("capabilities"), draft);
    }
    keep_flags(root, draft);
}

/// Keeps the features of the protocol that a card states: `"capabilities": {"resources": true, "tools": {"listChanged": true}}`.
fn keep_flags(root: &Object<'_>, draft: &mut Draft<'_>) {
    let is_flag = |value: &Value| value.is_boolean() || value.is_number();
    let are_flags = |value: &Value| value.as_object().is_some_and(|flags| flags.values().all(is_flag));
    let block = root.object("capabilities");
    let stated = block.iter().flat_map(|block| block.map).take(NAMES_MAX);
    let flags = stated.filter(|(_, value)| is_flag(value) || are_flags(value));
    let other = &mut draft.manifest.features.other;
    for (name, value) in flags.take(FLAGS_MAX) {
        other.entry(text::capped(name, draft::NAME_CHARS_MAX).to_owned()).or_insert_with(|| value.clone());
    }
}

/// Words for protocol features of an MCP server or of a file of actions. They are not names of capabilities.
pub(crate) const FEATURES: &[&str] = &[
    "actions",
    "tools",
    "resources",
    "prompts",
    "sampling",
    "logging",
    "completions",
    "roots",
    "elicitation",
];

/// Reads names of capabilities of the server besides its tools. Protocol words are features.
pub(crate) fn read_names(names: &Value, pointer: &str, draft: &mut Draft<'_>) {
    let known: HashSet<String> =
        draft.manifest.capabilities.iter().map(|capability| capability.native_id.clone()).collect();
    for (_, name, pointer) in children(names, pointer).take(NAMES_MAX) {
        let Some(name) = name.as_str().map(str::trim).filter(|name| !name.is_empty()) else { continue };
        if FEATURES.contains(&name) {
            draft.manifest.features.other.insert(name.to_owned(), Value::Bool(true));
        } else if !known.contains(name) {
            let capability = draft.capability(CapabilityKind::Unknown, name, name, pointer);
            draft.push(capability);
        }
    }
}

/// Reads a client configuration: `mcpServers` by name.
pub(crate) fn read_config(root: &Object<'_>, draft: &mut Draft<'_>) {
    draft.assess("MCP client configuration", |code| code.starts_with("mcp."));
    draft.manifest.name = draft::name(root.text("name"));
    draft.manifest.description = draft::description(root.text("description"));
    servers::configured(root, draft);
}

/// Adds the servers, tools, resources and prompts of a file to a manifest, whether it is the manifest or embedded in one.
pub(crate) fn merge(root: &Object<'_>, draft: &mut Draft<'_>) {
    read_parts(root, false, draft);
}

/// Adds the servers, tools, resources and prompts of a file. If `is_server`, a file that describes one server and lists nothing that it
/// offers has the server itself as its capability.
fn read_parts(root: &Object<'_>, is_server: bool, draft: &mut Draft<'_>) {
    let mut access = access::read(root);
    let mut found = servers::read(root, draft);
    read_page_tools(root, &mut found, draft);
    if access.auth.is_empty() {
        access.auth = found.iter().flat_map(servers::credentials).collect();
        access.auth.extend(servers::credentials_of_blocks(root));
        access.auth.dedup();
    }
    if access.auth.is_empty() {
        access.auth = servers::connected_credentials(root);
    }
    let mut servers = found.iter().filter(|interface| interface.protocol == Protocol::Mcp);
    let server = servers.clone().find_map(|interface| interface.url.clone());
    let host = server.as_deref().and_then(host_of);
    let is_only =
        host.is_some() && servers.all(|interface| interface.url.as_deref().and_then(host_of) == host);
    let is_api = !found.is_empty() && found.iter().all(|interface| interface.protocol == Protocol::Http);
    for interface in found {
        if !draft.manifest.interfaces.contains(&interface) {
            draft.keep(interface);
        }
    }
    draft.keep_all(servers::packages(root));
    let first = draft.manifest.capabilities.len();
    let listed =
        ["tools", "toolCategories", "tool_categories"].iter().find_map(|key| Some((*key, root.value(key)?)));
    if let Some((key, tools)) = listed {
        tools::read(tools, &root.at(key), server.as_deref(), draft);
    }
    if draft.manifest.capabilities.len() == first {
        read_wrapped(root, server.as_deref(), draft);
    }
    if let Some(methods) = root.value("methods").filter(|_| draft.manifest.capabilities.len() == first) {
        tools::read(methods, &root.at("methods"), server.as_deref(), draft);
    }
    content::read(root, server.as_deref(), draft);
    if let Some(server) = server.as_deref().filter(|_| is_only) {
        named_resources::read(root, server, draft);
    }
    if draft.manifest.capabilities.len() == first {
        for name in access.named().take(NAMES_MAX) {
            tools::read_name(name, &root.pointer, server.as_deref(), draft);
        }
    }
    // A file of a free form without an address may be about anything, and one with several servers is an index.
    let is_server = is_server && !is_api && (is_only || draft.format() != Format::McpFreeform);
    if is_server && draft.manifest.capabilities.len() == first {
        draft_server(server.as_deref(), draft);
    }
    let found = draft.manifest.capabilities.get_mut(first..).unwrap_or_default();
    access.apply(found);
    access::open_pages(root, found);
    let secrets = servers::secrets_of_packages(root);
    if server.is_none() && access.auth.is_empty() {
        require_secrets(&secrets, found);
    }
    draft.keep_all(access.auth);
    draft.keep_all(secrets);
}

/// Requires the secrets of its package for a server that only runs locally.
fn require_secrets(secrets: &[Auth], local: &mut [Capability]) {
    let of_all: Vec<Auth> =
        secrets.iter().filter(|secret| secret.applies_to == AppliesTo::All).cloned().collect();
    let needed = lenient::required_by(&of_all);
    for capability in local.iter_mut().filter(|capability| capability.auth == CapabilityAuth::default()) {
        capability.auth.clone_from(&needed);
    }
}

/// Replaces a server at a home page by a link to this page, if the description says that a browser calls the tools of the page (WebMCP).
fn read_page_tools(root: &Object<'_>, found: &mut Vec<Interface>, draft: &mut Draft<'_>) {
    let info = root.object_of(&["serverInfo", "server_info"]);
    let mut described = std::iter::once(root).chain(&info).filter_map(|holder| holder.text("description"));
    if !described.any(|text| text.contains("WebMCP") || text.contains("navigator.modelContext")) {
        return;
    }
    let is_home = |interface: &Interface| {
        let path = |url: &str| Url::parse(url).is_ok_and(|url| matches!(url.path(), "/" | ""));
        interface.transport.is_none() && interface.url.as_deref().is_some_and(path)
    };
    let (pages, servers): (Vec<Interface>, Vec<Interface>) = found.drain(..).partition(is_home);
    *found = servers;
    draft.keep_all(pages.into_iter().filter_map(|page| Some(Link::new("webmcp", page.url?, None))));
}

/// Adds the server that a file declares as a capability, like the entry of a catalog for it.
fn draft_server(url: Option<&str>, draft: &mut Draft<'_>) {
    if draft.manifest.interfaces.is_empty() {
        return;
    }
    let (name, title) = (draft.manifest.name.clone(), draft.manifest.title.clone());
    let id = name.or_else(|| title.clone()).unwrap_or_else(|| "server".to_owned());
    let label = title.as_deref().unwrap_or(&id);
    let mut capability = draft.capability(CapabilityKind::Resource, &id, label, String::new());
    capability.description.clone_from(&draft.manifest.description);
    capability.tags.clone_from(&draft.manifest.tags);
    capability.invocation.protocol = Some(Protocol::Mcp);
    let (template, url) = url
        .map(str::to_owned)
        .map_or((None, None), |url| if url.contains('{') { (Some(url), None) } else { (None, Some(url)) });
    (capability.invocation.url_template, capability.invocation.url) = (template, url);
    if let Some(template) = &capability.invocation.url_template {
        let is_same = |interface: &&Interface| interface.url.as_ref() == Some(template);
        let interface = draft.manifest.interfaces.iter().find(is_same);
        capability.parameters =
            interface.and_then(|interface| servers::parameters(interface, &capability.invocation));
    }
    draft.push(capability);
}

/// Tools one level down: `capabilities.tools`, `mcp.tools`, `servers[].tools`.
fn read_wrapped(root: &Object<'_>, server: Option<&str>, draft: &mut Draft<'_>) {
    for key in ["capabilities", "mcp", "server"] {
        let Some(inner) = root.object(key) else { continue };
        let tools = inner.value("tools").filter(|tools| tools.is_array() || tools::is_map_of_tools(tools));
        if let Some(tools) = tools {
            return tools::read(tools, &inner.at("tools"), server, draft);
        }
    }
    for inner in root.objects("servers") {
        let url = inner.text_of(&["url", "endpoint"]).or(server);
        if let Some(tools @ (Value::Array(_) | Value::Object(_))) = inner.value("tools") {
            tools::read(tools, &inner.at("tools"), url, draft);
        }
    }
}

fn read_header(root: &Object<'_>, draft: &mut Draft<'_>) {
    // A list of one server describes it.
    let mut servers = root.objects("servers");
    let only = servers.next().filter(|_| servers.next().is_none() && !root.has("name"));
    let block = || root.object("server").filter(|_| !root.has("name"));
    let info = root.object("serverInfo").or(only).or_else(block);
    let text_of = |keys: &[&str]| root.text_of(keys).or_else(|| info.as_ref()?.text_of(keys));
    if let Some(license) = info.as_ref().and_then(|info| draft::name(info.text_of(&["license", "licence"]))) {
        draft.manifest.features.other.insert("license".to_owned(), Value::String(license));
    }
    let served = draft.base();
    let manifest = &mut draft.manifest;
    manifest.name = draft::name(text_of(&["name", "service", "name_for_model"]));
    manifest.title = draft::name(text_of(&["title", "displayName", "display_name"]));
    manifest.description =
        draft::description(text_of(&["description", "instructions", "description_for_model"]));
    manifest.document_version = draft::name(text_of(&["version"]));
    let described = || std::iter::once(root).chain(info.as_ref());
    let tags = ["tags", "keywords", "categories"];
    manifest.tags = draft::tags(described().flat_map(|object| tags.iter().flat_map(|key| object.texts(key))));
    manifest.updated_at = root.string_of(&["updated_at", "updatedAt"]);
    let (mut provider, mut site) = (None, None);
    for key in ["provider", "publisher", "organization", "vendor", "author"] {
        match described().find_map(|object| object.value(key)) {
            Some(Value::String(name)) => provider = provider.or_else(|| draft::name(Some(name))),
            Some(Value::Object(map)) => {
                let object = Object::new(map, root.at(key));
                provider = provider.or_else(|| draft::name(object.text("name")));
                site = site.or_else(|| object.string("url"));
            }
            _ => {}
        }
    }
    manifest.provider.name = provider;
    manifest.provider.url = site;
    if let Some(contact) = root.value("contact") {
        manifest.contact = header::contact(contact);
    }
    if let Some(limit) = root.value_of(&["rateLimits", "rate_limits", "rateLimit", "rate_limit"]) {
        manifest.rate_limit = lenient::rate_limit(limit);
    }
    manifest.declared_origin = text_of(&["websiteUrl", "homepage", "website"])
        .filter(|page| header::is_of_site(page, served))
        .map(str::to_owned);
    for key in ["repository", "icons", "packages", "_meta"] {
        let kept = root.value(key).filter(|value| value.is_object() || value.is_array());
        manifest.features.other.extend(kept.map(|value| (key.to_owned(), value.clone())));
    }
    manifest.provider.logo = root.objects("icons").find_map(|icon| icon.string("src"));
    if let Some(repository) = root.object("repository") {
        draft.link(&repository, "url", "repository", None);
    }
    draft.links(
        root,
        &[
            ("documentation", "docs"),
            ("documentationUrl", "docs"),
            ("repository", "repository"),
            ("openapi", "service-desc"),
            ("openapi_spec", "service-desc"),
            ("llms", "llms"),
        ],
    );
}

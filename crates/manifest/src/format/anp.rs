//! Agent Network Protocol: collections of agents, and descriptions of single agents.
//!
//! Reads each item of a collection as one agent, with a link to its description; a description contributes its interfaces, each a document
//! that describes how to communicate with the agent.
//!
//! Follows ANP 1.0 to 1.1 (agent discovery, agent description).

use serde_json::Value;

use crate::auth;
use crate::draft::{self, Draft};
use crate::format::detect::candidate::{Marker, strong};
use crate::format::{header, lenient, link_class};
use crate::model::{
    Auth, CapabilityAuth, CapabilityKind, Confirmation, Follow, Interface, Link, Protocol, Tristate,
};
use crate::object::Object;
use crate::rule::{Kind, findings, may, must, should};
use crate::text;
use crate::walk::List;

/// Agents and interfaces of one document that are kept.
const ITEMS_MAX: usize = 1_000;

pub(crate) const MARKERS: &[Marker] = &[strong(|c| {
    let collection = c.text("@type") == Some("CollectionPage") && c.list("items").is_some();
    let protocol = c.text("protocolType") == Some("ANP");
    (collection || protocol).then(|| "a CollectionPage with items, or protocolType ANP".to_owned())
})];

findings! {
    shape COLLECTION("anp.collection", "ANP agent discovery") {
        must("@context", Kind::Any, "Publish the JSON-LD context."),
        must("url", Kind::Reference, "State the collection's own address."),
    }
    shape ITEM("anp.item", "ANP agent discovery") {
        must("name", Kind::Text, "Name the agent."),
        should("@type", Kind::Text, "State the type of the item."),
    }
    shape DESCRIPTION("anp.description", "ANP agent description") {
        must("protocolType", Kind::OneOf(&["ANP"]), "State ANP."),
        must("protocolVersion", Kind::Text, "State the version of the protocol."),
        must("name", Kind::Text, "Name the agent."),
        should("description", Kind::Text, "Describe what the agent does."),
        may("interfaces", Kind::List, "List interfaces as objects."),
    }
    shape INTERFACE("anp.interface", "ANP agent description") {
        must("type", Kind::Text, "State the type of the interface."),
        must("protocol", Kind::Text, "Name the protocol of the interface."),
        may("url", Kind::Reference, "State the address of the interface document."),
    }
    rule NO_ID: Must("anp.item.id.missing", "ANP agent discovery")
        "an item has no `@id`, so its description cannot be found by the specification"
            => "State the address of the agent's description in `@id`.";
}

pub(crate) fn read(root: &Object<'_>, draft: &mut Draft<'_>) {
    draft.assess("ANP", |code| code.starts_with("anp."));
    header::describe(root, draft);
    if root.list("items").is_some() {
        draft.dialect(root.text("protocolVersion"), Some("collection"));
        draft.check(root, &COLLECTION);
        draft.each(root, "items", &List::of(&ITEM).at_most(ITEMS_MAX), read_item);
        return;
    }
    draft.dialect(root.text("protocolVersion"), Some("description"));
    draft.check(root, &DESCRIPTION);
    if let Some(owner) = root.object("owner") {
        draft.manifest.provider.name = draft::name(owner.text("name"));
        draft.manifest.provider.url = owner.string("url");
    }
    draft.manifest.provider.identity = root.string_of(&["did", "id"]);
    read_security(root, draft);
    // The specification spells the member without its second "r".
    for information in root.objects("Infomations").chain(root.objects("Informations")).take(ITEMS_MAX) {
        read_information(&information, draft);
    }
    let first = draft.manifest.capabilities.len();
    for interface in root.objects("interfaces").chain(root.objects("Interfaces")).take(ITEMS_MAX) {
        draft.check(&interface, &INTERFACE);
        read_interface(&interface, draft);
    }
    if !root.texts("security").is_empty() {
        let needed = lenient::required_by(&draft.manifest.auth);
        for tool in draft.manifest.capabilities.iter_mut().skip(first) {
            if tool.auth == CapabilityAuth::default() && needed.required == Tristate::Yes {
                tool.auth = needed.clone();
            }
        }
    }
}

/// The definitions that `security` names; all of them if it names none.
fn read_security(root: &Object<'_>, draft: &mut Draft<'_>) {
    let Some(definitions) = root.object("securityDefinitions") else { return };
    let named = root.texts("security");
    for (name, definition) in definitions.members().take(ITEMS_MAX) {
        if !named.is_empty() && !named.contains(&name) {
            continue;
        }
        let scheme = definition.text("scheme").unwrap_or(name);
        draft.keep(Auth {
            location: definition.string("in").filter(|place| place != "none"),
            name: definition.string("name"),
            ..auth::of_word(scheme)
        });
    }
}

fn read_information(information: &Object<'_>, draft: &mut Draft<'_>) {
    let Some(url) = draft.document_url(information, "url") else { return };
    let class = link_class::classify(&url);
    let mut link = Link::new(class.rel, url, class.follow);
    link.title = draft::name(information.text("description"));
    draft.keep(link);
}

fn read_item(item: &Object<'_>, draft: &mut Draft<'_>) {
    let key = if item.has("@id") { "@id" } else { "url" };
    if key == "url" {
        draft.report_rule(&NO_ID, item.pointer.clone());
    }
    let mut capability = draft.begin(CapabilityKind::Agent, item, &[key, "name"], &["name"]);
    if let Some(url) = draft.document_url(item, key) {
        draft.keep(Link::new("agent-description", url.clone(), Some(Follow::Manifest)));
        capability.invocation.url = Some(url);
        capability.invocation.protocol = Some(Protocol::Other);
    }
    draft.push(capability);
}

fn read_interface(interface: &Object<'_>, draft: &mut Draft<'_>) {
    let declared = interface.text("protocol").unwrap_or_default();
    let folded = declared.to_ascii_lowercase();
    let protocol = match folded.as_str() {
        "mcp" => Protocol::Mcp,
        "a2a" => Protocol::A2a,
        "openapi" | "rest" | "http" | "https" => Protocol::Http,
        "graphql" => Protocol::GraphQl,
        "grpc" => Protocol::Grpc,
        "websocket" => Protocol::WebSocket,
        _ => Protocol::Other,
    };
    let mut url = draft.document_url(interface, "url");
    if let (true, Some(url)) = (folded == "openapi", url.clone()) {
        draft.keep(Link::new("service-desc", url, Some(Follow::Manifest)));
    } else if let Some(described) = url.take_if(|url| is_description(url)) {
        // The document at the address describes the interface; messages are sent elsewhere.
        let may_be_followed = described.starts_with("https://") && protocol != Protocol::Other;
        let follow = may_be_followed.then_some(Follow::Manifest);
        draft.keep(Link::new("describedby", described, follow));
    }
    let mut found = Interface::new(protocol, url);
    found.declared = draft::name(Some(declared));
    found.version = interface.string("version");
    let needs_person = interface.flag("humanAuthorization");
    let setting = needs_person.map(|flag| ("humanAuthorization".to_owned(), Value::Bool(flag)));
    found.settings.extend(setting);
    if protocol == Protocol::Mcp {
        read_actions(interface, found.url.as_deref(), draft);
    }
    draft.keep(found);
}

/// The actions of an MCP server that the description of its interface names: "structured actions for collectUsage and renderPoster".
fn read_actions(interface: &Object<'_>, server: Option<&str>, draft: &mut Draft<'_>) {
    let description = interface.text("description").unwrap_or_default();
    for name in named_actions(description) {
        let mut capability = draft.capability(CapabilityKind::Tool, name, "", interface.at("description"));
        capability.invocation.protocol = Some(Protocol::Mcp);
        capability.invocation.native = Some(name.to_owned());
        capability.invocation.url = server.map(str::to_owned);
        if interface.flag("humanAuthorization") == Some(true) {
            capability.safety.confirmation = Confirmation::Required;
        }
        draft.push(capability);
    }
}

/// The identifiers (`renderPoster`, `render_poster`) after words such as "actions for".
fn named_actions(description: &str) -> Vec<&str> {
    let description = text::capped(description, draft::DESCRIPTION_CHARS_MAX);
    let announced = ACTION_WORDS.iter().filter_map(|word| Some(description.find(word)? + word.len())).min();
    let behind = announced.and_then(|at| description.get(at..)).unwrap_or_default();
    let words = behind.split(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '_'));
    let mut names: Vec<&str> = Vec::new();
    for name in words.filter(|word| is_identifier(word)) {
        if names.len() < ACTIONS_MAX && !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

fn is_identifier(word: &str) -> bool {
    let begins = word.starts_with(|letter: char| letter.is_ascii_lowercase());
    let ends = word.ends_with(|letter: char| letter.is_ascii_alphanumeric());
    let has_parts = word.contains('_') || word.contains(|letter: char| letter.is_ascii_uppercase());
    // `eBay` and `iPhone` are names.
    let is_long =
        word.find(|letter: char| letter.is_ascii_uppercase() || letter == '_').is_some_and(|at| at > 1);
    begins && ends && has_parts && is_long && word.len() <= draft::NAME_BYTES_MAX
}

/// Words that announce the names of actions, and the maximum number of actions of one interface.
const ACTION_WORDS: &[&str] = &["actions", "tools", "methods", "functions"];
const ACTIONS_MAX: usize = 50;

/// Whether an address belongs to a document that describes a server.
fn is_description(url: &str) -> bool {
    let path = url.split(['?', '#']).next().unwrap_or_default();
    link_class::classify(url).follow.is_some()
        || [".json", ".jsonld", ".yaml", ".yml"].iter().any(|ending| path.ends_with(ending))
}

//! Agent Network Protocol: collections of agents, and descriptions of one.
//!
//! Decides one agent for each item of a collection, with a link to its description; a description contributes its
//! interfaces, each a document that says how to talk to the agent.
//!
//! Follows ANP 1.0 to 1.1 (agent discovery, agent description).

use super::{generic, loose};
use crate::draft::{self, Draft};
use crate::model::{CapabilityKind, Follow, Protocol, Severity};
use crate::object::Object;
use crate::rule::{Dialect, Kind, Rule, Shape, may, must, should};

/// Agents and interfaces of one document that are kept.
const ITEMS_MAX: usize = 1_000;

pub(crate) const DIALECT: Dialect = Dialect {
    title: "Agent Network Protocol",
    shapes: &[&COLLECTION, &ITEM, &DESCRIPTION, &INTERFACE],
    rules: &[&NO_ID],
};

const COLLECTION: Shape = Shape {
    code: "anp.collection",
    spec: "ANP agent discovery",
    fields: &[
        must("@context", Kind::Any, "Publish the JSON-LD context."),
        must("url", Kind::Reference, "Name the collection's own address."),
    ],
};
const ITEM: Shape = Shape {
    code: "anp.item",
    spec: "ANP agent discovery",
    fields: &[
        must("name", Kind::Text, "Name the agent."),
        should("@type", Kind::Text, "State the type of the item."),
    ],
};
const DESCRIPTION: Shape = Shape {
    code: "anp.description",
    spec: "ANP agent description",
    fields: &[
        must("protocolType", Kind::OneOf(&["ANP"]), "State ANP."),
        must("protocolVersion", Kind::Text, "State the version of the protocol."),
        must("name", Kind::Text, "Name the agent."),
        should("description", Kind::Text, "Say what the agent does."),
        may("interfaces", Kind::List, "List interfaces as objects."),
    ],
};
const INTERFACE: Shape = Shape {
    code: "anp.interface",
    spec: "ANP agent description",
    fields: &[
        must("type", Kind::Text, "State the type of the interface."),
        must("protocol", Kind::Text, "Name the protocol of the interface."),
        may("url", Kind::Reference, "Name the address of the interface document."),
    ],
};
const NO_ID: Rule = Rule {
    code: "anp.item.id.missing",
    severity: Severity::Must,
    spec: "ANP agent discovery",
    wrong: "an item has no `@id`, so its description cannot be found by the specification",
    fix: "Name the address of the agent's description in `@id`.",
};

/// Reads a collection or a description.
pub(crate) fn read(root: &Object<'_>, draft: &mut Draft<'_>) {
    draft.judge("ANP", |code| code.starts_with("anp."));
    generic::describe(root, draft);
    if root.list("items").is_some() {
        draft.dialect(root.text("protocolVersion"), Some("collection"));
        draft.check(root, &COLLECTION);
        for item in root.objects("items").take(ITEMS_MAX) {
            draft.check(&item, &ITEM);
            read_item(&item, draft);
        }
        return;
    }
    draft.dialect(root.text("protocolVersion"), Some("description"));
    draft.check(root, &DESCRIPTION);
    if let Some(owner) = root.object("owner") {
        draft.manifest.provider.name = draft::name(owner.text("name"));
        draft.manifest.provider.url = owner.text("url").map(str::to_owned);
    }
    draft.manifest.provider.identity = root.text_of(&["did", "id"]).map(str::to_owned);
    for interface in root.objects("interfaces").chain(root.objects("Interfaces")).take(ITEMS_MAX) {
        draft.check(&interface, &INTERFACE);
        read_interface(&interface, draft);
    }
}

fn read_item(item: &Object<'_>, draft: &mut Draft<'_>) {
    let key = if item.has("@id") { "@id" } else { "url" };
    if key == "url" {
        draft.report_plainly(&NO_ID, item.pointer.clone());
    }
    let name = item.text("name").unwrap_or_default();
    let id = item.text(key).unwrap_or(name);
    let mut capability = draft.capability(CapabilityKind::Agent, id, name, item.pointer.clone());
    capability.description = draft::description(item.text("description"));
    if let Some(address) = item.text(key).and_then(|text| draft.on_document(text, &item.at(key))) {
        let url = address.into_string();
        draft.manifest.links.push(loose::link("agent-description", url.clone(), Some(Follow::Manifest)));
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
    let address = interface.text("url").and_then(|text| draft.on_document(text, &interface.at("url")));
    let url = address.map(crate::address::Address::into_string);
    if let (true, Some(url)) = (folded == "openapi", url.clone()) {
        draft.manifest.links.push(loose::link("service-desc", url, Some(Follow::Manifest)));
    }
    let mut found = loose::interface(protocol, url);
    found.declared = draft::name(Some(declared));
    found.version = interface.text("version").map(str::to_owned);
    draft.manifest.interfaces.push(found);
}

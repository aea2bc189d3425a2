//! A2A agent cards, versions 0.1 to 1.0.
//!
//! Decides what an agent offers: its skills, the interfaces through which all of them are reached, the credentials. A skill
//! has no address of its own in any version; it is invoked by a message to the card's preferred interface. Cards that give
//! a skill an `endpoint` all the same are read as published.
//!
//! Follows the A2A protocol specification 0.1.0, 0.2.6 §5.5, 0.3.0 §5.5, 1.0.1 (`AgentCard`).

mod rules;
mod security;

use std::collections::HashSet;

use super::{generic, loose};
use crate::address;
use crate::draft::{self, Draft};
use crate::model::{Capability, CapabilityKind, ExecutionModel, Interface, Protocol};
use crate::object::Object;
use crate::schema;

pub(crate) use rules::DIALECT;

/// The generations that differ in shape.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Generation {
    /// 0.1 to 0.3: the card's own `url`.
    Url,
    /// 1.0: `supportedInterfaces`.
    Interfaces,
}

impl Generation {
    fn of(root: &Object<'_>) -> Self {
        if root.has("supportedInterfaces") { Self::Interfaces } else { Self::Url }
    }
}

/// Reads a card.
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
        Generation::Interfaces => supported_interfaces(root, draft),
        Generation::Url => url_interfaces(root, draft),
    };
    let schemes = security::read(root, draft);
    for skill in root.objects("skills") {
        if draft.is_full() {
            break;
        }
        let mut capability = read_skill(&skill, draft);
        capability.auth = schemes.of_skill(&skill);
        if capability.invocation.endpoint().is_none() {
            invoke_by_message(&mut capability, interfaces.first(), generation);
        }
        if streams {
            capability.execution.model = ExecutionModel::Stream;
        }
        draft.push(capability);
    }
    draft.manifest.interfaces.extend(interfaces);
}

/// The version stated, or the one whose shape the card has.
fn version<'v>(root: &Object<'v>) -> &'v str {
    let listed = root.objects("supportedInterfaces").find_map(|interface| interface.text("protocolVersion"));
    match root.text("protocolVersion").or(listed) {
        Some(stated) => stated,
        None if root.has("supportedInterfaces") => "1.0",
        None if root.has("preferredTransport") || root.has("additionalInterfaces") => "0.3",
        None if root.has("securitySchemes") || !root.has("authentication") => "0.2",
        None => "0.1",
    }
}

fn read_header(root: &Object<'_>, draft: &mut Draft<'_>) {
    let manifest = &mut draft.manifest;
    manifest.name = draft::name(root.text("name"));
    manifest.description = draft::description(root.text("description"));
    manifest.document_version = draft::name(root.text("version"));
    manifest.provider.logo = root.text_of(&["iconUrl", "logo"]).map(str::to_owned);
    if let Some(contact) = root.value("contact") {
        manifest.contact = generic::contact(contact);
    }
    if let Some(provider) = root.object("provider") {
        manifest.provider.name = draft::name(provider.text_of(&["organization", "name"]));
        manifest.provider.url = provider.text("url").map(str::to_owned);
        manifest.contact.email =
            manifest.contact.email.take().or_else(|| provider.text("email").map(str::to_owned));
    }
    manifest.declared_origin = root.text("url").map(str::to_owned).or_else(|| manifest.provider.url.clone());
    if let Some(url) = draft.url(root, "documentationUrl") {
        draft.manifest.links.push(loose::link("docs", url, None));
    }
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
        rules::check_interface(&listed, draft);
        let mut interface = loose::interface(Protocol::A2a, draft.url(&listed, "url"));
        interface.version = listed.text("protocolVersion").map(str::to_owned);
        interface.transport = listed.text_of(&["protocolBinding", "transport"]).map(str::to_owned);
        interfaces.push(interface);
    }
    interfaces
}

/// 0.1 to 0.3: the card's `url` over its preferred transport, then the additional ones.
fn url_interfaces(root: &Object<'_>, draft: &mut Draft<'_>) -> Vec<Interface> {
    let mut preferred = loose::interface(Protocol::A2a, draft.url(root, "url"));
    preferred.version = root.text("protocolVersion").map(str::to_owned);
    preferred.transport = Some(root.text("preferredTransport").unwrap_or("JSONRPC").to_owned());
    let version = preferred.version.clone();
    let mut interfaces: Vec<Interface> =
        std::iter::once(preferred).filter(|first| first.url.is_some()).collect();
    let mut seen: HashSet<Interface> = interfaces.iter().cloned().collect();
    for additional in root.objects("additionalInterfaces") {
        rules::check_additional(&additional, draft);
        let mut interface = loose::interface(Protocol::A2a, draft.url(&additional, "url"));
        interface.version.clone_from(&version);
        interface.transport = additional.text("transport").map(str::to_owned);
        if interface.url.is_some() && seen.insert(interface.clone()) {
            interfaces.push(interface);
        }
    }
    interfaces
}

fn read_skill(skill: &Object<'_>, draft: &mut Draft<'_>) -> Capability {
    rules::check_skill(skill, draft);
    let name = skill.text_of(&["name", "id"]).unwrap_or_default();
    let id = skill.text("id").unwrap_or(name);
    let mut capability = draft.capability(CapabilityKind::Skill, id, name, skill.pointer.clone());
    capability.description = draft::description(skill.text("description"));
    capability.tags = draft::tags(skill.texts("tags"));
    capability.examples = draft::tags(skill.texts("examples"));
    capability.price = ["price", "payment", "pricing"].iter().find_map(|key| loose::price(skill.value(key)?));
    capability.parameters = skill.value("inputSchema").and_then(|value| schema::loose(value, None, None));
    capability.response = skill.value("outputSchema").and_then(loose::response);
    own_endpoint(skill, draft, &mut capability);
    capability
}

/// An endpoint of a skill's own, which no version defines and some publish.
fn own_endpoint(skill: &Object<'_>, draft: &mut Draft<'_>, capability: &mut Capability) {
    let Some(published) = skill.text("endpoint") else { return };
    let (prefixed, published) = address::split_method(published);
    let method = skill.text("method").map(str::to_ascii_uppercase).or_else(|| prefixed.map(str::to_owned));
    let Some(method) = method.filter(|method| address::is_method(method)) else { return };
    if let Some(address) = draft.on_origin(published, &skill.at("endpoint")) {
        loose::call(capability, &method, address);
    }
}

fn invoke_by_message(capability: &mut Capability, interface: Option<&Interface>, generation: Generation) {
    let message = match generation {
        Generation::Interfaces => "SendMessage",
        Generation::Url => "message/send",
    };
    capability.invocation.protocol = Some(Protocol::A2a);
    capability.invocation.url = interface.and_then(|interface| interface.url.clone());
    capability.invocation.native = Some(message.to_owned());
}

//! ERC-8004 agent registrations: endpoints of agents that are registered on a chain.
//!
//! Reads the interfaces of the agent; a registration declares no capabilities. An A2A endpoint is the address of a card,
//! which is followed; an MCP endpoint is an interface. A2A skills of hybrid files are read.
//!
//! Follows ERC-8004 registration-v1.

use crate::draft::{self, Draft};
use crate::format::detect::candidate::{Marker, strong};
use crate::format::link_class;
use crate::format::{a2a, addresses, header, mcp, package};
use crate::model::{Follow, Interface, Link, Payment, Protocol};
use crate::object::Object;
use crate::rule::{Kind, findings, may, must};
use crate::walk::List;

pub(crate) const MARKERS: &[Marker] = &[strong(|c| {
    let kind = c.text("type").filter(|kind| kind.to_ascii_lowercase().contains("eip-8004"))?;
    Some(format!("`type` is {kind}"))
})];

findings! {
    shape ROOT("erc8004", "ERC-8004 registration-v1") {
        must("type", Kind::Text, "State https://eips.ethereum.org/EIPS/eip-8004#registration-v1."),
        must("name", Kind::Text, "Name the agent."),
        must("description", Kind::Text, "Describe what the agent does."),
        must("image", Kind::Text, "State the URL of an image."),
        may("services", Kind::List, "List services as objects with `name` and `endpoint`."),
        may("registrations", Kind::List, "List registrations as objects."),
        may("supportedTrust", Kind::Texts, "List trust models as strings."),
        may("active", Kind::Bool, "Publish true or false."),
        may("x402Support", Kind::Bool, "Publish true or false."),
    }
    shape SERVICE("erc8004.service", "ERC-8004 registration-v1") {
        must("name", Kind::Text, "Name the kind of service: A2A, MCP, web, OASF, ENS, DID."),
        must("endpoint", Kind::Text, "Name the endpoint."),
        may("version", Kind::Text, "State the version in a string."),
    }
    shape REGISTRATION("erc8004.registration", "ERC-8004 registration-v1") {
        must("agentId", Kind::Any, "State the agent's id in the registry."),
        must("agentRegistry", Kind::Text, "Name the registry as namespace:chain:address."),
    }
    rule OLD_NAME: Should("erc8004.endpoints.renamed", "ERC-8004 registration-v1")
        "`endpoints` is the older name of `services`" => "Publish `services`.";
}

pub(crate) fn read(root: &Object<'_>, draft: &mut Draft<'_>) {
    draft.dialect(Some("registration-v1"), None);
    draft.assess("ERC-8004 registration-v1", |code| code.starts_with("erc8004."));
    draft.check(root, &ROOT);
    header::describe(root, draft);
    draft.manifest.provider.logo = root.string("image");
    if root.has("endpoints") && !root.has("services") {
        draft.report_rule(&OLD_NAME, root.at("endpoints"));
    }
    draft.each(root, "registrations", &List::of(&REGISTRATION), |registration, draft| {
        let id = registration.value("agentId").map(ToString::to_string).unwrap_or_default();
        let registry = registration.text("agentRegistry").unwrap_or_default();
        let identity = format!("{registry}:{}", id.trim_matches('"'));
        draft.manifest.provider.identity.get_or_insert(identity);
    });
    if root.flag("x402Support") == Some(true) {
        draft.keep(Payment { scheme: Some("x402".to_owned()), ..Payment::default() });
    }
    for service in root.objects("services").chain(root.objects("endpoints")) {
        draft.check(&service, &SERVICE);
        read_service(&service, draft);
    }
    if root.list("skills").is_some() {
        a2a::merge(root, draft);
    } else if let Some(names) = root.value("capabilities").filter(|names| names.is_array()) {
        mcp::read_names(names, &root.at("capabilities"), draft);
    }
}

fn read_service(service: &Object<'_>, draft: &mut Draft<'_>) {
    let name = service.text("name").unwrap_or_default();
    let key = if service.has("endpoint") { "endpoint" } else { "url" };
    let address = service.text(key).filter(|text| text.contains("://")).and_then(|_| draft.url(service, key));
    let folded = name.to_ascii_lowercase();
    let protocol = match folded.as_str() {
        "mcp" => Protocol::Mcp,
        "a2a" | "agent card" => Protocol::A2a,
        "web" | "api" | "rest" | "http" => Protocol::Http,
        "x402" => Protocol::X402,
        _ => Protocol::Other,
    };
    if let (Protocol::A2a, Some(url)) =
        (protocol, address.clone().filter(|url| addresses::leads_to_manifest(url)))
    {
        draft.keep(Link::new("agent-card", url, Some(Follow::Manifest)));
        return;
    }
    let package = address.as_deref().and_then(package::of_page).filter(|_| protocol == Protocol::Mcp);
    if let Some(package) = package {
        return draft.keep(package::server(&package));
    }
    if let Some(url) = address.as_ref().filter(|_| protocol == Protocol::Other) {
        let class = link_class::classify(url);
        if class.follow.is_some() {
            return draft.keep(Link::new(class.rel, url.clone(), class.follow));
        }
    }
    let mut interface = Interface::new(protocol, address);
    interface.declared = draft::name(Some(name));
    interface.version = service.string("version");
    draft.keep(interface);
}

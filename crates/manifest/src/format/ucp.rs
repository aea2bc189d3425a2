//! Universal Commerce Protocol profiles.
//!
//! Decides which commerce capabilities a business offers, and which transports its services use. The shape depends on the version:
//! capabilities were a list in January 2026, and have been a map of lists since. Files that only have the name are read like other JSON
//! about services.
//!
//! Follows UCP 2026-01-11, 2026-01-23 and 2026-04-08 (profile).

use serde_json::Value;

use crate::draft::{self, Draft};
use crate::format::detect::candidate::{Marker, at_path, strong};
use crate::format::link_class;
use crate::format::{addresses, generic, header, lenient};
use crate::model::{CapabilityKind, Interface, Link, Payment, Protocol};
use crate::object::Object;
use crate::rule::{Kind, findings, may, must};
use crate::text::capped;
use crate::walk::List;

pub(crate) const MARKERS: &[Marker] = &[
    strong(|c| c.object("ucp").map(|_| "`ucp` is an object".to_owned())),
    at_path(|c| {
        c.agrees(&["/ucp", "/ucp.json"], &["ucp", "services", "capabilities", "ucp_version", "protocol"])
    }),
];

findings! {
    shape PROFILE("ucp", "UCP 2026-04-08 profile") {
        must("version", Kind::Text, "State the date of a released version."),
        must("services", Kind::Object, "Publish services as a map from reverse-domain name to bindings."),
        must("capabilities", Kind::Any, "Publish capabilities as a map from reverse-domain name to versions."),
        may("payment_handlers", Kind::Object, "Publish payment handlers as a map."),
    }
    shape SERVICE("ucp.service", "UCP 2026-04-08 profile") {
        must("version", Kind::Text, "State the service's version."),
        must("transport", Kind::OneOf(&["rest", "mcp", "a2a", "embedded"]), "State rest, mcp, a2a or embedded."),
        may("endpoint", Kind::Url, "State the absolute URL of the service."),
    }
    shape CAPABILITY("ucp.capability", "UCP 2026-04-08 profile") {
        must("version", Kind::Text, "State the capability's version."),
        may("spec", Kind::Url, "State the absolute URL of its specification."),
        may("schema", Kind::Url, "State the absolute URL of its schema."),
    }
    rule VERSION: Must("ucp.version.unreleased", "UCP 2026-04-08 profile")
        "the version is not one that was released" => "State 2026-01-11, 2026-01-23 or 2026-04-08.";
    rule NAME: Must("ucp.name.not_reverse_domain", "UCP 2026-04-08 profile")
        "a service or capability is not named by a reverse domain" => "Use names such as dev.ucp.shopping.checkout.";
    rule OLD_SHAPE: Should("ucp.shape.old", "UCP 2026-01-23 profile")
        "services or capabilities have the shape of 2026-01-11" => "Publish maps from name to an array of versions.";
    rule FREEFORM: Must("ucp.freeform", "UCP 2026-04-08 profile")
        "there is no object `ucp`, so no UCP client can read the file" => "Publish the profile under `ucp`.";
}

const VERSIONS: &[&str] = &["2026-01-11", "2026-01-23", "2026-04-08"];
/// Maximum number of services and capabilities of one profile that are kept.
const ITEMS_MAX: usize = 500;

pub(crate) fn read(root: &Object<'_>, draft: &mut Draft<'_>) {
    draft.assess("UCP", |code| code.starts_with("ucp."));
    let Some(profile) = root.object("ucp") else {
        draft.dialect(root.text_of(&["ucp", "ucp_version", "version"]), Some("freeform"));
        draft.report_rule(&FREEFORM, String::new());
        if let Some(url) =
            ["commerce_endpoint", "commerceEndpoint", "endpoint"].iter().find_map(|key| draft.url(root, key))
        {
            draft.keep(Interface::new(Protocol::Ucp, Some(url)));
        }
        return generic::read(root, draft);
    };
    let version = profile.text("version");
    draft.dialect(version, None);
    draft.check(&profile, &PROFILE);
    if let Some(version) = version.filter(|version| !VERSIONS.contains(version)) {
        draft.report(&VERSION, profile.at("version"), format!("{version} was not released"));
    }
    let business = root.object("business").unwrap_or_else(|| root.clone());
    header::describe(&business, draft);
    draft.manifest.document_version = None;
    if draft.manifest.description.is_none() {
        draft.manifest.description = description_of_service(&profile);
    }
    let services = read_services(&profile, draft);
    read_capabilities(&profile, &services, draft);
    // Capabilities are called through a binding, so they need its credentials.
    if !draft.manifest.auth.is_empty() {
        let needed = lenient::required_by(&draft.manifest.auth);
        for capability in &mut draft.manifest.capabilities {
            capability.auth.required = needed.required;
            capability.auth.schemes.clone_from(&needed.schemes);
        }
    }
    for (scheme, _) in
        profile.object("payment_handlers").iter().flat_map(|handlers| handlers.map).take(ITEMS_MAX)
    {
        draft.keep(Payment { scheme: Some(scheme.clone()), ..Payment::default() });
    }
}

/// The description of the only service of a profile.
fn description_of_service(profile: &Object<'_>) -> Option<String> {
    let mut listed = profile.objects("services");
    let service = listed.next().filter(|_| listed.next().is_none());
    let services = profile.object("services");
    let named = || {
        let services = services.as_ref().filter(|services| services.map.len() == 1)?;
        let (_, service) = services.members().next()?;
        Some(service)
    };
    draft::description(service.or_else(named)?.text("description"))
}

/// Every binding of every service, with the service's name in `declared`.
fn read_services(profile: &Object<'_>, draft: &mut Draft<'_>) -> Vec<Interface> {
    let mut found = Vec::new();
    if let Some(services) = profile.object("services") {
        for name in services.map.keys().take(ITEMS_MAX) {
            check_name(name, &services.at(name), draft);
            draft.each(&services, name, &List::of(&SERVICE), |binding, draft| {
                found.extend(read_binding(binding, binding.text("transport"), name, draft));
            });
            let Some(old) = services.object(name) else { continue };
            draft.report_rule(&OLD_SHAPE, old.pointer.clone());
            for transport in ["rest", "mcp", "a2a", "embedded"] {
                let Some(binding) = old.object(transport) else { continue };
                let Some(mut interface) = read_binding(&binding, Some(transport), name, draft) else {
                    continue;
                };
                interface.version = interface.version.or_else(|| old.string("version"));
                found.push(interface);
                if let Some(auth) = binding.value_of(&["auth", "authentication"]) {
                    let known = &draft.manifest.auth;
                    let new: Vec<_> =
                        lenient::auth(auth).into_iter().filter(|auth| !known.contains(auth)).collect();
                    draft.keep_all(new);
                }
            }
        }
    }
    for service in profile.objects("services").take(ITEMS_MAX) {
        draft.report_rule(&OLD_SHAPE, service.pointer.clone());
        let name = service.text_of(&["name", "id"]).unwrap_or_default();
        found.extend(read_binding(&service, service.text("transport"), name, draft));
    }
    draft.keep_all(found.iter().cloned());
    found
}

fn read_binding(
    binding: &Object<'_>,
    transport: Option<&str>,
    service: &str,
    draft: &mut Draft<'_>,
) -> Option<Interface> {
    let url = draft.server_url(binding, "endpoint")?;
    // The card of an agent or of a server describes it.
    if matches!(transport, Some("a2a" | "mcp")) && link_class::classify(&url).follow.is_some() {
        addresses::keep(&addresses::LinkInText { title: None, address: &url }, draft);
        return None;
    }
    let protocol = match transport {
        Some("mcp") => Protocol::Mcp,
        Some("a2a") => Protocol::A2a,
        None if link_class::classify(&url).rel == "mcp" => Protocol::Mcp,
        _ => Protocol::Ucp,
    };
    let mut interface = Interface::new(protocol, Some(url));
    interface.declared = Some(capped(service, draft::NAME_CHARS_MAX).to_owned());
    interface.transport = transport.map(|transport| capped(transport, draft::NAME_CHARS_MAX).to_owned());
    interface.version = binding.string("version");
    Some(interface)
}

fn read_capabilities(profile: &Object<'_>, services: &[Interface], draft: &mut Draft<'_>) {
    match profile.value("capabilities") {
        Some(Value::Object(map)) => {
            let capabilities = Object::new(map, profile.at("capabilities"));
            for name in map.keys().take(ITEMS_MAX) {
                let versions: Vec<Object<'_>> = capabilities.objects(name).collect();
                for version in &versions {
                    draft.check(version, &CAPABILITY);
                }
                add_capability(name, versions.first(), capabilities.at(name), services, draft);
            }
        }
        Some(Value::Array(list)) => {
            draft.report_rule(&OLD_SHAPE, profile.at("capabilities"));
            for name in list.iter().filter_map(Value::as_str).take(ITEMS_MAX) {
                add_capability(name, None, profile.at("capabilities"), services, draft);
            }
            for capability in profile.objects("capabilities").take(ITEMS_MAX) {
                let name = capability.text_of(&["name", "id"]).unwrap_or_default();
                add_capability(name, Some(&capability), capability.pointer.clone(), services, draft);
            }
        }
        _ => {}
    }
}

/// Adds a capability. It belongs to the service whose name is a prefix of its name; its specification defines the call.
fn add_capability(
    name: &str,
    about: Option<&Object<'_>>,
    pointer: String,
    services: &[Interface],
    draft: &mut Draft<'_>,
) {
    check_name(name, &pointer, draft);
    let mut capability = draft.capability(CapabilityKind::Operation, name, name, pointer);
    capability.description = about.and_then(|about| draft::description(about.text("description")));
    // Other words are features of the business (`pay-per-call`), which cannot be called.
    if !is_reverse_domain(name) {
        capability.kind = CapabilityKind::Unknown;
        return draft.push(capability);
    }
    let service = services
        .iter()
        .find(|service| service.declared.as_deref().is_some_and(|prefix| name.starts_with(prefix)))
        .or_else(|| services.first());
    capability.invocation.protocol = Some(service.map_or(Protocol::Ucp, |service| service.protocol));
    capability.invocation.native = Some(name.to_owned());
    capability.invocation.url = service.and_then(|service| service.url.clone());
    if let Some(docs) = about.and_then(|about| draft.url(about, "spec")) {
        draft.keep(Link::new("spec", docs, None));
    }
    draft.push(capability);
}

fn is_reverse_domain(name: &str) -> bool {
    name.split('.').count() >= 2 && name.split('.').all(|part| !part.is_empty())
}

fn check_name(name: &str, pointer: &str, draft: &mut Draft<'_>) {
    if !is_reverse_domain(name) {
        draft.report(&NAME, pointer.to_owned(), format!("\"{name}\" is not a reverse domain"));
    }
}

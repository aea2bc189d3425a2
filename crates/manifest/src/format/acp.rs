//! Agentic Commerce Protocol discovery files.
//!
//! Decides where a merchant's commerce API is and which services it names. The specification of 2026 defines checkout calls, not this file,
//! so services are known by name. Files of another shape are read like service descriptions without a specification.

use serde_json::Value;

use crate::budget;
use crate::draft::Draft;
use crate::format::detect::candidate::{Marker, at_path, strong};
use crate::format::{generic, header, lenient};
use crate::model::{CapabilityKind, Interface, Payment, Protocol};
use crate::object::Object;
use crate::rule::{Kind, findings, may, must};
use crate::text;

/// Maximum number of services and payment methods of one file that are kept.
const ITEMS_MAX: usize = 200;
/// Maximum number of bytes of one further member of `capabilities` that is kept, such as `extensions`.
const FEATURE_BYTES_MAX: usize = 8_192;
const PAYMENT_METHOD_KEYS: [&str; 2] = ["payment_methods", "supported_payment_methods"];
/// The transports of the specification.
const TRANSPORTS: &[&str] = &["rest", "mcp"];

pub(crate) const MARKERS: &[Marker] = &[
    strong(|c| {
        let name = c.object("protocol")?.get("name")?.as_str()?;
        name.eq_ignore_ascii_case("acp").then(|| "`protocol.name` is acp".to_owned())
    }),
    at_path(|c| c.agrees(&["/acp.json", "/acp"], &["protocol", "capabilities", "version", "acp_version"])),
];

findings! {
    shape ROOT("acp", "ACP discovery") {
        must("api_base_url", Kind::Url, "State the absolute base URL of the API."),
        must("capabilities", Kind::Object, "Publish `capabilities` with `services`."),
        may("transports", Kind::Texts, "List transports as strings."),
    }
    shape PROTOCOL("acp.protocol", "ACP discovery") {
        may("name", Kind::OneOf(&["acp"]), "State acp."),
        must("version", Kind::Text, "State the version of the protocol."),
    }
    rule FREEFORM: Should("acp.freeform", "ACP discovery")
        "the file has a nonstandard shape" => "Publish `protocol`, `api_base_url` and `capabilities.services`.";
    rule UNKNOWN_TRANSPORT: Should("acp.transports.unknown", "ACP discovery")
        "a transport is neither rest nor mcp" => "List rest, mcp or both.";
    rule NO_SERVICES: Should("acp.capabilities.services.missing", "ACP discovery")
        "no service is named" => "List the services that the API offers in `capabilities.services`.";
}

pub(crate) fn read(root: &Object<'_>, draft: &mut Draft<'_>) {
    draft.assess("ACP discovery", |code| code.starts_with("acp."));
    let Some(protocol) = root.object("protocol").filter(|protocol| protocol.has("name")) else {
        draft.dialect(root.text_of(&["acp_version", "version"]), Some("freeform"));
        draft.report_rule(&FREEFORM, String::new());
        let business = root.object("merchant").unwrap_or_else(|| root.clone());
        generic::read(root, draft);
        return header::describe(&business, draft);
    };
    draft.dialect(protocol.text("version"), None);
    draft.check(root, &ROOT);
    draft.check(&protocol, &PROTOCOL);
    check_transports(root, draft);
    header::describe(root, draft);
    let url = draft.url(root, "api_base_url");
    let mut interface = Interface::new(Protocol::Acp, url.clone());
    interface.version = protocol.string("version");
    interface.transport = root.texts("transports").first().map(|text| (*text).to_owned());
    draft.keep(interface);
    let Some(capabilities) = root.object("capabilities") else { return };
    if capabilities.texts("services").is_empty() {
        draft.report_rule(&NO_SERVICES, capabilities.pointer.clone());
    }
    for (index, service) in capabilities.texts("services").into_iter().take(ITEMS_MAX).enumerate() {
        let pointer = format!("{}/services/{index}", capabilities.pointer);
        let mut capability = draft.capability(CapabilityKind::Operation, service, "", pointer);
        capability.invocation.protocol = Some(Protocol::Acp);
        capability.invocation.url.clone_from(&url);
        draft.push(capability);
    }
    for key in PAYMENT_METHOD_KEYS {
        let listed = capabilities.list(key).unwrap_or_default();
        draft.keep_all(listed.iter().take(ITEMS_MAX).filter_map(method));
    }
    let is_other = |name: &str| name != "services" && !PAYMENT_METHOD_KEYS.contains(&name);
    let others = capabilities.map.iter().filter(|(name, _)| is_other(name)).take(ITEMS_MAX);
    let short = others.filter(|(_, value)| budget::bytes_of(value, FEATURE_BYTES_MAX) <= FEATURE_BYTES_MAX);
    draft.manifest.features.other.extend(short.map(|(name, value)| (name.clone(), value.clone())));
}

/// Reports transports that the specification does not define.
fn check_transports(root: &Object<'_>, draft: &mut Draft<'_>) {
    let listed = root.list("transports").unwrap_or_default().iter().take(ITEMS_MAX).enumerate();
    for (index, transport) in listed.filter_map(|(index, value)| Some((index, value.as_str()?))) {
        if !TRANSPORTS.contains(&transport) {
            let text = format!("\"{}\" is not a transport", text::capped(transport, 60));
            draft.report(&UNKNOWN_TRANSPORT, format!("{}/{index}", root.at("transports")), text);
        }
    }
}

fn method(value: &Value) -> Option<Payment> {
    match value {
        Value::String(scheme) => Some(Payment { scheme: Some(scheme.clone()), ..Payment::default() }),
        Value::Object(map) => {
            let scheme = map.get("type").and_then(Value::as_str).map(str::to_owned);
            Some(Payment { scheme, ..lenient::price(value).unwrap_or_default() })
        }
        _ => None,
    }
}

//! AIR agent.json: intents with prices, paid to an address of the publisher.
//!
//! Decides one action for each intent; an intent without an endpoint is known by name only. Prices and payment networks are
//! recorded and never acted upon.
//!
//! Follows `FransDevelopment/agent-json` 1.0 to 1.4 (March 2026).

use super::loose;
use crate::draft::{self, Draft};
use crate::model::{CapabilityKind, Payment, Severity};
use crate::object::Object;
use crate::rule::{Dialect, Kind, Rule, Shape, may, must};
use crate::schema;

/// Intents and networks of one manifest that are kept.
const NETWORKS_MAX: usize = 50;

pub(crate) const DIALECT: Dialect = Dialect {
    title: "AIR agent.json",
    shapes: &[&ROOT, &INTENT, &PRICE],
    rules: &[&ORIGIN_SCHEME, &DUPLICATE],
};

const ROOT: Shape = Shape {
    code: "air",
    spec: "agent.json 1.4 (AIR)",
    fields: &[
        must("version", Kind::OneOf(&["1.0", "1.1", "1.2", "1.3", "1.4"]), "State a published version."),
        must("origin", Kind::Text, "Name the domain that the manifest speaks for."),
        must("payout_address", Kind::Text, "Name the address that payments go to."),
        may("display_name", Kind::Text, "Publish the name in a string."),
        may("description", Kind::Text, "Publish the description in a string."),
        may("intents", Kind::List, "List intents as objects."),
        may("payments", Kind::Object, "Publish payment methods as an object."),
    ],
};
const INTENT: Shape = Shape {
    code: "air.intent",
    spec: "agent.json 1.4 (AIR)",
    fields: &[
        must(
            "name",
            Kind::Form(is_intent_name, "lower-case letters, digits and underscores"),
            "Use lower-case letters, digits and underscores.",
        ),
        must("description", Kind::Text, "Say what the intent does."),
        may("endpoint", Kind::Reference, "Name a path or an absolute URL."),
        may(
            "method",
            Kind::OneOf(&["GET", "POST", "PUT", "PATCH", "DELETE"]),
            "State an HTTP method in capitals.",
        ),
        may("parameters", Kind::Object, "Publish parameters as a map from name to descriptor."),
        may("returns", Kind::Object, "Describe the answer as an object."),
    ],
};
const PRICE: Shape = Shape {
    code: "air.price",
    spec: "agent.json 1.4 (AIR)",
    fields: &[
        must("amount", Kind::Number, "State the amount as a number."),
        must("currency", Kind::Text, "Name the currency."),
    ],
};
const ORIGIN_SCHEME: Rule = Rule {
    code: "air.origin.not_a_domain",
    severity: Severity::Must,
    spec: "agent.json 1.4 (AIR)",
    wrong: "`origin` is a bare domain, without scheme or path",
    fix: "Publish example.com, not https://example.com/.",
};
const DUPLICATE: Rule = Rule {
    code: "air.intent.name.duplicate",
    severity: Severity::Must,
    spec: "agent.json 1.4 (AIR)",
    wrong: "two intents have the same name",
    fix: "Give every intent a name of its own.",
};

/// Reads a manifest.
pub(crate) fn read(root: &Object<'_>, draft: &mut Draft<'_>) {
    draft.dialect(root.text("version"), None);
    draft.judge("agent.json 1.4 (AIR)", |code| code.starts_with("air."));
    draft.check(root, &ROOT);
    if root.text("origin").is_some_and(|origin| origin.contains('/')) {
        draft.report_plainly(&ORIGIN_SCHEME, root.at("origin"));
    }
    let manifest = &mut draft.manifest;
    manifest.name = draft::name(root.text_of(&["display_name", "origin"]));
    manifest.description = draft::description(root.text("description"));
    manifest.declared_origin = root.text("origin").map(str::to_owned);
    manifest.provider.identity =
        root.object("identity").and_then(|identity| Some(identity.text("did")?.to_owned()));
    read_payments(root, draft);
    let base = draft.manifest.declared_origin.clone().filter(|origin| !origin.contains('/'));
    let mut names = std::collections::BTreeSet::new();
    for intent in root.objects("intents") {
        draft.check(&intent, &INTENT);
        if intent.text("name").is_some_and(|name| !names.insert(name)) {
            draft.report_plainly(&DUPLICATE, intent.at("name"));
        }
        read_intent(&intent, base.as_deref(), draft);
    }
}

fn read_payments(root: &Object<'_>, draft: &mut Draft<'_>) {
    let address = root.text("payout_address").map(str::to_owned);
    let Some(payments) = root.object("payments") else {
        draft
            .manifest
            .payments
            .extend(address.map(|address| Payment { address: Some(address), ..Payment::default() }));
        return;
    };
    for (scheme, method) in payments.members() {
        let recipient = method.text("recipient").map(str::to_owned).or_else(|| address.clone());
        let base = Payment { scheme: Some(scheme.to_owned()), address: recipient, ..Payment::default() };
        let networks: Vec<Payment> = method
            .objects("networks")
            .take(NETWORKS_MAX)
            .map(|network| Payment {
                network: network.text("network").map(str::to_owned),
                asset: network.text("asset").map(str::to_owned),
                ..base.clone()
            })
            .collect();
        draft.manifest.payments.extend(if networks.is_empty() { vec![base] } else { networks });
    }
}

fn read_intent(intent: &Object<'_>, origin: Option<&str>, draft: &mut Draft<'_>) {
    let name = intent.text("name").unwrap_or_default();
    let mut capability = draft.capability(CapabilityKind::Action, name, "", intent.pointer.clone());
    capability.description = draft::description(intent.text("description"));
    if let Some(published) = intent.text("endpoint") {
        // Endpoints belong to the declared origin, which may be another host than the one that serves the file.
        let published = match origin {
            Some(origin) if published.starts_with('/') => format!("https://{origin}{published}"),
            _ => published.to_owned(),
        };
        let method = intent.text("method").unwrap_or("POST");
        loose::endpoint(&published, Some(method), &intent.at("endpoint"), &mut capability, draft);
    }
    let method = capability.invocation.method.as_deref();
    let parameters = intent.value("parameters");
    capability.parameters =
        parameters.and_then(|value| schema::loose(value, method, capability.invocation.endpoint()));
    capability.response = intent.value("returns").and_then(loose::response);
    if let Some(price) = intent.object("price") {
        draft.check(&price, &PRICE);
        capability.price = intent.value("price").and_then(loose::price);
    }
    draft.push(capability);
}

fn is_intent_name(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
}

//! AIR agent.json: intents with prices, paid to an address of the publisher.
//!
//! Reads each intent as one action; an intent without an endpoint has only a name. Prices and payment networks are recorded and never acted
//! upon.
//!
//! Follows `FransDevelopment/agent-json` 1.0 to 1.4 (March 2026).

use crate::budget;
use crate::draft::{self, Draft};
use crate::format::detect::candidate::{Marker, strong};
use crate::format::{endpoint, lenient};
use crate::model::{Capability, CapabilityKind, Payment};
use crate::object::Object;
use crate::rule::{Kind, findings, may, must};
use crate::schema;
use crate::text;
use crate::walk::List;

/// Maximum number of intents and networks of one manifest that are kept.
const NETWORKS_MAX: usize = 50;

pub(crate) const MARKERS: &[Marker] = &[strong(|c| {
    let paid = c.text("origin").is_some() && c.has("payout_address");
    paid.then(|| "`origin` beside `payout_address`".to_owned())
})];

findings! {
    shape ROOT("air", "agent.json 1.4 (AIR)") {
        must("version", Kind::OneOf(&["1.0", "1.1", "1.2", "1.3", "1.4"]), "State a published version."),
        must("origin", Kind::Text, "State the domain of the manifest."),
        must("payout_address", Kind::Text, "State the address that receives payments."),
        may("display_name", Kind::Text, "Publish the name in a string."),
        may("description", Kind::Text, "Publish the description in a string."),
        may("intents", Kind::List, "List intents as objects."),
        may("payments", Kind::Object, "Publish payment methods as an object."),
    }
    shape INTENT("air.intent", "agent.json 1.4 (AIR)") {
        must("name", Kind::Form(is_intent_name, "lower-case letters, digits and underscores"), "Use lower-case letters, digits and underscores."),
        must("description", Kind::Text, "Describe what the intent does."),
        may("endpoint", Kind::Reference, "State a path or an absolute URL."),
        may("method", Kind::OneOf(&["GET", "POST", "PUT", "PATCH", "DELETE"]), "State an HTTP method in capitals."),
        may("parameters", Kind::Object, "Publish parameters as a map from name to descriptor."),
        may("returns", Kind::Object, "Describe the answer as an object."),
    }
    shape PRICE("air.price", "agent.json 1.4 (AIR)") {
        must("amount", Kind::Number, "State the amount as a number."),
        must("currency", Kind::Text, "Name the currency."),
    }
    rule ORIGIN_SCHEME: Must("air.origin.not_a_domain", "agent.json 1.4 (AIR)")
        "`origin` is a bare domain, without scheme or path" => "Publish example.com, not https://example.com/.";
    rule DUPLICATE: Must("air.intent.name.duplicate", "agent.json 1.4 (AIR)")
        "two intents have the same name" => "Give every intent a unique name.";
}

pub(crate) fn read(root: &Object<'_>, draft: &mut Draft<'_>) {
    draft.dialect(root.text("version"), None);
    draft.assess("agent.json 1.4 (AIR)", |code| code.starts_with("air."));
    draft.check(root, &ROOT);
    if root.text("origin").is_some_and(|origin| origin.contains('/')) {
        draft.report_rule(&ORIGIN_SCHEME, root.at("origin"));
    }
    let manifest = &mut draft.manifest;
    manifest.name = draft::name(root.text_of(&["display_name", "origin"]));
    manifest.description = draft::description(root.text("description"));
    manifest.declared_origin = root.string("origin");
    manifest.provider.identity =
        root.object("identity").and_then(|identity| Some(identity.text("did")?.to_owned()));
    keep_bounty(root, "bounty", draft);
    read_payments(root, draft);
    let base = draft.manifest.declared_origin.clone().filter(|origin| !origin.contains('/'));
    draft.each(root, "intents", &List::of(&INTENT).unique("name", &DUPLICATE), |intent, draft| {
        read_intent(intent, base.as_deref(), draft);
    });
}

fn read_payments(root: &Object<'_>, draft: &mut Draft<'_>) {
    let address = root.string("payout_address");
    let Some(payments) = root.object("payments") else {
        draft
            .manifest
            .payments
            .extend(address.map(|address| Payment { address: Some(address), ..Payment::default() }));
        return;
    };
    for (scheme, method) in payments.members() {
        // The account of another payment protocol is not an address on the chain.
        let account = ["recipient", "lightning_address", "stripe_account", "account"];
        let recipient = method.string_of(&account).or_else(|| address.clone());
        let base = Payment {
            scheme: Some(scheme.to_owned()),
            network: method.string("network"),
            asset: method.string("asset"),
            address: recipient,
            ..Payment::default()
        };
        let networks: Vec<Payment> = method
            .objects("networks")
            .take(NETWORKS_MAX)
            .map(|network| Payment {
                network: network.string("network").or_else(|| base.network.clone()),
                asset: network.string("asset").or_else(|| base.asset.clone()),
                ..base.clone()
            })
            .collect();
        draft.keep_all(if networks.is_empty() { vec![base] } else { networks });
    }
}

fn read_intent(intent: &Object<'_>, origin: Option<&str>, draft: &mut Draft<'_>) {
    let mut capability = draft.begin(CapabilityKind::Action, intent, &["name"], &[]);
    if let Some(published) = intent.text("endpoint") {
        // Endpoints are relative to the declared origin, which may differ from the host that serves the file.
        let published = match origin {
            Some(origin) if published.starts_with('/') => format!("https://{origin}{published}"),
            _ => published.to_owned(),
        };
        let method = intent.text("method").unwrap_or("POST");
        endpoint::read(&published, Some(method), &intent.at("endpoint"), &mut capability, draft);
    }
    capability.parameters =
        intent.value("parameters").and_then(|value| schema::lenient(value, &capability.invocation));
    if capability.invocation.endpoint().is_none() {
        schema::drop_locations(&mut capability.parameters);
    }
    capability.response = intent.value("returns").and_then(lenient::response);
    if draft.checked(intent, "price", &PRICE).is_some() {
        capability.price = intent.value("price").and_then(lenient::price);
    }
    let methods = intent.object("payments");
    let mut methods = methods.iter().flat_map(Object::members);
    if capability.price.is_none() {
        let priced = methods.find_map(|(scheme, method)| {
            let terms = lenient::price_of_members(method.map).filter(|terms| terms.price.is_some())?;
            Some(Payment { scheme: Some(text::capped(scheme, draft::NAME_CHARS_MAX).to_owned()), ..terms })
        });
        capability.price = priced;
    }
    price_each_network(intent, &mut capability);
    keep_tickets(intent, &mut capability);
    keep_bounty(intent, &format!("bounty:{}", capability.native_id), draft);
    draft.push(capability);
}

/// Keeps the price on each network that the intent names, and the second price of a network if there is one.
fn price_each_network(intent: &Object<'_>, capability: &mut Capability) {
    let Some(price) = &mut capability.price else { return };
    let networks: Vec<&str> = intent.object("price").map(|price| price.texts("network")).unwrap_or_default();
    let on = |network: &str, price: &Payment| Payment {
        network: Some(text::capped(network, draft::NAME_CHARS_MAX).to_owned()),
        ..price.clone()
    };
    let mut prices: Vec<Payment> =
        networks.into_iter().take(NETWORKS_MAX).map(|network| on(network, price)).collect();
    let methods = intent.object("payments");
    let methods = methods.iter().flat_map(Object::members).map(|(_, method)| method);
    for method in methods.chain(intent.object("x402")) {
        for stated in method.objects("network_pricing").take(NETWORKS_MAX) {
            let amount = stated.value("direct_price").and_then(lenient::price).and_then(|found| found.price);
            let (Some(network), Some(amount)) = (stated.text("network"), amount) else { continue };
            let own = Payment { price: Some(amount), ..on(network, price) };
            match prices.iter_mut().find(|known| known.network == own.network) {
                Some(known) => *known = own,
                None => prices.push(own),
            }
        }
    }
    if let Some(first) = prices.first().filter(|first| first.price == price.price) {
        price.network.clone_from(&first.network);
    }
    capability.other_prices = lenient::other_prices(capability.price.as_ref(), prices);
}

/// Maximum number of bytes of the terms of one intent that are kept as published.
const TERMS_BYTES_MAX: usize = 4_096;

/// Keeps the payment terms of an intent as published, if tickets have a separate price.
fn keep_tickets(intent: &Object<'_>, capability: &mut Capability) {
    let Some(terms) = intent.object("payments") else { return };
    let sells_tickets = terms.members().any(|(_, method)| method.has("ticket_price"));
    let kept = intent.value("payments").filter(|_| sells_tickets);
    let kept = kept.filter(|terms| budget::bytes_of(terms, TERMS_BYTES_MAX) <= TERMS_BYTES_MAX);
    capability.published.extend(kept.map(|terms| ("payments".to_owned(), terms.clone())));
}

/// Keeps the amount that the publisher pays to agents for customers. It is never acted upon.
fn keep_bounty(object: &Object<'_>, name: &str, draft: &mut Draft<'_>) {
    let bounty = object.value("bounty").filter(|bounty| bounty.is_object());
    draft.manifest.features.other.extend(bounty.map(|bounty| (name.to_owned(), bounty.clone())));
}

fn is_intent_name(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
}

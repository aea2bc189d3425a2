//! Payment of the operations of an OpenAPI document: prices and protocols in extensions, responses with status 402, and the texts of
//! `info`.
//!
//! A 402 response alone does not mean that a call must be paid, because many services send it when a plan is exhausted. Together with a
//! price, in a document that names a payment scheme, or with a scheme in the operation itself, it does.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::payment_terms::{self, Descriptions, Terms};
use crate::auth;
use crate::draft::Draft;
use crate::format::{lenient, payment_words};
use crate::model::{AuthScheme, Capability, CapabilityAuth, Payment, Tristate};
use crate::text;

/// Maximum number of payment schemes of one document that are kept, and of protocols of one operation that are read.
const SCHEMES_MAX: usize = 8;
/// Maximum number of sentences of the description that are read, and maximum bytes of a sentence.
const SENTENCES_MAX: usize = 100;
const DESCRIPTION_BYTES_MAX: usize = 64 * 1_024;
/// Extensions that state the price of an operation.
const KEYS: &[&str] = &["x-payment-info", "x-payment", "x-x402", "x-price", "x-pricing"];

/// Reads prices in the extensions of payment protocols, where `method` is the payment method.
pub(super) fn price(operation: &Map<String, Value>) -> Option<Payment> {
    let (value, price) = KEYS.iter().find_map(|key| {
        let value = operation.get(*key)?;
        // `{"price": {"amount": "0.3", "currency": "USD"}, "protocols": [{"x402": {}}]}`
        let inner = value.get("price").filter(|price| price.is_object());
        Some((value, lenient::price(inner.unwrap_or(value))?))
    })?;
    let method = value.get("method").and_then(Value::as_str).map(str::to_owned);
    let protocol = || protocols(value).next().map(str::to_owned);
    Some(Payment { scheme: price.scheme.or(method).or_else(protocol), ..price })
}

/// The names of the payment protocols of an operation.
fn protocols(stated: &Value) -> impl Iterator<Item = &str> {
    let listed = stated.get("protocols").and_then(Value::as_array).into_iter().flatten().take(SCHEMES_MAX);
    listed.filter_map(|protocol| match protocol {
        Value::String(name) => Some(name.as_str()),
        Value::Object(map) => map.keys().next().map(String::as_str),
        _ => None,
    })
}

/// Adds the payments that `info` and the operations state, and marks the operations that need one.
pub(super) fn read(root: &Map<String, Value>, first: usize, draft: &mut Draft<'_>) {
    let mut found: Vec<Payment> = Vec::new();
    let described = root.get("info").and_then(|info| info.get("description")?.as_str());
    let described = described.filter(|text| text.len() <= DESCRIPTION_BYTES_MAX).unwrap_or_default();
    for sentence in described.split(['.', ';', '\n']).take(SENTENCES_MAX) {
        found.extend(payment_words::in_sentence(sentence));
    }
    let items = root.get("paths").and_then(Value::as_object).into_iter().flatten();
    let operations = items.flat_map(|(_, item)| item.as_object().into_iter().flatten());
    for stated in operations.filter_map(|(_, operation)| KEYS.iter().find_map(|key| operation.get(*key))) {
        for scheme in protocols(stated).filter(|name| is_scheme(name)) {
            found.push(Payment { scheme: Some(text::capped(scheme, 100).to_owned()), ..Payment::default() });
        }
        if found.len() > SCHEMES_MAX * SCHEMES_MAX {
            break;
        }
    }
    // The terms of one operation say nothing about the others.
    let names_scheme = found.iter().any(|payment| payment.scheme.as_deref().is_some_and(is_scheme));
    let terms = terms(root, first, draft);
    found.extend(
        terms
            .values()
            .take(SCHEMES_MAX)
            .map(|terms| Payment { scheme: Some(terms.scheme.clone()), ..Payment::default() }),
    );
    let (complete, names): (Vec<Payment>, Vec<Payment>) =
        found.into_iter().partition(|payment| !payment_words::is_only_scheme(payment));
    // If only one scheme is named, the assets belong to it.
    let only = names.first().filter(|only| names.iter().all(|name| name.scheme == only.scheme)).cloned();
    let complete = complete.into_iter().map(|payment| Payment {
        scheme: payment.scheme.clone().or_else(|| only.as_ref()?.scheme.clone()),
        ..payment
    });
    let mut kept: Vec<Payment> = Vec::new();
    for payment in complete.chain(names) {
        let repeats = |known: &Payment| {
            *known == payment || (payment_words::is_only_scheme(&payment) && known.scheme == payment.scheme)
        };
        if kept.len() < SCHEMES_MAX && !kept.iter().any(repeats) {
            kept.push(payment);
        }
    }
    draft.keep_all(kept);
    for (at, capability) in draft.manifest.capabilities.iter_mut().enumerate().skip(first) {
        mark(capability, names_scheme, terms.contains_key(&at), root);
    }
    payment_terms::keep_proofs(&terms, draft);
}

/// The terms of the operations that answer 402 and name a scheme, by the index of their capability.
fn terms(root: &Map<String, Value>, first: usize, draft: &Draft<'_>) -> BTreeMap<usize, Terms> {
    let items = root.get("paths").and_then(Value::as_object).into_iter().flatten();
    let mut operations = items.flat_map(|(_, item)| item.as_object().into_iter().flatten());
    let is_due =
        |operation: &Value| operation.get("responses").is_some_and(|stated| stated.get("402").is_some());
    if !operations.any(|(_, operation)| is_due(operation)) {
        return BTreeMap::new();
    }
    let capabilities = draft.manifest.capabilities.iter().enumerate().skip(first);
    let mut descriptions = Descriptions::default();
    let stated = capabilities.filter_map(|(at, capability)| {
        let operation = root_operation(root, &capability.pointer)?.as_object()?;
        Some((at, Terms::of(operation, capability, root, &mut descriptions)?))
    });
    stated.collect()
}

/// Marks an operation as paid if it must be paid and states no credentials.
fn mark(capability: &mut Capability, names_scheme: bool, has_terms: bool, root: &Map<String, Value>) {
    if capability.auth != CapabilityAuth::default() {
        return;
    }
    let price = capability.price.as_ref();
    let is_priced = price.and_then(|price| price.scheme.as_deref()).is_some_and(is_scheme);
    let is_due = || {
        let operation = root_operation(root, &capability.pointer);
        operation.and_then(|operation| operation.get("responses")?.get("402")).is_some()
    };
    if is_priced || has_terms || ((names_scheme || price.is_some()) && is_due()) {
        capability.auth.required = Tristate::Yes;
        capability.auth.schemes.push(AuthScheme::Payment);
    }
}

fn root_operation<'v>(root: &'v Map<String, Value>, pointer: &str) -> Option<&'v Value> {
    let mut parts = pointer.strip_prefix("/paths/")?.split('/');
    let (path, method) = (parts.next()?.replace("~1", "/").replace("~0", "~"), parts.next()?);
    root.get("paths")?.get(&path)?.get(method)
}

fn is_scheme(name: &str) -> bool {
    auth::scheme(name) == AuthScheme::Payment
}

//! The idempotency header of a call, if the document names one outside the parameters.

use serde_json::{Value, json};

use crate::draft;
use crate::model::Capability;
use crate::object::Object;

const FLAG_KEYS: &[&str] = &[
    "idempotent",
    "idempotencyKeySupported",
    "idempotency_key_supported",
    "idempotencySupported",
    "idempotency_supported",
];
const HEADER_KEYS: &[&str] =
    &["idempotencyKeyHeader", "idempotency_key_header", "idempotencyHeader", "idempotency_header"];

/// Reads whether a call may be repeated, and adds the header of its key to the parameters, which were read before.
pub(crate) fn read(call: &Object<'_>, capability: &mut Capability) {
    let stated = FLAG_KEYS.iter().find_map(|key| call.flag(key));
    let idempotency = &mut capability.idempotency;
    idempotency.supported = stated.or(idempotency.supported);
    let Some(header) = draft::name(call.text_of(HEADER_KEYS)).filter(|_| stated != Some(false)) else {
        return;
    };
    let described = json!({
        "type": "string", "x-in": "header",
        "description": "Idempotency key: repeat it when the same call is repeated.",
    });
    let parameters = capability.parameters.get_or_insert_with(|| json!({"type": "object", "properties": {}}));
    if let Some(properties) = parameters.get_mut("properties").and_then(Value::as_object_mut) {
        properties.entry(header.clone()).or_insert(described);
        idempotency.key_field = Some(header);
    }
}

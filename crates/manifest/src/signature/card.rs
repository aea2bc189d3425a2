//! The signed content of an A2A card: the card without `signatures` and without members that have their default value (A2A 1.0 §8.4.1).

use serde_json::{Map, Value};
use url::{ParseError, Url};

/// Members of the protocol's messages that are neither required nor optional: absent and default mean the same. Required
/// members of the same name are kept where they are required.
const DEFAULTED: [&str; 13] = [
    "bearerFormat",
    "examples",
    "extensions",
    "inputModes",
    "list",
    "oauth2MetadataUrl",
    "outputModes",
    "pkceRequired",
    "refreshUrl",
    "required",
    "schemes",
    "securityRequirements",
    "securitySchemes",
];
/// Members like those of [`DEFAULTED`], but only in an interface (`tenant`) or an extension (`uri`).
const TENANT: &str = "tenant";
const URI: &str = "uri";
const DESCRIPTION: &str = "description";
/// Members whose content is not a message of the protocol.
const FREE: [&str; 2] = ["params", "scopes"];

/// The payloads that a signature may cover: first without default values, as the specification requires; then as published, for signers
/// that keep default values; then without any empty value, for signers that remove them all, such as the official SDK.
pub(super) fn payloads(card: &Map<String, Value>) -> Vec<Vec<u8>> {
    let mut content = card.clone();
    content.shift_remove("signatures");
    let published = Value::Object(content);
    let mut stripped = published.clone();
    strip(&mut stripped, true);
    let mut without_empty = published.clone();
    remove_empty(&mut without_empty);
    let mut forms: Vec<Value> = Vec::new();
    for form in [stripped, published, without_empty] {
        if !forms.contains(&form) {
            forms.push(form);
        }
    }
    forms.iter().filter_map(|form| serde_json_canonicalizer::to_vec(form).ok()).collect()
}

/// Whether a card contains an address that is relative to its own: in a member `url` or one whose name ends with `Url`.
pub(super) fn has_relative_address(card: &Map<String, Value>) -> bool {
    card.iter().any(|(name, value)| match value {
        Value::String(text) => {
            let is_address = name == "url" || name.ends_with("Url");
            is_address && !text.is_empty() && Url::parse(text) == Err(ParseError::RelativeUrlWithoutBase)
        }
        Value::Object(members) => has_relative_address(members),
        Value::Array(items) => items.iter().filter_map(Value::as_object).any(has_relative_address),
        _ => false,
    })
}

/// Removes members with their default value. A card and a skill require `description`.
fn strip(value: &mut Value, requires_description: bool) {
    match value {
        Value::Object(members) => {
            members.retain(|name, value| !(is_default(value) && may_be_absent(name, requires_description)));
            for (name, value) in members.iter_mut().filter(|(name, _)| !FREE.contains(&name.as_str())) {
                strip(value, name == "skills");
            }
        }
        Value::Array(items) => {
            for item in items {
                strip(item, requires_description);
            }
        }
        _ => {}
    }
}

/// Removes null and empty texts, lists and objects, from the inside out, so that an object with only such members is also removed.
fn remove_empty(value: &mut Value) {
    let is_empty = |value: &Value| match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    };
    match value {
        Value::Object(members) => {
            members.values_mut().for_each(remove_empty);
            members.retain(|_, value| !is_empty(value));
        }
        Value::Array(items) => {
            items.iter_mut().for_each(remove_empty);
            items.retain(|value| !is_empty(value));
        }
        _ => {}
    }
}

fn may_be_absent(name: &str, requires_description: bool) -> bool {
    DEFAULTED.contains(&name)
        || [TENANT, URI].contains(&name)
        || (name == DESCRIPTION && !requires_description)
}

fn is_default(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::Bool(true) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// The example of A2A 1.0 §8.4.1.
    #[test]
    fn removes_defaults_as_the_specification_shows() {
        let card = json!({"name": "Example Agent", "description": "", "skills": [], "signatures": [{"protected": "x"}],
            "capabilities": {"streaming": false, "pushNotifications": false, "extensions": []}});
        let wanted = r#"{"capabilities":{"pushNotifications":false,"streaming":false},"description":"","name":"Example Agent","skills":[]}"#;
        let payloads = payloads(card.as_object().unwrap());
        assert_eq!(String::from_utf8(payloads[0].clone()).unwrap(), wanted);
        let published = r#"{"capabilities":{"extensions":[],"pushNotifications":false,"streaming":false},"description":"","name":"Example Agent","skills":[]}"#;
        assert_eq!(String::from_utf8(payloads[1].clone()).unwrap(), published);
    }

    /// The content that the signer of the official SDK (a2a-sdk 1.3.0) covers.
    #[test]
    fn one_payload_has_no_empty_values() {
        let card = json!({"name": "n", "capabilities": {}, "skills": [{"tags": [], "id": "s"}, {}],
            "x": {"params": {"list": [], "a": {"b": ""}}, "flag": false, "count": 0}, "signatures": []});
        let payloads = payloads(card.as_object().unwrap());
        let wanted = r#"{"name":"n","skills":[{"id":"s"}],"x":{"count":0,"flag":false}}"#;
        assert_eq!(
            payloads.last().map(|payload| String::from_utf8_lossy(payload).into_owned()).as_deref(),
            Some(wanted)
        );
    }

    #[test]
    fn stripping_keeps_required_members_and_free_form_values() {
        let mut stripped = json!({"description": "", "skills": [{"description": "", "tags": [], "examples": []}],
            "securitySchemes": {"a": {"mtlsSecurityScheme": {"description": ""}}},
            "capabilities": {"extensions": [{"uri": "x", "required": false, "params": {"list": []}}]}});
        strip(&mut stripped, true);
        let wanted = json!({"description": "", "skills": [{"description": "", "tags": []}],
            "securitySchemes": {"a": {"mtlsSecurityScheme": {}}},
            "capabilities": {"extensions": [{"uri": "x", "params": {"list": []}}]}});
        assert_eq!(stripped, wanted);
    }
}

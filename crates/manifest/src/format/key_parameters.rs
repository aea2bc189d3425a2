//! Parameters for the key of the caller, which are credentials: `api_key` with a text that says that it is an API key.
//!
//! A key that the call manages is not a credential.

use serde_json::{Map, Value};

use super::auth_sentences;
use super::credential_headers::CREDENTIAL_KEYWORD;
use crate::draft::{DESCRIPTION_CHARS_MAX, NAME_BYTES_MAX};
use crate::model::{Auth, AuthScheme, Capability};
use crate::text::{self, capped};

/// Maximum number of parameters of one call that are searched.
const PARAMETERS_MAX: usize = 200;
/// Words in texts of calls that manage keys.
const MANAGING: &[&str] = &[
    "revoke",
    "rotate",
    "delete",
    "remove",
    "verify",
    "validate",
    "inspect",
    "lookup",
    "regenerate",
    "renew",
    "whose",
];
/// Words in the names and paths of calls that manage keys.
const OF_KEYS: &[&str] =
    &["key", "keys", "apikey", "apikeys", "token", "tokens", "credential", "credentials", "revoke", "rotate"];
/// Names of parameters for the key of the caller.
const KEY_NAMES: &[&str] = &["apikey", "key", "xapikey"];

/// Whether a call manages keys, so that a key among its parameters may be the subject of the call.
pub(super) fn manages_keys(capability: &Capability) -> bool {
    let endpoint = capability.invocation.endpoint().unwrap_or_default();
    let path = endpoint.split('?').next().unwrap_or_default().rsplit("://").next().unwrap_or_default();
    let (_, path) = path.split_once('/').unwrap_or(("", ""));
    let is_of_keys = |word: &String| OF_KEYS.contains(&word.as_str());
    [path, capability.native_id.as_str()].iter().any(|name| text::words(name).iter().any(is_of_keys))
}

/// The required parameter for the key of the caller: it is called `apiKey`, `api_key` or `key`, and its text says that it is an API key. It
/// is marked in the schema.
pub(super) fn mark(capability: &mut Capability) -> Option<Auth> {
    let schema = capability.parameters.as_ref()?.as_object()?;
    let properties = schema.get("properties")?.as_object()?;
    let holds = |name: &&str| properties.get(*name).and_then(Value::as_object).is_some_and(holds_key);
    let required = schema.get("required")?.as_array()?.iter().filter_map(Value::as_str).take(PARAMETERS_MAX);
    let name = required.filter(|name| is_key_name(name)).find(holds)?.to_owned();
    if manages_keys(capability) {
        return None;
    }
    let properties = capability.parameters.as_mut()?.get_mut("properties")?;
    let property = properties.get_mut(&name)?.as_object_mut()?;
    property.insert(CREDENTIAL_KEYWORD.to_owned(), Value::from(AuthScheme::ApiKey.as_str()));
    let location = property.get("x-in").and_then(Value::as_str).map(str::to_owned);
    Some(Auth { location, name: Some(name), ..Auth::new(AuthScheme::ApiKey) })
}

fn is_key_name(name: &str) -> bool {
    let is_same = |known: &&str| {
        let plain = name.bytes().filter(u8::is_ascii_alphanumeric).map(|byte| byte.to_ascii_lowercase());
        plain.eq(known.bytes())
    };
    name.len() <= NAME_BYTES_MAX && KEY_NAMES.iter().any(is_same)
}

/// Whether the text of a parameter says that it is the caller's API key, and not the key that the call changes.
fn holds_key(property: &Map<String, Value>) -> bool {
    if property.get("default").is_some() || property.get("x-in").and_then(Value::as_str) == Some("path") {
        return false;
    }
    let Some(text) = ["description", "title"].iter().find_map(|key| property.get(*key)?.as_str()) else {
        return false;
    };
    let text = capped(text, DESCRIPTION_CHARS_MAX);
    let folded = text.to_ascii_lowercase();
    let Some(at) = ["api key", "api-key", "apikey"].iter().find_map(|name| folded.find(name)) else {
        return false;
    };
    let sentence = folded.split(". ").next().unwrap_or_default();
    let is_managed =
        sentence.split(|letter: char| !letter.is_alphanumeric()).any(|word| MANAGING.contains(&word));
    let names_optional = folded.contains("optional");
    !is_managed && !names_optional && !auth_sentences::is_of_another(text, at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_parameter_for_the_key_of_the_caller() {
        let holds = |description: &str| {
            let property = serde_json::json!({"type": "string", "description": description, "x-in": "query"});
            holds_key(property.as_object().unwrap())
        };
        for text in ["Your API key.", "Your API key for The Odds API.", "API-Key of the service"] {
            assert!(holds(text), "{text}");
        }
        for text in [
            "The API key to revoke",
            "API key to validate",
            "Your OpenAI API key",
            "Optional API key",
            "Key of the room",
            "",
        ] {
            assert!(!holds(text), "{text}");
        }
        for (name, is_known) in [
            ("apiKey", true),
            ("api_key", true),
            ("key", true),
            ("X-API-Key", true),
            ("room_key", false),
            ("keys", false),
        ] {
            assert_eq!(is_key_name(name), is_known, "{name}");
        }
    }
}

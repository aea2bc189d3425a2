//! Credentials in the header parameters of a call: `X-API-Key`, `Authorization`, `X-Shop-Token`.
//!
//! Decides by the name of the header, because specifications of APIs often describe such a header as a parameter and state no security
//! scheme. Headers of payments are read elsewhere.

use serde_json::{Map, Value};

use crate::draft::{NAME_BYTES_MAX, NAME_CHARS_MAX};
use crate::format::{auth_sentences, payment_header, request_headers};
use crate::model::{Auth, AuthScheme, Capability};
use crate::text;

/// Maximum number of parameters of one call that are searched.
const PARAMETERS_MAX: usize = 200;
/// The keyword of a parameter's schema that names the scheme of the credential in it.
pub(super) const CREDENTIAL_KEYWORD: &str = "x-credential";

/// Words in the names of headers that end like those of credentials and hold something else.
const OTHER_WORDS: &[&str] = &[
    "idempotency",
    "idempotent",
    "csrf",
    "xsrf",
    "cache",
    "surrogate",
    "sort",
    "partition",
    "routing",
    "page",
    "next",
    "cursor",
    "continuation",
    "sync",
    "resume",
    "upload",
    "device",
    "push",
    "request",
    "dedup",
    "deduplication",
    "webhook",
    "event",
    "message",
    "encryption",
    "customer",
    "public",
    "captcha",
    "recaptcha",
    "turnstile",
    "confirmation",
    "verification",
    "consent",
    "retry",
    "proxy",
];

/// A credential in a header, and whether the call requires this header.
#[derive(Debug, PartialEq)]
pub(super) struct HeaderCredential {
    pub(super) auth: Auth,
    pub(super) is_required: bool,
}

/// The header parameters of a call, with their published names.
pub(crate) fn headers(capability: &Capability) -> impl Iterator<Item = (&str, &Map<String, Value>)> {
    let properties = capability.parameters.as_ref().and_then(|schema| schema.get("properties")?.as_object());
    let objects = properties.into_iter().flatten().take(PARAMETERS_MAX);
    objects.filter_map(|(key, property)| {
        let property = property.as_object()?;
        let is_header = property.get("x-in").and_then(Value::as_str) == Some("header");
        let name = property.get("x-name").and_then(Value::as_str).unwrap_or(key);
        is_header.then_some((name, property))
    })
}

/// Whether a call requires a parameter, by its published name.
pub(crate) fn is_required(capability: &Capability, name: &str) -> bool {
    let required = capability.parameters.as_ref().and_then(|schema| schema.get("required")?.as_array());
    required.into_iter().flatten().take(PARAMETERS_MAX).any(|known| known.as_str() == Some(name))
}

/// The credentials in the header parameters of a call, which are marked in its schema.
pub(super) fn mark(capability: &mut Capability) -> Vec<HeaderCredential> {
    let named =
        headers(capability).filter_map(|(name, property)| Some((name.to_owned(), of(name, property)?)));
    let named: Vec<(String, Auth)> = named.collect();
    let mut found = Vec::with_capacity(named.len());
    for (name, auth) in named {
        let is_required = is_required(capability, &name);
        let properties = capability.parameters.as_mut().and_then(|schema| schema.get_mut("properties"));
        if let Some(Value::Object(property)) = properties.and_then(|properties| properties.get_mut(&name)) {
            property.insert(CREDENTIAL_KEYWORD.to_owned(), Value::from(auth.scheme.as_str()));
        }
        found.push(HeaderCredential { auth, is_required });
    }
    found
}

/// The credential in one header; `None` for other headers.
fn of(name: &str, property: &Map<String, Value>) -> Option<Auth> {
    if name.len() > NAME_BYTES_MAX || payment_header::is_proof(name) {
        return None;
    }
    if name.eq_ignore_ascii_case("authorization") {
        return Some(auth_sentences::in_header(authorization_scheme(property), name));
    }
    let words = text::words(name);
    let is_other = words.iter().any(|word| OTHER_WORDS.contains(&word.as_str()) || word == "payment");
    if is_other {
        return None;
    }
    match words.last().map(String::as_str) {
        Some("sig" | "signature") => Some(auth_sentences::in_header(AuthScheme::Other, name)),
        Some("apikey") => Some(auth_sentences::in_header(AuthScheme::ApiKey, name)),
        _ => {
            request_headers::is_credential(name).then(|| auth_sentences::in_header(AuthScheme::ApiKey, name))
        }
    }
}

/// The scheme of an `Authorization` header, as its description or its schema names it.
fn authorization_scheme(property: &Map<String, Value>) -> AuthScheme {
    let texts = ["description", "default", "pattern", "format"].iter().filter_map(|key| property.get(*key));
    let examples = property.get("examples").and_then(Value::as_array).into_iter().flatten().take(1);
    let mut texts = texts.chain(examples).filter_map(Value::as_str);
    let names_bearer = texts.any(|text| {
        text::words(text::capped(text, NAME_CHARS_MAX))
            .iter()
            .any(|word| matches!(word.as_str(), "bearer" | "jwt"))
    });
    if names_bearer { AuthScheme::Bearer } else { AuthScheme::Other }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn scheme(name: &str, description: &str) -> Option<AuthScheme> {
        let property = json!({"type": "string", "x-in": "header", "description": description});
        of(name, property.as_object().unwrap()).map(|auth| auth.scheme)
    }

    #[test]
    fn recognises_credentials_by_the_names_of_headers() {
        for name in ["X-API-Key", "api-key", "X-Shop-Token", "x-auth-token", "apikey"] {
            assert_eq!(scheme(name, ""), Some(AuthScheme::ApiKey), "{name}");
        }
        assert_eq!(scheme("Authorization", "Bearer token"), Some(AuthScheme::Bearer));
        assert_eq!(scheme("authorization", "The credentials"), Some(AuthScheme::Other));
        assert_eq!(scheme("x-shop-sig", ""), Some(AuthScheme::Other));
        for name in [
            "Idempotency-Key",
            "X-CSRF-Token",
            "X-Request-Id",
            "Accept",
            "X-Page-Token",
            "X-PAYMENT",
            "payment-signature",
            "X-Webhook-Signature",
        ] {
            assert_eq!(scheme(name, ""), None, "{name}");
        }
    }
}

//! Lenient readers of parts that many formats share: credentials, prices, limits, responses.
//!
//! Reads parts without a specification: a scheme as a word or an object, a rate as text or numbers. Unreadable parts are
//! absent, without a finding.

use serde_json::{Map, Value};

use crate::auth;
use crate::model::{Auth, AuthScheme, CapabilityAuth, Invocation, Payment, RateLimit, Tristate};
use crate::object::{self, Object};
use crate::quantity;
use crate::schema;

/// The schema of a response: as published, or made from a map of names to types.
pub(crate) fn response(value: &Value) -> Option<Value> {
    let map = value.as_object().filter(|map| !map.is_empty())?;
    if schema::is_schema(map) || map.get("type").is_some_and(Value::is_string) {
        return Some(value.clone());
    }
    let mut made = schema::lenient(value, &Invocation::default())?;
    for member in
        made.get_mut("properties").and_then(Value::as_object_mut).into_iter().flat_map(Map::values_mut)
    {
        if let Some(member) = member.as_object_mut() {
            member.remove("x-in");
        }
    }
    Some(made)
}

/// Credentials of any shape: a word, an object with `type`, a list of either, an object with `schemes`.
pub(crate) fn auth(value: &Value) -> Vec<Auth> {
    let mut found: Vec<Auth> = Vec::new();
    match value {
        Value::String(word) => found.push(auth_of_word(word)),
        Value::Bool(false) => found.push(Auth::new(AuthScheme::None)),
        Value::Array(list) => list.iter().for_each(|item| found.extend(auth(item))),
        Value::Object(map) => {
            let object = Object { map, pointer: String::new() };
            let listed = ["schemes", "methods", "types", "supported"].iter().find_map(|key| map.get(*key));
            if let Some(listed) = listed.filter(|listed| listed.is_array()) {
                found = auth(listed);
            } else if let Some(word) = object.text_of(&["type", "scheme", "method", "auth_type", "authType"])
            {
                found.push(auth_of_word(word));
            } else if object.flag("required") == Some(false) {
                found.push(Auth::new(AuthScheme::None));
            }
            if let [single] = found.as_mut_slice() {
                read_details(single, &object);
            }
        }
        _ => {}
    }
    found.dedup_by(|a, b| a.scheme == b.scheme && a.declared == b.declared);
    found
}

fn read_details(auth: &mut Auth, object: &Object<'_>) {
    let url = |keys: &[&str]| object.text_of(keys).filter(|text| text.contains("://")).map(str::to_owned);
    auth.location = object.string_of(&["in", "location"]);
    auth.name = object.string_of(&["header", "name", "header_name", "headerName", "parameter"]);
    if object.has("header") {
        auth.location = Some("header".to_owned());
    }
    auth.token_url = url(&["token_url", "tokenUrl", "token_endpoint"]);
    auth.authorize_url = url(&[
        "authorize_url",
        "authorizationUrl",
        "authorization_url",
        "authorization_endpoint",
        "client_url",
    ]);
    auth.registration_url =
        url(&["registration_url", "registrationUrl", "register_url", "registration_endpoint"]);
    auth.docs_url = url(&["docs_url", "docs", "documentation", "documentation_url", "instructions_url"]);
    for scope in object.texts("scopes") {
        auth.scopes.insert(scope.to_owned(), String::new());
    }
    for (scope, description) in object.object("scopes").into_iter().flat_map(|scopes| scopes.map) {
        auth.scopes.insert(scope.clone(), description.as_str().unwrap_or_default().to_owned());
    }
}

fn auth_of_word(word: &str) -> Auth {
    let scheme = auth::scheme(word);
    let mut auth = Auth::new(scheme);
    if scheme == AuthScheme::Other {
        auth.declared = Some(word.trim().to_owned());
    }
    auth
}

/// Whether credentials are needed, as their object states beside the schemes.
pub(crate) fn auth_required(value: &Value) -> Option<bool> {
    let flag = |key: &str| value.get(key)?.as_bool();
    flag("required").or_else(|| flag("optional").map(|optional| !optional))
}

/// Whether credentials are needed, by the schemes that apply.
pub(crate) fn required_by(auth: &[Auth]) -> CapabilityAuth {
    let mut schemes: Vec<AuthScheme> = Vec::new();
    for auth in auth {
        if !schemes.contains(&auth.scheme) {
            schemes.push(auth.scheme);
        }
    }
    let required = match schemes.as_slice() {
        [] => Tristate::Unknown,
        schemes if schemes.contains(&AuthScheme::None) => Tristate::No,
        _ => Tristate::Yes,
    };
    let scopes = auth.iter().flat_map(|auth| auth.scopes.keys().cloned()).collect();
    CapabilityAuth { required, schemes, scopes, ..CapabilityAuth::default() }
}

/// A rate limit as text, as a number of requests a minute, or as an object.
pub(crate) fn rate_limit(value: &Value) -> Option<RateLimit> {
    match value {
        Value::String(text) => Some(quantity::rate(text)),
        Value::Object(map) => {
            let object = Object { map, pointer: String::new() };
            let minute =
                ["requests_per_minute", "requestsPerMinute", "rpm", "per_minute", "max_requests_per_minute"]
                    .iter()
                    .find_map(|key| object.whole(key));
            if let Some(requests) = minute {
                return Some(RateLimit::per_minute(requests));
            }
            if let Some(text) = object.text("requests").filter(|text| text.contains('/')) {
                return Some(quantity::rate(text));
            }
            let requests = object.whole("requests").or_else(|| object.whole("limit"))?;
            let window_s = object
                .text_of(&["window", "per", "period", "interval"])
                .and_then(|window| quantity::rate(&format!("1/{window}")).window_s)
                .or_else(|| object.whole("window_s").or_else(|| object.whole("window_seconds")));
            Some(RateLimit { requests: Some(requests), window_s, ..RateLimit::default() })
        }
        number => object::whole(number).map(RateLimit::per_minute),
    }
}

/// A price as text, as a number, or as an object with amount and currency.
pub(crate) fn price(value: &Value) -> Option<Payment> {
    let mut payment = Payment::default();
    match value {
        Value::String(text) if !text.trim().is_empty() => payment.price = Some(text.trim().to_owned()),
        Value::Number(number) => payment.price = Some(number.to_string()),
        Value::Object(map) => {
            let text = |keys: &[&str]| keys.iter().find_map(|key| scalar(map.get(*key)?));
            payment.price = text(&[
                "price",
                "amount",
                "amount_usd",
                "amountUsd",
                "price_usd",
                "priceUsd",
                "maxAmountRequired",
                "usd",
                "cost",
            ]);
            payment.asset = text(&["asset", "currency", "token", "symbol"]);
            payment.network = text(&["network", "chain"]);
            payment.scheme = text(&["scheme", "protocol", "model"]);
            payment.address = text(&["payTo", "pay_to", "recipient", "address", "wallet", "payout_address"]);
        }
        _ => {}
    }
    (payment != Payment::default()).then_some(payment)
}

fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) if !text.trim().is_empty() => Some(text.trim().to_owned()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn reads_credentials_from_words_lists_and_objects() {
        let schemes = |value: Value| auth(&value).iter().map(|auth| auth.scheme).collect::<Vec<_>>();
        assert_eq!(schemes(json!("none")), [AuthScheme::None]);
        assert_eq!(
            schemes(json!({"schemes": ["Bearer", "ApiKey"]})),
            [AuthScheme::Bearer, AuthScheme::ApiKey]
        );
        assert_eq!(schemes(json!({"type": "public"})), [AuthScheme::None]);
        assert_eq!(schemes(json!({"required": false})), [AuthScheme::None]);
        assert_eq!(schemes(json!(null)), []);
        let key = auth(&json!({"type": "api_key", "header": "X-Key", "docs": "https://a.example/d"}));
        assert_eq!(key[0].name.as_deref(), Some("X-Key"));
        assert_eq!(key[0].location.as_deref(), Some("header"));
        assert_eq!(key[0].docs_url.as_deref(), Some("https://a.example/d"));
    }

    #[test]
    fn reads_rates_prices_and_responses_of_every_shape() {
        for (published, requests, window_s) in [
            (json!("60/minute"), Some(60), Some(60)),
            (json!(30), Some(30), Some(60)),
            (json!({"requests": 10, "window": "hour"}), Some(10), Some(3_600)),
            (json!({"requests": "60/minute"}), Some(60), Some(60)),
            (json!({"requests_per_minute": 5}), Some(5), Some(60)),
        ] {
            let rate = rate_limit(&published).unwrap();
            assert_eq!((rate.requests, rate.window_s), (requests, window_s), "{published}");
        }
        assert_eq!(price(&json!("$0.01")).unwrap().price.as_deref(), Some("$0.01"));
        let paid = price(&json!({"amount": 0.5, "currency": "USD"})).unwrap();
        assert_eq!((paid.price.as_deref(), paid.asset.as_deref()), (Some("0.5"), Some("USD")));
        assert_eq!(price(&json!({})), None);
        let answer = response(&json!({"valid": "boolean"}));
        assert_eq!(answer, Some(json!({"type": "object", "properties": {"valid": {"type": "boolean"}}})));
    }
}

//! Lenient readers of parts that many formats share: credentials, prices, limits, responses.
//!
//! Reads parts without a specification: a scheme as a word or an object, a rate as text or numbers. Unreadable parts are
//! absent, without a finding.

mod auth;
mod price;

use serde_json::{Map, Value};

use crate::model::{Invocation, RateLimit};
use crate::object::{self, Object};
use crate::quantity;
use crate::schema;
pub(crate) use auth::{auth, auth_required, is_partly_open, required_by, resolve};
pub(crate) use price::{price, price_of};

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

/// A rate with words after its unit: "60 requests per minute per address".
fn rate_in_words(text: &str) -> RateLimit {
    let whole = quantity::rate(text);
    let parts = text.split_once('/').or_else(|| text.split_once(" per "));
    let shortened = parts.map(|(count, rest)| {
        let unit = rest.split([' ', ',', ';', '(']).next().unwrap_or_default();
        quantity::rate(&[count, unit].join("/"))
    });
    match shortened.filter(|rate| whole.requests.is_none() && rate.requests.is_some()) {
        Some(rate) => RateLimit { text: whole.text, ..rate },
        None => whole,
    }
}

/// Members with a number of requests, and the seconds in which they are allowed.
const WINDOWS: &[(&[&str], u64)] = &[
    (&["requests_per_second", "requestsPerSecond", "rps", "per_second", "perSecond"], 1),
    (
        &[
            "requests_per_minute",
            "requestsPerMinute",
            "rpm",
            "per_minute",
            "perMinute",
            "max_requests_per_minute",
        ],
        60,
    ),
    (&["requests_per_hour", "requestsPerHour", "per_hour", "perHour"], 3_600),
    (&["requests_per_day", "requestsPerDay", "per_day", "perDay"], 86_400),
];

/// A rate limit as text, as a number of requests a minute, or as an object.
pub(crate) fn rate_limit(value: &Value) -> Option<RateLimit> {
    match value {
        Value::String(text) => Some(rate_in_words(text)),
        Value::Object(map) => {
            let object = Object { map, pointer: String::new() };
            let burst = ["burst", "burst_limit", "burstLimit"].iter().find_map(|key| object.whole(key));
            for (keys, window_s) in WINDOWS {
                if let Some(requests) = keys.iter().find_map(|key| object.whole(key)) {
                    let (requests, window_s) = (Some(requests), Some(*window_s));
                    return Some(RateLimit { requests, window_s, burst, ..RateLimit::default() });
                }
            }
            let text =
                object.text("requests").filter(|text| text.contains('/')).or_else(|| object.text("default"));
            if let Some(text) = text {
                return Some(rate_in_words(text));
            }
            let requests = object.whole("requests").or_else(|| object.whole("limit"))?;
            let window_s = object
                .text_of(&["window", "per", "period", "interval"])
                .and_then(|window| quantity::rate(&format!("1/{window}")).window_s)
                .or_else(|| object.whole("window_s").or_else(|| object.whole("window_seconds")));
            Some(RateLimit { requests: Some(requests), window_s, burst, ..RateLimit::default() })
        }
        number => object::whole(number).map(RateLimit::per_minute),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::AuthScheme;
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

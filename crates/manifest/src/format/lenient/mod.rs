//! Lenient parsers of parts that many formats share: credentials, prices, limits, responses.
//!
//! Reads parts that no specification defines: a scheme as a word or an object, a rate as text or numbers. Unreadable parts are omitted
//! without a finding.

mod auth;
mod auth_words;
mod open_phrases;
mod openness;
mod optional_words;
mod price;
mod price_terms;
mod registration;

use serde_json::{Map, Value};

use crate::model::{Invocation, RateLimit};
use crate::object::{self, Members, Object};
use crate::quantity;
use crate::schema;
use crate::text;
pub(crate) use auth::{
    AUTH_KEYS, LISTED_SCHEMES, address_of, auth, auth_required, exempt_call, header_in, headers_in,
    is_scheme, names_scheme, read_own_auth, required_by, resolve, scopes, stated,
};
pub(crate) use auth_words::{auth_in_words, by_effect, names_payment};
pub(crate) use open_phrases::is_open_clause;
pub(crate) use openness::{is_about_tier, is_partly_open, says_call_is_open, says_open};
pub(crate) use optional_words::{Optional, optional_in};
pub(crate) use price::{
    is_currency, names_amount_of_call, other_prices, price, price_of_members, prices_in_text, read_prices,
};
pub(crate) use price_terms::is_model;
pub(crate) use registration::{describe_auth, registration_in, registration_of};

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

/// A rate with words around it: "Up to 60 requests per minute per address".
fn rate_in_words(text: &str) -> RateLimit {
    let whole = quantity::rate(text);
    let parts = text.split_once('/').or_else(|| text.split_once(" per "));
    let shortened = parts.map(|(count, rest)| {
        let mut words = rest.split([' ', ',', ';', '(']).filter(|word| !word.is_empty());
        let first = words.next().unwrap_or_default();
        let is_number = first.bytes().all(|byte| byte.is_ascii_digit());
        let unit =
            if is_number { [first, words.next().unwrap_or_default()].join(" ") } else { first.to_owned() };
        let count = count.trim_start_matches(|letter: char| !letter.is_ascii_digit());
        quantity::rate(&[count, unit.trim_end_matches('.')].join("/"))
    });
    // `$99/month` is a price.
    let is_price = text.contains(['$', '€', '£', '¥']);
    match shortened.filter(|rate| whole.requests.is_none() && rate.requests.is_some() && !is_price) {
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
    (&["requests_per_day", "requestsPerDay", "per_day", "perDay", "daily", "rpd"], 86_400),
    (&["requests_per_month", "requestsPerMonth", "per_month", "perMonth", "monthly"], 2_592_000),
];
/// Callers and plans whose limit applies to everybody, the most general first.
const GENERAL_LIMITS: &[&str] =
    &["default", "global", "anonymous", "unauthenticated", "public", "free", "free_tier", "freeTier"];
/// Whether a limit of this name applies to everybody.
pub(crate) fn is_general_limit(name: &str) -> bool {
    GENERAL_LIMITS.contains(&name)
}

/// Nesting of limits by caller or plan.
const LIMITS_NESTING_MAX: usize = 2;

/// A rate limit as text, as a number of requests a minute, as an object, or by caller or plan.
pub(crate) fn rate_limit(value: &Value) -> Option<RateLimit> {
    match value {
        Value::String(text) => Some(rate_in_words(text)),
        Value::Object(map) => rate_limit_of_members(map),
        Value::Array(list) => list.first().filter(|first| first.is_object()).and_then(rate_limit),
        number => object::whole(number).map(RateLimit::per_minute),
    }
}

/// A rate limit as the members of an object, or by caller or plan.
pub(crate) fn rate_limit_of_members(map: &Map<String, Value>) -> Option<RateLimit> {
    let stated = rate_of(&Object::root(map));
    let is_read = stated.as_ref().is_some_and(|limit| limit.requests.is_some());
    if is_read { stated } else { rate_by_plan(map, 0).or(stated) }
}

/// The counts of a limit that has several windows, as published: `{"requests_per_minute": 60, "requests_per_hour": 1000}`. The model has
/// room for one.
pub(crate) fn rates_of(limit: &Value) -> Option<Value> {
    let map = limit.as_object()?;
    let is_count = |(name, count): &(&String, &Value)| {
        count.is_u64()
            && WINDOWS
                .iter()
                .any(|(keys, window)| keys.contains(&name.as_str()) || is_count_per(name, *window))
    };
    let counts: Map<String, Value> = map
        .iter()
        .filter(is_count)
        .take(WINDOWS.len())
        .map(|(name, count)| (name.clone(), count.clone()))
        .collect();
    (counts.len() > 1).then_some(Value::Object(counts))
}

/// The rate that the members of one object state.
fn rate_of(object: &Object<'_>) -> Option<RateLimit> {
    let burst = ["burst", "burst_limit", "burstLimit"].iter().find_map(|key| object.whole(key));
    for (keys, window_s) in WINDOWS {
        let by_word = || {
            object
                .map
                .iter()
                .find(|(name, _)| is_count_per(name, *window_s))
                .and_then(|(_, count)| object::whole(count))
        };
        if let Some(requests) = keys.iter().find_map(|key| object.whole(key)).or_else(by_word) {
            let (requests, window_s) = (Some(requests), Some(*window_s));
            return Some(RateLimit { requests, window_s, burst, ..RateLimit::default() });
        }
    }
    let mut texts = ["requests", "rate", "limit"].iter().filter_map(|key| object.text(key));
    let text = texts.find(|text| is_rate(text)).or_else(|| object.text("default"));
    if let Some(text) = text {
        return Some(rate_in_words(text));
    }
    let requests =
        ["requests", "limit", "max_requests", "maxRequests"].iter().find_map(|key| object.whole(key))?;
    let window_s = object
        .text_of(&["window", "per", "period", "interval", "unit", "duration"])
        .and_then(|window| quantity::rate(&format!("1/{window}")).window_s)
        .or_else(|| ["window_s", "window_seconds", "windowSeconds"].iter().find_map(|key| object.whole(key)));
    Some(RateLimit { requests: Some(requests), window_s, burst, ..RateLimit::default() })
}

/// Whether a name is the name of a limit per time window: `calls_per_day`, `queriesPerMonth`.
fn is_count_per(name: &str, window_s: u64) -> bool {
    // Few names contain "per", so check for it first.
    if !name.as_bytes().windows(2).any(|pair| matches!(pair, [b'p' | b'P', b'e' | b'E'])) {
        return false;
    }
    let words = text::words(name);
    matches!(words.as_slice(), [.., what, per, unit]
        if per == "per"
            && matches!(what.as_str(), "calls" | "queries" | "requests" | "invocations" | "searches" | "messages")
            && quantity::rate(&format!("1/{unit}")).window_s == Some(window_s))
}

/// The limit of the most general of several callers or plans, or else of the first.
fn rate_by_plan(map: &Map<String, Value>, depth: usize) -> Option<RateLimit> {
    if depth >= LIMITS_NESTING_MAX {
        return None;
    }
    let members = Members::of(map);
    let general: Vec<&Value> = GENERAL_LIMITS.iter().filter_map(|key| members.get(key)).collect();
    // The limit of a paid plan does not apply to everybody.
    let others = map.values().take(PLANS_MAX).filter(|_| general.is_empty());
    general.iter().copied().chain(others).find_map(|inner| match inner {
        Value::String(text) => Some(rate_in_words(text)).filter(|limit| limit.requests.is_some()),
        Value::Object(inner_map) => {
            let object = Object::root(inner_map);
            let limits = ["rate_limit", "rateLimit", "rate"].iter().find_map(|key| object.text(key));
            rate_of(&object)
                .or_else(|| limits.map(rate_in_words))
                .filter(|limit| limit.requests.is_some() && limit.window_s.is_some())
                .or_else(|| rate_by_plan(inner_map, depth + 1))
        }
        _ => None,
    })
}

/// Maximum number of plans of one block of limits that are read.
const PLANS_MAX: usize = 20;

fn is_rate(text: &str) -> bool {
    rate_in_words(text).requests.is_some()
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
            (json!("Max 100 requests per 15 minutes per address."), Some(100), Some(900)),
            (json!({"anonymous": "100 requests/minute", "paid": "by plan"}), Some(100), Some(60)),
            (json!("$99/month"), None, None),
            (
                json!({"pro": {"requests_per_day": 500}, "free": {"requests_per_day": 50}}),
                Some(50),
                Some(86_400),
            ),
        ] {
            let rate = rate_limit(&published).unwrap();
            assert_eq!((rate.requests, rate.window_s), (requests, window_s), "{published}");
        }
        assert_eq!(price(&json!("$0.01")).unwrap().price.as_deref(), Some("$0.01"));
        let paid = price(&json!({"amount": 0.5, "currency": "USD"})).unwrap();
        assert_eq!((paid.price.as_deref(), paid.asset.as_deref()), (Some("0.5"), Some("USD")));
        for (amount, decimals, expected) in
            [("1000", 6, "0.001"), ("5000000", 6, "5"), ("0.5", 6, "0.5"), ("7", 0, "7")]
        {
            let stated = price(&json!({"amount": amount, "asset": "USDC", "decimals": decimals})).unwrap();
            assert_eq!(stated.price.as_deref(), Some(expected), "{amount}");
        }
        assert_eq!(price(&json!({})), None);
        let answer = response(&json!({"valid": "boolean"}));
        assert_eq!(answer, Some(json!({"type": "object", "properties": {"valid": {"type": "boolean"}}})));
    }
}

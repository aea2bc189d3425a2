//! The limits of plans by name, and the tools that a plan does not include: `"tiers": {"free": {"limits": "10 calls/day"}}`.

use serde_json::{Map, Value};

use crate::budget;
use crate::draft::Draft;
use crate::format::{header, lenient};
use crate::model::RateLimit;
use crate::object::Object;
use crate::text;

/// Maximum number of plans of one document that are read.
const PLANS_MAX: usize = 50;
/// Members of a plan that state its limit of calls, in words or numbers.
const LIMIT_KEYS: &[&str] = &["limits", "limit", "rate_limit", "rateLimit", "quota"];

/// Members of a plan with the tools that it does not include.
const BLOCKED_KEYS: &[&str] = &[
    "tools_blocked",
    "blocked_tools",
    "toolsBlocked",
    "blockedTools",
    "excluded_tools",
    "excludedTools",
    "gated_tools",
    "gatedTools",
    "locked_tools",
    "lockedTools",
    "restricted_tools",
    "restrictedTools",
];
/// Names of plans that need no credential.
const FREE_PLANS: &[&str] = &["free", "anonymous", "public", "guest"];
/// Members with plans.
const PLAN_KEYS: &[&str] = &["plans", "tiers", "pricing", "rate_limits", "rateLimits"];

/// Whether a member contains a limit for each plan: `dailyByPlan`, `limits_by_tier`.
fn is_map_by_plan(name: &str) -> bool {
    matches!(text::words(name).as_slice(), [.., by, what] if by == "by" && matches!(what.as_str(), "plan" | "tier"))
}

/// The limits of a map by plan, with the period in the name of the map: `"dailyByPlan": {"pro": 50}`.
fn limits_by_plan(name: &str, plans: &Map<String, Value>) -> Vec<(String, Value)> {
    let period = text::words(name).into_iter().find_map(|word| {
        Some(match word.as_str() {
            "minute" => "minute",
            "hourly" | "hour" => "hour",
            "daily" | "day" => "day",
            "monthly" | "month" => "month",
            _ => return None,
        })
    });
    let limit = |value: &Value| match (value, period) {
        (Value::Number(count), Some(period)) => Some(Value::from(format!("{count}/{period}"))),
        (Value::Number(_), None) => Some(value.clone()),
        (Value::String(words), _) => Some(Value::from(text::capped(words, 100))),
        _ => None,
    };
    let named = |(plan, value): (&String, &Value)| Some((text::capped(plan, 100).to_owned(), limit(value)?));
    plans.iter().take(PLANS_MAX).filter_map(named).collect()
}

/// Whether a value is a list of names that is kept as published.
fn is_short_list(value: &Value) -> bool {
    value.as_array().is_some_and(|list| !list.is_empty() && list.iter().all(Value::is_string))
        && budget::bytes_of(value, LIST_BYTES_MAX) <= LIST_BYTES_MAX
}

/// Maximum number of bytes of a list of names that is kept as published.
const LIST_BYTES_MAX: usize = 4_096;

/// Keeps the limits of several plans by name, besides the limit that applies to everybody, and the tools that a plan does not include.
pub(crate) fn keep(root: &Object<'_>, draft: &mut Draft<'_>) {
    let blocks = PLAN_KEYS.iter().filter_map(|key| root.object(key));
    let (mut limits, mut blocked, mut has_map) = (Map::new(), Map::new(), false);
    for (name, plan) in blocks.flat_map(|block| block.members().collect::<Vec<_>>()).take(PLANS_MAX) {
        let listed = plan.value_of(BLOCKED_KEYS).filter(|listed| is_short_list(listed));
        blocked.extend(listed.map(|listed| (text::capped(name, 100).to_owned(), listed.clone())));
        let stated = plan.value_of(LIMIT_KEYS).filter(|limit| limit.is_string() || limit.is_number());
        let counted = || lenient::rate_limit_of_members(plan.map).filter(|limit| limit.requests.is_some());
        let limit = stated.cloned().or_else(|| serde_json::to_value(counted()?).ok());
        limits.extend(limit.map(|limit| (text::capped(name, 100).to_owned(), limit)));
        if is_map_by_plan(name) {
            has_map = true;
            limits.extend(limits_by_plan(name, plan.map));
        }
    }
    let worded = ["pricing", "plans", "tiers"].iter().filter_map(|key| root.object(key));
    for (name, value) in worded.flat_map(|block| block.map).take(PLANS_MAX) {
        let limit = value.as_str().and_then(limit_in_words);
        if let Some(limit) = limit.filter(|_| !limits.contains_key(name)) {
            limits.insert(text::capped(name, 100).to_owned(), Value::from(text::capped(limit, 100)));
        }
    }
    if limits.len() > 1 || (has_map && !limits.is_empty()) {
        draft.manifest.features.other.insert("plan_limits".to_owned(), Value::Object(limits));
    }
    if !blocked.is_empty() {
        draft.manifest.features.other.insert("plan_blocked_tools".to_owned(), Value::Object(blocked));
    }
}

/// The rate limit that a block states for every caller. A limit of one of several plans is not: it applies to subscribers of this plan.
pub(crate) fn limit_of_all(holder: &Object<'_>) -> Option<RateLimit> {
    let is_of_plans = |plans: &&Value| {
        plans.as_object().is_some_and(|plans| plans.values().filter(|plan| plan.is_object()).nth(1).is_some())
    };
    let of_plans = ["tiers", "plans"].iter().find_map(|key| holder.value(key)).filter(is_of_plans);
    let stated = holder.value_of(header::LIMIT_KEYS)?;
    let is_of_all = of_plans.is_none_or(|plans| !std::ptr::eq(plans, stated));
    if is_of_all { lenient::rate_limit(stated) } else { None }
}

/// The limit of calls in the words about a plan: `10,000 calls/day` in `$149/mo — 10,000 calls/day`.
fn limit_in_words(words: &str) -> Option<&str> {
    let mut parts = words.split(['\u{2014}', ';']).flat_map(|part| part.split(", ")).map(str::trim);
    let is_limit = |part: &&str| {
        let is_counted = part.starts_with(|letter: char| letter.is_ascii_digit())
            || part.get(..9).is_some_and(|start| start.eq_ignore_ascii_case("unlimited"));
        let is_of_calls = ["request", "call", "quer"].iter().any(|word| part.contains(word));
        let is_timed = [
            "/day",
            "/month",
            "/mo",
            "/hour",
            "/min",
            "/s",
            "per day",
            "per month",
            "per hour",
            "per minute",
        ]
        .iter()
        .any(|period| part.contains(period));
        is_counted && is_of_calls && is_timed
    };
    parts.find(is_limit)
}

/// The tools that a plan without credentials excludes.
pub(super) fn excluded_from_free<'v>(root: &Object<'v>) -> impl Iterator<Item = &'v str> {
    let plans = PLAN_KEYS.iter().filter_map(|key| root.object(key));
    let free = plans.flat_map(|block| FREE_PLANS.iter().filter_map(move |name| block.object(name)));
    free.flat_map(|plan| BLOCKED_KEYS.iter().flat_map(move |key| plan.texts(key)))
}

//! The limits of plans by name, and the tools that a plan does not include: `"tiers": {"free": {"limits": "10 calls/day"}}`.

use serde_json::{Map, Value};

use crate::budget;
use crate::draft::Draft;
use crate::format::lenient;
use crate::object::Object;
use crate::text;

/// Maximum number of plans of one document that are read.
const PLANS_MAX: usize = 50;
/// Members of a plan that state its limit of calls, in words or numbers.
const LIMIT_KEYS: &[&str] = &["limits", "limit", "rate_limit", "rateLimit", "quota"];

/// Members of a plan with the tools that it does not include.
const BLOCKED_KEYS: &[&str] =
    &["tools_blocked", "blocked_tools", "toolsBlocked", "blockedTools", "excluded_tools", "excludedTools"];

/// Whether a value is a list of names that is kept as published.
fn is_short_list(value: &Value) -> bool {
    value.as_array().is_some_and(|list| !list.is_empty() && list.iter().all(Value::is_string))
        && budget::bytes_of(value, LIST_BYTES_MAX) <= LIST_BYTES_MAX
}

/// Maximum number of bytes of such a list.
const LIST_BYTES_MAX: usize = 4_096;

/// Keeps the limits of several plans by name, besides the limit that applies to everybody, and the tools that a plan does not include.
pub(crate) fn keep(root: &Object<'_>, draft: &mut Draft<'_>) {
    let blocks =
        ["plans", "tiers", "pricing", "rate_limits", "rateLimits"].iter().filter_map(|key| root.object(key));
    let (mut limits, mut blocked) = (Map::new(), Map::new());
    for (name, plan) in blocks.flat_map(|block| block.members().collect::<Vec<_>>()).take(PLANS_MAX) {
        let listed = plan.value_of(BLOCKED_KEYS).filter(|listed| is_short_list(listed));
        blocked.extend(listed.map(|listed| (text::capped(name, 100).to_owned(), listed.clone())));
        let stated = plan.value_of(LIMIT_KEYS).filter(|limit| limit.is_string() || limit.is_number());
        let counted = || lenient::rate_limit_of_members(plan.map).filter(|limit| limit.requests.is_some());
        let limit = stated.cloned().or_else(|| serde_json::to_value(counted()?).ok());
        limits.extend(limit.map(|limit| (text::capped(name, 100).to_owned(), limit)));
    }
    if limits.len() > 1 {
        draft.manifest.features.other.insert("plan_limits".to_owned(), Value::Object(limits));
    }
    if !blocked.is_empty() {
        draft.manifest.features.other.insert("plan_blocked_tools".to_owned(), Value::Object(blocked));
    }
}

//! Limits and prices that a document states in one block, by the name of the capability.

use std::collections::HashMap;

use serde_json::Value;

use crate::draft::Draft;
use crate::format::{header, lenient, payments};
use crate::object::Object;

/// Members with prices by the name of the capability.
const PRICE_KEYS: &[&str] = &["pricing", "prices", "price_list", "costs"];
/// Blocks one level down with the prices: `pricing.tools.search`.
const INNER_KEYS: &[&str] =
    &["tools", "skills", "endpoints", "capabilities", "actions", "operations", "per_call", "per_tool"];
/// Maximum number of members of one block that are read.
const NAMES_MAX: usize = 500;

/// Sets the limit and the price of capabilities that state none.
pub(crate) fn apply_by_name(root: &Object<'_>, draft: &mut Draft<'_>) {
    if draft.format().is_core() || draft.manifest.capabilities.is_empty() {
        return;
    }
    let paid: Vec<Object<'_>> = payments::blocks_of_schemes(root).map(|(_, block)| block).collect();
    let has_block = header::LIMIT_KEYS.iter().chain(PRICE_KEYS).any(|key| root.object(key).is_some())
        || paid.iter().any(|block| PRICE_KEYS.iter().any(|key| block.object(key).is_some()));
    if !has_block {
        return;
    }
    let positions: HashMap<String, usize> = draft.capability_positions();
    let limits = header::LIMIT_KEYS.iter().filter_map(|key| root.value(key));
    // A block with a limit for one call by name also contains limits of other calls by name, except under general names.
    let is_of_calls = |limit: &Value| {
        limit.as_object().is_some_and(|map| {
            map.len() <= NAMES_MAX
                && map.keys().any(|name| positions.contains_key(name))
                && map.iter().all(|(name, value)| !lenient::is_general_limit(name) && !value.is_number())
        })
    };
    // The limit of one call is not a limit of the service.
    if draft.manifest.rate_limit.is_some()
        && root.value_of(header::LIMIT_KEYS).is_some()
        && limits.clone().all(is_of_calls)
    {
        draft.manifest.rate_limit = None;
    }
    each_named(root, header::LIMIT_KEYS, |name, value| {
        let capability =
            positions.get(name).and_then(|position| draft.manifest.capabilities.get_mut(*position));
        if let Some(capability) = capability.filter(|capability| capability.rate_limit.is_none()) {
            capability.rate_limit = lenient::rate_limit(value);
        }
    });
    for holder in std::iter::once(root).chain(&paid) {
        each_named(holder, PRICE_KEYS, |name, value| {
            let capability =
                positions.get(name).and_then(|position| draft.manifest.capabilities.get_mut(*position));
            if let Some(capability) = capability.filter(|capability| capability.price.is_none()) {
                capability.price = lenient::price(value);
            }
        });
    }
}

/// Calls `show` with each member of the blocks, and of the blocks in them.
fn each_named<'v>(root: &Object<'v>, keys: &[&str], mut show: impl FnMut(&'v str, &'v Value)) {
    for block in keys.iter().filter_map(|key| root.object(key)) {
        let inner = INNER_KEYS.iter().filter_map(|key| block.object(key));
        for block in inner.chain(std::iter::once(block.clone())) {
            block.map.iter().take(NAMES_MAX).for_each(|(name, value)| show(name, value));
        }
    }
}

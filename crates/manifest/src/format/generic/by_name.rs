//! Limits and prices that a document states in one block, by the name of the capability.

use std::collections::HashMap;

use serde_json::Value;

use crate::draft::Draft;
use crate::format::{header, lenient, payments};
use crate::object::Object;

/// Members with prices by the name of the capability.
const PRICE_KEYS: &[&str] = &["pricing", "prices", "price_list", "costs"];
/// Blocks that contain the prices one level deeper: `pricing.tools.search`.
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
    // Whether a block contains only limits of single calls: at least one member has the name of a capability, no member is a number, and
    // none has a general name such as `default`.
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

/// Calls `visit` with each member of the blocks, and of the blocks inside them.
fn each_named<'v>(root: &Object<'v>, keys: &[&str], mut visit: impl FnMut(&'v str, &'v Value)) {
    for block in keys.iter().filter_map(|key| root.object(key)) {
        let inner = INNER_KEYS.iter().filter_map(|key| block.object(key));
        for block in inner.chain(std::iter::once(block.clone())) {
            block.map.iter().take(NAMES_MAX).for_each(|(name, value)| visit(name, value));
        }
    }
}

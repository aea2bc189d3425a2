//! Calls that the block of payment lists by name as free or as paid: `"payment": {"protocol": "x402", "free_tools": ["find_room"]}`.

use std::collections::HashSet;

use crate::auth;
use crate::draft::Draft;
use crate::model::{AuthScheme, Capability, CapabilityAuth, CapabilityKind, Cost, Payment, Tristate};
use crate::object::Object;

const BLOCKS: &[&str] = &["payment", "payments", "pricing", "x402"];
const FREE_KEYS: &[&str] = &[
    "free_tools",
    "freeTools",
    "free_actions",
    "freeActions",
    "free_operations",
    "free_calls",
    "free_capabilities",
];
const PAID_KEYS: &[&str] = &[
    "paid_tools",
    "paidTools",
    "premium_tools",
    "premiumTools",
    "paid_actions",
    "paidActions",
    "premium_actions",
    "paid_operations",
    "paid_calls",
    "paid_capabilities",
];
/// Maximum number of names in all lists of one document.
const NAMES_MAX: usize = 1_000;

/// Marks the listed calls. If a block names a scheme of payment and lists free calls, the other tools and operations require payment.
pub(crate) fn read(root: &Object<'_>, draft: &mut Draft<'_>) {
    let blocks: Vec<Object<'_>> = BLOCKS.iter().filter_map(|key| root.object(key)).collect();
    let named = |keys: &[&str]| -> HashSet<&str> {
        blocks.iter().flat_map(|block| keys.iter().flat_map(|key| block.texts(key))).take(NAMES_MAX).collect()
    };
    let (free, paid) = (named(FREE_KEYS), named(PAID_KEYS));
    if free.is_empty() && paid.is_empty() {
        return;
    }
    let names_scheme = |block: &Object<'_>| {
        let stated = block.text_of(&["protocol", "scheme", "standard", "type"]);
        block.pointer.ends_with("/x402")
            || stated.is_some_and(|word| auth::scheme(word) == AuthScheme::Payment)
    };
    let calls = &mut draft.manifest.capabilities;
    let is_listed = |call: &Capability, names: &HashSet<&str>| {
        names.contains(call.invocation.native.as_deref().unwrap_or(&call.native_id))
            || names.contains(call.native_id.as_str())
    };
    let pays_rest = blocks
        .iter()
        .any(|block| names_scheme(block) && FREE_KEYS.iter().any(|key| !block.texts(key).is_empty()))
        && calls.iter().any(|call| is_listed(call, &free));
    for call in calls.iter_mut() {
        if is_listed(call, &paid) || pays_rest && !is_listed(call, &free) && may_cost(call) {
            require_payment(call);
        } else if is_listed(call, &free) {
            mark_free(call);
        }
    }
}

/// Whether a call that no list names may have to be paid.
fn may_cost(call: &Capability) -> bool {
    matches!(call.kind, CapabilityKind::Tool | CapabilityKind::Operation)
        && call.price.as_ref().and_then(Payment::cost) != Some(Cost::Free)
}

fn require_payment(call: &mut Capability) {
    if call.auth == CapabilityAuth::default() {
        call.auth.required = Tristate::Yes;
        call.auth.schemes.push(AuthScheme::Payment);
    }
}

fn mark_free(call: &mut Capability) {
    let price =
        call.price.get_or_insert_with(|| Payment { price: Some("free".to_owned()), ..Payment::default() });
    if price.cost() == Some(Cost::Free) && call.auth == CapabilityAuth::default() {
        call.auth.required = Tristate::No;
    }
}

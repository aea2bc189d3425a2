//! The terms next to a price: how it is charged, and the unit of an amount that x402 requires.

use serde_json::Value;

use super::price::decimals_of;
use crate::draft::NAME_CHARS_MAX;
use crate::object::Members;
use crate::text;

/// Whether a word says how a price is charged. Other models are those of products.
pub(crate) fn is_model(word: &str) -> bool {
    const WORDS: &[&str] = &[
        "per",
        "pay",
        "payg",
        "subscription",
        "subscriptions",
        "freemium",
        "free",
        "tiered",
        "tiers",
        "usage",
        "metered",
        "flat",
        "fixed",
        "one",
        "onetime",
        "hourly",
        "monthly",
        "yearly",
        "annual",
        "credits",
        "prepaid",
        "custom",
        "paid",
        "commission",
        "dynamic",
        "negotiated",
        "donation",
        "hybrid",
        "mixed",
        "quote",
    ];
    text::words(text::capped(word, NAME_CHARS_MAX)).iter().any(|word| WORDS.contains(&word.as_str()))
}

/// Maximum number of bytes of the symbol of an asset whose smallest unit is known.
const SYMBOL_BYTES_MAX: usize = 8;
/// Contracts of USDC on the networks that x402 files name.
const USDC_CONTRACTS: &[&str] = &[
    "0x833589fcd6edb6e08f4c7c32d4f71b54bda02913",
    "0x036cbd53842c5426634e7929541ec2318f3dcf7e",
    "0xaf88d065e77c8cc2239327c5edb3a432268e5831",
    "0x3c499c542cef5e3811e1192ce70d8cc03d5c3359",
    "epjfwdd5aufqssqem2qn1xzybapc8g4weggkzwytdt1v",
];

/// The number of decimals of an amount that x402 states in the smallest unit of an asset: `maxAmountRequired`, or `amount` beside `payTo`
/// and the scheme `exact`. `None` for assets that are not known.
pub(super) fn decimals_of_requirement(members: &Members<'_>) -> Option<u64> {
    let has = |key: &str| members.get(key).is_some();
    let is_exact = || members.get("scheme").and_then(Value::as_str) == Some("exact");
    let is_atomic = has("maxAmountRequired") || (has("amount") && has("payTo") && is_exact());
    if !is_atomic || has("price") {
        return None;
    }
    let asset = members.get("asset").and_then(Value::as_str)?;
    if asset.len() <= SYMBOL_BYTES_MAX {
        return decimals_of(&asset.to_ascii_uppercase());
    }
    USDC_CONTRACTS.iter().any(|known| asset.eq_ignore_ascii_case(known)).then_some(6)
}

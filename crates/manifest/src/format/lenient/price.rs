//! Prices of any shape: texts, numbers, objects, members named for their currency.

use serde_json::Value;

use crate::model::Payment;
use crate::object::Object;
use crate::text;

/// Prices of one element that are looked at.
const ALTERNATIVES_MAX: usize = 20;

/// A price as text, as a number, or as an object with amount and currency.
pub(crate) fn price(value: &Value) -> Option<Payment> {
    let mut payment = Payment::default();
    match value {
        Value::String(text) if !text.trim().is_empty() => payment.price = Some(text.trim().to_owned()),
        Value::Number(number) => payment.price = Some(number.to_string()),
        Value::Array(range) => {
            if let [Value::Number(least), Value::Number(most)] = range.as_slice() {
                payment.price = Some(format!("{least}-{most}"));
            } else {
                // One price in each of several assets: the first that has an amount.
                let objects = range.iter().filter(|item| item.is_object()).take(ALTERNATIVES_MAX);
                return objects.filter_map(price).find(|payment| payment.price.is_some());
            }
        }
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
            payment.asset = text(&["asset", "currency", "token", "symbol", "default_asset"]);
            if payment.price.is_none()
                && let Some((price, asset)) =
                    map.iter().find_map(|(name, value)| price_of_member(name, value))
            {
                payment.price = Some(price);
                payment.asset = payment.asset.or(asset);
            }
            payment.network = text(&["network", "chain", "default_network"]);
            payment.scheme = text(&["scheme", "protocol", "standard", "model"]);
            payment.address = text(&[
                "payTo",
                "pay_to",
                "recipient",
                "address",
                "wallet",
                "payout_address",
                "merchant_address",
            ]);
        }
        _ => {}
    }
    (payment != Payment::default()).then_some(payment)
}

/// The price that an element states beside its description.
pub(crate) fn price_of(element: &Object<'_>) -> Option<Payment> {
    let keys = ["price", "cost", "pricing", "payment", "price_usd", "priceUsd"];
    let stated = keys.iter().find_map(|key| price(element.value(key)?));
    stated.or_else(|| {
        let (price, asset) =
            element.map.iter().find_map(|(name, value)| price_of_member(name, value)).unzip();
        let address = element.string_of(&["wallet", "wallet_address", "payTo", "pay_to"]);
        let payment = Payment { price, asset: asset.flatten(), address, ..Payment::default() };
        (payment != Payment::default()).then_some(payment)
    })
}

/// The price and the asset of a member such as `x-price-usdc`, `price_range_usd` or `fee_eur`.
fn price_of_member(name: &str, value: &Value) -> Option<(String, Option<String>)> {
    let mut words = text::words(name);
    let at = words.iter().position(|word| matches!(word.as_str(), "price" | "cost" | "fee"))?;
    let is_currency = |word: &String| CURRENCIES.contains(&word.as_str());
    let asset = words.split_off(at + 1).into_iter().find(is_currency).map(|word| word.to_ascii_uppercase());
    let price = scalar(value).or_else(|| price(value).filter(|_| value.is_array())?.price)?;
    (asset.is_some() || value.is_array()).then_some((price, asset))
}

/// Codes that name the asset of a price in the name of a member.
const CURRENCIES: &[&str] =
    &["usd", "usdc", "usdt", "eur", "gbp", "inr", "jpy", "rlusd", "sat", "sats", "btc", "eth", "sol", "xrp"];

fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) if !text.trim().is_empty() => Some(text.trim().to_owned()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

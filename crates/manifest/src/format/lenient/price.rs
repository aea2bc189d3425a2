//! Prices of any shape: texts, numbers, objects, members with the currency in their name.

use serde_json::{Map, Value};

use super::price_terms::{decimals_of_requirement, is_model};
use crate::auth;
use crate::draft::NAME_CHARS_MAX;
use crate::model::{AuthScheme, Capability, CapabilityAuth, Cost, Payment, Tristate};
use crate::object::{self, Members, Object};
use crate::text;

/// Maximum number of prices of one element that are read.
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
                // A price in several assets: the first one with an amount is used.
                let objects = range.iter().filter(|item| item.is_object()).take(ALTERNATIVES_MAX);
                return objects.filter_map(price).find(|payment| payment.price.is_some());
            }
        }
        Value::Object(map) => return price_of_members(map),
        _ => {}
    }
    (payment != Payment::default()).then_some(payment)
}

/// The price that the members of one object state.
pub(crate) fn price_of_members(map: &Map<String, Value>) -> Option<Payment> {
    Some(price_of_map(map)).filter(|payment| *payment != Payment::default())
}

const PRICE_KEYS: &[&str] = &[
    "price",
    "amount",
    "amount_usd",
    "amountUsd",
    "price_usd",
    "priceUsd",
    "maxAmountRequired",
    "usd",
    "cost",
    "priceRange",
    "price_range",
    "ticket_price",
];
const ASSET_KEYS: &[&str] = &[
    "asset",
    "currency",
    "token",
    "symbol",
    "default_asset",
    "payment_asset",
    "payment_currency",
    "priceCurrency",
    "price_currency",
];
const ADDRESS_KEYS: &[&str] = &[
    "payTo",
    "pay_to",
    "recipient",
    "address",
    "wallet",
    "payout_address",
    "merchant_address",
    "billing_wallet",
    "wallet_address",
    "walletAddress",
    "payment_address",
    "paymentAddress",
    "receiving_address",
];

fn is_payment(word: &str) -> bool {
    auth::scheme(word) == AuthScheme::Payment
}

/// The price, asset, network, scheme and account that the members of one object state.
fn price_of_map(map: &Map<String, Value>) -> Payment {
    let members = Members::of(map);
    let text = |keys: &[&str]| keys.iter().find_map(|key| scalar(members.get(key)?));
    let mut price = text(PRICE_KEYS);
    let decimals = members.get("decimals").and_then(object::whole);
    let decimals = decimals.or_else(|| price.as_ref().and_then(|_| decimals_of_requirement(&members)));
    if let Some((amount, decimals)) = price.as_deref().zip(decimals) {
        price = Some(scaled(amount, decimals));
    }
    let mut asset = text(ASSET_KEYS);
    let in_dollars = ["amount_usd", "amountUsd", "price_usd", "priceUsd", "usd"];
    if asset.is_none() && price.is_some() {
        let has = |key: &&str| members.get(key).is_some();
        let named = !["price", "amount"].iter().any(has) && in_dollars.iter().any(has);
        asset = named.then(|| "USD".to_owned());
    }
    if price.is_none()
        && let Some(drops) = members.get("amount_drops").or_else(|| members.get("amountDrops"))
    {
        price = scalar(drops).map(|drops| scaled(&drops, DECIMALS_OF_XRP));
    }
    if price.is_none()
        && let Some((found, named)) = map.iter().find_map(|(name, value)| price_of_member(name, value))
    {
        price = Some(found);
        asset = asset.or(named);
    }
    let model = text(&["model", "pricing_model", "pricingModel"]);
    // A model that names a scheme is a scheme.
    let (named, model): (Vec<String>, Vec<String>) = model.into_iter().partition(|word| is_payment(word));
    Payment {
        scheme: text(&["scheme", "protocol", "standard", "payment_protocol"])
            .or_else(|| named.into_iter().next()),
        plan: None,
        model: model.into_iter().find(|word| is_model(word)),
        network: text(&["network", "chain", "default_network", "payment_chain", "payment_network"]),
        asset,
        price,
        address: text(ADDRESS_KEYS),
    }
}

/// The price that the members of an element state.
fn price_of(element: &Object<'_>) -> Option<Payment> {
    let keys =
        ["price", "cost", "pricing", "payment", "priceRange", "price_range", "priceFrom", "price_from"];
    let stated = keys.iter().find_map(|key| price(element.value(key)?)).map(|stated| Payment {
        // `{"price": "0.10", "currency": "RLUSD"}`.
        asset: stated.asset.clone().or_else(|| {
            let beside = element.string_of(&["currency", "price_currency", "priceCurrency"]);
            beside.filter(|_| stated.price.is_some())
        }),
        ..stated
    });
    stated.or_else(|| products_of(element)).or_else(|| {
        let (price, asset) =
            element.map.iter().find_map(|(name, value)| price_of_member(name, value)).unzip();
        let address = element.string_of(&["wallet", "wallet_address", "payTo", "pay_to"]);
        let payment = Payment { price, asset: asset.flatten(), address, ..Payment::default() };
        (payment != Payment::default()).then_some(payment)
    })
}

/// Members with the price of a call on each of several networks, or in each of several assets.
const PRICES_KEYS: &[&str] = &["prices", "price", "pricing", "cost", "payment", "accepts"];

/// Sets the price that an element states, and those on other networks or in other assets.
pub(crate) fn read_prices(element: &Object<'_>, capability: &mut Capability) {
    let listed = PRICES_KEYS.iter().filter_map(|key| element.value(key)).flat_map(by_network);
    let listed: Vec<Payment> = listed.take(ALTERNATIVES_MAX).collect();
    capability.price = price_of(element).or_else(|| listed.first().cloned()).or_else(|| free(element));
    // The document may name the scheme of the payment.
    let is_paid = capability.price.is_none() && FREE_FLAGS.iter().any(|key| element.flag(key) == Some(false));
    if is_paid {
        capability.price = Some(Payment { model: Some("paid".to_owned()), ..Payment::default() });
    }
    if let Some(price) = capability.price.as_mut().filter(|price| price.model.as_deref() == Some("free")) {
        price.price.get_or_insert_with(|| "free".to_owned());
    }
    capability.other_prices = other_prices(capability.price.as_ref(), listed);
    let is_free = capability.price.as_ref().and_then(Payment::cost) == Some(Cost::Free);
    let is_due = PAYMENT_FLAGS.iter().any(|key| element.flag(key) == Some(true));
    if is_due && !is_free && capability.auth == CapabilityAuth::default() {
        capability.auth.required = Tristate::Yes;
        capability.auth.schemes.push(AuthScheme::Payment);
    }
}

/// Flags of a call that must be paid.
const PAYMENT_FLAGS: &[&str] =
    &["payment_required", "paymentRequired", "requires_payment", "requiresPayment", "x-payment-required"];

/// Flags of a call that is free.
const FREE_FLAGS: &[&str] = &["free", "x-free", "is_free", "isFree"];

/// The price of an element that is free according to a flag.
fn free(element: &Object<'_>) -> Option<Payment> {
    let is_free = FREE_FLAGS.iter().any(|key| element.flag(key) == Some(true));
    is_free.then(|| Payment { price: Some("free".to_owned()), ..Payment::default() })
}

/// The prices whose network or asset differs from those of all earlier prices.
pub(crate) fn other_prices(
    price: Option<&Payment>,
    listed: impl IntoIterator<Item = Payment>,
) -> Vec<Payment> {
    let mut others: Vec<Payment> = Vec::new();
    for payment in listed.into_iter().take(ALTERNATIVES_MAX) {
        let is_same = |known: &Payment| (&known.network, &known.asset) == (&payment.network, &payment.asset);
        let names_network_or_asset = payment.network.is_some() || payment.asset.is_some();
        if names_network_or_asset && !price.into_iter().chain(&others).any(is_same) {
            others.push(payment);
        }
    }
    others
}

/// The prices in a list, or in a map by network and asset: `{"base": {"USDC": "0.01"}, "eip155:137": {"USDC": "0.02"}}`.
fn by_network(value: &Value) -> Vec<Payment> {
    let priced = |value: &Value| price(value).filter(|payment| payment.price.is_some());
    let is_asset = |name: &str| CURRENCIES.contains(&name.to_ascii_lowercase().as_str());
    let asset = |name: &str| Some(name.to_owned());
    let map = match value {
        Value::Array(list) => {
            return list
                .iter()
                .filter(|item| item.is_object())
                .take(ALTERNATIVES_MAX)
                .filter_map(priced)
                .collect();
        }
        Value::Object(map) if map.len() <= ALTERNATIVES_MAX => map,
        _ => return Vec::new(),
    };
    let mut found = Vec::new();
    for (name, value) in map {
        match value {
            Value::Object(inner) if !inner.is_empty() && inner.keys().all(|name| is_asset(name)) => {
                let of_network = inner.iter().take(ALTERNATIVES_MAX).filter_map(|(asset_name, amount)| {
                    Some(Payment { network: Some(name.clone()), asset: asset(asset_name), ..priced(amount)? })
                });
                found.extend(of_network);
            }
            Value::Object(_) if name.contains(':') => {
                found.extend(priced(value).map(|payment| Payment { network: Some(name.clone()), ..payment }));
            }
            Value::String(_) | Value::Number(_) if is_asset(name) => {
                found.extend(priced(value).map(|payment| Payment { asset: asset(name), ..payment }));
            }
            _ => {}
        }
    }
    found
}

/// The prices of the products that one call sells, as one text.
fn products_of(element: &Object<'_>) -> Option<Payment> {
    let key =
        ["products", "tiers", "plans", "options"].into_iter().find(|key| element.list(key).is_some())?;
    let listed = element.objects(key).take(ALTERNATIVES_MAX);
    let priced = listed.filter_map(|product| {
        let by_name = || {
            let (price, asset) =
                product.map.iter().find_map(|(name, value)| price_of_member(name, value)).unzip();
            Some(Payment { price: Some(price?), asset: asset.flatten(), ..Payment::default() })
        };
        by_name().or_else(|| price_of_members(product.map).filter(|found| found.price.is_some()))
    });
    let priced: Vec<Payment> = priced.collect();
    let first = priced.first()?;
    let texts: Vec<&str> = priced.iter().filter_map(|found| found.price.as_deref()).collect();
    let scheme = element.string_of(&["payment_protocol", "paymentProtocol"]).or_else(|| first.scheme.clone());
    Some(Payment { scheme, price: Some(texts.join(", ")), ..first.clone() })
}

/// The price and the asset of a member such as `x-price-usdc`, `price_range_usd` or `fee_eur`.
fn price_of_member(name: &str, value: &Value) -> Option<(String, Option<String>)> {
    // Most names do not contain any letter of these words.
    if name.is_ascii() && !name.bytes().any(|byte| matches!(byte, b'c' | b'f' | b'C' | b'F')) {
        return None;
    }
    let is_price = |word: &str| matches!(word, "price" | "cost" | "fee");
    let mut names_price = false;
    text::each_word(name, |word| names_price |= is_price(word));
    if !names_price {
        return None;
    }
    let mut words = text::words(name);
    let at = words.iter().position(|word| is_price(word))?;
    // A fee for something other than a call: `listing_fee_usdc`.
    let is_other = |word: &String| OTHER_FEES.contains(&word.as_str());
    if words.get(at).is_some_and(|word| word == "fee") && words.iter().take(at).any(is_other) {
        return None;
    }
    let is_currency = |word: &String| CURRENCIES.contains(&word.as_str());
    let unit = unit_of(&words);
    let after = words.split_off(at + 1);
    let period = match after.as_slice() {
        [.., per, unit] if per == "per" && PERIODS.contains(&unit.as_str()) => ["/", unit].concat(),
        _ => String::new(),
    };
    let asset = after.iter().find(|word| is_currency(word)).map(|word| word.to_ascii_uppercase());
    let after_price = after;
    let range = range(value);
    let is_range = value.is_array() || range.is_some();
    let price = scalar(value).or(range).or_else(|| price(value).filter(|_| value.is_array())?.price)?;
    if let Some(unit) = unit {
        let decimals = unit.decimals.or_else(|| asset.as_deref().and_then(decimals_of))?;
        let asset = asset.or_else(|| unit.asset.map(str::to_owned));
        return Some((scaled(&price, decimals) + &period, asset));
    }
    // `{"cost_per_request": "0.01 USDC"}`
    let is_per_call =
        matches!(after_price.as_slice(), [per, unit] if per == "per" && CALLS.contains(&unit.as_str()));
    (asset.is_some() || is_range || is_per_call).then_some((price + &period, asset))
}

/// Words in the name of a member for the price of one call: `cost_per_call`.
const CALLS: &[&str] = &["call", "request", "query", "invocation", "task"];

/// The unit of an amount, as a fraction of an asset, from the name of its member.
#[derive(Clone, Copy)]
struct Unit {
    /// Number of decimals of the unit; `None` for the smallest unit of the asset.
    decimals: Option<u64>,
    /// The asset that the unit belongs to.
    asset: Option<&'static str>,
}

/// The unit among the words of a member's name: `price_micro_usdc`, `cost_cents`, `price_lamports`.
fn unit_of(words: &[String]) -> Option<Unit> {
    let of = |decimals, asset| Some(Unit { decimals, asset });
    words.iter().find_map(|word| match word.as_str() {
        "micro" | "micros" => of(Some(6), None),
        "cent" | "cents" => of(Some(2), Some("USD")),
        "lamport" | "lamports" => of(Some(9), Some("SOL")),
        "gwei" => of(Some(9), Some("ETH")),
        "wei" => of(Some(18), Some("ETH")),
        "drops" => of(Some(DECIMALS_OF_XRP), Some("XRP")),
        "atomic" => of(None, None),
        _ => None,
    })
}

/// Number of decimals of an asset, to convert its smallest ("atomic") unit.
pub(super) fn decimals_of(asset: &str) -> Option<u64> {
    match asset {
        "USDC" | "USDT" => Some(6),
        _ => None,
    }
}

/// Words for fees that are not charged per call.
const OTHER_FEES: &[&str] = &[
    "listing",
    "registration",
    "signup",
    "setup",
    "membership",
    "withdrawal",
    "deposit",
    "network",
    "gas",
    "platform",
    "shipping",
    "delivery",
];

/// Periods of a price in the name of its member: `price_usd_per_month`.
const PERIODS: &[&str] = &["minute", "hour", "day", "week", "month", "year"];

/// `{"min": 1, "max": 5}` as `1-5`.
fn range(value: &Value) -> Option<String> {
    let bound = |key: &str| value.get(key).and_then(Value::as_number);
    Some(format!("{}-{}", bound("min")?, bound("max")?))
}

/// The prices in a text, each with the name of the priced item: `Scan 0.05 USDC | Report 2 USDC`. Empty without a currency.
pub(crate) fn prices_in_text(text: &str) -> Vec<Payment> {
    let pieces = text.split(['|', ';', ',']).take(ALTERNATIVES_MAX).map(str::trim);
    pieces.filter(|piece| !piece.contains("://")).filter_map(price_in_words).collect()
}

fn price_in_words(piece: &str) -> Option<Payment> {
    let is_amount = |word: &str| {
        let digits = word.trim_start_matches(['$', '\u{20ac}', '\u{a3}', '~']);
        digits.starts_with(|letter: char| letter.is_ascii_digit())
    };
    let is_currency =
        |word: &str| is_currency(word.trim_matches(|letter: char| !letter.is_ascii_alphanumeric()));
    let words = piece.split_whitespace().take(WORDS_MAX);
    let amount = words.clone().find(|word| is_amount(word))?;
    let has_sign = amount.starts_with(['$', '\u{20ac}', '\u{a3}']);
    if !has_sign && !words.clone().any(is_currency) {
        return None;
    }
    let (name, price) = piece.split_at(piece.find(amount)?);
    let name = name.trim_end_matches(|letter: char| !letter.is_alphanumeric() && letter != ')');
    let scheme = (!name.is_empty()).then(|| text::capped(name, NAME_CHARS_MAX).to_owned());
    let (scheme, plan) = match scheme {
        Some(name) if !is_payment(&name) => (None, Some(name)),
        scheme => (scheme, None),
    };
    Some(Payment {
        scheme,
        plan,
        price: Some(text::capped(price, NAME_CHARS_MAX).to_owned()),
        ..Payment::default()
    })
}

/// Whether a word is the code of a currency or an asset.
pub(crate) fn is_currency(word: &str) -> bool {
    CURRENCIES.iter().any(|known| known.eq_ignore_ascii_case(word))
}

/// Whether a text is a price of calls in a currency that it names, `0.01–0.05 USDC` or `0.10 RLUSD via Acme`, and not that of a plan.
pub(crate) fn names_amount_of_call(text: &str) -> bool {
    let is_amount = text.starts_with(|letter: char| letter.is_ascii_digit());
    let mut words = text.split(|letter: char| !letter.is_ascii_alphanumeric()).take(WORDS_MAX);
    let mut has_currency = false;
    is_amount
        && words.all(|word| {
            has_currency |= is_currency(word);
            !PLAN_WORDS.iter().any(|known| known.eq_ignore_ascii_case(word))
        })
        && has_currency
}

/// Words of prices that are not paid for each call.
const PLAN_WORDS: &[&str] =
    &["month", "monthly", "mo", "year", "yearly", "annual", "week", "subscription", "plan", "user", "seat"];

/// Maximum number of words of one price in a text.
const WORDS_MAX: usize = 20;

/// Codes that name the asset of a price in the name of a member.
const CURRENCIES: &[&str] =
    &["usd", "usdc", "usdt", "eur", "gbp", "inr", "jpy", "rlusd", "sat", "sats", "btc", "eth", "sol", "xrp"];

/// Converts an amount in the smallest unit of an asset to the asset: `1000` with 6 decimals is `0.001`.
fn scaled(amount: &str, decimals: u64) -> String {
    let is_whole = !amount.is_empty() && amount.bytes().all(|byte| byte.is_ascii_digit());
    let Some(places) = usize::try_from(decimals).ok().filter(|places| *places <= DECIMALS_MAX && is_whole)
    else {
        return amount.to_owned();
    };
    let padded = format!("{amount:0>width$}", width = places + 1);
    let (units, rest) = padded.split_at(padded.len() - places);
    let rest = rest.trim_end_matches('0');
    let point = if rest.is_empty() { "" } else { "." };
    [units, point, rest].concat()
}

/// A drop is a millionth of an XRP.
const DECIMALS_OF_XRP: u64 = 6;
/// Maximum number of decimals of an asset; most tokens have 6 or 18.
const DECIMALS_MAX: usize = 36;

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
    fn reads_the_unit_of_a_price_from_its_member_name() {
        for (name, value, expected) in [
            ("price_micro_usdc", json!("1000"), Some(("0.001", Some("USDC")))),
            ("price_usdc_micros", json!(1500), Some(("0.0015", Some("USDC")))),
            ("price_usdc_atomic", json!("20000"), Some(("0.02", Some("USDC")))),
            ("price_atomic", json!("20000"), None),
            ("cost_cents", json!(5), Some(("0.05", Some("USD")))),
            ("price_lamports", json!(5_000_000), Some(("0.005", Some("SOL")))),
            ("price_usdc", json!("0.5"), Some(("0.5", Some("USDC")))),
            ("cost_per_request", json!("0.01 USDC"), Some(("0.01 USDC", None))),
            ("cost_per_unit", json!("0.01"), None),
        ] {
            let found = price_of_member(name, &value);
            let found = found.as_ref().map(|(price, asset)| (price.as_str(), asset.as_deref()));
            assert_eq!(found, expected, "{name}");
        }
    }
}

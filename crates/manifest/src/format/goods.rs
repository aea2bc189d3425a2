//! Prices of goods and services that a document only links to: the elements of any list with a name, an address and a price.

use serde_json::{Map, Value};

use crate::format::{lenient, outbound};
use crate::model::Payment;
use crate::object::Object;
use crate::text;

/// Maximum number of elements of one document that are read, and the deepest nesting of members that is searched.
const GOODS_MAX: usize = 30;
const NESTING_MAX: usize = 4;
/// Members with the price of an element.
const PRICE_KEYS: &[&str] = &["price", "priceRange", "price_range", "priceFrom", "price_from"];
/// Members that make an element a call, whose price is that of its capability.
const CALL_KEYS: &[&str] =
    &["method", "path", "endpoint", "parameters", "inputSchema", "input_schema", "accepts"];
/// Lists that other parsers read: plans, and lists whose elements are capabilities.
const OTHER_LISTS: &[&str] = &[
    "plans",
    "tiers",
    "rate_limits",
    "rateLimits",
    "packages",
    "subscriptions",
    "offers",
    "products",
    "pricing",
    "payment",
    "payments",
    "x402",
    "tools",
    "skills",
    "actions",
    "endpoints",
    "services",
    "resources",
    "capabilities",
    "agents",
    "functions",
    "operations",
];

/// Shows the name and the price of each element.
pub(super) fn read(root: &Map<String, Value>, show: &mut dyn FnMut(&str, Payment)) {
    let mut left = GOODS_MAX;
    read_members(root, 0, &mut left, show);
}

fn read_members(
    map: &Map<String, Value>,
    depth: usize,
    left: &mut usize,
    show: &mut dyn FnMut(&str, Payment),
) {
    for (key, value) in map {
        if OTHER_LISTS.contains(&key.as_str()) || outbound::is_about_calls(key) {
            continue;
        }
        match value {
            Value::Object(inner) if depth < NESTING_MAX => read_members(inner, depth + 1, left, show),
            Value::Array(elements) => {
                for element in elements.iter().filter_map(Value::as_object) {
                    if let Some((name, payment)) = priced(element).filter(|_| *left > 0) {
                        *left -= 1;
                        show(name, payment);
                    }
                }
            }
            _ => {}
        }
    }
}

/// The name and the price of an element with an address.
fn priced(element: &Map<String, Value>) -> Option<(&str, Payment)> {
    let has = |keys: &[&str]| keys.iter().any(|key| element.contains_key(*key));
    if !has(PRICE_KEYS) || has(CALL_KEYS) {
        return None;
    }
    let element = Object::root(element);
    let name = element.text_of(&["name", "title", "label"])?;
    element.text_of(&["url", "href", "link"])?;
    let from = || element.value_of(&["priceFrom", "price_from"]).and_then(lenient::price);
    let payment =
        lenient::price_of_members(element.map).filter(|payment| payment.price.is_some()).or_else(from)?;
    Some((text::capped(name, 100), payment))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn finds_the_prices_of_linked_goods() {
        let document = json!({"shop": {"parts": [
            {"name": "Wheel", "url": "/wheel", "price": "$20"},
            {"name": "Frame", "url": "/frame", "priceRange": "$2,400-$6,500"},
            {"name": "Bell", "url": "/bell", "priceFrom": "$3"},
            {"name": "Without address", "price": "$1"},
            {"name": "Call", "url": "/call", "method": "GET", "price": "$1"},
        ]}, "plans": [{"name": "Pro", "url": "/pro", "price": "$9"}]});
        let mut found = Vec::new();
        read(document.as_object().unwrap(), &mut |name, payment| {
            found.push(format!("{name} {}", payment.price.unwrap_or_default()));
        });
        assert_eq!(found, ["Wheel $20", "Frame $2,400-$6,500", "Bell $3"]);
    }
}

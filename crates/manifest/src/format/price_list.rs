//! Reads the members of a price list: prices in words, and ways to pay.

use crate::format::lenient;
use crate::model::{Capability, Payment};
use crate::object::Object;

/// Maximum number of ways to pay of one list that are read.
const ACCEPTED_MAX: usize = 50;

/// The ways to pay in a price list: in a separate list or in one of its blocks.
pub(crate) fn accepted(pricing: &Object<'_>, base: &Payment) -> Vec<Payment> {
    let blocks = pricing.members().map(|(_, block)| block);
    let holders = std::iter::once(pricing.clone()).chain(blocks);
    let listed = holders.flat_map(|holder| {
        let keys = ["accepted_methods", "acceptedMethods", "methods", "accepts"];
        let found = keys.iter().flat_map(|key| holder.objects(key)).collect::<Vec<_>>();
        found
            .into_iter()
            .filter_map(|terms| {
                let own = lenient::price_of_members(terms.map)
                    .filter(|own| own.network.is_some() || own.asset.is_some())?;
                let asset = terms.string_of(&["asset_symbol", "assetSymbol"]);
                let scheme = own.scheme.clone().or_else(|| terms.string("method"));
                Some(Payment {
                    scheme,
                    asset: asset.or(own.asset),
                    network: own.network.or_else(|| base.network.clone()),
                    ..own
                })
            })
            .collect::<Vec<_>>()
    });
    listed.take(ACCEPTED_MAX).collect()
}

/// Whether a text states a price: an amount with a currency or alone, or a word for one.
pub(crate) fn states_price(text: &str) -> bool {
    const WORDS: &[&str] =
        &["free", "custom", "contact", "quote", "negotiable", "request", "variable", "gratis", "included"];
    let words = || text.split(|letter: char| !letter.is_alphanumeric()).take(PRICE_TEXT_WORDS_MAX);
    let is_number = text.trim().parse::<f64>().is_ok();
    let has_sign = text.contains(['$', '\u{20ac}', '\u{a3}', '\u{a5}', '%']);
    let has_amount = has_digit(text) && (has_sign || words().any(lenient::is_currency));
    let is_word = || {
        text.split(' ').nth(PRICE_WORDS_MAX).is_none()
            && words().any(|word| WORDS.iter().any(|known| word.eq_ignore_ascii_case(known)))
    };
    !text.contains("://")
        && text.split_whitespace().nth(PRICE_TEXT_WORDS_MAX).is_none()
        && (is_number || has_amount || is_word())
}

/// Whether a text may be a price. A sentence without an amount may be about prices, but does not state one.
pub(crate) fn may_be_price(text: &str) -> bool {
    text.split(' ').nth(PRICE_WORDS_MAX).is_none() || has_digit(text)
}

/// Maximum number of words of a text that states a price.
const PRICE_TEXT_WORDS_MAX: usize = 30;

/// Maximum number of words of a price without an amount: `free`, `on request`, `contact our sales team`.
const PRICE_WORDS_MAX: usize = 4;

fn has_digit(text: &str) -> bool {
    text.bytes().any(|byte| byte.is_ascii_digit())
}

/// Words in the price of a plan, which is for a period.
const PERIODS: &[&str] = &["month", "year", "week", "day", "/mo", "/yr", "annual"];

/// Makes a price of a list, `"standard": "0.10 USDC — one check"`, that is also the price of a call one of the only payment of the document,
/// and not one of a plan.
pub(super) fn take_prices_of_calls(found: &mut [Payment], calls: &[Capability]) {
    let is_whole = |payment: &&Payment| payment.plan.is_none() && payment.price.is_none();
    let mut whole = found.iter().filter(is_whole);
    let Some(only) = whole.next().filter(|only| only.scheme.is_some() && whole.next().is_none()).cloned()
    else {
        return;
    };
    let prices: Vec<f64> = calls.iter().filter_map(|call| call.price.as_ref()?.amount()).collect();
    let is_of_call = |payment: &Payment| {
        let text = payment.price.as_deref().unwrap_or_default().to_ascii_lowercase();
        let is_for_period = PERIODS.iter().any(|word| text.contains(word));
        !is_for_period && payment.amount().is_some_and(|amount| amount > 0.0 && prices.contains(&amount))
    };
    for payment in found.iter_mut().filter(|payment| payment.plan.is_some() && is_of_call(payment)) {
        payment.plan = None;
        payment.scheme.clone_from(&only.scheme);
        payment.network = payment.network.take().or_else(|| only.network.clone());
        payment.asset = payment.asset.take().or_else(|| only.asset.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_about_a_price_list_are_not_read_as_prices() {
        for text in ["$5/month", "0.01 USDC per call", "free", "Contact us", "9.99", "on request"] {
            assert!(states_price(text), "{text}");
        }
        for text in
            ["eip155:8453", "Base mainnet", "Free public reference. No paid plans are published.", "x402"]
        {
            assert!(!states_price(text), "{text}");
        }
    }
}

//! Prices in the descriptions of calls: after a payment scheme, "x402 ~$0.015", or at the end, "All rooms ($0.01)".
//!
//! A price at the end is the price of the call only if the document names a payment scheme. Otherwise it may be the price of goods.

use super::call_prices::{price_at_end, single_price};
use crate::auth;
use crate::draft::Draft;
use crate::model::{AuthScheme, Capability, CapabilityKind, Payment};
use crate::text;

/// Maximum number of prices of one description that are compared.
const PRICES_MAX: usize = 20;

/// Adds prices to the capabilities from `first` on that have none.
pub(crate) fn read(first: usize, draft: &mut Draft<'_>) {
    let manifest = &mut draft.manifest;
    let is_scheme =
        |payment: &Payment| payment.scheme.as_deref().is_some_and(|s| auth::scheme(s) == AuthScheme::Payment);
    let is_paid = manifest.payments.iter().any(is_scheme);
    for capability in manifest.capabilities.iter_mut().skip(first).filter(|call| call.price.is_none()) {
        let Some(description) = &capability.description else { continue };
        capability.price = price_after_scheme(description)
            .or_else(|| price_at_end(description).filter(|_| is_paid && is_call(capability)));
    }
}

/// Whether a capability is a call. A tool counts even without an address, because another document may state the address of its server.
fn is_call(capability: &Capability) -> bool {
    capability.is_invocable() || capability.kind == CapabilityKind::Tool
}

/// The price after the name of a scheme, if there is only one: "Quality of the air. x402 ~$0.015. GET https://…"
pub(crate) fn price_after_scheme(description: &str) -> Option<Payment> {
    if !description.contains('4') || !text::has_three(description, *b"402") {
        return None;
    }
    let starts = ["x402 ", "x402: ", "l402 ", "X402 ", "L402 "];
    let pieces = starts.iter().flat_map(|start| description.match_indices(start)).take(PRICES_MAX);
    let mut prices = pieces.filter_map(|(at, _)| {
        let rest = description.get(at..)?;
        single_price(
            rest.split([')', ',', ';', '\u{2014}']).next()?.split(". ").next()?.trim_end_matches('.'),
        )
    });
    prices.next().filter(|_| prices.next().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_price_after_a_scheme() {
        let of = |text| {
            price_after_scheme(text).map(|price| [price.scheme, price.price].map(Option::unwrap_or_default))
        };
        let price = |amount: &str| Some(["x402".to_owned(), amount.to_owned()]);
        assert_eq!(of("Air. x402 ~$0.015. GET https://a.example/air"), price("$0.015"));
        assert_eq!(of("Air (x402 0.01 USDC)"), price("0.01 USDC"));
        assert_eq!(of("Air, x402: $0.01 per call"), price("$0.01 per call"));
        assert_eq!(of("Air. x402 $0.01, or x402 $0.02"), None);
        assert_eq!(of("Air. x402 is 2 years old"), None);
        assert_eq!(of("x402 (USDC on Base)"), None);
    }
}

//! Prices in the descriptions of calls: after a payment scheme, "x402 ~$0.015", or at the end, "All rooms ($0.01)". A description may
//! also say only that its call is paid, "Paid search (x402 USDC on Base)", or free, "Free audit."
//!
//! A price at the end is the price of the call only if the document names a payment scheme. Otherwise it may be the price of goods. The
//! same holds for a description that only begins with "Free".

use super::call_prices::{price_at_end, single_price};
use crate::auth;
use crate::cues::{Cue, Cues};
use crate::draft::Draft;
use crate::format::payment_words;
use crate::model::{AuthScheme, Capability, CapabilityAuth, CapabilityKind, Payment, Tristate};
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
        let of_document = is_paid && is_call(capability);
        let stated = || {
            price_after_verb(description)
                .or_else(|| price_at_end(description))
                .or_else(|| free_by_description(description))
        };
        let described = price_after_scheme(description).or_else(|| of_document.then(stated).flatten());
        let due = payment_of_call(description).filter(|_| described.is_none() && is_call(capability));
        if let Some(due) = due {
            require_payment(capability);
            // The document states the terms that the description leaves out.
            capability.price = Some(due).filter(|due| due.scheme.is_some() || payment_words::has_asset(due));
        } else {
            capability.price = described;
        }
    }
}

fn require_payment(capability: &mut Capability) {
    if capability.auth == CapabilityAuth::default() {
        capability.auth.required = Tristate::Yes;
        capability.auth.schemes.push(AuthScheme::Payment);
    }
}

/// The payment of a call whose description begins with "Paid" and names its terms, "Paid search (x402 USDC on Base)", or says that the
/// caller gets the status 402 and pays. A description that also says that payment is optional or not needed states none.
fn payment_of_call(description: &str) -> Option<Payment> {
    let text = text::capped(description.trim_start(), DESCRIBED_CHARS_MAX);
    if !Cues::of(text).has(Cue::Payment) {
        return None;
    }
    let folded = text.to_ascii_lowercase();
    if OPTIONAL_PHRASES.iter().any(|phrase| folded.contains(phrase)) {
        return None;
    }
    let begins = folded.split(|letter: char| !letter.is_ascii_alphanumeric()).next() == Some("paid");
    let stated = || text.split(". ").flat_map(payment_words::in_sentence).next();
    if begins && let Some(payment) = stated() {
        return Some(payment);
    }
    let is_answered = ANSWER_PHRASES.iter().any(|phrase| folded.contains(phrase));
    let pays = || folded.split(|letter: char| !letter.is_ascii_alphanumeric()).any(|word| word == "pay");
    (is_answered && pays()).then(|| stated().unwrap_or_default())
}

/// Maximum number of characters of a description that are searched for words about its payment.
const DESCRIBED_CHARS_MAX: usize = 500;
/// Words about an answer with the status 402.
const ANSWER_PHRASES: &[&str] = &["402 payment required", "402 invoice", "402 challenge"];
/// Words that make a payment optional.
const OPTIONAL_PHRASES: &[&str] =
    &["no payment", "not require", "without pay", "optional", "free", "if payment", "unless", "when unpaid"];

/// The price of a call whose description begins with "Free" and the name of what it does: "Free audit."
fn free_by_description(description: &str) -> Option<Payment> {
    let text = description.trim_start();
    let rest = text.strip_prefix("Free").or_else(|| text.strip_prefix("FREE"))?;
    let next = rest.trim_start_matches([' ', ':', ',', '.', '-', '\u{2014}', '\u{2013}']);
    let word = next.split(|letter: char| !letter.is_alphanumeric()).next().unwrap_or_default();
    let is_other = OF_SOMETHING.iter().any(|known| known.eq_ignore_ascii_case(word));
    let is_word = rest.is_empty() || rest.starts_with([' ', ':', ',', '.']);
    let is_paid = description.contains("paid") || description.contains("Paid");
    let free = || Payment { price: Some("free".to_owned()), ..Payment::default() };
    (is_word && !is_other && !is_paid).then(|| amount_of_part(description).unwrap_or_else(free))
}

/// The only amount of an asset in a description of which another part is free: "Free summary; 0.25 RLUSD full report."
fn amount_of_part(description: &str) -> Option<Payment> {
    let clauses = description.split([';', ',', '\u{2014}', '(', ')']).flat_map(|part| part.split(". "));
    let mut amounts = clauses.take(PRICES_MAX).filter_map(|clause| {
        let mut words = clause.split_whitespace();
        let (amount, asset) = (words.next()?, words.next()?.trim_end_matches('.'));
        let is_asset = (3..=6).contains(&asset.len()) && asset.bytes().all(|byte| byte.is_ascii_uppercase());
        let is_amount = amount.parse::<f64>().is_ok_and(|amount| amount > 0.0);
        single_price(&[amount, asset].join(" ")).filter(|_| is_asset && is_amount)
    });
    amounts.next().filter(|_| amounts.next().is_none())
}

/// Words after "free" that do not speak of the price of a call: "free text", "free slots".
const OF_SOMETHING: &[&str] = &[
    "text", "form", "slots", "slot", "time", "times", "space", "up", "shipping", "delivery", "trial", "tier",
    "rooms", "seats", "and", "or", "busy", "plan", "credits", "returns", "for",
];

/// Whether a capability is a call. A tool counts even without an address, because another document may state the address of its server.
fn is_call(capability: &Capability) -> bool {
    capability.is_invocable() || capability.kind == CapabilityKind::Tool
}

/// The price after the verb of a sentence about it: "Verdict for a symbol. Costs 0.10 RLUSD."
fn price_after_verb(description: &str) -> Option<Payment> {
    let (_, rest) = description.split_once("Costs ")?;
    single_price(rest.split([')', ',', ';', '\u{2014}']).next()?.split(". ").next()?.trim_end_matches('.'))
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

    #[test]
    fn finds_calls_that_are_paid_or_free_by_their_description() {
        let of = |text| {
            payment_of_call(text)
                .map(|due| [due.scheme, due.asset, due.network].map(Option::unwrap_or_default))
        };
        let due = |terms: [&str; 3]| Some(terms.map(str::to_owned));
        assert_eq!(
            of("Paid completion (x402 USDC on Base): GET 402 invoice, pay, POST"),
            due(["x402", "USDC", "Base"])
        );
        assert_eq!(of("Answers the 402 Payment Required challenge; pay it and retry"), due(["", "", ""]));
        assert_eq!(of("Paid or free search (x402 USDC on Base)"), None);
        assert_eq!(of("Paid members of a club"), None);
        assert_eq!(of("Lists paid invoices, 402 Payment Required on failure"), None);
        let is_free = |text| free_by_description(text).is_some();
        assert!(is_free("Free audit.") && is_free("Free to use.") && is_free("Free"));
        let others =
            ["Free text search", "Free slots of a room", "Freeze an account", "Free preview, then paid"];
        assert!(!others.into_iter().any(is_free));
        let price = |text| free_by_description(text).and_then(|price| price.price);
        assert_eq!(price("Free summary; 0.25 RLUSD full report."), Some("0.25 RLUSD".to_owned()));
        assert_eq!(price("Free summary; 3 words each."), Some("free".to_owned()));
        let cost = |text| price_after_verb(text).and_then(|price| price.price);
        assert_eq!(cost("Verdict. Costs 0.10 RLUSD. Returns a thesis."), Some("0.10 RLUSD".to_owned()));
        assert_eq!(cost("Verdict. Costs time."), None);
    }
}

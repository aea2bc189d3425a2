//! Payments in sentences: an asset on a network, together with a scheme or a word for payment.

use crate::cues::{Cue, Cues};
use crate::draft::{DESCRIPTION_CHARS_MAX, Draft};
use crate::format::auth_sentences;
use crate::format::outbound::Texts;
use crate::format::payments::NETWORKS;
use crate::model::{Capability, CapabilityKind, Payment};
use crate::text;

/// The payments that a sentence states: each asset on a network, with or without its scheme (`x402 with USDC on Base`), or the
/// scheme alone (`Payment via x402`).
pub(crate) fn in_sentence(sentence: &str) -> Vec<Payment> {
    const ON: &str = " on ";
    if !may_state(sentence) || !is_about_payment(sentence) {
        return Vec::new();
    }
    // "USDC-on-Base"
    let spaced = sentence.contains("-on-").then(|| sentence.replace("-on-", ON));
    let sentence = spaced.as_deref().unwrap_or(sentence);
    let words = || sentence.split(is_mark).filter(|word| !word.is_empty()).take(WORDS_MAX);
    let is_scheme = |word: &str| SCHEMES.iter().find(|scheme| scheme.eq_ignore_ascii_case(word)).copied();
    let scheme = words().find_map(is_scheme).map(str::to_owned);
    let mut found: Vec<Payment> = Vec::new();
    for (at, _) in sentence.match_indices(ON).take(WORDS_MAX) {
        if found.len() == PAYMENTS_MAX {
            break;
        }
        let Some(asset) = asset_before(sentence, at) else { continue };
        for network in networks_after(sentence, at + ON.len()) {
            let payment = Payment {
                scheme: scheme.clone(),
                network: Some(network.to_owned()),
                asset: Some(asset.to_owned()),
                ..Payment::default()
            };
            if !found.contains(&payment) {
                found.push(payment);
            }
        }
    }
    add_accepted(sentence, &mut found);
    let is_planned =
        || words().any(|word| PLANNING_WORDS.iter().any(|known| known.eq_ignore_ascii_case(word)));
    if found.is_empty() && !is_planned() {
        let is_about_all =
            auth_sentences::is_about_all(&text::capped(sentence, SENTENCE_CHARS_MAX).to_ascii_lowercase());
        let mut before = "";
        let is_led = words().any(|word| {
            // "use the x402 protocol"
            let led_by = if word == "the" { before } else { std::mem::replace(&mut before, word) };
            is_scheme(word).is_some()
                && (LEADING_WORDS.contains(&led_by) || (is_about_all && USING_WORDS.contains(&led_by)))
        });
        let pays = is_about_all
            || is_accepted(sentence)
            || words().any(|word| PAYING_WORDS.iter().any(|known| known.eq_ignore_ascii_case(word)));
        found.extend(
            scheme
                .filter(|_| (is_led || is_accepted(sentence)) && pays)
                .map(|scheme| Payment { scheme: Some(scheme), ..Payment::default() }),
        );
    }
    found
}

/// Whether a sentence may state a payment.
fn may_state(sentence: &str) -> bool {
    Cues::of(sentence).has(Cue::Payment)
}

/// Whether a sentence offers its scheme for topping up an account, or accepts it: "x402 top-ups", "Accepts x402."
fn is_accepted(sentence: &str) -> bool {
    let words: Vec<&str> = sentence.split(is_mark).filter(|word| !word.is_empty()).take(WORDS_MAX).collect();
    let is = |word: &str, known: &[&str]| known.iter().any(|known| known.eq_ignore_ascii_case(word));
    words.iter().enumerate().any(|(at, word)| {
        let next = |step: usize| words.get(at + step).copied().unwrap_or_default();
        let before = at.checked_sub(1).and_then(|before| words.get(before)).copied().unwrap_or_default();
        let is_top_up =
            is(next(1), &["topup", "topups"]) || (is(next(1), &["top"]) && is(next(2), &["up", "ups"]));
        is(word, SCHEMES) && (is_top_up || is(before, &["accepts", "accept"]))
    })
}

/// Adds the currencies that a sentence accepts by name, if there are several: "Accepts Bitcoin, Monero and USDT."
fn add_accepted(sentence: &str, found: &mut Vec<Payment>) {
    let sentence = text::capped(sentence, DESCRIPTION_CHARS_MAX);
    let words: Vec<&str> = sentence.split(is_mark).filter(|word| !word.is_empty()).take(WORDS_MAX).collect();
    let is_other = |word: &&str| OTHER_WORDS.iter().any(|known| known.eq_ignore_ascii_case(word));
    if words.iter().any(is_other) {
        return;
    }
    let is_currency = |word: &str| CURRENCIES.contains(&word);
    let is_join = |word: &str| matches!(word, "and" | "or");
    let is = |word: Option<&&str>, known: &[&str]| {
        word.is_some_and(|word| known.iter().any(|known| known.eq_ignore_ascii_case(word)))
    };
    let mut at = 0;
    while at < words.len() {
        let rest = words.get(at..).unwrap_or_default();
        let length = rest.iter().take_while(|word| is_currency(word) || is_join(word)).count();
        let names = rest.iter().take(length).filter(|word| is_currency(word));
        let before = |step: usize| at.checked_sub(step).and_then(|at| words.get(at));
        let is_paid_in = is(before(1), &["in", "with", "via", "using", "by"])
            && is(before(2), &["pay", "paid", "payment", "payments", "payable"]);
        let is_stated = is_paid_in
            || is(before(1), &["accepts", "accept", "accepting", "accepted"])
            || names.clone().next_back().is_some_and(|last| {
                // A comma between the words would begin another clause.
                ["payments", "payment", "accepted"]
                    .iter()
                    .any(|word| sentence.contains(&[*last, *word].join(" ")))
            });
        if is_stated && names.clone().count() > 1 {
            for name in names {
                let is_known = |known: &Payment| {
                    [&known.asset, &known.network].into_iter().flatten().any(|known| known.contains(name))
                };
                if found.len() < PAYMENTS_MAX && !found.iter().any(is_known) {
                    found.push(Payment { asset: Some((*name).to_owned()), ..Payment::default() });
                }
            }
        }
        at += length.max(1);
    }
}

/// Currencies that a sentence may accept by name.
const CURRENCIES: &[&str] = &[
    "Bitcoin", "BTC", "Ethereum", "ETH", "Monero", "XMR", "Litecoin", "LTC", "SOL", "XRP", "USDT", "USDC",
    "RLUSD", "EURC", "DAI", "PYUSD",
];

/// Adds the terms that a sentence of the document states, if no member states more than the name of a scheme.
pub(crate) fn complete(texts: &Texts<'_>, draft: &mut Draft<'_>) {
    let stated = &draft.manifest.payments;
    if !stated.is_empty() && !stated.iter().any(is_only_scheme) {
        return;
    }
    let mut found: Vec<Payment> = Vec::new();
    for text in texts.with(Cue::Payment) {
        for stated in text.split(['.', ';']).take(WORDS_MAX).map(in_sentence) {
            let is_first = found.is_empty() && !stated.is_empty();
            if is_first || (!found.iter().any(has_asset) && stated.iter().any(has_asset)) {
                found = stated;
            }
        }
        if found.iter().any(has_asset) {
            break;
        }
    }
    let known = &mut draft.manifest.payments;
    if !known.is_empty() {
        // The terms of the sentence complete the scheme that a member names.
        let completes =
            |known: &Payment, stated: &Payment| is_only_scheme(known) && is_of_scheme(known, stated);
        found.retain(|stated| has_asset(stated) && known.iter().any(|known| completes(known, stated)));
        known.retain(|known| !found.iter().any(|stated| completes(known, stated)));
    }
    draft.keep_all(found);
}

/// Gives the terms of the document to the calls whose own descriptions state them, if its description does not state them for all.
pub(crate) fn mark_calls(draft: &mut Draft<'_>) {
    let manifest = &mut draft.manifest;
    let terms = &manifest.payments;
    let stated = |text: &str| {
        let parts =
            Some(text).filter(|text| may_state(text)).into_iter().flat_map(|text| text.split(['.', ';']));
        parts.take(WORDS_MAX).flat_map(in_sentence).find(|payment| terms.contains(payment))
    };
    if terms.is_empty() || manifest.description.as_deref().is_some_and(|text| stated(text).is_some()) {
        return;
    }
    let is_call = |call: &&mut Capability| {
        call.price.is_none() && !matches!(call.kind, CapabilityKind::Skill | CapabilityKind::Content)
    };
    for call in manifest.capabilities.iter_mut().filter(is_call) {
        call.price = call.description.as_deref().and_then(stated);
    }
}

fn is_of_scheme(known: &Payment, stated: &Payment) -> bool {
    known
        .scheme
        .as_ref()
        .zip(stated.scheme.as_ref())
        .is_some_and(|(known, stated)| known.eq_ignore_ascii_case(stated))
}

/// Whether a payment states an asset or a network.
pub(crate) const fn has_asset(payment: &Payment) -> bool {
    payment.network.is_some() || payment.asset.is_some()
}

/// Whether a payment states only its scheme.
pub(crate) const fn is_only_scheme(payment: &Payment) -> bool {
    !has_asset(payment) && payment.price.is_none() && payment.address.is_none()
}

/// The scheme of payment that a text names in a word.
pub(crate) fn scheme_in(text: &str) -> Option<&'static str> {
    if !text::has_three(text, *b"402") && !text.contains(['p', 'P']) {
        return None;
    }
    let mut words = text.split(is_mark).take(WORDS_MAX);
    words.find_map(|word| SCHEMES.iter().find(|scheme| scheme.eq_ignore_ascii_case(word)).copied())
}

fn is_mark(letter: char) -> bool {
    !letter.is_ascii_alphanumeric()
}

/// The asset before a position: `RLUSD`, also in `RLUSD micropayments`.
fn asset_before(sentence: &str, at: usize) -> Option<&str> {
    let before = sentence.get(..at)?;
    let paid = [" micropayments", " payments", " payment"].iter().find_map(|end| before.strip_suffix(end));
    paid.unwrap_or(before).rsplit(is_mark).next().filter(|word| ASSETS.contains(word))
}

/// The networks at a position: `Base`, also in a list (`Base, Arc or Solana`).
fn networks_after(sentence: &str, at: usize) -> Vec<&str> {
    const JOINS: &[&str] = &[", or ", ", and ", ", ", " or ", " and ", " / ", "/"];
    let (mut found, mut at) = (Vec::new(), at);
    while let Some(network) = network_after(sentence, at).filter(|_| found.len() < PAYMENTS_MAX) {
        let rest = sentence.get(at..).unwrap_or_default();
        let end = at + rest.find(network).unwrap_or_default() + network.len();
        let behind = sentence.get(end..).unwrap_or_default();
        // In "USDC on Base, XRP on XRPL", the second name is that of an asset.
        if !found.is_empty() && behind.starts_with(" on ") {
            break;
        }
        found.push(network);
        let Some(join) = JOINS.iter().find(|join| behind.starts_with(**join)) else { break };
        at = end + join.len();
    }
    found
}

/// The network at a position: `Base`, also in `the XRP Ledger`.
fn network_after(sentence: &str, at: usize) -> Option<&str> {
    let after = sentence.get(at..)?;
    let after = after.strip_prefix("the ").unwrap_or(after);
    if let Some(ledger) = after.get(..LEDGER.len()).filter(|ledger| *ledger == LEDGER) {
        return Some(ledger);
    }
    let network = after.split(is_mark).next()?;
    NETWORKS.contains(&network.to_ascii_lowercase().as_str()).then_some(network)
}

/// Maximum number of payments of one sentence that are read.
const PAYMENTS_MAX: usize = 20;
/// Words before a payment scheme, words about paying, and words about plans for the future.
const LEADING_WORDS: &[&str] = &["via", "by", "with", "through", "using", "over", "Use", "use"];
/// Words before the scheme in a sentence about all calls: "All endpoints use x402."
const USING_WORDS: &[&str] =
    &["use", "uses", "require", "requires", "need", "needs", "support", "supports", "accept", "accepts"];
const PAYING_WORDS: &[&str] = &["pay", "paid", "payment", "payments", "micropayment", "micropayments"];
const PLANNING_WORDS: &[&str] = &["planned", "soon", "future", "roadmap", "not", "don", "never", "cannot"];
/// Words of sentences that deny a payment or are about payments to others.
const OTHER_WORDS: &[&str] = &["not", "never", "no", "don", "cannot", "receive", "receives", "earn", "earns"];
/// The only network whose name has two words.
const LEDGER: &str = "XRP Ledger";
/// Words for payment schemes in sentences.
const SCHEMES: &[&str] = &["x402", "l402", "mpp", "ap2"];
/// Assets that sentences about payment name.
const ASSETS: &[&str] = &["USDC", "USDT", "RLUSD", "EURC", "DAI", "PYUSD"];
/// Maximum number of characters of a sentence that are searched for its subject.
const SENTENCE_CHARS_MAX: usize = 200;
/// Maximum number of words of one sentence that are searched for a scheme.
const WORDS_MAX: usize = 500;

/// Whether a sentence is about paying for calls: it names a scheme or a payment. Payments to agents do not count.
fn is_about_payment(sentence: &str) -> bool {
    ["402", "ay-per-", "ayment", "ettle", "ccepts"].iter().any(|word| sentence.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_every_payment_of_a_sentence() {
        let of = |sentence| {
            let found = in_sentence(sentence).into_iter();
            found
                .map(|p| [p.scheme, p.asset, p.network].map(Option::unwrap_or_default).join(" "))
                .collect::<Vec<_>>()
        };
        assert_eq!(
            of("Pay with x402: USDC on Base or RLUSD on XRP Ledger"),
            ["x402 USDC Base", "x402 RLUSD XRP Ledger"]
        );
        assert_eq!(
            of("Payment in RLUSD on XRP Ledger or USDC on Base via x402"),
            ["x402 RLUSD XRP Ledger", "x402 USDC Base"]
        );
        assert_eq!(of("Pay with RLUSD on XRP via x402"), ["x402 RLUSD XRP"]);
        assert_eq!(of("Gated by RLUSD micropayments on the XRP Ledger"), [" RLUSD XRP Ledger"]);
        assert_eq!(of("Payment via X402 protocol"), ["x402  "]);
        assert_eq!(of("All endpoints use the x402 protocol"), ["x402  "]);
        assert_eq!(of("x402 USDC-on-Base top-ups"), ["x402 USDC Base"]);
        assert_eq!(
            of("pay with USDC on Base, Arc or Solana via x402"),
            ["x402 USDC Base", "x402 USDC Arc", "x402 USDC Solana"]
        );
        assert_eq!(of("x402 top-ups"), ["x402  "]);
        assert_eq!(of("Accepts x402"), ["x402  "]);
        assert_eq!(of("Accepts Bitcoin, Monero and USDT"), [" Bitcoin ", " Monero ", " USDT "]);
        assert_eq!(of("Monero/Bitcoin payments"), [" Monero ", " Bitcoin "]);
        assert!(of("Prices of BTC and ETH, payment by card").is_empty());
        assert!(of("Agents accept jobs on Base").is_empty());
        assert!(of("Agents that use the x402 protocol are listed").is_empty());
        assert!(of("Payment via x402 is planned").is_empty());
        assert!(of("Answers 402 on failure").is_empty());
        assert!(of("We do not accept Bitcoin or Monero").is_empty());
        assert!(of("Agents receive payments in USDC or DAI").is_empty());
        assert!(of("We don't accept x402").is_empty());
        assert!(of("Agents earn USDC on Base").is_empty());
    }
}

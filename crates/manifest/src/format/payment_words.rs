//! Payments in sentences: an asset on a network, beside a scheme or a payment.

use crate::format::payments::NETWORKS;
use crate::model::Payment;

/// The payments that a sentence states: an asset on a network each, with or without the scheme (`x402 with USDC on Base`).
pub(crate) fn in_sentence(sentence: &str) -> Vec<Payment> {
    const ON: &str = " on ";
    if !sentence.contains(ON) || !is_about_payment(sentence) {
        return Vec::new();
    }
    let is_mark = |letter: char| !letter.is_ascii_alphanumeric();
    let named = sentence.match_indices(ON).take(WORDS_MAX).filter_map(|(at, _)| {
        let asset = sentence.get(..at)?.rsplit(is_mark).next().filter(|word| ASSETS.contains(word))?;
        let network = sentence.get(at + ON.len()..)?.split(is_mark).next()?;
        NETWORKS.contains(&network.to_ascii_lowercase().as_str()).then_some((asset, network))
    });
    let mut words = sentence.split(is_mark).take(WORDS_MAX).map(str::to_ascii_lowercase);
    let scheme = words.find(|word| SCHEMES.contains(&word.as_str()));
    let payment = |(asset, network): (&str, &str)| Payment {
        scheme: scheme.clone(),
        network: Some(network.to_owned()),
        asset: Some(asset.to_owned()),
        ..Payment::default()
    };
    let mut found: Vec<Payment> = named.take(PAYMENTS_MAX).map(payment).collect();
    found.dedup();
    found
}

/// Payments of one sentence that are read.
const PAYMENTS_MAX: usize = 8;
/// Schemes of payment, which sentences name by these words.
const SCHEMES: &[&str] = &["x402", "l402", "mpp", "ap2"];
/// Assets that sentences about payment name.
const ASSETS: &[&str] = &["USDC", "USDT", "RLUSD", "EURC", "DAI", "PYUSD"];
/// Words of one sentence that are searched for a scheme.
pub(super) const WORDS_MAX: usize = 500;

/// Whether a sentence is about paying for calls: it names a scheme or a payment. What agents are paid is none.
fn is_about_payment(sentence: &str) -> bool {
    ["402", "ay-per-", "ayment", "ettle"].iter().any(|word| sentence.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_states_an_asset_on_each_network() {
        let of = |sentence| {
            let payments = in_sentence(sentence).into_iter();
            payments
                .map(|p| [p.scheme, p.asset, p.network].map(Option::unwrap_or_default))
                .collect::<Vec<_>>()
        };
        let payment = |parts: [&str; 3]| parts.map(str::to_owned);
        assert_eq!(
            of("Payment in RLUSD on XRP Ledger or USDC on Base via x402"),
            [payment(["x402", "RLUSD", "XRP"]), payment(["x402", "USDC", "Base"])]
        );
        assert_eq!(of("Agents earn USDC on Base"), Vec::<[String; 3]>::new());
    }
}

//! Payments in sentences: an asset on a network, beside a scheme or a payment.

use crate::format::payments::NETWORKS;
use crate::model::Payment;

/// The payment that a sentence states: an asset on a network, with or without its scheme (`x402 with USDC on Base`).
pub(crate) fn in_sentence(sentence: &str) -> Option<Payment> {
    const ON: &str = " on ";
    if !sentence.contains(ON) || !is_about_payment(sentence) {
        return None;
    }
    let is_mark = |letter: char| !letter.is_ascii_alphanumeric();
    let named = sentence.match_indices(ON).take(WORDS_MAX).find_map(|(at, _)| {
        let asset = sentence.get(..at)?.rsplit(is_mark).next().filter(|word| ASSETS.contains(word))?;
        let network = sentence.get(at + ON.len()..)?.split(is_mark).next()?;
        NETWORKS.contains(&network.to_ascii_lowercase().as_str()).then_some((asset, network))
    });
    let (asset, network) = named?;
    let scheme = sentence.split(is_mark).take(WORDS_MAX).map(str::to_ascii_lowercase);
    Some(Payment {
        scheme: scheme.into_iter().find(|word| SCHEMES.contains(&word.as_str())),
        network: Some(network.to_owned()),
        asset: Some(asset.to_owned()),
        ..Payment::default()
    })
}

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

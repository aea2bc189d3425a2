//! The payment of a service that names its payment protocol and chain in separate members.

use crate::auth;
use crate::format::lenient;
use crate::format::payments::{NETWORKS, is_asset, is_scheme};
use crate::model::{AuthScheme, Payment};
use crate::object::Object;
use crate::text;

/// The scheme of the service's protocol on the chain next to it: `"protocol": "x402", "chain": {"name": "Base Sepolia", "chainId": 84532}`.
pub(super) fn of_protocol(root: &Object<'_>) -> Option<Payment> {
    let scheme = root.text("protocol").filter(|word| auth::scheme(word) == AuthScheme::Payment)?;
    let chain = root.object("chain")?;
    let id = ["chainId", "chain_id"].iter().find_map(|key| chain.whole(key));
    let network = id.map(|id| format!("eip155:{id}")).or_else(|| chain.string("name"));
    let asset =
        chain.map.keys().find(|name| lenient::is_currency(name)).map(|name| name.to_ascii_uppercase());
    Some(Payment { scheme: Some(scheme.to_owned()), network, asset, ..Payment::default() })
}

/// An asset and its network: `USDC/Base`, `USDC on Base`, `XRPL RLUSD`.
pub(super) fn asset_and_network(published: &str) -> (String, Option<String>) {
    let is_network = |word: &str| NETWORKS.contains(&word.to_ascii_lowercase().as_str());
    let parts = published.split_once('/').or_else(|| published.split_once(" on "));
    let parts = parts.or_else(|| {
        published.split_once(' ').filter(|(network, _)| is_network(network)).map(|(n, a)| (a, n))
    });
    parts.map_or_else(
        || (published.trim().to_owned(), None),
        |(asset, network)| (asset.trim().to_owned(), Some(network.trim().to_owned())),
    )
}

/// A rail with its terms in brackets: `x402 (USDC/Base)`, `RLUSD invoice flow (XRPL)`, `USDC (Base)`.
pub(super) fn rail_in_words(rail: &str, base: &Payment) -> Option<Payment> {
    let (head, inner) = text::capped(rail, 200).strip_suffix(')')?.split_once(" (")?;
    let first = head.split_whitespace().next()?;
    let (asset, network) = if is_scheme(first) {
        asset_and_network(inner)
    } else {
        let is_network = NETWORKS.contains(&inner.to_ascii_lowercase().as_str());
        (first.to_owned(), is_network.then(|| inner.to_owned()))
    };
    let scheme = is_scheme(first).then(|| first.to_owned()).or_else(|| base.scheme.clone());
    let is_stated = network.is_some() && is_asset(&asset);
    is_stated.then(|| Payment { scheme, asset: Some(asset), network, ..base.clone() })
}

//! The payment of a service that names its payment protocol and chain in separate members.

use crate::auth;
use crate::format::lenient;
use crate::format::payments::NETWORKS;
use crate::model::{AuthScheme, Payment};
use crate::object::Object;

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

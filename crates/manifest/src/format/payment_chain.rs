//! The payment of a service that names its payment protocol and chain in separate members.

use crate::auth;
use crate::format::lenient;
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

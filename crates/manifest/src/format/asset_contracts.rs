//! The contract or the issuer of the asset on each network, for which the model of payments has no field: `"networks": {"base":
//! {"currency": "USDC", "contract": "0x…"}}`, `"chains": [{"key": "base", "usdc": "0x…"}]`.

use serde_json::{Map, Value};

use crate::draft::{self, Draft};
use crate::format::lenient;
use crate::object::Object;
use crate::unread;

/// Members that hold terms of payment.
const BLOCK_KEYS: &[&str] = &[
    "payment",
    "payments",
    "x402",
    "networks",
    "payment_rails",
    "paymentRails",
    "payment_protocol",
    "alternative_payment",
    "alternative_payments",
];
const CONTRACT_KEYS: &[&str] = &[
    "contract",
    "contract_address",
    "contractAddress",
    "asset_address",
    "assetAddress",
    "asset_contract",
    "token_address",
    "tokenAddress",
    "issuer",
];
const NETWORK_KEYS: &[&str] = &["network", "chain", "key", "name"];
/// Maximum nesting of networks in a block, and maximum number of contracts that are kept from one document.
const NESTING_MAX: usize = 3;
const CONTRACTS_MAX: usize = 50;
/// Minimum number of characters of the address of a contract: 32 bytes in base58 have at least 32 characters, an account of the XRP Ledger
/// has at least 25.
const ADDRESS_CHARS_MIN: usize = 25;

/// Keeps the contracts that the terms of payment name, by network.
pub(crate) fn keep(root: &Object<'_>, draft: &mut Draft<'_>) {
    let mut contracts = Map::new();
    for key in BLOCK_KEYS {
        read_member(key, root.value(key), &root.at(key), 0, &mut contracts);
    }
    keep_identity(root, draft);
    if !contracts.is_empty() {
        draft.manifest.features.other.insert("asset_contracts".to_owned(), Value::Object(contracts));
    }
}

/// Members with the names and accounts of the service on blockchains.
const IDENTITY_KEYS: &[&str] = &["identity", "identities", "wallets"];
/// Maximum number of members of an object with names and accounts. All of them are texts, numbers or flags.
const IDENTITY_MAX: usize = 20;

/// Keeps the accounts of the service, if the document names them outside its terms of payment: `"identity": {"bitcoin": "bc1…"}`.
fn keep_identity(root: &Object<'_>, draft: &mut Draft<'_>) {
    let is_account = |text: &&str| is_address(text) && text.bytes().any(|byte| byte.is_ascii_digit());
    let is_plain = |value: &Value| match value {
        Value::String(text) => text.len() <= draft::NAME_BYTES_MAX,
        other => other.is_number() || other.is_boolean(),
    };
    let stated = IDENTITY_KEYS.iter().filter_map(|key| root.object(key)).find(|block| {
        block.map.len() <= IDENTITY_MAX
            && block.map.values().all(is_plain)
            && block.map.values().filter_map(Value::as_str).any(|text| is_account(&text))
            && !unread::holds_secret(&Value::Object(block.map.clone()))
    });
    if let Some(block) = stated {
        let other = &mut draft.manifest.features.other;
        other.insert("identity".to_owned(), Value::Object(block.map.clone()));
    }
}

fn read_member(
    name: &str,
    value: Option<&Value>,
    pointer: &str,
    depth: usize,
    contracts: &mut Map<String, Value>,
) {
    if depth > NESTING_MAX || contracts.len() >= CONTRACTS_MAX {
        return;
    }
    match value {
        Some(Value::Object(map)) => {
            read_block(name, &Object::new(map, pointer.to_owned()), contracts);
            for (inner, value) in map.iter().filter(|(_, value)| value.is_object() || value.is_array()) {
                read_member(inner, Some(value), pointer, depth + 1, contracts);
            }
        }
        Some(Value::Array(list)) => {
            for item in list.iter().filter(|item| item.is_object()).take(CONTRACTS_MAX) {
                read_member(name, Some(item), pointer, depth + 1, contracts);
            }
        }
        _ => {}
    }
}

/// Keeps the contract of one block by its network, or by the name of the block.
fn read_block(name: &str, block: &Object<'_>, contracts: &mut Map<String, Value>) {
    let of_asset = || {
        let named = block.map.iter().filter(|(name, _)| lenient::is_currency(name));
        named.filter_map(|(_, value)| value.as_str()).find(|text| is_address(text))
    };
    let stated = block.text_of(CONTRACT_KEYS).filter(|text| is_address(text)).or_else(of_asset);
    let network = draft::name(block.text_of(NETWORK_KEYS)).unwrap_or_else(|| name.to_owned());
    if let Some(contract) = stated.filter(|_| contracts.len() < CONTRACTS_MAX) {
        contracts.entry(network).or_insert_with(|| Value::from(contract));
    }
}

/// Whether a text may be the address of a contract or of an issuer.
pub(super) fn is_address(text: &str) -> bool {
    text.len() >= ADDRESS_CHARS_MIN
        && text.len() <= draft::NAME_BYTES_MAX
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b':' | b'_' | b'-' | b'.'))
}

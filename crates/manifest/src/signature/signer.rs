//! Signs the card of this service (A2A 1.0 §8.4) with Ed25519.

use std::fmt;

use data_encoding::BASE64URL_NOPAD;
use ring::digest;
use ring::signature::{Ed25519KeyPair, KeyPair};
use serde_json::{Map, Value, json};

use super::card;

/// A key that cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the key is not an Ed25519 key in PKCS #8: make one with openssl genpkey -algorithm ed25519")]
pub struct CardSignerError;

/// Signs cards with one key.
pub struct CardSigner {
    key: Ed25519KeyPair,
    key_id: String,
}

impl CardSigner {
    /// Reads a key in PKCS #8, as DER.
    pub fn from_pkcs8(der: &[u8]) -> Result<Self, CardSignerError> {
        let key = Ed25519KeyPair::from_pkcs8_maybe_unchecked(der).map_err(|_| CardSignerError)?;
        let x = BASE64URL_NOPAD.encode(key.public_key().as_ref());
        // RFC 7638: the thumbprint covers the required members, in this order
        let members = format!(r#"{{"crv":"Ed25519","kty":"OKP","x":"{x}"}}"#);
        let thumbprint = digest::digest(&digest::SHA256, members.as_bytes());
        Ok(Self { key, key_id: BASE64URL_NOPAD.encode(thumbprint.as_ref()) })
    }

    /// The public key, as a set of JSON Web Keys.
    pub fn key_set(&self) -> Value {
        let x = BASE64URL_NOPAD.encode(self.key.public_key().as_ref());
        json!({"keys": [{"kty": "OKP", "crv": "Ed25519", "x": x, "kid": self.key_id, "use": "sig", "alg": "EdDSA"}]})
    }

    /// Adds a signature to a card, over all its members but these. `key_set_url` is where [`Self::key_set`] is served.
    pub fn sign(&self, card: &mut Map<String, Value>, left_out: &[&str], key_set_url: &str) {
        let header = json!({"alg": "EdDSA", "typ": "JOSE", "kid": self.key_id, "jku": key_set_url});
        let protected = BASE64URL_NOPAD.encode(header.to_string().as_bytes());
        let mut content = card.clone();
        content.retain(|name, _| !left_out.contains(&name.as_str()));
        // the first payload is the one that the specification defines
        let payload = card::payloads(&content).into_iter().next().unwrap_or_default();
        let message = format!("{protected}.{}", BASE64URL_NOPAD.encode(&payload));
        let signature = BASE64URL_NOPAD.encode(self.key.sign(message.as_bytes()).as_ref());
        let signatures = card.entry("signatures").or_insert_with(|| json!([]));
        if let Some(signatures) = signatures.as_array_mut() {
            signatures.push(json!({"protected": protected, "signature": signature}));
        }
    }
}

impl fmt::Debug for CardSigner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CardSigner").field("key_id", &self.key_id).finish_non_exhaustive()
    }
}

//! Keys that an instance issues: random bytes, of which only the hash is stored.

use ring::digest;
use serde::{Deserialize, Serialize};

/// Random bytes of a key.
pub const KEY_BYTES: usize = 32;

/// The kind of a key's holder. The text of a key begins with its kind, so that scanners for leaked secrets recognise it, and a key of one
/// kind is not accepted as another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyKind {
    /// The owner of a site (see [`crate::claim`]).
    Owner,
    /// A client of the API with its own limits.
    Reader,
    /// The creator of a watch (see [`crate::webhook`]).
    Watch,
}

impl KeyKind {
    /// The prefix of the text of a key.
    pub const fn prefix(self) -> &'static str {
        match self {
            Self::Owner => "agentdex-key-",
            Self::Reader => "agentdex-reader-",
            Self::Watch => "agentdex-watch-",
        }
    }
}

/// A new key with its hash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IssuedKey {
    /// The secret key, which is shown only once.
    pub key: String,
    pub hash: KeyHash,
}

impl IssuedKey {
    /// Creates the key from these random bytes.
    pub fn new(kind: KeyKind, random: &[u8; KEY_BYTES]) -> Self {
        let key = format!("{}{}", kind.prefix(), data_encoding::HEXLOWER.encode(random));
        Self { key, hash: KeyHash::of_bytes(random) }
    }
}

/// The SHA-256 of a key, in hexadecimal.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub struct KeyHash(String);

/// A text that is not the hash of a key.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("the hash of a key has 64 hexadecimal digits")]
pub struct KeyHashError;

impl KeyHash {
    /// The hash of a key as its holder sends it; `None` for a text that is not a key of this kind.
    pub fn of_key(kind: KeyKind, key: &str) -> Option<Self> {
        let digits = key.trim().strip_prefix(kind.prefix())?;
        let bytes = data_encoding::HEXLOWER.decode(digits.as_bytes()).ok()?;
        (bytes.len() == KEY_BYTES).then(|| Self::of_bytes(&bytes))
    }

    pub(crate) fn of_bytes(bytes: &[u8]) -> Self {
        Self(data_encoding::HEXLOWER.encode(digest::digest(&digest::SHA256, bytes).as_ref()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::str::FromStr for KeyHash {
    type Err = KeyHashError;

    fn from_str(text: &str) -> Result<Self, KeyHashError> {
        let bytes = data_encoding::HEXLOWER.decode(text.as_bytes()).map_err(|_| KeyHashError)?;
        if bytes.len() == digest::SHA256_OUTPUT_LEN { Ok(Self(text.to_owned())) } else { Err(KeyHashError) }
    }
}

impl TryFrom<String> for KeyHash {
    type Error = KeyHashError;

    fn try_from(text: String) -> Result<Self, KeyHashError> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_of_one_kind_is_not_accepted_as_another() {
        let random = [7; KEY_BYTES];
        let kinds = [KeyKind::Owner, KeyKind::Reader, KeyKind::Watch];
        for kind in kinds {
            let issued = IssuedKey::new(kind, &random);
            for other in kinds {
                let hash = KeyHash::of_key(other, &issued.key);
                assert_eq!(hash, (other == kind).then(|| issued.hash.clone()), "{kind:?} as {other:?}");
            }
        }
    }
}

//! The result of checking a signature.

use serde::{Deserialize, Serialize};

crate::string_enum! {
    /// The result of checking the signature of a document or of a part of it.
    SignatureStatus, "status of a signature" {
        /// A key of the publisher's own origin or DID made the signature.
        Verified = "verified",
        /// The keys are known, and none of them made the signature; or the signature breaks a rule.
        Invalid = "invalid",
        /// There is no signature.
        Unsigned = "unsigned",
        /// The key could not be read, or its location is not accepted.
        Unresolvable = "unresolvable",
    }
}

/// A signature that was checked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignatureCheck {
    pub status: SignatureStatus,
    /// The `kid` of the key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub algorithm: Option<String>,
    /// The URL of the document that contains the key, or the did:key itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_source: Option<String>,
    /// When the signed document was received. The key must be valid at this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checked_at: Option<String>,
    /// When the key expires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub valid_until: Option<String>,
    /// Why the signature is not verified.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl SignatureCheck {
    /// The result for a document without a signature.
    pub(crate) const UNSIGNED: Self = Self {
        status: SignatureStatus::Unsigned,
        key_id: None,
        algorithm: None,
        key_source: None,
        checked_at: None,
        valid_until: None,
        reason: None,
    };
}

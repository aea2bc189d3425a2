//! JSON Web Signatures (RFC 7515): the protected header, the closed list of algorithms, and verification with `ring`.

use data_encoding::BASE64URL_NOPAD;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256, RSA_PSS_2048_8192_SHA256,
    RsaPublicKeyComponents, UnparsedPublicKey,
};
use serde::Deserialize;
use serde_json::Value;

use super::Refusal;

/// Maximum number of bytes of an encoded protected header: a few short members and an address.
const HEADER_BYTES_MAX: usize = 8 * 1_024;
/// Maximum number of bytes of an encoded signature: RSA with 8,192 bits takes 1,366.
const SIGNATURE_BYTES_MAX: usize = 2 * 1_024;

/// The accepted algorithms (RFC 7518, RFC 8037, RFC 9864): asymmetric, and sound in `ring`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Algorithm {
    Es256,
    EdDsa,
    Rs256,
    Ps256,
}

impl Algorithm {
    fn parse(name: &str) -> Result<Self, Refusal> {
        match name {
            "ES256" => Ok(Self::Es256),
            "EdDSA" | "Ed25519" => Ok(Self::EdDsa),
            "RS256" => Ok(Self::Rs256),
            "PS256" => Ok(Self::Ps256),
            _ => Err(Refusal::invalid(format!(
                "the algorithm \"{}\" is not one of ES256, EdDSA, RS256 and PS256",
                crate::text::capped(name, 40)
            ))),
        }
    }
}

/// The protected header. Other members have no effect; a member that occurs twice is refused.
#[derive(Debug, Deserialize)]
pub(super) struct Header {
    pub(super) alg: String,
    #[serde(default)]
    pub(super) kid: Option<String>,
    #[serde(default)]
    pub(super) jku: Option<String>,
    #[serde(default)]
    typ: Option<String>,
    #[serde(default)]
    crit: Option<Value>,
    #[serde(default)]
    b64: Option<Value>,
}

/// A signature whose header was read.
#[derive(Debug)]
pub(super) struct Jws<'t> {
    protected: &'t str,
    pub(super) header: Header,
    pub(super) algorithm: Algorithm,
    signature: Vec<u8>,
}

impl<'t> Jws<'t> {
    /// Reads the header and the signature, both in base64url.
    pub(super) fn parse(protected: &'t str, signature: &str) -> Result<Self, Refusal> {
        if protected.len() > HEADER_BYTES_MAX || signature.len() > SIGNATURE_BYTES_MAX {
            return Err(Refusal::invalid("the signature or its protected header is too long".to_owned()));
        }
        let decoded = |text: &str| BASE64URL_NOPAD.decode(text.as_bytes()).ok();
        let header: Option<Header> = decoded(protected).and_then(|bytes| serde_json::from_slice(&bytes).ok());
        let header = header.ok_or_else(|| {
            Refusal::invalid("the protected header is not the base64url of an object with `alg`".to_owned())
        })?;
        let signature = decoded(signature)
            .ok_or_else(|| Refusal::invalid("the signature is not base64url".to_owned()))?;
        if header.crit.is_some() || header.b64.is_some() {
            return Err(Refusal::invalid("the protected header has critical extensions".to_owned()));
        }
        // A token that the site issued to a user must not be accepted as a statement of the site (RFC 8725 §3.11).
        if header.typ.as_deref().is_some_and(|typ| typ.to_ascii_lowercase().ends_with("jwt")) {
            return Err(Refusal::invalid(
                "it is a JSON Web Token, and not a signature of a document".to_owned(),
            ));
        }
        let algorithm = Algorithm::parse(&header.alg)?;
        Ok(Self { protected, header, algorithm, signature })
    }

    /// Reads a detached signature in compact form: `header..signature`.
    pub(super) fn parse_detached(text: &'t str) -> Result<Self, Refusal> {
        let parts: Vec<&str> = text.splitn(4, '.').collect();
        match parts.as_slice() {
            [protected, "", signature] => Self::parse(protected, signature),
            _ => Err(Refusal::invalid("the signature is not a detached JWS, header..signature".to_owned())),
        }
    }

    /// Whether `key` made this signature of `payload`.
    pub(super) fn is_made_by(&self, key: &VerifyingKey, payload: &[u8]) -> bool {
        let message = [self.protected.as_bytes(), b".", BASE64URL_NOPAD.encode(payload).as_bytes()].concat();
        match key {
            VerifyingKey::P256(point) => UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point)
                .verify(&message, &self.signature)
                .is_ok(),
            VerifyingKey::Ed25519(point) => {
                UnparsedPublicKey::new(&ED25519, point).verify(&message, &self.signature).is_ok()
            }
            VerifyingKey::Rsa(components) => {
                let parameters = match self.algorithm {
                    Algorithm::Ps256 => &RSA_PSS_2048_8192_SHA256,
                    _ => &RSA_PKCS1_2048_8192_SHA256,
                };
                components.verify(parameters, &message, &self.signature).is_ok()
            }
        }
    }
}

/// The members of a JSON Web Key (RFC 7517, RFC 7518 §6, RFC 8037) that are used. Others have no effect.
#[derive(Debug, Deserialize)]
struct Jwk<'v> {
    kty: &'v str,
    #[serde(default)]
    crv: Option<&'v str>,
    #[serde(default)]
    x: Option<&'v str>,
    #[serde(default)]
    y: Option<&'v str>,
    #[serde(default)]
    n: Option<&'v str>,
    #[serde(default)]
    e: Option<&'v str>,
    #[serde(default, rename = "use")]
    usage: Option<&'v str>,
    #[serde(default)]
    key_ops: Option<Vec<&'v str>>,
    #[serde(default)]
    alg: Option<&'v str>,
}

/// A public key, ready for one kind of algorithm.
#[derive(Debug)]
pub(super) enum VerifyingKey {
    /// The uncompressed point.
    P256(Vec<u8>),
    Ed25519(Vec<u8>),
    Rsa(RsaPublicKeyComponents<Vec<u8>>),
}

/// Maximum number of bytes of a public exponent of RSA. The usual one, 65,537, has three; the time of a verification grows with
/// its length.
const RSA_EXPONENT_BYTES_MAX: usize = 3;
/// Bytes of a coordinate of P-256, and of a key of Ed25519.
const POINT_BYTES: usize = 32;

impl VerifyingKey {
    /// The key of a JWK (RFC 7517) for an algorithm, if the key may be used for it.
    pub(super) fn of_jwk(published: &Value, algorithm: Algorithm) -> Result<Self, Refusal> {
        let unfit = |reason: &str| Refusal::invalid(format!("the key {reason}"));
        if ["d", "k"].iter().any(|private| published.get(private).is_some()) {
            return Err(unfit("is published with its private part"));
        }
        let jwk = Jwk::deserialize(published).map_err(|_| unfit("is not a JSON Web Key"))?;
        if jwk.usage.is_some_and(|usage| usage != "sig") {
            return Err(unfit("is not for signatures (`use`)"));
        }
        if jwk.key_ops.is_some_and(|operations| !operations.contains(&"verify")) {
            return Err(unfit("is not for verification (`key_ops`)"));
        }
        let decoded = |text: Option<&str>| BASE64URL_NOPAD.decode(text?.as_bytes()).ok();
        if decoded(jwk.e).is_some_and(|exponent| exponent.len() > RSA_EXPONENT_BYTES_MAX) {
            return Err(unfit("has a public exponent of more than three bytes"));
        }
        if jwk.alg.is_some_and(|stated| Algorithm::parse(stated).ok() != Some(algorithm)) {
            return Err(unfit("is for another algorithm (`alg`)"));
        }
        let point = |text: Option<&str>| decoded(text).filter(|bytes| bytes.len() == POINT_BYTES);
        let key = match (algorithm, jwk.kty, jwk.crv) {
            // SEC 1 §2.3.3: 4, x, y
            (Algorithm::Es256, "EC", Some("P-256")) => {
                point(jwk.x).zip(point(jwk.y)).map(|(x, y)| Self::P256([vec![4], x, y].concat()))
            }
            (Algorithm::EdDsa, "OKP", Some("Ed25519")) => point(jwk.x).map(Self::Ed25519),
            (Algorithm::Rs256 | Algorithm::Ps256, "RSA", _) => {
                decoded(jwk.n).zip(decoded(jwk.e)).map(|(n, e)| Self::Rsa(RsaPublicKeyComponents { n, e }))
            }
            _ => None,
        };
        key.ok_or_else(|| unfit("does not fit the algorithm of the signature"))
    }

    /// The key of the multicodec `ed25519-pub` in base58 (Multikey, did:key). Other kinds are not read.
    pub(super) fn of_multibase(text: &str, algorithm: Algorithm) -> Result<Self, Refusal> {
        /// `ed25519-pub` as an unsigned varint.
        const ED25519_PUB: [u8; 2] = [0xed, 0x01];
        /// Slightly more than the bytes of an Ed25519 key in base58 with its `z`.
        const ENCODED_BYTES_MAX: usize = 64;
        let unread = || Refusal::unresolvable("the key is not an Ed25519 key in base58 (z6Mk…)".to_owned());
        let encoded =
            text.strip_prefix('z').filter(|encoded| encoded.len() <= ENCODED_BYTES_MAX).ok_or_else(unread)?;
        let bytes = bs58::decode(encoded).into_vec().map_err(|_| unread())?;
        let key =
            bytes.strip_prefix(&ED25519_PUB).filter(|key| key.len() == POINT_BYTES).ok_or_else(unread)?;
        if algorithm != Algorithm::EdDsa {
            return Err(Refusal::invalid("the key does not fit the algorithm of the signature".to_owned()));
        }
        Ok(Self::Ed25519(key.to_vec()))
    }
}

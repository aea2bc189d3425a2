//! Web Bot Auth: signs every request with the operator's key (RFC 9421, Ed25519), so that a site can distinguish this crawler
//! from clients that use its name.
//!
//! The signature covers the authority and the location of the key directory, as the architecture draft requires. It is valid for one minute
//! and for that host only. The private key is read from its file and never written. The public key is in the key directory, a file in the
//! data directory that `api` serves.

use std::fmt;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use data_encoding::{BASE64, BASE64URL_NOPAD};
use http::{HeaderMap, HeaderName, HeaderValue};
use manifest::ManifestUrl;
use ring::digest::{SHA256, digest};
use ring::rand::{SecureRandom, SystemRandom};
use ring::signature::{Ed25519KeyPair, KeyPair};
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::pki_types::pem::PemObject;
use url::Url;

/// Validity of a signature in seconds: as long as a request may take, and short enough to limit replays.
const VALID_S: i64 = 60;
/// The purpose of the signature, so that it cannot be used for anything else.
const TAG: &str = "web-bot-auth";
/// Bytes of the nonce that the draft recommends.
const NONCE_BYTES: usize = 64;
const SIGNATURE: HeaderName = HeaderName::from_static("signature");
const SIGNATURE_INPUT: HeaderName = HeaderName::from_static("signature-input");
const SIGNATURE_AGENT: HeaderName = HeaderName::from_static("signature-agent");

/// Why a key cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    #[error(
        "the key file is not PEM text with a BEGIN PRIVATE KEY block: make one with openssl genpkey -algorithm ed25519"
    )]
    NoKey,
    #[error("the key is not an Ed25519 key: make one with openssl genpkey -algorithm ed25519")]
    NotEd25519,
    #[error("\"{0}\" cannot serve a key directory: write an origin like https://crawler.example.org")]
    Agent(String),
}

/// Signs requests; cheap to clone.
#[derive(Clone)]
pub struct Signer(Arc<Inner>);

struct Inner {
    key: Ed25519KeyPair,
    key_id: String,
    /// The origin that serves the directory, as a structured string.
    agent: String,
    random: SystemRandom,
}

impl Signer {
    /// Reads a key in PEM (PKCS #8). `agent` is the origin that serves the key directory.
    pub fn new(pem: &[u8], agent: &str) -> Result<Self, KeyError> {
        let der = PrivatePkcs8KeyDer::from_pem_slice(pem).map_err(|_| KeyError::NoKey)?;
        let key = Ed25519KeyPair::from_pkcs8_maybe_unchecked(der.secret_pkcs8_der())
            .map_err(|_| KeyError::NotEd25519)?;
        let origin = Url::parse(agent).ok().filter(|url| url.scheme() == "https" && url.path() == "/");
        let origin = origin.ok_or_else(|| KeyError::Agent(agent.to_owned()))?.origin().ascii_serialization();
        let key_id = thumbprint(key.public_key().as_ref());
        Ok(Self(Arc::new(Inner { key, key_id, agent: format!("\"{origin}\""), random: SystemRandom::new() })))
    }

    /// The headers of one request.
    pub(crate) fn headers(&self, url: &ManifestUrl, now: DateTime<Utc>) -> HeaderMap {
        let inner = &self.0;
        let created = now.timestamp();
        let parameters = format!(
            "(\"@authority\" \"signature-agent\");created={created};expires={};keyid=\"{}\";alg=\"ed25519\"{};tag=\"{TAG}\"",
            created + VALID_S,
            inner.key_id,
            self.nonce().map(|nonce| format!(";nonce=\"{nonce}\"")).unwrap_or_default(),
        );
        let base = format!(
            "\"@authority\": {}\n\"signature-agent\": {}\n\"@signature-params\": {parameters}",
            url.host(),
            inner.agent
        );
        let signature = BASE64.encode(inner.key.sign(base.as_bytes()).as_ref());
        let fields = [
            (SIGNATURE_AGENT, inner.agent.clone()),
            (SIGNATURE_INPUT, format!("sig1={parameters}")),
            (SIGNATURE, format!("sig1=:{signature}:")),
        ];
        // all of it is printable ASCII
        fields
            .into_iter()
            .filter_map(|(name, text)| Some((name, HeaderValue::try_from(text).ok()?)))
            .collect()
    }

    /// The key directory: the public key, as a JSON Web Key Set.
    pub fn directory(&self) -> serde_json::Value {
        let x = BASE64URL_NOPAD.encode(self.0.key.public_key().as_ref());
        serde_json::json!({ "keys": [{ "kty": "OKP", "crv": "Ed25519", "x": x, "kid": self.0.key_id, "use": "sig" }] })
    }

    /// A random nonce. `None` if the system provides no random bytes, because the nonce is optional.
    fn nonce(&self) -> Option<String> {
        let mut bytes = [0; NONCE_BYTES];
        self.0.random.fill(&mut bytes).is_ok().then(|| BASE64.encode(&bytes))
    }
}

/// The id of the key: its thumbprint (RFC 7638).
fn thumbprint(public_key: &[u8]) -> String {
    let x = BASE64URL_NOPAD.encode(public_key);
    let jwk = format!(r#"{{"crv":"Ed25519","kty":"OKP","x":"{x}"}}"#);
    BASE64URL_NOPAD.encode(digest(&SHA256, jwk.as_bytes()).as_ref())
}

impl fmt::Debug for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Signer").field("key_id", &self.0.key_id).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ring::signature::{ED25519, UnparsedPublicKey};

    /// The key of RFC 9421, appendix B.1.4.
    const KEY: &str = "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIJ+DYvh6SEqVTm50DFtMDoQikTmiCqirVv9mWG9qfSnF\n-----END PRIVATE KEY-----\n";

    #[test]
    fn the_key_id_is_the_thumbprint() {
        let signer = Signer::new(KEY.as_bytes(), "https://signer.example/").unwrap();
        let directory = signer.directory();
        assert_eq!(directory["keys"][0]["x"], "JrQLj5P_89iXES9-vFgrIy29clF9CC_oPPsw3c5D0bs");
        assert_eq!(directory["keys"][0]["kid"], "poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U");
    }

    #[test]
    fn key_directory_contains_only_the_public_key() {
        let signer = Signer::new(KEY.as_bytes(), "https://signer.example").unwrap();
        let directory = signer.directory();
        let members: Vec<&String> = directory["keys"][0].as_object().unwrap().keys().collect();
        assert_eq!(members, ["kty", "crv", "x", "kid", "use"]);
        // the private key in RFC 9421
        assert!(!directory.to_string().contains("n4Ni-HpISpVObnQMW0wOhCKROaIKqKtW_2ZYb2p9KcU"));
    }

    #[test]
    fn signs_the_authority_and_the_agent() {
        let signer = Signer::new(KEY.as_bytes(), "https://signer.example").unwrap();
        let url = ManifestUrl::parse("https://shop.example/agent.json").unwrap();
        let headers = signer.headers(&url, DateTime::<Utc>::UNIX_EPOCH + chrono::TimeDelta::days(20_000));
        let text = |name: &HeaderName| headers.get(name).unwrap().to_str().unwrap().to_owned();
        let input = text(&SIGNATURE_INPUT);
        let parameters = input.strip_prefix("sig1=").unwrap();
        let base = format!(
            "\"@authority\": shop.example\n\"signature-agent\": \"https://signer.example\"\n\"@signature-params\": {parameters}"
        );
        let signature = text(&SIGNATURE);
        let signature = signature.strip_prefix("sig1=:").and_then(|rest| rest.strip_suffix(':')).unwrap();
        let signature = BASE64.decode(signature.as_bytes()).unwrap();
        let key = UnparsedPublicKey::new(&ED25519, signer.0.key.public_key().as_ref().to_vec());
        key.verify(base.as_bytes(), &signature).unwrap();
        assert!(key.verify(base.replace("shop", "other").as_bytes(), &signature).is_err());
    }

    #[test]
    fn rejects_unusable_keys_and_signature_agents() {
        assert_eq!(Signer::new(b"hello", "https://a.example").unwrap_err(), KeyError::NoKey);
        for agent in ["a.example", "http://a.example", "https://a.example/page"] {
            assert!(matches!(Signer::new(KEY.as_bytes(), agent), Err(KeyError::Agent(_))), "{agent}");
        }
    }
}

//! Signatures by different signers and algorithms, with keys at different locations, and their results.

#![expect(clippy::unwrap_used, reason = "a failed test should show the line")]

use chrono::{DateTime, TimeDelta};
use data_encoding::BASE64URL_NOPAD;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair, RSA_PKCS1_SHA256, RSA_PSS_SHA256,
    RsaKeyPair, RsaPublicKeyComponents,
};
use serde_json::{Map, Value, json};

use manifest::model::{Served, SignatureCheck};
use manifest::{
    CardSigner, Discovery, Document, IdentityMark, LinkedDocument, Manifest, ManifestUrl, NamedBy, Severity,
    read,
};

const CARD_URL: &str = "https://agents.a.example/.well-known/agent-card.json";
const CATALOG_URL: &str = "https://a.example/.well-known/ard.json";
const JWKS_URL: &str = "https://agents.a.example/jwks.json";
const DID_URL: &str = "https://a.example/.well-known/did.json";
const NOW: &str = "2026-11-25T12:00:00Z";

/// Makes signatures for tests.
enum Key {
    Ed25519(Ed25519KeyPair),
    P256(EcdsaKeyPair),
    /// The key and the algorithm, RS256 or PS256.
    Rsa(RsaKeyPair, &'static str),
}

/// An RSA key of 2,048 bits for tests, in PKCS #8.
const RSA_KEY: &[u8] = include_bytes!("signatures/rsa_key.der");
/// The key of RFC 8032 §7.1, test 1.
const ED25519_SEED: &str = "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60";

fn ed25519() -> Key {
    Key::Ed25519(ed25519_of(ED25519_SEED))
}

fn ed25519_of(seed: &str) -> Ed25519KeyPair {
    let seed = data_encoding::HEXLOWER.decode(seed.as_bytes()).unwrap();
    Ed25519KeyPair::from_seed_unchecked(&seed).unwrap()
}

fn other_ed25519() -> Key {
    Key::Ed25519(ed25519_of(&"4c".repeat(32)))
}

fn p256() -> Key {
    let random = SystemRandom::new();
    let pkcs8 = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
    Key::P256(EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, pkcs8.as_ref(), &random).unwrap())
}

fn rsa(algorithm: &'static str) -> Key {
    Key::Rsa(RsaKeyPair::from_pkcs8(RSA_KEY).unwrap(), algorithm)
}

fn encoded(bytes: &[u8]) -> String {
    BASE64URL_NOPAD.encode(bytes)
}

impl Key {
    fn algorithm(&self) -> &'static str {
        match self {
            Self::Ed25519(_) => "EdDSA",
            Self::P256(_) => "ES256",
            Self::Rsa(_, algorithm) => algorithm,
        }
    }

    fn jwk(&self, kid: &str) -> Value {
        match self {
            Self::Ed25519(key) => {
                json!({"kty": "OKP", "crv": "Ed25519", "x": encoded(key.public_key().as_ref()), "kid": kid})
            }
            Self::P256(key) => {
                let point = key.public_key().as_ref();
                json!({"kty": "EC", "crv": "P-256", "x": encoded(&point[1..33]), "y": encoded(&point[33..]), "kid": kid})
            }
            Self::Rsa(key, _) => {
                let public = RsaPublicKeyComponents::<Vec<u8>>::from(key.public());
                json!({"kty": "RSA", "n": encoded(&public.n), "e": encoded(&public.e), "kid": kid})
            }
        }
    }

    fn did_key(&self) -> String {
        let Self::Ed25519(key) = self else { panic!("only Ed25519") };
        let bytes = [&[0xed, 0x01], key.public_key().as_ref()].concat();
        format!("did:key:z{}", bs58::encode(bytes).into_string())
    }

    /// Protected header and signature of a payload.
    fn sign(&self, header: &Value, payload: &[u8]) -> (String, String) {
        let protected = encoded(header.to_string().as_bytes());
        let message = format!("{protected}.{}", encoded(payload));
        let message = message.as_bytes();
        let random = SystemRandom::new();
        let signature = match self {
            Self::Ed25519(key) => key.sign(message).as_ref().to_vec(),
            Self::P256(key) => key.sign(&random, message).unwrap().as_ref().to_vec(),
            Self::Rsa(key, algorithm) => {
                let mut signature = vec![0; key.public().modulus_len()];
                let padding: &dyn ring::signature::RsaEncoding =
                    if *algorithm == "PS256" { &RSA_PSS_SHA256 } else { &RSA_PKCS1_SHA256 };
                key.sign(padding, &random, message, &mut signature).unwrap();
                signature
            }
        };
        (protected, encoded(&signature))
    }
}

fn card() -> Map<String, Value> {
    let card = json!({"name": "Seats", "description": "Books seats", "version": "1.0.0", "capabilities": {"streaming": false},
        "supportedInterfaces": [{"url": "https://agents.a.example/a2a", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}],
        "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"],
        "skills": [{"id": "book", "name": "Book", "description": "Books a seat", "tags": ["seats"]}]});
    card.as_object().unwrap().clone()
}

fn header(key: &Key) -> Value {
    json!({"alg": key.algorithm(), "typ": "JOSE", "kid": "key-1", "jku": JWKS_URL})
}

/// A card with one signature.
fn signed(key: &Key, header: &Value) -> Value {
    sign_card(card(), key, header)
}

fn sign_card(mut card: Map<String, Value>, key: &Key, header: &Value) -> Value {
    let payload = serde_json_canonicalizer::to_vec(&card).unwrap();
    let (protected, signature) = key.sign(header, &payload);
    card.insert("signatures".to_owned(), json!([{"protected": protected, "signature": signature}]));
    Value::Object(card)
}

fn key_set(keys: &[Value]) -> Value {
    json!({"keys": keys})
}

/// A JWK with further members.
fn with(mut jwk: Value, members: &Value) -> Value {
    jwk.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
    jwk
}

fn read_at(url: &str, text: &str, linked: &[(&str, Vec<u8>)]) -> Manifest {
    let url = ManifestUrl::parse(url).unwrap();
    let linked: Vec<(ManifestUrl, &[u8])> =
        linked.iter().map(|(url, bytes)| (ManifestUrl::parse(url).unwrap(), bytes.as_slice())).collect();
    let linked: Vec<LinkedDocument<'_>> =
        linked.iter().map(|(url, bytes)| LinkedDocument { url, bytes }).collect();
    let served = Served { at: Some(NOW.to_owned()), status: 200, ..Served::default() };
    read(&Document {
        bytes: text.as_bytes(),
        url: &url,
        final_url: None,
        discovery: Discovery::WellKnown,
        served: Some(&served),
        linked: &linked,
        force: None,
    })
}

fn check_of(manifest: &Manifest) -> SignatureCheck {
    manifest.identity(NamedBy::Site).signature.into_owned()
}

/// The result for a card with a key document.
fn card_with(card: &Value, url: &str, keys: &Value) -> SignatureCheck {
    check_of(&read_at(CARD_URL, &card.to_string(), &[(url, keys.to_string().into_bytes())]))
}

/// Asserts the status, and that the reason contains `words`.
#[track_caller]
fn assert_result(check: &SignatureCheck, status: &str, words: &str) {
    let reason = check.reason.as_deref().unwrap_or_default();
    assert_eq!(check.status.as_str(), status, "{reason}");
    assert!(reason.contains(words), "\"{reason}\" does not contain \"{words}\"");
}

#[test]
fn every_algorithm_of_the_list_verifies_a_card() {
    for key in [ed25519(), p256(), rsa("RS256"), rsa("PS256")] {
        let check = card_with(&signed(&key, &header(&key)), JWKS_URL, &key_set(&[key.jwk("key-1")]));
        assert_result(&check, "verified", "");
        assert_eq!(check.key_id.as_deref(), Some("key-1"));
        assert_eq!(check.algorithm.as_deref(), Some(key.algorithm()));
        assert_eq!(check.key_source.as_deref(), Some(JWKS_URL));
        assert_eq!(check.checked_at.as_deref(), Some(NOW));
    }
}

#[test]
fn a_changed_card_is_invalid_and_a_finding_of_level_must() {
    let key = ed25519();
    let mut card = signed(&key, &header(&key));
    card["name"] = json!("Other");
    let keys = key_set(&[key.jwk("key-1")]).to_string().into_bytes();
    let manifest = read_at(CARD_URL, &card.to_string(), &[(JWKS_URL, keys)]);
    assert_result(&check_of(&manifest), "invalid", "does not match");
    let finding = manifest.findings.iter().find(|finding| finding.code == "signature.invalid").unwrap();
    assert_eq!((finding.severity, finding.pointer.as_str()), (Severity::Must, "/signatures/0"));
    assert!(!manifest.identity(NamedBy::Site).verified);
    assert_eq!(manifest.integrity.verified, Some(false));
}

#[test]
fn a_card_without_signatures_is_unsigned() {
    let manifest = read_at(CARD_URL, &Value::Object(card()).to_string(), &[]);
    assert_eq!(manifest.identity(NamedBy::Site).signature.status.as_str(), "unsigned");
    let is_about_signatures = |finding: &manifest::Finding| finding.code.starts_with("signature.");
    assert!(manifest.links.is_empty() && !manifest.findings.iter().any(is_about_signatures));
}

#[test]
fn a_key_that_expired_after_the_visit_verifies_nothing() {
    let key = ed25519();
    let now = DateTime::parse_from_rfc3339(NOW).unwrap().to_utc();
    let mut jwk = key.jwk("key-1");
    jwk["exp"] = json!(now.timestamp() + 3_600);
    let card = signed(&key, &header(&key)).to_string();
    let manifest = read_at(CARD_URL, &card, &[(JWKS_URL, key_set(&[jwk]).to_string().into_bytes())]);
    assert_eq!(manifest.keys_expire_at(), Some(now + TimeDelta::seconds(3_600 + 300)));
    let after = |seconds: i64| manifest.identity(NamedBy::Site).at(now + TimeDelta::seconds(seconds));
    assert!(after(3_899).verified);
    let expired = after(3_901);
    assert!(!expired.verified);
    assert_result(&expired.signature, "invalid", "has expired");
    assert!(!expired.marks().contains(&IdentityMark::Verified));
    let unlimited = key_set(&[key.jwk("key-1")]).to_string().into_bytes();
    let manifest = read_at(CARD_URL, &card, &[(JWKS_URL, unlimited)]);
    assert_eq!(manifest.keys_expire_at(), None);
    assert!(manifest.identity(NamedBy::Site).at(now + TimeDelta::days(10_000)).verified);
}

#[test]
fn algorithms_outside_the_list_are_invalid() {
    let key = ed25519();
    for algorithm in ["none", "HS256", "ES384", "RS512", "ES256K", "eddsa", ""] {
        let header = json!({"alg": algorithm, "typ": "JOSE", "kid": "key-1", "jku": JWKS_URL});
        let check = card_with(&signed(&key, &header), JWKS_URL, &key_set(&[key.jwk("key-1")]));
        assert_result(&check, "invalid", "is not one of ES256, EdDSA, RS256 and PS256");
    }
    let empty = json!({"alg": "none", "kid": "key-1", "jku": JWKS_URL});
    let mut card = signed(&key, &empty);
    card["signatures"][0]["signature"] = json!("");
    assert_result(&card_with(&card, JWKS_URL, &key_set(&[])), "invalid", "is not one of");
}

#[test]
fn a_key_for_another_algorithm_is_invalid() {
    let (key, rsa) = (ed25519(), rsa("RS256"));
    let check = card_with(&signed(&key, &header(&key)), JWKS_URL, &key_set(&[rsa.jwk("key-1")]));
    assert_result(&check, "invalid", "does not fit the algorithm");
    let stated = with(rsa.jwk("key-1"), &json!({"alg": "PS256"}));
    let check = card_with(&signed(&rsa, &header(&rsa)), JWKS_URL, &key_set(&[stated]));
    assert_result(&check, "invalid", "is for another algorithm");
    // an HMAC with the public key as its secret
    let hmac = json!({"kty": "oct", "k": encoded(b"secret"), "kid": "key-1"});
    let check = card_with(&signed(&key, &header(&key)), JWKS_URL, &key_set(&[hmac]));
    assert_result(&check, "invalid", "private part");
}

#[test]
fn keys_for_other_uses_and_private_keys_are_invalid() {
    let key = ed25519();
    for (members, words) in [
        (json!({"use": "enc"}), "is not for signatures"),
        (json!({"key_ops": ["sign"]}), "is not for verification"),
        (json!({"d": encoded(&[1; 32])}), "private part"),
        (json!({"x": "AAAA"}), "does not fit"),
        (json!({"kty": "AKP"}), "does not fit"),
    ] {
        let jwk = with(key.jwk("key-1"), &members);
        let check = card_with(&signed(&key, &header(&key)), JWKS_URL, &key_set(&[jwk]));
        assert_result(&check, "invalid", words);
    }
    let stated = with(key.jwk("key-1"), &json!({"use": "sig", "key_ops": ["verify"], "alg": "Ed25519"}));
    let check = card_with(&signed(&key, &header(&key)), JWKS_URL, &key_set(&[stated]));
    assert_result(&check, "verified", "");
}

#[test]
fn short_rsa_keys_are_invalid() {
    let key = rsa("RS256");
    let jwk = with(key.jwk("key-1"), &json!({"n": encoded(&[0xff; 128])}));
    let check = card_with(&signed(&key, &header(&key)), JWKS_URL, &key_set(&[jwk]));
    assert_result(&check, "invalid", "does not match");
}

/// The time of a verification grows with the length of the exponent.
#[test]
fn rsa_keys_with_long_exponents_are_invalid() {
    let key = rsa("RS256");
    let jwk = with(key.jwk("key-1"), &json!({"e": encoded(&[1, 0xff, 0xff, 0xff])}));
    let check = card_with(&signed(&key, &header(&key)), JWKS_URL, &key_set(&[jwk]));
    assert_result(&check, "invalid", "more than three bytes");
}

#[test]
fn rotated_keys_verify_with_either_signature() {
    let (old, new) = (other_ed25519(), ed25519());
    let mut card = signed(&old, &json!({"alg": "EdDSA", "kid": "old", "jku": JWKS_URL}));
    let second = signed(&new, &json!({"alg": "EdDSA", "kid": "new", "jku": JWKS_URL}));
    card["signatures"].as_array_mut().unwrap().push(second["signatures"][0].clone());
    for keys in [vec![old.jwk("old")], vec![new.jwk("new")], vec![old.jwk("old"), new.jwk("new")]] {
        let keys = key_set(&keys).to_string().into_bytes();
        let manifest = read_at(CARD_URL, &card.to_string(), &[(JWKS_URL, keys)]);
        assert_result(&check_of(&manifest), "verified", "");
        assert!(!manifest.findings.iter().any(|finding| finding.code.starts_with("signature.")));
    }
    assert_result(&card_with(&card, JWKS_URL, &key_set(&[])), "invalid", "is not in the document");
}

#[test]
fn revoked_and_expired_keys_are_invalid_beyond_a_skew_of_five_minutes() {
    let key = ed25519();
    let now = DateTime::parse_from_rfc3339(NOW).unwrap().timestamp();
    for (members, status, words) in [
        (json!({"exp": now + 3_600}), "verified", ""),
        (json!({"exp": now - 299}), "verified", ""),
        (json!({"exp": now - 301}), "invalid", "has expired"),
        (json!({"nbf": now + 299}), "verified", ""),
        (json!({"nbf": now + 301}), "invalid", "is not valid yet"),
        (json!({"revoked": {"revoked_at": now}}), "invalid", "is revoked"),
        (json!({"revoked": false}), "verified", ""),
    ] {
        let jwk = with(key.jwk("key-1"), &members);
        let check = card_with(&signed(&key, &header(&key)), JWKS_URL, &key_set(&[jwk]));
        assert_result(&check, status, words);
    }
    let jwk = with(key.jwk("key-1"), &json!({"exp": now + 3_600}));
    let check = card_with(&signed(&key, &header(&key)), JWKS_URL, &key_set(&[jwk]));
    assert_eq!(check.valid_until.as_deref(), Some("2026-11-25T13:00:00Z"));
}

#[test]
fn a_key_id_that_is_missing_or_occurs_twice_is_invalid() {
    let key = ed25519();
    let card = signed(&key, &header(&key));
    let twice = key_set(&[key.jwk("key-1"), other_ed25519().jwk("key-1")]);
    assert_result(&card_with(&card, JWKS_URL, &twice), "invalid", "occurs twice");
    assert_result(
        &card_with(&card, JWKS_URL, &key_set(&[key.jwk("key-2")])),
        "invalid",
        "is not in the document",
    );
    let unnamed = signed(&key, &json!({"alg": "EdDSA", "jku": JWKS_URL}));
    assert_result(&card_with(&unnamed, JWKS_URL, &key_set(&[key.jwk("key-1")])), "invalid", "names no key");
}

#[test]
fn key_sets_of_other_origins_are_never_linked() {
    let key = ed25519();
    for jku in [
        "https://evil.example/jwks.json",
        "https://a.example/jwks.json",
        "https://agents.a.example:8443/jwks.json",
        "http://agents.a.example/jwks.json",
        "https://agents.a.example@evil.example/jwks.json",
        "/jwks.json",
    ] {
        let card = signed(&key, &json!({"alg": "EdDSA", "kid": "key-1", "jku": jku}));
        let manifest = read_at(CARD_URL, &card.to_string(), &[]);
        assert_result(&check_of(&manifest), "unresolvable", "");
        assert!(manifest.links.is_empty(), "{jku}: {:?}", manifest.links);
    }
    let none = signed(&key, &json!({"alg": "EdDSA", "kid": "key-1"}));
    assert_result(&check_of(&read_at(CARD_URL, &none.to_string(), &[])), "unresolvable", "names no key set");
    // a key inside the header proves nothing
    let embedded = signed(&key, &json!({"alg": "EdDSA", "kid": "key-1", "jwk": key.jwk("key-1")}));
    assert_result(
        &check_of(&read_at(CARD_URL, &embedded.to_string(), &[])),
        "unresolvable",
        "names no key set",
    );
}

#[test]
fn the_unprotected_header_has_no_effect() {
    let key = ed25519();
    let mut card = signed(&key, &json!({"alg": "EdDSA", "kid": "key-1"}));
    card["signatures"][0]["header"] = json!({"jku": JWKS_URL, "alg": "none"});
    let check = card_with(&card, JWKS_URL, &key_set(&[key.jwk("key-1")]));
    assert_result(&check, "unresolvable", "names no key set");
}

#[test]
fn damaged_headers_and_signatures_are_invalid() {
    let key = ed25519();
    let good = signed(&key, &header(&key));
    let keys = key_set(&[key.jwk("key-1")]);
    let twice = encoded(br#"{"alg":"none","alg":"EdDSA","kid":"key-1"}"#);
    for (member, value, words) in [
        ("protected", "e30".to_owned(), "protected header"),
        ("protected", "***".to_owned(), "protected header"),
        ("protected", twice, "protected header"),
        ("protected", "e".repeat(9_000), "too long"),
        ("signature", "***".to_owned(), "not base64url"),
        ("signature", "AAAA".to_owned(), "does not match"),
        ("signature", "A".repeat(3_000), "too long"),
    ] {
        let mut card = good.clone();
        card["signatures"][0][member] = json!(value);
        assert_result(&card_with(&card, JWKS_URL, &keys), "invalid", words);
    }
    for extension in [json!({"crit": ["exp"]}), json!({"b64": false, "crit": ["b64"]})] {
        let card = signed(&key, &with(header(&key), &extension));
        assert_result(&card_with(&card, JWKS_URL, &keys), "invalid", "critical extensions");
    }
}

#[test]
fn a_card_with_a_duplicate_member_name_is_invalid() {
    let key = ed25519();
    let text = signed(&key, &header(&key)).to_string().replacen('{', "{\"name\":\"Bank\",", 1);
    let keys = key_set(&[key.jwk("key-1")]).to_string().into_bytes();
    assert_result(&check_of(&read_at(CARD_URL, &text, &[(JWKS_URL, keys)])), "invalid", "twice");
}

#[test]
fn signatures_cover_hidden_characters() {
    let key = ed25519();
    let mut content = card();
    content.insert("name".to_owned(), json!("Se\u{200b}ats"));
    let payload = serde_json_canonicalizer::to_vec(&content).unwrap();
    let (protected, signature) = key.sign(&header(&key), &payload);
    content.insert("signatures".to_owned(), json!([{"protected": protected, "signature": signature}]));
    let check = card_with(&Value::Object(content), JWKS_URL, &key_set(&[key.jwk("key-1")]));
    assert_result(&check, "verified", "");
}

#[test]
fn hostile_key_documents_are_unresolvable() {
    let key = ed25519();
    let card = signed(&key, &header(&key)).to_string();
    let filled = |count: usize| key_set(&vec![key.jwk("other"); count]).to_string().into_bytes();
    let deep = format!("{{\"keys\":{}{}}}", "[".repeat(40), "]".repeat(40)).into_bytes();
    let many = format!("{{\"keys\":[{}1]}}", "1,".repeat(5_000)).into_bytes();
    let long = [filled(600), vec![b' '; 64 * 1_024]].concat();
    for (bytes, words) in [
        (Vec::new(), "could not be fetched"),
        (b"<html>".to_vec(), "is not usable JSON"),
        (b"[]".to_vec(), "is not a key set"),
        (b"{\"keys\":{}}".to_vec(), "is not a key set"),
        (deep, "is not usable JSON"),
        (many, "is not usable JSON"),
        (long, "is longer than 64 KiB"),
    ] {
        let check = check_of(&read_at(CARD_URL, &card, &[(JWKS_URL, bytes)]));
        assert_result(&check, "unresolvable", words);
    }
    assert_result(&check_of(&read_at(CARD_URL, &card, &[])), "unresolvable", "was not fetched");
    // the key comes after those that are compared
    let mut keys = vec![key.jwk("other"); 64];
    keys.push(key.jwk("key-1"));
    let check = card_with(&signed(&key, &header(&key)), JWKS_URL, &key_set(&keys));
    assert_result(&check, "invalid", "is not in the document");
}

#[test]
fn a_card_causes_four_requests_for_keys_and_eight_checks() {
    let key = ed25519();
    let mut card = signed(&key, &header(&key));
    let signatures: Vec<Value> = (0..20)
        .map(|number| {
            let jku = format!("https://agents.a.example/{number}.json");
            signed(&key, &json!({"alg": "EdDSA", "kid": "key-1", "jku": jku}))["signatures"][0].clone()
        })
        .collect();
    card["signatures"] = json!(signatures);
    let manifest = read_at(CARD_URL, &card.to_string(), &[]);
    assert_eq!(manifest.links.len(), 4);
    let reported = manifest.findings.iter().filter(|finding| finding.code == "signature.unresolvable");
    assert_eq!(reported.count(), 8);
}

fn did_document(key: &Key) -> Value {
    json!({"id": "did:web:a.example", "assertionMethod": ["#key-1"],
        "verificationMethod": [{"id": "did:web:a.example#key-1", "type": "JsonWebKey", "controller": "did:web:a.example",
                                "publicKeyJwk": key.jwk("key-1")}]})
}

fn with_did(key: &Key) -> Value {
    signed(key, &json!({"alg": key.algorithm(), "typ": "JOSE", "kid": "did:web:a.example#key-1"}))
}

#[test]
fn a_did_document_of_the_site_verifies_a_card() {
    for key in [ed25519(), p256()] {
        let check = card_with(&with_did(&key), DID_URL, &did_document(&key));
        assert_result(&check, "verified", "");
        assert_eq!(check.key_source.as_deref(), Some(DID_URL));
    }
    let key = ed25519();
    let mut multikey = did_document(&key);
    multikey["verificationMethod"][0] = json!({"id": "#key-1", "type": "Multikey", "controller": "did:web:a.example",
        "publicKeyMultibase": key.did_key().trim_start_matches("did:key:")});
    assert_result(&card_with(&with_did(&key), DID_URL, &multikey), "verified", "");
    let mut embedded = did_document(&key);
    embedded["assertionMethod"] = embedded["verificationMethod"].take();
    assert_result(&card_with(&with_did(&key), DID_URL, &embedded), "verified", "");
}

#[test]
fn broken_did_documents_verify_nothing() {
    let key = ed25519();
    let changed = |change: &dyn Fn(&mut Value)| {
        let mut document = did_document(&key);
        change(&mut document);
        card_with(&with_did(&key), DID_URL, &document)
    };
    let method = |name: &'static str, value: Value| {
        changed(&move |document: &mut Value| document["verificationMethod"][0][name] = value.clone())
    };
    assert_result(
        &changed(&|document| document["id"] = json!("did:web:b.example")),
        "invalid",
        "is not that of",
    );
    assert_result(&changed(&|document| document["deactivated"] = json!(true)), "invalid", "deactivated");
    assert_result(
        &changed(&|document| document["assertionMethod"] = json!([])),
        "invalid",
        "assertionMethod",
    );
    // A key for another purpose signs nothing. A document without any purpose does not state what its keys are for.
    let listed_in = |relations: &[&str]| {
        changed(&|document| {
            document.as_object_mut().unwrap().remove("assertionMethod");
            for relation in relations {
                document[*relation] = json!(["#key-1"]);
            }
        })
    };
    for relation in ["keyAgreement", "capabilityInvocation", "capabilityDelegation"] {
        assert_result(&listed_in(&[relation]), "invalid", "assertionMethod");
        assert_result(&listed_in(&[relation, "assertionMethod"]), "verified", "");
    }
    assert_result(&listed_in(&["keyAgreement", "authentication"]), "verified", "");
    assert_result(&listed_in(&[]), "verified", "");
    assert_result(
        &changed(&|document| document["verificationMethod"] = json!([])),
        "invalid",
        "not in the document",
    );
    assert_result(&method("controller", json!("did:web:b.example")), "invalid", "another DID");
    assert_result(&method("revoked", json!("2026-01-01T00:00:00Z")), "invalid", "is revoked");
    assert_result(&method("expires", json!("2026-11-25T11:54:59Z")), "invalid", "has expired");
    assert_result(&method("expires", json!("2026-11-25T11:56:00Z")), "verified", "");
    assert_result(&method("expires", json!("soon")), "invalid", "is not a time");
    assert_result(&method("publicKeyJwk", other_ed25519().jwk("key-1")), "invalid", "does not match");
    let twice = changed(&|document| {
        let copy = document["verificationMethod"][0].clone();
        document["verificationMethod"].as_array_mut().unwrap().push(copy);
    });
    assert_result(&twice, "invalid", "occurs twice");
}

#[test]
fn dids_of_other_sites_and_methods_are_never_linked() {
    let key = ed25519();
    for did in [
        "did:web:evil.example",
        "did:web:a.example%3A8443",
        "did:web:a.example:..:x",
        "did:web:a.example/x",
        "did:web:10.0.0.1",
        "did:web:localhost",
        "did:plc:abc",
        "did:",
    ] {
        let card = signed(&key, &json!({"alg": "EdDSA", "kid": format!("{did}#key-1"), "jku": JWKS_URL}));
        let manifest = read_at(CARD_URL, &card.to_string(), &[]);
        assert_result(&check_of(&manifest), "unresolvable", "");
        assert!(manifest.links.is_empty(), "{did}: {:?}", manifest.links);
    }
}

/// A document and a key set that a user uploads to a site do not prove the site.
#[test]
fn the_document_or_its_key_must_be_below_well_known() {
    const WELL_KNOWN_KEYS: &str = "https://agents.a.example/.well-known/keys/jwks.json";
    let key = ed25519();
    for (place, jku, is_of_site) in [
        ("/u/evil/card.json", JWKS_URL, false),
        ("/u/evil/card.json", WELL_KNOWN_KEYS, true),
        ("/.well-known/agent-card.json", JWKS_URL, true),
        ("/.well-known/..%2Fu/evil/card.json", JWKS_URL, false),
        ("/.well-known/a;/card.json", JWKS_URL, false),
        ("/.well-known/x?file=/u/evil/card.json", JWKS_URL, false),
        ("/u/.well-known/agent-card.json", JWKS_URL, false),
    ] {
        let card = signed(&key, &json!({"alg": "EdDSA", "kid": "key-1", "jku": jku})).to_string();
        let url = format!("https://agents.a.example{place}");
        let keys = key_set(&[key.jwk("key-1")]).to_string().into_bytes();
        let manifest = read_at(&url, &card, &[(jku, keys)]);
        if is_of_site {
            assert_result(&check_of(&manifest), "verified", "");
        } else {
            assert_result(&check_of(&manifest), "unresolvable", "users of a site");
            assert!(manifest.links.is_empty(), "{place}: {:?}", manifest.links);
        }
    }
    let of_user = signed(&key, &json!({"alg": "EdDSA", "kid": "did:web:a.example:u:evil#key-1"})).to_string();
    let manifest = read_at("https://a.example/u/evil/card.json", &of_user, &[]);
    assert_result(&check_of(&manifest), "unresolvable", "users of a site");
    // The key is in a user's folder, and the document is at the same user's host below the site.
    let manifest = read_at(CARD_URL, &of_user, &[]);
    assert_result(&check_of(&manifest), "unresolvable", "users of a site");
    assert!(manifest.links.is_empty(), "{:?}", manifest.links);
}

#[test]
fn a_did_proves_documents_of_its_host_and_of_hosts_below_it() {
    let key = ed25519();
    for (did, at, is_allowed) in [
        ("a.example", "https://a.example/card.json", true),
        ("a.example", "https://agents.a.example/card.json", true),
        ("www.a.example", "https://a.example/card.json", true),
        ("tenant.a.example", "https://a.example/u/evil/card.json", false),
        ("tenant.a.example", "https://agents.a.example/card.json", false),
        ("s.a.example", "https://agents.a.example/card.json", false),
    ] {
        let card = signed(&key, &json!({"alg": "EdDSA", "kid": format!("did:web:{did}#key-1")})).to_string();
        let manifest = read_at(at, &card, &[]);
        assert_eq!(!manifest.links.is_empty(), is_allowed, "{did} {at}: {:?}", manifest.links);
        let reason = if is_allowed { "" } else { "and of hosts below it" };
        assert_result(&check_of(&manifest), "unresolvable", reason);
    }
}

/// Anybody can serve a card that a site signed once. A relative address in it would lead to the host of the copy.
#[test]
fn a_signed_card_with_a_relative_address_counts_only_at_the_host_of_its_key() {
    let key = ed25519();
    for (address, at, status) in [
        ("/a2a", "https://a.example/.well-known/agent-card.json", "verified"),
        ("/a2a", "https://www.a.example/.well-known/agent-card.json", "verified"),
        ("/a2a", CARD_URL, "unresolvable"),
        ("//a.example/a2a", CARD_URL, "unresolvable"),
        ("https://a.example/a2a", CARD_URL, "verified"),
    ] {
        let mut card = card();
        card["supportedInterfaces"][0]["url"] = json!(address);
        let card = sign_card(card, &key, &json!({"alg": "EdDSA", "kid": "did:web:a.example#key-1"}));
        let keys = (DID_URL, did_document(&key).to_string().into_bytes());
        let check = check_of(&read_at(at, &card.to_string(), &[keys]));
        let reason = if status == "verified" { "" } else { "relative addresses" };
        assert_result(&check, status, reason);
    }
}

#[test]
fn a_token_of_a_user_is_not_a_signature() {
    let key = ed25519();
    for typ in ["JWT", "at+jwt"] {
        let card = signed(&key, &json!({"alg": "EdDSA", "typ": typ, "kid": "key-1"}));
        let check = card_with(&card, DID_URL, &did_document(&key));
        assert_result(&check, "invalid", "JSON Web Token");
    }
}

#[test]
fn a_did_with_a_path_has_its_document_there() {
    let key = ed25519();
    let card = signed(&key, &json!({"alg": "EdDSA", "kid": "did:web:agents.a.example:agents:seats#key-1"}));
    let manifest = read_at(CARD_URL, &card.to_string(), &[]);
    let links: Vec<_> = manifest.links.iter().map(|link| (link.rel.as_str(), link.url.as_str())).collect();
    assert_eq!(links, [("did-document", "https://agents.a.example/agents/seats/did.json")]);
}

#[test]
fn a_did_key_verifies_nothing_and_causes_no_request() {
    let key = ed25519();
    let did = key.did_key();
    // the DID of the key of RFC 8032 §7.1, test 1
    assert_eq!(did, "did:key:z6MktwupdmLXVVqTzCw4i46r4uGyosGXRnR3XjN4Zq7oMMsw");
    let card = signed(
        &key,
        &json!({"alg": "EdDSA", "kid": format!("{did}#{}", did.trim_start_matches("did:key:"))}),
    );
    let manifest = read_at(CARD_URL, &card.to_string(), &[]);
    assert_result(&check_of(&manifest), "unresolvable", "a did:key names no domain");
    assert!(manifest.links.is_empty() && !manifest.identity(NamedBy::Site).verified);
    let mut changed = card;
    changed["name"] = json!("Other");
    assert_result(&check_of(&read_at(CARD_URL, &changed.to_string(), &[])), "invalid", "does not match");
    for (did, words) in [
        ("did:key:z6Mk", "is not an Ed25519 key"),
        ("did:key:zDnaerDaTF5BXEavCrfRZEk316dpbLsfPDZ3WJ5hRTPFU2169", "is not an Ed25519 key"),
        ("did:key:f00", "is not an Ed25519 key"),
    ] {
        let card = signed(&key, &json!({"alg": "EdDSA", "kid": format!("{did}#x")}));
        assert_result(&check_of(&read_at(CARD_URL, &card.to_string(), &[])), "unresolvable", words);
    }
}

/// An attacker who can change a card but has none of its keys can add another signature.
#[test]
fn a_signature_by_a_did_key_does_not_hide_an_invalid_one() {
    let (key, thief) = (ed25519(), other_ed25519());
    let mut card = signed(&key, &header(&key));
    let published = card["signatures"][0].take();
    card["supportedInterfaces"][0]["url"] = json!("https://thief.example/a2a");
    let mut content = card.as_object().unwrap().clone();
    content.shift_remove("signatures");
    let payload = serde_json_canonicalizer::to_vec(&content).unwrap();
    let (protected, signature) = thief.sign(&json!({"alg": "EdDSA", "kid": thief.did_key()}), &payload);
    card["signatures"] = json!([published, {"protected": protected, "signature": signature}]);
    assert_result(&card_with(&card, JWKS_URL, &key_set(&[key.jwk("key-1")])), "invalid", "does not match");
}

/// The signature of a trust manifest does not cover its entry, so another site could copy it.
#[test]
fn a_copied_trust_manifest_of_a_did_key_is_not_verified() {
    let key = ed25519();
    let manifest = catalog_with(&entry(&key, "urn:air:a.example:seats", &key.did_key(), "x"), &[]);
    assert_result(&entry_check(&manifest), "unresolvable", "a did:key names no domain");
    assert!(!manifest.identity_of(&manifest.capabilities[0], NamedBy::Site).verified);
}

/// A user of a site, or a customer with a host below it, copies a trust manifest that the site signed onto an entry of their own.
#[test]
fn a_copied_trust_manifest_of_a_site_is_not_verified() {
    let key = ed25519();
    let did = [(DID_URL, did_document(&key).to_string().into_bytes())];
    let mut copied = entry(&key, "urn:air:a.example:pay", "did:web:a.example", "key-1");
    copied["url"] = json!("https://other.example/mcp.json");
    let catalog = json!({"entries": [copied]}).to_string();
    for (url, status) in [
        ("https://a.example/u/evil/ai-catalog.json", "unresolvable"),
        ("https://evil.a.example/.well-known/ai-catalog.json", "unresolvable"),
        ("https://a.example/.well-known/x?file=/u/evil/ai-catalog.json", "unresolvable"),
        ("https://www.a.example/.well-known/ai-catalog.json", "verified"),
        ("https://a.example/.well-known/ai-catalog.json", "verified"),
    ] {
        let manifest = read_at(url, &catalog, &did);
        let words = if status == "verified" { "" } else { "anybody can copy a trust manifest" };
        assert_result(&entry_check(&manifest), status, words);
    }
}

/// An entry with a signed trust manifest.
fn entry(key: &Key, identifier: &str, identity: &str, kid: &str) -> Value {
    let mut trust = json!({"identity": identity, "attestations": [{"type": "SOC2-Type2", "uri": "https://a.example/soc2.pdf"}]});
    let payload = serde_json_canonicalizer::to_vec(&trust).unwrap();
    let (protected, signature) = key.sign(&json!({"alg": key.algorithm(), "kid": kid}), &payload);
    trust["signature"] = json!(format!("{protected}..{signature}"));
    json!({"identifier": identifier, "displayName": "Seats", "type": "application/mcp-server-card+json",
           "url": "https://a.example/mcp.json", "representativeQueries": ["book a seat", "reserve a seat"],
           "trustManifest": trust})
}

fn catalog_with(entry: &Value, linked: &[(&str, Vec<u8>)]) -> Manifest {
    read_at(CATALOG_URL, &json!({"entries": [entry]}).to_string(), linked)
}

fn entry_check(manifest: &Manifest) -> SignatureCheck {
    manifest.identity_of(&manifest.capabilities[0], NamedBy::Site).signature.into_owned()
}

/// Linked documents by URL.
type Linked<'a> = &'a [(&'a str, Vec<u8>)];

#[test]
fn trust_manifests_verify_with_the_keys_of_their_identity() {
    let key = ed25519();
    let did = [(DID_URL, did_document(&key).to_string().into_bytes())];
    let keys = [("https://a.example/keys", key_set(&[key.jwk("key-1")]).to_string().into_bytes())];
    let cases: [(&str, &str, Linked<'_>); 3] = [
        ("did:web:a.example", "key-1", &did),
        ("did:web:a.example", "did:web:a.example#key-1", &did),
        ("https://a.example/keys", "key-1", &keys),
    ];
    for (identity, kid, linked) in cases {
        let manifest = catalog_with(&entry(&key, "urn:air:a.example:seats", identity, kid), linked);
        assert_result(&entry_check(&manifest), "verified", "");
        assert!(manifest.identity_of(&manifest.capabilities[0], NamedBy::Site).verified, "{identity}");
        assert!(manifest.findings.is_empty(), "{identity}: {:?}", manifest.findings);
    }
}

#[test]
fn foreign_trust_manifests_are_never_verified() {
    let key = ed25519();
    let did = key.did_key();
    for (identifier, identity) in [
        ("urn:air:b.example:seats", did.as_str()),
        ("urn:air:b.example:seats", "did:web:b.example"),
        ("urn:air:a.example:seats", "did:web:b.example"),
        ("urn:air:a.example:seats", "https://b.example/keys"),
    ] {
        let manifest = catalog_with(&entry(&key, identifier, identity, "key-1"), &[]);
        assert_result(&entry_check(&manifest), "unresolvable", "its key is not requested");
        let identity_of = manifest.identity_of(&manifest.capabilities[0], NamedBy::Site);
        assert_eq!((identity_of.binding.as_str(), identity_of.verified), ("foreign", false), "{identity}");
        assert!(!manifest.links.iter().any(|link| link.rel == "did-document" || link.rel == "jwks"));
        let foreign = |finding: &&manifest::Finding| finding.code.ends_with(".foreign");
        assert!(manifest.findings.iter().filter(foreign).count() > 0, "{identity}");
    }
}

#[test]
fn changed_and_malformed_trust_manifests_are_not_verified() {
    let key = ed25519();
    let did = key.did_key();
    let good = entry(&key, "urn:air:a.example:seats", &did, "x");
    let changed = |change: &dyn Fn(&mut Value)| {
        let mut entry = good.clone();
        change(&mut entry);
        entry_check(&catalog_with(&entry, &[]))
    };
    let attested = |entry: &mut Value| entry["trustManifest"]["attestations"] = json!([]);
    assert_result(&changed(&attested), "invalid", "does not match");
    let signature = |text: &'static str| {
        changed(&move |entry: &mut Value| entry["trustManifest"]["signature"] = json!(text))
    };
    assert_result(&signature("abc"), "invalid", "detached");
    assert_result(&signature("e30.e30.AAAA"), "invalid", "detached");
    assert_result(&signature("e30..AAAA"), "invalid", "protected header");
    let spiffe = entry(&key, "urn:air:a.example:seats", "spiffe://a.example/seats", "x");
    assert_result(
        &entry_check(&catalog_with(&spiffe, &[])),
        "unresolvable",
        "neither a did:web nor a did:key",
    );
    let other = entry(&key, "urn:air:a.example:seats", "did:web:a.example", "did:web:c.example#key-1");
    assert_result(&entry_check(&catalog_with(&other, &[])), "invalid", "another DID");
}

#[test]
fn the_host_of_a_catalog_is_verified_too() {
    let key = ed25519();
    let signed = entry(&key, "urn:air:a.example:seats", "did:web:a.example", "key-1");
    let catalog = json!({"specVersion": "1.0", "entries": [],
        "host": {"displayName": "A", "identifier": "did:web:a.example", "trustManifest": signed["trustManifest"]}});
    let did = [(DID_URL, did_document(&key).to_string().into_bytes())];
    let manifest = read_at("https://a.example/.well-known/ai-catalog.json", &catalog.to_string(), &did);
    assert_result(&check_of(&manifest), "verified", "");
    assert!(manifest.identity(NamedBy::Site).verified);
    let of_others = manifest.identity(NamedBy::Others);
    assert!(!of_others.verified && of_others.marks() == [IdentityMark::NamedByOthers], "{of_others:?}");
}

/// Cards of the signer of the official SDK (a2a-sdk 1.3.0 for Python), which covers no empty values. The key is that of RFC 8032.
#[test]
fn cards_that_the_official_sdk_signs_verify() {
    let mut card = json!({"name": "Seats", "description": "Books seats – quickly.", "version": "1.0.0", "capabilities": {},
        "supportedInterfaces": [{"url": "https://a.example/a2a", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}],
        "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"],
        "skills": [{"id": "book", "name": "Book", "description": "Books a seat.", "tags": ["seat"]}]});
    card["signatures"] = json!([{
        "protected": "eyJhbGciOiJFZERTQSIsImprdSI6Imh0dHBzOi8vYWdlbnRzLmEuZXhhbXBsZS9qd2tzLmpzb24iLCJraWQiOiJrZXktMSIsInR5cCI6IkpPU0UifQ",
        "signature": "ua1ZdqSWWzgnbqXhp7g-1KZtM3Tb4Zl9CGKqdD32mf1K8di78-HG15kwYYgMkNIwAWD79pbzugU6975dcSveDA"}]);
    let keys = key_set(&[ed25519().jwk("key-1")]);
    assert_result(&card_with(&card, JWKS_URL, &keys), "verified", "");
    card["skills"][0]["name"] = json!("Look");
    assert_result(&card_with(&card, JWKS_URL, &keys), "invalid", "does not match");
}

#[test]
fn cards_that_this_service_signs_verify() {
    // the key of RFC 8032 §7.1, test 1, in PKCS #8
    let der = data_encoding::HEXLOWER
        .decode(format!("302e020100300506032b657004220420{ED25519_SEED}").as_bytes())
        .unwrap();
    let signer = CardSigner::from_pkcs8(&der).unwrap();
    let mut card = card();
    signer.sign(&mut card, &[], JWKS_URL);
    let check = card_with(&Value::Object(card), JWKS_URL, &signer.key_set());
    assert_result(&check, "verified", "");
    assert_eq!(check.key_id.as_deref(), signer.key_set()["keys"][0]["kid"].as_str());
    assert!(CardSigner::from_pkcs8(b"no key").is_err());
}

/// Hostile key documents and signatures with a given number of units: the document, its URL and the linked documents.
type Signed = (&'static str, fn(usize) -> (&'static str, String, Vec<(&'static str, Vec<u8>)>));

const HOSTILE_SIGNATURES: &[Signed] = &[
    ("keys of a set", |n| with_keys(&format!("{{\"keys\":[{}1]}}", "{\"kid\":\"other\"},".repeat(n)))),
    ("members of a key", |n| {
        let members = (0..n).map(|at| format!("\"m{at}\":1,")).collect::<Vec<_>>().concat();
        with_keys(&format!("{{\"keys\":[{{{members}\"kid\":\"key-1\"}}]}}"))
    }),
    ("a long number of a key", |n| {
        with_keys(&format!("{{\"keys\":[{{\"kty\":\"RSA\",\"n\":\"{}\",\"e\":\"AQAB\"}}]}}", "A".repeat(n)))
    }),
    ("nested keys", |n| with_keys(&"{\"keys\":[".repeat(n))),
    ("an open string", |n| with_keys(&format!("{{\"keys\":[\"{}", "\\u0041".repeat(n)))),
    ("methods of a DID document", |n| {
        let methods =
            "{\"id\":\"#a\",\"type\":\"JsonWebKey\",\"controller\":\"did:web:a.example\"},".repeat(n);
        let did = format!(
            "{{\"id\":\"did:web:a.example\",\"verificationMethod\":[{methods}1],\"assertionMethod\":[\"#a\"]}}"
        );
        (CARD_URL, with_did(&ed25519()).to_string(), vec![(DID_URL, did.into_bytes())])
    }),
    ("assertion methods", |n| {
        let mut did = did_document(&ed25519());
        did["assertionMethod"] = json!(vec!["#other"; n]);
        (CARD_URL, with_did(&ed25519()).to_string(), vec![(DID_URL, did.to_string().into_bytes())])
    }),
    ("signatures of a card", |n| {
        let mut card = signed(&ed25519(), &header(&ed25519()));
        card["signatures"] = json!(vec![card["signatures"][0].clone(); n]);
        with_own_key(&card)
    }),
    ("a long header", |n| {
        let key = ed25519();
        with_own_key(&signed(&key, &with(header(&key), &json!({"x": "a".repeat(n)}))))
    }),
    ("members of a header", |n| {
        let key = ed25519();
        let members: Map<String, Value> = (0..n).map(|at| (format!("m{at}"), json!(1))).collect();
        with_own_key(&signed(&key, &with(header(&key), &Value::Object(members))))
    }),
    ("a signed card with many members", |n| {
        let mut card = signed(&ed25519(), &header(&ed25519()));
        card["signatures"] = json!(vec![card["signatures"][0].clone(); 8]);
        card["x"] = (0..n)
            .map(|at| (format!("m{at}"), json!({"b": 1.5, "a": "\u{e9}"})))
            .collect::<Map<_, _>>()
            .into();
        with_own_key(&card)
    }),
    ("signed entries of a catalog", |n| {
        let one = entry(&ed25519(), "urn:air:a.example:seats", "https://a.example/keys", "key-1");
        let keys = key_set(&[ed25519().jwk("key-1")]).to_string().into_bytes();
        let catalog = json!({"entries": vec![one; n / 4]}).to_string();
        (CATALOG_URL, catalog, vec![("https://a.example/keys", keys)])
    }),
];

fn with_keys(keys: &str) -> (&'static str, String, Vec<(&'static str, Vec<u8>)>) {
    let card = signed(&ed25519(), &header(&ed25519()));
    (CARD_URL, card.to_string(), vec![(JWKS_URL, keys.as_bytes().to_vec())])
}

fn with_own_key(card: &Value) -> (&'static str, String, Vec<(&'static str, Vec<u8>)>) {
    let keys = key_set(&[ed25519().jwk("key-1")]).to_string().into_bytes();
    (CARD_URL, card.to_string(), vec![(JWKS_URL, keys)])
}

/// An input of twice the size allocates at most twice as much, and one of eight times the size takes at most twenty times as long.
#[test]
fn cost_of_keys_and_signatures_is_linear() {
    let cpu_time = || {
        let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
        let nanos = stat.split(' ').next().and_then(|text| text.parse().ok()).unwrap_or_default();
        std::time::Duration::from_nanos(nanos)
    };
    for (name, make) in HOSTILE_SIGNATURES {
        let cost = |units: usize| {
            let (url, text, linked) = make(units);
            let start = cpu_time();
            let spent = allocation_counter::measure(|| drop(read_at(url, &text, &linked)));
            (spent, cpu_time().saturating_sub(start))
        };
        // The first call builds tables that all later calls share.
        cost(10);
        let ((one, _), (two, time), (sixteen, time_of_sixteen)) = (cost(150), cost(300), cost(2_400));
        let within = |one: u64, two: u64, slack: u64| 10 * two <= 23 * one + 10 * slack;
        assert!(within(one.bytes_total, two.bytes_total, 64 * 1_024), "{name}: {one:?} become {two:?}");
        assert!(within(one.count_total, two.count_total, 300), "{name}: {one:?} become {two:?}");
        assert!(sixteen.bytes_max <= 32 * 1_024 * 1_024, "{name}: {sixteen:?}");
        let time_max = time * 20 + std::time::Duration::from_millis(250);
        assert!(time_of_sixteen <= time_max, "{name}: {time:?} become {time_of_sixteen:?}");
    }
}

//! Finds the location of a key, and the key in the document at that location: key sets (RFC 7517) and DID documents (did:web, W3C
//! Controlled Identifiers 1.0).

use chrono::{DateTime, Utc};
use serde_json::Value;

use super::jws::{Algorithm, VerifyingKey};
use super::{CLOCK_SKEW, Refusal};
use crate::budget::{self, Limits};
use crate::name::ManifestUrl;
use crate::text::capped;

/// Maximum number of bytes of a key set or DID document: a hundred keys of RSA take 50 KiB.
const KEY_DOCUMENT_BYTES_MAX: usize = 64 * 1_024;
/// Maximum number of keys of one document that are compared: publishers rotate a handful.
const KEYS_MAX: usize = 64;
/// The parsed part of a key document. Verification methods nest four levels.
const KEY_DOCUMENT: Limits =
    Limits { depth: 16, nodes: 4_000, scalar_bytes: KEY_DOCUMENT_BYTES_MAX, tree_bytes: 1_024 * 1_024 };

/// Relations of keys that sign no statements (W3C Controlled Identifiers 1.0 §2.3).
const OTHER_RELATIONS: [&str; 3] = ["keyAgreement", "capabilityInvocation", "capabilityDelegation"];

/// Why a signature by an expired key is invalid.
pub(crate) const EXPIRED: &str = "the key has expired";

/// The location of the key of a signature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum KeyLocation {
    KeySet(ManifestUrl),
    DidDocument {
        did: String,
        url: ManifestUrl,
    },
    /// A did:key, which contains the key itself.
    DidKey(String),
}

impl KeyLocation {
    /// The document to fetch, and its relation to the manifest.
    pub(super) const fn document(&self) -> Option<(&'static str, &ManifestUrl)> {
        match self {
            Self::KeySet(url) => Some(("jwks", url)),
            Self::DidDocument { url, .. } => Some(("did-document", url)),
            Self::DidKey(_) => None,
        }
    }

    /// The location in the result of a verification.
    pub(super) fn source(&self) -> &str {
        match self {
            Self::KeySet(url) | Self::DidDocument { url, .. } => url.as_str(),
            Self::DidKey(did) => did,
        }
    }

    /// A key set at an address that must be on the origin that serves the signed document.
    pub(super) fn key_set(published: &str, base: &ManifestUrl) -> Result<Self, Refusal> {
        let url = ManifestUrl::parse(published).map_err(|error| {
            Refusal::unresolvable(format!("the address of the key set cannot be used: {error}"))
        })?;
        if url.origin() != base.origin() {
            let text =
                format!("the key set is at {}, but keys are only read from {}", url.origin(), base.origin());
            return Err(Refusal::unresolvable(text));
        }
        Ok(Self::KeySet(url))
    }

    /// The location of the key of a DID. The domain of a did:web must belong to the site that serves the signed document.
    pub(super) fn of_did(did: &str, base: &ManifestUrl) -> Result<Self, Refusal> {
        if did.starts_with("did:key:") {
            return Ok(Self::DidKey(did.to_owned()));
        }
        let url = did_web_url(did).ok_or_else(|| {
            Refusal::unresolvable(format!("\"{}\" is neither a did:web nor a did:key", capped(did, 80)))
        })?;
        if url.site() != base.site() {
            let text = format!(
                "{} is of the site {}, and {} serves the document",
                capped(did, 80),
                url.site(),
                base.site()
            );
            return Err(Refusal::unresolvable(text));
        }
        Ok(Self::DidDocument { did: did.to_owned(), url })
    }

    /// Checks whether a key at this location can belong to the site that serves the document at `signed`, independent of the signature.
    /// Users of a site may publish files on it, so the site itself must publish the document or the key. A customer of a site may have a
    /// host below it, so a DID document speaks for its host and the hosts below it, and for no other.
    pub(super) fn check_place(&self, signed: &ManifestUrl) -> Result<(), Refusal> {
        let Some((_, url)) = self.document() else { return Ok(()) };
        if !signed.is_well_known() && !url.is_well_known() {
            let reason = "neither the document nor its key is at a path below /.well-known/: users of a site may have written both";
            return Err(Refusal::unresolvable(reason.to_owned()));
        }
        let (signed, key) = (signed.host(), url.host());
        let (signed, key) = (signed.as_str(), key.as_str());
        let below = signed.strip_suffix(without_www(key));
        match below.filter(|below| below.is_empty() || below.ends_with('.')) {
            Some("" | "www.") => Ok(()),
            Some(_) if url.is_well_known() => Ok(()),
            // A user of the site may have written the key, and the document as the customer of a host below it.
            Some(_) => Err(Refusal::unresolvable(format!(
                "a key of {key} that is not below /.well-known/ proves no document of {signed}: users of a site may have written both"
            ))),
            None => Err(Refusal::unresolvable(format!(
                "the key of {key} proves documents of {key} and of hosts below it, and this one is at {signed}"
            ))),
        }
    }

    /// Whether a signed card that contains an address relative to its own counts. Anybody can serve a card that the site signed once, and
    /// such an address would then lead to another host, so it counts only at the host of the key.
    pub(super) fn check_place_of_relative(&self, signed: &ManifestUrl) -> Result<(), Refusal> {
        let Some((_, url)) = self.document() else { return Ok(()) };
        let (signed, key) = (signed.host(), url.host());
        if without_www(signed.as_str()) == without_www(key.as_str()) {
            return Ok(());
        }
        Err(Refusal::unresolvable(format!(
            "anybody can copy a card, so one with relative addresses counts only at the host of its key, {key}, and this one is at {signed}"
        )))
    }

    /// Checks whether a trust manifest is accepted in the catalog at `catalog`. Its signature does not cover the entry that contains it, so
    /// a user of the site could copy it into another catalog.
    pub(super) fn check_place_of_trust(&self, catalog: &ManifestUrl) -> Result<(), Refusal> {
        let Some((_, url)) = self.document() else { return Ok(()) };
        let (host, key) = (catalog.host(), url.host());
        if catalog.is_well_known() && without_www(host.as_str()) == without_www(key.as_str()) {
            return Ok(());
        }
        Err(Refusal::unresolvable(format!(
            "anybody can copy a trust manifest, so it counts only in a catalog below /.well-known/ of {key}, and this one is at {}",
            capped(catalog.as_str(), 120)
        )))
    }

    /// Checks whether a key at this location proves that the site which serves the signed document published it.
    pub(super) fn check_is_of_publisher(&self) -> Result<(), Refusal> {
        match self {
            Self::KeySet(_) | Self::DidDocument { .. } => Ok(()),
            Self::DidKey(did) => Err(Refusal::unresolvable(format!(
                "the holder of {} signed this, but a did:key names no domain, so anybody can have one",
                capped(did, 80)
            ))),
        }
    }

    /// The key with an id, from the fetched document.
    pub(super) fn key(
        &self,
        fetched: Option<&[u8]>,
        key_id: Option<&str>,
        algorithm: Algorithm,
        now: Option<DateTime<Utc>>,
    ) -> Result<FoundKey, Refusal> {
        if let Self::DidKey(did) = self {
            let encoded = did.strip_prefix("did:key:").unwrap_or_default();
            return Ok(FoundKey { key: VerifyingKey::of_multibase(encoded, algorithm)?, valid_until: None });
        }
        let document = parse(fetched)?;
        match self {
            Self::DidDocument { did, .. } => of_did_document(&document, did, key_id, algorithm, now),
            _ => of_key_set(&document, key_id, algorithm, now),
        }
    }
}

/// A host without a leading `www.`.
fn without_www(host: &str) -> &str {
    host.strip_prefix("www.").unwrap_or(host)
}

/// A key and its expiry.
#[derive(Debug)]
pub(super) struct FoundKey {
    pub(super) key: VerifyingKey,
    pub(super) valid_until: Option<DateTime<Utc>>,
}

/// The address of the document of a did:web: `did:web:a.example:b` is `https://a.example/b/did.json`.
fn did_web_url(did: &str) -> Option<ManifestUrl> {
    let rest = did.strip_prefix("did:web:")?;
    let mut parts = rest.split(':');
    let host = parts.next()?;
    let path: Vec<&str> = parts.collect();
    let is_segment = |part: &&str| {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | '%');
        !part.is_empty() && part.chars().all(plain) && !part.chars().all(|c| c == '.')
    };
    // a port would be %3A: only the default one is requested
    let is_host = host.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-'));
    if !is_host || !path.iter().all(is_segment) {
        return None;
    }
    let place = if path.is_empty() { ".well-known".to_owned() } else { path.join("/") };
    ManifestUrl::parse(&format!("https://{host}/{place}/did.json")).ok()
}

fn parse(fetched: Option<&[u8]>) -> Result<Value, Refusal> {
    let unread = |reason: &str| Refusal::unresolvable(format!("the document with the keys {reason}"));
    let bytes = fetched.ok_or_else(|| unread("was not fetched"))?;
    if bytes.is_empty() {
        return Err(unread("could not be fetched"));
    }
    if bytes.len() > KEY_DOCUMENT_BYTES_MAX {
        return Err(unread("is longer than 64 KiB"));
    }
    budget::parse_within_budget(bytes, &KEY_DOCUMENT)
        .map_err(|error| unread(&format!("is not usable JSON: {error}")))
}

fn of_key_set(
    set: &Value,
    key_id: Option<&str>,
    algorithm: Algorithm,
    now: Option<DateTime<Utc>>,
) -> Result<FoundKey, Refusal> {
    let keys = set.get("keys").and_then(Value::as_array).ok_or_else(|| {
        Refusal::unresolvable("the key document is not a key set: it has no array `keys`".to_owned())
    })?;
    let key_id = key_id.ok_or_else(|| Refusal::invalid("the signature names no key (`kid`)".to_owned()))?;
    let has_id = |key: &&Value| key.get("kid").and_then(Value::as_str) == Some(key_id);
    let jwk = only(keys.iter().take(KEYS_MAX).filter(has_id), key_id)?;
    let seconds = |name: &str| {
        let value = jwk.get(name)?;
        DateTime::from_timestamp(value.as_i64().or_else(|| value.as_f64().map(whole))?, 0)
    };
    if jwk.get("revoked").is_some_and(|revoked| !matches!(revoked, Value::Null | Value::Bool(false))) {
        return Err(Refusal::invalid("the key is revoked".to_owned()));
    }
    let valid_until = seconds("exp");
    check_times(seconds("nbf"), valid_until, now)?;
    Ok(FoundKey { key: VerifyingKey::of_jwk(jwk, algorithm)?, valid_until })
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "a fraction of a second does not matter, and the cast saturates"
)]
const fn whole(seconds: f64) -> i64 {
    seconds as i64
}

fn of_did_document(
    document: &Value,
    did: &str,
    key_id: Option<&str>,
    algorithm: Algorithm,
    now: Option<DateTime<Utc>>,
) -> Result<FoundKey, Refusal> {
    if document.get("id").and_then(Value::as_str) != Some(did) {
        return Err(Refusal::invalid(format!("the DID document is not that of {}", capped(did, 80))));
    }
    if document.get("deactivated") == Some(&Value::Bool(true)) {
        return Err(Refusal::invalid("the DID is deactivated".to_owned()));
    }
    let key_id = key_id.ok_or_else(|| Refusal::invalid("the signature names no key (`kid`)".to_owned()))?;
    let wanted = absolute(key_id, did);
    let is_wanted = |id: &str| absolute(id, did) == wanted;
    let has_id = |method: &&Value| method.get("id").and_then(Value::as_str).is_some_and(is_wanted);
    let list = |name: &str| document.get(name).and_then(Value::as_array).into_iter().flatten().take(KEYS_MAX);
    // a relation holds ids of methods, or methods of its own
    let is_in = |relation: &str| {
        list(relation).any(|listed| listed.as_str().is_some_and(is_wanted) || has_id(&listed))
    };
    // A document without the relation does not state that any key signs statements, but may state that a key serves another purpose.
    let may_assert = if document.get("assertionMethod").is_some() {
        is_in("assertionMethod")
    } else {
        is_in("authentication") || !OTHER_RELATIONS.iter().any(|relation| is_in(relation))
    };
    let method = only(list("verificationMethod").chain(list("assertionMethod")).filter(has_id), key_id)?;
    if !may_assert {
        let text = "the key is not listed in `assertionMethod`, the keys that sign statements";
        return Err(Refusal::invalid(text.to_owned()));
    }
    if method.get("controller").is_some_and(|controller| controller.as_str() != Some(did)) {
        return Err(Refusal::invalid("the key is controlled by another DID".to_owned()));
    }
    let at =
        |name: &str| DateTime::parse_from_rfc3339(method.get(name)?.as_str()?).ok().map(|at| at.to_utc());
    if method.get("revoked").is_some() {
        return Err(Refusal::invalid("the key is revoked".to_owned()));
    }
    let valid_until = at("expires");
    if method.get("expires").is_some() && valid_until.is_none() {
        return Err(Refusal::invalid("`expires` of the key is not a time".to_owned()));
    }
    check_times(None, valid_until, now)?;
    let key = match (method.get("publicKeyJwk"), method.get("publicKeyMultibase").and_then(Value::as_str)) {
        (Some(jwk), _) => VerifyingKey::of_jwk(jwk, algorithm)?,
        (None, Some(encoded)) => VerifyingKey::of_multibase(encoded, algorithm)?,
        (None, None) => {
            let text = "the key has neither `publicKeyJwk` nor `publicKeyMultibase`";
            return Err(Refusal::unresolvable(text.to_owned()));
        }
    };
    Ok(FoundKey { key, valid_until })
}

/// The id of a key as a DID URL: `#key-1` and `key-1` are relative to the DID.
fn absolute(id: &str, did: &str) -> String {
    match id.split_once('#') {
        Some(("", fragment)) => format!("{did}#{fragment}"),
        Some(_) => id.to_owned(),
        None => format!("{did}#{id}"),
    }
}

/// The only key with an id. Two keys with the same id are refused, because the id is ambiguous.
fn only<'v>(mut found: impl Iterator<Item = &'v Value>, key_id: &str) -> Result<&'v Value, Refusal> {
    let named = || format!("the key \"{}\"", capped(key_id, 80));
    let key = found
        .next()
        .ok_or_else(|| Refusal::invalid(format!("{} is not in the document with the keys", named())))?;
    if found.next().is_some() {
        return Err(Refusal::invalid(format!("{} occurs twice", named())));
    }
    Ok(key)
}

/// Checks the validity period of a key. Without a time, because the document was not served, nothing is checked.
fn check_times(
    not_before: Option<DateTime<Utc>>,
    not_after: Option<DateTime<Utc>>,
    now: Option<DateTime<Utc>>,
) -> Result<(), Refusal> {
    let Some(now) = now else { return Ok(()) };
    if not_after.is_some_and(|end| now > end + CLOCK_SKEW) {
        return Err(Refusal::invalid(EXPIRED.to_owned()));
    }
    if not_before.is_some_and(|start| now + CLOCK_SKEW < start) {
        return Err(Refusal::invalid("the key is not valid yet".to_owned()));
    }
    Ok(())
}

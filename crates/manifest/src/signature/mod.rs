//! Signatures of documents: A2A cards (A2A 1.0 §8.4) and trust manifests of catalogs (AI Catalog 1.0, ARD 0.91 §4.5).
//!
//! A signature proves the publisher only if the key belongs to the publisher. So keys come from a key set at the origin that serves the
//! document, or from the DID document of a did:web of its site; a key at another site is never fetched. Anyone can create a did:key and
//! sign a copied or changed document with it, so such a signature verifies nothing. The document or its key must be at a path below
//! `/.well-known/`, because users of a site may publish files at other paths. The signature of a trust manifest does not cover its entry,
//! so it is accepted only in a catalog below `/.well-known/` at the host of its key. The documents are linked as parts, so the crawler
//! requests them like any other document of the site, and reads the manifest again when they change. `ring` does the cryptography.

mod card;
mod jws;
mod keys;
mod signer;

use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use serde_json::{Map, Value};

use self::jws::Jws;
pub(crate) use self::keys::EXPIRED;
use self::keys::KeyLocation;
pub use self::signer::{CardSigner, CardSignerError};
use crate::draft::Draft;
use crate::identity::site_named_by;
use crate::json::{Notes, push_index};
use crate::model::{Follow, Format, Integrity, Link, SignatureCheck, SignatureStatus};
use crate::name::{ContentHash, ManifestUrl};
use crate::rule::findings;
use crate::text::capped;

findings! {
    rule INVALID: Must("signature.invalid", "A2A 1.0 §8.4.3, AI Catalog 1.0 Trust Manifest Signatures")
        "a signature is not by the key that it names, or breaks a rule of JWS"
            => "Sign the published content again with a key that you publish, with ES256, EdDSA, RS256 or PS256.";
    rule UNRESOLVABLE: Note("signature.unresolvable", "A2A 1.0 §8.4.3, AI Catalog 1.0 Key Resolution")
        "the key of a signature cannot be read"
            => "Publish the key below /.well-known/ at the origin that serves the document (`jku`), or in the DID document of its domain.";
}

/// Maximum number of signatures of one card that are checked: more than the two keys of a rotation.
const SIGNATURES_MAX: usize = 8;
/// Maximum number of trust manifests of one catalog that are checked: a signature takes at most a millisecond.
const TRUST_MANIFESTS_MAX: usize = 500;
/// Maximum number of key documents that one manifest causes to be requested.
const KEY_DOCUMENTS_MAX: usize = 4;
/// Maximum difference between the clock of a publisher and the local clock.
pub(crate) const CLOCK_SKEW: TimeDelta = TimeDelta::minutes(5);
/// Maximum number of characters of a key id in a result.
const KEY_ID_CHARS_MAX: usize = 200;

/// Why a signature is not verified.
#[derive(Debug)]
struct Refusal {
    status: SignatureStatus,
    reason: String,
}

impl Refusal {
    const fn invalid(reason: String) -> Self {
        Self { status: SignatureStatus::Invalid, reason }
    }

    const fn unresolvable(reason: String) -> Self {
        Self { status: SignatureStatus::Unresolvable, reason }
    }
}

/// Checks the signatures of a card or catalog. `notes` are those of parsing `text`. Signatures cover the published text, so it is parsed
/// again without removing hidden characters.
pub(crate) fn check(draft: &mut Draft<'_>, text: &str, notes: &Notes) {
    let is_signed = |integrity: &Integrity| integrity.signed;
    let capabilities = &draft.manifest.capabilities;
    let is_any_signed = is_signed(&draft.manifest.integrity)
        || capabilities.iter().filter_map(|capability| capability.integrity.as_ref()).any(is_signed);
    if !is_any_signed {
        return;
    }
    let published: Option<Value> = serde_json::from_str(text).ok().filter(|_| notes.duplicates.is_empty());
    match (draft.format(), published) {
        (Format::A2a, Some(Value::Object(card))) => check_card(draft, &card),
        (Format::Ard, Some(catalog)) => check_catalog(draft, &catalog),
        (Format::A2a | Format::Ard, _) => {
            let text = "the document has a name twice in one object, or is nested too deeply, so the signed content is ambiguous";
            let check = Checker::new(draft).refused(Refusal::invalid(text.to_owned()));
            report(draft, &check, String::new());
            record(&mut draft.manifest.integrity, check);
        }
        _ => {}
    }
    mark_expired(draft);
}

/// Changes the content hash of a manifest whose key has expired, so that it is a new version although its documents are the same.
fn mark_expired(draft: &mut Draft<'_>) {
    let entries = draft.manifest.capabilities.iter().filter_map(|capability| capability.integrity.as_ref());
    let checks = entries.chain([&draft.manifest.integrity]).filter_map(|integrity| integrity.check.as_ref());
    if checks.into_iter().any(|check| check.reason.as_deref() == Some(EXPIRED)) {
        draft.manifest.content_hash =
            ContentHash::of(format!("{} expired", draft.manifest.content_hash).as_bytes());
    }
}

/// Checks a card. It is verified if one of its signatures is, because the keys of the others may have been replaced. Otherwise, the worst
/// result is used.
fn check_card(draft: &mut Draft<'_>, card: &Map<String, Value>) {
    let signatures = card.get("signatures").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let payloads = card::payloads(card);
    let has_relative = card::has_relative_address(card);
    let mut checker = Checker::new(draft);
    let checks: Vec<SignatureCheck> = signatures
        .iter()
        .take(SIGNATURES_MAX)
        .map(|signature| checker.check_card_signature(signature, &payloads, has_relative))
        .collect();
    let Some(decisive) = checks.iter().max_by_key(|check| weight(check.status)).cloned() else { return };
    if decisive.status != SignatureStatus::Verified {
        for (index, check) in checks.iter().enumerate() {
            let mut pointer = "/signatures".to_owned();
            push_index(&mut pointer, index);
            report(draft, check, pointer);
        }
    }
    record(&mut draft.manifest.integrity, decisive);
}

const fn weight(status: SignatureStatus) -> u8 {
    match status {
        SignatureStatus::Verified => 3,
        SignatureStatus::Invalid => 2,
        SignatureStatus::Unresolvable => 1,
        SignatureStatus::Unsigned => 0,
    }
}

/// Checks the trust manifests of the entries and of the host.
fn check_catalog(draft: &mut Draft<'_>, catalog: &Value) {
    let pointers: Vec<(usize, String)> = draft
        .manifest
        .capabilities
        .iter()
        .enumerate()
        .filter(|(_, capability)| capability.integrity.as_ref().is_some_and(|integrity| integrity.signed))
        .map(|(index, capability)| (index, capability.pointer.clone()))
        .collect();
    let mut checker = Checker::new(draft);
    for (count, (index, pointer)) in pointers.into_iter().enumerate() {
        let entry = catalog.pointer(&pointer);
        let check = if count < TRUST_MANIFESTS_MAX {
            let identifier = entry.and_then(|entry| entry.get("identifier")).and_then(Value::as_str);
            checker.check_trust(entry.and_then(|entry| entry.get("trustManifest")), identifier)
        } else {
            let text = format!("the first {TRUST_MANIFESTS_MAX} signatures of a document are checked");
            checker.refused(Refusal::unresolvable(text))
        };
        report(checker.draft, &check, format!("{pointer}/trustManifest/signature"));
        let capability = checker.draft.manifest.capabilities.get_mut(index);
        if let Some(integrity) = capability.and_then(|capability| capability.integrity.as_mut()) {
            record(integrity, check);
        }
    }
    if checker.draft.manifest.integrity.signed {
        let check = checker.check_trust(catalog.pointer("/host/trustManifest"), None);
        report(checker.draft, &check, "/host/trustManifest/signature".to_owned());
        record(&mut draft.manifest.integrity, check);
    }
}

fn record(integrity: &mut Integrity, check: SignatureCheck) {
    integrity.verified = Some(check.status == SignatureStatus::Verified);
    integrity.check = Some(check);
}

fn report(draft: &mut Draft<'_>, check: &SignatureCheck, pointer: String) {
    let rule = match check.status {
        SignatureStatus::Invalid => &INVALID,
        SignatureStatus::Unresolvable => &UNRESOLVABLE,
        SignatureStatus::Verified | SignatureStatus::Unsigned => return,
    };
    let text = check.reason.clone().unwrap_or_else(|| rule.wrong.to_owned());
    draft.report(rule, pointer, text);
}

/// Checks the signatures of one document, and links the documents of their keys.
struct Checker<'c, 'd> {
    draft: &'c mut Draft<'d>,
    base: &'d ManifestUrl,
    /// When the document was served.
    now: Option<DateTime<Utc>>,
    linked: Vec<ManifestUrl>,
}

impl<'c, 'd> Checker<'c, 'd> {
    fn new(draft: &'c mut Draft<'d>) -> Self {
        let served_at = draft.document.served.and_then(|served| served.at.as_deref());
        let now = served_at.and_then(|at| DateTime::parse_from_rfc3339(at).ok()).map(|at| at.to_utc());
        Self { base: draft.base(), draft, now, linked: Vec::new() }
    }

    fn check_card_signature(
        &mut self,
        signature: &Value,
        payloads: &[Vec<u8>],
        has_relative: bool,
    ) -> SignatureCheck {
        let text = |name: &str| signature.get(name).and_then(Value::as_str).unwrap_or_default();
        let jws = match Jws::parse(text("protected"), text("signature")) {
            Ok(jws) => jws,
            Err(refusal) => return self.refused(refusal),
        };
        let key_id = jws.header.kid.as_deref();
        let location = match (key_id, jws.header.jku.as_deref()) {
            (Some(kid), _) if kid.starts_with("did:") => {
                KeyLocation::of_did(kid.split('#').next().unwrap_or_default(), self.base)
            }
            (_, Some(jku)) => KeyLocation::key_set(jku, self.base),
            _ => Err(Refusal::unresolvable(
                "the signature names no key set (`jku`) and no DID (`kid`)".to_owned(),
            )),
        };
        let location = location.and_then(|location| {
            if has_relative {
                location.check_place_of_relative(self.draft.document.url)?;
            }
            Ok(location)
        });
        self.check_at(&jws, location, payloads)
    }

    /// A trust manifest is checked with the keys of its identity. Members of its signature other than `kid` have no effect. The signature
    /// does not cover the entry, so anyone can copy it to another entry. Therefore it is accepted only in a catalog that the host of the
    /// key publishes.
    fn check_trust(&mut self, trust: Option<&Value>, identifier: Option<&str>) -> SignatureCheck {
        let Some(trust) = trust.and_then(Value::as_object) else {
            let text = "the trust manifest has another name in the document".to_owned();
            return self.refused(Refusal::unresolvable(text));
        };
        let text = |name: &str| trust.get(name).and_then(Value::as_str).unwrap_or_default();
        let site = self.base.site();
        let foreign = [identifier, Some(text("identity"))].into_iter().flatten();
        if let Some(other) = foreign.filter_map(site_named_by).find(|named| *named != site) {
            let text =
                format!("the publisher is {other}, and {site} serves the document: its key is not requested");
            return self.refused(Refusal::unresolvable(text));
        }
        let jws = match Jws::parse_detached(text("signature")) {
            Ok(jws) => jws,
            Err(refusal) => return self.refused(refusal),
        };
        let identity = text("identity");
        let location = if identity.starts_with("https://") {
            KeyLocation::key_set(identity, self.base)
        } else {
            KeyLocation::of_did(identity, self.base)
        };
        let is_of_other_did = |kid: &str| kid.starts_with("did:") && kid.split('#').next() != Some(identity);
        if jws.header.kid.as_deref().is_some_and(is_of_other_did) {
            return self.refused(Refusal::invalid("the key is of another DID than the identity".to_owned()));
        }
        let location = location
            .and_then(|location| location.check_place_of_trust(self.draft.document.url).map(|()| location));
        let mut content = trust.clone();
        content.shift_remove("signature");
        let payload = serde_json_canonicalizer::to_vec(&content).unwrap_or_default();
        self.check_at(&jws, location, &[payload])
    }

    fn check_at(
        &mut self,
        jws: &Jws<'_>,
        location: Result<KeyLocation, Refusal>,
        payloads: &[Vec<u8>],
    ) -> SignatureCheck {
        let key_id = jws.header.kid.as_deref();
        let located = location.and_then(|location| {
            location.check_place(self.draft.document.url)?;
            self.linked_to(&location).map(|()| location)
        });
        let source = located.as_ref().ok().map(|location| location.source().to_owned());
        let result = located.and_then(|location| {
            let key = location.key(self.fetched(&location), key_id, jws.algorithm, self.now)?;
            if payloads.iter().any(|payload| jws.is_made_by(&key.key, payload)) {
                return location.check_is_of_publisher().map(|()| key.valid_until);
            }
            Err(Refusal::invalid("the signature does not match the content and the key".to_owned()))
        });
        let check = match result {
            Ok(valid_until) => SignatureCheck {
                status: SignatureStatus::Verified,
                valid_until: valid_until.map(|at| at.to_rfc3339_opts(SecondsFormat::Secs, true)),
                ..self.blank()
            },
            Err(refusal) => self.refused(refusal),
        };
        SignatureCheck {
            key_id: key_id.map(|id| capped(id, KEY_ID_CHARS_MAX).to_owned()),
            algorithm: Some(jws.header.alg.clone()),
            key_source: source.map(|source| capped(&source, KEY_ID_CHARS_MAX).to_owned()),
            ..check
        }
    }

    /// Links the key document as a part of the manifest.
    fn linked_to(&mut self, location: &KeyLocation) -> Result<(), Refusal> {
        let Some((rel, url)) = location.document() else { return Ok(()) };
        if self.linked.contains(url) {
            return Ok(());
        }
        if self.linked.len() >= KEY_DOCUMENTS_MAX {
            let text = format!("the first {KEY_DOCUMENTS_MAX} documents with keys are requested");
            return Err(Refusal::unresolvable(text));
        }
        self.linked.push(url.clone());
        self.draft.keep(Link::new(rel, url.to_string(), Some(Follow::Merge)));
        Ok(())
    }

    fn fetched(&self, location: &KeyLocation) -> Option<&'d [u8]> {
        let (_, url) = location.document()?;
        self.draft.document.linked.iter().find(|linked| linked.url == url).map(|linked| linked.bytes)
    }

    fn refused(&self, refusal: Refusal) -> SignatureCheck {
        SignatureCheck { status: refusal.status, reason: Some(refusal.reason), ..self.blank() }
    }

    fn blank(&self) -> SignatureCheck {
        let checked_at = self.now.map(|now| now.to_rfc3339_opts(SecondsFormat::Secs, true));
        SignatureCheck { checked_at, ..SignatureCheck::UNSIGNED }
    }
}

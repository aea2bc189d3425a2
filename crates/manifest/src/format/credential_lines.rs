//! Credentials that lines of text name: headers of signed requests and schemes.

use serde_json::Value;

use crate::draft::{self, Draft};
use crate::format::{lenient, request_headers};
use crate::model::{AppliesTo, Auth, AuthScheme, Capability, Tristate};

/// Maximum number of headers of credentials that one text names.
const HEADERS_MAX: usize = 8;

/// Keeps the headers that a sentence about authorization names, "uses signed headers (`x-shop-sig`)", and returns each with the
/// part of the service that the sentence is about: "Gate authorization uses …".
pub(super) fn read_credential_headers(line: &str, draft: &mut Draft<'_>) -> Vec<(String, String)> {
    if let Some(name) = lenient::header_in(line).filter(|_| draft.manifest.auth.is_empty())
        && request_headers::is_credential(name)
        && !name.to_ascii_lowercase().contains("payment")
    {
        let stated = Auth {
            location: Some("header".to_owned()),
            name: draft::name(Some(name)),
            ..Auth::new(AuthScheme::ApiKey)
        };
        draft.keep(stated);
        if line.contains("OAuth") {
            draft.keep(Auth::new(AuthScheme::OAuth2));
        }
    }
    if !line.contains("`x-") && !line.contains("`X-") {
        return Vec::new();
    }
    let folded = line.to_ascii_lowercase();
    if !folded.contains("header")
        || !["authoriz", "authentic", " auth "].iter().any(|word| folded.contains(word))
    {
        return Vec::new();
    }
    let subject = subject_of(&folded);
    let mut limited = Vec::new();
    let is_signed = folded.contains("signed") || folded.contains("signature");
    let scheme = if is_signed { AuthScheme::HttpSignature } else { AuthScheme::ApiKey };
    let quoted = line.split('`').skip(1).step_by(2);
    for name in quoted.filter(|name| name.starts_with("x-") || name.starts_with("X-")).take(HEADERS_MAX) {
        let name = draft::name(Some(name));
        if draft.manifest.auth.len() < HEADERS_MAX
            && !draft.manifest.auth.iter().any(|known| known.name == name)
        {
            limited.extend(name.clone().zip(subject.map(str::to_owned)));
            let declared = signature_in(&folded).filter(|_| is_signed);
            draft.keep(Auth { declared, location: Some("header".to_owned()), name, ..Auth::new(scheme) });
        }
    }
    limited
}

/// Kinds of signatures that a request may carry.
const SIGNATURES: &[&str] = &["EIP-712", "EIP-191", "HMAC-SHA256", "Ed25519"];

/// The kind of signature that a line in lower case names: "EIP-712 signed headers".
fn signature_in(line: &str) -> Option<String> {
    let named = SIGNATURES.iter().find(|kind| line.contains(&kind.to_ascii_lowercase()))?;
    Some((*named).to_owned())
}

/// The part of a service at the start of a line about its authorization: `gate` in "- gate authorization uses …".
fn subject_of(line: &str) -> Option<&str> {
    let mut words = line.trim_start_matches(['-', '*', '+', '#', '>', ' ']).split_whitespace();
    let subject = words.next().map(|word| word.trim_matches(['*', '`']))?;
    let is_about = words.next().is_some_and(|word| {
        ["authorization", "authentication", "auth"].contains(&word.trim_matches(['*', '`', ':']))
    });
    is_about.then_some(subject)
}

/// Limits the credentials of a header to the calls with a segment of the subject's name in their path, if there are any.
pub(super) fn limit_to(header: &str, subject: &str, draft: &mut Draft<'_>) {
    let manifest = &mut draft.manifest;
    let Some(auth) = manifest.auth.iter_mut().find(|auth| auth.name.as_deref() == Some(header)) else {
        return;
    };
    let is_of_subject = |capability: &&mut Capability| {
        let endpoint = capability.invocation.endpoint().unwrap_or_default();
        endpoint.split(['/', '?']).any(|segment| segment.eq_ignore_ascii_case(subject))
    };
    let mut ids = Vec::new();
    for capability in manifest.capabilities.iter_mut().filter(is_of_subject) {
        if capability.auth.required == Tristate::Unknown {
            capability.auth.required = Tristate::Yes;
        }
        if capability.auth.required == Tristate::Yes && !capability.auth.schemes.contains(&auth.scheme) {
            capability.auth.schemes.push(auth.scheme);
        }
        ids.push(capability.native_id.clone());
    }
    if !ids.is_empty() {
        auth.applies_to = AppliesTo::Ids { ids };
    }
}

/// Reads a scheme or its header, in the lines below a heading about authentication: `Type: API Key`, `Header: X-API-Key`.
pub(super) fn read_scheme(label: &str, value: &str, draft: &mut Draft<'_>) -> bool {
    match label {
        "type" | "method" | "scheme" if draft.manifest.auth.len() < HEADERS_MAX => {
            let word = value.split(['(', ',']).next().unwrap_or_default().trim();
            let found = lenient::auth(&Value::String(word.to_owned()));
            let known: Vec<AuthScheme> = draft.manifest.auth.iter().map(|auth| auth.scheme).collect();
            let is_new = |auth: &Auth| auth.scheme != AuthScheme::Other && !known.contains(&auth.scheme);
            draft.keep_all(found.into_iter().filter(is_new));
        }
        "header" | "header name" => {
            let name = value.split([':', ' ']).next().unwrap_or_default();
            let is_open = |auth: &&mut Auth| auth.name.is_none() && has_header(auth.scheme);
            if let Some(last) = draft.manifest.auth.last_mut().filter(is_open) {
                last.name = draft::name(Some(name));
                last.location = Some("header".to_owned());
            }
        }
        _ => return false,
    }
    true
}

/// Whether the credentials of a scheme are sent in a header that a text names.
const fn has_header(scheme: AuthScheme) -> bool {
    matches!(scheme, AuthScheme::ApiKey | AuthScheme::Bearer | AuthScheme::HttpSignature)
}

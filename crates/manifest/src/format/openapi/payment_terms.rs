//! The payment that an operation asks for with status 402: the scheme that the response, its headers or a header of the request names, and
//! the header in which the caller proves that it has paid.

use std::collections::{BTreeMap, HashMap};

use serde_json::{Map, Value};

use crate::draft::{DESCRIPTION_CHARS_MAX, Draft};
use crate::format::{auth_sentences, credential_headers, payment_header, payment_words};
use crate::model::{AppliesTo, Auth, AuthScheme, Capability};
use crate::text;

/// Maximum number of headers of one response that are read.
const HEADERS_MAX: usize = 50;
/// Maximum length of a reference to a response or a header.
const REFERENCE_BYTES_MAX: usize = 200;
/// Maximum number of headers of proof of one document that are kept.
const PROOFS_MAX: usize = 4;

/// What an operation that answers 402 states about its payment.
pub(super) struct Terms {
    pub(super) scheme: String,
    /// The name of the header of the proof, and whether the caller may send another credential instead.
    proof: Option<(String, bool)>,
}

impl Terms {
    /// The terms of an operation with a response 402 that names a scheme; `None` for other operations.
    pub(super) fn of(
        operation: &Map<String, Value>,
        capability: &Capability,
        root: &Map<String, Value>,
        descriptions: &mut Descriptions,
    ) -> Option<Self> {
        let responses = operation.get("responses")?.as_object()?;
        let due = local(responses.get("402")?, root)?;
        let mut proofs = credential_headers::headers(capability);
        let proof = proofs.find(|(name, _)| payment_header::is_proof(name));
        let in_proof = || {
            let (name, property) = proof?;
            let text = property.get("description").and_then(Value::as_str).unwrap_or_default();
            scheme_in(text).or_else(|| payment_header::scheme_of(name))
        };
        let scheme = in_proof().or_else(|| descriptions.scheme_of_response(due, root))?;
        let is_alternative =
            |name: &str| !credential_headers::is_required(capability, name) && responses.contains_key("401");
        let proof = proof.map(|(name, _)| (text::capped(name, 100).to_owned(), is_alternative(name)));
        Some(Self { scheme: scheme.to_owned(), proof })
    }
}

/// The schemes of descriptions that were searched, by their address in memory: many operations may share one response, and many responses one
/// header.
#[derive(Default)]
pub(super) struct Descriptions(HashMap<*const u8, Option<&'static str>>);

impl Descriptions {
    /// The scheme that a response names in its description or in its headers.
    fn scheme_of_response(
        &mut self,
        response: &Map<String, Value>,
        root: &Map<String, Value>,
    ) -> Option<&'static str> {
        if let Some(scheme) = self.scheme_of(response) {
            return Some(scheme);
        }
        let headers = response.get("headers").and_then(Value::as_object).into_iter().flatten();
        headers.take(HEADERS_MAX).find_map(|(name, header)| {
            payment_header::scheme_of(name).or_else(|| self.scheme_of(local(header, root)?))
        })
    }

    fn scheme_of(&mut self, object: &Map<String, Value>) -> Option<&'static str> {
        let description = object.get("description")?.as_str()?;
        *self.0.entry(description.as_ptr()).or_insert_with(|| scheme_in(description))
    }
}

/// The scheme that the beginning of a description names.
fn scheme_in(description: &str) -> Option<&'static str> {
    payment_words::scheme_in(text::capped(description, DESCRIPTION_CHARS_MAX))
}

/// An object, or the part of the document to which its `$ref` leads.
fn local<'v>(value: &'v Value, root: &'v Map<String, Value>) -> Option<&'v Map<String, Value>> {
    let object = value.as_object()?;
    let Some(reference) = object.get("$ref").and_then(Value::as_str) else { return Some(object) };
    if reference.len() > REFERENCE_BYTES_MAX {
        return None;
    }
    let mut names =
        reference.strip_prefix("#/")?.split('/').map(|name| name.replace("~1", "/").replace("~0", "~"));
    let first = root.get(&names.next()?)?;
    names.try_fold(first, |value, name| value.get(&name))?.as_object()
}

/// Keeps the headers of proof as credentials of their calls.
pub(super) fn keep_proofs(terms: &BTreeMap<usize, Terms>, draft: &mut Draft<'_>) {
    let mut proofs: BTreeMap<(&str, bool), Vec<String>> = BTreeMap::new();
    for (at, terms) in terms {
        let Some((name, is_alternative)) = &terms.proof else { continue };
        let Some(call) = draft.manifest.capabilities.get(*at) else { continue };
        if proofs.len() < PROOFS_MAX || proofs.contains_key(&(name.as_str(), *is_alternative)) {
            proofs.entry((name, *is_alternative)).or_default().push(call.native_id.clone());
        }
    }
    for ((name, is_alternative), ids) in proofs {
        let applies_to = if is_alternative { AppliesTo::OptionalIds { ids } } else { AppliesTo::Ids { ids } };
        draft.keep(Auth { applies_to, ..auth_sentences::in_header(AuthScheme::Payment, name) });
    }
}

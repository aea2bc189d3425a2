//! Credentials that a document states only for a part of the service: in `operator_auth`, in the `auth` of a block, in the headers of a
//! step of a flow.

use serde_json::{Map, Value};

use crate::draft::{self, Draft};
use crate::format::{lenient, request_headers};
use crate::json::{at_index, at_name};
use crate::model::{AppliesTo, Auth, AuthScheme, Capability, Tristate};
use crate::text;

/// Maximum number of credentials that are kept from one document.
const SCHEMES_MAX: usize = 8;
/// Maximum nesting of the members that state credentials.
const NESTING_MAX: usize = 8;
/// Maximum number of members that are searched for credentials.
const MEMBERS_MAX: usize = 5_000;

/// Adds the credentials of the parts. If the document states some for the whole, only those of elements with a form or a registration of
/// their own are added.
pub(crate) fn read(root: &Map<String, Value>, draft: &mut Draft<'_>) {
    let mut search =
        Search { found: Vec::new(), members_left: MEMBERS_MAX, is_open_in_part: false, steps: Vec::new() };
    search.map(root, 0);
    if !draft.manifest.auth.is_empty() {
        return keep_own(search.found, draft);
    }
    let has_found = !search.found.is_empty();
    let first = draft.manifest.auth.len();
    let is_several = search.found.len() > 1;
    for Found { mut auth, holders } in search.found {
        // Elements with different credentials have calls of their own.
        if is_several {
            limit_to(&holders, &mut auth, &mut draft.manifest.capabilities);
        }
        draft.keep(auth);
    }
    // Credentials of a part apply to the calls that state them, if any do.
    if has_found {
        draft::restrict_to_needing(&mut draft.manifest);
    }
    // If another part needs none, or no call states them, they do not apply to all calls.
    let is_for_none = search.is_open_in_part || !draft.manifest.capabilities.is_empty();
    for auth in draft.manifest.auth.iter_mut().skip(first).filter(|_| is_for_none) {
        if auth.applies_to == AppliesTo::All {
            auth.applies_to = AppliesTo::OptionalIds { ids: Vec::new() };
        }
    }
}

/// Keeps the credentials that elements state beside those of the document, for the calls of these elements: with another form, or obtained
/// elsewhere.
fn keep_own(found: Vec<Found>, draft: &mut Draft<'_>) {
    for Found { auth, holders } in found {
        let has_details = auth.registration_url.is_some()
            || auth.format.is_some()
            || auth.token_url.is_some()
            || auth.authorize_url.is_some();
        let manifest = &mut draft.manifest;
        let same = |known: &&mut Auth| known.scheme == auth.scheme;
        let is_known = manifest.auth.iter().any(|known| states(known, &auth));
        if !has_details || is_known || manifest.capabilities.len() > CALLS_MAX {
            continue;
        }
        let needs = |call: &&Capability| {
            call.auth.required != Tristate::No && call.auth.schemes.contains(&auth.scheme)
        };
        let (own, others): (Vec<&Capability>, Vec<&Capability>) =
            manifest.capabilities.iter().filter(needs).partition(|call| is_inside(&holders, &call.pointer));
        let ids =
            |calls: Vec<&Capability>| calls.iter().map(|call| call.native_id.clone()).collect::<Vec<_>>();
        let (own, others) = (ids(own), ids(others));
        if own.is_empty() {
            continue;
        }
        for known in manifest.auth.iter_mut().filter(same) {
            match &mut known.applies_to {
                AppliesTo::All if !others.is_empty() => {
                    known.applies_to = AppliesTo::Ids { ids: others.clone() };
                }
                AppliesTo::Ids { ids } if ids.iter().any(|id| !own.contains(id)) => {
                    ids.retain(|id| !own.contains(id));
                }
                _ => {}
            }
        }
        draft.keep(Auth { applies_to: AppliesTo::Ids { ids: own }, ..auth });
    }
}

/// Maximum number of calls of a document whose elements may state credentials beside those of the document.
const CALLS_MAX: usize = 1_000;

/// Whether a known credential says all that another statement says.
fn states(known: &Auth, other: &Auth) -> bool {
    let has = |known: &Option<String>, other: &Option<String>| other.is_none() || known == other;
    known.scheme == other.scheme
        && has(&known.registration_url, &other.registration_url)
        && has(&known.format, &other.format)
        && has(&known.token_url, &other.token_url)
        && has(&known.authorize_url, &other.authorize_url)
}

/// Whether a pointer leads into one of these elements.
fn is_inside(holders: &[String], pointer: &str) -> bool {
    holders.iter().any(|holder| {
        let rest = pointer.strip_prefix(holder.as_str()).filter(|_| !holder.is_empty());
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    })
}

/// Restricts credentials to the calls of the elements that state them.
fn limit_to(holders: &[String], auth: &mut Auth, capabilities: &mut [Capability]) {
    let count = capabilities.len();
    let mut ids: Vec<String> = Vec::new();
    for call in capabilities.iter_mut().filter(|call| is_inside(holders, &call.pointer)) {
        if call.auth.required == Tristate::No {
            continue;
        }
        if call.auth.required == Tristate::Yes && call.auth.schemes.is_empty() {
            call.auth.schemes.push(auth.scheme);
        }
        ids.push(call.native_id.clone());
    }
    if !ids.is_empty() && ids.len() < count {
        auth.applies_to = AppliesTo::Ids { ids };
    }
}

/// A credential, and the pointers of the elements that state it.
struct Found {
    auth: Auth,
    holders: Vec<String>,
}

#[derive(Clone, Copy)]
enum Step<'v> {
    Name(&'v str),
    Index(usize),
}

struct Search<'v> {
    found: Vec<Found>,
    /// Whether a part says that it needs no credentials.
    is_open_in_part: bool,
    members_left: usize,
    /// The place of the current object.
    steps: Vec<Step<'v>>,
}

impl<'v> Search<'v> {
    fn map(&mut self, map: &'v Map<String, Value>, depth: usize) {
        for (name, value) in map {
            if self.members_left == 0 || self.found.len() >= SCHEMES_MAX {
                return;
            }
            self.members_left -= 1;
            match value {
                Value::Object(headers) if name == "headers" => self.headers(headers),
                Value::Object(_) | Value::String(_) if depth > 0 && is_about_auth(name) => self.stated(value),
                // `"authentication": ["jwt", "api-key"]`
                Value::Array(list)
                    if depth > 0 && is_about_auth(name) && list.iter().all(Value::is_string) =>
                {
                    self.stated(value);
                }
                Value::Object(inner) => {
                    self.steps.push(Step::Name(name));
                    self.inner(inner, depth);
                    self.steps.pop();
                }
                Value::Array(list) => {
                    self.steps.push(Step::Name(name));
                    for (index, item) in list.iter().enumerate() {
                        if let Value::Object(inner) = item {
                            self.steps.push(Step::Index(index));
                            self.inner(inner, depth);
                            self.steps.pop();
                        }
                    }
                    self.steps.pop();
                }
                _ => {}
            }
        }
    }

    /// The pointer of the current object.
    fn pointer(&self) -> String {
        self.steps.iter().fold(String::new(), |pointer, step| match step {
            Step::Name(name) => at_name(&pointer, name),
            Step::Index(index) => at_index(&pointer, *index),
        })
    }

    fn inner(&mut self, map: &'v Map<String, Value>, depth: usize) {
        if depth < NESTING_MAX {
            self.map(map, depth + 1);
        }
    }

    /// Reads a member for credentials, if it names a known scheme or a header.
    fn stated(&mut self, value: &Value) {
        let header = value.get("header").and_then(Value::as_str).map(|name| Value::from(name.trim()));
        let mut stated = lenient::auth(value);
        if stated.is_empty() {
            stated = header.as_ref().map(lenient::auth).unwrap_or_default();
        }
        for auth in stated {
            self.keep(auth);
        }
    }

    /// Reads the credentials among request headers: `{"X-API-Key": "{{api_key}}"}`.
    fn headers(&mut self, headers: &Map<String, Value>) {
        for name in headers.keys().filter(|name| request_headers::is_credential(name)) {
            if let Some(auth) = lenient::auth(&Value::from(name.as_str())).pop() {
                self.keep(auth);
            }
        }
    }

    fn keep(&mut self, auth: Auth) {
        self.is_open_in_part |= auth.scheme == AuthScheme::None;
        if matches!(auth.scheme, AuthScheme::Other | AuthScheme::None) {
            return;
        }
        let is_same = |known: &Auth| {
            (known.scheme, &known.name) == (auth.scheme, &auth.name)
                && (&known.registration_url, &known.format) == (&auth.registration_url, &auth.format)
        };
        let holder = self.pointer();
        if let Some(known) = self.found.iter_mut().find(|found| is_same(&found.auth)) {
            if known.holders.len() < HOLDERS_MAX {
                known.holders.push(holder);
            }
        } else if self.found.len() < SCHEMES_MAX {
            self.found.push(Found { auth, holders: vec![holder] });
        }
    }
}

/// Maximum number of elements that are remembered for each credential.
const HOLDERS_MAX: usize = 50;

/// Whether a member is about credentials: `auth`, `operator_auth`.
fn is_about_auth(name: &str) -> bool {
    let bare = name.trim_end_matches(|letter: char| !letter.is_alphanumeric());
    (bare.ends_with("uth") || bare.ends_with("uthentication"))
        && text::words(bare).last().is_some_and(|word| matches!(word.as_str(), "auth" | "authentication"))
}

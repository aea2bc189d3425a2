//! Credentials that are stated only in a part of a call: in a sentence of its description ("Needs an API key in the X-API-Key header."), in
//! a required parameter for a key, or in the headers of its request.
//! Decides what a call needs if it has no other statement, and keeps the credentials with the ids of these calls. Sentences with a
//! condition, about another service, or about a key that the call manages are ignored.

use std::collections::BTreeMap;

use super::credential_headers::{self, HeaderCredential};
use super::instructed_credentials::{self, Need};
use super::key_parameters::{self, manages_keys};
use crate::cues::{Cue, Cues};
use crate::draft::{DESCRIPTION_CHARS_MAX, Draft, NAME_BYTES_MAX};
use crate::format::clauses::clauses;
use crate::format::outbound::Texts;
use crate::format::own_credentials::{own_in, says_own};
use crate::format::{auth_sentences, lenient, named_keys, request_headers, required_tokens};
use crate::model::{AppliesTo, Auth, AuthScheme, Capability, CapabilityAuth, Manifest, Tristate};
use crate::text::{self, capped};

/// Maximum number of words between "requires" and the credential: "an existing schedule and".
const WORDS_BETWEEN_MAX: usize = 6;
/// Maximum number of credentials of one document that are kept.
const CREDENTIALS_MAX: usize = 16;

/// Words before "requires" that refer to the call or to its caller.
const SUBJECTS: &[&str] = &[
    "it",
    "this",
    "the",
    "call",
    "calls",
    "endpoint",
    "tool",
    "operation",
    "action",
    "request",
    "requests",
    "you",
    "callers",
    "agents",
    "clients",
    "also",
    "always",
    "and",
    "note",
];
const NEEDS: &[&str] = &["requires", "require", "needs", "need"];
/// Words of a clause that consists of the name of a credential and "required".
const OF_NAMES: &[&str] = &[
    "a",
    "an",
    "valid",
    "api",
    "key",
    "bearer",
    "token",
    "oauth",
    "oauth2",
    "auth",
    "authentication",
    "authorization",
    "is",
    "user",
    "or",
    "jwt",
];
/// Words after "with an API key".
const ACCESS: &[&str] = &["access", "auth", "authentication", "authorization"];

/// The credentials that the description of a call states.
#[derive(Debug, Default)]
struct Described {
    /// Credentials that a sentence requires. The scheme is `Other` if the sentence names none.
    required: Vec<Auth>,
    /// Credentials that an instruction says to send. The instruction may refer to credentials that the call returns.
    advised: Vec<Auth>,
    /// Credentials that the call accepts but does not need.
    optional: Vec<Auth>,
}

impl Described {
    fn of(description: &str) -> Self {
        let description = capped(description, DESCRIPTION_CHARS_MAX);
        let mut found = Self::default();
        let cues = Cues::of(description);
        let may_instruct = instructed_credentials::may_instruct(description, cues);
        if !may_instruct && !cues.has(Cue::Requirement) {
            return found;
        }
        let mut is_behind_own = false;
        for clause in clauses(description) {
            let folded = clause.to_ascii_lowercase();
            if std::mem::replace(&mut is_behind_own, says_own(&folded)) && found.required.is_empty() {
                found.required = own_in(clause, &folded);
            }
            if folded.len() > NAME_BYTES_MAX || folded.contains('?') {
                continue;
            }
            if found.required.is_empty() && Cues::of(clause).has(Cue::Requirement) {
                found.required = in_clause(clause, &folded);
            }
            if may_instruct {
                found.add_instruction(clause, &folded);
            }
        }
        found
    }

    fn add_instruction(&mut self, clause: &str, folded: &str) {
        let Some((need, auth)) = instructed_credentials::in_clause(clause, folded) else { return };
        // "optionally" is part of the statement, not a condition.
        let is_conditional = || auth_sentences::is_conditional(&folded.replace("optionally", ""));
        let kept = match need {
            Need::Obliged => &mut self.required,
            Need::Advised => &mut self.advised,
            Need::Optional => &mut self.optional,
        };
        if kept.is_empty() && !is_conditional() {
            kept.push(auth);
        }
    }

    /// The credentials that a call needs. Instructions are ignored for calls that issue or manage keys, because they may refer to these
    /// keys.
    fn needed(&self, capability: &Capability) -> &[Auth] {
        let issues = || {
            let description = capability.description.as_deref().unwrap_or_default();
            manages_keys(capability) || instructed_credentials::issues_credential(description)
        };
        if self.required.is_empty() && !self.advised.is_empty() && !issues() {
            return &self.advised;
        }
        &self.required
    }
}

fn in_clause(clause: &str, folded: &str) -> Vec<Auth> {
    let words: Vec<&str> = folded
        .split(|letter: char| !(letter.is_alphanumeric() || letter == '_'))
        .filter(|word| !word.is_empty())
        .collect();
    let lead = words.iter().take_while(|word| SUBJECTS.contains(word)).count();
    let needed = words.get(lead).filter(|verb| NEEDS.contains(verb)).and_then(|_| words.get(lead + 1..));
    // "Requires a write-scoped token": nothing follows the token that could be a condition.
    if let Some(token) = needed.and_then(|needed| required_tokens::token_in(clause, needed)) {
        return vec![token];
    }
    if required_tokens::names_caller(folded) {
        return named_in(clause, folded);
    }
    if auth_sentences::is_conditional(folded) {
        return Vec::new();
    }
    if !(is_needed_by_verb(&words) || is_named_as_required(&words) || is_access_with(&words)) {
        return required_header(clause, &words).into_iter().collect();
    }
    named_in(clause, folded)
}

/// "Requires an existing schedule and API key", "This endpoint needs authentication"
fn is_needed_by_verb(words: &[&str]) -> bool {
    let lead = words.iter().take_while(|word| SUBJECTS.contains(word)).count();
    let verb = words.get(lead).is_some_and(|word| NEEDS.contains(word));
    let behind = words.get(lead + 1..).unwrap_or_default();
    let between = |at: usize| behind.get(..at).unwrap_or_default();
    let is_needed =
        |at: usize| at <= WORDS_BETWEEN_MAX && !between(at).iter().any(|word| matches!(*word, "no" | "any"));
    verb && first_credential(behind).is_some_and(is_needed)
}

/// The header of a credential that a clause requires first: "Requires X-Payment-Token from the desk"
fn required_header(clause: &str, words: &[&str]) -> Option<Auth> {
    let lead = words.iter().take_while(|word| SUBJECTS.contains(word)).count();
    let is_required = matches!(words.get(lead..), Some([verb, "x", ..]) if NEEDS.contains(verb));
    let name =
        lenient::header_in(clause).filter(|name| is_required && request_headers::is_credential(name))?;
    let words = text::words(name);
    let scheme = match words.last().map(String::as_str) {
        _ if words.iter().any(|word| word == "payment") => AuthScheme::Payment,
        Some("key") => AuthScheme::ApiKey,
        _ => return None,
    };
    Some(auth_sentences::in_header(scheme, name))
}

/// "API key required", "Authentication is required"
fn is_named_as_required(words: &[&str]) -> bool {
    words.split_last().is_some_and(|(last, named)| {
        matches!(*last, "required" | "needed")
            && first_credential(named).is_some()
            && named.iter().all(|word| OF_NAMES.contains(word))
    })
}

/// "Server with API-key and OAuth access"
fn is_access_with(words: &[&str]) -> bool {
    let at = words.windows(3).position(|three| matches!(three, ["with", "api", "key"])).map(|at| at + 3);
    let with_article =
        || words.windows(4).position(|four| matches!(four, ["with", "an", "api", "key"])).map(|at| at + 4);
    at.or_else(with_article)
        .and_then(|at| words.get(at..))
        .is_some_and(|behind| behind.iter().take(3).any(|word| ACCESS.contains(word)))
}

/// The position of the first word of a credential.
fn first_credential(words: &[&str]) -> Option<usize> {
    words.iter().enumerate().position(|(at, word)| {
        let next = words.get(at + 1).copied().unwrap_or_default();
        matches!(*word, "apikey" | "oauth" | "oauth2" | "authentication" | "authorization" | "auth" | "jwt")
            || (*word == "api" && matches!(next, "key" | "token"))
            || (*word == "bearer" && matches!(next, "token" | "auth" | "authentication"))
    })
}

/// The credentials that a clause names, or one with an unknown scheme if it names none.
pub(super) fn named_in(clause: &str, folded: &str) -> Vec<Auth> {
    let mut found = Vec::new();
    let at_key = ["api key", "api-key", "api token"].iter().find_map(|name| folded.find(name));
    if let Some(at) = at_key {
        if auth_sentences::is_of_another(clause, at) {
            return Vec::new();
        }
        let header =
            lenient::header_in(clause).map(|name| auth_sentences::in_header(AuthScheme::ApiKey, name));
        found.push(header.unwrap_or_else(|| Auth::new(AuthScheme::ApiKey)));
    }
    if folded.contains("authorization: bearer") {
        found.push(auth_sentences::in_header(AuthScheme::Bearer, "Authorization"));
    } else if folded.contains("bearer") || folded.contains("jwt") {
        found.push(Auth::new(AuthScheme::Bearer));
    }
    if let Some(at) = folded.find("oauth") {
        if found.is_empty() && auth_sentences::is_of_another(clause, at) {
            return Vec::new();
        }
        found.push(Auth::new(AuthScheme::OAuth2));
    }
    if found.is_empty() {
        found.push(Auth::new(AuthScheme::Other));
    }
    found
}

/// Sets the credentials that the description requires, for a call that states no others.
pub(crate) fn set_described(capability: &mut Capability) {
    if capability.auth != CapabilityAuth::default() {
        return;
    }
    let found = capability.description.as_deref().map(Described::of).unwrap_or_default();
    let needed = found.needed(capability).to_vec();
    require(&needed, &mut capability.auth);
}

/// Whether a description requires a credential.
pub(super) fn requires(description: &str) -> bool {
    !Described::of(description).required.is_empty()
}

pub(super) fn require(found: &[Auth], needed: &mut CapabilityAuth) {
    for auth in found {
        needed.required = Tristate::Yes;
        if is_named(auth) && !needed.schemes.contains(&auth.scheme) {
            needed.schemes.push(auth.scheme);
        }
        let new = auth.scopes.keys().filter(|scope| !needed.scopes.contains(scope)).cloned();
        needed.scopes.extend(new.collect::<Vec<_>>());
    }
}

/// Whether a statement names its credential: by a scheme, or by a word such as "token".
const fn is_named(auth: &Auth) -> bool {
    !matches!(auth.scheme, AuthScheme::Other) || auth.declared.is_some()
}

/// The identity of a credential: its scheme, location and name.
type Identity = (AuthScheme, Option<String>, Option<String>);

/// The calls that need a credential, and what their texts say about it in addition to its [`Identity`].
#[derive(Debug, Default)]
struct Users {
    ids: Vec<String>,
    declared: Option<String>,
    registration: Option<String>,
    scopes: BTreeMap<String, String>,
}

/// Reads the descriptions and the required parameters of the calls from `first` on that have no other statement, and keeps the credentials
/// that no other part of the document states.
pub(crate) fn read(first: usize, draft: &mut Draft<'_>) {
    read_beside(first, &CapabilityAuth::default(), draft);
}

/// The same for calls that have the credentials of the whole document: a call needs those that it states itself in addition to them.
pub(crate) fn read_beside(first: usize, of_document: &CapabilityAuth, draft: &mut Draft<'_>) {
    let only = only_scheme(&draft.manifest);
    let mut stated = StatedByCalls::new(of_document, &draft.manifest);
    for capability in draft.manifest.capabilities.iter_mut().skip(first) {
        stated.read(capability, only);
    }
    keep_credentials(stated.found, stated.optional, draft);
}

/// The credentials that calls state.
struct StatedByCalls<'c> {
    /// What calls need that state nothing.
    of_document: &'c CapabilityAuth,
    /// Headers of the credentials of the document.
    known: Vec<String>,
    found: BTreeMap<Identity, Users>,
    optional: BTreeMap<Identity, Vec<String>>,
}

impl<'c> StatedByCalls<'c> {
    fn new(of_document: &'c CapabilityAuth, manifest: &Manifest) -> Self {
        let names = manifest.auth.iter().filter_map(|auth| auth.name.clone());
        // Headers of calls without the credentials of the document complete those that it defines.
        let is_inherited = *of_document != CapabilityAuth::default();
        let known = names.filter(|_| is_inherited).take(CREDENTIALS_MAX).collect();
        Self { of_document, known, found: BTreeMap::new(), optional: BTreeMap::new() }
    }

    fn read(&mut self, capability: &mut Capability, only: Option<AuthScheme>) {
        let described = capability.description.as_deref().map(Described::of).unwrap_or_default();
        if capability.auth.required != Tristate::Yes {
            for auth in &described.optional {
                self.offer((auth.scheme, auth.location.clone(), auth.name.clone()), capability);
            }
        }
        if capability.auth.required == Tristate::No {
            return;
        }
        let mut described = described.needed(capability).to_vec();
        // A token is the only credential that the document states.
        for token in described.iter_mut().filter(|auth| auth.scheme == AuthScheme::Other && is_named(auth)) {
            if let Some(scheme) = only {
                *token = Auth { registration: token.registration.take(), ..Auth::new(scheme) };
            }
        }
        let is_unstated = capability.auth == CapabilityAuth::default();
        let is_inherited = !is_unstated && capability.auth == *self.of_document;
        add_scopes(capability);
        if is_unstated || is_inherited {
            require(&described, &mut capability.auth);
        }
        let by_parameter = is_unstated.then(|| key_parameters::mark(capability)).flatten();
        require(by_parameter.as_slice(), &mut capability.auth);
        let is_only_paid = capability.auth.schemes == [AuthScheme::Payment];
        if is_unstated || is_inherited || is_only_paid {
            for header in credential_headers::mark(capability) {
                if by_parameter.iter().all(|known| known.name != header.auth.name) {
                    self.read_header(header, capability);
                }
            }
        }
        // The sentence may repeat the statement of another member.
        let needed = &capability.auth;
        let stated = described.into_iter().filter(|auth| needed.schemes.contains(&auth.scheme));
        for auth in by_parameter.into_iter().chain(stated).filter(is_named) {
            self.need(auth, &capability.native_id);
        }
    }

    /// Reads the credential in a header, unless it is one of the document.
    fn read_header(&mut self, header: HeaderCredential, capability: &mut Capability) {
        let HeaderCredential { auth, is_required } = header;
        let is_known = |name: &str| self.known.iter().any(|known| known.eq_ignore_ascii_case(name));
        if auth.name.as_deref().is_some_and(is_known) {
            return;
        }
        if is_required {
            require(std::slice::from_ref(&auth), &mut capability.auth);
            self.need(auth, &capability.native_id);
        } else {
            self.offer((auth.scheme, auth.location, auth.name), capability);
        }
    }

    fn need(&mut self, auth: Auth, id: &str) {
        if self.found.len() < CREDENTIALS_MAX {
            let users = self.found.entry((auth.scheme, auth.location, auth.name)).or_default();
            users.ids.push(id.to_owned());
            users.declared = users.declared.take().or(auth.declared);
            users.registration = users.registration.take().or(auth.registration);
            users.scopes.extend(auth.scopes);
        }
    }

    fn offer(&mut self, credential: Identity, capability: &Capability) {
        if self.optional.len() < CREDENTIALS_MAX {
            self.optional.entry(credential).or_default().push(capability.native_id.clone());
        }
    }
}

/// Adds the scopes that the description of a call names. A call that needs a scope needs credentials.
fn add_scopes(capability: &mut Capability) {
    let scopes = capability.description.as_deref().map(required_tokens::scopes_in).unwrap_or_default();
    if !scopes.is_empty() && capability.auth.required == Tristate::Unknown {
        capability.auth.required = Tristate::Yes;
    }
    for scope in scopes {
        if !capability.auth.scopes.contains(&scope) {
            capability.auth.scopes.push(scope);
        }
    }
}

/// The scheme of the only credential that a document states.
fn only_scheme(manifest: &Manifest) -> Option<AuthScheme> {
    let is_credential =
        |auth: &&Auth| !matches!(auth.scheme, AuthScheme::None | AuthScheme::Payment | AuthScheme::Other);
    let mut credentials = manifest.auth.iter().filter(is_credential).map(|auth| auth.scheme);
    let first = credentials.next()?;
    credentials.all(|scheme| scheme == first).then_some(first)
}

/// Keeps the credentials of these calls: those that they need, and those that are optional for them.
fn keep_credentials(
    found: BTreeMap<Identity, Users>,
    optional: BTreeMap<Identity, Vec<String>>,
    draft: &mut Draft<'_>,
) {
    // Credentials with a name come first, because a sentence without a name is about the same credential.
    for ((scheme, location, name), Users { ids, declared, registration, scopes }) in found.into_iter().rev() {
        let is_same = |known: &&mut Auth| {
            known.scheme == scheme && (name.is_none() || known.name.is_none() || known.name == name)
        };
        let Some(known) = draft.manifest.auth.iter_mut().find(is_same) else {
            let applies_to = AppliesTo::Ids { ids };
            draft.keep(Auth {
                declared,
                location,
                name,
                scopes,
                registration,
                applies_to,
                ..Auth::new(scheme)
            });
            continue;
        };
        known.registration = known.registration.take().or(registration);
        if known.name.is_none() && known.location.is_none() {
            (known.location, known.name) = (location, name);
        }
        known.applies_to.add_ids(ids);
    }
    for ((scheme, location, name), ids) in optional {
        let is_same = |known: &Auth| {
            known.scheme == scheme && (name.is_none() || known.name.is_none() || known.name == name)
        };
        if !draft.manifest.auth.iter().any(is_same) {
            let applies_to = AppliesTo::OptionalIds { ids };
            draft.keep(Auth { location, name, applies_to, ..Auth::new(scheme) });
        }
    }
}

/// Reads the calls of a document, and then the sentences of all its members.
pub(crate) fn read_of_root(texts: &Texts<'_>, draft: &mut Draft<'_>) {
    read(0, draft);
    named_keys::read(0, draft);
    read_accepted(texts, draft);
}

/// Keeps credentials that the service also accepts, according to a sentence in any member: `"note": "Also accepts Authorization: Bearer
/// <jwt>."`
pub(crate) fn read_accepted(texts: &Texts<'_>, draft: &mut Draft<'_>) {
    let found = texts.with(Cue::Alternative).flat_map(|text| Described::of(text).optional);
    let found: Vec<Auth> = found.take(CREDENTIALS_MAX).collect();
    for auth in found {
        if draft.manifest.auth.iter().all(|known| known.scheme != auth.scheme) {
            draft.keep(Auth { applies_to: AppliesTo::OptionalIds { ids: Vec::new() }, ..auth });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn described(description: &str) -> Vec<Auth> {
        let found = Described::of(description);
        found.required.into_iter().chain(found.advised).collect()
    }

    fn schemes(description: &str) -> Vec<AuthScheme> {
        described(description).iter().map(|auth| auth.scheme).collect()
    }

    #[test]
    fn finds_the_credentials_that_an_instruction_names() {
        for (text, scheme, name) in [
            ("Must include Authorization: Bearer <token>.", AuthScheme::Bearer, Some("Authorization")),
            ("Send the token as Authorization: Bearer <token>.", AuthScheme::Bearer, Some("Authorization")),
            ("Books. Include Authorization: Bearer <token>.", AuthScheme::Bearer, Some("Authorization")),
            ("Books (Authorization: Bearer <token>)", AuthScheme::Bearer, Some("Authorization")),
            ("Must include X-API-Key.", AuthScheme::ApiKey, Some("X-API-Key")),
            ("Books. Pass X-API-Key header.", AuthScheme::ApiKey, Some("X-API-Key")),
            ("Send your key in the X-Room-Token header.", AuthScheme::ApiKey, Some("X-Room-Token")),
            ("Books. Auth: Bearer.", AuthScheme::Bearer, None),
            ("Auth: API key", AuthScheme::ApiKey, None),
            ("Header: Authorization: Bearer <token>", AuthScheme::Bearer, Some("Authorization")),
            ("Headers: X-API-Key", AuthScheme::ApiKey, Some("X-API-Key")),
            ("Authenticate with a bearer token.", AuthScheme::Bearer, None),
        ] {
            let found = described(text);
            assert_eq!(found.iter().map(|auth| auth.scheme).collect::<Vec<_>>(), [scheme], "{text}");
            assert_eq!(found[0].name.as_deref(), name, "{text}");
        }
        for text in [
            "Issues a token. Send it as Authorization: Bearer <token> on every /rooms call.",
            "Send Authorization: Bearer <token> for private rooms.",
            "Include Authorization: Bearer <token> if you have one.",
            "Pass X-Request-Id header.",
            "Pass the X-Payment-Key header.",
            "Do not send Authorization: Bearer <token>.",
            "Returns Authorization: Bearer <token>.",
            "Auth: none.",
            "Author: Bearer of news.",
            "Sets the key of a room.",
        ] {
            assert!(described(text).is_empty(), "{text}");
        }
        for text in [
            "No JWT required. Also accepts Authorization: Bearer <jwt>.",
            "Optionally pass X-API-Key header.",
        ] {
            let found = Described::of(text);
            assert!(found.required.is_empty() && found.advised.is_empty(), "{text}");
            assert_eq!(found.optional.len(), 1, "{text}");
        }
    }

    #[test]
    fn finds_the_credentials_that_a_description_requires() {
        for (text, expected) in [
            ("Create. Requires an API key.", AuthScheme::ApiKey),
            ("Create an event. Requires an existing schedule and API key.", AuthScheme::ApiKey),
            ("Books a room (requires API key)", AuthScheme::ApiKey),
            ("Books a room. API key required.", AuthScheme::ApiKey),
            ("Requires a bearer token.", AuthScheme::Bearer),
            ("Requires authentication.", AuthScheme::Other),
            ("Books. Authentication is required.", AuthScheme::Other),
            ("This endpoint requires OAuth 2.0.", AuthScheme::OAuth2),
        ] {
            assert_eq!(schemes(text), [expected], "{text}");
        }
        assert_eq!(
            schemes("Remote server with API-key and OAuth access."),
            [AuthScheme::ApiKey, AuthScheme::OAuth2]
        );
        let header = described("Create. Needs an API key in the X-API-Key header.");
        assert_eq!(header[0].name.as_deref(), Some("X-API-Key"));
        assert_eq!(header[0].location.as_deref(), Some("header"));
    }

    #[test]
    fn ignores_instructions_of_calls_that_issue_keys() {
        for text in [
            "Creates an API key. Pass the key as X-API-Key header.",
            "Issues a 24h token. Send the token as Authorization: Bearer <token>.",
        ] {
            assert!(instructed_credentials::issues_credential(text), "{text}");
        }
        assert!(!instructed_credentials::issues_credential("Returns prices. Pass X-API-Key header."));
    }

    #[test]
    fn ignores_conditions_and_credentials_of_other_services() {
        for text in [
            "Creates an API key.",
            "Need an API key? Register first.",
            "Requires an OpenAI API key.",
            "Requires an API key for private rooms.",
            "Writing requires an API key.",
            "Requires no API key.",
            "Does not require authentication.",
            "Requires an API key unless the room is free.",
            "API key optional; authentication recommended.",
            "Checks whether a site requires authentication.",
            "Requires a list of rooms, a date, a person and a place before the API key is shown.",
            "Returns rooms with an API key field.",
            "Looks up an address (requires HIBP_API_KEY).",
        ] {
            assert!(described(text).is_empty(), "{text}");
        }
    }
}

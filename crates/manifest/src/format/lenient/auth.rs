//! Credentials of any shape: words, objects, lists, sentences.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::auth_words::auth_in_words;
use super::optional_words::{Optional, is_planned, optional, states_optional};
use super::registration::{REGISTRATION_KEYS, describe_auth, location_in, set_registration};
use crate::auth;
use crate::draft::{DESCRIPTION_CHARS_MAX, Draft, NAME_BYTES_MAX, NAME_CHARS_MAX};
use crate::model::{Auth, AuthScheme, CapabilityAuth, OAuthFlow, SCHEMES_PER_CAPABILITY_MAX, Tristate};
use crate::name::URL_BYTES_MAX;
use crate::object::{Object, texts};
use crate::text::{self, capped};

/// Maximum number of scopes of one capability or of one of its schemes that are read.
pub(crate) const SCOPES_MAX: usize = 64;

/// Members that state the credentials of a service.
pub(crate) const AUTH_KEYS: &[&str] = &[
    "authentication",
    "auth",
    "authorization",
    "auth_models",
    "auth_methods",
    "authSchemes",
    "auth_schemes",
];

/// Members of cards that list schemes.
pub(crate) const LISTED_SCHEMES: &[&str] = &["authSchemes", "auth_schemes"];

/// Whether a value of `security`, which often has another meaning, names a scheme: by a word, or by the location of a key.
pub(crate) fn is_scheme(value: &Value) -> bool {
    let named = value.as_str().or_else(|| value.get("type").or_else(|| value.get("scheme"))?.as_str());
    named.is_some_and(|word| auth::scheme(word) != AuthScheme::Other)
}

/// Whether a sentence names a scheme of credentials: "x402 (USDC payment proof)".
pub(crate) fn names_scheme(sentence: &str) -> bool {
    sentence.contains(' ') && !auth_in_words([sentence]).is_empty()
}

/// Credentials of any shape: a word, an object with `type`, a list of either, an object with `schemes`. At most
/// [`SCHEMES_PER_CAPABILITY_MAX`], because the other members of an object are copied to each of its schemes.
pub(crate) fn auth(value: &Value) -> Vec<Auth> {
    let mut found: Vec<Auth> = Vec::new();
    match value {
        Value::String(line) if line.starts_with("Authorization: Bearer") => {
            let (location, name) = (Some("header".to_owned()), Some("Authorization".to_owned()));
            found.push(Auth { location, name, ..Auth::new(AuthScheme::Bearer) });
        }
        Value::String(sentence) if sentence.contains(' ') => {
            found = auth_in_words([sentence.as_str()]);
            if found.is_empty() {
                found.push(auth_of_word(sentence));
            }
        }
        // A rate limit is not a way to authenticate.
        Value::String(word) if is_about_limits(word) || is_degree(word) || exempt_call(word).is_some() => {}
        Value::String(word) => found.push(auth_of_word(word)),
        Value::Bool(false) => found.push(Auth::new(AuthScheme::None)),
        Value::Array(list) => list.iter().for_each(|item| add(&mut found, || auth(item))),
        Value::Object(map) => return auth_of_object(map),
        _ => {}
    }
    without_repeats(found)
}

/// Whether a word states how strict a service is, and not how to authenticate.
fn is_degree(word: &str) -> bool {
    matches!(word, "optional" | "required" | "mixed" | "tiered" | "freemium")
}

/// The call that a word exempts: `quick_purchase` for `none_for_quick_purchase`.
pub(crate) fn exempt_call(word: &str) -> Option<&str> {
    ["none_for_", "none-for-", "no_auth_for_"].iter().find_map(|start| word.strip_prefix(start))
}

fn is_about_limits(word: &str) -> bool {
    word.get(..4).is_some_and(|start| start.eq_ignore_ascii_case("rate")) && text::words(word).len() == 2
}

/// Adds the credentials that `read` returns, unless there are already enough.
fn add(found: &mut Vec<Auth>, read: impl FnOnce() -> Vec<Auth>) {
    if found.len() < SCHEMES_PER_CAPABILITY_MAX {
        found.extend(read());
        found.truncate(SCHEMES_PER_CAPABILITY_MAX);
    }
}

fn without_repeats(mut found: Vec<Auth>) -> Vec<Auth> {
    found.dedup_by(|a, b| a.scheme == b.scheme && a.declared == b.declared);
    found
}

fn auth_of_object(map: &Map<String, Value>) -> Vec<Auth> {
    let mut found: Vec<Auth> = Vec::new();
    let object = Object::root(map);
    if is_planned(&object) {
        return found;
    }
    let listed = ["schemes", "methods", "types", "supported"].iter().find_map(|key| map.get(*key));
    let named = listed.filter(|listed| listed.is_object());
    if let Some(listed) = listed.filter(|listed| listed.is_array()) {
        found = auth(listed);
        if found.is_empty() && object.flag("required") == Some(false) {
            found.push(Auth::new(AuthScheme::None));
        }
    } else if let Some(Value::Object(schemes)) = named {
        found = auth_by_name(&Object::root(schemes));
    } else if let Some(word) = object.text_of(&["type", "scheme", "method", "auth_type", "authType"]) {
        if is_degree(word) {
            found = auth_in_sentences(map);
        } else {
            // With an HTTP type, another member names the scheme.
            let is_general = matches!(word, "http" | "service_http" | "user_http");
            let scheme = object.text_of(&["authorization_type", "scheme"]).filter(|_| is_general);
            found.push(auth_of_word(scheme.unwrap_or(word)));
        }
    } else if let Some(id) = object.text("id").filter(|id| auth::scheme(id) != AuthScheme::Other) {
        found.push(auth_of_word(id));
    } else if object.flag("required").or_else(|| object.text("required").and_then(flag_in_words))
        == Some(false)
    {
        found.push(Auth::new(AuthScheme::None));
    } else {
        found = auth_by_name(&object);
        set_registration(&object, &mut found);
        return found;
    }
    if let [single] = found.as_mut_slice() {
        read_details(single, &object);
        let described = object.text_of(&["description", "note"]);
        if let Some(description) = described.filter(|_| single.scheme != AuthScheme::None) {
            describe_auth(description, single);
            single.location = single.location.take().or_else(|| location_in(description).map(str::to_owned));
        }
    }
    for others in ["alternative_methods", "alternativeMethods", "alternatives"] {
        add(&mut found, || map.get(others).map(auth).unwrap_or_default());
    }
    if let Some(server) = object.object_of(&["oauth", "oauth2"]) {
        add(&mut found, || oauth_server(&server));
    }
    set_registration(&object, &mut found);
    without_repeats(found)
}

/// The authorization server that a block describes next to the schemes.
fn oauth_server(server: &Object<'_>) -> Vec<Auth> {
    let mut oauth = Auth::new(AuthScheme::OAuth2);
    read_details(&mut oauth, server);
    oauth.registration_url = address_of(server, REGISTRATION_KEYS);
    let is_described = oauth.token_url.is_some() || oauth.authorize_url.is_some();
    is_described.then_some(oauth).into_iter().collect()
}

/// The text of the first of these members, if it is an absolute address within the length limit.
pub(crate) fn address_of(object: &Object<'_>, keys: &[&str]) -> Option<String> {
    let is_address = |text: &&str| text.contains("://") && text.len() <= URL_BYTES_MAX;
    object.text_of(keys).filter(is_address).map(str::to_owned)
}

fn read_details(auth: &mut Auth, object: &Object<'_>) {
    let url = |keys: &[&str]| address_of(object, keys);
    auth.location = object.string_of(&["in", "location"]).or_else(|| auth.location.take());
    let name = object.string_of(&["header", "name", "header_name", "headerName", "parameter"]);
    auth.name = name.or_else(|| auth.name.take());
    if object.has("header") || auth.declared.as_deref() == Some("header") {
        auth.location = Some("header".to_owned());
    }
    if auth.name.is_none() && auth.scheme != AuthScheme::None {
        auth.name = ["description", "instructions", "note", "notes", "usage"]
            .iter()
            .find_map(|key| object.text(key).and_then(header_in))
            .map(str::to_owned);
        if auth.name.is_some() {
            auth.location = Some("header".to_owned());
        }
    }
    // `Authorization: Bearer <token>` is the whole line of a request.
    if let Some((name, value)) =
        auth.name.take().as_deref().map(|line| line.split_once(':').unwrap_or((line, "")))
    {
        if auth.scheme == AuthScheme::Other && value.trim_start().starts_with("Bearer") {
            auth.scheme = AuthScheme::Bearer;
        }
        auth.name = Some(name.trim().to_owned()).filter(|name| !name.is_empty());
        auth.format = auth.format.take().or_else(|| form_of(value).map(str::to_owned));
    }
    let known = auth.token_url.take();
    auth.token_url = url(TOKEN_KEYS).or(known);
    let known = auth.authorize_url.take();
    auth.authorize_url = url(AUTHORIZE_KEYS).or(known);
    let known = auth.docs_url.take();
    auth.docs_url =
        url(&["docs_url", "docsUrl", "docs", "documentation", "documentation_url", "instructions_url"])
            .or(known);
    if auth.scheme == AuthScheme::Bearer && auth.declared.is_none() {
        let format =
            object.text_of(&["bearerFormat", "bearer_format", "token_format", "tokenFormat", "format"]);
        auth.declared = format
            .filter(|format| !format.contains(char::is_whitespace))
            .map(|format| capped(format, NAME_CHARS_MAX).to_owned());
    }
    auth.scopes.extend(described_scopes(object));
    auth.add_flows(flows(object));
}

/// The form of a credential in the header of a request: `sk_...` in `Bearer sk_...`.
fn form_of(value: &str) -> Option<&str> {
    let value = value.trim();
    let word = value.strip_prefix("Bearer ").unwrap_or(value).trim();
    let (start, rest) = word.split_once('_')?;
    let is_start = (1..=FORM_START_MAX).contains(&start.len())
        && start.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    let is_open = rest.ends_with(['.', '\u{2026}', '>', '}', '*']) && !rest.contains(char::is_whitespace);
    (is_start && is_open && word.len() <= NAME_BYTES_MAX).then_some(word)
}

/// Maximum number of letters before the first underscore of a key, as `sk` in `sk_live_...`.
const FORM_START_MAX: usize = 8;

const TOKEN_KEYS: &[&str] = &["token_url", "tokenUrl", "token_endpoint", "tokenEndpoint", "oauth_token"];
const AUTHORIZE_KEYS: &[&str] =
    &["authorize_url", "authorizationUrl", "authorization_url", "authorization_endpoint", "client_url"];

/// The name of a custom header in a sentence: `passed as X-Wallet-Key header`.
pub(crate) fn header_in(sentence: &str) -> Option<&str> {
    headers_in(sentence).next()
}

/// The names of all custom headers in a sentence: `X-Payment-Hash + X-Payment-Chain`.
pub(crate) fn headers_in(sentence: &str) -> impl Iterator<Item = &str> {
    let words = sentence.split(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '-'));
    words.take(HEADER_WORDS_MAX).filter(|word| word.len() > 3 && word.starts_with("X-"))
}

/// Maximum number of words of a sentence that are searched for a header.
const HEADER_WORDS_MAX: usize = 200;

/// The first scopes that an object lists, each truncated to its cap.
pub(crate) fn scopes(object: &Object<'_>) -> impl Iterator<Item = String> {
    let listed = ["scopes", "scopes_supported", "scopesSupported"].iter().flat_map(|key| object.texts(key));
    let listed = listed.take(SCOPES_MAX);
    listed.map(|scope| capped(scope, NAME_CHARS_MAX).to_owned())
}

/// Makes the addresses of credentials absolute.
pub(crate) fn resolve(draft: &mut Draft<'_>, absolute: impl Fn(&str) -> Option<String>) {
    let mut auth = std::mem::take(&mut draft.manifest.auth);
    for auth in &mut auth {
        let of_flows = auth
            .flows
            .iter_mut()
            .flat_map(|flow| [&mut flow.token_url, &mut flow.authorize_url, &mut flow.refresh_url]);
        let own =
            [&mut auth.token_url, &mut auth.authorize_url, &mut auth.registration_url, &mut auth.docs_url];
        for url in own.into_iter().chain(of_flows) {
            let relative = url.as_deref().filter(|url| url.starts_with('/'));
            let absolute = relative.and_then(&absolute);
            if absolute.is_some() {
                *url = absolute;
            }
        }
    }
    draft.manifest.auth = auth;
}

/// Credentials by the name of their scheme, such as `{"bearer": {…}}`, or in sentences.
fn auth_by_name(object: &Object<'_>) -> Vec<Auth> {
    let mut found: Vec<Auth> = Vec::new();
    for (name, details) in object.members() {
        add(&mut found, || {
            if details.has("type") || details.has("scheme") {
                return auth_of_object(details.map);
            }
            let mut named = vec![auth_of_word(name)];
            named.retain(|auth| auth.scheme != AuthScheme::Other && !is_planned(&details));
            for auth in &mut named {
                read_details(auth, &details);
            }
            named
        });
    }
    if found.is_empty() {
        found = auth_in_sentences(object.map);
        // `{"reads": "none", "writes": "jwt_bearer"}`.
        for word in object.map.values().filter_map(Value::as_str).filter(|word| !word.contains(' ')) {
            let named = auth_of_word(word);
            match found.iter_mut().find(|known| known.scheme == named.scheme) {
                Some(known) => known.declared = known.declared.take().or(named.declared),
                None if named.scheme != AuthScheme::Other => found.push(named),
                None => {}
            }
        }
    }
    found
}

/// Credentials that are described in sentences, such as `{"free": "no key", "pro": "API key, see https://…"}`.
fn auth_in_sentences(map: &Map<String, Value>) -> Vec<Auth> {
    auth_in_words(map.values().filter_map(Value::as_str))
}

pub(super) fn auth_of_word(word: &str) -> Auth {
    let scheme = auth::scheme(word);
    let mut auth = Auth::new(scheme);
    if matches!(scheme, AuthScheme::Other | AuthScheme::ApiKey) && header_in(word) == Some(word.trim()) {
        let (location, name) = (Some("header".to_owned()), Some(word.trim().to_owned()));
        return Auth { location, name, ..Auth::new(AuthScheme::ApiKey) };
    }
    let names_format = scheme == AuthScheme::Bearer && word.to_ascii_lowercase().contains("jwt");
    if scheme == AuthScheme::Other || names_format {
        auth.declared = Some(word.trim().to_owned());
    }
    auth
}

/// Whether credentials are needed, as their object states next to the schemes.
pub(crate) fn auth_required(value: &Value) -> Option<bool> {
    if value.as_object().is_some_and(|map| is_planned(&Object::root(map))) {
        return None;
    }
    let flag = |key: &str| value.get(key)?.as_bool();
    let names = |key: &str| value.get(key).is_some_and(|names| !texts(names).is_empty());
    let by_lists = (names("optional_for") && !names("required_for")).then_some(false);
    let in_words = value.as_object().is_some_and(states_optional).then_some(false);
    let by_type =
        matches!(value.get("type").and_then(Value::as_str), Some("optional" | "freemium" | "tiered"));
    let in_a_word = value.as_str().filter(|word| is_degree(word)).and_then(flag_in_words);
    let is_optional = || (optional(value) == Some(Optional::All)).then_some(false);
    flag("required")
        .or(in_a_word)
        .or_else(|| value.get("required").and_then(Value::as_str).and_then(flag_in_words))
        .or_else(|| flag("optional").map(|optional| !optional))
        .or(by_lists)
        .or(in_words)
        .or_else(|| by_type.then_some(false))
        .or_else(is_optional)
}

/// The flag that a word means: `"required": "no"`.
fn flag_in_words(word: &str) -> Option<bool> {
    match word.trim().to_ascii_lowercase().as_str() {
        "yes" | "true" | "required" | "always" => Some(true),
        "no" | "false" | "none" | "optional" | "never" | "not required" => Some(false),
        _ => None,
    }
}

/// Members whose flag says that a call needs an open session.
const SESSION_KEYS: &[&str] =
    &["session_required", "sessionRequired", "requires_session", "requiresSession", "needs_session"];

/// Reads the credentials that one element needs.
pub(crate) fn read_own_auth(element: &Object<'_>, needed: &mut CapabilityAuth) {
    for (key, value) in [
        ("auth_required", true),
        ("requires_auth", true),
        ("requiresAuth", true),
        ("authRequired", true),
        ("authentication_required", true),
        ("public", false),
    ] {
        if let Some(flag) = element.flag(key) {
            needed.required = Tristate::from_option(Some(flag == value));
        }
    }
    if SESSION_KEYS.iter().any(|key| element.flag(key) == Some(true)) {
        (needed.required, needed.session) = (Tristate::Yes, true);
        needed.schemes = vec![AuthScheme::Session];
    }
    match element.value_of(&["auth", "authentication"]) {
        Some(Value::Bool(flag)) => needed.required = Tristate::from_option(Some(*flag)),
        Some(value) => {
            let by_schemes = required_by(&auth(value));
            let stated = auth_required(value);
            if by_schemes.required != Tristate::Unknown || stated.is_some() {
                needed.required =
                    stated.map_or(by_schemes.required, |stated| Tristate::from_option(Some(stated)));
                needed.schemes =
                    by_schemes.schemes.into_iter().filter(|scheme| *scheme != AuthScheme::None).collect();
            }
        }
        None => {}
    }
}

/// The flows of OAuth in the form of OpenAPI, by their name.
fn flows(object: &Object<'_>) -> Vec<OAuthFlow> {
    let flows = object.object_of(&["flows", "oauthFlows", "oauth_flows"]);
    let members = flows.iter().flat_map(Object::members).take(SCHEMES_PER_CAPABILITY_MAX);
    let flow = |(name, flow): (&str, Object<'_>)| OAuthFlow {
        flow: capped(name, NAME_CHARS_MAX).to_owned(),
        authorize_url: relative_address_of(&flow, AUTHORIZE_KEYS),
        token_url: relative_address_of(&flow, TOKEN_KEYS),
        refresh_url: relative_address_of(&flow, &["refreshUrl", "refresh_url"]),
        scopes: described_scopes(&flow),
    };
    members.map(flow).collect()
}

/// An address that may be a path.
fn relative_address_of(object: &Object<'_>, keys: &[&str]) -> Option<String> {
    let is_address =
        |text: &&str| (text.contains("://") || text.starts_with('/')) && text.len() <= URL_BYTES_MAX;
    object.text_of(keys).filter(is_address).map(str::to_owned)
}

/// Scopes of a list, or of a map with their descriptions.
fn described_scopes(object: &Object<'_>) -> BTreeMap<String, String> {
    let named = object.object("scopes");
    let described =
        named.iter().flat_map(|scopes| scopes.map).take(SCOPES_MAX).map(|(scope, description)| {
            let description = capped(description.as_str().unwrap_or_default(), DESCRIPTION_CHARS_MAX);
            (capped(scope, NAME_CHARS_MAX).to_owned(), description.to_owned())
        });
    scopes(object).map(|scope| (scope, String::new())).chain(described).collect()
}

/// The credentials that a value states, and whether they are needed.
pub(crate) fn stated(value: &Value) -> (Vec<Auth>, CapabilityAuth) {
    let found = auth(value);
    let mut needed = required_by(&found);
    if let Some(required) = auth_required(value) {
        needed.required = Tristate::from_option(Some(required));
    }
    (found, needed)
}

/// Whether credentials are needed, by the schemes that apply.
pub(crate) fn required_by(auth: &[Auth]) -> CapabilityAuth {
    let mut schemes: Vec<AuthScheme> = Vec::new();
    for auth in auth {
        if !schemes.contains(&auth.scheme) {
            schemes.push(auth.scheme);
        }
    }
    let required = match schemes.as_slice() {
        [] => Tristate::Unknown,
        // Some calls must be paid, and it is unknown which.
        [AuthScheme::None, AuthScheme::Payment] | [AuthScheme::Payment, AuthScheme::None] => {
            Tristate::Unknown
        }
        schemes if schemes.contains(&AuthScheme::None) => Tristate::No,
        _ => Tristate::Yes,
    };
    let mut scopes: Vec<String> = Vec::new();
    for scope in auth.iter().flat_map(|auth| auth.scopes.keys()) {
        if scopes.len() < SCOPES_MAX && !scopes.contains(scope) {
            scopes.push(scope.clone());
        }
    }
    CapabilityAuth { required, schemes, scopes, ..CapabilityAuth::default() }
}

//! Credentials of any shape: words, objects, lists, sentences.

use serde_json::{Map, Value};

use crate::auth;
use crate::draft::Draft;
use crate::model::{Auth, AuthScheme, CapabilityAuth, Tristate};
use crate::object::{Object, texts};

/// Credentials of any shape: a word, an object with `type`, a list of either, an object with `schemes`.
pub(crate) fn auth(value: &Value) -> Vec<Auth> {
    let mut found: Vec<Auth> = Vec::new();
    match value {
        Value::String(word) => found.push(auth_of_word(word)),
        Value::Bool(false) => found.push(Auth::new(AuthScheme::None)),
        Value::Array(list) => list.iter().for_each(|item| found.extend(auth(item))),
        Value::Object(map) => {
            let object = Object { map, pointer: String::new() };
            let listed = ["schemes", "methods", "types", "supported"].iter().find_map(|key| map.get(*key));
            if let Some(listed) = listed.filter(|listed| listed.is_array()) {
                found = auth(listed);
            } else if let Some(word) = object.text_of(&["type", "scheme", "method", "auth_type", "authType"])
            {
                found.push(auth_of_word(word));
            } else if let Some(id) = object.text("id").filter(|id| auth::scheme(id) != AuthScheme::Other) {
                found.push(auth_of_word(id));
            } else if object.flag("required") == Some(false) {
                found.push(Auth::new(AuthScheme::None));
            } else {
                return auth_by_name(&object);
            }
            if let [single] = found.as_mut_slice() {
                read_details(single, &object);
            }
            for others in ["alternative_methods", "alternativeMethods", "alternatives"] {
                found.extend(map.get(others).map(auth).unwrap_or_default());
            }
            for auth in found.iter_mut().filter(|auth| auth.scheme != AuthScheme::None) {
                auth.registration_url = object.text_of(REGISTRATION_KEYS).and_then(first_address);
            }
        }
        _ => {}
    }
    found.dedup_by(|a, b| a.scheme == b.scheme && a.declared == b.declared);
    found
}

fn read_details(auth: &mut Auth, object: &Object<'_>) {
    let url = |keys: &[&str]| object.text_of(keys).filter(|text| text.contains("://")).map(str::to_owned);
    auth.location = object.string_of(&["in", "location"]);
    auth.name = object.string_of(&["header", "name", "header_name", "headerName", "parameter"]);
    if object.has("header") {
        auth.location = Some("header".to_owned());
    }
    // `Authorization: Bearer <token>` is the whole line of a request.
    if let Some((name, value)) =
        auth.name.take().as_deref().map(|line| line.split_once(':').unwrap_or((line, "")))
    {
        if auth.scheme == AuthScheme::Other && value.trim_start().starts_with("Bearer") {
            auth.scheme = AuthScheme::Bearer;
        }
        auth.name = Some(name.trim().to_owned()).filter(|name| !name.is_empty());
    }
    auth.token_url = url(&["token_url", "tokenUrl", "token_endpoint"]);
    auth.authorize_url = url(&[
        "authorize_url",
        "authorizationUrl",
        "authorization_url",
        "authorization_endpoint",
        "client_url",
    ]);
    auth.docs_url = url(&["docs_url", "docs", "documentation", "documentation_url", "instructions_url"]);
    for scope in object.texts("scopes") {
        auth.scopes.insert(scope.to_owned(), String::new());
    }
    for (scope, description) in object.object("scopes").into_iter().flat_map(|scopes| scopes.map) {
        auth.scopes.insert(scope.clone(), description.as_str().unwrap_or_default().to_owned());
    }
}

/// Members that say where credentials are obtained, in an address or a sentence.
const REGISTRATION_KEYS: &[&str] = &[
    "registration_url",
    "registrationUrl",
    "register_url",
    "registration_endpoint",
    "registration",
    "register",
    "obtain_token",
    "obtain",
    "getApiKey",
    "get_api_key",
    "get_key",
    "signup",
    "signup_url",
];

/// The first address or path of a text: `POST /register (returns a key)` holds `/register`.
fn first_address(text: &str) -> Option<String> {
    let is_address = |word: &&str| word.contains("://") || (word.starts_with('/') && word.len() > 1);
    let word = text.split_whitespace().find(is_address)?;
    let start = word.find("http").filter(|_| word.contains("://")).unwrap_or_default();
    Some(word.get(start..)?.trim_end_matches(['.', ',', ';', ')']).to_owned())
}

/// Makes the addresses of credentials absolute.
pub(crate) fn resolve(draft: &mut Draft<'_>, absolute: impl Fn(&str) -> Option<String>) {
    let mut auth = std::mem::take(&mut draft.manifest.auth);
    for auth in &mut auth {
        for url in
            [&mut auth.token_url, &mut auth.authorize_url, &mut auth.registration_url, &mut auth.docs_url]
        {
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
        if details.has("type") || details.has("scheme") {
            found.extend(auth(&Value::Object(details.map.clone())));
        } else if auth::scheme(name) != AuthScheme::Other {
            let mut auth = auth_of_word(name);
            read_details(&mut auth, &details);
            found.push(auth);
        }
    }
    if found.is_empty() { auth_in_sentences(object.map) } else { found }
}

/// Credentials that are described in sentences, such as `{"free": "no key", "pro": "API key, see https://…"}`.
fn auth_in_sentences(map: &Map<String, Value>) -> Vec<Auth> {
    let mut found: Vec<Auth> = Vec::new();
    for text in map.values().filter_map(Value::as_str) {
        let folded = text.to_ascii_lowercase();
        let has = |words: &[&str]| words.iter().any(|word| folded.contains(word));
        let scheme = if has(&["no auth", "no api key", "no key", "without auth"]) {
            AuthScheme::None
        } else if has(&["api key", "api-key", "apikey", "x-api-key"]) {
            AuthScheme::ApiKey
        } else if has(&["oauth"]) {
            AuthScheme::OAuth2
        } else if has(&["bearer "]) {
            AuthScheme::Bearer
        } else if has(&["session-based", "session cookie"]) {
            AuthScheme::Session
        } else {
            continue;
        };
        let registration_url =
            first_address(text).filter(|url| url.contains("://") && scheme != AuthScheme::None);
        if !found.iter().any(|known| known.scheme == scheme) {
            found.push(Auth { registration_url, ..Auth::new(scheme) });
        }
    }
    found
}

fn auth_of_word(word: &str) -> Auth {
    let scheme = auth::scheme(word);
    let mut auth = Auth::new(scheme);
    if scheme == AuthScheme::Other {
        auth.declared = Some(word.trim().to_owned());
    }
    auth
}

/// Whether credentials are needed, as their object states beside the schemes.
pub(crate) fn auth_required(value: &Value) -> Option<bool> {
    let flag = |key: &str| value.get(key)?.as_bool();
    let names = |key: &str| value.get(key).is_some_and(|names| !texts(names).is_empty());
    let by_lists = (names("optional_for") && !names("required_for")).then_some(false);
    flag("required").or_else(|| flag("optional").map(|optional| !optional)).or(by_lists)
}

/// Whether a remark beside the schemes says that some calls need no credentials.
pub(crate) fn is_partly_open(value: &Value) -> bool {
    let says = |text: &str| {
        let folded = text.to_ascii_lowercase();
        ["no auth", "without auth", "no api key", "no key "].iter().any(|words| folded.contains(words))
    };
    value.as_object().is_some_and(|map| map.values().filter_map(Value::as_str).any(says))
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
        schemes if schemes.contains(&AuthScheme::None) => Tristate::No,
        _ => Tristate::Yes,
    };
    let scopes = auth.iter().flat_map(|auth| auth.scopes.keys().cloned()).collect();
    CapabilityAuth { required, schemes, scopes, ..CapabilityAuth::default() }
}

//! The credentials of a call: what to obtain and where, and their location in the request.

use manifest::model::{AppliesTo, Auth, AuthScheme};
use manifest::{Capability, Manifest};
use settings::escape;

use super::call::is_token;
use crate::dashboard::{labels, links};
use crate::text;

/// Maximum number of scopes that are listed.
const SCOPES_MAX: usize = 20;
const WORDS_CHARS_MAX: usize = 200;

/// A credential to obtain.
#[derive(Debug, PartialEq)]
pub(crate) struct Credential {
    pub(crate) what: String,
    /// Label and URL of each page or endpoint where it can be obtained.
    pub(crate) places: Vec<(&'static str, String)>,
    /// Where a token is exchanged for a new one.
    pub(crate) refresh: Option<String>,
    /// A sentence about how long a token is valid.
    pub(crate) lifetime: Option<String>,
    pub(crate) scopes: Vec<String>,
    /// Where the request contains the credential.
    pub(crate) carried: String,
}

/// The location of a secret in a request, and the variable that contains it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Secret {
    Bearer,
    Header(String),
    Query(String),
    Cookie(String),
}

pub(super) const TOKEN: &str = "TOKEN";
pub(super) const API_KEY: &str = "API_KEY";

pub(super) fn of(manifest: &Manifest, capability: &Capability) -> Vec<Credential> {
    let declared = manifest.authentication_for_agents(capability);
    let mut credentials: Vec<Credential> = Vec::new();
    // a document may declare the same scheme several times, once for each set of calls
    for credential in declared.into_iter().map(|auth| credential(auth, capability)) {
        if !credentials.contains(&credential) {
            credentials.push(credential);
        }
    }
    credentials
}

/// The heading of the credentials.
pub(super) fn heading(capability: &Capability) -> &'static str {
    if is_optional(capability) { "Works without credentials. Optional" } else { "First obtain" }
}

/// Whether the publisher states that a call works without credentials.
fn is_optional(capability: &Capability) -> bool {
    capability.auth.required.as_option() == Some(false)
}

/// A sentence about required schemes that the declaration does not describe.
pub(super) fn undescribed(manifest: &Manifest, capability: &Capability) -> Option<String> {
    let auth = &capability.auth;
    let is_none = auth.schemes == [AuthScheme::None] || is_optional(capability);
    if !manifest.authentication_for_agents(capability).is_empty() {
        return None;
    }
    Some(if is_none {
        "No credentials are needed.".to_owned()
    } else if auth.schemes.iter().all(|scheme| *scheme == AuthScheme::Unknown) {
        if auth.required.as_option() == Some(true) {
            "The call needs credentials. The publisher does not say which, or where to obtain them."
                .to_owned()
        } else {
            "The publisher does not say whether the call needs credentials.".to_owned()
        }
    } else {
        let needed = labels::auth_needed(&auth.schemes, auth.required.as_option());
        format!("The call needs: {needed}. The publisher does not say where to obtain it.")
    })
}

fn credential(auth: &Auth, capability: &Capability) -> Credential {
    let what = match auth.scheme {
        AuthScheme::ApiKey => "An API key from the publisher",
        AuthScheme::Bearer => "A bearer token from the publisher",
        AuthScheme::OAuth2 => "An OAuth 2 access token",
        AuthScheme::OpenId => "An access token by OpenID Connect",
        AuthScheme::Delegated => "A token on behalf of the person",
        AuthScheme::Mtls => "A client certificate",
        AuthScheme::HttpSignature => "A key that signs each request",
        AuthScheme::AgentIdentity => "A verifiable identity of your agent",
        AuthScheme::Payment => "A payment with each call",
        AuthScheme::Session | AuthScheme::Cookie => "A session at the site",
        AuthScheme::None | AuthScheme::Other | AuthScheme::Unknown => "The publisher's own credential",
    };
    let addresses = [
        ("register a client", &auth.registration_url),
        ("ask the person to sign in", &auth.authorize_url),
        ("exchange for a token", &auth.token_url),
        ("read the documentation", &auth.docs_url),
    ];
    let place =
        |(label, url): (&'static str, &Option<String>)| Some((label, links::harmless(url.as_deref()?)?));
    let scopes = if capability.auth.scopes.is_empty() {
        auth.scopes.keys().cloned().collect()
    } else {
        capability.auth.scopes.clone()
    };
    let short = |scope: &String| text::cut(scope, WORDS_CHARS_MAX);
    Credential {
        what: what.to_owned(),
        places: addresses.into_iter().filter_map(place).collect(),
        refresh: auth.refresh_url.as_deref().and_then(links::harmless),
        lifetime: auth
            .token_expiry_s
            .map(|seconds| format!("A token is valid for {}.", labels::duration(seconds))),
        scopes: scopes.iter().take(SCOPES_MAX).map(short).collect(),
        carried: secret(auth).map(|secret| carried(&secret)).unwrap_or_default(),
    }
}

fn carried(secret: &Secret) -> String {
    match secret {
        Secret::Bearer => "sent in the header Authorization".to_owned(),
        Secret::Header(name) => format!("sent in the header {name}"),
        Secret::Query(name) => format!("sent as the query parameter {name}"),
        Secret::Cookie(name) => format!("sent as the cookie {name}"),
    }
}

fn secret(auth: &Auth) -> Option<Secret> {
    let named = |default: &str, is_usable: fn(&str) -> bool| {
        let declared = auth.name.as_deref().filter(|name| is_usable(name));
        text::one_line(declared.unwrap_or(default), WORDS_CHARS_MAX)
    };
    let name = |default: &str| named(default, is_token);
    match (auth.scheme, auth.location.as_deref()) {
        // The caller passes these to a local program and does not send them.
        (_, Some("environment" | "argument")) => None,
        (AuthScheme::ApiKey, Some("query")) => {
            Some(Secret::Query(named("api_key", |name| !name.contains(escape::is_unsafe))))
        }
        (AuthScheme::ApiKey, Some("cookie")) | (AuthScheme::Cookie, _) => {
            Some(Secret::Cookie(name("session")))
        }
        (AuthScheme::ApiKey, _) => Some(Secret::Header(name("X-API-Key"))),
        (AuthScheme::Bearer | AuthScheme::OAuth2 | AuthScheme::OpenId | AuthScheme::Delegated, _) => {
            Some(Secret::Bearer)
        }
        _ => None,
    }
}

/// The secret of the first scheme that has one, at the declared or else the usual location of the scheme. `None` for a call that works
/// without credentials.
pub(super) fn secret_of(manifest: &Manifest, capability: &Capability) -> Option<Secret> {
    if is_optional(capability) {
        return None;
    }
    let declared = manifest.authentication_for_agents(capability);
    let usual = || capability.auth.schemes.iter().find_map(|scheme| secret(&Auth::new(*scheme)));
    declared.into_iter().find_map(secret).or_else(usual)
}

/// The secret that a client must be given for an MCP server. `None` if the client can sign the person in (OAuth), which needs no secret in
/// its configuration.
pub(super) fn secret_of_client(manifest: &Manifest, capability: &Capability) -> Option<Secret> {
    let is_sign_in = capability.auth.schemes.iter().any(|scheme| signs_in(*scheme));
    if is_sign_in { None } else { secret_of(manifest, capability) }
}

/// The secret that a client must be given for the MCP server of a document with these schemes.
pub(crate) fn secret_of_schemes(schemes: &[Auth]) -> Option<Secret> {
    let is_free = |auth: &Auth| auth.scheme == AuthScheme::None || signs_in(auth.scheme);
    if schemes.iter().any(is_free) {
        return None;
    }
    let is_needed = |auth: &&Auth| !matches!(auth.applies_to, AppliesTo::OptionalIds { .. });
    schemes.iter().filter(is_needed).find_map(secret)
}

const fn signs_in(scheme: AuthScheme) -> bool {
    matches!(scheme, AuthScheme::OAuth2 | AuthScheme::OpenId | AuthScheme::Delegated)
}

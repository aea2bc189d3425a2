//! OAuth metadata: of a server that issues tokens, and of a resource that requires them. It contains no calls, but states how to
//! authenticate.
//!
//! Follows RFC 8414 §2 (authorization server metadata), RFC 9728 §2 (protected resource metadata).

use std::collections::BTreeMap;

use crate::draft::{self, Draft};
use crate::format::lenient;
use crate::model::{AppliesTo, Auth, AuthScheme};
use crate::object::Object;

/// Members of a block of endpoints with the addresses of an authorization server.
const TOKEN_KEYS: &[&str] =
    &["oauth_token", "oauthToken", "oauth_token_url", "token_endpoint", "oauth2_token"];
const REGISTER_KEYS: &[&str] =
    &["oauth_register", "oauthRegister", "oauth_registration", "registration_endpoint", "oauth2_register"];
const AUTHORIZE_KEYS: &[&str] = &[
    "oauth_authorize",
    "oauthAuthorize",
    "oauth_authorization",
    "authorization_endpoint",
    "oauth2_authorize",
];

/// Adds the scheme whose token endpoint a document lists among its endpoints, unless OAuth is stated already.
pub(crate) fn read_endpoints(root: &Object<'_>, draft: &mut Draft<'_>) {
    let Some(endpoints) = root.object("endpoints") else { return };
    let url = |keys: &[&str]| draft.origin_url(endpoints.text_of(keys)?);
    let Some(token_url) = url(TOKEN_KEYS) else { return };
    if draft.manifest.auth.iter().all(|auth| auth.scheme != AuthScheme::OAuth2) {
        draft.keep(Auth {
            authorize_url: url(AUTHORIZE_KEYS),
            registration_url: url(REGISTER_KEYS),
            token_url: Some(token_url),
            ..Auth::new(AuthScheme::OAuth2)
        });
    }
}

/// Adds the scheme that a document describes, if it is metadata of OAuth.
pub(crate) fn read(root: &Object<'_>, draft: &mut Draft<'_>) {
    let is_server = root.has("issuer") && root.has("token_endpoint");
    let is_resource = root.has("resource") && root.has("authorization_servers");
    if !is_server && !is_resource {
        return;
    }
    let scopes: BTreeMap<String, String> =
        lenient::scopes(root).map(|scope| (scope, String::new())).collect();
    let uses_header = root.texts("bearer_methods_supported").contains(&"header");
    let of_agents = root.object("agent_auth");
    let registration_url = lenient::address_of(root, &["registration_endpoint"])
        .or_else(|| lenient::address_of(of_agents.as_ref()?, &["register_uri", "registration_endpoint"]));
    let described = root.text_of(&["resource_description", "description"]);
    // The resource may state that it requires no token.
    let is_open = is_resource && described.is_some_and(lenient::says_open);
    let applies_to = if is_open { AppliesTo::OptionalIds { ids: Vec::new() } } else { AppliesTo::All };
    // If there is only one grant type, tokens are obtained with it.
    let grants = root.texts("grant_types_supported");
    let declared = draft::name(grants.first().copied().filter(|_| grants.len() == 1));
    draft.keep(Auth {
        declared,
        location: uses_header.then(|| "header".to_owned()),
        name: uses_header.then(|| "Authorization".to_owned()),
        token_url: lenient::address_of(root, &["token_endpoint"]),
        authorize_url: lenient::address_of(root, &["authorization_endpoint"]),
        registration_url,
        docs_url: lenient::address_of(root, &["resource_documentation", "service_documentation"]),
        scopes,
        applies_to,
        ..Auth::new(AuthScheme::OAuth2)
    });
    let manifest = &mut draft.manifest;
    if is_resource {
        manifest.description = manifest.description.take().or_else(|| draft::description(described));
    }
    if manifest.declared_origin.is_none() {
        manifest.declared_origin = root.string_of(&["resource", "issuer"]);
    }
    if manifest.name.is_none() {
        manifest.name = draft::name(root.text("resource_name"));
    }
}

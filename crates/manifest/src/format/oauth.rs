//! Metadata of OAuth: of a server that issues tokens, and of a resource that asks for them. There is nothing to call in it, but
//! it says how to authenticate.
//!
//! Follows RFC 8414 §2 (authorization server metadata), RFC 9728 §2 (protected resource metadata).

use std::collections::BTreeMap;

use crate::draft::{self, Draft};
use crate::format::lenient;
use crate::model::{Auth, AuthScheme};
use crate::object::Object;

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
    draft.keep(Auth {
        location: uses_header.then(|| "header".to_owned()),
        name: uses_header.then(|| "Authorization".to_owned()),
        token_url: lenient::address_of(root, &["token_endpoint"]),
        authorize_url: lenient::address_of(root, &["authorization_endpoint"]),
        registration_url: lenient::address_of(root, &["registration_endpoint"]),
        docs_url: lenient::address_of(root, &["resource_documentation", "service_documentation"]),
        scopes,
        ..Auth::new(AuthScheme::OAuth2)
    });
    let manifest = &mut draft.manifest;
    if manifest.declared_origin.is_none() {
        manifest.declared_origin = root.string_of(&["resource", "issuer"]);
    }
    if manifest.name.is_none() {
        manifest.name = draft::name(root.text("resource_name"));
    }
}

//! Security schemes of OpenAPI documents and requirements of operations.
//!
//! Decides the normal form of a scheme and, for one operation, whether credentials are needed: an empty list means no, an
//! empty requirement among others makes them optional, and without a declaration it is unknown.
//!
//! Follows OpenAPI 3.1 §4.8.27 and §4.8.30, 2.0 "Security Definitions Object".

use std::collections::{BTreeMap, HashSet};

use serde_json::{Map, Value};

use crate::format::lenient;
use crate::model::{AppliesTo, Auth, AuthScheme, CapabilityAuth, OAuthFlow, Tristate};

/// Maximum number of schemes of one document that are kept.
const SCHEMES_MAX: usize = 200;
/// Maximum number of flows of one scheme that are read; there are five kinds.
const FLOWS_MAX: usize = 16;
/// Maximum number of scopes that are kept from one scheme: the largest published APIs declare a few hundred.
const SCOPES_MAX: usize = 1_000;
/// Maximum number of alternatives, of schemes in all alternatives, and of scopes of one scheme that are read from one requirement.
const ALTERNATIVES_MAX: usize = 64;
/// Maximum number of scopes of one requirement that are kept, and maximum length of a scope.
const SCOPES_REQUIRED_MAX: usize = 256;
const SCOPE_BYTES_MAX: usize = 1_024;
/// Maximum number of operation ids that are kept with the schemes of one document, in total.
const USERS_MAX: usize = 5_000;

/// The schemes that a document defines, by the name that requirements use.
pub(crate) fn schemes(document: &Map<String, Value>) -> BTreeMap<String, Auth> {
    let current = document.get("components").and_then(|components| components.get("securitySchemes"));
    current
        .or_else(|| document.get("securityDefinitions"))
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .take(SCHEMES_MAX)
        .filter_map(|(name, scheme)| Some((name.clone(), scheme_of(scheme.as_object()?))))
        .collect()
}

/// One scheme in the form of OpenAPI, which A2A cards use too.
pub(crate) fn scheme_of(scheme: &Map<String, Value>) -> Auth {
    let text = |name: &str| scheme.get(name).and_then(Value::as_str).map(str::to_owned);
    let kind = text("type").unwrap_or_default();
    let location = text("in");
    let http = text("scheme").unwrap_or_default().to_ascii_lowercase();
    let mut auth = Auth::new(match (kind.as_str(), http.as_str(), location.as_deref()) {
        ("apiKey", _, Some("cookie")) => AuthScheme::Cookie,
        ("apiKey", ..) => AuthScheme::ApiKey,
        ("http", "bearer", _) => AuthScheme::Bearer,
        ("http", "signature", _) => AuthScheme::HttpSignature,
        ("oauth2", ..) => AuthScheme::OAuth2,
        ("openIdConnect", ..) => AuthScheme::OpenId,
        ("mutualTLS", ..) => AuthScheme::Mtls,
        _ => AuthScheme::Other,
    });
    if auth.scheme == AuthScheme::Other {
        auth.declared = Some(if http.is_empty() { kind } else { http });
    }
    if auth.scheme == AuthScheme::Bearer {
        auth.declared = text("bearerFormat");
    }
    auth.location = location;
    auth.name = text("name");
    auth.docs_url = text("openIdConnectUrl").or_else(|| text("oauth2MetadataUrl"));
    read_flows(&mut auth, scheme);
    if let Some(description) = scheme.get("description").and_then(Value::as_str) {
        lenient::describe_auth(description, &mut auth);
    }
    auth
}

fn read_flows(auth: &mut Auth, scheme: &Map<String, Value>) {
    let flows = scheme.get("flows").and_then(Value::as_object);
    let listed =
        flows.into_iter().flatten().filter_map(|(name, flow)| Some((name.as_str(), flow.as_object()?)));
    let flows = listed.take(FLOWS_MAX).map(|(name, flow)| read_flow(name, flow)).collect();
    auth.add_flows(flows);
    auth.add_flows(vec![read_flow("", scheme)]);
}

fn read_flow(name: &str, flow: &Map<String, Value>) -> OAuthFlow {
    let text = |name: &str| flow.get(name).and_then(Value::as_str).map(str::to_owned);
    let scopes = flow.get("scopes").and_then(Value::as_object).into_iter().flatten().take(SCOPES_MAX);
    OAuthFlow {
        flow: name.to_owned(),
        authorize_url: text("authorizationUrl").or_else(|| text("deviceAuthorizationUrl")),
        token_url: text("tokenUrl"),
        refresh_url: text("refreshUrl"),
        scopes: scopes
            .map(|(scope, description)| (scope.clone(), description.as_str().unwrap_or_default().to_owned()))
            .collect(),
    }
}

/// The credentials for a list of alternative requirements; unknown without a list.
pub(crate) fn requirement(security: Option<&Value>, schemes: &BTreeMap<String, Auth>) -> CapabilityAuth {
    let Some(alternatives) = security.and_then(Value::as_array) else { return CapabilityAuth::default() };
    let mut auth = CapabilityAuth { required: Tristate::Yes, ..CapabilityAuth::default() };
    let alternatives = alternatives.get(..alternatives.len().min(ALTERNATIVES_MAX)).unwrap_or_default();
    if alternatives.iter().all(is_empty) {
        auth.required = Tristate::No;
        auth.schemes.push(AuthScheme::None);
        return auth;
    }
    if alternatives.iter().any(is_empty) {
        auth.required = Tristate::No;
    }
    let mut seen = HashSet::new();
    for (name, scopes) in alternatives.iter().filter_map(Value::as_object).flatten().take(ALTERNATIVES_MAX) {
        let scheme = schemes.get(name).map_or(AuthScheme::Other, |scheme| scheme.scheme);
        if !auth.schemes.contains(&scheme) {
            auth.schemes.push(scheme);
        }
        // A published scheme that means "no authentication" requires nothing.
        if scheme == AuthScheme::None {
            auth.required = Tristate::No;
        }
        let scopes = scopes.as_array().into_iter().flatten().take(ALTERNATIVES_MAX);
        for scope in scopes.filter_map(Value::as_str).filter(|scope| scope.len() <= SCOPE_BYTES_MAX) {
            if seen.len() < SCOPES_REQUIRED_MAX && seen.insert(scope) {
                auth.scopes.push(scope.to_owned());
            }
        }
    }
    auth
}

/// The operations that name each scheme. Several schemes may be of one kind, such as two keys in headers of different names.
#[derive(Debug, Default)]
pub(super) struct SchemeUsers<'a> {
    /// Native ids by the name of the scheme.
    ids: BTreeMap<&'a str, Vec<String>>,
    /// Number of ids in all lists.
    count: usize,
    operations: usize,
    /// Number of operations to which no requirements apply, not even those of the root.
    unstated: usize,
}

impl<'a> SchemeUsers<'a> {
    /// Adds an operation with its requirements.
    pub(super) fn add(&mut self, security: Option<&'a Value>, native_id: &str) {
        self.operations += 1;
        self.unstated += usize::from(security.and_then(Value::as_array).is_none());
        let alternatives = security.and_then(Value::as_array).into_iter().flatten().take(ALTERNATIVES_MAX);
        let names = alternatives.filter_map(Value::as_object).flat_map(Map::keys).take(ALTERNATIVES_MAX);
        for name in names {
            let ids = self.ids.entry(name).or_default();
            if self.count < USERS_MAX && ids.last().is_none_or(|last| last != native_id) {
                self.count += 1;
                ids.push(native_id.to_owned());
            }
        }
    }

    /// The schemes, each restricted to the operations that name it, unless these are all operations or some are unknown. A scheme that no
    /// operation names applies to no operation. If no operation names any, operations without requirements may use it.
    pub(super) fn restricted(mut self, schemes: BTreeMap<String, Auth>) -> Vec<Auth> {
        let is_known = self.operations > 0 && self.count < USERS_MAX;
        let may_be_used = self.ids.is_empty() && self.unstated > 0;
        let mut restricted = Vec::with_capacity(schemes.len());
        for (name, mut auth) in schemes {
            let ids = self.ids.remove(name.as_str()).unwrap_or_default();
            if is_known && may_be_used {
                auth.applies_to = AppliesTo::OptionalIds { ids };
            } else if is_known && ids.len() < self.operations {
                auth.applies_to = AppliesTo::Ids { ids };
            }
            restricted.push(auth);
        }
        restricted
    }
}

fn is_empty(requirement: &Value) -> bool {
    requirement.as_object().is_some_and(Map::is_empty)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn auth_for(security: Option<&Value>) -> CapabilityAuth {
        let document = json!({"components": {"securitySchemes": {
            "key": {"type": "apiKey", "in": "header", "name": "X-Key"},
            "login": {"type": "oauth2", "flows": {"clientCredentials": {"tokenUrl": "https://x.example/t",
                "scopes": {"read": "Read", "write": ""}}}},
        }}});
        requirement(security, &schemes(document.as_object().unwrap()))
    }

    #[test]
    fn distinguishes_required_optional_and_undeclared_auth() {
        assert_eq!(auth_for(None).required, Tristate::Unknown);
        assert_eq!(auth_for(Some(&json!([]))).schemes, [AuthScheme::None]);
        assert_eq!(auth_for(Some(&json!([]))).required, Tristate::No);
        let either = auth_for(Some(&json!([{"key": []}, {"login": ["read", "write"]}])));
        assert_eq!(either.required, Tristate::Yes);
        assert_eq!(either.schemes, [AuthScheme::ApiKey, AuthScheme::OAuth2]);
        assert_eq!(either.scopes, ["read", "write"]);
        let optional = auth_for(Some(&json!([{}, {"key": []}])));
        assert_eq!(
            (optional.required, optional.schemes.as_slice()),
            (Tristate::No, &[AuthScheme::ApiKey][..])
        );
    }

    #[test]
    fn normalises_schemes_of_openapi_3_and_swagger_2() {
        let swagger = json!({"securityDefinitions": {
            "basic": {"type": "basic"},
            "oauth": {"type": "oauth2", "flow": "accessCode", "authorizationUrl": "https://x.example/a",
                "tokenUrl": "https://x.example/t", "scopes": {"all": "Everything"}},
        }});
        let known = schemes(swagger.as_object().unwrap());
        assert_eq!(known["basic"].scheme, AuthScheme::Other);
        assert_eq!(known["basic"].declared.as_deref(), Some("basic"));
        assert_eq!(known["oauth"].token_url.as_deref(), Some("https://x.example/t"));
        assert_eq!(known["oauth"].authorize_url.as_deref(), Some("https://x.example/a"));
        assert_eq!(known["oauth"].scopes["all"], "Everything");
        let cookie = json!({"type": "apiKey", "in": "cookie", "name": "sid"});
        assert_eq!(scheme_of(cookie.as_object().unwrap()).scheme, AuthScheme::Cookie);
    }
}

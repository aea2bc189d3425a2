//! ATP authentication (§3.3): schemes, OAuth flows and the identity of the agent.

use std::collections::BTreeMap;

use super::rules;
use crate::auth;
use crate::draft::{self, Draft};
use crate::model::{AgentIdentity, Auth, AuthScheme, OAuthFlow};
use crate::object::{Object, type_name};
use crate::walk::List;

/// Maximum number of scopes that are kept from one flow: the largest published APIs declare a few hundred.
const SCOPES_MAX: usize = 1_000;

/// Reads every scheme; a required identity applies to each.
pub(super) fn read(root: &Object<'_>, draft: &mut Draft<'_>) {
    let Some(auth) = draft.checked(root, "auth", &rules::AUTH) else { return };
    let identity = auth.object("agentIdentity").map(|identity| read_identity(&identity, draft));
    draft.each(&auth, "schemes", &List::UNCHECKED.mistyped(&rules::SCHEME_MISTYPED), |published, draft| {
        let mut entry = read_scheme(published, draft);
        entry.agent_identity.clone_from(&identity);
        draft.keep(entry);
    });
    if draft.manifest.auth.is_empty() && identity.is_some() {
        let entry = Auth { agent_identity: identity, ..Auth::new(AuthScheme::AgentIdentity) };
        draft.keep(entry);
    }
}

fn read_identity(identity: &Object<'_>, draft: &mut Draft<'_>) -> AgentIdentity {
    draft.check(identity, &rules::IDENTITY);
    let required = identity.flag("required").unwrap_or_default();
    let format = identity.text("format");
    if required && matches!(format, Some("did:key" | "custom")) {
        draft.report_rule(&rules::IDENTITY_FORMAT, identity.at("format"));
    }
    AgentIdentity { required, format: draft::name(format) }
}

fn read_scheme(published: &Object<'_>, draft: &mut Draft<'_>) -> Auth {
    draft.check(published, &rules::SCHEME);
    let mut entry = auth::of_word(published.text("type").unwrap_or_default());
    match entry.scheme {
        AuthScheme::ApiKey => {
            draft.check(published, &rules::API_KEY);
            entry.location = draft::name(published.text("in"));
            entry.name = draft::name(published.text("name"));
            entry.registration_url = draft.url(published, "registration");
        }
        AuthScheme::OAuth2 => {
            draft.check(published, &rules::OAUTH);
            if let Some(flows) = published.object("flows") {
                entry.add_flows(read_flows(&flows, draft));
            }
        }
        _ => {}
    }
    entry
}

fn read_flows(flows: &Object<'_>, draft: &mut Draft<'_>) -> Vec<OAuthFlow> {
    if !flows.has("authorizationCode") {
        draft.report_rule(&rules::CODE_FLOW_MISSING, flows.pointer.clone());
    }
    for name in
        flows.map.keys().filter(|name| !["authorizationCode", "clientCredentials"].contains(&name.as_str()))
    {
        draft.report_rule(&rules::FLOW_UNKNOWN, flows.at(name));
    }
    let known = [("authorizationCode", &rules::CODE_FLOW), ("clientCredentials", &rules::CREDENTIALS_FLOW)];
    let mut read = Vec::new();
    for (name, shape) in known {
        let Some(value) = flows.map.get(name) else { continue };
        let Some(flow) = draft.object(value, flows.at(name), &rules::FLOW_MISTYPED) else { continue };
        draft.check(&flow, shape);
        read.push(OAuthFlow {
            flow: name.to_owned(),
            authorize_url: secure_url(&flow, "authorizationUrl", draft),
            token_url: secure_url(&flow, "tokenUrl", draft),
            refresh_url: secure_url(&flow, "refreshUrl", draft),
            scopes: read_scopes(&flow, draft),
        });
    }
    read
}

/// An address of the authorization server, to which credentials are sent.
fn secure_url(flow: &Object<'_>, key: &str, draft: &mut Draft<'_>) -> Option<String> {
    let url = draft.url(flow, key);
    if url.as_deref().is_some_and(|url| url.starts_with("http:")) {
        draft.report_rule(&rules::FLOW_INSECURE, flow.at(key));
    }
    url
}

fn read_scopes(flow: &Object<'_>, draft: &mut Draft<'_>) -> BTreeMap<String, String> {
    let Some(scopes) = flow.object("scopes") else { return BTreeMap::new() };
    let mut read = BTreeMap::new();
    for (name, description) in scopes.map.iter().take(SCOPES_MAX) {
        if !description.is_string() {
            let text = format!("the scope \"{name}\" is described by {}", type_name(description));
            draft.report(&rules::SCOPE_MISTYPED, scopes.at(name), text);
        }
        read.insert(name.clone(), draft::description(description.as_str()).unwrap_or_default());
    }
    read
}

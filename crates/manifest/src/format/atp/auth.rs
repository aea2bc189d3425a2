//! ATP authentication (§3.3): schemes, OAuth flows and the identity of the agent.

use super::rules;
use crate::auth;
use crate::draft::{self, Draft};
use crate::model::{AgentIdentity, Auth, AuthScheme};
use crate::object::Object;

/// Reads every scheme; a required identity applies to each.
pub(super) fn read(root: &Object<'_>, draft: &mut Draft<'_>) {
    let Some(auth) = draft.checked(root, "auth", &rules::AUTH) else { return };
    let identity = auth.object("agentIdentity").map(|identity| {
        draft.check(&identity, &rules::IDENTITY);
        AgentIdentity {
            required: identity.flag("required").unwrap_or_default(),
            format: draft::name(identity.text("format")),
        }
    });
    for published in auth.objects("schemes") {
        let mut entry = read_scheme(&published, draft);
        entry.agent_identity.clone_from(&identity);
        draft.manifest.auth.push(entry);
    }
    if draft.manifest.auth.is_empty() && identity.is_some() {
        let entry = Auth { agent_identity: identity, ..Auth::new(AuthScheme::AgentIdentity) };
        draft.manifest.auth.push(entry);
    }
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
        AuthScheme::OAuth2 => flows(published, &mut entry, draft),
        _ => {}
    }
    entry
}

fn flows(published: &Object<'_>, entry: &mut Auth, draft: &mut Draft<'_>) {
    let flows = published.object("flows");
    let flow = |name: &str| flows.as_ref().and_then(|flows| flows.object(name));
    match flow("authorizationCode") {
        Some(code) => {
            draft.check(&code, &rules::CODE_FLOW);
            entry.authorize_url = draft.url(&code, "authorizationUrl");
            entry.refresh_url = draft.url(&code, "refreshUrl");
            token_and_scopes(&code, entry, draft);
        }
        None => draft.report_rule(&rules::CODE_FLOW_MISSING, published.pointer.clone()),
    }
    if let Some(credentials) = flow("clientCredentials") {
        draft.check(&credentials, &rules::CREDENTIALS_FLOW);
        token_and_scopes(&credentials, entry, draft);
    }
}

fn token_and_scopes(flow: &Object<'_>, entry: &mut Auth, draft: &mut Draft<'_>) {
    let token_url = draft.url(flow, "tokenUrl");
    if entry.token_url.is_none() {
        entry.token_url = token_url;
    }
    for (name, description) in flow.object("scopes").map(|scopes| scopes.map).into_iter().flatten() {
        let description = draft::description(description.as_str()).unwrap_or_default();
        entry.scopes.insert(name.clone(), description);
    }
}

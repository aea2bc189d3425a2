//! WoA, the Web of Agents: `woa.json` with agents, their operations and the transports that invoke them.
//!
//! Follows draft-gaikwad-woa-00. An agent without operations is one capability; an agent with operations is one capability for each
//! operation. The schemas of an operation override the agent's, and its description is followed by the agent's. The effect of a call is not
//! declared, so its safety is unknown.

mod rules;
mod schemas;
mod transport;

pub(crate) use rules::FINDINGS;

use serde_json::Value;

use crate::draft::{self, Draft};
use crate::format::detect::candidate::{Marker, at_path, medium, strong};
use crate::model::{
    AppliesTo, Auth, AuthScheme, Capability, CapabilityKind, Execution, ExecutionModel, Tristate,
};
use crate::object::Object;
use crate::schema::{self, Location};
use crate::text::{self, capped};
use crate::walk::List;
use transport::Transports;

pub(crate) const MARKERS: &[Marker] = &[
    strong(|c| c.value("woa_version").map(|version| format!("`woa_version` is {version}"))),
    // A document without a version is recognised by its other members and by its path.
    medium(|c| {
        let described = c.object("transports").is_some_and(|transports| {
            let has = |name: &str, key: &str| transports.get(name).is_some_and(|one| one.get(key).is_some());
            has("rest", "invoke_path") || has("mcp", "tool_namespace")
        });
        (described && c.list("agents").is_some())
            .then(|| "`woa_version` is missing, `agents` and `transports` are there".to_owned())
    }),
    medium(|c| {
        let key = ["agents", "transports"].into_iter().find(|key| c.has(key))?;
        c.is_file(&["/.well-known/woa.json"])
            .then(|| format!("`woa_version` is missing, `{key}` and the path {} agree", c.path))
    }),
    at_path(|c| {
        let is_empty = c.size() == 0 && c.is_file(&["/.well-known/woa.json"]);
        is_empty.then(|| format!("an empty object at {}", c.path))
    }),
];

/// Maximum number of different `authz` objects of agents that are kept.
const AUTHORIZATIONS_MAX: usize = 100;
/// Maximum number of characters of the id of an agent.
const AGENT_ID_CHARS_MAX: usize = 1_000;
/// Maximum number of characters of an operation's description, which precedes the description of its agent.
const OPERATION_DESCRIPTION_CHARS_MAX: usize = 1_000;

pub(crate) fn read(root: &Object<'_>, draft: &mut Draft<'_>) {
    draft.assess("draft-gaikwad-woa-00", |code| code.starts_with("woa."));
    draft.check(root, &rules::ROOT);
    let number = root.value("woa_version").filter(|value| value.is_number()).map(ToString::to_string);
    let version = root.string("woa_version").or(number);
    draft.dialect(version.as_deref(), None);
    if version.is_some_and(|version| version != "1") {
        draft.report_rule(&rules::MAJOR, root.at("woa_version"));
    }
    draft.manifest.name = Some(draft.base().host().to_string());
    check_authz(root, draft);
    if let Some(authz) = root.object("authz") {
        let auth = authorization(&authz, draft);
        draft.keep(auth);
    }
    let transports = Transports::read(root, draft);
    agents(root, &transports, draft);
}

fn agents(root: &Object<'_>, transports: &Transports<'_>, draft: &mut Draft<'_>) {
    let agents = root.list("agents").unwrap_or_default();
    if agents.is_empty() && root.has("agents") {
        draft.report_rule(&rules::NO_AGENTS, root.at("agents"));
    }
    let list = List::UNCHECKED.mistyped(&rules::AGENT_MISTYPED).unique("id", &rules::ID_DUPLICATE);
    let authorized = root.has("authz");
    draft.each(root, "agents", &list, |agent, draft| read_agent(agent, authorized, transports, draft));
}

/// Reads one agent: as one capability, or as one for each of its operations.
fn read_agent(
    agent: &Object<'_>,
    authorized_by_root: bool,
    transports: &Transports<'_>,
    draft: &mut Draft<'_>,
) {
    draft.check(agent, &rules::AGENT);
    check_authz(agent, draft);
    let called_over = transports.of_agent(agent, draft);
    let first = draft.manifest.capabilities.len();
    let needs_authorization = authorized_by_root || agent.has("authz");
    let mut whole =
        new_capability(agent, agent, CapabilityKind::Agent, agent.text("id").unwrap_or_default(), draft);
    whole.parameters = inputs(agent, draft);
    whole.response = outputs(agent, draft);
    if needs_authorization {
        whole.auth.required = Tristate::Yes;
        whole.auth.schemes = vec![AuthScheme::Other];
    }
    capabilities(agent, whole, transports, &called_over, draft);
    if let Some(authz) = agent.object("authz") {
        let auth = authorization(&authz, draft);
        authorize(auth, first, draft);
    }
}

/// Keeps an agent, or each of its operations.
fn capabilities(
    agent: &Object<'_>,
    mut whole: Capability,
    transports: &Transports<'_>,
    called_over: &[&str],
    draft: &mut Draft<'_>,
) {
    let id = id_of(agent);
    if agent.list("operations").unwrap_or_default().is_empty() {
        transports.invoke(&mut whole, id, None, called_over);
        return draft.push(whole);
    }
    let list =
        List::UNCHECKED.mistyped(&rules::OPERATION_MISTYPED).unique("name", &rules::OPERATION_DUPLICATE);
    draft.each(agent, "operations", &list, |operation, draft| {
        let capability = with_operation(agent, operation, &whole, draft);
        let mut capability = Capability { auth: whole.auth.clone(), ..capability };
        transports.invoke(&mut capability, id, operation.text("name"), called_over);
        draft.push(capability);
    });
}

/// Keeps the authorization of an agent, for its capabilities: those from `first` on.
fn authorize(auth: Auth, first: usize, draft: &mut Draft<'_>) {
    let manifest = &mut draft.manifest;
    let own = manifest.capabilities.iter().skip(first).map(|capability| capability.native_id.clone());
    let is_same = |known: &Auth| {
        known.applies_to != AppliesTo::All
            && (&known.declared, &known.name, &known.docs_url) == (&auth.declared, &auth.name, &auth.docs_url)
    };
    if let Some(position) = manifest.auth.iter().position(is_same) {
        if let Some(Auth { applies_to: AppliesTo::Ids { ids }, .. }) = manifest.auth.get_mut(position) {
            ids.extend(own);
        }
    } else if manifest.auth.len() < AUTHORIZATIONS_MAX {
        manifest.auth.push(Auth { applies_to: AppliesTo::Ids { ids: own.collect() }, ..auth });
    }
}

/// Sets the schemas of an operation, which override its agent's.
fn with_operation(
    agent: &Object<'_>,
    operation: &Object<'_>,
    whole: &Capability,
    draft: &mut Draft<'_>,
) -> Capability {
    draft.check(operation, &rules::OPERATION);
    if operation.text("name").is_some_and(|name| !rules::is_token(name)) {
        draft.report_rule(&rules::OPERATION_NAME, operation.at("name"));
    }
    let (id, name) = (id_of(agent), operation.text("name").unwrap_or_default());
    let mut capability =
        new_capability(agent, operation, CapabilityKind::AgentOperation, &format!("{id}/{name}"), draft);
    capability.parameters = inputs(operation, draft).or_else(|| whole.parameters.clone());
    capability.response = outputs(operation, draft).or_else(|| whole.response.clone());
    capability
}

/// The agent's id, which every operation repeats.
fn id_of<'v>(agent: &Object<'v>) -> &'v str {
    capped(agent.text("id").unwrap_or_default(), AGENT_ID_CHARS_MAX)
}

/// A capability with the texts of `described`: the agent or one of its operations.
fn new_capability(
    agent: &Object<'_>,
    described: &Object<'_>,
    kind: CapabilityKind,
    native_id: &str,
    draft: &mut Draft<'_>,
) -> Capability {
    let agent_name = capped(agent.text("name").unwrap_or_else(|| id_of(agent)), draft::NAME_CHARS_MAX);
    let name = match (kind, described.text("name")) {
        // "default" is the recommended name of a single operation.
        (CapabilityKind::AgentOperation, Some(name)) if name != "default" => format!("{agent_name}: {name}"),
        _ => agent_name.to_owned(),
    };
    let mut capability = draft.capability(kind, native_id, &name, described.pointer.clone());
    capability.description = match kind {
        CapabilityKind::AgentOperation => description_of_both(agent, described),
        _ => draft::description(agent.text("description")),
    };
    capability.version = draft::name(agent.text("version"));
    capability.tags = draft::tags(agent.texts("capabilities"));
    // `invocation` has one of them.
    if let Some(Value::Array(names)) =
        agent.value("transports").filter(|_| agent.texts("transports").len() > 1)
    {
        capability.published.insert("transports".to_owned(), Value::Array(names.clone()));
    }
    capability.execution = Execution { model: ExecutionModel::Sync, poll_url: None };
    capability.inferred.insert("execution".to_owned(), "woa.default-sync".to_owned());
    capability
}

fn inputs(object: &Object<'_>, draft: &mut Draft<'_>) -> Option<Value> {
    checked_schema(object, "inputs", draft).map(|schema| schema::with_location(schema.map, Location::Body))
}

fn outputs(object: &Object<'_>, draft: &mut Draft<'_>) -> Option<Value> {
    checked_schema(object, "outputs", draft).map(|schema| Value::Object(schema.map.clone()))
}

/// Checks a schema and returns it as published, even if it is invalid.
fn checked_schema<'v>(object: &Object<'v>, key: &str, draft: &mut Draft<'_>) -> Option<Object<'v>> {
    let schema = object.object(key)?;
    schemas::check(&schema, object.value(key)?, draft);
    Some(schema)
}

/// The description of an operation, followed by that of its agent.
fn description_of_both(agent: &Object<'_>, operation: &Object<'_>) -> Option<String> {
    let own = text::plain(operation.text("description").unwrap_or_default(), OPERATION_DESCRIPTION_CHARS_MAX);
    let of_agent = draft::description(agent.text("description"));
    match (own, of_agent) {
        (Some(own), Some(of_agent)) if own != of_agent => {
            draft::description(Some(&format!("{own} {of_agent}")))
        }
        (own, of_agent) => own.or(of_agent),
    }
}

/// Reports an `authz` of another shape. It still means that authorization is required.
fn check_authz(holder: &Object<'_>, draft: &mut Draft<'_>) {
    let is_named = |authz: &Object<'_>| authz.value("scheme").is_none_or(Value::is_string);
    if holder.has("authz") && !holder.object("authz").is_some_and(|authz| is_named(&authz)) {
        draft.report_rule(&rules::AUTHZ, holder.at("authz"));
    }
}

/// The `authz` extension (appendix A): a custom scheme with a policy and the header of the token.
fn authorization(authz: &Object<'_>, draft: &mut Draft<'_>) -> Auth {
    let mut auth = Auth::new(AuthScheme::Other);
    auth.declared = draft::name(authz.text("scheme"));
    auth.docs_url = draft.url(authz, "policy_uri");
    auth.name = draft::name(authz.text("token_header"));
    auth.location = auth.name.as_ref().map(|_| "header".to_owned());
    auth
}

#[cfg(test)]
mod tests;

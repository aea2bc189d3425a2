//! WoA, the Web of Agents: `woa.json` with agents, their operations and the transports that invoke them.
//!
//! Follows draft-gaikwad-woa-00. An agent without operations is one capability; an agent with operations is one
//! capability an operation, whose own schemas override the agent's. The effect of a call is not declared, so its
//! safety is unknown.

mod rules;
mod transport;

pub(crate) use rules::FINDINGS;

use serde_json::Value;

use crate::draft::{self, Draft};
use crate::format::detect::candidate::{Marker, strong};
use crate::model::{Auth, AuthScheme, Capability, CapabilityKind, Execution, ExecutionModel, Tristate};
use crate::object::Object;
use crate::schema::{self, Location};
use crate::walk::List;
use transport::Transports;

pub(crate) const MARKERS: &[Marker] =
    &[strong(|c| c.value("woa_version").map(|version| format!("`woa_version` is {version}")))];

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
    if let Some(authz) = root.object("authz") {
        draft.manifest.auth.push(authorization(&authz));
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

/// One agent: itself, or its operations.
fn read_agent(
    agent: &Object<'_>,
    authorized_by_root: bool,
    transports: &Transports<'_>,
    draft: &mut Draft<'_>,
) {
    draft.check(agent, &rules::AGENT);
    let called_over = transports.of_agent(agent, draft);
    let needs_authorization = authorized_by_root || agent.has("authz");
    let mut whole =
        new_capability(agent, agent, CapabilityKind::Agent, agent.text("id").unwrap_or_default(), draft);
    whole.parameters = inputs(agent, draft);
    whole.response = outputs(agent, draft);
    if needs_authorization {
        whole.auth.required = Tristate::Yes;
        whole.auth.schemes = vec![AuthScheme::Other];
    }
    let operations = agent.list("operations").unwrap_or_default();
    if operations.is_empty() {
        transports.invoke(&mut whole, agent.text("id").unwrap_or_default(), None, &called_over);
        return draft.push(whole);
    }
    let list =
        List::UNCHECKED.mistyped(&rules::OPERATION_MISTYPED).unique("name", &rules::OPERATION_DUPLICATE);
    draft.each(agent, "operations", &list, |operation, draft| {
        let capability = with_operation(agent, operation, &whole, draft);
        let mut capability = Capability { auth: whole.auth.clone(), ..capability };
        let id = agent.text("id").unwrap_or_default();
        transports.invoke(&mut capability, id, operation.text("name"), &called_over);
        draft.push(capability);
    });
}

/// An operation overrides its agent's description and schemas.
fn with_operation(
    agent: &Object<'_>,
    operation: &Object<'_>,
    whole: &Capability,
    draft: &mut Draft<'_>,
) -> Capability {
    draft.check(operation, &rules::OPERATION);
    let (id, name) = (agent.text("id").unwrap_or_default(), operation.text("name").unwrap_or_default());
    let mut capability =
        new_capability(agent, operation, CapabilityKind::AgentOperation, &format!("{id}/{name}"), draft);
    capability.parameters = inputs(operation, draft).or_else(|| whole.parameters.clone());
    capability.response = outputs(operation, draft).or_else(|| whole.response.clone());
    capability
}

/// A capability with the texts of `described`: the agent or one of its operations.
fn new_capability(
    agent: &Object<'_>,
    described: &Object<'_>,
    kind: CapabilityKind,
    native_id: &str,
    draft: &mut Draft<'_>,
) -> Capability {
    let agent_name = agent.text("name").or_else(|| agent.text("id")).unwrap_or_default();
    let name = match (kind, described.text("name")) {
        // "default" is the recommended name of a single operation.
        (CapabilityKind::AgentOperation, Some(name)) if name != "default" => format!("{agent_name}: {name}"),
        _ => agent_name.to_owned(),
    };
    let mut capability = draft.capability(kind, native_id, &name, described.pointer.clone());
    let description = described.text("description").or_else(|| agent.text("description"));
    capability.description = draft::description(description);
    capability.tags = draft::tags(agent.texts("capabilities"));
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

/// A schema, checked against the 2020-12 meta-schema; kept as published even when it fails.
fn checked_schema<'v>(object: &Object<'v>, key: &str, draft: &mut Draft<'_>) -> Option<Object<'v>> {
    let schema = object.object(key)?;
    if let Err(error) = jsonschema::draft202012::meta::validate(&Value::Object(schema.map.clone())) {
        let pointer = format!("{}{}", schema.pointer, error.instance_path());
        draft.report(
            &rules::SCHEMA_INVALID,
            pointer,
            format!("`{key}` is not valid JSON Schema 2020-12: {error}"),
        );
    } else if !is_plain_object(&schema) {
        draft.report_rule(&rules::SCHEMA_ROOT, schema.pointer.clone());
    }
    Some(schema)
}

fn is_plain_object(schema: &Object<'_>) -> bool {
    schema.text("type") == Some("object") && schema.object("properties").is_some()
}

/// The `authz` extension (appendix A): a custom scheme with a policy and the header of the token.
fn authorization(authz: &Object<'_>) -> Auth {
    let mut auth = Auth::new(AuthScheme::Other);
    auth.declared = draft::name(authz.text("scheme"));
    auth.docs_url = authz.string("policy_uri");
    auth.name = draft::name(authz.text("token_header"));
    auth.location = auth.name.as_ref().map(|_| "header".to_owned());
    auth
}

#[cfg(test)]
mod tests;

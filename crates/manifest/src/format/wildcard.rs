//! Wildcard's agents.json: flows over the operations of OpenAPI sources.
//!
//! Reads each entry of `flows` as one flow, with its steps as operations of a named source. A flow runs in the client and has no address.
//! The sources are separate descriptions and are followed.
//!
//! Follows agents.json 0.1.0 of wild-card-ai (2025).

use serde_json::{Map, Value};

use crate::draft::{self, Draft};
use crate::format::clauses::clauses;
use crate::format::detect::candidate::{Marker, strong};
use crate::format::lenient;
use crate::hash::HashSet;
use crate::model::{
    AppliesTo, Auth, AuthScheme, CapabilityAuth, CapabilityKind, Follow, Invocation, Link, Tristate,
    Workflow, WorkflowStep,
};
use crate::object::Object;
use crate::rule::{Kind, findings, may, must};
use crate::schema::{self, Location};
use crate::text::capped;
use crate::walk::List;

/// Maximum number of steps of one flow that are kept.
const STEPS_MAX: usize = 100;

pub(crate) const MARKERS: &[Marker] =
    &[strong(|c| c.has("agentsJson").then(|| "`agentsJson` is present".to_owned()))];

findings! {
    shape ROOT("wildcard", "agents.json 0.1.0 (Wildcard)") {
        must("agentsJson", Kind::Text, "State the version, 0.1.0."),
        must("info", Kind::Object, "Publish `info` with `title`, `version` and `description`."),
        must("sources", Kind::List, "List the OpenAPI sources."),
        must("flows", Kind::List, "List the flows."),
        may("overrides", Kind::List, "Publish overrides as an array."),
    }
    shape INFO("wildcard.info", "agents.json 0.1.0 (Wildcard)") {
        must("title", Kind::Text, "Name the collection of flows."),
        must("version", Kind::Text, "State the document's own version."),
        must("description", Kind::Text, "Describe what the flows are for."),
    }
    shape SOURCE("wildcard.source", "agents.json 0.1.0 (Wildcard)") {
        must("id", Kind::Text, "Give the source an id."),
        must("path", Kind::Reference, "State the address of the OpenAPI document."),
    }
    shape FLOW("wildcard.flow", "agents.json 0.1.0 (Wildcard)") {
        must("id", Kind::Text, "Give the flow an id."),
        must("title", Kind::Text, "Name the flow."),
        must("description", Kind::Text, "Describe the result of the flow."),
        must("actions", Kind::List, "List the operations that the flow calls."),
        must("fields", Kind::Object, "Describe the flow's parameters and responses."),
        may("links", Kind::List, "Publish links as an array."),
    }
    shape ACTION("wildcard.action", "agents.json 0.1.0 (Wildcard)") {
        must("id", Kind::Text, "Give the action an id that links can name."),
        must("sourceId", Kind::Text, "Name the source."),
        must("operationId", Kind::Text, "Name the operation in the source."),
    }
    shape FIELDS("wildcard.fields", "agents.json 0.1.0 (Wildcard)") {
        must("responses", Kind::Object, "Describe the successful response under `success`."),
        may("parameters", Kind::List, "List parameters as objects with `name`."),
        may("requestBody", Kind::Object, "Describe the body with `content`."),
    }
    rule UNKNOWN_SOURCE: Must("wildcard.action.source.unknown", "agents.json 0.1.0 (Wildcard)")
        "an action names a source that is not listed" => "List the source or correct the id.";
    rule VERSION: Should("wildcard.version.unknown", "agents.json 0.1.0 (Wildcard)")
        "the stated version is not 0.1.0; the document is read as far as possible" => "State a published version.";
}

pub(crate) fn read(root: &Object<'_>, draft: &mut Draft<'_>) {
    let version = root.text("agentsJson");
    draft.dialect(version, None);
    draft.assess("agents.json 0.1.0 (Wildcard)", |code| code.starts_with("wildcard."));
    draft.check(root, &ROOT);
    if version.is_some_and(|version| version != "0.1.0") {
        draft.report_rule(&VERSION, root.at("agentsJson"));
    }
    if let Some(info) = draft.checked(root, "info", &INFO) {
        let manifest = &mut draft.manifest;
        manifest.name = draft::name(info.text("title"));
        manifest.description = draft::description(info.text("description"));
        manifest.document_version = draft::name(info.text("version"));
    }
    let mut sources = Vec::new();
    draft.each(root, "sources", &List::of(&SOURCE), |source, draft| {
        sources.extend(source.text("id"));
        let url = draft.document_url(source, "path");
        let link = url.map(|url| Link::new("service-desc", url, Some(Follow::Manifest)));
        draft.keep_all(link);
    });
    let mut token_users = Vec::new();
    for flow in root.objects("flows") {
        if draft.is_full() {
            break;
        }
        read_flow(&flow, &sources, &mut token_users, draft);
    }
    if !token_users.is_empty() {
        let (location, name) = (Some("body".to_owned()), Some(TOKEN.to_owned()));
        let applies_to = AppliesTo::Ids { ids: token_users };
        draft.keep(Auth { location, name, applies_to, ..Auth::new(AuthScheme::Other) });
    }
}

fn read_flow(flow: &Object<'_>, sources: &[&str], token_users: &mut Vec<String>, draft: &mut Draft<'_>) {
    draft.check(flow, &FLOW);
    let mut steps = Vec::new();
    draft.each(flow, "actions", &List::of(&ACTION).at_most(STEPS_MAX), |action, draft| {
        let source = action.text("sourceId");
        if let Some(unknown) = source.filter(|source| !sources.contains(source)) {
            draft.report(
                &UNKNOWN_SOURCE,
                action.at("sourceId"),
                format!("\"{unknown}\" is not in `sources`"),
            );
        }
        let (id, operation) = (action.text("id"), action.text("operationId"));
        steps.push(WorkflowStep {
            id: id.or(operation).unwrap_or_default().to_owned(),
            operation: operation.filter(|_| id.is_some() && id != operation).map(str::to_owned),
            source: source.map(str::to_owned),
        });
    });
    let (id, title) = (flow.text("id").unwrap_or_default(), flow.text("title").unwrap_or_default());
    let mut capability = draft.capability(CapabilityKind::Flow, id, title, flow.pointer.clone());
    capability.title = draft::name(flow.text("title"));
    capability.description = draft::description(flow.text("description"));
    if let Some(fields) = draft.checked(flow, "fields", &FIELDS) {
        capability.parameters = inputs(&fields);
        if body_of(&fields).is_some_and(|(_, schema)| needs_token(&schema)) {
            let (required, schemes) = (Tristate::Yes, vec![AuthScheme::Other]);
            capability.auth = CapabilityAuth { required, schemes, ..CapabilityAuth::default() };
            token_users.push(capability.native_id.clone());
        }
        let responses = fields.object("responses");
        capability.response = responses.and_then(|responses| response(responses.value("success")?));
    }
    draft.keep(Workflow {
        id: capability.native_id.clone(),
        name: capability.title.clone(),
        description: capability.description.clone(),
        steps,
        conditions: flow.value("links").cloned(),
    });
    capability.used_in_workflows = vec![capability.native_id.clone()];
    draft.push(capability);
}

/// The schema of a response: as published, or that of the content of a response object as in OpenAPI, with its description.
fn response(success: &Value) -> Option<Value> {
    let Some(object) = success.as_object().map(Object::root) else { return lenient::response(success) };
    let described = object.text("description");
    let content = object.object("content");
    let is_schema = ["type", "properties", "$ref", "items"].iter().any(|key| object.has(key));
    if is_schema || (described.is_none() && content.is_none()) {
        return lenient::response(success);
    }
    let media =
        content.and_then(|content| content.members().find_map(|(_, media)| media.value("schema").cloned()));
    let mut schema =
        media.and_then(|schema| lenient::response(&schema)).unwrap_or_else(|| Value::Object(Map::new()));
    if let (Some(map), Some(text)) = (schema.as_object_mut(), described) {
        map.entry("description").or_insert_with(|| Value::from(capped(text, draft::DESCRIPTION_CHARS_MAX)));
    }
    Some(schema)
}

/// Parameters and the members of the body, as one object.
fn inputs(fields: &Object<'_>) -> Option<Value> {
    let mut parameters =
        fields.value("parameters").and_then(|list| schema::lenient(list, &Invocation::default()));
    // The operations of the flow determine where a parameter is sent, unless the flow states it.
    let stated: Vec<&str> =
        fields.objects("parameters").filter(|own| own.has("in")).filter_map(|own| own.text("name")).collect();
    let properties = parameters.as_mut().and_then(|all| all.get_mut("properties")?.as_object_mut());
    for (name, property) in properties.into_iter().flatten() {
        if let Some(property) = property.as_object_mut().filter(|_| !stated.contains(&name.as_str())) {
            property.remove("x-in");
        }
    }
    let body = body_of(fields).map(|(media_type, schema)| {
        let mut schema = schema::with_location(schema.map, Location::Body);
        let is_unusual = !media_type.starts_with("application/json");
        let properties = schema.get_mut("properties").and_then(Value::as_object_mut).filter(|_| is_unusual);
        for property in properties.into_iter().flat_map(Map::values_mut).filter_map(Value::as_object_mut) {
            property
                .insert("x-media-type".to_owned(), Value::from(capped(media_type, draft::NAME_CHARS_MAX)));
        }
        schema
    });
    let mut merged = parameters.unwrap_or_else(|| Value::Object(Map::new()));
    if let Some(body) = body {
        merge(&mut merged, &body);
    }
    merged.as_object().is_some_and(|map| !map.is_empty()).then_some(merged)
}

/// The media type and the schema of the body of a flow.
fn body_of<'v>(fields: &Object<'v>) -> Option<(&'v str, Object<'v>)> {
    let content = fields.object("requestBody")?.object("content")?;
    let media =
        content.members().find(|(name, _)| *name == "application/json").or_else(|| content.members().next());
    let (media_type, media) = media?;
    Some((media_type, media.object("schema")?))
}

/// The credential that the description of a body names.
const TOKEN: &str = "token";

/// Whether the description of a body says that it includes a token that is not among its properties: "Must include token, channel and text."
fn needs_token(schema: &Object<'_>) -> bool {
    let Some(description) = schema.text("description").filter(|text| text.contains(TOKEN)) else {
        return false;
    };
    if schema.object("properties").is_some_and(|properties| properties.has(TOKEN)) {
        return false;
    }
    clauses(capped(description, draft::DESCRIPTION_CHARS_MAX)).any(|clause| {
        let folded = clause.to_ascii_lowercase();
        let verbs = ["must include ", "includes ", "requires ", "specifies "];
        let included = verbs.iter().find_map(|verb| folded.strip_prefix(verb));
        included.is_some_and(|included| {
            let named = included.trim_start_matches("the ").trim_start_matches("authentication ");
            named.strip_prefix(TOKEN).is_some_and(|rest| rest.is_empty() || rest.starts_with([',', ' ']))
        })
    })
}

/// Adds the description of a parameter to the member of the body with its name, if that has none.
fn describe(member: Option<&mut Value>, parameter: Option<&Value>) {
    let described = parameter.and_then(|parameter| parameter.get("description")?.as_str());
    if let (Some(Value::Object(member)), Some(text)) = (member, described) {
        member.entry("description").or_insert_with(|| Value::from(text));
    }
}

fn merge(into: &mut Value, from: &Value) {
    for (key, value) in from.as_object().into_iter().flatten() {
        match (into.get_mut(key), value) {
            (Some(Value::Object(known)), Value::Object(more)) => {
                for (name, value) in more {
                    let before = known.insert(name.clone(), value.clone());
                    describe(known.get_mut(name), before.as_ref());
                }
            }
            (Some(Value::Array(known)), Value::Array(more)) => {
                let names = known.iter().filter_map(Value::as_str);
                let listed: HashSet<String> = names.map(str::to_owned).collect();
                let is_new = |value: &&Value| value.as_str().is_none_or(|name| !listed.contains(name));
                known.extend(more.iter().filter(is_new).cloned());
            }
            (Some(_), _) => {}
            (None, value) => {
                if let Some(map) = into.as_object_mut() {
                    map.insert(key.clone(), value.clone());
                }
            }
        }
    }
}

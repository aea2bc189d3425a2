//! `Web2Agent` manifests: skills whose action is a method and a path in one string.
//!
//! Follows W2A 1.0 (2026). Types are words. A question mark marks an optional value, brackets mark a list.

use serde_json::{Map, Value, json};

use crate::address;
use crate::draft::{self, Draft};
use crate::format::detect::candidate::{Marker, strong};
use crate::format::{endpoint, header, lenient};
use crate::model::{AgentIdentity, CapabilityKind};
use crate::object::Object;
use crate::rule::{Kind, findings, may, must};
use crate::schema::{self, Location, Parameters, Presence};
use crate::text;
use crate::walk::List;

/// Maximum number of lists in lists that one type word may name.
const DIMENSIONS_MAX: usize = 8;

pub(crate) const MARKERS: &[Marker] =
    &[strong(|c| c.value("w2a").map(|version| format!("`w2a` is {version}")))];

findings! {
    shape ROOT("w2a", "W2A 1.0") {
        must("w2a", Kind::Text, "State the version, 1.0."),
        must("site", Kind::Object, "Describe the site."),
        must("skills", Kind::List, "List the skills as objects."),
    }
    shape SITE("w2a.site", "W2A 1.0") {
        must("name", Kind::Text, "Name the site."),
        must("type", Kind::Text, "State the kind of site."),
        may("language", Kind::Text, "State the language as a BCP 47 tag."),
        may("description", Kind::Text, "Describe the site in a string."),
    }
    shape SKILL("w2a.skill", "W2A 1.0") {
        must("id", Kind::Text, "Give the skill an id."),
        must("intent", Kind::Text, "Describe the purpose of the skill in words."),
        must("action", Kind::Form(is_action, "a method and a path, such as GET /search"), "Write a method and a path."),
        may("input", Kind::Object, "Publish the input as a map from name to type."),
        may("output", Kind::Object, "Publish the output as a map from name to type."),
        may("auth", Kind::Text, "Name the credentials, or none."),
    }
}

pub(crate) fn read(root: &Object<'_>, draft: &mut Draft<'_>) {
    draft.dialect(root.text("w2a"), None);
    draft.assess("W2A 1.0", |code| code.starts_with("w2a."));
    draft.check(root, &ROOT);
    header::describe(root, draft);
    if let Some(site) = draft.checked(root, "site", &SITE) {
        draft.manifest.language = site.string("language");
    }
    draft.each(root, "skills", &List::of(&SKILL), read_skill);
    if let Some(policies) = root.object("policies") {
        read_policies(&policies, draft);
    }
}

/// Maximum number of agents that a file allows by name.
const AGENTS_MAX: usize = 100;

/// Reads which agents may call, and whether each must identify itself.
fn read_policies(policies: &Object<'_>, draft: &mut Draft<'_>) {
    let agents = policies.texts("allowed_agents").into_iter().take(AGENTS_MAX);
    let agents: Vec<Value> =
        agents.map(|agent| Value::from(text::capped(agent, draft::NAME_CHARS_MAX))).collect();
    if !agents.is_empty() {
        draft.manifest.hints.insert("allowed_agents".to_owned(), Value::Array(agents));
    }
    if policies.flag("require_identity") == Some(true) {
        for capability in &mut draft.manifest.capabilities {
            capability.auth.agent_identity = Some(AgentIdentity { required: true, format: None });
        }
    }
}

fn read_skill(skill: &Object<'_>, draft: &mut Draft<'_>) {
    let id = skill.text("id").unwrap_or_default();
    let mut capability = draft.capability(CapabilityKind::Action, id, "", skill.pointer.clone());
    capability.title = draft::name(skill.text("intent"));
    capability.description = draft::description(skill.text_of(&["description", "intent"]));
    if let Some(action) = skill.text("action") {
        endpoint::read(action, None, &skill.at("action"), &mut capability, draft);
    }
    if let Some(input) = skill.object("input") {
        let mut parameters = Parameters::default();
        for (name, word) in input.map {
            let (schema, presence) = typed(word);
            parameters.add(name, schema, Location::of(&capability.invocation, name), presence);
        }
        capability.parameters = parameters.finish_stated(&capability.invocation);
    }
    capability.response = skill.object("output").map(|output| {
        let members: Map<String, Value> =
            output.map.iter().map(|(name, word)| (name.clone(), Value::Object(typed(word).0))).collect();
        json!({"type": "object", "properties": members})
    });
    if let Some(auth) = skill.value("auth") {
        capability.auth = lenient::required_by(&lenient::auth(auth));
    }
    draft.push(capability);
}

/// A type word as a schema: `string?`, `int`, `object[]`. Brackets beyond [`DIMENSIONS_MAX`] are part of the word.
fn typed(word: &Value) -> (Map<String, Value>, Presence) {
    let Some(text) = word.as_str() else { return (Map::new(), Presence::Optional) };
    let (mut name, presence) = match text.trim().strip_suffix('?') {
        Some(text) => (text, Presence::Optional),
        None => (text.trim(), Presence::Required),
    };
    let mut dimensions = 0;
    while let Some(inner) = name.strip_suffix("[]").filter(|_| dimensions < DIMENSIONS_MAX) {
        (name, dimensions) = (inner, dimensions + 1);
    }
    let name = match name {
        "bool" => "boolean",
        "int" => "integer",
        "float" => "number",
        other => other,
    };
    let mut schema = Map::new();
    schema::insert_type(&mut schema, name);
    for _ in 0..dimensions {
        let items = Value::Object(std::mem::take(&mut schema));
        schema.insert("type".to_owned(), json!("array"));
        schema.insert("items".to_owned(), items);
    }
    (schema, presence)
}

fn is_action(text: &str) -> bool {
    let (method, rest) = address::split_method(text);
    method.is_some() && (rest.starts_with('/') || rest.contains("://"))
}

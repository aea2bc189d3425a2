//! Workflows in documents whose format does not define them: a list of objects with steps.

use std::collections::HashMap;

use serde_json::Value;

use crate::address;
use crate::draft::{self, Draft};
use crate::model::{Capability, Workflow, WorkflowStep};
use crate::object::{Object, children};
use crate::text;

/// Maximum number of workflows of one document that are read.
const WORKFLOWS_MAX: usize = 200;
/// Maximum number of steps of one workflow that are read.
const STEPS_MAX: usize = 100;
/// Members of a step with the name of the called operation, then members with the name of the step.
const STEP_KEYS: &[&str] = &[
    "capability",
    "tool",
    "skill",
    "operationId",
    "operation_id",
    "operation",
    "action",
    "endpoint",
    "call",
    "id",
    "name",
    "title",
    "description",
];

/// Reads `workflows`, unless the parser of the format did.
pub(crate) fn read_workflows(root: &Object<'_>, draft: &mut Draft<'_>) {
    if draft.format().is_core() || !draft.manifest.workflows.is_empty() {
        return;
    }
    let Some(list) = root.value_of(&["workflows", "recipes", "journeys"]) else { return };
    let positions: HashMap<String, usize> = draft.capability_positions();
    let calls = ids_of_calls(draft);
    for (name, item, pointer) in children(list, &root.at("workflows")).take(WORKFLOWS_MAX) {
        let Value::Object(map) = item else { continue };
        let object = Object::new(map, pointer);
        let steps: Vec<WorkflowStep> =
            steps(&object).iter().filter_map(|step| step_of(step, &positions, &calls)).collect();
        let id = object.text_of(&["id", "name", "title"]).or(name).unwrap_or_default();
        if id.is_empty() || steps.is_empty() {
            continue;
        }
        let id = text::capped(id, draft::NAME_CHARS_MAX).to_owned();
        for position in steps.iter().filter_map(|step| positions.get(&step.id)) {
            let used =
                draft.manifest.capabilities.get_mut(*position).map(|found| &mut found.used_in_workflows);
            if let Some(used) = used.filter(|used| used.last() != Some(&id)) {
                used.push(id.clone());
            }
        }
        draft.keep(Workflow {
            name: draft::name(object.text_of(&["name", "title"])),
            description: draft::description(object.text_of(&["description", "summary", "goal"])),
            id,
            steps,
            conditions: None,
        });
    }
}

fn steps<'v>(workflow: &Object<'v>) -> &'v [Value] {
    let listed = ["steps", "actions", "sequence", "flow"].iter().find_map(|key| workflow.list(key));
    let listed = listed.unwrap_or_default();
    listed.get(..STEPS_MAX).unwrap_or(listed)
}

/// The ids of the calls of a document, by method and path.
type Calls = HashMap<String, String>;

fn ids_of_calls(draft: &Draft<'_>) -> Calls {
    let call = |capability: &Capability| {
        let (_, url) = capability.invocation.endpoint()?.split_once("://")?;
        let path = url.get(url.find('/')?..)?;
        let method = capability.invocation.method.as_deref()?;
        Some((call_key(method, path), capability.native_id.clone()))
    };
    draft.manifest.capabilities.iter().filter_map(call).collect()
}

fn call_key(method: &str, address: &str) -> String {
    let path = address.split(['?', ' ']).next().unwrap_or_default();
    [method, path].join(" ")
}

/// The capability that a step names or calls, `GET /rooms`, or the name of the step.
fn step_of(step: &Value, positions: &HashMap<String, usize>, calls: &Calls) -> Option<WorkflowStep> {
    let texts: Vec<&str> = match step {
        Value::String(text) => vec![text.trim()],
        Value::Object(map) => STEP_KEYS.iter().filter_map(|key| map.get(*key)?.as_str()).collect(),
        _ => return None,
    };
    let called = |text: &&str| match address::split_method(text) {
        (Some(method), address) => calls.get(&call_key(method, address)).map(String::as_str),
        (None, _) => None,
    };
    let called = texts.iter().find_map(called);
    let known = texts.iter().find(|text| positions.contains_key(**text)).or(called.as_ref());
    // `{"name": "browse", "action": "Read the list of GET /rooms first"}`
    let is_name = |text: &&&str| !text.is_empty() && !text.contains(char::is_whitespace);
    let unknown = || texts.iter().find(is_name).or_else(|| texts.iter().find(|text| !text.is_empty()));
    let id = known.or_else(unknown)?;
    Some(WorkflowStep { id: text::capped(id, draft::NAME_CHARS_MAX).to_owned(), ..WorkflowStep::default() })
}

/// Reads the requirements of a flow, which are earlier flows and not parameters: `"requires": ["authenticate"]`.
pub(super) fn depend_on_required(flow: &Object<'_>, capability: &mut Capability) {
    let required = flow.texts("requires");
    if let Some(Value::Object(schema)) = &mut capability.parameters {
        if let Some(Value::Object(properties)) = schema.get_mut("properties") {
            properties.retain(|name, _| !required.contains(&name.as_str()));
        }
        if let Some(Value::Array(names)) = schema.get_mut("required") {
            names.retain(|name| !name.as_str().is_some_and(|name| required.contains(&name)));
        }
    }
    let is_empty = |parameters: &Value| {
        parameters.get("properties").and_then(Value::as_object).is_some_and(serde_json::Map::is_empty)
    };
    if !required.is_empty() && capability.parameters.as_ref().is_some_and(is_empty) {
        capability.parameters = None;
    }
    capability.depends_on = draft::tags(required);
}

/// The operations that a flow calls one after another.
pub(super) fn steps_of_flow(flow: &Object<'_>) -> Vec<WorkflowStep> {
    let step = |step: Object<'_>| {
        let id = step.text_of(&["operationId", "operation_id"])?;
        Some(WorkflowStep {
            id: text::capped(id, draft::NAME_CHARS_MAX).to_owned(),
            ..WorkflowStep::default()
        })
    };
    flow.objects("steps").take(STEPS_MAX).filter_map(step).collect()
}

//! `get_capability`: everything that is declared about one capability.

use indexer::MergedCapability;
use manifest::{CapabilityId, CapabilityKind};
use serde::Deserialize;
use serde_json::{Value, json};
use store::StoredManifest;

use super::size_limit::{ANSWER_BYTES_MAX, drop_members};
use super::{Definition, UNTRUSTED, address, object};
use crate::answers::capability;
use crate::answers::listed_by::{brief, listings, of_manifest};
use crate::client::Client;
use crate::problem::Problem;
use crate::state::App;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    id: String,
    #[serde(default = "with_schemas")]
    include_schemas: bool,
}

const fn with_schemas() -> bool {
    true
}

pub(super) fn definition() -> Definition {
    let kinds: Vec<&str> = CapabilityKind::ALL.iter().map(|kind| kind.as_str()).collect();
    let nullable = |kind: &str| json!({"type": [kind, "null"]});
    Definition {
        title: "Get a capability",
        description: "The whole declaration of one capability: how to call it, its parameters and answer as JSON Schema, safety, \
                      authentication, where it was declared and what is wrong with the declaration. Confirm with a person where \
                      confirmation is required.",
        semantic_type: "data:query",
        examples: &["show how to call this capability", "which parameters does booking a seat take"],
        input: object(
            &["id"],
            &json!({
                "id": {"type": "string", "pattern": "^c[a-z2-7]{16}$", "description": "The id of a row of find_capability."},
                "include_schemas": {"type": "boolean", "default": true, "description": "Whether parameters and response are included as JSON Schema."},
            }),
        ),
        output: json!({"type": "object", "required": ["id", "name", "site", "format", "safety", "invocable", "url", "text_is"], "properties": {
            "id": {"type": "string"}, "native_id": {"type": "string"}, "name": {"type": "string"}, "description": nullable("string"),
            "kind": {"type": "string", "enum": kinds}, "site": {"type": "string"}, "format": {"type": "string"},
            "endpoint": nullable("string"), "method": nullable("string"), "invocation": {"type": "object"},
            "parameters": nullable("object"), "response": {"type": ["object", "boolean", "null"]},
            "safety": {"type": "string"}, "confirmation": {"type": "string"}, "auth": {"type": "array"}, "auth_required": nullable("boolean"),
            "invocable": {"type": "boolean"}, "declarations": {"type": ["array", "null"]}, "contradictions": {"type": ["array", "null"]}, "findings": {"type": ["array", "null"]}, "provenance": nullable("object"),
            "listed_by": super::listed_by_schema(),
            "url": {"type": "string", "description": "Where the full record is served."},
            "left_out": {"type": "array", "items": {"type": "string"}, "description": "Members that were too long for this answer."},
            "text_is": {"type": "string"}}}),
    }
}

pub(super) async fn call(app: &App, client: Client, arguments: Arguments) -> Result<Value, Problem> {
    let id = CapabilityId::parse(arguments.id.trim())
        .map_err(|_| Problem::bad_request("id is \"c\" and 16 characters, as in a row of find_capability"))?;
    let found = capability::find(app.manifests(client), id.clone()).await?;
    let url = address(app, &format!("/capabilities/{id}"));
    let liveness = found.liveness.as_ref().map(|liveness| json!(liveness));
    let listings = listings(&app.store, &found.site()).await?;
    let answer = move |stored: &_, merged: &_| {
        let listed_by = json!(brief(&of_manifest(listings, stored)));
        answer(stored, merged, (url, liveness, listed_by), arguments.include_schemas)
    };
    found.work(answer).await
}

fn answer(
    stored: &StoredManifest,
    merged: &MergedCapability,
    (url, liveness, listed_by): (String, Option<Value>, Value),
    include_schemas: bool,
) -> Result<Value, Problem> {
    let mut answer = capability::row(stored, merged)?;
    answer.extend(capability::details(stored, merged)?);
    if !include_schemas {
        answer.retain(|name, _| name != "parameters" && name != "response");
    }
    answer.extend(liveness.map(|liveness| ("liveness".to_owned(), liveness)));
    answer.insert("listed_by".to_owned(), listed_by);
    answer.insert("url".to_owned(), url.into());
    answer.insert("text_is".to_owned(), UNTRUSTED.into());
    let mut answer = Value::Object(answer);
    let gone = drop_members(
        &mut answer,
        &[
            "findings",
            "examples",
            "provenance",
            "listed_by",
            "declarations",
            "response",
            "parameters",
            "description",
            "contradictions",
        ],
        ANSWER_BYTES_MAX,
    );
    if let Some(object) = answer.as_object_mut() {
        object.insert("left_out".to_owned(), json!(gone));
    }
    Ok(answer)
}

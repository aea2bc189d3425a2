//! `registry_stats`: statistics of the index.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{Definition, object};
use crate::problem::Problem;
use crate::state::App;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {}

pub(super) fn definition() -> Definition {
    let number = json!({"type": "integer"});
    Definition {
        title: "Registry statistics",
        description: "How large and how fresh the index is: sites, manifests by dialect, capabilities, the last visit.",
        semantic_type: "data:query",
        examples: &["how many capabilities does the index hold", "is the index up to date"],
        input: object(&[], &json!({})),
        output: json!({"type": "object", "required": ["sites", "manifests", "capabilities", "manifests_by_format"], "properties": {
            "sites": number, "sites_due": number, "manifests": number, "capabilities": number,
            "manifests_by_format": {"type": "object", "additionalProperties": number},
            "last_visit_at": {"type": ["string", "null"]},
            "index_is_current": {"type": ["boolean", "null"], "description": "Whether the index shows everything that was crawled."}}}),
    }
}

pub(super) async fn call(app: &App, Arguments {}: Arguments) -> Result<Value, Problem> {
    let stats = app.stats().await?;
    let formats = stats.manifests_by_format.iter().map(|count| (count.value.to_owned(), count.count.into()));
    Ok(json!({
        "sites": stats.sites, "sites_due": stats.sites_due, "manifests": stats.manifests, "capabilities": stats.capabilities,
        "manifests_by_format": formats.collect::<Map<String, Value>>(), "last_visit_at": stats.last_visit_at,
        "index_is_current": stats.index_position.map(|position| position >= stats.feed_position),
    }))
}

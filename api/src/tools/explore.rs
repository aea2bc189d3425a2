//! `explore`: counts by facet.

use indexer::{ExploreRequest, FacetKey, FacetRequest, Filters};
use manifest::Format;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{Definition, UNTRUSTED, object, words};
use crate::answers::search::explore;
use crate::client::Client;
use crate::problem::Problem;
use crate::state::App;

const VALUES_DEFAULT: usize = 10;
const VALUES_MAX: usize = 50;
/// Default facets.
const BY_DEFAULT: [FacetKey; 4] =
    [FacetKey::SemanticType, FacetKey::Format, FacetKey::Safety, FacetKey::Auth];

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    #[serde(default)]
    query: String,
    #[serde(default)]
    by: Vec<FacetKey>,
    #[serde(default)]
    format: Vec<Format>,
    #[serde(default)]
    site: Vec<String>,
    max_values: Option<usize>,
}

pub(super) fn definition() -> Definition {
    let count = json!({"type": "object", "required": ["value", "count"], "properties": {"value": {"type": "string"}, "count": {"type": "integer"}}});
    let facet = json!({"type": "object", "required": ["values", "others"], "properties": {
        "values": {"type": "array", "items": count},
        "others": {"type": "integer", "description": "Capabilities that have a value beyond those listed."}}});
    Definition {
        title: "Explore the index",
        description: "Counts the capabilities of the index, or those that match a query, by semantic type, dialect, safety, site and more. Use it to \
                      see what there is before searching.",
        semantic_type: "data:query",
        examples: &["what kinds of capabilities are there", "which sites offer travel"],
        input: object(
            &[],
            &json!({
                "query": {"type": "string", "maxLength": 1000, "description": "Count only the results of this query; without it, the whole index."},
                "by": words("What to count by.", FacetKey::ALL.iter().map(|key| key.as_str())),
                "format": words("Only these dialects.", Format::ALL.iter().map(|format| format.as_str())),
                "site": {"type": "array", "items": {"type": "string"}, "maxItems": 20, "description": "Only these domains."},
                "max_values": {"type": "integer", "minimum": 1, "maximum": VALUES_MAX, "default": VALUES_DEFAULT, "description": "Values of each facet at most."},
            }),
        ),
        output: json!({"type": "object", "required": ["facets", "text_is"], "properties": {
            "facets": {"type": "object", "additionalProperties": facet}, "text_is": {"type": "string"}}}),
    }
}

pub(super) async fn call(app: &App, client: Client, arguments: Arguments) -> Result<Value, Problem> {
    let values_max = arguments.max_values.unwrap_or(VALUES_DEFAULT);
    if !(1..=VALUES_MAX).contains(&values_max) {
        return Err(Problem::bad_request(format!("max_values is a whole number from 1 to {VALUES_MAX}")));
    }
    let mut keys = if arguments.by.is_empty() { BY_DEFAULT.to_vec() } else { arguments.by };
    keys.sort_unstable();
    keys.dedup();
    let query = arguments.query.trim();
    let formats = arguments.format.iter().map(|format| format.as_str());
    let filters = Filters::default()
        .with(FacetKey::Format, formats)
        .and_then(|filters| filters.with(FacetKey::Site, &arguments.site));
    let request = ExploreRequest {
        phrasings: if query.is_empty() { Vec::new() } else { vec![query.to_owned()] },
        filters: filters.map_err(|error| Problem::internal(&error))?,
        facets: keys.iter().map(|key| FacetRequest { key: *key, values_max, count_min: 1 }).collect(),
    };
    let counted = explore(&app.index, client, request).await?;
    let facets: Map<String, Value> = keys
        .iter()
        .zip(counted)
        .map(|(key, facet)| (key.to_string(), json!({"values": facet.values, "others": facet.other_count})))
        .collect();
    Ok(json!({"facets": facets, "text_is": UNTRUSTED}))
}

//! `find_capability`: what a wish finds, in compact rows; schemas on request.

use std::collections::HashMap;

use indexer::{Filters, Hit, Method, SearchRequest};
use manifest::{AuthScheme, CapabilityId, Format, SafetyClass};
use serde::Deserialize;
use serde_json::{Value, json};

use super::budget::{ANSWER_BYTES_MAX, fit, shed, size};
use super::{Definition, UNTRUSTED, object, short, words};
use crate::app::App;
use crate::client::Client;
use crate::parameters::unknown_value;
use crate::problem::Problem;
use crate::routes::search::{Found, each_behind, find};

/// Rows unless asked otherwise: a model chooses well between a handful.
const RESULTS_DEFAULT: u32 = 6;
/// Most rows.
const RESULTS_MAX: u32 = 20;
/// Characters of a description in a row.
const DESCRIPTION_CHARS: usize = 240;
/// Bytes of one row with its schemas: beyond, the schemas are left to `get_capability`.
const ROW_BYTES_MAX: usize = 4_000;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    #[serde(default)]
    query: String,
    max_results: Option<u32>,
    #[serde(default)]
    format: Vec<Format>,
    #[serde(default)]
    safety: Vec<SafetyClass>,
    #[serde(default)]
    auth: Vec<AuthScheme>,
    #[serde(default)]
    method: Vec<String>,
    #[serde(default)]
    site: Vec<String>,
    #[serde(default)]
    semantic_type: Vec<String>,
    #[serde(default)]
    invocable_only: bool,
    #[serde(default)]
    include_schemas: bool,
    cursor: Option<String>,
}

pub(super) fn definition() -> Definition {
    let texts = |description: &str| json!({"type": "array", "items": {"type": "string"}, "maxItems": 20, "description": description});
    let input = object(
        &[],
        &json!({
            "query": {"type": "string", "maxLength": 1000, "description": "What is wanted, in plain words, like \"book a table for two\"; may be left out when a filter is given."},
            "max_results": {"type": "integer", "minimum": 1, "maximum": RESULTS_MAX, "default": RESULTS_DEFAULT, "description": "Rows to answer at most."},
            "format": words("Only capabilities declared in one of these dialects.", Format::ALL.iter().map(|value| value.as_str())),
            "safety": words("Only capabilities of one of these classes.", SafetyClass::ALL.iter().map(|value| value.as_str())),
            "auth": words("Only capabilities that accept one of these schemes; none for those without authentication.", AuthScheme::ALL.iter().map(|value| value.as_str())),
            "method": words("Only capabilities called by one of these HTTP verbs.", Method::ALL.iter().map(|value| value.as_str())),
            "site": texts("Only capabilities of these domains."),
            "semantic_type": texts("Only these types, like travel:flight-booking or travel:*."),
            "invocable_only": {"type": "boolean", "default": false, "description": "Only capabilities whose declaration says how to call them."},
            "include_schemas": {"type": "boolean", "default": false, "description": "Add parameters and response as JSON Schema to each row."},
            "cursor": {"type": "string", "description": "next_cursor of the answer before, with the same arguments."},
        }),
    );
    let row = json!({"type": "object", "required": ["id", "name", "description", "site", "format", "safety", "confirmation", "invocable"], "properties": {
        "id": {"type": "string", "description": "For get_capability."}, "name": {"type": "string"},
        "description": {"type": ["string", "null"]}, "site": {"type": "string"}, "format": {"type": "string"},
        "semantic_type": {"type": ["string", "null"]}, "method": {"type": ["string", "null"]}, "endpoint": {"type": ["string", "null"]},
        "invocable": {"type": "boolean"}, "safety": {"type": "string"}, "confirmation": {"type": "string"},
        "auth": {"type": "array", "items": {"type": "string"}}, "auth_required": {"type": ["boolean", "null"]},
        "deprecated": {"type": "boolean"}, "status": {"type": "string"}, "score": {"type": "number"},
        "parameters": {"type": ["object", "null"]}, "response": {"type": ["object", "boolean", "null"]}}});
    let output = json!({"type": "object", "required": ["results", "total", "nothing_good", "text_is"], "properties": {
        "results": {"type": "array", "items": row}, "total": {"type": "integer"}, "total_is_exact": {"type": "boolean"},
        "nothing_good": {"type": "boolean", "description": "Nothing in the index speaks of what was asked."},
        "coverage": {"type": "number", "description": "How much of what was asked the best result speaks of, 0 to 1."},
        "advice": {"type": ["string", "null"]}, "did_you_mean": {"type": ["string", "null"]},
        "next_cursor": {"type": ["string", "null"]}, "truncated": {"type": "boolean", "description": "Rows or schemas were left out to keep the answer short."},
        "text_is": {"type": "string"}}});
    Definition {
        title: "Find a capability",
        description: "Search what web sites declare that agents can do. Give the wish in plain words; answers compact rows, best first. \
                      Says so when nothing good was found. Ask get_capability for one row's whole declaration before calling it.",
        semantic_type: "data:query",
        examples: &[
            "find a site that books flights",
            "which API forecasts the weather",
            "where can I file an insurance claim",
        ],
        input,
        output,
    }
}

pub(super) async fn call(app: &App, client: Client, arguments: Arguments) -> Result<Value, Problem> {
    let include_schemas = arguments.include_schemas;
    let found = find(app, client, request(arguments)?).await?;
    let mut rows: Vec<Value> = found.answer.hits.iter().map(row).collect();
    let mut is_cut = false;
    if include_schemas {
        (rows, is_cut) = with_schemas(app, client, &found.answer.hits, rows).await?;
    }
    is_cut |= fit(&mut rows, ANSWER_BYTES_MAX);
    Ok(answer(found, &rows, is_cut))
}

fn request(arguments: Arguments) -> Result<SearchRequest, Problem> {
    let limit = arguments.max_results.unwrap_or(RESULTS_DEFAULT);
    if !(1..=RESULTS_MAX).contains(&limit) {
        return Err(Problem::bad_request(format!("max_results is a whole number from 1 to {RESULTS_MAX}")));
    }
    let methods: Result<Vec<Method>, _> =
        arguments.method.iter().map(|method| Method::parse_loosely(method)).collect();
    let filters = Filters {
        formats: arguments.format,
        safety: arguments.safety,
        auth: arguments.auth,
        methods: methods.map_err(|error| unknown_value("method", &error))?,
        sites: arguments.site,
        semantic_types: arguments.semantic_type,
        invocable: arguments.invocable_only.then_some(true),
        ..Filters::default()
    };
    let query = arguments.query.trim();
    if query.is_empty() && filters.is_empty() {
        return Err(Problem::bad_request("give query, the wish in plain words, or at least one filter"));
    }
    let phrasings = if query.is_empty() { Vec::new() } else { vec![query.to_owned()] };
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    Ok(SearchRequest { phrasings, filters, limit, cursor: arguments.cursor, ..SearchRequest::default() })
}

fn row(hit: &Hit) -> Value {
    json!({
        "id": hit.id, "name": short(&hit.name, DESCRIPTION_CHARS),
        "description": hit.description.as_deref().map(|text| short(text, DESCRIPTION_CHARS)),
        "site": hit.site, "format": hit.format,
        "semantic_type": hit.semantic_types.first().map(|of| of.name.as_str()),
        "method": hit.method, "endpoint": hit.endpoint, "invocable": hit.invocable,
        "safety": hit.safety, "confirmation": hit.confirmation,
        "auth": hit.auth, "auth_required": hit.auth_required,
        "deprecated": hit.deprecated, "status": hit.status,
        "score": (f64::from(hit.score) * 100.0).round() / 100.0,
    })
}

/// True when the schemas of some row were too large for it.
async fn with_schemas(
    app: &App,
    client: Client,
    hits: &[Hit],
    mut rows: Vec<Value>,
) -> Result<(Vec<Value>, bool), Problem> {
    for row in rows.iter_mut().filter_map(Value::as_object_mut) {
        for name in ["parameters", "response"] {
            row.insert(name.to_owned(), Value::Null);
        }
    }
    let places: HashMap<CapabilityId, usize> = hits.iter().map(|hit| hit.id.clone()).zip(0..).collect();
    each_behind(app, client, hits, (rows, false), move |(rows, is_cut), _, capability| {
        let Some(row) = places.get(&capability.id).and_then(|place| rows.get_mut(*place)) else { return };
        for (name, schema) in [("parameters", &capability.parameters), ("response", &capability.response)] {
            let schema = schema.as_ref().unwrap_or(&Value::Null);
            // One that cannot fit is not copied.
            if size(schema) > ROW_BYTES_MAX {
                *is_cut = true;
            } else if let Some(row) = row.as_object_mut() {
                row.insert(name.to_owned(), schema.clone());
            }
        }
        *is_cut |=
            size(row) > ROW_BYTES_MAX && !shed(row, &["response", "parameters"], ROW_BYTES_MAX).is_empty();
    })
    .await
}

fn answer(found: Found, rows: &[Value], is_cut: bool) -> Value {
    let found = found.answer;
    let advice = if found.nothing_good {
        Some(
            "Nothing in the index speaks of this. Say it in other words, drop filters, or look at what there is with explore.",
        )
    } else if rows.is_empty() {
        Some("The filters leave nothing. Drop one, or look at what there is with explore.")
    } else if found.coverage < COVERAGE_WEAK {
        Some("No result speaks of all that was asked; look closely before using one.")
    } else {
        None
    };
    json!({
        "results": rows, "total": found.total, "total_is_exact": true,
        "nothing_good": found.nothing_good, "coverage": (f64::from(found.coverage) * 100.0).round() / 100.0,
        "advice": advice, "did_you_mean": found.did_you_mean,
        // A cursor leads behind the rows that were found, also behind those that were cut.
        "next_cursor": if is_cut { None } else { found.next_cursor },
        "truncated": is_cut, "text_is": UNTRUSTED,
    })
}

/// Coverage below which the best result speaks of less than half of what was asked.
const COVERAGE_WEAK: f32 = 0.5;

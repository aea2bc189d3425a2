//! The tools over plain HTTP: the route of each, `GET|POST /tools/{name}` with plain arguments, and
//! `POST /woa/{agent}` with the envelope of WoA (draft-gaikwad-woa-00 §5).

use axum::body::Bytes;
use axum::extract::Path;
use indexer::FacetKey;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::Tool;
use crate::body::fresh;
use crate::client::Client;
use crate::openapi::schemas::vocabulary;
use crate::parameters::QueryPairs;
use crate::permitted::off_runtime;
use crate::problem::Problem;
use crate::request::Request;
use crate::response::HttpResult;
use crate::state::App;

vocabulary! {
    ToolName = Tool,
}

/// The location of an argument in a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ArgumentLocation {
    Query,
    Path,
    Body,
}

/// A tool as a plain HTTP request.
#[derive(Debug, Clone)]
pub(crate) struct Route {
    pub(crate) method: &'static str,
    /// Path with variables in braces.
    pub(crate) path: &'static str,
    /// The arguments.
    pub(crate) inputs: Vec<Input>,
    /// Main members of the answer, with their JSON types.
    pub(crate) outputs: &'static [(&'static str, &'static str)],
}

#[derive(Debug, Clone)]
pub(crate) struct Input {
    pub(crate) name: String,
    pub(crate) location: ArgumentLocation,
    pub(crate) schema: Value,
    pub(crate) is_required: bool,
}

impl Tool {
    pub(crate) fn route(self) -> Route {
        let of_tool = |method, path, location| (method, path, self.inputs(location, &[]));
        let (method, path, inputs) = match self {
            Self::FindCapability => {
                let filters = super::find::filter_keys().map(FacetKey::as_str);
                let known: Vec<&str> = ["query"].into_iter().chain(filters).chain(["cursor"]).collect();
                let mut inputs = self.inputs(ArgumentLocation::Query, &known);
                for input in inputs.iter_mut().filter(|input| input.name == "query") {
                    "q".clone_into(&mut input.name);
                }
                ("GET", "/search", inputs)
            }
            Self::GetCapability => {
                ("GET", "/capabilities/{id}", self.inputs(ArgumentLocation::Path, &["id"]))
            }
            Self::GetSite => ("GET", "/sites/{domain}", self.inputs(ArgumentLocation::Path, &["domain"])),
            Self::RegistryStats => ("GET", "/stats", Vec::new()),
            Self::Explore => of_tool("GET", "/tools/explore", ArgumentLocation::Query),
            Self::ValidateManifest => of_tool("POST", "/tools/validate_manifest", ArgumentLocation::Body),
            Self::SubmitSite => of_tool("POST", "/tools/submit_site", ArgumentLocation::Body),
        };
        Route { method, path, inputs, outputs: self.outputs() }
    }

    /// The arguments of the tool, all or those named.
    fn inputs(self, location: ArgumentLocation, names: &[&str]) -> Vec<Input> {
        let schema = self.definition().input;
        let required = schema["required"].as_array().cloned().unwrap_or_default();
        let properties = schema["properties"].as_object().cloned().unwrap_or_default();
        let wanted =
            properties.into_iter().filter(|(name, _)| names.is_empty() || names.contains(&name.as_str()));
        wanted
            .map(|(name, schema)| Input {
                is_required: required.iter().any(|of| *of == name.as_str()),
                name,
                location,
                schema,
            })
            .collect()
    }

    const fn outputs(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::FindCapability => &[
                ("results", "array"),
                ("total", "integer"),
                ("nothing_good", "boolean"),
                ("next_cursor", "string"),
            ],
            Self::GetCapability => &[
                ("id", "string"),
                ("name", "string"),
                ("endpoint", "string"),
                ("parameters", "object"),
                ("safety", "string"),
            ],
            Self::Explore => &[("facets", "object")],
            Self::GetSite => {
                &[("site", "string"), ("status", "string"), ("manifests", "integer"), ("resources", "array")]
            }
            Self::ValidateManifest => {
                &[("format", "string"), ("conformance", "string"), ("findings", "array")]
            }
            Self::RegistryStats => {
                &[("sites", "integer"), ("manifests", "integer"), ("capabilities", "integer")]
            }
            Self::SubmitSite => &[("site", "string"), ("status_url", "string")],
        }
    }
}

pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(ask, run)).routes(routes!(invoke))
}

pub(crate) async fn run_by_name(
    app: &App,
    client: Client,
    name: &str,
    arguments: Map<String, Value>,
) -> Result<Value, Problem> {
    let tool: Tool = name.parse().map_err(|error: manifest::model::UnknownValue| {
        Problem::not_found(format!("\"{}\" is not a known {}", error.value, error.what)).with_known(Tool::ALL)
    })?;
    tool.call(app, client, arguments).await
}

/// Calls a read-only tool of the MCP server. Arguments are query parameters; lists are repeated or separated by commas.
#[utoipa::path(
    get,
    path = "/tools/{name}",
    tag = "tools",
    params(("name" = inline(ToolName), Path, description = "Name of a tool; `tools/list` of MCP lists its arguments")),
    responses((status = 200, description = "The answer of the tool", body = Object)),
)]
async fn ask(Request { app, client, query, .. }: Request, Path(name): Path<String>) -> HttpResult {
    let tool = name.parse::<Tool>().ok().filter(|tool| tool.is_read_only()).ok_or_else(|| {
        let reading = Tool::ALL.iter().filter(|tool| tool.is_read_only());
        Problem::not_found("no such tool answers GET").with_known(reading)
    })?;
    let schema = tool.definition().input;
    let mut arguments = Map::new();
    for (name, schema) in schema["properties"].as_object().into_iter().flatten() {
        if let Some(value) = argument(&query, name, schema)? {
            arguments.insert(name.clone(), value);
        }
    }
    let known: Vec<&str> =
        schema["properties"].as_object().into_iter().flatten().map(|(name, _)| name.as_str()).collect();
    query.only(&known)?;
    Ok(fresh(&tool.call(&app, client, arguments).await?))
}

fn argument(query: &QueryPairs, name: &str, schema: &Value) -> Result<Option<Value>, Problem> {
    match schema["type"].as_str() {
        Some("array") => {
            let values = query.list(name)?;
            Ok((!values.is_empty()).then(|| values.into_iter().map(Value::from).collect()))
        }
        Some("integer") => Ok(query.one_parsed::<i64>(name)?.map(Value::from)),
        Some("boolean") => Ok(query.one_parsed::<bool>(name)?.map(Value::from)),
        _ => Ok(query.one(name)?.map(Value::from)),
    }
}

/// Calls a tool of the MCP server.
#[utoipa::path(
    post,
    path = "/tools/{name}",
    tag = "tools",
    params(("name" = inline(ToolName), Path, description = "Name of a tool; `tools/list` of MCP lists its arguments")),
    request_body(content = Object, description = "Its arguments"),
    responses((status = 200, description = "The answer of the tool", body = Object)),
)]
async fn run(
    Request { app, client, query, .. }: Request,
    Path(name): Path<String>,
    bytes: Bytes,
) -> HttpResult {
    query.only(&[])?;
    let arguments = if bytes.is_empty() { Map::new() } else { body(bytes).await? };
    Ok(fresh(&run_by_name(&app, client, &name, arguments).await?))
}

/// Parses a JSON body outside the async runtime, because it may contain a large document to validate.
async fn body<T: DeserializeOwned + Send + 'static>(bytes: Bytes) -> Result<T, Problem> {
    off_runtime(move || manifest::budget::parse_within_budget(&bytes, &manifest::budget::REQUEST))
        .await?
        .map_err(|error| Problem::bad_request(format!("the body is not the JSON expected here: {error}")))
}

/// The envelope of an input in WoA.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = WoaEnvelope)]
struct Envelope {
    agent: Option<String>,
    /// `default`, or left out.
    operation: Option<String>,
    #[schema(value_type = Object)]
    input: Map<String, Value>,
}

/// Calls a tool as an agent of WoA.
#[utoipa::path(
    post,
    path = "/woa/{agent}",
    tag = "tools",
    params(("agent" = inline(ToolName), Path, description = "A tool")),
    request_body = Envelope,
    responses((status = 200, description = "The answer of the tool", body = Object)),
)]
async fn invoke(
    Request { app, client, query, .. }: Request,
    Path(agent): Path<String>,
    bytes: Bytes,
) -> HttpResult {
    query.only(&[])?;
    let envelope: Envelope = body(bytes).await?;
    if envelope.agent.as_ref().is_some_and(|named| *named != agent) {
        let detail = "\"agent\" in the envelope differs from the agent in the URL";
        return Err(Problem::bad_request(detail).with_parameter("agent"));
    }
    if envelope.operation.as_deref().is_some_and(|operation| operation != "default") {
        let detail = "these agents have only one operation: omit \"operation\"";
        return Err(Problem::bad_request(detail).with_parameter("operation"));
    }
    Ok(fresh(&run_by_name(&app, client, &agent, envelope.input).await?))
}

//! One operation of an OpenAPI document as a capability.
//!
//! Decides identity (`operationId`, or `METHOD path` if there is none or it was used before), address, input, response, credentials, safety
//! by method, idempotency and execution. Callbacks and webhooks are calls that the service makes, so they are not capabilities.
//!
//! Follows OpenAPI 3.1 §4.8.10 and §4.8.16, and RFC 9110 §9.2 for the properties of methods.

use serde_json::{Map, Value};

use super::parameters::{Input, Parameters, collect, is_true, path_names, preferred_media};
use super::{Reading, payment, rules, security, servers};
use crate::draft::{self, Draft};
use crate::format::lenient;
use crate::model::{
    Capability, CapabilityKind, Confirmation, ExecutionModel, Invocation, Protocol, Tristate,
};
use crate::name::URL_BYTES_MAX;
use crate::object;
use crate::reference::Resolver;
use crate::schema;

/// Maximum number of successful responses of one operation that are read: a hundred codes and `2XX`.
const SUCCESSES_MAX: usize = 101;

/// An operation with its path item.
pub(super) struct PathOperation<'a> {
    pub(super) path: &'a str,
    pub(super) method: &'static str,
    pub(super) item: &'a Map<String, Value>,
    pub(super) operation: &'a Map<String, Value>,
    pub(super) pointer: String,
}

/// The `operationId` of an operation.
pub(super) fn declared_id(operation: &Map<String, Value>) -> Option<&str> {
    operation.get("operationId").and_then(Value::as_str).map(str::trim).filter(|id| !id.is_empty())
}

pub(super) fn read<'a>(
    reading: &Reading<'a>,
    path_operation: &PathOperation<'a>,
    draft: &mut Draft<'_>,
    resolver: &mut Resolver<'a>,
) -> Capability {
    let operation = path_operation.operation;
    let text =
        |name: &str| operation.get(name).and_then(Value::as_str).map(str::trim).filter(|t| !t.is_empty());
    let nameless = format!("{} {}", path_operation.method, path_operation.path);
    let id = declared_id(operation).unwrap_or(&nameless);
    let name = text("summary").or_else(|| declared_id(operation).is_none().then_some(id)).unwrap_or_default();
    let mut capability =
        draft.capability(CapabilityKind::Operation, id, name, path_operation.pointer.clone());
    if reading.document != draft.base() {
        capability.pointer_document = Some(reading.document.as_str().to_owned());
    }
    capability.title = draft::name(text("summary"));
    let shared = path_operation.item.get("description").and_then(Value::as_str);
    capability.description = draft::description(text("description").or(shared));
    capability.tags = operation.get("tags").map(|tags| draft::tags(object::texts(tags))).unwrap_or_default();
    capability.deprecated = is_true(operation, "deprecated");
    address(reading, path_operation, &mut capability);
    let lists = [path_operation.item.get("parameters"), operation.get("parameters")];
    let parameters = collect(lists, resolver, &path_operation.pointer);
    rules::check_variables(path_operation.path, &path_names(&parameters), &path_operation.pointer, draft);
    capability.parameters =
        input(operation, &parameters, resolver, &path_operation.pointer, &capability.invocation);
    capability.auth = match operation.get("security") {
        Some(security) => security::requirement(Some(security), &reading.schemes),
        None => reading.auth.clone(),
    };
    let is_unstated = capability.auth.required == Tristate::Unknown && capability.auth.schemes.is_empty();
    if is_unstated && capability.description.as_deref().is_some_and(lenient::says_call_is_open) {
        capability.auth.required = Tristate::No;
    }
    if matches!(path_operation.method, "PUT" | "DELETE") {
        // RFC 9110 §9.2.2: these methods are idempotent.
        capability.idempotency.supported = Some(true);
        capability.inferred.insert("idempotency".to_owned(), "idempotency.http-method".to_owned());
    }
    consequence(operation, &mut capability);
    documentation(operation, draft, &mut capability);
    capability.price = payment::price(operation);
    response(operation, resolver, &path_operation.pointer, &mut capability);
    capability
}

fn address(reading: &Reading<'_>, path_operation: &PathOperation<'_>, capability: &mut Capability) {
    let lists = [path_operation.operation.get("servers"), path_operation.item.get("servers")];
    let base = if lists.iter().flatten().any(|servers| servers::is_listed(servers)) {
        servers::base_url(&lists, reading.root, reading.document)
    } else {
        reading.base.clone()
    };
    let invocation = &mut capability.invocation;
    invocation.protocol = Some(Protocol::Http);
    invocation.method = Some(path_operation.method.to_owned());
    invocation.native = declared_id(path_operation.operation).map(str::to_owned);
    let Some(base) = base else { return };
    let slash = if path_operation.path.starts_with('/') { "" } else { "/" };
    let url = format!("{base}{slash}{}", path_operation.path);
    if url.contains('{') {
        invocation.url_template = Some(url);
    } else {
        invocation.url = Some(url);
    }
}

fn input<'a>(
    operation: &'a Map<String, Value>,
    parameters: &Parameters<'a>,
    resolver: &mut Resolver<'a>,
    pointer: &str,
    invocation: &Invocation,
) -> Option<Value> {
    let mut input = Input::default();
    input.add_parameters(parameters, resolver, pointer);
    let body = operation.get("requestBody").and_then(|body| resolver.object(body, pointer));
    if let Some(body) = body
        && let Some((media_type, media)) = body.get("content").and_then(preferred_media)
    {
        let any = Value::Object(Map::new());
        let unusual = (!media_type.starts_with("application/json")).then_some(media_type);
        let schema = media.get("schema").unwrap_or(&any);
        input.add_body(schema, is_true(body, "required"), unusual, resolver, pointer);
    }
    let states_none = body.is_none() && operation.get("parameters").is_some_and(schema::is_empty_statement);
    input.into_schema().or_else(|| states_none.then(|| schema::without_parameters(invocation)).flatten())
}

/// The page about the operation: its `externalDocs`, with an absolute address.
fn documentation(operation: &Map<String, Value>, draft: &Draft<'_>, capability: &mut Capability) {
    let Some(docs) = operation.get("externalDocs").and_then(Value::as_object) else { return };
    let url = docs.get("url").and_then(Value::as_str).filter(|url| url.len() <= URL_BYTES_MAX);
    let url = url.and_then(|url| draft.origin_url(url)).filter(|url| draft.not_public(url).is_none());
    let Some(url) = url else { return };
    let mut kept = Map::from_iter([("url".to_owned(), Value::from(url))]);
    let described = draft::description(docs.get("description").and_then(Value::as_str));
    kept.extend(described.map(|text| ("description".to_owned(), Value::from(text))));
    capability.published.insert("externalDocs".to_owned(), Value::Object(kept));
}

/// `x-openai-isConsequential`: a person confirms every call.
fn consequence(operation: &Map<String, Value>, capability: &mut Capability) {
    if is_true(operation, "x-openai-isConsequential") {
        capability.safety.confirmation = Confirmation::Required;
    }
}

fn response<'a>(
    operation: &'a Map<String, Value>,
    resolver: &mut Resolver<'a>,
    pointer: &str,
    capability: &mut Capability,
) {
    let Some(responses) = operation.get("responses").and_then(Value::as_object) else { return };
    let mut successes: Vec<&String> =
        responses.keys().filter(|code| code.starts_with('2')).take(SUCCESSES_MAX).collect();
    successes.sort();
    if successes.as_slice() == ["202"] {
        capability.execution.model = ExecutionModel::Async;
        capability.inferred.insert("execution".to_owned(), "execution.openapi-accepted".to_owned());
    }
    let with_schema = successes
        .into_iter()
        .chain(responses.get_key_value("default").map(|(code, _)| code))
        .filter_map(|code| responses.get(code))
        .find_map(|response| response_schema(resolver.object(response, pointer)?));
    let Some((media_type, schema)) = with_schema else { return };
    if media_type == "text/event-stream" {
        capability.execution.model = ExecutionModel::Stream;
        capability.inferred.insert("execution".to_owned(), "execution.openapi-event-stream".to_owned());
    }
    capability.response = schema.map(|schema| resolver.schema(schema, pointer));
}

/// The media type and schema of a response that has a body.
fn response_schema(response: &Map<String, Value>) -> Option<(&str, Option<&Value>)> {
    match response.get("content").and_then(preferred_media) {
        Some((media_type, media)) => Some((media_type, media.get("schema"))),
        None => response.get("schema").map(|schema| ("", Some(schema))),
    }
}

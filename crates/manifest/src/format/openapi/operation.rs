//! One operation of an OpenAPI document as a capability.
//!
//! Decides identity (`operationId`, or `METHOD path` where there is none or it was used before), address, input, response,
//! credentials, safety by method, idempotency and execution. Callbacks and webhooks are calls that the service makes, so
//! they are no capabilities.
//!
//! Follows OpenAPI 3.1 §4.8.10 and §4.8.16, RFC 9110 §9.2 for what a method promises.

use serde_json::{Map, Value};

use super::parameters::{Input, Parameters, collect, is_true, preferred_media};
use super::schema::Resolver;
use super::{Reading, security, servers};
use crate::model::{
    Capability, CapabilityKind, Confirmation, ExecutionModel, Protocol, SafetyClass, TypeSource,
};

/// Tags of one operation that are kept.
const TAGS_MAX: usize = 20;

/// Where an operation stands in its document.
pub(super) struct Place<'a> {
    pub(super) path: &'a str,
    pub(super) method: &'static str,
    pub(super) item: &'a Map<String, Value>,
    pub(super) operation: &'a Map<String, Value>,
    pub(super) pointer: String,
}

/// Reads one operation. `native_id` is already unique in the document.
pub(super) fn read<'a>(
    reading: &Reading<'a>,
    place: &Place<'a>,
    native_id: &str,
    resolver: &mut Resolver<'a>,
) -> Capability {
    let operation = place.operation;
    let text =
        |name: &str| operation.get(name).and_then(Value::as_str).map(str::trim).filter(|t| !t.is_empty());
    let target = reading.target;
    let mut capability = Capability::new(
        target.manifest,
        target.format,
        native_id,
        text("summary").unwrap_or(native_id),
        CapabilityKind::Operation,
        place.pointer.clone(),
    );
    if target.document != target.manifest {
        capability.pointer_document = Some(target.document.as_str().to_owned());
    }
    capability.title = text("summary").map(str::to_owned);
    capability.description = text("description")
        .or_else(|| place.item.get("description").and_then(Value::as_str))
        .map(str::to_owned);
    capability.tags = strings(operation.get("tags"), TAGS_MAX);
    capability.deprecated = is_true(operation, "deprecated");
    address(reading, place, native_id, &mut capability);
    let parameters =
        collect([place.item.get("parameters"), operation.get("parameters")], resolver, &place.pointer);
    capability.parameters = input(operation, &parameters, resolver, &place.pointer);
    let security = operation.get("security").or_else(|| reading.root.get("security"));
    capability.auth = security::requirement(security, &reading.schemes);
    by_method(place.method, &mut capability);
    consequence(operation, &mut capability);
    response(operation, resolver, &place.pointer, &mut capability);
    capability
}

fn address(reading: &Reading<'_>, place: &Place<'_>, native_id: &str, capability: &mut Capability) {
    let lists = [place.operation.get("servers"), place.item.get("servers"), reading.root.get("servers")];
    let base = servers::base_url(lists, reading.root, reading.target.document);
    let slash = if place.path.starts_with('/') { "" } else { "/" };
    let url = format!("{base}{slash}{}", place.path);
    let invocation = &mut capability.invocation;
    invocation.protocol = Some(Protocol::Http);
    invocation.method = Some(place.method.to_owned());
    invocation.native = Some(native_id.to_owned());
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
    input.into_schema()
}

/// What the method alone promises (RFC 9110 §9.2.1 and §9.2.2).
fn by_method(method: &str, capability: &mut Capability) {
    capability.safety.class = match method {
        "GET" | "HEAD" | "OPTIONS" | "TRACE" | "QUERY" => SafetyClass::Read,
        "DELETE" => SafetyClass::Destructive,
        _ => SafetyClass::Write,
    };
    capability.safety.source = TypeSource::Inferred;
    capability.inferred.insert("safety".to_owned(), "http.method".to_owned());
    if matches!(method, "PUT" | "DELETE") {
        capability.idempotency.supported = Some(true);
        capability.inferred.insert("idempotency".to_owned(), "http.method".to_owned());
    }
}

/// `x-openai-isConsequential`: the publisher wants a person asked before every call.
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
    let mut successes: Vec<&String> = responses.keys().filter(|code| code.starts_with('2')).collect();
    successes.sort();
    if successes.as_slice() == ["202"] {
        capability.execution.model = ExecutionModel::Async;
        capability.inferred.insert("execution".to_owned(), "openapi.accepted".to_owned());
    }
    let with_schema = successes
        .into_iter()
        .chain(responses.get_key_value("default").map(|(code, _)| code))
        .filter_map(|code| responses.get(code))
        .find_map(|response| response_schema(resolver.object(response, pointer)?));
    let Some((media_type, schema)) = with_schema else { return };
    if media_type == "text/event-stream" {
        capability.execution.model = ExecutionModel::Stream;
        capability.inferred.insert("execution".to_owned(), "openapi.event_stream".to_owned());
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

pub(super) fn strings(value: Option<&Value>, count_max: usize) -> Vec<String> {
    let items = value.and_then(Value::as_array).into_iter().flatten();
    items.filter_map(Value::as_str).take(count_max).map(str::to_owned).collect()
}

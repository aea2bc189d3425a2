//! Reads the method and parameters of an x402 resource from its payment requirements and extensions: `outputSchema.input` (v1),
//! `extensions.bazaar` (v2), `metadata`.

use serde_json::{Map, Value};

use crate::address;
use crate::model::Invocation;
use crate::object::Object;
use crate::schema;

/// Maximum number of payment requirements of one resource that are searched.
const ACCEPTS_MAX: usize = 20;
/// Names of the parts of a request in v1, and those under which schemas are read.
const PARTS: &[(&[&str], &str)] = &[
    (&["queryParams", "query_params", "query"], "queryParams"),
    (&["bodyFields", "body_fields", "bodyParams", "body"], "bodyParams"),
    (&["pathParams", "path_params"], "pathParams"),
    (&["headerFields", "header_fields", "headers"], "headerParams"),
];

/// The HTTP method that the descriptions of the request state.
pub(crate) fn method(resource: &Object<'_>) -> Option<String> {
    let constant = |schema: &Value| {
        let first = || schema.get("enum")?.as_array()?.first();
        schema.as_str().or_else(|| schema.get("const").or_else(first)?.as_str()).map(str::to_ascii_uppercase)
    };
    let stated = inputs(resource).into_iter().filter_map(|input| constant(input.get("method")?));
    stated.filter(|method| address::is_method(method)).take(1).next()
}

/// The parameters of the request, from the first description that has any.
pub(crate) fn parameters(resource: &Object<'_>, invocation: &Invocation) -> Option<Value> {
    inputs(resource).into_iter().find_map(|input| {
        let parts = PARTS.iter().filter_map(|(keys, part)| {
            let value = keys.iter().find_map(|key| input.get(*key)).filter(|value| value.is_object())?;
            Some(((*part).to_owned(), value.clone()))
        });
        let call: Map<String, Value> = parts.collect();
        schema::of_call(&call, invocation).or_else(|| {
            let whole = schema::is_schema(input) && call.is_empty();
            whole.then(|| schema::lenient(&Value::Object(input.clone()), invocation)).flatten()
        })
    })
}

/// Every description of the request of a resource; schemas come before examples.
fn inputs<'v>(resource: &Object<'v>) -> Vec<&'v Map<String, Value>> {
    let accepts = resource.objects("accepts").take(ACCEPTS_MAX);
    let holders: Vec<Object<'v>> =
        std::iter::once(resource.clone()).chain(resource.object("resource")).chain(accepts).collect();
    let mut found = Vec::new();
    for holder in &holders {
        let bazaar = holder.object("extensions").and_then(|extensions| extensions.object("bazaar"));
        let schema = bazaar.as_ref().and_then(|bazaar| {
            bazaar.object("schema")?.object("properties")?.object("input")?.object("properties")
        });
        let info = bazaar.as_ref().and_then(|bazaar| bazaar.object("info")?.object("input"));
        let output =
            holder.object_of(&["outputSchema", "output_schema"]).and_then(|output| output.object("input"));
        let metadata = holder.object("metadata");
        let metadata =
            metadata.and_then(|metadata| metadata.object_of(&["inputSchema", "input_schema", "input"]));
        found.extend([schema, output, metadata, info].into_iter().flatten().map(|input| input.map));
    }
    found
}

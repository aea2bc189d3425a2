//! Reads the examples of an element that are calls.

use serde_json::{Map, Value};

use crate::budget;
use crate::object::Object;
use crate::unread;

/// Members with the input and the output of an example of a call.
const INPUT_EXAMPLE_KEYS: &[&str] = &[
    "inputExample",
    "input_example",
    "exampleInput",
    "example_input",
    "exampleRequest",
    "example_request",
    "requestExample",
    "request_example",
];
const OUTPUT_EXAMPLE_KEYS: &[&str] = &[
    "outputExample",
    "output_example",
    "exampleOutput",
    "example_output",
    "exampleResponse",
    "example_response",
    "responseExample",
    "response_example",
];

/// Members of an example that is a call.
const SHOWN_KEYS: &[&str] = &["input", "output", "request", "response", "params", "arguments", "result"];
/// Maximum number of examples of one element that are calls, and maximum number of bytes of all of them. Larger ones are not kept.
const SHOWN_MAX: usize = 10;
const SHOWN_BYTES_MAX: usize = 8 * 1_024;

/// The examples of an element that are calls with their input and output, as published, without those that may hold a secret: `{"input":
/// {"q": "tea"}, "output": {"n": 1}}`.
pub(crate) fn shown(object: &Object<'_>) -> Option<(String, Value)> {
    let is_call =
        |item: &&Value| SHOWN_KEYS.iter().any(|key| item.get(key).is_some_and(|part| !part.is_null()));
    let listed = ["examples", "example"].into_iter().find_map(|key| {
        let value = object.value(key)?;
        let one = Some(value).filter(|value| value.is_object());
        let listed = value
            .as_array()
            .into_iter()
            .flatten()
            .chain(one)
            .filter(is_call)
            .filter(|item| !unread::holds_secret(item));
        let shown: Vec<Value> = listed.take(SHOWN_MAX).cloned().collect();
        let bytes = shown.iter().map(|call| call.to_string().len()).sum::<usize>();
        (!shown.is_empty() && bytes <= SHOWN_BYTES_MAX).then_some(shown)
    });
    let shown = listed.or_else(|| call_in_members(object).map(|call| vec![call]))?;
    Some(("examples".to_owned(), Value::Array(shown)))
}

/// The example of a call in two members of the element: `{"inputExample": {"q": "tea"}, "outputExample": {"n": 1}}`.
fn call_in_members(object: &Object<'_>) -> Option<Value> {
    let parts = [("input", INPUT_EXAMPLE_KEYS), ("output", OUTPUT_EXAMPLE_KEYS)];
    let stated = parts.into_iter().filter_map(|(part, keys)| Some((part, object.value_of(keys)?.clone())));
    let call = Value::Object(stated.map(|(part, value)| (part.to_owned(), value)).collect());
    let is_kept = call != Value::Object(Map::new())
        && !unread::holds_secret(&call)
        && budget::bytes_of(&call, SHOWN_BYTES_MAX) <= SHOWN_BYTES_MAX;
    is_kept.then_some(call)
}

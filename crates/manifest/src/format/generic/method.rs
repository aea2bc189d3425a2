//! The method of a call that an element describes, in a separate member or in an example.

use super::element::{ADDRESS_KEYS, BASE_BYTES_MAX};
use crate::address;
use crate::model::{Capability, Protocol};
use crate::object::Object;

/// Members that name the method of a call.
const METHOD_KEYS: &[&str] = &["method", "methods", "http_method", "httpMethod", "verb"];

/// The HTTP methods of an element; one absent method if it names none.
pub(super) fn methods(object: &Object<'_>, prefixed: Option<&str>) -> Vec<Option<String>> {
    let mut methods: Vec<Option<String>> = Vec::new();
    let words = METHOD_KEYS
        .iter()
        .flat_map(|key| object.texts(key))
        .flat_map(|text| text.split([',', '|', '/', ' ']));
    for word in words.map(str::to_ascii_uppercase).filter(|word| address::is_method(word)) {
        if !methods.iter().flatten().any(|known| *known == word) {
            methods.push(Some(word));
        }
    }
    if methods.is_empty() {
        methods.push(prefixed.or_else(|| method_of_example(object)).map(str::to_owned));
    }
    methods
}

/// The example call of an object that lists several addresses.
pub(super) fn example_of_list(object: &Object<'_>) -> Option<String> {
    let example = object.text("example").filter(|text| text.len() <= BASE_BYTES_MAX)?;
    object.list("endpoints").is_some().then(|| example.to_owned())
}

/// The method of an example call of the same address: `"example": "GET /prices?ticker=AAPL"`.
fn method_of_example<'v>(object: &Object<'v>) -> Option<&'v str> {
    let address = object.text_of(ADDRESS_KEYS.within(object))?;
    method_of_call(object.text("example")?, address)
}

/// The method of a call in a text, if the call has this address.
pub(super) fn method_of_call<'t>(text: &'t str, address: &str) -> Option<&'t str> {
    let (method, call) = address::split_method(text);
    let rest = call.strip_prefix(address).unwrap_or("-");
    method.filter(|_| rest.is_empty() || rest.starts_with(['?', ' ', '/']))
}

/// Sets the protocol of an address whose method is not an HTTP method: `"method": "WS"`.
pub(super) fn set_socket(object: &Object<'_>, capability: &mut Capability) {
    let is_socket =
        |method: &str| ["WS", "WSS", "WEBSOCKET"].iter().any(|word| method.eq_ignore_ascii_case(word));
    let invocation = &mut capability.invocation;
    if !object.text_of(METHOD_KEYS).is_some_and(is_socket) || invocation.endpoint().is_none() {
        return;
    }
    invocation.protocol = Some(Protocol::WebSocket);
    for address in [&mut invocation.url, &mut invocation.url_template].into_iter().flatten() {
        if let Some(rest) = address.strip_prefix("http") {
            *address = ["ws", rest].concat();
        }
    }
}

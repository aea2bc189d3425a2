//! Methods of a JSON-RPC server that a document lists by name next to its protocol.

use serde_json::json;

use crate::draft::Draft;
use crate::model::{Capability, CapabilityKind, Protocol};
use crate::object::{Object, texts};

/// Maximum number of methods of one document that are read.
const METHODS_MAX: usize = 200;

/// Adds each listed method, and makes a described capability of the same name callable.
pub(super) fn read(root: &Object<'_>, draft: &mut Draft<'_>) {
    let inner = root.members().map(|(_, inner)| inner);
    let Some(server) = std::iter::once(root.clone()).chain(inner).find(is_rpc) else { return };
    let blocks = ["endpoints", "endpoint"].iter().filter_map(|key| server.object(key));
    let published = std::iter::once(server.clone())
        .chain(blocks)
        .find_map(|block| block.text_of(&["rpc", "jsonrpc", "json_rpc", "rpc_url", "endpoint", "url"]));
    let url = published.and_then(|text| draft.origin_url(text));
    let names = server.value_of(METHOD_KEYS).map(texts).unwrap_or_default();
    for (index, name) in names.into_iter().enumerate().take(METHODS_MAX) {
        let known = draft.manifest.capabilities.iter_mut().find(|capability| capability.native_id == name);
        if let Some(capability) = known {
            set_call(capability, name, url.as_deref());
        } else {
            let pointer = format!("{}/{index}", server.at(method_key(&server)));
            let mut capability = draft.capability(CapabilityKind::Operation, name, name, pointer);
            set_call(&mut capability, name, url.as_deref());
            draft.push(capability);
        }
    }
}

fn set_call(capability: &mut Capability, name: &str, url: Option<&str>) {
    let invocation = &mut capability.invocation;
    if invocation.endpoint().is_none() {
        invocation.protocol = Some(Protocol::Other);
        invocation.native = Some(name.to_owned());
        invocation.url = url.map(str::to_owned);
        invocation.envelope = Some(json!({"jsonrpc": "2.0", "method": name, "params": "{parameters}"}));
    }
}

const METHOD_KEYS: &[&str] = &["supported_methods", "supportedMethods", "rpc_methods", "methods"];

fn method_key(server: &Object<'_>) -> &'static str {
    METHOD_KEYS.iter().copied().find(|key| server.has(key)).unwrap_or_default()
}

/// Whether an object names a JSON-RPC protocol next to a list of methods.
fn is_rpc(object: &Object<'_>) -> bool {
    let protocol =
        object.text_of(&["protocol", "transport", "type"]).unwrap_or_default().to_ascii_lowercase();
    (protocol.contains("json-rpc") || protocol.contains("jsonrpc"))
        && object.value_of(METHOD_KEYS).is_some_and(serde_json::Value::is_array)
}

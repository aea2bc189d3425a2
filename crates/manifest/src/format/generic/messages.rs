//! Messages that clients send over a WebSocket, which a document lists next to its address.

use serde_json::{Map, Value};

use crate::draft::Draft;
use crate::format::{header, outbound};
use crate::json::at_name;
use crate::model::{CapabilityKind, Protocol};
use crate::object::{Object, children};
use crate::schema;

/// Maximum number of messages of one document that are read.
const MESSAGES_MAX: usize = 200;
const MESSAGE_KEYS: &[&str] = &[
    "client_messages",
    "clientMessages",
    "messages_from_client",
    "messagesFromClient",
    "client_to_server",
    "clientToServer",
    "client_events",
    "clientEvents",
];

/// Adds each message of a client as an operation of the WebSocket, if the document names one. The wire format of a message is not stated,
/// so the declaration is not enough to send one.
pub(super) fn read(root: &Object<'_>, draft: &mut Draft<'_>) {
    let Some((holder, key)) = listed(root) else { return };
    let Some((url, is_template)) = socket(root, draft) else { return };
    let Some(messages) = holder.value(key) else { return };
    for (name, message, pointer) in children(messages, &holder.at(key)).take(MESSAGES_MAX) {
        let Some(map) = message.as_object() else { continue };
        let message = Object::new(map, pointer);
        let Some(name) = message.text_of(&["type", "name", "event", "id"]).or(name) else { continue };
        let mut capability = draft.capability(CapabilityKind::Operation, name, name, message.pointer.clone());
        capability.description = header::description_of(&message);
        let invocation = &mut capability.invocation;
        invocation.protocol = Some(Protocol::WebSocket);
        let address = if is_template { &mut invocation.url_template } else { &mut invocation.url };
        *address = Some(url.clone());
        capability.parameters = schema::of_call(message.map, &capability.invocation);
        draft.push(capability);
    }
}

/// The object that lists the messages: the root, a block of any name, or a block in it.
fn listed<'v>(root: &Object<'v>) -> Option<(Object<'v>, &'static str)> {
    if let Some(key) = key_in(root.map) {
        return Some((root.clone(), key));
    }
    let blocks = || root.map.iter().filter_map(|(name, block)| Some((name, block.as_object()?)));
    let direct = blocks().find_map(|(name, block)| Some((Object::new(block, root.at(name)), key_in(block)?)));
    direct.or_else(|| {
        blocks().find_map(|(name, block)| {
            let mut inner = block.iter().filter_map(|(name, inner)| Some((name, inner.as_object()?)));
            let (inner_name, inner, key) =
                inner.find_map(|(name, inner)| Some((name, inner, key_in(inner)?)))?;
            Some((Object::new(inner, at_name(&root.at(name), inner_name)), key))
        })
    })
}

/// The member of a map that lists messages.
fn key_in(map: &Map<String, Value>) -> Option<&'static str> {
    let may_be = |name: &&String| name.starts_with("client") || name.starts_with("messages");
    let is_list = |name: &&String| map.get(*name).is_some_and(|value| value.is_array() || value.is_object());
    let mut names = map.keys().filter(may_be).filter(is_list);
    names.find_map(|name| MESSAGE_KEYS.iter().copied().find(|key| key == name))
}

/// The first address of a WebSocket that a document names, and whether it has variables.
fn socket(root: &Object<'_>, draft: &Draft<'_>) -> Option<(String, bool)> {
    let mut found = None;
    outbound::each_text(root.map, &mut |text| {
        let is_socket = (text.starts_with("wss://") || text.starts_with("ws://")) && !text.contains(' ');
        found = found.or_else(|| is_socket.then_some(text));
    });
    if let Some(url) = found.and_then(|url| draft.origin_url(url)) {
        return Some((url, false));
    }
    let mut sockets = draft.manifest.capabilities.iter().map(|capability| &capability.invocation);
    let socket =
        sockets.find(|call| call.protocol == Some(Protocol::WebSocket) && call.endpoint().is_some())?;
    Some((socket.endpoint()?.to_owned(), socket.url.is_none()))
}

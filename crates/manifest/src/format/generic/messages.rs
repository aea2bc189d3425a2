//! Messages that clients send over a WebSocket, which a document lists beside its address.

use crate::draft::Draft;
use crate::format::{header, outbound};
use crate::model::{CapabilityKind, Protocol};
use crate::object::Object;
use crate::schema;

/// Messages of one document that are read.
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
/// Blocks that describe a connection.
const BLOCKS: &[&str] = &["protocol", "websocket", "webSocket", "ws", "transport", "realtime", "streaming"];

/// Adds each message of a client as an operation of the WebSocket, if the document names one. What a message looks like on
/// the wire is not stated, so that none can be sent by its declaration alone.
pub(super) fn read(root: &Object<'_>, draft: &mut Draft<'_>) {
    let holders: Vec<Object<'_>> = std::iter::once(root.clone()).chain(root.object("transport")).collect();
    let blocks = holders.iter().flat_map(|holder| BLOCKS.iter().filter_map(|key| holder.object(key)));
    let listed = holders.iter().cloned().chain(blocks).find_map(|holder| {
        let key = MESSAGE_KEYS.iter().copied().find(|key| holder.list(key).is_some())?;
        Some((holder, key))
    });
    let Some((holder, key)) = listed else { return };
    let Some(url) = socket(root).and_then(|url| draft.origin_url(url)) else { return };
    for message in holder.objects(key).take(MESSAGES_MAX) {
        let Some(name) = message.text_of(&["type", "name", "event", "id"]) else { continue };
        let mut capability = draft.capability(CapabilityKind::Operation, name, name, message.pointer.clone());
        capability.description = header::description_of(&message);
        capability.invocation.protocol = Some(Protocol::WebSocket);
        capability.invocation.url = Some(url.clone());
        capability.parameters = schema::of_call(message.map, &capability.invocation);
        draft.push(capability);
    }
}

/// The first address of a WebSocket that a document names.
fn socket<'v>(root: &Object<'v>) -> Option<&'v str> {
    let mut found = None;
    outbound::each_text(root.map, &mut |text| {
        let is_socket = (text.starts_with("wss://") || text.starts_with("ws://")) && !text.contains(' ');
        found = found.or_else(|| is_socket.then_some(text));
    });
    found
}

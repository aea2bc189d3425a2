//! Servers at the addresses of a document.

use serde_json::{Map, Value};

use super::is_plain;
use crate::draft::{self, Draft};
use crate::model::{Interface, Protocol};
use crate::object::member;
use crate::text;

/// Maximum number of servers of one document that are added.
const INTERFACES_MAX: usize = 50;

/// The server at an address, with what the object that contains the address states about it.
pub(super) fn server_at(
    names: &[&str],
    (protocol, url): (Protocol, String),
    owner: Option<&Map<String, Value>>,
) -> Interface {
    let text_of = |keys: &[&str]| keys.iter().find_map(|key| member(owner?, key)?.as_str());
    // The version in the block of a protocol belongs to the protocol.
    let block = names.len().checked_sub(2).and_then(|at| names.get(at)).copied().unwrap_or_default();
    let is_of_protocol = text::words(block).iter().any(|word| word == protocol.as_str());
    let keys: &[&str] = if is_of_protocol {
        &["protocol_version", "protocolVersion", "version"]
    } else {
        &["protocol_version", "protocolVersion"]
    };
    let version = draft::name(text_of(keys));
    let transport = draft::name(text_of(&["transport"])).filter(|_| protocol == Protocol::Mcp);
    let mut server = Interface { version, transport, ..Interface::new(protocol, Some(url)) };
    let is_own = names.last().is_some_and(|name| is_plain(name));
    let described = draft::description(text_of(&["description", "summary"]).filter(|_| is_own));
    server.settings.extend(described.map(|text| ("description".to_owned(), Value::from(text))));
    server
}

/// Completes the known server of this protocol and address with what another member states. Returns the server if it is not known.
pub(super) fn complete_server(server: Interface, draft: &mut Draft<'_>) -> Option<Interface> {
    let mut interfaces = draft.manifest.interfaces.iter_mut();
    let Some(known) = interfaces.find(|known| known.protocol == server.protocol && known.url == server.url)
    else {
        return Some(server);
    };
    known.version = known.version.take().or(server.version);
    known.transport = known.transport.take().or(server.transport);
    for (name, value) in server.settings {
        known.settings.entry(name).or_insert(value);
    }
    None
}

pub(super) fn add_server(interface: Interface, draft: &mut Draft<'_>) {
    if draft.manifest.interfaces.len() < INTERFACES_MAX {
        draft.keep(interface);
    }
}

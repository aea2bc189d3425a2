//! Addresses of MCP servers in any published shape: `remotes`, `transport`, a single URL, a list of servers, the command
//! lines of a client configuration.
//!
//! A command is kept as a declared transport without address; it is never run.

use serde_json::Value;

use super::rules;
use crate::draft::{self, Draft};
use crate::model::{CapabilityKind, Interface, Protocol};
use crate::object::Object;

/// Members with the address of a server.
const ADDRESS_KEYS: &[&str] = &[
    "endpoint",
    "url",
    "serverUrl",
    "server_url",
    "mcp_endpoint",
    "mcpEndpoint",
    "mcp_server",
    "mcp_url",
    "mcpUrl",
];
/// Servers of one file that are kept.
const SERVERS_MAX: usize = 100;

/// Every server that a file names, the first one first.
pub(super) fn read(root: &Object<'_>, draft: &mut Draft<'_>) -> Vec<Interface> {
    let mut found = Vec::new();
    for remote in root.objects("remotes").take(SERVERS_MAX) {
        draft.check(&remote, &rules::REMOTE);
        found.extend(read_server(&remote, draft));
    }
    for key in ["transport", "mcp", "server", "endpoints", "mcp_server"] {
        found.extend(root.object(key).and_then(|object| read_server(&object, draft)));
    }
    for key in ["transports", "servers", "endpoints"] {
        for listed in root.objects(key).take(SERVERS_MAX) {
            found.extend(read_server(&listed, draft));
        }
    }
    if found.is_empty() {
        found.extend(read_server(root, draft));
    }
    let version = root.text_of(&["protocolVersion", "protocol_version", "mcp_version", "mcpVersion"]);
    for interface in &mut found {
        interface.version = interface.version.take().or_else(|| version.map(str::to_owned));
    }
    found.dedup_by(|a, b| a.url == b.url);
    found
}

/// The server that one object names.
fn read_server(object: &Object<'_>, draft: &mut Draft<'_>) -> Option<Interface> {
    let inner = ["mcp", "streamable_http", "streamable-http", "http", "sse"];
    let key = ADDRESS_KEYS.iter().chain(&inner).find(|key| object.text(key).is_some_and(is_address))?;
    let mut interface = Interface::new(Protocol::Mcp, draft.url(object, key));
    interface.transport = object.string_of(&["type", "transport"]);
    let versions = object.texts("supportedProtocolVersions");
    interface.version =
        object.text("protocolVersion").or_else(|| versions.last().copied()).map(str::to_owned);
    interface.url.is_some().then_some(interface)
}

fn is_address(text: &str) -> bool {
    (text.contains("://") || text.starts_with('/')) && !text.contains(char::is_whitespace)
}

/// Adds an interface and a resource for each server of a client configuration.
pub(super) fn configured(root: &Object<'_>, draft: &mut Draft<'_>) {
    let servers = root.object_of(&["mcpServers", "servers"]);
    for (name, server) in servers.iter().flat_map(Object::members).take(SERVERS_MAX) {
        rules::check_configured(&server, draft);
        let mut interface =
            read_server(&server, draft).unwrap_or_else(|| Interface::new(Protocol::Mcp, None));
        interface.declared = Some(name.to_owned());
        let command = server.value("command").is_some_and(Value::is_string);
        interface.transport = interface.transport.take().or_else(|| command.then(|| "stdio".to_owned()));
        let mut capability = draft.capability(CapabilityKind::Resource, name, name, server.pointer.clone());
        capability.description = draft::description(server.text("description"));
        capability.invocation.protocol = Some(Protocol::Mcp);
        capability.invocation.url.clone_from(&interface.url);
        draft.manifest.interfaces.push(interface);
        draft.push(capability);
    }
}

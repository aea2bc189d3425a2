//! The transports of MCP servers in the lines of a text.

use crate::draft::{self, Draft};
use crate::model::{Interface, Protocol};
use crate::text;

/// The transport that a line names: `MCP over SSE`, `MCP endpoint (Streamable-HTTP)`.
pub(super) fn transport_in(line: &str) -> Option<&'static str> {
    let words = text::words(text::capped(line, draft::DESCRIPTION_CHARS_MAX));
    let has = |pair: [&str; 2]| words.windows(2).any(|words| words == pair);
    if has(["streamable", "http"]) { Some("streamable-http") } else { has(["over", "sse"]).then_some("sse") }
}

/// Sets the transports of the MCP servers of a text: that of the line with the address of the server, or the first one if there is only one
/// server.
pub(super) fn set_transports(transports: &[(&'static str, Option<String>)], draft: &mut Draft<'_>) {
    for (transport, server) in transports {
        let Some(url) = server.as_deref().and_then(|published| draft.origin_url(published)) else { continue };
        let mut servers = draft.manifest.interfaces.iter_mut();
        let is_named = |known: &&mut Interface| {
            known.protocol == Protocol::Mcp && known.url.as_deref() == Some(url.as_str())
        };
        if let Some(server) = servers.find(is_named).filter(|server| server.transport.is_none()) {
            server.transport = Some((*transport).to_owned());
        }
    }
    let interfaces = draft.manifest.interfaces.iter_mut();
    let mut servers =
        interfaces.filter(|interface| interface.protocol == Protocol::Mcp && interface.url.is_some());
    if let (Some(server), None) = (servers.next(), servers.next())
        && server.transport.is_none()
    {
        let of_none = transports.iter().find(|(_, url)| url.is_none());
        server.transport = of_none.map(|(transport, _)| (*transport).to_owned());
    }
}

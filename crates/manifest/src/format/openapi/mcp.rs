//! MCP servers among the operations of an API: a POST that receives the messages of MCP is an interface, and the tools that its
//! description lists are called through it.

use serde_json::Value;

use crate::draft::Draft;
use crate::model::{Capability, CapabilityKind, Interface, Protocol};
use crate::text;

/// Maximum number of servers of one document, and of tools of one server, that are read.
const SERVERS_MAX: usize = 8;
const TOOLS_MAX: usize = 50;
/// Maximum number of characters of a text that are searched.
const TEXT_CHARS_MAX: usize = 600;
/// Maximum length in bytes of the name of a tool, which is ASCII.
const NAME_BYTES_MAX: usize = 64;
/// Phrases that name the endpoint of an MCP server, in lower case.
const ENDPOINT_PHRASES: &[&str] = &[
    "mcp endpoint",
    "mcp server endpoint",
    "mcp http endpoint",
    "model context protocol server",
    "model context protocol endpoint",
];

/// Adds the interfaces and tools of the operations from `first` on.
pub(super) fn read(first: usize, draft: &mut Draft<'_>) {
    let calls = draft.manifest.capabilities.iter().skip(first);
    let servers: Vec<Capability> = calls.filter(|call| is_server(call)).take(SERVERS_MAX).cloned().collect();
    for server in servers {
        let Some(url) = server.invocation.url.clone() else { continue };
        if !draft.has_interface(&url) {
            let interface = Interface::new(Protocol::Mcp, Some(url.clone()));
            draft.keep(Interface { transport: transport(&server), ..interface });
        }
        for name in server.description.as_deref().map(tools_in).unwrap_or_default() {
            let mut tool = draft.capability(CapabilityKind::Tool, name, "", server.pointer.clone());
            tool.pointer_document.clone_from(&server.pointer_document);
            tool.invocation.protocol = Some(Protocol::Mcp);
            tool.invocation.native = Some(name.to_owned());
            tool.invocation.url = Some(url.clone());
            tool.auth.clone_from(&server.auth);
            draft.push(tool);
        }
    }
}

/// Whether an operation receives the messages of MCP, by its texts, its path and its body.
fn is_server(call: &Capability) -> bool {
    let Some(url) =
        call.invocation.url.as_deref().filter(|_| call.invocation.method.as_deref() == Some("POST"))
    else {
        return false;
    };
    let path = url.split(['?', '#']).next().unwrap_or_default().trim_end_matches('/');
    let is_by_path = path.ends_with("/mcp");
    let texts = || [Some(&call.name), call.description.as_ref()].into_iter().flatten();
    if !is_by_path && !texts().any(|text| text.contains("MCP") || text.contains("Model Context Protocol")) {
        return false;
    }
    let mut texts = texts().map(|text| text::capped(text, TEXT_CHARS_MAX).to_ascii_lowercase());
    let is_named = texts.any(|text| {
        ["json-rpc", "jsonrpc", "streamable http"].iter().any(|word| text.contains(word))
            || (path.contains("/mcp") && ENDPOINT_PHRASES.iter().any(|phrase| text.contains(phrase)))
    });
    is_named || has_messages(call)
}

/// Whether the body of a call is a message of JSON-RPC.
fn has_messages(call: &Capability) -> bool {
    let properties = call.parameters.as_ref().and_then(|schema| schema.get("properties"));
    let is_in_body = |name: &str| {
        properties.and_then(|properties| properties.get(name)?.get("x-in")).and_then(Value::as_str)
            == Some("body")
    };
    is_in_body("jsonrpc") && is_in_body("method")
}

fn transport(call: &Capability) -> Option<String> {
    let mut texts = [Some(&call.name), call.description.as_ref()].into_iter().flatten();
    let is_stated = texts.any(|text| text::capped(text, TEXT_CHARS_MAX).contains("treamable HTTP"));
    is_stated.then(|| "streamable-http".to_owned())
}

/// The names after "tools:", if each part is an identifier: `interact with tools: find_room, book.`
fn tools_in(description: &str) -> Vec<&str> {
    let Some((_, listed)) = description.split_once("ools: ") else { return Vec::new() };
    let listed = listed.split(['.', ';', '\n', ')']).next().unwrap_or_default();
    let names: Vec<&str> = listed
        .split(',')
        .take(TOOLS_MAX)
        .map(|name| name.trim().trim_start_matches("and ").trim_matches('`'))
        .collect();
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-');
    let is_name =
        |name: &&str| !name.is_empty() && name.len() <= NAME_BYTES_MAX && name.chars().all(is_plain);
    let are_names = names.iter().all(is_name) && names.iter().any(|name| name.contains(['_', '-']));
    if are_names { names } else { Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_tools_of_a_server_in_its_description() {
        assert_eq!(
            tools_in("Interact with tools: find_room, `book`, and cancel."),
            ["find_room", "book", "cancel"]
        );
        for text in ["Tools: all of them, and more.", "It has tools: hammer, saw.", "No tools."] {
            assert!(tools_in(text).is_empty(), "{text}");
        }
    }
}

//! Hosts of MCP servers in sentences: "Delegates to the `find_room` MCP tool exposed at mcp.shop.example."

use crate::cues::Cue;
use crate::draft::Draft;
use crate::format::outbound::Texts;
use crate::model::Link;

/// Maximum number of hosts of one document that are kept, and of sentences of one text that are searched.
const HOSTS_MAX: usize = 10;
const SENTENCES_MAX: usize = 50;
/// Maximum number of bytes of the name of a host (RFC 1035).
const HOST_BYTES_MAX: usize = 253;
/// Words before "at" and the host.
const SERVED: &[&str] = &["exposed", "served", "available", "hosted", "reachable", "running"];

/// Adds a link to each host, unless an address of the host is known.
pub(super) fn read(texts: &Texts<'_>, draft: &mut Draft<'_>) {
    let mut hosts: Vec<&str> = Vec::new();
    for text in texts.with(Cue::McpServer) {
        for host in text.split(". ").take(SENTENCES_MAX).filter_map(host_in) {
            if hosts.len() < HOSTS_MAX && !hosts.contains(&host) {
                hosts.push(host);
            }
        }
    }
    for host in hosts {
        let url = ["https://", host, "/"].concat();
        let manifest = &draft.manifest;
        let known = manifest.links.iter().map(|link| link.url.as_str());
        let mut known = known.chain(manifest.interfaces.iter().filter_map(|server| server.url.as_deref()));
        if !known.any(|known| known.starts_with(&url)) && draft.not_public(&url).is_none() {
            draft.keep(Link::new("mcp", url, None));
        }
    }
}

/// The host at which a sentence says that an MCP tool or server is served.
fn host_in(sentence: &str) -> Option<&str> {
    let (_, rest) =
        ["MCP tool ", "MCP tools ", "MCP server "].iter().find_map(|kind| sentence.split_once(kind))?;
    let mut words = rest.split_whitespace();
    words.find(|word| SERVED.contains(word))?;
    words.next().filter(|word| *word == "at")?;
    let host = words.next()?.trim_matches(['`', '(', ')', ',', ';', '.', '"']);
    let is_plain =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'.');
    let (_, last) = host.rsplit_once('.')?;
    let is_host = host.len() <= HOST_BYTES_MAX
        && host.bytes().all(is_plain)
        && host.split('.').all(|label| !label.is_empty())
        && last.len() > 1
        && last.bytes().all(|byte| byte.is_ascii_lowercase());
    is_host.then_some(host)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_host_of_a_tool() {
        let text = "Delegates to the find_room MCP tool exposed at mcp.shop.example.";
        assert_eq!(host_in(text), Some("mcp.shop.example"));
        assert_eq!(host_in("An MCP server available at `mcp.shop.example`"), Some("mcp.shop.example"));
        for text in [
            "An MCP server available at any time.",
            "An MCP server available at 10.0.0.1",
            "An MCP tool for mcp.shop.example",
            "Exposed at mcp.shop.example",
        ] {
            assert_eq!(host_in(text), None, "{text}");
        }
    }
}

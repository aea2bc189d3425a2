//! Tools of an MCP server that a document names only in sentences, `use MCP tool submit_inquiry`, or after its address,
//! `https://shop.example/mcp (tools: quote, book)`.

use crate::cues::Cue;
use crate::draft::Draft;
use crate::format::outbound::{self, Texts};
use crate::model::{CapabilityKind, Protocol};

/// Maximum number of tools of one document that are read.
const TOOLS_MAX: usize = 20;
/// Maximum length in bytes of the name of a tool, which is ASCII.
const NAME_BYTES_MAX: usize = 64;

/// Adds the tools that sentences name, if the document names a server and lists none of its tools.
pub(crate) fn read(texts: &Texts<'_>, draft: &mut Draft<'_>) {
    let mut servers =
        draft.manifest.interfaces.iter().filter(|interface| interface.protocol == Protocol::Mcp);
    let Some(url) = servers.find_map(|server| server.url.clone()) else { return };
    let is_tool = |protocol: Option<Protocol>| protocol == Some(Protocol::Mcp);
    if draft.manifest.capabilities.iter().any(|capability| is_tool(capability.invocation.protocol)) {
        return;
    }
    let mut names: Vec<&str> = Vec::new();
    for text in texts.with(Cue::Tool) {
        for name in named_in(text).chain(after_address(text)) {
            if names.len() < TOOLS_MAX && !names.contains(&name) {
                names.push(name);
            }
        }
    }
    for name in names {
        let mut capability = draft.capability(CapabilityKind::Tool, name, "", String::new());
        capability.invocation.protocol = Some(Protocol::Mcp);
        capability.invocation.native = Some(name.to_owned());
        capability.invocation.url = Some(url.clone());
        draft.push(capability);
    }
}

/// The identifiers that follow the words "MCP tool".
fn named_in(text: &str) -> impl Iterator<Item = &str> {
    let after = text.split("MCP tool").skip(1);
    after.filter_map(|rest| {
        let word = rest.strip_prefix('s').unwrap_or(rest).split_whitespace().next()?;
        let is_mark = |letter: char| "`'\"(),.;:".contains(letter);
        let name = word.trim_matches(is_mark);
        let is_plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-');
        let is_name = name.contains('_') || word.starts_with('`');
        (is_name && name.len() <= NAME_BYTES_MAX && name.chars().all(is_plain)).then_some(name)
    })
}

/// The names after "tools:" in brackets after an address, if each part is a name.
fn after_address(text: &str) -> impl Iterator<Item = &str> {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-');
    let is_name =
        move |name: &&str| !name.is_empty() && name.len() <= NAME_BYTES_MAX && name.chars().all(is_plain);
    let listed = outbound::address_before_remark(text)
        .and_then(|_| text.split_once("tools: "))
        .and_then(|(_, listed)| listed.split([')', ';']).next());
    let names =
        move || listed.into_iter().flat_map(|listed| listed.split(',').map(str::trim).take(TOOLS_MAX));
    let is_list = names().all(|name| is_name(&name));
    names().filter(move |_| is_list)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_names_of_tools_in_sentences() {
        let of = |text| named_in(text).collect::<Vec<_>>();
        assert_eq!(of("use MCP tool submit_inquiry or write"), ["submit_inquiry"]);
        assert_eq!(of("MCP tools `quote`, MCP tool (book_room)."), ["quote", "book_room"]);
        assert!(of("an MCP tool for the web, MCP tooling").is_empty());
        let behind = |text| after_address(text).collect::<Vec<_>>();
        assert_eq!(behind("https://a.example/mcp (HTTP; tools: quote, book)"), ["quote", "book"]);
        assert!(behind("https://a.example/mcp (tools: quote and more, book)").is_empty());
        assert!(behind("see tools: quote, book").is_empty());
    }
}

//! Tools and skills that a text lists: `Tools: quote, book_room`, items and headings below `## Tools`, items below the address of an MCP
//! server, names in brackets after it, and addresses of `skills/NAME/SKILL.md`.
//!
//! Only identifiers count as names of tools, because such headings also precede lists of programs and of pages for people.

use std::collections::HashSet;

use crate::draft::{self, Draft};
use crate::format::addresses;
use crate::format::lenient;
use crate::format::link_class;
use crate::format::named_skills::NamedSkills;
use crate::format::transports::{set_transports, transport_in};
use crate::format::written_tools::{ARGUMENTS_MAX, Tool, arguments, listed_tool, named_tool, tool_of};
use crate::model::{AppliesTo, Auth, Capability, CapabilityKind, Protocol};
use crate::text;

/// Maximum number of tools of one text that are read; the longest published list has 59.
const TOOLS_MAX: usize = 200;
/// Maximum number of bytes of a label or heading that announces tools.
const LABEL_BYTES_MAX: usize = 80;

/// Maximum number of bytes of an item with the lines that continue it.
const ITEM_BYTES_MAX: usize = 2_000;

/// The meaning of the items below a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Items {
    #[default]
    Other,
    /// Tools below the address of an MCP server, until the first line that is not a tool.
    OfServer,
    /// Below a label or a heading that announces tools.
    Tools,
}

/// Which lists of names are tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Names {
    Any,
    /// Only lists in which at least one name is not an ordinary word.
    Identifiers,
}

/// Collects the tools of a text, line by line.
#[expect(clippy::struct_excessive_bools, reason = "independent facts about the current line")]
#[derive(Debug, Default)]
pub(crate) struct ListedTools {
    items: Items,
    /// Level of the heading that announced the tools.
    level: usize,
    tools: Vec<Tool>,
    /// The transports that lines name, with the address of the server on the same line.
    transports: Vec<(&'static str, Option<String>)>,
    skills: NamedSkills,
    /// The address of the server on the line above the items.
    server: Option<String>,
    /// Whether the line before was a heading with the name of a tool.
    is_heading: bool,
    /// Whether the line is below a heading with the name of a tool, whose items are arguments.
    is_below_tool: bool,
    /// Whether a heading says that the tools belong to an MCP server.
    is_named: bool,
    /// Whether the line is below a heading that names MCP. Items with identifiers are then tools, even above the address of the server.
    is_of_mcp: bool,
    /// Identifiers in brackets at the end of items. They are tools if the text calls one of them a tool.
    bracketed: Vec<Tool>,
    is_bracketed: bool,
    /// The item on the lines above, which the next line may continue.
    item: String,
    /// The text in brackets after the address of the server, which may name credentials.
    remark: Option<String>,
}

impl ListedTools {
    /// Keeps the tools that one line names, and returns whether the line is an item or a heading that names one.
    pub(crate) fn read_line(&mut self, line: &str) -> bool {
        self.read_item_with_brackets(line);
        if text::has_four(line, *b"romp") {
            self.skills.read_prompts(line);
        }
        if self.tools.len() >= TOOLS_MAX || line.is_empty() {
            if line.is_empty() && self.items == Items::OfServer {
                self.items = Items::Other;
            }
            return false;
        }
        if line.starts_with('#') {
            return self.read_heading(line);
        }
        if std::mem::take(&mut self.is_heading)
            && let Some(last) = self.tools.last_mut()
        {
            last.description = draft::description(Some(line));
            return false;
        }
        let is_item = line.starts_with(['-', '*', '+']) || unnumbered(line).is_some();
        if is_item && self.is_below_tool {
            return self.read_argument(line);
        }
        let is_of_tools = self.items != Items::Other;
        if (is_item || line.starts_with('`'))
            && (is_of_tools || self.is_of_mcp)
            && self.read_row_of_names(line)
        {
            return true;
        }
        if line.starts_with('|') && self.items == Items::Tools && self.read_row(line) {
            return true;
        }
        if is_item && is_of_tools && (self.read_item(line) || self.read_further(line)) {
            return true;
        }
        if is_item && self.is_of_mcp && has_identifier(line) && self.read_item(line) {
            return true;
        }
        if self.items == Items::OfServer {
            self.items = Items::Other;
        }
        self.read_label(line);
        false
    }

    /// A heading that announces tools, or the signature of one below it.
    fn read_heading(&mut self, line: &str) -> bool {
        let heading = line.trim_start_matches('#');
        let level = line.len() - heading.len();
        if self.items == Items::Tools && level > self.level && self.level > 0 {
            // A heading that is not the name of a tool begins a group of tools: `### Public (no auth)`.
            let found = named_tool(heading, true).filter(|(_, rest)| rest.is_empty());
            self.is_heading = found.is_some();
            self.is_below_tool = found.is_some();
            self.tools.extend(found.map(|(tool, _)| tool));
            return self.is_heading;
        }
        (self.is_heading, self.is_below_tool) = (false, false);
        self.is_named |= announces_tools(heading) && names_mcp(heading);
        self.items = if announces_tools(heading) { Items::Tools } else { Items::Other };
        self.is_of_mcp = names_mcp(heading) && !is_about_setup(heading);
        self.level = level;
        false
    }

    /// `- book_room ($2 USDC): books a room`.
    fn read_item(&mut self, line: &str) -> bool {
        if line.contains("://") || line.contains("](") {
            return false;
        }
        let item = unnumbered(line).or_else(|| line.strip_prefix(['-', '*', '+'])).unwrap_or(line);
        // Below a heading of tools a bold word is a name too.
        let is_bold = self.items == Items::Tools && item.trim_start().starts_with("**");
        let Some((tool, mut rest)) = named_tool(item, is_bold) else { return false };
        let mut named = vec![tool];
        // `- save_search / list_searches: keeps searches`
        while let Some((next, after)) = rest.trim_start().strip_prefix("/ ").and_then(tool_of) {
            named.push(next);
            rest = after;
        }
        let described = rest.trim_start_matches(SEPARATORS);
        if described.len() == rest.len() && !rest.is_empty() {
            return false;
        }
        for tool in &mut named {
            tool.description = draft::description(Some(described));
            tool.server = self.server.clone().filter(|_| self.items == Items::OfServer);
        }
        self.tools.append(&mut named);
        self.tools.truncate(TOOLS_MAX);
        true
    }

    /// `- Plus: load_list, save_list, and more`
    fn read_further(&mut self, line: &str) -> bool {
        let item = line.trim_start_matches(['-', '*', '+', ' ']);
        let is_further = |label: &str| {
            let label = label.trim_matches(['*', ' ']);
            ["plus", "also", "others", "more"].iter().any(|known| label.eq_ignore_ascii_case(known))
        };
        let Some((_, listed)) = item.split_once(':').filter(|(label, _)| is_further(label)) else {
            return false;
        };
        let listed = listed.trim().trim_end_matches('.').trim_end_matches("more").trim_end_matches(" and ");
        self.read_names(listed.trim_end_matches([',', ' ']).trim_end_matches(" and"), Names::Identifiers)
    }

    /// Names marked as code with dots or commas between them: `` `find_room` · `book` ``, `` - `find_room`, `book` — rooms ``.
    fn read_row_of_names(&mut self, line: &str) -> bool {
        let item = line.trim_start_matches(['-', '*', '+', ' ']);
        let (listed, described) =
            item.split_once(" \u{2014}").or_else(|| item.split_once(" - ")).unwrap_or((item, ""));
        let parts: Vec<&str> = listed
            .split([',', '\u{b7}'])
            .map(str::trim)
            .filter(|name| !name.is_empty())
            .take(TOOLS_MAX)
            .collect();
        let is_code = |name: &&str| name.len() > 2 && name.starts_with('`') && name.ends_with('`');
        let named: Option<Vec<Tool>> =
            parts.iter().map(|name| listed_tool(name).filter(|_| is_code(name))).collect();
        let is_list = |named: &Vec<Tool>| named.len() > 1 && named.iter().any(|tool| tool.name.contains('_'));
        let Some(named) = named.filter(is_list) else { return false };
        let description = draft::description(Some(described));
        self.tools.extend(named.into_iter().map(|tool| Tool { description: description.clone(), ..tool }));
        self.tools.truncate(TOOLS_MAX);
        true
    }

    /// An item below the heading of a tool: `` - `city`: where ``. Other items describe the tool.
    fn read_argument(&mut self, line: &str) -> bool {
        let code = line
            .trim_start_matches(['-', '*', '+', ' '])
            .strip_prefix('`')
            .and_then(|code| code.split_once('`'));
        let named = code.and_then(|(name, _)| arguments(name).pop());
        let last = self.tools.last_mut().filter(|tool| tool.arguments.len() < ARGUMENTS_MAX);
        let Some((tool, name)) = last.zip(named) else { return false };
        if !tool.arguments.contains(&name) {
            tool.arguments.push(name);
        }
        true
    }

    /// A row of a table with a tool in its first cell: `` | `find_room` | finds rooms | ``.
    fn read_row(&mut self, line: &str) -> bool {
        let mut cells = line.trim_matches('|').split('|').map(str::trim);
        let named = cells.next().and_then(tool_of).filter(|(_, rest)| rest.trim().is_empty());
        let Some((tool, _)) = named else { return false };
        self.tools.push(Tool { description: draft::description(cells.next()), ..tool });
        true
    }

    /// Reads the brackets at the end of an item, which may be on a later line than its start.
    fn read_item_with_brackets(&mut self, line: &str) {
        let is_item = line.starts_with(['-', '*', '+']) || unnumbered(line).is_some();
        let continues = !is_item && !self.item.is_empty() && !line.starts_with(['#', '|', '`', '>']);
        if line.is_empty() || !(is_item || continues) || self.item.len() > ITEM_BYTES_MAX {
            return self.item.clear();
        }
        if is_item {
            self.item.clear();
        } else {
            self.item.push(' ');
        }
        self.item.push_str(text::capped(line, draft::DESCRIPTION_CHARS_MAX));
        if line.ends_with([')', '.']) && self.item.contains('_') {
            let item = std::mem::take(&mut self.item);
            self.read_bracket(&item);
            self.item = item;
        }
    }

    /// `- Brief of a country (MCP tool get_brief; skill fetch-brief)`, `- Risk (get_risk, get_score)`.
    fn read_bracket(&mut self, line: &str) {
        let Some((before, inner)) =
            line.trim_end_matches('.').strip_suffix(')').and_then(|l| l.rsplit_once('('))
        else {
            return;
        };
        if before.ends_with(']') || self.bracketed.len() >= TOOLS_MAX {
            return;
        }
        self.skills.read_services(before, inner);
        let description = draft::description(Some(before.trim_start_matches(['-', '*', '+', ' '])));
        for part in inner.split([',', ';']).take(TOOLS_MAX).map(str::trim) {
            self.skills.read_part(part, description.as_ref());
            let led = ["MCP tools ", "MCP tool ", "MCP: "].iter().find_map(|lead| part.strip_prefix(lead));
            let named = tool_of(led.unwrap_or(part))
                .filter(|(tool, rest)| rest.is_empty() && tool.name.contains('_'));
            let Some((tool, _)) = named else { continue };
            self.is_bracketed |= led.is_some();
            self.bracketed.push(Tool { description: description.clone(), ..tool });
        }
    }

    /// `Tools: quote, book_room` or `Tools:` above items; the address of an MCP server, with or without names in brackets.
    fn read_label(&mut self, line: &str) {
        let item = line.trim_start_matches(['-', '*', '+', ' ']);
        if let Some((_, listed)) = item.split_once(':').filter(|(label, _)| announces_tools(label)) {
            if listed.trim_matches(['*', ' ']).is_empty() {
                (self.items, self.level) = (Items::Tools, 0);
                return;
            }
            if self.read_names(listed, Names::Identifiers) {
                return;
            }
        }
        if !names_mcp(line) {
            return;
        }
        let inner = line.split(['(', ';', ',']).find_map(|part| {
            let (label, _) = part.split_once(':').filter(|(label, _)| announces_tools(label))?;
            let (_, after) = line.split_once(&[label, ":"].concat())?;
            after.split(')').next()
        });
        let server = addresses::first_in_line(line).map(str::to_owned);
        if let Some(transport) = transport_in(line).filter(|_| self.transports.len() < TOOLS_MAX) {
            self.transports.push((transport, server.clone()));
        }
        self.remark =
            self.remark.take().or_else(|| server.as_deref().and_then(|server| remark(line, server)));
        let first = self.tools.len();
        let inner = inner.filter(|inner| !inner.trim_matches(['*', ' ']).is_empty());
        let is_list = match inner {
            // In the brackets after an address, names follow "tools:".
            Some(inner) => {
                let is_bracket = line.split_once('(').is_some_and(|(_, bracket)| bracket.contains(inner));
                self.read_names(inner, if is_bracket { Names::Any } else { Names::Identifiers });
                true
            }
            None => tools_in(line)
                .or_else(|| bracket_behind(line, server.as_deref()?))
                .is_some_and(|listed| self.read_names(listed, Names::Identifiers)),
        };
        if is_list {
            for tool in self.tools.iter_mut().skip(first) {
                tool.server.clone_from(&server);
            }
        } else if self.items == Items::Other && line.contains("://") {
            self.items = Items::OfServer;
            self.server = server;
        }
    }

    /// Keeps names between commas, and returns whether there are any. Each part must be a name and, unless any name is accepted, at least
    /// one of them must not be an ordinary word.
    fn read_names(&mut self, listed: &str, accepted: Names) -> bool {
        let parts = parts_of(listed.trim().trim_end_matches('.'));
        let named: Option<Vec<Tool>> = parts.into_iter().map(listed_tool).collect();
        let is_any = accepted == Names::Any;
        let named = named.filter(|named| is_any || named.iter().any(|tool| tool.name.contains('_')));
        let is_list = named.is_some();
        self.tools.extend(named.into_iter().flatten());
        self.tools.truncate(TOOLS_MAX);
        is_list
    }

    /// Adds the tools, with the server that the text names, and the skills.
    pub(crate) fn finish(self, draft: &mut Draft<'_>) {
        set_transports(&self.transports, draft);
        let interfaces = &draft.manifest.interfaces;
        let mut servers = interfaces.iter().filter(|interface| interface.protocol == Protocol::Mcp);
        // A server with an address is preferred to one that the caller starts.
        let server = servers.clone().find(|server| server.url.is_some()).or_else(|| servers.next());
        let is_mcp =
            self.is_named || server.is_some() || draft.manifest.name.as_deref().is_some_and(names_mcp);
        let url = server.and_then(|server| server.url.clone());
        let ids = draft.manifest.capabilities.iter().map(|capability| capability.native_id.clone());
        let mut known: HashSet<String> = ids.collect();
        let bracketed = self.bracketed.into_iter().filter(|_| self.is_bracketed);
        for tool in self.tools.into_iter().chain(bracketed).filter(|_| is_mcp) {
            if known.insert(tool.name.clone()) {
                let own = tool.server.as_deref().and_then(|published| draft.origin_url(published));
                let own = own.filter(|own| draft.has_interface(own));
                let capability = tool.capability(own.or_else(|| url.clone()), draft);
                draft.push(capability);
            }
        }
        if let Some(remark) = self.remark {
            keep_credentials_of_server(&remark, draft);
        }
        self.skills.finish(url.as_deref(), draft);
        add_skills(draft);
    }
}

/// Keeps the credentials in the brackets after the address of the server, if the text names no others. If the text has other calls, they
/// apply only to the tools.
fn keep_credentials_of_server(remark: &str, draft: &mut Draft<'_>) {
    let is_tool = |call: &&Capability| call.invocation.protocol == Some(Protocol::Mcp);
    let calls = &draft.manifest.capabilities;
    let ids: Vec<String> = calls.iter().filter(is_tool).map(|tool| tool.native_id.clone()).collect();
    let is_for_all = ids.len() == calls.len();
    if !draft.manifest.auth.is_empty() || (ids.is_empty() && !is_for_all) {
        return;
    }
    let applies_to = if is_for_all { AppliesTo::All } else { AppliesTo::Ids { ids } };
    let stated = lenient::auth_in_words([remark]);
    draft.keep_all(stated.into_iter().map(|auth| Auth { applies_to: applies_to.clone(), ..auth }));
}

/// Skills by their addresses, which end with `skills/NAME/SKILL.md`.
fn add_skills(draft: &mut Draft<'_>) {
    let links = draft.manifest.links.iter().filter(|link| link.rel == link_class::SKILL);
    let skills: Vec<(String, String)> = links
        .filter_map(|link| {
            let mut parts = link.url.rsplit('/').skip(1);
            let (name, folder) = (parts.next()?, parts.next()?);
            (folder == "skills").then(|| (name.to_owned(), link.url.clone()))
        })
        .take(TOOLS_MAX)
        .collect();
    for (name, url) in skills {
        let mut capability = draft.capability(CapabilityKind::Skill, &name, "", String::new());
        capability.invocation.protocol = Some(Protocol::Http);
        capability.invocation.url = Some(url);
        draft.push(capability);
    }
}

const SEPARATORS: [char; 5] = [' ', ':', '-', '\u{2013}', '\u{2014}'];

/// Whether a label or heading ends with the word "tools", before a remark in brackets: `## Tools (5)`, `MCP tool`.
fn announces_tools(label: &str) -> bool {
    let label = label.rsplit('(').next().filter(|_| label.ends_with("tools")).unwrap_or(label);
    let label = label.split('(').next().unwrap_or_default();
    if label.len() > LABEL_BYTES_MAX {
        return false;
    }
    let words = text::words(label);
    match words.last().map(String::as_str) {
        Some("tools") => !words.iter().any(|word| word == "free"),
        Some("tool") => words.iter().any(|word| word == "mcp"),
        _ => false,
    }
}

/// Whether a heading is about the way to connect to a server, whose items are settings.
fn is_about_setup(heading: &str) -> bool {
    let words = text::words(text::capped(heading, LABEL_BYTES_MAX));
    words.iter().any(|word| {
        ["setup", "set", "install", "installation", "config", "configuration", "resources", "prompts"]
            .contains(&word.as_str())
    })
}

/// A line without its item number.
fn unnumbered(line: &str) -> Option<&str> {
    let (number, item) = line.split_once(". ")?;
    (number.len() <= 3 && !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
        .then_some(item)
}

/// Whether an item begins with an identifier that is not an ordinary word.
fn has_identifier(item: &str) -> bool {
    let item = unnumbered(item).unwrap_or(item);
    tool_of(item.trim_start_matches(['-', '*', '+'])).is_some_and(|(tool, _)| tool.name.contains('_'))
}

/// The text after "Tools:" inside a line, up to the end of the sentence.
fn tools_in(line: &str) -> Option<&str> {
    let (before, after) = ["Tools:", "tools:"].iter().find_map(|label| line.split_once(label))?;
    let is_word = before.ends_with(|letter: char| !letter.is_alphanumeric());
    after.split(". ").next().filter(|_| is_word)
}

/// The words in the first brackets after the address of a server.
fn remark(line: &str, server: &str) -> Option<String> {
    let (_, behind) = line.split_once(server)?;
    let behind = behind.trim_start_matches(['`', '*', ' ', ')', '>']);
    let inner = behind.strip_prefix(['(', '\u{ff08}'])?;
    let (inner, _) = inner.split_once([')', '\u{ff09}'])?;
    Some(text::capped(inner, LABEL_BYTES_MAX).to_owned())
}

/// The text in the brackets at the end of a line behind the address of a server: `[MCP](/mcp): 2 tools (quote_room, book_room)`.
fn bracket_behind<'l>(line: &'l str, server: &str) -> Option<&'l str> {
    let (_, behind) = line.split_once(server)?;
    let (before, inner) = behind.trim_end_matches('.').strip_suffix(')')?.rsplit_once('(')?;
    let words = before.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty());
    (words.count() <= WORDS_BEFORE_MAX).then_some(inner)
}

/// Maximum number of words between an address and the names in brackets.
const WORDS_BEFORE_MAX: usize = 4;

/// The parts of a list that is separated by commas or "and". Commas inside brackets do not separate parts.
fn parts_of(listed: &str) -> Vec<&str> {
    let (mut parts, mut depth, mut begin) = (Vec::new(), 0_usize, 0);
    for (at, letter) in listed.char_indices() {
        match letter {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                parts.extend(listed.get(begin..at));
                begin = at + 1;
            }
            _ => {}
        }
        if parts.len() >= TOOLS_MAX {
            return parts;
        }
    }
    parts.extend(listed.get(begin..));
    let parts = parts.into_iter().flat_map(|part| part.split(" and "));
    let parts = parts.map(|part| part.trim().trim_start_matches("and ").trim());
    parts.filter(|part| !part.is_empty()).collect()
}

/// Whether a line names the Model Context Protocol.
fn names_mcp(line: &str) -> bool {
    line.contains("MCP") || line.contains("mcp")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(lines: &str) -> Vec<String> {
        let mut listed = ListedTools::default();
        for line in lines.lines().map(str::trim) {
            listed.read_line(line);
        }
        listed.tools.into_iter().map(|tool| tool.name).collect()
    }

    #[test]
    fn finds_the_tools_that_lines_name() {
        for (lines, expected) in [
            ("- Tools: get_quote, book", &["get_quote", "book"][..]),
            ("MCP: /mcp (JSON-RPC, 2 tools: get_quote, book_room)", &["get_quote", "book_room"]),
            (
                "MCP paid tools (x402): /mcp (HTTP; tools: get_quote $2 USDC, book_room $3 USDC)",
                &["get_quote", "book_room"],
            ),
            ("MCP tool: get_quote (1 USDC), book_room (5 USDC)", &["get_quote", "book_room"]),
            ("Tools:\n- get_quote \u{2014} quotes a price\n- book_room: books", &["get_quote", "book_room"]),
            ("## Tools (2)\n### `get_quote(room, nights)`\nQuotes.\n## Rooms\n### `a_b`", &["get_quote"]),
            ("- MCP: https://a.example/mcp\n- get_quote ($2 USDC): quotes\nText\n- a_b: c", &["get_quote"]),
            (
                "- [MCP](https://a.example/mcp): Tools: `get_quote(a?, b?)` and `book(c)`.",
                &["get_quote", "book"],
            ),
            (
                "## Access (MCP)\n- `get_quote` \u{2014} a price\n- text\n- book_room: books",
                &["get_quote", "book_room"],
            ),
            ("- [MCP Endpoint](/api/mcp): 2 tools (get_quote, book_room)", &["get_quote", "book_room"]),
            ("- [MCP Endpoint](/api/mcp) (get_quote, book_room)", &["get_quote", "book_room"]),
            ("- [MCP Endpoint](/api/mcp) (SSE, JSON)", &[]),
            ("## MCP setup\n- `server_url`: the address", &[]),
            ("## Tools\n- save_quote / list_quotes \u{2014} keeps them", &["save_quote", "list_quotes"]),
            ("Tools: 889 across 21 categories", &[]),
            ("Tools: Figma, Notion", &[]),
            ("## Free tools\n- unit_converter: https://a.example/units", &[]),
            ("- tool_of_the_trade: text", &[]),
        ] {
            assert_eq!(named(lines), expected, "{lines}");
        }
    }

    #[test]
    fn bracketed_names_are_tools_if_one_is_labelled_as_a_tool() {
        let bracketed = |lines: &str| {
            let mut listed = ListedTools::default();
            for line in lines.lines() {
                listed.read_line(line);
            }
            let names: Vec<String> = listed.bracketed.into_iter().map(|tool| tool.name).collect();
            (names.join(" "), listed.is_bracketed)
        };
        let lines = "- Brief (MCP tool get_brief; skill fetch-brief)\n- Risk (get_risk, get_score)";
        assert_eq!(bracketed(lines), ("get_brief get_risk get_score".to_owned(), true));
        assert_eq!(bracketed("- Risk (get_risk)"), ("get_risk".to_owned(), false));
        assert_eq!(bracketed("- [MCP](https://a.example/get_risk)"), (String::new(), false));
        let wrapped = "- Brief: what is new\n  in a country (MCP tool get_brief;\n  skill fetch-brief)\n- Risk (get_risk,\n  get_score)";
        let trimmed = wrapped.lines().map(str::trim).collect::<Vec<_>>().join("\n");
        assert_eq!(bracketed(&trimmed), ("get_brief get_risk get_score".to_owned(), true));
        assert_eq!(bracketed("- Brief\n\nof all (MCP tool get_brief)"), (String::new(), false));
    }
}

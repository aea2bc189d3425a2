//! MCP servers in instructions of a text to start or add them: the configuration of a client in a block of code, and commands such as `npx
//! -y shop-mcp` or `claude mcp add shop -- npx shop-mcp`.
//!
//! A command becomes an interface without an address. It is never run.

use serde_json::Value;

use super::{commands, mcp};
use crate::budget::{self, Limits};
use crate::draft::Draft;
use crate::json;
use crate::model::{AppliesTo, Interface, Protocol};
use crate::object::Object;

/// Maximum bytes of a code block that may be the configuration of a client, and maximum number of blocks of one text that are read.
const BLOCK_BYTES_MAX: usize = 8 * 1_024;
const BLOCKS_MAX: usize = 50;
/// Maximum number of servers of one configuration, and of code spans of one line, that are read.
const SERVERS_MAX: usize = 20;
const SPANS_MAX: usize = 20;

/// Beginnings of lines that are commands even if they are not marked as code.
const COMMANDS: &[&str] = &["npx ", "uvx ", "claude mcp add "];

/// Collects the servers of a text, line by line.
#[derive(Debug, Default)]
pub(crate) struct ShownServers {
    is_code: bool,
    /// The block of code so far, if it may be a configuration.
    block: Option<String>,
    blocks_read: usize,
}

impl ShownServers {
    /// Reads a line.
    pub(crate) fn read_line(&mut self, line: &str, draft: &mut Draft<'_>) {
        if line.starts_with("```") {
            self.is_code = !self.is_code;
            if let Some(block) = self.block.take().filter(|_| !self.is_code) {
                read_configuration(&block, draft);
            }
            let may_be = self.is_code && self.blocks_read < BLOCKS_MAX;
            self.block = may_be.then(String::new);
            self.blocks_read += usize::from(self.is_code);
            return;
        }
        if let Some(block) = &mut self.block {
            let is_json = !block.is_empty() || line.is_empty() || line.starts_with(['{', '"']);
            if is_json && block.len() + line.len() < BLOCK_BYTES_MAX {
                block.push_str(line);
                block.push('\n');
                return;
            }
            self.block = None;
        }
        if self.is_code || COMMANDS.iter().any(|start| line.starts_with(start)) {
            read_command(line, draft);
        } else if line.contains('`') {
            let spans = line.split('`').skip(1).step_by(2).take(SPANS_MAX);
            spans.for_each(|span| read_command(span, draft));
        }
    }
}

/// Reads `{"mcpServers": {"shop": {"command": "npx", "args": […]}}}`, with or without its outer braces, or one server.
fn read_configuration(block: &str, draft: &mut Draft<'_>) {
    let is_configuration =
        ["\"mcpServers\"", "\"servers\"", "\"command\""].iter().any(|name| block.contains(name));
    let whole = block.trim().trim_end_matches(',');
    let braced = if whole.starts_with('"') { ["{", whole, "}"].concat() } else { whole.to_owned() };
    let limits = Limits { nodes: budget::MANIFEST_NODES_MAX, ..budget::DOCUMENT };
    if !is_configuration {
        return;
    }
    let Ok(checked) = budget::check_json(braced.as_bytes(), limits) else { return };
    let Ok((Value::Object(map), _)) = json::parse(&braced, &checked.outline) else { return };
    let root = Object::root(&map);
    match root.object_of(&["mcpServers", "servers"]) {
        Some(servers) => {
            servers.members().take(SERVERS_MAX).for_each(|(_, server)| keep_server(&server, draft));
        }
        None => keep_server(&root, draft),
    }
}

/// Keeps the server at an address, or the server that a command starts and the secrets in its environment variables.
fn keep_server(server: &Object<'_>, draft: &mut Draft<'_>) {
    let address = server.text_of(&["url", "serverUrl", "httpUrl"]).and_then(|url| draft.origin_url(url));
    if let Some(url) = address {
        if !draft.has_interface(&url) {
            draft.keep(Interface::new(Protocol::Mcp, Some(url)));
        }
    } else if let Some(command) = mcp::command_line(server) {
        commands::add_started(&command, draft);
        let secrets = mcp::secrets_of_environment(server, &AppliesTo::OptionalIds { ids: Vec::new() });
        let known = &draft.manifest.auth;
        let new: Vec<_> = secrets.into_iter().filter(|secret| !known.contains(secret)).collect();
        draft.keep_all(new);
    }
}

/// Keeps the server of a command, if the command names MCP.
fn read_command(line: &str, draft: &mut Draft<'_>) {
    let line = line.trim_start_matches(['$', ' ']);
    let added = line.split_once("mcp add ").map(|(_, added)| added);
    let command = added.map_or(line, |added| added.split_once(" -- ").map_or(added, |(_, command)| command));
    if added.is_some()
        && let Some(url) = command.split_whitespace().find(|word| word.starts_with("https://"))
    {
        let url = url.trim_matches(['"', '\'', '\\']).to_owned();
        if !draft.has_interface(&url) {
            draft.keep(Interface::new(Protocol::Mcp, Some(url)));
        }
        return;
    }
    let names_mcp =
        added.is_some() || command.split([' ', '/', '@', '-', '_', '=']).any(|word| word == "mcp");
    if names_mcp {
        let command = command.trim_end_matches(['\\', ' ']);
        commands::add_started(command, draft);
        commands::add_installed(command, draft);
    }
}

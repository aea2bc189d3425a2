//! Commands that callers run: `{"invoke": {"cli": "npx shop search <words>", "mcp": "npx shop mcp-server"}}`.
//!
//! A command becomes an interface without an address. It is never run.

use crate::draft::{self, Draft};
use crate::model::{Interface, Protocol};
use crate::object::Object;
use crate::text;

/// Maximum number of commands of one document that are kept.
const COMMANDS_MAX: usize = 50;
/// Members with commands: one command as text, or several by name.
const BLOCKS: &[&str] = &[
    "invoke",
    "install",
    "installation",
    "mcp",
    "cli",
    "command",
    "commands",
    "run",
    "start",
    "usage",
    "quickstart",
    "quick_start",
];
/// Members of a block whose command starts an MCP server, whatever the block is called.
const SERVER_KEYS: &[&str] = &["mcp", "command", "install"];
/// Programs that start other programs.
const STARTERS: &[&str] = &[
    "npx", "uvx", "bunx", "docker", "node", "python", "python3", "deno", "pipx", "uv", "pnpm", "yarn", "bun",
];
/// Programs that install other programs.
const INSTALLERS: &[&str] = &["npm", "pip", "pip3", "cargo", "go", "brew", "gem", "apt", "apt-get", "dotnet"];

/// Adds the commands of a document.
pub(crate) fn read(root: &Object<'_>, draft: &mut Draft<'_>) {
    let started = ["invoke", "install", "mcp"].iter().filter_map(|key| root.object(key));
    let installed = root.objects("servers").take(COMMANDS_MAX).filter_map(|server| server.object("install"));
    for command in started.chain(installed).filter_map(|block| block.text_of(SERVER_KEYS)) {
        if first_word(command).is_some_and(|program| STARTERS.contains(&program)) {
            add(command, Protocol::Mcp, draft);
        }
    }
    // The program of a service often has its name.
    let own = root.text_of(&["name", "id", "slug"]).map(|name| name.rsplit('/').next().unwrap_or(name));
    let is_command = |command: &str| {
        first_word(command).is_some_and(|program| {
            STARTERS.contains(&program)
                || INSTALLERS.contains(&program)
                || (command.contains(' ') && own.is_some_and(|own| own.eq_ignore_ascii_case(program)))
        })
    };
    for key in BLOCKS {
        let lone = root.text(key).map(|command| (*key, command));
        let block = root.object(key);
        let named = block.iter().flat_map(|block| {
            block.map.iter().filter_map(|(name, value)| Some((name.as_str(), value.as_str()?.trim())))
        });
        for (name, command) in lone.into_iter().chain(named).take(COMMANDS_MAX) {
            if is_command(command) {
                let is_server = text::words(name).iter().any(|word| word == "mcp");
                add(command, if is_server { Protocol::Mcp } else { Protocol::Other }, draft);
            }
        }
    }
}

fn first_word(command: &str) -> Option<&str> {
    command.split_whitespace().next()
}

/// Adds an interface that its caller starts. Skills that are installed into a client are not interfaces.
fn add(command: &str, protocol: Protocol, draft: &mut Draft<'_>) {
    let declared = Some(text::capped(command, draft::NAME_CHARS_MAX).to_owned());
    let interfaces = &draft.manifest.interfaces;
    let is_known = interfaces.iter().any(|known| known.url.is_none() && known.declared == declared);
    if is_known || interfaces.len() >= COMMANDS_MAX || command.contains("skills add") {
        return;
    }
    let transport = if protocol == Protocol::Mcp { "stdio" } else { "cli" };
    draft.keep(Interface {
        declared,
        transport: Some(transport.to_owned()),
        ..Interface::new(protocol, None)
    });
}

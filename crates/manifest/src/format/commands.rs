//! Commands that callers run themselves: `{"invoke": {"cli": "npx shop search <words>", "mcp": "npx shop mcp-server"}}`.
//!
//! A command becomes an interface without an address. It is never run.

use crate::draft::{self, Draft};
use crate::format::mcp;
use crate::model::{AppliesTo, Interface, Protocol};
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
/// Members of a block whose command starts an MCP server, regardless of the name of the block.
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
    for block in started.chain(installed).filter(|block| !has_arguments(block)) {
        let command = block.text_of(SERVER_KEYS);
        if let Some(command) = command.filter(|command| is_started(command)) {
            add(command, Protocol::Mcp, draft);
        }
    }
    read_servers(root, draft);
    // The program often has the same name as the service.
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
        let is_in_parts = block.as_ref().is_some_and(has_arguments);
        let named = named.filter(|(name, _)| !is_in_parts || *name != "command");
        for (name, command) in lone.into_iter().chain(named).take(COMMANDS_MAX) {
            if is_command(command) {
                let is_server = text::words(name).iter().any(|word| word == "mcp");
                add(command, if is_server { Protocol::Mcp } else { Protocol::Other }, draft);
            }
        }
    }
}

/// Blocks that may contain the command of a server with its arguments, as in the configuration of a client.
const SERVER_BLOCKS: &[&str] = &["mcp", "mcp_server", "mcpServer", "server", "stdio", "transport"];
/// Lists of blocks that may contain the command of a server.
const SERVER_LISTS: &[&str] = &["servers", "transports"];
/// Blocks with the command of a server in its description.
const LOCAL_BLOCKS: &[&str] = &["stdio", "local", "command", "install"];

/// Adds the servers that callers start with a command and arguments, and the secrets that callers pass to them. The secrets apply to no
/// call of a server with an address.
fn read_servers(root: &Object<'_>, draft: &mut Draft<'_>) {
    let listed = SERVER_LISTS.iter().filter(|key| root.list(key).is_some()).flat_map(|key| root.objects(key));
    let listed = listed.take(COMMANDS_MAX);
    let blocks: Vec<Object<'_>> =
        SERVER_BLOCKS.iter().filter_map(|key| root.object(key)).chain(listed).collect();
    let inner = blocks.iter().flat_map(|block| LOCAL_BLOCKS.iter().filter_map(|key| block.object(key)));
    for block in blocks.iter().cloned().chain(inner).filter(has_arguments) {
        if let Some(command) = mcp::command_line(&block).filter(|command| is_started(command)) {
            add(&command, Protocol::Mcp, draft);
            let secrets = mcp::secrets_of_environment(&block, &AppliesTo::OptionalIds { ids: Vec::new() });
            let known = &draft.manifest.auth;
            let new: Vec<_> = secrets.into_iter().filter(|secret| !known.contains(secret)).collect();
            draft.keep_all(new);
        }
    }
}

fn has_arguments(block: &Object<'_>) -> bool {
    block.text("command").is_some() && block.list("args").is_some()
}

fn is_started(command: &str) -> bool {
    first_word(command).is_some_and(|program| STARTERS.contains(&program))
}

fn first_word(command: &str) -> Option<&str> {
    command.split_whitespace().next()
}

/// Adds the MCP server that a command starts. Other commands are left out.
pub(crate) fn add_started(command: &str, draft: &mut Draft<'_>) {
    if is_started(command) && command.split_whitespace().nth(1).is_some() {
        add(command, Protocol::Mcp, draft);
    }
}

/// Adds the MCP server of a package that a command installs: `pip install shop-mcp`. The libraries of MCP itself are left out.
pub(crate) fn add_installed(command: &str, draft: &mut Draft<'_>) {
    let mut words = command.split_whitespace();
    let is_installer =
        words.next().is_some_and(|program| INSTALLERS.contains(&program) || STARTERS.contains(&program));
    let mut words = words.skip_while(|word| !matches!(*word, "install" | "i" | "add"));
    let is_install = words.next().is_some();
    let Some(package) = words.find(|word| !word.starts_with('-')) else { return };
    let parts: Vec<String> = text::words(package);
    let names_mcp = parts.iter().any(|part| part == "mcp");
    let is_library = package.starts_with("@modelcontextprotocol/")
        || parts.len() < 2
        || parts.iter().any(|part| LIBRARY_WORDS.contains(&part.as_str()));
    if is_installer && is_install && names_mcp && !is_library {
        add(command, Protocol::Mcp, draft);
    }
}

/// Words in the names of packages that are not servers.
const LIBRARY_WORDS: &[&str] = &["sdk", "client", "inspector", "cli", "adapters", "adapter", "core"];

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

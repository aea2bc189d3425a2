//! How to connect popular clients to an MCP server: Claude, Cursor, VS Code, and others.

use data_encoding::BASE64;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};

const CLAUDE_COMMAND: &str = "For Claude Code, run this command. In Claude on the web or the desktop, choose Settings, Connectors, Add custom connector, and paste the address at the end of the command.";
const CLAUDE_FILE: &str = "For Claude Code, put this into the file .mcp.json of a project. In Claude on the web or the desktop, choose Settings, Connectors, Add custom connector, and paste the address.";

/// An MCP server with the streamable HTTP transport.
#[derive(Debug, Clone)]
pub(crate) struct McpServer {
    pub(crate) name: String,
    pub(crate) url: String,
}

impl McpServer {
    /// The registry's own server.
    pub(crate) fn of_this_registry(base: &str) -> Self {
        Self { name: "agentdex".to_owned(), url: format!("{base}/mcp") }
    }
}

/// The instructions for a client: what to click, run or paste.
pub(crate) struct Client {
    pub(crate) id: &'static str,
    pub(crate) name: &'static str,
    /// Label and address of a link that opens the client.
    pub(crate) link: Option<(&'static str, String)>,
    pub(crate) steps: &'static str,
    pub(crate) text: String,
}

pub(crate) fn of(server: &McpServer) -> Vec<Client> {
    let (name, url) = (server.name.as_str(), server.url.as_str());
    let entry = json!({"url": url});
    let servers = |key: &str, entry: &Value| {
        let text = serde_json::to_string_pretty(&json!({key: {name: entry}})).unwrap_or_default();
        settings::escape::json(&text).into_owned()
    };
    let cursor = format!(
        "cursor://anysphere.cursor-deeplink/mcp/install?name={}&config={}",
        escaped(name),
        escaped(&BASE64.encode(entry.to_string().as_bytes()))
    );
    let of_http = json!({"type": "http", "url": url});
    let of_code = json!({"name": name, "type": "http", "url": url});
    let (steps, text) = if is_one_word(name) && is_one_word(url) {
        (CLAUDE_COMMAND, format!("claude mcp add --transport http {name} {url}"))
    } else {
        (CLAUDE_FILE, servers("mcpServers", &of_http))
    };
    vec![
        Client { id: "claude", name: "Claude", link: None, steps, text },
        Client {
            id: "cursor",
            name: "Cursor",
            link: Some(("Add to Cursor", cursor)),
            steps: "Or put this into the file .cursor/mcp.json of a project, or ~/.cursor/mcp.json for all projects.",
            text: servers("mcpServers", &entry),
        },
        Client {
            id: "vscode",
            name: "VS Code",
            link: Some(("Add to VS Code", format!("vscode:mcp/install?{}", escaped(&of_code.to_string())))),
            steps: "Or put this into the file .vscode/mcp.json of a project.",
            text: servers("servers", &of_http),
        },
        Client {
            id: "other",
            name: "Other",
            link: None,
            steps: "Most other clients read a file like this one. The transport is streamable HTTP.",
            text: servers("mcpServers", &of_http),
        },
    ]
}

fn escaped(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}

/// Whether a text is one word without a special meaning in POSIX shells, in cmd.exe and in PowerShell. Their quoting differs, so no other text
/// of a publisher is part of a command that people run in any of them.
fn is_one_word(text: &str) -> bool {
    let is_first = |c: char| c.is_ascii_alphanumeric();
    text.starts_with(is_first) && text.chars().all(|c| c.is_ascii_alphanumeric() || "-._/:".contains(c))
}

//! How to connect popular clients to an MCP server: Claude, Cursor, VS Code, and others.

use data_encoding::BASE64;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};

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
    let of_code = json!({"name": name, "type": "http", "url": url});
    vec![
        Client {
            id: "claude",
            name: "Claude",
            link: None,
            steps: "For Claude Code, run this command. In Claude on the web or the desktop, choose Settings, Connectors, Add custom connector, and paste the address at the end of the command.",
            text: format!("claude mcp add --transport http {} {}", shell(name), shell(url)),
        },
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
            text: servers("servers", &json!({"type": "http", "url": url})),
        },
        Client {
            id: "other",
            name: "Other",
            link: None,
            steps: "Most other clients read a file like this one. The transport is streamable HTTP.",
            text: servers("mcpServers", &json!({"type": "http", "url": url})),
        },
    ]
}

fn escaped(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}

fn shell(text: &str) -> String {
    let plain = !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "-._/:".contains(c));
    if plain { text.to_owned() } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

//! How to connect popular clients to an MCP server: Claude, Cursor, VS Code, and others.

use data_encoding::BASE64;
use manifest::{Host, SiteScope};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Map, Value, json};
use url::Url;

use super::call::url_before_key;
use super::credentials::{API_KEY, Secret, TOKEN};

const CLAUDE_COMMAND: &str = "For Claude Code, run this command.";
const CLAUDE_FILE: &str = "For Claude Code, put this into the file .mcp.json of a project.";
const CLAUDE_CONNECTOR: &str = "In Claude on the web or the desktop, choose Settings, Connectors, Add custom connector, and paste the address";
/// Anthropic's servers call the servers of custom connectors.
const CLAUDE_NEEDS_PUBLIC: &str = "Claude on the web and the desktop need a public https address.";
const CURSOR: &str =
    "Or put this into the file .cursor/mcp.json of a project, or ~/.cursor/mcp.json for all projects.";
const VS_CODE: &str = "Or put this into the file .vscode/mcp.json of a project.";
const OTHER: &str = "Most other clients read a file like this one. The transport is streamable HTTP.";

/// An MCP server with the streamable HTTP transport.
#[derive(Debug, Clone)]
pub(crate) struct McpServer {
    pub(crate) name: String,
    /// Without braces, which would begin a variable in the files of clients.
    pub(crate) url: String,
    /// The key or token that the client must be given. `None` if it needs none, or signs the person in itself.
    pub(crate) secret: Option<Secret>,
}

impl McpServer {
    /// The registry's own server.
    pub(crate) fn of_this_registry(base: &str) -> Self {
        Self { name: "agentdex".to_owned(), url: format!("{base}/mcp"), secret: None }
    }

    /// Whether a client on another machine can reach the server: over https, under a name of the public web.
    fn is_public(&self) -> bool {
        let url = Url::parse(&self.url).ok().filter(|url| url.scheme() == "https");
        let host = url.and_then(|url| Host::parse(url.host_str()?).ok());
        host.is_some_and(|host| SiteScope::Public.check_host(&host).is_ok())
    }

    /// The environment variable that contains the secret. It is that of the host alone, so that no server gets the secret of another one, or
    /// another variable of the person.
    fn variable(&self) -> Option<String> {
        let url = Url::parse(&self.url).ok()?;
        let kind = if *self.secret.as_ref()? == Secret::Bearer { TOKEN } else { API_KEY };
        Some(format!("{kind}_OF_{}", in_variable(url.host_str()?)))
    }

    /// The members `url` and, for a secret in a header, `headers`, with the value that a client replaces by the secret.
    fn entry(&self, value: &str) -> Map<String, Value> {
        let header = |name: &str, value: String| (self.url.clone(), Some(json!({name: value})));
        let (url, headers) = match &self.secret {
            Some(Secret::Bearer) => header("Authorization", format!("Bearer {value}")),
            Some(Secret::Header(name)) => header(name, value.to_owned()),
            Some(Secret::Cookie(name)) => header("Cookie", format!("{name}={value}")),
            Some(Secret::Query(name)) => (format!("{}{value}", url_before_key(&self.url, name)), None),
            None => (self.url.clone(), None),
        };
        let members = [("url", Some(Value::from(url))), ("headers", headers)];
        members.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))).collect()
    }

    /// The same with the transport.
    fn http_entry(&self, value: &str) -> Map<String, Value> {
        let mut entry = Map::from_iter([("type".to_owned(), Value::from("http"))]);
        entry.extend(self.entry(value));
        entry
    }
}

/// The instructions for a client: what to click, run or paste.
pub(crate) struct Client {
    pub(crate) id: &'static str,
    pub(crate) name: &'static str,
    /// Label and address of a link that opens the client.
    pub(crate) link: Option<(&'static str, String)>,
    pub(crate) steps: String,
    pub(crate) text: String,
}

pub(crate) fn of(server: &McpServer) -> Vec<Client> {
    vec![claude(server), cursor(server), vs_code(server), other(server)]
}

fn claude(server: &McpServer) -> Client {
    let (name, url) = (server.name.as_str(), server.url.as_str());
    let variable = server.variable();
    let (steps, text) = if let Some(variable) = &variable {
        // without a file, the command would contain the secret, and each shell quotes its variables in another way
        let entry = server.http_entry(&format!("${{{variable}}}"));
        (CLAUDE_FILE.to_owned(), file(&json!({"mcpServers": {name: entry}})))
    } else if is_one_word(name) && is_one_word(url) {
        let steps = format!("{CLAUDE_COMMAND} {}", connector(server, " at the end of the command"));
        (steps, format!("claude mcp add --transport http {name} {url}"))
    } else {
        let steps = format!("{CLAUDE_FILE} {}", connector(server, ""));
        (steps, file(&json!({"mcpServers": {name: server.http_entry("")}})))
    };
    Client {
        id: "claude",
        name: "Claude",
        link: None,
        steps: with_variable(&steps, variable.as_deref()),
        text,
    }
}

/// How Claude on the web and the desktop connects to a server.
fn connector(server: &McpServer, place: &str) -> String {
    if server.is_public() { format!("{CLAUDE_CONNECTOR}{place}.") } else { CLAUDE_NEEDS_PUBLIC.to_owned() }
}

fn cursor(server: &McpServer) -> Client {
    let variable = server.variable();
    let entry = Value::Object(server.entry(&format!("${{env:{}}}", variable.as_deref().unwrap_or_default())));
    let link = format!(
        "cursor://anysphere.cursor-deeplink/mcp/install?name={}&config={}",
        escaped(&server.name),
        escaped(&BASE64.encode(entry.to_string().as_bytes()))
    );
    Client {
        id: "cursor",
        name: "Cursor",
        link: Some(("Add to Cursor", link)),
        steps: with_variable(CURSOR, variable.as_deref()),
        text: file(&json!({"mcpServers": {server.name.as_str(): entry}})),
    }
}

fn vs_code(server: &McpServer) -> Client {
    let id = server.variable().unwrap_or_default().to_lowercase();
    let entry = server.http_entry(&format!("${{input:{id}}}"));
    let mut linked = Map::from_iter([("name".to_owned(), Value::from(server.name.as_str()))]);
    linked.extend(entry.clone());
    let mut text = Map::from_iter([("servers".to_owned(), json!({server.name.as_str(): entry}))]);
    let mut steps = VS_CODE.to_owned();
    if server.secret.is_some() {
        let asked = format!("The secret of {}", server.name);
        let inputs = json!([{"type": "promptString", "id": id, "description": asked, "password": true}]);
        linked.insert("inputs".to_owned(), inputs.clone());
        text.insert("inputs".to_owned(), inputs);
        steps.push_str(" VS Code asks for the secret and stores it.");
    }
    let link = format!("vscode:mcp/install?{}", escaped(&Value::Object(linked).to_string()));
    Client {
        id: "vscode",
        name: "VS Code",
        link: Some(("Add to VS Code", link)),
        steps,
        text: file(&text.into()),
    }
}

fn other(server: &McpServer) -> Client {
    let variable = server.variable();
    let mut steps = OTHER.to_owned();
    if let Some(variable) = &variable {
        steps = format!("{steps} Replace {variable} with the secret.");
    }
    let entry = server.http_entry(variable.as_deref().unwrap_or_default());
    Client {
        id: "other",
        name: "Other",
        link: None,
        steps,
        text: file(&json!({"mcpServers": {server.name.as_str(): entry}})),
    }
}

fn with_variable(steps: &str, variable: Option<&str>) -> String {
    match variable {
        Some(variable) => {
            format!("{steps} The secret comes from the environment variable {variable}, so set it first.")
        }
        None => steps.to_owned(),
    }
}

/// A host as a part of the name of a variable. Two hosts have different names: a dot is `_`, a hyphen `__`, and letters are capital.
fn in_variable(host: &str) -> String {
    let mut name = String::with_capacity(host.len());
    for c in host.chars() {
        match c {
            '.' => name.push('_'),
            '-' => name.push_str("__"),
            c if c.is_ascii_alphanumeric() => name.push(c.to_ascii_uppercase()),
            other => name.extend(["__x", &format!("{:x}", u32::from(other)), "__"]),
        }
    }
    name
}

/// The text of a file that a client reads.
fn file(members: &Value) -> String {
    let text = serde_json::to_string_pretty(members).unwrap_or_default();
    settings::escape::json(&text).into_owned()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claude_on_the_web_is_offered_only_public_servers() {
        for (url, is_public) in [
            ("https://shop.example.org/mcp", true),
            ("https://shop.example.org/mcp?a={b}", true),
            ("http://shop.example.org/mcp", false),
            ("http://127.0.0.1:8080/mcp", false),
            ("https://10.0.0.1/mcp", false),
            ("https://[::1]/mcp", false),
            ("https://localhost/mcp", false),
            ("https://box.lan/mcp", false),
        ] {
            let server = McpServer { name: "shop".to_owned(), url: url.to_owned(), secret: None };
            let steps = claude(&server).steps;
            assert_eq!(steps.contains("Connectors"), is_public, "{url}: {steps}");
            assert_eq!(steps.contains("need a public https address"), !is_public, "{url}: {steps}");
        }
    }

    #[test]
    fn each_host_has_a_variable_of_its_own() {
        let hosts = [
            "a-b.example",
            "a.b.example",
            "ab.example",
            "xn--mnchen-3ya.example",
            "a.b-example.org",
            "a-b.example.org",
        ];
        let variable = |host: &str| {
            let url = format!("http://{host}/mcp");
            McpServer { name: host.to_owned(), url, secret: Some(Secret::Bearer) }.variable().unwrap()
        };
        let mut variables: Vec<String> = hosts.into_iter().map(variable).collect();
        assert_eq!(variables[0], "TOKEN_OF_A__B_EXAMPLE");
        variables.sort();
        variables.dedup();
        assert_eq!(variables.len(), hosts.len());
    }
}

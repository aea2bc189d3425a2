//! Finds the address of a server in its description, and the base URL of calls in the environment variables of a client.

use serde_json::Value;

use crate::format::link_class;
use crate::object::{Keys, Object};

const SERVER_ADDRESS_KEYS: Keys =
    Keys::of(&["endpoint", "url", "server", "server_url", "serverUrl", "http", "sse"]);
const ENVIRONMENT_KEYS: Keys =
    Keys::of(&["environment_variables", "environmentVariables", "environment", "env"]);
/// Blocks with the address of a server in its description.
const SERVER_BLOCKS: Keys =
    Keys::of(&["remote", "hosted", "server", "transport", "connection", "streamable_http", "production"]);

/// Maximum number of environment variables of one server that are searched for a base URL.
const VARIABLES_MAX: usize = 50;

/// The base URL of paths, in the default value of an environment variable of the client: `{"SHOP_BASE_URL": {"default": "https://…"}}`.
pub(super) fn base_in_environment<'v>(object: &Object<'v>) -> Option<&'v str> {
    let variables = object.object_of(ENVIRONMENT_KEYS.within(object))?;
    let names_base = |name: &str| {
        ["BASE_URL", "API_URL", "API_BASE"].iter().any(|end| name.to_ascii_uppercase().ends_with(end))
    };
    let mut bases = variables.map.iter().take(VARIABLES_MAX).filter(|(name, _)| names_base(name));
    let value = |variable: &'v Value| variable.get("default").unwrap_or(variable).as_str();
    bases.find_map(|(_, variable)| value(variable).filter(|base| base.starts_with("https://")))
}

/// The address in the description of an MCP server, or in a block of it.
pub(super) fn address_of_server<'v>(server: &Object<'v>) -> Option<&'v str> {
    let inner = || SERVER_BLOCKS.within(server).iter().filter_map(|key| server.object(key));
    server
        .text_of(SERVER_ADDRESS_KEYS.within(server))
        .or_else(|| inner().find_map(|block| block.text_of(SERVER_ADDRESS_KEYS.within(&block))))
        .or_else(|| server.map.values().filter_map(Value::as_str).find(|text| is_server(text)))
}

/// Whether a text is the address of an MCP server by its last segment: `"remote_sse": "https://mcp.shop.example/sse"`.
fn is_server(text: &str) -> bool {
    text.starts_with("https://")
        && !text.contains(char::is_whitespace)
        && link_class::classify(text).rel == "mcp"
}

//! `/.well-known/woa.json`: WoA (draft-gaikwad-woa-00). Every tool is an agent, reachable by REST and MCP.

use serde_json::{Value, json};

use super::identity::{ServerIdentity, VERSION};
use crate::tools::Tool;

pub(super) fn document(identity: &ServerIdentity) -> Value {
    let agent = |tool: Tool| {
        let definition = tool.definition();
        json!({
            "id": tool.as_str(), "name": definition.title, "description": definition.description, "version": VERSION,
            "capabilities": [identity.url(&format!("/woa/{tool}"))],
            "inputs": definition.input, "outputs": definition.output, "transports": ["rest", "mcp"],
        })
    };
    let agents: Vec<Value> = Tool::ALL.iter().copied().map(agent).collect();
    json!({
        "woa_version": "1",
        "agents": agents,
        "transports": {
            "rest": {"base": identity.base, "invoke_path": "/woa/{agent_id}"},
            "mcp": {"server": identity.url("/mcp"), "tool_namespace": super::identity::NAME, "tool_field": "agent"},
        },
    })
}

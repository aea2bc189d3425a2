//! `/.well-known/woa.json`: WoA (draft-gaikwad-woa-00). Every offer is an agent; REST and MCP both lead to it.

use serde_json::{Value, json};

use super::{Own, VERSION};
use crate::offer::Offer;

pub(super) fn document(own: &Own) -> Value {
    let agent = |offer: Offer| {
        let definition = offer.definition();
        json!({
            "id": offer.as_str(), "name": definition.title, "description": definition.description, "version": VERSION,
            "capabilities": [own.url(&format!("/woa/{offer}"))],
            "inputs": definition.input, "outputs": definition.output, "transports": ["rest", "mcp"],
        })
    };
    let agents: Vec<Value> = Offer::ALL.iter().copied().map(agent).collect();
    json!({
        "woa_version": "1",
        "agents": agents,
        "transports": {
            "rest": {"base": own.base, "invoke_path": "/woa/{agent_id}"},
            "mcp": {"server": own.url("/mcp"), "tool_namespace": super::NAME, "tool_field": "agent"},
        },
    })
}

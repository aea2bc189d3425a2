//! `/agents.txt`: agents.txt 0.1, the summary of agents.json.

use super::identity::{DESCRIPTION, NAME, ServerIdentity};
use crate::tools::Tool;

pub(super) fn file(identity: &ServerIdentity) -> String {
    let names: Vec<&str> = Tool::ALL.iter().map(|tool| tool.as_str()).collect();
    [
        format!("Name: {NAME}"),
        format!("URL: {}", identity.url("/")),
        format!("Description: {DESCRIPTION}"),
        format!("Capabilities: {}", names.join(", ")),
        format!("Capabilities-URL: {}", identity.url("/.well-known/agents.json")),
        format!("Docs: {}", identity.url("/llms.txt")),
        "Audit: false".to_owned(),
        String::new(),
    ]
    .join("\n")
}

//! `/agents.txt`: agents.txt 0.1, the summary of agents.json.

use super::own::{DESCRIPTION, NAME, Own};
use crate::tools::Tool;

pub(super) fn file(own: &Own) -> String {
    let names: Vec<&str> = Tool::ALL.iter().map(|tool| tool.as_str()).collect();
    [
        format!("Name: {NAME}"),
        format!("URL: {}", own.url("/")),
        format!("Description: {DESCRIPTION}"),
        format!("Capabilities: {}", names.join(", ")),
        format!("Capabilities-URL: {}", own.url("/.well-known/agents.json")),
        format!("Docs: {}", own.url("/llms.txt")),
        "Audit: false".to_owned(),
        String::new(),
    ]
    .join("\n")
}

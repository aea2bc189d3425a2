//! WebMCP files: the tools that a page registers in the browser, listed in a file, with the HTTP calls behind them.
//!
//! Follows the informal `webmcp/0.1` listing; the tools themselves are those of the W3C WebMCP draft.

use super::{generic, mcp};
use crate::draft::Draft;
use crate::model::Severity;
use crate::object::Object;
use crate::rule::{Dialect, Kind, Rule, Shape, may, must};

pub(crate) const DIALECT: Dialect =
    Dialect { title: "WebMCP file", shapes: &[&ROOT, &TOOL], rules: &[&NO_CALL] };

const ROOT: Shape = Shape {
    code: "webmcp",
    spec: "webmcp/0.1",
    fields: &[
        must(
            "spec",
            Kind::Form(|text| text.starts_with("webmcp/"), "webmcp/ and a version"),
            "State webmcp/0.1.",
        ),
        must("tools", Kind::List, "List the tools as objects."),
    ],
};
const TOOL: Shape = Shape {
    code: "webmcp.tool",
    spec: "webmcp/0.1",
    fields: &[
        must("name", Kind::Text, "Name the tool."),
        must("description", Kind::Text, "Say what the tool does."),
        may("url", Kind::Reference, "Name a path or an absolute URL."),
        may(
            "method",
            Kind::OneOf(&["GET", "POST", "PUT", "PATCH", "DELETE"]),
            "State an HTTP method in capitals.",
        ),
        may("inputSchema", Kind::Object, "Describe the input in JSON Schema."),
        may("annotations", Kind::Object, "Publish annotations as an object of truth values."),
    ],
};
const NO_CALL: Rule = Rule {
    code: "webmcp.tool.page_only",
    severity: Severity::Note,
    spec: "webmcp/0.1",
    wrong: "a tool names no HTTP call, so it exists only inside the page",
    fix: "Name `url` and `method` for agents that do not open pages.",
};

/// Reads a file.
pub(crate) fn read(root: &Object<'_>, draft: &mut Draft<'_>) {
    draft.dialect(root.text("spec").and_then(|spec| spec.split('/').nth(1)), None);
    draft.judge("webmcp/0.1", |code| code.starts_with("webmcp."));
    draft.check(root, &ROOT);
    generic::describe(root, draft);
    for tool in root.objects("tools") {
        draft.check(&tool, &TOOL);
        if !tool.has("url") {
            draft.report_plainly(&NO_CALL, tool.pointer.clone());
        }
    }
    if let Some(tools) = root.value("tools") {
        mcp::read_tools(tools, &root.at("tools"), None, draft);
    }
}

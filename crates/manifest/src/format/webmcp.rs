//! WebMCP files: the tools that a page registers in the browser, listed in a file, with the corresponding HTTP calls.
//!
//! Follows the informal `webmcp/0.1` listing; the tools follow the W3C WebMCP draft.

use crate::draft::Draft;
use crate::format::detect::candidate::{Marker, at_path, strong};
use crate::format::{header, mcp};
use crate::object::Object;
use crate::rule::{Kind, findings, may, must};
use crate::walk::List;

pub(crate) const MARKERS: &[Marker] = &[
    strong(|c| {
        let spec = c.text("spec").filter(|spec| spec.to_ascii_lowercase().starts_with("webmcp"))?;
        Some(format!("`spec` is {spec}"))
    }),
    at_path(|c| c.agrees(&["/webmcp", "/webmcp.json"], &["tools"])),
];

findings! {
    shape ROOT("webmcp", "webmcp/0.1") {
        must("spec", Kind::Form(|text| text.starts_with("webmcp/"), "webmcp/ and a version"), "State webmcp/0.1."),
        must("tools", Kind::List, "List the tools as objects."),
    }
    shape TOOL("webmcp.tool", "webmcp/0.1") {
        must("name", Kind::Text, "Name the tool."),
        must("description", Kind::Text, "Describe what the tool does."),
        may("url", Kind::Reference, "State a path or an absolute URL."),
        may("method", Kind::OneOf(&["GET", "POST", "PUT", "PATCH", "DELETE"]), "State an HTTP method in capitals."),
        may("inputSchema", Kind::Object, "Describe the input in JSON Schema."),
        may("annotations", Kind::Object, "Publish annotations as an object of truth values."),
    }
    rule NO_CALL: Note("webmcp.tool.page_only", "webmcp/0.1")
        "a tool names no HTTP call, so it exists only inside the page"
            => "Name `url` and `method` for agents that do not open pages.";
}

pub(crate) fn read(root: &Object<'_>, draft: &mut Draft<'_>) {
    draft.dialect(root.text("spec").and_then(|spec| spec.split('/').nth(1)), None);
    draft.assess("webmcp/0.1", |code| code.starts_with("webmcp."));
    draft.check(root, &ROOT);
    header::describe(root, draft);
    draft.each(root, "tools", &List::of(&TOOL), |tool, draft| {
        if !tool.has("url") {
            draft.report_rule(&NO_CALL, tool.pointer.clone());
        }
    });
    if let Some(tools) = root.value("tools") {
        mcp::read_tools(tools, &root.at("tools"), None, draft);
    }
}

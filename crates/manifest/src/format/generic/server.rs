//! Tools, resources and prompts that the block of an MCP server lists by name.

use std::collections::HashSet;

use serde_json::Value;

use super::element::{self, Context};
use super::lists::ListKind;
use super::reader::Reader;
use super::stated_server;
use crate::format::mcp;
use crate::model::{Capability, CapabilityKind, Protocol};
use crate::object::{Object, children};

impl Reader<'_, '_> {
    /// Adds tools of the MCP server that have the name of an HTTP operation, as another way to call it.
    pub(super) fn add_repeated_tools(&mut self, names: &Value, pointer: &str, context: &Context) {
        if context.server().is_none() {
            return;
        }
        let is_tool = |known: &&Capability| known.invocation.protocol == Some(Protocol::Mcp);
        let tools = self.draft.manifest.capabilities.iter().filter(is_tool);
        let mut known: HashSet<String> = tools.filter_map(|tool| tool.invocation.native.clone()).collect();
        for (_, name, pointer) in children(names, pointer) {
            let Some(name) = name.as_str().map(str::trim).filter(|name| self.seen.contains(*name)) else {
                continue;
            };
            if self.is_done() || !known.insert(name.to_owned()) {
                continue;
            }
            let mut capability = self.draft.capability(CapabilityKind::Tool, name, name, pointer);
            element::set_tool(ListKind::of_tools(), context, &mut capability);
            capability.invocation.native = Some(name.to_owned());
            self.push(capability);
        }
    }

    /// Removes the address of the server from the tools from `first` on that are not in its own list. If a server in a block lists its tools,
    /// the other tools of the block belong to another server.
    pub(super) fn keep_apart(&mut self, block: &Object<'_>, first: usize) {
        let listing = block.members().find(|(_, server)| {
            let tools = server.value("tools").and_then(Value::as_array);
            tools.is_some_and(|tools| !tools.is_empty() && tools.iter().all(Value::is_string))
                && stated_server::address_of_server(server).is_some()
        });
        let Some((_, server)) = listing else { return };
        let own: HashSet<&str> = server.texts("tools").into_iter().collect();
        for tool in self.draft.manifest.capabilities.iter_mut().skip(first) {
            let is_other = tool.invocation.native.as_deref().is_some_and(|name| !own.contains(name));
            if is_other && tool.invocation.protocol == Some(Protocol::Mcp) {
                tool.invocation.url = None;
            }
        }
    }

    /// Makes the resources and prompts from `first` on callable through the MCP server of their block.
    pub(super) fn read_through_server(&mut self, key: &str, first: usize, context: &Context) {
        for capability in self.draft.manifest.capabilities.iter_mut().skip(first) {
            let name = capability.native_id.clone();
            if capability.invocation.endpoint().is_none() && context.server().is_some() {
                capability.invocation = match key {
                    "resources" => mcp::resource_call(context.server(), &name),
                    _ => mcp::prompt_call(context.server(), &name),
                };
            }
        }
    }
}

//! Reads JSON that describes a service without following a known specification, by its member names.
//!
//! Reads every list or map of services, wherever it is, and turns each element into a capability. Operations come first:
//! flags become capabilities only in a document that declares nothing else. Without a specification there are no findings;
//! the weak detection marks the result.

pub(super) mod access;
mod asides;
mod by_name;
mod details;
mod element;
mod lists;
mod messages;
mod method;
mod other_shapes;
mod reader;
mod rpc;
mod server;
mod service_folder;
mod single;
mod state;
mod stated_server;
mod typed;
mod workflows;

use serde_json::Value;
use url::Url;

use crate::address::{self, Address};
use crate::draft::{self, Draft};
use crate::format::addresses::{self, LinkInText};
use crate::format::outbound::Target;
use crate::format::{described_block, header, inline, needed_credentials, oauth, outbound};
use crate::model::{Capability, CapabilityKind, Protocol, Workflow};
use crate::name::ManifestUrl;
use crate::object::{Object, children, texts};

use access::{apply_auth, read_auth};
pub(crate) use access::{open_registration, read_openness};
pub(crate) use asides::first_call;
pub(crate) use by_name::apply_by_name;
use element::{Call, Context};
use lists::{ListKind, SERVICE_KEYS, has_groups, is_described, is_group_of_calls};
pub(crate) use lists::{first_list, is_call_object as is_call};
use reader::{NESTING_MAX, Reader, Wanted, call_of, is_left_out, is_names};
pub(crate) use service_folder::folder_of;
use typed::Typed;
pub(crate) use workflows::read_workflows;

pub(crate) fn read(root: &Object<'_>, draft: &mut Draft<'_>) {
    header::describe(root, draft);
    read_auth(root, draft);
    oauth::read(root, draft);
    let mut reader = Reader::new(draft, Wanted::Everything);
    reader.read_services(root);
    rpc::read(root, draft);
    messages::read(root, draft);
    apply_auth(root, draft);
}

/// Adds calls to a document of a known format: elements of lists with a method and an address. Members that its parser has read are
/// skipped.
pub(crate) fn read_operations(root: &Object<'_>, draft: &mut Draft<'_>) {
    let read = draft.members_with_capabilities();
    let called = draft.manifest.capabilities.iter().filter_map(call_of).collect();
    let (context, of_lists) = (Context::of_root(root, draft), Context::of_lists(root, draft));
    let mut reader = Reader::new(draft, Wanted::Calls(called));
    let wanted = |key: &str| !read.contains(key);
    reader.scan(root, 1, &of_lists, &wanted);
    asides::read(root, &context, &wanted, &mut reader);
}

/// Reads the services of an object that follows comments. The comments name the provider.
pub(crate) fn read_below_comments(root: &Object<'_>, draft: &mut Draft<'_>) {
    read_auth(root, draft);
    let description = header::description_of(root);
    draft.manifest.description = draft.manifest.description.take().or(description);
    Reader::new(draft, Wanted::Everything).read_services(root);
    apply_auth(root, draft);
    needed_credentials::read_accepted(&outbound::Texts::of(root.map), draft);
}

/// The base URL of paths that a document publishes, at the root or next to the description of its API.
pub(crate) fn base_of(root: &Object<'_>, draft: &Draft<'_>) -> Option<Url> {
    Context::of_lists(root, draft).base
}

/// A path below a base, or on the origin of the document.
pub(crate) fn absolute(published: &str, base: Option<&Url>, document: &ManifestUrl) -> Option<String> {
    element::resolve(published, base, document).map(Address::into_string)
}

/// Every element of a list or map as a capability.
pub(crate) fn read_service_list(key: &str, value: &Value, pointer: &str, draft: &mut Draft<'_>) {
    let kind = ListKind::of(key).unwrap_or_else(ListKind::of_capabilities);
    let mut reader = Reader::new(draft, Wanted::Everything);
    let list = List { kind, depth: 0, names: Names::Kept, context: &Context::default() };
    reader.read_list(list, value, pointer);
}

/// Whether elements that are only names become capabilities.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Names {
    Kept,
    Skipped,
}

impl Reader<'_, '_> {
    fn read_services(&mut self, root: &Object<'_>) {
        let context = Context::of_lists(root, self.draft);
        self.is_about_owner = reader::is_about_owner(root);
        if lists::is_call_object(root.map) && first_list(root.map).is_none() {
            return self.read_only_call(root, &context);
        }
        // Names in `capabilities` repeat the operations, so the operations come first.
        self.scan(root, 0, &context, &|key| key != "capabilities");
        self.read_names_of_blocks(root, &context);
        if let Some(value) = root.value("capabilities").filter(|value| !lists::names_mcp_features(value)) {
            let context = context.of_map(has_groups(value));
            let list =
                List { kind: ListKind::of_capabilities(), depth: 0, names: Names::Kept, context: &context };
            self.read_list(list, value, &root.at("capabilities"));
            self.read_flags(value, &root.at("capabilities"));
        }
        self.read_only_skill(root, &context);
        self.read_requests(root);
        if self.draft.manifest.capabilities.is_empty() {
            self.read_other_lists(root, &context);
        }
        asides::read(root, &Context::of_root(root, self.draft), &|_| true, self);
        if let Some(names) = root.value("capabilities").filter(|value| lists::names_mcp_features(value)) {
            let named = texts(names).into_iter().map(|name| (name.to_owned(), Value::Bool(true)));
            self.draft.manifest.features.other.extend(named);
        }
    }

    /// Reads lists that often do not contain services, if no other list was found; then lists one level down.
    fn read_other_lists(&mut self, root: &Object<'_>, context: &Context) {
        let inner = root.members().map(|(_, inner)| inner);
        for object in std::iter::once(root.clone()).chain(inner) {
            for key in SERVICE_KEYS {
                let value = object.value(key).filter(|value| !lists::names_mcp_features(value));
                if let (Some(value), Some(kind)) = (value, ListKind::of(key)) {
                    self.read_list(
                        List { kind, depth: 0, names: Names::Kept, context },
                        value,
                        &object.at(key),
                    );
                    if self.draft.manifest.capabilities.is_empty() {
                        self.read_flags(value, &object.at(key));
                    }
                }
                if !self.draft.manifest.capabilities.is_empty() && object.pointer.is_empty() {
                    return;
                }
            }
            if !self.draft.manifest.capabilities.is_empty() {
                return;
            }
        }
    }

    /// Reads flags as features, unless the document declares nothing else.
    fn read_flags(&mut self, value: &Value, pointer: &str) {
        let is_all = self.draft.manifest.capabilities.is_empty();
        for (name, item, pointer) in children(value, pointer) {
            let Some(name) = name else { continue };
            let Value::Bool(flag) = item else {
                if lists::has_flags(value) && (item.is_number() || item.is_string()) {
                    self.draft.manifest.features.other.insert(name.to_owned(), item.clone());
                }
                continue;
            };
            if is_all && *flag {
                let capability = self.draft.capability(CapabilityKind::Unknown, name, name, pointer);
                self.push(capability);
            } else if !is_all {
                let features = &mut self.draft.manifest.features;
                match name {
                    "streaming" => features.streaming = Some(*flag),
                    "webhooks" => features.webhooks = Some(*flag),
                    _ => drop(features.other.insert(name.to_owned(), item.clone())),
                }
            }
        }
    }

    /// Reads the lists of an object and of the objects in it.
    fn scan(&mut self, object: &Object<'_>, depth: usize, context: &Context, wanted: &dyn Fn(&str) -> bool) {
        for (key, value) in object.map.iter().filter(|(key, _)| wanted(key)) {
            if self.is_done() {
                return;
            }
            let kind = ListKind::of(key).filter(|kind| !kind.is_fallback());
            // Names in a block of credentials are the calls that need them.
            if kind.is_some() && is_names(value) && lists::is_in_auth(&object.pointer) {
                continue;
            }
            match (kind, value) {
                (Some(kind), Value::Array(_) | Value::Object(_)) => {
                    // Names of single words below a longer name may be the values of a field: `intent_actions`.
                    let is_values = kind.key() != key && !lists::has_identifier(value);
                    let is_named = depth == 0 && !kind.is_of_calls() && !is_values;
                    let names = if is_named { Names::Kept } else { Names::Skipped };
                    let list = List { kind, depth, names, context: &context.of_list(key) };
                    self.read_list(list, value, &object.at(key));
                }
                (None, Value::Object(map)) if lists::is_map_of_calls(map) && !outbound::is_contact(key) => {
                    let kind = ListKind::of_operations();
                    let list = List { kind, depth, names: Names::Skipped, context };
                    self.read_list(list, value, &object.at(key));
                }
                (None, Value::Array(_)) if lists::is_list_of_calls(key, value) => {
                    let kind = ListKind::of_operations();
                    let list = List { kind, depth, names: Names::Skipped, context };
                    self.read_list(list, value, &object.at(key));
                }
                (None, Value::Object(map)) if depth < NESTING_MAX && !is_left_out(key) => {
                    let inner = Object::new(map, object.at(key));
                    let context = context.within(&inner, key, self.draft).of_block(&inner, key);
                    self.scan(&inner, depth + 1, &context, &|_| true);
                }
                _ => {}
            }
        }
    }

    /// Reads names one level down that describe the whole service, unless an operation has the same name.
    fn read_names_of_blocks(&mut self, root: &Object<'_>, context: &Context) {
        let described = described_block::name_of(root.map).map(|block| (block, "capabilities"));
        let blocks = described_block::BLOCKS_OF_NAMES.iter().copied();
        for (block, key) in blocks.chain(described).chain(described_block::with_names(root.map)) {
            let Some(inner) = root.object(block) else { continue };
            let names = inner.value(key).filter(|names| {
                names.as_array().is_some_and(|list| !list.is_empty() && list.iter().all(Value::is_string))
            });
            if let (Some(names), Some(kind)) = (names, ListKind::of(key)) {
                let context = context.within(&inner, block, self.draft);
                let list = List { kind, depth: 1, names: Names::Kept, context: &context };
                let first = self.draft.manifest.capabilities.len();
                self.see_all(!described_block::is_known(root.map, block, key));
                self.read_list(list, names, &inner.at(key));
                match (block, key) {
                    ("a2a", _) => self.call_agent(&inner, first),
                    ("mcp", "tools") => {
                        self.add_repeated_tools(names, &inner.at(key), &context);
                        self.keep_apart(&inner, first);
                    }
                    ("mcp", _) => self.read_through_server(key, first, &context),
                    _ => {}
                }
            }
        }
    }

    /// Sets the address of an agent for the skills from `first` on, which its block lists by name.
    fn call_agent(&mut self, agent: &Object<'_>, first: usize) {
        let keys = ["task_endpoint", "taskEndpoint", "endpoint", "url", "rpc", "jsonrpc"];
        let Some(url) = agent.text_of(&keys).and_then(|text| self.draft.origin_url(text)) else { return };
        for skill in self.draft.manifest.capabilities.iter_mut().skip(first) {
            let invocation = &mut skill.invocation;
            if invocation.endpoint().is_none() {
                invocation.protocol = Some(Protocol::A2a);
                invocation.url = Some(url.clone());
            }
        }
    }

    fn read_list(&mut self, list: List<'_>, value: &Value, pointer: &str) {
        let has_flags = list.kind.is_capabilities() && lists::has_flags(value);
        // If the document declares anything else, a member with neither a call nor a description is a setting.
        let may_hold_settings = list.kind.is_capabilities()
            && (has_flags || lists::declares(value) || !self.draft.manifest.capabilities.is_empty());
        let is_group = value.as_object().is_some_and(is_group_of_calls);
        for (name, item, pointer) in children(value, pointer) {
            if self.is_done() {
                return;
            }
            let is_setting = may_hold_settings && name.is_some_and(|name| lists::is_setting(name, item));
            let is_access =
                list.kind.is_capabilities() && name.is_some_and(|name| lists::is_access(name, item));
            let is_prose = is_group && name.is_some_and(|name| asides::PROSE_KEYS.contains(&name));
            match item {
                _ if is_access => {}
                Value::String(text) if is_prose && element::published_address(text).is_none() => {}
                _ if is_setting => {
                    let other = &mut self.draft.manifest.features.other;
                    other.extend(name.map(|name| (name.to_owned(), item.clone())));
                }
                Value::Object(map) => self.read_object(list, name, item, &Object::new(map, pointer)),
                Value::Array(items) => self.read_inner_list(list, name, items, item, &pointer),
                // Among flags, a text is the value of a feature.
                Value::String(text) if !has_flags => self.read_text(list, name, text, pointer),
                _ => {}
            }
        }
    }

    /// Reads an element that is an object: a group of further elements, or one capability.
    fn read_object(&mut self, list: List<'_>, name: Option<&str>, value: &Value, object: &Object<'_>) {
        if let Some(members) = lists::of_function(object.map) {
            let whole = Value::Object(members.clone());
            return self.read_object(list, name, &whole, &Object::new(&members, object.pointer.clone()));
        }
        let has_address = object.text_of(element::ADDRESS_KEYS.within(object)).is_some();
        if let Some(members) = lists::call_by_shape(object.map).filter(|_| !has_address) {
            let whole = Value::Object(members.clone());
            return self.read_object(list, name, &whole, &Object::new(&members, object.pointer.clone()));
        }
        if let Some(typed) = Typed::of(list.kind, object) {
            return self.read_typed(typed, list, object);
        }
        let address = name.filter(|name| element::published_address(name).is_some());
        if let Some(path) = address.filter(|_| lists::is_map_of_methods(object.map)) {
            return self.read_methods(list, path, value, &object.pointer);
        }
        let is_agent = matches!(self.wanted, Wanted::Everything)
            && list.kind.is_agents()
            && name.is_some()
            && object.text_of(&["mission", "role", "purpose"]).is_some();
        let described = is_described(object.map) || address.is_some() || is_agent;
        if let Some(name) = name.filter(|_| !described && list.depth < NESTING_MAX) {
            let group = ListKind::of(name).or_else(|| is_group_of_calls(object.map).then_some(list.kind));
            if let Some(kind) = group {
                let first = self.draft.manifest.capabilities.len();
                self.read_list(List { kind, depth: list.depth + 1, ..list }, value, &object.pointer);
                let described = header::description_of(object);
                for call in self.draft.manifest.capabilities.iter_mut().skip(first) {
                    call.description = call.description.take().or_else(|| described.clone());
                }
                return;
            }
        }
        if !described && list.names == Names::Skipped {
            return;
        }
        let context = list.context.within(object, "", self.draft);
        let is_flow = list.kind.is_flows() && matches!(self.wanted, Wanted::Everything);
        let flow = is_flow.then(|| workflows::steps_of_flow(object)).filter(|steps| !steps.is_empty());
        if lists::has_pattern(object) {
            return;
        }
        let call = Call::of(object, name);
        let mut agent = None;
        for method in call.methods() {
            if self.is_done() {
                return;
            }
            let mut capability = call.capability(list.kind, name, &context, method, self.draft);
            agent = agent_of(list.kind, &capability);
            if let Some(steps) = &flow {
                let (id, name) = (capability.native_id.clone(), capability.title.clone());
                let workflow = Workflow { id: id.clone(), name, steps: steps.clone(), ..Workflow::default() };
                self.draft.keep(workflow);
                capability.used_in_workflows = vec![id];
            }
            if is_flow {
                workflows::depend_on_required(object, &mut capability);
            }
            self.push(capability);
        }
        let may_be_inline = list.kind.is_agents() && matches!(self.wanted, Wanted::Everything);
        let is_inline = may_be_inline && inline::read(object, self.draft).is_some();
        if !is_inline && list.depth < NESTING_MAX {
            let context = context.at_element(object).of_agent(agent);
            self.scan(object, list.depth + 1, &context, &|_| true);
        }
    }

    /// Reads the methods of a path, as in OpenAPI: `{"/search": {"get": {…}}}`.
    fn read_methods(&mut self, list: List<'_>, path: &str, methods: &Value, pointer: &str) {
        for (method, call, pointer) in children(methods, pointer) {
            let name = [&method.unwrap_or_default().to_ascii_uppercase(), path].join(" ");
            match call {
                Value::Object(map) => self.read_object(list, Some(&name), call, &Object::new(map, pointer)),
                Value::String(text) => self.read_text(list, Some(&name), text, pointer),
                _ => {}
            }
        }
    }

    /// Reads a list inside a list: a group of elements, or the properties of a named capability.
    fn read_inner_list(
        &mut self,
        list: List<'_>,
        name: Option<&str>,
        items: &[Value],
        value: &Value,
        pointer: &str,
    ) {
        let holds_elements = match items.first() {
            Some(Value::String(text)) => element::published_address(text).is_some(),
            first => first.is_some_and(Value::is_object),
        };
        // Addresses of servers: `{"mcp": ["https://…"]}`.
        let leads = |item: &Value| {
            let address = item.as_str().and_then(element::published_address);
            let names: Vec<&str> = std::iter::once(list.kind.key()).chain(name).collect();
            address.is_some_and(|(method, address)| {
                method.is_none() && outbound::target(&names, address).is_some_and(Target::is_server)
            })
        };
        if name.is_some() && items.first().is_some_and(leads) {
            return;
        }
        // Names below a kind of skill are its properties, even if the kind is called `data`.
        let by_name = name.and_then(ListKind::of).filter(|_| holds_elements || !list.kind.is_skills());
        let kind = by_name.or_else(|| holds_elements.then_some(list.kind));
        if let Some(kind) = kind.filter(|_| list.depth < NESTING_MAX) {
            return self.read_list(List { kind, depth: list.depth + 1, ..list }, value, pointer);
        }
        if list.kind.is_skills() && self.is_about_owner {
            self.keep_subject(name, items);
        } else if let Some(name) = name.filter(|_| list.names == Names::Kept && !list.context.has_groups) {
            let mut capability =
                self.draft.capability(CapabilityKind::Unknown, name, name, pointer.to_owned());
            capability.tags = draft::tags(items.iter().filter_map(Value::as_str));
            self.push(capability);
        }
    }

    /// Reads a path that was published without its first slash: a document becomes a link, any other a call.
    fn read_relative(&mut self, list: List<'_>, name: Option<&str>, path: &str, pointer: String) {
        let names: Vec<&str> = std::iter::once(list.kind.key()).chain(name).collect();
        let is_document = name.is_some_and(|name| other_shapes::is_document_by_name(name, path));
        if is_document || outbound::target(&names, path).is_some_and(|target| !target.is_server()) {
            return addresses::keep(&LinkInText { title: name, address: path }, self.draft);
        }
        self.read_text(list, name, path, pointer);
    }

    /// Reads an element that is a text: an address, a name, or the description of a name.
    fn read_text(&mut self, list: List<'_>, name: Option<&str>, text: &str, pointer: String) {
        if let Some(path) = other_shapes::relative_path(list.kind, name, text) {
            return self.read_relative(list, name, &path, pointer);
        }
        let label = name.unwrap_or(text).trim();
        if label.is_empty() || address::is_pattern(text.trim_end()) {
            return;
        }
        if let Some((method, address)) = element::published_address(text) {
            let shown = method.is_none().then(|| list.context.method_of_example(address)).flatten();
            if method.is_none() && other_shapes::is_page(list.kind, name, address) {
                // A page, a document or a server is not an operation: it becomes a link or an interface.
                return;
            }
            // `POST /book — Books a room`.
            let call = method.filter(|_| name.is_none()).map(|method| [method, address].join(" "));
            let label = call.as_deref().unwrap_or(label);
            let mut capability = self.draft.capability(list.kind.of_address(), label, label, pointer);
            capability.description = draft::description(element::remark(text, address));
            element::set_address(address, method.or(shown), list.context, &mut capability, self.draft);
            list.context.read_example(address, &mut capability);
            capability.auth.required = list.context.needed(&capability);
            capability.degraded = list.context.is_down;
            return self.push(capability);
        }
        // `{"POST /book": "Books it"}`.
        if let Some((method @ Some(_), address)) = name.and_then(element::published_address) {
            let mut capability = self.draft.capability(list.kind.of_address(), label, label, pointer);
            capability.description = draft::description(Some(text));
            element::set_address(address, method, list.context, &mut capability, self.draft);
            capability.auth.required = list.context.needed(&capability);
            capability.degraded = list.context.is_down;
            return self.push(capability);
        }
        // `{"/rooms": "Lists the rooms"}`.
        let path = name.filter(|name| name.starts_with('/') && other_shapes::is_of_calls(list.kind));
        if let Some((None, path)) = path.and_then(element::published_address) {
            let mut capability = self.draft.capability(list.kind.of_address(), label, label, pointer);
            capability.description = draft::description(Some(text));
            element::set_address(path, None, list.context, &mut capability, self.draft);
            return self.push(capability);
        }
        if list.names == Names::Skipped || self.seen.contains(label) {
            return;
        }
        let mut capability = self.draft.capability(list.kind.of_name(), label, label, pointer);
        capability.description = name.and_then(|_| draft::description(Some(text)));
        element::set_tool(list.kind, list.context, &mut capability);
        self.draft.push(capability);
    }
}

/// Protocol and address of an agent that speaks a protocol of agents.
fn agent_of(kind: ListKind, capability: &Capability) -> Option<(Protocol, String)> {
    let protocol = capability.invocation.protocol.filter(|protocol| *protocol == Protocol::A2a)?;
    kind.is_agents().then(|| capability.invocation.endpoint().map(|url| (protocol, url.to_owned()))).flatten()
}

/// A list that is read: the kind of its elements, its depth, and their context.
#[derive(Clone, Copy)]
struct List<'c> {
    kind: ListKind,
    depth: usize,
    names: Names,
    context: &'c Context,
}

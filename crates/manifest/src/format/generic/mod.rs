//! Service-like JSON that follows no known specification, read by its member names.
//!
//! Reads every list or map of services, wherever it is, and turns each element into a capability. Operations come first:
//! flags become capabilities only in a document that declares nothing else. Without a specification there are no findings;
//! the weak detection marks the result.

mod element;
mod lists;

use std::collections::HashSet;

use serde_json::Value;

use crate::draft::{self, Draft};
use crate::format::{header, inline, lenient, outbound};
use crate::model::{AuthScheme, Capability, CapabilityKind, Tristate};
use crate::object::{Object, children};

use element::Context;
pub(crate) use lists::first_list;
use lists::{ListKind, SERVICE_KEYS, has_groups, is_described, is_map_of_addresses};

/// Deepest nesting of objects in which lists are searched.
const NESTING_MAX: usize = 4;

pub(crate) fn read(root: &Object<'_>, draft: &mut Draft<'_>) {
    header::describe(root, draft);
    read_auth(root, draft);
    let mut reader = Reader { draft, seen: HashSet::new() };
    reader.read_services(root);
    let stated = root.value_of(&["authentication", "auth"]).and_then(lenient::auth_required);
    apply_auth(stated, draft);
}

/// Every element of a list or map as a capability.
pub(crate) fn read_service_list(key: &str, value: &Value, pointer: &str, draft: &mut Draft<'_>) {
    let kind = ListKind::of(key).unwrap_or_else(ListKind::of_capabilities);
    let mut reader = Reader { draft, seen: HashSet::new() };
    let list = List { kind, depth: 0, names: Names::Kept, context: &Context::default() };
    reader.read_list(list, value, pointer);
}

/// Credentials and rate limit of the whole service.
fn read_auth(root: &Object<'_>, draft: &mut Draft<'_>) {
    if let Some(auth) = root.value_of(&["authentication", "auth"]) {
        draft.manifest.auth = lenient::auth(auth);
    }
    if let Some(limit) = root.value_of(&["rate_limit", "rateLimit", "rate_limits", "rateLimits"]) {
        draft.manifest.rate_limit = lenient::rate_limit(limit);
    }
}

/// The credentials of the service apply to what states none of its own.
fn apply_auth(stated: Option<bool>, draft: &mut Draft<'_>) {
    let needed = lenient::required_by(&draft.manifest.auth);
    let required = stated.map_or(needed.required, |stated| Tristate::from_option(Some(stated)));
    for capability in &mut draft.manifest.capabilities {
        let auth = &mut capability.auth;
        if auth.required == Tristate::Unknown && auth.schemes.is_empty() {
            auth.required = required;
        }
        if auth.required == Tristate::Yes && auth.schemes.is_empty() {
            auth.schemes =
                needed.schemes.iter().copied().filter(|scheme| *scheme != AuthScheme::None).collect();
        }
    }
}

/// Whether elements that are only names become capabilities.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Names {
    Kept,
    Skipped,
}

struct Reader<'r, 'd> {
    draft: &'r mut Draft<'d>,
    /// Native ids of the capabilities that are more than a name.
    seen: HashSet<String>,
}

impl Reader<'_, '_> {
    fn read_services(&mut self, root: &Object<'_>) {
        let context = Context::default().within(root, "", self.draft);
        // Names in `capabilities` repeat what the operations are: the operations come first.
        self.scan(root, 0, &context, |key| key != "capabilities");
        if let Some(value) = root.value("capabilities") {
            let context = context.of_map(has_groups(value));
            let list =
                List { kind: ListKind::of_capabilities(), depth: 0, names: Names::Kept, context: &context };
            self.read_list(list, value, &root.at("capabilities"));
            self.read_flags(value, &root.at("capabilities"));
        }
        if self.draft.manifest.capabilities.is_empty() {
            self.read_other_lists(root, &context);
        }
    }

    /// Lists that often hold something else, where nothing better was found; then lists one level down.
    fn read_other_lists(&mut self, root: &Object<'_>, context: &Context) {
        let inner = root.members().map(|(_, inner)| inner);
        for object in std::iter::once(root.clone()).chain(inner) {
            for key in SERVICE_KEYS {
                if let (Some(value), Some(kind)) = (object.value(key), ListKind::of(key)) {
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

    /// Flags are features, unless they are all that a document declares.
    fn read_flags(&mut self, value: &Value, pointer: &str) {
        let is_all = self.draft.manifest.capabilities.is_empty();
        for (name, item, pointer) in children(value, pointer) {
            let (Some(name), Value::Bool(flag)) = (name, item) else { continue };
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
    fn scan(&mut self, object: &Object<'_>, depth: usize, context: &Context, wanted: fn(&str) -> bool) {
        for (key, value) in object.map.iter().filter(|(key, _)| wanted(key)) {
            if self.draft.is_full() {
                return;
            }
            let kind = ListKind::of(key).filter(|kind| !kind.is_fallback());
            match (kind, value) {
                (Some(kind), Value::Array(_) | Value::Object(_)) => {
                    let names = if depth == 0 { Names::Kept } else { Names::Skipped };
                    let list = List { kind, depth, names, context: &context.of_list(key) };
                    self.read_list(list, value, &object.at(key));
                }
                (None, Value::Object(map)) if depth < NESTING_MAX && !outbound::is_about_calls(key) => {
                    let inner = Object { map, pointer: object.at(key) };
                    let context = context.within(&inner, key, self.draft);
                    self.scan(&inner, depth + 1, &context, |_| true);
                }
                _ => {}
            }
        }
    }

    fn read_list(&mut self, list: List<'_>, value: &Value, pointer: &str) {
        for (name, item, pointer) in children(value, pointer) {
            if self.draft.is_full() {
                return;
            }
            match item {
                Value::Object(map) => self.read_object(list, name, item, &Object { map, pointer }),
                Value::Array(items) => self.read_inner_list(list, name, items, item, &pointer),
                Value::String(text) => self.read_text(list, name, text, pointer),
                _ => {}
            }
        }
    }

    /// An element that is an object: a group of further elements, or one capability.
    fn read_object(&mut self, list: List<'_>, name: Option<&str>, value: &Value, object: &Object<'_>) {
        let described = is_described(object.map);
        if let Some(name) = name.filter(|_| !described && list.depth < NESTING_MAX) {
            let group = ListKind::of(name).or_else(|| is_map_of_addresses(object.map).then_some(list.kind));
            if let Some(kind) = group {
                return self.read_list(List { kind, depth: list.depth + 1, ..list }, value, &object.pointer);
            }
        }
        if !described && list.names == Names::Skipped {
            return;
        }
        let context = list.context.within(object, "", self.draft);
        for capability in element::from_object(list.kind, name, object, &context, self.draft) {
            self.push(capability);
        }
        let is_inline = list.kind.is_agents() && inline::read(object, self.draft).is_some();
        if !is_inline && list.depth < NESTING_MAX {
            self.scan(object, list.depth + 1, &context, |_| true);
        }
    }

    /// A list inside a list: a group of elements, or the properties of a named capability.
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
        let kind = name.and_then(ListKind::of).or_else(|| holds_elements.then_some(list.kind));
        if let Some(kind) = kind.filter(|_| list.depth < NESTING_MAX) {
            return self.read_list(List { kind, depth: list.depth + 1, ..list }, value, pointer);
        }
        if let Some(name) = name.filter(|_| list.names == Names::Kept && !list.context.has_groups) {
            let mut capability =
                self.draft.capability(CapabilityKind::Unknown, name, name, pointer.to_owned());
            capability.tags = draft::tags(items.iter().filter_map(Value::as_str));
            self.push(capability);
        }
    }

    /// An element that is a text: an address, a name, or the description of a name.
    fn read_text(&mut self, list: List<'_>, name: Option<&str>, text: &str, pointer: String) {
        let label = name.unwrap_or(text).trim();
        if label.is_empty() {
            return;
        }
        if let Some((method, address)) = element::published_address(text) {
            let names: Vec<&str> = std::iter::once(list.kind.key()).chain(name).collect();
            if method.is_none() && outbound::target(&names, address).is_some() {
                // A document or a server is not an operation: it becomes a link or an interface.
                return;
            }
            let mut capability = self.draft.capability(list.kind.of_address(), label, label, pointer);
            element::set_address(address, method, list.context, &mut capability, self.draft);
            capability.auth.required = list.context.auth;
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

    fn push(&mut self, capability: Capability) {
        self.seen.insert(capability.native_id.clone());
        self.draft.push(capability);
    }
}

/// A list that is read: what its elements are, how deep it is, and what applies to all of them.
#[derive(Clone, Copy)]
struct List<'c> {
    kind: ListKind,
    depth: usize,
    names: Names,
    context: &'c Context,
}

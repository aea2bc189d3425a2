//! Calls that a document states outside its lists: `"register": {"method": "POST", "url": "/keys"}`,
//! `"delete": "DELETE /rooms/{id}"`, `"drop_endpoint": "/drop"`, `"search": "/search?q={query}"`.

use serde_json::{Map, Value};

use super::element::{self, Call, Context, REQUEST_KEYS};
use super::lists::{self, ListKind};
use super::other_shapes;
use super::reader::{NESTING_MAX, Reader, Wanted, is_left_out};
use crate::draft::{self, Draft};
use crate::format::lenient::{self, AUTH_KEYS};
use crate::format::outbound::{self, Target};
use crate::format::{endpoint, link_class};
use crate::hash::HashSet;
use crate::model::{Capability, CapabilityKind, Invocation};
use crate::object::Object;
use crate::schema;
use crate::text;

/// Maximum number of bytes of a text that may be a call with a remark: ten times the longest published one.
const TEXT_BYTES_MAX: usize = 1_000;
/// Maximum number of addresses with a variable in described objects outside lists that are read; published files have one.
const DESCRIBED_MAX: usize = 100;
/// Words of members with the address of an authorization server, of the caller, or of a declaration.
const OTHER_WORDS: &[&str] = &[
    "token",
    "authorization",
    "authorize",
    "auth",
    "oauth",
    "oauth2",
    "jwks",
    "userinfo",
    "introspection",
    "revocation",
    "registration",
    "device",
    "webhook",
    "callback",
    "session",
    "audit",
    "schema",
    "card",
    "manifest",
    "discovery",
    "health",
    "heartbeat",
    "ping",
];
/// Members whose call repeats another one, or is a step of a description.
const REPEATING_KEYS: &[&str] = &["alias", "aliases", "action", "step"];
/// Members with sentences, which may begin with a call. These calls are read elsewhere, like all calls in sentences.
pub(super) const PROSE_KEYS: &[&str] = &[
    "description",
    "description_for_model",
    "description_for_human",
    "summary",
    "note",
    "notes",
    "flow",
    "usage",
    "instructions",
    "recovery",
    "hint",
];

/// The calls that are already capabilities.
struct Known {
    /// Method and address; only the address if there is no method.
    calls: HashSet<(String, String)>,
    ids: HashSet<String>,
    /// The members that are capabilities.
    pointers: HashSet<String>,
}

impl Known {
    fn of(draft: &Draft<'_>) -> Self {
        let mut calls = HashSet::default();
        for capability in &draft.manifest.capabilities {
            let Some(endpoint) = capability.invocation.endpoint() else { continue };
            calls.insert((String::new(), endpoint.to_owned()));
            let method = capability.invocation.method.clone();
            calls.extend(method.map(|method| (method, endpoint.to_owned())));
        }
        let ids = draft.manifest.capabilities.iter().map(|capability| capability.native_id.clone());
        let pointers = draft.manifest.capabilities.iter().map(|capability| capability.pointer.clone());
        let pointers = pointers.filter(|pointer| !pointer.is_empty());
        Self { calls, ids: ids.collect(), pointers: pointers.collect() }
    }

    /// Remembers a call, and returns whether it is new.
    fn is_new(&mut self, method: Option<&str>, address: &str) -> bool {
        let opened = endpoint::open_query(address);
        let address = opened.as_deref().unwrap_or(address);
        let is_new = self.calls.insert((method.unwrap_or_default().to_owned(), address.to_owned()));
        self.calls.insert((String::new(), address.to_owned()));
        is_new
    }
}

/// Adds the calls outside lists that are not in any list.
pub(super) fn read(
    root: &Object<'_>,
    context: &Context,
    wanted: &dyn Fn(&str) -> bool,
    reader: &mut Reader<'_, '_>,
) {
    let mut walk = Walk { known: Known::of(reader.draft), reader, described_left: DESCRIBED_MAX };
    walk.object(root, context, 0, wanted);
}

struct Walk<'w, 'r, 'd> {
    known: Known,
    reader: &'w mut Reader<'r, 'd>,
    /// Number of addresses in described objects that may still be compared with the capabilities.
    described_left: usize,
}

impl Walk<'_, '_, '_> {
    fn object(
        &mut self,
        object: &Object<'_>,
        context: &Context,
        depth: usize,
        wanted: &dyn Fn(&str) -> bool,
    ) {
        for (key, value) in object.map.iter().filter(|(key, _)| wanted(key)) {
            if self.reader.is_done() {
                return;
            }
            if is_left_out(key) && !other_shapes::is_list_of_own_calls(key, value) {
                continue;
            }
            match value {
                Value::String(text) if is_call_text(key, text) => {
                    let is_described = has_open_query(text) && lists::is_described(object.map);
                    if is_described {
                        self.text_of_described(text, object, context);
                    } else {
                        self.text(key, text, object, context);
                    }
                }
                Value::Object(map) if depth < NESTING_MAX => {
                    let inner = Object::new(map, object.at(key));
                    let context = context.within(&inner, key, self.reader.draft).of_block(&inner, key);
                    if is_call(key, map) || is_endpoint_of_block(key, map) {
                        self.call(key, &inner, &context);
                    }
                    self.object(&inner, &context, depth + 1, &|_| true);
                }
                Value::Array(_) if lists::names_mcp_tools(key) => self.tools(key, object, context),
                Value::Array(list) if other_shapes::is_list_of_texts(list) => {
                    // A block of credentials names the calls that they are for.
                    let is_denied = lists::denies(key) || lists::is_in_auth(&object.pointer);
                    if is_denied {
                        continue;
                    }
                    self.texts(key, list, object, context);
                }
                Value::Array(_) if depth < NESTING_MAX => {
                    for inner in object.objects(key) {
                        let context = context.within(&inner, "", self.reader.draft).at_element(&inner);
                        self.object(&inner, &context, depth + 1, &|_| true);
                    }
                }
                _ => {}
            }
        }
    }

    fn text(&mut self, key: &str, text: &str, holder: &Object<'_>, context: &Context) {
        let Some((method, address)) = element::published_address(text) else { return };
        let is_read = || self.known.pointers.contains(&holder.at(key));
        if method.is_none() && (matches!(self.reader.wanted, Wanted::Calls(_)) || is_read()) {
            return;
        }
        let draft = &mut *self.reader.draft;
        let Some(url) = element::resolve(address, context.base.as_ref(), draft.base()) else { return };
        let is_base = context.base.as_ref().is_some_and(|base| base.as_str() == url.as_str());
        if is_base || !self.known.is_new(method, url.as_str()) {
            return;
        }
        let mut capability = draft.capability(CapabilityKind::Operation, key, key, holder.at(key));
        element::set_address(address, method, context, &mut capability, draft);
        capability.description = draft::description(element::remark(text, address));
        capability.auth.required = context.needed(&capability);
        self.reader.push(capability);
    }

    /// Reads a list of calls in words: `["GET /rooms", "POST /bookings"]`.
    fn texts(&mut self, key: &str, list: &[Value], holder: &Object<'_>, context: &Context) {
        for (index, text) in list.iter().enumerate().filter_map(|(index, text)| Some((index, text.as_str()?)))
        {
            let Some((Some(method), address)) = element::published_address(text) else { continue };
            let draft = &mut *self.reader.draft;
            let Some(url) = element::resolve(address, context.base.as_ref(), draft.base()) else { continue };
            if !leads_nowhere(key, address) || !self.known.is_new(Some(method), url.as_str()) {
                continue;
            }
            let label = [method, address].join(" ");
            let pointer = format!("{}/{index}", holder.at(key));
            let mut capability = draft.capability(CapabilityKind::Operation, &label, &label, pointer);
            element::set_address(address, Some(method), context, &mut capability, draft);
            capability.description = draft::description(element::remark(text, address));
            capability.auth.required = context.needed(&capability);
            self.reader.push(capability);
        }
    }

    /// Reads an address with a variable in an object that has a description and is not a capability. It becomes the address of the
    /// capability of the same name if that one has none, or else a new capability. Inside a capability, such an address is another form of
    /// the capability's own address.
    fn text_of_described(&mut self, text: &str, holder: &Object<'_>, context: &Context) {
        let Some(name) = holder.text_of(&["name", "title"]).filter(|_| self.described_left > 0) else {
            return;
        };
        self.described_left -= 1;
        let draft = &mut *self.reader.draft;
        let calls = &mut draft.manifest.capabilities;
        if calls.iter().any(|known| known.pointer == holder.pointer) {
            return;
        }
        let Some((_, address)) = element::published_address(text) else { return };
        let Some(url) = element::resolve(address, context.base.as_ref(), draft.document.url) else { return };
        if !self.known.is_new(None, url.as_str()) {
            return;
        }
        let is_same =
            |known: &&mut Capability| known.name == name && known.invocation == Invocation::default();
        if let Some(same) = calls.iter_mut().find(is_same) {
            endpoint::set(same, url);
            schema::add_variables(&mut same.parameters, &same.invocation);
            same.description = joined(same.description.take(), holder.text_of(&["description", "summary"]));
            return;
        }
        let mut capability = draft.capability(CapabilityKind::Operation, name, name, holder.pointer.clone());
        capability.description = draft::description(holder.text_of(&["description", "summary"]));
        endpoint::set(&mut capability, url);
        lenient::read_prices(holder, &mut capability);
        self.reader.push(capability);
    }

    /// Reads tools of the MCP server that are listed only by name.
    fn tools(&mut self, key: &str, holder: &Object<'_>, context: &Context) {
        let tools = self.reader.draft.manifest.capabilities.iter();
        let mut tools: HashSet<String> = tools.filter_map(|tool| tool.invocation.native.clone()).collect();
        for (index, name) in holder.list(key).into_iter().flatten().enumerate() {
            let Some(name) = name.as_str().map(str::trim).filter(|name| !name.is_empty()) else { continue };
            // A tool of a server is another way to call an operation of the same name.
            let is_new_tool = tools.insert(name.to_owned()) && context.server().is_some();
            let is_new = self.known.ids.insert(name.to_owned()) || is_new_tool;
            if self.reader.is_done() || !is_new {
                continue;
            }
            let pointer = format!("{}/{index}", holder.at(key));
            let mut capability = self.reader.draft.capability(CapabilityKind::Tool, name, name, pointer);
            element::set_tool(ListKind::of_tools(), context, &mut capability);
            if capability.invocation.native.is_some() {
                capability.invocation.native = Some(name.to_owned());
            }
            self.reader.push(capability);
        }
    }

    fn call(&mut self, key: &str, object: &Object<'_>, context: &Context) {
        let call = Call::of(object, Some(key));
        for method in call.methods() {
            let url = address_of(object.map).and_then(|address| {
                element::resolve(address, context.base.as_ref(), self.reader.draft.base())
            });
            if self.reader.is_done()
                || !url.is_some_and(|url| self.known.is_new(method.as_deref(), url.as_str()))
            {
                return;
            }
            let kind = ListKind::of_operations();
            let capability: Capability = call.capability(kind, Some(key), context, method, self.reader.draft);
            self.reader.push(capability);
        }
    }
}

/// A description, followed by another one of the same call.
fn joined(own: Option<String>, other: Option<&str>) -> Option<String> {
    match (own, draft::description(other)) {
        (Some(own), Some(other)) if !own.contains(&other) => {
            let mark = if own.ends_with(['.', '!', '?']) { " " } else { ". " };
            draft::description(Some(&[own.as_str(), mark, &other].concat()))
        }
        (own, other) => own.or(other),
    }
}

/// Whether a member describes a call: a method and an address under a specific name.
fn is_call(key: &str, map: &Map<String, Value>) -> bool {
    lists::is_call_object(map)
        && !is_of_element(key)
        && address_of(map).is_some_and(|address| leads_nowhere(key, address))
}

/// Whether an object outside lists describes a call without its method: an `endpoint` with a variable, or next to a description.
fn is_endpoint_of_block(key: &str, map: &Map<String, Value>) -> bool {
    let text = |key: &str| map.get(key).and_then(Value::as_str);
    let Some((None, address)) = text("endpoint").and_then(element::published_address) else { return false };
    let words = text::words(key);
    let is_other = words
        .iter()
        .any(|word| OTHER_WORDS.contains(&word.as_str()) || SERVICE_WORDS.contains(&word.as_str()));
    let is_likely_call = has_variable(address) || text("description").is_some();
    is_likely_call && !is_other && !is_of_element(key) && leads_nowhere(key, address)
}

/// Words of blocks whose endpoint is a server or the base URL of calls.
const SERVICE_WORDS: &[&str] = &[
    "api",
    "mcp",
    "a2a",
    "server",
    "service",
    "agent",
    "payment",
    "payments",
    "x402",
    "rest",
    "graphql",
    "rpc",
    "transport",
    "protocol",
    "protocols",
];

/// The first member of a root that is the address of a call with a variable: `"score": "https://…/score/{wallet}"`.
pub(crate) fn first_call(root: &Map<String, Value>) -> Option<&str> {
    let is_call = |key: &str, text: &str| {
        !is_left_out(key)
            && element::published_address(text)
                .is_some_and(|(method, address)| method.is_some() || has_variable(address))
            && is_call_text(key, text)
    };
    root.iter()
        .find(|(key, value)| value.as_str().is_some_and(|text| is_call(key, text)))
        .map(|(key, _)| key.as_str())
}

/// Whether the path of an address has a variable.
fn has_variable(address: &str) -> bool {
    address.split('?').next().is_some_and(|path| path.contains("/{"))
}

/// Whether a text is a call: a method and an address, the address of an endpoint, or one with a variable in its query.
fn is_call_text(key: &str, text: &str) -> bool {
    // Most texts are not addresses.
    let may_be_call = text.len() <= TEXT_BYTES_MAX && text.contains('/');
    if !may_be_call || is_of_element(key) || PROSE_KEYS.contains(&key) {
        return false;
    }
    let Some((method, address)) = element::published_address(text) else { return false };
    if method.is_some() {
        return leads_nowhere(key, address);
    }
    if has_open_query(address) {
        return !outbound::target(&[key], address).is_some_and(Target::is_server);
    }
    if has_variable(address) {
        let is_other =
            text::words(key).iter().any(|word| OTHER_WORDS.contains(&word.as_str()) || word == "pattern");
        return !is_other && leads_nowhere(key, address);
    }
    names_endpoint(key) && leads_nowhere(key, address)
}

/// Whether an address has a variable in its query.
fn has_open_query(address: &str) -> bool {
    address.split_once('?').is_some_and(|(_, query)| query.contains("={"))
}

/// Whether a member has the name of one endpoint among several: `drop_endpoint`.
fn names_endpoint(key: &str) -> bool {
    let words = text::words(key);
    words.len() > 1
        && words.last().is_some_and(|last| last == "endpoint")
        && !words.iter().any(|word| OTHER_WORDS.contains(&word.as_str()))
}

/// Whether a member belongs to the call or the credentials of the element that contains it.
fn is_of_element(key: &str) -> bool {
    lists::is_part_of_call(key)
        || [REQUEST_KEYS, AUTH_KEYS, REPEATING_KEYS].iter().any(|keys| keys.contains(&key))
}

/// Whether an address belongs to neither a document nor a server.
fn leads_nowhere(key: &str, address: &str) -> bool {
    let class = link_class::classify(address);
    class.rel != "mcp" && class.follow.is_none() && outbound::target(&[key], address).is_none()
}

fn address_of(map: &Map<String, Value>) -> Option<&str> {
    let text = ["path", "url", "endpoint", "href"].iter().find_map(|key| map.get(*key)?.as_str())?;
    element::published_address(text).map(|(_, address)| address)
}

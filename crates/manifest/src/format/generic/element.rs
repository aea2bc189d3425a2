//! One element of a list of services, of any shape.

use url::Url;

use serde_json::{Map, Value};

use super::details;
use super::lists::{self, ListKind};
use super::method::{example_of_list, method_of_call, methods, set_socket};
use super::service_folder::folder_of;
use super::state::is_down;
use super::stated_server::{address_of_server, base_in_environment};
use crate::address::{self, Address};
use crate::auth;
use crate::draft::{self, Draft};
use crate::format::{
    endpoint, header, idempotency, lenient, link_class, listed_calls, outbound, query_parameters,
};
use crate::model::{Capability, CapabilityAuth, Protocol, Tristate};
use crate::name::{ManifestUrl, parse_url};
use crate::object::{Keys, Object};
use crate::schema;
use crate::text;

/// The context of the elements of a list.
#[derive(Debug, Clone, Default)]
pub(super) struct Context {
    /// Base URL of paths, as published next to the list or above it.
    pub(super) base: Option<Url>,
    /// Address of the MCP server through which tools are called.
    server: Option<String>,
    /// Whether the caller starts the MCP server.
    is_local: bool,
    /// Protocol and address of the agent that the skills belong to.
    agent: Option<(Protocol, String)>,
    /// Whether credentials are needed, according to the name of the list.
    pub(super) auth: Tristate,
    /// Where the credentials of the enclosing element are obtained.
    registration: Option<String>,
    /// The example call of the enclosing element, which lists several addresses.
    example: Option<String>,
    /// Whether the list is a map of lists.
    pub(super) has_groups: bool,
    /// Whether an enclosing element does not work, according to its status.
    pub(super) is_down: bool,
}

/// Maximum length of a base URL, which is copied to each address.
pub(super) const BASE_BYTES_MAX: usize = 2_048;
const BASE_KEYS: Keys = Keys::of(&[
    "base_url",
    "baseUrl",
    "baseURL",
    "api_base",
    "apiBase",
    "api_base_url",
    "apiBaseUrl",
    "api_url",
    "apiUrl",
    "public_base_url",
    "publicBaseUrl",
]);
const SERVER_KEYS: Keys =
    Keys::of(&["mcp_endpoint", "mcpEndpoint", "mcp_url", "mcpUrl", "mcp_server", "mcpServer", "mcp"]);
/// Blocks, named after the protocol, with the address of a server.
const MCP_BLOCKS: Keys =
    Keys::of(&["mcp", "mcp_server", "mcpServer", "endpoints", "protocols", "surfaces", "interfaces"]);
pub(super) const ADDRESS_KEYS: Keys = Keys::of(&[
    "endpoint",
    "url",
    "path",
    "href",
    "uri",
    "api",
    "endpoint_url",
    "url_template",
    "route",
    "entry_point",
    "entryPoint",
]);

/// Members of an element that describe the request of its call.
pub(super) const REQUEST_KEYS: &[&str] = &["request", "http", "rest", "call", "invocation"];

/// Further members of an element that may hold its call as a text with its method: `"operation": "GET /rooms"`.
const OWN_CALL_KEYS: &[&str] =
    &["endpoint", "api", "action", "operation", "execute", "execution", "invoke", "method"];

/// The call that an element states in a text of one of its members.
fn own_call<'v>(object: &Object<'v>) -> Option<(Option<&'v str>, &'v str)> {
    let texts = REQUEST_KEYS.iter().chain(OWN_CALL_KEYS).filter_map(|key| object.text(key));
    texts.filter_map(published_address).find(|(method, _)| method.is_some())
}

/// Blocks about another party or service, whose address is not a base for the members next to them.
const APART: &[&str] = &[
    "provider",
    "publisher",
    "organization",
    "author",
    "owner",
    "documentation",
    "docs",
    "repository",
    "source",
];

impl Context {
    /// The context of a whole document.
    pub(super) fn of_root(root: &Object<'_>, draft: &Draft<'_>) -> Self {
        let context = Self::default().within(root, "", draft);
        let base = context.base.clone().or_else(|| folder_of(root, draft.base()));
        Self { base, ..context }
    }

    /// The context of the lists of a document. If the root has no base URL, the base URL of the described API is used.
    pub(super) fn of_lists(root: &Object<'_>, draft: &Draft<'_>) -> Self {
        let of_api =
            || Self::default().within(&root.object_of(&["api", "service", "server"])?, "", draft).base;
        // As in OpenAPI: `servers` next to `info`.
        let of_servers = || {
            let server = root.objects("servers").next().filter(|_| root.object("info").is_some())?;
            parse_url(server.text("url").filter(|url| url.len() <= BASE_BYTES_MAX)?)
                .ok()
                .filter(Url::has_host)
        };
        let context = Self::default().within(root, "", draft);
        let base = context.base.clone().or_else(of_api).or_else(of_servers);
        if base.is_some() { Self { base, ..context } } else { Self::of_root(root, draft) }
    }

    /// The context of a block that describes a separate service: its paths are relative to the host of its address.
    pub(super) fn of_block(self, block: &Object<'_>, key: &str) -> Self {
        let own = block.text_of(&["url", "base", "host", "origin", "endpoint"]);
        if own.is_none() || APART.contains(&key) { self } else { self.at(own) }
    }

    /// The context inside an object that is the member `key`.
    pub(super) fn within(&self, object: &Object<'_>, key: &str, draft: &Draft<'_>) -> Self {
        let base = object.text_of(BASE_KEYS.within(object)).or_else(|| base_in_environment(object));
        let base = base.filter(|text| text.len() <= BASE_BYTES_MAX);
        let base = base.and_then(|text| parse_url(text).ok());
        let base = base.filter(|base| matches!(base.scheme(), "https" | "http") && base.has_host());
        let mut is_mcp = false;
        text::each_word(key, |word| is_mcp |= word == "mcp");
        let in_block = || MCP_BLOCKS.within(object).iter().find_map(|key| object.object(key)?.text("mcp"));
        let server = (is_mcp.then(|| address_of_server(object)).flatten())
            .or_else(|| object.text_of(SERVER_KEYS.within(object)))
            .or_else(in_block)
            .or_else(|| address_of_server(&object.object_of(SERVER_KEYS.within(object))?))
            .filter(|text| link_class::classify(text).follow.is_none());
        let absolute = |text: &str| {
            let is_address = text.starts_with('/') || text.contains("://");
            let completed = (!is_address).then(|| address::completed(text)).flatten();
            draft.origin_url(completed.as_deref().or_else(|| is_address.then_some(text))?)
        };
        Self {
            base: base.or_else(|| self.base.clone()),
            server: server.and_then(absolute).or_else(|| self.server.clone()),
            is_local: self.is_local || (is_mcp && object.text("transport") == Some("stdio")),
            agent: self.agent.clone(),
            auth: self.auth,
            registration: self.registration.clone(),
            example: example_of_list(object).or_else(|| self.example.clone()),
            has_groups: false,
            is_down: self.is_down || is_down(object),
        }
    }

    /// The context of the tools of a server that an object describes.
    pub(super) fn at_server(&self, server: &Object<'_>, draft: &Draft<'_>) -> Self {
        let own = address_of_server(server).and_then(|address| draft.origin_url(address));
        Self { server: own.or_else(|| self.server.clone()), ..self.clone() }
    }

    /// Address of the MCP server through which tools are called.
    pub(super) fn server(&self) -> Option<&str> {
        self.server.as_deref()
    }

    /// Whether a call needs credentials, according to its context. The call that issues the credentials does not.
    pub(super) fn needed(&self, capability: &Capability) -> Tristate {
        let obtains = |address: &String| listed_calls::is_at(capability, address);
        if self.registration.as_ref().is_some_and(obtains) { Tristate::No } else { self.auth }
    }

    /// The context inside an agent, whose skills are called at the address of the agent.
    pub(super) fn of_agent(self, agent: Option<(Protocol, String)>) -> Self {
        Self { agent: agent.or(self.agent), ..self }
    }

    /// The context inside an element: paths are relative to the host of the element's address, and calls have the element's requirements.
    pub(super) fn at_element(&self, element: &Object<'_>) -> Self {
        let inside =
            self.at(element.text_of(ADDRESS_KEYS.within(element)).map(|text| address::split_method(text).1));
        let mut needed = CapabilityAuth { required: self.auth, ..CapabilityAuth::default() };
        lenient::read_own_auth(element, &mut needed);
        let registration = lenient::registration_of(element).or_else(|| self.registration.clone());
        Self { auth: needed.required, registration, is_down: self.is_down || is_down(element), ..inside }
    }

    /// The method of the example call of an address in the list of an element.
    pub(super) fn method_of_example(&self, address: &str) -> Option<&str> {
        method_of_call(self.example.as_deref()?, address)
    }

    /// Adds the parameters of the example call of an address in the list of an element.
    pub(super) fn read_example(&self, address: &str, capability: &mut Capability) {
        if let Some(example) = &self.example {
            query_parameters::read_shown(example, address, capability);
        }
    }

    /// The context with another base address.
    fn at(&self, own: Option<&str>) -> Self {
        let base = own.filter(|text| text.contains("://")).and_then(|text| parse_url(text).ok());
        let base = base.filter(Url::has_host).and_then(|base| base.join("/").ok());
        let other =
            base.filter(|base| self.base.as_ref().is_none_or(|known| known.host_str() != base.host_str()));
        Self { base: other.or_else(|| self.base.clone()), ..self.clone() }
    }

    /// The context of a map, which may be a map of lists.
    pub(super) fn of_map(&self, has_groups: bool) -> Self {
        Self { has_groups, ..self.clone() }
    }

    /// The context of a list with this name.
    pub(super) fn of_list(&self, name: &str) -> Self {
        let mut auth = self.auth;
        text::each_word(name, |word| match word {
            "protected" | "private" | "authenticated" => auth = Tristate::Yes,
            "public" | "open" | "anonymous" => auth = Tristate::No,
            _ => {}
        });
        Self { auth, ..self.clone() }
    }
}

/// Method and address, if the text is an address. Words after the address are comments.
pub(super) fn published_address(text: &str) -> Option<(Option<&str>, &str)> {
    let (method, rest) = address::split_method(text);
    let address = rest.split_whitespace().next().unwrap_or_default();
    let is_address = !address::is_pattern(address)
        && (rest.starts_with('/') || (address.contains("://") && !address.starts_with("://")));
    (is_address && (method.is_some() || address.len() == rest.len() || rest.starts_with("http")))
        .then_some((method, address))
}

/// The remark after the address of a call.
pub(super) fn remark<'t>(text: &'t str, address: &str) -> Option<&'t str> {
    let (_, rest) = text.split_once(address)?;
    let rest = rest
        .trim_matches(|letter: char| letter.is_whitespace() || "-\u{2013}\u{2014}:\u{2192}".contains(letter));
    (!rest.is_empty()).then_some(rest)
}

/// Resolves an address: a path below the base, or on the origin of the document if there is no base.
pub(super) fn resolve(published: &str, base: Option<&Url>, document: &ManifestUrl) -> Option<Address> {
    match base {
        _ if address::is_pattern(published) => None,
        Some(base) if !published.contains("://") => address::resolve(base, &address::below(base, published)),
        _ => address::on_origin(document, published),
    }
}

/// Sets an address, resolved against the base of the context, or against the origin if there is no base.
pub(super) fn set_address(
    published: &str,
    method: Option<&str>,
    context: &Context,
    capability: &mut Capability,
    draft: &Draft<'_>,
) {
    let Some(address) = resolve(published, context.base.as_ref(), draft.base()) else { return };
    endpoint::set(capability, address);
    capability.invocation.method = method.map(str::to_owned);
}

/// Makes a tool without an address callable through the MCP server of the document, and a skill through its agent.
pub(super) fn set_tool(kind: ListKind, context: &Context, capability: &mut Capability) {
    if capability.invocation.endpoint().is_some() {
        return;
    }
    if kind.is_tools() && (context.server.is_some() || context.is_local) {
        capability.invocation.protocol = Some(Protocol::Mcp);
        capability.invocation.native = Some(capability.native_id.clone());
        capability.invocation.url.clone_from(&context.server);
    } else if let Some((protocol, url)) = context.agent.as_ref().filter(|_| kind.is_skills()) {
        capability.invocation.protocol = Some(*protocol);
        capability.invocation.native = Some(capability.native_id.clone());
        capability.invocation.url = Some(url.clone());
    }
}

/// Members with the address in the description of a request, in addition to those of an element.
const TARGET_KEYS: &[&str] = &["target", "urlTemplate"];

/// The description of the request of an element: under a usual name, or the only member that has a method and an address.
fn request_of<'v>(object: &Object<'v>) -> Option<Object<'v>> {
    let named = REQUEST_KEYS.iter().filter_map(|key| object.object(key));
    named.into_iter().find(|request| lists::is_call_object(request.map)).or_else(|| {
        let is_apart = |name: &str| {
            outbound::is_about_calls(name) || outbound::is_contact(name) || lists::is_of_others(name)
        };
        let members = object
            .map
            .iter()
            .filter(|(name, value)| !is_apart(name) && value.as_object().is_some_and(lists::is_call_object));
        let mut members = members.map(|(name, _)| name);
        let only = members.next().filter(|_| members.next().is_none())?;
        object.object(only)
    })
}

/// Whether an element is called over MCP: `"transports": ["http", "mcp"]`.
fn is_over_mcp(object: &Object<'_>) -> bool {
    let mut stated =
        ["transports", "transport", "protocols", "protocol"].iter().flat_map(|key| object.texts(key));
    stated.any(|word| word.eq_ignore_ascii_case("mcp"))
}

/// An object of unknown shape that describes a call: one capability for each of its methods.
pub(super) struct Call<'o, 'v> {
    object: &'o Object<'v>,
    /// The object with the method and the address: the element itself, or the description of its request.
    request: Object<'v>,
    /// Method and address, as published together.
    published: Option<(Option<&'v str>, &'v str)>,
}

impl<'o, 'v> Call<'o, 'v> {
    /// The call of an element, whose name may be its address.
    pub(super) fn of(object: &'o Object<'v>, name: Option<&'v str>) -> Self {
        let has_address = object.text_of(ADDRESS_KEYS.within(object)).is_some();
        let inner = (!has_address).then(|| request_of(object)).flatten();
        let of_inner = inner.as_ref().and_then(|inner| inner.text_of(TARGET_KEYS));
        let request = inner.unwrap_or_else(|| object.clone());
        let address = request.text_of(ADDRESS_KEYS.within(&request)).or(of_inner);
        let published = address.map(|text| {
            let (method, rest) = address::split_method(text);
            // `GET p/r` is a path below the base.
            let relative = method.map(|_| (method, rest.split_whitespace().next().unwrap_or_default()));
            published_address(text).or(relative).unwrap_or((None, text))
        });
        let published = published.or_else(|| own_call(object)).or_else(|| published_address(name?));
        Self { object, request, published }
    }

    /// The HTTP methods; one absent method if it names none.
    pub(super) fn methods(&self) -> Vec<Option<String>> {
        methods(&self.request, self.published.and_then(|(method, _)| method))
    }

    pub(super) fn capability(
        &self,
        kind: ListKind,
        name: Option<&str>,
        context: &Context,
        method: Option<String>,
        draft: &mut Draft<'_>,
    ) -> Capability {
        let Self { object, published, .. } = *self;
        let mut capability = begin(kind, name, object, method.as_deref(), published, draft);
        if let Some((_, address)) = published.filter(|(_, address)| !address.contains(char::is_whitespace)) {
            set_address(address, method.as_deref(), context, &mut capability, draft);
        }
        if capability.invocation.method.is_none() && method.is_some() {
            capability.invocation.method = method;
            capability.invocation.protocol = Some(Protocol::Http);
        }
        let called_as = if is_over_mcp(object) { ListKind::of_tools() } else { kind };
        set_tool(called_as, context, &mut capability);
        set_protocol(kind, object, &mut capability);
        set_card(kind, &mut capability);
        set_socket(object, &mut capability);
        read_call(object, &self.request, &mut capability);
        query_parameters::read(object, published.map(|(_, address)| address), &mut capability);
        idempotency::read(object, &mut capability);
        details::read_access(object, context, &mut capability);
        capability.degraded = context.is_down || is_down(object);
        capability
    }
}

/// Sets the protocol of an agent's address: the protocol of the agent, not plain HTTP.
fn set_protocol(kind: ListKind, object: &Object<'_>, capability: &mut Capability) {
    let named = object.text("protocol").filter(|_| kind.is_agents()).map(auth::protocol);
    if let Some(protocol) = named.filter(|protocol| *protocol != Protocol::Other) {
        capability.invocation.protocol = Some(protocol);
    }
}

/// Sets the address of a card, which describes an agent. The agent is called at another address.
fn set_card(kind: ListKind, capability: &mut Capability) {
    let invocation = &mut capability.invocation;
    let is_card = |url: &String| link_class::classify(url).follow.is_some();
    if !kind.is_agents() || invocation.method.is_some() || !invocation.url.as_ref().is_some_and(is_card) {
        return;
    }
    invocation.described_by = invocation.url.take();
    if invocation.protocol == Some(Protocol::Http) {
        let is_a2a = |url: &String| link_class::classify(url).rel == "agent-card";
        invocation.protocol = invocation.described_by.as_ref().is_some_and(is_a2a).then_some(Protocol::A2a);
    }
}

fn begin(
    kind: ListKind,
    name: Option<&str>,
    object: &Object<'_>,
    method: Option<&str>,
    published: Option<(Option<&str>, &str)>,
    draft: &mut Draft<'_>,
) -> Capability {
    let call = published.map(|(_, address)| [method.unwrap_or_default(), address].join(" "));
    let native_id = object
        .text_of(&[
            "id",
            "name",
            "key",
            "slug",
            "title",
            "operationId",
            "operation_id",
            "action",
            "tool",
            "tool_name",
        ])
        .or(name)
        .or_else(|| NAMING_KEYS.iter().filter_map(|key| object.text(key)).find(|text| is_identifier(text)))
        .or_else(|| call.as_deref().map(str::trim))
        .unwrap_or_default();
    let label = object
        .text_of(&["name", "title", "label", "display_name", "tool_name"])
        .or(name)
        .unwrap_or(native_id);
    let mut capability = draft.capability(kind.of_object(), native_id, label, object.pointer.clone());
    capability.title = draft::name(object.text("title")).filter(|title| *title != capability.name);
    capability.description = header::description_of(object)
        .or_else(|| draft::description(object.text_of(&["mission", "note", "notes"])));
    details::read(object, &mut capability);
    capability
}

/// The schema of a response whose members are named by their types: `{"ok": "boolean", "token": "string (signed)"}`.
fn response_by_types(named: &Map<String, Value>) -> Option<Value> {
    // Members by status code describe several responses.
    let is_status = |name: &str| name.bytes().all(|byte| byte.is_ascii_digit());
    let is_description =
        |name: &String| matches!(name.as_str(), "type" | "format" | "description") || is_status(name);
    let by_types = named.values().all(schema::is_of_types) && !named.keys().any(is_description);
    by_types.then(|| lenient::response(&Value::Object(named.clone()))).flatten()
}

/// Members that name an element, unless they contain a sentence.
const NAMING_KEYS: &[&str] =
    &["task", "intent", "skill", "capability", "function", "operation", "command", "event", "label"];

fn is_identifier(text: &str) -> bool {
    !text.contains(char::is_whitespace) && !text.contains('/')
}

/// Reads parameters and response, in the element or in its description of the request and the response.
fn read_call(object: &Object<'_>, request: &Object<'_>, capability: &mut Capability) {
    let described = (request.pointer != object.pointer).then_some(request);
    let sent = object.object("request").filter(|request| {
        let sent = request.text_of(&["method", "http_method"]).map(str::to_ascii_uppercase);
        sent.is_none() || sent == capability.invocation.method
    });
    let holders = [Some(object), sent.as_ref(), described].into_iter().flatten();
    capability.parameters =
        holders.into_iter().find_map(|holder| schema::of_call(holder.map, &capability.invocation));
    let outputs = [
        "outputSchema",
        "output_schema",
        "responseSchema",
        "response_schema",
        "response",
        "returns",
        "outputs",
        "output",
        "result",
    ];
    let output = object.object_of(&outputs);
    let output = output.or_else(|| object.object("responses"));
    let success = output.as_ref().and_then(|output| output.object_of(&["success", "200", "201"]));
    let body = success.as_ref().or(output.as_ref()).and_then(|output| output.object_of(&["body", "schema"]));
    let named = success.as_ref().or(output.as_ref()).map(|output| output.map);
    capability.response = output
        .as_ref()
        .filter(|output| schema::is_schema(output.map))
        .map(|output| Value::Object(Map::clone(output.map)))
        .or_else(|| lenient::response(&Value::Object(Map::clone(body?.map))))
        .or_else(|| response_by_types(named?));
    details::describe_response(object, capability);
}

//! agents.txt 1.0: capability blocks with endpoint, protocol, credentials and parameters.
//!
//! Reads the declared calls, their credentials and the allowed paths. A declared endpoint is allowed regardless of
//! `Disallow`. Policies for named agents are kept as hints.
//!
//! Follows agents.txt 1.0 §3 and §4 (kaylacar/agents-txt), draft-car-agents-txt-wellknown-00.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use super::grammar::{Block, Line, blocks, listed};
use crate::address::is_method_in_any_case;
use crate::auth;
use crate::check::is_major_minor;
use crate::draft::{self, Draft};
use crate::format::addresses::{self, LinkInText};
use crate::format::{endpoint, header, lenient};
use crate::json::at_index;
use crate::model::{Auth, AuthScheme, Capability, CapabilityKind, Follow, Interface, Link, Protocol};
use crate::object::{Object, children};
use crate::quantity;
use crate::rule::{Kind, findings, may, must};
use crate::schema::{Location, Parameters, Presence, is_empty_statement, object_descriptor};
use crate::text;
use crate::walk::List;

/// Maximum number of policies for agents that are compared with the capabilities.
const AGENTS_MAX: usize = 1_000;
/// Maximum number of scopes of one scheme that are kept for all capabilities together.
const SCOPES_OF_SCHEME_MAX: usize = 256;
/// Locations of a parameter.
const LOCATIONS: &[&str] = &["query", "path", "header", "body"];

findings! {
    shape ROOT("agents_txt", "agents.txt 1.0 §3.2") {
        must("specVersion", Kind::Form(is_major_minor, "MAJOR.MINOR"), "State the version, 1.0."),
        must("site", Kind::Object, "Describe the site: Site-Name and Site-URL in the text form."),
        must("capabilities", Kind::List, "Declare capabilities."),
        may("declarationType", Kind::OneOf(&["platform", "agent"]), "State platform or agent."),
        may("operatesOn", Kind::Texts, "List the platforms' URLs as strings."),
    }
    shape SITE("agents_txt.site", "agents.txt 1.0 §3.3") {
        must("name", Kind::Text, "Name the site."),
        must("url", Kind::Url, "State the site's absolute URL."),
        may("description", Kind::Text, "Describe the site in a string."),
        may("contact", Kind::Text, "State an e-mail address."),
        may("privacyPolicy", Kind::Url, "State an absolute URL."),
    }
    shape CAPABILITY("agents_txt.capability", "agents.txt 1.0 §3.4") {
        must("id", Kind::Form(is_id, "lower-case letters, digits and hyphens"), "Use lower-case letters, digits and hyphens."),
        must("endpoint", Kind::Url, "State the absolute URL of the endpoint."),
        must("protocol", Kind::OneOf(&["REST", "MCP", "A2A", "GraphQL", "WebSocket"]), "State REST, MCP, A2A, GraphQL or WebSocket."),
        may("description", Kind::Text, "Describe the capability in a string."),
        may("method", Kind::Form(is_method_in_any_case, "an HTTP method"), "State the HTTP method."),
        may("openapi", Kind::Url, "State an absolute URL."),
        may("scopes", Kind::Texts, "List scopes as strings."),
    }
    shape PARAMETER("agents_txt.parameter", "agents.txt 1.0 §3.4") {
        must("name", Kind::Text, "Name the parameter."),
        must("in", Kind::OneOf(LOCATIONS), "State query, path, header or body."),
        must("type", Kind::Text, "State the type."),
    }
    shape ACCESS("agents_txt.access", "agents.txt 1.0 §3.5") {
        may("allow", Kind::Texts, "List path patterns as strings."),
        may("disallow", Kind::Texts, "List path patterns as strings."),
    }
    rule NO_CAPABILITY: Should("agents_txt.capabilities.empty", "agents.txt 1.0 §3.4")
        "no capability is declared" => "Declare what agents can do, one block for each capability.";
    rule DUPLICATE: Must("agents_txt.capability.id.duplicate", "agents.txt 1.0 §3.4")
        "two capabilities have the same id" => "Give every capability a unique id.";
    rule NO_TOKEN_ENDPOINT: Must("agents_txt.auth.endpoint.missing", "agents.txt 1.0 §3.4")
        "a bearer token or OAuth 2 is required, and the document does not state where agents obtain a token" => "Name Auth-Endpoint.";
    rule AUTH_UNKNOWN: Should("agents_txt.auth.unknown", "agents.txt 1.0 §3.4")
        "the scheme of the credentials is unknown" => "State none, api-key, bearer-token or oauth2.";
    rule RATE_UNREADABLE: Should("agents_txt.rate_limit.invalid", "agents.txt 1.0 §3.4")
        "the rate limit cannot be read as a rate" => "Write the rate as number/unit, such as 60/minute.";
    rule AGENT_CAPABILITY_UNKNOWN: Should("agents_txt.agent.capability.unknown", "agents.txt 1.0 §3.6")
        "the policy for an agent names a capability that is not declared"
            => "Declare the capability, or correct its id.";
    rule AGENTS_LIST: Must("agents_txt.agents.not_a_map", "agents.txt 1.0 §4")
        "`agents` is not a map from agent to policy" => "Publish an object with a member for each agent; `*` means all.";
}

/// Keys of lines that begin a block.
const KEYS: &[&str] = &[
    "spec-version",
    "generated-at",
    "declaration-type",
    "operates-on",
    "agents-json",
    "site-name",
    "site-url",
    "site-description",
    "site-contact",
    "site-privacy-policy",
    "site-terms",
    "allow",
    "disallow",
    "capability",
    "agent",
];

/// Keeps the addresses of lines with a key that the grammar does not define: `OpenAPI-Spec: https://…`.
pub(super) fn keep_others(lines: &[Line<'_>], draft: &mut Draft<'_>) {
    let others = lines.iter().filter(|line| line.indent == 0 && !KEYS.contains(&line.key.as_str()));
    for line in others.filter(|line| line.value.contains('/') && !line.value.contains(char::is_whitespace)) {
        addresses::keep(&LinkInText { title: Some(&line.key), address: line.value }, draft);
    }
}

/// Converts a text to its JSON form.
pub(super) fn to_json(lines: &[Line<'_>]) -> Value {
    let mut root = Map::new();
    let (mut site, mut access, mut agents) = (Map::new(), Map::new(), Map::new());
    let mut capabilities = Vec::new();
    for block in blocks(lines) {
        let value = block.head.value;
        match block.head.key.as_str() {
            "spec-version" => drop(root.insert("specVersion".to_owned(), json!(value))),
            "generated-at" => drop(root.insert("generatedAt".to_owned(), json!(value))),
            "declaration-type" => drop(root.insert("declarationType".to_owned(), json!(value))),
            "operates-on" => append(&mut root, "operatesOn", value),
            "agents-json" => drop(root.insert("agentsJson".to_owned(), json!(value))),
            "site-name" => drop(site.insert("name".to_owned(), json!(value))),
            "site-url" => drop(site.insert("url".to_owned(), json!(value))),
            "site-description" => drop(site.insert("description".to_owned(), json!(value))),
            "site-contact" => drop(site.insert("contact".to_owned(), json!(value))),
            "site-privacy-policy" => drop(site.insert("privacyPolicy".to_owned(), json!(value))),
            "site-terms" => drop(site.insert("terms".to_owned(), json!(value))),
            "allow" => append(&mut access, "allow", value),
            "disallow" => append(&mut access, "disallow", value),
            "capability" => capabilities.push(capability_json(&block)),
            "agent" => drop(agents.insert(value.to_owned(), agent_json(&block))),
            _ => {}
        }
    }
    root.insert("site".to_owned(), Value::Object(site));
    root.insert("capabilities".to_owned(), Value::Array(capabilities));
    root.insert("access".to_owned(), Value::Object(access));
    root.insert("agents".to_owned(), Value::Object(agents));
    Value::Object(root)
}

fn append(map: &mut Map<String, Value>, key: &str, value: &str) {
    if let Value::Array(list) = map.entry(key).or_insert_with(|| json!([])) {
        list.push(json!(value));
    }
}

fn capability_json(block: &Block<'_, '_>) -> Value {
    let mut capability = Map::new();
    capability.insert("id".to_owned(), json!(block.head.value));
    for (key, name) in [
        ("endpoint", "endpoint"),
        ("method", "method"),
        ("protocol", "protocol"),
        ("description", "description"),
        ("openapi", "openapi"),
        ("rate-limit", "rateLimit"),
    ] {
        if let Some(value) = block.get(key) {
            capability.insert(name.to_owned(), json!(value));
        }
    }
    if let Some(kind) = block.get("auth") {
        let auth = json!({"type": kind, "tokenEndpoint": block.get("auth-endpoint"), "docsUrl": block.get("auth-docs")});
        capability.insert("auth".to_owned(), auth);
    }
    let scopes: Vec<&str> = block.all("scopes").flat_map(listed).collect();
    if !scopes.is_empty() {
        capability.insert("scopes".to_owned(), json!(scopes));
    }
    let parameters: Vec<Value> = block.all("param").map(parameter_json).collect();
    if !parameters.is_empty() {
        capability.insert("parameters".to_owned(), Value::Array(parameters));
    }
    Value::Object(capability)
}

/// `name (location, type[, required]) [- description]`
fn parameter_json(text: &str) -> Value {
    let Some((name, rest)) = text.split_once('(') else { return json!({"name": text}) };
    let (inside, after) = rest.split_once(')').unwrap_or((rest, ""));
    let mut parts = listed(inside);
    let (place, kind) = (parts.next(), parts.next());
    let mut parameter = json!({"name": name.trim(), "in": place, "type": kind});
    if parts.any(|part| part.eq_ignore_ascii_case("required")) {
        parameter["required"] = json!(true);
    }
    let description = after.trim().trim_start_matches(['-', '–', '—']).trim();
    if !description.is_empty() {
        parameter["description"] = json!(description);
    }
    parameter
}

fn agent_json(block: &Block<'_, '_>) -> Value {
    let mut policy = Map::new();
    if let Some(rate) = block.get("rate-limit") {
        policy.insert("rateLimit".to_owned(), json!(rate));
    }
    let capabilities: Vec<&str> = block.all("capabilities").flat_map(listed).collect();
    if !capabilities.is_empty() {
        policy.insert("capabilities".to_owned(), json!(capabilities));
    }
    if let Some(declaration) = block.get("agent-declaration") {
        policy.insert("agentDeclaration".to_owned(), json!(declaration));
    }
    Value::Object(policy)
}

pub(super) fn read(root: &Object<'_>, draft: &mut Draft<'_>) {
    draft.dialect(root.text("specVersion"), Some("1.0"));
    draft.assess("agents.txt 1.0", |code| code.starts_with("agents_txt."));
    draft.check(root, &ROOT);
    header::describe(root, draft);
    draft.manifest.updated_at = root.string("generatedAt");
    let declared = draft::name(root.text("declarationType")).map(Value::String);
    draft.manifest.features.other.extend(declared.map(|kind| ("declarationType".to_owned(), kind)));
    if let Some(site) = draft.checked(root, "site", &SITE) {
        draft.manifest.policies.privacy_url = site.string("privacyPolicy");
        draft.manifest.policies.terms_url = site.string("terms");
        draft.manifest.contact = site.value("contact").map(header::contact).unwrap_or_default();
    }
    if let Some(access) = draft.checked(root, "access", &ACCESS) {
        draft.manifest.policies.access_allow = draft::tags(access.texts("allow"));
        draft.manifest.policies.access_disallow = draft::tags(access.texts("disallow"));
    }
    match root.value("agents") {
        Some(agents @ Value::Object(_)) => read_agents(agents, draft),
        Some(listed) => {
            draft.report_rule(&AGENTS_LIST, root.at("agents"));
            let by_name = Value::Object(agents_by_name(listed));
            read_agents(&by_name, draft);
        }
        None => {}
    }
    draft.link(root, "agentsJson", "agents-json", Some(Follow::Manifest));
    if root.list("capabilities").is_some_and(<[Value]>::is_empty) {
        draft.report_rule(&NO_CAPABILITY, root.at("capabilities"));
    }
    draft.each(root, "capabilities", &List::of(&CAPABILITY).unique("id", &DUPLICATE), read_capability);
    check_policies(root, draft);
}

/// Reports capabilities that policies name but the document does not declare.
fn check_policies(root: &Object<'_>, draft: &mut Draft<'_>) {
    let declared: HashSet<&str> = root.objects("capabilities").filter_map(|it| it.text("id")).collect();
    let Some(agents) = root.value("agents") else { return };
    for (_, policy, pointer) in children(agents, &root.at("agents")).take(AGENTS_MAX) {
        let Some(map) = policy.as_object() else { continue };
        let policy = Object::new(map, pointer);
        check_rate(&policy, draft);
        for (index, name) in policy.list("capabilities").unwrap_or_default().iter().enumerate() {
            let Some(name) = name.as_str().filter(|name| *name != "*" && !declared.contains(name.trim()))
            else {
                continue;
            };
            let pointer = at_index(&policy.at("capabilities"), index);
            let text = format!("\"{}\" is not a capability", text::capped(name, 100));
            draft.report(&AGENT_CAPABILITY_UNKNOWN, pointer, text);
        }
    }
}

/// Reports a limit whose text is not a rate.
fn check_rate(object: &Object<'_>, draft: &mut Draft<'_>) {
    if let Some(limit) = object.text("rateLimit").filter(|limit| !quantity::is_rate(limit)) {
        let text = format!("\"{}\" is no rate", text::capped(limit, 100));
        draft.report(&RATE_UNREADABLE, object.at("rateLimit"), text);
    }
}

/// Keeps the policies by agent name. The policy of `*` applies to every agent.
fn read_agents(agents: &Value, draft: &mut Draft<'_>) {
    if agents.as_object().is_some_and(Map::is_empty) {
        return;
    }
    draft.manifest.hints.insert("agents".to_owned(), agents.clone());
    let limit = agents.pointer("/*/rateLimit").and_then(lenient::rate_limit);
    draft.manifest.rate_limit = limit.filter(|limit| limit.requests.is_some());
}

/// The policies of a list by the names that its elements state.
fn agents_by_name(listed: &Value) -> Map<String, Value> {
    let policies = listed.as_array().into_iter().flatten().filter_map(Value::as_object);
    let named = policies.filter_map(|policy| {
        let name = policy.get("name")?.as_str()?;
        let others = policy.iter().filter(|(key, _)| *key != "name");
        let others = others.map(|(key, value)| (key.clone(), value.clone())).collect();
        Some((text::capped(name, draft::NAME_CHARS_MAX).to_owned(), Value::Object(others)))
    });
    named.collect()
}

fn read_capability(object: &Object<'_>, draft: &mut Draft<'_>) {
    let mut capability = draft.begin(CapabilityKind::Action, object, &["id"], &[]);
    address(object, &mut capability, draft);
    let mut parameters = Parameters::default();
    for parameter in object.objects("parameters").chain(object.objects("params")) {
        check_parameter(&parameter, draft);
        let Some(name) = parameter.text("name") else { continue };
        let (schema, presence) = object_descriptor(parameter.map);
        let location = match parameter.text_of(&["in", "location"]) {
            Some("query") => Location::Query,
            Some("path") => Location::Path,
            Some("header") => Location::Header,
            Some("body") => Location::Body,
            _ => Location::of(&capability.invocation, name),
        };
        let presence = if location == Location::Path { Presence::Required } else { presence };
        parameters.add(name, schema, location, presence);
    }
    capability.parameters = match object.value_of(&["parameters", "params"]) {
        Some(stated) if is_empty_statement(stated) => parameters.finish_stated(&capability.invocation),
        _ => parameters.finish(),
    };
    read_auth(object, &mut capability, draft);
    check_rate(object, draft);
    capability.rate_limit = object.value("rateLimit").and_then(|limit| match limit {
        Value::String(text) => Some(quantity::rate(text)),
        other => lenient::rate_limit(other),
    });
    draft.link(object, "openapi", "service-desc", Some(Follow::Manifest));
    // `Method: GET,POST` is not in the grammar and is reported, but each method becomes a call.
    let mut methods = methods(object);
    if let Some(first) = methods.next() {
        capability.invocation.method = Some(first);
    }
    draft.push_with_methods(capability, methods);
}

/// Maximum number of methods of one capability that are read.
const METHODS_MAX: usize = 7;

/// The methods that one value lists; empty if it is a single method.
fn methods(object: &Object<'_>) -> impl Iterator<Item = String> {
    let listed = object.text("method").filter(|text| text.contains([',', '/', '|', ' '])).unwrap_or_default();
    let methods: Vec<String> = listed
        .split([',', '/', '|', ' '])
        .map(str::to_ascii_uppercase)
        .filter(|word| is_method_in_any_case(word))
        .take(METHODS_MAX)
        .collect();
    methods.into_iter()
}

/// Checks a parameter. The member for its location may be called `location`, as in the published examples.
fn check_parameter(parameter: &Object<'_>, draft: &mut Draft<'_>) {
    let place = parameter.value("location").filter(|_| !parameter.has("in"));
    let Some(place) = place.filter(|place| place.as_str().is_some_and(is_location)) else {
        return draft.check(parameter, &PARAMETER);
    };
    let mut renamed = parameter.map.clone();
    renamed.insert("in".to_owned(), place.clone());
    draft.check(&Object::new(&renamed, parameter.pointer.clone()), &PARAMETER);
}

fn is_location(word: &str) -> bool {
    LOCATIONS.contains(&word)
}

/// Sets endpoint and protocol. Only HTTP has a method, by default GET.
fn address(object: &Object<'_>, capability: &mut Capability, draft: &mut Draft<'_>) {
    let Some(address) =
        object.text("endpoint").and_then(|text| draft.on_origin(text, &object.at("endpoint")))
    else {
        return;
    };
    let protocol = match object.text("protocol").unwrap_or("REST").to_ascii_uppercase().as_str() {
        "MCP" => Protocol::Mcp,
        "A2A" => Protocol::A2a,
        "GRAPHQL" => Protocol::GraphQl,
        "WEBSOCKET" => Protocol::WebSocket,
        _ => Protocol::Http,
    };
    if protocol == Protocol::Http {
        let method = object.text("method").unwrap_or("GET").to_ascii_uppercase();
        return endpoint::set_call(capability, &method, address);
    }
    let url = address.as_str().to_owned();
    endpoint::set(capability, address);
    capability.invocation.protocol = Some(protocol);
    capability.invocation.native = object.string("id");
    let mut interface = Interface::new(protocol, Some(url));
    interface.declared = object.string("protocol");
    if !draft.manifest.interfaces.contains(&interface) {
        draft.keep(interface);
    }
}

fn read_auth(object: &Object<'_>, capability: &mut Capability, draft: &mut Draft<'_>) {
    let Some(published) = object.value("auth") else { return };
    let mut found = lenient::auth(published);
    let is_known = |auth: &Auth| auth.declared.as_deref().is_none_or(auth::is_scheme_of_http);
    if found.iter().any(|auth| auth.scheme == AuthScheme::Other && !is_known(auth)) {
        draft.report_rule(&AUTH_UNKNOWN, object.at("auth"));
    }
    let described = object.object("auth");
    let address = |key: &str| lenient::address_of(described.as_ref()?, &[key]);
    let (token_url, docs_url) = (address("tokenEndpoint"), address("docsUrl"));
    for auth in &mut found {
        auth.token_url.clone_from(&token_url);
        auth.docs_url.clone_from(&docs_url);
        auth.scopes.extend(lenient::scopes(object).map(|scope| (scope, String::new())));
        let tokens = matches!(auth.scheme, AuthScheme::Bearer | AuthScheme::OAuth2);
        if tokens && auth.token_url.is_none() {
            draft.report_rule(&NO_TOKEN_ENDPOINT, object.at("auth"));
        }
    }
    capability.auth = lenient::required_by(&found);
    for auth in found {
        let mut stated = draft.manifest.auth.iter_mut();
        let known = stated.find(|known| known.scheme == auth.scheme && known.token_url == auth.token_url);
        let known = known.map(|known| {
            let room = SCOPES_OF_SCHEME_MAX.saturating_sub(known.scopes.len());
            known.scopes.extend(auth.scopes.clone().into_iter().take(room));
        });
        let known = known.is_some();
        let docs = auth.docs_url.clone().filter(|docs| {
            known && !draft.manifest.auth.iter().any(|auth| auth.docs_url.as_ref() == Some(docs))
        });
        if !known {
            draft.keep(auth);
        }
        // Another capability shares the scheme but has different documentation.
        if let Some(docs) = docs.and_then(|docs| draft.origin_url(&docs)) {
            let mut link = Link::new("docs", docs, None);
            link.title = Some(capability.name.clone());
            draft.keep(link);
        }
    }
}

fn is_id(text: &str) -> bool {
    let plain = text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
    plain && !text.starts_with('-') && text.len() <= 100
}

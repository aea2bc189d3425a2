//! Addresses of MCP servers in any published shape: `remotes`, `transport`, a single URL, a list of servers, the command
//! lines of a client configuration.
//!
//! A command is kept as a declared transport without address; it is never run.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::{rules, tools};
use crate::address;
use crate::draft::{self, Draft};
use crate::format::{lenient, package};
use crate::model::{AppliesTo, Auth, AuthScheme, CapabilityKind, Interface, Invocation, Protocol};
use crate::object::Object;
use crate::schema;
use crate::text;

/// Members with the address of a server. `url` is last: it often is the address of the home page.
const ADDRESS_KEYS: &[&str] = &[
    "mcp_endpoint",
    "mcpEndpoint",
    "mcp_server",
    "mcp_url",
    "mcpUrl",
    "endpoint",
    "serverUrl",
    "server_url",
    "url",
];
/// Members whose objects name a server.
const BLOCKS: &[&str] = &["transport", "mcp", "server", "endpoints", "mcp_server", "runtime", "connection"];
/// Members that are lists or maps of servers.
const LISTS: &[&str] = &["transports", "servers", "endpoints", "transport"];
/// Names of transports in a map of servers.
const TRANSPORTS: &[&str] =
    &["streamable_http", "streamable-http", "streamableHttp", "http", "sse", "stdio", "websocket"];
/// Maximum number of servers of one file that are kept.
const SERVERS_MAX: usize = 100;

/// All servers that a file names, in their order.
pub(super) fn read(root: &Object<'_>, draft: &mut Draft<'_>) -> Vec<Interface> {
    let mut found = Vec::new();
    for remote in root.objects("remotes").take(SERVERS_MAX) {
        draft.check(&remote, &rules::REMOTE);
        found.extend(read_server(&remote, draft));
    }
    if found.is_empty() && ADDRESS_KEYS.iter().any(|key| key.starts_with("mcp") && is_text_address(root, key))
    {
        found.extend(read_server(root, draft));
    }
    for key in BLOCKS {
        found.extend(root.object(key).and_then(|object| read_server(&object, draft)));
    }
    for key in LISTS {
        let members = root.object(key);
        let members = members.iter().flat_map(Object::members).map(|(name, member)| (Some(name), member));
        let listed = root.objects(key).map(|listed| (None, listed));
        for (name, listed) in listed.chain(members).take(SERVERS_MAX) {
            found.extend(read_listed(name, &listed, draft));
        }
    }
    if found.is_empty() {
        found.extend(beside_home(root, draft));
    }
    if found.is_empty() && !is_home_of_tools(root) {
        found.extend(read_server(root, draft));
    }
    let version = root.text_of(&["protocolVersion", "protocol_version", "mcp_version", "mcpVersion"]);
    for interface in &mut found {
        interface.version = interface.version.take().or_else(|| version.map(str::to_owned));
    }
    let mut seen = HashSet::new();
    found.retain(|interface| seen.insert(interface.url.clone()));
    found
}

/// The server that another member names next to a `url` that is the home page: `"mcp": "https://…/mcp"`, `"links": {"mcp": …}`.
fn beside_home(root: &Object<'_>, draft: &mut Draft<'_>) -> Option<Interface> {
    if !is_home(root) {
        return None;
    }
    let blocks = ["links", "urls"].iter().filter_map(|key| root.object(key));
    let mut holders = std::iter::once(root.clone()).chain(blocks);
    let (holder, key) = holders.find_map(|holder| {
        let key = ["mcp", "mcp_url", "mcp_endpoint"].into_iter().find(|key| is_text_address(&holder, key))?;
        Some((holder, key))
    })?;
    let interface = Interface::new(Protocol::Mcp, draft.url(&holder, key));
    interface.url.is_some().then_some(interface)
}

/// Whether the `url` of a file is a home page.
fn is_home(root: &Object<'_>) -> bool {
    root.text("url")
        .and_then(|url| url.split_once("://"))
        .is_some_and(|(_, rest)| rest.split_once('/').is_none_or(|(_, path)| path.is_empty()))
}

/// Whether the only server address of a file is its home page, and its tools have their own addresses.
fn is_home_of_tools(root: &Object<'_>) -> bool {
    let has_endpoint = ADDRESS_KEYS.iter().any(|key| *key != "url" && is_text_address(root, key));
    is_home(root) && !has_endpoint && root.value("tools").is_some_and(tools::have_addresses)
}

/// Packages that a caller installs and starts: interfaces without an address.
pub(super) fn packages(root: &Object<'_>) -> Vec<Interface> {
    let package = |package: Object<'_>| {
        let identifier = package.text_of(&["identifier", "name"])?;
        let registry = package.text_of(&["registryType", "registry_type", "registry_name"]);
        let transport = package.object("transport");
        let transport = transport.as_ref().and_then(|transport| transport.string("type"));
        let declared =
            registry.map_or_else(|| identifier.to_owned(), |registry| format!("{registry}:{identifier}"));
        let mut interface = Interface::new(Protocol::Mcp, None);
        interface.declared = draft::name(Some(&declared));
        interface.transport = transport.or_else(|| Some("stdio".to_owned()));
        let version = package.value("version").filter(|version| version.is_string());
        interface.settings.extend(version.map(|version| ("version".to_owned(), version.clone())));
        Some(interface)
    };
    let listed = root.objects("packages").take(SERVERS_MAX).filter_map(package);
    // `{"npm": {"name": "@shop/mcp", "command": "npx", "args": […]}}`
    let by_registry = root.object("packages");
    let started = by_registry.iter().flat_map(Object::members).filter_map(|(_, package)| {
        let declared = command_line(&package)?;
        let transport = Some("stdio".to_owned());
        Some(Interface { declared: Some(declared), transport, ..Interface::new(Protocol::Mcp, None) })
    });
    listed.chain(started).take(SERVERS_MAX).collect()
}

/// Maximum number of variables of one remote that are read.
const VARIABLES_MAX: usize = 50;

/// The variables in the address of a remote, with their descriptions, defaults and choices.
pub(super) fn parameters(interface: &Interface, invocation: &Invocation) -> Option<Value> {
    let template = invocation.url_template.as_deref()?;
    let stated = interface.settings.get("variables")?.as_object()?;
    let is_used = |name: &String| address::variables(template).any(|variable| variable == name);
    let used = stated.iter().filter(|(name, _)| is_used(name)).take(VARIABLES_MAX);
    let members = [("description", "description"), ("default", "default"), ("choices", "enum")];
    let described = used.filter_map(|(name, variable)| {
        let variable = variable.as_object()?;
        let known = members
            .iter()
            .filter_map(|(key, keyword)| Some(((*keyword).to_owned(), variable.get(*key)?.clone())));
        let mut descriptor: Map<String, Value> = known.collect();
        // Types of their own: `filepath` is a text.
        let typed = variable.get("format").and_then(Value::as_str);
        let typed = typed.filter(|typed| matches!(*typed, "number" | "boolean")).unwrap_or("string");
        descriptor.insert("type".to_owned(), Value::from(typed));
        // The address needs every variable that has no default.
        let is_required = variable.get("isRequired").and_then(Value::as_bool) == Some(true)
            || !descriptor.contains_key("default");
        descriptor.insert("required".to_owned(), Value::from(is_required));
        Some((name.clone(), Value::Object(descriptor)))
    });
    schema::lenient(&Value::Object(described.collect()), invocation)
}

/// The credentials in the headers of a remote.
pub(super) fn credentials(interface: &Interface) -> impl Iterator<Item = Auth> + use<'_> {
    let headers = interface.settings.get("headers").and_then(Value::as_array);
    headers.into_iter().flatten().filter_map(|header| {
        let name = header.get("name")?.as_str()?;
        let is_authorization = name.eq_ignore_ascii_case("authorization");
        let is_secret = header.get("isSecret").and_then(Value::as_bool) == Some(true);
        let scheme = if is_authorization { AuthScheme::Bearer } else { AuthScheme::ApiKey };
        let (location, name) = (Some("header".to_owned()), Some(name.to_owned()));
        let is_optional = header.get("isRequired").and_then(Value::as_bool) == Some(false);
        let applies_to =
            if is_optional { AppliesTo::OptionalIds { ids: Vec::new() } } else { AppliesTo::All };
        let registration_url = header.get("description").and_then(Value::as_str);
        let registration_url = registration_url.and_then(lenient::registration_in);
        (is_authorization || is_secret).then(|| Auth {
            location,
            name,
            registration_url,
            applies_to,
            ..Auth::new(scheme)
        })
    })
}

/// The credentials in the headers of blocks that name a server. Their values may be secrets and are not kept.
pub(super) fn credentials_of_blocks(root: &Object<'_>) -> Vec<Auth> {
    let blocks = BLOCKS.iter().filter_map(|key| root.object(key));
    blocks.flat_map(|block| configured_credentials(&block)).collect()
}

/// Maximum number of secrets of one package that are read; published ones have up to two.
const SECRETS_MAX: usize = 20;

/// The secrets that packages require: in environment variables, arguments, and headers of their own server.
pub(super) fn secrets_of_packages(root: &Object<'_>) -> Vec<Auth> {
    let mut found: Vec<Auth> = Vec::new();
    for package in root.objects("packages").take(SERVERS_MAX) {
        let transport = package.object("transport");
        let inputs = [
            (Some(&package), "environmentVariables", "environment"),
            (Some(&package), "environment_variables", "environment"),
            (Some(&package), "packageArguments", "argument"),
            (Some(&package), "runtimeArguments", "argument"),
            (transport.as_ref(), "headers", "header"),
        ];
        for (holder, key, place) in inputs {
            let listed = holder.into_iter().flat_map(|holder| holder.objects(key)).take(SECRETS_MAX);
            let secrets: Vec<Auth> = listed
                .flat_map(|input| {
                    // The name of an argument is a command-line flag; the name of its variable has the meaning.
                    let variables = input.object("variables").filter(|_| place == "argument");
                    let members = variables.iter().flat_map(Object::members).take(SECRETS_MAX);
                    let inner = members.filter_map(|(name, variable)| secret(Some(name), &variable, place));
                    secret(None, &input, place)
                        .into_iter()
                        .chain(inner.collect::<Vec<_>>())
                        .collect::<Vec<_>>()
                })
                .collect();
            for secret in secrets {
                if !found.contains(&secret) {
                    found.push(secret);
                }
            }
        }
    }
    found
}

/// The secrets in the environment of a command, by their names. Their values are not kept.
pub(crate) fn secrets_of_environment(server: &Object<'_>, applies_to: &AppliesTo) -> Vec<Auth> {
    let names = server.object("env").into_iter().flat_map(|env| env.map.keys()).take(SECRETS_MAX);
    let of_name = |name: &String| secret_of_environment(name);
    names.filter_map(of_name).map(|secret| Auth { applies_to: applies_to.clone(), ..secret }).collect()
}

/// The secret in an environment variable, if its name says that it is one: `SHOP_API_KEY`.
pub(crate) fn secret_of_environment(name: &str) -> Option<Auth> {
    let scheme = scheme_of_secret(name);
    let is_secret = scheme == AuthScheme::ApiKey || is_private(name);
    let (location, name) = (Some("environment".to_owned()), draft::name(Some(name)));
    is_secret.then(|| Auth { location, name, ..Auth::new(scheme) })
}

/// Whether a secret with this name is not a key for a service.
fn is_private(name: &str) -> bool {
    let is_word = |word: &String| {
        matches!(word.as_str(), "private" | "wallet" | "mnemonic" | "seed" | "secret" | "password")
    };
    text::words(name).iter().any(is_word)
}

fn scheme_of_secret(name: &str) -> AuthScheme {
    let is_key = |word: &String| matches!(word.as_str(), "key" | "token" | "apikey");
    if text::words(name).iter().any(is_key) && !is_private(name) {
        AuthScheme::ApiKey
    } else {
        AuthScheme::Other
    }
}

/// A secret of a package: an API key if its name contains that word, such as `SHOP_API_KEY`, or else another secret. An optional secret
/// applies to no call.
fn secret(name: Option<&str>, input: &Object<'_>, place: &str) -> Option<Auth> {
    let flag = |keys: [&str; 2]| keys.iter().find_map(|key| input.flag(key));
    let name = draft::name(name.or_else(|| input.text_of(&["name", "valueHint"])))?;
    flag(["isSecret", "is_secret"]).filter(|is_secret| *is_secret)?;
    let scheme = scheme_of_secret(&name);
    let applies_to = match flag(["isRequired", "is_required"]) {
        Some(true) => AppliesTo::All,
        _ => AppliesTo::OptionalIds { ids: Vec::new() },
    };
    let registration_url = input.text("description").and_then(lenient::registration_in);
    let location = Some(place.to_owned());
    Some(Auth { location, name: Some(name), registration_url, applies_to, ..Auth::new(scheme) })
}

/// A server of a list, or of a map by transport.
fn read_listed(name: Option<&str>, listed: &Object<'_>, draft: &mut Draft<'_>) -> Option<Interface> {
    let transport = name.filter(|name| TRANSPORTS.contains(name)).map(str::to_owned);
    let mut found = match read_server(listed, draft) {
        Some(found) => found,
        None if listed.has("command")
            && transport.as_deref().or_else(|| listed.text_of(&["type", "transport"])) == Some("stdio") =>
        {
            Interface { declared: command_line(listed), ..Interface::new(Protocol::Mcp, None) }
        }
        None => return None,
    };
    found.transport = found.transport.or(transport).or_else(|| listed.string_of(&["type", "transport"]));
    // The authentication that the server requires: `"auth": "oauth2"`.
    let auth = listed.text("auth").map(|auth| text::capped(auth, draft::NAME_CHARS_MAX));
    found.settings.extend(auth.map(|auth| ("auth".to_owned(), Value::from(auth))));
    Some(found)
}

/// Maximum number of arguments of one command that are kept; published ones have up to six.
const ARGUMENTS_MAX: usize = 20;

/// The command that starts a server, up to the first argument that may contain a secret.
pub(crate) fn command_line(server: &Object<'_>) -> Option<String> {
    let command = server.text("command")?;
    let is_plain = |argument: &&str| {
        let folded = argument.to_ascii_lowercase();
        !["key", "token", "secret", "password", "="].iter().any(|word| folded.contains(word))
    };
    let arguments = server.texts("args").into_iter().take(ARGUMENTS_MAX).take_while(is_plain);
    draft::name(Some(&std::iter::once(command).chain(arguments).collect::<Vec<_>>().join(" ")))
}

fn is_text_address(object: &Object<'_>, key: &str) -> bool {
    object.text(key).is_some_and(is_address)
}

/// The server that one object names.
fn read_server(object: &Object<'_>, draft: &mut Draft<'_>) -> Option<Interface> {
    // WebMCP tools belong to a page in a browser.
    if object.text("type").is_some_and(|kind| kind.eq_ignore_ascii_case("webmcp")) {
        return None;
    }
    let inner = ["mcp", "streamable_http", "streamable-http", "streamableHttp", "http", "sse"];
    let key = ADDRESS_KEYS.iter().chain(&inner).find(|key| is_text_address(object, key))?;
    if let Some(package) = object.text(key).and_then(package::of_page) {
        return Some(package::server(&package));
    }
    let mut interface = Interface::new(Protocol::Mcp, draft.url(object, key));
    let named = || object.texts("transport").first().map(|word| (*word).to_owned());
    let protocol = || object.string("protocol").filter(|word| TRANSPORTS.contains(&word.as_str()));
    let by_key = || TRANSPORTS.contains(key).then(|| (*key).to_owned());
    interface.transport = object.string("type").or_else(named).or_else(protocol).or_else(by_key);
    let versions = object.texts("supportedProtocolVersions");
    interface.version =
        object.text("protocolVersion").or_else(|| versions.last().copied()).map(str::to_owned);
    // A list describes headers to set. A map, as in client configurations, contains their values, which may be secrets.
    let headers = object.value("headers").filter(|headers| headers.is_array());
    let variables = object.value("variables").filter(|variables| variables.is_object());
    let supported = object.value("supportedProtocolVersions").filter(|_| versions.len() > 1);
    let settings = [("headers", headers), ("variables", variables), ("supportedProtocolVersions", supported)];
    for (key, value) in settings {
        interface.settings.extend(value.map(|value| (key.to_owned(), value.clone())));
    }
    if is_rest(object, &interface) {
        (interface.protocol, interface.transport) = (Protocol::Http, None);
    }
    interface.url.is_some().then_some(interface)
}

/// Whether an address is that of an HTTP API and not of an MCP server: its type is `rest`, or it is a home page and a remark beside it names
/// REST and not MCP.
fn is_rest(object: &Object<'_>, interface: &Interface) -> bool {
    if object.text("type").is_some_and(|kind| kind.eq_ignore_ascii_case("rest")) {
        return true;
    }
    let is_home = interface
        .url
        .as_deref()
        .and_then(|url| url.split_once("://"))
        .is_some_and(|(_, rest)| rest.split_once('/').is_none_or(|(_, path)| path.is_empty()));
    // The description of the root is about the whole service.
    let keys: &[&str] =
        if object.pointer.is_empty() { &["note", "notes"] } else { &["note", "notes", "description"] };
    let remark = object.text_of(keys).filter(|_| is_home);
    remark.is_some_and(|remark| {
        let mut words = remark.split(|letter: char| !letter.is_ascii_alphanumeric());
        words.any(|word| matches!(word, "REST" | "RESTful")) && !remark.contains("MCP")
    })
}

fn is_address(text: &str) -> bool {
    (text.contains("://") || text.starts_with('/')) && !text.contains(char::is_whitespace)
}

/// Maximum number of headers of one server of a client configuration that are read.
const HEADERS_MAX: usize = 20;

/// The credentials in the headers of a client configuration. Their values may be secrets and are not kept.
fn configured_credentials(server: &Object<'_>) -> Vec<Auth> {
    let headers = server.object("headers");
    let names = headers.iter().flat_map(|headers| headers.map.keys()).take(HEADERS_MAX);
    let credential = |name: &String| {
        let folded = name.to_ascii_lowercase();
        let scheme = match folded.as_str() {
            "authorization" => AuthScheme::Bearer,
            _ if ["key", "token", "secret"].iter().any(|word| folded.ends_with(word)) => AuthScheme::ApiKey,
            _ => return None,
        };
        let (location, name) = (Some("header".to_owned()), draft::name(Some(name)));
        Some(Auth { location, name, ..Auth::new(scheme) })
    };
    names.filter_map(credential).collect()
}

/// The credentials in the headers next to the address of a server: `"connection": {"url": …, "headers": {"Authorization": …}}`.
pub(super) fn connected_credentials(root: &Object<'_>) -> Vec<Auth> {
    let mut found: Vec<Auth> = Vec::new();
    for block in BLOCKS.iter().filter_map(|key| root.object(key)).chain(std::iter::once(root.clone())) {
        let has_address = ADDRESS_KEYS.iter().any(|key| is_text_address(&block, key));
        found.extend(
            configured_credentials(&block)
                .into_iter()
                .filter(|auth| has_address && !found.contains(auth))
                .collect::<Vec<_>>(),
        );
    }
    found
}

/// Adds an interface and a resource for each server of a client configuration.
pub(super) fn configured(root: &Object<'_>, draft: &mut Draft<'_>) {
    let servers = root.object_of(&["mcpServers", "servers"]);
    for (name, server) in servers.iter().flat_map(Object::members).take(SERVERS_MAX) {
        rules::check_configured(&server, draft);
        let mut interface =
            read_server(&server, draft).unwrap_or_else(|| Interface::new(Protocol::Mcp, None));
        interface.declared = Some(name.to_owned());
        draft.keep_all(configured_credentials(&server));
        let command = server.value("command").is_some_and(Value::is_string);
        interface.transport = interface.transport.take().or_else(|| command.then(|| "stdio".to_owned()));
        let mut capability = draft.capability(CapabilityKind::Resource, name, name, server.pointer.clone());
        capability.description = draft::description(server.text("description"));
        capability.invocation.protocol = Some(Protocol::Mcp);
        capability.invocation.url.clone_from(&interface.url);
        if let Some(command) = command_line(&server).filter(|_| command) {
            interface.settings.insert("command".to_owned(), Value::String(command));
            let own = AppliesTo::Ids { ids: vec![capability.native_id.clone()] };
            draft.keep_all(secrets_of_environment(&server, &own));
        }
        draft.keep(interface);
        draft.push(capability);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn optional_headers_apply_to_no_call() {
        let mut interface = Interface::new(Protocol::Mcp, None);
        let headers =
            json!([{"name": "X-Key", "isSecret": true, "isRequired": false}, {"name": "Authorization"}]);
        interface.settings.insert("headers".to_owned(), headers);
        let applies: Vec<AppliesTo> = credentials(&interface).map(|auth| auth.applies_to).collect();
        assert_eq!(applies, [AppliesTo::OptionalIds { ids: Vec::new() }, AppliesTo::All]);
    }
}

//! One operation as a whole OpenAPI 3.1 document.

use std::collections::BTreeSet;

use manifest::{AuthScheme, required_properties};
use serde_json::{Map, Value, json};
use url::Url;

use super::references::Copies;
use super::{Parts, Refused, schema, text};

/// Methods that a path item supports (OpenAPI 3.1 §4.8.9).
const VERBS: [&str; 8] = ["GET", "PUT", "POST", "DELETE", "OPTIONS", "HEAD", "PATCH", "TRACE"];
/// Methods whose parameters are in the URL unless declared otherwise.
const BODILESS: [&str; 5] = ["GET", "HEAD", "DELETE", "OPTIONS", "TRACE"];
/// Headers that OpenAPI reserves for itself (§4.8.12.2).
const RESERVED_HEADERS: [&str; 3] = ["accept", "content-type", "authorization"];

/// Where a request contains a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ParameterLocation {
    Path,
    Query,
    Header,
    Cookie,
    Body,
}

/// A URL, split into the parts of an OpenAPI document.
struct Address {
    server: String,
    path: String,
    /// Names and values of the query as published; a value may be a variable.
    query: Vec<(String, String)>,
}

pub(super) fn document(parts: &Parts<'_>, description: &str, hash: Option<&str>) -> Result<Value, Refused> {
    let invocation = &parts.capability.invocation;
    let verb = invocation.method.as_deref().filter(|verb| VERBS.contains(verb));
    let (Some(verb), Some(endpoint)) = (verb, invocation.endpoint()) else {
        let protocol = invocation.protocol.map_or("an unnamed protocol", |protocol| protocol.as_str());
        return Err(Refused::NotHttp { protocol: protocol.to_owned() });
    };
    let address = address(endpoint)?;
    let title = text::title(parts.capability);
    let version: String = parts.source.manifest.content_hash.as_str().chars().rev().take(12).collect();
    let declared =
        parts.source.manifest.document_version.clone().filter(|_| !parts.capability.addresses_reader);
    let mut document = json!({
        "openapi": "3.1.0",
        "info": {"title": title, "version": text::unstamped(declared.unwrap_or(version)),
                 "x-agentdex": parts.origin(hash)},
        "servers": [{"url": address.server}],
    });
    let (schemes, security) = security(parts);
    let operation = operation(parts, description, verb, &address, security);
    let item = Map::from_iter([(verb.to_ascii_lowercase(), operation)]);
    document["paths"] = Value::Object(Map::from_iter([(address.path, Value::Object(item))]));
    if !schemes.is_empty() {
        document["components"] = json!({"securitySchemes": schemes});
        text::unstamped_value(&mut document["components"]);
    }
    Ok(document)
}

/// Splits a URL. Variables are only allowed in the path and as whole query values.
fn address(endpoint: &str) -> Result<Address, Refused> {
    let (before, query) = endpoint.split_once('?').unwrap_or((endpoint, ""));
    let before = before.split('#').next().unwrap_or_default();
    let malformed = Refused::Address { reason: "it is not an absolute http or https address" };
    let (scheme, rest) = before.split_once("://").ok_or_else(|| malformed.clone())?;
    let (host, path) = rest.find('/').map_or((rest, "/"), |at| rest.split_at(at));
    if host.contains(['{', '}']) {
        return Err(Refused::Address { reason: "its host is variable" });
    }
    let server = format!("{scheme}://{host}");
    let is_web = Url::parse(&server).is_ok_and(|url| matches!(url.scheme(), "http" | "https"));
    if !is_web {
        return Err(malformed);
    }
    if variables(path).is_none() {
        return Err(Refused::Address { reason: "the braces in its path do not match" });
    }
    let pairs = query.split('#').next().unwrap_or_default().split('&').filter(|pair| !pair.is_empty());
    let query = pairs.map(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        (name.to_owned(), value.to_owned())
    });
    Ok(Address { server, path: path.to_owned(), query: query.collect() })
}

/// The variables of a template; `None` if braces do not match.
fn variables(template: &str) -> Option<Vec<&str>> {
    let mut names = Vec::new();
    let mut seen = BTreeSet::new();
    let mut rest = template;
    while let Some(at) = rest.find(['{', '}']) {
        let inside = rest.get(at..)?.strip_prefix('{')?;
        let (name, after) = inside.split_once('}')?;
        if name.is_empty() || name.contains('{') {
            return None;
        }
        if seen.insert(name) {
            names.push(name);
        }
        rest = after;
    }
    Some(names)
}

fn operation(
    parts: &Parts<'_>,
    description: &str,
    verb: &str,
    address: &Address,
    security: Option<Value>,
) -> Value {
    let safety = &parts.capability.safety;
    let mut operation = json!({
        "operationId": parts.name,
        "summary": text::title(parts.capability),
        "description": "",
        "x-safety": safety.class,
        "x-confirmation": safety.confirmation,
        "x-openai-isConsequential": parts.is_consequential(),
    });
    if parts.capability.deprecated {
        operation["deprecated"] = Value::Bool(true);
    }
    let mut split = Split::of(parts, verb, address);
    let parameters = std::mem::take(&mut split.parameters);
    if !parameters.is_empty() {
        operation["parameters"] = Value::Array(parameters);
    }
    if let Some(body) = split.body(parts.capability.invocation.envelope.as_ref()) {
        operation["requestBody"] = body;
    }
    let mut answer = json!({"description": "The answer of the site; its words are untrusted."});
    if let Some(response) = &parts.response {
        answer["content"] = json!({"application/json": {"schema": schema::inner(response)}});
    }
    operation["responses"] = json!({"default": answer});
    if let Some(security) = security {
        operation["security"] = security;
    }
    text::unstamped_value(&mut operation);
    operation["description"] = description.into();
    operation
}

/// Parameters by location.
#[derive(Default)]
struct Split {
    parameters: Vec<Value>,
    /// Name and location of each parameter that is not a variable of the path, to find duplicates.
    known: BTreeSet<(String, &'static str)>,
    properties: Map<String, Value>,
    required: Vec<Value>,
}

impl Split {
    fn of(parts: &Parts<'_>, verb: &str, address: &Address) -> Self {
        let mut split = Self::default();
        let published = parts.parameters.as_ref();
        let empty = Map::new();
        let properties = published.and_then(|schema| schema.get("properties")?.as_object()).unwrap_or(&empty);
        let required: BTreeSet<&str> = published.into_iter().flat_map(required_properties).collect();
        let in_path = variables(&address.path).unwrap_or_default();
        let in_query: Vec<(&str, &str)> = address
            .query
            .iter()
            .filter_map(|(name, value)| Some((name.as_str(), variable(value)?)))
            .collect();
        let in_address: BTreeSet<&str> =
            in_path.iter().copied().chain(in_query.iter().map(|(_, variable)| *variable)).collect();
        for (name, property) in properties.iter().filter(|(name, _)| !in_address.contains(name.as_str())) {
            let is_required = required.contains(name.as_str());
            split.add(name, property, is_required, location_of(property, verb));
        }
        // a URL can repeat a variable
        let mut copies = Copies::new();
        let mut schema_of = |name: &str| {
            let declared = properties.get(name).filter(|property| copies.charge(property));
            declared.map_or_else(|| json!({"type": "string"}), schema::inner)
        };
        for name in in_path {
            let schema = schema_of(name);
            split.parameters.push(json!({"name": name, "in": "path", "required": true, "schema": schema}));
        }
        for (name, variable) in &in_query {
            let schema = schema_of(variable);
            let is_required = required.contains(variable);
            split.parameter(name, "query", is_required, &schema);
        }
        for (name, value) in address.query.iter().filter(|(_, value)| variable(value).is_none()) {
            split.parameter(name, "query", true, &json!({"type": "string", "const": value}));
        }
        split
    }

    fn add(&mut self, name: &str, property: &Value, is_required: bool, place: ParameterLocation) {
        let schema = schema::inner(property);
        match place {
            ParameterLocation::Header if RESERVED_HEADERS.contains(&name.to_ascii_lowercase().as_str()) => {}
            ParameterLocation::Header => self.parameter(name, "header", is_required, &schema),
            ParameterLocation::Cookie => self.parameter(name, "cookie", is_required, &schema),
            // a path parameter that does not occur in the path must be meant as a query parameter
            ParameterLocation::Query | ParameterLocation::Path => {
                self.parameter(name, "query", is_required, &schema);
            }
            ParameterLocation::Body => {
                self.properties.insert(name.to_owned(), schema);
                if is_required {
                    self.required.push(Value::from(name));
                }
            }
        }
    }

    /// The pair of name and location is unique in an operation (§4.8.10).
    fn parameter(&mut self, name: &str, place: &'static str, is_required: bool, schema: &Value) {
        if !self.known.insert((name.to_owned(), place)) {
            return;
        }
        self.parameters.push(json!({"name": name, "in": place, "required": is_required, "schema": schema}));
    }

    /// The request body with its parameters, inside the envelope if the dialect has one.
    fn body(self, envelope: Option<&Value>) -> Option<Value> {
        let mut input = json!({"type": "object", "properties": self.properties});
        if !self.required.is_empty() {
            input["required"] = Value::Array(self.required.clone());
        }
        let schema = match envelope {
            Some(Value::Object(members)) => enveloped(members, &input),
            _ if self.properties.is_empty() => return None,
            _ => input,
        };
        let is_required = !self.required.is_empty() || envelope.is_some();
        Some(json!({"required": is_required, "content": {"application/json": {"schema": schema}}}))
    }
}

/// The envelope as a schema: fixed values as constants, the parameters at their location.
fn enveloped(members: &Map<String, Value>, input: &Value) -> Value {
    let properties: Map<String, Value> = members
        .iter()
        .map(|(name, value)| {
            let is_place = value.as_str() == Some("{parameters}");
            (name.clone(), if is_place { input.clone() } else { json!({"const": value}) })
        })
        .collect();
    let names: Vec<&String> = members.keys().collect();
    json!({"type": "object", "required": names, "properties": properties})
}

/// The variable of a query value, if it is one.
fn variable(value: &str) -> Option<&str> {
    value.strip_prefix('{')?.strip_suffix('}').filter(|name| !name.contains(['{', '}']))
}

fn location_of(property: &Value, verb: &str) -> ParameterLocation {
    match property.get("x-in").and_then(Value::as_str) {
        Some("path") => ParameterLocation::Path,
        Some("query") => ParameterLocation::Query,
        Some("header") => ParameterLocation::Header,
        Some("cookie") => ParameterLocation::Cookie,
        _ if BODILESS.contains(&verb) => ParameterLocation::Query,
        _ => ParameterLocation::Body,
    }
}

/// The security schemes that OpenAPI can express, and the requirements of the operation; `None` if nothing is declared. The empty
/// requirement makes the others optional (§4.8.30).
fn security(parts: &Parts<'_>) -> (Map<String, Value>, Option<Value>) {
    let mut schemes = Map::new();
    let mut security = Vec::new();
    let auth = &parts.capability.auth;
    let is_optional = auth.required.as_option() == Some(false);
    if (is_optional && !auth.schemes.is_empty()) || auth.schemes.contains(&AuthScheme::None) {
        security.push(json!({}));
    }
    for scheme in &auth.schemes {
        let Some(object) = scheme_object(parts, *scheme) else { continue };
        schemes.insert(scheme.as_str().to_owned(), object);
        let scopes: &[String] = if *scheme == AuthScheme::OAuth2 { &auth.scopes } else { &[] };
        security.push(Value::Object(Map::from_iter([(scheme.as_str().to_owned(), json!(scopes))])));
    }
    (schemes, (!security.is_empty()).then_some(Value::Array(security)))
}

fn scheme_object(parts: &Parts<'_>, scheme: AuthScheme) -> Option<Value> {
    let declared = parts.source.manifest.auth.iter().find(|auth| auth.scheme == scheme);
    Some(match scheme {
        AuthScheme::ApiKey => {
            let place = declared.and_then(|auth| auth.location.as_deref()).unwrap_or("header");
            // secrets for a local program are not sent in requests
            if matches!(place, "environment" | "argument") {
                return None;
            }
            let place = if matches!(place, "header" | "query" | "cookie") { place } else { "header" };
            let name = declared.and_then(|auth| auth.name.as_deref())?;
            json!({"type": "apiKey", "in": place, "name": name})
        }
        AuthScheme::Bearer => json!({"type": "http", "scheme": "bearer"}),
        AuthScheme::Mtls => json!({"type": "mutualTLS"}),
        AuthScheme::OAuth2 => {
            let mut scopes: Map<String, Value> =
                parts.capability.auth.scopes.iter().map(|scope| (scope.clone(), Value::from(""))).collect();
            if let Some(auth) = declared {
                let said = |text: &str| if parts.capability.addresses_reader { "" } else { text }.into();
                scopes.extend(auth.scopes.iter().map(|(name, text)| (name.clone(), said(text))));
            }
            let authorize = declared.and_then(|auth| auth.authorize_url.as_deref());
            let token = declared.and_then(|auth| auth.token_url.as_deref());
            let mut declared = [authorize, token].into_iter().flatten();
            match (authorize, token) {
                // a flow without one of its URLs would be a different flow
                _ if !declared.all(|url| parts.source.manifest.address_for_agents(url).is_some()) => {
                    access_token()
                }
                (Some(authorize), Some(token)) => json!({"type": "oauth2", "flows": {"authorizationCode":
                    {"authorizationUrl": authorize, "tokenUrl": token, "scopes": scopes}}}),
                (None, Some(token)) => json!({"type": "oauth2", "flows": {"clientCredentials":
                    {"tokenUrl": token, "scopes": scopes}}}),
                _ => access_token(),
            }
        }
        _ => return None,
    })
}

/// OAuth 2 without a flow that OpenAPI can express.
fn access_token() -> Value {
    json!({"type": "http", "scheme": "bearer", "description": "An OAuth 2 access token."})
}

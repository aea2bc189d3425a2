//! The request of a call: address, headers and body, from the declaration and values.

use std::collections::{HashMap, HashSet};

use manifest::model::{CapabilityKind, Protocol};
use manifest::{Capability, Manifest};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Map, Value, json};
use settings::escape;

use super::credentials::{Secret, secret_of};
use super::{TEXT_BYTES_MAX, examples, property};
use crate::dashboard::labels;
use crate::dashboard::schema::Row;

/// Characters that need no encoding in a path or a query (RFC 3986 section 2.3).
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
/// The placeholder for the parameters in an envelope.
const PARAMETERS: &str = "{parameters}";
/// Shown instead of a request that is too long for every tab.
pub(super) const TOO_LONG: &str = "The request is too long for this page.";

/// The request with environment variables in place of secrets.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Call {
    Http(HttpCall),
    /// A tool of an MCP server.
    Mcp {
        url: String,
        tool: String,
        arguments: Value,
        secret: Option<Secret>,
    },
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct HttpCall {
    pub(super) method: String,
    pub(super) url: String,
    pub(super) headers: Vec<(String, String)>,
    pub(super) cookies: Vec<(String, String)>,
    pub(super) body: Option<Value>,
    pub(super) secret: Option<Secret>,
}

impl Call {
    /// The call, or the reason why none can be shown: the declaration is incomplete, or the call is too long for the page.
    pub(super) fn of(
        manifest: &Manifest,
        capability: &Capability,
        rows: &[Row],
        parameters: Option<&Value>,
        given: &Map<String, Value>,
    ) -> Result<Self, String> {
        let call = Self::of_any_length(manifest, capability, rows, parameters, given)?;
        if call.bytes() > TEXT_BYTES_MAX { Err(TOO_LONG.to_owned()) } else { Ok(call) }
    }

    /// Bytes of the texts that appear in the snippet of each language.
    fn bytes(&self) -> usize {
        let written = |value: &Value| value.to_string().len();
        match self {
            Self::Http(http) => {
                let named = http.headers.iter().chain(&http.cookies);
                let named = named.map(|(name, value)| name.len() + value.len());
                http.url.len() + named.sum::<usize>() + http.body.as_ref().map_or(0, written)
            }
            Self::Mcp { url, tool, arguments, .. } => url.len() + tool.len() + written(arguments),
        }
    }

    fn of_any_length(
        manifest: &Manifest,
        capability: &Capability,
        rows: &[Row],
        parameters: Option<&Value>,
        given: &Map<String, Value>,
    ) -> Result<Self, String> {
        let invocation = &capability.invocation;
        let endpoint = invocation.endpoint().filter(|_| !invocation.not_public);
        let endpoint = endpoint.filter(|url| !manifest.leads_inside(url));
        let is_web = |url: &&str| url.starts_with("https://") || url.starts_with("http://");
        let Some(endpoint) = endpoint.filter(is_web) else {
            return Err(
                "The declaration names no public web address, so there is nothing to call.".to_owned()
            );
        };
        let values = values(rows, parameters, given);
        let secret = secret_of(manifest, capability);
        match invocation.protocol {
            None | Some(Protocol::Http | Protocol::Woa) => {}
            Some(Protocol::Mcp) if is_no_tool(capability) => {
                return Err(
                    "It is not a tool: an MCP client connects to the server and lists what it offers."
                        .to_owned(),
                );
            }
            Some(Protocol::Mcp) => {
                let tool = invocation.native.clone().unwrap_or_else(|| capability.native_id.clone());
                let arguments =
                    Value::Object(values.into_iter().map(|(row, value)| (row.name.clone(), value)).collect());
                return Ok(Self::Mcp {
                    url: escape::address(endpoint).into_owned(),
                    tool,
                    arguments,
                    secret,
                });
            }
            Some(Protocol::A2a) => return Ok(Self::Http(a2a(endpoint, capability, secret))),
            Some(other) => {
                let name = labels::protocol(other);
                return Err(format!("It is called over {name}, for which no example is generated."));
            }
        }
        let Some(method) = invocation.method.as_deref().filter(|method| is_method(method)) else {
            return Err(
                "The declaration names an address but no HTTP method, so it is not enough to call it."
                    .to_owned(),
            );
        };
        let mut call = http(method, endpoint, &values, secret).ok_or_else(|| TOO_LONG.to_owned())?;
        if let Some(envelope) = &invocation.envelope {
            call.body = Some(wrapped(envelope, &call.body.take().unwrap_or_else(|| json!({}))));
        }
        Ok(Self::Http(call))
    }
}

/// Whether the capability is the MCP server itself, or something on it that is not a tool.
fn is_no_tool(capability: &Capability) -> bool {
    let is_other = matches!(capability.kind, CapabilityKind::Resource | CapabilityKind::Content);
    is_other && capability.invocation.native.is_none()
}

/// The required parameters and the given ones, with their values.
fn values<'a>(
    rows: &'a [Row],
    parameters: Option<&Value>,
    given: &Map<String, Value>,
) -> Vec<(&'a Row, Value)> {
    let wanted = rows.iter().filter(|row| row.required || given.contains_key(&row.name));
    let value = |row: &Row| {
        let typed = given.get(&row.name).cloned();
        typed.unwrap_or_else(|| examples::of(&row.name, property(parameters, &row.name)))
    };
    wanted.map(|row| (row, value(row))).collect()
}

/// `None` if the URL becomes too long: a value is inserted at each occurrence of its variable.
fn http(method: &str, endpoint: &str, values: &[(&Row, Value)], secret: Option<Secret>) -> Option<HttpCall> {
    let default = if matches!(method, "GET" | "HEAD" | "DELETE") { "query" } else { "body" };
    let variables: HashMap<&str, String> =
        values.iter().map(|(row, value)| (row.name.as_str(), escaped(&examples::plain(value)))).collect();
    let (mut url, filled) = filled(endpoint, &variables)?;
    let mut query: Vec<String> = Vec::new();
    let (mut headers, mut cookies) = (Vec::new(), Vec::new());
    let mut members = Map::new();
    for (row, value) in values {
        if filled.contains(row.name.as_str()) {
            continue;
        }
        let text = examples::plain(value);
        match row.place.as_deref().unwrap_or(default) {
            "query" => query.push(format!("{}={}", escaped(&row.name), escaped(&text))),
            "header" if is_token(&row.name) && !text.contains(escape::is_unsafe) => {
                headers.push((row.name.clone(), text));
            }
            "cookie" if is_token(&row.name) && text.bytes().all(is_of_cookie) => {
                cookies.push((row.name.clone(), text));
            }
            "body" | "formData" => drop(members.insert(row.name.clone(), value.clone())),
            // Left out: it would become another header or cookie, or a command of the terminal. A path without the variable cannot take the
            // value, and a request has no other locations.
            _ => {}
        }
    }
    if !query.is_empty() {
        let joint = if url.contains('?') { '&' } else { '?' };
        url = format!("{url}{joint}{}", query.join("&"));
    }
    let url = escape::address(&url).into_owned();
    let body = (!members.is_empty()).then_some(Value::Object(members));
    Some(HttpCall { method: method.to_owned(), url, headers, cookies, body, secret })
}

/// The URL with the values of its variables, and the names of these variables. `None` if it is longer than [`TEXT_BYTES_MAX`].
fn filled<'a>(endpoint: &'a str, variables: &HashMap<&str, String>) -> Option<(String, HashSet<&'a str>)> {
    let (mut url, mut names, mut rest) = (String::new(), HashSet::new(), endpoint);
    while let Some((before, behind)) = rest.split_once('{') {
        url.push_str(before);
        rest = behind;
        let variable =
            behind.split_once('}').and_then(|(name, behind)| Some((name, variables.get(name)?, behind)));
        match variable {
            Some((name, value, behind)) => {
                url.push_str(value);
                names.insert(name);
                rest = behind;
            }
            None => url.push('{'),
        }
        if url.len() > TEXT_BYTES_MAX {
            return None;
        }
    }
    url.push_str(rest);
    Some((url, names))
}

/// A message to an agent (A2A 0.3 section 7.1): its first example, or its name.
fn a2a(endpoint: &str, capability: &Capability, secret: Option<Secret>) -> HttpCall {
    let text = capability.examples.first().or(capability.description.as_ref()).unwrap_or(&capability.name);
    let message = json!({
        "role": "user", "kind": "message", "messageId": "1", "parts": [{"kind": "text", "text": text}],
    });
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": {"message": message}});
    HttpCall {
        method: "POST".to_owned(),
        url: escape::address(endpoint).into_owned(),
        headers: Vec::new(),
        cookies: Vec::new(),
        body: Some(body),
        secret,
    }
}

/// The envelope with the parameters inserted at the placeholder.
fn wrapped(envelope: &Value, parameters: &Value) -> Value {
    match envelope {
        Value::Object(members) => {
            let filled = members.iter().map(|(name, value)| {
                let is_place = value.as_str() == Some(PARAMETERS);
                (name.clone(), if is_place { parameters.clone() } else { value.clone() })
            });
            Value::Object(filled.collect())
        }
        other => other.clone(),
    }
}

/// Maximum number of letters of a method. The longest registered one has 17 (UPDATEREDIRECTREF).
const METHOD_LETTERS_MAX: usize = 20;

/// Whether a text is written like the registered methods of HTTP. Other characters that a method may have are commands in some shells.
fn is_method(text: &str) -> bool {
    (1..=METHOD_LETTERS_MAX).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_alphabetic())
}

/// Whether a text may be the name of a header (RFC 9110 section 5.6.2).
pub(super) fn is_token(text: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty() && text.bytes().all(is_part)
}

/// Whether a byte may be in the value of a cookie (RFC 6265 section 4.1.1).
const fn is_of_cookie(byte: u8) -> bool {
    matches!(byte, 0x21 | 0x23..=0x2b | 0x2d..=0x3a | 0x3c..=0x5b | 0x5d..=0x7e)
}

/// A text as part of a query or a path, with no character that a URL or a program such as curl interprets.
pub(super) fn escaped(text: &str) -> String {
    utf8_percent_encode(text, ESCAPED).to_string()
}

/// The URL up to the value of a key in its query. The name is escaped, as the Python library escapes its parameters.
pub(super) fn url_before_key(url: &str, name: &str) -> String {
    let joint = if url.contains('?') { '&' } else { '?' };
    format!("{url}{joint}{}=", escaped(name))
}

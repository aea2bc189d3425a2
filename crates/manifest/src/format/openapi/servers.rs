//! Selects the base URL of the operations of an OpenAPI document.
//!
//! It uses the nearest `servers` list (operation, path, document), and in it the first https entry, or else the first entry. Swagger 2.0's
//! scheme, host and base path are read as one such entry. A relative address is resolved against the document; variables take their
//! defaults. It makes no network requests.
//!
//! Follows OpenAPI 3.1 §4.8.5 and §4.8.9 (the path is appended to the server's URL, never resolved against it), 2.0
//! "Swagger Object".

use serde_json::{Map, Value};

use crate::address::{Address, on_document};
use crate::name::ManifestUrl;
use crate::text::capped;

/// The base URL of an operation, without a final slash. It may still contain `{variables}` without a default. `None` if the declared base
/// is not an absolute http(s) URL, or is longer than [`BASE_BYTES_MAX`].
pub(super) fn base_url(
    lists: &[Option<&Value>],
    document: &Map<String, Value>,
    base: &ManifestUrl,
) -> Option<String> {
    let listed = lists
        .iter()
        .flatten()
        .filter_map(|servers| servers.as_array())
        .find(|servers| !servers.is_empty())
        .and_then(|servers| preferred(servers));
    let declared = listed.or_else(|| swagger_base(document, base)).unwrap_or_else(|| "/".to_owned());
    absolute(&declared, base).map(|url| url.trim_end_matches('/').to_owned())
}

/// Whether the document names its servers.
pub(super) fn is_declared(document: &Map<String, Value>) -> bool {
    document.get("servers").is_some_and(is_listed) || document.get("host").is_some_and(Value::is_string)
}

/// Whether a list names any server.
pub(super) fn is_listed(servers: &Value) -> bool {
    servers.as_array().is_some_and(|servers| !servers.is_empty())
}

/// Maximum number of servers of one list that are read.
const SERVERS_MAX: usize = 64;
/// Longest base address, variables filled in.
const BASE_BYTES_MAX: usize = 2_048;

fn preferred(servers: &[Value]) -> Option<String> {
    let urls: Vec<String> = servers.iter().take(SERVERS_MAX).filter_map(substituted).collect();
    urls.iter().find(|url| url.starts_with("https://")).or_else(|| urls.first()).cloned()
}

/// The URL of a server with the defaults of its variables, truncated soon after [`BASE_BYTES_MAX`]. Variables inside a default are not
/// substituted again, so that they cannot multiply. In the authority, a default that would end it or that has a user name (RFC 3986 section
/// 3.2) is not substituted: `https://bank.example{x}` must not become another host.
fn substituted(server: &Value) -> Option<String> {
    let template = server.get("url")?.as_str()?.trim();
    let variables = server.get("variables").and_then(Value::as_object);
    let (mut url, mut rest) = (String::new(), template);
    while let Some((before, after)) = rest.split_once('{') {
        url.push_str(before);
        let name = after.split_once('}').map(|(name, _)| name);
        let default = name.and_then(|name| variables?.get(name)?.get("default")?.as_str());
        rest = if let (Some(name), Some(default)) = (name, default)
            && (!is_in_authority(&url) || is_of_authority(default))
        {
            url.push_str(default);
            after.get(name.len() + 1..).unwrap_or_default()
        } else {
            url.push('{');
            after
        };
        if url.len() > BASE_BYTES_MAX {
            break;
        }
    }
    url.push_str(capped(rest, BASE_BYTES_MAX + 1));
    Some(url)
}

/// Whether the text after a part of a URL belongs to the authority.
fn is_in_authority(before: &str) -> bool {
    before.split_once("//").is_some_and(|(_, rest)| !rest.contains(['/', '\\', '?', '#']))
}

/// Whether a text can be a part of a host, a port or both, without ending them.
fn is_of_authority(text: &str) -> bool {
    !text.contains(['/', '\\', '?', '#', '@', '%'])
}

/// Swagger 2.0 "Swagger Object".
fn swagger_base(document: &Map<String, Value>, base: &ManifestUrl) -> Option<String> {
    document.get("swagger")?;
    let path = document.get("basePath").and_then(Value::as_str).unwrap_or("/");
    let schemes: Vec<&str> = document
        .get("schemes")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let scheme = if schemes.is_empty() || schemes.contains(&"https") { "https" } else { schemes.first()? };
    let slash = if path.starts_with('/') { "" } else { "/" };
    Some(match document.get("host").and_then(Value::as_str) {
        Some(host) => format!("{scheme}://{host}{slash}{path}"),
        None => format!("{}{slash}{path}", base.origin()),
    })
}

/// Resolves a server's URL against the document, leaving `{variables}` unchanged.
fn absolute(url: &str, base: &ManifestUrl) -> Option<String> {
    if url.len() > BASE_BYTES_MAX {
        return None;
    }
    // Variables can be in places where no URL parser accepts them: `{base}/v1`, `https://host:{port}`.
    let template = || url.contains('{').then(|| url.to_owned());
    on_document(base, url).map(Address::into_string).or_else(template)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn base_of(document: &Value) -> Option<String> {
        let base = ManifestUrl::parse("https://shop.example/docs/openapi.json").unwrap();
        base_url(&[document.get("servers")], document.as_object().unwrap(), &base)
    }

    #[test]
    fn base_url_is_absolute_and_prefers_https() {
        for (document, expected) in [
            (json!({"servers": [{"url": "https://api.shop.example/v1/"}]}), "https://api.shop.example/v1"),
            (
                json!({"servers": [{"url": "http://a.example"}, {"url": "https://b.example"}]}),
                "https://b.example",
            ),
            (json!({"servers": [{"url": "/v2"}]}), "https://shop.example/v2"),
            (json!({"servers": [{"url": "v2"}]}), "https://shop.example/docs/v2"),
            (json!({}), "https://shop.example"),
            (json!({"servers": []}), "https://shop.example"),
            (
                json!({"servers": [{"url": "https://{region}.x.example/{v}", "variables": {"v": {"default": "3"}}}]}),
                "https://{region}.x.example/3",
            ),
            (json!({"servers": [{"url": "/{tenant}"}]}), "https://shop.example/{tenant}"),
            (json!({"swagger": "2.0", "host": "h.example", "basePath": "v1"}), "https://h.example/v1"),
            (json!({"swagger": "2.0", "host": "h.example", "schemes": ["http"]}), "http://h.example"),
            (json!({"swagger": "2.0", "basePath": "/api"}), "https://shop.example/api"),
            (json!({"servers": [{"url": "https:///api.shop.example"}]}), "https://api.shop.example"),
            (json!({"servers": [{"url": "https://h.example:{port}/v1"}]}), "https://h.example:{port}/v1"),
            (
                json!({"servers": [{"url": "https://{h}:{p}/{v}", "variables": {
                    "h": {"default": "eu.h.example"}, "p": {"default": "8443"}, "v": {"default": "a/b"}}}]}),
                "https://eu.h.example:8443/a/b",
            ),
        ] {
            assert_eq!(base_of(&document).as_deref(), Some(expected), "{document}");
        }
    }

    #[test]
    fn a_default_cannot_end_the_authority() {
        for default in
            ["@other.example", "other.example/x#", "other.example?", "other.example\\", "other.example%2f"]
        {
            let document = json!({"servers": [{"url": "https://{h}.bank.example/v1", "variables": {"h": {"default": default}}}]});
            assert_eq!(base_of(&document).as_deref(), Some("https://{h}.bank.example/v1"), "{default}");
        }
    }

    #[test]
    fn an_invalid_or_too_long_base_is_not_replaced_by_the_origin() {
        let long = "a".repeat(BASE_BYTES_MAX);
        for document in [
            json!({"servers": [{"url": format!("https://api.shop.example/{long}")}]}),
            json!({"servers": [{"url": "https://{long}.example", "variables": {"long": {"default": long}}}]}),
            json!({"servers": [{"url": "ftp://files.shop.example"}]}),
            json!({"servers": [{"url": "https://"}]}),
            json!({"swagger": "2.0", "host": "h.example", "basePath": format!("/{long}")}),
        ] {
            assert_eq!(base_of(&document), None);
        }
    }
}

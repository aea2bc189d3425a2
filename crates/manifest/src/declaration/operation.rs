//! The key of the operation that a declaration calls. Equal operations of a site have equal keys.

use data_encoding::HEXLOWER;
use ring::digest;

use crate::model::{Capability, Invocation, Protocol};
use crate::name::parse_url;

/// Bytes of the hash that are kept: collisions of 128 bits within one site are not a concern.
const KEY_BYTES: usize = 16;

/// The key of the operation; `None` if the declaration has no address, or plain HTTP without a method.
///
/// - HTTP: method and endpoint, and the envelope if one endpoint serves several operations.
/// - A2A: URL and id of the skill.
/// - MCP and every other protocol: endpoint and name of the tool or operation.
///
/// Names of path variables, the fragment, and query parameters that are variables are not part of an endpoint.
pub fn operation(capability: &Capability) -> Option<String> {
    let invocation = &capability.invocation;
    let endpoint = normalized(invocation.endpoint()?);
    let protocol = invocation.protocol.unwrap_or(Protocol::Http);
    let name = match protocol {
        Protocol::Http => invocation.method.clone()?,
        Protocol::A2a => invocation.method.clone().unwrap_or_else(|| capability.native_id.clone()),
        _ => tool_name(invocation).unwrap_or(&capability.native_id).to_owned(),
    };
    let envelope = invocation.envelope.as_ref().map(ToString::to_string).unwrap_or_default();
    let mut context = digest::Context::new(&digest::SHA256);
    for part in [protocol.as_str(), &endpoint, &name, &envelope] {
        context.update(part.as_bytes());
        context.update(&[0]);
    }
    let hash = context.finish();
    let hash = hash.as_ref();
    Some(HEXLOWER.encode(hash.get(..KEY_BYTES).unwrap_or(hash)))
}

fn tool_name(invocation: &Invocation) -> Option<&str> {
    invocation.native.as_deref().map(str::trim).filter(|name| !name.is_empty())
}

/// The endpoint in a form that is equal for all its spellings.
fn normalized(endpoint: &str) -> String {
    let unnamed = without_names(endpoint.trim());
    let Ok(mut url) = parse_url(&unnamed) else { return unnamed };
    url.set_fragment(None);
    // The parser encodes the braces of a variable.
    let is_variable = |pair: &&str| pair.contains("{}") || pair.contains("%7B%7D");
    let mut pairs: Vec<String> = url
        .query()
        .into_iter()
        .flat_map(|query| query.split('&'))
        .filter(|pair| !pair.is_empty() && !is_variable(pair))
        .map(str::to_owned)
        .collect();
    pairs.sort_unstable();
    url.set_query((!pairs.is_empty()).then(|| pairs.join("&")).as_deref());
    url.into()
}

/// Replaces every `{name}` by `{}`.
fn without_names(template: &str) -> String {
    let mut parts = template.split('{');
    let mut unnamed = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        unnamed.push('{');
        unnamed.push_str(part.find('}').and_then(|end| part.get(end..)).unwrap_or(part));
    }
    unnamed
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::model::{CapabilityKind, Format};
    use crate::name::ManifestUrl;

    fn capability(native_id: &str, invocation: Invocation) -> Capability {
        let url = ManifestUrl::parse("https://shop.example/agent.json").unwrap();
        let kind = CapabilityKind::Action;
        let capability = Capability::new(&url, Format::Awp, native_id, native_id, kind, String::new());
        Capability { invocation, ..capability }
    }

    fn http(method: &str, endpoint: &str) -> Invocation {
        Invocation {
            protocol: Some(Protocol::Http),
            method: Some(method.to_owned()),
            url_template: Some(endpoint.to_owned()),
            ..Invocation::default()
        }
    }

    fn key(method: &str, endpoint: &str) -> Option<String> {
        operation(&capability("book", http(method, endpoint)))
    }

    #[test]
    fn an_http_operation_is_its_method_and_endpoint() {
        let book = key("POST", "https://shop.example/book");
        assert!(book.is_some());
        assert_eq!(book, operation(&capability("reserve", http("POST", "https://shop.example/book"))));
        assert_eq!(book, key("POST", "HTTPS://Shop.example:443/book#top"));
        for other in
            ["https://shop.example/book/", "http://shop.example/book", "https://api.shop.example/book"]
        {
            assert_ne!(book, key("POST", other), "{other}");
        }
        assert_ne!(book, key("GET", "https://shop.example/book"));
    }

    #[test]
    fn operations_ignore_variable_names_and_variable_query_parameters() {
        let order = key("GET", "https://shop.example/orders/{id}");
        assert_eq!(order, key("GET", "https://shop.example/orders/{order_id}"));
        assert_eq!(order, key("GET", "https://shop.example/orders/{id}?page={page}"));
        assert_ne!(order, key("GET", "https://shop.example/orders/{id}?view=full"));
        let view = key("GET", "https://shop.example/orders/{id}?view=full&all=1");
        assert_eq!(view, key("GET", "https://shop.example/orders/{no}?all=1&view=full&page={page}"));
        assert_ne!(order, key("GET", "https://shop.example/orders/7"));
    }

    #[test]
    fn other_protocols_add_the_name_of_the_tool_or_the_skill() {
        let call = |protocol, native: &str, native_id: &str| {
            let url = Some("https://shop.example/rpc".to_owned());
            let native = Some(native.to_owned());
            let invocation = Invocation { protocol: Some(protocol), url, native, ..Invocation::default() };
            operation(&capability(native_id, invocation))
        };
        assert_eq!(call(Protocol::Mcp, "find", "1"), call(Protocol::Mcp, " find ", "2"));
        assert_ne!(call(Protocol::Mcp, "find", "1"), call(Protocol::Mcp, "book", "1"));
        assert_eq!(call(Protocol::A2a, "SendMessage", "find"), call(Protocol::A2a, "message/send", "find"));
        assert_ne!(call(Protocol::A2a, "SendMessage", "find"), call(Protocol::A2a, "SendMessage", "book"));
        assert_ne!(call(Protocol::Mcp, "find", "find"), call(Protocol::A2a, "find", "find"));
    }

    #[test]
    fn an_envelope_selects_the_operation_behind_an_endpoint() {
        let enveloped = |operation: &str| Invocation {
            envelope: Some(json!({"agent": "shop", "operation": operation})),
            ..http("POST", "https://shop.example/invoke")
        };
        let find = operation(&capability("find", enveloped("find")));
        assert_eq!(find, operation(&capability("search", enveloped("find"))));
        assert_ne!(find, operation(&capability("find", enveloped("book"))));
    }

    #[test]
    fn a_declaration_without_method_or_address_has_no_operation() {
        assert_eq!(operation(&capability("book", Invocation::default())), None);
        let without_method = Invocation { method: None, ..http("GET", "https://shop.example/book") };
        assert_eq!(operation(&capability("book", without_method)), None);
    }
}

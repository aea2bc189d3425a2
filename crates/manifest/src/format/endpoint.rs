//! Sets the address or address template and the HTTP method of a capability.

use crate::address::{self, Address};
use crate::draft::Draft;
use crate::model::{Capability, Protocol};
use crate::object::Object;

/// Sets the address and the method of a call over HTTP.
pub(crate) fn set_call(capability: &mut Capability, method: &str, address: Address) {
    set(capability, address);
    capability.invocation.method = Some(method.to_owned());
}

/// Reads an address with an optional method prefix (`GET /x`); `method` takes precedence.
pub(crate) fn read(
    published: &str,
    method: Option<&str>,
    pointer: &str,
    capability: &mut Capability,
    draft: &mut Draft<'_>,
) {
    let (prefixed, published) = address::split_method(published);
    let method = method.map(str::to_ascii_uppercase).or_else(|| prefixed.map(str::to_owned));
    let Some(address) = draft.on_origin(published, pointer) else { return };
    match method.filter(|method| address::is_method(method)) {
        Some(method) => set_call(capability, &method, address),
        None => set(capability, address),
    }
}

/// Reads `method` and `endpoint`, which is resolved against the served origin.
pub(crate) fn read_call(published: &Object<'_>, capability: &mut Capability, draft: &mut Draft<'_>) {
    if let Some(method) = published.text("method") {
        capability.invocation.method = Some(method.to_ascii_uppercase());
        capability.invocation.protocol = Some(Protocol::Http);
    }
    let endpoint = published.text("endpoint");
    if let Some(address) = endpoint.and_then(|text| draft.on_origin(text, &published.at("endpoint"))) {
        set(capability, address);
    }
}

/// Sets the address as URL or template.
pub(crate) fn set(capability: &mut Capability, address: Address) {
    let is_socket = address.as_str().starts_with("ws");
    capability.invocation.protocol = Some(if is_socket { Protocol::WebSocket } else { Protocol::Http });
    match address {
        Address::Fixed(url) => match open_query(&url) {
            Some(template) => capability.invocation.url_template = Some(template),
            None => capability.invocation.url = Some(url),
        },
        Address::Template(template) => capability.invocation.url_template = Some(template),
    }
}

/// Maximum number of parameters of one query that become variables; published queries have up to 12.
const OPEN_PARAMETERS_MAX: usize = 32;

/// The template of an address whose query has parameters without a value or with a placeholder: `?city=&name=YourName` is
/// `?city={city}&name={name}`. `None` if each parameter has a value.
pub(crate) fn open_query(url: &str) -> Option<String> {
    let (path, query) = url.split_once('?')?;
    let is_name = |name: &str| {
        !name.is_empty()
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
    };
    let name_of = |pair: &str| {
        let (name, value) = pair.split_once('=')?;
        (is_name(name) && (value.is_empty() || is_placeholder(value))).then(|| name.to_owned())
    };
    let open = query.split('&').filter(|pair| name_of(pair).is_some()).count();
    if open == 0 || open > OPEN_PARAMETERS_MAX || query.contains('#') {
        return None;
    }
    let pairs = query.split('&').map(|pair| match name_of(pair) {
        Some(name) => format!("{name}={{{name}}}"),
        None => pair.to_owned(),
    });
    Some([path, "?", &pairs.collect::<Vec<_>>().join("&")].concat())
}

/// Whether a value is a placeholder for a value of the caller: `YourName`, `your-key`, an address on an example host (RFC 2606).
fn is_placeholder(value: &str) -> bool {
    let after = value
        .strip_prefix("Your")
        .or_else(|| value.strip_prefix("your"))
        .or_else(|| value.strip_prefix("YOUR"));
    let is_yours =
        after.is_some_and(|rest| rest.starts_with(|l: char| l.is_ascii_uppercase() || "-_".contains(l)));
    let host = value.split_once("://").map(|(_, rest)| rest.split('/').next().unwrap_or_default());
    let is_example = host.is_some_and(|host| {
        ["example.com", "example.org", "example.net"].iter().any(|known| {
            host.strip_suffix(known).is_some_and(|before| before.is_empty() || before.ends_with('.'))
        })
    });
    let is_letter = value.len() == 1 && value.bytes().all(|byte| byte.is_ascii_uppercase());
    // `json|csv` lists the values.
    is_word_for_value(value)
        || is_yours
        || is_example
        || is_letter
        || value.ends_with("...")
        || (value.contains('|') && !value.contains('{'))
}

/// Whether a value is a word in capitals for what the caller supplies: `?q=QUERY`, `?agent=AGENT_ID`. Codes such as `USD` are values.
fn is_word_for_value(value: &str) -> bool {
    const WORDS: &[&str] = &[
        "ADDRESS", "CITY", "DATE", "DOMAIN", "EMAIL", "HASH", "ID", "KEY", "KEYWORD", "KEYWORDS", "NAME",
        "NUMBER", "QUERY", "SEARCH", "SLUG", "STRING", "TERM", "TEXT", "TOKEN", "URL", "UUID", "VALUE",
        "WALLET",
    ];
    let last = value.rsplit('_').next().unwrap_or_default();
    WORDS.contains(&last) && value.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn query_parameters_without_a_value_become_variables() {
        for (url, expected) in [
            ("https://x.example/a?city=&limit=", Some("https://x.example/a?city={city}&limit={limit}")),
            ("https://x.example/a?v=2&city=", Some("https://x.example/a?v=2&city={city}")),
            ("https://x.example/a?name=YourName", Some("https://x.example/a?name={name}")),
            ("https://x.example/a?u=https://example.com/", Some("https://x.example/a?u={u}")),
            ("https://x.example/a?of=0x...&n=1", Some("https://x.example/a?of={of}&n=1")),
            ("https://x.example/a?q=QUERY&of=AGENT_ID", Some("https://x.example/a?q={q}&of={of}")),
            ("https://x.example/a?of=USD", None),
            ("https://x.example/a?as=json|csv", Some("https://x.example/a?as={as}")),
            ("https://x.example/a?name=Yours", None),
            ("https://x.example/a?v=2", None),
            ("https://x.example/a", None),
            ("https://x.example/a?token=abc==", None),
            ("https://x.example/a?=", None),
        ] {
            assert_eq!(open_query(url).as_deref(), expected, "{url}");
        }
    }
}

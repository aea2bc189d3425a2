//! A curl command that calls a capability, built only from its declaration.
//!
//! The command is for a person to read, change and run. Values are placeholders (`DATE`), secrets are shell variables, and
//! all publisher text is quoted so that a shell takes it literally.

use manifest::Capability;
use manifest::model::{AuthScheme, Protocol};
use serde_json::{Map, Value};

use super::schema;

/// Maximum length of a displayed command; a capability with hundreds of parameters is better read as JSON.
const COMMAND_BYTES_MAX: usize = 4_000;

/// The command, if the declaration is enough to call it over HTTP.
pub(crate) fn command(capability: &Capability) -> Option<String> {
    let invocation = Some(&capability.invocation).filter(|invocation| !invocation.not_public)?;
    let is_http = invocation.protocol.is_none_or(|protocol| protocol == Protocol::Http);
    let method = invocation.method.as_deref().filter(|_| is_http)?;
    let is_web = |url: &&str| url.starts_with("https://") || url.starts_with("http://");
    let endpoint = invocation.endpoint().filter(is_web)?;
    let unsaid = if matches!(method, "GET" | "HEAD") { "query" } else { "body" };
    let rows = capability.parameters.as_ref().map(schema::rows).unwrap_or_default();

    let mut lines =
        vec![format!("curl -X {} {}", quoted(method), quoted(&with_query(endpoint, &rows, unsaid)))];
    lines.extend(auth_line(&capability.auth.schemes));
    if let Some(body) = body(&rows, unsaid) {
        lines.push("-H 'Content-Type: application/json'".to_owned());
        lines.push(format!("-d {}", quoted(&body)));
    }
    let command = lines.join(" \\\n  ");
    (command.len() <= COMMAND_BYTES_MAX).then_some(command)
}

/// Where a parameter is sent; `unsaid` is the default: the query of a read, the body of a write.
fn place<'a>(row: &'a schema::Row, unsaid: &'a str) -> &'a str {
    row.place.as_deref().unwrap_or(unsaid)
}

fn with_query(endpoint: &str, rows: &[schema::Row], unsaid: &str) -> String {
    let in_query = rows.iter().filter(|row| row.required && place(row, unsaid) == "query");
    let pairs: Vec<String> = in_query.map(|row| format!("{}={}", row.name, open_value(&row.name))).collect();
    if pairs.is_empty() {
        return endpoint.to_owned();
    }
    let joint = if endpoint.contains('?') { '&' } else { '?' };
    format!("{endpoint}{joint}{}", pairs.join("&"))
}

fn body(rows: &[schema::Row], unsaid: &str) -> Option<String> {
    let in_body: Vec<&schema::Row> = rows.iter().filter(|row| place(row, unsaid) == "body").collect();
    let any_required = in_body.iter().any(|row| row.required);
    let members: Map<String, Value> = in_body
        .into_iter()
        .filter(|row| row.required || !any_required)
        .map(|row| (row.name.clone(), Value::from(open_value(&row.name))))
        .collect();
    (!members.is_empty()).then(|| Value::Object(members).to_string())
}

/// `departure_date` becomes `DEPARTURE_DATE`: visibly a placeholder.
fn open_value(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' }).collect()
}

fn auth_line(schemes: &[AuthScheme]) -> Option<String> {
    let first = schemes.first()?;
    match first {
        AuthScheme::Bearer | AuthScheme::OAuth2 | AuthScheme::OpenId | AuthScheme::Delegated => {
            Some("-H \"Authorization: Bearer $TOKEN\"".to_owned())
        }
        AuthScheme::ApiKey => Some("-H \"X-API-Key: $API_KEY\"".to_owned()),
        _ => None,
    }
}

/// Single quotes, inside which a POSIX shell interprets nothing.
fn quoted(text: &str) -> String {
    let plain = !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "-._/:".contains(c));
    if plain { text.to_owned() } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use manifest::{CapabilityKind, Format, ManifestUrl};
    use serde_json::json;

    fn capability(method: &str, url: &str, parameters: Value) -> Capability {
        let manifest = ManifestUrl::parse("https://skyhop.example/agent.json").unwrap();
        let mut capability =
            Capability::new(&manifest, Format::Awp, "book", "Book", CapabilityKind::Action, String::new());
        capability.invocation.method = Some(method.to_owned());
        capability.invocation.url = Some(url.to_owned());
        capability.parameters = Some(parameters);
        capability
    }

    #[test]
    fn writes_carry_a_body_and_a_token() {
        let mut book = capability(
            "POST",
            "https://skyhop.example/api/bookings",
            json!({"required": ["date"], "properties": {"date": {"type": "string"}, "meal": {}}}),
        );
        book.auth.schemes = vec![AuthScheme::OAuth2];
        assert_eq!(
            command(&book).unwrap(),
            "curl -X POST https://skyhop.example/api/bookings \\\n  -H \"Authorization: Bearer $TOKEN\" \\\n  \
             -H 'Content-Type: application/json' \\\n  -d '{\"date\":\"DATE\"}'"
        );
    }

    #[test]
    fn reads_carry_a_query_and_nothing_escapes_the_quotes() {
        let search = capability(
            "GET",
            "https://x.example/a'; rm -rf /",
            json!({"required": ["q"], "properties": {"q": {}, "page": {}}}),
        );
        assert_eq!(command(&search).unwrap(), r"curl -X GET 'https://x.example/a'\''; rm -rf /?q=Q'");
    }

    #[test]
    fn capabilities_without_http_have_no_curl_command() {
        let mut tool = capability("POST", "https://x.example/mcp", json!({}));
        tool.invocation.protocol = Some(Protocol::Mcp);
        assert_eq!(command(&tool), None);
        assert_eq!(command(&capability("GET", "javascript:alert(1)", json!({}))), None);
        tool.invocation.method = None;
        assert_eq!(command(&tool), None);
    }
}

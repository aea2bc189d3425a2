//! A call in the languages of the tabs. Publisher text is always inside a literal of the language.

use percent_encoding::{AsciiSet, CONTROLS, percent_encode_byte, utf8_percent_encode};
use serde_json::{Value, json};

use super::call::{Call, HttpCall, url_before_key};
use super::credentials::{API_KEY, Secret, TOKEN};

/// Maximum length of a body on one line of a command, in characters.
const LINE_CHARS_MAX: usize = 60;
/// Characters that one of POSIX shells, cmd.exe and PowerShell interprets between double quotes, or that end a quoted text in one of them.
const INTERPRETED: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'!')
    .add(b'"')
    .add(b'$')
    .add(b'\'')
    .add(b'<')
    .add(b'>')
    .add(b'\\')
    .add(b'^')
    .add(b'`')
    .add(b'|');
const ACCEPT_MCP: &str = "application/json, text/event-stream";

pub(super) fn curl(call: &Call) -> String {
    match call {
        Call::Http(http) => curl_http(http),
        Call::Mcp { url, tool, arguments, secret } => {
            let body = json!({
                "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments},
            });
            let http = HttpCall {
                method: "POST".to_owned(),
                url: url.clone(),
                headers: vec![("Accept".to_owned(), ACCEPT_MCP.to_owned())],
                cookies: Vec::new(),
                body: Some(body),
                secret: secret.clone(),
            };
            format!(
                "# Most MCP servers expect an \"initialize\" request first; an MCP client sends it.\n{}",
                curl_http(&http)
            )
        }
    }
}

fn curl_http(call: &HttpCall) -> String {
    let url = match &call.secret {
        Some(Secret::Query(name)) => {
            format!("{}\"${API_KEY}\"", address(&url_before_key(&call.url, name)))
        }
        _ => address(&call.url),
    };
    // curl would send one request for each of `[1-9999]` and of `{a,b}`
    let globoff = if call.url.contains(['[', ']', '{', '}']) { " --globoff" } else { "" };
    let is_plain = call.method == "GET" && call.body.is_none();
    let method = if is_plain { String::new() } else { format!(" -X {}", shell(&call.method)) };
    let mut lines = vec![format!("curl{globoff}{method} {url}")];
    lines.extend(
        call.headers.iter().map(|(name, value)| format!("-H {}", shell(&format!("{name}: {value}")))),
    );
    lines.extend(match &call.secret {
        Some(Secret::Bearer) => Some(format!("-H \"Authorization: Bearer ${TOKEN}\"")),
        Some(Secret::Header(name)) => Some(format!("-H {}\"${API_KEY}\"", shell(&format!("{name}: ")))),
        Some(Secret::Cookie(_) | Secret::Query(_)) | None => None,
    });
    let cookies = stated_cookies(call);
    lines.extend(match secret_cookie(call) {
        Some(start) => Some(format!("-b {}\"${API_KEY}\"", shell(&start))),
        None => (!cookies.is_empty()).then(|| format!("-b {}", shell(&cookies))),
    });
    if let Some(body) = &call.body {
        lines.push("-H 'Content-Type: application/json'".to_owned());
        let line = body.to_string();
        let is_long = line.chars().count() > LINE_CHARS_MAX;
        lines.push(format!("-d {}", shell(&if is_long { pretty(body, 0) } else { line })));
    }
    lines.join(" \\\n  ")
}

/// A URL as one word of POSIX shells, cmd.exe and PowerShell. A server reads the escaped characters like the characters themselves.
fn address(url: &str) -> String {
    if is_plain(url) {
        return url.to_owned();
    }
    format!("\"{}\"", without_variables(&utf8_percent_encode(url, INTERPRETED).to_string()))
}

/// A URL in which no `%` begins the name of a variable, because cmd.exe replaces `%NAME%` by its value even between quotes. A `%` that is
/// followed by a digit does not, since names of variables begin with letters. A `%` that escapes nothing is escaped itself. After an escape
/// such as `%AD`, a letter or digit is escaped too, which means the same (RFC 3986, section 6.2.2.2), so that the name ends after two
/// characters.
fn without_variables(url: &str) -> String {
    let (mut safe, mut rest) = (String::with_capacity(url.len()), url);
    while let Some((before, after)) = rest.split_once('%') {
        safe.push_str(before);
        let is_escape = |digits: &&str| digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        let Some(digits) = after.get(..2).filter(is_escape) else {
            safe.push_str("%25");
            rest = after;
            continue;
        };
        safe.push('%');
        safe.push_str(digits);
        rest = after.get(2..).unwrap_or_default();
        let begins_name = digits.starts_with(|digit: char| digit.is_ascii_alphabetic());
        let is_unreserved = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~".contains(byte);
        if let Some(next) = rest.bytes().next().filter(is_unreserved)
            && begins_name
            && rest.contains('%')
        {
            safe.push_str(percent_encode_byte(next));
            rest = rest.get(1..).unwrap_or_default();
        }
    }
    safe + rest
}

fn is_plain(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "-._/:".contains(c))
}

/// Single quotes, inside which a POSIX shell interprets nothing.
fn shell(text: &str) -> String {
    if is_plain(text) { text.to_owned() } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

pub(super) fn python(call: &Call) -> String {
    match call {
        Call::Http(http) => python_http(http),
        Call::Mcp { url, tool, arguments, secret } => {
            let imports = if secret.is_some() { "import asyncio\nimport os\n" } else { "import asyncio\n" };
            let address = python_address(url, secret.as_ref());
            let headers = secret.as_ref().and_then(python_header);
            let headers = headers.map(|header| format!(", headers={{{header}}}")).unwrap_or_default();
            format!(
                "# pip install mcp\n{imports}\nfrom mcp import ClientSession\nfrom mcp.client.streamable_http import streamablehttp_client\n\n\n\
                 async def main():\n    \
                 async with streamablehttp_client({address}{headers}) as (read, write, _):\n        \
                 async with ClientSession(read, write) as session:\n            \
                 await session.initialize()\n            \
                 print(await session.call_tool({}, {}))\n\n\nasyncio.run(main())",
                quoted(tool),
                python_value(arguments, 12),
            )
        }
    }
}

/// The address of an MCP server, with a secret that is in its query.
fn python_address(url: &str, secret: Option<&Secret>) -> String {
    match secret {
        Some(Secret::Query(name)) => {
            format!("{} + os.environ[\"{API_KEY}\"]", quoted(&url_before_key(url, name)))
        }
        _ => quoted(url),
    }
}

/// The header that contains a secret, as a member of a dictionary.
fn python_header(secret: &Secret) -> Option<String> {
    let key = format!("os.environ[\"{API_KEY}\"]");
    match secret {
        Secret::Bearer => Some(format!("\"Authorization\": \"Bearer \" + os.environ[\"{TOKEN}\"]")),
        Secret::Header(name) => Some(format!("{}: {key}", quoted(name))),
        Secret::Cookie(name) => Some(format!("\"Cookie\": {} + {key}", quoted(&format!("{name}=")))),
        Secret::Query(_) => None,
    }
}

fn python_http(call: &HttpCall) -> String {
    let mut arguments = vec![quoted(&call.method), quoted(&call.url)];
    let key = format!("os.environ[\"{API_KEY}\"]");
    let mut headers = stated_headers(call);
    match &call.secret {
        Some(Secret::Query(name)) => {
            arguments.push(format!("params={{{}: {key}}}", quoted(name)));
        }
        Some(Secret::Cookie(_)) | None => {}
        Some(secret) => headers.extend(python_header(secret)),
    }
    let mut cookies: Vec<String> = call.cookies.iter().map(member).collect();
    if let Some(Secret::Cookie(name)) = &call.secret {
        cookies.push(format!("{}: {key}", quoted(name)));
    }
    if !cookies.is_empty() {
        arguments.push(format!("cookies={{{}}}", cookies.join(", ")));
    }
    if !headers.is_empty() {
        arguments.push(format!("headers={{{}}}", headers.join(", ")));
    }
    arguments.extend(call.body.as_ref().map(|body| format!("json={}", python_value(body, 4))));
    arguments.push("timeout=30".to_owned());
    let imports = if call.secret.is_some() { "import os\n\nimport requests" } else { "import requests" };
    format!(
        "# pip install requests\n{imports}\n\nresponse = requests.request(\n    {},\n)\nresponse.raise_for_status()\nprint(response.json())",
        arguments.join(",\n    ")
    )
}

/// A value as a literal of Python, its lines indented by `indent`.
fn python_value(value: &Value, indent: usize) -> String {
    let inner = " ".repeat(indent + 4);
    let outer = " ".repeat(indent);
    match value {
        Value::Null => "None".to_owned(),
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        Value::Array(items) if !items.is_empty() => {
            let items: Vec<String> = items.iter().map(|item| python_value(item, indent)).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Object(members) if !members.is_empty() => {
            let member = |(name, value): (&String, &Value)| {
                format!("{inner}{}: {},\n", quoted(name), python_value(value, indent + 4))
            };
            format!("{{\n{}{outer}}}", members.iter().map(member).collect::<String>())
        }
        other => other.to_string(),
    }
}

pub(super) fn typescript(call: &Call) -> String {
    match call {
        Call::Http(http) => typescript_http(http),
        Call::Mcp { url, tool, arguments, secret } => {
            let address = typescript_address(url, secret.as_ref());
            let header = secret.as_ref().and_then(typescript_header);
            let options =
                header.map(|header| format!(", {{\n  requestInit: {{ headers: {{ {header} }} }},\n}}"));
            let options = options.unwrap_or_default();
            format!(
                "// npm install @modelcontextprotocol/sdk\n\
                 import {{ Client }} from \"@modelcontextprotocol/sdk/client/index.js\";\n\
                 import {{ StreamableHTTPClientTransport }} from \"@modelcontextprotocol/sdk/client/streamableHttp.js\";\n\n\
                 const client = new Client({{ name: \"my-agent\", version: \"1.0.0\" }});\n\
                 await client.connect(new StreamableHTTPClientTransport(new URL({address}){options}));\n\
                 console.log(await client.callTool({{ name: {}, arguments: {} }}));",
                quoted(tool),
                pretty(arguments, 0),
            )
        }
    }
}

/// A URL, with a secret that is in its query.
fn typescript_address(url: &str, secret: Option<&Secret>) -> String {
    match secret {
        Some(Secret::Query(name)) => {
            format!("{} + process.env.{API_KEY}!", quoted(&url_before_key(url, name)))
        }
        _ => quoted(url),
    }
}

/// The header that contains a secret, as a member of an object.
fn typescript_header(secret: &Secret) -> Option<String> {
    let key = format!("process.env.{API_KEY}!");
    match secret {
        Secret::Bearer => Some(format!("Authorization: `Bearer ${{process.env.{TOKEN}}}`")),
        Secret::Header(name) => Some(format!("{}: {key}", quoted(name))),
        Secret::Cookie(name) => Some(format!("Cookie: {} + {key}", quoted(&format!("{name}=")))),
        Secret::Query(_) => None,
    }
}

fn typescript_http(call: &HttpCall) -> String {
    let mut lines = vec![format!("method: {}", quoted(&call.method))];
    let mut headers = stated_headers(call);
    let key = format!("process.env.{API_KEY}!");
    let url = typescript_address(&call.url, call.secret.as_ref());
    // a cookie is joined with the other cookies below
    let header = call.secret.as_ref().filter(|secret| !matches!(secret, Secret::Cookie(_)));
    headers.extend(header.and_then(typescript_header));
    let cookies = stated_cookies(call);
    match secret_cookie(call) {
        Some(start) => headers.push(format!("Cookie: {} + {key}", quoted(&start))),
        None if !cookies.is_empty() => headers.push(format!("Cookie: {}", quoted(&cookies))),
        None => {}
    }
    if call.body.is_some() {
        headers.push("\"Content-Type\": \"application/json\"".to_owned());
    }
    if !headers.is_empty() {
        lines.push(format!("headers: {{ {} }}", headers.join(", ")));
    }
    lines.extend(call.body.as_ref().map(|body| format!("body: JSON.stringify({})", pretty(body, 2))));
    format!(
        "const response = await fetch({url}, {{\n  {},\n}});\nif (!response.ok) throw new Error(`HTTP ${{response.status}}`);\nconsole.log(await response.json());",
        lines.join(",\n  ")
    )
}

/// The headers of a call except the credential, as members of an object.
fn stated_headers(call: &HttpCall) -> Vec<String> {
    call.headers.iter().map(member).collect()
}

fn member((name, value): &(String, String)) -> String {
    format!("{}: {}", quoted(name), quoted(value))
}

/// The cookies of a call except the credential, in the format of the header Cookie.
fn stated_cookies(call: &HttpCall) -> String {
    let cookies: Vec<String> = call.cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
    cookies.join("; ")
}

/// All cookies up to the value of the credential, if that is a cookie.
fn secret_cookie(call: &HttpCall) -> Option<String> {
    let Some(Secret::Cookie(name)) = &call.secret else { return None };
    let stated = stated_cookies(call);
    let joint = if stated.is_empty() { "" } else { "; " };
    Some(format!("{stated}{joint}{name}="))
}

/// A JSON literal, which is also valid in Python and TypeScript.
fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

/// JSON over several lines, its further lines indented by `indent`.
fn pretty(value: &Value, indent: usize) -> String {
    let text = serde_json::to_string_pretty(value).unwrap_or_default();
    text.replace('\n', &format!("\n{}", " ".repeat(indent)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_percent_sign_begins_the_name_of_a_variable_of_cmd() {
        for (url, safe) in [
            ("https://a.example/?x=%OPENAI_API_KEY%", "https://a.example/?x=%25OPENAI_API_KEY%25"),
            ("https://a.example/?x=%ADMIN_PASSWORD%41", "https://a.example/?x=%AD%4DIN_PASSWORD%41"),
            ("https://a.example/%C3%A9cole%20b", "https://a.example/%C3%A9%63ole%20b"),
            ("https://a.example/%C3%A9cole", "https://a.example/%C3%A9cole"),
            (
                "https://a.example/?x=a%2Fb&y=%7B%22name%22%7D%",
                "https://a.example/?x=a%2Fb&y=%7B%22name%22%7D%25",
            ),
            ("https://a.example/%E", "https://a.example/%25E"),
        ] {
            assert_eq!(address(url), format!("\"{safe}\""));
        }
    }
}

//! Requirements of the MCP server card, its draft and the registry.

use super::{registry, schema, tools};
use crate::check::is_url;
use crate::draft::Draft;
use crate::model::{Format, Protocol};
use crate::object::Object;
use crate::rule::{Kind, findings, may, must};

findings! {
    shape CARD("mcp.card", "SEP-2127 ServerCard") {
        must("$schema", Kind::Text, "Name the v1 schema of the server card."),
        must("name", Kind::Form(is_namespaced, "a reverse-DNS namespace, one slash and a name"), "Publish a name such as com.example/weather."),
        must("version", Kind::Form(is_exact_version, "one exact version"), "State the server's exact version."),
        must("description", Kind::Form(is_short, "1 to 100 characters"), "Describe the server in at most 100 characters."),
        may("title", Kind::Form(is_short, "1 to 100 characters"), "Keep the title within 100 characters."),
        may("websiteUrl", Kind::Url, "Publish an absolute URL."),
        may("remotes", Kind::List, "List remotes as objects with `type` and `url`."),
        may("repository", Kind::Object, "Publish `repository` as an object with `url` and `source`."),
        may("icons", Kind::List, "List icons as objects with `src`."),
        may("_meta", Kind::Object, "Publish extensions as an object."),
    }
    shape CARD_ICON("mcp.card_icon", "SEP-2127 Icon") {
        must("src", Kind::Form(is_card_icon, "an http, https or data URI"), "Publish the URL of the icon."),
        may("mimeType", Kind::Text, "State the media type in a string."),
        may("sizes", Kind::Texts, "List sizes such as 48x48, or any."),
        may("theme", Kind::OneOf(&["light", "dark"]), "State light or dark."),
    }
    shape REMOTE_INPUTS("mcp.remote_inputs", "SEP-2127 Remote, MCP registry server.json 2025-12-11 RemoteTransport") {
        may("headers", Kind::List, "List headers as objects with `name`."),
        may("variables", Kind::Object, "Publish variables as a map from name to input."),
    }
    shape REMOTE("mcp.remote", "SEP-2127 Remote") {
        must("type", Kind::OneOf(&["streamable-http", "sse"]), "State streamable-http or sse."),
        must("url", Kind::Text, "Publish the URL of the endpoint, or a template of it."),
        may("supportedProtocolVersions", Kind::Texts, "List protocol versions as strings."),
    }
    shape DRAFT_CARD("mcp.draft_card", "SEP-1649") {
        may("tools", Kind::List, "List tools as objects."),
    }
    shape SERVER_INFO("mcp.server_info", "MCP 2025-11-25 Implementation") {
        must("name", Kind::Text, "Name the server."),
        must("version", Kind::Text, "State the server's version."),
    }
    shape REGISTRY("mcp.registry", "MCP registry server.json 2025-12-11") {
        must("$schema", Kind::Form(schema::is_dated, "the dated URI of the registry's schema"), "Name the schema by its dated URI, https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json."),
        must("name", Kind::Form(is_namespaced, "a reverse-DNS namespace, one slash and a name"), "Publish a name such as io.github.owner/server."),
        must("description", Kind::Form(is_short, "1 to 100 characters"), "Describe the server in at most 100 characters."),
        must("version", Kind::Form(is_exact_version, "one exact version"), "State the server's exact version."),
        may("title", Kind::Form(is_short, "1 to 100 characters"), "Keep the title within 100 characters."),
        may("websiteUrl", Kind::Url, "Publish an absolute URL."),
        may("repository", Kind::Object, "Publish `repository` as an object with `url` and `source`."),
        may("icons", Kind::List, "List icons as objects with `src`."),
        may("remotes", Kind::List, "List remotes as objects with `type` and `url`."),
        may("packages", Kind::List, "List packages as objects with `registryType`, `identifier` and `transport`."),
        may("_meta", Kind::Object, "Publish extensions as an object."),
    }
    shape REPOSITORY("mcp.repository", "SEP-2127, MCP registry server.json 2025-12-11 Repository") {
        must("url", Kind::Url, "Publish the absolute URL of the repository."),
        must("source", Kind::Text, "Name the hosting service, such as github."),
        may("id", Kind::Text, "Publish the id that the hosting service gave."),
        may("subfolder", Kind::Text, "Publish a relative path."),
    }
    shape ICON("mcp.icon", "MCP registry server.json 2025-12-11 Icon") {
        must("src", Kind::Form(is_icon, "an https URL of at most 255 characters"), "Publish the https URL of the icon."),
        may("mimeType", Kind::OneOf(&["image/png", "image/jpeg", "image/jpg", "image/svg+xml", "image/webp"]), "State the type of an image that clients can show."),
        may("sizes", Kind::Texts, "List sizes such as 48x48, or any."),
        may("theme", Kind::OneOf(&["light", "dark"]), "State light or dark."),
    }
    shape PACKAGE("mcp.package", "MCP registry server.json 2025-12-11 Package") {
        must("registryType", Kind::Text, "Name the package registry, such as npm, pypi, oci, nuget or mcpb."),
        must("identifier", Kind::Text, "Name the package."),
        must("transport", Kind::Object, "Publish `transport` as an object with `type`."),
        may("registryBaseUrl", Kind::Url, "Publish an absolute URL."),
        may("version", Kind::Form(is_exact_package_version, "one exact version"), "State the package's exact version."),
        may("fileSha256", Kind::Form(is_sha256, "64 hexadecimal digits in lower case"), "Publish the SHA-256 digest of the file."),
        may("runtimeHint", Kind::Text, "Publish the name of the runtime in a string."),
        may("runtimeArguments", Kind::List, "List arguments as objects."),
        may("packageArguments", Kind::List, "List arguments as objects."),
        may("environmentVariables", Kind::List, "List variables as objects with `name`."),
    }
    shape TRANSPORT("mcp.transport", "MCP registry server.json 2025-12-11 LocalTransport") {
        must("type", Kind::OneOf(&["stdio", "streamable-http", "sse"]), "State stdio, streamable-http or sse."),
        may("url", Kind::Text, "Publish the URL, or a template of it."),
        may("headers", Kind::List, "List headers as objects with `name`."),
    }
    shape INPUT("mcp.input", "SEP-2127, MCP registry server.json 2025-12-11 Input") {
        may("description", Kind::Text, "Describe the input in a string."),
        may("isRequired", Kind::Bool, "Publish true or false."),
        may("isSecret", Kind::Bool, "Publish true or false."),
        may("format", Kind::OneOf(&["string", "number", "boolean", "filepath"]), "State string, number, boolean or filepath."),
        may("value", Kind::Text, "Publish the value as a string."),
        may("default", Kind::Text, "Publish the default as a string."),
        may("placeholder", Kind::Text, "Publish the placeholder as a string."),
        may("choices", Kind::Texts, "List the possible values as strings."),
        may("variables", Kind::Object, "Publish variables as a map from name to input."),
    }
    shape KEY_VALUE("mcp.key_value", "SEP-2127, MCP registry server.json 2025-12-11 KeyValueInput") {
        must("name", Kind::Text, "Name the header or the environment variable."),
    }
    shape ARGUMENT("mcp.argument", "MCP registry server.json 2025-12-11 Argument") {
        must("type", Kind::OneOf(&["positional", "named"]), "State positional or named."),
        may("isRepeated", Kind::Bool, "Publish true or false."),
    }
    rule NO_TRANSPORT_URL: Must("mcp.transport.url.missing", "MCP registry server.json 2025-12-11 StreamableHttpTransport, SseTransport")
        "a transport over HTTP has no `url`" => "Publish the URL of the endpoint, or a template of it.";
    rule REMOTE_URL: Must("mcp.remote.url.relative", "SEP-2127 Remote, MCP registry server.json 2025-12-11 StreamableHttpTransport, SseTransport")
        "the URL of a remote is not an http or https URL" => "Publish an absolute URL; variables may stand for parts of it.";
    rule ARGUMENT_NAME: Must("mcp.argument.name.missing", "MCP registry server.json 2025-12-11 NamedArgument")
        "a named argument has no `name`" => "Name the flag with its leading dashes.";
    rule ARGUMENT_VALUE: Must("mcp.argument.value.missing", "MCP registry server.json 2025-12-11 PositionalArgument")
        "a positional argument has neither `value` nor `valueHint`" => "Publish the value, or a hint to it.";
    rule ICON_SIZE: Should("mcp.icon.sizes.unknown", "SEP-2127, MCP registry server.json 2025-12-11 Icon")
        "a size of an icon is not of the form 48x48 or any" => "Write width, x and height, or any.";
    rule VERSION: Should("mcp.version.not_semantic", "SEP-2127, MCP registry server.json 2025-12-11")
        "the version is not a semantic version" => "Publish a version such as 1.0.2, so that versions can be sorted.";
    rule UNKNOWN_VARIABLE: Should("mcp.remote.url.unknown_variable", "SEP-2127 Remote, MCP registry server.json 2025-12-11 RemoteTransport")
        "the URL of a remote has a variable that `variables` does not define" => "Define the variable, or publish the URL without it.";
    rule DEFAULT: Should("mcp.input.default.not_a_choice", "SEP-2127, MCP registry server.json 2025-12-11 Input")
        "a default is not among the choices" => "Publish a default that callers may choose.";
    rule PUBLISHED_SECRET: Must("mcp.input.secret", "SEP-2127 discovery, Information Disclosure")
        "an input that is secret is published with its value" => "Leave the value out, and replace the secret: it is public now.";
    rule NO_HASH: Must("mcp.package.file_sha256.required", "MCP registry server.json 2025-12-11 Package")
        "an MCPB package has no `fileSha256`" => "Publish the SHA-256 digest of the file.";
    rule NO_RUNTIME: Should("mcp.package.runtime_hint.required", "MCP registry server.json 2025-12-11 Package")
        "a package has `runtimeArguments` without `runtimeHint`" => "Name the runtime that takes the arguments.";
    rule NOT_OBJECT: Must("mcp.registry.element.mistyped", "SEP-2127, MCP registry server.json 2025-12-11")
        "an element of a list is not an object" => "List objects only.";
    rule CARD_SCHEMA: Must("mcp.card.schema.other", "SEP-2127 ServerCard")
        "`$schema` is not the v1 URI of the server card"
            => "Publish https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json.";
    rule DRAFT_SHAPE: Should("mcp.card.draft_shape", "SEP-2127")
        "the card has the shape of SEP-1649, which SEP-2127 replaced"
            => "Publish `$schema`, a namespaced `name`, `version`, `description` and `remotes`.";
    rule NO_TRANSPORT: Must("mcp.draft_card.transport.missing", "SEP-1649")
        "the card names no transport endpoint"
            => "Publish `transport` with `type` and `endpoint`, or `remotes` as the final card has them.";
    rule NO_ENDPOINT: Note("mcp.endpoint.missing", "SEP-2127 Remote")
        "the file names no address at which the server can be reached"
            => "Name the endpoint in `remotes`; a server that runs locally belongs in the registry's `packages`.";
    rule COMMAND: Note("mcp.config.command", "MCP client configuration")
        "a server is started by a command on the client's machine; the command is recorded and never run"
            => "Offer a remote endpoint to agents that cannot run commands.";
    rule SECRET: Should("mcp.config.secret", "MCP client configuration")
        "a public file sets environment variables or headers for a server; a secret in a public file is no longer secret"
            => "Leave credentials out of published configurations.";
    rule FREEFORM: Note("mcp.freeform", "SEP-2127")
        "the file describes an MCP server in a nonstandard shape"
            => "Publish a server card, which clients and registries know how to read.";
}

const CARD_URI: &str = "https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json";

/// Checks a file against the specification of its format.
pub(super) fn check(root: &Object<'_>, draft: &mut Draft<'_>) {
    let schema = root.text("$schema").unwrap_or_default();
    match draft.format() {
        Format::McpRegistry => {
            let dated = schema.split('/').rev().nth(1);
            draft.dialect(dated, None);
            draft.assess("MCP registry server.json", |code| code.starts_with("mcp."));
            draft.check(root, &REGISTRY);
            registry::check(root, draft);
        }
        Format::McpCard if root.object("serverInfo").is_some() => check_draft_card(root, draft),
        Format::McpCard => {
            draft.dialect(Some("v1"), Some("sep-2127"));
            draft.assess("SEP-2127", |code| code.starts_with("mcp."));
            draft.check(root, &CARD);
            registry::check_parts(root, &CARD_ICON, draft);
            if !schema.is_empty() && schema != CARD_URI {
                draft.report_rule(&CARD_SCHEMA, root.at("$schema"));
            }
        }
        _ => draft.report_rule(&FREEFORM, String::new()),
    }
}

fn check_draft_card(root: &Object<'_>, draft: &mut Draft<'_>) {
    draft.dialect(None, Some("sep-1649"));
    draft.assess("SEP-1649", |code| code.starts_with("mcp.") && code != DRAFT_SHAPE.code);
    draft.assess("SEP-2127", |code| code.starts_with("mcp."));
    draft.report_rule(&DRAFT_SHAPE, String::new());
    draft.check(root, &DRAFT_CARD);
    draft.checked(root, "serverInfo", &SERVER_INFO);
}

/// Reports a file that contains no server address in any member.
pub(crate) fn check_reachable(root: &Object<'_>, draft: &mut Draft<'_>) {
    let rule = if root.has("serverInfo") { &NO_TRANSPORT } else { &NO_ENDPOINT };
    // Tools with their own addresses are called without a server.
    let has_server = draft.manifest.interfaces.iter().any(|interface| interface.protocol == Protocol::Mcp);
    let is_of_page = draft.manifest.links.iter().any(|link| link.rel == "webmcp");
    if !has_server && !is_of_page && !root.value("tools").is_some_and(tools::have_addresses) {
        draft.report_rule(rule, String::new());
    }
}

pub(super) fn check_configured(server: &Object<'_>, draft: &mut Draft<'_>) {
    if server.has("command") {
        draft.report_rule(&COMMAND, server.at("command"));
    }
    for key in ["env", "headers"] {
        if server.object(key).is_some_and(|set| set.map.values().any(looks_secret)) {
            draft.report_rule(&SECRET, server.at(key));
        }
    }
}

/// A long value that is not a placeholder.
fn looks_secret(value: &serde_json::Value) -> bool {
    let Some(text) = value.as_str() else { return false };
    let placeholder =
        ["your", "<", "${", "{{", "xxx", "..."].iter().any(|mark| text.to_ascii_lowercase().contains(mark));
    text.len() >= 20 && !placeholder && !text.contains(char::is_whitespace) && !text.contains("://")
}

fn is_namespaced(text: &str) -> bool {
    let part = |part: &str, extra: &[char]| {
        !part.is_empty()
            && part.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-') || extra.contains(&c))
    };
    text.split_once('/').is_some_and(|(namespace, name)| part(namespace, &[]) && part(name, &['_']))
        && (3..=200).contains(&text.len())
}

fn is_short(text: &str) -> bool {
    (1..=100).contains(&text.chars().count())
}

/// Rejects ranges such as `^1.2` or `1.x`.
fn is_exact_version(text: &str) -> bool {
    let range = text.starts_with(['^', '~', '>', '<', '='])
        || text.contains('*')
        || text.split('.').any(|part| part == "x");
    !range && (1..=255).contains(&text.len())
}

fn is_exact_package_version(text: &str) -> bool {
    is_exact_version(text) && text != "latest"
}

fn is_sha256(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
}

fn is_icon(text: &str) -> bool {
    text.len() <= 255 && text.starts_with("https://") && is_url(text)
}

fn is_card_icon(text: &str) -> bool {
    text.starts_with("data:image/") || is_url(text)
}

//! Requirements of WoA.

use crate::check::is_url;
use crate::rule::{Kind, findings, may, must, optional_must};

findings! {
    shape ROOT("woa", "draft-gaikwad-woa-00 §4") {
        must("woa_version", Kind::Text, "Declare the version as the string \"1\"."),
        must("agents", Kind::List, "List the agents of this host."),
        must("transports", Kind::Object, "Describe every transport as an object under its name."),
    }
    shape AGENT("woa.agent", "draft-gaikwad-woa-00 §4.1") {
        must("id", Kind::Form(is_token, "letters, digits, - and _"), "Use only letters, digits, - and _."),
        must("name", Kind::Text, "Give the agent a short name that a person can read."),
        must("description", Kind::Text, "Describe what the agent does."),
        may("version", Kind::Text, "Publish the version as a string."),
        may("capabilities", Kind::Texts, "List capability identifiers as strings."),
        must("inputs", Kind::Object, "Describe the request body as a JSON Schema."),
        must("outputs", Kind::Object, "Describe the successful response body as a JSON Schema."),
        must("transports", Kind::Texts, "Name the transports that can be used to invoke this agent."),
        may("operations", Kind::List, "List operations as objects."),
    }
    shape OPERATION("woa.operation", "draft-gaikwad-woa-00 §4.1") {
        must("name", Kind::Text, "Name the operation."),
        must("description", Kind::Text, "Describe what the operation does."),
        optional_must("inputs", Kind::Object, "Describe the operation's own input as a JSON Schema."),
        optional_must("outputs", Kind::Object, "Describe the operation's own output as a JSON Schema."),
    }
    shape REST("woa.rest", "draft-gaikwad-woa-00 §4.3.1") {
        must("base", Kind::Form(is_base, "an absolute URL without a user name and a password"), "Publish the absolute https URL of the API."),
        must("invoke_path", Kind::Form(is_path, "a path that begins with / and has no fragment"), "Publish a path that begins with \"/\"; it is appended to `base` unchanged."),
    }
    shape MCP("woa.mcp", "draft-gaikwad-woa-00 §4.3.2") {
        must("server", Kind::Text, "Name the MCP server or give its URL."),
        must("tool_namespace", Kind::Text, "Name the namespace of the tools on the server."),
        must("tool_field", Kind::Text, "Name the member of the envelope that holds the tool's name."),
    }
    rule MAJOR: Must("woa.woa_version.unknown", "draft-gaikwad-woa-00 §4")
        "the version is not one that agentdex knows; the document was read as version 1"
            => "Declare `woa_version` as the string \"1\".";
    rule NO_AGENTS: May("woa.agents.empty", "draft-gaikwad-woa-00 §4")
        "the list of agents is empty" => "List an agent, or take the document down.";
    rule NO_TRANSPORTS: Should("woa.transports.empty", "draft-gaikwad-woa-00 §4.3")
        "no transport is described, so no agent can be invoked" => "Describe a transport, such as `rest`.";
    rule AGENT_UNREACHABLE: Should("woa.agent.transports.empty", "draft-gaikwad-woa-00 §4.1")
        "an agent names no transport, so it cannot be invoked" => "Name a transport of the document.";
    rule AGENT_MISTYPED: Must("woa.agent.mistyped", "draft-gaikwad-woa-00 §4.1")
        "an element of `agents` is not an object" => "Publish every agent as an object.";
    rule ID_DUPLICATE: Must("woa.agent.id.duplicate", "draft-gaikwad-woa-00 §4.1")
        "two agents have the same id" => "Give every agent a unique id.";
    rule OPERATION_MISTYPED: Must("woa.operation.mistyped", "draft-gaikwad-woa-00 §4.1")
        "an element of `operations` is not an object" => "Publish every operation as an object.";
    rule OPERATION_NAME: Should("woa.operation.name.not_token", "draft-gaikwad-woa-00 §4.1")
        "the name of an operation is not a token of letters, digits, - and _"
            => "Use only letters, digits, - and _.";
    rule OPERATION_DUPLICATE: Should("woa.operation.name.duplicate", "draft-gaikwad-woa-00 §4.1")
        "two operations of an agent have the same name" => "Give every operation of an agent a unique name.";
    rule TRANSPORT_UNKNOWN: Must("woa.agent.transports.unknown", "draft-gaikwad-woa-00 §4.1")
        "an agent names a transport that the document does not describe"
            => "Describe the transport under `transports`, or do not name it.";
    rule TRANSPORT_MISTYPED: Must("woa.transport.mistyped", "draft-gaikwad-woa-00 §4.3")
        "a transport is not an object" => "Describe every transport as an object.";
    rule TRANSPORT_UNUSED: Note("woa.transport.unused", "draft-gaikwad-woa-00 §4.3")
        "no agent names this transport" => "Name the transport in the agents that can be invoked over it.";
    rule TRANSPORT_UNREGISTERED: Must("woa.transport.unregistered", "draft-gaikwad-woa-00 §4.3.3")
        "the transport is neither registered nor named with a reverse DNS prefix"
            => "Use `rest` or `mcp`, or name a private transport like com.example.mytransport.";
    rule BASE_NOT_HTTPS: Must("woa.rest.base.not_https", "draft-gaikwad-woa-00 §4.3.1")
        "the base of the REST transport is not https" => "Publish an https URL.";
    rule BASE_ENDING: Should("woa.rest.base.ending", "draft-gaikwad-woa-00 §4.3.1")
        "`base` cannot be joined with `invoke_path`, which begins with / and is appended unchanged"
            => "End the base without a slash, query or fragment.";
    rule PLACEHOLDER_CASE: Should("woa.rest.invoke_path.placeholder", "draft-gaikwad-woa-00 §4.3.1")
        "the path holds a placeholder other than {agent_id}, which is the only one that clients replace"
            => "Write {agent_id} exactly in this spelling, and no other placeholder.";
    rule SCHEMA_INVALID: Must("woa.schema.invalid", "draft-gaikwad-woa-00 §4.2")
        "the schema is not valid JSON Schema 2020-12" => "Correct the schema so that it passes the 2020-12 meta-schema.";
    rule SCHEMA_DIALECT: Must("woa.schema.dialect", "draft-gaikwad-woa-00 §4.2")
        "the schema declares another dialect than JSON Schema 2020-12"
            => "Write the schema in JSON Schema 2020-12 and declare https://json-schema.org/draft/2020-12/schema.";
    rule SCHEMA_PATTERN: Must("woa.schema.pattern", "draft-gaikwad-woa-00 §4.2")
        "the pattern is not a regular expression" => "Correct the pattern; it follows ECMA-262.";
    rule SCHEMA_REFERENCE: Must("woa.schema.ref.unresolved", "draft-gaikwad-woa-00 §4.2")
        "a `$ref` has no target in its schema" => "Correct the reference, or add its target to `$defs` of the same schema.";
    rule SCHEMA_REMOTE: Note("woa.schema.ref.remote", "draft-gaikwad-woa-00 §4.2")
        "a `$ref` leads to another document, which is not fetched" => "Copy the referenced schema into `$defs`.";
    rule SCHEMA_CONTRADICTED: Should("woa.schema.contradicted", "draft-gaikwad-woa-00 §4.2")
        "the schema contradicts itself" => "Correct the keyword, so that the schema is accurate.";
    rule AUTHZ: May("woa.authz.mistyped", "draft-gaikwad-woa-00 appendix A")
        "the extension `authz` is not an object that names its `scheme` in a string"
            => "Publish `authz` as an object with `scheme`, `policy_uri` and `token_header`.";
    rule SCHEMA_ROOT: Note("woa.schema.root", "draft-gaikwad-woa-00 §4.2")
        "the root of the schema is not an object with named properties, the only form that every client supports"
            => "Describe an object: `type` \"object\" with `properties` and `required`.";
}

/// `agent-id = 1*( ALPHA / DIGIT / "-" / "_" )`
pub(super) fn is_token(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
}

fn is_path(text: &str) -> bool {
    text.starts_with('/') && !text.contains('#')
}

/// Credentials in an address would be published to everybody (RFC 3986 §3.2.1).
fn is_base(text: &str) -> bool {
    let authority = text.split_once("://").map_or(text, |(_, rest)| rest).split(['/', '?', '#']).next();
    is_url(text) && !authority.unwrap_or_default().contains('@')
}

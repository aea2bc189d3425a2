//! What WoA demands, as tables.

use crate::model::Severity;
use crate::rule::{Kind, Rule, Shape, may, must, rule};

pub(super) const SHAPES: &[&Shape] = &[&ROOT, &AGENT, &OPERATION, &REST, &MCP];

pub(super) const RULES: &[&Rule] = &[
    &MAJOR,
    &NO_AGENTS,
    &AGENT_MISTYPED,
    &ID_DUPLICATE,
    &OPERATION_MISTYPED,
    &OPERATION_DUPLICATE,
    &TRANSPORT_UNKNOWN,
    &TRANSPORT_MISTYPED,
    &TRANSPORT_UNUSED,
    &TRANSPORT_UNREGISTERED,
    &BASE_NOT_HTTPS,
    &PLACEHOLDER_CASE,
    &SCHEMA_INVALID,
    &SCHEMA_ROOT,
];

pub(super) const ROOT: Shape = Shape {
    code: "woa",
    spec: "draft-gaikwad-woa-00 §4",
    fields: &[
        must("woa_version", Kind::Text, "Declare the version as the string \"1\"."),
        must("agents", Kind::List, "List the agents of this host."),
        must("transports", Kind::Object, "Describe every transport as an object under its name."),
    ],
};

pub(super) const AGENT: Shape = Shape {
    code: "woa.agent",
    spec: "draft-gaikwad-woa-00 §4.1",
    fields: &[
        must("id", Kind::Form(is_token, "letters, digits, - and _"), "Use only letters, digits, - and _."),
        must("name", Kind::Text, "Give the agent a short name that a person can read."),
        must("description", Kind::Text, "Say what the agent does."),
        may("version", Kind::Text, "Publish the version as a string."),
        may("capabilities", Kind::Texts, "List capability identifiers as strings."),
        must("inputs", Kind::Object, "Describe the request body as a JSON Schema."),
        must("outputs", Kind::Object, "Describe the successful response body as a JSON Schema."),
        must("transports", Kind::Texts, "Name the transports that can be used to invoke this agent."),
        may("operations", Kind::List, "List operations as objects."),
    ],
};

pub(super) const OPERATION: Shape = Shape {
    code: "woa.operation",
    spec: "draft-gaikwad-woa-00 §4.1",
    fields: &[
        must("name", Kind::Text, "Name the operation."),
        must("description", Kind::Text, "Say what the operation does."),
        may("inputs", Kind::Object, "Describe the operation's own input as a JSON Schema."),
        may("outputs", Kind::Object, "Describe the operation's own output as a JSON Schema."),
    ],
};

pub(super) const REST: Shape = Shape {
    code: "woa.rest",
    spec: "draft-gaikwad-woa-00 §4.3.1",
    fields: &[
        must("base", Kind::Url, "Publish the absolute https URL of the API."),
        must(
            "invoke_path",
            Kind::Form(is_path, "a path that begins with /"),
            "Publish a path that begins with \"/\"; it is appended to `base` as it stands.",
        ),
    ],
};

pub(super) const MCP: Shape = Shape {
    code: "woa.mcp",
    spec: "draft-gaikwad-woa-00 §4.3.2",
    fields: &[
        must("server", Kind::Text, "Name the MCP server or give its URL."),
        must("tool_namespace", Kind::Text, "Name the namespace of the tools on the server."),
        must("tool_field", Kind::Text, "Name the member of the envelope that holds the tool's name."),
    ],
};

pub(super) const MAJOR: Rule = rule(
    "woa.woa_version.unknown",
    Severity::Must,
    "draft-gaikwad-woa-00 §4",
    "the version is not one that agentdex knows; the document was read as version 1",
    "Declare `woa_version` as the string \"1\".",
);
pub(super) const NO_AGENTS: Rule = rule(
    "woa.agents.empty",
    Severity::May,
    "draft-gaikwad-woa-00 §4",
    "the list of agents is empty",
    "List an agent, or take the document down.",
);
pub(super) const AGENT_MISTYPED: Rule = rule(
    "woa.agent.mistyped",
    Severity::Must,
    "draft-gaikwad-woa-00 §4.1",
    "an element of `agents` is not an object",
    "Publish every agent as an object.",
);
pub(super) const ID_DUPLICATE: Rule = rule(
    "woa.agent.id.duplicate",
    Severity::Must,
    "draft-gaikwad-woa-00 §4.1",
    "two agents have the same id",
    "Give every agent an id of its own.",
);
pub(super) const OPERATION_MISTYPED: Rule = rule(
    "woa.operation.mistyped",
    Severity::Must,
    "draft-gaikwad-woa-00 §4.1",
    "an element of `operations` is not an object",
    "Publish every operation as an object.",
);
pub(super) const OPERATION_DUPLICATE: Rule = rule(
    "woa.operation.name.duplicate",
    Severity::Should,
    "draft-gaikwad-woa-00 §4.1",
    "two operations of an agent have the same name",
    "Give every operation of an agent a name of its own.",
);
pub(super) const TRANSPORT_UNKNOWN: Rule = rule(
    "woa.agent.transports.unknown",
    Severity::Must,
    "draft-gaikwad-woa-00 §4.1",
    "an agent names a transport that the document does not describe",
    "Describe the transport under `transports`, or do not name it.",
);
pub(super) const TRANSPORT_MISTYPED: Rule = rule(
    "woa.transport.mistyped",
    Severity::Must,
    "draft-gaikwad-woa-00 §4.3",
    "a transport is not an object",
    "Describe every transport as an object.",
);
pub(super) const TRANSPORT_UNUSED: Rule = rule(
    "woa.transport.unused",
    Severity::Note,
    "draft-gaikwad-woa-00 §4.3",
    "no agent names this transport",
    "Name the transport in the agents that can be invoked over it.",
);
pub(super) const TRANSPORT_UNREGISTERED: Rule = rule(
    "woa.transport.unregistered",
    Severity::Must,
    "draft-gaikwad-woa-00 §4.3.3",
    "the transport is neither registered nor named with a reverse DNS prefix",
    "Use `rest` or `mcp`, or name a private transport like com.example.mytransport.",
);
pub(super) const BASE_NOT_HTTPS: Rule = rule(
    "woa.rest.base.not_https",
    Severity::Must,
    "draft-gaikwad-woa-00 §4.3.1",
    "the base of the REST transport is not https",
    "Publish an https URL.",
);
pub(super) const PLACEHOLDER_CASE: Rule = rule(
    "woa.rest.invoke_path.placeholder",
    Severity::Should,
    "draft-gaikwad-woa-00 §4.3.1",
    "the path holds a placeholder other than {agent_id}, which is the only one that clients replace",
    "Write {agent_id} in just this spelling, and no other placeholder.",
);
pub(super) const SCHEMA_INVALID: Rule = rule(
    "woa.schema.invalid",
    Severity::Must,
    "draft-gaikwad-woa-00 §4.2",
    "the schema is not valid JSON Schema 2020-12",
    "Correct the schema so that it passes the 2020-12 meta-schema.",
);
pub(super) const SCHEMA_ROOT: Rule = rule(
    "woa.schema.root",
    Severity::Should,
    "draft-gaikwad-woa-00 §4.2",
    "the root of the schema is not an object with named properties, which is all that every client understands",
    "Describe an object: `type` \"object\" with `properties` and `required`.",
);

/// `agent-id = 1*( ALPHA / DIGIT / "-" / "_" )`
fn is_token(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
}

fn is_path(text: &str) -> bool {
    text.starts_with('/')
}

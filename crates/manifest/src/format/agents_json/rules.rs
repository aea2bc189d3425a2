//! What agents.json 0.1 demands, as tables: the prose, its JSON Schema, and what the SDK writes.

use crate::check::is_semver;
use crate::model::Severity::{May, Must, Should};
use crate::rule::{Kind, Rule, Shape, may, must, rule, should};

pub(super) const SHAPES: &[&Shape] = &[
    &ROOT,
    &SCHEMA_ROOT,
    &PARTS,
    &SITE,
    &CAPABILITY,
    &PARAMETER,
    &SESSION,
    &SCHEMA_SESSION,
    &RATE,
    &SCHEMA_RATE,
    &AUDIT,
    &FLOW,
];

pub(super) const RULES: &[&Rule] = &[
    &CAPABILITY_MISTYPED,
    &NO_CAPABILITY,
    &NAME_DUPLICATE,
    &PARAMETER_MISTYPED,
    &SESSION_MISSING,
    &TTL_SHORT,
    &UNLISTED,
    &SDK_VERSION,
    &STEP_UNKNOWN,
];

const SPEC: &str = "agents.json 0.1.0";
const SCHEMA: &str = "agents.json 0.1.0 schema";

pub(super) const ROOT: Shape = Shape {
    code: "agents_json",
    spec: SPEC,
    fields: &[must(
        "schema_version",
        Kind::Form(is_semver, "a semantic version such as 0.1.0"),
        "Declare \"schema_version\": \"0.1.0\".",
    )],
};

pub(super) const SCHEMA_ROOT: Shape = Shape {
    code: "agents_json",
    spec: SCHEMA,
    fields: &[must(
        "protocol_version",
        Kind::Form(is_semver, "a semantic version such as 0.1.0"),
        "Declare \"protocol_version\": \"0.1.0\".",
    )],
};

/// The members that every dialect has.
pub(super) const PARTS: Shape = Shape {
    code: "agents_json",
    spec: SPEC,
    fields: &[
        must("site", Kind::Object, "Describe the site as an object."),
        must("capabilities", Kind::List, "List the capabilities in an array."),
        may("session", Kind::Object, "Publish the session's configuration as an object."),
        may("rate_limit", Kind::Object, "Publish the limit as an object."),
        may("audit", Kind::Object, "Publish the audit's configuration as an object."),
        may("docs_url", Kind::Url, "Give the absolute URL of the documentation."),
        may("flows", Kind::List, "List flows in an array."),
    ],
};

pub(super) const SITE: Shape = Shape {
    code: "agents_json.site",
    spec: SPEC,
    fields: &[
        must("name", Kind::Text, "Name the site."),
        must("url", Kind::Url, "Give the site's absolute URL."),
        may("description", Kind::Text, "Describe the site in one line."),
        may("contact", Kind::Text, "Give an e-mail address or a URL."),
    ],
};

pub(super) const CAPABILITY: Shape = Shape {
    code: "agents_json.capability",
    spec: SPEC,
    fields: &[
        must(
            "name",
            Kind::Form(is_name, "lowercase letters, digits, dots and underscores"),
            "Begin with a letter; use lowercase letters, digits, dots and underscores.",
        ),
        must("endpoint", Kind::Reference, "Give the path of the endpoint."),
        must(
            "method",
            Kind::OneOf(&["GET", "POST", "PUT", "PATCH", "DELETE"]),
            "Name the HTTP method in capital letters.",
        ),
        may("description", Kind::Text, "Describe the capability in plain language."),
        may("params", Kind::Object, "Publish parameters as an object from name to descriptor."),
        may("requires_session", Kind::Bool, "Say true or false."),
        may("human_handoff", Kind::Bool, "Say true or false."),
    ],
};

pub(super) const PARAMETER: Shape = Shape {
    code: "agents_json.param",
    spec: SPEC,
    fields: &[
        must(
            "type",
            Kind::OneOf(&["string", "number", "integer", "boolean", "array", "object"]),
            "Name one of the six types.",
        ),
        may("description", Kind::Text, "Describe the parameter."),
        may("required", Kind::Bool, "Say true or false."),
        may("enum", Kind::List, "List the values in an array."),
        may("items", Kind::Object, "Describe the items as a schema."),
    ],
};

pub(super) const SESSION: Shape = Shape {
    code: "agents_json.session",
    spec: SPEC,
    fields: &[
        must("create", Kind::Reference, "Give the path where sessions are created."),
        may("delete", Kind::Reference, "Give the path where sessions are ended."),
        may("ttl_seconds", Kind::Integer, "Give a whole number of seconds."),
    ],
};

pub(super) const SCHEMA_SESSION: Shape = Shape {
    code: "agents_json.session",
    spec: SCHEMA,
    fields: &[
        may("endpoint", Kind::Reference, "Give the path where sessions are created."),
        may("ttl", Kind::Integer, "Give a whole number of seconds."),
    ],
};

pub(super) const RATE: Shape = Shape {
    code: "agents_json.rate_limit",
    spec: SPEC,
    fields: &[
        may("requests_per_minute", Kind::Integer, "Give a whole number."),
        may("max_sessions", Kind::Integer, "Give a whole number."),
    ],
};

pub(super) const SCHEMA_RATE: Shape = Shape {
    code: "agents_json.rate_limit",
    spec: SCHEMA,
    fields: &[
        may("max_requests_per_minute", Kind::Integer, "Give a whole number."),
        may("max_sessions", Kind::Integer, "Give a whole number."),
    ],
};

pub(super) const AUDIT: Shape = Shape {
    code: "agents_json.audit",
    spec: SPEC,
    fields: &[
        may("enabled", Kind::Bool, "Say true or false."),
        may("endpoint", Kind::Reference, "Give the path of the audit artifacts."),
        may("public_key", Kind::Text, "Give the key in base64."),
    ],
};

pub(super) const FLOW: Shape = Shape {
    code: "agents_json.flow",
    spec: "agents.json 0.1.0 SDK",
    fields: &[
        should("name", Kind::Text, "Name the flow."),
        may("description", Kind::Text, "Describe the flow."),
        should("steps", Kind::Texts, "List the names of the capabilities in order."),
    ],
};

pub(super) const CAPABILITY_MISTYPED: Rule = rule(
    "agents_json.capability.mistyped",
    Must,
    SPEC,
    "a capability is not an object",
    "Describe each capability as an object.",
);
pub(super) const NO_CAPABILITY: Rule = rule(
    "agents_json.capabilities.empty",
    Must,
    SPEC,
    "`capabilities` is empty",
    "List at least one capability.",
);
pub(super) const NAME_DUPLICATE: Rule = rule(
    "agents_json.capability.name.duplicate",
    Should,
    SPEC,
    "two capabilities have the same name",
    "Give every capability a name of its own.",
);
pub(super) const PARAMETER_MISTYPED: Rule = rule(
    "agents_json.param.mistyped",
    Must,
    SPEC,
    "a parameter is not an object",
    "Describe each parameter as an object with a type.",
);
pub(super) const SESSION_MISSING: Rule = rule(
    "agents_json.session.missing",
    Should,
    SPEC,
    "capabilities require a session and none is configured",
    "Publish `session`; until then the defaults apply.",
);
pub(super) const TTL_SHORT: Rule = rule(
    "agents_json.session.ttl.too_short",
    Must,
    SPEC,
    "a session lives less than 60 seconds",
    "Let sessions live for a minute at least.",
);
pub(super) const UNLISTED: Rule = rule(
    "agents_json.unlisted_member",
    Must,
    SCHEMA,
    "the schema allows no member of this name",
    "Remove the member, or use the name that the schema lists.",
);
pub(super) const SDK_VERSION: Rule = rule(
    "agents_json.schema_version.sdk",
    May,
    SPEC,
    "the version is the one that the SDK writes, not that of the specification",
    "Declare \"schema_version\": \"0.1.0\".",
);
pub(super) const STEP_UNKNOWN: Rule = rule(
    "agents_json.flow.step.unknown",
    Should,
    "agents.json 0.1.0 SDK",
    "a step names no capability",
    "Declare the capability, or correct the name.",
);

fn is_name(text: &str) -> bool {
    text.starts_with(|letter: char| letter.is_ascii_lowercase())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'_' | b'.'))
}

//! Requirements of agents.json 0.1: the text of the specification, its JSON Schema, and the output of the SDK.

use crate::check::{is_email, is_semver, is_url};
use crate::rule::{Kind, findings, may, must, should};

findings! {
    shape ROOT("agents_json", SPEC) {
        must("schema_version", Kind::Form(is_semver, "a semantic version such as 0.1.0"), "Declare \"schema_version\": \"0.1.0\"."),
    }
    shape SCHEMA_ROOT("agents_json", SCHEMA) {
        must("protocol_version", Kind::Form(is_semver, "a semantic version such as 0.1.0"), "Declare \"protocol_version\": \"0.1.0\"."),
    }
    // Members that all dialects have.
    shape PARTS("agents_json", SPEC) {
        must("site", Kind::Object, "Describe the site as an object."),
        must("capabilities", Kind::List, "List the capabilities in an array."),
        may("session", Kind::Object, "Publish the session's configuration as an object."),
        may("rate_limit", Kind::Object, "Publish the limit as an object."),
        may("audit", Kind::Object, "Publish the audit's configuration as an object."),
        may("docs_url", Kind::Url, "Give the absolute URL of the documentation."),
        may("flows", Kind::List, "List flows in an array."),
    }
    shape SITE("agents_json.site", SPEC) {
        must("name", Kind::Text, "Name the site."),
        must("url", Kind::Url, "Give the site's absolute URL."),
        may("description", Kind::Text, "Describe the site in one line."),
        may("contact", Kind::Form(is_contact, "an e-mail address or a URL"), "Give an e-mail address or a URL."),
    }
    shape CAPABILITY("agents_json.capability", SPEC) {
        must("name", Kind::Form(is_name, "lowercase letters, digits and underscores, with dots between them"), "Begin with a letter; use lowercase letters, digits, dots and underscores."),
        must("endpoint", Kind::Reference, "Give the path of the endpoint."),
        must("method", Kind::OneOf(&["GET", "POST", "PUT", "PATCH", "DELETE"]), "Name the HTTP method in capital letters."),
        may("description", Kind::Text, "Describe the capability in plain language."),
        may("params", Kind::Object, "Publish parameters as an object from name to descriptor."),
        may("requires_session", Kind::Bool, "Publish true or false."),
        may("human_handoff", Kind::Bool, "Publish true or false."),
    }
    shape PARAMETER("agents_json.param", SPEC) {
        must("type", Kind::OneOf(&["string", "number", "integer", "boolean", "array", "object"]), "Name one of the six types."),
        may("description", Kind::Text, "Describe the parameter."),
        may("required", Kind::Bool, "Publish true or false."),
        may("enum", Kind::List, "List the values in an array."),
        may("items", Kind::Object, "Describe the items as a schema."),
    }
    shape ITEMS("agents_json.param.items", SPEC) {
        may("type", Kind::OneOf(crate::schema::TYPES), "Name a type of JSON Schema."),
    }
    shape SESSION("agents_json.session", SPEC) {
        must("create", Kind::Reference, "Give the path where sessions are created."),
        may("delete", Kind::Reference, "Give the path where sessions are ended."),
        may("ttl_seconds", Kind::Integer, "Give a whole number of seconds."),
    }
    shape SCHEMA_SESSION("agents_json.session", SCHEMA) {
        may("endpoint", Kind::Reference, "Give the path where sessions are created."),
        may("ttl", Kind::Integer, "Give a whole number of seconds."),
    }
    shape RATE("agents_json.rate_limit", SPEC) {
        may("requests_per_minute", Kind::Integer, "Give a whole number."),
        may("max_sessions", Kind::Integer, "Give a whole number."),
    }
    shape SCHEMA_RATE("agents_json.rate_limit", SCHEMA) {
        may("max_requests_per_minute", Kind::Integer, "Give a whole number."),
        may("max_sessions", Kind::Integer, "Give a whole number."),
    }
    shape AUDIT("agents_json.audit", SPEC) {
        may("enabled", Kind::Bool, "Publish true or false."),
        may("endpoint", Kind::Reference, "Give the path of the audit artifacts."),
        may("public_key", Kind::Form(is_ed25519, "a base64-encoded Ed25519 public key"), "Give the base64 of the key's DER structure or of its 32 bytes."),
    }
    shape FLOW("agents_json.flow", "agents.json 0.1.0 SDK") {
        should("name", Kind::Text, "Name the flow."),
        may("description", Kind::Text, "Describe the flow."),
        should("steps", Kind::Texts, "List the names of the capabilities in order."),
    }
    rule RATE_ZERO: Should("agents_json.rate_limit.zero", SPEC)
        "a limit of zero forbids everything" => "Give the number of requests or sessions that are allowed.";
    rule CAPABILITY_MISTYPED: Must("agents_json.capability.mistyped", SPEC)
        "a capability is not an object" => "Describe each capability as an object.";
    rule NO_CAPABILITY: Must("agents_json.capabilities.empty", SPEC)
        "`capabilities` is empty" => "List at least one capability.";
    rule NAME_DUPLICATE: Should("agents_json.capability.name.duplicate", SPEC)
        "two capabilities have the same name" => "Give every capability a unique name.";
    rule PARAMETER_MISTYPED: Must("agents_json.param.mistyped", SPEC)
        "a parameter is not an object" => "Describe each parameter as an object with a type.";
    rule ENUM_EMPTY: Should("agents_json.param.enum.empty", SPEC)
        "`enum` allows no value" => "List the allowed values, or remove `enum`.";
    rule ENUM_MISTYPED: Should("agents_json.param.enum.value_mistyped", SPEC)
        "an allowed value has another type than the parameter" => "List values of the parameter's type.";
    rule DEFAULT_UNLISTED: Should("agents_json.param.default.unlisted", SPEC)
        "the default is not among the allowed values" => "Choose the default from `enum`.";
    rule DEFAULT_MISTYPED: Should("agents_json.param.default.mistyped", SPEC)
        "the default has another type than the parameter" => "Write a default of the parameter's type.";
    rule ITEMS_UNUSED: May("agents_json.param.items.unused", SPEC)
        "`items` describes the elements of a parameter that is not an array" => "Declare the type array, or remove `items`.";
    rule ADDRESS_ABSOLUTE: Should("agents_json.path.absolute", SPEC)
        "an absolute URL is given where the specification defines a path" => "Give the path, relative to the site's origin.";
    rule SESSION_MISSING: Should("agents_json.session.missing", SPEC)
        "capabilities require a session and none is configured" => "Publish `session`; until then the defaults apply.";
    rule TTL_SHORT: Must("agents_json.session.ttl.too_short", SPEC)
        "a session lasts less than 60 seconds" => "Set a lifetime of at least a minute.";
    rule UNLISTED: Must("agents_json.unlisted_member", SCHEMA)
        "the schema allows no member of this name" => "Remove the member, or use the name that the schema lists.";
    rule SDK_VERSION: May("agents_json.schema_version.sdk", SPEC)
        "the version is the one that the SDK writes, not that of the specification" => "Declare \"schema_version\": \"0.1.0\".";
    rule VERSION_UNKNOWN: May("agents_json.version.unknown", SPEC)
        "the version is not 0.1.x; the document is read as far as possible" => "Declare the version of the specification, 0.1.0.";
    rule ENDPOINT_VARIABLE: May("agents_json.capability.endpoint.variable", SPEC)
        "a variable of the endpoint has no parameter, so agents do not know its value"
            => "Declare a parameter with the name of the variable.";
    rule STEP_UNKNOWN: Should("agents_json.flow.step.unknown", "agents.json 0.1.0 SDK")
        "a step does not name a declared capability" => "Declare the capability, or correct the name.";
}

const SPEC: &str = "agents.json 0.1.0";
const SCHEMA: &str = "agents.json 0.1.0 schema";

fn is_name(text: &str) -> bool {
    text.starts_with(|letter: char| letter.is_ascii_lowercase())
        && text.split('.').all(|part| {
            !part.is_empty()
                && part.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
        })
}

fn is_contact(text: &str) -> bool {
    is_email(text.trim()) || is_url(text.trim())
}

/// Bytes before the key in a `SubjectPublicKeyInfo` of Ed25519 (RFC 8410 §4).
const ED25519_HEAD: &[u8] = &[0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];
/// Bytes of an Ed25519 public key.
const ED25519_BYTES: usize = 32;

/// Whether a text is the base64 of an Ed25519 public key, with or without the header of its structure.
fn is_ed25519(text: &str) -> bool {
    let Ok(bytes) = data_encoding::BASE64.decode(text.trim().as_bytes()) else { return false };
    bytes.strip_prefix(ED25519_HEAD).unwrap_or(&bytes).len() == ED25519_BYTES
}

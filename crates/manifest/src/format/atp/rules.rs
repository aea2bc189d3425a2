//! What ATP demands, as tables: the prose, and where its published JSON Schema is stricter.

use crate::check::{is_email, is_semver};
use crate::model::Severity::{May, Must, Should};
use crate::quantity;
use crate::rule::{Kind, Rule, Shape, may, must, rule, should};

pub(super) const SHAPES: &[&Shape] = &[
    &ROOT,
    &PROVIDER,
    &AUTH,
    &SCHEME,
    &CODE_FLOW,
    &CREDENTIALS_FLOW,
    &API_KEY,
    &IDENTITY,
    &RATE,
    &CAPABILITY,
    &PARAMETER,
    &CONFIRMATION,
    &WORKFLOW,
    &POLICIES,
    &CACHING,
    &SCHEMA_ROOT,
    &SCHEMA_RATE,
    &SCHEMA_CAPABILITY,
];

pub(super) const RULES: &[&Rule] = &[
    &CAPABILITY_MISTYPED,
    &ID_DUPLICATE,
    &SIDE_EFFECTS,
    &SIDE_EFFECTS_UNSTATED,
    &CONFIRMATION_UNDECLARED,
    &MESSAGE_MISSING,
    &PARAMETER_MISTYPED,
    &REFERENCE,
    &SCOPE_UNKNOWN,
    &AUTH_UNDECLARED,
    &CODE_FLOW_MISSING,
    &TERMS_MISSING,
    &STEP_UNKNOWN,
    &CONDITION_UNKNOWN,
    &SIZE,
    &SCHEMA_EMPTY,
];

pub(super) const ROOT: Shape = Shape {
    code: "atp",
    spec: "ATP 0.1 §3.1",
    fields: &[
        must("name", Kind::Text, "Name the site."),
        must("description", Kind::Text, "Describe the site in plain language."),
        must(
            "version",
            Kind::Form(is_semver, "a semantic version such as 1.0.0"),
            "Version the manifest as MAJOR.MINOR.PATCH.",
        ),
        should("capabilities", Kind::List, "List what agents can do."),
        may("provider", Kind::Object, "Publish the provider as an object."),
        may("auth", Kind::Object, "Publish authentication as an object."),
        may("rateLimit", Kind::Object, "Publish the limit as an object."),
        may("workflows", Kind::List, "List workflows in an array."),
        may("schemas", Kind::Object, "Publish schemas as an object of named schemas."),
        may("policies", Kind::Object, "Publish policies as an object."),
    ],
};

pub(super) const PROVIDER: Shape = Shape {
    code: "atp.provider",
    spec: "ATP 0.1 §3.2",
    fields: &[
        must("name", Kind::Text, "Name the provider."),
        must("url", Kind::Url, "Give the provider's absolute URL."),
        may("contact", Kind::Form(is_email, "an e-mail address"), "Give an e-mail address."),
        may("logo", Kind::Url, "Give the logo's absolute URL."),
    ],
};

pub(super) const AUTH: Shape = Shape {
    code: "atp.auth",
    spec: "ATP 0.1 §3.3",
    fields: &[
        may("schemes", Kind::List, "List the schemes in an array."),
        may("agentIdentity", Kind::Object, "Publish the demand for an identity as an object."),
    ],
};

pub(super) const SCHEME: Shape = Shape {
    code: "atp.auth.scheme",
    spec: "ATP 0.1 §3.3",
    fields: &[
        must(
            "type",
            Kind::OneOf(&["oauth2", "apiKey", "bearer", "delegated"]),
            "Name one of the four types.",
        ),
        may("flows", Kind::Object, "Publish flows as an object."),
    ],
};

pub(super) const CODE_FLOW: Shape = Shape {
    code: "atp.auth.authorization_code",
    spec: "ATP 0.1 §3.3.1",
    fields: &[
        must("authorizationUrl", Kind::Url, "Give the absolute URL of the authorization endpoint."),
        must("tokenUrl", Kind::Url, "Give the absolute URL of the token endpoint."),
        may("refreshUrl", Kind::Url, "Give the absolute URL of the refresh endpoint."),
        may("scopes", Kind::Object, "Publish scopes as an object from name to description."),
    ],
};

pub(super) const CREDENTIALS_FLOW: Shape = Shape {
    code: "atp.auth.client_credentials",
    spec: "ATP 0.1 §3.3.1",
    fields: &[
        must("tokenUrl", Kind::Url, "Give the absolute URL of the token endpoint."),
        may("scopes", Kind::Object, "Publish scopes as an object from name to description."),
    ],
};

pub(super) const API_KEY: Shape = Shape {
    code: "atp.auth.api_key",
    spec: "ATP 0.1 §3.3.2",
    fields: &[
        should("in", Kind::OneOf(&["header", "query", "cookie"]), "Say header, query or cookie."),
        should("name", Kind::Text, "Name the header, parameter or cookie."),
        may("registration", Kind::Url, "Give the absolute URL where keys are handed out."),
    ],
};

pub(super) const IDENTITY: Shape = Shape {
    code: "atp.auth.agent_identity",
    spec: "ATP 0.1 §3.3.3",
    fields: &[
        may("required", Kind::Bool, "Say true or false."),
        may("format", Kind::OneOf(&["did:web", "did:key", "custom"]), "Name one of the three formats."),
    ],
};

pub(super) const RATE: Shape = Shape {
    code: "atp.rate_limit",
    spec: "ATP 0.1 §3.4",
    fields: &[
        should("requests", Kind::Integer, "Give the number of requests in a window."),
        should(
            "window",
            Kind::Form(is_duration, "a duration such as 1h"),
            "Write a number and a unit, such as \"1h\".",
        ),
        may("burstLimit", Kind::Integer, "Give a whole number."),
        may("tierUrl", Kind::Reference, "Give a URL."),
    ],
};

const METHODS: &[&str] = &["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"];

pub(super) const CAPABILITY: Shape = Shape {
    code: "atp.capability",
    spec: "ATP 0.1 §3.5",
    fields: &[
        must("id", Kind::Text, "Give every capability an id of its own."),
        must("name", Kind::Text, "Name the capability for people."),
        must("description", Kind::Text, "Describe the capability in plain language."),
        must("endpoint", Kind::Reference, "Give the path or the absolute URL."),
        must("method", Kind::OneOf(METHODS), "Name the HTTP method in capital letters."),
        may("semanticType", Kind::Form(is_typed, "namespace:type"), "Write namespace, colon, type."),
        may("parameters", Kind::List, "List the parameters in an array."),
        may("response", Kind::Object, "Publish the response as a JSON Schema."),
        may("requiredScopes", Kind::Texts, "List the scopes as strings."),
        may("sideEffects", Kind::Bool, "Say true or false."),
        may("confirmation", Kind::Object, "Publish the confirmation as an object."),
        may("deprecated", Kind::Bool, "Say true or false."),
        may("deprecationMessage", Kind::Text, "Give the message as a string."),
    ],
};

pub(super) const PARAMETER: Shape = Shape {
    code: "atp.parameter",
    spec: "ATP 0.1 §3.5.1",
    fields: &[
        must("name", Kind::Text, "Name the parameter."),
        must(
            "type",
            Kind::OneOf(&["string", "number", "integer", "boolean", "array", "object"]),
            "Name one of the six types.",
        ),
        should("description", Kind::Text, "Describe the parameter."),
        may("required", Kind::Bool, "Say true or false."),
        may("enum", Kind::List, "List the values in an array."),
        may("format", Kind::Text, "Name the format as a string."),
        may("minimum", Kind::Number, "Give a number."),
        may("maximum", Kind::Number, "Give a number."),
        may("pattern", Kind::Text, "Give the pattern as a string."),
    ],
};

pub(super) const CONFIRMATION: Shape = Shape {
    code: "atp.confirmation",
    spec: "ATP 0.1 §3.5.3",
    fields: &[
        should("required", Kind::Bool, "Say true or false."),
        may("message", Kind::Text, "Give the message as a string."),
    ],
};

pub(super) const WORKFLOW: Shape = Shape {
    code: "atp.workflow",
    spec: "ATP 0.1 §3.6",
    fields: &[
        must("id", Kind::Text, "Give every workflow an id."),
        must("name", Kind::Text, "Name the workflow."),
        must("description", Kind::Text, "Describe the workflow."),
        should("steps", Kind::Texts, "List the ids of the capabilities in order."),
        may("conditional", Kind::Object, "Publish branches as an object from step id to branch."),
    ],
};

pub(super) const POLICIES: Shape = Shape {
    code: "atp.policies",
    spec: "ATP 0.1 §3.8",
    fields: &[
        may("training", Kind::OneOf(&["allow", "deny", "conditional"]), "Say allow, deny or conditional."),
        may("inference", Kind::OneOf(&["allow", "deny", "conditional"]), "Say allow, deny or conditional."),
        may("caching", Kind::Object, "Publish caching as an object."),
        may(
            "attribution",
            Kind::OneOf(&["required", "preferred", "none"]),
            "Say required, preferred or none.",
        ),
        may("termsUrl", Kind::Reference, "Give a URL."),
        may("privacyUrl", Kind::Reference, "Give a URL."),
    ],
};

pub(super) const CACHING: Shape = Shape {
    code: "atp.policies.caching",
    spec: "ATP 0.1 §3.8",
    fields: &[
        should("allowed", Kind::Bool, "Say true or false."),
        may("maxAge", Kind::Integer, "Give a number of seconds."),
    ],
};

/// Where the published JSON Schema demands more than the prose.
pub(super) const SCHEMA_ROOT: Shape = Shape {
    code: "atp_schema",
    spec: "ATP 0.1 schema.json",
    fields: &[
        must("@context", Kind::OneOf(&["https://atp.dev/schema/v1"]), "Declare the context of version 1."),
        must("@type", Kind::OneOf(&["AgentManifest"]), "Declare the type AgentManifest."),
        may(
            "name",
            Kind::Form(|text| text.chars().count() <= 200, "at most 200 characters"),
            "Shorten the name.",
        ),
        may(
            "description",
            Kind::Form(|text| text.chars().count() <= 2_000, "at most 2,000 characters"),
            "Shorten the description.",
        ),
        must("capabilities", Kind::List, "List what agents can do."),
    ],
};

pub(super) const SCHEMA_RATE: Shape = Shape {
    code: "atp_schema.rate_limit",
    spec: "ATP 0.1 schema.json",
    fields: &[
        may(
            "window",
            Kind::Form(is_window, "digits and one of s, m, h, d"),
            "Write digits and one of s, m, h, d.",
        ),
        may("tierUrl", Kind::Url, "Give an absolute URL."),
    ],
};

pub(super) const SCHEMA_CAPABILITY: Shape = Shape {
    code: "atp_schema.capability",
    spec: "ATP 0.1 schema.json",
    fields: &[
        may(
            "id",
            Kind::Form(is_kebab, "lowercase letters, digits and hyphens"),
            "Use lowercase letters, digits and hyphens.",
        ),
        may(
            "method",
            Kind::OneOf(&["GET", "POST", "PUT", "PATCH", "DELETE"]),
            "Use one of the five methods.",
        ),
        may(
            "semanticType",
            Kind::Form(is_strictly_typed, "one lowercase word, a colon, a kebab-case type"),
            "Write it like commerce:product-search.",
        ),
    ],
};

pub(super) const CAPABILITY_MISTYPED: Rule = rule(
    "atp.capability.mistyped",
    Must,
    "ATP 0.1 §3.5",
    "a capability is not an object",
    "Describe each capability as an object.",
);
pub(super) const ID_DUPLICATE: Rule = rule(
    "atp.capability.id.duplicate",
    Must,
    "ATP 0.1 §3.5",
    "two capabilities have the same id",
    "Give every capability an id of its own.",
);
pub(super) const SIDE_EFFECTS: Rule = rule(
    "atp.capability.side_effects.undeclared",
    Must,
    "ATP 0.1 §3.5.3",
    "the method changes state and `sideEffects` is not true",
    "Declare \"sideEffects\": true.",
);
pub(super) const SIDE_EFFECTS_UNSTATED: Rule = rule(
    "atp.capability.side_effects.unstated",
    May,
    "ATP 0.1 §3.5.3",
    "a POST does not say whether it changes state",
    "Declare `sideEffects` as true or false.",
);
pub(super) const CONFIRMATION_UNDECLARED: Rule = rule(
    "atp.capability.confirmation.undeclared",
    Should,
    "ATP 0.1 §3.5.3",
    "an irreversible or costly capability asks for no confirmation",
    "Declare `confirmation` with \"required\": true and a message.",
);
pub(super) const MESSAGE_MISSING: Rule = rule(
    "atp.confirmation.message.missing",
    Should,
    "ATP 0.1 §3.5.3",
    "a confirmation is required and says nothing",
    "Say in `message` what the person agrees to.",
);
pub(super) const PARAMETER_MISTYPED: Rule = rule(
    "atp.parameter.mistyped",
    Must,
    "ATP 0.1 §3.5.1",
    "a parameter is not an object",
    "Describe each parameter as an object.",
);
pub(super) const REFERENCE: Rule = rule(
    "atp.response.reference.unresolved",
    Should,
    "ATP 0.1 §3.7",
    "a `$ref` leads nowhere in this document",
    "Declare the schema in `schemas`, or correct the reference.",
);
pub(super) const SCOPE_UNKNOWN: Rule = rule(
    "atp.capability.required_scopes.unknown",
    Should,
    "ATP 0.1 §5.3",
    "a required scope is declared by no scheme",
    "Declare the scope in the scheme's flow, or correct its name.",
);
pub(super) const AUTH_UNDECLARED: Rule = rule(
    "atp.capability.required_scopes.without_auth",
    Should,
    "ATP 0.1 §3.3",
    "scopes are required and no scheme is declared",
    "Declare in `auth.schemes` how agents authenticate.",
);
pub(super) const CODE_FLOW_MISSING: Rule = rule(
    "atp.auth.authorization_code.missing",
    Should,
    "ATP 0.1 §3.3.1",
    "OAuth is offered without the authorizationCode flow",
    "Support the authorizationCode flow, so that people can delegate.",
);
pub(super) const TERMS_MISSING: Rule = rule(
    "atp.policies.terms_url.missing",
    Should,
    "ATP 0.1 §3.8",
    "a policy is conditional and `termsUrl` is missing",
    "Name the terms that hold the conditions.",
);
pub(super) const STEP_UNKNOWN: Rule = rule(
    "atp.workflow.step.unknown",
    Should,
    "ATP 0.1 §3.6",
    "a step names no capability",
    "Declare the capability, or correct the id.",
);
pub(super) const CONDITION_UNKNOWN: Rule = rule(
    "atp.workflow.conditional.unknown",
    May,
    "ATP 0.1 §3.6",
    "a branch belongs to no step of its workflow",
    "Correct the id of the step.",
);
pub(super) const SIZE: Rule = rule(
    "atp.size",
    May,
    "ATP 0.1 §6.1",
    "the manifest is longer than 50 KB",
    "Keep the manifest short enough to be read whole.",
);
pub(super) const SCHEMA_EMPTY: Rule = rule(
    "atp_schema.capabilities.empty",
    Must,
    "ATP 0.1 schema.json",
    "`capabilities` is empty",
    "List at least one capability.",
);

fn is_duration(text: &str) -> bool {
    quantity::duration_s(text).is_some()
}

fn is_window(text: &str) -> bool {
    let digits = text.strip_suffix(['s', 'm', 'h', 'd']);
    digits.is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()))
}

fn is_typed(text: &str) -> bool {
    let parts = text.split_once(':');
    parts.is_some_and(|(namespace, name)| {
        !namespace.is_empty() && !name.is_empty() && !text.contains(char::is_whitespace)
    })
}

fn is_kebab(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
}

fn is_strictly_typed(text: &str) -> bool {
    text.split_once(':').is_some_and(|(namespace, name)| {
        !namespace.is_empty() && namespace.bytes().all(|byte| byte.is_ascii_lowercase()) && is_kebab(name)
    })
}

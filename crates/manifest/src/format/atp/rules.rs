//! Requirements of ATP: those of the specification text, and the stricter ones of its published JSON Schema.

use crate::check::{is_email, is_semver};
use crate::pattern;
use crate::quantity::is_duration;
use crate::rule::{Kind, findings, may, must, should};

findings! {
    shape ROOT("atp", "ATP 0.1 §3.1") {
        must("name", Kind::Text, "Name the site."),
        must("description", Kind::Text, "Describe the site in plain language."),
        must("version", Kind::Form(is_semver, "a semantic version such as 1.0.0"), "Version the manifest as MAJOR.MINOR.PATCH."),
        should("capabilities", Kind::List, "List what agents can do."),
        may("provider", Kind::Object, "Publish the provider as an object."),
        may("auth", Kind::Object, "Publish authentication as an object."),
        may("rateLimit", Kind::Object, "Publish the limit as an object."),
        may("workflows", Kind::List, "List workflows in an array."),
        may("schemas", Kind::Object, "Publish schemas as an object of named schemas."),
        may("policies", Kind::Object, "Publish policies as an object."),
    }
    shape PROVIDER("atp.provider", "ATP 0.1 §3.2") {
        must("name", Kind::Text, "Name the provider."),
        must("url", Kind::Url, "Give the provider's absolute URL."),
        may("contact", Kind::Form(is_email, "an e-mail address"), "Give an e-mail address."),
        may("logo", Kind::Url, "Give the logo's absolute URL."),
    }
    shape AUTH("atp.auth", "ATP 0.1 §3.3") {
        may("schemes", Kind::List, "List the schemes in an array."),
        may("agentIdentity", Kind::Object, "Publish the identity requirement as an object."),
    }
    shape SCHEME("atp.auth.scheme", "ATP 0.1 §3.3") {
        must("type", Kind::OneOf(&["oauth2", "apiKey", "bearer", "delegated"]), "Name one of the four types."),
    }
    shape OAUTH("atp.auth.scheme", "ATP 0.1 §3.3.1") {
        should("flows", Kind::Object, "Publish `flows` as an object with an authorizationCode flow."),
    }
    shape CODE_FLOW("atp.auth.authorization_code", "ATP 0.1 §3.3.1") {
        must("authorizationUrl", Kind::Url, "Give the absolute URL of the authorization endpoint."),
        must("tokenUrl", Kind::Url, "Give the absolute URL of the token endpoint."),
        may("refreshUrl", Kind::Url, "Give the absolute URL of the refresh endpoint."),
        may("scopes", Kind::Object, "Publish scopes as an object from name to description."),
    }
    shape CREDENTIALS_FLOW("atp.auth.client_credentials", "ATP 0.1 §3.3.1") {
        must("tokenUrl", Kind::Url, "Give the absolute URL of the token endpoint."),
        may("scopes", Kind::Object, "Publish scopes as an object from name to description."),
    }
    shape API_KEY("atp.auth.api_key", "ATP 0.1 §3.3.2") {
        should("in", Kind::OneOf(&["header", "query", "cookie"]), "State header, query or cookie."),
        should("name", Kind::Text, "Name the header, parameter or cookie."),
        may("registration", Kind::Url, "Give the absolute URL where keys are issued."),
    }
    shape IDENTITY("atp.auth.agent_identity", "ATP 0.1 §3.3.3") {
        may("required", Kind::Bool, "Publish true or false."),
        may("format", Kind::OneOf(&["did:web", "did:key", "custom"]), "Name one of the three formats."),
    }
    shape RATE("atp.rate_limit", "ATP 0.1 §3.4") {
        should("requests", Kind::Integer, "Give the number of requests in a window."),
        should("window", Kind::Form(is_duration, "a duration such as 1h"), "Write a number and a unit, such as \"1h\"."),
        may("burstLimit", Kind::Integer, "Give a whole number."),
        may("tierUrl", Kind::Reference, "Give a URL."),
    }
    shape CAPABILITY("atp.capability", "ATP 0.1 §3.5") {
        must("id", Kind::Text, "Give every capability a unique id."),
        must("name", Kind::Text, "Name the capability for people."),
        must("description", Kind::Text, "Describe the capability in plain language."),
        must("endpoint", Kind::UriReference, "Give the path or the absolute URL."),
        must("method", Kind::OneOf(METHODS), "Name the HTTP method in capital letters."),
        may("semanticType", Kind::Form(is_typed, "namespace:type"), "Write namespace, colon, type."),
        may("parameters", Kind::List, "List the parameters in an array."),
        may("response", Kind::Object, "Publish the response as a JSON Schema."),
        may("requiredScopes", Kind::Texts, "List the scopes as strings."),
        may("sideEffects", Kind::Bool, "Publish true or false."),
        may("confirmation", Kind::Object, "Publish the confirmation as an object."),
        may("deprecated", Kind::Bool, "Publish true or false."),
        may("deprecationMessage", Kind::Text, "Give the message as a string."),
    }
    shape PARAMETER("atp.parameter", "ATP 0.1 §3.5.1") {
        must("name", Kind::Text, "Name the parameter."),
        must("type", Kind::OneOf(&["string", "number", "integer", "boolean", "array", "object"]), "Name one of the six types."),
        should("description", Kind::Text, "Describe the parameter."),
        may("required", Kind::Bool, "Publish true or false."),
        may("enum", Kind::List, "List the values in an array."),
        may("format", Kind::Text, "Name the format as a string."),
        may("minimum", Kind::Number, "Give a number."),
        may("maximum", Kind::Number, "Give a number."),
        may("pattern", Kind::Form(pattern::is_valid, "a regular expression"), "Give a regular expression of ECMA-262."),
    }
    shape CONFIRMATION("atp.confirmation", "ATP 0.1 §3.5.3") {
        should("required", Kind::Bool, "Publish true or false."),
        may("message", Kind::Text, "Give the message as a string."),
    }
    shape WORKFLOW("atp.workflow", "ATP 0.1 §3.6") {
        must("id", Kind::Text, "Give every workflow an id."),
        must("name", Kind::Text, "Name the workflow."),
        must("description", Kind::Text, "Describe the workflow."),
        should("steps", Kind::Texts, "List the ids of the capabilities in order."),
        may("conditional", Kind::Object, "Publish branches as an object from step id to branch."),
    }
    shape BRANCH("atp.workflow.branch", "ATP 0.1 §3.6") {
        should("condition", Kind::Text, "State in `condition` what the branch depends on."),
        should("onTrue", Kind::Text, "Name the step that follows."),
        may("onFalse", Kind::Form(|text| !text.trim().is_empty(), "the id of a step"), "Name the other step."),
    }
    shape POLICIES("atp.policies", "ATP 0.1 §3.8") {
        may("training", Kind::OneOf(&["allow", "deny", "conditional"]), "State allow, deny or conditional."),
        may("inference", Kind::OneOf(&["allow", "deny", "conditional"]), "State allow, deny or conditional."),
        may("caching", Kind::Object, "Publish caching as an object."),
        may("attribution", Kind::OneOf(&["required", "preferred", "none"]), "State required, preferred or none."),
        may("termsUrl", Kind::Reference, "Give a URL."),
        may("privacyUrl", Kind::Reference, "Give a URL."),
    }
    shape CACHING("atp.policies.caching", "ATP 0.1 §3.8") {
        should("allowed", Kind::Bool, "Publish true or false."),
        may("maxAge", Kind::Integer, "Give a number of seconds."),
    }
    // Stricter requirements of the published JSON Schema.
    shape SCHEMA_ROOT("atp_schema", "ATP 0.1 schema.json") {
        must("@context", Kind::OneOf(&["https://atp.dev/schema/v1"]), "Declare the context of version 1."),
        must("@type", Kind::OneOf(&["AgentManifest"]), "Declare the type AgentManifest."),
        may("name", Kind::Form(|text| text.chars().count() <= 200, "at most 200 characters"), "Shorten the name."),
        may("description", Kind::Form(|text| text.chars().count() <= 2_000, "at most 2,000 characters"), "Shorten the description."),
        must("capabilities", Kind::List, "List what agents can do."),
    }
    shape SCHEMA_RATE("atp_schema.rate_limit", "ATP 0.1 schema.json") {
        may("window", Kind::Form(is_window, "digits and one of s, m, h, d"), "Write digits and one of s, m, h, d."),
        may("tierUrl", Kind::Url, "Give an absolute URL."),
    }
    shape SCHEMA_CAPABILITY("atp_schema.capability", "ATP 0.1 schema.json") {
        may("id", Kind::Form(is_kebab, "lowercase letters, digits and hyphens"), "Use lowercase letters, digits and hyphens."),
        may("method", Kind::OneOf(&["GET", "POST", "PUT", "PATCH", "DELETE"]), "Use one of the five methods."),
        may("semanticType", Kind::Form(is_strictly_typed, "one lowercase word, a colon, a kebab-case type"), "Write it like commerce:product-search."),
    }
    rule CAPABILITY_MISTYPED: Must("atp.capability.mistyped", "ATP 0.1 §3.5")
        "a capability is not an object" => "Describe each capability as an object.";
    rule ID_DUPLICATE: Must("atp.capability.id.duplicate", "ATP 0.1 §3.5")
        "two capabilities have the same id" => "Give every capability a unique id.";
    rule SIDE_EFFECTS: Must("atp.capability.side_effects.undeclared", "ATP 0.1 §3.5.3")
        "the method changes state and `sideEffects` is not declared" => "Declare \"sideEffects\": true.";
    rule SIDE_EFFECTS_CONTRADICTED: Must("atp.capability.side_effects.contradicted", "ATP 0.1 §3.5.3")
        "`sideEffects` is false where the method or the name says that state changes" => "Declare \"sideEffects\": true.";
    rule ENDPOINT_INSECURE: Must("atp.capability.endpoint.insecure", "ATP 0.1 §5.1")
        "`endpoint` is not https" => "Serve the endpoint over https and publish its https address.";
    rule TYPE_MISSPELT: Should("atp.capability.semantic_type.misspelt", "ATP 0.1 §3.5.2")
        "`semanticType` is one letter away from a standard type" => "Correct the spelling, or use a namespace of your own.";
    rule ENDPOINT_VARIABLE: May("atp.capability.endpoint.variable", "ATP 0.1 §3.5.1")
        "a variable in `endpoint` has no parameter, so agents do not know its value"
            => "Declare a parameter with the name of the variable.";
    rule DEPRECATION_UNSTATED: May("atp.capability.deprecated.unstated", "ATP 0.1 §3.5")
        "a `deprecationMessage` is given and `deprecated` is not true" => "Declare \"deprecated\": true, or remove the message.";
    rule SIDE_EFFECTS_UNSTATED: May("atp.capability.side_effects.unstated", "ATP 0.1 §3.5.3")
        "a POST does not say in `sideEffects` whether it changes state" => "Declare `sideEffects` as true or false.";
    rule CONFIRMATION_UNDECLARED: Should("atp.capability.confirmation.undeclared", "ATP 0.1 §3.5.3")
        "an irreversible or costly capability requires no confirmation"
            => "Declare `confirmation` with \"required\": true and a message.";
    rule MESSAGE_MISSING: Should("atp.confirmation.message.missing", "ATP 0.1 §3.5.3")
        "a confirmation is required, but has no message" => "State in `message` what the person agrees to.";
    rule PARAMETER_MISTYPED: Must("atp.parameter.mistyped", "ATP 0.1 §3.5.1")
        "a parameter is not an object" => "Describe each parameter as an object.";
    rule PARAMETER_DUPLICATE: Should("atp.parameter.name.duplicate", "ATP 0.1 §3.5.1")
        "two parameters of a capability have the same name" => "Give every parameter a unique name.";
    rule PARAMETER_RANGE: Should("atp.parameter.range.empty", "ATP 0.1 §3.5.1")
        "`minimum` is above `maximum`" => "Set `minimum` to the smaller number.";
    rule PARAMETER_RANGE_UNUSED: May("atp.parameter.range.unused", "ATP 0.1 §3.5.1")
        "`minimum` or `maximum` limits a parameter that is not a number" => "Declare the type number or integer, or remove the limit.";
    rule PARAMETER_ENUM: Should("atp.parameter.enum.contradicted", "ATP 0.1 §3.5.1")
        "`enum` is empty or lists a value of another type" => "List values of the parameter's type.";
    rule PARAMETER_DEFAULT: Should("atp.parameter.default.contradicted", "ATP 0.1 §3.5.1")
        "`default` is a value that the parameter does not allow" => "Give a default that type, enum, minimum, maximum and pattern allow.";
    rule RESPONSE: Should("atp.response.schema", "ATP 0.1 §3.5")
        "the response is not a valid JSON Schema" => "Publish a schema of JSON Schema 2020-12.";
    rule SCHEMA: Should("atp.schemas.invalid", "ATP 0.1 §3.7")
        "an entry of `schemas` is not a valid JSON Schema" => "Publish a schema of JSON Schema 2020-12.";
    rule SCHEMA_REFERENCE: Should("atp.schemas.reference.unresolved", "ATP 0.1 §3.7")
        "a `$ref` in `schemas` has no target in this document" => "Declare the schema in `schemas`, or correct the reference.";
    rule REFERENCE: Should("atp.response.reference.unresolved", "ATP 0.1 §3.7")
        "a `$ref` has no target in this document" => "Declare the schema in `schemas`, or correct the reference.";
    rule SCOPE_UNKNOWN: Should("atp.capability.required_scopes.unknown", "ATP 0.1 §5.3")
        "a required scope is declared by no scheme" => "Declare the scope in the scheme's flow, or correct its name.";
    rule AUTH_UNDECLARED: Should("atp.capability.required_scopes.without_auth", "ATP 0.1 §3.3")
        "scopes are required and no scheme is declared" => "Declare in `auth.schemes` how agents authenticate.";
    rule SCHEME_MISTYPED: Must("atp.auth.scheme.mistyped", "ATP 0.1 §3.3")
        "a scheme is not an object" => "Describe each scheme as an object with a type.";
    rule FLOW_UNKNOWN: Should("atp.auth.flow.unknown", "ATP 0.1 §3.3.1")
        "a flow of OAuth is neither authorizationCode nor clientCredentials" => "Use one of the two flows.";
    rule FLOW_INSECURE: Must("atp.auth.flow.insecure", "ATP 0.1 §5.1")
        "an address of the authorization server is not https" => "Publish the https address.";
    rule FLOW_MISTYPED: Should("atp.auth.flow.mistyped", "ATP 0.1 §3.3.1")
        "a flow of OAuth is not an object" => "Describe the flow as an object with its URLs.";
    rule SCOPE_MISTYPED: Should("atp.auth.scope.mistyped", "ATP 0.1 §3.3.1")
        "a scope has no description in words" => "Describe the scope as a string.";
    rule IDENTITY_FORMAT: May("atp.auth.agent_identity.format.other", "ATP 0.1 §3.3.3")
        "an identity is required in another format than the recommended did:web" => "Accept did:web, if you can.";
    rule RATE_ZERO: Should("atp.rate_limit.zero", "ATP 0.1 §3.4")
        "a limit or a window is zero" => "State the number of allowed requests and the length of the window.";
    rule CACHING_CONTRADICTED: May("atp.policies.caching.contradicted", "ATP 0.1 §3.8")
        "caching is not allowed and has a maximum age" => "Remove `maxAge`, or allow caching.";
    rule CODE_FLOW_MISSING: Should("atp.auth.authorization_code.missing", "ATP 0.1 §3.3.1")
        "OAuth is offered without the authorizationCode flow"
            => "Support the authorizationCode flow, so that people can delegate access.";
    rule TERMS_MISSING: Should("atp.policies.terms_url.missing", "ATP 0.1 §3.8")
        "a policy is conditional, but `termsUrl` is missing" => "State the URL of the terms with the conditions.";
    rule WORKFLOW_MISTYPED: Must("atp.workflow.mistyped", "ATP 0.1 §3.6")
        "a workflow is not an object" => "Describe each workflow as an object.";
    rule WORKFLOW_DUPLICATE: Should("atp.workflow.id.duplicate", "ATP 0.1 §3.6")
        "two workflows have the same id" => "Give every workflow a unique id.";
    rule BRANCH_MISTYPED: Should("atp.workflow.branch.mistyped", "ATP 0.1 §3.6")
        "a branch is not an object" => "Describe the branch as an object with `condition`, `onTrue` and `onFalse`.";
    rule BRANCH_UNKNOWN: Should("atp.workflow.branch.unknown", "ATP 0.1 §3.6")
        "a branch refers to neither a step nor a capability" => "Correct the id of the step.";
    rule STEPS_EMPTY: Should("atp.workflow.steps.empty", "ATP 0.1 §3.6")
        "a workflow has no steps" => "List the ids of the capabilities in order.";
    rule STEP_UNKNOWN: Should("atp.workflow.step.unknown", "ATP 0.1 §3.6")
        "a step does not name a declared capability" => "Declare the capability, or correct the id.";
    rule CONDITION_UNKNOWN: May("atp.workflow.conditional.unknown", "ATP 0.1 §3.6")
        "a branch belongs to no step of its workflow" => "Correct the id of the step.";
    rule SIZE: May("atp.size", "ATP 0.1 §6.1")
        "the manifest is longer than 50 KB" => "Keep the manifest short enough to be read whole.";
    rule SCHEMA_EMPTY: Must("atp_schema.capabilities.empty", "ATP 0.1 schema.json")
        "`capabilities` is empty" => "List at least one capability.";
}

const METHODS: &[&str] = &["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"];

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

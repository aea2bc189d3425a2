//! Requirements of AWP.

use crate::check::is_major_minor;
use crate::rule::{Kind, findings, may, must, should};

findings! {
    // Required members of the root (§5) and the types of the optional ones.
    shape ROOT("awp", "AWP 0.1 §5") {
        must("awp_version", Kind::Form(is_major_minor, "MAJOR.MINOR"), "Declare the version as a string, such as \"0.1\"."),
        must("domain", Kind::Form(is_domain, "a domain such as shop.example"), "Name the domain that this file applies to, without scheme and path."),
        must("intent", Kind::Text, "Describe the purpose of the site in plain language."),
        must("actions", Kind::List, "List the actions that agents may take."),
        may("capabilities", Kind::Object, "Publish feature flags as an object."),
        may("auth", Kind::Object, "Publish the authentication contract as an object."),
        may("entities", Kind::Object, "Publish data models as an object of named entities."),
        should("errors", Kind::Object, "Declare a recovery for every failure that agents must expect."),
        may("dependencies", Kind::Object, "Publish prerequisites as an object from action id to a list of ids."),
        may("agent_hints", Kind::Object, "Publish hints as an object."),
        may("agent_status", Kind::Object, "Publish the status as an object."),
        may("protocols", Kind::Object, "Publish protocols as an object of named protocols (AWP 0.2)."),
    }
    shape FEATURES("awp.capabilities", "AWP 0.1 §6") {
        may("streaming", Kind::Bool, "Publish true or false."),
        may("batch_actions", Kind::Bool, "Publish true or false."),
        may("webhooks", Kind::Bool, "Publish true or false."),
        may("pagination", Kind::OneOf(&["cursor", "offset", "page", "none"]), "Name one of the four styles."),
        may("idempotency", Kind::Bool, "Publish true or false."),
    }
    shape AUTH("awp.auth", "AWP 0.1 §7") {
        may("required_for", Kind::Texts, "List the ids of the actions that need authentication."),
        may("optional_for", Kind::Texts, "List the ids of the actions that may use authentication."),
        may("type", Kind::OneOf(&["oauth2", "api_key", "bearer", "none"]), "Name one of the four types."),
        may("token_expiry", Kind::Text, "State the lifetime in a string, such as \"24h\"."),
        may("refresh_endpoint", Kind::Reference, "Publish a path or an absolute URL."),
    }
    shape ENTITY("awp.entity", "AWP 0.1 §8") {
        must("fields", Kind::Object, "List the entity's fields as an object from name to type."),
    }
    // The members of every action. The members of its call are in [`CALL`] or [`VIA`].
    shape ACTION("awp.action", "AWP 0.1 §9") {
        must("id", Kind::Text, "Give every action a unique id."),
        must("description", Kind::Text, "Describe in plain language what the action does."),
        must("auth_required", Kind::Bool, "State whether the action needs authentication: true or false."),
        must("inputs", Kind::Object, "Describe the inputs as an object; an empty one when there are none."),
        must("outputs", Kind::Object, "Describe the outputs as an object; an empty one when there are none."),
        may("rate_limit", Kind::Text, "State the rate in a string, such as \"30/minute\"."),
        may("idempotency", Kind::Object, "Publish the idempotency contract as an object."),
        may("execution_model", Kind::OneOf(&["sync", "async"]), "State sync or async."),
        may("poll_endpoint", Kind::Reference, "Publish a path or an absolute URL."),
        may("sensitivity", Kind::OneOf(&["standard", "destructive", "irreversible"]), "Name one of the three classes."),
        may("requires_human_confirmation", Kind::Bool, "Publish true or false."),
        may("reversible", Kind::Bool, "Publish true or false."),
    }
    // How an action is called over HTTP.
    shape CALL("awp.action", "AWP 0.1 §9") {
        must("endpoint", Kind::Reference, "Publish the path or the absolute URL of the endpoint."),
        must("method", Kind::OneOf(METHODS), "Name the HTTP method in capital letters."),
    }
    // How an action is called through a protocol.
    shape VIA("awp.action", "AWP 0.2 §9") {
        may("via", Kind::Text, "Name a member of `protocols`."),
        should("operation", Kind::Text, "Name the operation or tool of the protocol."),
    }
    shape INPUT("awp.input", "AWP 0.1 §9") {
        must("type", Kind::Text, "Name the input's type."),
        may("required", Kind::Bool, "Publish true or false."),
        may("options", Kind::List, "List the values that are allowed."),
        may("description", Kind::Text, "Describe the input in words."),
    }
    shape IDEMPOTENCY("awp.idempotency", "AWP 0.1 §9") {
        may("supported", Kind::Bool, "Publish true or false."),
        may("key_field", Kind::Text, "Name the input that carries the key."),
        may("window", Kind::Text, "State the window in a string, such as \"24h\"."),
    }
    shape ERROR("awp.error", "AWP 0.1 §10") {
        must("recovery", Kind::Text, "Describe what to do in a form that a program can follow."),
    }
    shape STATUS("awp.agent_status", "AWP 0.1 §13") {
        may("operational", Kind::Bool, "Publish true or false."),
        may("degraded_actions", Kind::Texts, "List the ids of the actions that are impaired."),
        may("status_endpoint", Kind::Reference, "Publish a path or an absolute URL."),
    }
    // Checked only where `source` says synthetic.
    shape SYNTHETIC("awp.synthetic", "AWP 0.1 §14") {
        must("generated_by", Kind::Text, "Name the generator."),
        must("confidence", Kind::Number, "State a confidence between 0 and 1."),
        must("last_verified", Kind::Form(is_date, "an ISO 8601 date or time"), "State when the declaration was last verified."),
    }
    shape PROTOCOL("awp.protocol", "AWP 0.2 §5") {
        must("version", Kind::Text, "Declare the version of the protocol."),
        may("endpoint", Kind::Reference, "Publish a path or an absolute URL."),
    }
    rule MAJOR: Note("awp.awp_version.unknown_major", "AWP 0.1 §4")
        "the major version is newer than the known ones; the document is read as far as possible"
            => "No change is needed if the newer version is intended.";
    rule ACTION_MISTYPED: Must("awp.action.mistyped", "AWP 0.1 §9")
        "an action is not an object" => "Describe each action as an object.";
    rule ENTITY_MISTYPED: Should("awp.entity.mistyped", "AWP 0.1 §8")
        "an entity is not an object" => "Write {\"fields\": {…}}.";
    rule FIELD_MISTYPED: Should("awp.entity.field.mistyped", "AWP 0.1 §8")
        "a field of an entity has no type" => "Write the name of a type, such as \"string\" or \"array[flight]\".";
    rule OUTPUT_MISTYPED: Must("awp.output.mistyped", "AWP 0.1 §9")
        "an output has no type" => "Write the name of a type, such as \"string\" or \"array[flight]\".";
    rule TYPE_MALFORMED: Should("awp.type.malformed", "AWP 0.1 §8")
        "a type is not written as the specification defines it" => "Write array[type], object[entity] or enum[a, b].";
    rule TYPES_CUT: Should("awp.type.too_many", "agentdex limits")
        "the earlier types use all memory for schemas, so this one is omitted"
            => "Declare fewer fields, or shorter types.";
    rule OPTION_MISTYPED: Should("awp.input.option.mistyped", "AWP 0.1 §9")
        "one of the options has another type than the input" => "List values of the input's type.";
    rule DEFAULT_UNLISTED: Should("awp.input.default.unlisted", "AWP 0.1 §9")
        "the default is not among the options" => "Choose the default from the options.";
    rule DEFAULT_MISTYPED: Should("awp.input.default.mistyped", "AWP 0.1 §9")
        "the default has another type than the input" => "Write a default of the input's type.";
    rule ID_DUPLICATE: Must("awp.action.id.duplicate", "AWP 0.1 §9")
        "two actions have the same id" => "Give every action a unique id.";
    rule NO_ACTIONS: Note("awp.actions.empty", "AWP 0.1 §9")
        "no action is declared" => "Declare what agents can do.";
    rule VIA_UNKNOWN: Must("awp.action.via.unknown", "AWP 0.2 §9")
        "`via` names no member of `protocols`" => "Declare the protocol in `protocols`, or correct the name.";
    rule METHOD_UNLISTED: May("awp.action.method.unlisted", "AWP 0.1 §9")
        "the method is not among GET, POST, PUT, DELETE and PATCH" => "Use one of the five methods that the specification lists.";
    rule INPUT_MISTYPED: Must("awp.input.mistyped", "AWP 0.1 §9")
        "an input is not an object with a type" => "Describe the input as an object: {\"type\": …, \"required\": …}.";
    rule OPTIONS_MISSING: Should("awp.input.options.missing", "AWP 0.1 §9")
        "an input of type enum lists no options" => "List the values in `options`.";
    rule ENTITY_UNKNOWN: Should("awp.type.entity_unknown", "AWP 0.1 §8")
        "a type refers to an entity that is not declared" => "Declare the entity in `entities`, or correct its name.";
    rule SENSITIVITY_UNDECLARED: Should("awp.action.sensitivity.undeclared", "AWP 0.1 §15")
        "an action with consequences declares no sensitivity" => "Declare `sensitivity` as destructive or irreversible.";
    rule REVERSIBLE_CONTRADICTED: Should("awp.action.reversible.contradicted", "AWP 0.1 §9")
        "`reversible` is true and `sensitivity` is irreversible" => "Make the two values consistent.";
    rule STANDARD_CONTRADICTED: Should("awp.action.sensitivity.contradicted", "AWP 0.1 §9")
        "`sensitivity` is standard and `reversible` is false" => "Declare `sensitivity` as destructive or irreversible.";
    rule CONFIRMATION_CONTRADICTED: Should("awp.action.requires_human_confirmation.contradicted", "AWP 0.1 §9")
        "`requires_human_confirmation` is false and `sensitivity` is irreversible, which agents have to confirm" => "Make the two values consistent.";
    rule AUTH_TYPE_MISSING: May("awp.auth.type.missing", "AWP 0.1 §7")
        "actions need authentication, and no member states which" => "Declare the `type` of authentication in `auth`.";
    rule ENDPOINT_VARIABLE: May("awp.action.endpoint.variable", "AWP 0.1 §9")
        "a variable of the endpoint is no input" => "Describe the variable in `inputs`, or replace it by its value.";
    rule EXPIRY_UNREADABLE: May("awp.auth.token_expiry.unreadable", "AWP 0.1 §7")
        "programs cannot read the lifetime of a token" => "Write a number and a unit, such as \"24h\", or \"never\".";
    rule WINDOW_UNREADABLE: May("awp.idempotency.window.unreadable", "AWP 0.1 §9")
        "programs cannot read how long a key is remembered" => "Write a number and a unit, such as \"24h\".";
    rule RATE_UNREADABLE: May("awp.action.rate_limit.unreadable", "AWP 0.1 §9")
        "programs cannot read how many calls are allowed" => "Write the rate as number/unit, such as \"30/minute\".";
    rule AUTH_OPTIONAL: Should("awp.auth.optional_for.contradicted", "AWP 0.1 §7")
        "`auth.optional_for` lists an action that requires authentication" => "List the action in `required_for` alone.";
    rule AUTH_NONE: Should("awp.auth.type.contradicted", "AWP 0.1 §7")
        "`type` is none and actions require authentication" => "Name the type of authentication, or remove the requirement.";
    rule IDEMPOTENCY_CONTRADICTED: Should("awp.idempotency.supported.contradicted", "AWP 0.1 §6")
        "the action supports idempotency keys and `capabilities.idempotency` is false" => "Make the two values consistent.";
    rule POLL_UNUSED: May("awp.action.poll_endpoint.unused", "AWP 0.1 §9")
        "a synchronous action names a `poll_endpoint`" => "Remove it, or declare \"execution_model\": \"async\".";
    rule ERROR_NOT_ACTIONABLE: Must("awp.error.recovery.not_actionable", "AWP 0.1 §10")
        "programs cannot act on the recovery"
            => "Name the endpoint to call, the action to repeat, or the time to wait.";
    rule AUTH_CONTRADICTED: Should("awp.action.auth_required.contradicted", "AWP 0.1 §7")
        "`auth_required` is false and `auth.required_for` lists the action" => "Make the two values consistent.";
    rule POLL_MISSING: Should("awp.action.poll_endpoint.missing", "AWP 0.1 §9")
        "an asynchronous action names no `poll_endpoint`" => "Name the endpoint where the job's status can be queried.";
    rule KEY_FIELD_MISSING: May("awp.idempotency.key_field.missing", "AWP 0.1 §9")
        "idempotency is supported, but no field is named" => "Name the input that carries the key in `key_field`.";
    rule NO_ERRORS: May("awp.errors.empty", "AWP 0.1 §10")
        "no failure has a recovery" => "Declare a recovery for every failure that agents must expect.";
    rule ERROR_MISTYPED: Must("awp.error.mistyped", "AWP 0.1 §10")
        "an error contract is not an object" => "Write {\"recovery\": \"…\"}.";
    rule ERROR_VAGUE: May("awp.error.recovery.vague", "AWP 0.1 §10")
        "the recovery names no endpoint and no action"
            => "Refer to the endpoint or action that helps, so that a machine can follow.";
    rule AUTH_UNKNOWN_ID: May("awp.auth.unknown_action", "AWP 0.1 §7")
        "the authentication contract names an action that does not exist" => "Declare the action, or correct the id.";
    rule STATUS_UNKNOWN_ID: May("awp.agent_status.unknown_action", "AWP 0.1 §13")
        "the status names an action that does not exist" => "Declare the action, or correct the id.";
    rule DEPENDENCY_MISTYPED: Should("awp.dependencies.mistyped", "AWP 0.1 §11")
        "the prerequisites of an action are not a list of ids" => "List the ids of the actions that have to come first.";
    rule DEPENDENCY_UNKNOWN: May("awp.dependencies.unknown_action", "AWP 0.1 §11")
        "the dependency graph names an action that does not exist" => "Declare the action, or correct the id.";
    rule DEPENDENCY_CIRCLE: Should("awp.dependencies.circle", "AWP 0.1 §11")
        "an action is its own prerequisite" => "Break the cycle: no agent could begin.";
    rule SYNTHETIC_UNMARKED: Must("awp.synthetic.unmarked", "AWP 0.1 §14")
        "a generated declaration does not state the `source` synthetic" => "Declare \"source\": \"synthetic\".";
    rule CONFIDENCE: Should("awp.synthetic.confidence.out_of_range", "AWP 0.1 §14")
        "the confidence is not between 0 and 1" => "State a number between 0 and 1.";
}

/// The findings that the protocol's own validator would report as errors.
pub(super) const VALIDATED: &[&str] = &[
    "awp.awp_version.missing",
    "awp.awp_version.mistyped",
    "awp.domain.missing",
    "awp.domain.mistyped",
    "awp.intent.missing",
    "awp.intent.mistyped",
    "awp.actions.missing",
    "awp.actions.mistyped",
    "awp.action.mistyped",
    "awp.action.id.missing",
    "awp.action.id.mistyped",
    "awp.action.id.duplicate",
    "awp.action.endpoint.missing",
    "awp.action.endpoint.mistyped",
    "awp.action.method.missing",
    "awp.action.method.mistyped",
    "awp.action.method.invalid",
    "awp.action.via.unknown",
];

const METHODS: &[&str] = &["GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS"];

/// An RFC 3339 time or a calendar date.
fn is_date(text: &str) -> bool {
    chrono::DateTime::parse_from_rfc3339(text).is_ok()
        || chrono::NaiveDate::parse_from_str(text, "%Y-%m-%d").is_ok()
}

/// A host with an optional port.
fn is_domain(text: &str) -> bool {
    !text.contains(['/', '@', '?', '#'])
        && crate::name::parse_url(&format!("https://{text}/")).is_ok_and(|url| url.has_host())
}

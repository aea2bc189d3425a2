//! What ARWS demands, as tables. The page that defines it uses few words of obligation: what it shows as a manifest's
//! three parts is taken as MUST where agents cannot do without, as SHOULD elsewhere.

use crate::model::Severity;
use crate::rule::{Kind, Rule, Shape, may, must, rule, should};

pub(super) const SHAPES: &[&Shape] = &[&ROOT, &AUTH];

pub(super) const RULES: &[&Rule] = &[
    &TOOLS_MISSING,
    &TOOLS_UNUSABLE,
    &TOOLS_UNREADABLE,
    &TOOLS_UNKNOWN,
    &TOOLS_OLD,
    &TOOLS_EMPTY,
    &PARAMETER_UNDESCRIBED,
    &PARAMETER_TERSE,
    &OPERATION_UNDESCRIBED,
    &WRITE_NOT_IDEMPOTENT,
    &WRITE_WITHOUT_AUTH,
    &DESTRUCTIVE_WITHOUT_APPROVAL,
];

pub(super) const ROOT: Shape = Shape {
    code: "arws",
    spec: "ARWS layer 1",
    fields: &[
        must("name", Kind::Text, "Name the application."),
        must("description", Kind::Text, "Say what the application does."),
        should("auth", Kind::Object, "Say how agents authenticate: type, token_url and scopes."),
    ],
};

pub(super) const AUTH: Shape = Shape {
    code: "arws.auth",
    spec: "ARWS layer 1",
    fields: &[
        must("type", Kind::Text, "Name the scheme, such as oauth2."),
        may("token_url", Kind::Reference, "Publish the address where tokens are issued."),
        may("scopes", Kind::Texts, "List the scopes that agents may ask for."),
    ],
};

pub(super) const TOOLS_MISSING: Rule = rule(
    "arws.tools.missing",
    Severity::Must,
    "ARWS layer 1",
    "the manifest does not say where the tool definitions are",
    "Publish the address of an OpenAPI 3.1 document as `tools`.",
);
pub(super) const TOOLS_UNUSABLE: Rule = rule(
    "arws.tools.unusable",
    Severity::Must,
    "ARWS layer 1",
    "`tools` is not an https address",
    "Publish an https address, or a path on this origin.",
);
pub(super) const TOOLS_UNREADABLE: Rule = rule(
    "arws.tools.unreadable",
    Severity::Must,
    "ARWS layer 2",
    "the document that `tools` names is neither JSON nor YAML",
    "Serve an OpenAPI 3.1 document at that address.",
);
pub(super) const TOOLS_UNKNOWN: Rule = rule(
    "arws.tools.unknown",
    Severity::Must,
    "ARWS layer 2",
    "the document that `tools` names is neither an OpenAPI document nor a list of tools with JSON Schemas",
    "Serve an OpenAPI 3.1 document at that address.",
);
pub(super) const TOOLS_OLD: Rule = rule(
    "arws.tools.version",
    Severity::Should,
    "ARWS layer 2",
    "the tool definitions are written in an OpenAPI version before 3.1",
    "Move to OpenAPI 3.1, whose schemas are JSON Schema.",
);
pub(super) const TOOLS_EMPTY: Rule = rule(
    "arws.tools.empty",
    Severity::Should,
    "ARWS layer 2",
    "the tool definitions hold no operation",
    "Describe the operations that agents may call.",
);
pub(super) const OPERATION_UNDESCRIBED: Rule = rule(
    "arws.tool.description.missing",
    Severity::Should,
    "ARWS layer 2",
    "a tool has no description",
    "Say in a sentence what the tool does and when to use it.",
);
pub(super) const PARAMETER_UNDESCRIBED: Rule = rule(
    "arws.tool.parameter.undescribed",
    Severity::Should,
    "ARWS layer 2",
    "a parameter has no description",
    "Say what the parameter means; list allowed values as an enum.",
);
pub(super) const PARAMETER_TERSE: Rule = rule(
    "arws.tool.parameter.terse",
    Severity::May,
    "ARWS layer 2",
    "a parameter's name is a single letter",
    "Use a name that says what is meant, such as search_query for q.",
);
pub(super) const WRITE_NOT_IDEMPOTENT: Rule = rule(
    "arws.tool.idempotency",
    Severity::Should,
    "ARWS layer 4",
    "a tool that changes state takes no idempotency key",
    "Accept an idempotency key, so that a repeated request does no harm.",
);
pub(super) const WRITE_WITHOUT_AUTH: Rule = rule(
    "arws.tool.auth.missing",
    Severity::Should,
    "ARWS layer 4",
    "a tool that changes state asks for no authentication",
    "Require an agent-scoped OAuth token for every tool that changes state.",
);
pub(super) const DESTRUCTIVE_WITHOUT_APPROVAL: Rule = rule(
    "arws.tool.approval.missing",
    Severity::Should,
    "ARWS layer 4",
    "a destructive tool does not announce an approval by a person",
    "Answer 202 Accepted and let a person approve, and declare that response.",
);

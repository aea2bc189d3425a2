//! Requirements of ARWS. Its definition uses few words of obligation: parts that agents cannot do without are MUST, others
//! SHOULD.

use crate::rule::{Kind, findings, may, must, should};

findings! {
    shape ROOT("arws", "ARWS layer 1") {
        must("name", Kind::Text, "Name the application."),
        must("description", Kind::Text, "Say what the application does."),
        should("auth", Kind::Object, "Say how agents authenticate: type, token_url and scopes."),
    }
    shape AUTH("arws.auth", "ARWS layer 1") {
        must("type", Kind::Text, "Name the scheme, such as oauth2."),
        may("token_url", Kind::Reference, "Publish the address where tokens are issued."),
        may("scopes", Kind::Texts, "List the scopes that agents may ask for."),
    }
    rule TOOLS_MISSING: Must("arws.tools.missing", "ARWS layer 1")
        "the manifest does not say where the tool definitions are"
            => "Publish the address of an OpenAPI 3.1 document as `tools`.";
    rule TOOLS_UNUSABLE: Must("arws.tools.unusable", "ARWS layer 1")
        "`tools` is not an https address" => "Publish an https address, or a path on this origin.";
    rule TOOLS_UNREADABLE: Must("arws.tools.unreadable", "ARWS layer 2")
        "the document that `tools` names is neither JSON nor YAML" => "Serve an OpenAPI 3.1 document at that address.";
    rule TOOLS_UNKNOWN: Must("arws.tools.unknown", "ARWS layer 2")
        "the document that `tools` names is neither an OpenAPI document nor a list of tools with JSON Schemas"
            => "Serve an OpenAPI 3.1 document at that address.";
    rule TOOLS_OLD: Should("arws.tools.version", "ARWS layer 2")
        "the tool definitions are written in an OpenAPI version before 3.1"
            => "Move to OpenAPI 3.1, whose schemas are JSON Schema.";
    rule TOOLS_EMPTY: Should("arws.tools.empty", "ARWS layer 2")
        "the tool definitions hold no operation" => "Describe the operations that agents may call.";
    rule PARAMETER_UNDESCRIBED: Should("arws.tool.parameter.undescribed", "ARWS layer 2")
        "a parameter has no description" => "Say what the parameter means; list allowed values as an enum.";
    rule PARAMETER_TERSE: May("arws.tool.parameter.terse", "ARWS layer 2")
        "a parameter's name is a single letter" => "Use a name that says what is meant, such as search_query for q.";
    rule OPERATION_UNDESCRIBED: Should("arws.tool.description.missing", "ARWS layer 2")
        "a tool has no description" => "Say in a sentence what the tool does and when to use it.";
    rule WRITE_NOT_IDEMPOTENT: Should("arws.tool.idempotency", "ARWS layer 4")
        "a tool that changes state takes no idempotency key"
            => "Accept an idempotency key, so that a repeated request does no harm.";
    rule WRITE_WITHOUT_AUTH: Should("arws.tool.auth.missing", "ARWS layer 4")
        "a tool that changes state asks for no authentication"
            => "Require an agent-scoped OAuth token for every tool that changes state.";
    rule DESTRUCTIVE_WITHOUT_APPROVAL: Should("arws.tool.approval.missing", "ARWS layer 4")
        "a destructive tool does not announce an approval by a person"
            => "Answer 202 Accepted and let a person approve, and declare that response.";
}

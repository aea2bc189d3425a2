//! Requirements of ARWS. Its definition rarely uses MUST or SHOULD, so parts that agents need are MUST and others SHOULD.

use crate::rule::{Kind, findings, may, must, should};

findings! {
    shape ROOT("arws", "ARWS layer 1") {
        must("name", Kind::Text, "Name the application."),
        must("description", Kind::Text, "Describe what the application does."),
        should("auth", Kind::Object, "State how agents authenticate: type, token_url and scopes."),
        must("tools", Kind::Text, "Publish the address of an OpenAPI 3.1 document as `tools`."),
    }
    shape AUTH("arws.auth", "ARWS layer 1") {
        must("type", Kind::Text, "Name the scheme, such as oauth2."),
        may("token_url", Kind::Reference, "Publish the address where tokens are issued."),
        may("scopes", Kind::Texts, "List the scopes that agents may ask for."),
    }
    shape TOOL("arws.tool", "ARWS layer 2") {
        must("name", Kind::Text, "Name the tool."),
        may("inputSchema", Kind::Object, "Describe the input as a JSON Schema."),
    }
    rule TOKEN_URL_MISSING: Must("arws.auth.token_url.missing", "ARWS layer 1")
        "`token_url` is missing, so an agent cannot get the token that oauth2 asks for"
            => "Publish the address where tokens are issued.";
    rule SCOPES_MISSING: Should("arws.auth.scopes.missing", "ARWS layer 4")
        "`scopes` is missing, so agents do not know which scopes to request"
            => "List the scopes of agents, such as agent:read.";
    rule SCHEME_UNKNOWN: Should("arws.auth.type.unknown", "ARWS layer 1")
        "`type` is an unknown scheme" => "Name a known scheme, such as oauth2.";
    rule AUTH_CONTRADICTED: Should("arws.auth.contradicted", "ARWS layer 1")
        "`type` says that no authentication is needed, and tokens are described"
            => "Name the scheme, or drop `token_url` and `scopes`.";
    rule TOOLS_UNUSABLE: Must("arws.tools.unusable", "ARWS layer 1")
        "`tools` is not the address of a document that can be fetched"
            => "Publish an https address with a public name, or a path on this origin.";
    rule TOOLS_SELF: Must("arws.tools.self", "ARWS layer 1")
        "`tools` names the manifest itself" => "Publish the address of the tool definitions.";
    rule TOOLS_ABSENT: Must("arws.tools.absent", "ARWS layer 2")
        "no document can be fetched at the address that `tools` names"
            => "Serve an OpenAPI 3.1 document or JSON Schemas at that address.";
    rule TOOLS_ELSEWHERE: Note("arws.tools.elsewhere", "agentdex limits")
        "the tools are on another site, so they are read there and not as part of this manifest"
            => "Serve the tool definitions on the site of the manifest, if they are to be listed as its own.";
    rule TOOLS_UNREADABLE: Must("arws.tools.unreadable", "ARWS layer 2")
        "the document that `tools` names is neither JSON nor YAML" => "Serve an OpenAPI 3.1 document at that address.";
    rule TOOLS_UNKNOWN: Must("arws.tools.unknown", "ARWS layer 2")
        "the document that `tools` names is neither an OpenAPI document nor a list of tools with JSON Schemas"
            => "Serve an OpenAPI 3.1 document at that address.";
    rule TOOLS_OLD: Should("arws.tools.version", "ARWS layer 2")
        "the tool definitions are written in an OpenAPI version before 3.1"
            => "Move to OpenAPI 3.1, whose schemas are JSON Schema.";
    rule TOOLS_EMPTY: Should("arws.tools.empty", "ARWS layer 2")
        "the tool definitions contain no operation" => "Describe the operations that agents may call.";
    rule PARAMETER_UNDESCRIBED: Should("arws.tool.parameter.undescribed", "ARWS layer 2")
        "a parameter has no description" => "Describe the meaning of the parameter; list allowed values as an enum.";
    rule PARAMETER_TERSE: May("arws.tool.parameter.terse", "ARWS layer 2")
        "a parameter's name is a single letter" => "Use a descriptive name, such as search_query instead of q.";
    rule OPERATION_UNDESCRIBED: Should("arws.tool.description.missing", "ARWS layer 2")
        "a tool has no description" => "Describe in a sentence what the tool does and when to use it.";
    rule TOOL_MISTYPED: Must("arws.tool.mistyped", "ARWS layer 2")
        "an element of the list of tools is not an object" => "Publish every tool as an object.";
    rule TOOL_DUPLICATE: Must("arws.tool.name.duplicate", "ARWS layer 2")
        "two tools have the same name" => "Give every tool a unique name.";
    rule TOOL_WITHOUT_SCHEMA: Should("arws.tool.input_schema.missing", "ARWS layer 2")
        "`inputSchema` is missing, so agents do not know the input of the tool"
            => "Describe the input as a JSON Schema; use an empty object for a tool without input.";
    rule TOOL_SCHEMA: Must("arws.tool.schema.invalid", "ARWS layer 2")
        "the schema of a tool is not valid JSON Schema" => "Correct the schema so that it passes the 2020-12 meta-schema.";
    rule RESPONSE_UNDESCRIBED: May("arws.tool.response.undescribed", "ARWS layer 2")
        "a member of a response has no description" => "Describe the meaning of the member.";
    rule WRITE_WITHOUT_OAUTH: Should("arws.tool.auth.not_scoped", "ARWS layer 4")
        "a tool that changes state asks for credentials that are not an OAuth token with scopes of agents"
            => "Require an agent-scoped OAuth token for every tool that changes state.";
    rule WRITE_NOT_IDEMPOTENT: Should("arws.tool.idempotency", "ARWS layer 4")
        "a tool that changes state accepts no idempotency key"
            => "Accept an idempotency key, so that a repeated request does no harm.";
    rule WRITE_WITHOUT_AUTH: Should("arws.tool.auth.missing", "ARWS layer 4")
        "a tool that changes state asks for no authentication"
            => "Require an agent-scoped OAuth token for every tool that changes state.";
    rule DESTRUCTIVE_WITHOUT_APPROVAL: Should("arws.tool.approval.missing", "ARWS layer 4")
        "a destructive tool does not announce an approval by a person"
            => "Respond with 202 Accepted until a person has approved, and declare that response.";
}

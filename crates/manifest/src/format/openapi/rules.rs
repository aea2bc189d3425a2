//! Requirements of OpenAPI, and problems that keep agents from using a document.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::operation::{self, PathOperation};
use super::servers;
use crate::draft::Draft;
use crate::object::Object;
use crate::reference::{Problem, ProblemKind};
use crate::rule::{Kind, findings, may, must};

findings! {
    shape DOCUMENT("openapi", "OpenAPI 3.1 §4.8.1") {
        must("info", Kind::Object, "Publish `info` with `title` and `version`."),
        may("servers", Kind::List, "Publish `servers` as an array of objects with `url`."),
        may("components", Kind::Object, "Publish `components` as an object."),
    }
    shape INFO("openapi.info", "OpenAPI 3.1 §4.8.2") {
        must("title", Kind::Text, "Name the API in `info.title`."),
        must("version", Kind::Text, "State the document's own version in `info.version`, as a string."),
        may("description", Kind::Text, "Describe the API in a string."),
    }
    rule VERSION: Should("openapi.version.unknown", "OpenAPI 3.1 §4.8.1")
        "the stated version is not 2.0, 3.0.x, 3.1.x or 3.2.x; the document is read as far as possible"
            => "State a published version of the specification.";
    rule PATHS: Must("openapi.paths.missing", "OpenAPI 3.0 §4.7.1")
        "`paths` is missing" => "Publish `paths`; from 3.1 on, `components` or `webhooks` may replace it.";
    rule NO_SERVERS: Note("openapi.servers.missing", "OpenAPI 3.1 §4.8.1")
        "no server is declared, so operations are resolved against the address of the document"
            => "Name the base URL of the API in `servers`.";
    rule TEMPLATE_SERVER: Note("openapi.servers.template", "OpenAPI 3.1 §4.8.6")
        "the server's URL has a variable without default, so no operation can be called as declared"
            => "Give every server variable a `default`.";
    rule UNUSABLE_SERVER: Must("openapi.servers.unusable", "OpenAPI 3.1 §4.8.5")
        "the server's URL is no http(s) URL of at most 2,048 bytes, so its operations have no address"
            => "Publish an absolute https URL, or a path.";
    rule REPEATED_ID: Must("openapi.operation.operation_id.duplicate", "OpenAPI 3.1 §4.8.10")
        "an `operationId` is used twice" => "Give every operation a unique id.";
    rule NO_RESPONSES: Must("openapi.operation.responses.missing", "OpenAPI 3.0 §4.7.10")
        "an operation describes no response, which versions before 3.1 require" => "Describe at least the response of a successful call.";
    rule UNDECLARED_VARIABLE: Must("openapi.path.variable.undeclared", "OpenAPI 3.1 §4.8.8")
        "a variable of the path has no parameter" => "Declare a parameter with `in: path` for every `{name}` in the path.";
    rule REF_REMOTE: Note("openapi.ref.remote", "OpenAPI 3.1 §4.8.23")
        "a `$ref` leads to another document, which is not fetched" => "Bundle the referenced parts into this document.";
    rule REF_UNRESOLVED: Must("openapi.ref.unresolved", "OpenAPI 3.1 §4.8.23")
        "a `$ref` has no target in this document" => "Correct the pointer or add its target.";
    rule REF_TOO_LARGE: Note("openapi.ref.too_large", "agentdex limits")
        "schemas were cut because their references expand beyond the limit"
            => "Keep the schemas of an operation below 2,000 parts when expanded.";
    rule YAML: Must("openapi.yaml.syntax", "OpenAPI 3.1 §4.1")
        "the document is not readable as YAML" => "Correct the document at this place; an editor for YAML marks it.";
    rule YAML_TOO_LONG: Must("openapi.yaml.too_long", "agentdex limits")
        "the document in YAML is longer than is read"
            => "Publish it as JSON, which is read up to 16 MiB, or shorten it below 8 MiB.";
}

/// Checks the document itself.
pub(super) fn check_document(root: &Object<'_>, draft: &mut Draft<'_>) {
    draft.assess("OpenAPI", |code| code.starts_with("openapi."));
    draft.check(root, &DOCUMENT);
    draft.checked(root, "info", &INFO);
    let version = root.text_of(&["openapi", "swagger"]).unwrap_or_default();
    if !["2.0", "3.0.", "3.1.", "3.2."].iter().any(|known| version.starts_with(known)) {
        draft.report(&VERSION, String::new(), format!("the stated version is \"{version}\""));
    }
    let stands_in = !version.starts_with("3.0") && (root.has("components") || root.has("webhooks"));
    if root.object("paths").is_none() && !stands_in {
        draft.report_rule(&PATHS, String::new());
    }
    let base = servers::base_url(&[root.value("servers")], root.map, draft.base());
    if !servers::is_declared(root.map) {
        draft.report_rule(&NO_SERVERS, String::new());
    } else if let Some(base) = base.filter(|base| base.contains('{')) {
        draft.report(&TEMPLATE_SERVER, root.at("servers"), format!("{base} has a variable without default"));
    }
    report_servers(root.map, "", draft);
}

/// Reports servers whose operations have no address. `at` is the pointer of the object that lists them.
fn report_servers(listing: &Map<String, Value>, at: &str, draft: &mut Draft<'_>) {
    if servers::base_url(&[listing.get("servers")], listing, draft.base()).is_some() {
        return;
    }
    let key = if listing.contains_key("servers") { "servers" } else { "basePath" };
    draft.report_rule(&UNUSABLE_SERVER, format!("{at}/{key}"));
}

/// Whether the version of a document requires responses: 2.0 and 3.0 do, and they are optional since 3.1.
fn requires_responses(root: &Map<String, Value>) -> bool {
    let version = |key: &str| root.get(key).and_then(Value::as_str);
    version("swagger").is_some() || version("openapi").is_some_and(|version| version.starts_with("3.0"))
}

/// Checks one operation; `ids` collects the operation ids.
pub(super) fn check_operation(
    path_operation: &PathOperation<'_>,
    root: &Map<String, Value>,
    ids: &mut BTreeSet<String>,
    draft: &mut Draft<'_>,
) {
    if let Some(id) = operation::declared_id(path_operation.operation)
        && !ids.insert(id.to_owned())
    {
        draft.report(&REPEATED_ID, path_operation.pointer.clone(), format!("the id \"{id}\" is used twice"));
    }
    let item_pointer = path_operation.pointer.rsplit_once('/').map_or("", |(item, _)| item);
    report_servers(path_operation.item, item_pointer, draft);
    report_servers(path_operation.operation, &path_operation.pointer, draft);
    if requires_responses(root) && !path_operation.operation.contains_key("responses") {
        draft.report_rule(&NO_RESPONSES, path_operation.pointer.clone());
    }
}

/// Reports variables of the path that no parameter declares.
pub(super) fn check_variables(path: &str, declared: &BTreeSet<&str>, pointer: &str, draft: &mut Draft<'_>) {
    for variable in crate::address::variables(path).filter(|variable| !declared.contains(variable)) {
        let text = format!("`{{{variable}}}` of {path} has no parameter");
        draft.report(&UNDECLARED_VARIABLE, pointer.to_owned(), text);
    }
}

/// Reports unreadable schemas and references.
pub(super) fn report_problems(problems: BTreeSet<Problem>, draft: &mut Draft<'_>) {
    for problem in problems {
        let rule = match problem.kind {
            ProblemKind::Remote => &REF_REMOTE,
            ProblemKind::Unresolved => &REF_UNRESOLVED,
            ProblemKind::TooLarge => &REF_TOO_LARGE,
        };
        draft.report(rule, problem.pointer, format!("{}: {}", rule.wrong, problem.detail));
    }
}

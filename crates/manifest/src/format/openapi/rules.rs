//! What OpenAPI demands of a document, and what keeps an agent from using one.

use std::collections::BTreeSet;

use super::operation::{self, Place};
use super::servers;
use crate::draft::Draft;
use crate::model::Severity;
use crate::object::Object;
use crate::reference::{Problem, ProblemKind};
use crate::rule::{Dialect, Kind, Rule, Shape, may, must};

pub(crate) const DIALECT: Dialect = Dialect {
    title: "OpenAPI",
    shapes: &[&DOCUMENT, &INFO],
    rules: &[
        &VERSION,
        &PATHS,
        &NO_SERVERS,
        &TEMPLATE_SERVER,
        &REPEATED_ID,
        &NO_RESPONSES,
        &UNDECLARED_VARIABLE,
        &REF_REMOTE,
        &REF_UNRESOLVED,
        &REF_TOO_LARGE,
        &YAML,
        &YAML_TOO_LONG,
    ],
};

const DOCUMENT: Shape = Shape {
    code: "openapi",
    spec: "OpenAPI 3.1 §4.8.1",
    fields: &[
        must("info", Kind::Object, "Publish `info` with `title` and `version`."),
        may("servers", Kind::List, "Publish `servers` as an array of objects with `url`."),
        may("components", Kind::Object, "Publish `components` as an object."),
    ],
};
const INFO: Shape = Shape {
    code: "openapi.info",
    spec: "OpenAPI 3.1 §4.8.2",
    fields: &[
        must("title", Kind::Text, "Name the API in `info.title`."),
        must("version", Kind::Text, "State the document's own version in `info.version`, as a string."),
        may("description", Kind::Text, "Describe the API in a string."),
    ],
};
const VERSION: Rule = Rule {
    code: "openapi.version.unknown",
    severity: Severity::Should,
    spec: "OpenAPI 3.1 §4.8.1",
    wrong: "the stated version is not 2.0, 3.0.x, 3.1.x or 3.2.x; the document is read as far as it goes",
    fix: "State a published version of the specification.",
};
const PATHS: Rule = Rule {
    code: "openapi.paths.missing",
    severity: Severity::Must,
    spec: "OpenAPI 3.0 §4.7.1",
    wrong: "`paths` is missing",
    fix: "Publish `paths`; from 3.1 on `components` or `webhooks` may stand in for it.",
};
const NO_SERVERS: Rule = Rule {
    code: "openapi.servers.missing",
    severity: Severity::Note,
    spec: "OpenAPI 3.1 §4.8.1",
    wrong: "no server is named, so operations are taken to be served where the document is",
    fix: "Name the base URL of the API in `servers`.",
};
const TEMPLATE_SERVER: Rule = Rule {
    code: "openapi.servers.template",
    severity: Severity::Note,
    spec: "OpenAPI 3.1 §4.8.6",
    wrong: "the server's URL has a variable without default, so no operation can be called as declared",
    fix: "Give every server variable a `default`.",
};
const REPEATED_ID: Rule = Rule {
    code: "openapi.operation.operation_id.duplicate",
    severity: Severity::Must,
    spec: "OpenAPI 3.1 §4.8.10",
    wrong: "an `operationId` is used twice",
    fix: "Give every operation an id of its own.",
};
const NO_RESPONSES: Rule = Rule {
    code: "openapi.operation.responses.missing",
    severity: Severity::Should,
    spec: "OpenAPI 3.0 §4.7.10",
    wrong: "an operation describes no response",
    fix: "Describe at least the response of a successful call.",
};
const UNDECLARED_VARIABLE: Rule = Rule {
    code: "openapi.path.variable.undeclared",
    severity: Severity::Must,
    spec: "OpenAPI 3.1 §4.8.8",
    wrong: "a variable of the path has no parameter",
    fix: "Declare a parameter with `in: path` for every `{name}` in the path.",
};
const REF_REMOTE: Rule = Rule {
    code: "openapi.ref.remote",
    severity: Severity::Note,
    spec: "OpenAPI 3.1 §4.8.23",
    wrong: "a `$ref` leads to another document, which is not fetched",
    fix: "Bundle the referenced parts into this document.",
};
const REF_UNRESOLVED: Rule = Rule {
    code: "openapi.ref.unresolved",
    severity: Severity::Must,
    spec: "OpenAPI 3.1 §4.8.23",
    wrong: "a `$ref` leads to nothing in this document",
    fix: "Correct the pointer or add what it names.",
};
const REF_TOO_LARGE: Rule = Rule {
    code: "openapi.ref.too_large",
    severity: Severity::Note,
    spec: "agentdex limits",
    wrong: "schemas were cut where their references multiply beyond what is kept",
    fix: "Keep the schemas of an operation below 2,000 parts when expanded.",
};
pub(super) const YAML: Rule = Rule {
    code: "openapi.yaml.syntax",
    severity: Severity::Must,
    spec: "OpenAPI 3.1 §4.1",
    wrong: "the document is not readable as YAML",
    fix: "Correct the syntax at the place named.",
};

pub(super) const YAML_TOO_LONG: Rule = Rule {
    code: "openapi.yaml.too_long",
    severity: Severity::Must,
    spec: "agentdex limits",
    wrong: "the document in YAML is longer than is read",
    fix: "Publish it as JSON, which is read up to 16 MiB, or shorten it below 8 MiB.",
};

/// Checks the document itself.
pub(super) fn check_document(root: &Object<'_>, draft: &mut Draft<'_>) {
    draft.judge("OpenAPI", |code| code.starts_with("openapi."));
    draft.check(root, &DOCUMENT);
    if let Some(info) = root.object("info") {
        draft.check(&info, &INFO);
    }
    let version = root.text_of(&["openapi", "swagger"]).unwrap_or_default();
    if !["2.0", "3.0.", "3.1.", "3.2."].iter().any(|known| version.starts_with(known)) {
        draft.report(&VERSION, String::new(), format!("the stated version is \"{version}\""));
    }
    let stands_in = !version.starts_with("3.0") && (root.has("components") || root.has("webhooks"));
    if root.object("paths").is_none() && !stands_in {
        draft.report_plainly(&PATHS, String::new());
    }
    let base = servers::base_url(&[root.value("servers")], root.map, draft.base());
    if !servers::is_declared(root.map) {
        draft.report_plainly(&NO_SERVERS, String::new());
    } else if base.contains('{') {
        draft.report(&TEMPLATE_SERVER, root.at("servers"), format!("{base} has a variable without default"));
    }
}

/// Checks one operation; `ids` holds the operation ids met so far.
pub(super) fn check_operation(place: &Place<'_>, ids: &mut BTreeSet<String>, draft: &mut Draft<'_>) {
    if let Some(id) = operation::declared_id(place.operation)
        && !ids.insert(id.to_owned())
    {
        draft.report(&REPEATED_ID, place.pointer.clone(), format!("the id \"{id}\" is used twice"));
    }
    if !place.operation.contains_key("responses") {
        draft.report_plainly(&NO_RESPONSES, place.pointer.clone());
    }
}

/// Reports variables of the path that no parameter declares.
pub(super) fn check_variables(path: &str, declared: &BTreeSet<&str>, pointer: &str, draft: &mut Draft<'_>) {
    for variable in crate::address::variables(path).filter(|variable| !declared.contains(variable)) {
        let text = format!("`{{{variable}}}` of {path} has no parameter");
        draft.report(&UNDECLARED_VARIABLE, pointer.to_owned(), text);
    }
}

/// Reports what kept schemas and references from being read.
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

//! Every finding that may be reported, as one list: what docs/FORMATS.md is checked against and what a validator offers.

use crate::format::DIALECTS;
use crate::model::Severity;
use crate::rule::{Dialect, Field, Rule, Shape};
use crate::{identity, read, served};

/// One kind of finding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CatalogueEntry {
    /// The dialect or the part of agentdex that reports it.
    pub title: &'static str,
    /// Stable across versions.
    pub code: String,
    pub severity: Severity,
    /// Specification and section.
    pub spec: &'static str,
    /// What is wrong, of any document.
    pub wrong: String,
    /// What to do about it.
    pub fix: &'static str,
}

/// The rules that hold whatever the dialect.
const GENERAL: Dialect = Dialect { title: "Every document", shapes: &[], rules: read::RULES };
const IDENTITY: Dialect = Dialect { title: "Identity", shapes: &[], rules: identity::RULES };

/// Every finding that may be reported, general ones first, then by dialect.
pub fn catalogue() -> Vec<CatalogueEntry> {
    let mut entries: Vec<CatalogueEntry> = Vec::new();
    for dialect in [&GENERAL, &IDENTITY, &served::DIALECT].into_iter().chain(DIALECTS.iter().copied()) {
        for shape in dialect.shapes {
            entries.extend(shape.fields.iter().flat_map(|field| of_field(dialect.title, shape, field)));
        }
        entries.extend(dialect.rules.iter().map(|rule| of_rule(dialect.title, rule)));
    }
    let mut seen = std::collections::HashSet::new();
    entries.retain(|entry| seen.insert(entry.code.clone()));
    entries
}

fn of_rule(title: &'static str, rule: &Rule) -> CatalogueEntry {
    let (code, wrong) = (rule.code.to_owned(), rule.wrong.to_owned());
    CatalogueEntry { title, code, severity: rule.severity, spec: rule.spec, wrong, fix: rule.fix }
}

fn of_field(title: &'static str, shape: &Shape, field: &Field) -> Vec<CatalogueEntry> {
    let entry = |part: &str, severity: Severity, wrong: String| CatalogueEntry {
        title,
        code: format!("{}.{}.{part}", shape.code, field.code_part()),
        severity,
        spec: shape.spec,
        wrong,
        fix: field.fix,
    };
    let missing =
        field.missing().map(|severity| entry("missing", severity, format!("`{}` is missing", field.key)));
    let mistyped = field
        .kind
        .has_type()
        .then(|| entry("mistyped", field.wrong(), format!("`{}` is not {}", field.key, field.kind.words())));
    let invalid = field.kind.has_form().then(|| {
        entry("invalid", field.wrong(), format!("`{}` is not {}", field.key, field.kind.form_words()))
    });
    [missing, mistyped, invalid].into_iter().flatten().collect()
}

/// The catalogue as Markdown tables, one for each part: what docs/FORMATS.md ends with.
pub fn catalogue_markdown() -> String {
    let mut lines: Vec<String> = Vec::new();
    let mut title = "";
    for entry in catalogue() {
        if entry.title != title {
            title = entry.title;
            lines.push(format!("\n### {title}\n"));
            lines.push("| code | severity | specification | what is wrong | what to do |".to_owned());
            lines.push("|---|---|---|---|---|".to_owned());
        }
        let (code, severity, spec) = (&entry.code, entry.severity.as_str(), entry.spec);
        let (wrong, fix) = (entry.wrong.replace('|', "\\|"), entry.fix.replace('|', "\\|"));
        lines.push(format!("| `{code}` | {severity} | {spec} | {wrong} | {fix} |"));
    }
    lines.join("\n") + "\n"
}

/// The types that may be inferred, as a Markdown table.
pub fn types_markdown() -> String {
    let head = ["| type | words that lead to it |".to_owned(), "|---|---|".to_owned()];
    let rows = crate::known_types().map(|(name, words)| format!("| `{name}` | {words} |"));
    head.into_iter().chain(rows).collect::<Vec<_>>().join("\n") + "\n"
}

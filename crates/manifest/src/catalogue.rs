//! The list of all findings, from which the tables of docs/FORMATS.md are generated.

use std::collections::HashSet;

use crate::format::dialects::dialect;
use crate::model::{Format, Severity};
use crate::rule::{Field, FindingTable, Rule, Shape};
use crate::{bytes, declaration, document, draft, identity, served, signature};

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
    /// What is wrong, in words that apply to any document.
    pub wrong: String,
    /// What to do about it.
    pub fix: &'static str,
}

/// All findings that agentdex can report: general ones first, then those of each dialect.
pub fn catalogue() -> Vec<CatalogueEntry> {
    let general: [(&str, &[&FindingTable]); 4] = [
        ("Every document", &[&bytes::FINDINGS, &document::FINDINGS, &draft::FINDINGS, &draft::LIST_FINDINGS]),
        ("Identity", &[&identity::FINDINGS, &signature::FINDINGS]),
        ("How documents are served", &[&served::FINDINGS]),
        ("Several declarations of one operation", &[&declaration::FINDINGS]),
    ];
    let dialects = Format::ALL.iter().map(|format| (format.label(), dialect(*format).findings));
    let mut entries: Vec<CatalogueEntry> = Vec::new();
    for (title, table) in general
        .into_iter()
        .chain(dialects)
        .flat_map(|(title, tables)| tables.iter().map(move |table| (title, table)))
    {
        for shape in table.shapes {
            entries.extend(shape.fields.iter().flat_map(|field| of_field(title, shape, field)));
        }
        entries.extend(table.rules.iter().map(|rule| of_rule(title, rule)));
    }
    let mut seen = HashSet::new();
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
        field.missing.map(|severity| entry("missing", severity, format!("`{}` is missing", field.key)));
    let mistyped = field.kind.has_type().then(|| {
        entry("mistyped", field.wrong, format!("`{}` is not {}", field.key, field.kind.description()))
    });
    let invalid = field.kind.has_form().then(|| {
        entry("invalid", field.wrong, format!("`{}` is not {}", field.key, field.kind.form_description()))
    });
    [missing, mistyped, invalid].into_iter().flatten().collect()
}

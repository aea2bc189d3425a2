//! The page of semantic types, a panel for each namespace.

use std::collections::BTreeMap;

use askama::Template;

use super::frame::{Frame, Section};
use super::search::{Bar, bars};
use super::{links, words};
use crate::routes::semantic_types::SemanticTypesAnswer;

struct Namespace {
    name: String,
    href: String,
    capabilities: u64,
    types: Vec<Bar>,
}

#[derive(Template)]
#[template(path = "semantic_types.html")]
pub(crate) struct SemanticTypesPage {
    frame: Frame,
    summary: String,
    namespaces: Vec<Namespace>,
}

pub(crate) fn page(answer: &SemanticTypesAnswer) -> SemanticTypesPage {
    let declared: u64 = answer.semantic_types.iter().map(|counted| counted.declared).sum();
    let total = u64::try_from(answer.total).unwrap_or(u64::MAX);
    let summary = format!(
        "{}. {}; the others were inferred by documented rules and are marked so.",
        words::counted(total, "type", "types"),
        words::counted(declared, "capability declares its type", "capabilities declare their types"),
    );
    SemanticTypesPage {
        frame: Frame::new("Semantic types", Section::Types),
        summary,
        namespaces: namespaces(answer),
    }
}

/// The namespaces, that with the most capabilities first.
fn namespaces(answer: &SemanticTypesAnswer) -> Vec<Namespace> {
    let mut by_name: BTreeMap<&str, Vec<(String, String, u64)>> = BTreeMap::new();
    for counted in &answer.semantic_types {
        let href = links::search([("semantic_type", counted.name.as_str())]);
        let short = counted.name.split_once(':').map_or(counted.name.as_str(), |(_, short)| short);
        let row = (short.replace('-', " "), href, counted.capabilities);
        by_name.entry(&counted.namespace).or_default().push(row);
    }
    let mut namespaces: Vec<Namespace> = by_name
        .into_iter()
        .map(|(name, mut rows)| {
            rows.sort_by_key(|(_, _, count)| std::cmp::Reverse(*count));
            Namespace {
                name: name.to_owned(),
                href: links::search([("namespace", name)]),
                capabilities: rows.iter().map(|(_, _, count)| count).sum(),
                types: bars(rows),
            }
        })
        .collect();
    namespaces.sort_by_key(|namespace| std::cmp::Reverse(namespace.capabilities));
    namespaces
}

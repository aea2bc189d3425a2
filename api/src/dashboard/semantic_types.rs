//! The page of semantic types: a tree with a branch for each namespace.

use askama::Template;

use super::bars::{Bar, bars};
use super::frame::{Frame, Section};
use super::{labels, links};
use crate::answers::semantic_types::{NamespaceBranch, SemanticTypesAnswer};

/// Types that a collapsed branch shows: publishers may invent any number.
const OPEN_MAX: usize = 12;

struct Branch {
    name: String,
    href: String,
    count: String,
    types: Vec<Bar>,
    is_open: bool,
}

#[derive(Template)]
#[template(path = "semantic_types.html")]
pub(crate) struct SemanticTypesPage {
    frame: Frame,
    summary: String,
    branches: Vec<Branch>,
}

pub(crate) fn page(answer: &SemanticTypesAnswer) -> SemanticTypesPage {
    let declared: u64 = answer.semantic_types.iter().map(|counted| counted.declared).sum();
    let total = u64::try_from(answer.total).unwrap_or(u64::MAX);
    let summary = format!(
        "{}. {}; the others were inferred by documented rules and are marked so.",
        labels::counted(total, "type", "types"),
        labels::counted(declared, "capability declares its type", "capabilities declare their types"),
    );
    SemanticTypesPage {
        frame: Frame::new("Semantic types", Section::Types),
        summary,
        branches: answer.namespaces.iter().map(branch).collect(),
    }
}

fn branch(namespace: &NamespaceBranch) -> Branch {
    let leaf = |name: &str| {
        let of_namespace = name.strip_prefix(namespace.namespace.as_str()).and_then(|leaf| leaf.get(1..));
        of_namespace.unwrap_or(name).replace('-', " ")
    };
    let types = namespace.types.iter().map(|counted| {
        let href = links::search([("semantic_type", counted.name.as_str())]);
        (leaf(&counted.name), href, counted.capabilities)
    });
    Branch {
        name: namespace.namespace.clone(),
        href: links::search([("namespace", namespace.namespace.as_str())]),
        count: format!(
            "{} of {}",
            labels::counted(namespace.capabilities, "capability", "capabilities"),
            labels::counted(namespace.sites, "site", "sites"),
        ),
        types: bars(types),
        is_open: namespace.types.len() <= OPEN_MAX,
    }
}

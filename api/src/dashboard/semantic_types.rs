//! The page of semantic types: standard fields as a tree, and fields of single sites in a separate list.

use askama::Template;

use super::frame::{Frame, Section};
use super::type_words::type_words;
use super::{labels, links};
use crate::answers::home::standard_namespaces;
use crate::answers::semantic_types::{NamespaceBranch, SemanticTypesAnswer};
use crate::page_context::PageContext;

/// Maximum number of types of a field that are shown at first; the others are collapsed.
const OPEN_MAX: usize = 12;
/// Maximum number of fields of single sites that are shown; the JSON answer has all.
const OWN_MAX: usize = 200;

struct Branch {
    name: String,
    href: String,
    count: String,
    types: Vec<Leaf>,
    is_open: bool,
}

struct Leaf {
    text: String,
    /// The identifier.
    name: String,
    href: String,
    count_text: String,
}

#[derive(Template)]
#[template(path = "semantic_types.html")]
pub(crate) struct SemanticTypesPage {
    frame: Frame,
    summary: String,
    branches: Vec<Branch>,
    /// Fields that only one site uses.
    own: Vec<Branch>,
}

pub(crate) fn page(answer: &SemanticTypesAnswer, context: &PageContext) -> SemanticTypesPage {
    let declared: u64 = answer.semantic_types.iter().map(|counted| counted.declared).sum();
    let total = u64::try_from(answer.total).unwrap_or(u64::MAX);
    let summary = format!(
        "{} in the index: choose one to see who offers it and how to call it. {}; the types of the others are inferred by documented rules, and marked as inferred.",
        labels::counted(total, "type", "types"),
        labels::counted(declared, "capability declares its type", "capabilities declare their types"),
    );
    let summary = if total == 0 { String::new() } else { summary };
    let standard = standard_namespaces();
    let (own, shared): (Vec<&NamespaceBranch>, Vec<&NamespaceBranch>) = answer
        .namespaces
        .iter()
        .partition(|branch| branch.sites < 2 && !standard.contains(branch.namespace.as_str()));
    SemanticTypesPage {
        frame: Frame::new("Browse by type", Section::Types)
            .at(context, "/semantic-types")
            .described("Everything that AI agents can do on the web, by field and type: commerce, travel, scheduling and more."),
        summary,
        branches: shared.into_iter().map(branch).collect(),
        own: own.into_iter().take(OWN_MAX).map(branch).collect(),
    }
}

fn branch(namespace: &NamespaceBranch) -> Branch {
    let types = namespace.types.iter().map(|counted| {
        let href = links::search([("semantic_type", counted.name.as_str())]);
        let count_text = labels::grouped(counted.capabilities);
        Leaf { text: type_words(&counted.name), name: counted.name.clone(), href, count_text }
    });
    Branch {
        name: labels::capitalised(&namespace.namespace),
        href: links::search([("namespace", namespace.namespace.as_str())]),
        count: format!(
            "{} of {}",
            labels::counted(namespace.capabilities, "capability", "capabilities"),
            labels::counted(namespace.sites, "site", "sites"),
        ),
        types: types.collect(),
        is_open: namespace.types.len() <= OPEN_MAX,
    }
}

//! Capabilities that several documents declare: each becomes one index document, built from the leading declaration.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use manifest::{Capability, CapabilityId};
use store::{StoredDeclaration, StoredManifest};

use super::document::{exact_names, facet_values};
use crate::analysis::language_of;
use crate::declarations::{Declared, MergedCapability, SharedCapabilities};
use crate::filter::{FacetKey, FilterSource};

/// The capabilities that some manifests share with others.
pub(crate) type Shared = SharedCapabilities<Following>;

/// Data that a declaration adds to the document of its capability.
#[derive(Debug, Clone)]
pub(crate) struct Following {
    declared: Declared,
    pub(super) facets: Vec<(FacetKey, String)>,
    pub(super) exact: BTreeSet<String>,
    pub(super) host: String,
    /// Name, title and description.
    pub(super) texts: Vec<String>,
    pub(super) changed_at: DateTime<Utc>,
    pub(super) first_seen_at: DateTime<Utc>,
}

impl Following {
    pub(crate) fn of(stored: StoredDeclaration) -> Self {
        let excerpt = &stored.excerpt;
        let description = excerpt.description.as_deref().unwrap_or_default();
        let language = language_of(excerpt.manifest_language.as_deref(), description);
        let source = FilterSource::of_declaration(&stored, &language);
        let (facets, exact) = (facet_values(&source), exact_names(&source));
        Self {
            facets,
            exact,
            host: excerpt.statement.url.host().as_str().to_owned(),
            texts: [Some(&excerpt.name), excerpt.title.as_ref(), excerpt.description.as_ref()]
                .into_iter()
                .flatten()
                .cloned()
                .collect(),
            changed_at: stored.changed_at,
            first_seen_at: stored.first_seen_at,
            declared: Declared::of_stored(stored),
        }
    }

    /// Approximate bytes in memory.
    pub(crate) fn bytes(&self) -> usize {
        let facets = self.facets.iter().map(|(_, value)| value);
        let texts = facets.chain(&self.exact).chain(&self.texts);
        self.declared.bytes() + texts.map(|text| size_of::<String>() + text.len()).sum::<usize>()
    }
}

/// The indexed capability of a leading declaration.
pub(super) fn merged(
    id: &CapabilityId,
    leader: (&StoredManifest, &Capability),
    others: &[&Following],
) -> MergedCapability {
    let others = others.iter().map(|following| following.declared.clone());
    let mut merged = MergedCapability::of(id, leader, others);
    for declaration in &mut merged.declarations {
        declaration.last_seen_at = None;
    }
    merged
}

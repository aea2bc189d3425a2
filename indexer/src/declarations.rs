//! The declarations of one capability in the documents of its site, as responses show them.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use manifest::declaration::{Contradiction, DECLARATIONS_MAX, Member, Statement, findings_of, merge};
use manifest::model::Format;
use manifest::{Capability, CapabilityId, Finding, ManifestId, ManifestUrl};
use policy::Status;
use serde::{Deserialize, Serialize};
use store::{SharedCapability, StoredManifest};

/// One declaration of a capability.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Declaration {
    /// The id that the capability would have by this declaration alone.
    pub id: CapabilityId,
    pub native_id: String,
    pub format: Format,
    pub manifest_id: ManifestId,
    pub manifest_url: ManifestUrl,
    /// JSON pointer into the document.
    pub pointer: String,
    /// The document that the pointer points into, where it is not the manifest itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pointer_document: Option<String>,
    pub status: Status,
    /// When this version of the manifest was first seen.
    pub updated_at: DateTime<Utc>,
    /// When it was last confirmed; not known to the index.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_seen_at: Option<DateTime<Utc>>,
}

/// A declaration with what it states.
#[derive(Debug, Clone)]
pub struct Declared {
    pub declaration: Declaration,
    pub statement: Statement,
}

impl Declared {
    pub fn of(stored: &StoredManifest, capability: &Capability) -> Self {
        let statement = Statement::of(&stored.manifest, capability);
        let declaration = Declaration {
            id: statement.id.clone(),
            native_id: statement.native_id.clone(),
            format: statement.format,
            manifest_id: statement.manifest_id.clone(),
            manifest_url: statement.url.clone(),
            pointer: statement.pointer.clone(),
            pointer_document: statement.pointer_document.clone(),
            status: stored.status,
            updated_at: stored.changed_at,
            last_seen_at: Some(stored.last_seen_at),
        };
        Self { declaration, statement }
    }

    /// About what it takes in memory: the places of the statement and of the declaration are equal.
    pub fn bytes(&self) -> usize {
        2 * self.statement.bytes()
    }
}

/// A capability as its leading declaration states it, with the most cautious values of all.
#[derive(Debug, Clone)]
pub struct MergedCapability {
    /// Its id is the one that all declarations are answered with.
    pub capability: Capability,
    /// The leading declaration first.
    pub declarations: Vec<Declaration>,
    pub contradictions: Vec<Contradiction>,
    statements: Vec<Statement>,
}

impl MergedCapability {
    /// Merges the leading declaration with the others, which are in their order.
    pub fn of(
        id: &CapabilityId,
        (stored, leader): (&StoredManifest, &Capability),
        others: impl IntoIterator<Item = Declared>,
    ) -> Self {
        let all = std::iter::once(Declared::of(stored, leader)).chain(others);
        let (declarations, statements): (Vec<_>, Vec<_>) =
            all.map(|declared| (declared.declaration, declared.statement)).unzip();
        let (mut capability, contradictions) = merge(leader, &statements);
        capability.id = id.clone();
        Self { capability, declarations, contradictions, statements }
    }

    /// The findings about one of its declarations: where it contradicts another one.
    pub fn findings(&self, declaration: &CapabilityId) -> Vec<Finding> {
        findings_of(declaration, &self.contradictions, &self.statements)
    }
}

/// Shared capabilities, and a bounded amount of what was read of their declarations.
#[derive(Debug)]
pub struct SharedCapabilities<T> {
    capabilities: Vec<SharedCapability>,
    /// Number of the capability of each declaration.
    by_declaration: HashMap<CapabilityId, usize>,
    read: HashMap<CapabilityId, T>,
    /// Bytes that may still be read of the declarations of each capability.
    bytes_left: Vec<usize>,
}

/// How a declaration is shown.
#[derive(Debug)]
pub enum Place<'a, T> {
    /// As a capability of its own.
    Alone,
    /// As the capability of this id, with what was read of the other declarations, in their order.
    Leads(&'a CapabilityId, Vec<&'a T>),
    /// As a part of the capability that another one leads.
    Follows,
}

impl<T> SharedCapabilities<T> {
    /// Reads at most `bytes_max` bytes of declarations, the same share of each capability.
    pub fn new(capabilities: Vec<SharedCapability>, bytes_max: usize) -> Self {
        let mut by_declaration = HashMap::new();
        for (number, capability) in capabilities.iter().enumerate() {
            by_declaration.extend(capability.members.iter().map(|member| (member.id.clone(), number)));
        }
        let bytes_left = vec![bytes_max / capabilities.len().max(1); capabilities.len()];
        Self { capabilities, by_declaration, read: HashMap::new(), bytes_left }
    }

    pub fn capabilities(&self) -> &[SharedCapability] {
        &self.capabilities
    }

    /// Reads the shared declarations of a manifest, as far as they fit. `read` returns one and its bytes.
    pub fn add(&mut self, stored: &StoredManifest, read: impl Fn(&Capability) -> (T, usize)) {
        for capability in &stored.manifest.capabilities {
            let number = self.by_declaration.get(&capability.id);
            let Some(left) = number.and_then(|number| self.bytes_left.get_mut(*number)) else { continue };
            let (declared, bytes) = read(capability);
            if let Some(rest) = left.checked_sub(bytes) {
                *left = rest;
                self.read.insert(capability.id.clone(), declared);
            }
        }
    }

    /// Leaves out the other declarations; the fullest of the rest leads.
    pub fn retain(&mut self, keeps: impl Fn(&Member) -> bool) {
        for shared in &mut self.capabilities {
            shared.members.retain(&keeps);
        }
    }

    /// What was read of some declarations of one capability, in their order.
    pub fn read_of<'a>(&'a self, members: &'a [Member]) -> impl Iterator<Item = &'a T> {
        members.iter().filter_map(|member| self.read.get(&member.id))
    }

    pub fn place_of(&self, declaration: &CapabilityId) -> Place<'_, T> {
        let number = self.by_declaration.get(declaration);
        let Some(shared) = number.and_then(|number| self.capabilities.get(*number)) else {
            return Place::Alone;
        };
        match listed(shared).split_first() {
            Some((leader, others)) if leader.id == *declaration => {
                Place::Leads(&shared.id, self.read_of(others).collect())
            }
            _ => Place::Follows,
        }
    }
}

/// The declarations that are compared and listed.
pub fn listed(shared: &SharedCapability) -> &[Member] {
    shared.members.get(..DECLARATIONS_MAX).unwrap_or(&shared.members)
}

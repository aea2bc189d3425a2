//! Capabilities that several documents of a site declare: how each is answered, and where its declarations contradict each
//! other.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;

use indexer::{Declared, MergedCapability, Place, SharedCapabilities, listed};
use manifest::declaration::{Contradiction, contradictions, findings_of};
use manifest::{Capability, CapabilityId, Finding, ManifestId};
use serde::Serialize;
use store::{SharedCapability, StoredManifest};

use crate::manifests::ManifestReader;
use crate::problem::Problem;

/// Capabilities of one site or manifest whose declarations are compared for an answer; the others are answered one by one.
const COMPARED_MAX: usize = 200;
/// Contradictions of an answer after which no further capability is compared.
const CONTRADICTIONS_MAX: usize = 500;
/// Bytes of the declarations that are held for an answer; the others are not listed.
const DECLARED_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Shared capabilities with the declarations that were read.
#[derive(Debug)]
pub(crate) struct SharedDeclarations(SharedCapabilities<Declared>);

impl SharedDeclarations {
    /// No declaration is read.
    pub(crate) fn new(capabilities: Vec<SharedCapability>) -> Self {
        Self(SharedCapabilities::new(capabilities, DECLARED_BYTES_MAX))
    }

    /// Reads the declarations that do not lead; manifests are held a few at a time.
    pub(crate) async fn following(
        manifests: ManifestReader<'_>,
        capabilities: Vec<SharedCapability>,
    ) -> Result<Self, Problem> {
        Self::new(capabilities).read(manifests, 1).await
    }

    /// Reads the declarations of the capabilities that have several, up to a number of capabilities.
    pub(crate) async fn compared(
        manifests: ManifestReader<'_>,
        mut capabilities: Vec<SharedCapability>,
    ) -> Result<Self, Problem> {
        capabilities.retain(|shared| shared.members.len() > 1);
        capabilities.truncate(COMPARED_MAX);
        Self::new(capabilities).read(manifests, 0).await
    }

    /// Reads the manifests of declarations from a place on.
    async fn read(self, manifests: ManifestReader<'_>, first: usize) -> Result<Self, Problem> {
        let members = |shared| listed(shared).iter().skip(first).map(|member| member.manifest.clone());
        let mut ids: Vec<ManifestId> = self.0.capabilities().iter().flat_map(members).collect();
        ids.sort_unstable();
        ids.dedup();
        if ids.is_empty() {
            return Ok(self);
        }
        let add = |shared: &mut Self, stored: StoredManifest| {
            shared.add(&stored);
            ControlFlow::Continue(())
        };
        manifests.each_of(&ids, self, add).await
    }

    /// Adds the declarations of a manifest.
    pub(crate) fn add(&mut self, stored: &StoredManifest) {
        self.0.add(stored, |capability| {
            let declared = Declared::of(stored, capability);
            let bytes = declared.bytes();
            (declared, bytes)
        });
    }

    /// Leaves out the declarations of other manifests; the fullest of the rest leads.
    pub(crate) fn retain(&mut self, manifests: &HashSet<ManifestId>) {
        self.0.retain(|member| manifests.contains(&member.manifest));
    }

    /// The capability that a declaration leads; `None` if it follows another one.
    pub(crate) fn merged(
        &self,
        stored: &StoredManifest,
        capability: &Capability,
    ) -> Option<MergedCapability> {
        match self.0.place_of(&capability.id) {
            Place::Alone => Some(MergedCapability::of(&capability.id, (stored, capability), [])),
            Place::Leads(id, others) => {
                Some(MergedCapability::of(id, (stored, capability), others.into_iter().cloned()))
            }
            Place::Follows => None,
        }
    }

    /// The contradictions of all capabilities, and the findings of each manifest about them.
    pub(crate) fn disagreements(&self) -> Disagreements {
        let mut found = Disagreements::default();
        for shared in self.0.capabilities() {
            if found.contradictions.len() >= CONTRADICTIONS_MAX {
                break;
            }
            let read = self.0.read_of(listed(shared));
            let statements: Vec<_> = read.map(|declared| declared.statement.clone()).collect();
            let contradictions = contradictions(&statements);
            for statement in &statements {
                let findings = findings_of(&statement.id, &contradictions, &statements);
                if !findings.is_empty() {
                    found.findings.entry(statement.manifest_id.clone()).or_default().extend(findings);
                }
            }
            let of_capability =
                |contradiction| CapabilityContradiction { capability_id: shared.id.clone(), contradiction };
            found.contradictions.extend(contradictions.into_iter().map(of_capability));
        }
        found
    }
}

/// Where declarations of capabilities contradict each other.
#[derive(Debug, Default)]
pub(crate) struct Disagreements {
    pub(crate) contradictions: Vec<CapabilityContradiction>,
    pub(crate) findings: HashMap<ManifestId, Vec<Finding>>,
}

/// A contradiction and its capability.
#[derive(Debug, Serialize)]
pub(crate) struct CapabilityContradiction {
    pub(crate) capability_id: CapabilityId,
    #[serde(flatten)]
    pub(crate) contradiction: Contradiction,
}

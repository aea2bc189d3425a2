//! Capabilities that several documents of a site declare: the response for each, and the contradictions between its declarations.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;
use std::sync::Mutex;

use indexer::{
    DeclarationRole, Declared, MergedCapability, SelectedDeclarations, SharedCapabilities, listed,
};
use manifest::declaration::{Contradiction, Member, contradictions, findings_of};
use manifest::model::PolicyChoice;
use manifest::{Capability, CapabilityId, Finding, ManifestId};
use serde::Serialize;
use store::{SharedCapability, Store, StoreError, StoredDeclaration, StoredManifest};

use crate::manifests::{Counted, Kept, ManifestReader};
use crate::overload::capacity_problem;
use crate::problem::Problem;
use runtime::{LimitReached, Share};

/// Maximum number of capabilities of one site or manifest whose declarations are compared for an answer; the others are only served one by
/// one.
const COMPARED_MAX: usize = 200;
/// Number of contradictions in an answer after which no further capability is compared.
const CONTRADICTIONS_MAX: usize = 500;
/// Maximum number of bytes of declarations that are kept for a response; further ones are not listed. A quarter of a client's limit, so
/// that declarations never cause its request to be refused.
const DECLARED_BYTES_MAX: usize = 2 * 1024 * 1024;
/// Estimated memory of a declaration before it is read: this many bytes plus twice its stored size.
const USUAL_BYTES: usize = 4 * 1024;

/// Shared capabilities with the declarations that were read. These count towards the limit of the client while they are in memory.
#[derive(Debug)]
pub(crate) struct SharedDeclarations {
    shared: SharedCapabilities<Declared>,
    /// Counts the bytes of the declarations. `None` for exports, which have their own limits.
    share: Option<Share>,
}

impl Kept for SharedCapabilities<Declared> {
    fn bytes(&self) -> usize {
        self.bytes_kept()
    }
}

/// Estimated memory, in bytes, of declarations that have not been read yet.
fn bytes_expected(selected: &SelectedDeclarations) -> usize {
    let stored = usize::try_from(selected.bytes()).unwrap_or(usize::MAX);
    let expected = selected.count().saturating_mul(USUAL_BYTES).saturating_add(stored.saturating_mul(2));
    expected.min(DECLARED_BYTES_MAX)
}

/// Whether declarations may be kept in memory. If other clients use too much memory, declarations are omitted instead of refusing the
/// request.
fn has_room(counted: Result<(), LimitReached>) -> Result<bool, Problem> {
    match counted {
        Ok(()) => Ok(true),
        Err(LimitReached::All) => Ok(false),
        Err(full) => Err(capacity_problem("bytes", full)),
    }
}

/// A declaration, and its approximate size in memory.
fn read(stored: StoredDeclaration) -> (Declared, usize) {
    let declared = Declared::of_stored(stored);
    let bytes = declared.bytes();
    (declared, bytes)
}

impl SharedDeclarations {
    fn new(capabilities: Vec<SharedCapability>) -> Self {
        Self { shared: SharedCapabilities::new(capabilities, DECLARED_BYTES_MAX), share: None }
    }

    /// A reader for the same request, whose limit does not count these declarations.
    pub(crate) fn beside<'r>(&self, manifests: ManifestReader<'r>) -> ManifestReader<'r> {
        manifests.holding(self.share.as_ref().map_or(0, Share::amount))
    }

    #[cfg(test)]
    pub(crate) const fn bytes_kept(&self) -> usize {
        self.shared.bytes_kept()
    }

    /// Reads the declarations that are not the leading ones.
    pub(crate) async fn following(
        manifests: ManifestReader<'_>,
        capabilities: Vec<SharedCapability>,
    ) -> Result<Self, Problem> {
        let follows = |shared: &SharedCapability, member: &Member| shared.members.first() != Some(member);
        Self::new(capabilities).load(manifests, follows).await
    }

    /// Reads the declarations of the capabilities that have several, up to a number of capabilities.
    pub(crate) async fn compared(
        manifests: ManifestReader<'_>,
        mut capabilities: Vec<SharedCapability>,
    ) -> Result<Self, Problem> {
        capabilities.retain(|shared| shared.members.len() > 1);
        capabilities.truncate(COMPARED_MAX);
        Self::new(capabilities).load(manifests, |_, _| true).await
    }

    /// Reads declarations. Takes a permit while reading, and counts the bytes before they are read. Declarations without a stored statement
    /// are read from their manifests, within the limits of one page. The caller must not hold a permit.
    async fn load(
        self,
        manifests: ManifestReader<'_>,
        is_wanted: impl Fn(&SharedCapability, &Member) -> bool,
    ) -> Result<Self, Problem> {
        let mut selected = self.shared.select(manifests.store, is_wanted).await?;
        let mut count = manifests.byte_count();
        if !has_room(count.reach(bytes_expected(&selected)))? {
            selected = SelectedDeclarations::default();
        }
        let mut reading = Counted::with(self.shared, count);
        let permit = reading.beside(manifests).permit_for_declarations(selected.bytes()).await?;
        let without_statement = reading.load(manifests.store, selected, read).await?;
        drop(permit);
        if !has_room(reading.count())? {
            reading.forget();
        }
        let readable = manifests.readable(&without_statement.iter().collect::<Vec<_>>()).await?;
        let add = |shared: &mut SharedCapabilities<Declared>, stored: StoredManifest| {
            shared.add(&stored, read);
            ControlFlow::Continue(())
        };
        let ids = without_statement.get(..readable).unwrap_or(&without_statement);
        let (shared, share) = manifests.each_of(ids, reading, add).await?.into_parts();
        Ok(Self { shared, share })
    }

    /// The capabilities that manifests share with others that may be exported. Of each capability, the first declaration that may be
    /// exported becomes the leading one. The other declarations are read together with its manifest.
    pub(crate) async fn exported(store: &Store, page: &[ManifestId]) -> Result<Self, StoreError> {
        let in_page: HashSet<&ManifestId> = page.iter().collect();
        let capabilities = store.capabilities_shared_by(page).await?;
        let denied = Mutex::new(HashSet::new());
        let read = |stored: StoredDeclaration| {
            if stored.training_policy() == PolicyChoice::Deny
                && let Ok(mut denied) = denied.lock()
            {
                denied.insert(stored.excerpt.statement.id.clone());
            }
            read(stored)
        };
        let is_elsewhere = |shared: &SharedCapability| {
            shared.members.first().is_some_and(|leader| !in_page.contains(&leader.manifest))
        };
        let mut leaders = Self::new(capabilities.clone());
        let is_leader_elsewhere = |shared: &SharedCapability, member: &Member| {
            is_elsewhere(shared) && shared.members.first() == Some(member)
        };
        let selected = leaders.shared.select(store, is_leader_elsewhere).await?;
        let without_statement = leaders.shared.load(store, selected, read).await?;
        leaders.shared.load_from_manifests(store, &without_statement, read).await?;
        let led_elsewhere: HashSet<CapabilityId> = {
            let denied = denied.lock().map(|denied| denied.clone()).unwrap_or_default();
            let is_denied = |shared: &&SharedCapability| {
                shared.members.first().is_some_and(|leader| denied.contains(&leader.id))
            };
            let elsewhere = capabilities.iter().filter(|shared| is_elsewhere(shared) && !is_denied(shared));
            elsewhere.map(|shared| shared.id.clone()).collect()
        };
        let mut shared = Self::new(capabilities);
        let is_led = |shared: &SharedCapability, _: &Member| !led_elsewhere.contains(&shared.id);
        let selected = shared.shared.select(store, is_led).await?;
        let without_statement = shared.shared.load(store, selected, read).await?;
        shared.shared.load_from_manifests(store, &without_statement, read).await?;
        let denied = denied.into_inner().unwrap_or_default();
        shared.shared.retain(|member| !denied.contains(&member.id));
        Ok(shared)
    }

    /// The capability that a declaration leads; `None` if it follows another one.
    pub(crate) fn merged(
        &self,
        stored: &StoredManifest,
        capability: &Capability,
    ) -> Option<MergedCapability> {
        match self.shared.role_of(&capability.id) {
            DeclarationRole::Alone => Some(MergedCapability::of(&capability.id, (stored, capability), [])),
            DeclarationRole::Leads(id, others) => {
                Some(MergedCapability::of(id, (stored, capability), others.into_iter().cloned()))
            }
            DeclarationRole::Follows => None,
        }
    }

    /// The capability that a declaration leads, with what the others state, and the number of documents that declare it; `None` if the
    /// declaration follows another one.
    pub(crate) fn shown<'a>(
        &self,
        stored: &StoredManifest,
        capability: &'a Capability,
    ) -> Option<(Cow<'a, Capability>, usize)> {
        if matches!(self.shared.role_of(&capability.id), DeclarationRole::Alone) {
            return Some((Cow::Borrowed(capability), 1));
        }
        let merged = self.merged(stored, capability)?;
        let documents: HashSet<&ManifestId> =
            merged.declarations.iter().map(|declaration| &declaration.manifest_id).collect();
        let count = documents.len();
        Some((Cow::Owned(merged.capability), count))
    }

    /// The contradictions between declarations of all capabilities, and the findings of each manifest about them.
    pub(crate) fn disagreements(&self) -> Disagreements {
        let mut found = Disagreements::default();
        for shared in self.shared.capabilities() {
            if found.contradictions.len() >= CONTRADICTIONS_MAX {
                break;
            }
            let read = self.shared.read_of(listed(shared));
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

//! The declarations of one capability in the documents of its site, as responses show them.

use std::collections::{BTreeSet, HashMap, HashSet};

use chrono::{DateTime, Utc};
use manifest::declaration::{Contradiction, DECLARATIONS_MAX, Member, Statement, findings_of, merge};
use manifest::model::Format;
use manifest::{Capability, CapabilityId, Finding, ManifestId, ManifestUrl};
use policy::Status;
use serde::{Deserialize, Serialize};
use store::{SharedCapability, Store, StoreError, StoredDeclaration, StoredManifest};

/// Maximum number of declarations read with one statement, and maximum of their stored bytes; the first declaration may exceed it.
const LOADED_MAX: usize = 256;
const LOADED_BYTES_MAX: u64 = 256 * 1024;
/// Maximum number of declarations whose sizes are read with one statement.
const SIZES_MAX: usize = 1_000;
/// Maximum number of bytes of manifests that are read for declarations without a stored statement.
const MANIFESTS_BYTES_MAX: u64 = 8 * 1024 * 1024;
/// Minimum bytes in memory of a declaration.
const LEAST_BYTES: usize = 256;

/// One declaration of a capability.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Declaration {
    /// The id that the capability would have if this were its only declaration.
    pub id: CapabilityId,
    pub native_id: String,
    pub format: Format,
    pub manifest_id: ManifestId,
    pub manifest_url: ManifestUrl,
    /// JSON pointer into the document.
    pub pointer: String,
    /// The document that the pointer points into, if it is not the manifest itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pointer_document: Option<String>,
    pub status: Status,
    /// When this version of the manifest was first seen.
    pub updated_at: DateTime<Utc>,
    /// When it was last confirmed; not known to the index.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_seen_at: Option<DateTime<Utc>>,
}

/// A declaration with its facts.
#[derive(Debug, Clone)]
pub struct Declared {
    pub declaration: Declaration,
    pub statement: Statement,
}

impl Declared {
    pub fn of(stored: &StoredManifest, capability: &Capability) -> Self {
        let statement = Statement::of(&stored.manifest, capability);
        Self::new(statement, stored.status, stored.changed_at, stored.last_seen_at)
    }

    /// A declaration whose manifest is not read.
    pub fn of_stored(stored: StoredDeclaration) -> Self {
        Self::new(stored.excerpt.statement, stored.status, stored.changed_at, stored.last_seen_at)
    }

    fn new(
        statement: Statement,
        status: Status,
        changed_at: DateTime<Utc>,
        last_seen_at: DateTime<Utc>,
    ) -> Self {
        let declaration = Declaration {
            id: statement.id.clone(),
            native_id: statement.native_id.clone(),
            format: statement.format,
            manifest_id: statement.manifest_id.clone(),
            manifest_url: statement.url.clone(),
            pointer: statement.pointer.clone(),
            pointer_document: statement.pointer_document.clone(),
            status,
            updated_at: changed_at,
            last_seen_at: Some(last_seen_at),
        };
        Self { declaration, statement }
    }

    /// Approximate bytes in memory. The statement and the declaration share the locations, which are counted once.
    pub fn bytes(&self) -> usize {
        2 * self.statement.bytes()
    }
}

/// A capability as its leading declaration states it, with the most cautious values of all.
#[derive(Debug, Clone)]
pub struct MergedCapability {
    /// All declarations are served under its id.
    pub capability: Capability,
    /// The leading declaration first.
    pub declarations: Vec<Declaration>,
    pub contradictions: Vec<Contradiction>,
    statements: Vec<Statement>,
}

impl MergedCapability {
    /// Merges the leading declaration with the others, which are given in order.
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

/// Shared capabilities, with a limited amount of their declarations.
#[derive(Debug)]
pub struct SharedCapabilities<T> {
    capabilities: Vec<SharedCapability>,
    /// Number of the capability of each declaration.
    by_declaration: HashMap<CapabilityId, usize>,
    read: HashMap<CapabilityId, T>,
    /// Bytes that may still be read from the declarations of each capability.
    bytes_left: Vec<usize>,
    /// Bytes of the declarations that were read and fit.
    bytes_kept: usize,
}

/// Declarations that are read next.
#[derive(Debug, Default)]
pub struct SelectedDeclarations {
    /// The selected declarations, each with the bytes of its statement.
    members: Vec<(Member, u64)>,
    /// The manifests of declarations without a stored statement.
    without_statement: BTreeSet<ManifestId>,
}

impl SelectedDeclarations {
    pub const fn count(&self) -> usize {
        self.members.len()
    }

    /// The bytes of all statements, as JSON.
    pub fn bytes(&self) -> u64 {
        self.members.iter().map(|(_, bytes)| bytes).sum()
    }
}

/// How a declaration is shown.
#[derive(Debug)]
pub enum DeclarationRole<'a, T> {
    /// As its own capability.
    Alone,
    /// As the capability with this id, with the other declarations that were read, in order.
    Leads(&'a CapabilityId, Vec<&'a T>),
    /// As part of a capability whose leading declaration is another one.
    Follows,
}

impl<T> SharedCapabilities<T> {
    /// Reads at most `bytes_max` bytes of declarations, divided equally between the capabilities.
    pub fn new(capabilities: Vec<SharedCapability>, bytes_max: usize) -> Self {
        let mut by_declaration = HashMap::new();
        for (number, capability) in capabilities.iter().enumerate() {
            by_declaration.extend(capability.members.iter().map(|member| (member.id.clone(), number)));
        }
        let bytes_left = vec![bytes_max / capabilities.len().max(1); capabilities.len()];
        Self { capabilities, by_declaration, read: HashMap::new(), bytes_left, bytes_kept: 0 }
    }

    /// Bytes of the declarations that were read and fit.
    pub const fn bytes_kept(&self) -> usize {
        self.bytes_kept
    }

    pub fn capabilities(&self) -> &[SharedCapability] {
        &self.capabilities
    }

    /// Selects the wanted declarations that fit, by the sizes of their statements, in order within each capability.
    pub async fn select(
        &self,
        store: &Store,
        is_wanted: impl Fn(&SharedCapability, &Member) -> bool,
    ) -> Result<SelectedDeclarations, StoreError> {
        let mut wanted = Vec::new();
        for (number, (shared, left)) in self.capabilities.iter().zip(&self.bytes_left).enumerate() {
            let members = listed(shared).iter().filter(|member| is_wanted(shared, member));
            let most = (left / LEAST_BYTES).max(usize::from(*left > 0));
            wanted.extend(members.take(most).map(|member| (number, member)));
        }
        let mut selected = SelectedDeclarations::default();
        let mut left: Vec<u64> = self.bytes_left.iter().map(|left| *left as u64).collect();
        for members in wanted.chunks(SIZES_MAX) {
            let ids: Vec<CapabilityId> = members.iter().map(|(_, member)| member.id.clone()).collect();
            let sizes: HashMap<CapabilityId, u64> =
                store.declaration_sizes(&ids).await?.into_iter().collect();
            for (number, member) in members {
                let Some(left) = left.get_mut(*number).filter(|left| **left > 0) else { continue };
                match sizes.get(&member.id) {
                    Some(bytes) if bytes <= left => {
                        *left -= bytes;
                        selected.members.push(((*member).clone(), *bytes));
                    }
                    // the later declarations of this capability are not read, either
                    Some(_) => *left = 0,
                    None => drop(selected.without_statement.insert(member.manifest.clone())),
                }
            }
        }
        Ok(selected)
    }

    /// Reads declarations and keeps those that fit. `read` converts a declaration and returns its bytes. Does not read manifests.
    /// Declarations that a program of an earlier schema wrote have no stored statement; the ids of their manifests are returned, for
    /// [`Self::add`].
    pub async fn load(
        &mut self,
        store: &Store,
        selected: SelectedDeclarations,
        read: impl Fn(StoredDeclaration) -> (T, usize),
    ) -> Result<Vec<ManifestId>, StoreError> {
        let SelectedDeclarations { members, mut without_statement } = selected;
        let mut rest = members.as_slice();
        while !rest.is_empty() {
            let mut bytes = 0;
            let fits = |(_, more): &&(Member, u64)| {
                bytes += more;
                bytes <= LOADED_BYTES_MAX
            };
            let count = rest.iter().take(LOADED_MAX).take_while(fits).count().max(1);
            let (members, after) = rest.split_at(count);
            rest = after;
            let ids: Vec<CapabilityId> = members.iter().map(|(member, _)| member.id.clone()).collect();
            let mut loaded: HashMap<CapabilityId, StoredDeclaration> = HashMap::new();
            for stored in store.declarations_load(&ids).await? {
                loaded.insert(stored.excerpt.statement.id.clone(), stored);
            }
            for (member, _) in members {
                match loaded.remove(&member.id) {
                    Some(stored) => self.insert(&member.id, || read(stored)),
                    None => drop(without_statement.insert(member.manifest.clone())),
                }
            }
        }
        Ok(without_statement.into_iter().collect())
    }

    /// Drops the declarations that were read, and prevents further reads.
    pub fn forget(&mut self) {
        self.read.clear();
        self.bytes_left.fill(0);
        self.bytes_kept = 0;
    }

    /// Reads the further declarations of the capabilities whose leading declarations are in these manifests. Over all manifests of a store,
    /// each declaration is read at most once.
    pub async fn load_led_by(
        &mut self,
        store: &Store,
        manifests: &[ManifestId],
        read: impl Fn(StoredDeclaration) -> (T, usize),
    ) -> Result<(), StoreError> {
        let leading: HashSet<&ManifestId> = manifests.iter().collect();
        let is_led = |shared: &SharedCapability, member: &Member| {
            let leader = shared.members.first();
            leader.is_some_and(|leader| leader != member && leading.contains(&leader.manifest))
        };
        let selected = self.select(store, is_led).await?;
        let without_statement = self.load(store, selected, &read).await?;
        self.load_from_manifests(store, &without_statement, read).await
    }

    /// Reads the declarations of manifests that [`Self::load`] returned: a few manifests at a time, and a bounded number of bytes. The rest
    /// is not merged until the next visit to the site stores its facts.
    pub async fn load_from_manifests(
        &mut self,
        store: &Store,
        manifests: &[ManifestId],
        read: impl Fn(StoredDeclaration) -> (T, usize),
    ) -> Result<(), StoreError> {
        let mut bytes = 0_u64;
        for batch in store.manifest_batches(manifests).await? {
            let is_first = bytes == 0;
            bytes = bytes.saturating_add(batch.bytes);
            if bytes > MANIFESTS_BYTES_MAX && !is_first {
                break;
            }
            for stored in store.manifests_load(&batch.ids).await? {
                self.add(&stored, &read);
            }
        }
        Ok(())
    }

    /// Reads the shared declarations of a manifest that are not read yet, as far as they fit.
    pub fn add(&mut self, stored: &StoredManifest, read: impl Fn(StoredDeclaration) -> (T, usize)) {
        for capability in &stored.manifest.capabilities {
            if !self.read.contains_key(&capability.id) {
                self.insert(&capability.id, || read(StoredDeclaration::of(stored, capability)));
            }
        }
    }

    /// Keeps a declaration if it fits. If not, the later declarations of its capability are not kept, either.
    fn insert(&mut self, id: &CapabilityId, read: impl FnOnce() -> (T, usize)) {
        let number = self.by_declaration.get(id);
        let Some(left) = number.and_then(|number| self.bytes_left.get_mut(*number)) else { return };
        if *left == 0 {
            return;
        }
        let (declared, bytes) = read();
        match left.checked_sub(bytes) {
            Some(rest) => {
                *left = rest;
                self.bytes_kept += bytes;
                self.read.insert(id.clone(), declared);
            }
            None => *left = 0,
        }
    }

    /// Keeps only the declarations for which `keeps` is true; the first remaining one becomes the leading one.
    pub fn retain(&mut self, keeps: impl Fn(&Member) -> bool) {
        for shared in &mut self.capabilities {
            shared.members.retain(&keeps);
        }
    }

    /// Some declarations of one capability, in their order.
    pub fn read_of<'a>(&'a self, members: &'a [Member]) -> impl Iterator<Item = &'a T> {
        members.iter().filter_map(|member| self.read.get(&member.id))
    }

    pub fn role_of(&self, declaration: &CapabilityId) -> DeclarationRole<'_, T> {
        let number = self.by_declaration.get(declaration);
        let Some(shared) = number.and_then(|number| self.capabilities.get(*number)) else {
            return DeclarationRole::Alone;
        };
        match listed(shared).split_first() {
            Some((leader, others)) if leader.id == *declaration => {
                DeclarationRole::Leads(&shared.id, self.read_of(others).collect())
            }
            _ => DeclarationRole::Follows,
        }
    }
}

/// The declarations that are compared and listed.
pub fn listed(shared: &SharedCapability) -> &[Member] {
    shared.members.get(..DECLARATIONS_MAX).unwrap_or(&shared.members)
}

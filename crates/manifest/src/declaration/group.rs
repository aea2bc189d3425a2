//! Which declarations of a site are one capability.
//!
//! Declarations belong together when they call the same operation, or have the same place in equal documents at several
//! paths. A name of agents.txt that has no address belongs to the capability of that name in the agents.json of its host.
//! Documents that only others name are grouped among themselves: users of a site may have written them. So may a document that
//! the site links to, for example from a catalog of its users' agents: what the site itself publishes comes first, then the fewest
//! links away from that, and among equals the fullest. Where the site itself publishes no declaration of an operation, only
//! declarations of one host belong together: each host may be that of another customer.
//! Two declarations of one document are never one capability: where a document declares several at one operation, only
//! declarations of the same native id belong together.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use crate::model::{Format, NamedBy};
use crate::name::{CapabilityId, ContentHash, Host, ManifestId};

/// A manifest of the site that is in the index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SiteManifest {
    pub id: ManifestId,
    pub host: Host,
    pub format: Format,
    pub content_hash: ContentHash,
    pub named_by: NamedBy,
    /// Whether the site itself publishes the document, and no user can have written it.
    pub is_published: bool,
    /// Number of links from documents that the site itself publishes to this one: 0 at a usual path, and for documents that others name.
    pub links_away: usize,
    pub declarations: Vec<Declared>,
}

/// The parts of a declaration that grouping needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Declared {
    /// The id that the capability has by itself.
    pub id: CapabilityId,
    pub native_id: String,
    /// See [`super::operation()`].
    pub operation: Option<String>,
    /// See [`super::fullness()`].
    pub fullness: u32,
}

/// A declaration of a group.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Member {
    pub id: CapabilityId,
    pub manifest: ManifestId,
    /// See [`SiteManifest::is_published`].
    pub is_published: bool,
}

/// The declarations of one capability, in their order: what the site itself publishes first, then the fewest links away, then the
/// fullest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group(pub Vec<Member>);

/// A declaration with its manifest and, once it is known, the number of its group.
struct Node<'a> {
    manifest: &'a SiteManifest,
    declared: &'a Declared,
}

impl Node<'_> {
    fn order(&self) -> ((bool, usize), Reverse<u32>, &CapabilityId) {
        (self.distance(), Reverse(self.declared.fullness), &self.declared.id)
    }

    /// The farther from what the site itself publishes, the larger.
    fn distance(&self) -> (bool, usize) {
        (!self.manifest.is_published, self.manifest.links_away)
    }

    /// Whose declarations it may join under a leading one: anybody's if the site itself publishes that, else those of its host.
    fn owner(&self, leader: &Self) -> &str {
        let host = self.manifest.host.as_str();
        if leader.manifest.is_published { "" } else { host.strip_prefix("www.").unwrap_or(host) }
    }

    /// Equal documents count as one.
    fn document(&self) -> (Format, &ContentHash) {
        (self.manifest.format, &self.manifest.content_hash)
    }

    /// A name without an address, which agents.json explains.
    fn is_bare_name(&self) -> bool {
        self.manifest.format == Format::AgentsTxt && self.declared.operation.is_none()
    }
}

/// Groups the declarations of a site, in linear time apart from sorting. The groups are in the order of their leaders' ids.
pub fn group(manifests: &[SiteManifest]) -> Vec<Group> {
    let is_of_others = |manifest: &&SiteManifest| manifest.named_by == NamedBy::Others;
    let mut groups = grouped(manifests.iter().filter(|manifest| !is_of_others(manifest)));
    groups.extend(grouped(manifests.iter().filter(is_of_others)));
    groups.into_values().map(Group).collect()
}

/// Groups declarations; the groups are by the ids of their leaders.
fn grouped<'a>(manifests: impl Iterator<Item = &'a SiteManifest>) -> BTreeMap<&'a CapabilityId, Vec<Member>> {
    let mut nodes: Vec<Node<'a>> = manifests
        .flat_map(|manifest| manifest.declarations.iter().map(move |declared| Node { manifest, declared }))
        .collect();
    // The first declaration of each step represents those that join it.
    nodes.sort_unstable_by(|one, other| one.order().cmp(&other.order()));
    let mut joins: Vec<usize> = (0..nodes.len()).collect();
    join_equal_documents(&nodes, &mut joins);
    join_operations(&nodes, &mut joins);
    join_names(&nodes, &mut joins);
    let mut groups: BTreeMap<&CapabilityId, Vec<Member>> = BTreeMap::new();
    for (index, node) in nodes.iter().enumerate() {
        let Some(leader) = nodes.get(leader_of(&joins, index)) else { continue };
        let member = Member {
            id: node.declared.id.clone(),
            manifest: node.manifest.id.clone(),
            is_published: node.manifest.is_published,
        };
        groups.entry(&leader.declared.id).or_default().push(member);
    }
    groups
}

/// Joins lead to an earlier node, at most one for each step.
fn leader_of(joins: &[usize], mut index: usize) -> usize {
    while let Some(joined) = joins.get(index).filter(|joined| **joined != index) {
        index = *joined;
    }
    index
}

fn join(joins: &mut [usize], index: usize, to: usize) {
    if let Some(joined) = joins.get_mut(index) {
        *joined = to;
    }
}

fn is_alone(joins: &[usize], index: usize) -> bool {
    joins.get(index) == Some(&index)
}

/// The first declaration of each key, and of those without a published one the first of each owner.
struct Leaders<'a, K> {
    first: HashMap<K, usize>,
    of_owner: HashMap<(K, &'a str), usize>,
}

impl<'a, K: Copy + Eq + std::hash::Hash> Leaders<'a, K> {
    fn new() -> Self {
        Self { first: HashMap::new(), of_owner: HashMap::new() }
    }

    /// The declaration that a declaration joins, itself if it is the first. Declarations come in their order, so published ones first.
    fn of(&mut self, nodes: &'a [Node<'a>], key: K, (index, node): (usize, &'a Node<'a>)) -> usize {
        let first = *self.first.entry(key).or_insert(index);
        let owner = nodes.get(first).map_or("", |leader| node.owner(leader));
        *self.of_owner.entry((key, owner)).or_insert(index)
    }
}

/// Joins declarations of the same native id in equal documents.
fn join_equal_documents(nodes: &[Node<'_>], joins: &mut [usize]) {
    let mut leaders = Leaders::new();
    for (index, node) in nodes.iter().enumerate() {
        let place = (node.document(), node.declared.native_id.as_str());
        join(joins, index, leaders.of(nodes, place, (index, node)));
    }
}

/// Joins declarations of the same operation.
fn join_operations(nodes: &[Node<'_>], joins: &mut [usize]) {
    let mut by_operation: HashMap<&str, Vec<usize>> = HashMap::new();
    for (index, node) in nodes.iter().enumerate().filter(|(index, _)| is_alone(joins, *index)) {
        if let Some(operation) = &node.declared.operation {
            by_operation.entry(operation).or_default().push(index);
        }
    }
    for indexes in by_operation.into_values() {
        let of_operation = || indexes.iter().filter_map(|index| Some((*index, nodes.get(*index)?)));
        let mut documents = HashMap::new();
        let is_ambiguous =
            of_operation().any(|(index, node)| documents.insert(node.document(), index).is_some());
        let mut leaders = Leaders::new();
        for (index, node) in of_operation() {
            let name = if is_ambiguous { node.declared.native_id.as_str() } else { "" };
            join(joins, index, leaders.of(nodes, name, (index, node)));
        }
    }
}

/// Joins bare names of agents.txt with the capabilities of agents.json on the same host. A document that is farther away than the
/// agents.txt defines no name, because its declaration would lead.
fn join_names(nodes: &[Node<'_>], joins: &mut [usize]) {
    let mut defined = HashMap::new();
    for (index, node) in nodes.iter().enumerate() {
        if node.manifest.format == Format::AgentsJson {
            defined.entry((&node.manifest.host, node.declared.native_id.as_str())).or_insert(index);
        }
    }
    for (index, node) in nodes.iter().enumerate() {
        let name = (&node.manifest.host, node.declared.native_id.as_str());
        let Some(to) = defined.get(&name).filter(|_| node.is_bare_name() && is_alone(joins, index)) else {
            continue;
        };
        if nodes.get(*to).is_some_and(|defined| defined.distance() <= node.distance()) {
            join(joins, index, *to);
        }
    }
}

#[cfg(test)]
#[path = "group_tests.rs"]
mod tests;

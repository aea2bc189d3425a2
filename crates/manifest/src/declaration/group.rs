//! Decides which declarations of a site belong to one capability.
//!
//! Declarations belong together if they call the same operation, or if they have the same native id in equal documents at several paths. A
//! name of agents.txt that has no address belongs to the capability of that name in the agents.json of its host. Only documents whose
//! publisher is known are grouped: those of the site itself at its domain, and those of each other host, which may belong to a customer.
//! Users of a site may have written any other document, even one to which the site links, for example from a catalog of its users' agents.
//! Its declarations are separate capabilities, so that nobody can change the declarations of others. The leader of a group is the
//! declaration whose document is the fewest links away from the domain; among equals, the fullest. Two declarations of one document are
//! never one capability: if a document declares one operation several times, only declarations with the same native id belong together.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use crate::model::{Format, Publisher};
use crate::name::{CapabilityId, ContentHash, Host, ManifestId};

/// A manifest of the site that is in the index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SiteManifest {
    pub id: ManifestId,
    pub host: Host,
    pub format: Format,
    pub content_hash: ContentHash,
    pub publisher: Publisher,
    /// Number of links between the documents that the site publishes at its domain and this document: 0 at a usual path, and for documents
    /// of other publishers.
    pub links_away: usize,
    pub declarations: Vec<Declared>,
}

/// The parts of a declaration that grouping needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Declared {
    /// The capability id that the declaration would have without grouping.
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
}

/// The declarations of one capability, in their order: the fewest links away first, then the fullest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group(pub Vec<Member>);

/// A declaration with its manifest.
struct Node<'a> {
    manifest: &'a SiteManifest,
    declared: &'a Declared,
}

impl Node<'_> {
    fn order(&self) -> (usize, Reverse<u32>, &CapabilityId) {
        (self.links_away(), Reverse(self.declared.fullness), &self.declared.id)
    }

    fn links_away(&self) -> usize {
        self.manifest.links_away
    }

    /// Equal documents count as one.
    fn document(&self) -> (Format, &ContentHash) {
        (self.manifest.format, &self.manifest.content_hash)
    }

    /// Whether this is a name of agents.txt without an address, whose call is in agents.json.
    fn is_bare_name(&self) -> bool {
        self.manifest.format == Format::AgentsTxt && self.declared.operation.is_none()
    }
}

/// Groups the declarations of a site, in linear time apart from sorting. The groups are in the order of their leaders' ids.
pub fn group(manifests: &[SiteManifest]) -> Vec<Group> {
    let mut groups = BTreeMap::new();
    let mut of_publishers: BTreeMap<Option<&str>, Vec<&SiteManifest>> = BTreeMap::new();
    for manifest in manifests {
        let host = manifest.host.as_str();
        match manifest.publisher {
            Publisher::Site => of_publishers.entry(None).or_default().push(manifest),
            Publisher::Host => of_publishers.entry(Some(host)).or_default().push(manifest),
            Publisher::Unknown => groups.extend(manifest.declarations.iter().map(|declared| {
                let member = Member { id: declared.id.clone(), manifest: manifest.id.clone() };
                (&declared.id, vec![member])
            })),
        }
    }
    groups.extend(of_publishers.into_values().flat_map(grouped));
    groups.into_values().map(Group).collect()
}

/// Groups declarations. The groups are keyed by the ids of their leaders.
fn grouped<'a>(
    manifests: impl IntoIterator<Item = &'a SiteManifest>,
) -> BTreeMap<&'a CapabilityId, Vec<Member>> {
    let mut nodes: Vec<Node<'a>> = manifests
        .into_iter()
        .flat_map(|manifest| manifest.declarations.iter().map(move |declared| Node { manifest, declared }))
        .collect();
    // Each step joins declarations to the first one.
    nodes.sort_unstable_by(|one, other| one.order().cmp(&other.order()));
    let mut joins: Vec<usize> = (0..nodes.len()).collect();
    join_equal_documents(&nodes, &mut joins);
    join_operations(&nodes, &mut joins);
    join_names(&nodes, &mut joins);
    let mut groups: BTreeMap<&CapabilityId, Vec<Member>> = BTreeMap::new();
    for (index, node) in nodes.iter().enumerate() {
        let Some(leader) = nodes.get(leader_of(&joins, index)) else { continue };
        let member = Member { id: node.declared.id.clone(), manifest: node.manifest.id.clone() };
        groups.entry(&leader.declared.id).or_default().push(member);
    }
    groups
}

/// Follows the joins of a node to its leader. Each join points at an earlier node, with at most one join for each step.
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

/// Joins declarations of the same native id in equal documents.
fn join_equal_documents(nodes: &[Node<'_>], joins: &mut [usize]) {
    let mut first = HashMap::new();
    for (index, node) in nodes.iter().enumerate() {
        let place = (node.document(), node.declared.native_id.as_str());
        join(joins, index, *first.entry(place).or_insert(index));
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
        let mut first = HashMap::new();
        for (index, node) in of_operation() {
            let name = if is_ambiguous { node.declared.native_id.as_str() } else { "" };
            join(joins, index, *first.entry(name).or_insert(index));
        }
    }
}

/// Joins bare names of agents.txt with the capabilities of agents.json on the same host. A document that is more links away than the
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
        if nodes.get(*to).is_some_and(|defined| defined.links_away() <= node.links_away()) {
            join(joins, index, *to);
        }
    }
}

#[cfg(test)]
#[path = "group_tests.rs"]
mod tests;

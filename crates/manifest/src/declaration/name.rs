//! Chooses the id of the declarations of one capability, and reports what changed since the last choice.
//!
//! A known capability keeps its id, even if its leading declaration changes. If known capabilities are merged, the id of the leading
//! declaration is kept, and the other ids become aliases. If a capability is split, its id is kept by the declaration that has this id
//! itself, or else by the group with most of its declarations.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use super::group::{Group, Member};
use crate::name::{CapabilityId, ManifestId};

/// Maximum number of former ids, without a declaration, that still refer to a capability.
const FORMER_MAX: usize = 32;
/// Maximum number of moves that are listed for a manifest; the others are only counted.
const MOVES_LISTED_MAX: usize = 20;

/// The previous decision about a site.
#[derive(Debug, Clone, Default)]
pub struct Before {
    /// Ids of the declarations in the index.
    pub known: HashSet<CapabilityId>,
    /// The capability of each declaration that shares a capability or has another id, and of each id without a declaration.
    pub capabilities: HashMap<CapabilityId, CapabilityId>,
}

impl Before {
    fn capability_of(&self, declaration: &CapabilityId) -> Option<&CapabilityId> {
        self.capabilities.get(declaration).or_else(|| self.known.get(declaration))
    }
}

/// A capability with its id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    pub id: CapabilityId,
    /// The leading declaration first.
    pub members: Vec<Member>,
    /// Former ids, without a declaration, that refer to this capability, sorted.
    pub former: Vec<CapabilityId>,
}

impl Named {
    /// Whether it has a single declaration, the id of this declaration, and no former ids.
    pub fn is_plain(&self) -> bool {
        self.former.is_empty() && matches!(self.members.as_slice(), [only] if only.id == self.id)
    }
}

/// A declaration, and the capability that it joined or left.
pub type Move = (CapabilityId, CapabilityId);

/// The moves that involve a manifest.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Moves {
    /// The first ones, at most `MOVES_LISTED_MAX`.
    pub listed: BTreeSet<Move>,
    pub count: usize,
}

impl Moves {
    /// Adds further moves, which are sorted.
    fn extend(&mut self, moves: &[Move]) {
        self.count += moves.len();
        for one in moves.iter().take(MOVES_LISTED_MAX) {
            if self.listed.len() == MOVES_LISTED_MAX && self.listed.last().is_some_and(|last| last < one) {
                return;
            }
            self.listed.insert(one.clone());
            if self.listed.len() > MOVES_LISTED_MAX {
                self.listed.pop_last();
            }
        }
    }
}

/// The changes of a decision, for each indexed manifest that it involves.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Regrouped {
    /// Declarations that joined a capability with other declarations: for all manifests of the capability.
    pub merged: BTreeMap<ManifestId, Moves>,
    /// Declarations that left a capability: for the manifests of the capability and for that of the declaration.
    pub split: BTreeMap<ManifestId, Moves>,
}

/// Names the groups of a site, in their order.
pub fn name(groups: Vec<Group>, before: &Before) -> (Vec<Named>, Regrouped) {
    let claims = claims(&groups, before);
    let mut named: Vec<Named> = Vec::with_capacity(groups.len());
    let mut of_claim: HashMap<&CapabilityId, usize> = HashMap::new();
    for (index, Group(members)) in groups.into_iter().enumerate() {
        let claimed = claims.get(&index);
        let is_claimed = |id: &&CapabilityId| claimed.is_some_and(|claimed| claimed.contains(*id));
        let known = members.iter().filter_map(|member| before.capability_of(&member.id)).find(is_claimed);
        let known = known.or_else(|| claimed.and_then(|claimed| claimed.first().copied()));
        let Some(id) = known.or_else(|| members.first().map(|leader| &leader.id)).cloned() else { continue };
        for claim in claimed.into_iter().flatten() {
            of_claim.insert(claim, named.len());
        }
        named.push(Named { id, members, former: Vec::new() });
    }
    let current: HashSet<CapabilityId> =
        named.iter().flat_map(|named| named.members.iter().map(|member| member.id.clone())).collect();
    let mut former: BTreeMap<usize, BTreeSet<&CapabilityId>> = BTreeMap::new();
    let aliases = before.capabilities.iter().chain(of_claim.keys().map(|claim| (*claim, *claim)));
    for (alias, capability) in aliases.filter(|(alias, _)| !current.contains(*alias)) {
        if let Some(index) = of_claim.get(capability) {
            former.entry(*index).or_default().insert(alias);
        }
    }
    for (index, aliases) in former {
        let Some(named) = named.get_mut(index) else { continue };
        // The capability's own id is kept regardless of the limit.
        let own = aliases.get(&named.id).copied();
        let others = aliases.into_iter().filter(|alias| **alias != named.id);
        named.former = own.into_iter().chain(others).take(FORMER_MAX).cloned().collect();
        named.former.sort_unstable();
    }
    let changes = changes(&named, before);
    (named, changes)
}

/// The known ids that each group may have.
fn claims<'a>(groups: &[Group], before: &'a Before) -> HashMap<usize, BTreeSet<&'a CapabilityId>> {
    let mut group_of: HashMap<&CapabilityId, usize> = HashMap::new();
    let mut shares: BTreeMap<&CapabilityId, BTreeMap<usize, usize>> = BTreeMap::new();
    for (index, Group(members)) in groups.iter().enumerate() {
        for member in members {
            group_of.insert(&member.id, index);
            if let Some(capability) = before.capability_of(&member.id) {
                *shares.entry(capability).or_default().entry(index).or_default() += 1;
            }
        }
    }
    let mut claims: HashMap<usize, BTreeSet<&CapabilityId>> = HashMap::new();
    for (capability, shares) in shares {
        let largest = || {
            shares.iter().min_by_key(|(index, share)| (Reverse(**share), **index)).map(|(index, _)| *index)
        };
        if let Some(index) = group_of.get(capability).copied().or_else(largest) {
            claims.entry(index).or_default().insert(capability);
        }
    }
    claims
}

/// Takes time linear in the number of declarations, regardless of the number of manifests of a capability.
fn changes(named: &[Named], before: &Before) -> Regrouped {
    let mut changes = Regrouped::default();
    let mut now: HashMap<&CapabilityId, (&Named, &Member)> = HashMap::new();
    for capability in named {
        now.extend(capability.members.iter().map(|member| (&member.id, (capability, member))));
        let arrived = capability.members.iter().filter(|member| {
            let was_of_it = before.capability_of(&member.id) == Some(&capability.id);
            !was_of_it && member.id != capability.id
        });
        let moves = arrived.map(|member| (member.id.clone(), capability.id.clone())).collect();
        if capability.members.len() > 1 {
            add(&mut changes.merged, moves, capability);
        }
    }
    let by_id: HashMap<&CapabilityId, &Named> = named.iter().map(|named| (&named.id, named)).collect();
    let mut left: BTreeMap<&CapabilityId, Vec<Move>> = BTreeMap::new();
    for (declaration, capability) in before.capabilities.iter().filter(|(id, _)| before.known.contains(*id)) {
        let is_still_there = now.get(declaration).is_some_and(|(current, _)| current.id == *capability);
        // An id that was merged into another one moves with all its declarations.
        if !is_still_there && by_id.contains_key(capability) {
            left.entry(capability).or_default().push((declaration.clone(), capability.clone()));
        }
    }
    for (capability, moves) in left {
        let Some(remaining) = by_id.get(capability) else { continue };
        let manifests: HashSet<&ManifestId> =
            remaining.members.iter().map(|member| &member.manifest).collect();
        for one in &moves {
            let Some((_, member)) = now.get(&one.0) else { continue };
            if !manifests.contains(&member.manifest) {
                let own = changes.split.entry(member.manifest.clone()).or_default();
                own.extend(std::slice::from_ref(one));
            }
        }
        add(&mut changes.split, moves, remaining);
    }
    changes
}

/// Adds moves to every manifest that declares a capability. Each manifest declares it once.
fn add(changed: &mut BTreeMap<ManifestId, Moves>, mut moves: Vec<Move>, capability: &Named) {
    if moves.is_empty() {
        return;
    }
    moves.sort_unstable();
    for member in &capability.members {
        changed.entry(member.manifest.clone()).or_default().extend(&moves);
    }
}

#[cfg(test)]
#[path = "name_tests.rs"]
mod tests;

//! The groups that this process owns, should own, and uses: the decisions of [`super::Groups`], without a database.

use policy::Seed;
use policy::address::ADDRESS_GROUPS;
use policy::delay::Scope;
use policy::groups::worker_for;
use store::{Member, MemberId, Share};
use tokio::time::Instant;

/// One group.
#[derive(Debug, Clone, Copy, Default)]
struct Group {
    /// The epoch since which this worker owns the group.
    since: Option<u64>,
    /// Whether this worker should own the group, according to the members of the fleet.
    assigned: bool,
    /// Whether the group is to be released or has an unknown owner: no new request begins in it.
    leaving: bool,
    in_use: u32,
    /// End of the gap after the last request. The group is not released before, because the next worker that owns it does not know of that
    /// request.
    gap_until: Option<Instant>,
}

/// Changes to request from the store.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Plan {
    pub(super) given_up: Vec<u16>,
    pub(super) wanted: Vec<u16>,
}

/// All groups.
#[derive(Debug)]
pub(super) struct GroupTable {
    share: Share,
    member: Option<MemberId>,
    members: Vec<Member>,
    groups: Vec<Group>,
    epoch: u64,
}

impl GroupTable {
    pub(super) fn new(share: Share) -> Self {
        let groups = vec![Group::default(); usize::from(ADDRESS_GROUPS)];
        Self { share, member: None, members: Vec::new(), groups, epoch: 0 }
    }

    pub(super) const fn member(&self) -> Option<MemberId> {
        self.member
    }

    pub(super) const fn join(&mut self, member: MemberId) {
        self.member = Some(member);
    }

    /// The epoch since which a group is owned, unless it is about to be released.
    pub(super) fn ownership(&self, group: u16) -> Option<u64> {
        let group_state = self.groups.get(usize::from(group))?;
        group_state.since.filter(|_| !group_state.leaving)
    }

    pub(super) fn enter(&mut self, group: u16, epoch: u64) -> Option<MemberId> {
        let member = self.member?;
        if self.ownership(group) != Some(epoch) {
            return None;
        }
        self.groups.get_mut(usize::from(group))?.in_use += 1;
        Some(member)
    }

    pub(super) fn exit(&mut self, group: u16, now: Instant) {
        if let Some(group_state) = self.groups.get_mut(usize::from(group)) {
            group_state.in_use = group_state.in_use.saturating_sub(1);
            group_state.gap_until = Some(now + Scope::Address.limits().gap);
        }
    }

    /// Ends the membership and every ownership.
    pub(super) fn forget(&mut self) {
        self.members.clear();
        for group_state in &mut self.groups {
            (group_state.since, group_state.assigned, group_state.leaving) = (None, false, false);
        }
        self.member = None;
    }

    pub(super) fn is_settled(&self) -> bool {
        self.member.is_some()
            && self.groups.iter().all(|group_state| {
                !group_state.leaving && group_state.since.is_some() == group_state.assigned
            })
    }

    /// The groups to release and to take for these members; `None` if nothing changes.
    pub(super) fn plan(&mut self, members: &[Member], now: Instant) -> Option<Plan> {
        if self.members != members {
            members.clone_into(&mut self.members);
            self.assign();
        }
        if self.is_settled() {
            return None;
        }
        let is_idle = |group_state: &Group| {
            group_state.in_use == 0 && group_state.gap_until.is_none_or(|until| until <= now)
        };
        Some(Plan {
            given_up: self.numbers(|group_state| {
                group_state.since.is_some() && !group_state.assigned && is_idle(group_state)
            }),
            wanted: self.numbers(|group_state| group_state.since.is_none() && group_state.assigned),
        })
    }

    fn assign(&mut self) {
        if self.share == Share::None {
            return;
        }
        let names: Vec<Seed> = self.members.iter().map(|member| Seed::of(member.name.as_str())).collect();
        let ours = self.members.iter().position(|member| Some(member.id) == self.member);
        for (group, group_state) in (0..ADDRESS_GROUPS).zip(&mut self.groups) {
            group_state.assigned = ours.is_some() && worker_for(group, &names) == ours;
            // a group that is being released is used again only after the store has confirmed it
            group_state.leaving |= group_state.since.is_some() && !group_state.assigned;
        }
    }

    fn numbers(&self, holds: impl Fn(&Group) -> bool) -> Vec<u16> {
        (0..ADDRESS_GROUPS)
            .zip(&self.groups)
            .filter(|(_, group_state)| holds(group_state))
            .map(|(group, _)| group)
            .collect()
    }

    /// Sets the owned groups from the store; returns how many are new.
    pub(super) fn set_owned(&mut self, owned: &[u16]) -> usize {
        self.epoch += 1;
        let mut is_owned = vec![false; self.groups.len()];
        for group in owned {
            if let Some(is_owned) = is_owned.get_mut(usize::from(*group)) {
                *is_owned = true;
            }
        }
        let mut gained = 0;
        for (group_state, is_owned) in self.groups.iter_mut().zip(is_owned) {
            // a worker without a share keeps the groups that it took
            group_state.assigned |= is_owned && self.share == Share::None;
            let stays = group_state.since.is_some() && !group_state.leaving;
            let leaving = is_owned && !group_state.assigned;
            if is_owned && !stays && !leaving {
                group_state.since = Some(self.epoch);
                gained += 1;
            } else if is_owned {
                group_state.since = group_state.since.or(Some(self.epoch));
            } else {
                group_state.since = None;
            }
            group_state.leaving = leaving;
        }
        gained
    }
}

#[cfg(test)]
#[path = "table_tests.rs"]
mod tests;

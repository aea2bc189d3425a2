//! What this process owns, should own, and uses: the decisions behind [`super::Groups`], without a database.

use policy::Seed;
use policy::address::ADDRESS_GROUPS;
use policy::delay::Scope;
use policy::groups::worker_for;
use store::{Member, MemberId, Share};
use tokio::time::Instant;

/// One group.
#[derive(Debug, Clone, Copy, Default)]
struct Slot {
    /// Since which epoch it is owned.
    since: Option<u64>,
    /// By the members of the fleet, it should be ours.
    assigned: bool,
    /// On its way to another worker, or not known to be still ours: nothing new begins in it.
    leaving: bool,
    in_use: u32,
    /// An address in it rests after a request, and the next owner does not know of it: it comes after the rest.
    rests_until: Option<Instant>,
}

/// What is to be asked of the store.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Plan {
    pub(super) given_up: Vec<u16>,
    pub(super) wanted: Vec<u16>,
}

/// All groups.
#[derive(Debug)]
pub(super) struct Ledger {
    share: Share,
    member: Option<MemberId>,
    members: Vec<Member>,
    slots: Vec<Slot>,
    epoch: u64,
}

impl Ledger {
    pub(super) fn new(share: Share) -> Self {
        let slots = vec![Slot::default(); usize::from(ADDRESS_GROUPS)];
        Self { share, member: None, members: Vec::new(), slots, epoch: 0 }
    }

    pub(super) const fn member(&self) -> Option<MemberId> {
        self.member
    }

    pub(super) const fn join(&mut self, member: MemberId) {
        self.member = Some(member);
    }

    /// Since when a group is ours, if it is and goes on to be.
    pub(super) fn tenure(&self, group: u16) -> Option<u64> {
        let slot = self.slots.get(usize::from(group))?;
        slot.since.filter(|_| !slot.leaving)
    }

    pub(super) fn enter(&mut self, group: u16, epoch: u64) -> Option<MemberId> {
        let member = self.member?;
        if self.tenure(group) != Some(epoch) {
            return None;
        }
        self.slots.get_mut(usize::from(group))?.in_use += 1;
        Some(member)
    }

    pub(super) fn exit(&mut self, group: u16, now: Instant) {
        if let Some(slot) = self.slots.get_mut(usize::from(group)) {
            slot.in_use = slot.in_use.saturating_sub(1);
            slot.rests_until = Some(now + Scope::Address.limits().gap);
        }
    }

    /// Nothing is owned any more, and the membership has ended.
    pub(super) fn forget(&mut self) {
        self.members.clear();
        for slot in &mut self.slots {
            (slot.since, slot.assigned, slot.leaving) = (None, false, false);
        }
        self.member = None;
    }

    pub(super) fn is_settled(&self) -> bool {
        self.member.is_some()
            && self.slots.iter().all(|slot| !slot.leaving && slot.since.is_some() == slot.assigned)
    }

    /// What to give up and what to take, now that these are the members; `None` when all is as it should be.
    pub(super) fn plan(&mut self, members: &[Member], now: Instant) -> Option<Plan> {
        if self.members != members {
            members.clone_into(&mut self.members);
            self.assign();
        }
        if self.is_settled() {
            return None;
        }
        let is_quiet = |slot: &Slot| slot.in_use == 0 && slot.rests_until.is_none_or(|until| until <= now);
        Some(Plan {
            given_up: self.numbers(|slot| slot.since.is_some() && !slot.assigned && is_quiet(slot)),
            wanted: self.numbers(|slot| slot.since.is_none() && slot.assigned),
        })
    }

    fn assign(&mut self) {
        if self.share == Share::None {
            return;
        }
        let names: Vec<Seed> = self.members.iter().map(|member| Seed::of(member.name.as_str())).collect();
        let ours = self.members.iter().position(|member| Some(member.id) == self.member);
        for (group, slot) in (0..ADDRESS_GROUPS).zip(&mut self.slots) {
            slot.assigned = ours.is_some() && worker_for(group, &names) == ours;
            // what is leaving comes back by the store's word alone
            slot.leaving |= slot.since.is_some() && !slot.assigned;
        }
    }

    fn numbers(&self, holds: impl Fn(&Slot) -> bool) -> Vec<u16> {
        (0..ADDRESS_GROUPS).zip(&self.slots).filter(|(_, slot)| holds(slot)).map(|(group, _)| group).collect()
    }

    /// Takes over what the store says is owned; returns how many groups that were not.
    pub(super) fn settled(&mut self, owned: &[u16]) -> usize {
        self.epoch += 1;
        let mut is_owned = vec![false; self.slots.len()];
        for group in owned {
            if let Some(is_owned) = is_owned.get_mut(usize::from(*group)) {
                *is_owned = true;
            }
        }
        let mut gained = 0;
        for (slot, is_owned) in self.slots.iter_mut().zip(is_owned) {
            // a worker without a share keeps what it claimed
            slot.assigned |= is_owned && self.share == Share::None;
            let stays = slot.since.is_some() && !slot.leaving;
            let leaving = is_owned && !slot.assigned;
            if is_owned && !stays && !leaving {
                slot.since = Some(self.epoch);
                gained += 1;
            } else if is_owned {
                slot.since = slot.since.or(Some(self.epoch));
            } else {
                slot.since = None;
            }
            slot.leaving = leaving;
        }
        gained
    }
}

#[cfg(test)]
#[path = "ledger_tests.rs"]
mod tests;

//! The address groups that this process owns: the addresses that its visits may contact.
//!
//! A crawler with its own database owns every address. In a fleet, each group has one owner, so that the limits of an address are in the
//! memory of one process. The list of members determines which groups a worker should own. The worker takes these groups when they are
//! free, and releases other groups when it has no request in flight there. A worker that was declared dead has lost all of its groups: each
//! clock is written under a membership, and no clock is written under an expired one.

mod table;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use store::{GroupSet, MemberId, Share, Store, StoreError, WorkerId};
use tokio::time::Instant;

use self::table::GroupTable;
use crate::{clock, metrics};
use egress::REQUEST_TIME_MAX;

/// A worker without a heartbeat for this long is declared dead: long enough that its last request has ended, even if the clocks of two
/// machines differ by half a minute, and short enough that a fleet soon takes over the groups of a lost worker.
const LIFE_MAX: Duration = Duration::from_mins(2);
/// Maximum time between writing the clock of a request and sending the request: longer than a connection and its handshake take.
pub(crate) const LEAVES_WITHIN_MAX: Duration = Duration::from_secs(15);
const CLOCKS_DIFFER_MAX: Duration = Duration::from_secs(30);
/// Minimum lease for sites outside the operator's networks. Each request is sent and has ended before its lease expires.
pub(crate) const LEASE_FLOOR: Duration = LIFE_MAX;
const _: () = assert!(
    LEAVES_WITHIN_MAX.as_secs() + REQUEST_TIME_MAX.as_secs() + CLOCKS_DIFFER_MAX.as_secs()
        <= LIFE_MAX.as_secs()
);
/// Heartbeats per lifetime of a membership. Every written clock is a heartbeat too.
const HEARTBEATS_PER_LIFE: u32 = 3;
/// Maximum interval of heartbeats, and so the time after which a fleet notices a worker that joins.
const HEARTBEAT_INTERVAL_MAX: Duration = Duration::from_secs(5);
/// Heartbeat interval while groups move from one worker to another.
const HEARTBEAT_INTERVAL_UNSETTLED: Duration = Duration::from_secs(1);

/// How long a lease and a membership last after a written clock has renewed them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lifetimes {
    pub(crate) lease: Duration,
    pub(crate) member: Duration,
}

impl Lifetimes {
    pub(crate) fn of(lease: Duration) -> Self {
        Self { lease, member: lease.min(LIFE_MAX) }
    }

    /// Time after its clock within which a request may be sent. The rest of the lifetimes is for its response.
    pub(crate) fn leaves_within(self) -> Duration {
        (self.member / 2).min(LEAVES_WITHIN_MAX)
    }
}

/// The groups of this process; cheap to clone.
#[derive(Clone)]
pub(crate) struct Groups(Option<Arc<SharedGroups>>);

/// The groups of one worker of a fleet.
struct SharedGroups {
    worker: WorkerId,
    share: Share,
    life: Duration,
    table: Mutex<GroupTable>,
}

/// The ownership of a group. If a group is released and taken again, this is another ownership.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ownership {
    pub(crate) group: u16,
    epoch: u64,
}

/// A request in flight in a group; the group is not released before this is dropped.
pub(crate) struct GroupUse {
    shared: Arc<SharedGroups>,
    group: u16,
    /// The membership under which the clock of the request is written.
    pub(crate) member: MemberId,
}

/// The result of a heartbeat.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct HeartbeatResult {
    /// Whether groups of other workers were taken over.
    pub(crate) gained: bool,
}

impl Groups {
    /// This process owns every address.
    pub(crate) const fn unshared() -> Self {
        Self(None)
    }

    /// The groups of a worker in a fleet. The worker owns nothing before its first [`Groups::heartbeat`].
    pub(crate) fn shared(worker: WorkerId, share: Share, lease: Duration) -> Self {
        let table = Mutex::new(GroupTable::new(share));
        Self(Some(Arc::new(SharedGroups { worker, share, life: Lifetimes::of(lease).member, table })))
    }

    pub(crate) const fn is_unshared(&self) -> bool {
        self.0.is_none()
    }

    /// The groups whose sites may be leased.
    pub(crate) fn leasable(&self) -> GroupSet {
        self.0.as_ref().map_or_else(GroupSet::all, |shared| {
            let table = shared.table();
            GroupSet::of(|group| table.ownership(group).is_some())
        })
    }

    /// The ownership of a group, unless it is about to be released.
    pub(crate) fn ownership(&self, group: u16) -> Option<Ownership> {
        let epoch = self.0.as_ref().map_or(Some(0), |shared| shared.table().ownership(group))?;
        Some(Ownership { group, epoch })
    }

    /// Begins a request in a group; `None` if the ownership has ended.
    pub(crate) fn enter(&self, ownership: Ownership) -> Option<GroupUse> {
        let shared = self.0.as_ref()?;
        let member = shared.table().enter(ownership.group, ownership.epoch)?;
        Some(GroupUse { shared: Arc::clone(shared), group: ownership.group, member })
    }

    /// Takes one group that has no owner, for a worker that is not assigned a share.
    pub(crate) async fn take_unowned(
        &self,
        store: &Store,
        group: u16,
    ) -> Result<Option<Ownership>, StoreError> {
        let Some(shared) = self.0.as_ref().filter(|shared| shared.share == Share::None) else {
            return Ok(self.ownership(group));
        };
        let member = shared.member(store).await?;
        let owned = store.groups_settle(member, &[], &[group]).await?;
        shared.table().set_owned(&owned);
        Ok(self.ownership(group))
    }

    /// Sends a heartbeat, and takes and releases groups.
    pub(crate) async fn heartbeat(&self, store: &Store) -> Result<HeartbeatResult, StoreError> {
        let Some(shared) = &self.0 else { return Ok(HeartbeatResult::default()) };
        let member = shared.member(store).await?;
        let Some(members) = store.member_beat(member, shared.life, clock::now()).await? else {
            tracing::warn!(worker = %shared.worker, "the fleet declared this worker dead; it joins again");
            metrics::membership_lost();
            shared.table().forget();
            return Ok(HeartbeatResult::default());
        };
        let plan = shared.table().plan(&members, Instant::now());
        let Some(plan) = plan else { return Ok(HeartbeatResult::default()) };
        let owned = store.groups_settle(member, &plan.given_up, &plan.wanted).await?;
        let gained = shared.table().set_owned(&owned);
        metrics::groups_owned(owned.len());
        tracing::debug!(owned = owned.len(), gained, members = members.len(), "address groups settled");
        Ok(HeartbeatResult { gained: gained > 0 })
    }

    /// When to send the next heartbeat.
    pub(crate) fn heartbeat_interval(&self) -> Duration {
        self.0.as_ref().map_or(Duration::MAX, |shared| {
            let usual = (shared.life / HEARTBEATS_PER_LIFE).min(HEARTBEAT_INTERVAL_MAX);
            if shared.table().is_settled() { usual } else { usual.min(HEARTBEAT_INTERVAL_UNSETTLED) }
        })
    }

    /// Drops all groups. The caller deletes the worker from the store.
    pub(crate) fn leave(&self) {
        if let Some(shared) = &self.0 {
            shared.table().forget();
        }
    }
}

impl SharedGroups {
    fn table(&self) -> MutexGuard<'_, GroupTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The membership; joins the fleet if there is none.
    async fn member(&self, store: &Store) -> Result<MemberId, StoreError> {
        let known = self.table().member();
        if let Some(member) = known {
            return Ok(member);
        }
        let member = store.worker_join(&self.worker, self.share, self.life, clock::now()).await?;
        self.table().join(member);
        Ok(member)
    }
}

impl Drop for GroupUse {
    fn drop(&mut self) {
        self.shared.table().exit(self.group, Instant::now());
    }
}

impl fmt::Debug for GroupUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GroupUse")
            .field("group", &self.group)
            .field("member", &self.member)
            .finish_non_exhaustive()
    }
}

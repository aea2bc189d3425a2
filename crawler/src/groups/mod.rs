//! The address groups that this process owns: which addresses its visits may speak to.
//!
//! A crawler that has its database alone owns every address. In a fleet each group has one owner, so that the limits of an
//! address are kept in the memory of one process. Which groups a worker should own follows from who is there; it takes
//! them when they are free, and gives them up when nothing of its own is under way in them. A worker that others gave up
//! for dead has lost them all: every clock is written under a membership, and none is written under one that has ended.

mod ledger;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use store::{GroupSet, MemberId, Share, Store, StoreError, WorkerId};
use tokio::time::Instant;

use self::ledger::Ledger;
use crate::{clock, metrics};

/// How long a worker is waited for that gives no sign of life: longer than any request takes, so that the one that was
/// under way has ended, and short enough for a fleet that lost a worker.
const LIFE_MAX: Duration = Duration::from_mins(1);
/// A worker tells that it is alive this many times before it would be given up; every clock that it writes tells so too.
const BEATS_PER_LIFE: u32 = 3;
/// How soon a fleet notices a worker that joins.
const BEAT_MAX: Duration = Duration::from_secs(5);
/// The same while groups are on their way from one worker to another.
const BEAT_RESTLESS: Duration = Duration::from_secs(1);

/// How long a membership lives without a sign of life, by how long a site is leased for.
pub(crate) fn life(lease: Duration) -> Duration {
    lease.min(LIFE_MAX)
}

/// The groups of this process; cheap to clone.
#[derive(Clone)]
pub(crate) struct Groups(Option<Arc<Fleet>>);

struct Fleet {
    worker: WorkerId,
    share: Share,
    life: Duration,
    ledger: Mutex<Ledger>,
}

/// A group as it was owned at a time. Ownership that ended and came back is another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tenure {
    pub(crate) group: u16,
    epoch: u64,
}

/// A request in a group; the group is not given up before this is dropped.
pub(crate) struct InUse {
    fleet: Arc<Fleet>,
    group: u16,
    /// Under which the request's clock is to be written.
    pub(crate) member: MemberId,
}

/// What a sign of life came to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Beat {
    /// There are groups that were another worker's before.
    pub(crate) gained: bool,
}

impl Groups {
    /// Every address is ours.
    pub(crate) const fn sole() -> Self {
        Self(None)
    }

    /// A worker among others; it owns nothing before its first [`Groups::beat`].
    pub(crate) fn of_fleet(worker: WorkerId, share: Share, lease: Duration) -> Self {
        let ledger = Mutex::new(Ledger::new(share));
        Self(Some(Arc::new(Fleet { worker, share, life: life(lease), ledger })))
    }

    pub(crate) const fn is_sole(&self) -> bool {
        self.0.is_none()
    }

    /// The groups whose sites may be leased.
    pub(crate) fn to_lease(&self) -> GroupSet {
        self.0.as_ref().map_or_else(GroupSet::all, |fleet| {
            let ledger = fleet.ledger();
            GroupSet::of(|group| ledger.tenure(group).is_some())
        })
    }

    /// Whether a group is ours, and goes on to be.
    pub(crate) fn tenure(&self, group: u16) -> Option<Tenure> {
        let epoch = self.0.as_ref().map_or(Some(0), |fleet| fleet.ledger().tenure(group))?;
        Some(Tenure { group, epoch })
    }

    /// Begins a request in a group, if it is still ours without a break; `None` where it is not.
    pub(crate) fn enter(&self, tenure: Tenure) -> Option<InUse> {
        let fleet = self.0.as_ref()?;
        let member = fleet.ledger().enter(tenure.group, tenure.epoch)?;
        Some(InUse { fleet: Arc::clone(fleet), group: tenure.group, member })
    }

    /// Takes a single group if nobody has it: for a worker that takes no share.
    pub(crate) async fn claim(&self, store: &Store, group: u16) -> Result<Option<Tenure>, StoreError> {
        let Some(fleet) = self.0.as_ref().filter(|fleet| fleet.share == Share::None) else {
            return Ok(self.tenure(group));
        };
        let member = fleet.member(store).await?;
        let owned = store.groups_settle(member, &[], &[group]).await?;
        fleet.ledger().settled(&owned);
        Ok(self.tenure(group))
    }

    /// Gives a sign of life, and brings what is owned nearer to what should be.
    pub(crate) async fn beat(&self, store: &Store) -> Result<Beat, StoreError> {
        let Some(fleet) = &self.0 else { return Ok(Beat::default()) };
        let member = fleet.member(store).await?;
        let Some(members) = store.member_beat(member, fleet.life, clock::now()).await? else {
            tracing::warn!(worker = %fleet.worker, "the fleet took this worker for dead: it begins anew");
            metrics::membership_lost();
            fleet.ledger().forget();
            return Ok(Beat::default());
        };
        let plan = fleet.ledger().plan(&members, Instant::now());
        let Some(plan) = plan else { return Ok(Beat::default()) };
        let owned = store.groups_settle(member, &plan.given_up, &plan.wanted).await?;
        let gained = fleet.ledger().settled(&owned);
        metrics::groups_owned(owned.len());
        tracing::debug!(owned = owned.len(), gained, members = members.len(), "address groups settled");
        Ok(Beat { gained: gained > 0 })
    }

    /// When to give the next sign of life.
    pub(crate) fn beat_again_after(&self) -> Duration {
        self.0.as_ref().map_or(Duration::MAX, |fleet| {
            let usual = (fleet.life / BEATS_PER_LIFE).min(BEAT_MAX);
            if fleet.ledger().is_settled() { usual } else { usual.min(BEAT_RESTLESS) }
        })
    }

    /// Owns nothing any more; the store forgets the whole worker.
    pub(crate) fn leave(&self) {
        if let Some(fleet) = &self.0 {
            fleet.ledger().forget();
        }
    }
}

impl Fleet {
    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The membership; a new one where there is none.
    async fn member(&self, store: &Store) -> Result<MemberId, StoreError> {
        let known = self.ledger().member();
        if let Some(member) = known {
            return Ok(member);
        }
        let member = store.worker_join(&self.worker, self.share, self.life, clock::now()).await?;
        self.ledger().join(member);
        Ok(member)
    }
}

impl Drop for InUse {
    fn drop(&mut self) {
        self.fleet.ledger().exit(self.group, Instant::now());
    }
}

impl fmt::Debug for InUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InUse")
            .field("group", &self.group)
            .field("member", &self.member)
            .finish_non_exhaustive()
    }
}

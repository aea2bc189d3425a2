//! Address groups: which worker of the fleet speaks to which addresses.

use std::collections::HashSet;
use std::time::Duration;

use chrono::{DateTime, Utc};
use manifest::SiteName;

use super::{ATTEMPTS_MAX, Pools, Store};
use crate::fault::Outcome;
use crate::model::{HandOver, LeaseToken, Member, MemberId, Share, SiteGroup, WorkerId};
use crate::pack::{millis, until_ms};
use crate::{StoreError, postgres, sqlite};

impl Store {
    /// Makes a worker a member of the fleet for a duration. Whatever an earlier run of the same worker owned is free.
    pub async fn worker_join(
        &self,
        worker: &WorkerId,
        share: Share,
        duration: Duration,
        now: DateTime<Utc>,
    ) -> Result<MemberId, StoreError> {
        let until_ms = until_ms(now, duration);
        writing!(self, "worker_join", group::worker_join(worker, share, until_ms))
    }

    /// Renews a membership, ends those that were not renewed in time, and lists the members that take groups. `None`:
    /// the membership was ended by others, and with it the right to every group.
    pub async fn member_beat(
        &self,
        member: MemberId,
        duration: Duration,
        now: DateTime<Utc>,
    ) -> Result<Option<Vec<Member>>, StoreError> {
        let until_ms = until_ms(now, duration);
        writing!(self, "member_beat", group::member_beat(member, until_ms, millis(now)))
    }

    /// Gives groups up, in which no request may be under way, and takes those of the wanted ones that nobody owns.
    /// Returns every group that the member owns now; none when the membership has ended.
    pub async fn groups_settle(
        &self,
        member: MemberId,
        given_up: &[u16],
        wanted: &[u16],
    ) -> Result<Vec<u16>, StoreError> {
        writing!(self, "groups_settle", group::groups_settle(member, given_up, wanted))
    }

    /// Gives leases back to whoever owns the address groups that their tokens name, with what the visits have done; hundreds
    /// cost one statement. Returns the sites that were still held: of the others nothing is written.
    pub async fn visits_hand_over(
        &self,
        visits: &[(LeaseToken, HandOver)],
    ) -> Result<HashSet<SiteName>, StoreError> {
        writing!(self, "visits_hand_over", group::visits_hand_over(visits))
    }

    /// The group of a site's address, and who owns it; `None` while its address is not known.
    pub async fn site_group(&self, site: &SiteName) -> Result<Option<SiteGroup>, StoreError> {
        reading!(self, "site_group", group::site_group(site))
    }
}

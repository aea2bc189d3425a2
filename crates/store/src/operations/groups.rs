//! Workers of the fleet and their address groups.

use async_recursion::async_recursion as boxed;
use std::collections::HashSet;
use std::time::Duration;

use chrono::{DateTime, Utc};
use manifest::SiteName;

use super::Store;
use crate::StoreError;
use crate::convert::{millis, until_ms};
use crate::model::{HandOver, LeaseToken, Member, MemberId, Share, SiteGroup, WorkerId};

impl Store {
    /// Adds a worker to the fleet for a duration. Groups of an earlier run of the same worker become free.
    #[boxed]
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

    /// Renews a membership, ends expired ones, and lists the members that take groups. `None` if another worker ended the membership, which
    /// also ends the ownership of every group.
    #[boxed]
    pub async fn member_beat(
        &self,
        member: MemberId,
        duration: Duration,
        now: DateTime<Utc>,
    ) -> Result<Option<Vec<Member>>, StoreError> {
        let until_ms = until_ms(now, duration);
        writing!(self, "member_beat", group::member_beat(member, until_ms, millis(now)))
    }

    /// Releases groups and takes the wanted groups that have no owner. No request may be in progress in a released group. Returns all
    /// groups that the member owns; none if the membership has ended.
    #[boxed]
    pub async fn groups_settle(
        &self,
        member: MemberId,
        given_up: &[u16],
        wanted: &[u16],
    ) -> Result<Vec<u16>, StoreError> {
        writing!(self, "groups_settle", group::groups_settle(member, given_up, wanted))
    }

    /// Ends leases so that the owners of their address groups can take them, and saves the progress of the visits, with few statements for
    /// any number of leases. Returns the sites whose lease was still held; nothing is written for the others.
    #[boxed]
    pub async fn visits_hand_over(
        &self,
        visits: &[(LeaseToken, HandOver)],
    ) -> Result<HashSet<SiteName>, StoreError> {
        writing!(self, "visits_hand_over", group::visits_hand_over(visits))
    }

    /// The group of a site's address, and its owner; `None` while the address is not known.
    #[boxed]
    pub async fn site_group(&self, site: &SiteName) -> Result<Option<SiteGroup>, StoreError> {
        reading!(self, "site_group", group::site_group(site))
    }
}

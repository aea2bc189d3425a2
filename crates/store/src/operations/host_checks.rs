//! Daily checks of hosts that endpoints name.

use async_recursion::async_recursion as boxed;
use chrono::{DateTime, Utc};
use manifest::{Host, SiteName};
use policy::liveness::HostCheckOutcome;

use super::Store;
use crate::StoreError;
use crate::model::{HostCheck, NamedHost};

impl Store {
    /// Begins the checks of these hosts on the day (UTC) of `now`, and returns the hosts to check. Each host is returned at most once on a
    /// day, to one of all callers. Hosts of blocked or suspended sites are left out, and of one registrable domain hosts beyond 7 that the
    /// site itself names and 3 others.
    #[boxed]
    pub async fn host_checks_begin(
        &self,
        hosts: &[NamedHost],
        now: DateTime<Utc>,
    ) -> Result<Vec<Host>, StoreError> {
        writing!(self, "host_checks_begin", host_check::host_checks_begin(hosts, now))
    }

    /// Gives back a check that began on the day of `now` and in which the host was not contacted, so that it can begin again on this day.
    #[boxed]
    pub async fn host_check_abandon(&self, host: &Host, now: DateTime<Utc>) -> Result<(), StoreError> {
        writing!(self, "host_check_abandon", host_check::host_check_abandon(host, now))
    }

    /// Stores what a check found, unless the site was blocked since.
    #[boxed]
    pub async fn host_check_end(
        &self,
        host: &Host,
        outcome: HostCheckOutcome,
        at: DateTime<Utc>,
    ) -> Result<(), StoreError> {
        writing!(self, "host_check_end", host_check::host_check_end(host, outcome, at))
    }

    /// The checks of a host; `None` before the first one ended.
    #[boxed]
    pub async fn host_check_find(&self, host: &Host) -> Result<Option<HostCheck>, StoreError> {
        reading!(self, "host_check_find", host_check::host_check_find(host))
    }

    /// The last checks of the hosts of a registrable domain that the site itself names, sorted by host.
    #[boxed]
    pub async fn host_checks_of_site(&self, site: &SiteName) -> Result<Vec<HostCheck>, StoreError> {
        reading!(self, "host_checks_of_site", host_check::host_checks_of_site(site.as_str()))
    }
}

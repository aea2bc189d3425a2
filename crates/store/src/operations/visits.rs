//! Saving visits.

use super::Store;
use crate::StoreError;
use crate::model::{LeaseToken, RobotsRecord, VisitRecord, VisitSaved};
use crate::prepare::{VisitWrite, robots_rows};
use async_recursion::async_recursion as boxed;

impl Store {
    /// Saves a visit in one transaction and ends its lease.
    ///
    /// # Errors
    ///
    /// [`StoreError::LeaseLost`] when the lease is no longer held, [`StoreError::Blocked`] when the site owner opted out during the
    /// visit. Nothing is written then.
    #[boxed]
    pub async fn visit_save(
        &self,
        token: &LeaseToken,
        visit: &VisitRecord,
    ) -> Result<VisitSaved, StoreError> {
        self.visits_together(&[VisitWrite::new(token, visit)?]).await?.pop().unwrap_or_else(|| lost(token))
    }

    /// Saves visits that end at the same time: in one transaction, or one by one if one of them cannot be saved. Each visit has its own
    /// result.
    ///
    /// # Errors
    ///
    /// The database is not available, and nothing was written.
    #[boxed]
    pub async fn visits_save(
        &self,
        visits: &[(&LeaseToken, &VisitRecord)],
    ) -> Result<Vec<Result<VisitSaved, StoreError>>, StoreError> {
        let (mut writes, mut results) = (Vec::with_capacity(visits.len()), Vec::with_capacity(visits.len()));
        for (token, visit) in visits {
            match VisitWrite::new(token, visit) {
                Ok(write) => {
                    writes.push(write);
                    results.push(None);
                }
                Err(error) => results.push(Some(Err(error))),
            }
        }
        let saved = match self.visits_together(&writes).await {
            Err(error) if !error.is_transient() => {
                tracing::debug!(%error, visits = writes.len(), "saving visits one by one");
                let mut saved = Vec::with_capacity(writes.len());
                for write in &writes {
                    saved.push(self.visit_save(write.token, write.visit).await);
                }
                saved
            }
            saved => saved?,
        };
        let mut saved = saved.into_iter();
        let each = results.into_iter().zip(visits);
        Ok(each
            .map(|(result, (token, _))| result.or_else(|| saved.next()).unwrap_or_else(|| lost(token)))
            .collect())
    }

    /// Ends a lease after requests that were not a visit, and saves robots.txt of the hosts. The site is due as before, and
    /// the progress of a parked visit is kept.
    ///
    /// # Errors
    ///
    /// [`StoreError::LeaseLost`] when the lease is no longer held; nothing is written then.
    #[boxed]
    pub async fn standalone_end(
        &self,
        token: &LeaseToken,
        robots: &[RobotsRecord],
    ) -> Result<(), StoreError> {
        let robots = robots_rows(robots)?;
        writing!(self, "standalone_end", visit::standalone_end(token, &robots))
    }

    async fn visits_together(
        &self,
        visits: &[VisitWrite<'_>],
    ) -> Result<Vec<Result<VisitSaved, StoreError>>, StoreError> {
        if visits.is_empty() {
            return Ok(Vec::new());
        }
        let is_disk_nearly_full = self.is_disk_nearly_full();
        writing!(self, "visit_save", visit::visits_save(visits, is_disk_nearly_full))
    }
}

fn lost(token: &LeaseToken) -> Result<VisitSaved, StoreError> {
    Err(StoreError::LeaseLost { site: token.site.clone() })
}

//! Saving visits.

use super::{ATTEMPTS_MAX, Pools, Store};
use crate::fault::Outcome;
use crate::model::{LeaseToken, RobotsRecord, VisitRecord, VisitSaved};
use crate::packed::{self, Saving};
use crate::{StoreError, postgres, sqlite};

impl Store {
    /// Saves a visit whole, in one transaction, and gives the lease back. [`StoreError::LeaseLost`] when another
    /// worker holds the site by now, [`StoreError::Blocked`] when its owner opted out meanwhile; nothing is written then.
    pub async fn visit_save(
        &self,
        token: &LeaseToken,
        visit: &VisitRecord,
    ) -> Result<VisitSaved, StoreError> {
        self.visits_together(&[Saving::of(token, visit)?]).await?.pop().unwrap_or_else(|| lost(token))
    }

    /// Saves visits as [`Self::visit_save`] does, in one transaction where that is possible: for visits that end at the same
    /// time, each of which has a result. Visits of which one cannot be saved are saved one by one, each whole or not at
    /// all. An error of the whole means that nothing was written: the database is away.
    pub async fn visits_save(
        &self,
        visits: &[(&LeaseToken, &VisitRecord)],
    ) -> Result<Vec<Result<VisitSaved, StoreError>>, StoreError> {
        let (mut whole, mut results) = (Vec::with_capacity(visits.len()), Vec::with_capacity(visits.len()));
        for (token, visit) in visits {
            match Saving::of(token, visit) {
                Ok(saving) => {
                    whole.push(saving);
                    results.push(None);
                }
                Err(error) => results.push(Some(Err(error))),
            }
        }
        let saved = match self.visits_together(&whole).await {
            Err(error) if !error.is_transient() => {
                tracing::debug!(%error, visits = whole.len(), "visits are saved one by one");
                let mut saved = Vec::with_capacity(whole.len());
                for (token, visit) in whole.iter().map(|saving| (saving.token, saving.visit)) {
                    saved.push(self.visit_save(token, visit).await);
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

    /// Gives a lease back after requests that were no visit, with what robots.txt of the hosts came to: the site is due as
    /// before, and the progress of a visit that waits is kept. [`StoreError::LeaseLost`] when another worker holds the
    /// site by now; nothing is written then.
    pub async fn standalone_end(
        &self,
        token: &LeaseToken,
        robots: &[RobotsRecord],
    ) -> Result<(), StoreError> {
        let bodies = packed::robots_bodies(robots)?;
        writing!(self, "standalone_end", visit::standalone_end(token, robots, &bodies))
    }

    async fn visits_together(
        &self,
        visits: &[Saving<'_>],
    ) -> Result<Vec<Result<VisitSaved, StoreError>>, StoreError> {
        if visits.is_empty() {
            return Ok(Vec::new());
        }
        writing!(self, "visit_save", visit::visits_save(visits))
    }
}

fn lost(token: &LeaseToken) -> Result<VisitSaved, StoreError> {
    Err(StoreError::LeaseLost { site: token.site.clone() })
}

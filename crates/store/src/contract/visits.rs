//! Saving visits.

use super::{ATTEMPTS_MAX, Pools, Store};
use crate::fault::Outcome;
use crate::model::{LeaseToken, VisitRecord, VisitSaved};
use crate::packed::PackedVisit;
use crate::{StoreError, postgres, sqlite};

impl Store {
    /// Saves a visit whole, in one transaction, and gives the lease back. [`StoreError::LeaseLost`] when another
    /// worker holds the site by now, [`StoreError::Blocked`] when its owner opted out meanwhile; nothing is written then.
    pub async fn visit_save(
        &self,
        token: &LeaseToken,
        visit: &VisitRecord,
    ) -> Result<VisitSaved, StoreError> {
        if token.site != visit.site {
            let reason = format!("the lease is for {}, the visit was to {}", token.site, visit.site);
            return Err(StoreError::Unstorable { what: "visit", reason });
        }
        let packed = PackedVisit::of_visit(visit)?;
        writing!(self, "visit_save", visit::visit_save(token, visit, &packed))
    }
}

//! Leases of this process and their renewal. A lease that cannot be renewed ends its visit.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use manifest::SiteName;
use store::{LeaseToken, Store};
use tokio_util::sync::CancellationToken;

use crate::clock;

/// Held leases, with the tokens that tell their visits when they are lost.
#[derive(Debug, Default)]
pub(super) struct HeldLeases(Mutex<HashMap<SiteName, (LeaseToken, CancellationToken)>>);

impl HeldLeases {
    pub(super) fn add(&self, token: &LeaseToken) -> CancellationToken {
        let lost = CancellationToken::new();
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        held.insert(token.site.clone(), (token.clone(), lost.clone()));
        lost
    }

    pub(super) fn remove(&self, site: &SiteName) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(site);
    }

    /// Renews all of them. While the database is unavailable, visits continue: no other worker can lease their sites either.
    pub(super) async fn renew(&self, store: &Store, lease: Duration) {
        let tokens: Vec<LeaseToken> = {
            let held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            held.values().map(|(token, _)| token.clone()).collect()
        };
        if tokens.is_empty() {
            return;
        }
        match store.leases_renew(&tokens, lease, clock::now()).await {
            Ok(renewed) => self.update(&tokens, &renewed),
            Err(error) => tracing::warn!(%error, "leases could not be renewed"),
        }
    }

    fn update(&self, requested: &[LeaseToken], renewed: &[LeaseToken]) {
        let renewed: HashMap<&SiteName, &LeaseToken> =
            renewed.iter().map(|token| (&token.site, token)).collect();
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for token in requested {
            match (renewed.get(&token.site), held.get_mut(&token.site)) {
                (Some(renewed), Some((kept, _))) => *kept = (*renewed).clone(),
                (None, Some((_, lost))) => lost.cancel(),
                (_, None) => {}
            }
        }
    }
}

//! Recently blocked and suspended sites, which are excluded from results until the index has removed them.

use std::collections::HashSet;
use std::sync::{PoisonError, RwLock};

use manifest::SiteName;

/// Maximum number of remembered sites. Operators block few sites, and the index has already removed the earlier ones.
const SITES_MAX: usize = 1_000;

#[derive(Debug, Default)]
pub(crate) struct Suppressed(RwLock<HashSet<SiteName>>);

impl Suppressed {
    pub(crate) fn add(&self, site: &SiteName) {
        let mut sites = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if sites.len() >= SITES_MAX {
            sites.clear();
        }
        sites.insert(site.clone());
    }

    pub(crate) fn remove(&self, site: &SiteName) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).remove(site);
    }

    /// Names of the sites, sorted.
    pub(crate) fn names(&self) -> Vec<String> {
        let sites = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let mut names: Vec<String> = sites.iter().map(ToString::to_string).collect();
        names.sort_unstable();
        names
    }

    pub(crate) fn has(&self, site: &SiteName) -> bool {
        self.0.read().unwrap_or_else(PoisonError::into_inner).contains(site)
    }
}

//! The entry point: one sender for a process, one session for a visit.

use std::fmt;
use std::sync::{Arc, OnceLock};

use chrono::{DateTime, Utc};
use manifest::SiteName;

use crate::session::Session;
use crate::settings::EgressSettings;
use crate::shared::Shared;
use crate::tls::{self, TlsError};

/// Sends the requests of one process; cheap to clone.
#[derive(Clone)]
pub struct Egress(Arc<Shared>);

impl fmt::Debug for Egress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Egress").finish_non_exhaustive()
    }
}

impl Egress {
    /// Checks the settings. Sends nothing. `now` is the clock for signatures.
    pub fn new(settings: EgressSettings, now: fn() -> DateTime<Utc>) -> Result<Self, TlsError> {
        let tls = tls::client_config(settings.additional_roots_pem.as_deref())?;
        Ok(Self(Arc::new(Shared {
            identity: settings.identity,
            tls,
            own: Arc::new(settings.own_networks),
            own_rules: settings.own_rules,
            reach: settings.reach,
            hosts: settings.hosts,
            name_servers: settings.name_servers,
            signer: settings.signer,
            now,
            dns: OnceLock::new(),
        })))
    }

    /// Opens a session for one visit to a site. Sends nothing.
    pub fn session(&self, site: SiteName) -> Session {
        Session::open(Arc::clone(&self.0), site)
    }
}

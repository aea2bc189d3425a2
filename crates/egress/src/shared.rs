//! Configuration, TLS and name servers that all sessions of a process share.

use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};

use chrono::{DateTime, Utc};
use manifest::Host;
use policy::OwnNetworks;

use crate::dns::Dns;
use crate::failure::{Cause, Failure};
use crate::hosts::HostsFile;
use crate::identity::CrawlerIdentity;
use crate::settings::{OwnRules, Reach};
use crate::signing::Signer;

/// State that all sessions of a process share.
pub(crate) struct Shared {
    pub(crate) identity: CrawlerIdentity,
    pub(crate) tls: rustls::ClientConfig,
    pub(crate) own: Arc<OwnNetworks>,
    pub(crate) own_rules: OwnRules,
    pub(crate) reach: Reach,
    pub(crate) hosts: HostsFile,
    pub(crate) name_servers: Vec<SocketAddr>,
    pub(crate) signer: Option<Signer>,
    /// The clock of the program.
    pub(crate) now: fn() -> DateTime<Utc>,
    /// Initialised when a name that is not in the hosts file is first resolved, because an isolated network may have no name servers.
    pub(crate) dns: OnceLock<Result<Dns, String>>,
}

impl Shared {
    /// The addresses of a host, from the hosts file or else from DNS.
    pub(crate) async fn lookup(&self, host: &Host) -> Result<Vec<SocketAddr>, Failure> {
        if let Some(addresses) = self.hosts.find(host) {
            return Ok(addresses.to_vec());
        }
        let addresses = self.dns()?.lookup(host).await?;
        Ok(addresses.iter().map(|address| SocketAddr::new(*address, 0)).collect())
    }

    pub(crate) fn dns(&self) -> Result<&Dns, Failure> {
        let open = || Dns::of(&self.name_servers).map_err(|error| error.to_string());
        self.dns.get_or_init(open).as_ref().map_err(|error| {
            Failure::new(
                Cause::NameServers,
                format!("the system's resolver configuration cannot be read: {error}"),
            )
        })
    }
}

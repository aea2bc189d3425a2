//! The only module that sends requests to the web, checked and capped.
//!
//! It decides nothing about politeness and sends exactly one request per call. It refuses addresses that are
//! not global, names that were not resolved for the visit, hosts of another site than the visit's, plain http, proxies,
//! redirects, retries, and answers beyond its limits. Every request identifies the crawler (RFC 9110 §10.1.2, §10.1.5).

mod body;
mod dns;
mod failure;
mod head;
mod hosts;
mod identity;
mod pins;
mod probe;
mod response;
mod session;
mod signing;
mod tls;

use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};

use manifest::{Host, SiteName};
use policy::OwnNetworks;

pub use failure::{Cause, Failure};
pub use head::Head;
pub use hosts::{HostsError, HostsFile};
pub use identity::{Contact, ContactError, Identity, VERSION};
pub use probe::{Stage, Timings};
pub use response::{Body, Extent, Reply};
pub(crate) use session::REQUEST_TIME_MAX;
pub use session::{NetworkScope, Resolved, Session};
pub use signing::{KeyError, Signer};
pub use tls::TlsError;

use dns::Dns;

/// Whether the name servers of this machine know a public name.
///
/// # Errors
///
/// Why they do not, in words.
pub async fn name_servers_know(host: &Host) -> Result<(), String> {
    let dns = Dns::from_system().map_err(|error| error.to_string())?;
    match dns.lookup(host).await {
        Ok(_) => Ok(()),
        Err(failure) if failure.cause == Cause::NameUnknown => {
            Err(format!("the name servers answer that {host} does not exist: they know no public names"))
        }
        Err(failure) => Err(failure.reason),
    }
}

/// Settings of the operator for outgoing requests.
#[derive(Debug, Clone)]
pub struct EgressSettings {
    pub identity: Identity,
    /// PEM text of authorities to trust besides Mozilla's.
    pub additional_roots_pem: Option<Vec<u8>>,
    pub own_networks: OwnNetworks,
    pub own_rules: OwnRules,
    pub reach: Reach,
    pub hosts: HostsFile,
    /// Used instead of the system's; empty for the system's.
    pub name_servers: Vec<SocketAddr>,
    /// Signs every request.
    pub signer: Option<Signer>,
}

/// Which rules apply in the operator's own networks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OwnRules {
    /// Only `--delay`, robots.txt, Crawl-delay and Retry-After.
    #[default]
    Relaxed,
    /// All of them, as on public addresses.
    Strict,
}

/// Which addresses are visited.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Reach {
    /// Public addresses and the operator's own networks.
    #[default]
    Everywhere,
    /// The operator's own networks alone: nobody else could reach the operator.
    OwnNetworks,
}

/// Sends the requests of one process; cheap to clone.
#[derive(Clone)]
pub struct Egress(Arc<Shared>);

struct Shared {
    identity: Identity,
    tls: rustls::ClientConfig,
    own: Arc<OwnNetworks>,
    own_rules: OwnRules,
    reach: Reach,
    hosts: HostsFile,
    name_servers: Vec<SocketAddr>,
    signer: Option<Signer>,
    /// Initialised at the first name that is not in the hosts file: a closed network may have no name servers at all.
    dns: OnceLock<Result<Dns, String>>,
}

impl Egress {
    /// Checks the settings; nothing is sent.
    pub fn new(settings: EgressSettings) -> Result<Self, TlsError> {
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
            dns: OnceLock::new(),
        })))
    }

    /// Begins the requests of one visit to a site; nothing is sent yet.
    pub fn session(&self, site: SiteName) -> Session {
        Session::open(Arc::clone(&self.0), site)
    }
}

impl Shared {
    async fn lookup(&self, host: &Host) -> Result<Vec<SocketAddr>, Failure> {
        if let Some(addresses) = self.hosts.find(host) {
            return Ok(addresses.to_vec());
        }
        let addresses = self.dns()?.lookup(host).await?;
        Ok(addresses.iter().map(|address| SocketAddr::new(*address, 0)).collect())
    }

    fn dns(&self) -> Result<&Dns, Failure> {
        let open = || {
            let dns = match self.name_servers.as_slice() {
                [] => Dns::from_system(),
                name_servers => Dns::of_servers(name_servers),
            };
            dns.map_err(|error| error.to_string())
        };
        self.dns.get_or_init(open).as_ref().map_err(|error| {
            Failure::new(
                Cause::NameServers,
                format!("the system's resolver configuration cannot be read: {error}"),
            )
        })
    }
}

//! Settings of the operator for outgoing requests.

use std::net::SocketAddr;

use policy::OwnNetworks;

use crate::hosts::HostsFile;
use crate::identity::CrawlerIdentity;
use crate::signing::Signer;

/// Settings of the operator for outgoing requests.
#[derive(Debug, Clone)]
pub struct EgressSettings {
    pub identity: CrawlerIdentity,
    /// PEM text of certificate authorities to trust besides Mozilla's.
    pub additional_roots_pem: Option<Vec<u8>>,
    pub own_networks: OwnNetworks,
    pub own_rules: OwnRules,
    pub reach: Reach,
    pub hosts: HostsFile,
    /// Name servers to use. If empty, those of the system are used.
    pub name_servers: Vec<SocketAddr>,
    /// Signs every request.
    pub signer: Option<Signer>,
}

/// Which rules apply in the operator's own networks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OwnRules {
    /// Only `--delay`, robots.txt, Crawl-delay and Retry-After apply.
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
    /// Only the operator's own networks, because the requests contain no contact.
    OwnNetworks,
}

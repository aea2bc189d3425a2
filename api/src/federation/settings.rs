//! The settings of federation: `peers` in `[api]`, and the table `[api.federation]`.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use egress::{Contact, CrawlerIdentity, Egress, EgressSettings, HostsFile, OwnRules, Reach};
use ipnet::IpNet;
use manifest::{ManifestUrl, SiteScope};
use policy::OwnNetworks;
use serde::Deserialize;

/// Maximum number of peers, because each search queries all of them.
const PEERS_MAX: usize = 8;
/// Default time budget: a person rarely wants to wait longer for a response.
const BUDGET_MS_DEFAULT: u64 = 1_500;
/// Longest time budget: less than the deadline of a request.
const BUDGET_MS_MAX: u64 = 5_000;
const HTTPS_PORT: u16 = 443;

/// The table `[api.federation]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FederationSettings {
    /// Milliseconds that a search waits for its peers.
    pub budget_ms: u64,
    /// Private networks in which peers may be.
    pub allow_addresses: Vec<String>,
    /// Certificate authorities to trust besides Mozilla's.
    pub ca_file: Option<PathBuf>,
    /// A hosts file that overrides name resolution; for tests.
    pub hosts: Option<PathBuf>,
}

impl Default for FederationSettings {
    fn default() -> Self {
        Self { budget_ms: BUDGET_MS_DEFAULT, allow_addresses: Vec::new(), ca_file: None, hosts: None }
    }
}

/// A setting that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FederationError {
    #[error(
        "\"{text}\" in `peers` is not the base URL of a registry: {reason}; write it like https://registry.example/api"
    )]
    Peer { text: String, reason: String },
    #[error("`peers` has {0} registries; each search asks all of them, so at most {PEERS_MAX} are permitted")]
    TooMany(usize),
    #[error("`budget_ms` in [api.federation] is {0}: it is between 1 and {BUDGET_MS_MAX}")]
    Budget(u64),
    #[error("\"{0}\" in `allow_addresses` of [api.federation] is not a network: write it like 10.0.0.0/8")]
    Network(String),
    #[error("the file {} of [api.federation] cannot be used: {reason}", path.display())]
    File { path: PathBuf, reason: String },
}

/// The address of a peer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PeerUrl {
    search: ManifestUrl,
    source: String,
    host: String,
}

impl PeerUrl {
    /// Parses the base URL of a registry, to which `/search` is added.
    pub(super) fn parse(text: &str, scope: SiteScope) -> Result<Self, FederationError> {
        let refused = |reason: String| FederationError::Peer { text: text.to_owned(), reason };
        let base = ManifestUrl::parse(text).map_err(|error| refused(error.to_string()))?;
        scope.check_url(&base).map_err(|error| refused(error.to_string()))?;
        if base.port() != HTTPS_PORT {
            return Err(refused(format!("only port {HTTPS_PORT} is requested")));
        }
        if base.as_url().query().is_some() {
            return Err(refused("it has a query".to_owned()));
        }
        let base = base.as_str().trim_end_matches('/');
        let search =
            ManifestUrl::parse(&format!("{base}/search")).map_err(|error| refused(error.to_string()))?;
        let host = search.host().as_str().to_owned();
        Ok(Self { search, source: format!("{base}/"), host })
    }

    pub(super) const fn search(&self) -> &ManifestUrl {
        &self.search
    }

    /// The `source` of its results.
    pub(super) fn source(&self) -> &str {
        &self.source
    }

    pub(super) fn host(&self) -> &str {
        &self.host
    }
}

/// The peers, and how they are reached. Without peers, nothing is sent.
#[derive(Debug, Clone, Default)]
pub struct FederationConfig {
    pub(super) peers: Vec<PeerUrl>,
    pub(super) budget: Duration,
    pub(super) egress: Option<Egress>,
}

impl FederationConfig {
    /// Checks the settings. `contact` is an email address or a URL where operators of peers reach this one; without it they see `own_url`.
    ///
    /// # Errors
    ///
    /// What is wrong, and how it is written.
    pub fn new(
        peers: &[String],
        settings: &FederationSettings,
        own_url: Option<&str>,
        contact: Option<&str>,
    ) -> Result<Self, FederationError> {
        if !(1..=BUDGET_MS_MAX).contains(&settings.budget_ms) {
            return Err(FederationError::Budget(settings.budget_ms));
        }
        let own_networks = own_networks(&settings.allow_addresses)?;
        if peers.is_empty() {
            return Ok(Self::default());
        }
        if peers.len() > PEERS_MAX {
            return Err(FederationError::TooMany(peers.len()));
        }
        let scope = own_networks.site_scope();
        let parsed = peers.iter().map(|text| {
            let peer = PeerUrl::parse(text, scope)?;
            if own_url.is_some_and(|own| own.trim_end_matches('/') == peer.source.trim_end_matches('/')) {
                let reason = "it is the address of this instance".to_owned();
                return Err(FederationError::Peer { text: text.clone(), reason });
            }
            Ok(peer)
        });
        let parsed = parsed.collect::<Result<_, _>>()?;
        let egress = egress(settings, own_networks, contact.or(own_url))?;
        Ok(Self { peers: parsed, budget: Duration::from_millis(settings.budget_ms), egress: Some(egress) })
    }
}

fn egress(
    settings: &FederationSettings,
    own_networks: OwnNetworks,
    contact: Option<&str>,
) -> Result<Egress, FederationError> {
    let (email, url) = match contact {
        Some(text) if !text.contains("://") => (Some(text), None),
        other => (None, other),
    };
    // both were checked with the settings of the API
    let identity = CrawlerIdentity::new(&Contact::parse(url, email).unwrap_or_default());
    let hosts = match &settings.hosts {
        Some(path) => HostsFile::parse(&read(path)?)
            .map_err(|error| FederationError::File { path: path.clone(), reason: error.to_string() })?,
        None => HostsFile::default(),
    };
    let roots = settings.ca_file.as_deref().map(read).transpose()?;
    let egress = EgressSettings {
        identity,
        additional_roots_pem: roots.map(String::into_bytes),
        own_networks,
        own_rules: OwnRules::default(),
        reach: Reach::Everywhere,
        hosts,
        name_servers: Vec::new(),
        signer: None,
    };
    Egress::new(egress, crate::clock::now).map_err(|error| FederationError::File {
        path: settings.ca_file.clone().unwrap_or_default(),
        reason: error.to_string(),
    })
}

fn read(path: &Path) -> Result<String, FederationError> {
    std::fs::read_to_string(path)
        .map_err(|error| FederationError::File { path: path.to_owned(), reason: error.to_string() })
}

fn own_networks(texts: &[String]) -> Result<OwnNetworks, FederationError> {
    let parse = |text: &String| {
        let network = text.parse::<IpNet>().ok();
        network
            .or_else(|| text.parse::<IpAddr>().ok().map(IpNet::from))
            .ok_or_else(|| FederationError::Network(text.clone()))
    };
    texts.iter().map(parse).collect::<Result<Vec<_>, _>>().map(OwnNetworks::new)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(peers: &[&str], settings: &FederationSettings) -> Result<FederationConfig, String> {
        let peers: Vec<String> = peers.iter().map(|peer| (*peer).to_owned()).collect();
        FederationConfig::new(&peers, settings, Some("https://own.example/"), None)
            .map_err(|error| error.to_string())
    }

    #[test]
    fn peers_are_https_registries_of_others() {
        let default = FederationSettings::default();
        let parsed = config(&["https://finder.example/api/", "https://b.example"], &default).unwrap();
        let [one, two] = &parsed.peers[..] else { panic!("two peers") };
        assert_eq!(
            (one.search.as_str(), one.source()),
            ("https://finder.example/api/search", "https://finder.example/api/")
        );
        assert_eq!((two.search.as_str(), two.host()), ("https://b.example/search", "b.example"));
        for (peer, word) in [
            ("http://b.example", "https"),
            ("https://10.0.0.1", "10.0.0.1"),
            ("https://b.example:8443", "port"),
            ("https://b.example/?a=b", "query"),
            ("https://registry.internal", "internal"),
            ("https://own.example", "this instance"),
            ("b.example", "https://"),
        ] {
            let error = config(&[peer], &default).unwrap_err();
            assert!(error.contains(word), "{peer}: {error}");
        }
        let private =
            FederationSettings { allow_addresses: vec!["10.0.0.0/8".to_owned()], ..default.clone() };
        assert!(config(&["https://registry.internal"], &private).is_ok());
        assert!(config(&["https://b.example"; 9], &default).unwrap_err().contains("at most 8"));
    }

    #[test]
    fn unusable_settings_are_named() {
        for (settings, word) in [
            (FederationSettings { budget_ms: 0, ..Default::default() }, "budget_ms"),
            (FederationSettings { budget_ms: 60_000, ..Default::default() }, "budget_ms"),
            (FederationSettings { allow_addresses: vec!["x".to_owned()], ..Default::default() }, "\"x\""),
            (FederationSettings { ca_file: Some("/nowhere/ca".into()), ..Default::default() }, "/nowhere/ca"),
            (
                FederationSettings { hosts: Some("/nowhere/hosts".into()), ..Default::default() },
                "/nowhere/hosts",
            ),
        ] {
            let error = config(&["https://b.example"], &settings).unwrap_err();
            assert!(error.contains(word), "{error}");
        }
    }
}

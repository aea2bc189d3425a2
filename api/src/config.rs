//! Configuration of the API from flags, environment and file, parsed and validated once at start.
//!
//! The locations of the database and the index come from the flags that all readers share (`indexer::cli`).

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use indexer::cli::{ClusterError, Settings};
use indexer::snapshot::SnapshotLocation;
use indexer::{Embedder, IndexConfig};
use ipnet::IpNet;
use manifest::CardSigner;
use runtime::{ReaderProgram, RuntimeHealth};
use rustls_pki_types::PrivatePkcs8KeyDer;
use rustls_pki_types::pem::PemObject;
use serde::Deserialize;
use store::{DatabaseUrl, StoreConfig};
use url::Url;

use crate::federation::{FederationConfig, FederationError, FederationSettings};
use crate::limits::LimitsConfig;
use crate::reader_keys::Reads;
use crate::server_names::LOOPBACK;
use crate::timeouts::ClientTimeouts;

/// Default listen address: loopback only.
pub const LISTEN_DEFAULT: &str = "127.0.0.1:8080";

/// Maximum length of a contact, in bytes: longer than the longest email address (RFC 5321 §4.5.3.1.3).
const CONTACT_BYTES_MAX: usize = 300;

/// Time to live of cached responses that read whole tables.
pub const COUNTS_KEPT_FOR: Duration = Duration::from_secs(5);

/// An invalid setting; the text describes a valid one.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error(transparent)]
    Settings(#[from] settings::SettingsError),
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    #[error(
        "\"{text}\" is not an address to listen on (--listen, or `listen` in [api]): write it like 127.0.0.1:8080"
    )]
    Listen { text: String },
    #[error(
        "\"{text}\" is not a public URL (--public-url, or `public_url` in [api]): write scheme, name and port, without a path, like https://agentdex.example"
    )]
    PublicUrl { text: String },
    #[error("cannot read the admin tokens in {}: {source}", path.display())]
    AdminTokens {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("cannot use the card key {}: {reason}", path.display())]
    CardKey { path: PathBuf, reason: String },
    #[error(
        "\"{text}\" is not a contact (`contact` in [api]): write an email address, or an address that begins with https://"
    )]
    Contact { text: String },
    #[error(
        "\"{text}\" is not the address of a proxy (`trusted_proxies` in [api]): write it like 10.0.0.7 or 10.0.0.0/8"
    )]
    Proxy { text: String },
    #[error("primary_url in [api] is not the URL of a PostgreSQL server: {reason}")]
    Primary { reason: String },
    #[error(transparent)]
    Federation(#[from] FederationError),
}

#[derive(Debug, Clone)]
pub struct ApiConfig {
    pub listen: SocketAddr,
    /// Public address, where it differs from `listen`.
    pub public_url: Option<Url>,
    pub index: IndexConfig,
    /// Where snapshots of the index are fetched from, instead of an indexer on this machine.
    pub index_from: Option<SnapshotLocation>,
    /// Whether `/styleguide` is served.
    pub styleguide: bool,
    /// Embeds queries; opened by the caller.
    pub embedder: Option<Arc<dyn Embedder>>,
    pub database: StoreConfig,
    /// Where data is written if `database` is a read replica.
    pub primary: Option<StoreConfig>,
    pub limits: LimitsConfig,
    pub reads: Reads,
    /// Proxies whose `X-Forwarded-For` is trusted.
    pub trusted_proxies: Vec<IpNet>,
    /// File with the hashes of the admin tokens; without it, admin routes are disabled.
    pub admin_tokens: Option<PathBuf>,
    /// Signs the A2A agent card of this server.
    pub card_signer: Option<Arc<CardSigner>>,
    /// Where owners of suspended sites can reach the operator: an email address or an https URL.
    pub contact: Option<String>,
    /// Whether `POST /feedback` stores the choices of users.
    pub feedback: bool,
    /// Time to live of cached answers that read whole tables.
    pub counts_kept_for: Duration,
    /// Whether the async runtime responds; `/readyz` reads it.
    pub runtime_health: RuntimeHealth,
    /// Reads the documents of clients in a separate process; without it they are read in this one.
    pub reader: Option<ReaderProgram>,
    /// Timeouts for slow clients.
    pub timeouts: ClientTimeouts,
    /// Registries that a search also queries.
    pub federation: FederationConfig,
}

impl ApiConfig {
    /// Origins of the pages that this server serves, the public one last.
    pub(crate) fn own_origins(&self) -> Vec<String> {
        let port = self.listen.port();
        let mut own: Vec<String> = LOOPBACK.iter().map(|host| format!("http://{host}:{port}")).collect();
        if !self.listen.ip().is_unspecified() {
            own.push(format!("http://{}", self.listen));
        }
        let public = self.public_url.as_ref().and_then(|url| {
            let port = url.port_or_known_default()?;
            Some(format!("{}://{}:{port}", url.scheme(), url.host_str()?))
        });
        own.extend(public);
        own
    }

    /// The base URL at which clients reach this server, without a trailing slash.
    pub(crate) fn base_url(&self) -> String {
        let configured = self.public_url.as_ref().map(|url| url.as_str().trim_end_matches('/').to_owned());
        configured.unwrap_or_else(|| format!("http://{}", self.listen))
    }

    /// Whether clients reach this server over TLS, through a proxy.
    pub(crate) fn is_behind_tls(&self) -> bool {
        self.public_url.as_ref().is_some_and(|url| url.scheme() == "https")
    }
}

/// Settings of the API: flags, or the table `[api]` of the configuration file.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ApiSettings {
    pub listen: Option<String>,
    pub public_url: Option<String>,
    /// URL of the primary, if the database is a read replica of PostgreSQL.
    pub primary_url: Option<String>,
    /// File that contains only that URL; read from the file only. Overrides `primary_url` of the file.
    pub primary_url_file: Option<PathBuf>,
    /// Addresses or ranges like 10.0.0.0/8.
    pub trusted_proxies: Vec<String>,
    pub admin_tokens: Option<PathBuf>,
    /// File of the private Ed25519 key that signs the A2A agent card, in PEM; read from the file only.
    pub card_key: Option<PathBuf>,
    /// Where owners of suspended sites can reach the operator; read from the file only.
    pub contact: Option<String>,
    pub feedback: bool,
    /// Whether `/styleguide` shows the components of the design system; read from the file only.
    pub styleguide: bool,
    /// Rate and concurrency limits; read from the file only.
    pub limits: LimitsConfig,
    /// `public`, or `keys` to admit clients with an API key only; read from the file only.
    pub reads: Reads,
    pub index_from: Option<SnapshotLocation>,
    /// Base URLs of registries that a search also queries; read from the file only.
    pub peers: Vec<String>,
    /// How they are queried; read from the file only.
    pub federation: FederationSettings,
}

/// The table `[api]` of the configuration file; other tables are checked with the shared flags.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ConfigFile {
    api: ApiSettings,
}

impl ApiSettings {
    /// Fills in missing flags from the environment and the file.
    pub fn or_file(self, path: Option<&Path>) -> Result<Self, ConfigError> {
        let file: ConfigFile = settings::load(path, &settings::variables())?;
        Ok(Self {
            listen: self.listen.or(file.api.listen),
            public_url: self.public_url.or(file.api.public_url),
            primary_url_file: self.primary_url.is_none().then_some(file.api.primary_url_file).flatten(),
            primary_url: self.primary_url.or(file.api.primary_url),
            trusted_proxies: if self.trusted_proxies.is_empty() {
                file.api.trusted_proxies
            } else {
                self.trusted_proxies
            },
            admin_tokens: self.admin_tokens.or(file.api.admin_tokens),
            card_key: self.card_key.or(file.api.card_key),
            contact: self.contact.or(file.api.contact),
            feedback: self.feedback || file.api.feedback,
            styleguide: self.styleguide || file.api.styleguide,
            limits: file.api.limits,
            reads: file.api.reads,
            index_from: self.index_from.or(file.api.index_from),
            peers: file.api.peers,
            federation: file.api.federation,
        })
    }

    /// Parses the settings and fills in the defaults.
    pub fn resolve(self, shared: Settings) -> Result<ApiConfig, ConfigError> {
        if self.index_from.is_some() {
            shared.refuse_cluster_with_snapshots()?;
        }
        let listen = self.listen.unwrap_or_else(|| LISTEN_DEFAULT.to_owned());
        if let Some(path) = &self.admin_tokens {
            let opened = std::fs::File::open(path);
            opened.map_err(|source| ConfigError::AdminTokens { path: path.clone(), source })?;
        }
        let public_url = self.public_url.as_deref().map(public_url).transpose()?;
        let primary = primary(self.primary_url, self.primary_url_file.as_deref(), &shared.store)?;
        let own_url = public_url.as_ref().map(Url::as_str);
        let contact = self.contact.map(contact).transpose()?;
        let federation = FederationConfig::new(&self.peers, &self.federation, own_url, contact.as_deref())?;
        let card_signer = self.card_key.as_deref().map(|path| card_signer(path, public_url.as_ref()));
        Ok(ApiConfig {
            listen: listen.parse().map_err(|_| ConfigError::Listen { text: listen })?,
            public_url,
            index: shared.index,
            index_from: self.index_from,
            embedder: None,
            database: shared.store,
            primary,
            limits: self.limits,
            reads: self.reads,
            trusted_proxies: self.trusted_proxies.iter().map(|text| range(text)).collect::<Result<_, _>>()?,
            admin_tokens: self.admin_tokens,
            card_signer: card_signer.transpose()?,
            contact,
            feedback: self.feedback,
            styleguide: self.styleguide,
            counts_kept_for: COUNTS_KEPT_FOR,
            runtime_health: RuntimeHealth::default(),
            reader: None,
            timeouts: ClientTimeouts::default(),
            federation,
        })
    }
}

impl ApiConfig {
    /// The warning for an instance whose operator may suspend sites, but whose owners could not answer without a key.
    pub(crate) const fn warning_without_contact(&self) -> Option<&'static str> {
        if self.admin_tokens.is_none() || self.contact.is_some() {
            return None;
        }
        Some(
            "no contact is set, so owners of suspended sites can answer only with the key of a claim: set contact in [api]",
        )
    }
}

/// Reads the key that signs the agent card. Clients fetch the public key over https, so the server needs an https address.
fn card_signer(path: &Path, public_url: Option<&Url>) -> Result<Arc<CardSigner>, ConfigError> {
    let unusable = |reason: String| ConfigError::CardKey { path: path.to_owned(), reason };
    if public_url.is_none_or(|url| url.scheme() != "https") {
        return Err(unusable(
            "set public_url to an https address, where the public key is served".to_owned(),
        ));
    }
    let key = PrivatePkcs8KeyDer::from_pem_file(path).map_err(|error| unusable(error.to_string()))?;
    let signer =
        CardSigner::from_pkcs8(key.secret_pkcs8_der()).map_err(|error| unusable(error.to_string()))?;
    Ok(Arc::new(signer))
}

/// How the primary of a read replica is opened. Statements of both are logged as slow after the same time.
fn primary(
    url: Option<String>,
    url_file: Option<&Path>,
    database: &StoreConfig,
) -> Result<Option<StoreConfig>, ConfigError> {
    let url = match url_file {
        Some(path) => Some(settings::secret("primary_url_file", path)?),
        None => url,
    };
    let Some(url) = url else { return Ok(None) };
    match DatabaseUrl::parse(&url) {
        Ok(url @ DatabaseUrl::Postgres(_)) => Ok(Some(StoreConfig { url, ..database.clone() })),
        Ok(DatabaseUrl::Sqlite(_)) => {
            Err(ConfigError::Primary { reason: "SQLite has no replicas".to_owned() })
        }
        Err(error) => Err(ConfigError::Primary { reason: error.to_string() }),
    }
}

/// Parses one IP address or a range in CIDR notation.
fn range(text: &str) -> Result<IpNet, ConfigError> {
    let address = || text.parse::<IpAddr>().map(IpNet::from);
    text.parse().or_else(|_| address()).map_err(|_| ConfigError::Proxy { text: text.to_owned() })
}

/// Checks a contact: an email address or an https URL.
fn contact(text: String) -> Result<String, ConfigError> {
    let is_page = Url::parse(&text).is_ok_and(|url| url.scheme() == "https" && url.has_host());
    let is_email = text.split_once('@').is_some_and(|(name, host)| {
        !name.is_empty() && host.contains('.') && !text.contains(|c: char| c.is_whitespace() || c == ':')
    });
    let is_short = text.len() <= CONTACT_BYTES_MAX;
    if is_short && (is_page || is_email) { Ok(text) } else { Err(ConfigError::Contact { text }) }
}

fn public_url(text: &str) -> Result<Url, ConfigError> {
    let refused = || ConfigError::PublicUrl { text: text.to_owned() };
    let url = Url::parse(text).map_err(|_| refused())?;
    let is_plain = matches!(url.scheme(), "http" | "https") && url.has_host() && url.query().is_none();
    // the pages link to paths of this server, so a proxy must not add a path
    let is_plain = is_plain && matches!(url.path(), "" | "/");
    if is_plain { Ok(url) } else { Err(refused()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use indexer::cli::{ClusterSettings, MissingShards, ReaderFlags};
    use settings::SharedFlags;

    fn shared() -> Settings {
        let shared = SharedFlags { data_dir: Some("/srv".into()), ..SharedFlags::default() };
        ReaderFlags { shared, ..ReaderFlags::default() }.settings().unwrap()
    }

    #[test]
    fn refuses_snapshots_of_an_index_on_a_cluster() {
        let cluster =
            ClusterSettings { url: "http://broker:50051".to_owned(), missing_shards: MissingShards::Fail };
        let shared = Settings { cluster: Some(cluster), ..shared() };
        assert!(ApiSettings::default().resolve(shared.clone()).is_ok());
        let typed = ApiSettings { index_from: Some("/snapshots".parse().unwrap()), ..ApiSettings::default() };
        let error = typed.resolve(shared).unwrap_err().to_string();
        assert!(error.contains("http://broker:50051") && error.contains("--index-from"), "{error}");
    }

    #[tokio::test]
    async fn links_name_the_port_that_was_bound() {
        let typed = ApiSettings { listen: Some("127.0.0.1:0".into()), ..ApiSettings::default() };
        let (listener, config) = crate::bind(typed.resolve(shared()).unwrap()).await.unwrap();
        assert_eq!(config.base_url(), format!("http://{}", listener.local_addr().unwrap()));
        assert!(config.listen.port() > 0);
    }

    #[test]
    fn flags_override_the_file_and_the_file_overrides_defaults() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("agentdex.toml");
        let text = "[api]\nlisten = \"0.0.0.0:80\"\ncontact = \"abuse@agentdex.example\"\npublic_url = \"https://agentdex.example\"\ntrusted_proxies = [\"10.0.0.7\", \"fd00::/8\"]\n[api.limits]\nreads_burst = 7\nreplicas = 3\n[crawler]\nrate = 5\n";
        std::fs::write(&path, text).unwrap();
        let typed = ApiSettings { listen: Some("127.0.0.1:9000".into()), ..ApiSettings::default() };
        let config = typed.or_file(Some(&path)).unwrap().resolve(shared()).unwrap();
        assert_eq!(config.listen.port(), 9000);
        assert_eq!(config.public_url.unwrap().as_str(), "https://agentdex.example/");
        assert_eq!(config.contact.as_deref(), Some("abuse@agentdex.example"));
        assert_eq!(config.trusted_proxies.len(), 2);
        assert_eq!((config.limits.reads_burst.get(), config.limits.replicas.get()), (7, 3));
        assert!(!config.feedback && !config.styleguide, "both are disabled by default");
        assert_eq!(config.index.dir, Path::new("/srv/index"));
        assert_eq!(ApiSettings::default().resolve(shared()).unwrap().listen.to_string(), LISTEN_DEFAULT);
    }

    #[test]
    fn the_key_of_the_card_is_ed25519_and_needs_an_https_address() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = dir.path().join(name);
            std::fs::write(&path, text).unwrap();
            path
        };
        // the key of RFC 9421, appendix B.1.4
        let key = write(
            "key.pem",
            "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIJ+DYvh6SEqVTm50DFtMDoQikTmiCqirVv9mWG9qfSnF\n-----END PRIVATE KEY-----\n",
        );
        let settings = |key: &Path, url: Option<&str>| ApiSettings {
            card_key: Some(key.to_owned()),
            public_url: url.map(str::to_owned),
            ..ApiSettings::default()
        };
        let url = Some("https://agentdex.example");
        assert!(settings(&key, url).resolve(shared()).unwrap().card_signer.is_some());
        for (key, url, word) in [
            (key.as_path(), None, "public_url"),
            (key.as_path(), Some("http://agentdex.example"), "public_url"),
            (&write("empty.pem", "hello"), url, "empty.pem"),
            (&dir.path().join("missing.pem"), url, "missing.pem"),
        ] {
            let error = settings(key, url).resolve(shared()).unwrap_err().to_string();
            assert!(error.contains(word), "{error}");
        }
    }

    #[test]
    fn the_primary_is_a_server_and_its_url_may_be_in_a_file() {
        let dir = tempfile::tempdir().unwrap();
        let url_file = dir.path().join("primary_url");
        std::fs::write(&url_file, "postgres://me:word@primary/agentdex\n").unwrap();
        let path = dir.path().join("agentdex.toml");
        std::fs::write(&path, format!("[api]\nprimary_url_file = {url_file:?}\n")).unwrap();
        let primary = |typed: Option<&str>| {
            let typed = ApiSettings { primary_url: typed.map(str::to_owned), ..ApiSettings::default() };
            Ok::<_, ConfigError>(typed.or_file(Some(&path))?.resolve(shared())?.primary.map(|to| to.url))
        };
        let server = |url: &str| Some(DatabaseUrl::Postgres(url.to_owned()));
        assert_eq!(primary(None).unwrap(), server("postgres://me:word@primary/agentdex"));
        assert_eq!(primary(Some("postgres://other/agentdex")).unwrap(), server("postgres://other/agentdex"));
        for (wrong, word) in [("sqlite:a.db", "SQLite"), ("https://primary", "neither postgres")] {
            let error = primary(Some(wrong)).unwrap_err().to_string();
            assert!(error.contains(word) && error.contains("primary_url"), "{error}");
        }
        assert_eq!(ApiSettings::default().resolve(shared()).unwrap().primary, None);
    }

    #[test]
    fn warns_operators_who_can_suspend_sites_but_publish_no_contact() {
        let dir = tempfile::tempdir().unwrap();
        let tokens = dir.path().join("tokens");
        std::fs::write(&tokens, "").unwrap();
        let warns = |admin_tokens: Option<&PathBuf>, contact: Option<&str>| {
            let settings = ApiSettings {
                admin_tokens: admin_tokens.cloned(),
                contact: contact.map(str::to_owned),
                ..ApiSettings::default()
            };
            settings.resolve(shared()).unwrap().warning_without_contact().is_some()
        };
        assert!(warns(Some(&tokens), None));
        assert!(!warns(Some(&tokens), Some("abuse@agentdex.example")));
        assert!(!warns(None, None), "without tokens, nobody can suspend a site over HTTP");
    }

    #[test]
    fn rejects_and_names_invalid_values() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("agentdex.toml");
        std::fs::write(&path, "[api]\nlisten_on = \"x\"\n").unwrap();
        let error = ApiSettings::default().or_file(Some(&path)).unwrap_err().to_string();
        assert!(error.contains("listen_on"), "{error}");
        for (settings, word) in [
            (ApiSettings { listen: Some("nowhere".into()), ..ApiSettings::default() }, "nowhere"),
            (ApiSettings { public_url: Some("ftp://x".into()), ..ApiSettings::default() }, "ftp://x"),
            (
                ApiSettings { public_url: Some("https://x.example/base/".into()), ..ApiSettings::default() },
                "without a path",
            ),
            (ApiSettings { trusted_proxies: vec!["10.0.0".into()], ..ApiSettings::default() }, "10.0.0"),
            (ApiSettings { contact: Some("me".into()), ..ApiSettings::default() }, "\"me\" is not a contact"),
            (ApiSettings { contact: Some("http://x.example".into()), ..ApiSettings::default() }, "contact"),
        ] {
            assert!(settings.resolve(shared()).unwrap_err().to_string().contains(word), "{word}");
        }
    }
}

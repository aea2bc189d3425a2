//! The HTTP clients of one visit, closed when the visit ends.
//!
//! Each host has its own client, so that memory does not grow with the number of sites. A visit keeps the connections to the two hosts that
//! it requested last. A session belongs to one site. It does not resolve or request hosts of other sites, because their limits are not
//! known here.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_TYPE, FROM, HeaderMap, HeaderValue, USER_AGENT};
use manifest::{Host, ManifestUrl, SiteName};
use policy::{AddressVerdict, BodyKind, OwnNetworks, plan};
use tokio::time::{Instant, timeout_at};

use crate::body;
use crate::failure::{Cause, Failure};
use crate::handshake::{self, CONNECT_MAX, HANDSHAKE_MAX};
use crate::leave::LeaveCheck;
use crate::pins::Pins;
use crate::probe::{Probe, Stage, Timings};
use crate::response::{HEADERS_MAX, Reply, take_head};
use crate::settings::OwnRules;
use crate::shared::Shared;
use crate::tls;

const HEADERS_TIME_MAX: Duration = Duration::from_secs(10);
/// How often the limit of the current phase is checked.
const LIMIT_CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// Maximum time of one request, from its first packet to the end of its response.
pub const REQUEST_TIME_MAX: Duration = Duration::from_secs(
    CONNECT_MAX.as_secs()
        + HANDSHAKE_MAX.as_secs()
        + HEADERS_TIME_MAX.as_secs()
        + body::BODY_TIME_MAX.as_secs(),
);
/// The only permitted port, the default of https.
const PORT: u16 = 443;
/// Maximum number of hosts to which a visit keeps connections. Many sites redirect between two hosts.
const HOSTS_CONNECTED_MAX: usize = 2;

/// The addresses of a name in this visit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolved {
    pub addresses: Vec<IpAddr>,
    pub standing: NetworkScope,
}

/// The kind of network in which a host is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NetworkScope {
    /// A network of a third party: every politeness rule applies.
    Global,
    /// The operator's own network: delays may be shorter than the minimum.
    Own,
}

/// The connections of one visit.
pub struct Session {
    /// The only site that is contacted.
    site: SiteName,
    /// Clients of the hosts that were requested last, most recent first.
    clients: Mutex<VecDeque<(Host, reqwest::Client)>>,
    pins: Pins,
    probe: Probe,
    shared: Arc<Shared>,
}

impl Session {
    pub(crate) fn open(shared: Arc<Shared>, site: SiteName) -> Self {
        let pins = Pins::new(Arc::clone(&shared.own), shared.reach);
        Self { site, clients: Mutex::default(), pins, probe: Probe::new(), shared }
    }

    /// The client of a host. The connections to all hosts but the last two are closed.
    fn client(&self, host: &Host) -> Result<reqwest::Client, Failure> {
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        let known = clients.iter().position(|(of, _)| of == host).and_then(|at| clients.remove(at));
        let client = match known {
            Some((_, client)) => client,
            None => build_client(&self.shared, &self.pins, &self.probe).map_err(|error| {
                Failure::new(Cause::Busy, format!("the HTTP client could not be built: {error}"))
            })?,
        };
        clients.truncate(HOSTS_CONNECTED_MAX - 1);
        clients.push_front((host.clone(), client.clone()));
        Ok(client)
    }

    fn check_site(&self, host: &Host) -> Result<(), Failure> {
        let other = host.site();
        if other == self.site {
            return Ok(());
        }
        let reason =
            format!("{host} belongs to the site {other}, which is not contacted in a visit to {}", self.site);
        Err(Failure::new(Cause::OtherSite, reason))
    }

    /// Resolves a name once per visit, and checks and pins its addresses.
    pub async fn resolve(&self, host: &Host) -> Result<Resolved, Failure> {
        self.check_site(host)?;
        let pinned = match self.pins.find(host) {
            Some(pinned) => pinned,
            None => self.pins.pin(host, &self.shared.lookup(host).await?)?,
        };
        let addresses: Vec<IpAddr> = pinned.iter().map(SocketAddr::ip).collect();
        let standing = match self.shared.own_rules {
            OwnRules::Relaxed => network_scope(&self.shared.own, &addresses),
            OwnRules::Strict => NetworkScope::Global,
        };
        Ok(Resolved { addresses, standing })
    }

    /// Pins addresses that another visit has resolved, after checking them again.
    pub fn adopt(&self, host: &Host, addresses: &[SocketAddr]) -> Result<(), Failure> {
        self.check_site(host)?;
        self.pins.pin(host, addresses).map(drop)
    }

    /// The pinned addresses of a name, if it was resolved.
    pub fn pinned(&self, host: &Host) -> Vec<SocketAddr> {
        self.pins.find(host).unwrap_or_default()
    }

    /// Connects to a host only at these addresses, in this order. A connection to another address is closed.
    pub fn narrow(&self, host: &Host, chosen: &[IpAddr]) {
        self.pins.narrow(host, chosen);
        self.clients.lock().unwrap_or_else(PoisonError::into_inner).retain(|(of, _)| of != host);
    }

    /// Whether the last request failed because its address accepted no connection.
    pub fn failed_to_connect(&self, failure: &Failure) -> bool {
        matches!(failure.cause, Cause::Connect | Cause::Timeout) && self.probe.stage().0 == Stage::Connecting
    }

    /// The TXT records of a label below a host: `_atp.example.org`. A host of the hosts file has none.
    ///
    /// # Errors
    ///
    /// If the name servers give no answer.
    pub async fn texts(&self, label: &str, host: &Host) -> Result<Vec<String>, Failure> {
        if self.shared.hosts.find(host).is_some() {
            return Ok(Vec::new());
        }
        self.shared.dns()?.texts(&format!("{label}.{host}")).await
    }

    /// The targets of the SVCB records of a label below a host: `_entries._agents.example.org`. A host of the hosts file
    /// has none.
    pub async fn services(&self, label: &str, host: &Host) -> Result<Vec<String>, Failure> {
        if self.shared.hosts.find(host).is_some() {
            return Ok(Vec::new());
        }
        self.shared.dns()?.services(&format!("{label}.{host}")).await
    }

    /// Sends one GET request and reads its response. The name must have been resolved. `conditions` are the validators of the stored copy.
    /// Does not retry, and does not follow redirects.
    ///
    /// # Errors
    ///
    /// [`Cause::Late`] if `leave` returned that it is too late to send the request. Other causes describe the failure.
    pub async fn fetch(
        &self,
        url: &ManifestUrl,
        kind: BodyKind,
        conditions: &HeaderMap,
        leave: LeaveCheck,
    ) -> Result<Reply, Failure> {
        let request = self.client(&url.host())?.get(url.as_url().clone()).headers(conditions.clone());
        self.exchange(url, request, kind, leave).await
    }

    /// Sends one POST request with JSON to a registry that the operator named or to a webhook, and reads its response. Errors are the same
    /// as for [`Self::fetch`].
    pub async fn post_json(
        &self,
        url: &ManifestUrl,
        kind: BodyKind,
        (headers, body): (HeaderMap, String),
        leave: LeaveCheck,
    ) -> Result<Reply, Failure> {
        let request = self.client(&url.host())?.post(url.as_url().clone()).headers(headers);
        let request = request.header(CONTENT_TYPE, "application/json").body(body);
        self.exchange(url, request, kind, leave).await
    }

    /// Completes one TLS handshake with the first address of a host that was resolved, and closes the connection. Sends no request.
    ///
    /// # Errors
    ///
    /// [`Cause::Late`] if `leave` returned that it is too late to connect. Other causes describe the failure.
    pub async fn handshake(&self, host: &Host, leave: LeaveCheck) -> Result<(), Failure> {
        self.check_site(host)?;
        let mut address = self.pins.address(host.as_str())?;
        if address.port() == 0 {
            address.set_port(PORT);
        }
        leave.check()?;
        handshake::complete(tls::for_visit(&self.shared.tls, &self.probe), host, address).await
    }

    async fn exchange(
        &self,
        url: &ManifestUrl,
        request: reqwest::RequestBuilder,
        kind: BodyKind,
        leave: LeaveCheck,
    ) -> Result<Reply, Failure> {
        self.check_site(&url.host())?;
        if url.port() != PORT {
            return Err(Failure::new(
                Cause::Address,
                format!("port {} is not visited, only {PORT}", url.port()),
            ));
        }
        let mut response = self.send(url, request, leave).await?;
        let head = take_head(&mut response)?;
        self.probe.enter(Stage::Body);
        let (body, wire_bytes) = if is_read(head.status, kind) {
            let body = body::read(response, &head, kind).await.map_err(|failure| failure.with_head(&head))?;
            let wire_bytes = body.wire_bytes;
            (Some(body), wire_bytes)
        } else {
            (None, body::skip(response).await)
        };
        Ok(Reply { head, body, wire_bytes, timings: self.probe.timings() })
    }

    /// Durations of the phases of the last request, even if it failed.
    pub fn timings(&self) -> Timings {
        self.probe.timings()
    }

    async fn send(
        &self,
        url: &ManifestUrl,
        request: reqwest::RequestBuilder,
        leave: LeaveCheck,
    ) -> Result<reqwest::Response, Failure> {
        self.probe.begin(leave.clone());
        let signature = self.shared.signer.as_ref().map(|signer| signer.headers(url, (self.shared.now)()));
        let request = request.headers(signature.unwrap_or_default());
        #[expect(clippy::disallowed_methods, reason = "the only place that sends requests to the web")]
        let mut sending = std::pin::pin!(request.send());
        leave.check()?;
        loop {
            // wake up regularly: each phase has its own limit, and this loop is not notified when a request enters its next phase
            let wake = self.deadline().min(Instant::now() + LIMIT_CHECK_INTERVAL);
            match timeout_at(wake, &mut sending).await {
                Ok(sent) => return sent.map_err(|error| Failure::of_client(&error)),
                Err(_) if Instant::now() < self.deadline() => {}
                Err(_) => return Err(self.timed_out()),
            }
        }
    }

    fn deadline(&self) -> Instant {
        let (stage, since) = self.probe.stage();
        since + limit(stage)
    }

    fn timed_out(&self) -> Failure {
        let (stage, _) = self.probe.stage();
        Failure::timeout(stage, limit(stage).as_secs())
    }
}

/// Whether the body of a response is read. A robots.txt may have any 2xx status (RFC 9309 §2.3.1.1). Other documents need 200.
fn is_read(status: http::StatusCode, kind: BodyKind) -> bool {
    match kind {
        BodyKind::Robots => status.is_success(),
        _ => status == http::StatusCode::OK,
    }
}

const fn limit(stage: Stage) -> Duration {
    match stage {
        Stage::Connecting => CONNECT_MAX,
        Stage::Handshake => HANDSHAKE_MAX,
        Stage::Headers | Stage::Body => HEADERS_TIME_MAX,
    }
}

fn network_scope(own: &OwnNetworks, addresses: &[IpAddr]) -> NetworkScope {
    let all_own = addresses.iter().all(|address| matches!(own.judge(*address), AddressVerdict::Own(_)));
    if all_own { NetworkScope::Own } else { NetworkScope::Global }
}

#[expect(clippy::disallowed_methods, reason = "the only place that sends requests to the web")]
fn build_client(shared: &Shared, pins: &Pins, probe: &Probe) -> Result<reqwest::Client, reqwest::Error> {
    let mut headers = HeaderMap::new();
    headers.insert(ACCEPT, HeaderValue::from_static(plan::ACCEPT));
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static(plan::ACCEPT_ENCODING));
    headers.insert(USER_AGENT, shared.identity.user_agent.clone());
    if let Some(from) = &shared.identity.from {
        headers.insert(FROM, from.clone());
    }
    reqwest::Client::builder()
        .tls_backend_preconfigured(tls::for_visit(&shared.tls, probe))
        .dns_resolver(Arc::new(pins.clone()))
        .connector_layer(probe.clone())
        .default_headers(headers)
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never())
        .referer(false)
        .https_only(true)
        .connect_timeout(limit(Stage::Connecting) + HANDSHAKE_MAX)
        .pool_max_idle_per_host(1)
        // connections are closed when the visit ends
        .pool_idle_timeout(None)
        .http1_only()
        .http1_max_headers(HEADERS_MAX)
        .build()
}

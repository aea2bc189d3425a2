//! A running web. It is built from hosts, can be changed while it runs, and is served until it is dropped.

use std::{
    fmt::Write as _,
    net::{Ipv4Addr, SocketAddr, SocketAddrV4},
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::Context;
use hyper::body::Bytes;
use tokio::net::TcpListener;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    Answer, Host, Log,
    authority::Authority,
    names::{Addresses, Names},
    server::Server,
};

/// Maximum number of attempts to find a port that is free on every address.
const PORT_ATTEMPTS: u32 = 20;

/// The configuration of a web.
pub struct WebBuilder {
    names: Names,
    log_file: Option<PathBuf>,
    port: u16,
}

/// A running web. Dropping it closes every listener and connection.
pub struct Web {
    server: Arc<Server>,
    authority: Arc<Authority>,
    port: u16,
    stop: CancellationToken,
    tasks: TaskTracker,
}

/// Starts a web, like [`WebBuilder::start`].
pub async fn serve(web: WebBuilder) -> anyhow::Result<Web> {
    web.start().await
}

impl WebBuilder {
    fn new() -> Self {
        Self { names: Names::new(Addresses::Shared(Ipv4Addr::LOCALHOST)), log_file: None, port: 0 }
    }

    /// Sets the addresses of hosts. By default, all are on 127.0.0.1.
    ///
    /// # Panics
    /// If the address is not a loopback address: the test web is never open to the network.
    #[must_use]
    pub fn addresses(mut self, addresses: Addresses) -> Self {
        if let Addresses::Shared(address) = addresses {
            assert!(address.is_loopback(), "{address} is not a loopback address");
        }
        self.names.use_addresses(addresses);
        self
    }

    /// Adds a host.
    #[must_use]
    pub fn host(self, host: Host) -> Self {
        self.names.add(host);
        self
    }

    /// Adds hosts.
    #[must_use]
    pub fn hosts(self, hosts: impl IntoIterator<Item = Host>) -> Self {
        hosts.into_iter().fold(self, Self::host)
    }

    /// Adds `count` hosts, each created at its first request. The name of a host is the pattern with the index in place of `{}`. The name
    /// of the host that `make` returns is ignored.
    ///
    /// # Panics
    /// If the pattern has no `{}`.
    #[must_use]
    pub fn many(
        mut self,
        count: usize,
        pattern: &str,
        make: impl Fn(usize) -> Host + Send + Sync + 'static,
    ) -> Self {
        self.names.add_template(count, pattern, Box::new(make));
        self
    }

    /// Listens on this port in place of a free one.
    #[must_use]
    pub fn port(mut self, port: u16) -> Self {
        self.port = port;
        self
    }

    /// Also writes every hit and connection to this file, one JSON object per line.
    #[must_use]
    pub fn log_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.log_file = Some(path.into());
        self
    }

    /// Starts listening.
    pub async fn start(self) -> anyhow::Result<Web> {
        let listeners = listen(&self.addresses_to_bind(), self.port).await?;
        let port = listeners.first().context("no address to listen on")?.local_addr()?.port();
        let authority = Arc::new(Authority::new()?);
        let log = Arc::new(Log::new(self.log_file.as_deref())?);
        let server = Arc::new(Server::new(Arc::new(self.names), log, Arc::clone(&authority))?);
        let (stop, tasks) = (CancellationToken::new(), TaskTracker::new());
        for listener in listeners {
            let accepting = accept(listener, Arc::clone(&server), tasks.clone(), stop.clone());
            tasks.spawn(stop.clone().run_until_cancelled_owned(accepting));
        }
        Ok(Web { server, authority, port, stop, tasks })
    }

    fn addresses_to_bind(&self) -> Vec<Ipv4Addr> {
        match self.names.addresses() {
            Addresses::OneEach => vec![Ipv4Addr::UNSPECIFIED],
            Addresses::Shared(address) => {
                let mut addresses = self.names.chosen_addresses();
                addresses.retain(|chosen| *chosen != address);
                addresses.sort_unstable();
                addresses.dedup();
                addresses.insert(0, address);
                addresses
            }
        }
    }
}

impl Web {
    /// The configuration of a web without hosts.
    pub fn builder() -> WebBuilder {
        WebBuilder::new()
    }

    /// The port of all hosts.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The authority's certificate in PEM, for `--ca-file`.
    pub fn ca_pem(&self) -> String {
        self.authority.pem()
    }

    /// Every host with its socket.
    pub fn hosts(&self) -> Vec<(String, SocketAddr)> {
        let sockets = self.server.names.sockets(self.port);
        sockets.into_iter().map(|(name, socket)| (name, socket.into())).collect()
    }

    /// The socket of one host.
    pub fn socket_of(&self, host: &str) -> Option<SocketAddr> {
        self.hosts().into_iter().find(|(name, _)| name == host).map(|(_, socket)| socket)
    }

    /// The hosts file for `--hosts`: lines of `address:port name`.
    pub fn hosts_file(&self) -> String {
        self.hosts().iter().fold(String::new(), |mut text, (name, socket)| {
            writeln!(text, "{socket} {name}").expect("writing to a string cannot fail");
            text
        })
    }

    /// Writes `ca.pem` and `hosts` into a directory and returns their paths.
    pub fn write_files(&self, directory: &Path) -> anyhow::Result<WebFiles> {
        let files = WebFiles { ca: directory.join("ca.pem"), hosts: directory.join("hosts") };
        std::fs::write(&files.ca, self.ca_pem()).context("cannot write the authority's certificate")?;
        std::fs::write(&files.hosts, self.hosts_file()).context("cannot write the hosts file")?;
        Ok(files)
    }

    pub fn log(&self) -> &Log {
        &self.server.log
    }

    /// Adds or changes a file of a host, from the next request on. The host need not exist yet.
    pub fn set_file(&self, host: &str, path: &str, content_type: &str, body: impl Into<Bytes>) {
        self.set(host, path, Answer::ok(content_type, body));
    }

    /// Sets the answer of a host on a path, from the next request on. The host need not exist yet.
    pub fn set(&self, host: &str, path: &str, answer: impl Into<Answer>) {
        self.server.names.change(host, |host| host.set(path, answer.into()));
    }

    /// Removes a path from a host. The host then answers it like any other unknown path.
    pub fn remove(&self, host: &str, path: &str) {
        self.server.names.change(host, |host| host.remove(path));
    }

    /// Adds a host, or replaces the host of the same name.
    pub fn set_host(&self, host: Host) {
        self.server.names.add(host);
    }

    /// Removes a host that was added by name. Handshakes for it then fail.
    pub fn remove_host(&self, host: &str) {
        self.server.names.remove(host);
    }

    /// Closes every listener and connection and waits until the log is complete.
    pub async fn stop(self) {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}

impl Drop for Web {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// The files that a crawler needs to visit a web.
#[derive(Clone, Debug)]
pub struct WebFiles {
    /// Value for `--ca-file`.
    pub ca: PathBuf,
    /// Value for `--hosts`.
    pub hosts: PathBuf,
}

async fn accept(listener: TcpListener, server: Arc<Server>, tasks: TaskTracker, stop: CancellationToken) {
    loop {
        // accepting fails if the client has disconnected or no file descriptor is left; the next attempt may succeed
        let Ok((stream, peer)) = listener.accept().await else {
            tokio::task::yield_now().await;
            continue;
        };
        let Ok(local) = stream.local_addr() else { continue };
        // serve only clients in 127.0.0.0/8, so that clients in the network get no response
        if peer.ip().is_loopback() {
            let serving = Arc::clone(&server).serve(stream, peer, local);
            tasks.spawn(stop.clone().run_until_cancelled_owned(serving));
        }
    }
}

/// Binds one port on all addresses: the configured one, or one that is free on each of them.
async fn listen(addresses: &[Ipv4Addr], port: u16) -> anyhow::Result<Vec<TcpListener>> {
    let mut result = bind_all(addresses, port).await;
    for _ in 1..PORT_ATTEMPTS {
        if result.is_ok() || port != 0 {
            break;
        }
        result = bind_all(addresses, port).await;
    }
    result
}

async fn bind_all(addresses: &[Ipv4Addr], port: u16) -> anyhow::Result<Vec<TcpListener>> {
    let mut port = port;
    let mut listeners = Vec::with_capacity(addresses.len());
    for address in addresses {
        let socket = SocketAddrV4::new(*address, port);
        let listener =
            TcpListener::bind(socket).await.with_context(|| format!("cannot listen on {socket}"))?;
        port = listener.local_addr()?.port();
        listeners.push(listener);
    }
    Ok(listeners)
}

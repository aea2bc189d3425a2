//! Defines a virtual host: its name, address, certificate, and its answers by path.
//!
//! Clones share their data, so twenty thousand hosts from one template are cheap.

use std::{collections::HashMap, net::Ipv4Addr, sync::Arc};

use hyper::body::Bytes;

use crate::Answer;

/// A virtual host. Paths are matched without their query. Other paths get the catch-all answer or 404.
#[derive(Clone, Debug)]
pub struct Host {
    pub(crate) name: Arc<str>,
    pub(crate) socket: SocketRule,
    pub(crate) routes: Arc<HashMap<String, Arc<Answer>>>,
    pub(crate) otherwise: Arc<Answer>,
    pub(crate) certificate: Certificate,
    pub(crate) handshake: Handshake,
    pub(crate) protocols: Protocols,
}

/// The socket of a host in the hosts file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SocketRule {
    /// Follows [`crate::Addresses`].
    ByRule,
    /// The host listens on this address.
    At(Ipv4Addr),
    /// The host has a port on which nothing listens.
    Refusing,
}

/// The certificate of a host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Certificate {
    /// Signed by the web's authority for this name.
    #[default]
    Trusted,
    /// Signed by the web's authority, expired in 2001.
    Expired,
    /// Signed by the web's authority, valid from 2090.
    NotYetValid,
    /// Signed by the web's authority for another name.
    WrongName,
    /// Signed by itself.
    SelfSigned,
    /// Signed by an unknown authority.
    UnknownAuthority,
}

/// The behaviour of a host after the client has sent a name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Handshake {
    /// Completes it.
    #[default]
    Complete,
    /// Resets the connection (TCP RST).
    Reset,
    /// Closes the connection.
    Close,
    /// Sends nothing and keeps the connection open.
    Stall,
    /// Refuses every secure version of TLS, like a server with obsolete versions only.
    OldVersion,
}

/// The HTTP versions of a host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protocols {
    /// HTTP/2 and HTTP/1.1.
    #[default]
    Both,
    /// HTTP/1.1 only.
    Http1,
}

impl Host {
    /// A host that answers 404 to everything.
    pub fn new(name: &str) -> Self {
        Self {
            name: name.to_ascii_lowercase().into(),
            socket: SocketRule::ByRule,
            routes: Arc::default(),
            otherwise: Arc::new(Answer::status(404)),
            certificate: Certificate::default(),
            handshake: Handshake::default(),
            protocols: Protocols::default(),
        }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// Serves a file with an ETag made from its bytes.
    #[must_use]
    pub fn file(self, path: &str, content_type: &str, body: impl Into<Bytes>) -> Self {
        self.route(path, Answer::ok(content_type, body))
    }

    /// Serves an answer on a path. It replaces an earlier answer for the same path.
    #[must_use]
    pub fn route(mut self, path: &str, answer: impl Into<Answer>) -> Self {
        self.set(path, answer.into());
        self
    }

    /// Serves a robots.txt.
    #[must_use]
    pub fn robots(self, text: &str) -> Self {
        self.route("/robots.txt", Answer::text(text.to_owned()))
    }

    /// Redirects a path.
    #[must_use]
    pub fn redirect(self, path: &str, status: u16, location: &str) -> Self {
        self.route(path, Answer::redirect(status, location))
    }

    /// Answers every path that has no answer of its own, including robots.txt.
    #[must_use]
    pub fn catch_all(mut self, answer: impl Into<Answer>) -> Self {
        let answer = answer.into();
        self.use_only_protocol(&answer);
        self.otherwise = Arc::new(answer);
        self
    }

    #[must_use]
    pub fn certificate(mut self, certificate: Certificate) -> Self {
        self.certificate = certificate;
        self
    }

    #[must_use]
    pub fn handshake(mut self, handshake: Handshake) -> Self {
        self.handshake = handshake;
        self
    }

    #[must_use]
    pub fn protocols(mut self, protocols: Protocols) -> Self {
        self.protocols = protocols;
        self
    }

    /// Uses this address of 127.0.0.0/8.
    ///
    /// # Panics
    /// If the address is not a loopback address: the test web is never open to the network.
    #[must_use]
    pub fn at(mut self, address: Ipv4Addr) -> Self {
        assert!(address.is_loopback(), "{address} is not a loopback address");
        self.socket = SocketRule::At(address);
        self
    }

    /// Gives the host a port that refuses connections.
    #[must_use]
    pub fn refusing_connections(mut self) -> Self {
        self.socket = SocketRule::Refusing;
        self
    }

    pub(crate) fn set(&mut self, path: &str, answer: Answer) {
        self.use_only_protocol(&answer);
        Arc::make_mut(&mut self.routes).insert(path.to_owned(), Arc::new(answer));
    }

    pub(crate) fn remove(&mut self, path: &str) {
        Arc::make_mut(&mut self.routes).remove(path);
    }

    pub(crate) fn answer_to(&self, path: &str) -> Arc<Answer> {
        Arc::clone(self.routes.get(path).unwrap_or(&self.otherwise))
    }

    /// Restricts the host to HTTP/1.1 if an answer requires it.
    fn use_only_protocol(&mut self, answer: &Answer) {
        if answer.needs_http1() {
            self.protocols = Protocols::Http1;
        }
    }
}

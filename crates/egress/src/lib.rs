//! The only crate that sends requests to the web. It checks each request and limits each response.
//!
//! It makes no decisions about politeness, and sends exactly one request per call. It refuses addresses that are not global, names that
//! were not resolved for the visit, hosts of another site than the visit's, plain http, proxies, redirects, retries, and answers beyond its
//! limits. Every request identifies the crawler (RFC 9110 §10.1.2, §10.1.5).
//!
//! A handshake ([`Session::handshake`]) opens and closes a connection under the same rules, and sends no request.
//!
//! `crawler` obeys the decisions of `policy` before each call. `api` sends searches to the registries that its operator configured, and
//! nothing else.

mod body;
mod dns;
mod failure;
mod handshake;
mod head;
mod hosts;
mod identity;
mod leave;
mod pins;
mod probe;
mod response;
mod sender;
mod session;
mod settings;
mod shared;
mod signing;
mod tls;

pub use dns::name_servers_know;
pub use failure::{Cause, Failure};
pub use head::Head;
pub use hosts::{HostsError, HostsFile};
pub use identity::{Contact, ContactError, CrawlerIdentity, VERSION};
pub use leave::LeaveCheck;
pub use probe::{Stage, Timings};
pub use response::{Body, Extent, Reply};
pub use sender::Egress;
pub use session::{NetworkScope, REQUEST_TIME_MAX, Resolved, Session};
pub use settings::{EgressSettings, OwnRules, Reach};
pub use signing::{KeyError, Signer};
pub use tls::TlsError;

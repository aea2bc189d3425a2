//! Classifies why a request has no usable response: with a slug for the database and a sentence for people.
//!
//! Every error of the resolver, the connector, TLS and HTTP is classified here. Nothing is retried or ignored. The text describes what the
//! server did, not the types of this crate.

use std::error::Error;
use std::fmt;
use std::io;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use policy::{AddressRefusal, FetchOutcome};
use rustix::io::Errno;
use rustls::CertificateError;
use tokio::time::Instant;

use crate::head::Head;
use crate::leave::Late;
use crate::probe::Stage;

/// Minimum time between two log lines about the limit of open files.
const OUT_OF_FILES_INTERVAL: Duration = Duration::from_mins(1);
/// When the limit of open files was last logged.
static OUT_OF_FILES_LOGGED: Mutex<Option<Instant>> = Mutex::new(None);

/// The cause, as detailed as the decisions of a visit require.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// NXDOMAIN, or a name without address records.
    NameUnknown,
    /// The name servers failed or did not respond.
    NameServers,
    /// The name resolves to a forbidden address.
    Address,
    /// The host belongs to another site than the one that is visited.
    OtherSite,
    /// No connection to any of the addresses.
    Connect,
    /// The handshake failed, or the certificate is not valid for the name.
    Tls,
    /// A phase took longer than its limit.
    Timeout,
    /// The body exceeded its cap.
    TooLarge,
    /// This machine had no memory for the body, or no file descriptor for the connection. The server is not at fault.
    Busy,
    /// The request was not sent, because it would have been too late ([`LeaveCheck`](crate::LeaveCheck)).
    Late,
    /// The content coding of the body is refused.
    Encoding,
    /// Not HTTP, HTTP beyond the limits of this crate, or a truncated response.
    Protocol,
}

impl Cause {
    /// The stored outcome.
    pub const fn outcome(self) -> FetchOutcome {
        match self {
            Self::NameUnknown | Self::NameServers => FetchOutcome::DnsFailed,
            Self::Address => FetchOutcome::AddressRefused,
            Self::OtherSite => FetchOutcome::RedirectedAway,
            Self::Connect => FetchOutcome::ConnectFailed,
            Self::Tls => FetchOutcome::TlsFailed,
            Self::Timeout => FetchOutcome::Timeout,
            Self::TooLarge => FetchOutcome::TooLarge,
            Self::Busy | Self::Late => FetchOutcome::NotReached,
            Self::Encoding => FetchOutcome::BadEncoding,
            Self::Protocol => FetchOutcome::ProtocolError,
        }
    }
}

/// A fetch without a usable response.
#[derive(Debug, Clone)]
pub struct Failure {
    pub cause: Cause,
    /// Explanation for the site owner.
    pub reason: String,
    /// Status and headers, if the failure occurred after them.
    pub head: Option<Box<Head>>,
}

impl Failure {
    /// A failure without a response.
    pub fn new(cause: Cause, reason: impl Into<String>) -> Self {
        Self { cause, reason: reason.into(), head: None }
    }

    pub(crate) fn address(refusal: AddressRefusal, address: std::net::IpAddr) -> Self {
        Self::new(
            Cause::Address,
            format!("resolves to {address}, which is {refusal}, so no connection is opened"),
        )
    }

    pub(crate) fn timeout(stage: Stage, seconds: u64) -> Self {
        Self::new(Cause::Timeout, format!("{} took longer than {seconds} s", stage.in_words()))
    }

    /// A failure because the limit of open files is reached. This is a fault of this machine, so it is logged as an error.
    pub(crate) fn out_of_files() -> Self {
        let mut logged = OUT_OF_FILES_LOGGED.lock().unwrap_or_else(PoisonError::into_inner);
        if logged.is_none_or(|at| at.elapsed() >= OUT_OF_FILES_INTERVAL) {
            *logged = Some(Instant::now());
            tracing::error!(
                "no connection can be opened, because the limit of open files is reached (EMFILE or ENFILE), and visits wait: \
                 raise it (ulimit -Hn, LimitNOFILE= of systemd), or lower --concurrency"
            );
        }
        Self::new(Cause::Busy, "this crawler has reached its limit of open files")
    }

    pub(crate) fn with_head(mut self, head: &Head) -> Self {
        self.head = Some(Box::new(head.clone()));
        self
    }

    /// Classifies an error of the HTTP client.
    pub(crate) fn of_client(error: &reqwest::Error) -> Self {
        for source in sources(error) {
            if let Some(failure) = find::<Self>(source) {
                return failure.clone();
            }
            if let Some(late) = find::<Late>(source) {
                return Self::from(*late);
            }
            if let Some(tls) = find::<rustls::Error>(source) {
                return Self::new(Cause::Tls, tls_reason(tls));
            }
        }
        if sources(error).any(is_out_of_files) {
            return Self::out_of_files();
        }
        let io_kind =
            sources(error).find_map(|source| source.downcast_ref::<io::Error>()).map(io::Error::kind);
        if error.is_connect() {
            return Self::new(Cause::Connect, connect_reason(io_kind));
        }
        Self::new(Cause::Protocol, protocol_reason(error, io_kind))
    }
}

impl Failure {
    /// Classifies an error of a connection without a request.
    pub(crate) fn of_connection(error: &io::Error) -> Self {
        if is_out_of_files(error) {
            return Self::out_of_files();
        }
        match find::<rustls::Error>(error) {
            Some(tls) => Self::new(Cause::Tls, tls_reason(tls)),
            None => Self::new(Cause::Connect, connect_reason(Some(error.kind()))),
        }
    }
}

impl From<Late> for Failure {
    fn from(late: Late) -> Self {
        Self::new(Cause::Late, late.to_string())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}

impl Error for Failure {}

/// Whether an error means that the process or the machine may not open any more files. An `io::Error` may wrap another one.
pub(crate) fn is_out_of_files(error: &(dyn Error + 'static)) -> bool {
    let Some(error) = error.downcast_ref::<io::Error>() else { return false };
    let is_limit = |code| [Errno::MFILE, Errno::NFILE].iter().any(|limit| limit.raw_os_error() == code);
    error.raw_os_error().is_some_and(is_limit)
        || error.get_ref().is_some_and(|inside| is_out_of_files(inside))
}

fn sources<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |&error| error.source())
}

/// Looks for `T` in an error, also inside nested `io::Error`s, because their chains of sources do not include the wrapped errors.
fn find<'a, T: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a T> {
    error.downcast_ref::<T>().or_else(|| {
        let inside = error.downcast_ref::<io::Error>()?.get_ref()?;
        find(inside)
    })
}

fn tls_reason(error: &rustls::Error) -> String {
    use CertificateError as Certificate;
    match error {
        rustls::Error::InvalidCertificate(certificate) => match certificate {
            Certificate::Expired | Certificate::ExpiredContext { .. } => {
                "the certificate has expired".to_owned()
            }
            Certificate::NotValidYet | Certificate::NotValidYetContext { .. } => {
                "the certificate is not valid yet".to_owned()
            }
            Certificate::NotValidForName | Certificate::NotValidForNameContext { .. } => {
                "the certificate is for another name".to_owned()
            }
            Certificate::UnknownIssuer => "the certificate's issuer is not known".to_owned(),
            Certificate::Revoked => "the certificate is revoked".to_owned(),
            other => format!("the certificate is not valid: {other}"),
        },
        rustls::Error::AlertReceived(alert) => format!("the server ended the handshake with {alert:?}"),
        rustls::Error::PeerIncompatible(_) => {
            "the server supports no TLS 1.2 or later in common with this crawler".to_owned()
        }
        rustls::Error::InvalidMessage(_) => "the server does not speak TLS".to_owned(),
        other => format!("the TLS handshake failed: {other}"),
    }
}

fn connect_reason(kind: Option<io::ErrorKind>) -> String {
    match kind {
        Some(io::ErrorKind::ConnectionRefused) => "the connection was refused",
        Some(io::ErrorKind::ConnectionReset | io::ErrorKind::ConnectionAborted) => {
            "the connection was reset while it was set up"
        }
        Some(io::ErrorKind::UnexpectedEof) => "the connection was closed while it was set up",
        Some(io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable) => {
            "the address is not reachable"
        }
        Some(io::ErrorKind::TimedOut) => "no address answered in time",
        _ => "no connection to any address",
    }
    .to_owned()
}

fn protocol_reason(error: &reqwest::Error, kind: Option<io::ErrorKind>) -> String {
    match kind {
        Some(io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe) => {
            "the connection was reset".to_owned()
        }
        Some(io::ErrorKind::UnexpectedEof) => {
            "the connection was closed before the response was complete".to_owned()
        }
        _ => {
            let innermost = sources(error).last().map_or_else(|| error.to_string(), ToString::to_string);
            format!("the response is not valid HTTP: {innermost}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_many_open_files_is_a_local_fault() {
        for code in [Errno::MFILE, Errno::NFILE] {
            let inner = io::Error::from_raw_os_error(code.raw_os_error());
            assert!(is_out_of_files(&inner) && is_out_of_files(&io::Error::other(inner)), "{code}");
        }
        let refused = io::Error::from_raw_os_error(Errno::CONNREFUSED.raw_os_error());
        assert!(!is_out_of_files(&refused) && !is_out_of_files(&io::Error::other(refused)));
        assert_eq!(Failure::out_of_files().cause.outcome(), FetchOutcome::NotReached);
    }
}

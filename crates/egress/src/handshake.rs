//! One TLS handshake without a request: connects, verifies the certificate, and closes the connection.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use manifest::Host;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use crate::failure::{Cause, Failure};
use crate::probe::Stage;

/// Time limit to connect. A request or a handshake tries only one address.
pub(crate) const CONNECT_MAX: Duration = Duration::from_secs(5);
pub(crate) const HANDSHAKE_MAX: Duration = Duration::from_secs(5);

/// Completes a handshake. The address was checked by the caller.
pub(crate) async fn complete(tls: ClientConfig, host: &Host, address: SocketAddr) -> Result<(), Failure> {
    let name = ServerName::try_from(host.as_str().to_owned())
        .map_err(|_| Failure::new(Cause::Tls, format!("{host} cannot be the name in a certificate")))?;
    let connected = timeout(CONNECT_MAX, TcpStream::connect(address)).await;
    let connection = connected
        .map_err(|_| timed_out(Stage::Connecting, CONNECT_MAX, Cause::Connect))?
        .map_err(|error| Failure::of_connection(&error))?;
    let verified = timeout(HANDSHAKE_MAX, TlsConnector::from(Arc::new(tls)).connect(name, connection)).await;
    let mut connection = verified
        .map_err(|_| timed_out(Stage::Handshake, HANDSHAKE_MAX, Cause::Tls))?
        .map_err(|error| failed(&error))?;
    // close_notify tells the server that nothing follows; whether it arrives does not matter
    drop(timeout(CONNECT_MAX, connection.shutdown()).await);
    Ok(())
}

fn timed_out(stage: Stage, limit: Duration, cause: Cause) -> Failure {
    Failure { cause, ..Failure::timeout(stage, limit.as_secs()) }
}

/// A connection that was open and ended before the handshake was complete.
fn failed(error: &io::Error) -> Failure {
    let failure = Failure::of_connection(error);
    Failure { cause: if failure.cause == Cause::Connect { Cause::Tls } else { failure.cause }, ..failure }
}

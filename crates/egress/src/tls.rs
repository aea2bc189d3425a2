//! One TLS configuration for the whole process: TLS 1.2 and later, Mozilla's roots, full verification.
//!
//! Certificates are always checked, because manifests identify their site. `--ca-file` adds roots for networks with their own certificate
//! authority, but the check cannot be disabled. TLS sessions are not resumed, because a site is visited rarely.

use std::sync::Arc;

use rustls::client::Resumption;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};

use crate::probe::Probe;

/// Why the configuration could not be built.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    #[error("the file of additional certificates holds none: it should be PEM text with BEGIN CERTIFICATE")]
    NoCertificate,
    #[error("the file of additional certificates cannot be read as PEM: {0}")]
    Pem(String),
    #[error("TLS could not be set up")]
    Setup(#[source] rustls::Error),
}

/// The only protocol that is offered. HTTP/2 would allow a server to cause unbounded work and memory in the client between two requests, by
/// informational responses, `PING` and `SETTINGS` frames. A client that sends requests one after another gains nothing from HTTP/2.
const ALPN: &[u8] = b"http/1.1";

/// Builds the configuration that all visits share.
pub(crate) fn client_config(additional_roots_pem: Option<&[u8]>) -> Result<ClientConfig, TlsError> {
    let mut roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    if let Some(pem) = additional_roots_pem {
        add_roots(&mut roots, pem)?;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(TlsError::Setup)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![ALPN.to_vec()];
    config.enable_early_data = false;
    Ok(config)
}

/// A copy of the configuration for one visit, with the probe of the visit. The roots and the provider are shared.
pub(crate) fn for_visit(shared: &ClientConfig, probe: &Probe) -> ClientConfig {
    let mut config = shared.clone();
    config.resumption = Resumption::store(Arc::new(probe.clone()));
    config
}

fn add_roots(roots: &mut RootCertStore, pem: &[u8]) -> Result<(), TlsError> {
    let before = roots.len();
    for certificate in CertificateDer::pem_slice_iter(pem) {
        let certificate = certificate.map_err(|error| TlsError::Pem(error.to_string()))?;
        roots.add(certificate).map_err(|error| TlsError::Pem(error.to_string()))?;
    }
    if roots.len() == before { Err(TlsError::NoCertificate) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rejects_a_ca_file_without_certificates() {
        assert!(matches!(client_config(Some(b"hello")), Err(TlsError::NoCertificate)));
        let config = client_config(None).unwrap();
        assert_eq!(config.alpn_protocols, vec![b"http/1.1".to_vec()]);
    }
}

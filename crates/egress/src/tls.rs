//! One TLS configuration for the whole process: TLS 1.2 and later, Mozilla's roots, full verification.
//!
//! Certificates are always checked, since manifests identify their site. `--ca-file` adds roots, for networks with their own authority; the
//! check cannot be disabled. Sessions are not resumed: a site is visited once.

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

/// The only protocol offered. A peer of HTTP/2 may make its client do or keep unbounded work between two requests, by informational
/// responses, `PING` and `SETTINGS` frames; a client that sends requests one after another gains nothing from it.
const ALPN: &[u8] = b"http/1.1";

/// Builds the configuration that every visit starts from.
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

/// The same configuration (its roots and provider are shared), timed by the probe of one visit.
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

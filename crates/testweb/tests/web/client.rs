//! A client that trusts the authority of the test web and resolves its hosts. If a URL has no port, it uses the port in the hosts file.

use std::time::Duration;

use rustls::pki_types::pem::PemObject as _;
use testweb::Web;

pub(crate) struct Got {
    pub(crate) status: u16,
    pub(crate) headers: reqwest::header::HeaderMap,
    pub(crate) body: Vec<u8>,
    pub(crate) version: reqwest::Version,
}

impl Got {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().expect("test set-up"))
    }
}

#[expect(clippy::disallowed_methods, reason = "this client connects only to the test web")]
pub(crate) fn client(web: &Web) -> reqwest::Client {
    let mut roots = rustls::RootCertStore::empty();
    let ca = rustls::pki_types::CertificateDer::from_pem_slice(web.ca_pem().as_bytes()).expect("test set-up");
    roots.add(ca).expect("test set-up");
    let mut tls =
        rustls::ClientConfig::builder_with_provider(rustls::crypto::ring::default_provider().into())
            .with_safe_default_protocol_versions()
            .expect("test set-up")
            .with_root_certificates(roots)
            .with_no_client_auth();
    tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let builder = web
        .hosts()
        .into_iter()
        .fold(reqwest::Client::builder(), |builder, (host, socket)| builder.resolve(&host, socket));
    builder
        .tls_backend_preconfigured(tls)
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never())
        .timeout(Duration::from_secs(20))
        .user_agent("testweb-tests/1.0")
        .build()
        .expect("test set-up")
}

#[expect(clippy::disallowed_methods, reason = "this client connects only to the test web")]
pub(crate) async fn get_with(
    client: &reqwest::Client,
    url: &str,
    headers: &[(&str, &str)],
) -> Result<Got, reqwest::Error> {
    let request =
        headers.iter().fold(client.get(url), |request, (name, value)| request.header(*name, *value));
    let response = request.send().await?;
    let (status, headers, version) =
        (response.status().as_u16(), response.headers().clone(), response.version());
    Ok(Got { status, headers, version, body: response.bytes().await?.to_vec() })
}

pub(crate) async fn get(client: &reqwest::Client, url: &str) -> Result<Got, reqwest::Error> {
    get_with(client, url, &[]).await
}

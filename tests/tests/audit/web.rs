//! The audit of the running test web: a polite crawl, an impolite one, and the printed report.

use std::time::Duration;

use agentdex_tests::audit::{self, Policy, Rule};
use rustls::pki_types::pem::PemObject as _;
use testweb::{Host, Web};

const USER_AGENT: &str = "agentdex/0.1.0 (+https://bot.example/)";

#[expect(clippy::disallowed_methods, reason = "this client connects only to the test web")]
fn client(web: &Web) -> reqwest::Client {
    let mut roots = rustls::RootCertStore::empty();
    let ca =
        rustls::pki_types::CertificateDer::from_pem_slice(web.ca_pem().as_bytes()).expect("a certificate");
    roots.add(ca).expect("a usable certificate");
    let tls = rustls::ClientConfig::builder_with_provider(rustls::crypto::ring::default_provider().into())
        .with_safe_default_protocol_versions()
        .expect("usual versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    let (host, socket) = web.hosts().remove(0);
    let client = reqwest::Client::builder().tls_backend_preconfigured(tls).resolve(&host, socket).no_proxy();
    client.user_agent(USER_AGENT).build().expect("a client")
}

#[expect(clippy::disallowed_methods, reason = "this client connects only to the test web")]
async fn fetch(client: &reqwest::Client, path: &str) {
    let answer = client.get(format!("https://site.example{path}")).send().await.expect("an answer");
    answer.bytes().await.expect("a body");
}

async fn web() -> Web {
    let host =
        Host::new("site.example").robots("User-agent: *\nDisallow: /private\n").route("/agent.json", "{}");
    Web::builder().host(host).start().await.expect("the web starts")
}

#[tokio::test]
async fn a_polite_crawl_of_the_test_web_is_clean() {
    let web = web().await;
    let client = client(&web);
    for path in ["/robots.txt", "/agent.json", "/agents.json"] {
        fetch(&client, path).await;
    }
    web.log().wait_until(|log| log.hit_count() == 3).await;
    let report = audit::check(&web.log().hits(), &Policy::default());
    report.assert_clean();
    assert_eq!((report.requests, report.authorities["site.example"]), (3, 3));
}

#[tokio::test]
async fn reports_the_violations_of_an_impolite_crawl() {
    let web = web().await;
    let client = client(&web);
    for path in ["/agent.json", "/robots.txt", "/private"] {
        fetch(&client, path).await;
    }
    web.log().wait_until(|log| log.hit_count() == 3).await;
    let report = audit::check(&web.log().hits(), &Policy::with_delay(Duration::from_mins(1)));
    assert_eq!((report.count(Rule::RobotsFirst), report.count(Rule::Disallowed)), (1, 1), "{report}");
    assert_eq!(report.count(Rule::AuthorityGap), 2, "{report}");
    let text = report.to_string();
    assert!(text.starts_with("3 requests to 1 authorities: 4 violations\n"), "{text}");
    assert!(text.contains("disallowed         #2 site.example/private 404"), "{text}");
    assert!(text.contains("required 60.000000 s"), "{text}");
}

#[test]
fn a_log_without_requests_is_not_clean() {
    assert!(!audit::check(&[], &Policy::default()).is_clean());
}

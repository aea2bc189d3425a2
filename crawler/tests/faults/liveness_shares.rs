//! Which hosts of endpoints count as a site's own in the daily checks.

use crawler::config::EndpointChecks;
use manifest::SiteName;
use testweb::{Answer, Host, Web};

use crate::names::{NXDOMAIN, Responder, Zone};
use crate::support::Crawl;

const PERMITS: &str = "User-agent: *\nAllow: /\n";
const CUSTOMERS_HOSTS: usize = 9;

fn awp(domain: &str, hosts: &[String]) -> String {
    let action = |host: &String| {
        format!(
            r#"{{"id":"call_{host}","description":"Call {host}","method":"GET","endpoint":"https://{host}/x"}}"#
        )
    };
    let actions: Vec<String> = hosts.iter().map(action).collect();
    format!(
        r#"{{"awp_version":"0.1","domain":"{domain}","intent":"Call","actions":[{}]}}"#,
        actions.join(",")
    )
}

/// The catalog of a platform lists the manifest of a customer, whose endpoints name hosts that do not exist below the customer's host.
#[tokio::test]
async fn hosts_that_a_listed_customer_names_are_not_the_sites_own() {
    let scams: Vec<String> =
        (0..CUSTOMERS_HOSTS).map(|number| format!("plat-is-a-scam{number}.a.plat.example")).collect();
    let zones: Vec<(&str, Zone)> = scams.iter().map(|host| (host.as_str(), Zone::Code(NXDOMAIN))).collect();
    let responder = Responder::start(zones).await;
    let catalog = r#"{"specVersion":"1.0","host":{"displayName":"Plat"},"entries":[
        {"identifier":"urn:air:plat.example:a","displayName":"A","type":"application/agent+json","url":"https://a.plat.example/agent.json"}]}"#;
    let web = Web::builder()
        .host(
            Host::new("plat.example")
                .robots(PERMITS)
                .file(
                    "/agent.json",
                    "application/json",
                    awp("plat.example", &["api.plat.example".to_owned()]),
                )
                .route("/.well-known/ai-catalog.json", Answer::json(catalog)),
        )
        .host(Host::new("api.plat.example").robots(PERMITS))
        .host(Host::new("a.plat.example").robots(PERMITS).file(
            "/agent.json",
            "application/json",
            awp("a.plat.example", &scams),
        ))
        .start()
        .await
        .unwrap();
    let mut crawl = Crawl::on(web, "plat.example").await;
    crawl.config.egress.name_servers = vec![responder.address];
    crawl.pass().await;
    crawl.config.endpoint_checks = EndpointChecks::Daily;
    crawl.pass().await;
    let site = SiteName::parse("plat.example").unwrap();
    let checks = crawl.store.host_checks_of_site(&site).await.unwrap();
    let hosts: Vec<&str> = checks.iter().map(|check| check.host.as_str()).collect();
    assert_eq!(hosts, ["api.plat.example"]);
    let first = manifest::Host::parse(&scams[0]).unwrap();
    assert!(
        crawl.store.host_check_find(&first).await.unwrap().is_some(),
        "the customer's hosts are checked too"
    );
}

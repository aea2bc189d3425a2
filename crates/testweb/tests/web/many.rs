//! Tests with many hosts: separate addresses, the hosts file, and the cost of a template.

use std::net::Ipv4Addr;

use testweb::{Addresses, Answer, Host, Web};

use crate::client::{client, get};

#[tokio::test]
async fn each_host_of_a_template_has_an_address_and_a_certificate() {
    let shared = Host::new("template").robots("").route("/agent.json", "{}");
    let web = Web::builder()
        .addresses(Addresses::OneEach)
        .host(Host::new("first.example").at(Ipv4Addr::new(127, 9, 9, 9)))
        .many(20_000, "site{}.test", move |index| match index % 10 {
            9 => Host::new("dead").refusing_connections(),
            _ => shared.clone(),
        })
        .start()
        .await
        .unwrap();
    let client = client(&web);
    for index in [0, 1, 7, 19_998] {
        let url = format!("https://site{index}.test:{}/agent.json", web.port());
        assert_eq!(get(&client, &url).await.unwrap().status, 200, "{url}");
    }
    web.log().wait_until(|log| log.hit_count() == 4).await;
    let mut addresses: Vec<_> = web.log().hits().iter().map(|hit| hit.server.ip()).collect();
    addresses.dedup();
    assert_eq!(addresses.len(), 4, "{addresses:?}");
    let hosts = web.hosts_file();
    let mut lines = hosts.lines();
    assert_eq!(lines.next(), Some(format!("127.9.9.9:{} first.example", web.port()).as_str()));
    assert_eq!(lines.next(), Some(format!("127.1.0.2:{} site0.test", web.port()).as_str()));
    assert_eq!(lines.nth(8), Some("127.1.0.11:1 site9.test"));
    assert_eq!(hosts.lines().count(), 20_001);
}

#[tokio::test]
async fn hosts_on_chosen_addresses_share_one_port() {
    let web = Web::builder()
        .host(Host::new("shared.example").route("/", Answer::text("shared")))
        .host(Host::new("own.example").at(Ipv4Addr::new(127, 0, 0, 9)).route("/", Answer::text("own")))
        .start()
        .await
        .unwrap();
    let client = client(&web);
    for (host, body, address) in
        [("shared.example", "shared", "127.0.0.1"), ("own.example", "own", "127.0.0.9")]
    {
        let got = get(&client, &format!("https://{host}:{}/", web.port())).await.unwrap();
        assert_eq!(got.body, body.as_bytes());
        assert_eq!(web.socket_of(host).unwrap().to_string(), format!("{address}:{}", web.port()));
    }
    web.stop().await;
}

#[tokio::test]
async fn writes_the_files_for_a_crawler() {
    let web = Web::builder().host(Host::new("one.example")).start().await.unwrap();
    let directory = tempfile::tempdir().unwrap();
    let files = web.write_files(directory.path()).unwrap();
    assert!(std::fs::read_to_string(files.ca).unwrap().starts_with("-----BEGIN CERTIFICATE-----"));
    let hosts = std::fs::read_to_string(files.hosts).unwrap();
    assert_eq!(hosts, format!("127.0.0.1:{} one.example\n", web.port()));
}

//! Tests the demo's web: every site behaves as configured, and JSON files are valid.

use std::collections::BTreeSet;

use testweb::demo;

use crate::client::{client, get, get_with};

#[tokio::test]
async fn every_seed_is_a_separate_site_that_responds() {
    let web = demo::web().start().await.unwrap();
    let client = client(&web);
    let seeds = demo::seeds();
    assert!(seeds.len() >= 30, "{} sites", seeds.len());
    assert_eq!(seeds.iter().collect::<BTreeSet<_>>().len(), seeds.len());
    for seed in seeds {
        let robots = get(&client, &format!("https://{seed}/robots.txt")).await.unwrap();
        let expected = match seed {
            "drowsy.example" => 503,
            "gardenia.example" => 301,
            _ => 200,
        };
        assert_eq!(robots.status, expected, "{seed}");
    }
}

#[tokio::test]
async fn manifests_are_json_with_validators_except_deliberately_broken_ones() {
    let web = demo::web().start().await.unwrap();
    let client = client(&web);
    let mut manifests = 0;
    for (host, _) in web.hosts() {
        for path in
            ["/agent.json", "/.well-known/agent.json", "/.well-known/agents.json", "/.well-known/woa.json"]
        {
            let url = format!("https://{host}{path}");
            let got = get(&client, &url).await.unwrap();
            if got.status != 200 || host == "single-page.test" {
                continue;
            }
            manifests += 1;
            let parsed = serde_json::from_slice::<serde_json::Value>(&got.body);
            assert_eq!(parsed.is_ok(), host != "doublequote.example", "{url}");
            let again =
                get_with(&client, &url, &[("if-none-match", got.header("etag").unwrap())]).await.unwrap();
            assert_eq!((again.status, again.header("cache-control")), (304, Some("max-age=2")), "{url}");
        }
    }
    assert!(manifests >= 25, "{manifests} manifests");
}

/// Nothing of the home page leads to it, so robots.txt names it.
#[tokio::test]
async fn a_site_serves_a_server_card_that_its_robots_txt_names() {
    let web = demo::web().start().await.unwrap();
    let client = client(&web);
    let path = "/.well-known/mcp/server-card.json";
    assert!(demo::seeds().contains(&"feldspar.example"));
    let card = get(&client, &format!("https://feldspar.example{path}")).await.unwrap();
    assert_eq!((card.status, card.header("content-type")), (200, Some("application/mcp-server-card+json")));
    let card: serde_json::Value = serde_json::from_slice(&card.body).unwrap();
    assert_eq!(card["name"], "example.feldspar/minerals");
    let robots = get(&client, "https://feldspar.example/robots.txt").await.unwrap();
    let robots = String::from_utf8(robots.body).unwrap();
    assert!(robots.contains(&format!("Agentmap: {path}\n")), "{robots}");
}

#[tokio::test]
async fn serves_a_manifest_and_redirects_a_moved_site() {
    let web = demo::web().start().await.unwrap();
    let client = client(&web);
    let airline = get(&client, "https://skyhop.example/agent.json").await.unwrap();
    let manifest: serde_json::Value = serde_json::from_slice(&airline.body).unwrap();
    assert_eq!(manifest["actions"][1]["id"], "book_seat");
    let moved = get(&client, "https://gardenia.example/.well-known/agents.json?v=1").await.unwrap();
    let target = "https://www.gardenia.example/.well-known/agents.json?v=1";
    assert_eq!((moved.status, moved.header("location")), (301, Some(target)));
    assert_eq!(get(&client, target).await.unwrap().status, 200);
    let home = get(&client, "https://northstitch.example/").await.unwrap();
    assert_eq!(home.header("link"), Some("</.well-known/agent.json>; rel=\"agent-manifest\""));
    let page = get(&client, "https://single-page.test/agent.json").await.unwrap();
    assert_eq!((page.status, page.header("content-type")), (200, Some("text/html; charset=utf-8")));
}

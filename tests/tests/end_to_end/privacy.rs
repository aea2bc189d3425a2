//! Checks which data an instance stores about its clients (docs/PRIVACY.md).

use std::net::IpAddr;
use std::path::Path;
use std::process::Stdio;

use reqwest::RequestBuilder;
use testweb::{Host, Web};

use crate::flow::airline;
use crate::world::{Api, Backend, World, client};

/// A word in a request that occurs in no document.
const WORD: &str = "zebracrossing";
/// The client address that a trusted proxy forwards.
const ADDRESS: &str = "203.0.113.77";

/// The address of the trusted proxy. The test reads the metrics directly, from another address.
const PROXY: &str = "127.0.0.2";

#[expect(clippy::disallowed_methods, reason = "a client of the local api")]
async fn send(request: RequestBuilder) -> String {
    let answer = request.header("x-forwarded-for", ADDRESS).send().await.unwrap();
    assert!(!answer.headers().contains_key("set-cookie"), "{:?}", answer.headers());
    let status = answer.status();
    let text = answer.text().await.unwrap();
    assert!(status.is_success(), "{status}: {text}");
    text
}

/// Every file below a directory that contains a text.
fn files_with(folder: &Path, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files_with(&path, text));
        } else if std::fs::read(&path).unwrap().windows(text.len()).any(|bytes| bytes == text.as_bytes()) {
            found.push(path.display().to_string());
        }
    }
    found
}

pub(crate) async fn searches_and_addresses_of_clients_are_not_stored() {
    let host = Host::new("sky.test").file("/agent.json", "application/json", airline("book_flight"));
    let world = World::start(Backend::Sqlite, Web::builder().host(host)).await;
    world.write_seeds(["sky.test"]);
    world.crawl(&[]);
    world.index();
    let log = std::fs::File::create(world.path("data/api.log")).unwrap();
    let mut api = Api::start(&world, |command| {
        command.args(["--trusted-proxies", PROXY]).stderr(Stdio::from(log));
    });
    api.wait_until_ready().await;
    // Creating a client installs the crypto provider that all clients need.
    drop(client());
    #[expect(clippy::disallowed_methods, reason = "a client of the local api")]
    let proxy = reqwest::Client::builder().local_address(PROXY.parse::<IpAddr>().unwrap()).build().unwrap();
    let get = |path: &str| proxy.get(format!("{}{path}", api.base()));
    for path in ["search?q=", "suggest?q=", "search.atom?q=", "sites/sky.test/rank?q="] {
        send(get(&format!("/{path}{WORD}"))).await;
    }
    send(get(&format!("/search?q={WORD}")).header("accept", "text/html")).await;
    let manifest = format!(r#"{{"awp_version": "0.1", "intent": "{WORD}"}}"#);
    send(proxy.post(format!("{}/validate", api.base())).body(manifest)).await;
    let call = serde_json::json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": "find_capability", "arguments": {"query": WORD}}});
    let mcp = proxy.post(format!("{}/mcp", api.base())).body(call.to_string());
    let mcp = mcp
        .header("accept", "application/json, text/event-stream")
        .header("content-type", "application/json")
        .header("mcp-protocol-version", "2025-11-25");
    send(mcp).await;
    let submission = proxy.post(format!("{}/sites", api.base()));
    send(submission.body(r#"{"domain": "newcomer.test"}"#)).await;
    #[expect(clippy::disallowed_methods, reason = "a client of the local api")]
    let metrics = client().get(format!("{}/metrics", api.base())).send().await.unwrap().text().await.unwrap();
    assert!(metrics.contains("agentdex_") && !metrics.contains(WORD) && !metrics.contains(ADDRESS));
    api.stop();

    let data = world.path("data");
    assert!(!files_with(&data, "newcomer.test").is_empty(), "the submission was not stored");
    for kept in [WORD, ADDRESS] {
        assert_eq!(files_with(&data, kept), Vec::<String>::new(), "{kept}");
    }
}

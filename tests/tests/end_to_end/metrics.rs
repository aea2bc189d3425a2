//! The metrics of a separate indexer, read like Prometheus does.

use std::process::{Command, Stdio};
use std::time::Duration;

use testweb::{Host, Web};

use crate::world::{Backend, TIMEOUT, World, client};

/// The status and the body of a scrape, or `None` before the listener accepts connections.
#[expect(clippy::disallowed_methods, reason = "a client of the local indexer")]
async fn scrape(address: &str, host: &str) -> Option<(u16, String)> {
    let request = client().get(format!("http://{address}/metrics")).header("host", host);
    let answer = request.send().await.ok()?;
    Some((answer.status().as_u16(), answer.text().await.ok()?))
}

#[tokio::test(flavor = "multi_thread")]
async fn the_indexer_serves_its_metrics_to_this_machine() {
    let agent = r#"{"awp_version": "0.1", "domain": "kiosk.test", "intent": "Sell newspapers",
        "actions": [{"id": "sell", "description": "Sell a newspaper", "endpoint": "/sell", "method": "POST"}]}"#;
    let host = Host::new("kiosk.test").file("/agent.json", "application/json", agent);
    let world = World::start(Backend::Sqlite, Web::builder().host(host)).await;
    world.write_seeds(["kiosk.test"]);
    world.crawl(&[]);
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let address = format!("127.0.0.1:{port}");
    let mut command = world.program("indexer");
    command.args(["--metrics", &address]).stdout(Stdio::null()).stderr(Stdio::null());
    let mut indexer = command.spawn().unwrap();
    let caught_up = async {
        loop {
            let page = scrape(&address, &address).await.map(|(_, page)| page).unwrap_or_default();
            if page.contains("agentdex_indexer_feed_lag 0") {
                return page;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let page = tokio::time::timeout(TIMEOUT, caught_up).await.expect("the index did not catch up");
    let foreign = scrape(&address, "rebound.example").await;
    let stopped = Command::new("kill").args(["-TERM", &indexer.id().to_string()]).status().unwrap();
    assert!(stopped.success() && indexer.wait().unwrap().success());
    assert!(page.contains("agentdex_indexer_database_waits_total 0"), "{page}");
    assert_eq!(foreign.map(|(status, _)| status), Some(403), "a foreign host name must be refused");
    world.assert_polite();
}

/// The second one has begun to publish a snapshot to a bucket that does not answer.
#[tokio::test(flavor = "multi_thread")]
async fn a_second_indexer_is_refused_in_one_sentence() {
    let world = World::start(Backend::Sqlite, Web::builder().host(Host::new("kiosk.test"))).await;
    world.write_seeds(["kiosk.test"]);
    world.crawl(&[]);
    world.index();
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let address = format!("127.0.0.1:{port}");
    let mut command = world.program("indexer");
    command.args(["--metrics", &address]).stdout(Stdio::null()).stderr(Stdio::null());
    let mut first = command.spawn().unwrap();
    let running = async {
        while !scrape(&address, &address)
            .await
            .is_some_and(|(_, page)| page.contains("agentdex_indexer_feed_lag 0"))
        {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(TIMEOUT, running).await.expect("the first indexer does not follow the feed");
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let mut second = world.program("indexer");
    second.args(["--publish", "s3://agentdex-snapshots/index"]);
    second
        .env("AWS_ENDPOINT_URL", format!("http://{}", silent.local_addr().unwrap()))
        .env("AWS_ALLOW_HTTP", "true");
    second.env("AWS_ACCESS_KEY_ID", "test").env("AWS_SECRET_ACCESS_KEY", "test").env("AWS_REGION", "test");
    let refused = crate::world::output(second);
    crate::world::kill(&mut first);
    let text = crate::world::text_of(&refused);
    assert_eq!(refused.status.code(), Some(1), "{text}");
    assert!(text.contains("another indexer, or `agentdex`, is writing to"), "{text}");
    assert!(!text.contains("panic") && !text.contains("cancelled"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_indexer_reports_an_address_that_it_cannot_listen_on() {
    let world = World::start(Backend::Sqlite, Web::builder().host(Host::new("kiosk.test"))).await;
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let mut command = world.program("indexer");
    command.args(["--metrics", &address]);
    let output = crate::world::output(command);
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains(&format!("cannot serve metrics on {address}")), "{text}");
    assert!(!world.path("data").exists(), "the indexer must exit before it opens the database");
}

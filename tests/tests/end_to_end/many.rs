//! A thousand sites on separate addresses: a polite crawl, and a second pass with a fraction of the requests.

use std::time::Duration;

use serde_json::json;
use testweb::{Host, Web};

use crate::world::{Backend, World};

const SITES: usize = 1_000;
/// Maximum number of requests of the second pass, in per cent of the first.
const SECOND_PASS_PERCENT_MAX: usize = 35;

/// Three in ten sites have a manifest, in one of three dialects.
fn site(index: usize) -> Host {
    let name = format!("site{index}.test");
    let host = Host::new(&name);
    match index % 10 {
        0 => host.file("/agent.json", "application/json", shop(&name, "order_item")),
        1 => host.robots("User-agent: *\nDisallow: /private/\n").file(
            "/.well-known/agents.json",
            "application/json",
            kiosk(&name),
        ),
        2 => host.file(
            "/agents.txt",
            "text/plain",
            format!("Name: Kiosk {index}\nURL: https://{name}\nCapabilities: search, order\n"),
        ),
        _ => host,
    }
}

fn shop(domain: &str, action: &str) -> String {
    json!({"awp_version": "0.1", "domain": domain, "intent": "A corner shop.", "actions": [{"id": action,
        "description": "Order an item for delivery", "auth_required": false, "inputs": {"item": {"type": "string", "required": true}},
        "outputs": {"order": "string"}, "endpoint": "/api/orders", "method": "POST"}]})
    .to_string()
}

fn kiosk(domain: &str) -> String {
    json!({"schema_version": "0.1.0", "site": {"name": "Kiosk", "url": format!("https://{domain}")},
        "capabilities": [{"name": "search", "description": "Search the shelves", "endpoint": "/api/search", "method": "GET",
                          "params": {"q": {"type": "string", "required": true}}}]})
    .to_string()
}

pub(crate) async fn crawls_a_thousand_sites_politely_and_revisits_them_cheaply(backend: Backend) {
    let mut world = World::start(backend, Web::builder().hosts((0..SITES).map(site))).await;
    world.delay = Duration::from_millis(100);
    world.write_seeds((0..SITES).map(|index| format!("site{index}.test")));
    let summary = world.crawl(&[]);
    assert_eq!(summary["sites_visited"], SITES, "{summary}");
    assert_eq!(summary["manifests"]["awp"], SITES / 10, "{summary}");
    let first = world.requests();
    world.assert_polite();

    world.web.set_file(
        "site40.test",
        "/agent.json",
        "application/json",
        shop("site40.test", "order_bouquet"),
    );
    world.crawl(&["--revisit", "0s"]);
    let second = world.requests() - first;
    assert!(
        second * 100 <= first * SECOND_PASS_PERCENT_MAX,
        "the second pass sent {second} requests, the first {first}"
    );
    world.assert_polite();

    world.index();
    assert_eq!(
        world.api().await.search("q=order+bouquet").await.first().map(String::as_str),
        Some("order_bouquet")
    );
}

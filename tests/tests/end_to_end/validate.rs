//! `agentdex validate URL` fetches one document like the crawler, and applies the rules about response headers.

#[cfg(target_os = "linux")]
use std::process::Stdio;
#[cfg(target_os = "linux")]
use std::time::Duration;

use serde_json::Value;
use testweb::{Host, Web};

#[cfg(target_os = "linux")]
use crate::world::client;
use crate::world::{Backend, World, output, text_of};

const MANIFEST: &str = r#"{"awp_version": "0.1", "domain": "shop.test", "intent": "Sells books.", "actions": [{"id": "find_book",
    "description": "Finds a book by its title", "auth_required": false, "inputs": {}, "outputs": {}, "endpoint": "/api/find", "method": "GET"}]}"#;

fn web() -> testweb::WebBuilder {
    let robots = "User-agent: *\nDisallow: /private/\n";
    let shop = Host::new("shop.test").robots(robots).file("/agent.json", "text/plain", MANIFEST);
    let shop = shop.file("/private/agent.json", "application/json", MANIFEST);
    let shop = shop.file("/page.json", "text/html", "<!doctype html><title>Not found</title>");
    let arws = r#"{"name": "Museum", "description": "Shows pictures.", "auth": {"type": "oauth2"}, "tools": "/tools.json"}"#;
    let tools = r#"{"tools": [{"name": "find_room", "description": "Finds a room.", "inputSchema": {"type": "object"}}]}"#;
    let museum = Host::new("museum.test").file("/.well-known/agent-manifest.json", "application/json", arws);
    let museum = museum.file("/tools.json", "application/json", tools);
    Web::builder().hosts([shop, museum])
}

/// Validates a URL; returns the exit code and the output.
fn validate(world: &World, url: &str, flags: &[&str]) -> (i32, String) {
    let files = world.web.write_files(&world.path("")).unwrap();
    let mut command = world.program("agentdex");
    command.arg("validate").arg(url).arg("--hosts").arg(files.hosts).arg("--ca-file").arg(files.ca);
    command.args(["--contact-email", "crawler@crawler.example", "--quiet"]).args(flags);
    let output = output(command);
    (output.status.code().unwrap(), text_of(&output))
}

const LOOPBACK: [&str; 4] = ["--allow-addresses", "127.0.0.0/8", "--delay", "20ms"];

#[tokio::test(flavor = "multi_thread")]
async fn validates_a_url_politely_with_its_response_headers() {
    let world = World::start(Backend::Sqlite, web()).await;
    let (code, text) = validate(&world, "https://shop.test/agent.json", &LOOPBACK);
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("awp.served.content_type"), "{text}");
    let paths: Vec<String> = world.web.log().hits_on("shop.test").into_iter().map(|hit| hit.path).collect();
    assert_eq!(paths, ["/robots.txt", "/agent.json"]);
    world.assert_polite();
    assert!(!world.path("data").exists(), "validating stored data");
}

#[tokio::test(flavor = "multi_thread")]
async fn fetches_the_parts_that_complete_a_document() {
    let world = World::start(Backend::Sqlite, web()).await;
    let flags = [&LOOPBACK[..], &["--output", "json", "--fail-on", "never"]].concat();
    let url = "https://museum.test/.well-known/agent-manifest.json";
    let (code, text) = validate(&world, url, &flags);
    assert_eq!(code, 0, "{text}");
    let report = text.split_once('\n').unwrap().1;
    let report: Value = serde_json::from_str(report).unwrap_or_else(|error| panic!("{error}: {text}"));
    assert_eq!(
        (&report["detection"]["format"], &report["capabilities"]),
        (&"arws".into(), &1.into()),
        "{report}"
    );
    assert_eq!(report["served"]["status"], 200, "{report}");
    world.assert_polite();
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_nothing_that_is_forbidden() {
    let world = World::start(Backend::Sqlite, web()).await;
    let refused = [
        ("https://shop.test/private/agent.json", &LOOPBACK[..], "robots.txt"),
        ("https://shop.test/page.json", &LOOPBACK[..], "a page was served"),
        ("https://shop.test/agent.json", &[][..], "addresses that are refused"),
        ("http://shop.test/agent.json", &LOOPBACK[..], "only https"),
    ];
    for (url, flags, why) in refused {
        let (code, text) = validate(&world, url, flags);
        assert!(code != 0 && text.contains(why), "{url}: {text}");
    }
    let paths: Vec<String> = world.web.log().hits().into_iter().map(|hit| hit.path).collect();
    assert_eq!(paths, ["/robots.txt", "/robots.txt", "/page.json"]);
}

/// Whether a child process of this program is reading a document.
#[cfg(target_os = "linux")]
fn has_reader(parent: u32) -> bool {
    let parent = parent.to_string();
    std::fs::read_dir("/proc").unwrap().flatten().any(|process| {
        let file = |name| std::fs::read_to_string(process.path().join(name)).unwrap_or_default();
        let stat = file("stat");
        // the state and the parent follow the name of the program
        let mut fields = stat.rsplit(')').next().unwrap_or_default().split_ascii_whitespace();
        fields.nth(1) == Some(parent.as_str())
            && file("cmdline").split('\0').any(|argument| argument == "read-document")
    })
}

/// Whether a program starts such a process before it exits.
#[cfg(target_os = "linux")]
async fn reads_in_a_process(mut command: std::process::Command) -> bool {
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let mut was_seen = false;
    while child.try_wait().unwrap().is_none() {
        was_seen |= has_reader(child.id());
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    was_seen
}

/// Each program starts itself again as the reader.
#[cfg(target_os = "linux")]
#[expect(clippy::disallowed_methods, reason = "a client of the local api")]
#[tokio::test(flavor = "multi_thread")]
async fn every_program_reads_a_long_document_in_a_process() {
    let long = MANIFEST.replace("Sells books.", &"Sells books. ".repeat(200_000));
    let shop = Host::new("shop.test").file("/agent.json", "application/json", long.clone());
    let world = World::start(Backend::Sqlite, Web::builder().host(shop)).await;
    std::fs::write(world.path("long.json"), &long).unwrap();
    let mut validate = world.program("agentdex");
    validate.args(["validate", "long.json"]);
    assert!(reads_in_a_process(validate).await, "agentdex validate");
    world.write_seeds(["shop.test"]);
    assert!(reads_in_a_process(world.crawler(&[])).await, "crawler");
    world.index();
    let api = world.api().await;
    let url = format!("{}/validate?url=https://shop.test/agent.json", api.base());
    let seen = async {
        while !has_reader(api.id()) {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    let sent = client().post(url).header("content-type", "application/json").body(long).send();
    let (seen, _) = tokio::join!(tokio::time::timeout(Duration::from_secs(20), seen), sent);
    assert!(seen.is_ok(), "api");
}

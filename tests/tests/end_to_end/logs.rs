//! Client input in log lines is escaped and truncated, and never causes an error line.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use reqwest::RequestBuilder;
use serde_json::Value;
use testweb::{Host, Web};

use crate::world::{Backend, TIMEOUT, World, client};

/// Input that forges a log line, clears a terminal and reorders text unless it is escaped.
const FORGED: &str = "1\n2026-01-01T00:00:00.000000Z ERROR forged\r\u{1b}[2J\u{9b}31m\u{2028}\u{202e}";
/// Maximum log size of a test in bytes; each request has 20 kB.
const LOG_BYTES_MAX: usize = 512 * 1024;
/// Repetitions of each request.
const TIMES: usize = 10;

struct Logging {
    child: Child,
    base: String,
}

impl Logging {
    async fn start(world: &World, flags: &[&str]) -> Self {
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut command = world.program("api");
        command.args(["--listen", &format!("127.0.0.1:{port}")]).args(flags);
        let log = std::fs::File::create(world.path("api.log")).unwrap();
        let child = command.stdout(Stdio::null()).stderr(log).spawn().unwrap();
        let logging = Self { child, base: format!("http://127.0.0.1:{port}") };
        let up = async {
            while logging.send(client().get(format!("{}/healthz", logging.base))).await.is_none() {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        tokio::time::timeout(TIMEOUT, up).await.expect("the api did not start");
        logging
    }

    #[expect(clippy::disallowed_methods, reason = "a client of the local api")]
    async fn send(&self, request: RequestBuilder) -> Option<u16> {
        request.send().await.ok().map(|answer| answer.status().as_u16())
    }

    async fn mcp(&self, host: &str, body: String) -> u16 {
        let request = client().post(format!("{}/mcp", self.base));
        let request = request
            .header("accept", "application/json, text/event-stream")
            .header("content-type", "application/json")
            .header("mcp-protocol-version", "2025-11-25")
            .header("host", host);
        self.send(request.body(body)).await.unwrap()
    }

    /// Sends each kind of client mistake and attack.
    async fn send_all(&self) {
        let call = |id: &str, method: &str| {
            serde_json::json!({"jsonrpc": "2.0", "id": id, "method": method, "params": {"name": FORGED, "arguments": {}}})
                .to_string()
        };
        let own = self.base.trim_start_matches("http://");
        for method in ["tools/call", "tools/list", "resources/read", FORGED] {
            self.mcp(own, call(FORGED, method)).await;
            self.mcp(own, call(&FORGED.repeat(400), method)).await;
        }
        assert_eq!(self.mcp("rebound.example", call(FORGED, "tools/list")).await, 403);
        self.mcp(own, FORGED.to_owned()).await;
        let long = "x".repeat(20 * 1024);
        let get = |path: &str| client().get(format!("{}{path}", self.base)).header("x-request-id", &long);
        for path in [
            "/sites",
            "/search?q=%0aforged%1b%5b2J",
            "/sites/%0d%0aforged%c2%9b",
            "/manifests/%e2%80%a8",
            "/nowhere",
        ] {
            self.send(get(path)).await.unwrap();
        }
        self.send(get(&format!("/{}", "p".repeat(10_000)))).await.unwrap();
        let form = client().post(format!("{}/sites", self.base)).header("origin", "https://evil.example");
        assert_eq!(self.send(form.body(format!("domain={FORGED}"))).await, Some(403));
        let url = format!("{}/validate?url=https://x.example/agent.json", self.base);
        self.send(client().post(url).body(FORGED.repeat(50))).await.unwrap();
    }

    fn stop(mut self) {
        let signalled = Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status().unwrap();
        assert!(signalled.success() && self.child.wait().unwrap().success(), "the api did not exit cleanly");
    }
}

async fn log_of(flags: &[&str]) -> String {
    let world = World::start(Backend::Sqlite, Web::builder().host(Host::new("kiosk.test"))).await;
    let api = Logging::start(&world, flags).await;
    for _ in 0..TIMES {
        api.send_all().await;
    }
    api.stop();
    std::fs::read_to_string(world.path("api.log")).unwrap()
}

fn is_unsafe(letter: char) -> bool {
    letter != '\n'
        && (letter.is_control() || ('\u{2028}'..='\u{202e}').contains(&letter) || letter == '\u{2066}')
}

#[track_caller]
fn assert_harmless(log: &str) {
    assert!(!log.chars().any(is_unsafe), "{:?}", log.lines().find(|line| line.chars().any(is_unsafe)));
    assert!(log.len() < LOG_BYTES_MAX, "{} bytes of log", log.len());
}

pub(crate) async fn clients_cannot_forge_log_lines_or_raise_alarms_in_text() {
    let log = log_of(&["--log-format", "text"]).await;
    assert_harmless(&log);
    for line in log.lines() {
        assert!(line.starts_with("20") && !line.starts_with("2026-01-01T00:00:00"), "{line}");
        assert!(
            !line.contains(" WARN ") && !line.get(..40).is_some_and(|start| start.contains("ERROR")),
            "{line}"
        );
    }
}

pub(crate) async fn clients_cannot_forge_log_lines_or_raise_alarms_in_json() {
    let log = log_of(&["--log-format", "json"]).await;
    assert_harmless(&log);
    for line in log.lines() {
        let line: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        assert!(!["WARN", "ERROR"].contains(&line["level"].as_str().unwrap()), "{line}");
    }
}

/// At trace level, libraries log their input, which must not break out of its line either.
pub(crate) async fn clients_cannot_forge_log_lines_at_trace_level() {
    let log = log_of(&["--log-format", "text", "-vv"]).await;
    assert!(log.contains("forged"), "the input is not logged: {log}");
    for line in log.lines() {
        assert!(line.starts_with("20") && !line.starts_with("2026-01-01T00:00:00"), "{line}");
        assert!(!line.chars().any(is_unsafe), "{line:?}");
    }
}

//! MCP over HTTP, without an SDK: versions, JSON responses, and cross-site requests. The official SDK calls
//! every tool in tests/mcp.

use axum::body::Body;
use axum::http::{Request, StatusCode};
use serde_json::{Value, json};

use crate::answer::Answer;
use crate::world::World;

async fn post(world: &World, headers: &[(&str, &str)], body: &Value) -> Answer {
    let mut request = Request::post("/mcp")
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    world.send(request.body(Body::from(body.to_string())).unwrap()).await
}

fn list() -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}})
}

#[tokio::test]
async fn previous_mcp_version_is_supported() {
    let world = World::new().await;
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-11-25",
        "capabilities": {}, "clientInfo": {"name": "hand", "version": "1"}}});
    let answer = post(&world, &[("host", "localhost:8080")], &hello).await;
    assert_eq!(answer.header("content-type"), "application/json");
    let answer = answer.ok();
    assert_eq!(answer["result"]["protocolVersion"], "2025-11-25");
    assert_eq!(answer["result"]["serverInfo"]["name"], "agentdex");
    let tools = post(&world, &[("host", "127.0.0.1:8080"), ("mcp-protocol-version", "2025-11-25")], &list())
        .await
        .ok();
    assert_eq!(tools["result"]["tools"].as_array().unwrap().len(), 7);
}

#[tokio::test]
async fn mcp_refuses_unknown_hosts() {
    let world = World::new().await;
    for host in ["localhost:8080", "127.0.0.1:8080", "[::1]:8080", "dex.example", "dex.example:443"] {
        assert_eq!(post(&world, &[("host", host)], &list()).await.status, StatusCode::OK, "{host}");
    }
    for host in
        ["rebound.example", "dex.example.rebound.example", "169.254.169.254", "localhost.rebound.example"]
    {
        let answer = post(&world, &[("host", host)], &list()).await;
        assert_eq!(answer.status, StatusCode::FORBIDDEN, "{host}");
        let reason = answer.json()["error"]["message"].to_string();
        assert!(reason.contains("the header Host"), "{host}: {reason}");
    }
    for (origin, status) in [
        ("https://dex.example", StatusCode::OK),
        ("http://localhost:8080", StatusCode::OK),
        ("https://client.example", StatusCode::OK),
        ("null", StatusCode::OK),
    ] {
        let answer = post(&world, &[("host", "localhost:8080"), ("origin", origin)], &list()).await;
        assert_eq!(answer.status, status, "{origin}: {}", answer.text());
    }
}

#[tokio::test]
async fn unknown_tool_is_a_protocol_error_and_a_refusal_is_a_result() {
    let world = World::new().await;
    let call = |name: &str, arguments: Value| json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": arguments}});
    let headers = [("host", "localhost"), ("mcp-protocol-version", "2025-11-25")];
    let unknown = post(&world, &headers, &call("drop_tables", json!({}))).await.json();
    assert!(unknown["error"]["message"].as_str().unwrap().contains("find_capability"), "{unknown}");
    let refused = post(&world, &headers, &call("find_capability", json!({"colour": 1}))).await.ok();
    assert_eq!(refused["result"]["isError"], true);
    let found =
        post(&world, &headers, &call("find_capability", json!({"query": "book a flight"}))).await.ok();
    assert_eq!(found["result"]["structuredContent"]["results"][0]["site"], "skyhop.example");
}

#[tokio::test]
async fn refusals_do_not_repeat_long_arguments() {
    let world = World::new().await;
    let long = "a".repeat(100_000);
    let headers = [("host", "localhost"), ("mcp-protocol-version", "2025-11-25")];
    for (name, arguments) in [
        ("find_capability", json!({"query": "x", long.as_str(): 1})),
        ("find_capability", json!({"query": "x", "cursor": long})),
        ("get_capability", json!({"id": long})),
        ("get_site", json!({"domain": long})),
        ("submit_site", json!({"domain": long})),
        (long.as_str(), json!({})),
    ] {
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": arguments}});
        let answer = post(&world, &headers, &call).await;
        assert!(answer.body.len() < 16_000, "a name of {} bytes: {} bytes", name.len(), answer.body.len());
    }
}

#[tokio::test]
async fn refusals_say_what_is_wrong() {
    let world = World::new().await;
    let get = world.get("/mcp").await;
    assert!(get.status.is_client_error(), "{}", get.status);
    let both = "application/json, text/event-stream";
    let list = list().to_string();
    let batch = format!("[{list}]");
    for ((body, accept, kind, version), status, code, word) in [
        (("", both, "application/json", ""), 400, -32_700, "not JSON"),
        (("nonsense", both, "application/json", ""), 400, -32_700, "not JSON"),
        (("{", both, "application/json", ""), 400, -32_700, "not JSON"),
        (("[]", both, "application/json", ""), 400, -32_600, "one message"),
        ((&batch, both, "application/json", ""), 400, -32_600, "one message"),
        (
            ("{\"jsonrpc\": \"1.0\"}", both, "application/json; charset=utf-8", ""),
            400,
            -32_600,
            "JSON-RPC 2.0",
        ),
        (("{\"id\": 1, \"method\": \"ping\"}", both, "application/json", ""), 400, -32_600, "JSON-RPC 2.0"),
        ((&list, both, "application/json", "bogus"), 400, -32_600, "bogus"),
        ((&list, "application/json", "application/json", ""), 406, -32_600, "text/event-stream"),
        ((&list, "*/*", "application/json", ""), 406, -32_600, "text/event-stream"),
        ((&list, both, "text/plain", ""), 415, -32_600, "application/json"),
    ] {
        let mut request = Request::post("/mcp").header("host", "localhost");
        request = request.header("content-type", kind).header("accept", accept);
        if !version.is_empty() {
            request = request.header("mcp-protocol-version", version);
        }
        let answer = world.send(request.body(Body::from(body.to_owned())).unwrap()).await;
        assert_eq!(answer.status.as_u16(), status, "{body} {accept} {kind} {version}: {}", answer.text());
        assert_eq!(answer.header("content-type"), "application/json");
        let error = answer.json();
        assert_eq!(
            (&error["jsonrpc"], &error["error"]["code"]),
            (&json!("2.0"), &json!(code)),
            "{body}: {error}"
        );
        assert!(
            error["error"]["message"].as_str().unwrap().contains(word),
            "{body} {accept} {kind}: {error}"
        );
    }
}

#[tokio::test]
async fn messages_beyond_the_value_budget_are_refused() {
    let world = World::new().await;
    let wide = format!("[{}0]", "0,".repeat(300_000));
    let deep = "[".repeat(1_000);
    for body in [wide, deep] {
        let request = Request::post("/mcp")
            .header("content-type", "application/json")
            .header("host", "localhost")
            .header("accept", "application/json, text/event-stream");
        let answer = world.send(request.body(Body::from(body)).unwrap()).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{}", answer.text());
        assert!(answer.text().contains("the limit is"), "{}", answer.text());
    }
}

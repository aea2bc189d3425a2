//! Cross-origin requests that pages of other sites send from the browsers of their visitors.

use axum::body::Body;
use axum::http::{Request, StatusCode};
use serde_json::Value;

use crate::answer::Answer;
use crate::world::{Settings, World};

const FORM: &str = "application/x-www-form-urlencoded";

async fn world() -> World {
    let public_url = Some("https://dex.example".parse().unwrap());
    World::with(Settings { public_url, feedback: true, ..Settings::default() }).await
}

async fn send(world: &World, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
    let mut request = Request::builder().method(method).uri(path).header("content-type", FORM);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    world.send(request.body(Body::from(body.to_owned())).unwrap()).await
}

#[tokio::test]
async fn refuses_forms_from_other_origins() {
    let world = world().await;
    for (number, headers) in [
        &[("origin", "https://evil.example")][..],
        &[("origin", "https://evil.example"), ("sec-fetch-site", "cross-site")],
        &[("origin", "null")],
        &[("origin", "http://dex.example")],
        &[("origin", "https://dex.example.evil.example")],
        &[("origin", "http://localhost:9999"), ("host", "localhost:8080")],
        // another name that resolves to this server (DNS rebinding): same origin, but not ours
        &[
            ("origin", "http://rebound.example:8080"),
            ("host", "rebound.example:8080"),
            ("sec-fetch-site", "same-origin"),
        ],
        &[("sec-fetch-site", "cross-site")],
        &[("sec-fetch-site", "same-site")],
        &[("sec-fetch-site", "same-origin"), ("sec-fetch-site", "cross-site")],
        &[("origin", "https://dex.example"), ("origin", "https://evil.example")],
        &[("origin", "https://evil.example"), ("origin", "https://dex.example")],
        &[("origin", "https://dex.example"), ("origin", "https://dex.example")],
    ]
    .into_iter()
    .enumerate()
    {
        let answer = send(&world, "POST", "/sites", headers, &format!("domain=s{number}.example")).await;
        assert_eq!(answer.status, StatusCode::FORBIDDEN, "{headers:?}: {}", answer.text());
        let problem = answer.json();
        assert_eq!(problem["errorCode"], "PERMISSION_DENIED");
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.contains("sent by a page of") && detail.contains("--public-url"), "{detail}");
        assert_eq!(world.get(&format!("/sites/s{number}.example")).await.status, StatusCode::NOT_FOUND);
    }
}

#[tokio::test]
async fn refused_page_leads_to_the_address_that_accepts_changes() {
    let world = world().await;
    let headers = [("origin", "http://box.lan:8080"), ("accept", "text/html")];
    let page = send(&world, "POST", "/sites", &headers, "domain=shop.example").await;
    assert_eq!(page.status, StatusCode::FORBIDDEN);
    let link = "only under <a href=\"https://dex.example/sites#add\">https://dex.example</a>.";
    assert!(page.text().contains(link), "{}", page.text());
    let page = send(&world, "POST", "/sites/skyhop.example/recheck", &headers, "").await;
    assert!(page.text().contains("href=\"https://dex.example/sites/skyhop.example\""), "{}", page.text());
}

#[tokio::test]
async fn accepts_submissions_from_own_pages_and_programs() {
    let world = world().await;
    for (number, headers) in [
        &[][..],
        &[("origin", "https://dex.example"), ("sec-fetch-site", "same-origin")],
        &[("origin", "http://localhost:8080")],
        &[("origin", "http://127.0.0.1:8080"), ("host", "localhost:8080")],
        &[("origin", "http://[::1]:8080")],
        // the port of the request, which differs between runs
        &[("origin", "http://127.0.0.1:43211"), ("host", "127.0.0.1:43211")],
        &[("origin", "http://192.168.1.5:8080"), ("host", "192.168.1.5:8080")],
        &[("sec-fetch-site", "same-origin")],
        &[("sec-fetch-site", "none")],
    ]
    .into_iter()
    .enumerate()
    {
        let answer = send(&world, "POST", "/sites", headers, &format!("domain=o{number}.example")).await;
        assert_eq!(answer.status, StatusCode::ACCEPTED, "{headers:?}: {}", answer.text());
    }
}

/// Every operation that changes state is refused to other origins, including operations that are added later.
#[tokio::test]
async fn every_changing_operation_checks_its_origin() {
    let world = world().await;
    let description = world.get("/openapi.json").await.json();
    let open = ["/search", "/explore", "/validate", "/mcp"];
    let mut guarded = Vec::new();
    for (path, operations) in description["paths"].as_object().unwrap() {
        for method in operations.as_object().unwrap().keys().filter(|name| *name != "get" && *name != "head")
        {
            let tools: &[&str] = if path.contains("{name}") || path.contains("{agent}") {
                &["submit_site", "find_capability"]
            } else {
                &["skyhop.example"]
            };
            for filled in tools {
                let requested = path.split('/').map(|part| if part.starts_with('{') { filled } else { part });
                let requested = requested.collect::<Vec<_>>().join("/");
                let headers = [("origin", "https://evil.example")];
                let answer = send(&world, &method.to_uppercase(), &requested, &headers, "{}").await;
                let refused =
                    answer.status == StatusCode::FORBIDDEN && answer.text().contains("sent by a page of");
                let reads = open.contains(&path.as_str()) || *filled == "find_capability";
                assert_eq!(refused, !reads, "{method} {requested}: {} {}", answer.status, answer.text());
                guarded.extend(refused.then_some(requested));
            }
        }
    }
    for known in ["/sites", "/sites/skyhop.example/recheck", "/feedback", "/reports", "/tools/submit_site"] {
        assert!(guarded.iter().any(|path| path == known), "{known} is not among {guarded:?}");
    }
}

#[tokio::test]
async fn other_origins_may_call_the_a2a_agent() {
    let world = world().await;
    let message = r#"{"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": {"message": {"parts": [{"kind": "text", "text": "flight"}]}}}"#;
    let headers = [("origin", "https://client.example"), ("sec-fetch-site", "cross-site")];
    let answer = send(&world, "POST", "/a2a", &headers, message).await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text());
    assert_eq!(answer.json()["result"]["kind"], "message", "{}", answer.text());
}

/// Calls a method of the MCP server.
async fn mcp(world: &World, headers: &[(&str, &str)], message: &Value) -> Answer {
    let mut request = Request::post("/mcp")
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    world.send(request.body(Body::from(message.to_string())).unwrap()).await
}

const OWN_HOST: (&str, &str) = ("host", "localhost:8080");

fn tool_call(tool: &str, arguments: &Value) -> Value {
    serde_json::json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments}})
}

#[tokio::test]
async fn reading_tools_of_mcp_answer_pages_of_every_origin() {
    let world = world().await;
    let foreign = ("origin", "https://client.example");
    let find = tool_call("find_capability", &serde_json::json!({"query": "flight"}));
    let answer = mcp(&world, &[OWN_HOST, foreign, ("sec-fetch-site", "cross-site")], &find).await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text());
    assert_eq!(answer.header("access-control-allow-origin"), "*");
    assert_ne!(answer.json()["result"]["isError"], true, "{}", answer.text());
    let rebound = mcp(&world, &[("host", "rebound.example:8080"), foreign], &find).await;
    assert_eq!(rebound.status, StatusCode::FORBIDDEN, "the Host is checked for all");
    let refused = rebound.json();
    assert!(refused["error"]["message"].as_str().unwrap().contains("header Host"), "{refused}");
    let several = mcp(&world, &[OWN_HOST, ("origin", "https://dex.example"), foreign], &find).await;
    assert_eq!(several.status, StatusCode::FORBIDDEN, "{}", several.text());
}

#[tokio::test]
async fn writing_tools_of_mcp_refuse_foreign_origins_with_an_explanation() {
    let world = world().await;
    for (origin, is_accepted) in [
        (None, true),
        (Some("https://dex.example"), true),
        (Some("https://evil.example"), false),
        (Some("null"), false),
    ] {
        let site = format!("m{}.example", origin.map_or(0, str::len));
        let headers: Vec<_> = [OWN_HOST].into_iter().chain(origin.map(|origin| ("origin", origin))).collect();
        let submit = tool_call("submit_site", &serde_json::json!({"domain": site}));
        let answer = mcp(&world, &headers, &submit).await.json();
        assert_eq!(answer["result"]["isError"] != true, is_accepted, "{origin:?}: {answer}");
        let known = world.get(&format!("/sites/{site}")).await.status == StatusCode::OK;
        assert_eq!(known, is_accepted, "{origin:?}");
        if !is_accepted {
            let words = answer["result"]["content"][0]["text"].as_str().unwrap();
            assert!(words.contains("sent by a page of") && words.contains("--public-url"), "{words}");
        }
    }
}

#[tokio::test]
async fn preflight_allows_the_headers_of_mcp_clients() {
    let world = world().await;
    let request = Request::builder().method("OPTIONS").uri("/mcp").header("origin", "https://client.example");
    let request = request.header("access-control-request-method", "POST").header(
        "access-control-request-headers",
        "content-type,mcp-protocol-version,mcp-session-id,mcp-method,mcp-name",
    );
    let answer = world.send(request.body(Body::empty()).unwrap()).await;
    assert_eq!(answer.status, StatusCode::OK);
    let allowed = answer.header("access-control-allow-headers").to_lowercase();
    for name in ["mcp-protocol-version", "mcp-session-id", "mcp-method", "mcp-name", "content-type"] {
        assert!(allowed.contains(name), "{allowed}");
    }
}

#[tokio::test]
async fn mcp_accepts_the_public_url_with_a_port() {
    let public_url = Some("http://[fd00::1]:81".parse().unwrap());
    let world = World::with(Settings { public_url, ..Settings::default() }).await;
    for (host, is_known) in
        [("[fd00::1]:81", true), ("[::1]:8080", true), ("[fd00::1]:82", false), ("[fd00::2]:81", false)]
    {
        let message = r#"{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}"#;
        let request = Request::post("/mcp")
            .header("host", host)
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
            .body(Body::from(message))
            .unwrap();
        let answer = world.send(request).await;
        assert_eq!(answer.status != StatusCode::FORBIDDEN, is_known, "{host}: {}", answer.text());
    }
}

/// The rule for `/metrics` has its tests in `server_names` (`only_requests_under_local_names_count_as_local`).
#[tokio::test]
async fn mcp_accepts_loopback_names_in_every_spelling() {
    let world = world().await;
    for (host, is_accepted) in [
        ("LOCALHOST", true),
        ("localhost.", true),
        ("LocalHost.:8080", true),
        ("127.0.0.1:8080", true),
        ("localhost..", false),
        ("localhost.rebound.example", false),
    ] {
        let message = r#"{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}"#;
        let request = Request::post("/mcp")
            .header("host", host)
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
            .body(Body::from(message))
            .unwrap();
        let answer = world.send(request).await;
        assert_eq!(answer.status != StatusCode::FORBIDDEN, is_accepted, "{host}: {}", answer.text());
    }
}

#[tokio::test]
async fn referrer_is_sent_to_the_same_origin_only() {
    let answer = world().await.page("/sites").await;
    assert_eq!(
        answer.header("referrer-policy"),
        "same-origin",
        "with no-referrer, forms would be sent with the origin \"null\""
    );
}

#[tokio::test]
async fn accepts_only_one_short_visible_request_id() {
    let world = world().await;
    let long = "x".repeat(20 * 1024);
    for (sent, is_kept) in [
        (&["trace-1/ABC"][..], true),
        (&[&"a".repeat(128)], true),
        (&[&"a".repeat(129)], false),
        (&[&long], false),
        (&["two words"], false),
        (&["h\u{e9}"], false),
        (&[""], false),
        (&["one", "two"], false),
    ] {
        let mut request = Request::get("/sites");
        for id in sent {
            request = request.header("x-request-id", id.as_bytes());
        }
        let answer = world.send(request.body(Body::empty()).unwrap()).await;
        let ids: Vec<_> = answer.headers.get_all("x-request-id").iter().collect();
        let [id] = ids.as_slice() else { panic!("{} ids", ids.len()) };
        assert_eq!(id.as_bytes() == sent[0].as_bytes(), is_kept, "{sent:?}");
        assert!((1..=128).contains(&id.len()), "{sent:?}");
    }
}

#[tokio::test]
async fn refuses_submissions_of_private_names() {
    let world = world().await;
    let sites = async || world.store.stats(crate::world::machine_now()).await.unwrap().sites;
    let before = sites().await;
    for (submitted, says) in [
        (r#"{"domain": "co.uk"}"#, "public suffix"),
        (r#"{"domain": "a.internal"}"#, "private networks"),
        (r#"{"domain": "a.local"}"#, "RFC 6762"),
        (r#"{"domain": "a.localhost"}"#, "RFC 6761"),
        (r#"{"domain": "a.localdomain"}"#, "local networks"),
        (r#"{"domain": "home.arpa"}"#, "RFC 8375"),
        (r#"{"domain": "x.onion"}"#, "RFC 7686"),
        (r#"{"domain": "a.invalid"}"#, "RFC 6761"),
        (r#"{"domain": "127.in-addr.arpa"}"#, "in-addr.arpa"),
        (r#"{"domain": "1.ip6.arpa"}"#, "ip6.arpa"),
        (r#"{"domain": "a.alt"}"#, "RFC 9476"),
        (r#"{"domain": "localhost"}"#, "name of this machine"),
        (r#"{"domain": "10.0.0.1"}"#, "IP address"),
        (r#"{"url": "https://a.com:22/"}"#, "port 443"),
        (r#"{"url": "http://a.example/"}"#, "https"),
        (r#"{"url": "https://u:p@a.example/"}"#, "user name"),
        (r#"{"url": "https://github.io/agent.json"}"#, "public suffix"),
    ] {
        let answer = send(&world, "POST", "/sites", &[], submitted).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{submitted}: {}", answer.text());
        let problem = answer.json();
        assert!(problem["detail"].as_str().unwrap().contains(says), "{submitted}: {problem}");
        let submitted: Value = serde_json::from_str(submitted).unwrap();
        let parameter = submitted.as_object().unwrap().keys().next().unwrap();
        assert_eq!(problem["parameter"], parameter.as_str(), "{problem}");
        if let Some(domain) = submitted["domain"].as_str() {
            let by_tool = serde_json::json!({"domain": domain}).to_string();
            let answer = send(&world, "POST", "/tools/submit_site", &[], &by_tool).await;
            assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{domain}: {}", answer.text());
        }
    }
    let long = |bytes: usize| {
        let start = "https://long.example/";
        serde_json::json!({"url": format!("{start}{}", "b".repeat(bytes - start.len()))}).to_string()
    };
    let answer = send(&world, "POST", "/sites", &[], &long(2_049)).await;
    assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{}", answer.text());
    assert_eq!(sites().await, before, "refused names are not stored");
    assert_eq!(send(&world, "POST", "/sites", &[], &long(2_048)).await.status, StatusCode::ACCEPTED);
    for taken in [r#"{"domain": "fresh.test"}"#, r#"{"url": "https://other.example:443/agent.json"}"#] {
        assert_eq!(send(&world, "POST", "/sites", &[], taken).await.status, StatusCode::ACCEPTED, "{taken}");
    }
}

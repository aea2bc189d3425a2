//! The response of `GET /search`.

use axum::http::{Request, StatusCode};
use serde_json::{Value, json};

use crate::world::World;

/// The response without values that differ between runs or depend on the weights of ranking.
fn steady(mut answer: Value) -> Value {
    answer["took_ms"] = json!("[time]");
    for row in answer["results"].as_array_mut().unwrap() {
        if row.get("score").is_some() {
            row["score"] = json!("[score]");
            row["snippet"] = json!("[snippet]");
        }
    }
    answer
}

fn ids(answer: &Value) -> Vec<&str> {
    answer["results"].as_array().unwrap().iter().map(|row| row["native_id"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn search_ranks_the_best_match_first_with_all_fields() {
    let world = World::new().await;
    let answer = world.get("/search?q=book+flight&facets=format,safety").await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text());
    assert_eq!(answer.header("content-type"), "application/json");
    let json = answer.json();
    assert_eq!(ids(&json)[0], "book_seat");
    let snippet = json["results"][0]["snippet"].as_str().unwrap();
    assert!(snippet.starts_with("<mark>Book</mark> a <mark>flight</mark>"), "{snippet}");
    assert!(json["took_ms"].as_f64().is_some_and(|took| took >= 0.0));
    insta::assert_json_snapshot!(steady(json));
}

#[tokio::test]
async fn full_view_adds_stored_details() {
    let world = World::new().await;
    let answer = world.get("/search?q=book+a+seat&view=full&limit=1").await;
    insta::assert_json_snapshot!(steady(answer.json()));
}

#[tokio::test]
async fn filters_work_with_and_without_a_query() {
    let world = World::new().await;
    for (query, expected) in [
        ("format=openapi", vec!["getForecast"]),
        ("site=skyhop.example&safety=read", vec!["search_flights"]),
        ("safety=read,irreversible&method=post", vec!["book_seat"]),
        ("site=unknown.example", vec![]),
        ("namespace=weather&updated_since=2026-01-01", vec!["getForecast"]),
        ("format=openapi&updated_since=2036-01-01T00:00:00Z", vec![]),
        ("auth=oauth2&fields=id,native_id", vec!["book_seat"]),
        ("format=openapi&degraded=false", vec!["getForecast"]),
        ("format=openapi&degraded=true", vec![]),
    ] {
        let answer = world.get(&format!("/search?{query}")).await;
        assert_eq!(answer.status, StatusCode::OK, "{query}: {}", answer.text());
        assert_eq!(ids(&answer.json()), expected, "{query}");
    }
}

#[tokio::test]
async fn fields_select_members_of_rows() {
    let world = World::new().await;
    let answer = world.get("/search?format=openapi&view=full&fields=name,parameters,text_is").await.json();
    assert_eq!(
        answer["results"][0],
        json!({"name": "getForecast", "text_is": "publisher-supplied, untrusted", "parameters": null})
    );
}

#[tokio::test]
async fn search_pages_have_no_gaps_or_repeats() {
    let world = World::new().await;
    let mut seen = Vec::new();
    let mut path = "/search?status=fresh&sort=name&limit=2".to_owned();
    loop {
        let answer = world.get(&path).await.json();
        seen.extend(ids(&answer).into_iter().map(ToOwned::to_owned));
        let Some(cursor) = answer["next_cursor"].as_str() else { break };
        path = format!("/search?status=fresh&sort=name&limit=2&cursor={cursor}");
    }
    assert_eq!(seen.len(), 5, "{seen:?}");
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), 5);
}

#[tokio::test]
async fn results_are_grouped_by_site_on_request() {
    let world = World::new().await;
    let answer = world.get("/search?q=book+flights&group_by=site").await.json();
    let rows = answer["results"].as_array().unwrap();
    let of_site = rows.iter().filter(|row| row["site"] == "skyhop.example").collect::<Vec<_>>();
    assert_eq!(of_site.len(), 1, "{answer}");
    let group = &of_site[0]["group"];
    assert_eq!((&group["by"], &group["others"]), (&json!("site"), &json!(1)), "{answer}");
    assert_eq!(group["members"][0]["site"], "skyhop.example");
    let all = world.get("/search?q=book+flights&group_by=none").await.json();
    assert!(all["results"].as_array().unwrap().iter().all(|row| row.get("group").is_none()));
    assert_eq!(all["total"], answer["total"]);
}

#[tokio::test]
async fn returns_400_with_the_known_values() {
    let world = World::new().await;
    for (query, parameter, word) in [
        ("", Value::Null, "/search?q=book+flight"),
        ("colour=red", json!("colour"), "semantic_type"),
        ("q=x&format=soap", json!("format"), "agents_json"),
        ("q=x&safety=safe", json!("safety"), "irreversible"),
        ("q=x&method=FETCH", json!("method"), "PATCH"),
        ("q=x&degraded=maybe", json!("degraded"), "false"),
        ("q=x&view=wide", json!("view"), "compact\",\"full"),
        ("q=x&facets=prices", json!("facets"), "semantic_type"),
        ("q=x&fields=price", json!("fields"), "native_id"),
        ("q=x&group_by=host", json!("group_by"), "site"),
        ("format=awp&group_by=site", json!("group_by"), "relevance"),
        ("q=x&limit=101", json!("limit"), "1 to 100"),
        ("q=x&updated_since=soon", json!("updated_since"), "2026-11-21"),
        ("q=x&cursor=%21%21", json!("cursor"), "cursor"),
        ("q=format:soap", json!("q"), "agents_json"),
        ("q=%FF", Value::Null, "UTF-8"),
    ] {
        let answer = world.get(&format!("/search?{query}")).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{query}");
        assert_eq!(answer.header("content-type"), "application/problem+json", "{query}");
        let problem = answer.json();
        assert_eq!(problem["errorCode"], "INVALID_ARGUMENT", "{query}");
        assert_eq!(problem["message"], problem["detail"], "{query}");
        assert_eq!(problem["parameter"], parameter, "{query}");
        let text = format!("{} {}", problem["detail"], problem["known"]);
        assert!(text.contains(word), "{query}: {text}");
        let known: Vec<&str> =
            problem["known"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let is_listed_once = known.len() < 2 || !problem["detail"].as_str().unwrap().contains(known[1]);
        assert!(is_listed_once, "{query}: {problem}");
    }
    let page = world.page("/search?safety=harmless").await.text();
    assert_eq!(page.matches(">irreversible</").count(), 1, "{page}");
}

#[tokio::test]
async fn returns_503_for_searches_without_an_index() {
    let world = World::without_index().await;
    let answer = world.get("/search?q=flight").await;
    assert_eq!(answer.status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(answer.header("retry-after"), "2");
    assert!(answer.text().contains("run `indexer rebuild`"), "{}", answer.text());
    let page = world.page("/search?q=flight").await;
    let (words, for_operator) =
        page.text().split_once("For the operator").map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap();
    assert!(
        words.contains("There is nothing to search yet") && !words.contains("indexer rebuild"),
        "{words}"
    );
    assert!(for_operator.contains("indexer rebuild"), "{for_operator}");
    let ready = world.get("/readyz").await;
    assert_eq!(ready.status, StatusCode::SERVICE_UNAVAILABLE);
    assert!(ready.text().contains("no index") && !ready.text().contains("database:"), "{}", ready.text());
    let place = std::env::temp_dir().display().to_string();
    for path in [
        "/search?q=flight",
        "/readyz",
        "/suggest?q=fl",
        "/stats",
        "/agents",
        "/tools/find_capability?query=flight",
        "/",
    ] {
        let text = world.get(path).await.text() + &world.page(path).await.text();
        assert!(!text.contains(&place), "{path} names a directory: {text}");
    }
    assert_eq!(world.get("/healthz").await.status, StatusCode::OK);
    assert_eq!(world.get("/sites").await.status, StatusCode::OK);
    let landing = world.page("/").await;
    assert_eq!(landing.status, StatusCode::OK);
    assert!(landing.text().contains("nothing to search yet"), "{}", landing.text());
}

#[tokio::test]
async fn the_number_of_a_page_is_bounded() {
    let world = World::new().await;
    for number in ["18446744073709551615", "1000001"] {
        let refused = world.page(&format!("/search?q=flight&page={number}")).await;
        assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{number}");
        assert!(refused.text().contains("at most 1000000"), "{}", refused.text());
    }
    assert_eq!(world.page("/search?q=flight&page=1000000").await.status, StatusCode::OK);
}

/// Whether a row, an entry or a tool result contains the warning that its text addresses the reader.
fn is_flagged(value: &Value) -> bool {
    match value {
        Value::Object(members) => members.iter().any(|(name, value)| {
            (matches!(name.as_str(), "addresses_reader" | "addressesReader") && *value == true)
                || is_flagged(value)
        }),
        Value::Array(elements) => elements.iter().any(is_flagged),
        _ => false,
    }
}

#[tokio::test]
async fn responses_flag_text_that_addresses_their_reader() {
    let world = World::new().await;
    let mut evil = crate::documents::evil();
    evil.capabilities[0].addresses_reader = true;
    evil.content_hash = manifest::ContentHash::of(b"another document");
    world.publish(evil).await;
    world.reindex().await;
    let id = world.get("/search?q=plunder").await.json()["results"][0]["id"].as_str().unwrap().to_owned();
    for path in [
        "/search?q=plunder",
        "/search?q=plunder&view=full",
        "/tools/find_capability?query=plunder",
        "/tools/find_capability?query=plunder&include_schemas=true",
        &format!("/tools/get_capability?id={id}"),
        &format!("/capabilities/{id}"),
        "/agents",
        "/sites/evil.example/ard.json",
    ] {
        let answer = world.get(path).await;
        assert_eq!(answer.status, StatusCode::OK, "{path}: {}", answer.text());
        assert!(answer.text().contains("plunder"), "{path}: {}", answer.text());
        assert!(is_flagged(&answer.json()), "{path}: {}", answer.text());
    }
    for (path, body) in [
        ("/search", json!({"query": {"text": "plunder"}})),
        ("/tools/find_capability", json!({"query": "plunder"})),
        (
            "/a2a",
            json!({"jsonrpc": "2.0", "id": 1, "method": "message/send",
                   "params": {"message": {"parts": [{"kind": "text", "text": "plunder"}]}}}),
        ),
    ] {
        let request = Request::post(path).header("content-type", "application/json");
        let answer = world.send(request.body(body.to_string().into()).unwrap()).await;
        assert!(is_flagged(&answer.json()), "{path}: {}", answer.text());
        if path == "/a2a" {
            assert!(answer.text().contains("addresses its reader"), "{}", answer.text());
        }
    }
}

#[tokio::test]
async fn details_have_only_the_requested_members() {
    let world = World::new().await;
    let answer = world.get("/search?q=book+flight&view=full&fields=id,invocation,parameters").await.json();
    let names: Vec<&String> = answer["results"][0].as_object().unwrap().keys().collect();
    assert_eq!(names, ["id", "parameters", "invocation"]);
}

//! The change feed in other forms: server-sent events, Atom, JSON lines, and the list of MCP servers.

use std::time::Duration;

use axum::body::Body;
use axum::http::{Request, StatusCode};
use chrono::DateTime;
use http_body_util::BodyExt;
use manifest::model::PolicyChoice;
use serde_json::{Value, json};
use tokio::time::Instant;
use tower::ServiceExt;

use crate::documents;
use crate::world::World;

const ATOM: &str = "http://www.w3.org/2005/Atom";

/// Checks the requirements of RFC 4287 for a feed and its entries (§4.1.1, §4.1.2, §4.2.6); returns the entries' ids.
fn assert_atom(text: &str) -> Vec<String> {
    let document = roxmltree::Document::parse(text).unwrap_or_else(|error| panic!("{error}: {text}"));
    let feed = document.root_element();
    assert!(feed.has_tag_name((ATOM, "feed")), "{text}");
    let children = |node: roxmltree::Node<'_, '_>, name: &str| -> Vec<String> {
        let named = node.children().filter(|child| child.has_tag_name((ATOM, name)));
        named.map(|child| child.text().unwrap_or_default().to_owned()).collect()
    };
    let assert_common = |node: roxmltree::Node<'_, '_>| {
        for name in ["id", "title", "updated"] {
            let found = children(node, name);
            assert_eq!(found.len(), 1, "{name}: {text}");
            assert!(!found[0].is_empty(), "{name}: {text}");
        }
        let id = &children(node, "id")[0];
        assert!(id.starts_with("urn:uuid:") && id.len() == 45, "{id}");
        DateTime::parse_from_rfc3339(&children(node, "updated")[0]).unwrap();
        let author = node.children().find(|child| child.has_tag_name((ATOM, "author"))).unwrap();
        assert!(!children(author, "name")[0].is_empty(), "{text}");
        let links: Vec<_> = node.children().filter(|child| child.has_tag_name((ATOM, "link"))).collect();
        assert!(links.iter().any(|link| link.attribute("rel") == Some("alternate")), "{text}");
        assert!(links.iter().all(|link| link.attribute("href").unwrap().starts_with("http")), "{text}");
    };
    assert_common(feed);
    let own = feed.children().find(|child| child.attribute("rel") == Some("self")).unwrap();
    assert!(own.attribute("href").unwrap().contains(".atom"));
    let entries: Vec<_> = feed.children().filter(|child| child.has_tag_name((ATOM, "entry"))).collect();
    let mut ids = Vec::new();
    for entry in &entries {
        assert_common(*entry);
        ids.extend(children(*entry, "id"));
    }
    let updated: Vec<String> = entries.iter().flat_map(|entry| children(*entry, "updated")).collect();
    assert!(updated.iter().rev().is_sorted(), "{updated:?}");
    if let Some(latest) = updated.first() {
        assert_eq!(&children(feed, "updated")[0], latest);
    }
    let mut distinct = ids.clone();
    distinct.sort();
    distinct.dedup();
    assert_eq!(distinct.len(), ids.len(), "entries with the same id");
    ids
}

#[tokio::test]
async fn feeds_are_valid_atom() {
    let world = World::new().await;
    for (path, entries) in [
        ("/changes.atom", 4),
        ("/sites/skyhop.example/changes.atom", 1),
        ("/sites/shy.example/changes.atom", 0),
        ("/search.atom?q=flight&site=skyhop.example", 2),
        ("/search.atom?q=plunder", 1),
        ("/search.atom?format=ard", 0),
    ] {
        let answer = world.get(path).await;
        assert_eq!(answer.status, StatusCode::OK, "{path}: {}", answer.text());
        assert_eq!(answer.header("content-type"), "application/atom+xml; charset=utf-8", "{path}");
        let ids = assert_atom(&answer.text());
        assert_eq!(ids.len(), entries, "{path}: {}", answer.text());
        let again = world.get_with(path, &[("if-none-match", answer.header("etag"))]).await;
        assert_eq!(again.status, StatusCode::NOT_MODIFIED, "{path}");
    }
}

/// The targets of the links of a feed have the declared media type.
#[tokio::test]
async fn feed_links_have_the_type_of_their_target() {
    let world = World::new().await;
    let text = world.get("/changes.atom").await.text();
    let document = roxmltree::Document::parse(&text).unwrap();
    let mut types = std::collections::BTreeSet::new();
    for link in document.descendants().filter(|node| node.has_tag_name((ATOM, "link"))) {
        let href = link.attribute("href").unwrap();
        let path =
            href.split_once("//").and_then(|(_, rest)| rest.find('/').and_then(|at| rest.get(at..))).unwrap();
        let answer = world.get_with(path, &[("accept", "text/html")]).await;
        let expected = link.attribute("type").unwrap();
        if answer.status == StatusCode::OK {
            assert!(answer.header("content-type").starts_with(expected), "{href} is not {expected}");
            types.insert(expected.to_owned());
        }
    }
    assert_eq!(types.len(), 3, "{types:?}: {text}");
}

#[tokio::test]
async fn publisher_texts_are_escaped_in_feeds() {
    let world = World::new().await;
    let text = world.get("/search.atom?q=plunder").await.text();
    assert!(!text.contains("<script") && !text.contains('\u{202e}') && !text.contains("<img"), "{text}");
    assert!(text.contains("plunder"));
}

#[tokio::test]
async fn search_feed_without_a_query_is_refused() {
    let world = World::new().await;
    for query in ["", "?q=x&cursor=abc", "?q=x&view=full", "?q=x&limit=101", "?colour=red"] {
        let answer = world.get(&format!("/search.atom{query}")).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{query}");
    }
}

/// Reads `count` events from a stream, and returns their ids, names and data.
async fn events(body: &mut Body, count: usize) -> Vec<(String, String, Value)> {
    let mut text = String::new();
    let mut events = Vec::new();
    while events.len() < count {
        let frame =
            tokio::time::timeout(Duration::from_secs(20), body.frame()).await.unwrap().unwrap().unwrap();
        text.push_str(std::str::from_utf8(&frame.into_data().unwrap()).unwrap());
        while let Some((event, rest)) = text.split_once("\n\n") {
            let line = |name: &str| {
                let found = event.lines().find_map(|line| line.strip_prefix(name));
                found.unwrap_or_default().trim().to_owned()
            };
            if !line("event:").is_empty() {
                events.push((line("id:"), line("event:"), serde_json::from_str(&line("data:")).unwrap()));
            }
            text = rest.to_owned();
        }
    }
    events
}

async fn open(world: &World, path: &str, last_id: Option<&str>) -> Body {
    let mut request = Request::get(path);
    if let Some(id) = last_id {
        request = request.header("last-event-id", id);
    }
    let response = world.router.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    assert_eq!(response.headers()["cache-control"], "no-store");
    response.into_body()
}

#[tokio::test]
async fn change_stream_resumes_after_the_last_event_id() {
    let world = World::new().await;
    let start = world.get("/changes?limit=1").await.json();
    let cursor = start["next_cursor"].as_str().unwrap();
    let all = world.get("/changes").await.json();
    let mut body = open(&world, &format!("/changes/stream?cursor={cursor}"), None).await;
    let seen = events(&mut body, 3).await;
    for ((_, name, data), expected) in seen.iter().zip(&all["changes"].as_array().unwrap()[1..]) {
        assert_eq!(data, expected);
        assert_eq!(name, expected["change"].as_str().unwrap());
    }
    drop(body);

    let mut body = open(&world, "/changes/stream", Some(&seen[1].0)).await;
    assert_eq!(events(&mut body, 1).await[0], seen[2]);
    let cursor_of_event = world.get(&format!("/changes?cursor={}", seen[1].0)).await.json();
    assert_eq!(cursor_of_event["changes"][0], seen[2].2);

    let refused = world.get_with("/changes/stream", &[("last-event-id", "nonsense")]).await;
    assert_eq!(refused.status, StatusCode::BAD_REQUEST);
}

/// The next piece of a stream, and the time until it came.
async fn piece(body: &mut Body) -> (String, Duration) {
    let asked = Instant::now();
    let frame = tokio::time::timeout(Duration::from_secs(30), body.frame()).await.unwrap();
    let data = frame.unwrap().unwrap().into_data().unwrap();
    (String::from_utf8(data.into()).unwrap(), asked.elapsed())
}

#[tokio::test]
async fn streams_begin_with_a_comment_and_send_one_every_15_seconds() {
    let world = World::new().await;
    let (first, _) = piece(&mut open(&world, "/crawl/stream", None).await).await;
    assert!(first.starts_with(": open"), "{first}");
    let mut body = open(&world, "/changes/stream", None).await;
    let (first, waited) = piece(&mut body).await;
    assert!(first.starts_with(": open") && waited < Duration::from_secs(5), "{first} after {waited:?}");
    let (second, waited) = piece(&mut body).await;
    let seconds = Duration::from_secs(14)..Duration::from_secs(18);
    assert!(second.starts_with(": still here") && seconds.contains(&waited), "{second} after {waited:?}");
}

#[tokio::test]
async fn change_stream_without_a_cursor_starts_at_the_end() {
    let world = World::new().await;
    let mut body = open(&world, "/changes/stream", None).await;
    let site = manifest::SiteName::parse("weather.example").unwrap();
    world.store.site_block(&site, "asked", crate::world::fetched_at()).await.unwrap();
    let (_, name, data) = events(&mut body, 1).await.remove(0);
    assert_eq!(
        (name.as_str(), &data["site"], &data["reason"]),
        ("removed", &json!("weather.example"), &json!("opted_out"))
    );
}

/// Publishes one more change, and deletes the earlier changes by age.
async fn expire_changes(world: &World) {
    let mut changed = documents::skyhop();
    changed.content_hash = manifest::ContentHash::of(b"second");
    world.publish(changed).await;
    let hour = |hours: i64| crate::world::fetched_at() + chrono::TimeDelta::hours(hours);
    let retention = store::Retention { feed: Some(Duration::from_mins(90)), versions: None };
    assert!(world.store.retain(&retention, hour(2)).await.unwrap().feed_entries >= 4);
}

#[tokio::test]
async fn returns_410_for_a_cursor_into_deleted_entries() {
    let world = World::new().await;
    let old = world.get("/changes?limit=1").await.json()["next_cursor"].as_str().unwrap().to_owned();
    expire_changes(&world).await;
    for (path, headers) in [
        (format!("/changes?cursor={old}"), ("accept", "application/json")),
        (format!("/changes?cursor={old}"), ("accept", "text/html")),
        (format!("/changes/stream?cursor={old}"), ("accept", "text/event-stream")),
        ("/changes/stream".to_owned(), ("last-event-id", old.as_str())),
    ] {
        let answer = world.get_with(&path, &[headers]).await;
        assert_eq!(answer.status, StatusCode::GONE, "{path}: {}", answer.text());
        assert!(answer.text().contains("begin again"), "{path}: {}", answer.text());
    }
    let kept = world.get("/changes").await.json();
    assert_eq!(kept["changes"].as_array().unwrap().len(), 1);
    let next = kept["next_cursor"].as_str().unwrap();
    assert_eq!(world.get(&format!("/changes?cursor={next}")).await.json()["changes"], json!([]));
}

#[tokio::test]
async fn page_and_feed_begin_at_the_first_kept_entry() {
    let world = World::new().await;
    expire_changes(&world).await;
    let page = world.page("/changes").await;
    assert_eq!((page.status, page.text().contains("cursor=")), (StatusCode::OK, false), "{}", page.text());
    assert!(page.text().contains("skyhop.example"));
    let feed = world.get("/changes.atom").await;
    assert_eq!(assert_atom(&feed.text()).len(), 1);
}

#[tokio::test]
async fn returns_400_for_a_cursor_beyond_the_last_entry() {
    let world = World::new().await;
    let last = world.get("/changes").await.json()["next_cursor"].as_str().unwrap().to_owned();
    let bytes = data_encoding::BASE64URL_NOPAD.decode(last.as_bytes()).unwrap();
    let (binding, position) = bytes.split_at(6);
    let feed_id = std::str::from_utf8(position).unwrap().split_once(':').unwrap().1;
    for position in ["-1", "1000", "9223372036854775807", "9223372036854775808"] {
        let forged = [binding, format!("{position}:{feed_id}").as_bytes()].concat();
        let forged = data_encoding::BASE64URL_NOPAD.encode(&forged);
        for path in ["/changes", "/changes/stream"] {
            let answer = world.get(&format!("{path}?cursor={forged}")).await;
            assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{path} {position}: {}", answer.text());
        }
    }
}

#[tokio::test]
async fn crawl_stream_sends_the_state_and_each_change() {
    let world = World::new().await;
    let mut body = open(&world, "/crawl/stream", None).await;
    let (_, name, before) = events(&mut body, 1).await.remove(0);
    assert_eq!(name, "crawl");
    assert_eq!(before["queue"], world.get("/crawl").await.json()["queue"]);
    let site = manifest::SiteName::parse("weather.example").unwrap();
    world.store.site_block(&site, "asked", crate::world::fetched_at()).await.unwrap();
    let (_, _, after) = events(&mut body, 1).await.remove(0);
    let blocked = |answer: &Value| answer["queue"]["blocked"].as_u64().unwrap();
    assert_eq!(blocked(&after), blocked(&before) + 1);
}

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn count(lines: &[Value], record: &str) -> usize {
    lines.iter().filter(|line| line["record"] == record).count()
}

#[tokio::test]
async fn export_contains_everything_and_an_end_record() {
    let world = World::new().await;
    let answer = world.get("/export.jsonl").await;
    assert_eq!(answer.header("content-type"), "application/jsonl");
    let all = lines(&answer.text());
    assert_eq!((count(&all, "manifest"), count(&all, "capability"), count(&all, "tombstone")), (3, 4, 0));
    let end = all.last().unwrap();
    assert_eq!((&end["record"], &end["capabilities"]), (&json!("end"), &json!(4)));
    let booking = all.iter().find(|line| line["native_id"] == "book_seat").unwrap();
    assert_eq!(booking["id"], json!(documents::skyhop().capabilities[0].id));
    assert_eq!(booking["parameters"]["required"], json!(["departure_date"]));
    let cursor = end["changes_cursor"].as_str().unwrap();
    assert_eq!(world.get(&format!("/changes?cursor={cursor}")).await.json()["changes"], json!([]));
    for coding in ["gzip", "zstd"] {
        let compressed = world.get_with("/export.jsonl", &[("accept-encoding", coding)]).await;
        assert_eq!(compressed.header("content-encoding"), coding);
        assert!(compressed.body.len() < answer.body.len());
    }
    let again = world.get_with("/export.jsonl", &[("if-none-match", answer.header("etag"))]).await;
    assert_eq!(again.status, StatusCode::NOT_MODIFIED);
}

#[tokio::test]
async fn export_since_a_time_has_tombstones() {
    let world = World::new().await;
    let mut changed = documents::skyhop();
    changed.content_hash = manifest::ContentHash::of(b"second");
    world.publish(changed).await;
    let gone = manifest::SiteName::parse("weather.example").unwrap();
    let when = crate::world::fetched_at() + chrono::TimeDelta::hours(2);
    world.store.site_block(&gone, "asked", when).await.unwrap();
    let since = |time: DateTime<chrono::Utc>| {
        format!("/export.jsonl?updated_since={}", time.format("%Y-%m-%dT%H:%M:%SZ"))
    };
    let first = crate::world::fetched_at() + chrono::TimeDelta::minutes(30);
    let recent = lines(&world.get(&since(first)).await.text());
    assert_eq!(
        (count(&recent, "manifest"), count(&recent, "capability"), count(&recent, "tombstone")),
        (1, 2, 1)
    );
    let tombstone = recent.iter().find(|line| line["record"] == "tombstone").unwrap();
    assert_eq!((&tombstone["site"], &tombstone["reason"]), (&json!("weather.example"), &json!("opted_out")));
    let nothing = lines(&world.get(&since(when + chrono::TimeDelta::hours(1))).await.text());
    assert_eq!(nothing.len(), 1);
    assert_eq!(world.get("/export.jsonl?updated_since=soon").await.status, StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn exports_leave_out_manifests_that_deny_training() {
    let world = World::new().await;
    let secretive = documents::secretive();
    let of_secretive =
        |line: &&Value| line["id"] == json!(secretive.id) || line["manifest_id"] == json!(secretive.id);
    let all = lines(&world.get("/export.jsonl").await.text());
    assert_eq!(all.iter().find(of_secretive), None);
    let since = crate::world::fetched_at().format("%Y-%m-%dT%H:%M:%SZ");
    let recent = lines(&world.get(&format!("/export.jsonl?updated_since={since}")).await.text());
    let records: Vec<&Value> = recent.iter().filter(of_secretive).map(|line| &line["record"]).collect();
    assert_eq!(records, [&json!("tombstone")]);
}

#[tokio::test]
async fn exports_leave_out_manifests_whose_responses_deny_training() {
    let world = World::new().await;
    let skyhop = documents::skyhop();
    let of_skyhop = |line: &&Value| line["id"] == json!(skyhop.id) || line["manifest_id"] == json!(skyhop.id);
    let all = lines(&world.get("/export.jsonl").await.text());
    assert!(all.iter().any(|line| of_skyhop(&line)), "exported before the response denies training");
    world.publish_with_training(skyhop.clone(), PolicyChoice::Deny).await;
    let all = lines(&world.get("/export.jsonl").await.text());
    assert_eq!(all.iter().find(of_skyhop), None);
    let since = (crate::world::fetched_at() + chrono::TimeDelta::minutes(30)).format("%Y-%m-%dT%H:%M:%SZ");
    let recent = lines(&world.get(&format!("/export.jsonl?updated_since={since}")).await.text());
    let records: Vec<&Value> = recent.iter().filter(of_skyhop).map(|line| &line["record"]).collect();
    assert_eq!(records, [&json!("tombstone")]);
    let manifest = world.get(&format!("/manifests/{}", skyhop.id)).await.json();
    assert_eq!(manifest["training"], "deny");
    let page = world.page("/sites/skyhop.example").await.text();
    assert!(page.contains("not in the bulk export"), "the page of the site states it");
}

#[tokio::test]
async fn mcp_servers_follow_the_registry_format() {
    let world = World::new().await;
    assert_eq!(world.get("/v0.1/servers").await.json(), json!({"servers": [], "metadata": {"count": 0}}));
    for (number, name) in [(0, "Tools of skyhop"), (1, "example.skyhop/flights")] {
        let mut manifest =
            documents::server(&format!("https://skyhop.example/.well-known/mcp{number}.json"), name);
        manifest.interfaces = serde_json::from_value(json!([
            {"protocol": "mcp", "url": format!("https://skyhop.example/mcp{number}"), "transport": "streamable-http"},
            {"protocol": "a2a", "url": "https://skyhop.example/a2a"},
        ]))
        .unwrap();
        world.publish(manifest).await;
    }
    let first = world.get("/v0.1/servers?limit=1").await.json();
    assert_eq!(first["metadata"]["count"], 1);
    let cursor = first["metadata"]["nextCursor"].as_str().unwrap();
    let second = world.get(&format!("/v0.1/servers?limit=1&cursor={cursor}")).await.json();
    let both = [&first["servers"][0], &second["servers"][0]];
    let names: Vec<&str> = both.iter().map(|one| one["server"]["name"].as_str().unwrap()).collect();
    assert!(names.contains(&"example.skyhop/flights"), "{names:?}");
    assert!(names.iter().any(|name| name.starts_with("example.skyhop/m")), "{names:?}");
    for one in both {
        let server = &one["server"];
        assert_eq!(server["remotes"][0]["type"], "streamable-http");
        assert_eq!(server["remotes"].as_array().unwrap().len(), 1);
        assert!((1..=100).contains(&server["description"].as_str().unwrap().chars().count()));
        assert_eq!(one["_meta"]["io.modelcontextprotocol.registry/official"]["isLatest"], true);
    }
    let found = world.get("/v0.1/servers?search=FLIGHTS").await.json();
    assert_eq!(found["servers"][0]["server"]["name"], "example.skyhop/flights");
    assert_eq!(world.get("/v0.1/servers?search=nothing").await.json()["metadata"], json!({"count": 0}));
    let other = world.get(&format!("/v0.1/servers?search=x&cursor={cursor}")).await;
    assert_eq!(other.status, StatusCode::BAD_REQUEST);
}

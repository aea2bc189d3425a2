//! Capabilities, sites, manifests, types, statistics and changes as JSON.

use axum::body::Body;
use axum::http::{Request, StatusCode};
use manifest::model::Payment;
use manifest::{ManifestId, ManifestUrl};
use policy::FetchOutcome;
use policy::liveness::HostCheckOutcome;
use serde_json::{Value, json};
use url::form_urlencoded;

use crate::answer::Answer;
use crate::documents::{self, body_of};
use crate::world::{Settings, World, machine_now};

fn first_id(manifest: &manifest::Manifest) -> String {
    manifest.capabilities[0].id.to_string()
}

fn manifest_path(url: &str) -> String {
    format!("/manifests/{}", ManifestId::of(&ManifestUrl::parse(url).unwrap()))
}

#[tokio::test]
async fn capability_response_has_every_member() {
    let world = World::new().await;
    let answer = world.get(&format!("/capabilities/{}", first_id(&documents::skyhop()))).await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text());
    insta::assert_json_snapshot!(answer.json());
}

#[tokio::test]
async fn capability_states_the_terms_of_use() {
    let world = World::new().await;
    let answer = world.get(&format!("/capabilities/{}", first_id(&documents::secretive()))).await;
    assert_eq!(answer.json()["usage_terms"], json!({"inference": "deny", "attribution": "required"}));
    let found = world.get("/search?q=whisper&view=full").await.json();
    assert_eq!(found["results"][0]["usage_terms"]["attribution"], "required");
    let unstated = world.get(&format!("/capabilities/{}", first_id(&documents::skyhop()))).await;
    assert_eq!(unstated.json().get("usage_terms"), None);
}

#[tokio::test]
async fn capability_states_its_prices_and_how_they_are_paid() {
    let world = World::new().await;
    let mut shop = documents::offer("paid.example", "Draw chart", "Draws a chart.", "data:query");
    let priced = |price: &str, network: &str| Payment {
        price: Some(price.to_owned()),
        network: Some(network.to_owned()),
        ..Payment::default()
    };
    shop.payments = vec![Payment { scheme: Some("x402".to_owned()), ..Payment::default() }];
    shop.capabilities[0].price = Some(priced("0.25", "base"));
    shop.capabilities[0].other_prices = vec![priced("0.30", "ethereum")];
    world.publish(shop.clone()).await;
    world.reindex().await;
    let paid = world.get(&format!("/capabilities/{}", first_id(&shop))).await.json();
    assert_eq!(paid["price"], json!({"price": "0.25", "network": "base"}));
    assert_eq!(paid["other_prices"], json!([{"price": "0.30", "network": "ethereum"}]));
    assert_eq!(paid["payments"], json!([{"scheme": "x402"}]));
    let found = world.get("/search?price=paid&payment=x402&view=full&fields=id,price").await.json();
    assert_eq!(found["results"], json!([{"id": first_id(&shop), "price": paid["price"]}]));
    assert_eq!(world.get("/search?price=free").await.json()["total"], 0);
    let mut gift = documents::offer("free.example", "Draw map", "Draws a map.", "data:query");
    gift.capabilities[0].price = Some(Payment { price: Some("0".to_owned()), ..Payment::default() });
    world.publish(gift.clone()).await;
    world.reindex().await;
    let free = world.get("/search?price=free&fields=id").await.json();
    assert_eq!(free["results"], json!([{"id": first_id(&gift)}]));
    let ranked = world.get("/search?q=draw&payment=x402&fields=id").await.json();
    assert_eq!(ranked["results"], json!([{"id": first_id(&shop)}]));
}

#[tokio::test]
async fn records_show_the_daily_checks_of_hosts() {
    let world = World::new().await;
    let skyhop = documents::skyhop();
    let capability = skyhop
        .capabilities
        .iter()
        .find(|capability| {
            skyhop.endpoint_host(capability).is_some_and(|host| host.site() == skyhop.url.site())
        })
        .expect("an endpoint at the site");
    let host = skyhop.endpoint_host(capability).unwrap();
    let (record, site) = (format!("/capabilities/{}", capability.id), "/sites/skyhop.example");
    assert_eq!(world.get(&record).await.json().get("liveness"), None);
    assert_eq!(world.get(site).await.json().get("liveness"), None);
    let now = machine_now();
    for (days, outcome) in
        [(2, HostCheckOutcome::Completed), (1, HostCheckOutcome::TlsFailed), (0, HostCheckOutcome::Completed)]
    {
        let at = now - chrono::TimeDelta::days(days);
        let named = store::NamedHost { host: host.clone(), is_own: true };
        world.store.host_checks_begin(&[named], at).await.unwrap();
        world.store.host_check_end(&host, outcome, at).await.unwrap();
    }
    let liveness = world.get(&record).await.json()["liveness"].clone();
    assert_eq!(liveness["host"], host.as_str());
    assert_eq!((&liveness["resolves"], &liveness["tls"]), (&json!(true), &json!(true)));
    assert_eq!(
        (&liveness["checks"], &liveness["succeeded"], &liveness["days"]),
        (&json!(3), &json!(2), &json!(30))
    );
    assert_eq!(liveness["uptime_lower_bound"], 0.207);
    assert_eq!(world.get(site).await.json()["liveness"], json!([liveness]));
    let words = format!(
        "{host} resolved and completed TLS in 2 of 3 daily checks; at least 20 % with 95 % confidence."
    );
    for path in [record.as_str(), site] {
        let page = Request::get(path).header("accept", "text/html").body(Body::empty()).unwrap();
        assert!(world.send(page).await.text().contains(&words), "{path}");
    }
}

#[tokio::test]
async fn site_response_has_every_member() {
    let world = World::new().await;
    let answer = world.get("/sites/skyhop.example").await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text());
    insta::assert_json_snapshot!(answer.json());
    assert_eq!(world.get("/sites/WWW.SkyHop.example").await.json(), answer.json());
}

#[tokio::test]
async fn site_response_lists_at_most_200_hosts() {
    let world = World::new().await;
    let hosts = (0..300).map(|number| manifest::Host::parse(&format!("h{number}.many.example")).unwrap());
    let seeds: Vec<_> = hosts.map(store::Seed::of_host).collect();
    world.store.seeds_add(&seeds, chrono::DateTime::UNIX_EPOCH).await.unwrap();
    let report = world.get("/sites/many.example").await;
    let body = report.json();
    assert_eq!(body["hosts"].as_array().map(Vec::len), Some(200));
    assert_eq!(body["hosts_total"], 300);
    let page = Request::get("/sites/many.example").header("accept", "text/html").body(Body::empty()).unwrap();
    assert!(world.send(page).await.text().contains("100 more hosts"));
    for (path, status) in [
        ("/sites/many.example/rank?q=book", StatusCode::OK),
        ("/sites/many.example/changes", StatusCode::OK),
        ("/badge/many.example.svg", StatusCode::OK),
        ("/sites/none.example/rank?q=book", StatusCode::NOT_FOUND),
        ("/sites/none.example/changes", StatusCode::NOT_FOUND),
    ] {
        assert_eq!(world.get(path).await.status, status, "{path}");
    }
}

#[tokio::test]
async fn site_response_lists_capabilities_up_to_4_mib_and_counts_all() {
    let world = World::new().await;
    for document in 0..3 {
        let mut manifest = documents::skyhop();
        let url = format!("https://large.example/{document}.json");
        manifest.url = ManifestUrl::parse(&url).unwrap();
        manifest.id = ManifestId::of(&manifest.url);
        let capability = |number| {
            let mut capability = manifest.capabilities[0].clone();
            capability.id = manifest::CapabilityId::of_key(&format!("{url}#{number}"));
            capability.native_id = format!("n{number}");
            capability.title = Some("t".repeat(500));
            capability
        };
        manifest.capabilities = (0..4_000).map(capability).collect();
        world.publish(manifest).await;
    }
    let answer = world.get("/sites/large.example").await;
    assert!(answer.text().len() < 5 * 1024 * 1024, "{} bytes", answer.text().len());
    let site = answer.json();
    let manifests: Vec<_> =
        site["resources"].as_array().unwrap().iter().map(|one| &one["manifest"]).collect();
    let listed = |one: &&Value| one["capabilities"].as_array().map_or(0, Vec::len);
    assert!(manifests.iter().all(|one| one["capabilities_total"] == 4_000));
    let counts: Vec<usize> = manifests.iter().map(listed).collect();
    assert!(counts[0] == 4_000 && (1..4_000).contains(&counts[1]) && counts[2] == 0, "{counts:?}");
}

/// Saves one more manifest, at another site.
async fn publish_another(world: &World) {
    let mut manifest = documents::skyhop();
    manifest.url = ManifestUrl::parse("https://another.example/agent.json").unwrap();
    manifest.id = ManifestId::of(&manifest.url);
    manifest.capabilities.truncate(1);
    let capability = &mut manifest.capabilities[0];
    capability.id = manifest::CapabilityId::of_key("https://another.example/agent.json#awp:book");
    world.publish(manifest).await;
}

#[tokio::test]
async fn stats_are_cached_across_requests() {
    let requested = ["/stats", "/semantic-types"];
    let tell = async |world: &World| {
        let mut responses = Vec::new();
        for path in requested {
            responses.push(world.get(path).await.json());
        }
        responses
    };
    let counts_kept_for = std::time::Duration::from_hours(1);
    let world = World::with(Settings { counts_kept_for, ..Settings::default() }).await;
    let before = tell(&world).await;
    publish_another(&world).await;
    assert_eq!(tell(&world).await, before, "the database was queried again");
    let fresh = World::new().await;
    tell(&fresh).await;
    publish_another(&fresh).await;
    for (path, (now, before)) in requested.iter().zip(tell(&fresh).await.iter().zip(&before)) {
        assert_ne!(now, before, "{path} does not show what was published");
    }
}

#[tokio::test]
async fn site_totals_are_cached_across_requests() {
    let totals = async |world: &World, list: &str| {
        let answer = world.get(list).await.json();
        (answer["total"].as_u64().unwrap(), answer["sites"].as_array().unwrap().len() as u64)
    };
    let counts_kept_for = std::time::Duration::from_hours(1);
    let kept = World::with(Settings { counts_kept_for, ..Settings::default() }).await;
    let fresh = World::new().await;
    let list = "/sites?limit=500&with_manifests=true";
    let (total, listed) = totals(&kept, list).await;
    assert_eq!((total, totals(&fresh, list).await), (listed, (total, listed)));
    publish_another(&kept).await;
    publish_another(&fresh).await;
    assert_eq!(totals(&kept, list).await, (total, listed + 1), "the page is current, the total is cached");
    assert_eq!(totals(&fresh, list).await, (total + 1, listed + 1));
    let another = "/sites?with_manifests=true&prefix=another";
    assert_eq!(totals(&kept, another).await, (1, 1), "another list has its own total");
    assert_eq!(
        totals(&kept, "/sites?limit=1&with_manifests=true").await,
        (total, 1),
        "every page has the same total"
    );
}

#[tokio::test]
async fn blocked_site_shows_only_its_tombstone() {
    let world = World::new().await;
    let answer = world.get("/sites/shy.example").await.json();
    assert_eq!(answer["status"], "opted_out");
    assert_eq!(answer["blocked"]["reason"], "asked by mail");
    assert_eq!(answer["resources"], json!([]));
    assert_eq!(answer["visits"], json!([]));
    let page = world.page("/sites/shy.example").await.text();
    assert!(page.contains("The stored data of its visits was deleted."), "{page}");
    for untrue in ["Not visited yet", "found here so far", "Not read yet"] {
        assert!(!page.contains(untrue), "{untrue}: {page}");
    }
}

#[tokio::test]
async fn sites_are_paginated() {
    let world = World::new().await;
    let first = world.get("/sites?limit=2").await.json();
    assert_eq!(first["total"], 5);
    let cursor = first["next_cursor"].as_str().unwrap();
    let second = world.get(&format!("/sites?limit=2&cursor={cursor}")).await.json();
    let names = |page: &Value| -> Vec<String> {
        page["sites"]
            .as_array()
            .unwrap()
            .iter()
            .map(|site| site["site"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(names(&first), ["evil.example", "secretive.example"]);
    assert_eq!(names(&second), ["shy.example", "skyhop.example"]);
    let other_filter = world.get(&format!("/sites?status=fresh&cursor={cursor}")).await;
    assert_eq!(other_filter.status, StatusCode::BAD_REQUEST);
    insta::assert_json_snapshot!(world.get("/sites?prefix=sky").await.json());
}

#[tokio::test]
async fn manifest_is_served_normalised_and_raw() {
    let world = World::new().await;
    let path = manifest_path(documents::WEATHER);
    insta::assert_json_snapshot!("manifest", world.get(&path).await.json());
    insta::assert_json_snapshot!("versions", world.get(&format!("{path}/versions")).await.json());

    let raw = world.get(&format!("{path}/raw")).await;
    assert_eq!(raw.text(), body_of(documents::WEATHER));
    assert_eq!(raw.header("content-type"), "application/json");
    assert_eq!(raw.header("x-content-type-options"), "nosniff");
    assert!(raw.header("content-disposition").starts_with("attachment; filename=\"m"));
    assert!(raw.header("content-security-policy").contains("sandbox"));
}

/// The responses to all requests for the bytes of the document at this URL.
async fn byte_responses(world: &World, url: &str) -> Vec<(String, Answer)> {
    let query = form_urlencoded::Serializer::new(String::new()).append_pair("url", url).finish();
    let (raw, validate) = (format!("{}/raw", manifest_path(url)), format!("/validate?{query}"));
    let form = "application/x-www-form-urlencoded";
    let requests = [
        (Request::get(&raw), Body::empty()),
        (Request::post(&validate), Body::empty()),
        (Request::post(format!("{validate}&as=awp")), Body::empty()),
        (Request::get(&validate).header("accept", "text/html"), Body::empty()),
        (
            Request::post("/validate").header("accept", "text/html").header("content-type", form),
            Body::from(query),
        ),
    ];
    let mut responses = Vec::new();
    for (request, body) in requests {
        let request = request.body(body).unwrap();
        let name = format!("{} {}", request.method(), request.uri());
        responses.push((name, world.send(request).await));
    }
    responses
}

/// The responses to all requests for what was read from the document at this URL.
async fn content_responses(world: &World, url: &str) -> Vec<(String, Answer)> {
    let path = manifest_path(url);
    let mut responses = Vec::new();
    for path in [path.clone(), format!("{path}/versions"), format!("{path}/diff")] {
        let answer = world.get(&path).await;
        responses.push((path, answer));
    }
    let call = Request::post("/tools/validate_manifest").header("content-type", "application/json");
    let call = call.body(Body::from(json!({"url": url}).to_string())).unwrap();
    responses.push(("validate_manifest".to_owned(), world.send(call).await));
    responses
}

/// Whether a response is a page. A page states a problem in its text.
fn is_page(answer: &Answer) -> bool {
    answer.header("content-type").starts_with("text/html")
}

#[tokio::test]
async fn bytes_are_refused_where_caching_is_forbidden() {
    let world = World::new().await;
    for (url, reason) in [(documents::SECRETIVE, "policies.caching.allowed"), (documents::EVIL, "not kept")] {
        for (name, answer) in byte_responses(&world, url).await {
            assert!(answer.text().contains(reason), "{name}: {}", answer.text());
            assert!(!answer.text().contains("published_at"), "{name}: {}", answer.text());
            if !is_page(&answer) {
                assert_eq!(answer.status, StatusCode::FORBIDDEN, "{name}");
                assert_eq!(answer.json()["errorCode"], "PERMISSION_DENIED");
            }
        }
        for (name, answer) in content_responses(&world, url).await {
            assert_eq!(answer.status, StatusCode::OK, "{name}: what was read from it is indexed");
        }
    }
}

#[tokio::test]
async fn what_a_site_forbids_afterwards_is_not_served() {
    const URL: &str = documents::WEATHER;
    for (outcome, responses) in
        [(FetchOutcome::Gone, 1), (FetchOutcome::RobotsDenied, 1), (FetchOutcome::Blocked, 2)]
    {
        let world = World::new().await;
        for hours in 1..=responses {
            world.not_received(hours, URL, outcome).await;
        }
        let mut all = byte_responses(&world, URL).await;
        all.extend(content_responses(&world, URL).await);
        for (name, answer) in all {
            assert!(
                answer.text().contains("forbids this document now"),
                "{outcome} {name}: {}",
                answer.text()
            );
            assert!(!answer.text().contains("published_at"), "{outcome} {name}: {}", answer.text());
            if !is_page(&answer) {
                assert_eq!(answer.status, StatusCode::GONE, "{outcome} {name}");
            }
        }
        let changes = world.page("/changes").await;
        assert_eq!(changes.status, StatusCode::OK);
        assert!(changes.text().contains("no longer has a manifest"), "{}", changes.text());
    }
}

#[tokio::test]
async fn a_document_that_is_missing_stays_readable() {
    const URL: &str = documents::WEATHER;
    let world = World::new().await;
    for hours in 1..=2 {
        world.not_received(hours, URL, FetchOutcome::NotFound).await;
    }
    let found =
        world.store.manifest_sizes(&[ManifestId::of(&ManifestUrl::parse(URL).unwrap())]).await.unwrap();
    assert!(found.is_empty(), "it left the index");
    let mut all = byte_responses(&world, URL).await;
    all.extend(content_responses(&world, URL).await);
    for (name, answer) in all {
        assert_eq!(answer.status, StatusCode::OK, "{name}");
        assert!(!answer.text().contains("forbids this document"), "{name}");
    }
}

#[tokio::test]
async fn serves_semantic_types_stats_and_the_service_description() {
    let world = World::new().await;
    insta::assert_json_snapshot!("semantic_types", world.get("/semantic-types").await.json());
    let mut stats = world.get("/stats").await.json();
    for name in ["visit_ends_last_day", "fetch_outcomes_last_day", "sites_due", "oldest_due_at"] {
        assert!(stats.get(name).is_some(), "{name}");
        stats[name] = json!("[depends on the day]");
    }
    insta::assert_json_snapshot!("stats", stats);
    insta::assert_json_snapshot!("service", world.get("/").await.json());
    assert_eq!(world.get("/readyz").await.json(), json!({"status": "ready", "index_changes_behind": 0}));
}

#[tokio::test]
async fn changes_can_be_replayed_from_any_cursor() {
    let world = World::new().await;
    let all = world.get("/changes").await.json();
    let changes = all["changes"].as_array().unwrap();
    assert_eq!(changes.len(), 4, "{all}");
    assert_eq!(all["more"], false);
    let mut cursor = String::new();
    for expected in changes {
        let page = world.get(&format!("/changes?limit=1{cursor}")).await.json();
        assert_eq!(&page["changes"][0], expected);
        cursor = format!("&cursor={}", page["next_cursor"].as_str().unwrap());
    }
    let end = world.get(&format!("/changes?limit=1{cursor}")).await.json();
    assert_eq!(end["changes"], json!([]));
    assert_eq!(end["next_cursor"], all["next_cursor"]);

    let site = manifest::SiteName::parse("weather.example").unwrap();
    world.store.site_block(&site, "asked", crate::world::fetched_at()).await.unwrap();
    world.store.feed_head().await.unwrap();
    let after = world.get(&format!("/changes?{}", cursor.trim_start_matches('&'))).await.json();
    assert_eq!(after["changes"][0]["change"], "removed");
    assert_eq!(after["changes"][0]["site"], "weather.example");
}

#[tokio::test]
async fn returns_404_for_unknown_and_400_for_malformed_ids() {
    let world = World::new().await;
    for (path, status) in [
        ("/capabilities/caaaaaaaaaaaaaaaa", 404),
        ("/capabilities/nonsense", 400),
        ("/manifests/maaaaaaaaaaaaaaaa", 404),
        ("/manifests/maaaaaaaaaaaaaaaa/raw", 404),
        ("/manifests/maaaaaaaaaaaaaaaa/versions", 404),
        ("/manifests/caaaaaaaaaaaaaaaa", 400),
        ("/sites/unknown.example", 404),
        ("/sites/10.0.0.1", 400),
        ("/sites/%FF", 400),
        ("/changes?cursor=AAAA", 400),
        ("/stats?x=1", 400),
        ("/suggest", 400),
        ("/suggest?q=b&limit=51", 400),
        ("/suggest?q=b&q=c", 400),
        ("/capabilities/nonsense/similar", 400),
        ("/capabilities/caaaaaaaaaaaaaaaa/similar", 404),
        ("/capabilities/caaaaaaaaaaaaaaaa/tool", 404),
        ("/manifests/maaaaaaaaaaaaaaaa/diff", 404),
        ("/sites/unknown.example/changes", 404),
        ("/sites/skyhop.example/changes?cursor=AAAA", 400),
        ("/sites/skyhop.example/changes?limit=501", 400),
        ("/docs/nothing.js", 404),
        ("/docs?x=1", 400),
        ("/sitemap.xml?x=1", 400),
        ("/opensearch.xml?x=1", 400),
        ("/changes/stream?cursor=AAAA", 400),
        ("/changes/stream?limit=1", 400),
        ("/crawl/stream?limit=1", 400),
        ("/changes.atom?limit=1", 400),
        ("/sites/unknown.example/changes.atom", 404),
        ("/search.atom", 400),
        ("/export.jsonl?since=1", 400),
        ("/v0.1/servers?cursor=AAAA", 400),
        ("/v0.1/servers?limit=101", 400),
        ("/sites/unknown.example/rank?q=x", 404),
        ("/badge/unknown", 404),
        ("/admin/queue", 403),
        ("/nowhere", 404),
        ("/assets/style.css", 404),
    ] {
        let answer = world.get(path).await;
        assert_eq!(answer.status.as_u16(), status, "{path}: {}", answer.text());
        assert_eq!(answer.header("content-type"), "application/problem+json", "{path}");
        let problem = answer.json();
        for member in ["type", "title", "status", "detail", "errorCode", "message"] {
            assert!(problem.get(member).is_some(), "{path}: no {member} in {problem}");
        }
        assert_eq!(problem["status"], status, "{path}");
    }
}

#[tokio::test]
async fn validation_stores_nothing() {
    let world = World::new().await;
    let document = "{\n  \"openapi\": \"3.1.0\",\n  \"info\": {\"title\": \"Clock\"},\n  \"paths\": {\"/now\": {\"get\": {\"operationId\": \"now\"}}}\n}";
    let ask = |query: &str, body: &str| {
        Request::post(format!("/validate{query}")).body(Body::from(body.to_owned())).unwrap()
    };
    let answer = world.send(ask("?url=https://clock.example/openapi.json", document)).await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text());
    let json = answer.json();
    assert_eq!(json["format"], "openapi");
    assert_eq!(json["manifest"]["url"], "https://clock.example/openapi.json");
    assert_eq!(json["indexed"]["capabilities"], 1);
    assert_eq!(world.get("/sites/clock.example").await.status, StatusCode::NOT_FOUND);

    let broken = world.send(ask("", "{\"a\": ")).await.json();
    assert_eq!(broken["format"], "malformed");
    assert_eq!(broken["findings"][0]["severity"], "must");
    for query in ["?as=soap", "?url=http://insecure.example/", "?like=awp"] {
        assert_eq!(world.send(ask(query, "{}")).await.status, StatusCode::BAD_REQUEST, "{query}");
    }
}

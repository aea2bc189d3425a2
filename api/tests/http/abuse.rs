//! Reports about sites and capabilities, and the suspension of sites by operators.

use std::net::SocketAddr;

use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::{Request, StatusCode};
use serde_json::{Value, json};
use store::ReportFilter;

use crate::answer::Answer;
use crate::documents;
use crate::owners::{TOKEN, admin, tokens};
use crate::world::{Settings, World};

const SUSPEND: &str = "/admin/sites/skyhop.example/suspend";
const CONTACT: &str = "abuse@agentdex.example";

async fn with_tokens() -> (World, tempfile::TempDir) {
    let (path, dir) = tokens();
    let contact = Some(CONTACT.to_owned());
    let settings = Settings { admin_tokens: Some(path), contact, ..Settings::default() };
    (World::with(settings).await, dir)
}

async fn report(world: &World, from: &str, accept: &str, body: &str) -> Answer {
    let request = Request::post("/reports").header("accept", accept);
    let mut request = request.body(Body::from(body.to_owned())).unwrap();
    let peer: SocketAddr = format!("{from}:4711").parse().unwrap();
    request.extensions_mut().insert(ConnectInfo(peer));
    world.send(request).await
}

async fn reported(world: &World) -> Vec<store::ReportLine> {
    world.store.reports_page(&ReportFilter::default(), None, 99).await.unwrap()
}

fn about(site: &str) -> String {
    json!({"site": site, "reason": "spam", "text": "copies of one text"}).to_string()
}

#[tokio::test]
async fn suspension_hides_a_site_at_once_and_says_why() {
    let (world, _dir) = with_tokens().await;
    let capability = format!("/capabilities/{}", documents::skyhop().capabilities[0].id);
    let found = async |query: &str| world.get(&format!("/search?{query}")).await.json()["results"].clone();
    assert_ne!(found("site=skyhop.example").await, json!([]));
    let body = r#"{"reason": "impersonation", "note": "pretends to be <b>Skyhop</b>"}"#;
    let suspended = admin(&world, "POST", SUSPEND, TOKEN, body).await;
    assert_eq!(suspended.status, StatusCode::OK, "{}", suspended.text());
    assert_eq!(
        (&suspended.json()["suspended"], &suspended.json()["manifests_removed"]),
        (&json!(true), &json!(1))
    );
    assert_eq!(world.get(&capability).await.status, StatusCode::NOT_FOUND);
    assert_eq!(found("site=skyhop.example").await, json!([]), "hidden although the index still contains it");
    assert!(!world.get("/export.jsonl").await.text().contains("skyhop.example/agent.json"));

    let report = world.get("/sites/skyhop.example").await.json();
    let tombstone = &report["suspended"];
    assert_eq!((&report["status"], &report["blocked"]), (&json!("suspended"), &Value::Null));
    assert_eq!((&tombstone["reason"], &tombstone["contact"]), (&json!("impersonation"), &json!(CONTACT)));
    assert_eq!(tombstone["note"], "pretends to be <b>Skyhop</b>");
    assert!(tombstone["at"].as_str().unwrap().starts_with("20"), "{tombstone}");
    let page = world.page("/sites/skyhop.example").await.text();
    for part in ["Suspended", "pretends to be another publisher", "mailto:abuse@agentdex.example"] {
        assert!(page.contains(part), "{part} is not in {page}");
    }
    assert!(!page.contains("<b>Skyhop</b>") && !page.contains("/recheck") && !page.contains("/reports"));
    let changes = world.get("/sites/skyhop.example/changes").await.json();
    assert_eq!(
        (&changes["changes"][0]["change"], &changes["changes"][0]["reason"]),
        (&json!("removed"), &json!("suspended_impersonation"))
    );
    assert!(world.page("/changes").await.text().contains("Suspended: it pretends to be another publisher"));
    let submitted = Request::post("/sites").body(Body::from(r#"{"domain": "skyhop.example"}"#)).unwrap();
    let refused = world.send(submitted).await;
    assert_eq!(refused.status, StatusCode::FORBIDDEN);
    assert!(refused.text().contains("is suspended"), "{}", refused.text());
}

#[tokio::test]
async fn suspension_is_lifted_by_its_own_action_only() {
    let (world, _dir) = with_tokens().await;
    for (body, word) in [
        ("", "reason"),
        (r#"{"reason": "rude"}"#, "impersonation"),
        (r#"{"reason": "other"}"#, "note"),
        (r#"{"reason": "spam", "why": "x"}"#, "why"),
    ] {
        let wrong = admin(&world, "POST", SUSPEND, TOKEN, body).await;
        assert_eq!(wrong.status, StatusCode::BAD_REQUEST, "{body}");
        assert!(wrong.text().contains(word), "{body}: {}", wrong.text());
    }
    let changed = async |action: &str, body: &str| {
        let path = format!("/admin/sites/skyhop.example/{action}");
        admin(&world, "POST", &path, TOKEN, body).await.json()["changed"].clone()
    };
    assert_eq!(changed("suspend", r#"{"reason": "spam"}"#).await, true);
    assert_eq!(changed("suspend", r#"{"reason": "malware"}"#).await, false);
    assert_eq!(changed("unblock", "").await, false);
    let status = async || world.get("/sites/skyhop.example").await.json()["status"].clone();
    assert_eq!(status().await, "suspended");
    assert_eq!(changed("unsuspend", "").await, true);
    assert_eq!(changed("unsuspend", "").await, false);
    assert_eq!(status().await, "pending");
}

#[tokio::test]
async fn an_owner_objects_to_a_suspension_and_sees_the_answer() {
    const OBJECTION: &str = "/sites/skyhop.example/objection";
    let (world, _dir) = with_tokens().await;
    let claimed = world.send(Request::post("/sites/skyhop.example/claim").body(Body::empty()).unwrap()).await;
    let key = claimed.json()["key"].as_str().unwrap().to_owned();
    world.prove("skyhop.example", &key, crate::world::machine_now()).await;
    let with_key = async |method: &str, path: &str, body: &str| {
        let request =
            Request::builder().method(method).uri(path).header("authorization", format!("Bearer {key}"));
        world.send(request.body(Body::from(body.to_owned())).unwrap()).await
    };
    assert_eq!(with_key("GET", OBJECTION, "").await.status, StatusCode::NOT_FOUND, "it is not suspended");
    let place = "https://skyhop.example/agent.json";
    let body = json!({"reason": "spam", "note": "copies", "places": [place]}).to_string();
    assert_eq!(admin(&world, "POST", SUSPEND, TOKEN, &body).await.status, StatusCode::OK);
    let public = world.get("/sites/skyhop.example").await.json();
    assert_eq!(public["suspended"].get("places"), None, "places are for the owner");
    assert!(world.page("/sites/skyhop.example").await.text().contains(OBJECTION));

    assert_eq!(world.get(OBJECTION).await.status, StatusCode::UNAUTHORIZED);
    let shown = with_key("GET", OBJECTION, "").await.json();
    assert_eq!(
        (&shown["suspended"]["reason"], &shown["suspended"]["note"]),
        (&json!("spam"), &json!("copies"))
    );
    assert_eq!((&shown["places"], &shown["objection"]), (&json!([place]), &Value::Null));
    let recheck = with_key("POST", "/sites/skyhop.example/recheck", "").await;
    assert_eq!(recheck.status, StatusCode::FORBIDDEN, "it is not visited");
    assert!(recheck.text().contains(OBJECTION), "{}", recheck.text());

    let answer = "/admin/sites/skyhop.example/answer";
    let early = admin(&world, "POST", answer, TOKEN, r#"{"text": "no"}"#).await;
    assert_eq!(early.status, StatusCode::NOT_FOUND, "there is no objection");
    let long = json!({"text": "x".repeat(1_001)}).to_string();
    for wrong in ["", "{}", r#"{"text": " "}"#, long.as_str()] {
        assert_eq!(with_key("POST", OBJECTION, wrong).await.status, StatusCode::BAD_REQUEST, "{wrong}");
    }
    let sent = with_key("POST", OBJECTION, r#"{"text": "we removed <b>them</b>; check again"}"#).await;
    assert_eq!(sent.status, StatusCode::ACCEPTED, "{}", sent.text());
    let reports = admin(&world, "GET", "/admin/reports", TOKEN, "").await.json();
    let listed = &reports["objections"][0];
    assert_eq!((&listed["site"], &listed["answer"]), (&json!("skyhop.example"), &Value::Null));
    assert_eq!(listed["objection"]["text"], "we removed <b>them</b>; check again");
    let answered = admin(&world, "POST", answer, TOKEN, r#"{"text": "one copy is left"}"#).await;
    assert_eq!(answered.status, StatusCode::OK, "{}", answered.text());
    assert_eq!(with_key("GET", OBJECTION, "").await.json()["answer"]["text"], "one copy is left");
    let again = with_key("POST", OBJECTION, r#"{"text": "it is gone too"}"#).await.json();
    assert_eq!(again["answer"], Value::Null);
    let of_other = admin(&world, "GET", "/admin/reports?site=weather.example", TOKEN, "").await.json();
    assert_eq!(of_other["objections"], json!([]));

    let unsuspended = admin(&world, "POST", "/admin/sites/skyhop.example/unsuspend", TOKEN, "").await;
    assert_eq!(unsuspended.json()["changed"], true);
    assert_eq!(with_key("GET", OBJECTION, "").await.status, StatusCode::NOT_FOUND);
    let visit = with_key("POST", "/sites/skyhop.example/recheck", "").await;
    assert_eq!(visit.status, StatusCode::ACCEPTED, "the key is still valid: {}", visit.text());
}

#[tokio::test]
async fn reports_are_stored_without_the_client_and_change_nothing() {
    let (world, _dir) = with_tokens().await;
    let search = async || world.get("/search?q=flight").await.json()["results"].clone();
    let before = search().await;
    let answer = report(&world, "192.0.2.1", "*/*", &about("skyhop.example")).await;
    assert_eq!(answer.status, StatusCode::ACCEPTED, "{}", answer.text());
    assert_eq!(answer.json(), json!({"site": "skyhop.example", "kept": true}));
    assert_eq!(answer.header("ratelimit-limit"), "20");
    let again = report(&world, "192.0.2.2", "*/*", &about("skyhop.example")).await;
    assert_eq!(again.json()["kept"], false, "the same report of another client");
    assert_eq!(search().await, before);
    let stored = reported(&world).await;
    assert_eq!(stored.len(), 1);
    assert!(!serde_json::to_string(&stored).unwrap().contains("192.0.2"));

    let unknown = report(&world, "192.0.2.1", "*/*", &about("nobody.example")).await;
    assert_eq!(unknown.status, StatusCode::NOT_FOUND);
    let opted_out = report(&world, "192.0.2.1", "*/*", &about("shy.example")).await;
    assert_eq!(opted_out.status, StatusCode::FORBIDDEN, "{}", opted_out.text());
    assert_eq!(reported(&world).await.len(), 1);
}

#[tokio::test]
async fn pages_have_a_form_that_reports() {
    let (world, _dir) = with_tokens().await;
    let id = documents::skyhop().capabilities[0].id.clone();
    for (path, field) in [
        ("/sites/skyhop.example".to_owned(), r#"name="site" value="skyhop.example""#.to_owned()),
        (format!("/capabilities/{id}"), format!("name=\"capability\" value=\"{id}\"")),
    ] {
        let page = world.page(&path).await.text();
        assert!(
            page.contains("action=\"/reports\" method=\"post\"") && page.contains(&field),
            "{path}: {page}"
        );
        assert!(page.contains("<option value=\"malware\">") && page.contains("maxlength=\"1000\""), "{path}");
    }
    let form = format!("capability={id}&reason=malware&text=");
    let page = report(&world, "192.0.2.1", "text/html", &form).await;
    assert_eq!(page.status, StatusCode::ACCEPTED, "{}", page.text());
    assert!(page.text().contains("Report received") && page.text().contains("/sites/skyhop.example"));
    assert_eq!(page.header("cache-control"), "no-store");
    let stored = reported(&world).await.remove(0).report;
    assert_eq!(
        (stored.site.as_str(), stored.capability, stored.note.as_str()),
        ("skyhop.example", Some(id), "")
    );
}

#[tokio::test]
async fn reports_are_limited_per_client_and_per_site() {
    let (world, _dir) = with_tokens().await;
    let text = |number: usize| {
        json!({"site": "skyhop.example", "reason": "spam", "text": format!("report {number}")}).to_string()
    };
    for number in 0..20 {
        assert_eq!(report(&world, "192.0.2.1", "*/*", &text(number)).await.status, StatusCode::ACCEPTED);
    }
    let refused = report(&world, "192.0.2.1", "*/*", &text(20)).await;
    assert_eq!(refused.status, StatusCode::TOO_MANY_REQUESTS);
    assert!(refused.header("retry-after").parse::<u32>().unwrap() > 0);
    for number in 20..100 {
        let from = format!("192.0.2.{}", 2 + number / 10);
        assert_eq!(report(&world, &from, "*/*", &text(number)).await.status, StatusCode::ACCEPTED);
    }
    let full = report(&world, "192.0.2.99", "*/*", &text(100)).await;
    assert_eq!(full.status, StatusCode::FORBIDDEN, "{}", full.text());
    assert_eq!(
        report(&world, "192.0.2.99", "*/*", &about("weather.example")).await.status,
        StatusCode::ACCEPTED
    );
}

#[tokio::test]
async fn admins_list_and_dismiss_reports() {
    let (world, _dir) = with_tokens().await;
    let other = json!({"site": "skyhop.example", "reason": "other", "text": "shows <b>mail</b>"}).to_string();
    for body in [about("skyhop.example"), other, about("weather.example")] {
        assert_eq!(report(&world, "192.0.2.1", "*/*", &body).await.status, StatusCode::ACCEPTED);
    }
    let list = async |query: &str| {
        let answer = admin(&world, "GET", &format!("/admin/reports{query}"), TOKEN, "").await;
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.text());
        assert_eq!(answer.header("cache-control"), "no-store");
        answer.json()
    };
    let first = list("?limit=2").await;
    assert_eq!(first["reports"].as_array().unwrap().len(), 2);
    assert_eq!(
        (&first["sites"][0]["site"], &first["sites"][0]["reports"]),
        (&json!("skyhop.example"), &json!(2))
    );
    let next = list(&format!("?limit=2&before={}", first["next_before"])).await;
    assert_eq!((next["reports"].as_array().unwrap().len(), &next["next_before"]), (1, &Value::Null));
    assert_eq!(list("?site=weather.example").await["reports"][0]["reason"], "spam");

    let dismiss =
        async |query: &str| admin(&world, "DELETE", &format!("/admin/reports{query}"), TOKEN, "").await;
    assert_eq!(dismiss("").await.status, StatusCode::BAD_REQUEST);
    assert_eq!(dismiss("?site=skyhop.example&all=true").await.status, StatusCode::BAD_REQUEST);
    assert_eq!(dismiss("?site=skyhop.example").await.json(), json!({"dismissed": 2}));
    admin(&world, "POST", "/admin/sites/weather.example/suspend", TOKEN, r#"{"reason": "spam"}"#).await;
    assert_eq!(list("").await["sites"][0]["is_suspended"], true, "reports remain after a suspension");
    assert_eq!(dismiss("?all=true").await.json(), json!({"dismissed": 1}));
}

#[tokio::test]
async fn spam_sites_are_listed_for_operators_and_explained_in_results() {
    let (world, _dir) = with_tokens().await;
    let spam = async |query: &str| admin(&world, "GET", &format!("/admin/spam{query}"), TOKEN, "").await;
    assert_eq!(spam("").await.json(), json!({"sites": []}));
    let mut manifest = documents::skyhop();
    manifest.capabilities[0].description = Some("book flight ".repeat(20));
    manifest.content_hash = manifest::ContentHash::of(b"second");
    world.publish(manifest).await;
    world.reindex().await;
    let causes = json!([{"reason": "repeated_words"}]);
    let sites = json!([{"site": "skyhop.example", "causes": causes, "capabilities": 1}]);
    assert_eq!(spam("?limit=5").await.json(), json!({"sites": sites}));
    assert_eq!(spam("?limit=0").await.status, StatusCode::BAD_REQUEST);
    assert_eq!(world.get("/admin/spam").await.status, StatusCode::UNAUTHORIZED);

    let results = world.get("/search?q=book+flight&explain=true").await.json()["results"].clone();
    let explained: Vec<&Value> =
        results.as_array().unwrap().iter().map(|result| &result["explanation"]["spam"]["causes"]).collect();
    assert!(explained.contains(&&causes), "{results}");
    assert!(explained.contains(&&Value::Null), "only spam results have an explanation: {results}");
}

//! Capabilities that several documents of a site declare.

use axum::http::StatusCode;
use manifest::model::{PolicyChoice, RateLimit, SafetyClass, Tristate};
use manifest::{AuthScheme, CapabilityId, ContentHash, Format, Manifest, ManifestId, ManifestUrl};
use serde_json::Value;

use crate::documents;
use crate::world::World;

const OPEN_API: &str = "https://skyhop.example/openapi.json";
const SINCE: &str = "/export.jsonl?updated_since=2000-01-01";

/// The airline's booking, as another document declares it.
pub(crate) fn open_api() -> Manifest {
    let mut manifest = documents::skyhop();
    manifest.url = ManifestUrl::parse(OPEN_API).unwrap();
    manifest.id = ManifestId::of(&manifest.url);
    manifest.content_hash = ContentHash::of(documents::body_of(OPEN_API).as_bytes());
    manifest.detection.format = Format::OpenApi;
    manifest.findings.clear();
    manifest.capabilities.retain(|capability| capability.native_id == "book_seat");
    let capability = &mut manifest.capabilities[0];
    capability.key = format!("{OPEN_API}#openapi:createBooking");
    capability.id = CapabilityId::of_key(&capability.key);
    "createBooking".clone_into(&mut capability.native_id);
    capability.description = Some("Reserve a place aboard.".to_owned());
    "/paths/~1api~1bookings/post".clone_into(&mut capability.pointer);
    capability.examples.clear();
    capability.depends_on.clear();
    capability.response = None;
    capability.auth.required = Tristate::No;
    capability.auth.schemes = vec![AuthScheme::None];
    capability.auth.scopes.clear();
    capability.safety.class = SafetyClass::Read;
    capability.rate_limit =
        Some(RateLimit { requests: Some(10), window_s: Some(60), ..RateLimit::default() });
    capability.parameters.as_mut().unwrap()["required"] = serde_json::json!(["departure_date", "cabin"]);
    manifest
}

fn book() -> String {
    documents::skyhop().capabilities[0].id.to_string()
}

fn second_declaration() -> String {
    open_api().capabilities[0].id.to_string()
}

fn manifest_path(url: &str) -> String {
    format!("/manifests/{}", ManifestId::of(&ManifestUrl::parse(url).unwrap()))
}

/// The world with both documents, indexed.
async fn world() -> World {
    let world = World::new().await;
    world.publish(open_api()).await;
    world.reindex().await;
    world
}

fn texts<'v>(list: &'v Value, member: &str) -> Vec<&'v str> {
    list.as_array().into_iter().flatten().filter_map(|one| one[member].as_str()).collect()
}

/// The results of a search.
async fn ids(world: &World, parameters: &str) -> Vec<String> {
    let answer = world.get(&format!("/search?{parameters}")).await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text());
    texts(&answer.json()["results"], "id").into_iter().map(str::to_owned).collect()
}

#[tokio::test]
async fn one_result_has_all_declarations_and_the_most_cautious_values() {
    let before = World::new().await;
    let (total, stats) =
        (before.get("/search?site=skyhop.example").await.json(), before.get("/stats").await.json());
    let world = world().await;
    let found = world.get("/search?site=skyhop.example&facets=format").await.json();
    assert_eq!(found["total"], total["total"], "the second document adds no result");
    assert_eq!(world.get("/stats").await.json()["capabilities"], stats["capabilities"]);
    let result =
        found["results"].as_array().unwrap().iter().find(|row| row["id"] == book().as_str()).unwrap();
    assert_eq!(result["manifest_id"], documents::skyhop().id.as_str());
    assert_eq!(texts(&result["declarations"], "format"), [documents::skyhop().format().as_str(), "openapi"]);
    assert_eq!(result["safety"], "irreversible");
    assert_eq!(result["auth_required"], true);
    assert_eq!(
        texts(&result["contradictions"], "fact"),
        ["auth_required", "auth", "safety", "parameter", "rate_limit"]
    );
    let formats = &found["facets"]["format"];
    assert!(texts(formats, "value").contains(&"openapi"), "{formats}");
}

#[tokio::test]
async fn filters_names_and_words_of_every_declaration_find_the_capability() {
    let world = world().await;
    for parameters in [
        "format=openapi&site=skyhop.example",
        "safety=read&q=book+seat&site=skyhop.example",
        "safety=irreversible&q=book+seat",
        "auth=none&q=book+seat&site=skyhop.example",
        "auth=oauth2&q=book+seat",
        "q=createBooking",
        "q=place+aboard",
    ] {
        assert!(ids(&world, parameters).await.contains(&book()), "{parameters}");
    }
    assert_eq!(ids(&world, &format!("q={}", second_declaration())).await.first(), Some(&book()));
}

#[tokio::test]
async fn the_ids_of_all_declarations_return_one_capability() {
    let world = world().await;
    let answer = world.get(&format!("/capabilities/{}", book())).await.json();
    assert_eq!(answer["id"], book().as_str());
    assert_eq!(world.get(&format!("/capabilities/{}", second_declaration())).await.json(), answer);
    assert_eq!(texts(&answer["declarations"], "id"), [book(), second_declaration()]);
    for declaration in answer["declarations"].as_array().unwrap() {
        for member in ["manifest_id", "manifest_url", "pointer", "status", "updated_at", "last_seen_at"] {
            assert!(declaration[member].is_string(), "{member} of {declaration}");
        }
    }
    assert_eq!(answer["rate_limit"]["requests"], 10);
    assert_eq!(answer["safety"], "irreversible");
    assert!(texts(&answer["findings"], "code").contains(&"declarations.safety"), "{}", answer["findings"]);
    let similar = world.get(&format!("/capabilities/{}/similar", book())).await.json();
    assert!(similar["results"][0]["id"].is_string(), "{similar}");
    let of_other = world.get(&format!("/capabilities/{}/similar", second_declaration())).await.json();
    assert_eq!(of_other["results"], similar["results"]);
    let tool = world.get(&format!("/capabilities/{}/tool", book())).await;
    assert_eq!(world.get(&format!("/capabilities/{}/tool", second_declaration())).await.json(), tool.json());
    let required = tool.json()["inputSchema"]["required"].clone();
    assert!(required.as_array().unwrap().contains(&"cabin".into()), "{required}");
    let full = world.get("/search?site=skyhop.example&view=full").await.json();
    let row = full["results"].as_array().unwrap().iter().find(|row| row["id"] == book().as_str()).unwrap();
    assert_eq!((&row["rate_limit"], &row["parameters"]), (&answer["rate_limit"], &answer["parameters"]));
    let page = world.page(&format!("/capabilities/{}", book())).await.text();
    assert!(page.contains("Declarations") && page.contains(OPEN_API), "{page}");
}

#[tokio::test]
async fn contradictions_appear_in_the_findings_of_each_manifest_and_on_the_site_page() {
    let world = world().await;
    for url in [documents::SKYHOP, OPEN_API] {
        let manifest = world.get(&manifest_path(url)).await.json();
        let codes = texts(&manifest["manifest"]["findings"], "code");
        for code in
            ["declarations.auth", "declarations.safety", "declarations.parameter", "declarations.rate_limit"]
        {
            assert!(codes.contains(&code), "{url} {codes:?}");
        }
    }
    let own = world.get(&manifest_path(OPEN_API)).await.json();
    assert_eq!(own["manifest"]["capabilities"][0]["id"], second_declaration().as_str());
    let site = world.get("/sites/skyhop.example").await.json();
    assert_eq!(
        texts(&site["contradictions"], "fact"),
        ["auth_required", "auth", "safety", "parameter", "rate_limit"]
    );
    assert_eq!(site["contradictions"][0]["capability_id"], book().as_str());
    let page = world.page("/sites/skyhop.example").await.text();
    assert!(page.contains("safety: irreversible here, read at"), "{page}");
    assert!(page.contains("safety: read here, irreversible at"), "{page}");
}

/// The lines of an export with this record.
fn lines(export: &str, record: &str) -> Vec<Value> {
    let lines = export.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines.filter(|line| line["record"] == record).collect()
}

#[tokio::test]
async fn an_export_has_a_line_for_each_capability_and_each_manifest() {
    let world = world().await;
    for path in ["/export.jsonl", SINCE] {
        let export = world.get(path).await.text();
        let capabilities = lines(&export, "capability");
        let booking: Vec<&Value> = capabilities
            .iter()
            .filter(|line| line["id"] == book().as_str() || line["id"] == second_declaration().as_str())
            .collect();
        assert_eq!(booking.len(), 1, "{path}");
        assert_eq!(booking[0]["manifest_id"], documents::skyhop().id.as_str());
        assert_eq!(texts(&booking[0]["declarations"], "id"), [book(), second_declaration()]);
        let manifests = lines(&export, "manifest");
        for url in [documents::SKYHOP, OPEN_API] {
            assert!(texts(&Value::from(manifests.clone()), "url").contains(&url), "{path} {url}");
        }
        assert_eq!(lines(&export, "end")[0]["capabilities"], capabilities.len(), "{path}");
    }
}

#[tokio::test]
async fn an_export_has_no_declaration_of_a_manifest_that_denies_training() {
    let world = World::new().await;
    world.publish_with_training(open_api(), PolicyChoice::Deny).await;
    for path in ["/export.jsonl", SINCE] {
        let export = world.get(path).await.text();
        let capabilities = lines(&export, "capability");
        let booking = capabilities.iter().find(|line| line["id"] == book().as_str()).unwrap();
        assert_eq!(texts(&booking["declarations"], "id"), [book()], "{path}");
        assert_eq!(booking["rate_limit"]["requests"], 60, "{path}");
    }
    let world = World::new().await;
    world.publish(open_api()).await;
    world.publish_with_training(documents::skyhop(), PolicyChoice::Deny).await;
    let export = world.get("/export.jsonl").await.text();
    let capabilities = lines(&export, "capability");
    let booking = capabilities.iter().find(|line| line["id"] == book().as_str()).unwrap();
    assert_eq!(booking["manifest_id"], open_api().id.as_str(), "the other declaration is the leading one");
    assert_eq!(texts(&booking["declarations"], "id"), [second_declaration()]);
}

#[tokio::test]
async fn a_merge_adds_a_change_with_the_merged_ids() {
    let world = world().await;
    let changes = world.get("/changes?limit=100").await.json();
    let merged: Vec<&Value> =
        changes["changes"].as_array().unwrap().iter().filter(|change| change["change"] == "merged").collect();
    assert_eq!(merged.len(), 2, "one for each manifest: {changes}");
    let reason = format!("{} into {}", second_declaration(), book());
    assert!(merged.iter().all(|change| change["reason"] == reason.as_str()), "{merged:?}");
    let page = world.page("/changes").await.text();
    assert!(page.contains("declares 1 capability in several documents"), "{page}");
}

#[tokio::test]
async fn a_new_leading_declaration_keeps_the_id() {
    let world = World::new().await;
    let mut fuller = open_api();
    let capability = &mut fuller.capabilities[0];
    let own = documents::skyhop().capabilities[0].clone();
    (capability.examples, capability.depends_on, capability.response) =
        (own.examples, own.depends_on, own.response);
    capability.auth.scopes = own.auth.scopes;
    capability.title = Some("Create a booking".to_owned());
    capability.version = Some("2".to_owned());
    capability.tags = vec!["air".to_owned()];
    world.publish(fuller).await;
    world.reindex().await;
    let result = &world.get("/search?q=book+seat&site=skyhop.example&view=full").await.json()["results"][0];
    assert_eq!((&result["id"], &result["format"]), (&book().into(), &"openapi".into()));
    assert_eq!(result["manifest_id"], open_api().id.as_str());
    assert!(result["provenance"].is_object(), "it has the details of the leading declaration: {result}");
    let answer = world.get(&format!("/capabilities/{}", book())).await.json();
    assert_eq!((&answer["native_id"], &answer["safety"]), (&"createBooking".into(), &"irreversible".into()));
}

#[tokio::test]
async fn a_catalog_has_one_entry_for_a_capability() {
    let before = World::new().await.get("/sites/skyhop.example/ai-catalog.json").await.json();
    let after = world().await.get("/sites/skyhop.example/ai-catalog.json").await.json();
    let count = |catalog: &Value| catalog["entries"].as_array().unwrap().len();
    assert_eq!(count(&after), count(&before) + 1, "one entry for the manifest, none for its capability");
}

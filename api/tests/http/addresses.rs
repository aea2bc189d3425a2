//! Addresses of pages: parameters of trackers, slashes at the end, and addresses below those of sites.

use axum::http::StatusCode;
use serde_json::json;

use crate::documents;
use crate::world::World;

#[tokio::test]
async fn pages_ignore_unknown_parameters_and_json_refuses_them() {
    let world = World::new().await;
    let manifest = world.get("/search?q=book+flight").await.json()["results"][0].clone();
    let (id, manifest) = (manifest["id"].as_str().unwrap(), manifest["manifest_id"].as_str().unwrap());
    for path in [
        "/",
        "/search?q=book+flight",
        "/sites",
        "/sites?status=fresh",
        "/sites/skyhop.example",
        "/sites/skyhop.example/claim",
        &format!("/capabilities/{id}"),
        &format!("/capabilities/{id}/try?v.x=1"),
        &format!("/manifests/{manifest}/diff"),
        "/semantic-types",
        "/stats",
        "/changes",
        "/crawl",
        "/validate",
        "/docs",
        "/styleguide",
    ] {
        let separator = if path.contains('?') { '&' } else { '?' };
        let shared = format!("{path}{separator}utm_source=letter&fbclid=abc&ref=home");
        let page = world.page(&shared).await;
        assert_eq!(page.status, StatusCode::OK, "{shared}");
        assert!(!page.text().contains("utm_source"), "a link of {shared} repeats the parameter");
    }
    for path in ["/search?q=flight&utm_source=x", "/sites?utm_source=x", "/stats?utm_source=x"] {
        let refused = world.get(path).await;
        assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{path}");
        assert_eq!(refused.json()["parameter"], json!("utm_source"), "{path}");
    }
}

#[tokio::test]
async fn addresses_with_a_slash_at_the_end_lead_to_the_page() {
    let world = World::new().await;
    for path in ["/sites", "/sites/skyhop.example", "/docs", "/changes", "/search", "/stats", "/validate"] {
        let moved = world.page(&format!("{path}/?a=b")).await;
        assert_eq!(moved.status, StatusCode::PERMANENT_REDIRECT, "{path}");
        assert_eq!(moved.header("location"), format!("{path}?a=b"));
    }
    assert_eq!(world.page("//other.example/").await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn only_the_address_of_a_site_says_that_it_is_not_listed() {
    let world = World::new().await;
    let site = documents::skyhop().url.site();
    for path in [format!("/sites/{site}/foo"), "/sites/unheard.example/foo".to_owned()] {
        let missing = world.page(&path).await;
        assert_eq!(missing.status, StatusCode::NOT_FOUND, "{path}");
        let text = missing.text();
        assert!(text.contains("There is no page at this address.") && !text.contains("not listed"), "{text}");
    }
    assert!(world.page("/sites/unheard.example").await.text().contains("unheard.example is not listed"));
}

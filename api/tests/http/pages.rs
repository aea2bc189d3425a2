//! Pages: complete, linked, and harmless whatever publishers write.

use axum::http::StatusCode;

use crate::documents;
use crate::world::World;

fn capability_path(manifest: &manifest::Manifest) -> String {
    format!("/capabilities/{}", manifest.capabilities[0].id)
}

/// Nothing in a page runs or is styled inline, and what publishers wrote has no power.
fn assert_harmless(path: &str, page: &str) {
    let scripts = page.matches("<script").count();
    assert_eq!(scripts, page.matches("<script type=\"module\" src=\"/assets/").count(), "{path}");
    for danger in
        ["<script>", "onerror=alert(2)>", "<img src=x", "href=\"javascript:", " style=\"", "<style", "<b>\""]
    {
        assert!(!page.contains(danger), "{path} contains {danger}");
    }
    for origin in page.split(" src=\"").skip(1) {
        assert!(origin.starts_with("/assets/"), "{path}: {origin:.60}");
    }
}

#[tokio::test]
async fn every_page_is_harmless_and_has_a_title_of_its_own() {
    let world = World::new().await;
    let mut titles = Vec::new();
    for path in [
        "/".to_owned(),
        "/search?q=plunder".to_owned(),
        "/search?q=%3Cscript%3Ealert(9)%3C/script%3E&site=%22%3E%3Cscript%3E".to_owned(),
        capability_path(&documents::evil()),
        capability_path(&documents::skyhop()),
        "/sites".to_owned(),
        "/sites/evil.example".to_owned(),
        "/sites/skyhop.example".to_owned(),
        "/sites/shy.example".to_owned(),
        "/semantic-types".to_owned(),
        "/stats".to_owned(),
    ] {
        let page = world.page(&path).await;
        assert_eq!(page.status, StatusCode::OK, "{path}: {}", page.text());
        let text = page.text();
        assert_harmless(&path, &text);
        assert!(text.contains("<main id=\"main\">") && text.contains("lang=\"en\""), "{path}");
        assert_eq!(text.matches("<h1").count(), 1, "{path}");
        let title = text.split("<title>").nth(1).and_then(|rest| rest.split("</title>").next()).unwrap();
        assert!(title.ends_with("agentdex"), "{path}: {title}");
        titles.push(title.to_owned());
    }
    let count = titles.len();
    titles.sort();
    titles.dedup();
    assert_eq!(titles.len(), count, "{titles:?}");
}

#[tokio::test]
async fn the_search_page_shows_cards_facets_and_the_way_on() {
    let world = World::new().await;
    let page = world.page("/search?q=book+flight").await.text();
    let first = page.split("<article").nth(1).unwrap();
    for part in [
        "Book seat",
        "skyhop.example",
        "AWP",
        "irreversible",
        "ask a person first",
        "OAuth 2",
        "POST",
        "inferred",
    ] {
        assert!(first.contains(part), "no {part} in {first}");
    }
    assert!(first.split("<a ").nth(1).unwrap().starts_with("href=\"/capabilities/c"), "{first}");
    assert!(
        page.contains("/search?q=book+flight&amp;format=awp")
            || page.contains("/search?q=book+flight&#38;format=awp")
    );
    assert!(page.contains("value=\"book flight\""));
}

#[tokio::test]
async fn the_empty_state_says_so_and_offers_what_there_is() {
    let world = World::new().await;
    let page = world.page("/search?q=zzzunheardof&format=awp").await.text();
    assert!(page.to_lowercase().contains("nothing") && !page.contains("<article"));
    assert!(page.contains("semantic_type=weather%3Aforecast"), "{page}");
    assert!(page.contains("search without filters"));
}

#[tokio::test]
async fn a_capability_page_says_how_to_call_it_and_where_that_is_declared() {
    let world = World::new().await;
    let page = world.page(&capability_path(&documents::skyhop())).await.text();
    for part in [
        "curl -X POST https://skyhop.example/api/bookings",
        "departure_date",
        "string (date)",
        "bookings:write",
        "60 requests in 60 seconds",
        "/actions/0",
        "awp.action.inputs.missing",
        "List the inputs with their types.",
        "href=\"/sites/skyhop.example\"",
        "Search flights",
    ] {
        assert!(page.contains(part), "no {part}");
    }
    assert!(!page.contains("awp.contact.missing"), "a finding elsewhere in the document");
}

#[tokio::test]
async fn a_site_page_shows_what_was_asked_what_to_fix_and_how_to_opt_out() {
    let world = World::new().await;
    let page = world.page("/sites/skyhop.example").await.text();
    for part in [
        "manifest read",
        "not there",
        "HTTP 404",
        "Allow: /",
        "a marker of its own",
        "awp.contact.missing",
        "Next visit",
        "nothing changed for a week",
        "User-agent: agentdex",
    ] {
        assert!(page.contains(part), "no {part}");
    }
}

#[tokio::test]
async fn assets_are_named_after_their_content_and_kept_for_a_year() {
    let world = World::new().await;
    let page = world.page("/").await.text();
    let mut found = 0;
    for piece in page.split("\"/assets/").skip(1) {
        let name = piece.split('"').next().unwrap();
        let asset = world.get(&format!("/assets/{name}")).await;
        assert_eq!(asset.status, StatusCode::OK, "{name}");
        assert_eq!(asset.header("cache-control"), "public, max-age=31536000, immutable");
        found += 1;
    }
    assert!(found >= 3);
    assert_eq!(world.get("/favicon.ico").await.header("content-type"), "image/svg+xml");
}

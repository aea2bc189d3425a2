//! What pages say about sites that cannot be read or checked, and about calls whose declaration lacks something.

use axum::body::Body;
use axum::http::{Request, StatusCode};
use manifest::{ContentHash, Format};
use serde_json::json;

use crate::documents;
use crate::world::World;

/// The page of statistics counts each site once, and does not call a site fresh that cannot be read.
#[tokio::test]
async fn sites_that_cannot_be_read_are_not_counted_as_fresh() {
    let world = World::new().await;
    let mut broken = documents::offer("broken.example", "x", "x", "other:thing");
    broken.detection.format = Format::Malformed;
    broken.capabilities.clear();
    world.publish(broken).await;
    let statistics = world.get("/stats").await.json();
    let fresh = json!({"value": "fresh", "count": 5});
    assert!(statistics["sites_by_status"].as_array().unwrap().contains(&fresh), "{statistics}");
    let page = world.page("/stats").await.text();
    let row = |filters: &str| {
        let link = page.split(&format!("<a href=\"/sites?{filters}\">")).nth(1);
        let link = link.unwrap_or_else(|| panic!("no {filters} in {page}")).split("</a>").next().unwrap();
        let count = link.split("class=\"count\">").nth(1).unwrap().split('<').next().unwrap();
        (link.split("<span>").nth(1).unwrap().split('<').next().unwrap().to_owned(), count.to_owned())
    };
    let expected = |text: &str, count: &str| (text.to_owned(), count.to_owned());
    for filters in ["status=fresh&#38;readable=true", "status=fresh&#38;readable=false"] {
        let (text, count) = row(filters);
        let is_readable = filters.ends_with("true");
        assert_eq!(
            (text, count),
            if is_readable { expected("fresh", "4") } else { expected("not readable", "1") }
        );
        let listed = world.get(&format!("/sites?{}", filters.replace("&#38;", "&"))).await.json();
        assert_eq!(listed["total"], if is_readable { 4 } else { 1 }, "the link leads to these sites");
    }
    let sites = world.page("/sites").await.text();
    let chip = sites.split("\">fresh</a>").next().unwrap().rsplit("href=\"").next().unwrap();
    assert_eq!(chip, "/sites?status=fresh&#38;readable=true");
    let home = world.page("/").await.text();
    assert!(home.contains("<b>4</b> sites that were read"), "{home}");
    let changes = world.page("/changes").await.text();
    let row =
        changes.split("<a href=\"/sites/broken.example\">").nth(1).unwrap().split("</p>").next().unwrap();
    assert!(row.contains("published a document that cannot be read"), "{row}");
}

#[tokio::test]
async fn validator_offers_formats_that_a_document_can_be_meant_as() {
    let world = World::new().await;
    let page = world.page("/validate").await.text();
    let choices = page.split("<select id=\"as\"").nth(1).unwrap().split("</select>").next().unwrap();
    assert!(choices.contains(">MCP (free form)<") && choices.contains(">llms.txt<"), "{choices}");
    for none in ["generic", "pointer", "list", "malformed", "opaque", "unrelated"] {
        assert!(!choices.contains(&format!("value=\"{none}\"")), "{choices}");
    }
}

#[tokio::test]
async fn validator_says_that_a_document_is_not_stored() {
    let world = World::new().await;
    let url = "https://never.example/agent.json";
    let page = world.page(&format!("/validate?url={url}")).await.text();
    let alert = page.split("role=\"alert\">").nth(1).unwrap().split("</div>").next().unwrap();
    assert!(alert.starts_with(&format!("Nothing is stored of {url}. Paste the document below")), "{alert}");
    assert!(alert.contains("<a href=\"/sites#add\">add its site</a>"), "{alert}");
}

#[tokio::test]
async fn validator_recognises_a_web_page() {
    let world = World::new().await;
    let body = "document=%3C!doctype+html%3E%3Ctitle%3Ex%3C/title%3E&url=&as=";
    let request = Request::post("/validate")
        .header("accept", "text/html")
        .header("content-type", "application/x-www-form-urlencoded");
    let page = world.send(request.body(Body::from(body)).unwrap()).await.text();
    assert!(page.contains("This is a web page, not a manifest."), "{page}");
    assert!(!page.contains("not valid JSON, so"), "{page}");
}

/// A call of another site that moves money.
#[tokio::test]
async fn effect_names_the_other_site_and_the_money() {
    let world = World::new().await;
    let mut wire = documents::offer("trickster.example", "Wire money", "Wires money.", "other:wire");
    wire.capabilities[0].invocation.url = Some("https://collector.example/api/wire".to_owned());
    world.publish(wire.clone()).await;
    let page = world.page(&format!("/capabilities/{}", wire.capabilities[0].id)).await.text();
    let said = "Changes data at collector.example, and may move money.";
    assert_eq!(page.matches(said).count(), 2, "on a phone, and under Safety: {page}");
    assert!(!page.contains("hanges data at the site"), "{page}");
}

#[tokio::test]
async fn server_whose_tools_are_not_listed_has_an_address() {
    let world = World::new().await;
    let mut server = documents::server("https://feldspar.example/.well-known/mcp.json", "Feldspar");
    let mut offered = documents::offer("feldspar.example", "Minerals", "Hardness of minerals.", "other:m");
    let mut capability = offered.capabilities.remove(0);
    capability.kind = manifest::model::CapabilityKind::Resource;
    capability.invocation.protocol = Some(manifest::model::Protocol::Mcp);
    capability.invocation.method = None;
    capability.invocation.url = Some("https://feldspar.example/mcp".to_owned());
    server.capabilities.push(capability);
    server.content_hash = ContentHash::of(b"a server with an entry");
    world.publish(server).await;
    world.reindex().await;
    let page = world.page("/search?q=minerals").await.text();
    assert!(page.contains("tools not listed") && !page.contains("no address to call"), "{page}");
    let site = world.page("/sites/feldspar.example").await.text();
    assert!(site.contains("its MCP server lists its tools; the document does not"), "{site}");
}

#[tokio::test]
async fn claim_page_begins_with_the_line_to_publish() {
    let world = World::new().await;
    let page = world.page("/sites/skyhop.example/claim").await;
    assert_eq!(page.status, StatusCode::OK);
    let page = page.text();
    assert!(page.contains("No check was requested for skyhop.example yet."), "{page}");
    assert!(page.contains("<button type=\"submit\">Get a line to publish</button>"), "{page}");
    assert!(!page.contains("Check now"), "{page}");
}

#[tokio::test]
async fn inferred_labels_are_explained_once() {
    let world = World::new().await;
    let mut inferred =
        documents::offer("guess.example", "Sharpen pencils", "Sharpens pencils.", "office:sharpen");
    inferred.capabilities[0].safety.source = manifest::model::TypeSource::Inferred;
    world.publish(inferred).await;
    world.publish(documents::offer("sure.example", "Fold paper", "Folds paper.", "office:fold")).await;
    world.reindex().await;
    let explained = "inferred by agentdex, not declared by the publisher.";
    let id =
        world.get("/search?q=sharpen+pencils").await.json()["results"][0]["id"].as_str().unwrap().to_owned();
    for path in ["/search?q=sharpen+pencils", &format!("/capabilities/{id}")] {
        let page = world.page(path).await.text();
        assert_eq!(page.matches(explained).count(), 1, "{path}: {page}");
    }
    let declared = world.page("/search?q=fold+paper&site=sure.example").await.text();
    assert!(declared.contains("Fold") && !declared.contains(explained), "{declared}");
}

//! The filters next to the results: following any of them leads to results.

use axum::http::StatusCode;

use crate::documents;
use crate::world::World;

/// The values that a page offers: the text and the address of each. The value of a chosen filter is not among them.
fn offered(page: &str) -> Vec<(String, String)> {
    let Some((_, facets)) = page.split_once("<aside class=\"facets\"") else { return Vec::new() };
    let facets = facets.split("</aside>").next().unwrap();
    let lists = facets.split("<ul>").skip(1).map(|list| list.split("</ul>").next().unwrap());
    let links = lists.flat_map(|list| list.split("<a href=\"").skip(1));
    let links = links.filter(|link| !link.split('>').next().unwrap().contains("aria-current"));
    let link = |link: &str| {
        let address = link.split('"').next().unwrap().replace("&amp;", "&").replace("&#38;", "&");
        let text = link.split("<span>").nth(1).unwrap().split("</span>").next().unwrap().to_owned();
        (text, address)
    };
    links.map(link).collect()
}

#[tokio::test]
async fn every_offered_filter_leads_to_results() {
    let world = World::new().await;
    for (site, name, does, kind) in [
        ("hops.example", "Cancel flight", "Cancels a flight that was booked.", "travel:flight-cancel"),
        ("inn.example", "Book room", "Books a room of our hotel for a night.", "travel:hotel-booking"),
        (
            "minutes.example",
            "Extract key points",
            "Extracts the points of a meeting: book, date.",
            "data:extract",
        ),
        ("pizza.example", "Order pizza", "Orders a pizza.", "food:order-create"),
    ] {
        world.publish(documents::offer(site, name, does, kind)).await;
    }
    world.reindex().await;
    let mut followed = 0;
    for query in [
        "q=book+flight",
        "q=book+flight&format=openapi",
        "q=book+flight&format=awp",
        "q=book+flight&format=woa",
        "q=book+flight&format=woa&safety=read",
        "q=book+flight&safety=read",
        "q=book+flight&semantic_type=food:order-create",
        "q=book+flight&sort=name",
        "q=weather&format=awp",
        "q=pizza&auth=oauth2",
        "q=qqqq&format=awp",
        "format=openapi&safety=irreversible",
    ] {
        let page = world.page(&format!("/search?{query}")).await;
        assert_eq!(page.status, StatusCode::OK, "{query}: {}", page.text());
        for (text, address) in offered(&page.text()) {
            let narrowed = world.page(&address).await.text();
            assert!(!narrowed.contains("<h2>Nothing found</h2>"), "{query}: {text} leads to nothing");
            followed += 1;
        }
    }
    assert!(followed > 30, "{followed} filters");
}

#[tokio::test]
async fn group_of_a_filter_without_results_remains() {
    let world = World::new().await;
    let page = world.page("/search?q=book+flight&format=woa").await.text();
    assert!(page.contains("<h2>Nothing found</h2>") && page.contains("without <b>Format: WoA</b>"), "{page}");
    let offered = offered(&page);
    assert!(offered.iter().any(|(text, _)| text == "AWP"), "{offered:?}");
    let other = |(text, address): &(String, String)| !address.contains("format=woa") || text == "WoA";
    assert!(!offered.iter().any(other), "the filter stays set: {offered:?}");
}

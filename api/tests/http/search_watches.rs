//! Watches of searches: which results are stored for delivery, and what is refused.

use axum::body::Body;
use axum::http::{Request, StatusCode};
use chrono::TimeDelta;
use manifest::ContentHash;
use policy::webhook::Message;
use serde_json::{Value, json};
use store::{DeliveryEnd, DueContent, DueDelivery, FeedPosition};

use crate::answer::Answer;
use crate::documents;
use crate::world::{World, machine_now};

const RECEIVER: &str = "https://hooks.reader.example/results";

async fn post(world: &World, body: &Value) -> Answer {
    world.send(Request::post("/watches").body(Body::from(body.to_string())).unwrap()).await
}

/// The next message of a kind, which is accepted.
async fn accepted(world: &World, kind: Message) -> Option<DueDelivery> {
    let now = machine_now();
    let due =
        world.store.deliveries_claim(kind, now, now + TimeDelta::minutes(10), 9).await.unwrap().pop()?;
    world.store.delivery_end(&due, &DeliveryEnd::Accepted, now).await.unwrap();
    Some(due)
}

/// A watch of a search whose receiver has confirmed it.
async fn confirmed(world: &World, search: &str) -> Value {
    let made = post(world, &json!({"search": search, "url": RECEIVER})).await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.text());
    let challenge = accepted(world, Message::Challenge).await.unwrap();
    assert_eq!(challenge.target.search(), Some(search));
    made.json()
}

/// Compares the changes of the feed with the searches, and returns the stored message.
async fn compared(world: &World) -> Option<Value> {
    world.reindex().await;
    world.app.compare_search_watches().await.unwrap();
    let due = accepted(world, Message::Changes).await?;
    let DueContent::Changes(body) = &due.content else { panic!("{due:?}") };
    Some(serde_json::from_str(body).unwrap())
}

#[tokio::test]
async fn new_and_changed_results_of_a_watched_search_are_delivered() {
    let world = World::new().await;
    let made = confirmed(&world, "q=book+a+flight").await;
    assert_eq!((&made["search"], &made["site"]), (&json!("q=book+a+flight"), &Value::Null));
    assert_eq!(compared(&world).await, None, "results from before the watch are not delivered");

    let mut changed = documents::skyhop();
    changed.content_hash = ContentHash::of(b"second");
    world.publish(changed.clone()).await;
    world.publish(documents::offer("mugs.example", "mug", "Buys a mug.", "shop:mug")).await;
    let message = compared(&world).await.expect("a message");
    let data = &message["data"];
    assert_eq!(message["type"], "agentdex.search");
    assert_eq!(
        (&data["watch"], &data["search"], &data["complete"]),
        (&made["id"], &json!("q=book+a+flight"), &json!(true))
    );
    assert_eq!(data["text_is"], "publisher-supplied, untrusted");
    let results = data["results"].as_array().unwrap();
    assert!(!results.is_empty());
    for result in results {
        assert_eq!(
            (&result["site"], &result["change"], &result["manifest_id"]),
            (&json!("skyhop.example"), &json!("changed"), &json!(changed.id))
        );
        let url = result["url"].as_str().unwrap();
        assert!(url.ends_with(result["capability_id"].as_str().unwrap()), "{url}");
    }
    assert_eq!(compared(&world).await, None, "a change is delivered once");

    world
        .publish(documents::offer(
            "flyaway.example",
            "book_flight",
            "Books a flight to the sea.",
            "travel:flight-booking",
        ))
        .await;
    let message = compared(&world).await.expect("a message");
    let first = &message["data"]["results"][0];
    assert_eq!((&first["site"], &first["change"]), (&json!("flyaway.example"), &json!("added")));
    let head = world.store.feed_head().await.unwrap();
    assert!(world.store.watches_of_searches(head, 9).await.unwrap().is_empty());
    let behind = world.store.watches_of_searches(FeedPosition::END, 9).await.unwrap();
    assert_eq!(behind[0].position, head, "changes without results are compared once");
}

#[tokio::test]
async fn filters_of_a_watched_search_apply() {
    let world = World::new().await;
    confirmed(&world, "format=generic&site=mugs.example").await;
    let mut skyhop = documents::skyhop();
    skyhop.content_hash = ContentHash::of(b"second");
    world.publish(skyhop).await;
    assert_eq!(compared(&world).await, None);
    world.publish(documents::offer("mugs.example", "mug", "Buys a mug.", "shop:mug")).await;
    let message = compared(&world).await.expect("a message");
    assert_eq!(message["data"]["results"][0]["site"], "mugs.example");
}

#[tokio::test]
async fn a_message_says_that_there_are_more_results() {
    let world = World::new().await;
    confirmed(&world, "site=many.example").await;
    let mut many = documents::offer("many.example", "mug", "Buys a mug.", "shop:mug");
    let one = many.capabilities[0].clone();
    many.capabilities = (0..101)
        .map(|number| {
            let mut capability = one.clone();
            capability.native_id = format!("mug {number}");
            capability.key = format!("{} {number}", one.key);
            capability.id = manifest::CapabilityId::of_key(&capability.key);
            capability
        })
        .collect();
    world.publish(many).await;
    let message = compared(&world).await.expect("a message");
    assert_eq!(message["data"]["results"].as_array().unwrap().len(), 100);
    assert_eq!(message["data"]["complete"], false);
}

#[tokio::test]
async fn only_words_and_filters_are_watched() {
    let world = World::new().await;
    let long = format!("q={}", "a".repeat(1_024));
    for (body, word) in [
        (json!({"url": RECEIVER}), "neither"),
        (json!({"site": "skyhop.example", "search": "q=book", "url": RECEIVER}), "both"),
        (json!({"search": "", "url": RECEIVER}), "format=awp"),
        (json!({"search": "q=book&sort=name", "url": RECEIVER}), "sort"),
        (json!({"search": "q=book&cursor=x", "url": RECEIVER}), "cursor"),
        (json!({"search": "q=book&colour=red", "url": RECEIVER}), "colour"),
        (json!({"search": "format=html", "url": RECEIVER}), "html"),
        (json!({"search": "q=book\u{0}", "url": RECEIVER}), "control character"),
        (json!({"search": long, "url": RECEIVER}), "1024 bytes"),
        (json!({"search": "q=book", "url": "http://hooks.example/"}), "https"),
    ] {
        let refused = post(&world, &body).await;
        assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{body}: {}", refused.text());
        assert!(refused.text().contains(word), "{body}: {}", refused.text());
    }
    assert!(world.store.watches_page(None, 9).await.unwrap().is_empty());
}

//! Every list accepts the cursors that it returns, and paging reaches every result, regardless of their number and names.

use std::collections::HashSet;

use serde_json::{Value, json};

use crate::world::{World, encoded};

/// More capabilities than one query re-ranks.
const OFFERED: usize = 260;

/// A site with many capabilities, some with the longest names in a script whose folded form is longer than the name.
async fn world() -> World {
    let action = |number: usize| {
        let name = if number.is_multiple_of(10) { "\u{8868}\u{6f22}".repeat(95) } else { "Table".to_owned() };
        json!({"id": format!("table_{number}"), "name": format!("{number:03} {name}"), "description": "Books a table",
               "auth_required": false, "inputs": {}, "outputs": {}, "endpoint": format!("/{number}"), "method": "POST"})
    };
    let actions: Vec<Value> = (0..OFFERED).map(action).collect();
    let tables =
        json!({"awp_version": "0.1", "domain": "tables.example", "intent": "Books.", "actions": actions});
    World::with(&[("https://tables.example/agent.json", tables)]).await
}

/// Follows the cursors of a list; returns the ids of its rows.
async fn walk(world: &World, path: &str, parameter: &str, [next, rows, id]: [&str; 3]) -> HashSet<String> {
    let (mut found, mut cursor, mut pages) = (HashSet::new(), String::new(), 0);
    loop {
        let page = world.get(&format!("{path}{cursor}")).await.ok();
        for row in page[rows].as_array().unwrap() {
            assert!(found.insert(row[id].to_string()), "{path} repeats {}", row[id]);
        }
        pages += 1;
        assert!(pages <= OFFERED, "{path} does not end");
        let Some(token) = page[next].as_str() else { return found };
        cursor = format!("&{parameter}={}", encoded(token));
    }
}

#[tokio::test]
async fn cursors_of_lists_reach_every_result() {
    let world = world().await;
    let of_search = ["next_cursor", "results", "id"];
    for path in [
        "/search?q=books+a+table&limit=50",
        "/search?q=books+a+table&limit=70",
        "/search?site=tables.example&sort=name&limit=10",
    ] {
        let found = walk(&world, path, "cursor", of_search).await.len();
        assert!(found >= OFFERED, "{path}: {found}");
    }
    let entries =
        walk(&world, "/agents?pageSize=10", "pageToken", ["pageToken", "items", "identifier"]).await;
    assert!(entries.len() >= OFFERED, "{}", entries.len());
}

//! Entries of other registries, which are shown beside what a site declares and change nothing of it.

use axum::body::Body;
use axum::http::Request;
use manifest::RegistryEntry;
use serde_json::{Value, json};

use crate::fixture::fetched_at;
use crate::world::{World, encoded};

const OFFICIAL: &str = "https://registry.example/";
const OTHER: &str = "https://<b>other.example/agents";
const SERVER: &str = "example.stormy/weather";
const AGENT: &str = "urn:air:hub.example:agent:translator";

/// Stores what two registries list: the server of stormy.example in another version, and an entry of the catalog of hub.example.
async fn list(world: &World) {
    let server =
        json!({ "name": SERVER, "version": "9.0.0", "remotes": [{ "url": "https://stormy.example/mcp" }] });
    let stranger =
        json!({ "name": "example.stranger/best", "remotes": [{ "url": "https://stormy.example/else" }] });
    let agent =
        json!({ "identifier": AGENT, "displayName": "Translator", "url": "https://words.example/card.json" });
    let servers = [server, stranger].map(|server| RegistryEntry::of_server(&server).unwrap());
    let agents = [RegistryEntry::of_agent(&agent).unwrap()];
    let store = &world.store;
    store.registry_page_save(OFFICIAL, &servers, None, fetched_at()).await.unwrap();
    store.registry_page_save(OTHER, &agents, None, fetched_at()).await.unwrap();
    store.registry_page_save(OTHER, &servers[..1], None, fetched_at()).await.unwrap();
}

/// Takes the member out of an object.
fn taken(object: &mut Value, member: &str) -> Value {
    object.as_object_mut().unwrap().remove(member).unwrap_or_default()
}

#[tokio::test]
async fn tools_show_listings_and_change_nothing_else() {
    let world = World::new().await;
    let find = "/tools/find_capability?query=warns+of+storms";
    let before = world.get(find).await.ok();
    let id = before["results"][0]["id"].as_str().unwrap().to_owned();
    let paths =
        [format!("/tools/get_capability?id={id}"), "/tools/get_site?domain=stormy.example".to_owned()];
    let (capability, site) = (world.get(&paths[0]).await.ok(), world.get(&paths[1]).await.ok());
    assert_eq!((&capability["listed_by"], &site["listed_by"]), (&json!([]), &json!([])));
    assert_eq!(before["results"][0].get("listed_by"), None, "{before}");
    list(&world).await;

    let mut after = world.get(find).await.ok();
    assert_eq!(taken(&mut after["results"][0], "listed_by"), json!([OTHER, OFFICIAL]));
    assert_eq!(after, before, "the order and the other members");
    let version = "version: 9.0.0, but 1.2.0 here";
    let listed =
        |registry: &str| json!({ "registry": registry, "identifier": SERVER, "contradictions": [version] });
    for (path, before) in [(&paths[0], capability), (&paths[1], site)] {
        let (mut before, mut after) = (before, world.get(path).await.ok());
        taken(&mut before, "listed_by");
        let mut expected = vec![listed(OTHER), listed(OFFICIAL)];
        if path == &paths[1] {
            // about the site, and about nothing that it declares
            let words = "publisher: stranger.example, but stormy.example here";
            let identifier = "example.stranger/best";
            expected
                .push(json!({ "registry": OFFICIAL, "identifier": identifier, "only_listed": true, "contradictions": [words] }));
        }
        assert_eq!(taken(&mut after, "listed_by"), json!(expected), "{path}");
        assert_eq!(after, before, "{path}");
    }
}

#[tokio::test]
async fn capability_page_escapes_what_other_registries_say() {
    let world = World::new().await;
    let found = world.get("/search?q=warns+of+storms").await.ok();
    let path = format!("/capabilities/{}", found["results"][0]["id"].as_str().unwrap());
    let page = async || {
        let request = Request::get(&path).header("accept", "text/html").body(Body::empty()).unwrap();
        world.send(request).await.text()
    };
    assert!(!page().await.contains("Listed by other registries"));
    list(&world).await;
    let shown = page().await;
    for part in ["Listed by other registries", SERVER, OFFICIAL, "version: 9.0.0, but 1.2.0 here"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert!(!shown.contains("<b>other") && !shown.contains("example.stranger"), "{shown}");
}

/// Nothing of such a record was read from the site.
#[tokio::test]
async fn an_agent_that_only_registries_list_is_one_record_of_its_site() {
    const ONLY: &str = "urn:air:stormy.example:agent:hidden";
    let world = World::new().await;
    list(&world).await;
    for (registry, name) in [(OFFICIAL, "Hidden"), (OTHER, "<b>Other</b>")] {
        let agent =
            json!({ "identifier": ONLY, "displayName": name, "url": "https://stormy.example/hidden.json" });
        let agents = [RegistryEntry::of_agent(&agent).unwrap()];
        world.store.registry_page_save(registry, &agents, None, fetched_at()).await.unwrap();
    }
    let site = world.get("/sites/stormy.example").await.ok();
    let agents = site["listed_agents"].as_array().unwrap();
    let identifiers: Vec<&Value> = agents.iter().map(|agent| &agent["identifier"]).collect();
    assert_eq!(identifiers, [ONLY, "example.stranger/best"], "not the server that the site declares: {site}");
    let hidden = &agents[0];
    assert_eq!(hidden["read_from_site"], false);
    let listings = hidden["listed_by"].as_array().unwrap();
    assert_eq!(listings.len(), 2, "{hidden}");
    assert_eq!(listings[1]["differences"][0]["fact"], "name", "{hidden}");
    let request = Request::get("/sites/stormy.example").header("accept", "text/html").body(Body::empty());
    let page = world.send(request.unwrap()).await.text();
    assert_eq!(page.matches("Only listed by other registries").count(), 1, "{page}");
    assert!(page.contains("Nothing about them was read from stormy.example"), "{page}");
    assert!(page.contains("Listed by other registries") && !page.contains("<b>Other"), "{page}");
    let found = world.get("/search?q=hidden").await.ok();
    assert!(!found["results"].to_string().contains("hidden.json"), "no search finds it: {found}");
}

#[tokio::test]
async fn registries_of_standards_name_the_registries_that_list_an_entry() {
    let world = World::new().await;
    let server = "/v0.1/servers/example.stormy%2Fweather/versions";
    let agent = format!("/agents/{}", encoded(AGENT));
    let before = [world.get(server).await.ok(), world.get(&agent).await.ok()];
    list(&world).await;

    let mut entry = world.get(&agent).await.ok();
    assert_eq!(taken(&mut entry["metadata"], "listedBy"), OTHER);
    assert_eq!(entry, before[1]);
    let one_of = |list: &Value| {
        let mut servers = list["servers"].as_array().unwrap().iter();
        servers.find(|one| one["server"]["name"] == SERVER).unwrap().clone()
    };
    let versions = one_of(&world.get(server).await.ok());
    let latest = world.get(&format!("{server}/latest")).await.ok();
    let listed = one_of(&world.get("/v0.1/servers").await.ok());
    for mut one in [versions, latest, listed] {
        let registries = taken(&mut one["_meta"]["agentdex/record"], "listed_by");
        assert_eq!(registries, json!([OTHER, OFFICIAL]), "{one}");
        assert_eq!(one, one_of(&before[0]));
    }
}

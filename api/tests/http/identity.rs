//! Publisher identity: the object `identity`, its filters and marks, and the signature of the card of this server.

use std::sync::Arc;

use axum::http::StatusCode;
use manifest::{CardSigner, Discovery, Document, LinkedDocument, Manifest, ManifestUrl, NamedBy};
use serde_json::{Map, Value, json};

use crate::world::{Settings, World};

/// The key of RFC 9421, appendix B.1.4.
fn signer() -> CardSigner {
    let der =
        data_encoding::BASE64.decode(b"MC4CAQAwBQYDK2VwBCIEIJ+DYvh6SEqVTm50DFtMDoQikTmiCqirVv9mWG9qfSnF");
    CardSigner::from_pkcs8(&der.unwrap()).unwrap()
}

enum Signature {
    None,
    Good,
    /// A signature of other content.
    Bad,
}

/// A card that a site serves, read with its keys.
fn card(site: &str, provider: &str, signature: &Signature) -> Manifest {
    card_at("/.well-known/agent-card.json", site, provider, signature)
}

fn card_at(path: &str, site: &str, provider: &str, signature: &Signature) -> Manifest {
    let url = |path: &str| ManifestUrl::parse(&format!("https://{site}{path}")).unwrap();
    let card = json!({"name": "Ferry seats", "description": "Reserves seats on ferries", "version": "1.0.0", "capabilities": {},
        "provider": {"organization": "Ferry", "url": format!("https://{provider}")},
        "supportedInterfaces": [{"url": format!("https://{site}/a2a"), "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}],
        "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"],
        "skills": [{"id": "reserve", "name": "Reserve a ferry", "description": "Reserves a seat on a ferry", "tags": ["ferry"]}]});
    let mut card: Map<String, Value> = card.as_object().unwrap().clone();
    if !matches!(signature, Signature::None) {
        signer().sign(&mut card, &[], url("/keys.json").as_str());
    }
    if matches!(signature, Signature::Bad) {
        card.insert("version".to_owned(), json!("1.0.1"));
    }
    let keys = signer().key_set().to_string();
    manifest::read(&Document {
        bytes: Value::Object(card).to_string().as_bytes(),
        url: &url(path),
        final_url: None,
        discovery: Discovery::WellKnown,
        served: None,
        linked: &[LinkedDocument { url: &url("/keys.json"), bytes: keys.as_bytes() }],
        force: None,
    })
}

async fn world() -> World {
    let world = World::new().await;
    for card in [
        card("signed.example", "signed.example", &Signature::Good),
        card("plain.example", "plain.example", &Signature::None),
        card("changed.example", "changed.example", &Signature::Bad),
        card("claims.example", "bank.example", &Signature::Good),
    ] {
        world.publish(card).await;
    }
    world.reindex().await;
    world
}

async fn sites(world: &World, filters: &str) -> Vec<String> {
    let found = world.get(&format!("/search?q=ferry&group_by=none&{filters}&sort=name")).await;
    assert_eq!(found.status, StatusCode::OK, "{}", found.text());
    let rows = found.json()["results"].as_array().cloned().unwrap();
    let mut sites: Vec<String> = rows.iter().map(|row| row["site"].as_str().unwrap().to_owned()).collect();
    sites.sort();
    sites
}

#[tokio::test]
async fn records_have_one_identity_object() {
    let world = Box::pin(world()).await;
    let manifest = card("signed.example", "signed.example", &Signature::Good);
    let key_id = signer().key_set()["keys"][0]["kid"].clone();
    let wanted = json!({
        "declared": [{"member": "provider.url", "value": "https://signed.example", "site": "signed.example"}],
        "served": {"origin": "https://signed.example", "site": "signed.example"},
        "binding": "bound",
        "verified": true,
        "signature": {"status": "verified", "key_id": key_id, "algorithm": "EdDSA",
                      "key_source": "https://signed.example/keys.json"},
    });
    let of = async |path: String, pointer: &str| world.get(&path).await.json().pointer(pointer).cloned();
    assert_eq!(of(format!("/manifests/{}", manifest.id), "/identity").await, Some(wanted.clone()));
    assert_eq!(
        of(format!("/capabilities/{}", manifest.capabilities[0].id), "/identity").await,
        Some(wanted.clone())
    );
    let resources = of("/sites/signed.example".to_owned(), "/resources").await.unwrap();
    let line =
        resources.as_array().unwrap().iter().find_map(|resource| resource.pointer("/manifest/identity"));
    assert_eq!(line, Some(&wanted));
    let foreign = card("claims.example", "bank.example", &Signature::Good);
    let foreign = of(format!("/manifests/{}", foreign.id), "/identity").await.unwrap();
    assert_eq!((&foreign["binding"], &foreign["verified"]), (&json!("foreign"), &json!(false)));
    let changed = card("changed.example", "changed.example", &Signature::Bad);
    let changed = of(format!("/manifests/{}", changed.id), "/identity/signature").await.unwrap();
    assert_eq!(changed["status"], "invalid");
    assert!(changed["reason"].as_str().unwrap().contains("does not match"), "{changed}");
}

#[tokio::test]
async fn searches_filter_by_identity() {
    let world = Box::pin(world()).await;
    for (filters, wanted) in [
        ("verified=true", vec!["signed.example"]),
        ("verified=false", vec!["changed.example", "claims.example", "plain.example"]),
        ("identity=bound", vec!["changed.example", "plain.example", "signed.example"]),
        ("identity=foreign", vec!["claims.example"]),
        ("identity=invalid,unsigned", vec!["changed.example", "plain.example"]),
        ("identity=unresolvable", vec![]),
    ] {
        assert_eq!(sites(&world, filters).await, wanted, "{filters}");
    }
    assert_eq!(world.get("/search?q=ferry&identity=famous").await.status, StatusCode::BAD_REQUEST);
    let found = world.get("/search?q=ferry&facets=identity&verified=true").await.json();
    assert_eq!(found["results"][0]["identity_marks"], json!(["verified", "bound"]));
    let counts = found["facets"]["identity"].as_array().unwrap();
    assert!(counts.contains(&json!({"value": "verified", "count": 1, "relevant": 1})), "{counts:?}");
}

#[tokio::test]
async fn pages_and_tools_mark_unusual_results() {
    let world = Box::pin(world()).await;
    let page = world.page("/search?q=ferry&group_by=none").await.text();
    for mark in ["publisher verified", "names another publisher", "signature invalid"] {
        assert!(page.contains(mark), "{mark}");
    }
    let id = card("claims.example", "bank.example", &Signature::Good).capabilities[0].id.clone();
    assert!(world.page(&format!("/capabilities/{id}")).await.text().contains("names another publisher"));
    let found = world.get("/tools/find_capability?query=ferry&group_by=none").await;
    assert_eq!(found.status, StatusCode::OK, "{}", found.text());
    let rows = found.json()["results"].as_array().cloned().unwrap();
    let of = |site: &str| rows.iter().find(|row| row["site"] == site).unwrap()["identity"].clone();
    assert_eq!(of("signed.example"), json!(["verified"]));
    assert_eq!(of("claims.example"), json!(["foreign"]));
    assert_eq!(of("plain.example"), Value::Null);
}

/// A file of a user, which another site links to; later the card of the site links to it too.
#[tokio::test]
async fn documents_that_only_others_name_are_not_attributed_to_the_site() {
    let site = "signed.example";
    let upload = || card_at("/u/someone/card.json", site, site, &Signature::None);
    let world = Box::pin(world()).await;
    world.publish_linked(1, upload(), "https://evil.example/.well-known/ard.json").await;
    world.reindex().await;
    let key = format!("agentdex-key-{}", "0f".repeat(32));
    world.prove(site, &key, crate::world::machine_now()).await;
    world.app.write_search_counts().await.unwrap();
    let (id, capability) = (upload().id, upload().capabilities[0].id.clone());
    let record = world.get(&format!("/capabilities/{capability}")).await.json();
    let own = card(site, site, &Signature::Good).capabilities[0].id.clone();
    let of_site = world.get(&format!("/capabilities/{own}")).await.json();
    assert_eq!((&record["owner"], &of_site["owner"]["verified"]), (&Value::Null, &json!(true)));
    let manifest = world.get(&format!("/manifests/{id}")).await.json();
    for identity in [&record["identity"], &manifest["identity"]] {
        assert_eq!(identity["binding"], "named_by_others");
        assert_eq!(identity["verified"], false);
    }
    assert_eq!(record["identity_marks"], json!(["unsigned", "named_by_others"]));
    for (filters, is_found) in [
        ("identity=bound", false),
        ("verified=true", false),
        ("named_by=site", false),
        ("named_by=others", true),
        ("identity=named_by_others", true),
    ] {
        let found = world.get(&format!("/search?q=ferry&group_by=none&{filters}")).await.json().to_string();
        assert_eq!(found.contains(capability.as_str()), is_found, "{filters}");
    }
    let found = world.get("/search?q=ferry&group_by=none&explain=true").await.json();
    let rows = found["results"].as_array().unwrap();
    let last = rows.last().unwrap();
    assert_eq!(last["id"], capability.as_str(), "ranked after the cards of all sites: {found}");
    assert_eq!(last["explanation"]["demoted"], "named_by_others");
    let page = world.page(&format!("/capabilities/{capability}")).await.text();
    assert!(page.contains("Named only by others.") && !page.contains("owner verified by"), "{page}");
    let page = world.page(&format!("/sites/{site}")).await.text();
    assert!(page.contains("that only other sites or clients name") && page.contains("named only by others"));
    world.publish_linked(3, upload(), &format!("https://{site}/.well-known/agent-card.json")).await;
    let record = world.get(&format!("/capabilities/{capability}")).await.json();
    assert_eq!(record["identity"]["binding"], "bound", "the site names it");
}

/// The site names them, but the owner of the domain did not write them.
#[tokio::test]
async fn documents_of_customers_and_users_carry_neither_the_mark_of_the_owner_nor_listings() {
    let site = "signed.example";
    let world = Box::pin(world()).await;
    let own = card(site, site, &Signature::Good);
    let customer = card_at("/.well-known/agent-card.json", &format!("t1.{site}"), site, &Signature::None);
    let upload = card_at("/u/someone/card.json", site, site, &Signature::None);
    for (hours, linked) in [(1, &customer), (2, &upload)] {
        world.publish_linked(hours, linked.clone(), own.url.as_str()).await;
    }
    let listed = [&own, &customer, &upload].map(|manifest| {
        let identifier = format!("urn:air:{site}:cards:{}", manifest.id);
        let entry = json!({"identifier": identifier, "displayName": "Ferry", "url": manifest.url.as_str()});
        manifest::RegistryEntry::of_agent(&entry).unwrap()
    });
    let now = crate::world::fetched_at();
    world.store.registry_page_save("https://registry.example/", &listed, None, now).await.unwrap();
    world.reindex().await;
    world.prove(site, &format!("agentdex-key-{}", "0f".repeat(32)), crate::world::machine_now()).await;
    world.app.write_search_counts().await.unwrap();
    let results = world.page(&format!("/search?q=ferry&group_by=none&site={site}")).await.text();
    for (manifest, is_marked) in [(&own, true), (&customer, false), (&upload, false)] {
        let path = format!("/capabilities/{}", manifest.capabilities[0].id);
        let record = world.get(&path).await.json();
        assert_eq!(record["identity"]["binding"], "bound", "the site names it: {record}");
        assert_eq!(record["owner"].is_object(), is_marked, "{record}");
        assert_eq!(record["listed_by"].as_array().unwrap().len(), usize::from(is_marked), "{record}");
        let page = world.page(&path).await.text();
        assert_eq!(page.contains("owner verified by"), is_marked, "{page}");
        assert_eq!(page.contains("Listed by other registries"), is_marked, "{page}");
        assert!(results.contains(&path), "{path}: {results}");
    }
    assert_eq!(results.matches("</svg> verified owner</").count(), 1, "{results}");
}

#[tokio::test]
async fn a_verified_publisher_is_not_ranked_higher() {
    let world = World::new().await;
    let mut scores = Vec::new();
    for signature in [Signature::None, Signature::Good, Signature::Bad] {
        world.publish(card("signed.example", "signed.example", &signature)).await;
        world.reindex().await;
        let found = world.get("/search?q=ferry&fields=score,identity_marks").await.json();
        scores.push(found["results"][0].clone());
    }
    assert_eq!(scores[0]["identity_marks"], json!(["unsigned", "bound"]));
    assert_eq!(scores[1]["identity_marks"], json!(["verified", "bound"]));
    assert_eq!(scores[0]["score"], scores[1]["score"]);
    assert_eq!(scores[0]["score"], scores[2]["score"]);
}

#[tokio::test]
async fn a_configured_key_signs_the_card_and_is_served() {
    const KEYS: &str = "/.well-known/jwks.json";
    const CARD: &str = "/.well-known/agent-card.json";
    let unsigned = World::new().await;
    assert_eq!(unsigned.get(KEYS).await.status, StatusCode::NOT_FOUND);
    assert_eq!(unsigned.get(CARD).await.json().get("signatures"), None);
    let base = "https://dex.example";
    let settings = Settings {
        public_url: Some(base.parse().unwrap()),
        card_signer: Some(Arc::new(signer())),
        ..Settings::default()
    };
    let world = World::with(settings).await;
    let (card, keys) = (world.get(CARD).await, world.get(KEYS).await);
    assert_eq!(keys.header("content-type"), "application/jwk-set+json");
    assert_eq!(keys.json(), signer().key_set());
    let url = |path: &str| ManifestUrl::parse(&format!("{base}{path}")).unwrap();
    let read = manifest::read(&Document {
        bytes: &card.body,
        url: &url(CARD),
        final_url: None,
        discovery: Discovery::WellKnown,
        served: None,
        linked: &[LinkedDocument { url: &url(KEYS), bytes: &keys.body }],
        force: None,
    });
    assert!(read.identity(NamedBy::Site).verified, "{:?}", read.identity(NamedBy::Site).signature);
    // What a client of A2A 1.0 reads of the card, with the second signature alone.
    let mut card = card.json();
    let members = card.as_object_mut().unwrap();
    for name in ["protocolVersion", "url", "preferredTransport"] {
        assert!(members.remove(name).is_some(), "{name}");
    }
    let signatures = members["signatures"].as_array_mut().unwrap();
    assert_eq!(signatures.len(), 2);
    signatures.remove(0);
    let read = manifest::read(&Document {
        bytes: card.to_string().as_bytes(),
        url: &url(CARD),
        final_url: None,
        discovery: Discovery::WellKnown,
        served: None,
        linked: &[LinkedDocument { url: &url(KEYS), bytes: &keys.body }],
        force: None,
    });
    assert!(read.identity(NamedBy::Site).verified, "{:?}", read.identity(NamedBy::Site).signature);
}

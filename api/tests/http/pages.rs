//! Pages are complete, linked, and safe for any publisher text.

use axum::body::Body;
use axum::http::{Request, StatusCode};
use manifest::{ContentHash, Format, Manifest};
use serde_json::{Value, json};

use crate::documents;
use crate::world::{Settings, World, fetched_at, machine_now};

fn capability_path(manifest: &Manifest) -> String {
    format!("/capabilities/{}", manifest.capabilities[0].id)
}

/// Pages contain no inline scripts or styles, and publisher text is escaped.
fn assert_harmless(path: &str, page: &str) {
    let scripts = page.matches("<script").count();
    let known = page.matches("<script type=\"module\" src=\"/assets/").count()
        + page.matches("<script type=\"application/ld+json\">").count();
    assert_eq!(scripts, known, "{path}");
    for data in page.split("<script type=\"application/ld+json\">").skip(1) {
        let data = data.split("</script>").next().unwrap();
        assert!(serde_json::from_str::<Value>(data).is_ok(), "{path}: {data}");
    }
    for danger in
        ["<script>", "onerror=alert(2)>", "<img src=x", "href=\"javascript:", " style=\"", "<style", "<b>\""]
    {
        assert!(!page.contains(danger), "{path} contains {danger}");
    }
    for origin in page.split(" src=\"").skip(1) {
        assert!(origin.starts_with("/assets/") || origin.starts_with("/badge/"), "{path}: {origin:.60}");
    }
}

#[tokio::test]
async fn every_page_escapes_publisher_texts_and_has_its_own_title() {
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
        "/changes".to_owned(),
        "/crawl".to_owned(),
        "/validate".to_owned(),
        format!("/manifests/{}/diff", manifest::ManifestId::of(&documents::evil().url)),
        format!("{}/try?v.%3Cscript%3E=%22%3E%3Cscript%3E", capability_path(&documents::evil())),
        "/docs".to_owned(),
        "/styleguide".to_owned(),
    ] {
        let page = world.page(&path).await;
        assert_eq!(page.status, StatusCode::OK, "{path}: {}", page.text());
        let text = page.text();
        assert_harmless(&path, &text);
        assert!(text.contains("<main id=\"main\"") && text.contains("lang=\"en\""), "{path}");
        assert_eq!(text.matches("<h1").count(), 1, "{path}");
        let title = text.split("<title>").nth(1).and_then(|rest| rest.split("</title>").next()).unwrap();
        assert!(title.contains("agentdex"), "{path}: {title}");
        // a request that is built has the title of its capability
        if !path.contains("/try?") {
            titles.push(title.to_owned());
        }
    }
    let count = titles.len();
    titles.sort();
    titles.dedup();
    assert_eq!(titles.len(), count, "{titles:?}");
}

/// A submission of the validator's form, as a browser sends it.
async fn validated(world: &World, document: &str, url: &str) -> String {
    let fields = [("document", document), ("url", url), ("as", "")];
    let body = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish();
    let request = Request::post("/validate")
        .header("accept", "text/html")
        .header("content-type", "application/x-www-form-urlencoded");
    let answer = world.send(request.body(Body::from(body)).unwrap()).await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text());
    answer.text()
}

#[tokio::test]
async fn validator_page_does_not_repeat_a_large_document() {
    const PAGE_BYTES_MAX: usize = 3 * 1024 * 1024;
    let world = World::new().await;
    let small = validated(&world, &"\"".repeat(1_000), "").await;
    assert!(!small.contains("not repeated here") && small.matches("&#34;").count() > 1_000, "{small}");
    let one_line = "\"".repeat(1_000_000);
    let many_lines = "\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\n".repeat(60_000);
    let long_lines = format!("{}\n", "'".repeat(1_000)).repeat(1_000);
    for document in [one_line, many_lines, long_lines] {
        let page = validated(&world, &document, "").await;
        assert!(page.contains("The document is not repeated here"));
        assert!(page.len() < PAGE_BYTES_MAX, "{} bytes", page.len());
    }
    let refused = validated(&world, "{}", &"x".repeat(1_000_000)).await;
    assert!(refused.len() < 20_000, "{} bytes", refused.len());
}

#[tokio::test]
async fn validator_page_shows_findings_next_to_their_lines() {
    let world = World::new().await;
    let page =
        validated(&world, "{\n \"awp_version\": \"0.1\",\n \"actions\": [{\"id\": \"order\"}]\n}", "").await;
    let marked = page.split("class=\"marked\"").nth(1).unwrap();
    assert!(marked.contains("How to fix") && page.contains("What to fix first"), "{page}");
    assert!(marked.contains("should be better") || marked.contains("must be fixed"), "in words: {marked}");
    let evil = "{\"awp_version\": \"</textarea><script>alert(1)</script><b>\\\"\"}";
    assert_harmless("/validate", &validated(&world, evil, "").await);
    let broken = validated(&world, "{\"name\": \"x\", \"", "").await;
    assert!(broken.contains("so its format is unknown") && broken.contains("Because: "), "{broken}");
    assert!(!broken.contains("Recognised ("), "{broken}");
    let nothing = validated(&world, " ", "").await;
    assert!(nothing.contains("There is no document"), "{nothing}");
    let stored = validated(&world, "", documents::skyhop().url.as_str()).await;
    assert!(stored.contains("book_seat") || stored.contains("is stored"), "{stored}");
    let misspelt = validated(&world, "{}", "not an address").await;
    assert!(misspelt.contains("role=\"alert\"") && misspelt.contains("not an address"), "{misspelt}");
}

#[tokio::test]
async fn page_of_a_site_shows_its_owner_how_to_prove_it() {
    let world = World::new().await;
    let page = world.page("/sites/skyhop.example").await.text();
    let fold = page.split("id=\"owner\"").nth(1).unwrap();
    assert!(
        fold.contains("Prove that it is yours") && fold.contains("/sites/skyhop.example/claim</code>"),
        "{fold}"
    );
    assert!(page.contains("<a href=\"#owner\">Is it yours?</a>"), "{page}");
    let blocked = world.page("/sites/shy.example").await.text();
    assert!(!blocked.contains("Prove that it is yours"), "{blocked}");
}

#[tokio::test]
async fn cards_name_the_endpoints_of_their_site() {
    let world = World::new().await;
    let mut tools =
        documents::offer("tools.example", "sharpen_pencils", "Sharpens pencils.", "office:sharpen");
    tools.detection.format = Format::Awp;
    tools.interfaces = documents::server("https://tools.example/.well-known/mcp.json", "Tools").interfaces;
    world.publish(tools).await;
    world.reindex().await;
    let page = world.page("/search?q=sharpen+pencils").await.text();
    let card = page.split("<article class=\"card\">").nth(1).unwrap();
    let mark = card.split("<span class=\"mark plain\">").nth(1).unwrap().split("</span>").next().unwrap();
    assert!(mark.starts_with("<svg ") && mark.contains("aria-hidden=\"true\""), "{mark}");
    assert!(mark.ends_with("</svg> MCP server"), "a screen reader reads the words: {mark}");
    assert!(!world.page("/search?q=book+a+flight").await.text().contains(" MCP server</span>"));
    let row = &world.get("/search?q=sharpen+pencils").await.json()["results"][0];
    assert!(row.get("site_endpoints").is_none(), "{row}");
}

#[tokio::test]
async fn capability_page_says_how_to_use_it() {
    let world = World::new().await;
    let page = world.page(&capability_path(&documents::skyhop())).await.text();
    for name in ["curl", "Python", "TypeScript", "MCP", "OpenAI", "Anthropic", "OpenAPI", "ARD"] {
        assert!(page.contains(&format!(">{name}</label>")), "no tab {name}");
    }
    for part in [
        "input_schema",
        "data-copy",
        "requests.request(",
        "await fetch(",
        "cursor://anysphere.cursor-deeplink/mcp/install?name=agentdex",
        "vscode:mcp/install?",
        "claude mcp add --transport http agentdex",
        "May cost money. Ask the person before each call.",
    ] {
        assert!(page.contains(part), "no {part}");
    }
    let built = world
        .page(&format!("{}/try?v.departure_date=2030-01-02", capability_path(&documents::skyhop())))
        .await;
    let text = built.text();
    assert!(text.contains("2030-01-02") && text.contains("noindex"), "{text}");
}

#[tokio::test]
async fn pages_describe_themselves_to_other_sites() {
    let world = World::new().await;
    let page = world.page("/sites/skyhop.example").await.text();
    for part in [
        "<link rel=\"canonical\" href=\"http://",
        "/sites/skyhop.example\">",
        "property=\"og:image\" content=\"http://",
        "\"@type\":\"WebAPI\"",
        "rel=\"apple-touch-icon\"",
        "application/opensearchdescription+xml",
    ] {
        assert!(page.contains(part), "no {part} in {page:.3000}");
    }
    let picture = page.split("og:image\" content=\"").nth(1).unwrap().split('"').next().unwrap();
    let path = picture.split_once("/assets/").unwrap().1;
    assert_eq!(world.get(&format!("/assets/{path}")).await.header("content-type"), "image/png");
    let home = world.page("/").await.text();
    assert!(home.contains("SearchAction") && home.contains("\"Dataset\""), "{home:.3000}");
    let search = world.get("/opensearch.xml").await;
    let text = search.text();
    let search = roxmltree::Document::parse(&text).unwrap();
    assert!(
        search
            .descendants()
            .any(|node| node.attribute("template").is_some_and(|t| t.contains("{searchTerms}")))
    );
    let sitemap = world.get("/sitemap.xml").await.text();
    let sitemap = roxmltree::Document::parse(&sitemap).unwrap();
    let listed = |end: &str| {
        let mut entries = sitemap
            .descendants()
            .filter(|node| node.has_tag_name(("http://www.sitemaps.org/schemas/sitemap/0.9", "url")));
        entries.any(|entry| {
            let text = |name: &str| {
                entry
                    .children()
                    .find(|n| n.tag_name().name() == name)
                    .and_then(|n| n.text())
                    .map(str::to_owned)
            };
            text("loc").is_some_and(|loc| loc.ends_with(end)) && (end == "/docs" || text("lastmod").is_some())
        })
    };
    assert!(listed("/sites/skyhop.example") && listed("/docs"));
    let found = world.get("/search?q=book+flight").await.json();
    let id = found["results"][0]["id"].as_str().expect("a capability");
    assert!(listed(&format!("/capabilities/{id}")), "the pages of capabilities");
    assert!(world.get("/robots.txt").await.text().contains("\nSitemap: http"));
}

#[tokio::test]
async fn style_guide_shows_the_parts_of_the_design() {
    let world = World::new().await;
    let page = world.page("/styleguide").await.text();
    assert!(page.contains("Type scale") && page.contains("irreversible"), "{page}");
}

#[tokio::test]
async fn style_guide_is_not_found_while_it_is_off() {
    let world = World::with(Settings { without_styleguide: true, ..Settings::default() }).await;
    let page = world.page("/styleguide").await;
    assert_eq!(page.status, StatusCode::NOT_FOUND);
    assert!(page.text().contains("styleguide = true") && !page.text().contains("Type scale"));
}

#[tokio::test]
async fn similar_capabilities_belong_to_other_sites_and_are_closely_related() {
    let world = World::new().await;
    let said = "Book a flight: a seat on one of our departures.";
    for (site, name, semantic_type) in [
        ("sametype.example", "Reserve place", "travel:flight-booking"),
        ("samewords.example", "Seat to book", "other:thing"),
        ("samefield.example", "Book room", "travel:hotel-booking"),
        // similar only in its description
        ("unlike.example", "Explain code", "data:query"),
        ("fieldonly.example", "Plan trip", "travel:trip-plan"),
        ("wordonly.example", "Book doctor", "health:appointment"),
    ] {
        world.publish(documents::offer(site, name, said, semantic_type)).await;
    }
    world.reindex().await;
    let path = capability_path(&documents::skyhop());
    let similar = world.get(&format!("{path}/similar?limit=50")).await.json();
    let sites: Vec<&str> =
        similar["results"].as_array().unwrap().iter().map(|row| row["site"].as_str().unwrap()).collect();
    for site in ["skyhop.example", "unlike.example", "fieldonly.example", "wordonly.example"] {
        assert!(sites.contains(&site), "the page must be able to exclude {site} from {sites:?}");
    }
    let page = world.page(&path).await.text();
    let shown = page.split("Similar at other sites").nth(1).unwrap().split("<details").next().unwrap();
    for site in ["sametype.example", "samewords.example", "samefield.example"] {
        assert!(shown.contains(&format!("href=\"/sites/{site}\"")), "no {site} in {shown}");
    }
    for site in ["skyhop.example", "unlike.example", "fieldonly.example", "wordonly.example"] {
        assert!(!shown.contains(site), "{site} in {shown}");
    }
    let alone = world.page(&capability_path(&documents::weather())).await.text();
    assert!(!alone.contains("Similar at other sites"), "there are no similar capabilities");
}

/// A version of the airline's manifest.
fn version(number: u8, change: impl Fn(&mut Vec<Value>)) -> Manifest {
    let mut manifest = serde_json::to_value(documents::skyhop()).unwrap();
    manifest["content_hash"] = json!(ContentHash::of(&[number]));
    change(manifest["capabilities"].as_array_mut().unwrap());
    serde_json::from_value(manifest).unwrap()
}

#[tokio::test]
async fn changes_of_every_version_are_described() {
    let world = World::new().await;
    let needs_key = |capabilities: &mut Vec<Value>| {
        capabilities[1]["auth"] = json!({"required": "yes", "schemes": ["api_key"]});
    };
    world.publish_after(1, version(1, needs_key)).await;
    let without_search = |capabilities: &mut Vec<Value>| {
        needs_key(capabilities);
        capabilities.truncate(1);
    };
    world.publish_after(2, version(2, without_search)).await;
    world.publish_after(30, version(3, |capabilities| capabilities.truncate(1))).await;
    let page = world.page("/changes").await.text();
    let rows: Vec<&str> = page.split("<li><svg class=\"identicon\"").skip(1).collect();
    let skyhop: Vec<&&str> = rows.iter().filter(|row| row.contains("/sites/skyhop.example")).collect();
    assert_eq!(skyhop.len(), 4, "{page}");
    assert!(skyhop[1].contains("1 capability removed: Search flights"), "{}", skyhop[1]);
    assert!(skyhop[1].contains("may break callers"), "{}", skyhop[1]);
    assert!(skyhop[2].contains("Now needs API key: Search flights"), "{}", skyhop[2]);
    assert!(skyhop[3].contains("published a manifest with 2 capabilities"), "{}", skyhop[3]);
    assert!(skyhop[0].contains("The document changed, but no capability"), "{}", skyhop[0]);
    assert!(page.matches("<h2 class=\"day\">").count() >= 2, "grouped by day");
    let compared = skyhop[2].split("href=\"").find(|part| part.starts_with("/manifests/")).unwrap();
    let address = compared.split('"').next().unwrap().replace("&amp;", "&").replace("&#38;", "&");
    let compared = world.get(&address).await.json();
    assert_eq!(compared["changed"][0]["native_id"], "search_flights");
    assert_eq!(compared["removed"], json!([]), "these two versions, not the latest ones");
}

#[tokio::test]
async fn page_of_an_unknown_site_offers_to_add_it() {
    let world = World::new().await;
    let page = world.page("/sites/nowhere.example").await;
    assert_eq!(page.status, StatusCode::NOT_FOUND);
    let text = page.text();
    assert!(text.contains("action=\"/sites\"") && text.contains("value=\"nowhere.example\""), "{text}");
    let request = Request::post("/sites")
        .header("accept", "text/html")
        .header("content-type", "application/x-www-form-urlencoded");
    let added = world.send(request.body(Body::from("domain=nowhere.example")).unwrap()).await;
    assert_eq!((added.status, added.header("location")), (StatusCode::SEE_OTHER, "/sites/nowhere.example"));
    let waiting = world.page("/sites/nowhere.example").await.text();
    assert!(waiting.contains("In the queue") && waiting.contains("waiting for its first visit"), "{waiting}");
}

#[tokio::test]
async fn recheck_that_is_too_early_returns_an_explanation() {
    let world = World::new().await;
    let request = Request::post("/sites/skyhop.example/recheck").header("accept", "text/html");
    let first = world.send(request.body(Body::empty()).unwrap()).await;
    let request = Request::post("/sites/skyhop.example/recheck").header("accept", "text/html");
    let second = world.send(request.body(Body::empty()).unwrap()).await;
    let refused = if first.status == StatusCode::TOO_MANY_REQUESTS { first } else { second };
    assert_eq!(refused.status, StatusCode::TOO_MANY_REQUESTS);
    let text = refused.text();
    assert!(text.contains("Not yet") && text.contains("less than ten minutes ago"), "{text}");
    assert!(text.contains("href=\"/sites/skyhop.example\""), "{text}");
}

#[tokio::test]
async fn types_of_single_sites_are_listed_after_the_shared_ones() {
    let world = World::new().await;
    let page = world.page("/semantic-types").await.text();
    let (shared, own) = page.split_once("<h2>Types of single sites</h2>").unwrap_or_else(|| panic!("{page}"));
    assert!(shared.contains("title=\"weather:forecast\">Weather forecast</a>"), "{shared}");
    assert!(own.contains("title=\"evil:") && !shared.contains("title=\"evil:"), "{own}");
}

#[tokio::test]
async fn page_of_a_site_leads_with_its_name_and_a_capability_has_a_line_on_trust() {
    let world = World::new().await;
    let page = world.page("/sites/skyhop.example").await.text();
    let (_, identity) = page.split_once("class=\"identity\"").unwrap();
    let heading =
        identity.split("<h1 dir=\"auto\">").nth(1).and_then(|rest| rest.split("</h1>").next()).unwrap();
    assert_eq!(heading, "<bdi>Skyhop</bdi>");
    assert!(identity.contains("<p class=\"domain\">skyhop.example</p>"), "{page}");
    let nameless = world.page("/sites/shy.example").await.text();
    assert!(nameless.contains("<h1 dir=\"auto\">shy.example</h1>"), "{nameless}");
    let capability = world.page(&capability_path(&documents::skyhop())).await.text();
    let trust =
        capability.split("<p class=\"small soft trust\">").nth(1).unwrap().split("</p>").next().unwrap();
    assert!(
        trust.starts_with("The address is the site&#39;s own · owner not verified · may cost money"),
        "{trust}"
    );
}

#[tokio::test]
async fn page_of_a_site_shows_that_a_requested_visit_is_due() {
    let world = World::new().await;
    let request = Request::post("/sites/weather.example/recheck").header("accept", "text/html");
    let requested = world.send(request.body(Body::empty()).unwrap()).await;
    assert_eq!(requested.status, StatusCode::SEE_OTHER, "{}", requested.text());
    let page = world.page("/sites/weather.example").await.text();
    assert!(page.contains("A visit is due") && page.contains("/assets/live."), "{page}");
}

#[tokio::test]
async fn result_of_a_stored_document_has_an_address() {
    let world = World::new().await;
    let url = documents::skyhop().url;
    let page = world.page(&format!("/validate?url={url}")).await;
    assert_eq!(page.status, StatusCode::OK);
    let text = page.text();
    assert!(text.contains("To share this result") || text.contains("is stored"), "{text}");
}

#[tokio::test]
async fn result_pages_link_to_the_previous_and_the_next_page() {
    let world = World::new().await;
    let first = world.page("/search?format=awp&limit=1").await.text();
    assert!(first.contains("rel=\"next\"") && !first.contains("rel=\"prev\""), "{first}");
    let second = world.page("/search?format=awp&limit=1&page=2").await.text();
    assert!(second.contains("rel=\"prev\""), "{second}");
    let card = |page: &str| page.split("<article").nth(1).unwrap().split("</h3>").next().unwrap().to_owned();
    assert_ne!(card(&first), card(&second));
    assert_eq!(world.get("/search?format=awp&page=2").await.status, StatusCode::BAD_REQUEST, "pages only");
}

#[tokio::test]
async fn search_without_results_suggests_filters_to_remove() {
    let world = World::new().await;
    let page = world.page("/search?q=book+flight&format=woa").await.text();
    assert!(page.contains("without <b>Format: WoA</b>"), "{page}");
    assert!(page.contains("<aside class=\"facets\"") && page.contains("aria-current=\"true\""), "{page}");
}

#[tokio::test]
async fn crawl_is_served_as_json_and_as_a_page() {
    let world = World::new().await;
    let state = world.get("/crawl").await.json();
    assert_eq!(state["hours"].as_array().unwrap().len(), 24);
    assert_eq!(state["minutes"].as_array().unwrap().len(), 60);
    assert!(state["queue"]["due"].is_u64() && state["workers"].is_array(), "{state}");
    let visits = state["visits"].as_array().unwrap();
    assert_eq!(visits.len(), 4);
    assert_eq!((&visits[0]["site"], &visits[0]["end"]), (&json!("secretive.example"), &json!("completed")));
    assert_eq!(
        visits[0]["outcomes"],
        json!([{"value": "found", "count": 1}, {"value": "not_found", "count": 1}])
    );
    let page = world.page("/crawl").await.text();
    assert!(page.contains("Sites blocked") && !page.contains("opted out"), "{page}");
    let latest = page.split("Latest visits").nth(1).unwrap();
    let first = latest.split("<li data-key").nth(1).unwrap();
    for part in ["href=\"/sites/secretive.example\"", "1 document fetched", "3 requests in 3.0 s", "<time"] {
        assert!(first.contains(part), "no {part} in {first}");
    }
    for part in ["Requests a second, last 5 minutes", "No site is due."] {
        assert!(page.contains(part), "no {part} in {page}");
    }
    assert!(page.contains("Visits in the last hour, by the minute (UTC)"));
}

/// The number comes from the visits, so it includes requests for robots.txt, which are not fetches of documents.
#[tokio::test]
async fn the_page_of_the_crawl_counts_every_request() {
    let world = World::new().await;
    let hours = (machine_now() - fetched_at()).num_hours();
    let offer = documents::offer("library.example", "Shelf list", "Lists a book on a shelf.", "data:query");
    world.publish_after(hours, offer).await;
    let state = world.get("/crawl").await.json();
    assert_eq!(state["visits"][0]["requests"], 3, "{state}");
    let page = world.page("/crawl").await.text();
    assert!(page.contains("3 requests in the last 24 hours"), "{page}");
}

#[tokio::test]
async fn facets_list_values_of_relevant_results_first() {
    let world = World::new().await;
    for number in 0..4 {
        let site = format!("library{number}.example");
        world.publish(documents::offer(&site, "Shelf list", "Lists a book on a shelf.", "data:query")).await;
    }
    world.reindex().await;
    let found = world.get("/search?q=book+seat&facets=semantic_type").await.json();
    assert!(found["relevant"].as_u64().unwrap() < found["total"].as_u64().unwrap(), "{found}");
    let values = found["facets"]["semantic_type"].as_array().unwrap();
    assert_eq!(values[0], json!({"value": "travel:flight-booking", "count": 1, "relevant": 1}), "{values:?}");
    let others = values.iter().find(|value| value["value"] == "data:query").unwrap();
    assert_eq!((&others["count"], &others["relevant"]), (&json!(4), &json!(0)), "over all results");
    let by_name = world.get("/search?q=book+seat&facets=semantic_type&sort=name").await.json();
    let first = &by_name["facets"]["semantic_type"][0];
    assert_eq!(*first, json!({"value": "data:query", "count": 4}), "the most frequent first");
    let page = world.page("/search?q=book+seat").await.text();
    let types = page.split("<h2>What it does</h2>").nth(1).unwrap().split("</section>").next().unwrap();
    let (listed, folded) = types.split_once("<details>").unwrap();
    assert!(listed.contains("Book a flight") && !listed.contains("Query data"), "{types}");
    assert!(folded.contains("Query data"), "{types}");
    let (relevant, total) = (found["relevant"].as_u64().unwrap(), found["total"].as_u64().unwrap());
    assert!(page.contains(&format!("<b>{relevant} result")), "only the relevant ones are counted: {page}");
    assert!(page.contains(&format!("{} less related</summary>", total - relevant)), "{page}");
}

#[tokio::test]
async fn search_page_shows_cards_facets_and_the_next_link() {
    let world = World::new().await;
    let page = world.page("/search?q=book+flight").await.text();
    let first = page.split("<article").nth(1).unwrap();
    for part in [
        "<mark>Book</mark> seat",
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
    let facets = page.matches("\"/search?q=book+flight&").count();
    assert!(facets > 1, "values that only some results have: {page}");
    assert!(page.contains("value=\"book flight\""));
}

#[tokio::test]
async fn empty_results_page_suggests_types() {
    let world = World::new().await;
    let page = world.page("/search?q=zzzunheardof&format=awp").await.text();
    assert!(page.to_lowercase().contains("nothing") && !page.contains("<article"));
    assert!(page.contains("semantic_type=weather%3Aforecast"), "{page}");
}

#[tokio::test]
async fn capability_page_shows_the_call_and_its_source() {
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
    assert!(
        !page.contains("awp.contact.missing"),
        "findings about other parts of the document are not shown"
    );
}

#[tokio::test]
async fn site_page_shows_fetches_findings_and_opt_out() {
    let world = World::new().await;
    let page = world.page("/sites/skyhop.example").await.text();
    for part in [
        "manifest read",
        "not there",
        "HTTP 404",
        "Allow: /",
        "its own marker",
        "awp.contact.missing",
        "Next visit",
        "nothing changed for a week",
        "User-agent: agentdex",
    ] {
        assert!(page.contains(part), "no {part}");
    }
}

#[tokio::test]
async fn site_and_its_page_say_why_a_document_is_quarantined() {
    let world = World::new().await;
    let reason = "quarantined on 2026-01-02 03:04 UTC: the process that read it ended without a result";
    let url = "https://skyhop.example/.well-known/agents.json";
    world.quarantine(url, reason).await;
    let site = world.get("/sites/skyhop.example").await.json();
    let fetch = &site["visits"][0]["fetches"][0];
    assert_eq!((&fetch["outcome"], &fetch["reason"]), (&json!("quarantined"), &json!(reason)), "{site}");
    let page = world.page("/sites/skyhop.example").await.text();
    assert!(
        page.contains(reason) && page.matches("quarantined").count() > page.matches(reason).count(),
        "{page}"
    );
}

#[tokio::test]
async fn assets_have_fingerprints_and_are_immutable() {
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

/// Submits the form that adds a site, as a browser sends it.
async fn added(world: &World, typed: &str) -> crate::answer::Answer {
    let body = url::form_urlencoded::Serializer::new(String::new()).append_pair("domain", typed).finish();
    let request = Request::post("/sites")
        .header("accept", "text/html")
        .header("content-type", "application/x-www-form-urlencoded");
    world.send(request.body(Body::from(body)).unwrap()).await
}

#[tokio::test]
async fn form_that_adds_a_site_accepts_a_url_and_keeps_invalid_input() {
    let world = World::new().await;
    let answer = added(&world, "https://copied.example/").await;
    assert_eq!((answer.status, answer.header("location")), (StatusCode::SEE_OTHER, "/sites/copied.example"));
    let refused = added(&world, "my <b>site").await;
    assert_eq!(refused.status, StatusCode::BAD_REQUEST);
    let text = refused.text();
    assert_harmless("/sites", &text);
    assert!(text.contains("This is not the name of a site") && text.contains("action=\"/sites\""), "{text}");
}

#[tokio::test]
async fn grouped_results_are_counted() {
    let world = World::new().await;
    for number in 0..3 {
        let site = format!("copy{number}.example");
        let said = "Draws a horoscope for a birthday, with the houses and the aspects of the planets.";
        let mut manifest = documents::offer(&site, "Draw horoscope", said, "data:query");
        manifest.capabilities[0].invocation.url = Some("https://copy0.example/api".to_owned());
        world.publish(manifest).await;
    }
    world.reindex().await;
    let page = world.page("/search?q=horoscope").await.text();
    assert_eq!(page.matches("<article").count(), 1, "{page}");
    assert!(page.contains("<b>3 results</b> for <bdi>horoscope</bdi>, 2 grouped as copies"), "{page}");
    let apart = world.page("/search?q=horoscope&group_by=none").await.text();
    assert!(!apart.contains("grouped as copies") && apart.matches("<article").count() == 3, "{apart}");
}

#[tokio::test]
async fn search_for_an_unknown_domain_links_only_to_its_page() {
    let world = World::new().await;
    let found = world.get("/search?q=nowhere.example").await.json();
    let page = world.page("/search?q=nowhere.example").await.text();
    assert!(page.contains("nowhere.example is not listed yet"), "{page}");
    assert!(page.contains("<button type=\"submit\">Add nowhere.example</button>"), "{page}");
    assert!(!page.contains("What is offered"), "other types say nothing about the site: {page}");
    assert_eq!(page.matches("<article").count(), 0, "unrelated results: {found}");
    let known = world.page("/search?q=skyhop.example").await.text();
    assert!(known.contains("<article") && known.contains("href=\"/sites/skyhop.example\""), "{known}");
}

#[tokio::test]
async fn validator_page_explains_the_result_and_the_next_step() {
    let world = World::new().await;
    let declares_a_site = "{\"awp_version\": \"0.1\", \"domain\": \"skyhop.example\", \"intent\": \"Fly.\",\n \"actions\": [{\"id\": \"order\"}]}";
    let page = validated(&world, declares_a_site, "").await;
    assert!(page.contains("breaks its specification in") && page.contains("What next"), "{page}");
    assert!(!page.contains("origin.mismatch"), "no address was given: {page}");
    assert!(page.contains("breaks a requirement") && !page.contains(": major"), "{page}");
    let elsewhere = validated(&world, declares_a_site, "https://other.example/agent.json").await;
    assert!(elsewhere.contains("origin.mismatch"), "{elsewhere}");
}

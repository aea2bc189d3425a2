//! Tests of visits to well-behaved sites: requests, stored documents, and the requests of the next visit.

#![expect(clippy::unwrap_used, reason = "a failed test should show the line")]

mod support;

use manifest::SiteName;
use manifest::model::PolicyChoice;
use policy::claim::{self, Claim, ClaimAuthority, Proof};
use policy::{FetchOutcome, Status, VisitEnd};
use support::{AWP, Crawl, now, shop};
use testweb::{Answer, Host};

#[tokio::test]
async fn first_visit_requests_robots_first_and_finds_the_manifest() {
    let crawl = Crawl::of([shop()]).await;
    let summary = crawl.pass().await;
    assert_eq!((summary.sites_visited, summary.manifests_added, summary.failed), (1, 1, 0), "{summary:?}");
    assert_eq!(summary.manifests.get("awp"), Some(&1));
    assert_eq!(summary.capabilities, 1);
    let paths = crawl.paths("shop.example");
    assert_eq!(paths.first().map(String::as_str), Some("/robots.txt"));
    assert_eq!(paths.last().map(String::as_str), Some("/"));
    assert_eq!(paths.len(), policy::plan::PATHS.len() + 1, "{paths:?}");
    assert_eq!(u64::try_from(paths.len()).unwrap(), summary.requests);
    let report = crawl.report("shop.example").await;
    assert_eq!(report.visits[0].end, VisitEnd::Completed);
    assert_eq!(crawl.outcome("shop.example", "/agents.json").await, FetchOutcome::NotFound);
}

#[tokio::test]
async fn every_request_identifies_the_crawler() {
    let crawl = Crawl::of([shop()]).await;
    crawl.pass().await;
    for hit in crawl.hits("shop.example") {
        let request = hit.request;
        assert!(request.user_agent.as_deref().unwrap().starts_with("agentdex/"), "{request:?}");
        assert_eq!(request.accept.as_deref(), Some(policy::plan::ACCEPT));
        assert_eq!(request.accept_encoding.as_deref(), Some("gzip"));
        assert_eq!((request.referer, request.cookie), (None, None));
    }
    let connections = crawl
        .hits("shop.example")
        .iter()
        .map(|hit| hit.connection)
        .collect::<std::collections::BTreeSet<_>>();
    assert_eq!(connections.len(), 1, "a visit uses one connection");
}

#[tokio::test]
async fn second_visit_is_conditional_and_changes_nothing() {
    let mut crawl = Crawl::of([shop()]).await;
    crawl.pass().await;
    let summary = crawl.pass_again().await;
    assert_eq!((summary.sites_visited, summary.manifests_added, summary.manifests_changed), (1, 0, 0));
    let hits = crawl.hits("shop.example");
    // the copy of robots.txt is used, the manifest is revalidated, one more path is tried
    assert_eq!(hits.len(), 2, "{hits:?}");
    let manifest = hits.iter().find(|hit| hit.path == "/agent.json").unwrap();
    assert_eq!(manifest.status, Some(304));
    assert!(manifest.request.if_none_match.is_some());
    assert_eq!(crawl.outcome("shop.example", "/agent.json").await, FetchOutcome::NotModified);
}

/// After a rolled-back release, the URL redirects to the older file, whose server would confirm the date of the newer file.
#[tokio::test]
async fn validators_are_sent_only_to_the_target_that_sent_them() {
    let file = |name: &str| Answer::json(AWP.replace("buy_book", name)).etag("\"1\"");
    let site = shop()
        .redirect("/agent.json", 302, "/v2.json")
        .route("/v2.json", file("sell_book"))
        .route("/v1.json", file("lend_book"));
    let mut crawl = Crawl::of([site]).await;
    crawl.pass().await;
    let sent_to = |crawl: &Crawl, path: &str| {
        let hits = crawl.hits("shop.example");
        let hit = hits.into_iter().rfind(|hit| hit.path == path).expect("a request");
        (hit.request.if_none_match, hit.status)
    };
    crawl.pass_again().await;
    assert_eq!(sent_to(&crawl, "/v2.json"), (Some("\"1\"".to_owned()), Some(304)));
    crawl.web.set("shop.example", "/agent.json", Answer::redirect(302, "/v1.json"));
    assert_eq!(crawl.pass_again().await.manifests_changed, 1);
    assert_eq!(sent_to(&crawl, "/v1.json"), (None, Some(200)));
    crawl.pass_again().await;
    assert_eq!(sent_to(&crawl, "/v1.json"), (Some("\"1\"".to_owned()), Some(304)));
}

#[tokio::test]
async fn stores_a_version_per_change_and_removes_after_two_misses() {
    let mut crawl = Crawl::of([shop()]).await;
    crawl.pass().await;
    crawl.web.set_file(
        "shop.example",
        "/agent.json",
        "application/json",
        AWP.replace("buy_book", "sell_book"),
    );
    let summary = crawl.pass_again().await;
    assert_eq!((summary.manifests_added, summary.manifests_changed), (0, 1), "{summary:?}");
    crawl.web.remove("shop.example", "/agent.json");
    assert_eq!(crawl.pass_again().await.manifests_removed, 0);
    assert_eq!(crawl.pass_again().await.manifests_removed, 1);
}

/// A document that is cut off in one response may be an accident. If it is cut off in two visits in a row, this is what the site publishes.
#[tokio::test]
async fn a_document_that_cannot_be_read_once_does_not_replace_its_manifest() {
    let mut crawl = Crawl::of([shop()]).await;
    crawl.pass().await;
    let set = |crawl: &Crawl, body: &str| {
        crawl.web.set_file("shop.example", "/agent.json", "application/json", body.to_owned());
    };
    let capabilities = async |crawl: &Crawl| {
        let site = SiteName::parse("shop.example").unwrap();
        let stored = crawl.store.manifests_of_site(&site).await.unwrap();
        let [stored] = stored.as_slice() else { panic!("{} manifests", stored.len()) };
        (stored.manifest.capabilities.len(), stored.status)
    };
    let cut = [2, 3].map(|part| AWP.get(..AWP.len() / part).expect("ASCII"));
    for body in cut {
        set(&crawl, body);
        let summary = crawl.pass_again().await;
        assert_eq!((summary.manifests_changed, summary.manifests_removed), (0, 0), "{summary:?}");
        assert_eq!(capabilities(&crawl).await, (1, Status::Stale));
        let fetch = crawl.fetch("shop.example", "/agent.json").await;
        assert_eq!(fetch.outcome, FetchOutcome::NotAManifest);
        assert!(fetch.reason.unwrap().contains("may have been cut off"));
        set(&crawl, AWP);
        crawl.pass_again().await;
        assert_eq!(capabilities(&crawl).await, (1, Status::Fresh));
    }
    for (body, changed, expected) in [
        (cut[0], 0, (1, Status::Stale)),
        (cut[1], 1, (0, Status::Invalid)),
        (cut[0], 1, (0, Status::Invalid)),
        (AWP, 1, (1, Status::Fresh)),
    ] {
        set(&crawl, body);
        assert_eq!(crawl.pass_again().await.manifests_changed, changed, "{body}");
        assert_eq!(capabilities(&crawl).await, expected, "{body}");
    }
}

#[tokio::test]
async fn does_not_request_fresh_documents() {
    let manifest = Answer::json(AWP).max_age(3_600);
    let mut crawl = Crawl::of([shop().route("/agent.json", manifest)]).await;
    crawl.pass().await;
    crawl.pass_again().await;
    assert!(!crawl.paths("shop.example").contains(&"/agent.json".to_owned()));
    assert_eq!(crawl.outcome("shop.example", "/agent.json").await, FetchOutcome::Fresh);
}

/// Nothing is stored of a path at which no file was received.
#[tokio::test]
async fn requests_a_missing_path_again_whatever_the_lifetime_of_its_404() {
    const PATH: &str = "/.well-known/agent.json";
    let mut crawl = Crawl::of([shop().route(PATH, Answer::status(404).max_age(3_600))]).await;
    crawl.pass().await;
    crawl.web.set_file("shop.example", PATH, "application/json", AWP);
    for _ in 0..10 {
        crawl.pass_again().await;
        if crawl.paths("shop.example").contains(&PATH.to_owned()) {
            return;
        }
    }
    panic!("{PATH} was not requested again");
}

#[tokio::test]
async fn robots_rules_apply_to_every_path() {
    let host = shop().robots("User-agent: agentdex\nDisallow: /agent.json\nDisallow: /.well-known/\n");
    let crawl = Crawl::of([host]).await;
    let summary = crawl.pass().await;
    assert_eq!(summary.manifests_added, 0);
    let paths = crawl.paths("shop.example");
    assert!(
        paths.iter().all(|path| path != "/agent.json" && !path.starts_with("/.well-known/")),
        "{paths:?}"
    );
    let denied = crawl.fetch("shop.example", "/agent.json").await;
    assert_eq!(denied.outcome, FetchOutcome::RobotsDenied);
    assert!(denied.robots_rule.unwrap().contains("Disallow: /agent.json"));
}

#[tokio::test]
async fn requests_only_robots_of_a_site_that_denies_search() {
    let crawl =
        Crawl::of([shop().robots("User-agent: *\nAllow: /\nContent-Signal: search=no, ai-train=no\n")]).await;
    assert_eq!(crawl.pass().await.manifests_added, 0);
    assert_eq!(crawl.paths("shop.example"), ["/robots.txt"]);
    let denied = Crawl::of([shop().robots("User-agent: *\nContent-Usage: /agent.json search=n\n")]).await;
    assert_eq!(denied.pass().await.manifests_added, 0);
    assert!(!denied.paths("shop.example").contains(&"/agent.json".to_owned()));
    let fetch = denied.fetch("shop.example", "/agent.json").await;
    assert_eq!(fetch.outcome, FetchOutcome::RobotsDenied);
    assert!(fetch.robots_rule.unwrap().contains("Content-Usage: /agent.json search=n"));
}

#[tokio::test]
async fn a_response_that_denies_search_removes_its_manifest() {
    let mut crawl = Crawl::of([shop()]).await;
    assert_eq!(crawl.pass().await.manifests_added, 1);
    // the body changes, because a 304 need not repeat the header
    let denying = Answer::json(AWP.replace("buy_book", "sell_book")).header("content-usage", "search=n");
    crawl.web.set("shop.example", "/agent.json", denying);
    assert_eq!(crawl.pass_again().await.manifests_removed, 1);
    let fetch = crawl.fetch("shop.example", "/agent.json").await;
    assert_eq!(fetch.outcome, FetchOutcome::RobotsDenied);
    assert!(fetch.reason.unwrap().contains("Content-Usage"));
}

#[tokio::test]
async fn a_document_that_denies_search_is_not_kept() {
    let ahp = |search: bool| {
        serde_json::json!({"ahp": "0.1", "modes": ["MODE1"], "endpoints": {"content": "/rooms.md"},
            "content_signals": {"search": search},
            "capabilities": [{"name": "rooms", "description": "Lists the rooms", "mode": "MODE1"}]})
        .to_string()
    };
    let path = "/.well-known/agent.json";
    let mut crawl = Crawl::of([Host::new("shop.example").file(path, "application/json", ahp(true))]).await;
    assert_eq!(crawl.pass().await.manifests_added, 1);
    crawl.web.set_file("shop.example", path, "application/json", ahp(false));
    assert_eq!(crawl.pass_again().await.manifests_removed, 1);
    let fetch = crawl.fetch("shop.example", path).await;
    assert_eq!(fetch.outcome, FetchOutcome::RobotsDenied);
    assert!(fetch.reason.unwrap().contains("content signals"));
    crawl.web.set_file("shop.example", path, "application/json", ahp(true));
    assert_eq!(crawl.pass_again().await.manifests_added, 1);
}

#[tokio::test]
async fn keeps_training_preferences_of_robots_and_responses() {
    let host =
        shop().robots("User-agent: *\nContent-Usage: train-ai=y\nContent-Usage: /agent.json train-ai=n\n");
    let site = SiteName::parse("shop.example").unwrap();
    let by_robots = Crawl::of([host]).await;
    by_robots.pass().await;
    let stored = by_robots.store.manifests_of_site(&site).await.unwrap();
    assert_eq!(stored[0].training_policy(), PolicyChoice::Deny);
    let denying = Answer::json(AWP).header("content-signal", "ai-train=no, search=yes");
    let mut by_header = Crawl::of([shop().route("/agent.json", denying)]).await;
    by_header.pass().await;
    let stored = by_header.store.manifests_of_site(&site).await.unwrap();
    assert_eq!(stored[0].training, PolicyChoice::Deny);
    by_header.web.set_file("shop.example", "/agent.json", "application/json", AWP.to_owned());
    by_header.pass_again().await;
    assert_eq!(by_header.outcome("shop.example", "/agent.json").await, FetchOutcome::NotModified);
    let stored = by_header.store.manifests_of_site(&site).await.unwrap();
    assert_eq!(stored[0].training, PolicyChoice::Deny, "a 304 does not repeat the header");
    let other = AWP.replace("buy_book", "sell_book");
    by_header.web.set_file("shop.example", "/agent.json", "application/json", other);
    by_header.pass_again().await;
    let stored = by_header.store.manifests_of_site(&site).await.unwrap();
    assert_eq!(stored[0].training, PolicyChoice::Unset);
}

/// The server answers 304 to every conditional request, so the crawler must send an unconditional one.
#[tokio::test]
async fn a_manifest_is_unchanged_after_a_temporary_denial() {
    let denials = [
        Answer::json(AWP.replace("buy_book", "sell_book")).header("content-usage", "search=n"),
        Answer::status(403),
    ];
    let site = SiteName::parse("shop.example").unwrap();
    for denial in denials {
        let path = "/.well-known/agent.json";
        let mut crawl = Crawl::of([Host::new("shop.example").file(path, "application/json", AWP)]).await;
        assert_eq!(crawl.pass().await.manifests_added, 1);
        crawl.web.set("shop.example", path, denial);
        for _ in 0..3 {
            crawl.pass_again().await;
        }
        assert!(crawl.store.manifests_of_site(&site).await.unwrap().is_empty());
        crawl.web.set_file("shop.example", path, "application/json", AWP.to_owned());
        // seven visits request every path
        for _ in 0..7 {
            crawl.pass_again().await;
        }
        assert_eq!(crawl.store.manifests_of_site(&site).await.unwrap().len(), 1);
    }
}

#[tokio::test]
async fn training_denied_for_a_redirect_is_denied_for_its_target() {
    let host = shop()
        .robots("User-agent: *\nContent-Usage: /agents.json train-ai=n\n")
        .redirect("/agents.json", 302, "https://shop.example/moved.json")
        .file("/moved.json", "application/json", AWP.replace("buy_book", "sell_book"));
    let crawl = Crawl::of([host]).await;
    crawl.pass().await;
    let stored = crawl.store.manifests_of_site(&SiteName::parse("shop.example").unwrap()).await.unwrap();
    let of = |path: &str| {
        let found = stored.iter().find(|stored| stored.manifest.url.path() == path);
        found.map(|stored| stored.training)
    };
    assert_eq!(
        (of("/agents.json"), of("/agent.json")),
        (Some(PolicyChoice::Deny), Some(PolicyChoice::Unset))
    );
}

#[tokio::test]
async fn requests_only_robots_of_a_site_that_forbids_everything() {
    let mut crawl = Crawl::of([shop()]).await;
    crawl.pass().await;
    crawl.web.set("shop.example", "/robots.txt", Answer::text("User-agent: *\nDisallow: /\n"));
    let site = SiteName::parse("shop.example").unwrap();
    let closed = Crawl::of([shop().robots("User-agent: *\nDisallow: /\n")]).await;
    closed.pass().await;
    assert_eq!(closed.paths("shop.example"), ["/robots.txt"]);
    assert_eq!(closed.report("shop.example").await.visits[0].end, VisitEnd::RobotsDenied);
    assert!(closed.store.manifests_of_site(&site).await.unwrap().is_empty());
    // the stored robots.txt that allows the path is used until it expires
    crawl.pass_again().await;
    assert_eq!(crawl.outcome("shop.example", "/agent.json").await, FetchOutcome::NotModified);
}

#[tokio::test]
async fn follows_redirects_on_the_site_and_seeds_others() {
    let host = Host::new("shop.example")
        .redirect("/agent.json", 301, "https://www.shop.example/agent.json")
        .redirect("/agents.json", 302, "https://other.example/agents.json")
        .redirect("/.well-known/agent.json", 301, "http://shop.example/agent.json")
        .redirect("/llms.txt", 301, "https://10.0.0.1/llms.txt")
        .redirect("/agents.txt", 301, "/agents.txt");
    let www = Host::new("www.shop.example").file("/agent.json", "application/json", AWP);
    let crawl = Crawl::of([host, www, Host::new("other.example")]).await;
    crawl.pass().await;
    let moved = crawl.fetch("shop.example", "/agent.json").await;
    assert_eq!(moved.outcome, FetchOutcome::Found);
    assert_eq!(moved.final_url.unwrap().as_str(), "https://www.shop.example/agent.json");
    assert_eq!(crawl.paths("www.shop.example").first().map(String::as_str), Some("/robots.txt"));
    assert_eq!(crawl.outcome("shop.example", "/agents.json").await, FetchOutcome::RedirectedAway);
    assert_eq!(crawl.outcome("shop.example", "/.well-known/agent.json").await, FetchOutcome::RedirectRefused);
    assert_eq!(crawl.outcome("shop.example", "/llms.txt").await, FetchOutcome::RedirectRefused);
    assert_eq!(crawl.outcome("shop.example", "/agents.txt").await, FetchOutcome::RedirectLoop);
}

#[tokio::test]
async fn follows_links_of_homepages_headers_and_agentmaps() {
    let page = "<html><head><link rel='agent-manifest' href='/hidden/awp.json'></head><body></body></html>";
    let host = Host::new("shop.example")
        .robots("User-agent: *\nAllow: /\nAgentmap: /maps/agents.json\n")
        .route("/", Answer::html(page).header("link", "</hidden/two.json>; rel=\"agent-manifest\""))
        .file("/hidden/awp.json", "application/json", AWP)
        .file("/hidden/two.json", "application/json", AWP.replace("buy_book", "lend_book"))
        .file("/maps/agents.json", "application/json", AWP.replace("buy_book", "map_book"));
    let crawl = Crawl::of([host]).await;
    let summary = crawl.pass().await;
    assert_eq!(summary.manifests_added, 3, "{summary:?}");
    for (path, discovery) in [
        ("/hidden/awp.json", manifest::Discovery::HtmlLink),
        ("/hidden/two.json", manifest::Discovery::LinkHeader),
        ("/maps/agents.json", manifest::Discovery::Agentmap),
    ] {
        assert_eq!(crawl.fetch("shop.example", path).await.discovery, discovery, "{path}");
    }
}

#[tokio::test]
async fn the_card_below_an_endpoint_of_the_site_is_requested_once() {
    let card = r#"{"$schema": "https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json",
        "name": "example.shop/books", "version": "1.0.0", "description": "Sells books.",
        "remotes": [{"type": "streamable-http", "url": "https://shop.example/tools/mcp"}]}"#;
    let named = |endpoint: &str| {
        AWP.replace(
            r#""actions""#,
            &format!(r#""protocols":{{"mcp":{{"endpoint":"{endpoint}"}}}},"actions""#),
        )
    };
    let shop = Host::new("shop.example")
        .file("/agent.json", "application/json", named("https://shop.example/tools/mcp"))
        .route("/tools/mcp/server-card", Answer::ok("application/mcp-server-card+json", card));
    let refusing = Host::new("closed.example").robots("User-agent: *\nDisallow: /tools/\n").file(
        "/agent.json",
        "application/json",
        named("https://closed.example/tools/mcp"),
    );
    let elsewhere = Host::new("other.example").file(
        "/agent.json",
        "application/json",
        named("https://shop.example/tools/mcp"),
    );
    let crawl = Crawl::of([shop, refusing, elsewhere]).await;
    crawl.pass().await;
    let requests = |host: &str, path: &str| crawl.paths(host).iter().filter(|hit| *hit == path).count();
    assert_eq!(requests("shop.example", "/tools/mcp/server-card"), 1);
    assert_eq!(requests("shop.example", "/tools/mcp"), 0, "the server is not called");
    assert_eq!(crawl.outcome("shop.example", "/tools/mcp/server-card").await, FetchOutcome::Found);
    assert_eq!(requests("closed.example", "/tools/mcp/server-card"), 0);
    assert_eq!(crawl.outcome("closed.example", "/tools/mcp/server-card").await, FetchOutcome::RobotsDenied);
}

#[tokio::test]
async fn reads_entries_in_the_markup_of_the_home_page() {
    let entry = |publisher: &str| {
        format!(
            r#"<script type="application/ld+json">{{"@context": "https://agenticresourcediscovery.org/context/v1",
            "identifier": "urn:air:{publisher}:agent:clerk", "displayName": "Clerk", "type": "text/markdown",
            "url": "https://{publisher}/clerk.md", "representativeQueries": ["a book", "a pen"]}}</script>"#
        )
    };
    let page = format!(
        "<html><head><title>x</title></head><body>{}{}</body></html>",
        entry("shop.example"),
        entry("other.example")
    );
    let host = Host::new("shop.example")
        .robots("User-agent: *\nAllow: /\nAgentmap: /maps/agents.json\n")
        .file("/maps/agents.json", "application/json", AWP)
        .route("/", Answer::html(page));
    let crawl = Crawl::of([host]).await;
    let summary = crawl.pass().await;
    assert_eq!(summary.manifests_added, 2, "{summary:?}");
    assert_eq!(crawl.fetch("shop.example", "/").await.outcome, FetchOutcome::Found);
    let urls: Vec<_> = crawl.paths("shop.example");
    assert!(!urls.iter().any(|path| path.contains("clerk")), "a page of text is not followed: {urls:?}");
}

#[tokio::test]
async fn requests_seeded_urls() {
    let host = Host::new("shop.example").file("/special/agent.json", "application/json", AWP);
    let web = testweb::Web::builder().host(host).start().await.unwrap();
    let crawl = Crawl::on(web, "https://shop.example/special/agent.json").await;
    let summary = crawl.pass().await;
    assert_eq!(summary.manifests_added, 1, "{:?}", crawl.paths("shop.example"));
}

#[tokio::test]
async fn finds_nothing_due_in_a_second_run() {
    let crawl = Crawl::of([shop()]).await;
    crawl.pass().await;
    crawl.web.log().clear();
    let summary = crawl.pass().await;
    assert_eq!((summary.sites_visited, summary.requests), (0, 0));
    assert_eq!(crawl.web.log().hit_count(), 0);
}

#[tokio::test]
async fn plans_the_next_visit_after_a_visit() {
    let crawl = Crawl::of([shop(), Host::new("empty.example")]).await;
    crawl.pass().await;
    let days = |report: store::SiteReport| (report.summary.next_visit_at.unwrap() - now()).num_hours() / 24;
    assert!(days(crawl.report("shop.example").await) < 2);
    assert!(days(crawl.report("empty.example").await) >= 11);
}

/// The line that proves a claim to `shop.example` with the key whose bytes all have this value, as this instance issues it.
async fn proof(crawl: &Crawl, key: u8) -> String {
    crawl.store.claim_secret_keep("secret").await.unwrap();
    let site = SiteName::parse("shop.example").unwrap();
    let issued = ClaimAuthority::new("secret").issue(&site, &[key; policy::key::KEY_BYTES]);
    format!("{}{}\n", claim::TOKEN_PREFIX, issued.token)
}

async fn request_check(crawl: &Crawl) {
    let site = SiteName::parse("shop.example").unwrap();
    assert!(crawl.store.claim_ask(&site, now(), now()).await.unwrap());
}

async fn claim_to_shop(crawl: &Crawl) -> Claim {
    crawl.report("shop.example").await.state.claim.unwrap()
}

#[tokio::test]
async fn a_file_proves_a_claim_and_is_requested_before_everything_else() {
    let mut crawl = Crawl::of([shop()]).await;
    let line = proof(&crawl, 1).await;
    let fresh_for_long = Answer::text(format!("# our proof\n{line}")).max_age(86_400);
    crawl.web.set("shop.example", claim::FILE_PATH, fresh_for_long);
    crawl.pass().await;
    assert!(!crawl.paths("shop.example").contains(&claim::FILE_PATH.to_owned()), "nobody requested a check");
    request_check(&crawl).await;
    crawl.pass_again().await;
    // the copy of robots.txt is used
    assert_eq!(crawl.paths("shop.example").first().map(String::as_str), Some(claim::FILE_PATH));
    let owner = claim_to_shop(&crawl).await.owner.unwrap();
    assert_eq!(owner.proof, Proof::File);

    // the owner's proof is checked in each visit; another key replaces it immediately
    crawl.web.set_file("shop.example", claim::FILE_PATH, "text/plain", proof(&crawl, 2).await);
    crawl.pass_again().await;
    let replaced = claim_to_shop(&crawl).await.owner.unwrap();
    assert_ne!(replaced.key_hash, owner.key_hash);
    crawl.web.remove("shop.example", claim::FILE_PATH);
    crawl.pass_again().await;
    let missed = claim_to_shop(&crawl).await;
    assert!(
        missed.owner.unwrap().missing_since.is_some(),
        "the missing proof is recorded, and the ownership ends after two weeks"
    );
    let finding = missed.finding.unwrap();
    assert!(finding.contains("_agentdex.shop.example has no TXT record"), "{finding}");
    assert!(finding.contains("404"), "{finding}");
    assert_eq!(crawl.outcome("shop.example", "/agent.json").await, FetchOutcome::NotModified);
}

/// A visit that sends no request only applies the stored robots.txt or delay again.
#[tokio::test]
async fn a_visit_without_a_request_does_not_lengthen_the_interval() {
    let closed = Host::new("keepout.example").robots("User-agent: *\nDisallow: /\n");
    let busy = Answer::retry_after(503, "3600");
    let mut crawl = Crawl::of([closed, Host::new("drowsy.example").route("/robots.txt", busy)]).await;
    crawl.pass().await;
    let in_row = async |crawl: &Crawl| {
        let (keepout, drowsy) = (crawl.report("keepout.example").await, crawl.report("drowsy.example").await);
        (keepout.state.negatives_in_row, drowsy.state.failures_in_row)
    };
    assert_eq!(in_row(&crawl).await, (1, 1));
    let next = async |crawl: &Crawl, site: &str| crawl.report(site).await.summary.next_visit_at.unwrap();
    let sites = ["keepout.example", "drowsy.example"];
    let planned = [next(&crawl, sites[0]).await, next(&crawl, sites[1]).await];
    for _ in 0..3 {
        tokio::time::sleep(std::time::Duration::from_millis(400)).await;
        assert_eq!(crawl.pass_again().await.requests, 0);
        assert_eq!(in_row(&crawl).await, (1, 1));
        for (site, planned) in sites.iter().zip(planned) {
            let next = next(&crawl, site).await;
            assert!(next <= planned, "the next visit to {site} is postponed from {planned} to {next}");
        }
    }
}

/// The copy of robots.txt is used until the end of the delay, although other copies that cannot be read are used for an hour.
#[tokio::test]
async fn a_site_that_asks_for_ten_minutes_is_visited_after_ten_minutes() {
    let busy = Answer::retry_after(503, "600");
    let mut crawl = Crawl::of([Host::new("busy.example").route("/robots.txt", busy)]).await;
    crawl.pass().await;
    let first = crawl.report("busy.example").await;
    let planned = first.summary.next_visit_at.unwrap();
    let expires_at = first.state.hosts[0].robots.as_ref().unwrap().expires_at;
    assert!(expires_at <= planned && (planned - now()).num_minutes() < 10, "{expires_at} {planned}");
    assert_eq!(crawl.pass_again().await.requests, 0);
    let again = crawl.report("busy.example").await;
    assert_eq!(again.summary.next_visit_at, Some(planned));
    assert_eq!(again.visits[0].next_visit.reason, "it asked for a delay (Retry-After)");
}

/// One page shows that a site still answers every path with a page, because its earlier visit showed it for several paths.
#[tokio::test]
async fn a_site_with_a_page_at_every_path_keeps_its_status_until_a_path_is_missing() {
    let page = || Answer::html("<!doctype html><p>welcome");
    let mut crawl = Crawl::of([Host::new("spa.example").robots("").catch_all(page())]).await;
    crawl.pass().await;
    for _ in 0..2 {
        crawl.pass_again().await;
        let report = crawl.report("spa.example").await;
        assert_eq!(report.visits[0].end, VisitEnd::CatchAll);
        assert_eq!(report.summary.status, Status::CatchAll);
    }
}

#[tokio::test]
async fn a_site_with_an_owner_is_visited_in_time_to_find_the_proof() {
    let mut crawl = Crawl::of([shop()]).await;
    crawl.config.revisit_every = Some(std::time::Duration::from_hours(200 * 24));
    let days = async |crawl: &Crawl| {
        let at = crawl.report("shop.example").await.summary.next_visit_at.unwrap();
        ((at - now()).num_hours() + 12) / 24
    };
    crawl.pass().await;
    assert_eq!(days(&crawl).await, 200, "after the configured interval");
    let line = proof(&crawl, 1).await;
    crawl.web.set_file("shop.example", claim::FILE_PATH, "text/plain", line);
    request_check(&crawl).await;
    crawl.pass_again().await;
    assert_eq!(days(&crawl).await, 50, "after half of the time for which a proof is valid");
    crawl.web.remove("shop.example", claim::FILE_PATH);
    crawl.pass_again().await;
    assert!(claim_to_shop(&crawl).await.owner.unwrap().missing_since.is_some());
    assert_eq!(days(&crawl).await, 7, "after half of the time for which the proof may be missing");
}

/// Hosts below the domain may belong to others.
#[tokio::test]
async fn a_delay_of_another_host_ends_neither_the_visit_nor_the_proof() {
    let apex = shop().robots("User-agent: *\nAllow: /\nAgentmap: https://api.shop.example/agents/one.json\n");
    let api = Host::new("api.shop.example").file("/agents/one.json", "application/json", AWP);
    let mut crawl = Crawl::of([apex, api]).await;
    let line = proof(&crawl, 1).await;
    crawl.web.set_file("shop.example", claim::FILE_PATH, "text/plain", line);
    request_check(&crawl).await;
    crawl.pass().await;
    assert!(claim_to_shop(&crawl).await.owner.is_some());
    crawl.web.set("api.shop.example", "/agents/one.json", Answer::retry_after(429, "3600"));
    crawl.pass_again().await;
    let report = crawl.report("shop.example").await;
    assert_eq!((report.visits[0].end, report.state.not_before), (VisitEnd::Completed, None));
    assert_eq!(crawl.paths("shop.example").first().map(String::as_str), Some(claim::FILE_PATH));
    assert_eq!(claim_to_shop(&crawl).await.owner.unwrap().missing_since, None);
}

#[tokio::test]
async fn a_claim_is_checked_only_where_robots_txt_allows_it() {
    let robots = format!("User-agent: *\nDisallow: {}\n", claim::FILE_PATH);
    let crawl = Crawl::of([shop().robots(&robots)]).await;
    let line = proof(&crawl, 1).await;
    crawl.web.set_file("shop.example", claim::FILE_PATH, "text/plain", line);
    request_check(&crawl).await;
    assert_eq!(crawl.pass().await.manifests_added, 1);
    assert!(!crawl.paths("shop.example").contains(&claim::FILE_PATH.to_owned()));
    let claim = claim_to_shop(&crawl).await;
    assert!(
        claim.finding.as_deref().unwrap().contains("Disallow: /.well-known/agentdex-claim.txt"),
        "{claim:?}"
    );
    assert_eq!(claim.owner, None);
}

#[tokio::test]
async fn a_visit_that_ends_early_reports_that_no_proof_was_found() {
    let page = Answer::html("<!doctype html><title>shop</title>");
    let shop = || Host::new("shop.example");
    let (before, of_file) = ("the visit ended before", "/.well-known/agentdex-claim.txt could not be used");
    for (host, expected, why) in [
        (shop().robots("User-agent: *\nDisallow: /\n"), before, "robots.txt forbids everything"),
        (shop().route("/robots.txt", Answer::status(500)), before, "robots.txt is unreachable"),
        (shop().catch_all(page), of_file, "a page for every path"),
        (shop().robots("").catch_all(Answer::status(403)), of_file, "denials"),
        (shop().robots("").catch_all(Answer::status(429)), of_file, "too many requests"),
    ] {
        let crawl = Crawl::of([host]).await;
        proof(&crawl, 1).await;
        request_check(&crawl).await;
        crawl.pass().await;
        let is_requested = crawl.paths("shop.example").contains(&claim::FILE_PATH.to_owned());
        assert_eq!(is_requested, expected == of_file, "{why}");
        let claim = claim_to_shop(&crawl).await;
        assert!(claim.checked_at.is_some() && claim.owner.is_none(), "{why}: {claim:?}");
        let finding = claim.finding.unwrap();
        assert!(
            finding.contains("no proof was found: _agentdex.shop.example has no TXT record"),
            "{finding}"
        );
        assert!(finding.contains(expected), "{why}: {finding}");
    }
}

/// A visit ends after three denials or two errors. Responses to requests for the file of a claim are not among these.
#[tokio::test]
async fn responses_for_the_file_of_a_claim_do_not_count_for_other_paths() {
    for (claimed, other) in [(403, 403), (500, 500)] {
        let host = shop().route(claim::FILE_PATH, Answer::status(claimed)).route("/", Answer::status(other));
        let host = if other == 403 { host.route("/agents.json", Answer::status(other)) } else { host };
        let crawl = Crawl::of([host]).await;
        proof(&crawl, 1).await;
        request_check(&crawl).await;
        assert_eq!(crawl.pass().await.manifests_added, 1);
        assert_eq!(crawl.report("shop.example").await.visits[0].end, VisitEnd::Completed, "{claimed}");
        assert!(claim_to_shop(&crawl).await.checked_at.is_some());
    }
}

#[tokio::test]
async fn only_the_site_itself_proves_a_claim() {
    let line = proof(&Crawl::of([shop()]).await, 1).await;
    let elsewhere = |url: &str| Answer::redirect(302, url);
    let file = format!("https://www.shop.example{}", claim::FILE_PATH);
    let of_another_site = {
        let site = SiteName::parse("other.example").unwrap();
        let issued = ClaimAuthority::new("secret").issue(&site, &[1; policy::key::KEY_BYTES]);
        format!("{}{}\n", claim::TOKEN_PREFIX, issued.token)
    };
    for (answer, is_proof, why) in [
        (elsewhere(&file), true, "www. is the site"),
        (elsewhere("https://users.shop.example/.well-known/agentdex-claim.txt"), false, "another host"),
        (elsewhere("https://www.shop.example/uploads/claim.txt"), false, "another path"),
        (elsewhere("https://other.example/.well-known/agentdex-claim.txt"), false, "another site"),
        (Answer::html(format!("<!doctype html>\n{line}")), false, "a page"),
        (Answer::text(format!("Latest messages:\n{line}")), false, "a file with text of others"),
        (Answer::text(of_another_site), false, "the token of another site"),
        (Answer::text(format!("{}{line}", "x".repeat(20_000))), false, "beyond the limit of bytes"),
    ] {
        let hosts = [shop().route(claim::FILE_PATH, answer)].into_iter().chain(
            ["www.shop.example", "users.shop.example", "other.example"].map(|name| {
                let host = Host::new(name).file(claim::FILE_PATH, "text/plain", line.clone());
                host.file("/uploads/claim.txt", "text/plain", line.clone())
            }),
        );
        let web = testweb::Web::builder().hosts(hosts).start().await.unwrap();
        let crawl = Crawl::on(web, "shop.example").await;
        proof(&crawl, 1).await;
        request_check(&crawl).await;
        crawl.pass().await;
        let claim = claim_to_shop(&crawl).await;
        assert_eq!(claim.owner.is_some(), is_proof, "{why}: {claim:?}");
        assert!(crawl.hits("other.example").is_empty());
    }
}

/// A visit reads at most 2,100 links of a document, and follows at most 50 new ones.
#[tokio::test]
async fn further_links_of_an_unchanged_catalog_are_read_from_its_stored_copy() {
    let catalog = |links: &mut dyn Iterator<Item = String>| {
        let entry = |(number, url)| {
            format!(
                r#"{{"identifier":"urn:air:shop.example:agent:{number}","displayName":"Agent","type":"application/a2a-agent-card+json","url":"{url}"}}"#
            )
        };
        let entries: Vec<String> = links.enumerate().map(entry).collect();
        format!(
            r#"{{"specVersion":"1.0","host":{{"displayName":"Shop"}},"entries":[{}]}}"#,
            entries.join(",")
        )
    };
    let to_sites = (0..2_200).map(|number| format!("https://s{}.example/{number}.json", number % 20));
    let to_own = (0..90).map(|number| format!("https://shop.example/own/{number}.json"));
    for (mut links, own_followed) in [
        (
            Box::new(to_sites.chain(["https://shop.example/own/1.json".to_owned()]))
                as Box<dyn Iterator<Item = String>>,
            [0, 1, 0],
        ),
        (Box::new(to_own), [50, 40, 0]),
    ] {
        let host =
            shop().route("/.well-known/ai-catalog.json", Answer::json(catalog(&mut links)).etag("\"1\""));
        let mut crawl = Crawl::of([host]).await;
        for (visit, followed) in own_followed.into_iter().enumerate() {
            crawl.pass_again().await;
            let hits = crawl.hits("shop.example");
            let statuses: Vec<Option<u16>> = hits
                .iter()
                .filter(|hit| hit.path == "/.well-known/ai-catalog.json")
                .map(|hit| hit.status)
                .collect();
            assert_eq!(statuses, [Some(if visit == 0 { 200 } else { 304 })], "visit {visit}");
            let new = hits.iter().filter(|hit| hit.path.starts_with("/own/")).count();
            let paths: Vec<&str> = hits.iter().map(|hit| hit.path.as_str()).collect();
            assert!(
                if visit == 0 { new == followed } else { new >= followed },
                "visit {visit}: {new} of {followed} in {paths:?}"
            );
        }
    }
}

/// The catalog of a site also lists agents of its users. It is read before the home page, whose links show which documents are the site's
/// own.
#[tokio::test]
async fn a_document_that_only_the_catalog_lists_is_not_published_by_the_site() {
    let catalog = r#"{"specVersion":"1.0","host":{"displayName":"Shop"},"entries":[
        {"identifier":"urn:air:shop.example:own","displayName":"Own","type":"application/agent+json","url":"https://shop.example/own.json"},
        {"identifier":"urn:air:shop.example:user","displayName":"User","type":"application/agent+json","url":"https://shop.example/u/x.json"}]}"#;
    for (link, expected) in
        [("", vec![]), ("<link rel='agent-manifest' href='/own.json'>", vec!["/agent.json", "/own.json"])]
    {
        let host = shop()
            .file("/.well-known/ai-catalog.json", "application/json", catalog)
            .file("/own.json", "application/json", AWP.replace("Sell books", "Sell all books"))
            .file("/u/x.json", "application/json", AWP.replace("Sell books", "Sell nothing"))
            .route("/", Answer::html(format!("<html><head>{link}</head></html>")));
        let crawl = Crawl::of([host]).await;
        assert_eq!(crawl.pass().await.manifests_added, 4);
        let site = SiteName::parse("shop.example").unwrap();
        let shared = crawl.store.capabilities_shared_of_site(&site).await.unwrap();
        let mut members = Vec::new();
        for member in shared.iter().flat_map(|shared| &shared.members) {
            let stored = crawl.store.manifest_find(&member.manifest).await.unwrap().expect("a manifest");
            members.push(stored.manifest.url.path().to_owned());
        }
        members.sort_unstable();
        assert_eq!(members, expected, "users may have written what the catalog alone lists");
    }
}

//! agentdex crawls itself: the test web serves the self-descriptions of a running API over TLS, and the test searches the crawled
//! capabilities.

use std::collections::BTreeSet;

use reqwest::header;
use serde_json::Value;
use testweb::{Answer, Host, Web};

use crate::world::{Api, Backend, World};

/// The public name of the API.
const HOST: &str = "dex.test";

/// The paths of the self-descriptions, with the expected dialects.
const PATHS: [(&str, Option<&str>); 15] = [
    ("/robots.txt", None),
    ("/", None),
    ("/agent.json", Some("awp")),
    ("/.well-known/agent.json", Some("atp")),
    ("/.well-known/woa.json", Some("woa")),
    ("/.well-known/agents.json", Some("agents_json")),
    ("/agents.txt", Some("agents_txt")),
    ("/.well-known/agent-manifest.json", Some("arws")),
    ("/tools/openapi.json", Some("openapi")),
    ("/.well-known/agent-card.json", Some("a2a")),
    ("/.well-known/ai-catalog.json", Some("ard")),
    ("/.well-known/ard.json", Some("ard")),
    ("/.well-known/api-catalog", Some("api_catalog")),
    ("/.well-known/llms.txt", Some("llms_txt")),
    ("/llms.txt", Some("llms_txt")),
];

/// The tools that every dialect with capabilities must list.
const TOOLS: [&str; 7] = [
    "find_capability",
    "get_capability",
    "explore",
    "get_site",
    "validate_manifest",
    "registry_stats",
    "submit_site",
];

pub(crate) async fn crawls_its_own_descriptions_without_findings(backend: Backend) {
    let world = World::start(backend, Web::builder().host(Host::new(HOST))).await;
    world.index();
    let described = world.api_with(&["--public-url", &format!("https://{HOST}")]).await;
    for (path, _) in PATHS {
        world.web.set(HOST, path, served(&described, path).await);
    }
    // A seed with a path gets every path of the table in its first visit.
    world.write_seeds([format!("https://{HOST}/agent.json").as_str()]);
    world.crawl(&[]);
    world.index();
    let api = world.api().await;
    let site = api.get(&format!("/sites/{HOST}")).await;
    for (path, format) in PATHS {
        let Some(format) = format else { continue };
        assert_read_as(&site, path, format);
    }
    let found: BTreeSet<String> =
        api.search(&format!("site={HOST}&format=awp&limit=100")).await.into_iter().collect();
    assert_eq!(found, TOOLS.iter().map(|name| (*name).to_owned()).collect());
    let best = api.search("q=search+what+web+sites+declare+that+agents+can+do").await;
    assert_eq!(
        best.first().map(|name| name.replace('-', "_")).as_deref(),
        Some("find_capability"),
        "{best:?}"
    );
    world.assert_polite();
}

/// The response of the API, with the headers that concern descriptions.
async fn served(api: &Api, path: &str) -> Answer {
    let answer = api.try_get(path).await.unwrap();
    assert!(answer.status().is_success(), "{path}: {}", answer.status());
    let text =
        |name: header::HeaderName| answer.headers().get(name).map(|value| value.to_str().unwrap().to_owned());
    let media_type = text(header::CONTENT_TYPE).unwrap();
    let names = [
        header::CACHE_CONTROL,
        header::ACCESS_CONTROL_ALLOW_ORIGIN,
        header::ACCESS_CONTROL_ALLOW_METHODS,
        header::ACCESS_CONTROL_ALLOW_HEADERS,
        header::LINK,
    ];
    let copied: Vec<(header::HeaderName, String)> =
        names.into_iter().filter_map(|name| Some((name.clone(), text(name)?))).collect();
    #[expect(clippy::disallowed_methods, reason = "a client of the local api")]
    let body = answer.bytes().await.unwrap();
    copied.iter().fold(Answer::ok(&media_type, body), |made, (name, value)| made.header(name.as_str(), value))
}

#[track_caller]
fn assert_read_as(site: &Value, path: &str, format: &str) {
    let url = format!("https://{HOST}{path}");
    let resource =
        site["resources"].as_array().unwrap().iter().find(|resource| resource["url"] == url.as_str());
    let manifest = &resource.unwrap_or_else(|| panic!("{path} was not fetched: {site:#}"))["manifest"];
    assert_eq!(manifest["format"], format, "{path}: {manifest:#}");
    let serious: Vec<&Value> = manifest["findings"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|finding| finding["severity"] == "must" || finding["severity"] == "should")
        .collect();
    assert!(serious.is_empty(), "{path}: {serious:#?}");
    let names: Vec<String> = manifest["capabilities"]
        .as_array()
        .unwrap()
        .iter()
        .map(|capability| capability["native_id"].as_str().unwrap().replace('-', "_"))
        .collect();
    // The tools of the ARWS manifest are the operations of the OpenAPI document. The API catalogue links to that document too, so it is a
    // separate manifest, and each capability is stored once.
    if ["awp", "atp", "woa", "agents_json", "agents_txt", "openapi"].contains(&format) {
        // ARWS requires credentials for tools that write, so the manifest lists only tools that read.
        for tool in TOOLS.into_iter().filter(|tool| format != "openapi" || *tool != "submit_site") {
            assert!(names.iter().any(|name| name.starts_with(tool)), "{path} lacks {tool}: {names:?}");
        }
    }
}

//! Tests of manifests that another document completes. The documents are requested separately and read together, and either of them may
//! change.

#![expect(clippy::unwrap_used, reason = "a failed test should show the line")]

#[path = "support/moved.rs"]
mod moved;
#[expect(dead_code, reason = "each test program uses its own part")]
mod support;

use chrono::TimeDelta;
use manifest::{ContentHash, ManifestId, ManifestUrl, READER_VERSION, SiteName};
use moved::{dump, moved, row};
use policy::delay::day_of;
use policy::{FetchOutcome, Status};
use runtime::ReaderProgram;
use serde_json::{Value, json};
use store::{ClockWrite, FeedPosition, ReadAttempt, ReadAttemptWrite, Store, StoredManifest};
use support::{Crawl, now};
use testweb::{Answer, Host, Web};

const WHOLE: &str = "/.well-known/agent-manifest.json";
const PART: &str = "/openapi.json";

fn whole(name: &str) -> String {
    format!(
        r#"{{"arws_version":"1.0","name":"{name}","description":"A museum","tools":"https://museum.example{PART}"}}"#
    )
}

fn part(operation: &str) -> String {
    format!(
        r#"{{"openapi":"3.1.0","info":{{"title":"Museum","version":"1"}},"servers":[{{"url":"https://museum.example/api"}}],
        "paths":{{"/tickets":{{"post":{{"operationId":"{operation}","summary":"Tickets","responses":{{"200":{{"description":"ok"}}}}}}}}}}}}"#
    )
}

async fn museum() -> Crawl {
    let host = Host::new("museum.example").robots("").file(WHOLE, "application/json", whole("Museum")).file(
        PART,
        "application/json",
        part("buy_ticket"),
    );
    Crawl::of([host]).await
}

async fn manifest(crawl: &Crawl) -> manifest::Manifest {
    let url = ManifestUrl::parse(&format!("https://museum.example{WHOLE}")).unwrap();
    crawl.store.manifest_find(&ManifestId::of(&url)).await.unwrap().expect("the manifest").manifest
}

async fn operations(crawl: &Crawl) -> Vec<String> {
    manifest(crawl).await.capabilities.iter().map(|capability| capability.native_id.clone()).collect()
}

#[tokio::test]
async fn merges_a_manifest_with_its_part() {
    let crawl = museum().await;
    let summary = crawl.pass().await;
    assert_eq!((summary.manifests_added, summary.capabilities), (1, 1), "{summary:?}");
    assert_eq!(operations(&crawl).await, ["buy_ticket"]);
    let fetched = crawl.fetch("museum.example", PART).await;
    assert_eq!(fetched.outcome, FetchOutcome::Found);
    assert!(fetched.linked_from.unwrap().as_str().ends_with(WHOLE));
}

#[tokio::test]
async fn unchanged_documents_take_two_conditional_requests() {
    let mut crawl = museum().await;
    crawl.pass().await;
    let summary = crawl.pass_again().await;
    assert_eq!((summary.manifests_added, summary.manifests_changed), (0, 0), "{summary:?}");
    let hits = crawl.hits("museum.example");
    for path in [WHOLE, PART] {
        assert_eq!(hits.iter().find(|hit| hit.path == path).unwrap().status, Some(304), "{path}");
    }
    assert_eq!(operations(&crawl).await, ["buy_ticket"]);
}

#[tokio::test]
async fn reads_a_changed_part_with_the_stored_manifest() {
    let mut crawl = museum().await;
    crawl.pass().await;
    crawl.web.set_file("museum.example", PART, "application/json", part("return_ticket"));
    let summary = crawl.pass_again().await;
    assert_eq!(summary.manifests_changed, 1, "{summary:?}");
    assert_eq!(crawl.outcome("museum.example", WHOLE).await, FetchOutcome::NotModified);
    assert_eq!(operations(&crawl).await, ["return_ticket"]);
    assert_eq!(crawl.pass_again().await.manifests_changed, 0);
}

#[tokio::test]
async fn reads_a_changed_manifest_with_the_stored_part() {
    let mut crawl = museum().await;
    crawl.pass().await;
    crawl.web.set_file("museum.example", WHOLE, "application/json", whole("Grand Museum"));
    let summary = crawl.pass_again().await;
    assert_eq!(summary.manifests_changed, 1, "{summary:?}");
    assert_eq!(crawl.outcome("museum.example", PART).await, FetchOutcome::NotModified);
    assert_eq!(operations(&crawl).await, ["buy_ticket"]);
    assert_eq!(manifest(&crawl).await.name.as_deref(), Some("Grand Museum"));
}

#[tokio::test]
async fn keeps_capabilities_while_a_part_fails() {
    let mut crawl = museum().await;
    crawl.pass().await;
    crawl.web.set_file("museum.example", WHOLE, "application/json", whole("Grand Museum"));
    crawl.web.set("museum.example", PART, Answer::status(500));
    crawl.pass_again().await;
    assert_eq!(operations(&crawl).await, ["buy_ticket"]);
}

/// The host of the part asked for a delay, so that a visit that finds another version of the manifest does not request the part.
#[tokio::test]
async fn keeps_capabilities_while_a_part_is_not_requested() {
    let whole = |name: &str| whole(name).replace("//museum.example/openapi", "//api.museum.example/openapi");
    let museum = Host::new("museum.example").robots("").file(WHOLE, "application/json", whole("Museum"));
    let api = Host::new("api.museum.example").robots("").file(PART, "application/json", part("buy_ticket"));
    let web = Web::builder().hosts([museum, api]).start().await.unwrap();
    let mut crawl = Crawl::on(web, "museum.example").await;
    crawl.pass().await;
    assert_eq!(operations(&crawl).await, ["buy_ticket"]);
    crawl.web.set_file("museum.example", WHOLE, "application/json", whole("Grand Museum"));
    let delayed = ClockWrite {
        host: "api.museum.example".parse().unwrap(),
        address: None,
        next_ok_at: now() + TimeDelta::days(1),
        not_before: None,
        requests_add: 0,
        day: day_of(now()),
        progress: None,
        member: None,
        lease: None,
    };
    crawl.store.clocks_save(&[delayed]).await.unwrap();
    let summary = crawl.pass_again().await;
    assert_eq!(manifest(&crawl).await.name.as_deref(), Some("Grand Museum"), "{summary:?}");
    assert_eq!(operations(&crawl).await, ["buy_ticket"], "from the stored copy");
    assert!(crawl.web.log().hits_on("api.museum.example").is_empty());
}

#[tokio::test]
async fn a_denied_part_leaves_the_manifest() {
    let mut crawl = museum().await;
    crawl.pass().await;
    let denied = Answer::json(part("sell_ticket")).header("content-usage", "search=n");
    crawl.web.set("museum.example", PART, denied);
    crawl.pass_again().await;
    let outcome = crawl.outcome("museum.example", PART).await;
    assert!(operations(&crawl).await.is_empty(), "{outcome}");
    crawl.web.set_file("museum.example", WHOLE, "application/json", whole("Grand Museum"));
    crawl.pass_again().await;
    assert!(operations(&crawl).await.is_empty(), "a new version does not contain it either: {outcome}");
}

#[tokio::test]
async fn training_denied_for_a_part_is_denied_for_the_manifest() {
    let host = Host::new("museum.example").robots("").file(WHOLE, "application/json", whole("Museum"));
    let denying = Answer::json(part("buy_ticket")).header("content-usage", "train-ai=n");
    let mut crawl = Crawl::of([host.route(PART, denying)]).await;
    crawl.pass().await;
    for _ in 0..2 {
        let site = SiteName::parse("museum.example").unwrap();
        let stored = crawl.store.manifests_of_site(&site).await.unwrap();
        assert_eq!(stored[0].training, manifest::model::PolicyChoice::Deny);
        crawl.pass_again().await;
    }
}

/// A document to which a manifest only links may belong to a customer: it says nothing about the manifest.
#[tokio::test]
async fn training_denied_by_a_linked_document_is_not_denied_for_the_manifest() {
    for answer in [Answer::status(404), Answer::json("{\"remark\": 1}")] {
        let links = catalog(&[WHOLE, "/users/c.json"]);
        let host = Host::new("museum.example")
            .robots("")
            .file(WHOLE, "application/json", whole("Museum"))
            .file(PART, "application/json", part("buy_ticket"))
            .file(CATALOG, "application/linkset+json", links)
            .route("/users/c.json", answer.header("content-usage", "train-ai=n"));
        let mut crawl = Crawl::of([host]).await;
        crawl.pass().await;
        for _ in 0..2 {
            let site = SiteName::parse("museum.example").unwrap();
            let stored = crawl.store.manifests_of_site(&site).await.unwrap();
            let linking =
                stored.iter().find(|stored| stored.manifest.url.as_str().ends_with(CATALOG)).unwrap();
            assert_eq!(linking.training, manifest::model::PolicyChoice::Unset);
            crawl.pass_again().await;
        }
    }
}

#[tokio::test]
async fn reports_missing_documents_of_tools() {
    let page = Answer::html("<!doctype html><title>No</title>".to_owned());
    let elsewhere = Answer::redirect(302, "https://other.example/tools.json");
    let denied = format!("User-agent: *\nDisallow: {PART}\n");
    let cases = [
        (Answer::status(404), ""),
        (Answer::status(500), ""),
        (page, ""),
        (elsewhere, ""),
        (Answer::ok("application/json", part("buy_ticket")), denied.as_str()),
    ];
    for (answer, robots) in cases {
        let host =
            Host::new("museum.example").robots(robots).file(WHOLE, "application/json", whole("Museum"));
        let crawl = Crawl::of([host.route(PART, answer)]).await;
        crawl.pass().await;
        let findings = manifest(&crawl).await.findings;
        assert!(findings.iter().any(|finding| finding.code == "arws.tools.absent"), "{findings:?}");
    }
}

/// A museum whose robots.txt names the part first.
async fn museum_with_a_shared_part() -> Crawl {
    let robots = format!("User-agent: *\nAllow: /\nAgentmap: https://museum.example{PART}\n");
    let host = Host::new("museum.example")
        .robots(&robots)
        .file(WHOLE, "application/json", whole("Museum"))
        .file(PART, "application/json", part("buy_ticket"));
    Crawl::of([host]).await
}

#[tokio::test]
async fn completes_a_manifest_by_a_part_that_is_linked_elsewhere() {
    let mut crawl = museum_with_a_shared_part().await;
    let summary = crawl.pass().await;
    assert_eq!(summary.manifests_added, 2, "the description is also a manifest: {summary:?}");
    assert_eq!(operations(&crawl).await, ["buy_ticket"]);
    assert_eq!(crawl.pass_again().await.manifests_changed, 0);

    crawl.web.set_file("museum.example", PART, "application/json", part("return_ticket"));
    crawl.pass_again().await;
    assert_eq!(crawl.outcome("museum.example", WHOLE).await, FetchOutcome::NotModified);
    assert_eq!(operations(&crawl).await, ["return_ticket"]);

    crawl.web.set_file("museum.example", WHOLE, "application/json", whole("Grand Museum"));
    crawl.pass_again().await;
    assert_eq!(crawl.outcome("museum.example", PART).await, FetchOutcome::NotModified);
    assert_eq!(operations(&crawl).await, ["return_ticket"]);
    assert_eq!(manifest(&crawl).await.name.as_deref(), Some("Grand Museum"));
}

const CATALOG: &str = "/.well-known/api-catalog";

/// A catalog of the museum that links to these paths.
fn catalog(paths: &[&str]) -> String {
    let links: Vec<String> =
        paths.iter().map(|path| format!(r#"{{"href":"https://museum.example{path}"}}"#)).collect();
    format!(r#"{{"linkset":[{{"anchor":"https://museum.example/","service-desc":[{}]}}]}}"#, links.join(","))
}

/// A museum whose manifest names this document as a part, and whose catalog does not name it yet.
async fn museum_with_a_catalog(part: String) -> Crawl {
    let host = Host::new("museum.example")
        .robots("")
        .file(WHOLE, "application/json", whole("Museum"))
        .file(PART, "application/json", part)
        .file(CATALOG, "application/linkset+json", catalog(&[WHOLE]));
    Crawl::of([host]).await
}

#[tokio::test]
async fn a_part_that_is_later_named_as_a_manifest_is_read_as_one_without_a_change() {
    let mut crawl = museum_with_a_catalog(part("buy_ticket")).await;
    crawl.pass().await;
    assert!(crawl.fetch("museum.example", PART).await.linked_from.unwrap().as_str().ends_with(WHOLE));
    assert_eq!(crawl.pass_again().await.manifests_added, 0);
    let both = catalog(&[WHOLE, PART]);
    crawl.web.set_file("museum.example", CATALOG, "application/linkset+json", both);
    let summary = crawl.pass_again().await;
    assert_eq!(summary.manifests_added, 1, "{summary:?}");
    assert_eq!(operations(&crawl).await, ["buy_ticket"], "it still completes the other manifest");
    let summary = crawl.pass_again().await;
    assert_eq!((summary.manifests_added, summary.manifests_changed), (0, 0), "{summary:?}");
    let part: Vec<_> = crawl.hits("museum.example").into_iter().filter(|hit| hit.path == PART).collect();
    assert!(!part.is_empty() && part.iter().all(|hit| hit.status == Some(304)), "{part:?}");
}

#[tokio::test]
async fn a_part_that_is_not_a_manifest_is_not_downloaded_when_a_link_names_it_as_one() {
    let mut crawl = museum_with_a_catalog(r#"{"opening_hours":["9-17"]}"#.to_owned()).await;
    crawl.pass().await;
    let mut paths = vec![WHOLE.to_owned(), PART.to_owned()];
    for pass in 0..3 {
        // links are only added, because a lost link would cause full downloads of other documents
        paths.push(format!("{WHOLE}?pass={pass}"));
        let changed = catalog(&paths.iter().map(String::as_str).collect::<Vec<_>>());
        crawl.web.set_file("museum.example", CATALOG, "application/linkset+json", changed);
        crawl.pass_again().await;
        let part: Vec<_> = crawl.hits("museum.example").into_iter().filter(|hit| hit.path == PART).collect();
        assert!(!part.is_empty() && part.iter().all(|hit| hit.status == Some(304)), "{part:?}");
        assert_eq!(crawl.outcome("museum.example", PART).await, FetchOutcome::NotModified);
    }
}

/// A description of 4.5 MB.
fn large_part() -> String {
    let text = "x".repeat(60_000);
    let operation = |number: usize| {
        format!(
            r#""/a{number}":{{"post":{{"operationId":"o{number}","requestBody":{{"content":{{"application/json":{{"schema":
            {{"type":"object","properties":{{"p":{{"type":"string","default":"{text}"}}}}}}}}}}}},"responses":{{}}}}}}"#
        )
    };
    let paths: Vec<String> = (0..75).map(operation).collect();
    format!(
        r#"{{"openapi":"3.1.0","info":{{"title":"Museum","version":"1"}},"servers":[{{"url":"https://museum.example/api"}}],
        "paths":{{{}}}}}"#,
        paths.join(",")
    )
}

/// Manifests that are read with a part count towards the memory of their visit, like manifests without parts.
#[tokio::test]
async fn manifests_with_parts_share_the_memory_of_a_visit() {
    let paths: Vec<String> = (0..36).map(|number| format!("/manifest{number}.json")).collect();
    let lines: Vec<String> =
        paths.iter().map(|path| format!("Agentmap: https://museum.example{path}\n")).collect();
    let robots = format!("User-agent: *\nAllow: /\n{}", lines.concat());
    let mut host = Host::new("museum.example").robots(&robots).file(PART, "application/json", large_part());
    for path in &paths {
        host = host.file(path, "application/json", whole(path));
    }
    let crawl = Crawl::of([host]).await;
    crawl.pass().await;
    let mut outcomes = Vec::new();
    for path in &paths {
        let fetch = crawl.fetch("museum.example", path).await;
        outcomes.push((fetch.outcome, fetch.reason));
    }
    let refused = outcomes.iter().filter(|(outcome, _)| *outcome == FetchOutcome::NotReached).count();
    let too_much =
        "the documents of this site are together too large for one visit; a later visit reads this one";
    let said = outcomes.iter().filter(|(_, reason)| reason.as_deref() == Some(too_much)).count();
    assert!(refused > 0 && refused == said, "{outcomes:?}");
    assert!(outcomes.iter().any(|(outcome, _)| *outcome == FetchOutcome::Found), "{outcomes:?}");
}

/// The versions of the reader that read the manifests of the store.
async fn readers(store: &Store) -> Vec<u32> {
    let rows = dump(store).await.into_iter().filter_map(|line| row(&line));
    let manifests = rows.filter(|(table, _)| table == "manifest");
    manifests.map(|(_, values)| values[values.len() - 2].as_u64().unwrap().try_into().unwrap()).collect()
}

fn packed(bytes: &[u8]) -> Value {
    data_encoding::HEXLOWER.encode(&zstd::bulk::compress(bytes, 3).unwrap()).into()
}

fn unpacked(value: &Value) -> Vec<u8> {
    let bytes = data_encoding::HEXLOWER.decode(value.as_str().unwrap().as_bytes()).unwrap();
    zstd::decode_all(bytes.as_slice()).unwrap()
}

/// Moves a crawl to a database as an earlier version of the program left it, with the changes of that version to each manifest.
async fn read_by_an_earlier_version(crawl: &mut Crawl, change: impl Fn(&mut Value)) -> tempfile::TempDir {
    assert!(readers(&crawl.store).await.iter().all(|version| *version == READER_VERSION));
    moved(crawl, |table, values| {
        match table {
            "manifest" => {
                let column = values.len() - 2;
                values[column] = json!(READER_VERSION - 1);
            }
            "manifest_version" => {
                let mut model = serde_json::from_slice(&unpacked(&values[4])).unwrap();
                change(&mut model);
                values[4] = packed(&serde_json::to_vec(&model).unwrap());
            }
            _ => {}
        }
        true
    })
    .await
}

/// The reading without a change.
fn equal(_: &mut Value) {}

/// The reading of a version that found no capabilities.
fn without_capabilities(model: &mut Value) {
    model["capabilities"] = json!([]);
}

/// Moves a crawl to a database that has other bytes of a document: those that a server sends with the same ETag.
async fn stored_instead(crawl: &mut Crawl, before: &str, after: &str) -> tempfile::TempDir {
    let [from, to] = [before, after].map(|body| ContentHash::of(body.as_bytes()));
    moved(crawl, |table, values| {
        for value in values.iter_mut().filter(|value| value.as_str() == Some(from.as_str())) {
            *value = json!(to.as_str());
        }
        if table == "document" && values[0].as_str() == Some(to.as_str()) {
            values[1] = packed(after.as_bytes());
            values[2] = json!(after.len());
            values[4] = Value::Null;
        }
        true
    })
    .await
}

async fn stored(crawl: &Crawl, url: &str) -> StoredManifest {
    let id = ManifestId::of(&ManifestUrl::parse(url).unwrap());
    crawl.store.manifest_find(&id).await.unwrap().expect("the manifest")
}

/// The statuses of the responses for a path in the last pass.
fn statuses(crawl: &Crawl, host: &str, path: &str) -> Vec<Option<u16>> {
    let hits = crawl.hits(host);
    hits.iter().filter(|hit| hit.path == path).map(|hit| hit.status).collect()
}

#[tokio::test]
async fn a_later_reader_reads_unchanged_documents_again_without_a_further_request() {
    let mut crawl = museum().await;
    crawl.pass().await;
    let _dir = read_by_an_earlier_version(&mut crawl, without_capabilities).await;
    assert_eq!(operations(&crawl).await, Vec::<String>::new());
    let head = crawl.store.feed_head().await.unwrap();
    for round in 0..2 {
        crawl.pass_again().await;
        for path in [WHOLE, PART] {
            assert_eq!(statuses(&crawl, "museum.example", path), [Some(304)], "{path}");
        }
        let entries = crawl.store.feed_read(head, 9).await.unwrap();
        let reasons: Vec<_> = entries.iter().map(|entry| entry.reason.as_deref()).collect();
        assert_eq!(reasons, [Some("read_again")], "{round}");
        assert_eq!(readers(&crawl.store).await, [READER_VERSION]);
        assert_eq!(operations(&crawl).await, ["buy_ticket"], "with its part");
    }
}

#[tokio::test]
async fn a_later_reader_that_reads_the_same_changes_only_its_version() {
    let mut crawl = museum().await;
    crawl.pass().await;
    let _dir = read_by_an_earlier_version(&mut crawl, equal).await;
    let head = crawl.store.feed_head().await.unwrap();
    let models = async |store: &Store| -> Vec<Value> {
        let rows = dump(store).await.into_iter().filter_map(|line| row(&line));
        rows.filter(|(table, _)| table == "manifest_version").map(|(_, values)| values[4].clone()).collect()
    };
    let before = models(&crawl.store).await;
    crawl.pass_again().await;
    assert_eq!(readers(&crawl.store).await, [READER_VERSION]);
    assert_eq!(crawl.store.feed_read(head, 9).await.unwrap(), []);
    assert_eq!(models(&crawl.store).await, before);
}

/// `Cache-Control: no-store`: there is no copy to read, and every answer is whole.
#[tokio::test]
async fn a_later_reader_reads_what_is_not_stored_when_it_arrives() {
    let answer = Answer::json(support::AWP).etag("\"1\"").header("cache-control", "no-store");
    let mut crawl = Crawl::of([Host::new("shop.example").robots("").route("/agent.json", answer)]).await;
    crawl.pass().await;
    let _dir = read_by_an_earlier_version(&mut crawl, without_capabilities).await;
    for _ in 0..2 {
        crawl.pass_again().await;
        assert_eq!(statuses(&crawl, "shop.example", "/agent.json"), [Some(200)]);
    }
    assert_eq!(crawl.store.feed_read(FeedPosition(0), 9).await.unwrap().len(), 2, "added and read again");
}

/// A shop whose robots.txt lists this many documents.
fn shop_with(documents: usize, answer: impl Fn(String) -> Answer) -> Host {
    let lines: Vec<String> = (0..documents).map(|number| format!("Agentmap: /m/{number}.json")).collect();
    let lines = lines.join("\n");
    (0..documents).fold(
        Host::new("shop.example").robots(&format!("User-agent: *\nAllow: /\n{lines}")),
        |host, number| {
            let body = support::AWP.replace("buy_book", &format!("buy_{number}"));
            host.route(&format!("/m/{number}.json"), answer(body.replace("books", &number.to_string())))
        },
    )
}

#[tokio::test]
async fn a_visit_reads_twenty_outdated_documents_again() {
    const DOCUMENTS: usize = 25;
    let mut crawl = Crawl::of([shop_with(DOCUMENTS, |body| Answer::json(body).etag("\"1\""))]).await;
    assert_eq!(crawl.pass().await.manifests_added, DOCUMENTS as u64);
    let _dir = read_by_an_earlier_version(&mut crawl, without_capabilities).await;
    for expected in [20, DOCUMENTS, DOCUMENTS] {
        crawl.pass_again().await;
        let entries = crawl.store.feed_read(FeedPosition(0), 99).await.unwrap();
        let read_again = entries.iter().filter(|entry| entry.reason.as_deref() == Some("read_again"));
        assert_eq!(read_again.count(), expected);
    }
}

/// Fresh documents without a stored copy: there are no bytes to read, and nothing is requested.
#[tokio::test]
async fn documents_without_a_stored_copy_do_not_keep_others_from_being_read_again() {
    const DOCUMENTS: usize = 25;
    let mut crawl = Crawl::of([shop_with(DOCUMENTS, |body| Answer::json(body).max_age(86_400))]).await;
    assert_eq!(crawl.pass().await.manifests_added, DOCUMENTS as u64);
    crawl.pass_again().await;
    let _dir = read_by_an_earlier_version(&mut crawl, equal).await;
    let report = crawl.report("shop.example").await;
    let mut fetches = report.visits.first().expect("a visit").fetches.iter();
    let last = fetches.rfind(|fetch| fetch.outcome == FetchOutcome::Fresh).expect("a document");
    let known = report.state.resources.iter().find(|known| known.url == last.url).expect("a resource");
    let kept = known.content_hash.clone().unwrap();
    let is_dropped = |hash: &Value| hash.is_string() && hash.as_str() != Some(kept.as_str());
    let _without_copies = moved(&mut crawl, |table, values| {
        if table == "manifest_version" && is_dropped(&values[3]) {
            values[3] = Value::Null;
        }
        table != "document" || !is_dropped(&values[0])
    })
    .await;
    crawl.pass_again().await;
    crawl.pass_again().await;
    let current = readers(&crawl.store).await.into_iter().filter(|version| *version == READER_VERSION);
    assert_eq!(current.count(), 1);
}

#[tokio::test]
async fn a_document_that_only_the_later_reader_refuses_stays_as_it_was_read() {
    const URL: &str = "https://shop.example/agent.json";
    let mut crawl = Crawl::of([support::shop()]).await;
    crawl.pass().await;
    let _dir = read_by_an_earlier_version(&mut crawl, equal).await;
    let attempt = ReadAttempt {
        hash: ContentHash::of(support::AWP.as_bytes()),
        reader_version: READER_VERSION,
        site: SiteName::parse("shop.example").unwrap(),
        url: ManifestUrl::parse(URL).unwrap(),
        began_at: now(),
    };
    crawl.store.read_attempts_write(&[ReadAttemptWrite::Begin(attempt)]).await.unwrap();
    crawl.config.reader = Some(ReaderProgram { path: "/bin/false".into(), arguments: Vec::new() });
    let head = crawl.store.feed_head().await.unwrap();
    for _ in 0..2 {
        crawl.pass_again().await;
        assert_eq!(statuses(&crawl, "shop.example", "/agent.json"), [Some(304)]);
        assert_eq!(stored(&crawl, URL).await.status, Status::Fresh);
        assert_eq!(crawl.store.feed_read(head, 9).await.unwrap(), []);
    }
    assert_eq!(readers(&crawl.store).await, [READER_VERSION - 1]);
}

#[tokio::test]
async fn an_outdated_document_is_read_from_its_copy_after_an_error() {
    let mut crawl = Crawl::of([support::shop()]).await;
    crawl.pass().await;
    let _dir = read_by_an_earlier_version(&mut crawl, equal).await;
    crawl.web.set("shop.example", "/agent.json", Answer::status(500));
    crawl.pass_again().await;
    assert_eq!(crawl.outcome("shop.example", "/agent.json").await, FetchOutcome::ServerError);
    crawl.web.set_file("shop.example", "/agent.json", "application/json", support::AWP);
    crawl.pass_again().await;
    assert_eq!(statuses(&crawl, "shop.example", "/agent.json"), [Some(304)]);
    assert_eq!(readers(&crawl.store).await, [READER_VERSION]);
}

/// The earlier version did not read the content signals.
#[tokio::test]
async fn a_later_reader_removes_a_document_that_denies_search() {
    const PATH: &str = "/.well-known/agent.json";
    let ahp = |search: bool| {
        json!({"ahp": "0.1", "modes": ["MODE1"], "endpoints": {"content": "/rooms.md"},
            "content_signals": {"search": search},
            "capabilities": [{"name": "rooms", "description": "Lists the rooms", "mode": "MODE1"}]})
        .to_string()
    };
    for is_fresh in [false, true] {
        let answer = Answer::json(ahp(true)).etag("\"1\"");
        let answer = if is_fresh { answer.max_age(86_400) } else { answer };
        let mut crawl = Crawl::of([Host::new("shop.example").route(PATH, answer)]).await;
        assert_eq!(crawl.pass().await.manifests_added, 1);
        let _dir = read_by_an_earlier_version(&mut crawl, equal).await;
        let _with_signals = stored_instead(&mut crawl, &ahp(true), &ahp(false)).await;
        crawl.web.set("shop.example", PATH, Answer::json(ahp(false)).etag("\"1\""));
        assert_eq!(crawl.pass_again().await.manifests_removed, 1, "{is_fresh}");
        let expected = if is_fresh { Vec::new() } else { vec![Some(304)] };
        assert_eq!(statuses(&crawl, "shop.example", PATH), expected);
        let fetch = crawl.fetch("shop.example", PATH).await;
        assert_eq!(fetch.outcome, FetchOutcome::RobotsDenied);
        assert!(fetch.reason.unwrap().contains("content signals"));
    }
}

#[tokio::test]
async fn a_fresh_document_is_read_again_at_the_target_of_its_redirect() {
    const URL: &str = "https://shop.example/agent.json";
    let shop = Host::new("shop.example").robots("").redirect(
        "/agent.json",
        302,
        "https://api.shop.example/v2/agent.json",
    );
    let body = support::AWP.replace("/api/books", "book");
    let api = Host::new("api.shop.example").robots("");
    let api = api.route("/v2/agent.json", Answer::json(body).max_age(86_400));
    let mut crawl = Crawl::of([shop, api]).await;
    crawl.pass().await;
    let before = stored(&crawl, URL).await;
    assert_eq!(
        before.manifest.capabilities[0].invocation.url.as_deref(),
        Some("https://api.shop.example/book")
    );
    let _dir = read_by_an_earlier_version(&mut crawl, without_capabilities).await;
    crawl.pass_again().await;
    assert_eq!(statuses(&crawl, "api.shop.example", "/v2/agent.json"), [], "it is fresh");
    let after = stored(&crawl, URL).await;
    assert_eq!(after.manifest.final_url, before.manifest.final_url);
    assert_eq!(after.manifest.origin, before.manifest.origin);
    assert_eq!(after.manifest.capabilities, before.manifest.capabilities);
    assert_eq!(after.last_seen_at, before.last_seen_at, "nothing confirmed it");
}

/// The later reader finds an entry of a catalog that the earlier one did not.
#[tokio::test]
async fn the_visit_after_a_later_reader_follows_the_links_that_it_found() {
    const PATH: &str = "/.well-known/ai-catalog.json";
    let catalog = |names: &[&str]| {
        let entries = names.iter().map(|name| {
            json!({"identifier": format!("urn:air:shop.example:{name}"), "displayName": name,
                "type": "application/agent+json", "url": format!("https://shop.example/{name}.json")})
        });
        let entries: Vec<Value> = entries.collect();
        json!({"specVersion": "1.0", "host": {"displayName": "Shop"}, "entries": entries}).to_string()
    };
    let (before, after) = (catalog(&["one"]), catalog(&["one", "two"]));
    let mut host = Host::new("shop.example").robots(&format!("Agentmap: {PATH}\n"));
    host = host.route(PATH, Answer::json(before.clone()).etag("\"1\""));
    for name in ["one", "two"] {
        let body = support::AWP.replace("Sell books", name);
        host = host.file(&format!("/{name}.json"), "application/json", body);
    }
    let mut crawl = Crawl::of([host]).await;
    assert_eq!(crawl.pass().await.manifests_added, 2);
    let _dir = read_by_an_earlier_version(&mut crawl, equal).await;
    let _with_entry = stored_instead(&mut crawl, &before, &after).await;
    crawl.web.set("shop.example", PATH, Answer::json(after).etag("\"1\""));
    for (catalog, added) in [(304, 0), (200, 1), (304, 0)] {
        assert_eq!(crawl.pass_again().await.manifests_added, added);
        assert_eq!(statuses(&crawl, "shop.example", PATH), [Some(catalog)]);
    }
    assert_eq!(statuses(&crawl, "shop.example", "/two.json"), [Some(304)]);
}

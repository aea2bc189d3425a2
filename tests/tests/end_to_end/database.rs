//! Maintains a crawled database with the commands of docs/OPERATIONS.md.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use agentdex_tests::harness::TestDatabase;
use serde_json::Value;
use testweb::{Host, Web};

use crate::flow::airline;
use crate::world::{Backend, World, interrupt, output, text_of};

const SITES: usize = 6;

/// A crawled world of shops with their feed: one has a changed manifest, and one is blocked.
async fn crawled(backend: Backend) -> World {
    let names: Vec<String> = (0..SITES).map(|index| format!("shop{index}.test")).collect();
    let host =
        |name: &String| Host::new(name).file("/agent.json", "application/json", airline("book_flight"));
    let world =
        World::start(backend, Web::builder().hosts(names.iter().map(host)).host(Host::new("empty.test")))
            .await;
    world.write_seeds(names.iter().map(String::as_str).chain(["empty.test"]));
    world.crawl(&[]);
    world.web.set_file("shop1.test", "/agent.json", "application/json", airline("cancel_flight"));
    world.crawl(&["--revisit", "0s"]);
    let mut block = world.program("crawler");
    block.args(["block", "shop2.test"]);
    assert!(output(block).status.success());
    world
}

/// A database other than the world's, for commands.
struct TargetDatabase {
    data: PathBuf,
    database: Option<TestDatabase>,
}

impl TargetDatabase {
    /// An empty database on either backend.
    async fn empty(world: &World, backend: Backend, name: &str) -> Self {
        let database = match backend {
            Backend::Sqlite => None,
            Backend::Postgres => Some(TestDatabase::create().await.unwrap()),
        };
        Self { data: world.path(name), database }
    }

    fn agentdex(&self, arguments: &[&str]) -> Command {
        let mut command = agentdex_tests::harness::binary("agentdex").unwrap();
        command.arg("--data-dir").arg(&self.data).args(arguments);
        if let Some(database) = &self.database {
            command.arg("--database-url").arg(database.url());
        }
        command
    }
}

const fn other(backend: Backend) -> Backend {
    match backend {
        Backend::Sqlite => Backend::Postgres,
        Backend::Postgres => Backend::Sqlite,
    }
}

/// Runs a command that must succeed; returns its standard output.
fn stdout_of_success(command: Command) -> String {
    let output = output(command);
    assert!(output.status.success(), "{}", text_of(&output));
    String::from_utf8(output.stdout).unwrap()
}

/// Runs a command that must fail; returns its standard error.
fn stderr_of_failure(command: Command) -> String {
    let output = output(command);
    assert!(!output.status.success(), "{}", text_of(&output));
    String::from_utf8(output.stderr).unwrap()
}

fn db(world: &World, arguments: &[&str]) -> Command {
    let mut command = world.program("agentdex");
    command.arg("db").args(arguments);
    command
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// The feed line of `db status`.
fn feed_of(status: &str) -> &str {
    status.lines().find(|line| line.starts_with("feed: ")).unwrap()
}

pub(crate) async fn moves_a_database_to_the_other_back_end_and_back(backend: Backend) {
    let mut world = crawled(backend).await;
    let (first, second, third) = (world.path("1.jsonl"), world.path("2.jsonl"), world.path("3.jsonl"));
    stdout_of_success(db(&world, &["export", text(&first)]));
    let elsewhere = TargetDatabase::empty(&world, other(backend), "elsewhere").await;
    assert!(stdout_of_success(elsewhere.agentdex(&["db", "migrate"])).contains("schema 0 is now schema "));
    let imported = stdout_of_success(elsewhere.agentdex(&["db", "import", text(&first)]));
    let lines = std::fs::read_to_string(&first).unwrap();
    assert!(imported.starts_with(&format!("{} rows imported", lines.lines().count() - 1)), "{imported}");
    stdout_of_success(elsewhere.agentdex(&["db", "export", text(&second)]));
    assert!(lines == std::fs::read_to_string(&second).unwrap(), "the moved database differs from the export");
    let back = TargetDatabase::empty(&world, backend, "back").await;
    stdout_of_success(back.agentdex(&["db", "import", text(&second)]));
    stdout_of_success(back.agentdex(&["db", "export", text(&third)]));
    assert!(lines == std::fs::read_to_string(&third).unwrap(), "the database differs after the round trip");

    // the feed has eight changes; readers continue after them
    let status = stdout_of_success(elsewhere.agentdex(&["db", "status"]));
    assert_eq!(feed_of(&status), "feed: entries 1 to 8", "{status}");
    assert_eq!(feed_of(&stdout_of_success(db(&world, &["status"]))), feed_of(&status));
    assert_eq!(stdout_of_success(elsewhere.agentdex(&["db", "vacuum-advice"])), "-- no table needs VACUUM\n");
    world.web.set_file("shop3.test", "/agent.json", "application/json", airline("rebook_flight"));
    world.database_url = elsewhere.database.as_ref().map(TestDatabase::url);
    std::fs::rename(world.path("data"), world.path("before")).unwrap_or_default();
    if elsewhere.database.is_none() {
        std::fs::rename(&elsewhere.data, world.path("data")).unwrap();
    }
    let summary = world.crawl(&["--revisit", "0s"]);
    assert_eq!(summary["failed"], 0, "{summary}");
    assert_eq!(feed_of(&stdout_of_success(db(&world, &["status"]))), "feed: entries 1 to 9");
    world.assert_polite();
}

pub(crate) async fn rejects_an_invalid_import_with_the_reason(backend: Backend) {
    let world = crawled(backend).await;
    let dump = world.path("dump.jsonl");
    stdout_of_success(db(&world, &["export", text(&dump)]));
    let why = stderr_of_failure(db(&world, &["import", text(&dump)]));
    assert!(
        why.contains("the database is not empty: its table ") && why.contains("import into a new one"),
        "{why}"
    );
    let why = stderr_of_failure(db(&world, &["export", text(&dump)]));
    assert!(why.contains("dump.jsonl exists: name another file, or remove it first"), "{why}");

    let broken = world.path("broken.jsonl");
    let mut lines: Vec<String> =
        std::fs::read_to_string(&dump).unwrap().lines().map(ToOwned::to_owned).collect();
    let whole = lines[6].clone();
    lines[6] = whole.chars().take(whole.len() / 2).collect();
    std::fs::write(&broken, lines.join("\n")).unwrap();
    let empty = TargetDatabase::empty(&world, backend, "empty").await;
    let why = stderr_of_failure(empty.agentdex(&["db", "import", text(&broken)]));
    assert!(why.contains("line 7 of the dump cannot be read"), "{why}");
    let why = stderr_of_failure(empty.agentdex(&["db", "import", text(&world.path("seeds.txt"))]));
    assert!(why.contains("line 1 of the dump cannot be read"), "{why}");
    let why = stderr_of_failure(empty.agentdex(&["db", "import", text(&world.path("nowhere.jsonl"))]));
    assert!(why.contains("nowhere.jsonl"), "{why}");
    // nothing was imported
    stdout_of_success(empty.agentdex(&["db", "import", text(&dump)]));

    world
        .execute(
            "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
             SELECT 9999, 'contract of the future', success, checksum, execution_time FROM _sqlx_migrations
             WHERE version = 1",
        )
        .await;
    for arguments in [&["status"][..], &["migrate"], &["export", "-"]] {
        let why = stderr_of_failure(db(&world, arguments));
        assert!(why.contains("schema 9999") && why.contains("use the newer program"), "{why}");
    }
}

/// Runs the commands of the section *Back up and restore* during a crawl. Visits in progress are repeated.
#[expect(clippy::print_stdout, reason = "a skipped test reports it")]
pub(crate) async fn backs_up_and_restores_a_live_database(backend: Backend) {
    let needed: &[&str] = match backend {
        Backend::Sqlite => &["sqlite3"],
        Backend::Postgres => &["pg_dump", "pg_restore"],
    };
    if let Some(missing) = needed.iter().find(|program| !is_installed(program)) {
        let has_all = std::env::var_os("AGENTDEX_TEST_ALL").is_some();
        assert!(!has_all, "AGENTDEX_TEST_ALL is set, and {missing} is not installed");
        println!("skipped: {missing} is not installed");
        return;
    }
    let names: Vec<String> = (0..2 * SITES).map(|index| format!("shop{index}.test")).collect();
    let host =
        |name: &String| Host::new(name).file("/agent.json", "application/json", airline("book_flight"));
    let mut world = World::start(backend, Web::builder().hosts(names.iter().map(host))).await;
    world.delay = Duration::from_millis(250);
    world.write_seeds(&names);
    let flags = ["--lease", "1s", "--concurrency", "4"];
    let child = world.crawler(&flags).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // a third of the sites are finished, and others are in progress
    world.web.log().wait_until(|log| log.hit_count() >= 7 * names.len()).await;
    let restored = TargetDatabase::empty(&world, backend, "data-restored").await;
    if let (Some(url), Some(target)) = (&world.database_url, &restored.database) {
        let dump = world.path("agentdex.dump");
        let mut command = Command::new("pg_dump");
        command.args(["--format=custom", &format!("--file={}", text(&dump)), url]);
        stdout_of_success(command);
        let mut command = Command::new("pg_restore");
        command.args(["--exit-on-error", &format!("--dbname={}", target.url()), text(&dump)]);
        let restore = output(command);
        assert!(restore.status.success() && restore.stderr.is_empty(), "{}", text_of(&restore));
    } else {
        std::fs::create_dir(&restored.data).unwrap();
        let mut command = Command::new("sqlite3");
        command.arg(world.path("data/agentdex.db"));
        command.arg(format!(".backup '{}'", text(&restored.data.join("agentdex.db"))));
        stdout_of_success(command);
    }
    interrupt(child);
    world.database_url = restored.database.as_ref().map(TestDatabase::url);
    std::fs::rename(world.path("data"), world.path("lost")).unwrap_or_default();
    if restored.database.is_none() {
        std::fs::rename(&restored.data, world.path("data")).unwrap();
    }
    let before = world.status();
    let done_before = before["manifests"].as_u64().unwrap();
    assert!((1..names.len() as u64).contains(&done_before), "{before}");
    let summary = world.crawl(&flags);
    assert_eq!(summary["failed"], 0, "{summary}");
    let after = world.status();
    assert_eq!((&after["sites"], &after["manifests"]), (&names.len().into(), &names.len().into()), "{after}");
    let mut rebuild = world.program("indexer");
    rebuild.arg("rebuild");
    let indexed = output(rebuild);
    let log = text_of(&indexed);
    let counted = format!("manifests.updated={} ", names.len());
    assert!(indexed.status.success() && log.contains(&counted), "{log}");
    assert_eq!(
        world.api().await.search("q=book+flight").await.first().map(String::as_str),
        Some("book_flight")
    );
}

/// A daemon removes old data on schedule, and reports which reader still needs entries.
pub(crate) async fn housekeeping_removes_only_old_data(backend: Backend) {
    let world = crawled(backend).await;
    world.index();
    // everything so far is more than a year old; the indexer has read it, but another reader has not
    world
        .execute(
            "UPDATE feed SET at_ms = at_ms - 40000000000;
             UPDATE manifest_version SET last_seen_at_ms = last_seen_at_ms - 40000000000;
             INSERT INTO feed_reader (name, position, seen_at_ms) VALUES ('archive', 3, 1);",
        )
        .await;
    let events = world.path("events.jsonl");
    let flags =
        ["--retain-feed", "365d", "--retain-versions", "365d", "--schedule-housekeeping", "* * * * *"];
    let mut command = world.crawler(&flags);
    command.args(["--daemon", "--events", text(&events)]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut message = None;
    while message.is_none() {
        tokio::time::sleep(Duration::from_millis(100)).await;
        let lines = std::fs::read_to_string(&events).unwrap_or_default();
        let mut lines = lines.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        message = lines.find(|line| line["event"] == "scheduled" && line["task"] == "housekeeping");
    }
    let message = message.unwrap()["came_to"].as_str().unwrap().to_owned();
    assert!(
        message
            .contains("3 changes and 1 versions removed by age; older changes are kept until the indexer archive has read them"),
        "{message}"
    );
    interrupt(child);
    assert_eq!(feed_of(&stdout_of_success(db(&world, &["status"]))), "feed: entries 4 to 8");
    stdout_of_success(db(&world, &["forget-reader", "archive"]));
    let message = stdout_of_success(db(&world, &["retain", "--feed-days", "365"]));
    assert!(message.starts_with("5 entries of the feed"), "{message}");
}

const WHOLE: &str = "/.well-known/agent-manifest.json";
const PART: &str = "/openapi.json";

const MUSEUM_PART: &str = r#"{"openapi": "3.1.0", "info": {"title": "Museum", "version": "1"},
    "servers": [{"url": "https://museum.test/api"}],
    "paths": {"/tickets": {"post": {"operationId": "buy_ticket", "summary": "Tickets",
        "responses": {"200": {"description": "ok"}}}}}}"#;

/// A damaged document is not served, and the crawler fetches it without validators.
pub(crate) async fn a_damaged_document_is_not_served_and_is_fetched_again(backend: Backend) {
    let whole = |name: &str| {
        serde_json::json!({"arws_version": "1.0", "name": name, "description": "A museum",
            "tools": format!("https://museum.test{PART}")})
        .to_string()
    };
    let host = Host::new("museum.test").file(WHOLE, "application/json", whole("Museum")).file(
        PART,
        "application/json",
        MUSEUM_PART,
    );
    let world = World::start(backend, Web::builder().host(host)).await;
    world.write_seeds(["museum.test"]);
    world.crawl(&[]);
    world.index();
    let api = world.api().await;
    let found = api.get("/search?q=buy+ticket&limit=1").await;
    let id = found["results"][0]["manifest_id"].as_str().unwrap_or_else(|| panic!("{found}")).to_owned();
    let raw = format!("/manifests/{id}/raw");
    assert_eq!(api.get(&raw).await["name"], "Museum", "a manifest with parts is verified by its own bytes");

    world.execute("UPDATE document SET body_hash = 'ffff'").await;
    let damaged = api.try_get(&raw).await.unwrap();
    assert_eq!(damaged.status(), 500);
    assert_eq!(damaged.headers()["content-type"], "application/problem+json");
    let problem = api.get(&raw).await;
    assert_eq!((&problem["errorCode"], &problem["arws_version"]), (&"INTERNAL_ERROR".into(), &Value::Null));

    world.web.set_file("museum.test", WHOLE, "application/json", whole("Gallery"));
    let output = output(world.crawler(&["--revisit", "0s"]));
    let message = text_of(&output);
    assert!(output.status.success(), "{message}");
    assert!(
        message.contains("a stored document cannot be used") && message.contains("table document"),
        "{message}"
    );
    let hits = world.web.log().hits();
    let requests_of =
        |path: &str| hits.iter().filter(|hit| hit.path == path).map(|hit| hit.status).collect::<Vec<_>>();
    assert_eq!(
        requests_of(PART),
        [Some(200), Some(200)],
        "the document is fetched without validators although it did not change"
    );
    world.index();
    assert_eq!(api.search("q=buy+ticket").await.first().map(String::as_str), Some("buy_ticket"));
}

fn is_installed(program: &str) -> bool {
    Command::new(program).arg("--version").stdout(Stdio::null()).status().is_ok_and(|status| status.success())
}

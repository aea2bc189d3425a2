//! Invalid input: programs print one clear sentence with advice, and exit with the documented code.

use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use testweb::{Host, Web};

use agentdex_tests::harness::binary;

use crate::world::{Backend, World, output};

async fn world() -> World {
    let world = World::start(Backend::Sqlite, Web::builder().host(Host::new("kiosk.test"))).await;
    world.write_seeds(["kiosk.test"]);
    world
}

/// Runs a program that must fail with `code` and print `expected` in at most three lines, without a panic.
#[track_caller]
fn fails(command: Command, code: i32, expected: &[&str]) {
    let shown = format!("{command:?}");
    let output = output(command);
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{shown}\n{text}");
    for words in expected {
        assert!(text.contains(words), "{shown} does not print {words:?}:\n{text}");
    }
    assert!(!text.contains("panicked"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn rejects_missing_and_empty_seed_files() {
    let world = world().await;
    let mut missing = world.program("crawler");
    missing.args(["--seeds", "nowhere.txt"]);
    fails(missing, 2, &["nowhere.txt"]);

    std::fs::write(world.path("empty.txt"), "# nothing\n\n").unwrap();
    let mut empty = world.program("crawler");
    empty.args(["--seeds", "empty.txt"]);
    fails(empty, 2, &["empty.txt", "no"]);
}

/// A directory can be opened, but not read as a list: `agentdex` reports it before it listens.
#[tokio::test(flavor = "multi_thread")]
async fn rejects_a_folder_of_seeds_before_it_serves() {
    let world = world().await;
    std::fs::create_dir(world.path("lists")).unwrap();
    let mut command = world.program("agentdex");
    command.args(["--seeds", "lists", "--contact-email", "me@example.org", "--listen", "127.0.0.1:0"]);
    let printed = output(command);
    assert_eq!((printed.status.code(), printed.stdout.as_slice()), (Some(2), b"".as_slice()));
    let text = String::from_utf8_lossy(&printed.stderr);
    assert!(text.contains("cannot read the seed file lists: is a directory"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_that_read_a_database_do_not_create_one() {
    let world = world().await;
    for words in [
        ["db", "status"].as_slice(),
        &["db", "vacuum-advice"],
        &["db", "export", "dump.jsonl"],
        &["db", "retain", "--feed-days", "9"],
        &["db", "forget-reader", "x"],
        &["feedback", "list"],
        &["reports", "list"],
        &["search", "flight"],
        &["mcp"],
        &["status"],
        &["paths"],
        &["explain", "kiosk.test"],
        &["block", "kiosk.test"],
        &["unblock", "kiosk.test"],
    ] {
        let mut command = world.program("agentdex");
        command.args(words);
        fails(command, 2, &["there is no database at", "--data-dir"]);
    }
    let mut doctor = world.program("agentdex");
    doctor.args(["doctor", "--only", "database,index"]);
    let doctor = output(doctor);
    let text = String::from_utf8_lossy(&doctor.stdout);
    assert!(doctor.status.success() && text.contains("has no data of agentdex yet"), "{text}");
    assert!(!world.path("data").exists() && !world.path("dump.jsonl").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn reports_invalid_seed_lines_and_visits_the_others() {
    let world = world().await;
    world.write_seeds([
        "# shops",
        "",
        "kiosk.test",
        "not a domain",
        "10.0.0.1",
        "2,kiosk.test",
        "ftp://kiosk.test/",
        "bücher.test",
    ]);
    let summary = world.crawl(&[]);
    let rejected: Vec<_> = summary["seeds"]["rejected"]
        .as_array()
        .unwrap()
        .iter()
        .map(|line| line["line"].as_u64().unwrap())
        .collect();
    assert_eq!(rejected, [4, 5, 7], "{summary}");
    assert_eq!(summary["sites_visited"], 2, "{summary}");
    world.assert_polite();
}

#[tokio::test(flavor = "multi_thread")]
async fn rejects_unknown_flags_as_usage_errors() {
    let world = world().await;
    for program in ["crawler", "indexer", "api", "agentdex"] {
        let mut command = world.program(program);
        command.arg("--frobnicate");
        fails(command, 2, &["--frobnicate"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn reports_unknown_configuration_keys() {
    let world = world().await;
    std::fs::write(world.path("agentdex.toml"), "data_dirr = \"x\"\n").unwrap();
    for program in ["crawler", "indexer", "api"] {
        let mut command = world.program(program);
        command.args(["--config", "agentdex.toml"]);
        if program == "crawler" {
            command.args(["--seeds", "seeds.txt"]);
        }
        let output = output(command);
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && text.contains("data_dirr"), "{program}: {text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn reports_a_database_that_does_not_respond() {
    let world = world().await;
    // long-running programs wait for the database: see `late_database`
    for (program, flags) in [("crawler", vec!["status"]), ("agentdex", vec!["db", "status"])] {
        let mut command = binary(program).unwrap();
        command
            .current_dir(world.path(""))
            .args(["--database-url", "postgres://nobody:secret@127.0.0.1:9/none"])
            .args(flags);
        let shown = output(command);
        let text = String::from_utf8_lossy(&shown.stderr);
        assert_eq!(shown.status.code(), Some(1), "{program}: {text}");
        assert!(text.contains("127.0.0.1:9") && !text.contains("secret"), "{program}: {text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn reports_a_data_directory_that_cannot_be_written() {
    let world = world().await;
    let file = world.path("a-file");
    std::fs::write(&file, "").unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o400)).unwrap();
    for (program, flags) in [("crawler", vec!["--seeds", "seeds.txt"]), ("indexer", vec!["--once"])] {
        let mut command = binary(program).unwrap();
        command.current_dir(world.path("")).arg("--data-dir").arg(&file).args(flags);
        fails(command, 1, &["a-file"]);
    }
}

/// Each program exits before the first request, with an error that names the setting to change.
#[tokio::test(flavor = "multi_thread")]
async fn refuses_impolite_and_useless_settings_before_the_first_request() {
    let world = world().await;
    let mail = ["--contact-email", "me@crawler.example"];
    for (program, flags, expected) in [
        ("agentdex", vec![], ["--contact-email", "--once"]),
        ("crawler", vec!["--daemon"], ["--contact-email", "site owners can reach you"]),
        ("crawler", vec!["--delay", "999ms"], ["--delay must be at least 1 s", "--allow-addresses"]),
        ("agentdex", vec!["--delay", "10ms", mail[0], mail[1]], ["--delay must be", "--allow-addresses"]),
        ("agentdex", vec!["--admin-tokens", "nosuch", mail[0], mail[1]], ["nosuch", "admin tokens"]),
    ] {
        let mut command = world.program(program);
        command.args(["--seeds", "seeds.txt"]).args(flags);
        fails(command, 2, &expected);
    }
    let a_crawl = "use it with a crawl (`agentdex --seeds FILE`)";
    for (program, words, expected) in [
        (
            "agentdex",
            ["--seeds=seeds.txt", "status"].as_slice(),
            ["--seeds has no effect on `status`", a_crawl],
        ),
        ("agentdex", &["--delay", "3s", "status"], ["--delay has no effect on `status`", a_crawl]),
        ("crawler", &["--rate", "9", "paths"], ["--rate has no effect on `paths`", "`check`"]),
        (
            "indexer",
            &["--once", "rebuild"],
            ["--once has no effect on `rebuild`", "`indexer` without a command"],
        ),
        (
            "api",
            &["--listen", "127.0.0.1:0", "read-document"],
            ["--listen has no effect on `read-document`", "`api` without a command"],
        ),
    ] {
        let mut typed = world.program(program);
        typed.args(words);
        fails(typed, 2, &expected);
    }
    assert_eq!(world.requests(), 0);
}

/// With `--log-format json`, errors and progress are JSON too.
#[tokio::test(flavor = "multi_thread")]
async fn stderr_contains_only_json_with_a_json_log() {
    let world = world().await;
    let mut missing = world.program("agentdex");
    missing.args(["--seeds", "nowhere.txt", "--once", "--log-format", "json"]);
    let crawl = world.crawler(&["--log-format", "json"]);
    for (command, code) in [(missing, 2), (crawl, 0)] {
        let output = output(command);
        assert_eq!(output.status.code(), Some(code));
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(!text.is_empty(), "nothing was logged");
        for line in text.lines() {
            assert!(serde_json::from_str::<serde_json::Value>(line).is_ok(), "{line}");
        }
    }
}

/// The advice contains only flags of the program.
#[tokio::test(flavor = "multi_thread")]
async fn a_second_agentdex_gets_advice_that_it_can_follow() {
    let world = world().await;
    let start = || {
        let mut command = world.crawling("agentdex", &[]);
        command.args(["--listen", "127.0.0.1:0"]);
        command
    };
    let mut first = start().stdout(std::process::Stdio::null()).spawn().unwrap();
    let index = world.path("data/index");
    let appeared = async {
        while !index.exists() || world.requests() == 0 {
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(crate::world::TIMEOUT, appeared).await.expect("the first agentdex did not start");
    let second = output(start());
    first.kill().unwrap();
    first.wait().unwrap();
    let text = String::from_utf8(second.stderr).unwrap();
    assert_eq!(second.status.code(), Some(1), "{text}");
    let help = output({
        let mut help = world.program("agentdex");
        help.arg("--help");
        help
    });
    let help = String::from_utf8(help.stdout).unwrap();
    let flags: Vec<&str> = text
        .split(|letter: char| !(letter.is_ascii_lowercase() || letter == '-'))
        .filter(|word| word.starts_with("--"))
        .collect();
    assert!(!flags.is_empty() && flags.iter().all(|flag| help.contains(flag)), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn reports_a_port_that_is_in_use() {
    let world = world().await;
    world.crawl(&[]);
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let mut command = world.program("api");
    command.args(["--listen", &address]);
    fails(command, 1, &[&address, "--listen"]);
    world.assert_polite();
}

#[tokio::test(flavor = "multi_thread")]
async fn rebuilds_an_index_of_another_schema_version_without_loss() {
    let world = world().await;
    world.web.set_file(
        "kiosk.test",
        "/llms.txt",
        "text/plain",
        "# Kiosk\n\n> A shop.\n\n## Docs\n\n- [API](https://kiosk.test/openapi.json): the API\n",
    );
    world.write_seeds(["https://kiosk.test/llms.txt"]);
    world.crawl(&[]);
    world.index();
    let marked = meta_file(&world.path("data/index"));
    let text = std::fs::read_to_string(&marked).unwrap();
    std::fs::write(&marked, text.replace("schema_version\\\":", "schema_version\\\":9")).unwrap();
    world.index();
    let stats = world.api().await.get("/stats").await;
    assert_eq!(stats["manifests"], 1, "{stats}");
    world.assert_polite();
}

/// The newest generation's tantivy meta file below the index directory.
fn meta_file(index: &std::path::Path) -> std::path::PathBuf {
    let entries = std::fs::read_dir(index).unwrap().map(|entry| entry.unwrap().path());
    let found = entries.filter_map(|path| {
        let meta = if path.is_dir() { path.join("meta.json") } else { path };
        (meta.ends_with("meta.json") && meta.exists()).then_some(meta)
    });
    found.max().unwrap()
}

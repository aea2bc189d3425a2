//! Situations of an operator's first hour: programs that are started twice, stopped, or given wrong flags.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use agentdex_tests::harness::binary;
use testweb::{Host, Web};

use crate::world::{Api, Backend, TIMEOUT, World, output, text_of};

async fn world() -> World {
    let world = World::start(Backend::Sqlite, Web::builder().host(Host::new("kiosk.test"))).await;
    world.write_seeds(["kiosk.test"]);
    world
}

fn printed_by(mut command: Command, words: &[&str]) -> (Option<i32>, String) {
    command.args(words);
    let output = output(command);
    (output.status.code(), text_of(&output))
}

fn signal(child: &Child, signal: &str) {
    assert!(Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap().success());
}

/// A demo needs its files to reach its sites, so a second demo must not overwrite them, whatever its database is. The database set in the
/// environment is for real sites.
#[tokio::test(flavor = "multi_thread")]
async fn a_demo_has_a_separate_database_and_a_second_demo_does_not_change_its_files() {
    let world = world().await;
    let elsewhere = "postgres://nobody@127.0.0.1:1/nowhere";
    let demo = |flags: &[&str]| {
        let mut command = world.program("agentdex");
        command.env("DATABASE_URL", elsewhere);
        command.args(["demo", "--listen", "127.0.0.1:0"]).args(flags);
        command
    };
    let printed = world.path("printed");
    let mut first = demo(&["--format", "json", "--revisit-every", "1m"]);
    first.stdout(std::fs::File::create(&printed).unwrap()).stderr(Stdio::null());
    let mut first = first.spawn().unwrap();
    let files = ["hosts", "ca.pem", "seeds.txt", "agentdex.db"].map(|name| world.path("data").join(name));
    let appeared = async {
        while !files.iter().all(|file| file.metadata().is_ok_and(|file| file.len() > 0)) {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(TIMEOUT, appeared).await.expect("the demo did not write its files");
    let read = || files[..3].iter().map(|file| std::fs::read_to_string(file).unwrap()).collect::<Vec<_>>();
    let before = read();
    let more = [demo(&[]), demo(&["--database-url", elsewhere])].map(output);
    let after = read();
    crate::going_on::wait_for(&printed, r#""event":"serving""#).await;
    let lines = std::fs::read_to_string(&printed).unwrap();
    let complete = lines.split_inclusive('\n').filter(|line| line.ends_with('\n'));
    let events: Vec<serde_json::Value> = complete.map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(events[0]["event"], "demo", "{lines}");
    first.kill().unwrap();
    first.wait().unwrap();
    for second in more {
        let text = text_of(&second);
        assert_eq!(second.status.code(), Some(1), "{text}");
        assert!(text.contains("a demo (process ") && text.contains("name another --data-dir"), "{text}");
        assert!(!text.contains("PostgreSQL"), "a demo needs no PostgreSQL: {text}");
    }
    assert!(before == after, "the second demo overwrote the files");
}

/// An index that was built from another database is not searched.
#[tokio::test(flavor = "multi_thread")]
async fn an_index_of_another_database_is_not_searched() {
    let mut world = world().await;
    world.crawl(&[]);
    world.index();
    let api = Api::start(&world, |_| {});
    api.wait_until_ready().await;
    let other = world.path("other.db");
    world.database_url = Some(format!("sqlite:{}", other.display()));
    world.crawl(&[]);
    let why = "the index was built from another database: if no indexer is building it, run `indexer rebuild --data-dir ";
    let (code, text) = printed_by(world.program("agentdex"), &["search", "flight"]);
    assert!(code == Some(1) && text.matches("another database").count() == 1, "{text}");
    assert!(text.contains(why), "{text}");
    let (_, text) = printed_by(world.program("agentdex"), &["status"]);
    assert!(text.contains(&format!("\nDatabase: sqlite:{}\nSites: ", other.display())), "{text}");

    let other = Api::start(&world, |_| {});
    let answered = async {
        loop {
            if let Some(answer) = other.try_get("/readyz").await {
                return answer;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let answer = tokio::time::timeout(TIMEOUT, answered).await.expect("the api did not respond");
    assert_eq!(answer.status(), 503);
    let text = other.get("/readyz").await.to_string();
    assert!(text.contains("the index was built from another database"), "{text}");
    let (code, text) = printed_by(world.program("indexer"), &["rebuild"]);
    assert_eq!(code, Some(0), "{text}");
    other.wait_until_ready().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_single_pass_says_how_to_see_its_results() {
    let world = world().await;
    let once = world.crawling_with("agentdex", "text", &["--once", "--listen", "127.0.0.1:0"]);
    let (code, text) = printed_by(once, &[]);
    assert_eq!(code, Some(0), "{text}");
    for part in
        ["Dashboard and API until the pass has ended: http://127.0.0.1:", "agentdex status --data-dir"]
    {
        assert!(text.contains(part), "{part} is not in {text}");
    }
}

/// A check that is stopped ends immediately and releases its site.
#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_check_releases_its_site() {
    let world = world().await;
    let check = |delay: &str| {
        let mut command = world.program("agentdex");
        let files = world.web.write_files(&world.path(".")).unwrap();
        command.arg("--hosts").arg(files.hosts).arg("--ca-file").arg(files.ca);
        command.args(["--allow-addresses", "127.0.0.0/8", "--delay", delay, "check", "kiosk.test"]);
        command
    };
    let stopped = check("400ms").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let requested = world.web.log().wait_until(|log| log.hit_count() >= 2);
    tokio::time::timeout(TIMEOUT, requested).await.expect("the check sent no request");
    signal(&stopped, "-INT");
    let text = text_of(&stopped.wait_with_output().unwrap());
    assert!(text.contains("Stopped. The next check or crawl visits the site."), "{text}");
    assert!(!text.contains("WARN"), "the site is in the operator's own network: {text}");
    assert_eq!(world.status()["sites_leased"], 0, "{}", world.status());
    let (code, text) = printed_by(check("50ms"), &[]);
    assert!(code == Some(0) && text.contains("kiosk.test: all planned paths were requested"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crawl_whose_data_was_removed_does_not_say_that_it_is_kept() {
    let world = world().await;
    let printed = world.path("printed");
    let mut crawl = world.crawling_with("agentdex", "text", &["--listen", "127.0.0.1:0"]);
    crawl.stdout(std::fs::File::create(&printed).unwrap()).stderr(Stdio::piped());
    let crawl = crawl.spawn().unwrap();
    crate::going_on::wait_for(&printed, "The crawl continues.").await;
    std::fs::remove_dir_all(world.path("data")).unwrap();
    signal(&crawl, "-TERM");
    let ended = crawl.wait_with_output().unwrap();
    let (log, printed) = (text_of(&ended), std::fs::read_to_string(&printed).unwrap());
    assert_eq!(ended.status.code(), Some(1), "{log}");
    assert!(log.contains("agentdex.db was removed while the crawl ran: nothing is kept"), "{log}");
    assert!(!printed.contains("Everything is kept"), "{printed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn incomplete_flags_report_what_is_missing_first() {
    let world = world().await;
    for (words, expected) in [
        (["--seeds", "seeds.txt", "--dry-run"].as_slice(), "--dry-run belongs to `crawler`"),
        (
            &["--seeds", "seeds.txt", "--once", "--schedule-seeds", "0 3 * * *"],
            "--schedule-seeds is for a crawl that keeps",
        ),
        (&["--seeds", "seeds.txt", "--metrics", "127.0.0.1:0"], "--metrics belongs to `crawler`"),
        (&["demo", "--dry-run"], "unexpected argument '--dry-run'"),
        (&["seeds.txt"], "`seeds.txt` is a file, not a command: write --seeds seeds.txt"),
        (&["crawl", "seeds.txt"], "write agentdex --seeds seeds.txt --contact-email YOU"),
        (&["api"], "the program api serves only what is stored"),
        (&["search", "book", "--limt", "3"], "a similar argument exists: '--limit'"),
        (&["probe", "8080"], "8080 has no port: write it like 127.0.0.1:8080"),
        (&["--contact-email", "you@example.org"], "name the sites to crawl with --seeds FILE"),
        (&["db", "status", "--format", "json"], "--format has no effect on `db status`"),
    ] {
        let (code, text) = printed_by(world.program("agentdex"), words);
        assert!(code == Some(2) && text.contains(expected), "{words:?}: {text}");
    }
    let mut variable = world.program("crawler");
    variable.env("AGENTDEX_CRAWLER_DELAY", "3");
    let (code, text) = printed_by(variable, &["--seeds", "seeds.txt"]);
    assert!(code == Some(2) && text.contains("AGENTDEX_CRAWLER_DELAY: \"3\" is not a duration"), "{text}");
    for (words, expected) in [
        (["--listen", "8080"], "\"8080\" is not an address to listen on"),
        (["--admin-tokens", "nosuch"], "nosuch"),
        (["--index-from", "snapshots"], "name the database of the indexer that publishes the snapshots"),
    ] {
        let (code, text) = printed_by(world.program("api"), &words);
        assert!(code == Some(2) && text.contains(expected) && !text.contains("is created"), "{text}");
    }
    assert!(!world.path("data").exists());
}

#[tokio::test(flavor = "multi_thread")]
#[expect(clippy::too_many_lines, reason = "a table of commands")]
async fn commands_say_what_they_did_and_what_is_wrong() {
    let world = world().await;
    std::fs::write(world.path("garbage.db"), "this is no database\n".repeat(100)).unwrap();
    let url = format!("sqlite:{}", world.path("garbage.db").display());
    let (code, text) = printed_by(world.program("agentdex"), &["status", "--database-url", &url]);
    assert!(
        code == Some(1)
            && !text.contains("no tables")
            && text.contains("is not a SQLite database: move it away"),
        "{text}"
    );

    let mut indexer = binary("indexer").unwrap();
    indexer.current_dir(world.path("."));
    let (code, text) = printed_by(indexer, &["--once", "--data-dir", "typo"]);
    assert!(code == Some(0) && text.contains("there is no database at typo/agentdex.db yet"), "{text}");
    world.crawl(&[]);
    let long = "x".repeat(1_025);
    for (words, expected_code, expected) in [
        (["paths"].as_slice(), 0, "REQUESTED   FOUND  VISIT  PATH\n"),
        (&["db", "migrate"], 0, "is current\n"),
        (&["db", "status"], 0, "feed: empty\n"),
        (&["db", "status"], 0, ", which is current\n  file: "),
        (&["db", "status"], 0, " KiB\n"),
        (&["mcp"], 1, "the input ended before a session began: an MCP client starts this command"),
        (&["db", "vacuum-advice"], 0, "-- no table needs VACUUM\n"),
        (&["db", "export", "dump.jsonl"], 0, "rows exported"),
        (&["db", "export", "dump.jsonl"], 1, "dump.jsonl exists: name another file, or remove it first"),
        (&["db", "retain"], 2, "--feed-days, --versions-days"),
        (&["db", "retain", "--feed-days", "x"], 2, "'--feed-days <DAYS>': write a whole number"),
        (&["search", "book", "-flight"], 2, "search 'book -flight'"),
        (&["doctor", "--only", "dsn"], 2, "'dns'"),
        (&["--demo"], 2, "write `agentdex demo`, without dashes"),
        (&["-seeds", "seeds.txt"], 2, "write --seeds, with two dashes"),
        (&["db", "forget-reader", "nobody"], 1, "see `agentdex db status --data-dir "),
        (&["reports", "list"], 0, "no report matches\n"),
        (&["feedback", "list"], 0, "no feedback matches\n"),
        (&["reports", "dismiss"], 2, "--site, --id, or --all"),
        (&["feedback", "remove"], 2, "--site, --client, --capability, or --all"),
        (&["search", "flight", "-hotel"], 2, "search 'flight -hotel'"),
        (&["search", ""], 2, "name what to search for, as in `agentdex search book flight"),
        (&["search", long.as_str()], 2, "the query is longer than 1024 bytes"),
        (&["search", "flight"], 1, "data` builds it while it crawls, `indexer rebuild --data-dir "),
        (&["check", "http://kiosk.test:8443"], 2, "only port 443 is visited"),
        (&["block", "http://kiosk.test/"], 0, "kiosk.test is blocked"),
        (
            &["check", "kiosk.test"],
            1,
            "kiosk.test is not visited: it is blocked (by decision of the operator); `agentdex unblock kiosk.test --data-dir ",
        ),
        (&["explain", "kiosk.test"], 0, "The stored data of its visits was deleted."),
        (&["explain", "http://kiosk.test/"], 0, "kiosk.test: blocked or opted out, 0 manifests"),
        (&["suspend", "kiosk.test", "--reason", "spam"], 0, "is not visited any more; deleted 0 manifests"),
        (&["explain", "kiosk.test"], 0, ", for spam: it misleads the search\n"),
    ] {
        let (code, text) = printed_by(world.program("agentdex"), words);
        assert!(code == Some(expected_code) && text.contains(expected), "{words:?}: {text}");
    }
    let (_, text) = printed_by(world.program("agentdex"), &["explain", "kiosk.test"]);
    assert!(text.contains("no copy is kept") && !text.contains("Not visited yet"), "{text}");
    let (_, text) = printed_by(world.program("agentdex"), &["unsuspend", "kiosk.test"]);
    assert!(text.contains("it stays blocked: `agentdex unblock kiosk.test --data-dir "), "{text}");

    std::fs::write(world.path("taken"), "").unwrap();
    std::fs::write(world.path("empty.txt"), "# none yet\n").unwrap();
    let flags = ["--contact-email", "you@example.org", "--data-dir"];
    for (program, seeds, dir, expected) in [
        ("crawler", "seeds.txt", "taken", "taken is a file; choose another with --data-dir"),
        ("agentdex", "seeds.txt", "taken", "the data directory taken is a file; choose another"),
        ("agentdex", "empty.txt", "new", "empty.txt holds no seed"),
    ] {
        let mut command = binary(program).unwrap();
        command.current_dir(world.path(".")).args(["--seeds", seeds]).args(flags).arg(dir);
        if program == "agentdex" {
            command.args(["--listen", "127.0.0.1:0"]);
        }
        let (_, text) = printed_by(command, &[]);
        assert!(text.contains(expected) && !text.contains("Dashboard and API"), "{text}");
    }
}

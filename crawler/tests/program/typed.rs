//! Tests of wrong arguments, and of a pass that reaches no site.

use std::process::Stdio;

use super::fixture::{Fixture, text};
use testweb::{Answer, Host};

#[tokio::test]
async fn read_only_commands_create_no_database() {
    let fixture = Fixture::with([]).await;
    fixture.file("seeds", "shop.example\n");
    let missing = fixture.run(&["--seeds", "example.org", "--dry-run"]).await;
    assert_eq!(missing.status.code(), Some(2));
    assert!(
        text(&missing.stderr).contains("visit one site with `check example.org`"),
        "{}",
        text(&missing.stderr)
    );
    let planned = fixture.run(&["--seeds", "seeds", "--dry-run"]).await;
    let stderr = text(&planned.stderr);
    assert_eq!(planned.status.code(), Some(0), "{stderr}");
    assert!(stderr.contains("there is no database yet: only the seeds are planned"), "{stderr}");
    let keys = fixture.run(&["keys"]).await;
    for part in ["--signing-key FILE", "keys add NAME", "keys list", "keys revoke NAME"] {
        assert!(text(&keys.stderr).contains(part), "{}", text(&keys.stderr));
    }
    for words in [
        ["status"].as_slice(),
        &["paths"],
        &["explain", "shop.example"],
        &["block", "shop.example"],
        &["suspend", "shop.example", "--reason", "spam"],
        &["unblock", "shop.example"],
        &["unsuspend", "shop.example"],
        &["keys", "add", "partner"],
        &["keys", "list"],
        &["keys", "revoke", "partner"],
    ] {
        let run = fixture.run(words).await;
        let stderr = text(&run.stderr);
        assert_eq!(run.status.code(), Some(2), "{stderr}");
        for part in ["/data/agentdex.db: run this in the folder of the crawl", "--data-dir", "--database-url"]
        {
            assert!(stderr.contains(part), "{stderr}");
        }
    }
    assert!(!fixture.dir.path().join("data").exists());
}

#[tokio::test]
async fn check_reports_that_a_site_of_the_demo_is_not_on_the_web() {
    let fixture = Fixture::with([]).await;
    let checked = fixture.run(&["check", "skyhop.example"]).await;
    let stderr = text(&checked.stderr);
    assert_eq!(checked.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("skyhop.example is not on the web"), "{stderr}");
    assert!(!stderr.contains("WARN") && !fixture.dir.path().join("data").exists(), "{stderr}");
}

#[tokio::test]
async fn reports_that_only_port_443_is_visited() {
    let fixture = Fixture::with([]).await;
    fixture.file("seeds", "example.net:8443\n");
    for words in
        [["check", "example.net:8443"].as_slice(), &["--seeds", "seeds"], &["block", "example.net:8443"]]
    {
        let refused = fixture.run(words).await;
        let stderr = text(&refused.stderr);
        assert_eq!(refused.status.code(), Some(2), "{words:?}: {stderr}");
        assert!(stderr.contains("names port 8443: only port 443 is visited"), "{stderr}");
    }
}

#[tokio::test]
async fn a_reader_key_is_shown_once_and_can_be_listed_and_revoked() {
    let fixture = Fixture::with([]).await;
    fixture.file("hosts", "127.0.0.1:1 nobody.example\n");
    fixture.file("seeds", "nobody.example\n");
    fixture.run(&["--seeds", "seeds", "--delay", "0s"]).await;
    let made = fixture.run(&["keys", "add", "partner", "--reads-per-second", "7"]).await;
    assert_eq!(made.status.code(), Some(0), "{}", text(&made.stderr));
    let key = text(&made.stdout).lines().next().unwrap_or_default().to_owned();
    assert!(key.starts_with("agentdex-reader-") && key.len() == 80, "{key}");
    let listed = text(&fixture.run(&["keys", "list"]).await.stdout);
    assert!(listed.starts_with("partner  7 requests a second, since 2"), "{listed}");
    assert!(!listed.contains(&key), "a key is shown only once");
    for (words, part) in [
        (["keys", "add", "partner"], "keys revoke partner"),
        (["keys", "add", "a b"], "letters, digits"),
        (["keys", "revoke", "other"], "keys list"),
    ] {
        let refused = fixture.run(&words).await;
        assert_eq!(refused.status.code(), Some(2), "{words:?}");
        assert!(text(&refused.stderr).contains(part), "{}", text(&refused.stderr));
    }
    assert_eq!(fixture.run(&["keys", "revoke", "partner"]).await.status.code(), Some(0));
    let listed = text(&fixture.run(&["keys", "list"]).await.stdout);
    assert!(listed.contains("there are no API keys"), "{listed}");
}

#[tokio::test]
async fn reports_a_pass_that_reached_no_site_without_colours_in_its_log() {
    let fixture = Fixture::with([]).await;
    fixture.file("seeds", "nobody.example\n");
    fixture.file("hosts", "127.0.0.1:1 nobody.example\n");
    let run = fixture.run(&["--seeds", "seeds", "--delay", "0s"]).await;
    let (summary, log) = (text(&run.stdout), text(&run.stderr));
    assert_eq!(run.status.code(), Some(0), "{log}");
    assert!(
        summary.contains("Visits: 1 unreachable")
            && summary.contains("\nNo site was reached: the only site did not answer.\n1 of 1 site: "),
        "{summary}"
    );
    assert!(log.contains("cannot reach you") && !log.contains('\u{1b}'), "{log}");
    assert_eq!(log.matches("1 seed read").count(), 1, "{log}");
    assert!(!log.contains("1 seeds"), "{log}");
}

#[tokio::test]
async fn explain_names_the_host_that_was_not_reached() {
    let fixture = Fixture::with([]).await;
    fixture.file("seeds", "www.nobody.example\n");
    fixture.file("hosts", "127.0.0.1:1 www.nobody.example\n");
    fixture.run(&["--seeds", "seeds", "--delay", "0s"]).await;
    let explained = text(&fixture.run(&["explain", "nobody.example"]).await.stdout);
    assert!(explained.contains("\nrobots.txt of www.nobody.example: could not be read"), "{explained}");
}

#[tokio::test]
async fn a_crawl_without_seeds_creates_no_database() {
    let fixture = Fixture::with([]).await;
    for (words, part) in [
        ([].as_slice(), "there is nothing to visit: name seeds with --seeds FILE"),
        (&["--seeds", "nowhere"], "cannot read the seed file nowhere"),
        (
            &["--seeds", "domains.txt", "status"],
            "write the subcommand first, without --seeds: crawler status",
        ),
    ] {
        let run = fixture.run(words).await;
        let stderr = text(&run.stderr);
        assert_eq!(run.status.code(), Some(2), "{stderr}");
        assert!(stderr.contains(part) && !stderr.contains("cannot reach you"), "{stderr}");
    }
    assert!(!fixture.dir.path().join("data").exists());
}

#[tokio::test]
async fn check_reports_that_nothing_was_found() {
    let fixture = Fixture::with([Host::new("empty.example")]).await;
    let checked = fixture.run(&["check", "empty.example", "--delay", "0s"]).await;
    let (result, log) = (text(&checked.stdout), text(&checked.stderr));
    let lines: Vec<&str> = result.lines().collect();
    assert_eq!(lines.first(), Some(&"empty.example: all planned paths were requested; 20 requests"), "{log}");
    assert_eq!(
        lines.get(1),
        Some(&"Nothing was found at 19 paths; `crawler explain empty.example --data-dir data` lists them.")
    );
}

#[tokio::test]
async fn check_reports_answers_other_than_a_missing_file() {
    let away = Host::new("old.example").robots("").catch_all(Answer::redirect(301, "https://mine.example/"));
    let fixture = Fixture::with([away, Host::new("mine.example")]).await;
    let checked = fixture.run(&["check", "old.example/agent.json", "--delay", "0s"]).await;
    let (result, log) = (text(&checked.stdout), text(&checked.stderr));
    assert!(result.contains(" redirects to other sites (for example /"), "{result}\n{log}");
    assert!(result.contains(": redirects to https://mine.example/, which is another site)."), "{result}");
}

#[tokio::test]
async fn exits_with_2_for_unknown_settings() {
    let fixture = Fixture::with([]).await;
    fixture.file("agentdex.toml", "delay = \"5s\"\n");
    let run = fixture.run(&["status", "--config", "agentdex.toml"]).await;
    assert_eq!(run.status.code(), Some(2));
    let stderr = text(&run.stderr);
    assert!(stderr.contains("line 1: unknown key `delay` here: it belongs in `[crawler]`"), "{stderr}");
    let run = fixture.command(&["status"]).env("AGENTDEX_CRAWLR_DELAY", "5s").output().await.unwrap();
    assert_eq!(run.status.code(), Some(2));
    assert!(text(&run.stderr).contains("did you mean AGENTDEX_CRAWLER_DELAY?"), "{}", text(&run.stderr));
}

#[tokio::test]
async fn a_closed_pipe_ends_a_command_without_an_error() {
    let fixture = Fixture::with([]).await;
    fixture.file("seeds", "nobody.example\n");
    fixture.file("hosts", "127.0.0.1:1 nobody.example\n");
    fixture.run(&["--seeds", "seeds", "--delay", "0s"]).await;
    let mut status = fixture.command(&["status"]);
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let child = status.stdout(writer).stderr(Stdio::piped()).spawn().unwrap();
    let run = child.wait_with_output().await.unwrap();
    assert_eq!((run.status.code(), text(&run.stderr).as_str()), (Some(0), ""));
}

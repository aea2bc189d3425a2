//! The program as its operator meets it: exit codes, sentences, the summary, and going on after being killed.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

#[expect(dead_code, reason = "each test program uses its own part")]
mod support;

use std::path::PathBuf;
use std::process::{Output, Stdio};

use support::{AWP, shop};
use testweb::{Host, Web};
use tokio::process::Command;

/// A directory with everything that the program needs.
struct Desk {
    dir: tempfile::TempDir,
    web: Web,
}

impl Desk {
    async fn with(hosts: impl IntoIterator<Item = Host>) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let web = Web::builder().hosts(hosts).start().await.unwrap();
        web.write_files(dir.path()).unwrap();
        Self { dir, web }
    }

    fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.dir.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_crawler"));
        command
            .current_dir(self.dir.path())
            .env_remove("DATABASE_URL")
            .args(arguments)
            .args(["--data-dir", "data", "--ca-file", "ca.pem", "--hosts", "hosts"])
            .args(["--allow-addresses", "127.0.0.0/8"])
            .stdin(Stdio::null())
            .kill_on_drop(true);
        command
    }

    async fn run(&self, arguments: &[&str]) -> Output {
        let run = self.command(arguments).output();
        tokio::time::timeout(std::time::Duration::from_mins(1), run).await.expect("an end").unwrap()
    }

    async fn json(&self, arguments: &[&str]) -> serde_json::Value {
        let output = self.run(arguments).await;
        assert!(output.status.success(), "{}", text(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[tokio::test]
async fn a_pass_prints_one_object_and_the_commands_explain_it() {
    let desk = Desk::with([shop()]).await;
    desk.file("seeds", "\u{feff}shop.example\r\nnot a domain\n# nothing\nshop.example\n");
    let summary = desk.json(&["--seeds", "seeds", "--delay", "0s", "--format", "json"]).await;
    assert_eq!(summary["seeds"]["read"], 1);
    assert_eq!(summary["seeds"]["rejected"][0]["line"], 2);
    assert_eq!(summary["sites_visited"], 1);
    assert_eq!(summary["requests"], 20);
    assert_eq!(summary["outcomes"]["found"], 1);
    assert_eq!(summary["manifests"]["awp"], 1);
    assert_eq!(summary["capabilities"], 1);
    assert_eq!(summary["parked"], serde_json::json!([]));
    assert!(summary["seconds"].is_number());

    let explained = text(&desk.run(&["explain", "shop.example"]).await.stdout);
    for part in
        ["everything planned was asked", "/agent.json  found 200 as awp", "Allow: /", "Next visit:", "etag:"]
    {
        assert!(explained.contains(part), "{part} is missing:\n{explained}");
    }
    let status = text(&desk.run(&["status"]).await.stdout);
    assert!(status.contains("Sites: 1") && status.contains("1 completed"), "{status}");
    let checked = text(&desk.run(&["check", "shop.example", "--delay", "0s"]).await.stdout);
    assert!(checked.contains("https://shop.example/agent.json (awp, fresh)"), "{checked}");

    let blocked = text(&desk.run(&["block", "shop.example"]).await.stdout);
    assert!(blocked.contains("removed 1 manifests"), "{blocked}");
    desk.web.log().forget();
    let check = desk.run(&["check", "shop.example"]).await;
    assert_eq!(check.status.code(), Some(1));
    assert!(text(&check.stderr).contains("is blocked"), "{}", text(&check.stderr));
    assert!(text(&desk.run(&["unblock", "shop.example"]).await.stdout).contains("may be visited again"));
    assert_eq!(desk.web.log().hit_count(), 0);
}

#[tokio::test]
async fn a_pass_in_text_counts_what_happened() {
    let desk = Desk::with([shop(), Host::new("gone.example").refusing_connections()]).await;
    desk.file("seeds", "shop.example\ngone.example\n");
    let output = desk.run(&["--seeds", "seeds", "--delay", "0s"]).await;
    let (shown, said) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(shown.contains("2 sites visited") && shown.contains("1 unreachable"), "{shown}");
    assert!(said.contains("--contact-email"), "{said}");
    assert!(!shown.contains("Next:"), "the next command is for terminals: {shown}");
}

#[tokio::test]
async fn wrong_use_is_one_sentence_and_2() {
    let desk = Desk::with([shop()]).await;
    desk.file("empty", "# nothing\n");
    desk.file("wrong.toml", "[crawler]\ndelays = \"3s\"\n");
    for (arguments, part) in [
        (vec!["--seeds", "empty"], "holds no seed"),
        (vec!["--seeds", "nowhere"], "cannot read the seed file nowhere"),
        (vec!["--seeds", "empty", "--delay", "fast"], "--delay"),
        (vec!["--seeds", "empty", "--config", "wrong.toml"], "delays"),
        (vec!["--seeds", "empty", "--daemon"], "--contact-url"),
        (vec![], "--seeds"),
    ] {
        let output = desk.run(&arguments).await;
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        let sentence = said.lines().last().unwrap_or_default();
        assert!(sentence.starts_with("crawler: ") && sentence.contains(part), "{arguments:?}: {said}");
    }
    let unknown = desk.run(&["--sedes", "empty"]).await;
    assert_eq!(unknown.status.code(), Some(2));
    assert_eq!(desk.web.log().hit_count(), 0);
}

#[tokio::test]
async fn a_database_that_cannot_be_used_is_one_sentence_and_1() {
    let desk = Desk::with([shop()]).await;
    desk.file("seeds", "shop.example\n");
    desk.file("data", "a file where a directory should be");
    let output = desk.run(&["--seeds", "seeds"]).await;
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    let url = "postgres://nobody@127.0.0.1:1/agentdex";
    let output = desk.run(&["--seeds", "seeds", "--database-url", url]).await;
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1));
    assert!(said.lines().last().unwrap_or_default().contains("--database-url"), "{said}");
}

#[tokio::test]
async fn a_signal_drains_and_the_next_run_goes_on() {
    let desk = Desk::with([shop()]).await;
    desk.file("seeds", "shop.example\n");
    let arguments = ["--seeds", "seeds", "--delay", "150ms", "--format", "json"];
    let child = desk.command(&arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    desk.web.log().wait_until(|log| log.hit_count() >= 4).await;
    let pid = child.id().unwrap().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().await.unwrap().success());
    let output = child.wait_with_output().await.unwrap();
    let summary: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&summary["interrupted"], output.status.code()), (&true.into(), Some(0)));
    let summary = desk.json(&["--seeds", "seeds", "--delay", "0s", "--format", "json"]).await;
    assert_eq!((&summary["sites_visited"], &summary["manifests"]["awp"]), (&1.into(), &1.into()));
    assert_eq!(desk.web.log().hits_on("shop.example").len(), 20, "no path is asked twice");
}

#[tokio::test]
async fn seeds_come_from_stdin_too() {
    use tokio::io::AsyncWriteExt;
    let host = Host::new("pipe.example").file("/agent.json", "application/json", AWP);
    let desk = Desk::with([host]).await;
    let mut command = desk.command(&["--seeds", "-", "--delay", "0s", "--format", "json", "-q"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"1,pipe.example\n").await.unwrap();
    let output = child.wait_with_output().await.unwrap();
    let summary: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(summary["sites_visited"], 1);
}

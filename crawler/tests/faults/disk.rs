//! The disk of the embedded database fills up during a crawl and has free space again later.

use std::process::Stdio;
use std::time::Duration;

use testweb::Host;
use tokio::process::{Child, Command};

use crate::fixture::{Fixture, text};
use crate::skipped::skipped;
use crate::support::AWP;

const SITES: usize = 12;
const DELAY: Duration = Duration::from_millis(100);
/// How long the disk stays full.
const FULL: Duration = Duration::from_secs(4);
/// A stop takes less than that: much less than the time for visits that can be saved.
const STOP_MAX: Duration = Duration::from_secs(25);
/// Requests whose clocks were written before the disk was full may still begin within this time.
const GRACE_US: u64 = 500_000;

/// A small file system in memory under `data`, which is filled when `fill` appears and cleared when `clear` does.
const SCRIPT: &str = r#"
mount -t tmpfs -o size=24m agentdex-test data || exit 77
"$@" &
crawler=$!
echo "$crawler" > pid
until [ -e fill ]; do sleep 0.02; done
dd if=/dev/zero of=data/filler bs=64k 2>/dev/null
dd if=/dev/zero of=data/filler2 bs=1k 2>/dev/null
touch full
until [ -e clear ] || ! kill -0 "$crawler" 2>/dev/null; do sleep 0.02; done
rm data/filler data/filler2
wait "$crawler"
"#;
/// Exit code of the script if it may not mount a file system.
const NOT_ALLOWED: i32 = 77;

async fn may_mount() -> bool {
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--mount", "mount", "-t", "tmpfs", "agentdex-test", "/mnt"]);
    command.stderr(Stdio::null()).status().await.is_ok_and(|status| status.success())
}

fn names() -> Vec<String> {
    (0..SITES).map(|index| format!("shop{index}.example")).collect()
}

/// A crawl of sites, on a disk that is filled while it visits them. `None` if no disk can be mounted here.
async fn crawl_on_a_disk_that_fills_up() -> Option<(Fixture, Child)> {
    if !may_mount().await {
        skipped("file systems cannot be mounted here, not even in a namespace of one's own");
        return None;
    }
    let names = names();
    let hosts = names.iter().map(|name| Host::new(name).file("/agent.json", "application/json", AWP));
    let fixture = Fixture::with(hosts).await;
    fixture.file("seeds", &names.join("\n"));
    fixture.file("script", SCRIPT);
    std::fs::create_dir(fixture.dir.path().join("data")).unwrap();
    let delay = format!("{}ms", DELAY.as_millis());
    let crawler = fixture.command(&["--seeds", "seeds", "--delay", &delay, "--format", "json"]);
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--mount", "sh", "script"]);
    command.arg(crawler.as_std().get_program()).args(crawler.as_std().get_args());
    command.current_dir(fixture.dir.path()).env_remove("DATABASE_URL").kill_on_drop(true);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    fixture.web.log().wait_until(|log| log.hit_count() >= 4 * SITES).await;
    fixture.file("fill", "");
    wait_for_file(&fixture, "full").await;
    Some((fixture, child))
}

/// Pass criteria: no request is sent before its clock is on the disk, and the crawl continues without intervention.
#[tokio::test]
async fn waits_while_the_disk_is_full() {
    let Some((fixture, child)) = crawl_on_a_disk_that_fills_up().await else { return };
    let log = fixture.web.log();
    let full_us = log.now_us();
    tokio::time::sleep(FULL).await;
    let cleared_us = log.now_us();
    fixture.file("clear", "");
    let ended = tokio::time::timeout(Duration::from_mins(1), child.wait_with_output()).await;
    let ended = ended.expect("an end").unwrap();
    assert_ne!(ended.status.code(), Some(NOT_ALLOWED), "{}", text(&ended.stderr));
    assert!(ended.status.success(), "{}", text(&ended.stderr));
    let summary: serde_json::Value = serde_json::from_slice(&ended.stdout).unwrap();
    assert_eq!((&summary["sites_visited"], &summary["failed"]), (&SITES.into(), &0.into()), "{summary}");
    assert_eq!(summary["manifests"]["awp"], SITES, "{summary}");
    let hits = log.hits();
    let during = hits.iter().filter(|hit| (full_us + GRACE_US..cleared_us).contains(&hit.started_us));
    let during: Vec<_> = during.map(|hit| (&hit.host, &hit.path)).collect();
    assert!(during.is_empty(), "requests were sent while the disk was full: {during:?}");
    for name in &names() {
        for pair in log.hits_on(name).windows(2) {
            let gap = Duration::from_micros(pair[1].started_us.saturating_sub(pair[0].ended_us));
            assert!(gap >= DELAY, "{gap:?} on {name} between {} and {}", pair[0].path, pair[1].path);
        }
    }
}

/// The open visits are given up: what they wait for does not end before the program has to.
#[tokio::test]
async fn a_stop_while_the_disk_is_full_ends_after_seconds() {
    let Some((fixture, child)) = crawl_on_a_disk_that_fills_up().await else { return };
    tokio::time::sleep(Duration::from_secs(1)).await;
    let crawler = std::fs::read_to_string(fixture.dir.path().join("pid")).unwrap();
    assert!(Command::new("kill").args(["-TERM", crawler.trim()]).status().await.unwrap().success());
    let ended = tokio::time::timeout(STOP_MAX, child.wait_with_output()).await;
    let ended = ended.expect("the crawler did not stop in time").unwrap();
    let log = text(&ended.stderr);
    assert!(ended.status.success() && !log.contains("ERROR"), "{log}");
    let summary: serde_json::Value = serde_json::from_slice(&ended.stdout).unwrap();
    assert_eq!((&summary["interrupted"], &summary["failed"]), (&true.into(), &0.into()), "{summary}");
}

/// Pass criteria: new documents are refused with the reason, and an opt-out is recorded.
#[tokio::test]
async fn a_disk_that_is_nearly_full_has_room_for_an_opt_out_but_not_for_new_documents() {
    if !may_mount().await {
        skipped("file systems cannot be mounted here, not even in a namespace of one's own");
        return;
    }
    let sites = ["known.example", "shop0.example", "shop1.example"];
    let hosts = sites.iter().map(|name| Host::new(name).file("/agent.json", "application/json", AWP));
    let fixture = Fixture::with(hosts).await;
    fixture.file("first", "known.example\n");
    fixture.file("seeds", "shop0.example\nshop1.example\n");
    std::fs::create_dir(fixture.dir.path().join("data")).unwrap();
    let run = |arguments: &[&str], output: &str| {
        let command = fixture.command(arguments);
        let words = std::iter::once(command.as_std().get_program()).chain(command.as_std().get_args());
        let words: Vec<_> = words.map(|word| format!("'{}'", word.to_str().unwrap())).collect();
        format!("{} > {output} || exit 1\n", words.join(" "))
    };
    let crawl = |seeds| run(&["--seeds", seeds, "--delay", "0s", "--revisit", "0s"], "summary");
    let status = |output| run(&["status", "--format", "json"], output);
    let script = [
        "mount -t tmpfs -o size=200m agentdex-test data || exit 77\n",
        &crawl("first"),
        "free=$(df -m --output=avail data | tail -1)\n",
        "dd if=/dev/zero of=data/filler bs=1M count=$((free - 9)) 2>/dev/null\n",
        &crawl("seeds"),
        &status("full.json"),
        &run(&["explain", "shop1.example"], "explained"),
        &run(&["block", "shop0.example"], "blocked"),
        "rm data/filler\n",
        &run(&["check", "shop1.example", "--delay", "0s"], "checked"),
        &status("space.json"),
    ];
    fixture.file("script", &script.concat());
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--mount", "sh", "script"]);
    command.current_dir(fixture.dir.path()).env_remove("DATABASE_URL").kill_on_drop(true);
    let ended =
        tokio::time::timeout(Duration::from_mins(1), command.output()).await.expect("an end").unwrap();
    let log = text(&ended.stderr);
    assert!(ended.status.success(), "{log}");
    let read = |name: &str| std::fs::read_to_string(fixture.dir.path().join(name)).unwrap();
    let manifests = ["full.json", "space.json"].map(|name| {
        let status: serde_json::Value = serde_json::from_str(&read(name)).unwrap();
        status["manifests"].as_u64()
    });
    assert_eq!(manifests, [Some(1), Some(2)], "{log}");
    let why = "the disk of the database is nearly full";
    assert!(read("explained").contains(why), "{}", read("explained"));
    assert_eq!(log.matches(why).count(), 1, "one warning: {log}");
}

async fn wait_for_file(fixture: &Fixture, name: &str) {
    let path = fixture.dir.path().join(name);
    let appeared = async {
        while !path.exists() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), appeared).await.expect("the disk to be filled");
}

//! Tests of the program as the operator sees it: exit codes, messages, the summary, and resuming after a kill.

#![expect(clippy::unwrap_used, reason = "a failed test should show the line")]

#[expect(dead_code, reason = "each test program uses its own part")]
mod support;

#[path = "support/fixture.rs"]
mod fixture;
#[path = "support/program.rs"]
mod program_path;
#[path = "support/skipped.rs"]
mod skipped;
#[path = "program/typed.rs"]
mod typed;

use std::process::Stdio;

use fixture::{Fixture, text};
use manifest::{ContentHash, ManifestUrl, READER_VERSION, SiteName};
use skipped::skipped;
use store::{ReadAttempt, ReadAttemptWrite, Store};
use support::{AWP, now, shop};
use testweb::Host;
use tokio::process::Command;

#[tokio::test]
async fn prints_one_json_object_per_pass() {
    let fixture = Fixture::with([shop(), Host::new("gone.example").refusing_connections()]).await;
    fixture.file("seeds", "\u{feff}shop.example\r\nnot a domain\n# nothing\nshop.example\n");
    let summary = fixture.json(&["--seeds", "seeds", "--delay", "0s", "--format", "json"]).await;
    assert_eq!(summary["seeds"]["read"], 1);
    assert_eq!(summary["seeds"]["rejected"][0]["line"], 2);
    assert_eq!(summary["sites_visited"], 1);
    assert_eq!(summary["requests"], 20);
    assert_eq!(summary["outcomes"]["found"], 1);
    assert_eq!(summary["manifests"]["awp"], 1);
    assert_eq!(summary["capabilities"], 1);
    assert_eq!(summary["parked"], serde_json::json!([]));
    assert!(summary["seconds"].is_number());

    let explained = text(&fixture.run(&["explain", "shop.example"]).await.stdout);
    for part in [
        "all planned paths were requested",
        "/agent.json  manifest read 200 as awp",
        "Allow: /",
        "rules that concern agentdex: 1",
        "requests today: 20; the limit of a host is 40, which does not apply inside --allow-addresses",
        "Next visit:",
        "etag:",
        "decision: stored, and requested with its validators at the next visit",
        "decision: nothing is stored; a known document is removed after the second such visit in a row",
        "https://shop.example  18 paths  not there 404: the server answered 404 Not Found  [",
        " bytes with robots.txt, ",
        "\n      /.well-known/agent.json\n",
        "time: names",
    ] {
        assert!(explained.contains(part), "{part} is missing:\n{explained}");
    }
    let status = text(&fixture.run(&["status"]).await.stdout);
    assert!(status.contains("Sites: 1") && status.contains("1 completed"), "{status}");
    let checked = text(&fixture.run(&["check", "shop.example", "--delay", "0s"]).await.stdout);
    assert!(checked.contains("https://shop.example/agent.json (awp, fresh)"), "{checked}");

    let blocked = text(&fixture.run(&["block", "shop.example"]).await.stdout);
    let database =
        format!("sqlite:{}", fixture.dir.path().canonicalize().unwrap().join("data/agentdex.db").display());
    let expected =
        format!("shop.example is blocked in {database}: it is not visited any more; deleted 1 manifest and");
    assert!(blocked.starts_with(&expected), "{blocked}");
    fixture.web.log().clear();
    let check = fixture.run(&["check", "shop.example"]).await;
    assert_eq!(check.status.code(), Some(1));
    assert!(
        text(&check.stderr).contains("it is blocked (by decision of the operator); `"),
        "{}",
        text(&check.stderr)
    );
    let explained = text(&fixture.run(&["explain", "shop.example"]).await.stdout);
    assert!(explained.contains(": by decision of the operator\n"), "{explained}");
    let unblocked = text(&fixture.run(&["unblock", "shop.example"]).await.stdout);
    let reason = "it was blocked for this reason: \"by decision of the operator\"";
    assert_eq!(unblocked, format!("shop.example may be visited again, in {database}; {reason}\n"));
    assert_eq!(fixture.web.log().hit_count(), 0);

    let failed = fixture.run(&["check", "gone.example"]).await;
    let (stdout, stderr) = (text(&failed.stdout), text(&failed.stderr));
    assert!(stdout.contains("Check the network of this machine"), "{stdout}");
    assert!(
        !stderr.contains("site owners cannot reach you"),
        "the site is in the operator's own network: {stderr}"
    );
}

/// The timeline of a site over three visits: found, unchanged, gone and forbidden; robots.txt with a delay and a misspelling.
#[tokio::test]
async fn explain_shows_the_timeline_of_a_site() {
    let agent = testweb::Answer::json(AWP).header("cache-control", "max-age=3600");
    let robots = "User-agent: *\nCrawl-delay: 0.01\nDisalow: /private\nAllow: /\n";
    let fixture = Fixture::with([Host::new("shop.example").robots(robots).route("/agent.json", agent)]).await;
    fixture.file("seeds", "shop.example\n");
    let crawl = ["--seeds", "seeds", "--delay", "0s", "--revisit", "0s", "--format", "json"];
    fixture.json(&crawl).await;
    fixture.json(&crawl).await;
    let stdout = text(&fixture.run(&["explain", "shop.example"]).await.stdout);
    for part in [
        "line 2: Crawl-delay of ",
        "line 3: misspelt, and understood (/private)",
        "rules that concern agentdex: 2",
        "cache-control: max-age=3600",
        "decision: stored, and not requested again before ",
        "decision: not requested, because its copy is fresh",
        "fresh until ",
        "robots.txt: allowed by line 4: Allow: /",
    ] {
        assert!(stdout.contains(part), "{part} is missing:\n{stdout}");
    }
    assert_eq!(stdout.matches("Visit of ").count(), 2, "{stdout}");
    let report = fixture.json(&["explain", "shop.example", "--visits", "1", "--format", "json"]).await;
    assert_eq!(report["visits"].as_array().unwrap().len(), 1, "{report}");
    assert!(report["summary"]["next_visit_at"].is_string(), "{report}");
    let checked = text(&fixture.run(&["check", "shop.example", "--delay", "0s"]).await.stdout);
    assert!(checked.contains("https://shop.example/agent.json (awp, fresh)"), "{checked}");
    assert!(!checked.contains("its copy is fresh"), "a check requests it:\n{checked}");
    let unknown = fixture.run(&["explain", "nobody.example"]).await;
    let (code, stderr) = (unknown.status.code(), text(&unknown.stderr));
    assert_eq!(code, Some(1));
    assert!(
        stderr.contains("neither seeded nor linked") && stderr.contains("crawler check nobody.example"),
        "{stderr}"
    );
}

#[tokio::test]
async fn explain_shows_the_rule_that_forbids_everything() {
    let fixture = Fixture::with([
        Host::new("keepout.example").robots("User-agent: *\nDisallow: /\n"),
        Host::new("page.example").robots("<!doctype html><title>Shop</title>"),
    ])
    .await;
    fixture.file("seeds", "keepout.example\npage.example\n");
    fixture.json(&["--seeds", "seeds", "--delay", "0s", "--format", "json"]).await;
    for (site, line) in [
        ("keepout.example", "\n  /: disallowed by line 2: Disallow: /\n"),
        ("page.example", "\n  file: an HTML page, not rules\n"),
    ] {
        let explained = text(&fixture.run(&["explain", site]).await.stdout);
        assert!(explained.contains(line), "{explained}");
    }
}

/// A document that crashed its readers is not read again, and `explain` shows why.
#[tokio::test]
async fn explain_shows_a_quarantined_document() {
    let fixture = Fixture::with([shop()]).await;
    fixture.file("seeds", "shop.example\n");
    let store = Store::open_in_data_dir(&fixture.dir.path().join("data")).await.unwrap();
    let reason = "quarantined on 2026-01-02 03:04 UTC: the process that read it ended without a result";
    let attempt = ReadAttempt {
        hash: ContentHash::of(AWP.as_bytes()),
        reader_version: READER_VERSION,
        site: SiteName::parse("shop.example").unwrap(),
        url: ManifestUrl::parse("https://shop.example/agent.json").unwrap(),
        began_at: now(),
    };
    let quarantine = ReadAttemptWrite::Quarantine { attempt, at: now(), reason: reason.to_owned() };
    store.read_attempts_write(&[quarantine]).await.unwrap();
    store.close().await;
    let summary = fixture.json(&["--seeds", "seeds", "--delay", "0s", "--format", "json"]).await;
    assert_eq!(summary["capabilities"], 0, "{summary}");
    let explained = text(&fixture.run(&["explain", "shop.example"]).await.stdout);
    assert!(explained.contains(&format!("/agent.json  quarantined 200: {reason}")), "{explained}");
}

/// Text of a site cannot control the terminal of the operator, start a new line or reorder the text.
#[tokio::test]
async fn texts_of_sites_cannot_control_the_terminal() {
    const HOSTILE: &str = "\u{1b}]0;owned\u{7}\u{9b}2J\u{202e}\u{2028}x";
    let robots = format!("User-agent: *\nDisalow: /{HOSTILE}\nAllow: /\n");
    let quoted = serde_json::to_string(HOSTILE).unwrap();
    let awp = AWP.replace("Sell books", quoted.trim_matches('"'));
    let hostile = Host::new("shop.example").robots(&robots).file("/agent.json", "application/json", awp);
    let fixture = Fixture::with([hostile]).await;
    fixture.file("seeds", &format!("shop.example\n{HOSTILE}\n"));
    for arguments in [
        &["--seeds", "seeds", "--delay", "0s"][..],
        &["explain", "shop.example"],
        &["explain", "shop.example", "--format", "json"],
        &["check", "shop.example", "--delay", "0s"],
        &["status"],
        &["explain", HOSTILE],
    ] {
        let output = fixture.run(arguments).await;
        let printed = text(&output.stdout) + &text(&output.stderr);
        let found = printed.chars().find(|letter| *letter != '\n' && settings::escape::is_unsafe(*letter));
        assert_eq!(found, None, "{arguments:?}: {printed:?}");
        if arguments == ["explain", "shop.example"] {
            assert!(printed.contains("misspelt, and understood (/*]0;owned*2J"), "{printed}");
        }
    }
}

/// The queue, the lag, the outcomes, and the sites that fail or are slow.
#[tokio::test]
async fn status_shows_the_state_of_the_crawl() {
    let busy = testweb::Answer::retry_after(429, "3600");
    let slow = testweb::Answer::text("User-agent: *\nDisallow: /\n").after(std::time::Duration::from_secs(1));
    let fixture = Fixture::with([
        shop(),
        Host::new("gone.example").refusing_connections(),
        Host::new("slow.example").route("/robots.txt", slow),
        Host::new("busy.example").robots("").route("/.well-known/agent.json", busy),
        Host::new("patient.example").robots("User-agent: *\nCrawl-delay: 3600\n"),
    ])
    .await;
    fixture.file("seeds", "shop.example\ngone.example\nslow.example\nbusy.example\npatient.example\n");
    fixture.json(&["--seeds", "seeds", "--delay", "0s", "--park-wait", "0s", "--format", "json"]).await;
    let status = fixture.json(&["status", "--format", "json"]).await;
    for (what, count) in
        [("sites", 5), ("sites_due", 0), ("sites_leased", 0), ("sites_parked", 1), ("lag_seconds", 0)]
    {
        assert_eq!(status[what], count, "{what}: {status}");
    }
    let ends = &status["ends_last_day"];
    for end in ["completed", "unreachable", "rate_limited"] {
        let found = ends.as_array().unwrap().iter().any(|row| row[0] == end);
        assert!(found, "{end} is missing in {ends}");
    }
    let failing: Vec<&str> =
        status["failing"].as_array().unwrap().iter().map(|row| row["site"].as_str().unwrap()).collect();
    assert_eq!(failing, ["busy.example", "gone.example"], "{status}");
    assert_eq!(status["slowest"][0]["site"], "slow.example", "{status}");
    let busy = text(&fixture.run(&["explain", "busy.example"]).await.stdout);
    assert!(busy.contains("because the last visit ended early: the site asked for a delay."), "{busy}");
    let stdout = text(&fixture.run(&["status"]).await.stdout);
    for part in [
        "Sites: 5 (0 due, 0 being visited, 0 blocked, 0 suspended; 1 visit of these sites is parked)",
        "Manifests: 1 with 1 capability, in 1 document",
        "By format: 1 awp",
        "1 unreachable",
        "1 manifest read",
        "Failing: gone.example: no connection to any address",
        "Slow: slow.example, ",
        "Parked: patient.example until ",
    ] {
        assert!(stdout.contains(part), "{part} is missing:\n{stdout}");
    }
}

#[tokio::test]
async fn explain_shows_what_a_parked_visit_requests_next() {
    let slow = Host::new("patient.example").robots("User-agent: *\nCrawl-delay: 86400\n");
    let fixture = Fixture::with([slow]).await;
    fixture.file("seeds", "patient.example\n");
    fixture.json(&["--seeds", "seeds", "--delay", "0s", "--park-wait", "0s", "--format", "json"]).await;
    let stdout = text(&fixture.run(&["explain", "patient.example"]).await.stdout);
    for part in [
        "A visit is parked until ",
        "  1 request since ",
        "; the next is https://patient.example/",
        ", 9 URLs are left",
        "line 2: Crawl-delay of 1 d is obeyed",
    ] {
        assert!(stdout.contains(part), "{part} is missing:\n{stdout}");
    }
    assert!(!stdout.contains("the next is https://patient.example/robots.txt"), "{stdout}");
}

#[tokio::test]
async fn explain_reports_that_a_site_is_being_visited() {
    let fixture = Fixture::with([Host::new("slow.example")]).await;
    fixture.file("seeds", "slow.example\n");
    let crawl = fixture.command(&["--seeds", "seeds", "--delay", "4s"]).spawn().unwrap();
    fixture.web.log().wait_until(|log| log.hit_count() > 0).await;
    let explained = text(&fixture.run(&["explain", "slow.example"]).await.stdout);
    assert!(explained.contains("Being visited now, by "), "{explained}");
    assert!(explained.ends_with("No visit has ended yet.\n"), "{explained}");
    assert!(!explained.contains("Next visit:"), "{explained}");
    drop(crawl);
}

/// Found manifests change the order of requests, in this run and after a restart.
#[tokio::test]
async fn ranks_paths_by_results() {
    let hosts = (0..40).map(|index| {
        Host::new(&format!("llms{index}.example")).file(
            "/llms.txt",
            "text/plain",
            "# Shop\n\n> Sells books.\n",
        )
    });
    let fixture = Fixture::with(hosts.chain([Host::new("later.example")])).await;
    let seeds: Vec<String> = (0..40).map(|index| format!("https://llms{index}.example/llms.txt")).collect();
    fixture.file("seeds", &seeds.join("\n"));
    Store::open_in_data_dir(&fixture.dir.path().join("data")).await.unwrap().close().await;
    let before = fixture.json(&["paths", "--format", "json"]).await;
    let position = |paths: &serde_json::Value| {
        paths.as_array().unwrap().iter().position(|row| row["path"] == "/llms.txt").unwrap()
    };
    assert_eq!(position(&before), 16, "{before}");
    assert_eq!((&before[16]["first"], &before[16]["visit"]), (&0.into(), &3.into()), "{before}");
    let summary = fixture.json(&["--seeds", "seeds", "--delay", "0s", "--format", "json"]).await;
    assert_eq!(summary["sites_visited"], 40, "{summary}");
    let after = fixture.json(&["paths", "--format", "json"]).await;
    let row = &after[position(&after)];
    assert_eq!(
        (&row["asked"], &row["found"], &row["assumed"]),
        (&40.into(), &40.into(), &1_910.into()),
        "{row}"
    );
    assert!(position(&after) < 8 && row["estimated"].as_u64().unwrap() > 1_000, "{after}");
    let shown = text(&fixture.run(&["paths"]).await.stdout);
    assert!(
        shown.contains("REQUESTED   FOUND  VISIT  PATH") && shown.contains("40      40      1  /llms.txt"),
        "{shown}"
    );
    assert!(shown.contains("A first visit that finds nothing leaves "), "{shown}");
    fixture.file("later", "later.example\n");
    fixture.json(&["--seeds", "later", "--delay", "0s", "--format", "json"]).await;
    let asked = fixture.web.log().hits_on("later.example");
    let place = asked.iter().position(|hit| hit.path == "/llms.txt").unwrap();
    assert_eq!(place, position(&after) + 1, "robots.txt, then the paths in their new order");
}

#[tokio::test]
async fn text_report_counts_the_results_of_a_pass() {
    let fixture = Fixture::with([shop(), Host::new("gone.example").refusing_connections()]).await;
    fixture.file("seeds", "shop.example\ngone.example\n");
    let output = fixture.run(&["--seeds", "seeds", "--delay", "0s"]).await;
    let (shown, stderr) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    assert!(shown.contains("2 sites visited") && shown.contains("1 unreachable"), "{shown}");
    assert!(shown.contains("1 of 2 sites: no connection to any address (gone.example). Check"), "{shown}");
    assert!(stderr.contains("--contact-email"), "{stderr}");
    assert!(!shown.contains("Next:"), "the next command is for terminals: {shown}");
}

#[tokio::test]
async fn exits_with_2_and_one_sentence_for_wrong_usage() {
    let fixture = Fixture::with([shop()]).await;
    fixture.file("empty", "# nothing\n");
    fixture.file("wrong.toml", "[crawler]\ndelays = \"3s\"\n");
    for (arguments, part) in [
        (vec!["--seeds", "empty"], "holds no seed"),
        (vec!["--seeds", "nowhere"], "cannot read the seed file nowhere"),
        (vec!["--seeds", "empty", "--delay", "fast"], "--delay"),
        (vec!["--seeds", "empty", "--config", "wrong.toml"], "delays"),
        (vec!["--seeds", "empty", "--retain-feed", "90d"], "--retain-feed is for a crawl that keeps running"),
        (
            vec!["--daemon", "--contact-email", "me@crawler.example", "--retain-versions", "1h"],
            "--retain-versions must be at least one day",
        ),
        (vec!["--seeds", "empty", "--lease", "25h"], "--lease must be at most one day"),
        (vec![], "--seeds"),
    ] {
        let output = fixture.run(&arguments).await;
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {stderr}");
        let sentence = stderr.lines().last().unwrap_or_default();
        assert!(sentence.starts_with("crawler: ") && sentence.contains(part), "{arguments:?}: {stderr}");
    }
    let unknown = fixture.run(&["--sedes", "empty"]).await;
    assert_eq!(unknown.status.code(), Some(2));
    assert_eq!(fixture.web.log().hit_count(), 0);
}

#[tokio::test]
async fn exits_with_1_and_one_sentence_for_an_unusable_database() {
    let fixture = Fixture::with([shop()]).await;
    fixture.file("seeds", "shop.example\n");
    fixture.file("data", "a file where a directory should be");
    let output = fixture.run(&["--seeds", "seeds"]).await;
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    let url = "postgres://nobody@127.0.0.1:1/agentdex";
    let output = fixture.run(&["status", "--database-url", url]).await;
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr.lines().last().unwrap_or_default().contains("--database-url"), "{stderr}");
}

#[tokio::test]
async fn drains_on_a_signal_and_resumes_in_the_next_run() {
    let fixture = Fixture::with([shop()]).await;
    fixture.file("seeds", "shop.example\n");
    let arguments = ["--seeds", "seeds", "--delay", "150ms", "--format", "json"];
    let child = fixture.command(&arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    fixture.web.log().wait_until(|log| log.hit_count() >= 4).await;
    let pid = child.id().unwrap().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().await.unwrap().success());
    let output = child.wait_with_output().await.unwrap();
    let summary: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&summary["interrupted"], output.status.code()), (&true.into(), Some(0)));
    let summary = fixture.json(&["--seeds", "seeds", "--delay", "0s", "--format", "json"]).await;
    assert_eq!((&summary["sites_visited"], &summary["manifests"]["awp"]), (&1.into(), &1.into()));
    assert_eq!(fixture.web.log().hits_on("shop.example").len(), 20, "no path is requested twice");
}

#[tokio::test]
async fn reads_seeds_from_stdin() {
    use tokio::io::AsyncWriteExt;
    let host = Host::new("pipe.example").file("/agent.json", "application/json", AWP);
    let fixture = Fixture::with([host]).await;
    let mut command = fixture.command(&["--seeds", "-", "--delay", "0s", "--format", "json", "-q"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"1,pipe.example\n").await.unwrap();
    let output = child.wait_with_output().await.unwrap();
    let summary: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(summary["sites_visited"], 1);
}

/// Waits until a file contains a text.
async fn wait_for(path: &std::path::Path, part: &str) -> String {
    let found = async {
        loop {
            let text = std::fs::read_to_string(path).unwrap_or_default();
            if text.contains(part) {
                return text;
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_mins(1), found).await.unwrap_or_else(|_| {
        panic!("{part:?} did not appear in {}: {:?}", path.display(), std::fs::read_to_string(path))
    })
}

#[tokio::test]
async fn daemon_prints_schedules_serves_metrics_and_drains_on_a_signal() {
    let fixture = Fixture::with([shop(), Host::new("later.example")]).await;
    let seeds = fixture.file("seeds", "shop.example\n");
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let metrics = format!("127.0.0.1:{port}");
    let stderr_path = fixture.dir.path().join("stderr");
    let stderr = std::fs::File::create(&stderr_path).unwrap();
    let child = fixture
        .command(&["--daemon", "--contact-email", "me@crawler.example", "--seeds", "seeds", "--delay", "0s"])
        .args(["--metrics", &metrics, "--events", "events.jsonl", "--format", "json"])
        .args(["--schedule-seeds", "* * * * *", "--schedule-report", "0 6 * * 1-5"])
        .stdout(Stdio::piped())
        .stderr(stderr)
        .spawn()
        .unwrap();
    let stderr = wait_for(&stderr_path, "report: next at").await;
    let times = stderr.lines().find(|line| line.contains("report: next at")).unwrap();
    assert_eq!(times.matches(" 06:00 UTC").count(), 3, "{times}");
    let events = fixture.dir.path().join("events.jsonl");
    wait_for(&events, "visit_ended").await;
    // the seeds are read again at the next full minute
    std::fs::write(&seeds, "shop.example\nlater.example\n").unwrap();
    let page = get(&metrics).await;
    for line in [
        "agentdex_crawler_visits_total{end=\"completed\"} 1",
        "agentdex_crawler_requests_total 20",
        "agentdex_crawler_manifests_total{change=\"added\"} 1",
        "agentdex_crawler_leases_lost_total 0",
        "agentdex_crawler_wait_seconds_bucket{scope=\"node\"",
        "agentdex_crawler_open_files",
        "agentdex_crawler_resident_bytes",
        "agentdex_crawler_lag_seconds",
    ] {
        assert!(page.contains(line), "{line} is missing:\n{page}");
    }
    fixture.web.log().wait_until(|log| !log.hits_on("later.example").is_empty()).await;
    let pid = child.id().unwrap().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().await.unwrap().success());
    let output = child.wait_with_output().await.unwrap();
    let summary: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((output.status.code(), &summary["interrupted"]), (Some(0), &true.into()), "{summary}");
    let recorded: Vec<serde_json::Value> = std::fs::read_to_string(&events)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let count = |event: &str| recorded.iter().filter(|line| line["event"] == event).count();
    assert_eq!(count("request"), count("answer"));
    assert_eq!(count("request"), fixture.web.log().hit_count());
    assert_eq!((count("seeded"), count("stopped")), (1, 1), "{recorded:?}");
    // at the full minute, and possibly before, because the file has changed
    assert!((1..=2).contains(&count("scheduled")), "{recorded:?}");
}

/// Sends a GET request for `/metrics` over a plain TCP connection.
async fn get(address: &str) -> String {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
    let request = format!("GET /metrics HTTP/1.0\r\nhost: {address}\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut page = String::new();
    stream.read_to_string(&mut page).await.unwrap();
    page
}

#[tokio::test]
async fn dry_run_lists_requests_and_sends_nothing() {
    let fixture = Fixture::with([shop(), Host::new("other.example")]).await;
    fixture.file("seeds", "shop.example\nhttps://other.example/special/agent.json\n");
    let plan = fixture.json(&["--seeds", "seeds", "--dry-run", "--format", "json"]).await;
    assert_eq!((&plan["requests"], fixture.web.log().hit_count()), (&31.into(), 0), "{plan}");
    assert_eq!(plan["sites"][0]["requests"][0]["url"], "https://other.example/robots.txt");
    assert!(!fixture.dir.path().join("data").exists(), "a dry run creates nothing");
    fixture.json(&["--seeds", "seeds", "--delay", "0s", "--format", "json"]).await;
    let before = fixture.json(&["status", "--format", "json"]).await;
    let hits = fixture.web.log().hit_count();
    let shown = text(&fixture.run(&["--seeds", "seeds", "--dry-run"]).await.stdout);
    assert!(shown.contains("shop.example: not before") && shown.contains("nothing was sent"), "{shown}");
    let after = fixture.json(&["status", "--format", "json"]).await;
    assert_eq!(before["sites"], after["sites"], "a dry run does not change the store");
    assert_eq!(fixture.web.log().hit_count(), hits);
}

#[tokio::test]
async fn dry_run_reports_skipped_lines_like_a_crawl() {
    let fixture = Fixture::with([shop()]).await;
    let seeds = "shop.example\nnot a domain\nshop.example\nhttps://shop.example:8443/\n";
    fixture.file("seeds", seeds);
    let named = |shown: &str| -> Vec<String> {
        let lines = shown.lines().skip_while(|line| !line.starts_with("Seeds:"));
        lines.take(3).map(str::to_owned).collect()
    };
    let planned = text(&fixture.run(&["--seeds", "seeds", "--dry-run"]).await.stdout);
    assert!(planned.contains("\n1 site, ") && planned.contains("nothing was sent"), "{planned}");
    let lines = named(&planned);
    assert_eq!(lines[0], "Seeds: 1 read, 1 duplicate, 2 lines skipped");
    assert!(lines[1].starts_with("  seeds, line 2: ") && lines[1].contains("not a domain"), "{lines:?}");
    assert!(lines[2].starts_with("  seeds, line 4: ") && lines[2].contains("only port 443"), "{lines:?}");
    let plan = fixture.json(&["--seeds", "seeds", "--dry-run", "--format", "json"]).await;
    let summary = fixture.json(&["--seeds", "seeds", "--delay", "0s", "--format", "json"]).await;
    assert_eq!(plan["seeds"], summary["seeds"]);
    assert_eq!(plan["seeds"]["rejected"][0]["line"], 2, "{plan}");
    let crawled = text(&fixture.run(&["--seeds", "seeds", "--delay", "0s"]).await.stdout);
    assert_eq!(named(&crawled), lines);
}

#[tokio::test]
async fn reads_seeds_from_lists_and_registries_on_the_web() {
    let list = Host::new("lists.example")
        .file("/top.csv", "text/csv", "1,shop.example\n")
        .redirect("/latest", 302, "/top.csv");
    let page = |token: &str, domain: &str| {
        format!(
            r#"{{"results":[{{"identifier":"urn:air:{domain}:agents:one","score":9}}],"pageToken":"{token}"}}"#
        )
    };
    let pages = testweb::Answer::json(page("next", "one.example"))
        .taking_posts()
        .times(1, testweb::Answer::json(page("", "two.example")).taking_posts());
    let registry = Host::new("registry.example").route("/ard/search", pages);
    let fixture =
        Fixture::with([list, registry, shop(), Host::new("one.example"), Host::new("two.example")]).await;
    let sources = ["https://lists.example/latest", "ard:https://registry.example/ard?q=books"];
    let summary =
        fixture.json(&["--seeds", sources[0], sources[1], "--delay", "0s", "--format", "json"]).await;
    assert_eq!((&summary["seeds"]["read"], &summary["sites_visited"]), (&3.into(), &3.into()), "{summary}");
    assert_eq!(fixture.web.log().hits_on("registry.example").len(), 3, "robots.txt and both pages");
    let output = fixture.run(&["--seeds", "https://lists.example/missing"]).await;
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("404"), "{}", text(&output.stderr));
    let status = text(&fixture.run(&["status"]).await.stdout);
    let none = "no source of seeds could be read: cannot fetch https://lists.example/missing: ";
    assert!(status.contains("Task failing: reading the seeds on ") && status.contains(none), "{status}");

    let partly = ["--seeds", "https://lists.example/missing", "https://lists.example/latest"];
    let output = fixture.run(&[&partly[..], &["--delay", "0s"]].concat()).await;
    assert!(output.status.success(), "{}", text(&output.stderr));
    let (reason, warning) = ("the server answered 404 Not Found; check the URL", text(&output.stderr));
    let failed = "WARN reading the seeds failed: cannot fetch https://lists.example/missing: ";
    assert!(warning.contains(failed) && warning.matches(reason).count() == 1, "{warning}");
    assert!(text(&output.stdout).contains(&format!("not read: cannot fetch {}: {reason}", partly[1])));
    let status = text(&fixture.run(&["status"]).await.stdout);
    assert!(status.contains("Task failing: reading the seeds on ") && status.contains(reason), "{status}");
}

#[tokio::test]
async fn reads_the_hosts_of_an_mcp_registry() {
    let page = |cursor: &str, host: &str| {
        format!(
            r#"{{"servers":[{{"server":{{"name":"x","remotes":[{{"url":"https://{host}/mcp"}}]}}}}],"metadata":{{"nextCursor":"{cursor}"}}}}"#
        )
    };
    let pages = testweb::Answer::json(page("next", "one.example"))
        .times(1, testweb::Answer::json(page("", "two.example")));
    let registry = Host::new("registry.example").route("/v0.1/servers", pages);
    let fixture = Fixture::with([registry, Host::new("one.example"), Host::new("two.example")]).await;
    let source = "mcp:https://registry.example/?updated_since=2026-11-01T00:00:00Z";
    let summary = fixture.json(&["--seeds", source, "--delay", "0s", "--format", "json"]).await;
    assert_eq!((&summary["seeds"]["read"], &summary["sites_visited"]), (&2.into(), &2.into()), "{summary}");
    assert_eq!(summary["seeds"]["sources"][0]["names"], 2, "{summary}");
    let called = |host: &str| fixture.web.log().hits_on(host).iter().any(|hit| hit.path.starts_with("/mcp"));
    assert!(!called("one.example") && !called("two.example"), "an endpoint of MCP was called");
    let asked: Vec<String> =
        fixture.web.log().hits_on("registry.example").iter().map(|hit| hit.path.clone()).collect();
    assert_eq!(asked.len(), 3, "robots.txt and both pages: {asked:?}");
}

#[tokio::test]
async fn ignores_proxies_in_the_environment() {
    let fixture = Fixture::with([shop()]).await;
    fixture.file("seeds", "shop.example\n");
    let mut command = fixture.command(&["--seeds", "seeds", "--delay", "0s", "--format", "json"]);
    for name in ["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"] {
        command.env(name, "http://127.0.0.1:9");
    }
    let output = command.output().await.unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let summary: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(summary["outcomes"]["found"], 1, "{summary}");
}

/// Every request is signed, and OpenSSL verifies the signature. The test builds the signature base from what the server received (RFC 9421
/// §2.5).
#[tokio::test]
async fn signed_requests_are_verified_by_openssl() {
    use data_encoding::{BASE64, BASE64URL_NOPAD};
    let openssl = |arguments: &[&str], dir: &std::path::Path| {
        std::process::Command::new("openssl").args(arguments).current_dir(dir).output()
    };
    let fixture = Fixture::with([shop()]).await;
    let dir = fixture.dir.path();
    if openssl(&["genpkey", "-algorithm", "ed25519", "-out", "key.pem"], dir).is_err() {
        skipped("openssl is not installed");
        return;
    }
    fixture.file("seeds", "shop.example\n");
    let signing = ["--signing-key", "key.pem", "--signature-agent", "https://crawler.example"];
    let summary = fixture
        .json(&[&["--seeds", "seeds", "--delay", "0s", "--format", "json"], &signing[..]].concat())
        .await;
    assert_eq!(summary["requests"], 20);
    let directory = fixture.json(&[&["keys"], &signing[..]].concat()).await;
    let kept: serde_json::Value =
        serde_json::from_slice(&std::fs::read(dir.join("data/bot-keys.json")).unwrap()).unwrap();
    assert_eq!(kept, directory);
    // the public key of the directory as SubjectPublicKeyInfo (RFC 8410)
    let x = BASE64URL_NOPAD.decode(directory["keys"][0]["x"].as_str().unwrap().as_bytes()).unwrap();
    let info =
        [&[0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00], x.as_slice()].concat();
    std::fs::write(dir.join("public.der"), info).unwrap();
    let mut nonces = std::collections::BTreeSet::new();
    for hit in fixture.web.log().hits() {
        let (input, signature) = (hit.request.signature_input.unwrap(), hit.request.signature.unwrap());
        let parameters = input.strip_prefix("sig1=").unwrap();
        assert!(parameters.ends_with(";tag=\"web-bot-auth\""), "{parameters}");
        let base = format!(
            "\"@authority\": shop.example\n\"signature-agent\": {}\n\"@signature-params\": {parameters}",
            hit.request.signature_agent.unwrap()
        );
        let signature = signature.strip_prefix("sig1=:").and_then(|rest| rest.strip_suffix(':')).unwrap();
        std::fs::write(dir.join("base"), &base).unwrap();
        std::fs::write(dir.join("signature"), BASE64.decode(signature.as_bytes()).unwrap()).unwrap();
        let verify = [
            "pkeyutl",
            "-verify",
            "-pubin",
            "-keyform",
            "DER",
            "-inkey",
            "public.der",
            "-rawin",
            "-in",
            "base",
            "-sigfile",
            "signature",
        ];
        let verified = openssl(&verify, dir).unwrap();
        assert!(verified.status.success(), "{}{}", text(&verified.stdout), text(&verified.stderr));
        nonces.insert(input);
    }
    assert_eq!(nonces.len(), 20, "no signature is used twice");
}

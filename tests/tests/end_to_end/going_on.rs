//! `agentdex --seeds` continues after its first pass; with `--once` it ends.

use std::fs::File;
use std::process::Command;
use std::time::Duration;

use agentdex_tests::audit;
use serde_json::{Value, json};
use testweb::{Answer, Host, Web};

use crate::flow::airline;
use crate::proxy::Proxy;
use crate::world::{Backend, CONTACT_EMAIL, TIMEOUT, World, client, output, text_of};

/// The longest time between a request for a visit and its first request to the site.
const VISITED_WITHIN: Duration = Duration::from_mins(1);

/// Waits for a text in a file.
pub(crate) async fn wait_for(path: &std::path::Path, text: &str) {
    let written = async {
        while !std::fs::read_to_string(path).unwrap().contains(text) {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    tokio::time::timeout(TIMEOUT, written).await.expect("the text did not appear in the file");
}

/// The address of the API in the first printed event that names it.
fn api_of(printed: &std::path::Path) -> String {
    let printed = std::fs::read_to_string(printed).unwrap();
    let mut events = printed.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let serving = events.find(|event| event["event"] == "serving").expect("the API is not announced");
    serving["url"].as_str().unwrap().to_owned()
}

/// Posts a body to the API; returns the status, or `None` if there is no response.
#[expect(clippy::disallowed_methods, reason = "the request is to the API under test")]
async fn post(url: &str, body: Value) -> Option<u16> {
    let request = client().post(url).header("content-type", "application/json").body(body.to_string());
    Some(request.send().await.ok()?.status().as_u16())
}

/// Waits until a manifest was requested more often than before.
async fn wait_for_visit(world: &World, name: &str, before: usize) {
    let visited = world.web.log().wait_until(|log| manifest_requests(log, name) > before);
    let visited = tokio::time::timeout(VISITED_WITHIN, visited).await;
    visited.unwrap_or_else(|_| panic!("{name} was not visited within {VISITED_WITHIN:?}"));
}

fn manifest_requests(log: &testweb::Log, name: &str) -> usize {
    log.hits_on(name).iter().filter(|hit| hit.path == "/agent.json").count()
}

/// A submitted site is visited within a minute, and so is a known one after a recheck. A known site can be rechecked ten minutes after its
/// last visit.
async fn visits_on_request(world: &World, api: &str) {
    assert_eq!(post(&format!("{api}/sites"), json!({"domain": "submitted.test"})).await, Some(202));
    wait_for_visit(world, "submitted.test", 0).await;
    let recheck = format!("{api}/sites/first.test/recheck");
    assert_eq!(post(&recheck, json!({})).await, Some(429), "it was visited just now");
    let earlier = "UPDATE site_state SET last_visit_at_ms = last_visit_at_ms - 3600000";
    world.execute(earlier).await;
    world.begin_pass();
    let before = manifest_requests(world.web.log(), "first.test");
    assert_eq!(post(&recheck, json!({})).await, Some(202));
    wait_for_visit(world, "first.test", before).await;
}

pub(crate) async fn agentdex_visits_added_seeds_until_it_is_stopped(backend: Backend) {
    let shop = |name: &str| Host::new(name).file("/agent.json", "application/json", airline("book_flight"));
    let shops = ["first.test", "second.test", "submitted.test"].map(shop);
    let world = World::start(backend, Web::builder().hosts(shops)).await;
    world.write_seeds(["first.test"]);
    let mut once = world.crawling("agentdex", &["--once"]);
    once.args(["--listen", "127.0.0.1:0"]);
    let once = output(once);
    assert!(once.status.success(), "{}", text_of(&once));
    assert!(text_of(&once).contains(r#""sites_visited":1,"#), "{}", text_of(&once));
    let events = String::from_utf8(once.stdout).unwrap();
    let events: Vec<Value> = events.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let names: Vec<&str> = events.iter().map(|event| event["event"].as_str().unwrap()).collect();
    assert_eq!(names, ["serving", "crawled"], "{events:?}");

    let (printed, log) = (world.path("printed"), world.path("log"));
    let mut going_on = world.crawling("agentdex", &[]);
    going_on.args(["--listen", "127.0.0.1:0", "--schedule-seeds", "0 3 * * *", "--retain-versions", "9d"]);
    going_on.stdout(File::create(&printed).unwrap()).stderr(File::create(&log).unwrap());
    let mut going_on = going_on.spawn().unwrap();
    wait_for(&printed, r#""event":"going_on","next_due_at":""#).await;
    // the visit is printed, whichever process takes the site
    let files = world.web.write_files(&world.path("")).unwrap();
    let mut check = world.program("agentdex");
    check.args(["check", "first.test", "--allow-addresses", "127.0.0.0/8", "--delay", "20ms"]);
    check.args(["--contact-email", CONTACT_EMAIL]);
    check.arg("--hosts").arg(files.hosts).arg("--ca-file").arg(files.ca);
    let checked = text_of(&output(check));
    assert!(checked.contains("first.test: ") && !checked.contains("; 0 requests"), "{checked}");
    let before = world.requests();
    world.write_seeds(["first.test", "second.test"]);
    let visited = world.web.log().wait_until(|log| log.hit_count() > before);
    tokio::time::timeout(TIMEOUT, visited).await.expect("the added seed was not visited");
    wait_for(&log, "a seed file has changed").await;
    wait_for(&log, "; ended: ").await;
    visits_on_request(&world, &api_of(&printed)).await;
    let signalled = Command::new("kill").args(["-TERM", &going_on.id().to_string()]).status().unwrap();
    assert!(signalled.success() && going_on.wait().unwrap().success(), "it did not stop cleanly");
    wait_for(&printed, r#"{"event":"stopped"}"#).await;
    world.assert_polite();
}

/// A slow site keeps the first pass open, and a submitted one is still open when that site is done.
pub(crate) async fn agentdex_visits_submissions_and_added_seeds_during_its_first_pass(backend: Backend) {
    let slow = |name: &str| Host::new(name).catch_all(Answer::status(404).after(Duration::from_secs(4)));
    let shop = |name: &str| Host::new(name).file("/agent.json", "application/json", airline("book_flight"));
    let web = Web::builder().hosts([
        slow("slow.test"),
        slow("late.test"),
        shop("submitted.test"),
        shop("added.test"),
    ]);
    let world = World::start(backend, web).await;
    world.write_seeds(["slow.test"]);
    let printed = world.path("printed");
    let mut going_on = world.crawling("agentdex", &[]);
    going_on.args(["--listen", "127.0.0.1:0"]).stdout(File::create(&printed).unwrap());
    let mut going_on = going_on.spawn().unwrap();
    wait_for(&printed, "\n").await;
    let sites = format!("{}/sites", api_of(&printed));
    for domain in ["late.test", "submitted.test"] {
        assert_eq!(post(&sites, json!({"domain": domain})).await, Some(202), "{domain}");
    }
    world.write_seeds(["slow.test", "added.test"]);
    for name in ["submitted.test", "added.test"] {
        let visited =
            world.web.log().wait_until(|log| log.hits_on(name).iter().any(|hit| hit.path == "/agent.json"));
        tokio::time::timeout(TIMEOUT, visited).await.unwrap_or_else(|_| panic!("{name} was not visited"));
    }
    let so_far = std::fs::read_to_string(&printed).unwrap();
    assert!(!so_far.contains(r#""event":"crawled""#), "the first pass has ended already: {so_far}");
    wait_for(&printed, r#""event":"going_on""#).await;
    let signalled = Command::new("kill").args(["-TERM", &going_on.id().to_string()]).status().unwrap();
    assert!(signalled.success() && going_on.wait().unwrap().success(), "it did not stop cleanly");
    let mut late: Vec<String> =
        world.web.log().hits_on("late.test").into_iter().map(|hit| hit.path).collect();
    let count = late.len();
    late.sort();
    late.dedup();
    assert!(count > 5 && late.len() == count, "the end of the pass repeats no request: {late:?}");
    world.assert_polite();
}

/// Each submission that was accepted before, during or after a restart of the database is visited.
pub(crate) async fn agentdex_keeps_submissions_when_the_database_restarts() {
    const RESTART: Duration = Duration::from_secs(2);
    let shop = |name: &str| Host::new(name).file("/agent.json", "application/json", airline("book_flight"));
    let names = ["first.test", "before.test", "during.test", "after.test"];
    let mut world = World::start(Backend::Postgres, Web::builder().hosts(names.map(shop))).await;
    world.write_seeds(["first.test"]);
    let mut proxy = Proxy::before(&mut world, Duration::ZERO).await;
    let printed = world.path("printed");
    let mut going_on = world.crawling("agentdex", &["--listen", "127.0.0.1:0"]);
    going_on.stdout(File::create(&printed).unwrap()).stderr(File::create(world.path("log")).unwrap());
    let mut going_on = going_on.spawn().unwrap();
    wait_for(&printed, r#""event":"going_on""#).await;
    let sites = format!("{}/sites", api_of(&printed));
    assert_eq!(post(&sites, json!({"domain": "before.test"})).await, Some(202));
    proxy.cut().await;
    let during = async {
        // a client repeats a refused request
        let mut refused = 0;
        while post(&sites, json!({"domain": "during.test"})).await != Some(202) {
            refused += 1;
            assert!(refused < 100, "the submission is refused after the restart");
            tokio::time::sleep(Duration::from_millis(300)).await;
        }
    };
    let restart = async {
        tokio::time::sleep(RESTART).await;
        proxy.restore().await;
    };
    tokio::join!(during, restart);
    assert_eq!(post(&sites, json!({"domain": "after.test"})).await, Some(202));
    for name in ["before.test", "during.test", "after.test"] {
        wait_for_visit(&world, name, 0).await;
    }
    let signalled = Command::new("kill").args(["-TERM", &going_on.id().to_string()]).status().unwrap();
    assert!(signalled.success() && going_on.wait().unwrap().success(), "it did not stop cleanly");
    world.assert_polite();
}

/// After results of an earlier pass, a pass that reaches no site claims none.
pub(crate) async fn a_pass_that_reaches_no_site_says_what_is_left(backend: Backend) {
    let shop = Host::new("first.test").file("/agent.json", "application/json", airline("book_flight"));
    let world = World::start(backend, Web::builder().host(shop)).await;
    world.write_seeds(["first.test"]);
    let start = |flags: &[&str]| {
        let mut command = world.crawling_with("agentdex", "text", flags);
        command.args(["--listen", "127.0.0.1:0"]);
        command
    };
    let found = text_of(&output(start(&["--once"])));
    assert!(found.contains("1 new") && found.contains("Everything is kept."), "{found}");
    let left = "This pass found nothing. The index still has 1 manifest of earlier visits.";
    let reason = "No site was reached: the only site did not answer.\n1 of 1 site: no connection to any address (first.test). Check the network";
    // `start` writes the file of addresses
    let unreachable = || std::fs::write(world.path("hosts"), "127.0.0.1:1 first.test\n").unwrap();
    let once = start(&["--once", "--revisit", "0s"]);
    unreachable();
    let once = text_of(&output(once));
    let printed = world.path("printed");
    let mut going_on = start(&["--revisit", "0s"]);
    unreachable();
    let mut going_on = going_on.stdout(File::create(&printed).unwrap()).spawn().unwrap();
    wait_for(&printed, "The crawl continues.").await;
    let signalled = Command::new("kill").args(["-TERM", &going_on.id().to_string()]).status().unwrap();
    assert!(signalled.success() && going_on.wait().unwrap().success(), "it did not stop cleanly");
    for text in [once, std::fs::read_to_string(&printed).unwrap()] {
        let (before, after) = text.split_once(left).unwrap_or_else(|| panic!("{left:?} is not in {text}"));
        assert!(before.contains(reason) && after.contains("search --data-dir"), "{text}");
        assert!(!text.contains("Everything found"), "{text}");
    }
}

/// A crawl without results reports the reason at every start.
pub(crate) async fn a_crawl_without_results_says_why(backend: Backend) {
    let world =
        World::start(backend, Web::builder().host(Host::new("first.test").refusing_connections())).await;
    world.write_seeds(["first.test"]);
    for (start, reason) in [
        (1, "No site was reached: the only site did not answer."),
        (2, "1 of 1 visit of the last day: no connection to any address."),
    ] {
        let printed = world.path(&format!("printed{start}"));
        let mut going_on = world.crawling_with("agentdex", "text", &[]);
        going_on.args(["--listen", "127.0.0.1:0"]).stdout(File::create(&printed).unwrap());
        let mut going_on = going_on.spawn().unwrap();
        wait_for(&printed, "The crawl continues.").await;
        if matches!(backend, Backend::Sqlite) {
            let mut second = world.crawling_with("agentdex", "text", &[]);
            second.args(["--listen", "127.0.0.1:0"]);
            let second = output(second);
            assert_eq!((second.status.code(), second.stdout.len()), (Some(1), 0), "{}", text_of(&second));
            assert!(text_of(&second).contains("crawling on"), "{}", text_of(&second));
        }
        let signalled = Command::new("kill").args(["-TERM", &going_on.id().to_string()]).status().unwrap();
        assert!(signalled.success() && going_on.wait().unwrap().success(), "it did not stop cleanly");
        let printed = std::fs::read_to_string(&printed).unwrap();
        for part in [reason, "\nNothing has been found yet.\n", "agentdex status --data-dir"] {
            assert!(printed.contains(part), "{part:?} is not in {printed}");
        }
        assert!(!printed.contains("Everything found"), "{printed}");
    }
    let mut search = world.program("agentdex");
    search.args(["search", "flight"]);
    let found = text_of(&output(search));
    assert!(found.contains("The index is empty: nothing has been found yet."), "{found}");
}

/// In the operator's own networks, the configured interval can be short enough for this test.
pub(crate) async fn agentdex_visits_sites_again_after_the_operators_interval(backend: Backend) {
    let shop = Host::new("first.test").file("/agent.json", "application/json", airline("book_flight"));
    let world = World::start(backend, Web::builder().host(shop)).await;
    world.write_seeds(["first.test"]);
    let mut going_on = world.crawling("agentdex", &["--revisit-every", "1s"]);
    going_on.args(["--listen", "127.0.0.1:0"]);
    let mut going_on = going_on.spawn().unwrap();
    let revisited = world.web.log().wait_until(|log| manifest_requests(log, "first.test") >= 3);
    tokio::time::timeout(TIMEOUT, revisited).await.expect("the site was not visited again twice");
    let signalled = Command::new("kill").args(["-TERM", &going_on.id().to_string()]).status().unwrap();
    assert!(signalled.success() && going_on.wait().unwrap().success(), "it did not stop cleanly");
    let mut explain = world.program("agentdex");
    explain.args(["explain", "first.test"]);
    let explained = text_of(&output(explain));
    assert!(explained.contains("after the interval that is set for all sites"), "{explained}");
    // A repeated visit begins with the known manifest.
    let hits = world.web.log().hits_on("first.test");
    let manifest = hits.iter().filter(|hit| hit.path == "/agent.json");
    let passes_began_us = manifest.skip(1).map(|hit| hit.started_us).collect();
    let policy = audit::Policy { passes_began_us, ..world.policy() };
    audit::check(&world.web.log().hits(), &policy).assert_clean();
}

/// A second pass has nothing to do: it reports when the next site is due.
pub(crate) async fn a_second_start_says_when_the_next_site_is_due(backend: Backend) {
    let world = World::start(backend, Web::builder().host(Host::new("first.test"))).await;
    world.write_seeds(["first.test"]);
    let start = || {
        let mut once = world.crawling_with("agentdex", "text", &["--once"]);
        once.args(["--listen", "127.0.0.1:0"]);
        output(once)
    };
    let first = start();
    assert!(text_of(&first).contains("1 site visited"), "{}", text_of(&first));
    let second = text_of(&start());
    assert!(second.contains("none is due yet. The next site is due at 20"), "{second}");
    assert!(!second.contains("0 sites visited"), "{second}");
    world.assert_polite();
}

/// The subcommands for one user on one machine, without a server.
pub(crate) async fn agentdex_searches_and_decides_without_a_server(backend: Backend) {
    let shop = |name: &str| Host::new(name).file("/agent.json", "application/json", airline("book_flight"));
    let world = World::start(backend, Web::builder().hosts([shop("first.test"), shop("second.test")])).await;
    world.write_seeds(["first.test", "second.test"]);
    world.crawl(&[]);
    world.index();
    let run = |words: &[&str]| {
        let mut command = world.program("agentdex");
        command.args(words);
        let output = output(command);
        (output.status.code(), text_of(&output))
    };
    let (code, table) = run(&["search", "book", "flight"]);
    assert_eq!(code, Some(0), "{table}");
    for part in ["NAME", "WHAT IT DOES", "first.test", "second.test", " results."] {
        assert!(table.contains(part), "{part} is not in {table}");
    }
    let (code, text) = run(&["search", "the"]);
    assert!(code == Some(0) && text.contains("These words are not searched for."), "{text}");
    let (code, narrowed) = run(&["search", "flight site:first.test", "--filter", "format=awp"]);
    assert!(code == Some(0) && narrowed.contains("first.test"), "{narrowed}");
    assert!(!narrowed.contains("second.test"), "{narrowed}");
    let mut json = world.program("agentdex");
    json.args(["search", "book flight", "--limit", "1", "--format", "json"]);
    let json: Value = serde_json::from_slice(&output(json).stdout).unwrap();
    let mut served = world.api().await.get("/search?q=book+flight&limit=1").await;
    served["took_ms"] = json["took_ms"].clone();
    assert_eq!(json, served, "the JSON must equal that of GET /search");
    for (words, expected) in [
        (["status", "--quiet"].as_slice(), "Sites: 2"),
        (&["explain", "first.test"], "Next visit:"),
        (&["paths"], "/agent.json"),
        (&["block", "first.test"], "first.test is blocked"),
    ] {
        let (code, text) = run(words);
        assert!(code == Some(0) && text.contains(expected), "{words:?}: {text}");
    }
    let (_, found) = run(&["search", "book", "flight"]);
    assert!(
        found.contains("second.test") && !found.contains("first.test"),
        "a blocked site is shown: {found}"
    );
    assert!(run(&["unblock", "first.test"]).1.contains("may be visited again"));
    for (words, code) in [
        (["search", "--limit", "3"].as_slice(), 2),
        (&["search", "x", "--filter", "format=soap"], 2),
        (&["search", "x", "--filter", "awp"], 2),
        (&["explain", "nobody.test"], 1),
    ] {
        assert_eq!(run(words).0, Some(code), "{words:?}");
    }
}

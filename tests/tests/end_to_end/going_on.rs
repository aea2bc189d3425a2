//! `agentdex --seeds` goes on after its first pass; with `--once` it ends.

use std::fs::File;
use std::process::Command;
use std::time::Duration;

use testweb::{Host, Web};

use crate::flow::airline;
use crate::world::{Backend, TIMEOUT, World, output, text_of};

/// Waits for a text in a file.
async fn wait_for(path: &std::path::Path, text: &str) {
    let written = async {
        while !std::fs::read_to_string(path).unwrap().contains(text) {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    tokio::time::timeout(TIMEOUT, written).await.expect("the program does not write it");
}

pub(crate) async fn agentdex_visits_added_seeds_until_it_is_stopped(backend: Backend) {
    let shop = |name: &str| Host::new(name).file("/agent.json", "application/json", airline("book_flight"));
    let world = World::start(backend, Web::builder().hosts([shop("first.test"), shop("second.test")])).await;
    world.write_seeds(["first.test"]);
    let mut once = world.crawling("agentdex", &["--once"]);
    once.args(["--listen", "127.0.0.1:0"]);
    let once = output(once);
    assert!(once.status.success(), "{}", text_of(&once));
    assert!(text_of(&once).contains("1 site visited"), "{}", text_of(&once));

    let (printed, log) = (world.path("printed"), world.path("log"));
    let mut going_on = world.crawling("agentdex", &[]);
    going_on.args(["--listen", "127.0.0.1:0"]);
    going_on.stdout(File::create(&printed).unwrap()).stderr(File::create(&log).unwrap());
    let mut going_on = going_on.spawn().unwrap();
    wait_for(&printed, "The crawl goes on. The next site is due at").await;
    let before = world.requests();
    world.write_seeds(["first.test", "second.test"]);
    let visited = world.web.log().wait_until(|log| log.hit_count() > before);
    tokio::time::timeout(TIMEOUT, visited).await.expect("the added seed is visited");
    wait_for(&log, "a seed file has changed").await;
    let signalled = Command::new("kill").args(["-TERM", &going_on.id().to_string()]).status().unwrap();
    assert!(signalled.success() && going_on.wait().unwrap().success(), "it did not stop cleanly");
    world.assert_polite();
}

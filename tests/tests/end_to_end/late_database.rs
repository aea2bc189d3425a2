//! Programs wait for a PostgreSQL server that starts after them.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use agentdex_tests::harness::PostgresServer;
use testweb::{Host, Web};
use tokio::time::Instant;

use crate::flow::airline;
use crate::world::{Api, Backend, TIMEOUT, World, output, text_of};

/// The log line of a program that waits.
const WAITS: &str = "waiting for the database";

struct Waiting {
    name: &'static str,
    child: Child,
    log: PathBuf,
}

impl Waiting {
    fn start(world: &World, name: &'static str, mut command: Command) -> Self {
        let log = world.path(&format!("{name}.log"));
        let file = std::fs::File::create(&log).unwrap();
        Self { name, child: command.stdout(Stdio::null()).stderr(file).spawn().unwrap(), log }
    }

    fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap()
    }

    async fn wait_for_line(&mut self, words: &str) {
        let logged = async {
            while !self.log().contains(words) {
                assert!(self.child.try_wait().unwrap().is_none(), "{} has ended: {}", self.name, self.log());
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        let waited = tokio::time::timeout(TIMEOUT, logged).await;
        assert!(waited.is_ok(), "{} did not log \"{words}\"", self.name);
    }

    fn signal(&self, signal: &str) {
        let signalled = Command::new("kill").args([signal, &self.child.id().to_string()]).status().unwrap();
        assert!(signalled.success(), "{} had already exited", self.name);
    }

    async fn assert_clean_end(mut self) {
        let ended = async {
            loop {
                if let Some(status) = self.child.try_wait().unwrap() {
                    return status;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let status = tokio::time::timeout(TIMEOUT, ended).await;
        assert!(
            status.is_ok_and(|status| status.success()),
            "{} did not exit cleanly: {}",
            self.name,
            self.log()
        );
    }
}

pub(crate) async fn programs_wait_for_a_database_that_starts_later() {
    let host = Host::new("sky.test").file("/agent.json", "application/json", airline("book_flight"));
    let mut world = World::start(Backend::Sqlite, Web::builder().host(host)).await;
    world.write_seeds(["sky.test"]);
    let server = PostgresServer::planned().unwrap();
    world.database_url = Some(server.url("postgres"));

    let crawler = world.crawler(&[]);
    let mut crawler = Waiting::start(&world, "crawler", crawler);
    let mut indexer = Waiting::start(&world, "indexer", world.program("indexer"));
    let mut api = Api::start(&world, |command| {
        command.stderr(std::fs::File::create(world.path("api.log")).unwrap());
    });
    let mut whole = world.program("agentdex");
    whole.args(["--listen", "127.0.0.1:0", "--contact-email", "you@example.org"]);
    whole.arg("--seeds").arg(world.path("seeds.txt"));
    let mut whole = Waiting::start(&world, "agentdex", whole);
    for waiting in [&mut crawler, &mut indexer, &mut whole] {
        waiting.wait_for_line(WAITS).await;
        let log = waiting.log();
        assert!(log.contains("waited_s=0") && log.contains(&format!("127.0.0.1:{}", server.port())), "{log}");
    }

    // a waiting program stops immediately on a signal
    let stopped = Instant::now();
    whole.signal("-TERM");
    whole.assert_clean_end().await;
    for (name, signal) in [("crawler", "-INT"), ("indexer", "-TERM"), ("api", "-TERM")] {
        let mut command = world.program(name);
        match name {
            "crawler" => _ = command.arg("--seeds").arg(world.path("seeds.txt")),
            "api" => _ = command.args(["--listen", "127.0.0.1:0"]),
            _ => {}
        }
        let mut other = Waiting::start(&world, name, command);
        other.wait_for_line(WAITS).await;
        other.signal(signal);
        other.assert_clean_end().await;
    }
    assert!(stopped.elapsed() < TIMEOUT / 2, "{:?}", stopped.elapsed());

    // commands that only print something do not wait
    let mut status = world.program("crawler");
    status.arg("status");
    let report = output(status);
    assert!(
        !report.status.success() && text_of(&report).contains("cannot reach the database"),
        "{}",
        text_of(&report)
    );

    let starting = std::thread::scope(|scope| scope.spawn(|| server.start()).join());
    starting.unwrap().unwrap();
    crawler.assert_clean_end().await;
    api.wait_until_ready().await;
    let found = async {
        while api.search("q=book+flight").await.is_empty() {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    tokio::time::timeout(TIMEOUT, found).await.expect("the indexer did not continue");
    api.stop();
    indexer.signal("-TERM");
    indexer.assert_clean_end().await;

    // a program reports an error immediately if waiting cannot resolve it
    world.database_url = Some(server.url("nowhere"));
    let refused = output(world.crawler(&[]));
    let report = text_of(&refused);
    assert_eq!(refused.status.code(), Some(1), "{report}");
    assert!(report.contains("refused the connection") && report.contains("nowhere"), "{report}");
    assert!(!report.contains(WAITS), "{report}");
}

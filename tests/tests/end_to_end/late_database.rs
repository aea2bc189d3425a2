//! Programs that are started before their PostgreSQL wait for it.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use testweb::{Host, Web};
use tokio::time::Instant;

use crate::flow::airline;
use crate::world::{Api, Backend, PATIENCE, World, output, said};

/// What a program says while it waits.
const WAITS: &str = "waiting for the database";

/// A server that is started late, by the script that starts those of all tests.
struct LateServer {
    folder: tempfile::TempDir,
    port: u16,
}

impl LateServer {
    fn planned() -> Self {
        let folder = tempfile::tempdir().unwrap();
        // PostgreSQL does not run as root, and its own user has to reach its folder
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o711)).unwrap();
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        Self { folder, port }
    }

    fn script() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("postgres")
    }

    fn url(&self, database: &str) -> String {
        format!("postgres://agentdex@127.0.0.1:{}/{database}", self.port)
    }

    fn start(&self) {
        let mut command = Command::new(Self::script());
        command.arg("start").arg(self.folder.path().join("pg")).arg(self.port.to_string());
        // the server goes on holding what it was given
        let status =
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap();
        assert!(status.success(), "the server does not start");
    }
}

impl Drop for LateServer {
    fn drop(&mut self) {
        let stopped = Command::new(Self::script()).arg("stop").arg(self.folder.path().join("pg")).status();
        assert!(stopped.is_ok_and(|status| status.success()), "the server does not stop");
    }
}

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

    async fn says(&mut self, words: &str) {
        let said = async {
            while !self.log().contains(words) {
                assert!(self.child.try_wait().unwrap().is_none(), "{} has ended: {}", self.name, self.log());
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        let waited = tokio::time::timeout(PATIENCE, said).await;
        assert!(waited.is_ok(), "{} does not say \"{words}\"", self.name);
    }

    fn signal(&self, signal: &str) {
        let asked = Command::new("kill").args([signal, &self.child.id().to_string()]).status().unwrap();
        assert!(asked.success(), "{} had already ended", self.name);
    }

    async fn ends_well(mut self) {
        let ended = async {
            loop {
                if let Some(status) = self.child.try_wait().unwrap() {
                    return status;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let status = tokio::time::timeout(PATIENCE, ended).await;
        assert!(
            status.is_ok_and(|status| status.success()),
            "{} did not end well: {}",
            self.name,
            self.log()
        );
    }
}

pub(crate) async fn programs_wait_for_a_database_that_starts_later() {
    let host = Host::new("sky.test").file("/agent.json", "application/json", airline("book_flight"));
    let mut world = World::start(Backend::Sqlite, Web::builder().host(host)).await;
    world.write_seeds(["sky.test"]);
    let server = LateServer::planned();
    world.database_url = Some(server.url("postgres"));

    let crawler = world.crawler(&[]);
    let mut crawler = Waiting::start(&world, "crawler", crawler);
    let mut indexer = Waiting::start(&world, "indexer", world.program("indexer"));
    let mut api = Api::start(&world, |command| {
        command.stderr(std::fs::File::create(world.path("api.log")).unwrap());
    });
    let mut whole = world.program("agentdex");
    whole.args(["--listen", "127.0.0.1:0"]).arg("--seeds").arg(world.path("seeds.txt"));
    let mut whole = Waiting::start(&world, "agentdex", whole);
    for waiting in [&mut crawler, &mut indexer, &mut whole] {
        waiting.says(WAITS).await;
        let log = waiting.log();
        assert!(log.contains("waited_s=0") && log.contains(&format!("127.0.0.1:{}", server.port)), "{log}");
    }

    // whoever waits stops at once when told to
    let told = Instant::now();
    whole.signal("-TERM");
    whole.ends_well().await;
    for (name, signal) in [("crawler", "-INT"), ("indexer", "-TERM"), ("api", "-TERM")] {
        let mut command = world.program(name);
        match name {
            "crawler" => _ = command.arg("--seeds").arg(world.path("seeds.txt")),
            "api" => _ = command.args(["--listen", "127.0.0.1:0"]),
            _ => {}
        }
        let mut other = Waiting::start(&world, name, command);
        other.says(WAITS).await;
        other.signal(signal);
        other.ends_well().await;
    }
    assert!(told.elapsed() < PATIENCE / 2, "{:?}", told.elapsed());

    // commands that only tell something do not wait
    let mut status = world.program("crawler");
    status.arg("status");
    let told = output(status);
    assert!(!told.status.success() && said(&told).contains("cannot reach the database"), "{}", said(&told));

    let starting = std::thread::scope(|scope| scope.spawn(|| server.start()).join());
    starting.unwrap();
    crawler.ends_well().await;
    api.wait_until_ready().await;
    let found = async {
        while api.search("q=book+flight").await.is_empty() {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    tokio::time::timeout(PATIENCE, found).await.expect("the indexer did not go on");
    api.stop();
    indexer.signal("-TERM");
    indexer.ends_well().await;

    // what waiting cannot mend is an error at once
    world.database_url = Some(server.url("nowhere"));
    let refused = output(world.crawler(&[]));
    let told = said(&refused);
    assert_eq!(refused.status.code(), Some(1), "{told}");
    assert!(told.contains("does not let this program in") && told.contains("nowhere"), "{told}");
    assert!(!told.contains(WAITS), "{told}");
}

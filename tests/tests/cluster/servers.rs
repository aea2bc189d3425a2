//! A broker with servers, each a process that can be killed, and a network between them that can be cut.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use cluster::ClusterUrl;

/// The directory with `summa-server` and `summa-broker`, which tests/cluster finds.
const ENGINE_DIR: &str = "AGENTDEX_TEST_ENGINE";
/// Maximum time until a process listens.
const START_MAX: Duration = Duration::from_mins(1);

/// What a broker does without a shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reads {
    Strict,
    Partial,
}

/// A process of the engine that is started with the same arguments again after it was killed.
pub(crate) struct Server {
    program: PathBuf,
    arguments: Vec<String>,
    log: PathBuf,
    port: u16,
    child: Option<Child>,
}

impl Server {
    fn start(dir: &Path, name: &str, program: &str, port: u16, arguments: Vec<String>) -> Self {
        let engine = std::env::var(ENGINE_DIR).expect("tests/cluster sets the directory of the engine");
        let program = Path::new(&engine).join(program);
        let mut server = Self { program, arguments, log: dir.join(format!("{name}.log")), port, child: None };
        server.restart();
        server
    }

    /// SIGKILL.
    pub(crate) fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().expect("kill a process of the engine");
            child.wait().expect("wait for a killed process");
        }
    }

    pub(crate) fn restart(&mut self) {
        self.kill();
        let log = std::fs::File::options().create(true).append(true).open(&self.log).expect("a log file");
        let child = Command::new(&self.program)
            .args(&self.arguments)
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("a second handle"))
            .stderr(log)
            .spawn();
        self.child =
            Some(child.unwrap_or_else(|error| panic!("cannot start {}: {error}", self.program.display())));
        let began = Instant::now();
        while TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            assert!(
                began.elapsed() < START_MAX,
                "{}",
                std::fs::read_to_string(&self.log).unwrap_or_default()
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A network between the broker and one server: it forwards bytes until it is cut, and then keeps connections open without forwarding.
pub(crate) struct Network {
    port: u16,
    is_cut: Arc<AtomicBool>,
}

impl Network {
    fn to(server: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let is_cut = Arc::new(AtomicBool::new(false));
        let cut = Arc::clone(&is_cut);
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let Ok(server) = TcpStream::connect(("127.0.0.1", server)) else { continue };
                let pairs = [(&client, &server), (&server, &client)];
                for (from, to) in pairs.map(|(from, to)| (from.try_clone(), to.try_clone())) {
                    if let (Ok(from), Ok(to)) = (from, to) {
                        let cut = Arc::clone(&cut);
                        std::thread::spawn(move || forward(from, to, &cut));
                    }
                }
            }
        });
        Self { port, is_cut }
    }

    pub(crate) fn cut(&self) {
        self.is_cut.store(true, Ordering::SeqCst);
    }

    pub(crate) fn mend(&self) {
        self.is_cut.store(false, Ordering::SeqCst);
    }
}

/// Bytes that arrive while the network is cut are lost, and with them the connection.
fn forward(mut from: TcpStream, mut to: TcpStream, is_cut: &AtomicBool) {
    let mut buffer = [0; 16 << 10];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        let mut was_cut = false;
        while is_cut.load(Ordering::SeqCst) {
            was_cut = true;
            std::thread::sleep(Duration::from_millis(20));
        }
        if was_cut || to.write_all(buffer.get(..count).unwrap_or_default()).is_err() {
            break;
        }
    }
    for stream in [from, to] {
        drop(stream.shutdown(Shutdown::Both));
    }
}

/// A broker with its servers. Each server holds one shard.
pub(crate) struct Servers {
    dir: tempfile::TempDir,
    pub(crate) broker: Server,
    pub(crate) shards: Vec<Server>,
    pub(crate) networks: Vec<Network>,
    reads: Reads,
}

impl Servers {
    /// Indexes are split over all shards.
    pub(crate) fn start(shards: usize, reads: Reads) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let shards: Vec<Server> = (0..shards).map(|number| shard(dir.path(), number)).collect();
        let networks: Vec<Network> = shards.iter().map(|shard| Network::to(shard.port)).collect();
        let placements = [placement("agentdex_*", shards.len())];
        let broker = broker(dir.path(), free_port(), &networks, &placements, reads);
        Self { dir, broker, shards, networks, reads }
    }

    pub(crate) fn url(&self) -> ClusterUrl {
        self.address().parse().expect("the address of the broker")
    }

    pub(crate) fn address(&self) -> String {
        format!("http://127.0.0.1:{}", self.broker.port)
    }

    /// Adds a shard: indexes of this name keep theirs, others are split over all.
    pub(crate) fn add_shard(&mut self, but_not_for: &str) {
        let before = self.shards.len();
        self.shards.push(shard(self.dir.path(), before));
        self.networks.extend(self.shards.last().map(|shard| Network::to(shard.port)));
        let placements = [placement(but_not_for, before), placement("agentdex_*", self.shards.len())];
        self.broker.kill();
        self.broker = broker(self.dir.path(), self.broker.port, &self.networks, &placements, self.reads);
    }

    /// What the processes have logged, for failures of tests.
    pub(crate) fn logs(&self) -> String {
        let logs = self.shards.iter().chain([&self.broker]).map(|server| {
            let text = std::fs::read_to_string(&server.log).unwrap_or_default();
            format!("{}:\n{text}", server.log.display())
        });
        logs.collect()
    }
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a free port").port()
}

fn placement(pattern: &str, shards: usize) -> String {
    let shards: Vec<String> = (0..shards).map(|number| format!("s{number}")).collect();
    format!("{pattern}={}", shards.join(","))
}

/// The limits of queries are higher than by default: a request with synonyms has some hundred terms.
fn shard(dir: &Path, number: usize) -> Server {
    let port = free_port();
    let data = dir.join(format!("s{number}"));
    let arguments = [
        format!("--addr=127.0.0.1:{port}"),
        format!("--data-dir={}", data.display()),
        "--metrics-addr=off".to_owned(),
        "--max-concurrent-searches=32".to_owned(),
        "--search-threads=1".to_owned(),
        "--indexing-threads=1".to_owned(),
        "--max-indexing-memory-mb=256".to_owned(),
        "--store-cache-budget-mb=64".to_owned(),
        "--max-query-nodes=4096".to_owned(),
        "--max-query-clauses=4096".to_owned(),
        "--max-boolean-clauses=1024".to_owned(),
    ];
    Server::start(dir, &format!("s{number}"), "summa-server", port, arguments.to_vec())
}

fn broker(dir: &Path, port: u16, networks: &[Network], placements: &[String], reads: Reads) -> Server {
    let mut arguments = vec![
        format!("--addr=127.0.0.1:{port}"),
        "--metrics-addr=off".to_owned(),
        "--discovery=static".to_owned(),
        "--index-poll-interval-secs=1".to_owned(),
        "--probe-interval-secs=1".to_owned(),
        "--list-timeout-secs=1".to_owned(),
        "--backend-unreachable-grace-secs=3".to_owned(),
        "--backend-max-searches=32".to_owned(),
    ];
    for (number, network) in networks.iter().enumerate() {
        arguments.push(format!("--backend=id=b{number},addr=127.0.0.1:{},shard=s{number}", network.port));
    }
    arguments.extend(placements.iter().map(|placement| format!("--placement={placement}")));
    if reads == Reads::Partial {
        arguments.push("--partial-partition-reads".to_owned());
    }
    Server::start(dir, "broker", "summa-broker", port, arguments)
}

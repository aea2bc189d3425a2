//! The processes of the fleet: some run for the whole test and are measured, others are restarted.

use std::fs::{File, OpenOptions};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use agentdex_tests::harness::{TestDatabase, binary, write_seeds};
use anyhow::{Context as _, ensure};
use tokio::time::{Instant, sleep};

use crate::load::client;
use crate::sites::{Random, SoakSites};

/// Delay between two requests to a host.
pub(crate) const DELAY: Duration = Duration::from_millis(50);
/// Contact for site owners.
pub(crate) const CONTACT_EMAIL: &str = "crawler@crawler.example";
/// Timeout for a process to become ready, or to stop.
const READY_TIMEOUT: Duration = Duration::from_mins(2);
/// Names of the processes that run for the whole test.
pub(crate) const STEADY: [&str; 3] = ["crawler", "indexer", "api"];

struct Process {
    name: &'static str,
    child: Child,
}

/// The results of a stopped fleet.
pub(crate) struct Stopped {
    pub(crate) passes_began_us: Vec<u64>,
    pub(crate) passes: usize,
    /// Crawlers that were killed.
    pub(crate) kills: usize,
    pub(crate) indexer_kills: usize,
    pub(crate) restarts: usize,
    pub(crate) database_breaks: usize,
    /// Lines of all logs.
    pub(crate) log: Vec<String>,
    /// Steady processes that exited unexpectedly or with an error.
    pub(crate) unexpected_exits: Vec<String>,
}

pub(crate) struct Fleet {
    folder: tempfile::TempDir,
    database_url: String,
    seeds: PathBuf,
    hosts: PathBuf,
    ca: PathBuf,
    metrics_port: u16,
    api_ports: [u16; 3],
    processes: Vec<Process>,
    looks: usize,
    stopped: Stopped,
}

impl Fleet {
    pub(crate) fn start(sites: &SoakSites, database: &TestDatabase) -> anyhow::Result<Self> {
        let folder = tempfile::tempdir()?;
        let files = sites.web.write_files(folder.path())?;
        let seeds = sites.seeds();
        let seeds = write_seeds(folder.path(), &seeds.iter().map(String::as_str).collect::<Vec<_>>())?;
        let stopped = Stopped {
            passes_began_us: Vec::new(),
            passes: 0,
            kills: 0,
            indexer_kills: 0,
            restarts: 0,
            database_breaks: 0,
            log: Vec::new(),
            unexpected_exits: Vec::new(),
        };
        let mut fleet = Self {
            database_url: database.url(),
            seeds,
            hosts: files.hosts,
            ca: files.ca,
            folder,
            metrics_port: free_port()?,
            api_ports: [free_port()?, free_port()?, free_port()?],
            processes: Vec::new(),
            looks: 0,
            stopped,
        };
        for name in ["crawler", "indexer", "api", "indexer-2", "api-2", "api-replica"] {
            fleet.spawn(name)?;
        }
        fleet.pass(sites)?;
        Ok(fleet)
    }

    /// URLs of the API processes, in the order in which clients try them.
    pub(crate) fn interfaces(&self) -> Vec<String> {
        self.api_ports.iter().map(|port| format!("http://127.0.0.1:{port}")).collect()
    }

    pub(crate) fn crawler_metrics(&self) -> String {
        format!("http://127.0.0.1:{}/metrics", self.metrics_port)
    }

    pub(crate) fn pid(&self, name: &str) -> Option<u32> {
        self.processes.iter().find(|process| process.name == name).map(|process| process.child.id())
    }

    pub(crate) async fn wait_until_ready(&self) -> anyhow::Result<()> {
        for interface in self.interfaces() {
            self.ready(&interface).await?;
        }
        Ok(())
    }

    #[expect(clippy::disallowed_methods, reason = "a client of the local api")]
    async fn ready(&self, interface: &str) -> anyhow::Result<()> {
        let until = Instant::now() + READY_TIMEOUT;
        loop {
            let answer = client().get(format!("{interface}/readyz")).send().await;
            if answer.is_ok_and(|answer| answer.status().is_success()) {
                return Ok(());
            }
            ensure!(Instant::now() < until, "{interface} did not become ready");
            sleep(Duration::from_millis(100)).await;
        }
    }

    /// Starts a pass that revisits sites visited at least half a minute earlier.
    fn pass(&mut self, sites: &SoakSites) -> anyhow::Result<()> {
        self.stopped.passes_began_us.push(sites.web.log().now_us());
        self.stopped.passes += 1;
        self.spawn("crawler-pass")
    }

    fn spawn(&mut self, name: &'static str) -> anyhow::Result<()> {
        let mut command = self.command(name)?;
        let log = OpenOptions::new().create(true).append(true).open(self.log_file(name))?;
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn();
        let child = child.with_context(|| format!("cannot start {name}"))?;
        self.processes.push(Process { name, child });
        Ok(())
    }

    fn log_file(&self, name: &str) -> PathBuf {
        self.folder.path().join(format!("{name}.log"))
    }

    fn command(&self, name: &str) -> anyhow::Result<Command> {
        let path = |name: &str| self.folder.path().join(name);
        let mut command = binary(name.split('-').next().unwrap_or(name))?;
        command.args(["--database-url", &self.database_url, "--log-format", "json"]);
        command.arg("--data-dir").arg(path("data")).current_dir(self.folder.path());
        match name {
            "indexer" => {
                command.arg("--index-dir").arg(path("index")).arg("--publish").arg(path("snapshots"))
            }
            "indexer-2" => command.arg("--index-dir").arg(path("index-2")),
            "api" => self.listen(&mut command, 0).arg("--index-dir").arg(path("index")),
            "api-2" => self.listen(&mut command, 1).arg("--index-dir").arg(path("index-2")),
            "api-replica" => {
                let command = self.listen(&mut command, 2);
                command.arg("--index-dir").arg(path("replica")).arg("--index-from").arg(path("snapshots"))
            }
            crawler => self.crawl(&mut command, crawler),
        };
        Ok(command)
    }

    fn listen<'a>(&self, command: &'a mut Command, interface: usize) -> &'a mut Command {
        command.arg("--listen").arg(format!("127.0.0.1:{}", self.api_ports[interface]))
    }

    fn crawl<'a>(&self, command: &'a mut Command, name: &str) -> &'a mut Command {
        command
            .arg("--seeds")
            .arg(&self.seeds)
            .arg("--hosts")
            .arg(&self.hosts)
            .arg("--ca-file")
            .arg(&self.ca);
        command.args(["--allow-addresses", "127.0.0.0/8", "--lease", "5s", "--concurrency", "12"]);
        command.args(["--contact-url", "https://crawler.example/about", "--contact-email", CONTACT_EMAIL]);
        command.arg("--delay").arg(format!("{}ms", DELAY.as_millis()));
        match name {
            "crawler" => command.args(["--daemon", "--metrics", &format!("127.0.0.1:{}", self.metrics_port)]),
            _ => command.args(["--revisit", "30s", "--park-wait", "5s"]),
        }
    }

    /// Injects one fault per call, and occasionally several.
    pub(crate) async fn disturb(
        &mut self,
        random: &mut Random,
        sites: &SoakSites,
        database: &TestDatabase,
    ) -> anyhow::Result<()> {
        self.looks += 1;
        self.record_unexpected_exits();
        if self.has_ended("crawler-pass")? {
            self.pass(sites)?;
        } else if random.below(4) == 0 {
            self.kill("crawler-pass")?;
            self.stopped.kills += 1;
            self.pass(sites)?;
        }
        if random.below(8) == 0 {
            self.kill("indexer-2")?;
            self.stopped.indexer_kills += 1;
            self.spawn("indexer-2")?;
        }
        if self.looks.is_multiple_of(9) {
            let (name, interface) = if random.below(2) == 0 { ("api-2", 1) } else { ("api-replica", 2) };
            self.restart(name).await?;
            self.ready(&self.interfaces()[interface]).await?;
        }
        if self.looks.is_multiple_of(36) {
            database.break_connections().await?;
            self.stopped.database_breaks += 1;
        }
        Ok(())
    }

    /// The state of a site and the crawler's decisions about it.
    pub(crate) fn explain(&self, site: &str) -> String {
        let mut command = match binary("crawler") {
            Ok(command) => command,
            Err(error) => return error.to_string(),
        };
        command.args(["--database-url", &self.database_url, "explain", site]);
        match command.current_dir(self.folder.path()).output() {
            Ok(output) => String::from_utf8_lossy(&output.stdout).into_owned(),
            Err(error) => error.to_string(),
        }
    }

    /// Starts the next pass once the previous one has ended: everything that the sites declare has to be read.
    pub(crate) fn pass_again(&mut self, sites: &SoakSites) -> anyhow::Result<()> {
        if self.has_ended("crawler-pass")? { self.pass(sites) } else { Ok(()) }
    }

    fn has_ended(&mut self, name: &str) -> anyhow::Result<bool> {
        let Some(at) = self.processes.iter().position(|process| process.name == name) else {
            return Ok(true);
        };
        let ended = self.processes[at].child.try_wait()?.is_some();
        if ended {
            self.processes.remove(at);
        }
        Ok(ended)
    }

    fn record_unexpected_exits(&mut self) {
        for process in self.processes.iter_mut().filter(|process| process.name != "crawler-pass") {
            let unexpected_exits = format!("{} exited unexpectedly", process.name);
            if matches!(process.child.try_wait(), Ok(Some(_)))
                && !self.stopped.unexpected_exits.contains(&unexpected_exits)
            {
                self.stopped.unexpected_exits.push(unexpected_exits);
            }
        }
    }

    fn take(&mut self, name: &str) -> anyhow::Result<Child> {
        let at = self.processes.iter().position(|process| process.name == name);
        Ok(self.processes.remove(at.with_context(|| format!("{name} is not running"))?).child)
    }

    fn kill(&mut self, name: &str) -> anyhow::Result<()> {
        let mut child = self.take(name)?;
        child.kill()?;
        child.wait()?;
        Ok(())
    }

    async fn restart(&mut self, name: &'static str) -> anyhow::Result<()> {
        self.end(name).await?;
        self.stopped.restarts += 1;
        self.spawn(name)
    }

    /// Sends SIGTERM, as a service manager does.
    async fn end(&mut self, name: &str) -> anyhow::Result<()> {
        let mut child = self.take(name)?;
        Command::new("kill").args(["-TERM", &child.id().to_string()]).status()?;
        let until = Instant::now() + READY_TIMEOUT;
        loop {
            if let Some(status) = child.try_wait()? {
                if !status.success() {
                    self.stopped.unexpected_exits.push(format!("{name} did not exit cleanly: {status}"));
                }
                return Ok(());
            }
            if Instant::now() >= until {
                self.stopped.unexpected_exits.push(format!("{name} did not exit after SIGTERM"));
                child.kill()?;
            }
            sleep(Duration::from_millis(50)).await;
        }
    }

    pub(crate) async fn stop(mut self) -> anyhow::Result<Stopped> {
        self.record_unexpected_exits();
        let names: Vec<&'static str> = self.processes.iter().map(|process| process.name).collect();
        for name in names {
            self.end(name).await?;
        }
        for name in ["crawler", "crawler-pass", "indexer", "indexer-2", "api", "api-2", "api-replica"] {
            if let Ok(file) = File::open(self.log_file(name)) {
                let lines = std::io::BufRead::lines(std::io::BufReader::new(file));
                self.stopped.log.extend(lines.map_while(Result::ok).map(|line| format!("{name}\t{line}")));
            }
        }
        Ok(self.stopped)
    }
}

fn free_port() -> anyhow::Result<u16> {
    Ok(std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

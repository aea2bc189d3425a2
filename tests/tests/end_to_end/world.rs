//! A test web, a database and the three programs, run as an operator would: separate processes with their flags.

use std::cell::RefCell;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use agentdex_tests::audit;
use agentdex_tests::harness::{TestDatabase, binary};
use serde_json::Value;
use sqlx::Connection as _;
use testweb::{Web, WebBuilder};

/// The contact address for site owners.
pub(crate) const CONTACT_EMAIL: &str = "crawler@crawler.example";
/// Timeout for each step of a program.
pub(crate) const TIMEOUT: Duration = Duration::from_mins(2);

#[derive(Clone, Copy)]
pub(crate) enum Backend {
    Sqlite,
    Postgres,
}

pub(crate) struct World {
    pub(crate) web: Web,
    pub(crate) delay: Duration,
    /// Number of killed crawlers: each may cause one repeated request.
    pub(crate) kills: usize,
    passes_began_us: RefCell<Vec<u64>>,
    /// URL of the database; `None` for the embedded one.
    pub(crate) database_url: Option<String>,
    dir: tempfile::TempDir,
    /// Dropped with the world.
    database: Option<TestDatabase>,
}

impl World {
    pub(crate) async fn start(backend: Backend, web: WebBuilder) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let web = web.start().await.unwrap();
        web.write_files(dir.path()).unwrap();
        let database = match backend {
            Backend::Sqlite => None,
            Backend::Postgres => Some(TestDatabase::create().await.unwrap()),
        };
        Self {
            web,
            delay: Duration::from_millis(20),
            kills: 0,
            passes_began_us: RefCell::default(),
            database_url: database.as_ref().map(TestDatabase::url),
            dir,
            database,
        }
    }

    /// The database of this test; panics on SQLite.
    pub(crate) const fn database(&self) -> &TestDatabase {
        self.database.as_ref().expect("a database on PostgreSQL")
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn write_seeds(&self, lines: impl IntoIterator<Item = impl AsRef<str>>) {
        let mut file = std::fs::File::create(self.path("seeds.txt")).unwrap();
        for line in lines {
            writeln!(file, "{}", line.as_ref()).unwrap();
        }
    }

    /// A program of the workspace with the flags that every program needs.
    pub(crate) fn program(&self, name: &str) -> Command {
        let mut command = binary(name).unwrap();
        command.current_dir(self.dir.path()).stdin(Stdio::null());
        command.arg("--data-dir").arg(self.path("data"));
        if let Some(url) = &self.database_url {
            command.arg("--database-url").arg(url);
        }
        command
    }

    /// The crawler with the seeds and the flags to reach the test web.
    pub(crate) fn crawler(&self, flags: &[&str]) -> Command {
        self.crawling("crawler", flags)
    }

    /// A program that crawls, with the same flags as [`Self::crawler`].
    pub(crate) fn crawling(&self, program: &str, flags: &[&str]) -> Command {
        self.crawling_with(program, "json", flags)
    }

    /// A program that crawls, with the flags of [`Self::crawler`] and this output format.
    pub(crate) fn crawling_with(&self, program: &str, format: &str, flags: &[&str]) -> Command {
        let mut command = self.program(program);
        let files = self.web.write_files(self.dir.path()).unwrap();
        command.arg("--hosts").arg(files.hosts).arg("--ca-file").arg(files.ca);
        command.args(["--allow-addresses", "127.0.0.0/8", "--contact-url", "https://crawler.example/about"]);
        command.args(["--contact-email", CONTACT_EMAIL, "--format", format]);
        command.arg("--delay").arg(format!("{}ms", self.delay.as_millis()));
        command.arg("--seeds").arg(self.path("seeds.txt")).args(flags);
        self.begin_pass();
        command
    }

    /// Declares that requests from now on may repeat earlier ones, as in another pass.
    pub(crate) fn begin_pass(&self) {
        self.passes_began_us.borrow_mut().push(self.web.log().now_us());
    }

    /// Runs statements on the database directly.
    pub(crate) async fn execute(&self, statements: &'static str) {
        if let Some(url) = &self.database_url {
            let mut connection = sqlx::PgConnection::connect(url).await.unwrap();
            sqlx::raw_sql(statements).execute(&mut connection).await.unwrap();
        } else {
            let url = format!("sqlite:{}", self.path("data/agentdex.db").display());
            let mut connection = sqlx::SqliteConnection::connect(&url).await.unwrap();
            sqlx::raw_sql(statements).execute(&mut connection).await.unwrap();
        }
    }

    /// Runs one pass over the seeds; returns the printed summary.
    pub(crate) fn crawl(&self, flags: &[&str]) -> Value {
        let output = output(self.crawler(flags));
        assert!(output.status.success(), "the crawler failed: {}", text_of(&output));
        serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("no summary ({error}): {}", text_of(&output)))
    }

    /// The output of `crawler status`.
    pub(crate) fn status(&self) -> Value {
        let mut command = self.program("crawler");
        command.args(["status", "--format", "json"]);
        let output = output(command);
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", text_of(&output)))
    }

    pub(crate) fn index(&self) {
        let mut command = self.program("indexer");
        command.arg("--once");
        let output = output(command);
        assert!(output.status.success(), "the indexer failed: {}", text_of(&output));
    }

    pub(crate) async fn api(&self) -> Api {
        self.api_with(&[]).await
    }

    pub(crate) async fn api_with(&self, flags: &[&str]) -> Api {
        let api = Api::start(self, |command| {
            command.args(flags);
        });
        api.wait_until_ready().await;
        api
    }

    /// Fails if the log of the test web breaks a rule of politeness.
    pub(crate) fn assert_polite(&self) {
        audit::check(&self.web.log().hits(), &self.policy()).assert_clean();
    }

    /// The audit policy for every crawl of this world.
    pub(crate) fn policy(&self) -> audit::Policy {
        audit::Policy {
            passes_began_us: self.passes_began_us.borrow().clone(),
            repeats_allowed: self.kills,
            from: Some(CONTACT_EMAIL.to_owned()),
            ..audit::Policy::with_delay(self.delay)
        }
    }

    pub(crate) fn requests(&self) -> usize {
        self.web.log().hit_count()
    }
}

pub(crate) struct Api {
    child: Child,
    base: String,
}

impl Api {
    /// Starts an API on a free port; `more` adds flags.
    pub(crate) fn start(world: &World, more: impl FnOnce(&mut Command)) -> Self {
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let address = format!("127.0.0.1:{port}");
        let mut command = world.program("api");
        command.args(["--listen", &address]).stdout(Stdio::null()).stderr(Stdio::null());
        more(&mut command);
        Self { child: command.spawn().unwrap(), base: format!("http://{address}") }
    }

    /// Stops the API with SIGTERM and waits until it has exited.
    pub(crate) fn stop(&mut self) {
        let signalled = Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status().unwrap();
        assert!(signalled.success(), "the api had already ended");
        assert!(self.child.wait().unwrap().success(), "the api did not exit cleanly");
    }

    /// Sends SIGHUP, which reloads the settings.
    pub(crate) fn hang_up(&self) {
        let signalled = Command::new("kill").args(["-HUP", &self.child.id().to_string()]).status().unwrap();
        assert!(signalled.success(), "the api had already ended");
    }

    /// Stops the API and starts it again on the same port.
    pub(crate) async fn restart(&mut self, world: &World) {
        self.stop();
        let mut command = world.program("api");
        command.args(["--listen", self.base.trim_start_matches("http://")]);
        self.child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        self.wait_until_ready().await;
    }

    /// The id of its process.
    #[cfg(target_os = "linux")]
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn base(&self) -> &str {
        &self.base
    }

    pub(crate) async fn wait_until_ready(&self) {
        let ready = async {
            while !self.try_get("/readyz").await.is_some_and(|answer| answer.status().is_success()) {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        tokio::time::timeout(TIMEOUT, ready).await.expect("the api did not become ready");
    }

    #[expect(clippy::disallowed_methods, reason = "a client of the local api")]
    pub(crate) async fn try_get(&self, path: &str) -> Option<reqwest::Response> {
        client().get(format!("{}{path}", self.base)).send().await.ok()
    }

    #[expect(clippy::disallowed_methods, reason = "a client of the local api")]
    pub(crate) async fn get(&self, path: &str) -> Value {
        let answer = self.try_get(path).await.expect("the api did not respond");
        let bytes = answer.bytes().await.unwrap();
        serde_json::from_slice(&bytes)
            .unwrap_or_else(|_| panic!("{path}: {}", String::from_utf8_lossy(&bytes)))
    }

    /// The native ids of the capabilities that a search finds, best first.
    pub(crate) async fn search(&self, query: &str) -> Vec<String> {
        let answer = self.get(&format!("/search?{query}")).await;
        let results = answer["results"].as_array().unwrap_or_else(|| panic!("{query}: {answer}"));
        results.iter().map(|row| row["native_id"].as_str().unwrap().to_owned()).collect()
    }
}

impl Drop for Api {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

/// A client for plain HTTP on loopback. It still needs a crypto provider.
#[expect(clippy::disallowed_methods, reason = "a client of the local api")]
pub(crate) fn client() -> reqwest::Client {
    static CLIENT: OnceLock<reqwest::Client> = OnceLock::new();
    let make = || {
        // Another test in this process may have installed one.
        drop(rustls::crypto::ring::default_provider().install_default());
        reqwest::Client::new()
    };
    CLIENT.get_or_init(make).clone()
}

pub(crate) fn output(mut command: Command) -> Output {
    command.stdin(Stdio::null()).output().unwrap()
}

pub(crate) fn text_of(output: &Output) -> String {
    format!(
        "{}\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

/// Kills a program (SIGKILL) and waits until it has exited.
pub(crate) fn kill(child: &mut Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

/// Interrupts a program with SIGINT and returns the summary that it prints.
pub(crate) fn interrupt(child: Child) -> Value {
    let signalled = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(signalled.success(), "the program had already exited");
    let ended = child.wait_with_output().unwrap();
    assert!(ended.status.success(), "the program did not stop cleanly: {}", text_of(&ended));
    serde_json::from_slice(&ended.stdout)
        .unwrap_or_else(|error| panic!("no summary ({error}): {}", text_of(&ended)))
}

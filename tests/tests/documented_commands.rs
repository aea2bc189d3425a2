//! Runs the commands in README.md and docs/ in their order, with the programs of this build. The test web replaces the open web.

#![expect(clippy::unwrap_used, reason = "a failed step fails the test")]

use std::collections::BTreeSet;
use std::fs::File;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use agentdex_tests::harness::{TestDatabase, binary};
use testweb::{Host, Web};

/// Commands that cannot run in a test: how each begins, and the reason.
const EXEMPT: [(&str, &str); 30] = [
    ("git clone ", "it downloads the sources"),
    ("cd agentdex", "the test has its own directory"),
    ("docker compose ", "it builds an image and starts containers"),
    ("kubectl ", "it needs a cluster"),
    ("sudo apt-get install ", "it installs packages of the system"),
    ("sudo install ", "it writes to the system's directories"),
    ("sudo useradd ", "it creates a user of the system"),
    ("sudo systemctl ", "it starts services of the system"),
    ("sudo -u postgres ", "it needs the superuser of a database server; the test creates its own database"),
    ("tests/run", "it runs this test"),
    ("deploy/build-release", "it builds for an hour; tests/deploy/run tests the script"),
    ("deploy/metrics-token deploy/secrets", "it writes to the sources; tests/deploy/run runs it"),
    ("cat target/dist/SHA256SUMS", "it reads files that deploy/build-release builds"),
    ("cargo build --release --features", "it builds for minutes"),
    ("cargo install ", "the programs of this build are on the PATH"),
    ("agentdex embedder check", "it needs a model; tests/embedder tests it"),
    ("indexer --embedder", "it needs a model; tests/embedder tests it"),
    ("api --embedder", "it needs a model; tests/embedder tests it"),
    ("agentdex demo --embedder", "it needs a model; tests/embedder tests it"),
    ("summa-server ", "it needs an engine; tests/cluster tests it"),
    ("summa-broker ", "it needs an engine; tests/cluster tests it"),
    ("indexer --cluster", "it needs an engine; tests/cluster tests it"),
    ("api --cluster", "it needs an engine; tests/cluster tests it"),
    (
        "indexer --index-dir /var/lib/agentdex/index --publish s3:",
        "it needs a bucket; tests/deploy/bucket runs it",
    ),
    (
        "api --index-dir /var/lib/agentdex/replica --index-from s3:",
        "it needs a bucket; tests/deploy/bucket runs it",
    ),
    ("agentdex reports answer", "no owner objects in this document; the tests of the command run it"),
    ("agentdex mcp", "it answers a client on its standard input; tests/mcp runs it"),
    (
        "curl -X POST 'http://127.0.0.1:8080/sites/skyhop.example/recheck'",
        "a site cannot be rechecked so soon after a visit; the tests of the API run it",
    ),
    (
        "sudo -u agentdex agentdex --config /etc/agentdex/agentdex.toml doctor",
        "it queries name servers on the internet",
    ),
    ("pg_", "they dump and replace a database in use; the restore tests of the indexer cover it"),
];
/// Starts the demo, which serves while the commands of the document run.
const DEMO: &str = "agentdex demo --admin-tokens admin-tokens --feedback";
/// The manifest of a user who validates it.
const MANIFEST: &str = include_str!("../../crates/testweb/demo/skyhop/agent.json");
/// Prefix of commands that the service user runs. The test runs them as its own user.
const AS_SERVICE: &str = "sudo -u agentdex ";
/// The beginnings of commands in the indented lines of a document. In a shell block, every line is a command.
const STARTS: [&str; 14] = [
    "agentdex ",
    AS_SERVICE,
    "crawler ",
    "indexer ",
    "api ",
    "cargo ",
    "curl ",
    "openssl ",
    "echo ",
    "export ",
    "pg_",
    "tests/",
    "deploy/",
    "cat ",
];
/// Timeout for the start of a program and for a command.
const TIMEOUT: Duration = Duration::from_mins(2);
/// Shell functions for the commands: curl fails on an error status, but not when `--max-time` ends a stream, and `cargo run` starts the
/// program that is already built.
const PRELUDE: &str = r#"set -euo pipefail
curl() { command curl --silent --show-error --fail-with-body "$@" || [ $? = 28 ]; }
"#;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// The commands of a document by block: lines in shell blocks, and indented lines.
fn blocks(text: &str) -> Vec<Vec<String>> {
    let (mut blocks, mut is_shell) = (vec![Vec::new()], false);
    for line in text.lines() {
        if line.starts_with("```") {
            is_shell = line == "```sh";
        }
        let is_of_shell =
            is_shell && !line.starts_with("```") && !line.trim().is_empty() && !line.starts_with('#');
        let command = if is_shell {
            Some(line).filter(|_| is_of_shell)
        } else {
            line.strip_prefix("    ").filter(|line| is_command(line))
        };
        match command {
            Some(command) => blocks.last_mut().unwrap().push(command.to_owned()),
            None if blocks.last().unwrap().is_empty() => (),
            None => blocks.push(Vec::new()),
        }
    }
    blocks.retain(|block| !block.is_empty());
    blocks
}

fn is_command(line: &str) -> bool {
    let words = format!("{line} ");
    assigned(line).is_some() || STARTS.iter().any(|start| words.starts_with(start))
}

/// The variable to which a line assigns the output of a command.
fn assigned(line: &str) -> Option<&str> {
    let (name, _) = line.split_once("=$(")?;
    name.bytes().all(|byte| byte.is_ascii_lowercase()).then_some(name)
}

fn exemption(line: &str) -> Option<&'static str> {
    EXEMPT.iter().map(|(start, _)| *start).find(|start| line.starts_with(start))
}

/// Whether a command runs until it is stopped.
fn is_service(line: &str) -> bool {
    let words: Vec<&str> = line.split_whitespace().collect();
    let has = |word: &str| words.contains(&word);
    match words.first().copied() {
        Some("api") => true,
        Some("indexer") => !has("rebuild") && !has("--once"),
        Some("crawler") => has("--daemon"),
        Some("agentdex" | "cargo") => (has("demo") || has("--seeds")) && !has("--once"),
        _ => false,
    }
}

/// Whether a command crawls. With SQLite, only one program can crawl at a time.
fn is_crawl(line: &str) -> bool {
    line.starts_with("crawler --seeds")
}

/// A directory in which the commands of one document run.
struct Session {
    folder: tempfile::TempDir,
    port: u16,
    variables: Vec<(String, String)>,
    services: Vec<(String, Child)>,
    database: Option<TestDatabase>,
}

impl Session {
    async fn start(web: &Web, needs_database: bool) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let database = if needs_database { Some(TestDatabase::create().await.unwrap()) } else { None };
        let session = Self { folder, port, variables: Vec::new(), services: Vec::new(), database };
        let files = web.write_files(session.folder.path()).unwrap();
        let config = format!(
            "[crawler]\nhosts = \"{}\"\nca_file = \"{}\"\nallow_addresses = [\"127.0.0.0/8\"]\ndelay = \"20ms\"\n\n\
             [api]\nlisten = \"127.0.0.1:{port}\"\n",
            files.hosts.display(),
            files.ca.display()
        );
        session.write("agentdex.toml", &config, 0o644);
        session.write("domains.txt", "skyhop.example\nexample.org\n", 0o644);
        session.write("admin-tokens", "", 0o600);
        session.write("crates/testweb/demo/skyhop/agent.json", MANIFEST, 0o644);
        let cargo =
            "#!/bin/sh\n[ \"$1 $2 $3\" = 'run --release --' ] || exit 1\nshift 3\nexec agentdex \"$@\"\n";
        session.write("bin/cargo", cargo, 0o755);
        session
    }

    fn write(&self, name: &str, text: &str, mode: u32) {
        let path = self.folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
    }

    /// The command with the directories, the port and the database of this session.
    fn localised(&self, line: &str) -> String {
        let folder = self.folder.path().to_str().unwrap();
        let line = line.strip_prefix(AS_SERVICE).unwrap_or(line);
        let mut line = line.replace("127.0.0.1:8080", &format!("127.0.0.1:{}", self.port));
        for known in ["/etc/agentdex", "/var/lib/agentdex", "/srv"] {
            line = line.replace(known, folder);
        }
        match &self.database {
            Some(database) => {
                line.replace("postgres://agentdex:PASSWORD@localhost/agentdex", &database.url())
            }
            None => line,
        }
    }

    fn shell(&self, script: &str) -> Command {
        let programs = binary("agentdex").unwrap().get_program().to_owned();
        let programs = Path::new(&programs).parent().unwrap().to_owned();
        let own = self.folder.path().join("bin");
        let path = std::env::var_os("PATH").unwrap_or_default();
        let paths = [own, programs].into_iter().chain(std::env::split_paths(&path));
        let mut command = Command::new("bash");
        command.arg("-c").arg(script).current_dir(self.folder.path()).stdin(Stdio::null());
        command.env("PATH", std::env::join_paths(paths).unwrap());
        command.env("AGENTDEX_CONFIG", self.folder.path().join("agentdex.toml"));
        command.env_remove("DATABASE_URL").envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Runs the commands of a block; services run until the next block that starts one or crawls.
    async fn run_block(&mut self, block: &[String]) {
        if block.iter().any(|line| (is_service(line) || is_crawl(line)) && exemption(line).is_none()) {
            self.stop();
        }
        let mut script = Vec::new();
        for line in block.iter().filter(|line| exemption(line).is_none()) {
            let line = self.localised(line);
            if let Some((name, value)) = line.strip_prefix("export ").and_then(|rest| rest.split_once('=')) {
                self.variables.push((name.to_owned(), value.to_owned()));
            } else if is_service(&line) {
                self.run_script(&std::mem::take(&mut script));
                self.serve(&line).await;
            } else {
                script.push(line);
            }
        }
        self.run_script(&script);
    }

    fn run_script(&self, lines: &[String]) {
        if lines.is_empty() {
            return;
        }
        // later blocks refer to the values of lines like `id=$(…)`
        let kept = |line: &String| match assigned(line) {
            Some(name) => format!("{line}\ndeclare -p {name} >>variables"),
            None => line.clone(),
        };
        let mut script = vec![PRELUDE.to_owned(), "touch variables && . ./variables".to_owned()];
        script.extend(lines.iter().map(kept));
        let output = self.shell(&format!("set -x\n{}", script.join("\n"))).output().unwrap();
        assert!(
            output.status.success(),
            "{}\n{}\n{}",
            output.status,
            String::from_utf8_lossy(&output.stdout).chars().take(4_000).collect::<String>(),
            String::from_utf8_lossy(&output.stderr)
        );
    }

    /// Starts a program that runs until it is stopped. Waits until it is ready, or has started if it serves nothing.
    async fn serve(&mut self, line: &str) {
        let log = self.folder.path().join(format!("service-{}.log", self.services.len()));
        let file = File::create(&log).unwrap();
        let mut command = self.shell(&format!("exec {line}"));
        let child = command.stdout(file.try_clone().unwrap()).stderr(file).spawn().unwrap();
        self.services.push((line.to_owned(), child));
        // Programs that serve nothing log their start, and handle signals from then on.
        let has_interface = !line.starts_with("indexer") && !line.starts_with("crawler ");
        let ready =
            format!("{PRELUDE}curl --output /dev/null http://127.0.0.1:{}/readyz 2>/dev/null", self.port);
        let began = now();
        loop {
            let is_ready = if has_interface {
                self.shell(&ready).status().unwrap().success()
            } else {
                std::fs::metadata(&log).unwrap().len() > 0
            };
            if is_ready {
                return;
            }
            let has_ended = self.services.last_mut().unwrap().1.try_wait().unwrap().is_some();
            assert!(
                !has_ended && began.elapsed() < TIMEOUT,
                "{line}:\n{}",
                std::fs::read_to_string(&log).unwrap()
            );
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }

    /// Waits until a search has results.
    async fn wait_for_results(&self) {
        self.wait_for("/search?q=book+flight", "\"total\":[1-9]").await;
    }

    /// Waits until the response at a path matches an expression.
    async fn wait_for(&self, path: &str, expression: &str) {
        let found = format!("{PRELUDE}curl 'http://127.0.0.1:{}{path}' | grep -q '{expression}'", self.port);
        let began = now();
        while !self.shell(&found).status().unwrap().success() {
            assert!(began.elapsed() < TIMEOUT, "{path} does not contain {expression}:\n{}", self.logs());
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }

    /// The output of a script.
    fn output(&self, script: &str) -> String {
        String::from_utf8(self.shell(script).output().unwrap().stdout).unwrap()
    }

    /// The output of the services.
    fn logs(&self) -> String {
        let log = |(number, (line, _)): (usize, &(String, Child))| {
            let path = self.folder.path().join(format!("service-{number}.log"));
            format!("== {line}\n{}", std::fs::read_to_string(path).unwrap_or_default())
        };
        self.services.iter().enumerate().map(log).collect()
    }

    /// Stops the services as Ctrl-C does; each must exit without an error.
    fn stop(&mut self) {
        for (line, mut child) in self.services.drain(..).rev() {
            let signalled = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
            assert!(signalled.success(), "{line} had already exited");
            let status = child.wait().unwrap();
            assert!(status.success(), "{line}: {status}");
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        for (_, child) in &mut self.services {
            drop(child.kill());
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "the test waits for programs in real time")]
fn now() -> Instant {
    Instant::now()
}

async fn web() -> Web {
    testweb::demo::web().host(Host::new("example.org")).start().await.unwrap()
}

/// Runs the commands of a document, after a first command that the document presupposes.
async fn run_document(name: &str, first: Option<&str>) {
    let web = web().await;
    let text = std::fs::read_to_string(root().join(name)).unwrap();
    let mut session = Session::start(&web, false).await;
    if let Some(first) = first {
        session.run_block(&[first.to_owned()]).await;
        if is_service(first) {
            session.wait_for_results().await;
        }
    }
    for block in blocks(&text) {
        session.run_block(&block).await;
    }
    session.stop();
    web.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn readme_commands_work_in_order() {
    let web = web().await;
    let text = std::fs::read_to_string(root().join("README.md")).unwrap();
    let mut session = Session::start(&web, true).await;
    for block in blocks(&text) {
        session.run_block(&block).await;
        if block.iter().any(|line| is_service(line)) {
            session.wait_for_results().await;
        }
    }
    session.stop();
    session.database.take().unwrap().drop_database().await.unwrap();
    web.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_of_the_api_document_work() {
    run_document("docs/API.md", Some(DEMO)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_of_the_standards_document_work() {
    run_document("docs/STANDARDS.md", Some(DEMO)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_of_the_documents_for_operators_work() {
    run_document("docs/CRAWLING.md", None).await;
    for name in ["docs/POLITENESS.md", "docs/OPERATIONS.md"] {
        run_document(name, Some("crawler --seeds domains.txt")).await;
    }
    run_document("docs/SEARCH.md", Some("agentdex --seeds domains.txt")).await;
}

/// Publishes the line of a claim on the site, as its owner would.
#[tokio::test(flavor = "multi_thread")]
async fn commands_of_the_document_for_owners_work() {
    let web = web().await;
    let text = std::fs::read_to_string(root().join("docs/OWNERS.md")).unwrap();
    let mut session = Session::start(&web, false).await;
    session.serve("agentdex --seeds domains.txt").await;
    session.wait_for_results().await;
    for block in blocks(&text) {
        let has = |words: &str| block.iter().any(|line| line.contains(words));
        // an owner objects to a suspension
        let is_suspended = has("/objection");
        if is_suspended {
            session.output("agentdex suspend skyhop.example --reason spam");
        }
        session.run_block(&block).await;
        if is_suspended {
            session.output("agentdex unsuspend skyhop.example");
        }
        if has("line=$(") {
            let line = session.output(". ./variables && echo \"$line\"");
            web.set_file("skyhop.example", "/.well-known/agentdex-claim.txt", "text/plain", line);
        }
        if has("/claim/check") {
            session.wait_for("/sites/skyhop.example/claim", "\"verified\":true").await;
        }
    }
    session.stop();
    web.stop().await;
}

#[test]
fn every_line_of_a_shell_block_is_a_command() {
    let text =
        "```sh\n# how\nsudo make-coffee\n\nagentdex status\n```\n    sudo make-tea\n    crawler status\n";
    assert_eq!(blocks(text), [vec!["sudo make-coffee"], vec!["agentdex status"], vec!["crawler status"]]);
}

#[test]
fn every_exemption_is_needed_and_every_document_runs() {
    const RUN: [&str; 8] = [
        "README.md",
        "docs/API.md",
        "docs/STANDARDS.md",
        "docs/CRAWLING.md",
        "docs/POLITENESS.md",
        "docs/OPERATIONS.md",
        "docs/SEARCH.md",
        "docs/OWNERS.md",
    ];
    let mut used = BTreeSet::new();
    let documents = std::fs::read_dir(root().join("docs")).unwrap().map(|entry| entry.unwrap().path());
    for path in documents
        .chain([root().join("README.md")])
        .filter(|path| path.extension().is_some_and(|end| end == "md"))
    {
        let text = std::fs::read_to_string(&path).unwrap();
        let name = path.strip_prefix(root()).unwrap().to_str().unwrap().to_owned();
        for line in blocks(&text).concat() {
            match exemption(&line) {
                Some(exempt) => drop(used.insert(exempt)),
                None => assert!(RUN.contains(&name.as_str()), "no test runs this command of {name}: {line}"),
            }
        }
    }
    for (start, _) in EXEMPT {
        assert!(used.contains(start), "no document contains {start:?}: remove the exemption");
    }
}

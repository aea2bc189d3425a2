//! The crawler program with a test web and a temporary directory.

use std::path::PathBuf;
use std::process::{Output, Stdio};

use testweb::{Host, Web};
use tokio::process::Command;

/// A directory with all files of the program.
pub(crate) struct Fixture {
    pub(crate) dir: tempfile::TempDir,
    pub(crate) web: Web,
}

impl Fixture {
    pub(crate) async fn with(hosts: impl IntoIterator<Item = Host>) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let web = Web::builder().hosts(hosts).start().await.unwrap();
        web.write_files(dir.path()).unwrap();
        Self { dir, web }
    }

    pub(crate) fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.dir.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    /// The program with these arguments, with the data directory, and with the flags for the test web if it sends requests.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let sends = arguments.first().is_none_or(|first| first.starts_with("--") || *first == "check");
        let web = ["--ca-file", "ca.pem", "--hosts", "hosts", "--allow-addresses", "127.0.0.0/8"];
        let mut command = Command::new(crate::program_path::crawler());
        command
            .current_dir(self.dir.path())
            .env_remove("DATABASE_URL")
            .args(arguments)
            .args(["--data-dir", "data"])
            .args(web.iter().filter(|_| sends))
            .stdin(Stdio::null())
            .kill_on_drop(true);
        command
    }

    pub(crate) async fn run(&self, arguments: &[&str]) -> Output {
        let run = self.command(arguments).output();
        tokio::time::timeout(std::time::Duration::from_mins(1), run).await.expect("an end").unwrap()
    }

    pub(crate) async fn json(&self, arguments: &[&str]) -> serde_json::Value {
        let output = self.run(arguments).await;
        assert!(output.status.success(), "{}", text(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    }
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

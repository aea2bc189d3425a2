//! A PostgreSQL server of one test, for tests that start, stop or copy it. Other tests share one server ([`super::TestDatabase`]).

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, ensure};

/// A server on a free port of 127.0.0.1. Stopped and removed when dropped.
pub struct PostgresServer {
    folder: tempfile::TempDir,
    port: u16,
}

impl PostgresServer {
    /// Chooses a folder and a port, and starts nothing.
    pub fn planned() -> anyhow::Result<Self> {
        let folder = tempfile::tempdir()?;
        // PostgreSQL does not run as root, and its user needs access to the directory
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o711))?;
        let port = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        Ok(Self { folder, port })
    }

    /// The URL of one of its databases, for `--database-url`.
    pub fn url(&self, database: &str) -> String {
        format!("postgres://agentdex@127.0.0.1:{}/{database}", self.port)
    }

    pub const fn port(&self) -> u16 {
        self.port
    }

    /// Starts an empty cluster.
    pub fn start(&self) -> anyhow::Result<()> {
        self.script(&["start", &self.cluster(), &self.port.to_string()])
    }

    /// Copies the cluster of another server, and starts the copy as a streaming replica that accepts reads only.
    pub fn start_as_replica_of(&self, primary: &Self) -> anyhow::Result<()> {
        self.script(&["replica", &self.cluster(), &primary.url("postgres"), &self.port.to_string()])
    }

    fn cluster(&self) -> String {
        self.folder.path().join("pg").display().to_string()
    }

    fn script(&self, arguments: &[&str]) -> anyhow::Result<()> {
        let mut command = Command::new(script());
        // the server keeps the inherited descriptors open
        let status = command
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .context("cannot run tests/postgres")?;
        ensure!(status.success(), "tests/postgres {arguments:?} failed; its log is below {}", self.cluster());
        Ok(())
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        // the script stops what runs and removes the folder
        let stopped = self.script(&["stop", &self.cluster()]);
        assert!(stopped.is_ok() || std::thread::panicking(), "{stopped:?}");
    }
}

fn script() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("postgres")
}

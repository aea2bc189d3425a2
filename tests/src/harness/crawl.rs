//! A directory with the files for a crawl of the test web: seeds, the certificate of the authority, the hosts file, data.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::Context;
use tempfile::TempDir;
use testweb::{Web, WebFiles};

use super::binary;

/// A temporary directory for one crawl of a web.
pub struct CrawlDir {
    folder: TempDir,
    files: WebFiles,
    seeds: PathBuf,
}

impl CrawlDir {
    /// Writes the files; every host of the web is a seed unless `seeds` names others.
    pub fn of(web: &Web, seeds: &[&str]) -> anyhow::Result<Self> {
        let folder = tempfile::tempdir().context("cannot create a directory for the test")?;
        let files = web.write_files(folder.path())?;
        let all: Vec<String> = web.hosts().into_iter().map(|(name, _)| name).collect();
        let seeds: Vec<&str> =
            if seeds.is_empty() { all.iter().map(String::as_str).collect() } else { seeds.to_vec() };
        let seeds = write_seeds(folder.path(), &seeds)?;
        Ok(Self { folder, files, seeds })
    }

    /// The data directory; its name is the crawler's default.
    pub fn data(&self) -> PathBuf {
        self.folder.path().join("agentdex-data")
    }

    /// The directory, for further files.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// `crawler --seeds …` over this web on SQLite: `--database-url` or a delay may be added.
    pub fn crawler(&self) -> anyhow::Result<Command> {
        let mut command = binary("crawler")?;
        command.arg("--seeds").arg(&self.seeds).arg("--data-dir").arg(self.data());
        command.arg("--ca-file").arg(&self.files.ca).arg("--hosts").arg(&self.files.hosts);
        command.args(["--allow-addresses", "127.0.0.0/8"]).current_dir(self.folder.path());
        Ok(command)
    }
}

/// Writes a seeds file and returns its path.
pub fn write_seeds(folder: &Path, seeds: &[&str]) -> anyhow::Result<PathBuf> {
    let path = folder.join("seeds.txt");
    std::fs::write(&path, format!("{}\n", seeds.join("\n"))).context("cannot write the seeds")?;
    Ok(path)
}

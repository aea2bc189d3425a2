//! Runs binaries of the workspace.

use std::{
    path::PathBuf,
    process::{Command, Output},
};

use anyhow::{Context, ensure};

/// The result of a finished process.
#[derive(Debug)]
pub struct Finished {
    /// Exit code; `None` if a signal ended the process.
    pub code: Option<i32>,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

/// A command for a binary of the workspace, found next to the test that is running. Environment variables that
/// the binaries read are removed, so that tests do not depend on the shell.
pub fn binary(name: &str) -> anyhow::Result<Command> {
    let path = binary_path(name)?;
    ensure!(path.is_file(), "{} is not built: run `cargo build --workspace --bins` first", path.display());
    let mut command = Command::new(path);
    command.env_remove("DATABASE_URL").env("RUST_BACKTRACE", "1");
    Ok(command)
}

/// Tests run in `target/PROFILE/deps`, binaries are in `target/PROFILE`.
fn binary_path(name: &str) -> anyhow::Result<PathBuf> {
    let test = std::env::current_exe().context("cannot find the path of this test")?;
    let profile = test.ancestors().nth(2).context("this test is not in a target directory")?;
    Ok(profile.join(format!("{name}{}", std::env::consts::EXE_SUFFIX)))
}

impl Finished {
    /// Runs a command to its end.
    pub fn run(command: &mut Command) -> anyhow::Result<Self> {
        let output = command.output().with_context(|| format!("cannot run {command:?}"))?;
        Ok(Self::of(&output))
    }

    /// Converts an output.
    pub fn of(output: &Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// Fails with the whole output unless the process succeeded.
    ///
    /// # Panics
    /// If the exit code is not 0.
    #[track_caller]
    pub fn assert_success(&self) -> &Self {
        assert_eq!(self.code, Some(0), "standard output:\n{}\nstandard error:\n{}", self.stdout, self.stderr);
        self
    }
}

//! What the program says on stdout: results, and nothing else. Progress and logs go to stderr.

use std::io::{self, Write};

use serde::Serialize;
use settings::escape;

/// How results are written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum OutputFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON object.
    Json,
}

/// Writes one line. What it quotes of others can neither begin another line nor steer the terminal.
pub(crate) fn line(text: &str) -> io::Result<()> {
    write(&escape::line(text))
}

/// Writes lines of ours, and a line end. What they quote of others cannot steer the terminal.
pub(crate) fn text(text: &str) -> io::Result<()> {
    write(&escape::lines(text))
}

fn write(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{text}")?;
    out.flush()
}

/// Writes one JSON object on a line.
pub(crate) fn json(value: &impl Serialize) -> io::Result<()> {
    write(&escape::json(&serde_json::to_string(value)?))
}

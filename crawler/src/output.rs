//! Results on stdout. Progress and logs go to stderr.

use std::io::{self, Write};

use serde::Serialize;
use settings::escape;

/// How results are written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum OutputFormat {
    /// For people.
    #[default]
    Text,
    /// JSON. A program that keeps running prints one object per line.
    Json,
}

/// Writes one line. Escapes texts of sites, so that they can neither start another line nor control the terminal.
pub(crate) fn line(text: &str) -> io::Result<()> {
    write(&escape::line(text))
}

/// Writes text and a line end. Escapes texts of sites, so that they cannot control the terminal.
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

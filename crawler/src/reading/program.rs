//! Reads a document in a separate process, under limits of the operating system.
//!
//! The process gets the document on its standard input (one line of JSON, then the bytes) and writes the manifest as
//! JSON on its standard output. It ends at its limits of memory and processor time, for any document.

use std::fmt::Display;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use manifest::Manifest;
use runtime::ReaderPool;
use rustix::process::{Resource, Rlimit, setrlimit};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::Command;

use super::document::{Header, OwnedDocument};
use super::memory::VISIT_BYTES_MAX;

/// Address space of the process: four times what the largest document needs, with the program itself and its allocator.
const ADDRESS_SPACE_BYTES: u64 = 2 * 1_024 * 1_024 * 1_024;
/// Processor time of the process: the largest document takes one second in a release build.
const CPU_SECONDS: u64 = 10;
/// Maximum length of the result: longer than the JSON of any manifest that a visit can hold.
const ANSWER_BYTES_MAX: usize = VISIT_BYTES_MAX / 2;
/// Maximum input of the process: a document with the parts of one visit is a tenth of it.
const INPUT_BYTES_MAX: u64 = 512 * 1_024 * 1_024;

/// A program that reads one document from its standard input: see [`read_from_stdin`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReaderProgram {
    /// The executable.
    pub path: PathBuf,
    /// What it is called with.
    pub arguments: Vec<String>,
}

impl ReaderProgram {
    /// The running program, called with one subcommand.
    ///
    /// # Errors
    ///
    /// Where the operating system does not report the path of the running program.
    pub fn this_program(subcommand: &str) -> io::Result<Self> {
        Ok(Self { path: std::env::current_exe()?, arguments: vec![subcommand.to_owned()] })
    }

    /// The manifest, or why there is none. Its JSON is parsed on a thread of `pool`.
    pub(super) async fn read(
        &self,
        document: &OwnedDocument,
        deadline: Duration,
        pool: &ReaderPool,
    ) -> Result<(Manifest, usize), Unread> {
        let answered = tokio::time::timeout(deadline, self.answer(document)).await;
        let bytes = answered.map_err(|_| {
            Unread::Document(format!(
                "reading it did not end, and a second reader did not end within {} s",
                deadline.as_secs()
            ))
        })?;
        let bytes = bytes?;
        if bytes.len() > ANSWER_BYTES_MAX {
            let reason = format!(
                "reading it did not end, and a second reader answered more than {} MiB",
                ANSWER_BYTES_MAX / 1_024 / 1_024
            );
            return Err(Unread::Document(reason));
        }
        let ended = |error: &dyn Display| {
            Unread::Document(format!(
                "reading it did not end, and a second reader ended without an answer ({error})"
            ))
        };
        let parse = move || {
            serde_json::from_slice(&bytes).map(|manifest: Manifest| {
                let memory_bytes = manifest::budget::manifest_bytes(&manifest);
                (manifest, memory_bytes)
            })
        };
        match pool.read(parse).await {
            Ok(parsed) => parsed.map_err(|error| ended(&error)),
            Err(error) if error.is_caused_by_document() => Err(ended(&error)),
            Err(error) => Err(Unread::Process(error.to_string())),
        }
    }

    async fn answer(&self, document: &OwnedDocument) -> Result<Vec<u8>, Unread> {
        let failed = |error: io::Error| Unread::Process(format!("no second reader could be run: {error}"));
        let mut child = Command::new(&self.path)
            .args(&self.arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .map_err(failed)?;
        let mut header =
            serde_json::to_vec(&document.header()).map_err(|error| failed(io::Error::other(error)))?;
        header.push(b'\n');
        if let Some(mut input) = child.stdin.take() {
            let parts = [header.as_slice(), &document.bytes];
            for part in parts.into_iter().chain(document.linked.iter().map(|(_, bytes)| bytes.as_slice())) {
                if input.write_all(part).await.is_err() {
                    // the process has ended; its result decides
                    break;
                }
            }
        }
        let Some(output) = child.stdout.take() else { return Ok(Vec::new()) };
        let mut answer = Vec::new();
        output.take(ANSWER_BYTES_MAX as u64 + 1).read_to_end(&mut answer).await.map_err(failed)?;
        Ok(answer)
    }
}

/// Why a second reader returned no manifest.
#[derive(Debug)]
pub(super) enum Unread {
    /// It ended at a limit, or without a result.
    Document(String),
    /// It could not be run, which does not depend on the document.
    Process(String),
}

/// The other side of [`ReaderProgram`]: sets the limits, reads one document from standard input, writes its manifest as JSON
/// to standard output.
///
/// # Errors
///
/// When a limit is refused, the input is not what [`ReaderProgram`] sends, or the output is closed.
pub fn read_from_stdin() -> io::Result<()> {
    for (resource, limit) in [(Resource::As, ADDRESS_SPACE_BYTES), (Resource::Cpu, CPU_SECONDS)] {
        setrlimit(resource, Rlimit { current: Some(limit), maximum: Some(limit) })?;
    }
    let mut input = Vec::new();
    io::Read::read_to_end(&mut io::Read::take(io::stdin().lock(), INPUT_BYTES_MAX), &mut input)?;
    let wrong = |what: &str| io::Error::new(io::ErrorKind::InvalidData, what.to_owned());
    let end = input.iter().position(|byte| *byte == b'\n').ok_or_else(|| wrong("no header"))?;
    let (header, rest) = input.split_at(end);
    let header: Header = serde_json::from_slice(header)?;
    let document = OwnedDocument::from_parts(header, rest.get(1..).unwrap_or_default())
        .ok_or_else(|| wrong("fewer bytes than the header says"))?;
    let mut output = io::stdout().lock();
    serde_json::to_writer(&mut output, &document.read())?;
    output.flush()
}

//! Reads a document in a separate process, under limits of the operating system.
//!
//! The process gets the document on its standard input (one line of JSON, then the bytes) and writes the manifest as JSON on its standard
//! output. The operating system ends it at its limits of memory and processor time. The program that started it ends it after a longer
//! time. On Linux the kernel also ends it when that program ends.

use std::io::{self, BufReader, Read as _, Write as _};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use manifest::Manifest;
use rustix::process::{Pid, Resource, Rlimit, Signal, kill_process, setrlimit};

use crate::OwnedDocument;

/// Maximum bytes of a document, with its parts, that is read without a separate process. Starting a process takes 4 ms. At this length,
/// even a document whose memory grows with the square of its length takes only 16 MiB.
const IN_PROCESS_BYTES_MAX: usize = 4 * 1_024;
/// Memory limit of the process: the document with the parts of one visit (51 MiB), the 128 MiB that reading may take, and the program.
/// Linux counts private writable memory (setrlimit(2), `RLIMIT_DATA`).
const DATA_BYTES: u64 = 256 * 1_024 * 1_024;
/// Limit of the processor time of the process. The largest document takes one second in a release build, and ten times as long in other
/// builds.
const CPU_SECONDS: u64 = if cfg!(debug_assertions) { 30 } else { 3 };
/// Maximum run time of the process, even if it does not use the processor: enough for its processor time on a machine that is overloaded
/// twentyfold.
const TIME_MAX: Duration = Duration::from_secs(20 * CPU_SECONDS);
/// Maximum bytes of the response: more than the JSON of any manifest within the memory limit of a manifest.
const ANSWER_BYTES_MAX: u64 = 80 * 1_024 * 1_024;
/// Exit code if the process failed for a reason other than the document (`EX_TEMPFAIL` of sysexits.h).
const UNAVAILABLE: u8 = 75;
/// The hidden subcommand of every program that calls [`read_from_stdin`].
const SUBCOMMAND: &str = "read-document";
/// Setting of the allocator: memory counts towards the limit when it is used, not when it is reserved. Otherwise the gigabyte that the
/// allocator reserves at the start would exceed the limit, and allocations inside it would not be limited.
const ALLOCATOR_SETTING: (&str, &str) = ("MIMALLOC_ARENA_EAGER_COMMIT", "0");
/// Signals that stop all processes of a service or a terminal session. At a limit, the kernel sends other signals.
const STOP_SIGNALS: [i32; 3] = [1, 2, 15];

/// A program that reads one document from its standard input: see [`read_from_stdin`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReaderProgram {
    /// The executable.
    pub path: PathBuf,
    /// Command line arguments of the program.
    pub arguments: Vec<String>,
}

/// Why a document was not read.
#[derive(Debug, thiserror::Error)]
pub enum Unread {
    /// The process ended at a limit or without a response.
    #[error("{0}")]
    Document(String),
    /// The process could not be run or was stopped, which does not depend on the document.
    #[error("{0}")]
    Process(String),
}

impl ReaderProgram {
    /// The running program, called with the subcommand `read-document`.
    ///
    /// # Errors
    ///
    /// If the operating system does not report the path of the running program.
    pub fn this_program() -> io::Result<Self> {
        // on Linux, this link leads to the running program even after an upgrade has replaced its file
        let link = Path::new("/proc/self/exe");
        let path = if link.exists() { link.to_owned() } else { std::env::current_exe()? };
        Ok(Self { path, arguments: vec![SUBCOMMAND.to_owned()] })
    }

    /// The manifest of a document. Blocks until the process ends, which it does within a minute, or ten in a debug build.
    ///
    /// # Errors
    ///
    /// If the process returns no manifest.
    pub fn read(&self, document: &OwnedDocument) -> Result<Manifest, Unread> {
        self.read_within(TIME_MAX, document)
    }

    fn read_within(&self, time_max: Duration, document: &OwnedDocument) -> Result<Manifest, Unread> {
        let failed = |error: io::Error| Unread::Process(format!("no process could read it: {error}"));
        let mut child = self.start().map_err(failed)?;
        let answer = exchange_within(time_max, &mut child, document);
        // ends a process that still writes; an error means that it has already ended
        drop(child.kill());
        let status = child.wait().map_err(failed)?;
        match answer.map_err(failed)? {
            Exchange::Answered(manifest) => Ok(*manifest),
            Exchange::NotAnswered => Err(unread(status)),
            Exchange::OutOfTime => {
                Err(Unread::Document(format!("the process that read it did not end within {time_max:?}")))
            }
        }
    }

    fn start(&self) -> io::Result<Child> {
        Command::new(&self.path)
            .args(&self.arguments)
            .env(ALLOCATOR_SETTING.0, ALLOCATOR_SETTING.1)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            // a separate group, so that Ctrl-C does not end the readers before their visits are stopped in order
            .process_group(0)
            .spawn()
    }
}

/// The result of the process for a document.
enum Exchange {
    Answered(Box<Manifest>),
    NotAnswered,
    /// The process was ended because it exceeded its time.
    OutOfTime,
}

/// Sends the document and parses the response. Ends the process after a maximum time. Fails if the operating system refuses a thread.
fn exchange_within(time_max: Duration, child: &mut Child, document: &OwnedDocument) -> io::Result<Exchange> {
    let id = Pid::from_child(child);
    let (end, ended) = channel::<()>();
    thread::scope(|scope| {
        // the id of the child is not reused until the child is waited for
        let timer = thread::Builder::new().spawn_scoped(scope, move || {
            let is_late = ended.recv_timeout(time_max) == Err(RecvTimeoutError::Timeout);
            is_late && kill_process(id, Signal::KILL).is_ok()
        })?;
        let answer = exchange(child, document);
        drop(end);
        let was_ended = timer.join().unwrap_or_default();
        Ok(match answer {
            Ok(manifest) => Exchange::Answered(Box::new(manifest)),
            Err(_) if was_ended => Exchange::OutOfTime,
            Err(_) => Exchange::NotAnswered,
        })
    })
}

/// Sends the document and parses the response.
fn exchange(child: &mut Child, document: &OwnedDocument) -> io::Result<Manifest> {
    if let Some(mut input) = child.stdin.take() {
        // writing fails if the process has ended; only its response matters
        drop(document.write_to(&mut input));
    }
    let output = child.stdout.take().ok_or_else(|| io::Error::other("no standard output"))?;
    Ok(serde_json::from_reader(BufReader::new(output.take(ANSWER_BYTES_MAX)))?)
}

fn unread(status: ExitStatus) -> Unread {
    let is_stopped = status.signal().is_some_and(|signal| STOP_SIGNALS.contains(&signal));
    if is_stopped || status.code() == Some(i32::from(UNAVAILABLE)) {
        return Unread::Process(format!("the process that read it was stopped ({status})"));
    }
    Unread::Document(format!(
        "the process that read it ended without a result ({status}); it may take {} MiB of memory and {CPU_SECONDS} s of \
         processor time",
        DATA_BYTES / 1_024 / 1_024
    ))
}

/// Reads a document on the current thread if it is short or there is no program, otherwise in a process of the program.
///
/// # Errors
///
/// If the process returns no manifest.
pub fn read_isolated(program: Option<&ReaderProgram>, document: &OwnedDocument) -> Result<Manifest, Unread> {
    match program {
        Some(program) if document.len() > IN_PROCESS_BYTES_MAX => program.read(document),
        _ => Ok(document.read()),
    }
}

/// The main function of a [`ReaderProgram`]: sets the limits, reads one document from standard input, and writes its manifest as JSON to
/// standard output.
pub fn read_from_stdin() -> ExitCode {
    match answer() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error.kind() == io::ErrorKind::OutOfMemory => ExitCode::FAILURE,
        // the parent learns from the exit code that the document is not the cause
        Err(_) => ExitCode::from(UNAVAILABLE),
    }
}

fn answer() -> io::Result<()> {
    end_with_parent()?;
    limit_this_process()?;
    let document = OwnedDocument::read_from(&mut io::stdin().lock())?;
    let mut output = io::BufWriter::new(io::stdout().lock());
    serde_json::to_writer(&mut output, &document.read())?;
    output.flush()
}

/// Requests that the kernel ends this process when the thread that started it ends, so that a hanging reader does not outlive its program.
/// On systems other than Linux, the program ends it after [`TIME_MAX`].
#[cfg(target_os = "linux")]
fn end_with_parent() -> io::Result<()> {
    Ok(rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?)
}

#[cfg(not(target_os = "linux"))]
#[expect(clippy::unnecessary_wraps, reason = "as on Linux")]
const fn end_with_parent() -> io::Result<()> {
    Ok(())
}

/// Limits the memory and the processor time of this process.
///
/// # Errors
///
/// If the operating system refuses a limit.
fn limit_this_process() -> io::Result<()> {
    let limits = [(Resource::Data, DATA_BYTES), (Resource::Cpu, CPU_SECONDS), (Resource::Core, 0)];
    for (resource, limit) in limits {
        setrlimit(resource, Rlimit { current: Some(limit), maximum: Some(limit) })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use manifest::{Discovery, ManifestUrl};

    use super::*;

    fn document(bytes: usize) -> OwnedDocument {
        OwnedDocument {
            bytes: format!(r#"{{"awp_version":"0.1","x":"{}"}}"#, "x".repeat(bytes)).into_bytes(),
            url: ManifestUrl::parse("https://a.example/agent.json").unwrap(),
            final_url: None,
            discovery: Discovery::Root,
            served: None,
            linked: vec![(ManifestUrl::parse("https://a.example/part.json").unwrap(), b"{}".to_vec())],
            force: None,
        }
    }

    fn shell(script: &str) -> ReaderProgram {
        ReaderProgram { path: "/bin/sh".into(), arguments: vec!["-c".to_owned(), script.to_owned()] }
    }

    #[test]
    fn a_document_survives_the_way_to_the_process() {
        let (sent, mut pipe) = (document(10), Vec::new());
        sent.write_to(&mut pipe).unwrap();
        let received = OwnedDocument::read_from(&mut pipe.as_slice()).unwrap();
        assert_eq!(format!("{received:?}"), format!("{sent:?}"));
        pipe.pop();
        assert!(OwnedDocument::read_from(&mut pipe.as_slice()).is_err());
    }

    #[test]
    fn only_documents_above_the_limit_need_a_process() {
        let program = shell("exit 1");
        assert!(read_isolated(Some(&program), &document(10)).is_ok());
        assert!(read_isolated(Some(&program), &document(IN_PROCESS_BYTES_MAX)).is_err());
        assert!(read_isolated(None, &document(IN_PROCESS_BYTES_MAX)).is_ok());
    }

    #[test]
    fn returns_the_manifest_that_the_process_answers() {
        let manifest = document(10).read();
        let answer = serde_json::to_string(&manifest).unwrap();
        let program = shell(&format!("cat >/dev/null; cat <<'END'\n{answer}\nEND"));
        assert_eq!(program.read(&document(10)).unwrap(), manifest);
    }

    #[test]
    fn a_process_that_hangs_is_ended_and_its_document_is_blamed() {
        for script in ["exec sleep 600", "cat >/dev/null; exec sleep 600", "exec >&-; exec sleep 600"] {
            let unread = shell(script).read_within(Duration::from_millis(300), &document(1_000_000));
            assert!(matches!(unread, Err(Unread::Document(_))), "{script}: {unread:?}");
        }
        let unread = shell("exec sleep 600").read_within(Duration::from_millis(300), &document(10));
        assert!(unread.unwrap_err().to_string().contains("300ms"));
    }

    #[test]
    fn only_the_end_of_a_process_that_was_not_stopped_is_blamed_on_the_document() {
        for script in ["exit 1", "kill -ABRT $$", "kill -KILL $$", "echo '{}'", "yes"] {
            let unread = shell(script).read(&document(10));
            assert!(matches!(unread, Err(Unread::Document(_))), "{script}: {unread:?}");
        }
        for script in ["exit 75", "kill -TERM $$", "kill -INT $$"] {
            let unread = shell(script).read(&document(10));
            assert!(matches!(unread, Err(Unread::Process(_))), "{script}: {unread:?}");
        }
    }
}

//! Panics of a program whose log is started are one line of the log each, whatever their message holds.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

use std::process::Command;

use settings::log::{self, LogFormat, LogLevel};

/// What a document may put into the message of a panic: a line of its own, and commands for a terminal.
const HOSTILE: &str = "first\n2026-01-01T00:00:00Z ERROR forged\r\u{1b}[2J\u{9b}31m";

fn panic_in_a_thread(format: LogFormat) {
    let _log = log::start("tests", format, LogLevel::Error, None);
    let panicked = std::thread::Builder::new().name("reader".to_owned()).spawn(|| panic!("{HOSTILE}"));
    assert!(panicked.unwrap().join().is_err());
}

/// Set for the process that panics, to the format of its log.
const FORMAT: &str = "TEST_LOG_FORMAT";
const TEST: &str = "a_panic_is_one_escaped_line_with_its_place";

/// What this test writes to stderr in a process of its own, which panics.
fn stderr_of(format: &str) -> String {
    let own = std::env::current_exe().unwrap();
    let ran = Command::new(own).args(["--exact", TEST, "--nocapture"]).env(FORMAT, format).output().unwrap();
    assert!(ran.status.success(), "{ran:?}");
    String::from_utf8(ran.stderr).unwrap()
}

#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "the process that panics learns its format from its environment"
)]
fn a_panic_is_one_escaped_line_with_its_place() {
    match std::env::var(FORMAT).as_deref() {
        Ok("json") => return panic_in_a_thread(LogFormat::Json),
        Ok(_) => return panic_in_a_thread(LogFormat::Text),
        Err(_) => {}
    }
    for format in ["text", "json"] {
        let log = stderr_of(format);
        assert_eq!(log.matches('\n').count(), 1, "{log:?}");
        let line = log.trim_end_matches('\n');
        assert!(!line.chars().any(char::is_control), "{line:?}");
        for expected in ["ERROR", "forged", "a thread panicked", "tests/panics.rs:", "reader"] {
            assert!(line.contains(expected), "{expected} is missing: {line}");
        }
    }
}

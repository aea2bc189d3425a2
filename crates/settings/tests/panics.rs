//! Tests that a panic results in one log line, for any message, after the log was started.

#![expect(clippy::unwrap_used, reason = "a failed step fails the test")]

use std::process::Command;

use settings::log::{self, LogFormat, LogLevel};

/// Text of a document in a panic message, with a forged line and terminal controls.
const HOSTILE: &str = "first\n2026-01-01T00:00:00Z ERROR forged\r\u{1b}[2J\u{9b}31m";

fn panic_in_a_thread(format: LogFormat) {
    let _log = log::start("tests", format, LogLevel::Error, None);
    let panicked = std::thread::Builder::new().name("reader".to_owned()).spawn(|| panic!("{HOSTILE}"));
    assert!(panicked.unwrap().join().is_err());
}

/// Set for the process that panics, to the format of its log.
const FORMAT: &str = "TEST_LOG_FORMAT";
const TEST: &str = "logs_a_panic_as_one_escaped_line_with_its_location";

/// Runs this test in a separate process, which panics, and returns its stderr.
fn stderr_of(format: &str) -> String {
    let own = std::env::current_exe().unwrap();
    let ran = Command::new(own).args(["--exact", TEST, "--nocapture"]).env(FORMAT, format).output().unwrap();
    assert!(ran.status.success(), "{ran:?}");
    String::from_utf8(ran.stderr).unwrap()
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the environment sets the format of the process that panics")]
fn logs_a_panic_as_one_escaped_line_with_its_location() {
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

//! Panics of a program whose log was started: each is one line of the log, whatever its message holds.

use std::process::Command;

use settings::log::{self, LogFormat, LogLevel};

/// What a document may put into the message of a panic: a line of its own, and commands for a terminal.
const HOSTILE: &str = "first\n2026-01-01T00:00:00Z ERROR forged\r\u{1b}[2J\u{9b}31m";

fn panic_in_a_thread(format: LogFormat) {
    let _log = log::start("tests", format, LogLevel::Error, None);
    let panicked = std::thread::Builder::new().name("reader".to_owned()).spawn(|| panic!("{HOSTILE}"));
    assert!(panicked.unwrap().join().is_err());
}

#[test]
#[ignore = "a program for the tests below, in a process of its own"]
fn program_that_panics_in_text() {
    panic_in_a_thread(LogFormat::Text);
}

#[test]
#[ignore = "a program for the tests below, in a process of its own"]
fn program_that_panics_in_json() {
    panic_in_a_thread(LogFormat::Json);
}

/// What a program writes to stderr.
fn stderr_of(program: &str) -> String {
    let own = std::env::current_exe().unwrap();
    let ran = Command::new(own).args(["--exact", program, "--ignored", "--nocapture"]).output().unwrap();
    assert!(ran.status.success(), "{ran:?}");
    String::from_utf8(ran.stderr).unwrap()
}

#[test]
fn a_panic_is_one_escaped_line_with_its_place() {
    for program in ["program_that_panics_in_text", "program_that_panics_in_json"] {
        let log = stderr_of(program);
        assert_eq!(log.matches('\n').count(), 1, "{log:?}");
        let line = log.trim_end_matches('\n');
        assert!(!line.chars().any(char::is_control), "{line:?}");
        for expected in ["ERROR", "forged", "a thread panicked", "tests/panics.rs:", "reader"] {
            assert!(line.contains(expected), "{expected} is missing: {line}");
        }
    }
}

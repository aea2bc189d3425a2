//! Checks that the programs exit with the codes that their help and the documents state.

#![expect(clippy::unwrap_used, reason = "a failed step fails the test")]

use std::path::Path;
use std::process::{Command, Stdio};

use agentdex_tests::harness::binary;
use settings::exit::{FAILURE, NOT_RECOGNISED, UNREADABLE, USAGE};

const PROGRAMS: [&str; 4] = ["agentdex", "crawler", "indexer", "api"];

/// The text with one space between words.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn exit_code(mut command: Command) -> Option<i32> {
    let run = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    run.status().unwrap().code()
}

#[test]
fn every_help_ends_with_the_table() {
    let help_table = settings::exit::help();
    for program in PROGRAMS {
        let help = binary(program).unwrap().arg("--help").output().unwrap();
        let help = String::from_utf8(help.stdout).unwrap();
        let (_, table) = help.split_once("\nExit codes:\n").unwrap_or_else(|| panic!("{program}: {help}"));
        let (_, expected) = help_table.split_once('\n').unwrap();
        assert_eq!(table.trim_end(), expected, "{program}");
    }
}

#[test]
fn the_document_has_the_table() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let text = std::fs::read_to_string(root.join("docs/OPERATIONS.md")).unwrap();
    let (_, table) = text.split_once("| exit code | programs | meaning |\n|---|---|---|\n").unwrap();
    let rows = table.lines().take_while(|line| line.starts_with('|'));
    let rows: Vec<String> = rows.map(|row| words(&row.trim_matches('|').replace(" | ", " "))).collect();
    let expected: Vec<String> = settings::exit::help().lines().skip(1).map(words).collect();
    assert_eq!(rows, expected);
}

#[test]
fn the_programs_exit_with_the_codes_of_the_table() {
    let dir = tempfile::tempdir().unwrap();
    let run = |program: &str, words: &[&str]| {
        let mut command = binary(program).unwrap();
        command.current_dir(dir.path()).args(words);
        exit_code(command)
    };
    for program in PROGRAMS {
        assert_eq!(run(program, &["--version"]), Some(0), "{program}");
        assert_eq!(run(program, &["--frobnicate"]), Some(i32::from(USAGE)), "{program}");
    }
    let manifest = r#"{"awp_version": "0.1", "domain": "shop.example", "actions": 7}"#;
    std::fs::write(dir.path().join("wrong.json"), manifest).unwrap();
    std::fs::write(dir.path().join("other.json"), r#"{"colour": "red"}"#).unwrap();
    for (words, code) in [
        (["validate", "wrong.json"].as_slice(), FAILURE),
        (&["validate", "wrong.json", "--fail-on", "never"], 0),
        (&["validate", "other.json", "--fail-on", "never"], NOT_RECOGNISED),
        (&["validate", "missing.json"], UNREADABLE),
        (&["validate"], USAGE),
        (&["probe", "127.0.0.1:9/healthz"], FAILURE),
        (&["status"], USAGE),
        (&["search", "x"], USAGE),
    ] {
        assert_eq!(run("agentdex", words), Some(i32::from(code)), "{words:?}");
    }
}

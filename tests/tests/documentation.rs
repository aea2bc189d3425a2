//! Checks Markdown files: links resolve, and every flag in a command line exists. Checks that the commands on the dashboard pages exist.

#![expect(clippy::unwrap_used, reason = "a failed step fails the test")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use agentdex_tests::harness::binary;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

fn markdown_files() -> Vec<PathBuf> {
    let mut files = Vec::new();
    for folder in ["", "docs", "migrations", "deploy"] {
        let entries = std::fs::read_dir(root().join(folder)).unwrap();
        files.extend(
            entries
                .map(|entry| entry.unwrap().path())
                .filter(|path| path.extension().is_some_and(|end| end == "md")),
        );
    }
    assert!(files.len() >= 4, "README.md and docs were not found");
    files
}

/// The targets of `[text](target)` in a text.
fn links(text: &str) -> impl Iterator<Item = &str> {
    text.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(target, _)| target)
}

/// Lines inside fenced or indented blocks that start a program of the workspace.
fn command_lines(text: &str) -> impl Iterator<Item = &str> {
    let is_ours = |line: &&str| {
        ["crawler ", "indexer ", "api ", "agentdex ", "cargo run --release -- "]
            .iter()
            .any(|start| line.starts_with(start))
    };
    text.lines().map(command).filter(is_ours)
}

/// The command in a line, without a prompt and without the user who runs it.
fn command(line: &str) -> &str {
    let line = line.trim_start_matches([' ', '$']);
    line.strip_prefix("sudo -u agentdex ").unwrap_or(line)
}

#[test]
fn relative_links_resolve() {
    for file in markdown_files() {
        let text = std::fs::read_to_string(&file).unwrap();
        let prose: String = text.split('`').step_by(2).collect();
        for target in
            links(&prose).filter(|target| !target.contains("://") && !target.starts_with(['#', 'm']))
        {
            let path = file.parent().unwrap().join(target.split('#').next().unwrap());
            assert!(path.exists(), "{} links to {target}, which does not exist", file.display());
        }
    }
}

#[test]
fn every_flag_in_a_command_line_is_known() {
    let mut checked = BTreeSet::new();
    for file in markdown_files() {
        let text = std::fs::read_to_string(&file).unwrap();
        for line in command_lines(&text) {
            let line = line.split('#').next().unwrap().replace("cargo run --release -- ", "agentdex ");
            let mut words = line.split_whitespace();
            let program = words.next().unwrap().to_owned();
            let words: Vec<&str> = words.collect();
            for flag in words.iter().filter(|word| word.starts_with("--")) {
                let flag = flag.split('=').next().unwrap();
                assert!(
                    knows(&program, &words, flag),
                    "{}: {program} does not know {flag} in: {line}",
                    file.display()
                );
                checked.insert((program.clone(), flag.to_owned()));
            }
        }
    }
    assert!(checked.len() >= 5, "the documents show too few command lines: {checked:?}");
}

#[test]
fn pages_show_commands_that_exist() {
    let mut checked = 0;
    for entry in std::fs::read_dir(root().join("api/templates")).unwrap() {
        let file = entry.unwrap().path();
        let text = std::fs::read_to_string(&file).unwrap();
        let codes = text.split("<code>").skip(1).filter_map(|rest| rest.split("</code>").next());
        for code in codes {
            let words: Vec<&str> = code.split_whitespace().collect();
            let [program @ ("agentdex" | "api" | "crawler" | "indexer"), first, ..] = words[..] else {
                continue;
            };
            let exists = if first.starts_with("--") {
                knows(program, &[], first)
            } else {
                binary(program).unwrap().args([first, "--help"]).output().unwrap().status.success()
            };
            assert!(exists, "{}: {program} does not know {first} in: {code}", file.display());
            checked += 1;
        }
    }
    assert!(checked >= 2, "the pages show too few commands");
}

fn knows(program: &str, words: &[&str], flag: &str) -> bool {
    let is_subcommand = |word: &&&str| word.bytes().all(|byte| byte.is_ascii_lowercase());
    let subcommands = words.iter().take_while(is_subcommand);
    let help = binary(program).unwrap().args(subcommands).arg("--help").output().unwrap();
    String::from_utf8_lossy(&help.stdout).contains(flag)
}

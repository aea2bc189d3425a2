//! Every promise of the documents has a test.
//!
//! A promise is a sentence or a table row with a number or a word such as never, only or at most. The registers in `tests/docs` list the
//! promises under the headings of their document. A key is the start of the sentence. Its value lists the tests that fail if the sentence
//! becomes false, as `file::name`, or the reason why there is no test. In addition to a test, an entry may quote the line that sets a
//! number, so that the number cannot change without its sentence:
//!
//! ```toml
//! ["Limits"]
//! "requests to one host in a day" = ["crates/policy/tests/documented.rs::documented_limits_are_the_actual_limits"]
//! "duration of a visit" = [
//!     "crates/policy/src/visit.rs::a_visit_has_two_minutes_and_survives_storage",
//!     "crates/policy/src/visit.rs::const VISIT_WALL_MAX: Duration = Duration::from_mins(2);",
//! ]
//! "To be removed at once, write to the contact" = { none = "advice" }
//! ```
//!
//! A directory below `crates/manifest/fixtures` is a test too: reading its document must result in the expected manifest.
//!
//! A sentence without one of these words may be listed too. In SECURITY.md each sentence is listed, except in the parts that promise nothing.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;

/// The documents, by the name of their register.
const DOCUMENTS: [(&str, &str); 5] = [
    ("politeness", "docs/POLITENESS.md"),
    ("security", "docs/SECURITY.md"),
    ("privacy", "docs/PRIVACY.md"),
    ("standards", "docs/STANDARDS.md"),
    ("formats", "docs/FORMATS.md"),
];
/// The document of which each sentence is listed, and the headings of its parts that promise nothing.
const LISTED_IN_FULL: (&str, [&str; 2]) =
    ("docs/SECURITY.md", ["Not defended", "Dependencies to review first"]);
/// Cases of `crates/manifest/tests/fixtures.rs`.
const FIXTURES: &str = "crates/manifest/fixtures/";
/// The rest of FORMATS.md from this heading is generated, and `crates/manifest/tests/documented.rs` checks it.
const GENERATED: &str = "\n## Inferred types\n";
/// Words that make a sentence a promise.
const WORDS: [&str; 33] = [
    "always", "cannot", "eight", "every", "five", "four", "hundred", "least", "most", "neither", "never",
    "nine", "no", "none", "nor", "not", "nothing", "once", "only", "seven", "six", "sixteen", "sixty", "ten",
    "thirty", "thousand", "three", "twelve", "twenty", "twice", "two", "half", "quarter",
];
/// Maximum percentage of entries in a register that give a reason instead of a test.
const WITHOUT_TEST_PERCENT_MAX: usize = 15;

/// Starts of sentences, by heading.
type Register = BTreeMap<String, BTreeMap<String, Evidence>>;

#[derive(Deserialize)]
#[serde(untagged)]
enum Evidence {
    Tests(Vec<String>),
    Missing { none: String },
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the tests are in the workspace").to_owned()
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn registers() -> impl Iterator<Item = (&'static str, Register)> {
    DOCUMENTS.into_iter().map(|(name, document)| {
        let path = format!("tests/docs/{name}.toml");
        (document, toml::from_str(&read(&path)).unwrap_or_else(|error| panic!("{path}: {error}")))
    })
}

/// The sentences and table rows of a document, by heading.
#[derive(Default)]
struct Statements {
    by_heading: BTreeMap<String, Vec<String>>,
    heading: String,
    paragraph: String,
}

impl Statements {
    fn of(markdown: &str) -> BTreeMap<String, Vec<String>> {
        let mut statements = Self::default();
        for line in markdown.lines().chain([""]) {
            statements.line(line);
        }
        statements.by_heading
    }

    fn line(&mut self, line: &str) {
        let item = line.strip_prefix("- ").or_else(|| {
            let (number, item) = line.split_once(". ")?;
            number.bytes().all(|byte| byte.is_ascii_digit()).then_some(item)
        });
        let starts_anew = line.trim().is_empty() || line.starts_with(['#', '|']) || item.is_some();
        if starts_anew {
            self.end_paragraph();
        }
        if line.trim().is_empty() {
            return;
        }
        if line.starts_with("|--") {
            self.under_heading().pop(); // the row above is the table header
        } else if line.starts_with('|') {
            let row = without_emphasis(line.trim_matches(['|', ' ']));
            self.under_heading().push(row);
        } else if line.starts_with('#') {
            line.trim_start_matches(['#', ' ']).clone_into(&mut self.heading);
        } else if !line.starts_with("    ") || !self.paragraph.is_empty() {
            self.paragraph += item.unwrap_or(line).trim();
            self.paragraph.push(' ');
        } // else a line of code
    }

    fn under_heading(&mut self) -> &mut Vec<String> {
        self.by_heading.entry(self.heading.clone()).or_default()
    }

    fn end_paragraph(&mut self) {
        let text = without_emphasis(std::mem::take(&mut self.paragraph).trim());
        let mut sentences: Vec<String> = Vec::new();
        let mut is_code = false;
        for word in text.split_whitespace() {
            let follows = sentences.last().is_none_or(|sentence| {
                !is_code
                    && sentence.trim_end_matches([')', '"']).ends_with(['.', '!', '?'])
                    && word.starts_with(|c: char| !c.is_lowercase())
            });
            if follows {
                sentences.push(word.to_owned());
            } else if let Some(sentence) = sentences.last_mut() {
                sentence.push(' ');
                sentence.push_str(word);
            }
            is_code ^= word.matches('`').count() % 2 == 1;
        }
        if !sentences.is_empty() {
            self.under_heading().extend(sentences);
        }
    }
}

/// A text without asterisks, except in code.
fn without_emphasis(text: &str) -> String {
    let parts = text.split('`').enumerate();
    let parts =
        parts.map(|(number, part)| if number % 2 == 0 { part.replace('*', "") } else { part.to_owned() });
    parts.collect::<Vec<_>>().join("`")
}

/// Whether a sentence contains one of [`WORDS`] or a number. Numbers in code, versions (`ATP 0.1`) and RFC references do not count.
fn is_promise(statement: &str) -> bool {
    let prose = statement.split('`').step_by(2).collect::<Vec<_>>().join(" ");
    let mut before = "";
    prose.split_whitespace().any(|token| {
        let is_version = before.starts_with(char::is_uppercase) && before.ends_with(char::is_alphanumeric);
        before = token;
        let word = token.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase();
        let is_number = word.starts_with(|c: char| c.is_ascii_digit()) && !token.starts_with('§');
        (is_number && !is_version) || WORDS.contains(&word.as_str())
    })
}

#[test]
fn documents_and_registers_list_the_same_promises() {
    let mut problems = Vec::new();
    for (document, register) in registers() {
        let text = read(document);
        let statements = Statements::of(text.split(GENERATED).next().unwrap());
        let none = BTreeMap::new();
        for (heading, sentences) in &statements {
            let entries = register.get(heading).unwrap_or(&none);
            let is_full = document == LISTED_IN_FULL.0 && !LISTED_IN_FULL.1.contains(&heading.as_str());
            for sentence in sentences {
                let count = entries.keys().filter(|start| sentence.starts_with(start.as_str())).count();
                if count > 1 || (count == 0 && (is_full || is_promise(sentence))) {
                    problems.push(format!("{document}, {heading:?}: {count} entries for {sentence:?}"));
                }
            }
        }
        for (heading, entries) in &register {
            let sentences = statements.get(heading).map(Vec::as_slice).unwrap_or_default();
            for start in entries.keys() {
                let count = sentences.iter().filter(|sentence| sentence.starts_with(start.as_str())).count();
                if count != 1 {
                    problems.push(format!("{document}, {heading:?}: {count} sentences start with {start:?}"));
                }
            }
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn every_test_in_a_register_exists() {
    let mut files: BTreeMap<String, String> = BTreeMap::new();
    let mut missing = Vec::new();
    for (document, register) in registers() {
        let evidence: Vec<&Evidence> = register.values().flat_map(BTreeMap::values).collect();
        let mut without_test = 0;
        for evidence in &evidence {
            let tests = match evidence {
                Evidence::Tests(tests) => tests,
                Evidence::Missing { none } => {
                    without_test += 1;
                    assert!(!none.is_empty(), "{document}: a reason is empty");
                    continue;
                }
            };
            let mut functions = 0;
            for test in tests {
                if test.starts_with(FIXTURES) && !test.contains("::") {
                    functions += 1;
                    if !root().join(test).join("expected.snap").exists() {
                        missing.push(format!("{document}: {test}"));
                    }
                    continue;
                }
                let (path, name) =
                    test.split_once("::").unwrap_or_else(|| panic!("{test} contains no function name"));
                let text = files.entry(path.to_owned()).or_insert_with(|| read(path));
                let is_function = name.chars().all(|c| c.is_alphanumeric() || c == '_');
                functions += usize::from(is_function);
                let is_rust = Path::new(path).extension().is_some_and(|extension| extension == "rs");
                let needle = if is_rust && is_function { format!("fn {name}(") } else { name.to_owned() };
                if !text.contains(&needle) {
                    missing.push(format!("{document}: {test}"));
                }
            }
            assert!(functions > 0, "{document}: no test in {tests:?}");
        }
        let percent = without_test * 100 / evidence.len().max(1);
        assert!(percent <= WITHOUT_TEST_PERCENT_MAX, "{document}: {percent} % of the promises have no test");
    }
    assert!(missing.is_empty(), "these tests do not exist:\n{}", missing.join("\n"));
}

/// Nextest does not report a part of a filter that selects no test.
#[test]
fn the_filter_of_the_fault_tests_selects_each_test_of_their_table() {
    let files = git_files();
    let stem = |path: &str| Path::new(path).file_stem().and_then(|stem| stem.to_str()).map(str::to_owned);
    let script = read("tests/faults");
    let parts = |kind: &str| -> Vec<String> {
        let call = format!("{kind}(");
        let after = script.split(call.as_str()).skip(1);
        after.filter_map(|rest| Some(rest.split_once(')')?.0.to_owned())).collect()
    };
    let (tests, binaries) = (parts("test"), parts("binary"));
    let sources: Vec<String> = files
        .iter()
        .filter(|path| Path::new(path).extension().is_some_and(|extension| extension == "rs"))
        .map(|path| read(path))
        .collect();
    let names = |text: &str| -> Vec<String> {
        text.split("fn ").skip(1).filter_map(|rest| Some(rest.split_once('(')?.0.to_owned())).collect()
    };
    let functions: Vec<String> = sources.iter().flat_map(|text| names(text)).collect();
    for part in &tests {
        let is_named = functions.iter().any(|name| name.contains(part.as_str()))
            || files.iter().any(|path| path.contains("/src/") && stem(path).as_deref() == Some(part));
        assert!(is_named, "test({part}) of tests/faults selects no test");
    }
    for part in &binaries {
        let paths = [format!("tests/{part}.rs"), format!("tests/{part}/main.rs")];
        assert!(
            files.iter().any(|file| paths.iter().any(|path| file.ends_with(path.as_str()))),
            "binary({part})"
        );
    }
    let document = read("docs/CRAWLING.md");
    let table = document.split("| fault | pass criterion | test |").nth(1).expect("the table of faults");
    for row in table.lines().skip(2).take_while(|line| line.starts_with('|')) {
        let last = row.trim_end_matches(['|', ' ']).rsplit('|').next().unwrap();
        for name in last.split('`').skip(1).step_by(2).filter(|name| *name != "end_to_end") {
            let is_module = files.contains(&format!("crawler/tests/faults/{name}.rs"));
            let is_selected = is_module || tests.iter().chain(&binaries).any(|part| part == name);
            assert!(
                is_selected,
                "{name} is in the table of CRAWLING.md, but not in the filter of tests/faults"
            );
        }
    }
}

/// The files of the repository.
fn git_files() -> Vec<String> {
    let listed = Command::new("git").arg("ls-files").current_dir(root()).output().expect("git");
    String::from_utf8(listed.stdout).expect("UTF-8").lines().map(str::to_owned).collect()
}

#[test]
fn splits_a_document_into_statements() {
    let text = "# Title\n\nIt *never* sleeps. See `a. B c` there,\ntoo.\n\n    no code\n\n- **One.** Two\n  lines.\n1. Last\n\n\
                ## Table\n\n| a | b |\n|---|---|\n| x | 3 s |\n";
    let statements = Statements::of(text);
    let expected = ["It never sleeps.", "See `a. B c` there, too.", "One.", "Two lines.", "Last"];
    assert_eq!(statements["Title"], expected);
    assert_eq!(statements["Table"], ["x | 3 s"]);
}

#[test]
fn recognises_promises() {
    for promise in
        ["It never sleeps.", "Three at most", "It is (not) so.", "waits 3 s", "a | 0.5 s", "Up to ten."]
    {
        assert!(is_promise(promise), "{promise}");
    }
    for description in ["It reads ATP 0.1.", "as RFC 9309 §2.3.1 says", "`not` is a word", "A note."] {
        assert!(!is_promise(description), "{description}");
    }
}

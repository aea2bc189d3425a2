//! Checks every file: a module comment, a maximum length, no unfinished code, no machine-specific paths.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// Maximum number of lines of a source file, without tests.
const LINES_MAX: usize = 500;

/// Words that mark unfinished or silenced code, split so that this file does not contain them.
const UNFINISHED: [&str; 7] = [
    concat!("to", "do!"),
    concat!("unimple", "mented!"),
    concat!("#[ig", "nore"),
    concat!("FIX", "ME"),
    concat!("XX", "X:"),
    concat!("HA", "CK"),
    concat!("#[al", "low("),
];

/// Package registries and machine-specific paths, split in the same way. Paths count only at the start of a word.
const REGISTRIES: [&str; 5] = [
    concat!("index.crates", ".io"),
    concat!("static.crates", ".io"),
    concat!("registry.npm", "js.org"),
    concat!("py", "pi.org"),
    concat!("proxy.go", "lang.org"),
];
const MACHINE_PATHS: [&str; 4] =
    [concat!("/wo", "rk/"), concat!("/ro", "ot/"), concat!("/ho", "me/"), concat!("/Use", "rs/")];

/// Lock files contain the registries of the locked packages.
const LOCK_FILES: [&str; 2] = ["Cargo.lock", "package-lock.json"];

/// A committed text file.
struct TextFile {
    path: PathBuf,
    text: String,
}

impl TextFile {
    fn is_rust(&self) -> bool {
        self.path.extension().is_some_and(|extension| extension == "rs")
    }

    /// Whether it is a test file: in a `tests` directory, or with a name that ends with `tests`.
    fn is_test(&self) -> bool {
        let in_folder =
            self.path.components().any(|part| part.as_os_str() == "tests" || part.as_os_str() == "benches");
        in_folder || self.path.file_stem().is_some_and(|stem| stem.to_string_lossy().ends_with("tests"))
    }

    /// Number of lines of a source file before its tests.
    fn lines_of_source(&self) -> usize {
        let tests = self.text.lines().position(|line| line == "#[cfg(test)]");
        tests.unwrap_or_else(|| self.text.lines().count())
    }

    fn has_word_at_start(&self, word: &str) -> bool {
        self.text.match_indices(word).any(|(at, _)| {
            let before = self.text.get(..at).and_then(|text| text.chars().next_back());
            before.is_none_or(|before| before.is_whitespace() || "\"'`(=:<".contains(before))
        })
    }
}

/// Every text file that is committed, or untracked and not ignored.
fn text_files() -> Vec<TextFile> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the tests are in the workspace");
    let listed = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(root)
        .output()
        .expect("cannot run git");
    assert!(
        listed.status.success(),
        "git cannot list the files: {}",
        String::from_utf8_lossy(&listed.stderr)
    );
    let names = String::from_utf8(listed.stdout).expect("a file name is not UTF-8");
    let read = |name: &str| {
        let text = fs::read_to_string(root.join(name)).ok()?;
        Some(TextFile { path: name.into(), text })
    };
    names.split('\0').filter(|name| !name.is_empty()).filter_map(read).collect()
}

#[track_caller]
fn assert_none(what: &str, found: impl Iterator<Item = String>) {
    let found: Vec<_> = found.collect();
    assert!(found.is_empty(), "{what}:\n  {}", found.join("\n  "));
}

#[test]
fn finds_the_committed_files() {
    let files = text_files();
    assert!(files.iter().filter(|file| file.is_rust()).count() > 30, "git shows too few files");
    assert!(files.iter().any(|file| file.path.ends_with("tests/tests/tidy.rs")));
}

#[test]
fn every_source_file_starts_with_a_module_comment() {
    let files = text_files();
    let silent = files.iter().filter(|file| file.is_rust() && !file.text.starts_with("//! "));
    assert_none("these files do not start with `//!`", silent.map(|file| file.path.display().to_string()));
}

#[test]
fn source_files_do_not_exceed_the_line_limit() {
    let files = text_files();
    let long = files
        .iter()
        .filter(|file| file.is_rust() && !file.is_test() && file.lines_of_source() > LINES_MAX)
        .map(|file| format!("{} has {} lines", file.path.display(), file.lines_of_source()));
    assert_none("these files exceed the line limit", long);
}

#[test]
fn no_file_has_unfinished_or_silenced_code() {
    let files = text_files();
    let found = files.iter().filter(|file| file.is_rust()).flat_map(|file| {
        let words = UNFINISHED.iter().filter(|word| file.text.contains(**word));
        words.map(|word| format!("{} has {word}", file.path.display()))
    });
    assert_none("unfinished or silenced", found);
}

#[test]
fn no_file_names_a_registry_or_a_local_path() {
    let files = text_files();
    let is_lock = |file: &&TextFile| {
        file.path.file_name().is_some_and(|name| LOCK_FILES.iter().any(|lock| name == *lock))
    };
    let found = files.iter().filter(|file| !is_lock(file)).flat_map(|file| {
        let registries = REGISTRIES.iter().filter(|host| file.text.contains(**host));
        let paths = MACHINE_PATHS.iter().filter(|path| file.has_word_at_start(path));
        registries.chain(paths).map(|word| format!("{} names {word}", file.path.display()))
    });
    assert_none("these files are specific to one machine", found);
}

#[test]
fn text_files_end_with_one_newline_and_have_no_trailing_spaces() {
    let files = text_files();
    let source = |file: &&TextFile| {
        let name = file.path.to_string_lossy();
        [".rs", ".toml", ".sql", ".md", ".css", ".js"].iter().any(|ending| name.ends_with(ending))
    };
    let untidy = files.iter().filter(source).filter(|file| {
        let ends_well = file.text.is_empty() || (file.text.ends_with('\n') && !file.text.ends_with("\n\n"));
        !ends_well || file.text.lines().any(|line| line.ends_with([' ', '\t']))
    });
    assert_none("untidy endings", untidy.map(|file| file.path.display().to_string()));
}

//! Errors in settings. Each message says how to correct the error.

use std::io;
use std::path::{Path, PathBuf};

/// Minimum similarity of a misspelt key to a known one. With 0.8, a missing or doubled letter is recognised, but other words are not.
const SIMILARITY_MIN: f64 = 0.8;

/// The settings are invalid.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    #[error("the configuration file {} cannot be read: {source}", path.display())]
    Unreadable {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("the configuration file {} is invalid: line {line}: {reason}", path.display())]
    Invalid { path: PathBuf, line: usize, reason: String },
    #[error("the environment variable {name} is invalid: {reason}")]
    Variable { name: String, reason: String },
    #[error("{key} names {}, which cannot be read: {source}", path.display())]
    Secret {
        key: &'static str,
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("{key} names {}, which {reason}", path.display())]
    NoSecret { key: &'static str, path: PathBuf, reason: &'static str },
}

impl SettingsError {
    pub(crate) fn invalid(path: &Path, text: &str, error: &toml::de::Error) -> Self {
        let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
        let line = 1 + before.matches('\n').count();
        let key = text.lines().nth(line - 1).and_then(|line| line.split_once('=')).map(|(key, _)| key.trim());
        let reason = match key {
            Some(key) if error.message().starts_with("invalid ") => of_key(key, error.message()),
            _ => explained(error.message()),
        };
        Self::Invalid { path: path.to_owned(), line, reason }
    }

    pub(crate) fn variable(name: &str, error: &toml::de::Error) -> Self {
        Self::Variable { name: name.to_owned(), reason: explained(error.message()) }
    }
}

/// The message of a parser about the value of a key. If the parser expects a string, the default is added as an example.
fn of_key(key: &str, message: &str) -> String {
    if let Some(value) = value_instead_of_list(message) {
        return format!("`{key}`: it is a list: write {key} = [{value}]");
    }
    let keys = crate::keys();
    let default = keys.iter().find(|known| known.name == key).and_then(|known| known.default);
    match default.filter(|default| default.starts_with('"') && message.ends_with("expected a string")) {
        Some(default) => format!("`{key}`: {message}, such as {default}"),
        None => format!("`{key}`: {}", in_words(message)),
    }
}

/// The message without the names of Rust types.
fn in_words(message: &str) -> String {
    let Some((value, expected)) = message.split_once(", expected ") else { return message.to_owned() };
    match expected {
        "u8" | "u16" | "u32" | "u64" | "usize" => format!("{value}, expected a whole number from 0"),
        "a nonzero u32" | "a nonzero u64" => format!("{value}, expected a whole number from 1"),
        _ => message.to_owned(),
    }
}

/// The string that was given where a list is expected, with its quotes.
fn value_instead_of_list(message: &str) -> Option<&str> {
    let value = message.strip_prefix("invalid type: string ")?.strip_suffix(", expected a sequence")?;
    Some(value).filter(|value| value.starts_with('"'))
}

/// The message of a parser. For an unknown key, it names the table to which the key belongs, the most similar known key, or all known keys.
fn explained(message: &str) -> String {
    let Some(("unknown field ", rest)) = message.split_once('`').map(|(before, _)| (before, message)) else {
        return message.to_owned();
    };
    let mut names = rest.split('`').skip(1).step_by(2);
    let Some(unknown) = names.next() else { return message.to_owned() };
    let known: Vec<&str> = names.collect();
    let similarity = |name: &&str| strsim::jaro_winkler(unknown, name);
    let nearest = known.iter().copied().max_by(|a, b| similarity(a).total_cmp(&similarity(b)));
    let locations: Vec<String> =
        crate::keys().iter().filter(|key| key.name == unknown).map(crate::Key::location).collect();
    if !locations.is_empty() {
        return format!("unknown key `{unknown}` here: it belongs {}", locations.join(" or "));
    }
    match nearest.filter(|name| similarity(name) >= SIMILARITY_MIN) {
        Some(name) => format!("unknown key `{unknown}`: did you mean `{name}`?"),
        None => format!("unknown key `{unknown}`: the known keys are {}", known.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_described_in_words() {
        let text = in_words("invalid value: integer `0`, expected a nonzero u32");
        assert_eq!(text, "invalid value: integer `0`, expected a whole number from 1");
        assert_eq!(
            in_words("invalid type: string \"x\", expected u32"),
            "invalid type: string \"x\", expected a whole number from 0"
        );
        assert_eq!(
            in_words("invalid type: integer `3`, expected a boolean"),
            "invalid type: integer `3`, expected a boolean"
        );
    }

    #[test]
    fn an_unknown_key_is_reported_with_the_most_similar_one() {
        for (message, words) in [
            (
                "unknown field `concurency`, expected one of `seeds`, `concurrency`, `rate`",
                "unknown key `concurency`: did you mean `concurrency`?",
            ),
            (
                "unknown field `colour`, expected `delay` or `rate`",
                "unknown key `colour`: the known keys are delay, rate",
            ),
            (
                "unknown field `rate`, expected `data_dir` or `crawler`",
                "unknown key `rate` here: it belongs in `[crawler]`",
            ),
            ("invalid type: integer `3`, expected a string", "invalid type: integer `3`, expected a string"),
        ] {
            assert_eq!(explained(message), words);
        }
    }
}

//! Finds the base URL of the calls of a text, if a line states it: `API base URL: https://…`, a row `| Base URL | https://… |`, "All
//! requests go to https://…", or an address alone below a heading `## Base URL`.

use url::Url;

use crate::address;
use crate::draft::NAME_CHARS_MAX;
use crate::format::addresses;
use crate::format::link_class;
use crate::text;

/// Maximum number of bytes of a line that may state a base.
const LINE_BYTES_MAX: usize = 400;
/// Words that show that an address is not the base URL of the public API.
const OTHER_WORDS: &[&str] = &[
    "sandbox",
    "staging",
    "test",
    "testnet",
    "local",
    "localhost",
    "development",
    "docs",
    "documentation",
    "mcp",
];
/// Pairs of adjacent words that name a base.
const PAIRS: &[(&str, &str)] = &[
    ("base", "url"),
    ("base", "uri"),
    ("base", "address"),
    ("base", "endpoint"),
    ("api", "base"),
    ("api", "root"),
    ("api", "host"),
    ("root", "url"),
    ("requests", "go"),
    ("relative", "to"),
];

/// Finds the base that applies to the lines of a text, line by line.
#[derive(Debug, Default)]
pub(crate) struct StatedBase {
    base: Option<Url>,
    /// Whether the last heading announces a base, and no address has followed it.
    is_announced: bool,
    /// Whether a base below a later heading replaces this one.
    may_replace: bool,
}

impl StatedBase {
    pub(crate) const fn get(&self) -> Option<&Url> {
        self.base.as_ref()
    }

    pub(crate) fn read_line(&mut self, line: &str) {
        if line.starts_with('#') {
            self.is_announced = names_base(line);
            self.may_replace = true;
        }
        if self.base.is_some() && !self.may_replace {
            return;
        }
        if let Some(base) = base_in(line, self.is_announced).or_else(|| host_of_label(line)) {
            (self.base, self.is_announced, self.may_replace) = (Some(base), false, false);
        } else if self.base.is_none()
            && let Some(base) = place_of_api(line)
        {
            (self.base, self.may_replace) = (Some(base), true);
        }
    }
}

/// The base that a line states. Below a heading that announces a base, the line may be just an address.
fn base_in(line: &str, is_announced: bool) -> Option<Url> {
    if line.len() > LINE_BYTES_MAX {
        return None;
    }
    let Some((before, _)) = line.split_once("://") else { return base_of_heading(line) };
    let is_mark = |letter: char| !letter.is_alphanumeric();
    let before = before.trim_end_matches("https").trim_end_matches("http");
    let is_alone = || is_announced && before.trim_matches(is_mark).is_empty();
    // `API endpoints (base: https://…):`
    let in_brackets = || before.rsplit_once('(').is_some_and(|(_, inner)| names_base(inner));
    let address = addresses::first_in_line(line)?;
    let is_of_api = || is_api_label(before) && is_of_api(address);
    if !names_base(before) && !is_alone() && !in_brackets() && !is_of_api() {
        return None;
    }
    let is_only = line.matches("://").count() == 1;
    let is_page = link_class::classify(address).rel == "page" && !address.contains(['?', '#', '{', '<']);
    Url::parse(address).ok().filter(|base| is_only && is_page && base.has_host())
}

/// The host in the brackets of a heading about an API: `## API Routes (api.shop.example)`.
fn base_of_heading(line: &str) -> Option<Url> {
    let (before, inner) = line.strip_prefix('#')?.trim_end().strip_suffix(')')?.rsplit_once('(')?;
    let is_host = inner.starts_with("api.")
        && inner.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-'));
    let is_of_api = is_host && is_api_label(&["#", before, "("].concat());
    Url::parse(&["https://", inner].concat()).ok().filter(|_| is_of_api)
}

/// Whether the text before an address is the label of an API, or a heading about one that ends with the address:
/// `- REST API: https://…`, `## API (https://…)`.
fn is_api_label(before: &str) -> bool {
    let words = text::words(text::capped(before, NAME_CHARS_MAX));
    let is_other = words.iter().any(|word| OTHER_WORDS.contains(&word.as_str()));
    if before.starts_with('#') {
        let has = |word: &String| matches!(word.as_str(), "api" | "endpoints");
        return before.ends_with('(') && !is_other && words.iter().any(has);
    }
    let is_label = before.trim_end_matches(['*', '`', ' ']).ends_with(':');
    is_label
        && matches!(words.as_slice(), [kind, api] if matches!(kind.as_str(), "rest" | "http") && api == "api")
}

/// The address of an API in a line without the word "base": `- API: https://api.…`, `- Production: https://api.…`, `The API is at
/// https://api.…`. A line that names a base replaces it.
fn place_of_api(line: &str) -> Option<Url> {
    if line.len() > LINE_BYTES_MAX || line.starts_with('#') {
        return None;
    }
    let (before, rest) = line.split_once("https://api.")?;
    let words = text::words(text::capped(before, NAME_CHARS_MAX));
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let is_label = before.trim_end_matches(['*', '`', ' ']).ends_with(':');
    let is_place = match words.as_slice() {
        ["api" | "production" | "prod"] | ["production" | "prod", "api"] => is_label,
        [.., "api", "is" | "lives", "at"] => !words.iter().any(|word| OTHER_WORDS.contains(word)),
        _ => false,
    };
    let address = addresses::first_in_line(line)?;
    let is_page = link_class::classify(address).rel == "page" && !address.contains(['?', '#', '{', '<']);
    let is_only = is_place && is_page && !rest.contains("://");
    Url::parse(address).ok().filter(|base| is_only && base.has_host())
}

/// The base without a scheme after a label: `Base: api.shop.example/v1`.
fn host_of_label(line: &str) -> Option<Url> {
    if line.len() > LINE_BYTES_MAX || line.contains("://") {
        return None;
    }
    let (label, value) = line.split_once(':')?;
    let value = value.trim_matches(|letter: char| letter.is_whitespace() || "*`".contains(letter));
    let is_host = !value.contains(char::is_whitespace) && address::names_host(value);
    (is_host && names_base(label)).then(|| Url::parse(&["https://", value].concat()).ok()).flatten()
}

/// Whether an address is one of an API by its host or path.
fn is_of_api(address: &str) -> bool {
    let path = address.split(['?', '#']).next().unwrap_or_default();
    let is_version = |part: &str| part.strip_prefix('v').is_some_and(|rest| rest.parse::<u16>().is_ok());
    path.contains("://api.") || path.split('/').any(|part| part == "api" || is_version(part))
}

/// Whether a label or the beginning of a sentence names the base URL of an API.
fn names_base(label: &str) -> bool {
    let words = text::words(text::capped(label, NAME_CHARS_MAX));
    let is_pair = |pair: &[String]| matches!(pair, [a, b] if PAIRS.contains(&(a.as_str(), b.as_str())));
    let is_whole = matches!(words.as_slice(), [only] if matches!(only.as_str(), "base" | "server"));
    (is_whole || words.windows(2).any(is_pair))
        && !words.iter().any(|word| OTHER_WORDS.contains(&word.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_base_that_a_text_states() {
        for (text, expected) in [
            ("API base URL: https://api.a.example/v2", Some("https://api.a.example/v2")),
            ("- **REST API base URL:** `https://api.a.example`", Some("https://api.a.example/")),
            ("The base URL of the API is https://api.a.example.", Some("https://api.a.example/")),
            ("All requests go to https://api.a.example", Some("https://api.a.example/")),
            ("| Base URL | https://api.a.example |", Some("https://api.a.example/")),
            ("Server: https://api.a.example", Some("https://api.a.example/")),
            ("## Base URL\n\nhttps://api.a.example", Some("https://api.a.example/")),
            ("## Base URL\n\n`https://api.a.example`\n\nhttps://b.example", Some("https://api.a.example/")),
            ("Base URL: https://a.example\nBase URL: https://b.example", Some("https://a.example/")),
            ("Base URL: https://a.example\n## B\nBase URL: https://b.example", Some("https://b.example/")),
            ("- REST API: https://a.example/api", Some("https://a.example/api")),
            ("API endpoints (base: https://api.a.example/v1):", Some("https://api.a.example/v1")),
            ("## API (https://api.a.example/v1)", Some("https://api.a.example/v1")),
            ("All endpoints are relative to https://api.a.example/v1.", Some("https://api.a.example/v1")),
            ("- [REST API](https://a.example/api)", None),
            ("- REST API: https://a.example/guide", None),
            ("The API is at https://api.a.com/v1.", Some("https://api.a.com/v1")),
            ("- API: https://api.a.com/v1", Some("https://api.a.com/v1")),
            ("- API: https://a.com/api", None),
            ("Base: api.a.com/v1", Some("https://api.a.com/v1")),
            ("Base: prices of last week", None),
            ("API: https://api.a.com\nBase URL: https://api.a.com/v1", Some("https://api.a.com/v1")),
            ("API: https://api.a.com\nProduction: https://api.b.com", Some("https://api.a.com/")),
            (
                "- Sandbox: https://api.test.a.com\n- Production: https://api.a.com",
                Some("https://api.a.com/"),
            ),
            ("## API routes (api.a.example)", Some("https://api.a.example/")),
            ("## API documentation (https://a.example/api)", None),
            ("## API keys (optional)", None),
            ("Sandbox base URL: https://test.a.example", None),
            ("MCP server: https://a.example/mcp", None),
            ("Send requests to https://a.example/register", None),
            ("## Rooms\n\nhttps://a.example", None),
        ] {
            let mut stated = StatedBase::default();
            text.lines().for_each(|line| stated.read_line(line));
            assert_eq!(stated.get().map(Url::as_str), expected, "{text}");
        }
    }
}

//! Detects the kind of a source by its first bytes and its name, and extracts the names from a line of each kind.

use std::io::{self, BufRead};
use std::path::Path;

/// First characters of the file names of Common Crawl's web graphs.
const COMMON_CRAWL_FILE: &str = "cc-main-";
/// First bytes of Common Crawl's lists with ranks.
const COMMON_CRAWL_HEADER: &[u8] = b"#harmonicc_pos";

/// The format of a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Lines,
    /// Text in UTF-16, which cannot be read.
    Utf16,
    /// A page for people, which is no list.
    WebPage,
    Archive,
    Xml,
    /// JSON of certificate-transparency logs.
    Certificates,
    /// A list of hosts or domains of Common Crawl, with reversed names such as `org.example`.
    CommonCrawl,
    /// A document with links, such as a list on GitHub.
    Markdown,
}

impl Kind {
    /// The kind of a source, and the source.
    pub(super) fn of_source<R: BufRead>(mut source: R, name: &str) -> io::Result<(Self, R)> {
        let kind = Self::of(source.fill_buf()?, name);
        Ok((kind, source))
    }

    fn of(first: &[u8], name: &str) -> Self {
        let text = first.strip_prefix(b"\xef\xbb\xbf").unwrap_or(first).trim_ascii_start();
        let path = Path::new(name);
        let file = path.file_name().unwrap_or_default().to_string_lossy();
        let is_markdown = path
            .extension()
            .is_some_and(|end| end.eq_ignore_ascii_case("md") || end.eq_ignore_ascii_case("markdown"));
        match text.first() {
            _ if first.starts_with(b"PK\x03\x04") => Self::Archive,
            _ if first.starts_with(b"\xff\xfe") || first.starts_with(b"\xfe\xff") => Self::Utf16,
            _ if is_markdown => Self::Markdown,
            Some(b'<') if is_web_page(text) => Self::WebPage,
            Some(b'<') => Self::Xml,
            Some(b'[' | b'{') => Self::Certificates,
            _ if text.starts_with(COMMON_CRAWL_HEADER) || file.starts_with(COMMON_CRAWL_FILE) => {
                Self::CommonCrawl
            }
            _ => Self::Lines,
        }
    }

    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Lines => "list",
            Self::Utf16 => "UTF-16",
            Self::WebPage => "web page",
            Self::Archive => "zip archive",
            Self::Xml => "XML",
            Self::Certificates => "JSON",
            Self::CommonCrawl => "Common Crawl",
            Self::Markdown => "links",
        }
    }

    /// Whether the names were collected from elsewhere, not written by the operator. For a list in an archive, the lines show this.
    pub(super) const fn is_collected(self) -> bool {
        matches!(self, Self::Xml | Self::Certificates | Self::CommonCrawl | Self::Markdown)
    }

    /// The names in a line, each in the syntax of a plain list.
    pub(super) fn names(self, line: &str) -> Vec<String> {
        match self {
            Self::CommonCrawl => common_crawl(line).into_iter().collect(),
            Self::Markdown => links(line),
            _ => vec![line.to_owned()],
        }
    }
}

/// The rank of a line and its name, without the quotes of exported tables. Some lists have the name first. The end of a URL
/// such as `https://a.example/x?v=1,2` is no rank.
pub(super) fn split_rank(content: &str) -> (Option<u32>, &str) {
    let columns = content.split_once([',', '\t', ';']).map(|(first, second)| (first.trim(), second.trim()));
    let ranked = columns.and_then(|(first, second)| match (first.parse(), second.parse()) {
        (Ok(rank), _) => Some((rank, second)),
        (Err(_), Ok(rank)) if !first.contains('/') => Some((rank, first)),
        (Err(_), _) => None,
    });
    let (rank, name) = ranked.map_or((None, content), |(rank, name)| (Some(rank), name));
    (rank, name.strip_prefix('"').and_then(|name| name.strip_suffix('"')).unwrap_or(name))
}

fn is_web_page(text: &[u8]) -> bool {
    let begins = |start: &[u8]| text.get(..start.len()).is_some_and(|own| own.eq_ignore_ascii_case(start));
    begins(b"<!doctype html") || begins(b"<html")
}

/// A line is `id, name`, optionally with a count, or the name after the four columns of two ranks.
fn common_crawl(line: &str) -> Option<String> {
    if line.starts_with('#') {
        return None;
    }
    let columns: Vec<&str> = line.split_ascii_whitespace().collect();
    let (rank, name) = match columns.as_slice() {
        [] => return None,
        [rank, _, _, _, name, ..] => (Some(rank), name),
        [_, name, ..] | [name] => (None, name),
    };
    let name = name.split('.').rev().collect::<Vec<_>>().join(".");
    Some(rank.map_or_else(|| name.clone(), |rank| format!("{rank},{name}")))
}

/// The http and https URLs in a line of Markdown or text, in one pass: the search continues after the end of each.
fn links(line: &str) -> Vec<String> {
    let is_end = |letter: char| letter.is_whitespace() || "()<>[]\"'`|\\{}".contains(letter);
    let (mut urls, mut rest) = (Vec::new(), line);
    while let Some(from) = rest.find("http").and_then(|at| rest.get(at..)) {
        let scheme = ["https://", "http://"].into_iter().find(|scheme| from.starts_with(scheme));
        let Some(scheme) = scheme else {
            rest = from.get("http".len()..).unwrap_or_default();
            continue;
        };
        let end = from.find(is_end).unwrap_or(from.len());
        let (url, behind) = from.split_at(end);
        if url.len() > scheme.len() {
            urls.push(url.trim_end_matches(['.', ',', ';', ':', '!', '?', '*', '_']).to_owned());
        }
        rest = behind;
    }
    urls
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_urls_of_a_line() {
        let line = "see [A](https://a.example/x), <http://b.example>. httpx https://c.example! https://d.example/?u=http://e.example http://";
        assert_eq!(
            links(line),
            [
                "https://a.example/x",
                "http://b.example",
                "https://c.example",
                "https://d.example/?u=http://e.example"
            ]
        );
    }

    /// The search continues after a URL, so each byte belongs to at most one URL.
    #[test]
    fn urls_of_a_line_are_together_at_most_as_long_as_the_line() {
        for line in [
            "http://".repeat(4_000),
            "https://x".repeat(3_000),
            "http".repeat(8_000),
            "http://a(".repeat(3_000),
        ] {
            let bytes: usize = links(&line).iter().map(String::len).sum();
            assert!(bytes <= line.len(), "{bytes} bytes of {}", line.len());
        }
    }
}

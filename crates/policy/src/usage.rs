//! Parses preferences of publishers on the use of their content.
//!
//! Reads the `Content-Usage` header and robots.txt rule (draft-ietf-aipref-attach, draft-ietf-aipref-vocab) and the `Content-Signal` header
//! and robots.txt line (contentsignals.org). A statement does not affect a use that it does not name. Without a statement, both uses are
//! unset, and agentdex indexes and exports the document. If there are several statements, the most restrictive applies
//! (draft-ietf-aipref-vocab, "Combining Preferences").

use http::HeaderMap;
use manifest::model::PolicyChoice;
use sfv::{BareItem, Dictionary, ListEntry, Parser};

/// Maximum bytes of a statement that is parsed. All words of both vocabularies take a tenth of this. A longer statement counts as a denial
/// of both uses, because it may contain one.
pub(crate) const STATEMENT_BYTES_MAX: usize = 1024;

/// The preferences for one document.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ContentUsage {
    /// Searching: category `search` of both vocabularies. Denied: the document is not indexed.
    pub search: PolicyChoice,
    /// Training models: `train-ai` of Content-Usage, `ai-train` of Content-Signal. Denied: not part of the bulk export.
    pub training: PolicyChoice,
}

impl ContentUsage {
    /// The result for a statement that is too long to be read.
    const DENIED: Self = Self { search: PolicyChoice::Deny, training: PolicyChoice::Deny };

    /// The value of a `Content-Usage` rule without its path, or of the header: a dictionary (RFC 9651 §3.2). A value that cannot be parsed
    /// is ignored.
    pub(crate) fn of_usage(value: &[u8]) -> Self {
        if value.len() > STATEMENT_BYTES_MAX {
            return Self::DENIED;
        }
        let Ok(statement) = Parser::new(value).parse::<Dictionary>() else { return Self::default() };
        let choice = |label: &str| match statement.get(label) {
            Some(ListEntry::Item(item)) => match &item.bare_item {
                BareItem::Token(token) if token.as_str() == "y" => PolicyChoice::Allow,
                BareItem::Token(token) if token.as_str() == "n" => PolicyChoice::Deny,
                _ => PolicyChoice::Unset,
            },
            _ => PolicyChoice::Unset,
        };
        // categories of earlier drafts: `bots` includes all others, and `train-genai` is a part of `train-ai`
        let within = |label: &str| match choice(label) {
            PolicyChoice::Unset => choice("bots"),
            stated => stated,
        };
        let training = most_restrictive(within("train-ai"), choice("train-genai"));
        Self { search: within("search"), training }
    }

    /// The value of a `Content-Signal` line or header: `search=yes, ai-train=no`.
    pub(crate) fn of_signal(value: &[u8]) -> Self {
        if value.len() > STATEMENT_BYTES_MAX {
            return Self::DENIED;
        }
        value.split(|byte| *byte == b',').fold(Self::default(), |usage, signal| {
            let mut parts = signal.splitn(2, |byte| *byte == b'=').map(<[u8]>::trim_ascii);
            let (name, value) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
            let choice = match value {
                value if value.eq_ignore_ascii_case(b"yes") => PolicyChoice::Allow,
                value if value.eq_ignore_ascii_case(b"no") => PolicyChoice::Deny,
                _ => PolicyChoice::Unset,
            };
            let stated = match name {
                name if name.eq_ignore_ascii_case(b"search") => Self { search: choice, ..Self::default() },
                name if name.eq_ignore_ascii_case(b"ai-train") => {
                    Self { training: choice, ..Self::default() }
                }
                _ => Self::default(),
            };
            usage.combined(stated)
        })
    }

    /// The statements in the headers of a response. Lines of one field are one list (RFC 9110 §5.3).
    pub fn of_headers(headers: &HeaderMap) -> Self {
        let [usage, signal] = HEADERS.map(|name| statement_in(headers, name));
        Self::of_usage(&usage).combined(Self::of_signal(&signal))
    }

    /// The header of a response whose statement is too long to be read.
    pub fn too_long_in(headers: &HeaderMap) -> Option<&'static str> {
        HEADERS.into_iter().find(|name| statement_in(headers, name).len() > STATEMENT_BYTES_MAX)
    }

    /// The most restrictive combination of two statements.
    #[must_use]
    pub fn combined(self, other: Self) -> Self {
        Self {
            search: most_restrictive(self.search, other.search),
            training: most_restrictive(self.training, other.training),
        }
    }
}

/// The header of each vocabulary.
const HEADERS: [&str; 2] = ["content-usage", "content-signal"];

fn statement_in(headers: &HeaderMap, name: &str) -> Vec<u8> {
    let lines: Vec<&[u8]> = headers.get_all(name).iter().map(http::HeaderValue::as_bytes).collect();
    lines.join(b", ".as_slice())
}

/// The more restrictive of two statements on one use. A denial is more restrictive than a condition, and a condition more than a
/// permission.
pub const fn most_restrictive(one: PolicyChoice, other: PolicyChoice) -> PolicyChoice {
    match (one, other) {
        (PolicyChoice::Deny, _) | (_, PolicyChoice::Deny) => PolicyChoice::Deny,
        (PolicyChoice::Conditional, _) | (_, PolicyChoice::Conditional) => PolicyChoice::Conditional,
        (PolicyChoice::Allow, _) | (_, PolicyChoice::Allow) => PolicyChoice::Allow,
        (PolicyChoice::Unset, PolicyChoice::Unset) => PolicyChoice::Unset,
    }
}

#[cfg(test)]
mod tests {
    use manifest::model::PolicyChoice::{Allow, Deny, Unset};

    use super::*;

    fn usage(search: PolicyChoice, training: PolicyChoice) -> ContentUsage {
        ContentUsage { search, training }
    }

    #[test]
    fn reads_content_usage_as_a_dictionary() {
        let table: &[(&str, ContentUsage)] = &[
            ("train-ai=n", usage(Unset, Deny)),
            ("search=n, train-ai=y", usage(Deny, Allow)),
            ("train-ai;allow=n, train-ai=y", usage(Unset, Allow)),
            ("train-ai=y, train-ai, search=n, search=\"n\"", ContentUsage::default()),
            ("Train-AI=n", ContentUsage::default()),
            ("train-ai=no", ContentUsage::default()),
            ("unknown=n", ContentUsage::default()),
            ("bots=n", usage(Deny, Deny)),
            ("bots=n, search=y", usage(Allow, Deny)),
            ("train-genai=n", usage(Unset, Deny)),
            ("train-ai=y, train-genai=n", usage(Unset, Deny)),
            ("", ContentUsage::default()),
        ];
        for (value, expected) in table {
            assert_eq!(ContentUsage::of_usage(value.as_bytes()), *expected, "{value}");
        }
    }

    #[test]
    fn denies_both_uses_where_a_statement_is_too_long_to_be_read() {
        for (statement, expected) in [
            ("a, ".repeat(STATEMENT_BYTES_MAX) + "train-ai=n", ContentUsage::DENIED),
            ("train-ai=y, ".repeat(STATEMENT_BYTES_MAX) + "search=y", ContentUsage::DENIED),
        ] {
            assert_eq!(ContentUsage::of_usage(statement.as_bytes()), expected);
            assert_eq!(ContentUsage::of_signal(statement.as_bytes()), expected);
        }
        let mut headers = HeaderMap::new();
        headers.append("content-usage", "search=y, train-ai=y".parse().unwrap());
        assert_eq!(ContentUsage::too_long_in(&headers), None);
        for _ in 0..=STATEMENT_BYTES_MAX / 9 {
            headers.append("content-signal", "search=yes".parse().unwrap());
        }
        assert_eq!(ContentUsage::too_long_in(&headers), Some("content-signal"), "all lines together");
        assert_eq!(ContentUsage::of_headers(&headers), usage(Deny, Deny));
    }

    #[test]
    fn reads_content_signals_in_any_case() {
        let table: &[(&str, ContentUsage)] = &[
            ("search=yes, ai-input=no, ai-train=no", usage(Allow, Deny)),
            ("Search = NO,AI-Train=Yes", usage(Deny, Allow)),
            ("ai-train=yes, ai-train=no", usage(Unset, Deny)),
            ("ai-train", ContentUsage::default()),
        ];
        for (value, expected) in table {
            assert_eq!(ContentUsage::of_signal(value.as_bytes()), *expected, "{value}");
        }
    }

    #[test]
    fn combines_the_lines_of_both_headers() {
        let mut headers = HeaderMap::new();
        assert_eq!(ContentUsage::of_headers(&headers), ContentUsage::default());
        headers.append("content-usage", "search=y".parse().unwrap());
        headers.append("content-usage", "train-ai=y".parse().unwrap());
        assert_eq!(ContentUsage::of_headers(&headers), usage(Allow, Allow));
        headers.append("content-signal", "ai-train=no".parse().unwrap());
        assert_eq!(ContentUsage::of_headers(&headers), usage(Allow, Deny));
    }
}

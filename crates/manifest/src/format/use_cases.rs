//! Cases of use that a text lists: items below `## Use cases`, or below a line such as "Use the shop when you need to:".

use crate::draft::{self, Draft};
use crate::text::{self, capped};

/// Maximum number of lines of one text that are read, and of cases that are kept.
const LINES_MAX: usize = 20_000;
const CASES_MAX: usize = 64;
/// Maximum number of characters of one case.
const CASE_CHARS_MAX: usize = 200;
/// Maximum number of bytes of a heading, and of a line that introduces cases.
const HEAD_BYTES_MAX: usize = 200;
/// Headings above cases.
const HEADINGS: &[&str] = &["use cases", "when to use", "agent tasks", "example requests", "example prompts"];

/// Keeps the cases as typical requests, unless the document states others.
pub(crate) fn read_text(text: &str, draft: &mut Draft<'_>) {
    if !draft.manifest.representative_queries.is_empty() {
        return;
    }
    let mut found: Vec<&str> = Vec::new();
    let mut is_below = false;
    for line in text.lines().take(LINES_MAX).map(str::trim).filter(|line| !line.is_empty()) {
        let item = line.strip_prefix(['-', '*', '+']).filter(|rest| rest.starts_with(' '));
        match item.map(str::trim) {
            Some(item) if is_below && found.len() < CASES_MAX => found.extend(case(item)),
            Some(_) => {}
            None => is_below = introduces_cases(line),
        }
    }
    draft.manifest.representative_queries = draft::tags(found);
}

/// Whether the items below a line are cases of use.
fn introduces_cases(line: &str) -> bool {
    if line.len() > HEAD_BYTES_MAX {
        return false;
    }
    if let Some(heading) = line.strip_prefix('#') {
        let heading = text::folded_words(heading);
        return HEADINGS.contains(&heading.as_str());
    }
    line.strip_suffix(':').is_some_and(|head| {
        let head = head.to_ascii_lowercase();
        head.starts_with("use ") && (head.contains(" when you need") || head.ends_with(" when you want to"))
    })
}

/// The case in an item. An item with an address or a call is something else.
fn case(item: &str) -> Option<&str> {
    // A remark in brackets names the tools for the case.
    let bare = item.strip_suffix(')').and_then(|item| item.rsplit_once(" (")).map_or(item, |(bare, _)| bare);
    let item = capped(bare.trim_matches(['*', '"', ' ']), CASE_CHARS_MAX);
    let is_other =
        item.contains("://") || item.contains("](") || item.contains(" /") || item.starts_with(['/', '`']);
    (!is_other && item.split_whitespace().count() > 1).then_some(item)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_lines_above_cases() {
        for line in ["## Use cases", "### When to use", "Use the shop when you need to:", "## Agent Tasks"] {
            assert!(introduces_cases(line), "{line}");
        }
        for line in ["## Endpoints", "Use cases of the shop are listed elsewhere.", "Use this key:", ""] {
            assert!(!introduces_cases(line), "{line}");
        }
        assert_eq!(case("Book a room for two (get_room)"), Some("Book a room for two"));
        for item in ["[Rooms](/rooms)", "GET /rooms", "/rooms", "rooms", "See https://shop.example/rooms"] {
            assert_eq!(case(item), None, "{item}");
        }
    }
}

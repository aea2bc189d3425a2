//! Snippets: the best-matching part of a description, as escaped HTML with `<mark>`.

use std::collections::BTreeMap;

use tantivy::snippet::{SnippetGenerator, collapse_overlapped_ranges};
use tantivy::tokenizer::TextAnalyzer;

use super::opened::OpenedIndex;
use crate::analysis::CapabilityTokenizer;
use crate::query::{Plan, Role};

/// Length of a snippet: two lines on a phone.
const SNIPPET_CHARS_MAX: usize = 180;

/// Maximum number of characters that the last word and its punctuation add.
const TAIL_CHARS_MAX: usize = 12;

/// Marks the words of a request, their corrections and synonyms.
pub(super) struct Highlighter {
    generator: SnippetGenerator,
}

impl Highlighter {
    pub(super) fn of(opened: &OpenedIndex, plans: &[Plan]) -> Self {
        let terms = plans.iter().flat_map(|plan| &plan.terms);
        let terms = terms.filter(|term| term.role.selects() && term.role != Role::Bigram);
        let terms: BTreeMap<String, f32> = terms.map(|term| (term.text.clone(), term.weight)).collect();
        let tokenizer = CapabilityTokenizer::new(&opened.languages, terms.keys().map(String::as_str));
        let analyzer = TextAnalyzer::from(tokenizer);
        Self { generator: SnippetGenerator::new(terms, analyzer, opened.fields.all, SNIPPET_CHARS_MAX) }
    }

    /// A snippet of a text; its beginning if nothing matches.
    pub(super) fn snippet(&self, text: &str) -> String {
        let snippet = self.generator.snippet(text);
        if snippet.is_empty() {
            return escape(&beginning(text));
        }
        let fragment = snippet.fragment_range();
        let is_whole = text.chars().count() <= SNIPPET_CHARS_MAX;
        let (start, end) =
            if is_whole { (0, text.len()) } else { (fragment.start, end_of_word(text, fragment.end)) };
        let mut html = String::with_capacity(end - start + 64);
        let mut at = start;
        let piece = |from: usize, to: usize| escape(text.get(from..to).unwrap_or_default());
        for range in collapse_overlapped_ranges(snippet.highlighted()) {
            let (from, to) = (fragment.start + range.start, fragment.start + range.end);
            html.push_str(&piece(at, from));
            html.push_str("<mark>");
            html.push_str(&piece(from, to));
            html.push_str("</mark>");
            at = to;
        }
        html.push_str(&piece(at, end));
        html
    }
}

/// The end of the word and punctuation at an offset.
fn end_of_word(text: &str, at: usize) -> usize {
    let rest = text.get(at..).unwrap_or_default();
    let tail = rest.chars().take_while(|c| !c.is_whitespace()).take(TAIL_CHARS_MAX);
    at + tail.map(char::len_utf8).sum::<usize>()
}

fn beginning(text: &str) -> String {
    let mut start: String = text.chars().take(SNIPPET_CHARS_MAX).collect();
    if start.len() < text.len() {
        start.push('…');
    }
    start
}

fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#x27;"),
            _ => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_html() {
        assert_eq!(escape("<b a=\"1\">&'"), "&lt;b a=&quot;1&quot;&gt;&amp;&#x27;");
    }
}

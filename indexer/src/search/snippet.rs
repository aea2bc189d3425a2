//! The part of a description that speaks of the request, as escaped HTML with marks.

use std::collections::BTreeMap;

use tantivy::snippet::SnippetGenerator;
use tantivy::tokenizer::TextAnalyzer;

use super::loaded::Loaded;
use crate::analysis::{CapabilityTokenizer, Stemming, language_of};
use crate::query::Plan;

/// Length of a snippet: two lines on a phone.
const SNIPPET_CHARS_MAX: usize = 180;

/// The words to mark.
pub(super) struct Marks {
    terms: BTreeMap<String, f32>,
}

impl Marks {
    pub(super) fn of(plans: &[Plan]) -> Self {
        let terms = plans.iter().flat_map(|plan| &plan.terms).filter(|term| !term.text.contains('_'));
        Self { terms: terms.map(|term| (term.text.clone(), term.weight)).collect() }
    }

    /// A snippet of a text; its beginning when nothing in it is to be marked.
    pub(super) fn snippet(&self, loaded: &Loaded, text: &str) -> String {
        let stemming = Stemming::for_language(&language_of(None, text));
        let analyzer = TextAnalyzer::from(CapabilityTokenizer { stemming });
        let generator =
            SnippetGenerator::new(self.terms.clone(), analyzer, loaded.fields.all, SNIPPET_CHARS_MAX);
        let mut snippet = generator.snippet(text);
        if snippet.is_empty() {
            return escape(&beginning(text));
        }
        snippet.set_snippet_prefix_postfix("<mark>", "</mark>");
        snippet.to_html()
    }
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
    fn markup_of_the_publisher_is_text() {
        assert_eq!(escape("<b a=\"1\">&'"), "&lt;b a=&quot;1&quot;&gt;&amp;&#x27;");
    }
}

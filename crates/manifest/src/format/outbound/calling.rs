//! Decides which texts may name calls, according to the members that contain them.

use super::{RELATED_WORDS, SHARED_BLOCKS, is_contact};
use crate::text;

/// Members that describe answers or former calls, or repeat a call.
const OTHER_KEYS: &[&str] =
    &["returns", "returned", "alias", "aliases", "sample", "samples", "redirects", "changelog"];

/// Whether a text may name a call, according to the members that contain it.
pub(super) fn may_name_call(names: &[&str], sentence: &str) -> bool {
    let has_method =
        ["GET ", "POST ", "PUT ", "PATCH ", "DELETE "].iter().any(|word| sentence.contains(word));
    let is_other = |name: &&str| {
        OTHER_KEYS.contains(name) || SHARED_BLOCKS.contains(name) || is_contact(name) || is_of_others(name)
    };
    (has_method || names_priced_path(sentence)) && !names.iter().any(is_other)
}

/// Whether a sentence contains a path followed by a price, `/v1/signal ($5.00)`, or a list of free paths.
fn names_priced_path(sentence: &str) -> bool {
    sentence.contains(" /") && (sentence.contains(" ($") || sentence.contains("ree endpoints: /"))
}

fn is_of_others(name: &str) -> bool {
    let mut found = false;
    text::each_word(name, |word| found |= RELATED_WORDS.contains(&word));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignores_calls_in_texts_about_responses_and_other_services() {
        assert!(may_name_call(&["flow"], "then POST /holds"));
        assert!(!may_name_call(&["returns"], "then POST /holds"));
        assert!(!may_name_call(&["related_services", "note"], "then POST /holds"));
        assert!(!may_name_call(&["flow"], "then post the room"));
        assert!(may_name_call(&["description"], "Key capabilities: /v1/signal ($5.00) a signal"));
    }
}

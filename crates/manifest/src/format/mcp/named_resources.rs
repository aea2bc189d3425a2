//! Resources of a server that sentences of its card name by their URIs: "resources/read of a public resource such as `shop://rooms` is
//! anonymously readable".

use crate::draft::{DESCRIPTION_CHARS_MAX, Draft};
use crate::format::outbound;
use crate::model::{Capability, CapabilityKind, Tristate};
use crate::name::URL_BYTES_MAX;
use crate::object::Object;
use crate::text::{self, capped};

/// Maximum number of resources of one card that only sentences name.
const RESOURCES_MAX: usize = 50;
/// Maximum number of sentences of one text that are searched.
const SENTENCES_MAX: usize = 50;
/// Schemes of addresses that are not resources of the server itself, and of the pages of applications, which are listed elsewhere.
const OTHER_SCHEMES: &[&str] = &["http", "https", "ws", "wss", "ftp", "file", "ui", "urn", "git", "ssh"];

/// Adds the resources that no list of the card has. A sentence that says that they are readable anonymously opens them.
pub(super) fn read(root: &Object<'_>, server: &str, draft: &mut Draft<'_>) {
    let mut found: Vec<(&str, bool)> = Vec::new();
    outbound::each_text(root.map, &mut |text| {
        if found.len() < RESOURCES_MAX && text.contains("://") && text::has_four(text, *b"sour") {
            let sentences = capped(text, DESCRIPTION_CHARS_MAX).split(". ").take(SENTENCES_MAX);
            found.extend(sentences.filter_map(named));
        }
    });
    for (uri, is_open) in found {
        if draft.is_full() || draft.manifest.capabilities.iter().any(|known| known.native_id == uri) {
            continue;
        }
        let mut resource: Capability =
            draft.capability(CapabilityKind::Resource, uri, uri, root.pointer.clone());
        resource.invocation = super::resource_call(Some(server), uri);
        if is_open {
            resource.auth.required = Tristate::No;
        }
        draft.push(resource);
    }
}

/// The URI in a sentence about a resource, and whether the sentence says that anyone may read it.
fn named(sentence: &str) -> Option<(&str, bool)> {
    let words = || sentence.split_whitespace().map(|word| word.trim_matches(is_mark));
    let is_about = words().any(|word| matches!(word, "resource" | "resources" | "resources/read"));
    let uri = words().find(|word| is_resource(word)).filter(|_| is_about)?;
    let mut is_open = false;
    let mut is_denied = false;
    for word in words() {
        is_open |= matches!(word, "anonymously" | "public" | "publicly");
        is_denied |= matches!(word, "not" | "requires" | "needs" | "except");
    }
    Some((uri, is_open && !is_denied))
}

fn is_mark(letter: char) -> bool {
    "`\"'()[],;:.".contains(letter)
}

/// Whether a word is the URI of one resource: with a scheme of its own, and without variables.
fn is_resource(word: &str) -> bool {
    let Some((scheme, rest)) = word.split_once("://") else { return false };
    let is_scheme = scheme.len() > 1
        && scheme.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
        && !OTHER_SCHEMES.contains(&scheme);
    is_scheme
        && rest.starts_with(|letter: char| letter.is_ascii_alphanumeric())
        && !rest.contains(['{', '<', '*', '\u{2026}'])
        && !rest.ends_with("..")
        && word.len() <= URL_BYTES_MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_resource_that_a_sentence_names() {
        let of_limits =
            "resources/read of a public (metadata-only) resource such as shop://meta/age is readable";
        assert_eq!(named(of_limits), Some(("shop://meta/age", true)));
        assert_eq!(named("The resource shop://rooms is not public"), Some(("shop://rooms", false)));
        assert_eq!(named("Reads the resource `shop://rooms`."), Some(("shop://rooms", false)));
        for sentence in [
            "See https://shop.example/resources for each resource",
            "The resource shop://rooms/{id}",
            "The resource ui://rooms",
            "Opens shop://rooms",
            "resource shop://",
        ] {
            assert_eq!(named(sentence), None, "{sentence}");
        }
    }
}

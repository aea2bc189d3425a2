//! Autocomplete entries of a capability: its name, its types, its site, and likely requests.
//!
//! A prefix of any word of a text finds the text. For each later word, there is an additional entry that begins at this word; for a type,
//! one for each word after its namespace.

use std::collections::BTreeSet;

use manifest::model::Capability;
use store::StoredManifest;
use tantivy::TantivyDocument;

use super::super::schema::{Fields, REST_MARK, SUGGESTION_MARK};
use crate::analysis::{fold_exact, is_stop_word};
use crate::answer::SuggestionKind;

/// Maximum number of words of a suggested request or name. Longer ones do not fit into the list below a search box.
const WORDS_MAX: usize = 8;
/// Maximum number of words of the clause that begins a description.
const CLAUSE_WORDS_MAX: usize = 6;
/// Example requests of a capability, and of its manifest, that are suggested.
const EXAMPLES_MAX: usize = 10;

pub(super) fn add(
    stored: &StoredManifest,
    capability: &Capability,
    language: &str,
    fields: &Fields,
    document: &mut TantivyDocument,
) {
    let name = fold_exact(capability.title.as_deref().unwrap_or(&capability.name));
    let mut texts = BTreeSet::new();
    for kind in &capability.semantic_types {
        add_words_of_type(&kind.name.to_lowercase(), fields, document);
        texts.insert((kind.name.to_lowercase(), SuggestionKind::SemanticType));
    }
    let is_of_site = stored.is_of_site();
    if is_of_site {
        texts.insert((stored.manifest.url.site().as_str().to_owned(), SuggestionKind::Site));
    }
    // users take suggestions for text of this service, so untrusted text is not suggested
    let is_suggested = is_of_site && !capability.addresses_reader;
    let examples = capability.examples.iter().take(EXAMPLES_MAX);
    let examples = examples.chain(stored.manifest.representative_queries.iter().take(EXAMPLES_MAX));
    let requests = examples.map(|example| fold_exact(example)).chain(request(capability, language));
    if is_suggested {
        for request in requests.filter(|request| *request != name) {
            texts.insert((request, SuggestionKind::Phrase));
        }
        texts.insert((name, SuggestionKind::Name));
    }
    for (text, kind) in texts {
        let words: Vec<&str> = text.split(' ').collect();
        // suggestions cannot be marked as addressing a model, so such texts are left out
        if text.is_empty() || words.len() > WORDS_MAX || manifest::addresses_reader(&text) {
            continue;
        }
        document.add_text(fields.suggest, format!("{text}{SUGGESTION_MARK}{kind}"));
        for at in (1..words.len()).filter(|at| words.get(*at).is_some_and(|word| !is_stop_word(word))) {
            let rest = words.get(at..).unwrap_or_default().join(" ");
            document.add_text(fields.suggest, format!("{rest}{REST_MARK}{text}{SUGGESTION_MARK}{kind}"));
        }
    }
}

/// Entries that begin at the words of a type: `hotel` and `booking` find `travel:hotel-booking`.
fn add_words_of_type(name: &str, fields: &Fields, document: &mut TantivyDocument) {
    let Some((_, leaf)) = name.split_once(':').filter(|_| !name.contains("://")) else { return };
    let words: Vec<&str> = leaf.split(['-', '_', '.']).filter(|word| !word.is_empty()).collect();
    if words.len() > WORDS_MAX || manifest::addresses_reader(name) {
        return;
    }
    for at in (0..words.len()).filter(|at| words.get(*at).is_some_and(|word| !is_stop_word(word))) {
        let rest = words.get(at..).unwrap_or_default().join(" ");
        let kind = SuggestionKind::SemanticType;
        document.add_text(fields.suggest, format!("{rest}{REST_MARK}{name}{SUGGESTION_MARK}{kind}"));
    }
}

/// The clause that begins an English description, if it is a request: "Book a flight", not "Books a flight" or "The flights".
fn request(capability: &Capability, language: &str) -> Option<String> {
    let description = capability.description.as_deref().filter(|_| language == "en")?;
    let is_end = |c: char| matches!(c, '.' | ',' | ':' | ';' | '(' | '!' | '?' | '\n' | '—' | '–');
    let clause = fold_exact(description.split(is_end).next().unwrap_or_default());
    let verb = clause.split(' ').next().unwrap_or_default();
    let is_request = !verb.ends_with('s') && !is_stop_word(verb);
    let words = clause.split(' ').count();
    Some(clause).filter(|_| is_request && (2..=CLAUSE_WORDS_MAX).contains(&words))
}

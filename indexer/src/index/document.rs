//! The document of a capability.
//!
//! The weights gave the best ranking on public tool-retrieval sets: words of the name count four times, of the title three times, of
//! parameter names and the site twice, and all others once. Text that tries to instruct the model that reads it is indexed like other text
//! but ranked slightly lower.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashSet};
use std::rc::Rc;

use manifest::declaration::Excerpt;
use manifest::entry::Entry;
use manifest::model::{Capability, ConformanceLevel, Manifest, SourceKind};
use manifest::{CapabilityId, ManifestUrl, Publisher};
use policy::Status;
use policy::naming::may_speak;
use store::{StoredDeclaration, StoredManifest};
use tantivy::TantivyDocument;

use super::forward::{AddressOf, Part, encoded, gram_number, hash, number_of_address, sketch, stem_number};
use super::schema::Fields;
use super::shared::{self, Following, Shared};
use crate::analysis::{
    Stemming, bigram, dense_characters, fold_exact, grams, is_stop_word, language_of, words,
};
use crate::answer::Hit;
use crate::declarations::DeclarationRole;
use crate::error::IndexError;
use crate::examples::Examples;
use crate::filter::{FacetKey, FilterSource};

mod examples;
mod names;
mod schema_text;
mod suggestions;

pub use examples::{ExampleCheck, UnfoundExample, check_examples};
pub(super) use names::exact_names;
pub(crate) use names::site_number;
use names::{site_words, without_scheme};
use schema_text::SchemaText;

/// Number of times that each word of the name is added to the field `all`.
pub(crate) const NAME_WEIGHT: u32 = 4;
const TITLE_WEIGHT: usize = 3;
const PARAMETER_WEIGHT: usize = 2;
const SITE_WEIGHT: usize = 2;

/// Maximum number of terms of one capability. Longer texts are usually written to match every query.
const TERMS_MAX: usize = 1_500;
/// Maximum number of terms of the manifest's own text.
const ABOUT_TERMS_MAX: usize = 400;
/// Minimum number of distinct stems for a sketch. Texts with fewer stems count as copies only if they are equal.
const SKETCHED_STEMS_MIN: usize = 16;
/// Maximum number of words whose character grams are indexed.
const GRAM_WORDS_MAX: usize = 40;
/// Penalty for documents that only others name: larger than the sum of all quality factors, so that a site's own declaration with the same
/// text ranks higher.
const NAMED_BY_OTHERS_PENALTY: f64 = 0.3;
/// Maximum bytes of a description in a row; the whole text is in the store.
const ROW_DESCRIPTION_BYTES_MAX: usize = 2_000;

/// Data that all capabilities of a manifest share.
pub(crate) struct ManifestText<'a> {
    stored: &'a StoredManifest,
    /// Examples from the operator.
    given: Option<&'a Examples>,
    /// Words of the site's name, not stemmed.
    site_words: Vec<String>,
    /// The description of the manifest, stemmed for the previous capability. Cached because the next one usually has the same language.
    about: RefCell<Option<(Stemming, Rc<str>)>>,
}

impl<'a> ManifestText<'a> {
    /// `None` if the manifest must not be indexed.
    pub(crate) fn of(stored: &'a StoredManifest) -> Option<Self> {
        let is_present = matches!(stored.status, Status::Fresh | Status::Stale | Status::Unreachable);
        if !is_present || !stored.manifest.format().is_indexable() {
            return None;
        }
        let site_words = site_words(stored);
        Some(Self { stored, given: None, site_words, about: RefCell::default() })
    }

    /// Adds the operator's examples to the publishers' examples.
    pub(crate) fn with_examples(self, given: &'a Examples) -> Self {
        Self { given: Some(given), ..self }
    }

    /// The document of a declaration and, if it leads a capability of several declarations, the id of that capability. `None` for a
    /// declaration that is not the leading one. `spam` contains the reasons why the declaration is spam, as bits.
    pub(crate) fn document<'s>(
        &self,
        fields: &Fields,
        capability: &Capability,
        spam: u64,
        shared: &'s Shared,
    ) -> Result<Option<(TantivyDocument, Option<&'s CapabilityId>)>, IndexError> {
        Ok(match shared.role_of(&capability.id) {
            DeclarationRole::Alone => {
                Some((self.document_of(fields, capability, spam, &[], &self.row(capability))?, None))
            }
            DeclarationRole::Follows => None,
            DeclarationRole::Leads(id, others) => {
                let merged = shared::merged(id, (self.stored, capability), &others);
                let mut row = self.row(&merged.capability);
                row.updated_at = others.iter().map(|other| other.changed_at).fold(row.updated_at, Ord::max);
                if !others.is_empty() || capability.id != *id {
                    row.declarations = merged.declarations;
                }
                row.contradictions = merged.contradictions;
                // The values of the leading declaration also match if the merged capability has a more cautious value.
                let own = Following::of(StoredDeclaration::of(self.stored, capability));
                let all: Vec<&Following> = std::iter::once(&own).chain(others).collect();
                Some((self.document_of(fields, &merged.capability, spam, &all, &row)?, Some(id)))
            }
        })
    }

    fn document_of(
        &self,
        fields: &Fields,
        capability: &Capability,
        spam: u64,
        declarations: &[&Following],
        row: &Hit,
    ) -> Result<TantivyDocument, IndexError> {
        let text = CapabilityText { declarations, spam, ..CapabilityText::of(self, capability) };
        let entry = self.stored.entry_of(capability);
        let mut document = TantivyDocument::default();
        self.add_identity(fields, capability, &entry, &mut document);
        self.add_declarations(fields, declarations, &mut document);
        let mut facets: BTreeSet<(FacetKey, String)> =
            facet_values(&FilterSource::of_capability(self.stored, capability, &entry, &text.language))
                .into_iter()
                .collect();
        facets.extend(declarations.iter().flat_map(|declaration| declaration.facets.iter().cloned()));
        for (key, value) in facets {
            document.add_text(fields.facet(key), value);
        }
        text.add_terms(fields, self, &mut document);
        document.add_u64(fields.text_number, hash(&text.own()));
        document.add_f64(fields.prior, self.prior(capability, row));
        document.add_bytes(fields.row, &serde_json::to_vec(row).map_err(IndexError::Row)?);
        Ok(document)
    }

    fn about(&self, stemming: Stemming) -> Rc<str> {
        let mut cached = self.about.borrow_mut();
        match &*cached {
            Some((of, text)) if *of == stemming => Rc::clone(text),
            _ => {
                let text: Rc<str> = about(&self.stored.manifest, stemming).into();
                *cached = Some((stemming, Rc::clone(&text)));
                text
            }
        }
    }

    fn add_identity(
        &self,
        fields: &Fields,
        capability: &Capability,
        entry: &Entry<'_>,
        document: &mut TantivyDocument,
    ) {
        let manifest = &self.stored.manifest;
        let (site, host) = (manifest.url.site(), manifest.url.host());
        document.add_text(fields.id, capability.id.as_str());
        document.add_text(fields.manifest, manifest.id.as_str());
        document.add_u64(fields.tie, hash(capability.id.as_str()));
        document.add_u64(fields.site_number, site_number(site.as_str(), self.stored.named_by));
        document.add_text(fields.host, host.as_str());
        if may_speak(self.stored.named_by, self.stored.publisher) {
            document.add_text(fields.speaker, self.stored.publisher.as_str());
        }
        document.add_text(fields.name_sort, fold_exact(&capability.name));
        document.add_bool(fields.invocable, capability.is_invocable());
        for name in exact_names(&FilterSource::of_capability(self.stored, capability, entry, "")) {
            document.add_text(fields.exact, name);
        }
    }

    /// Adds the times of a capability over all its declarations: when the first one was seen, and the latest change.
    fn add_declarations(&self, fields: &Fields, declarations: &[&Following], document: &mut TantivyDocument) {
        let changed = declarations.iter().map(|declaration| declaration.changed_at);
        let changed_at = changed.fold(self.stored.changed_at, Ord::max);
        let first_seen = declarations.iter().map(|declaration| declaration.first_seen_at);
        let first_seen_at = first_seen.fold(self.stored.first_seen_at, Ord::min);
        document.add_i64(fields.updated_ms, changed_at.timestamp_millis());
        document.add_i64(fields.first_seen_ms, first_seen_at.timestamp_millis());
        for declaration in declarations {
            document.add_text(fields.host, &declaration.host);
            declaration.exact.iter().for_each(|name| document.add_text(fields.exact, name));
        }
    }

    /// The row of the response, with a shortened description.
    fn row(&self, capability: &Capability) -> Hit {
        let mut row = Hit::of(self.stored, capability);
        row.description = row.description.map(|text| shortened(&text, ROW_DESCRIPTION_BYTES_MAX));
        row
    }

    /// Factors for the quality of a declaration. There is no labelled data to tune them, so each bonus is at most a tenth and only reorders
    /// results with nearly equal scores. The penalties of deprecated capabilities and of documents that only others name are larger.
    fn prior(&self, capability: &Capability, row: &Hit) -> f64 {
        let conformance = match self.stored.manifest.level() {
            ConformanceLevel::Conforms => 0.10,
            ConformanceLevel::Minor => 0.07,
            ConformanceLevel::Major => 0.02,
            ConformanceLevel::Unparseable => 0.0,
        };
        let liveness = match self.stored.status {
            Status::Fresh => 0.05,
            Status::Stale => 0.02,
            _ => 0.0,
        };
        let origin = match row.source {
            SourceKind::Native => 0.05,
            SourceKind::Derived => 0.02,
            SourceKind::Synthetic | SourceKind::CopySuspected => 0.0,
        };
        let invocable = if row.invocable { 0.03 } else { 0.0 };
        let typed = if row.semantic_types.is_empty() { 0.0 } else { 0.02 };
        let flaws = [capability.deprecated, capability.degraded, capability.addresses_reader];
        let penalty: f64 = flaws.iter().filter(|flaw| **flaw).map(|_| 0.05).sum();
        // the successor of a deprecated capability ranks higher, even if it contains fewer words of the request
        let penalty = if capability.deprecated { penalty + 0.2 } else { penalty };
        let penalty = if self.stored.is_of_site() { penalty } else { penalty + NAMED_BY_OTHERS_PENALTY };
        1.0 + conformance + liveness + origin + invocable + typed - penalty
    }
}

/// The values of every filter.
pub(super) fn facet_values(source: &FilterSource<'_>) -> Vec<(FacetKey, String)> {
    let values = |key: &FacetKey| {
        let key = *key;
        key.filter().values_of(source).into_iter().map(move |value| (key, value))
    };
    FacetKey::ALL.iter().flat_map(values).collect()
}

/// The texts of one capability.
struct CapabilityText<'a> {
    capability: &'a Capability,
    /// The further declarations of a capability that has several.
    declarations: &'a [&'a Following],
    /// The bits of the reasons why it is spam.
    spam: u64,
    language: String,
    parameters: SchemaText,
    response: SchemaText,
    /// Tags and semantic types.
    category: Vec<&'a str>,
}

impl<'a> CapabilityText<'a> {
    fn of(manifest: &ManifestText<'_>, capability: &'a Capability) -> Self {
        let description = capability.description.as_deref().unwrap_or_default();
        let language = language_of(manifest.stored.manifest.language.as_deref(), description);
        let types = capability.semantic_types.iter().map(|kind| kind.name.as_str());
        Self {
            capability,
            declarations: &[],
            spam: 0,
            language,
            parameters: SchemaText::of(capability.parameters.as_ref()),
            response: SchemaText::of(capability.response.as_ref()),
            category: types.chain(capability.tags.iter().map(String::as_str)).collect(),
        }
    }

    /// Name and description, or the title if there is no description. Equal for copies.
    fn own(&self) -> String {
        let Capability { description, title, .. } = self.capability;
        let description = description.as_deref().or(title.as_deref()).unwrap_or_default();
        format!("{}\n{}", fold_exact(&self.capability.name), fold_exact(description))
    }

    /// The texts with the weight of their words, in order of importance.
    fn weighted(&self) -> Vec<(&str, usize)> {
        let capability = self.capability;
        let mut texts = vec![(without_scheme(&capability.name), NAME_WEIGHT as usize)];
        texts.extend(capability.title.as_deref().map(|title| (title, TITLE_WEIGHT)));
        if fold_exact(&capability.native_id) != fold_exact(&capability.name) {
            texts.push((without_scheme(&capability.native_id), 1));
        }
        texts.extend(capability.description.as_deref().map(|text| (text, 1)));
        texts.extend(self.category.iter().map(|text| (*text, 1)));
        texts.extend(self.parameters.names.iter().map(|name| (name.as_str(), PARAMETER_WEIGHT)));
        for text in [&self.parameters.texts, &self.response.names, &self.response.texts] {
            texts.extend(text.iter().map(|text| (text.as_str(), 1)));
        }
        texts.extend(self.texts_of_other_declarations().into_iter().map(|text| (without_scheme(text), 1)));
        texts
    }

    /// Names and descriptions of further declarations that differ from the capability's own, without duplicates.
    fn texts_of_other_declarations(&self) -> BTreeSet<&str> {
        let Capability { name, description, title, .. } = self.capability;
        let excerpt = Excerpt::description_of(self.capability);
        let own = [Some(name.as_str()), description.as_deref(), title.as_deref(), excerpt];
        let texts = self.declarations.iter().flat_map(|declaration| &declaration.texts);
        texts.map(String::as_str).filter(|text| !own.contains(&Some(*text))).collect()
    }

    fn add_terms(&self, fields: &Fields, manifest: &ManifestText<'_>, document: &mut TantivyDocument) {
        let stemming = Stemming::for_language(&self.language);
        let mut terms = self.terms(manifest);
        let own = encoded(&terms.all, Part::Own);
        let site: Vec<u32> =
            manifest.site_words.iter().map(|word| stem_number(&stemming.term(word))).collect();
        let is_long = own.len().saturating_sub(site.len()) >= SKETCHED_STEMS_MIN;
        let fingerprint = if is_long { sketch(&own, &site) } else { hash(&self.own()) };
        document.add_u64(fields.sketch, fingerprint);
        document.add_u64(fields.name_number, hash(&without_separators(&self.capability.name)));
        document.add_u64(fields.address_number, self.address_number(manifest));
        let given = manifest.given.map(|examples| examples.of(&self.capability.id)).unwrap_or_default();
        let examples = self.capability.examples.iter().chain(given);
        let examples = joined_terms(examples.map(String::as_str), stemming);
        if !examples.is_empty() {
            terms.add_missing(&examples);
        }
        document.add_text(fields.all, &terms.all);
        document.add_text(fields.bigram, &terms.bigrams);
        // Each text is a separate value, so that no phrase spans two of them.
        for text in &terms.written {
            document.add_text(fields.word, text);
        }
        let others = [(&*examples, Part::Example), (&*manifest.about(stemming), Part::About)];
        let others = others.into_iter().flat_map(|(text, part)| encoded(text, part));
        for stem in own.into_iter().chain(others) {
            document.add_u64(fields.stems, stem);
        }
        for gram in self.grams(&manifest.site_words) {
            document.add_u64(fields.grams, u64::from(gram));
        }
        if self.spam == 0 {
            suggestions::add(manifest.stored, self.capability, &self.language, fields, document);
        } else {
            document.add_u64(fields.spam, self.spam);
        }
    }

    /// The number of the site that is called: the site of the address, or the site that serves the declaration if there is no address. The
    /// number also says whether this site declares the capability itself, which requires a document that it names, and who publishes that.
    fn address_number(&self, manifest: &ManifestText<'_>) -> u64 {
        let of_serving = match manifest.stored.publisher {
            _ if !manifest.stored.is_of_site() => AddressOf::Others,
            Publisher::Site => AddressOf::Site,
            Publisher::Host => AddressOf::Host,
            Publisher::Unknown => AddressOf::Users,
        };
        let serving = manifest.stored.manifest.url.site();
        let address = self.capability.invocation.endpoint();
        let called =
            address.and_then(|address| ManifestUrl::parse(address).ok()).map(|address| address.site());
        called.map_or_else(
            || number_of_address(&serving, of_serving),
            |called| {
                number_of_address(&called, if called == serving { of_serving } else { AddressOf::Others })
            },
        )
    }

    fn terms(&self, manifest: &ManifestText<'_>) -> Terms {
        let mut terms = Terms::new(Stemming::for_language(&self.language));
        for word in &manifest.site_words {
            terms.add_word(word, SITE_WEIGHT);
            terms.written.push(word.clone());
        }
        for (text, weight) in self.weighted() {
            terms.add_text(text, weight);
        }
        terms
    }

    /// The character grams of the name and the site.
    fn grams(&self, site_words: &[String]) -> BTreeSet<u16> {
        let own = words(&self.capability.name).map(|word| word.text).chain(site_words.iter().cloned());
        let own = own.filter(|word| !is_stop_word(word)).take(GRAM_WORDS_MAX);
        own.flat_map(|word| grams(&word).map(gram_number).collect::<Vec<_>>()).collect()
    }
}

/// Collects terms for several fields in one pass over the words.
struct Terms {
    stemming: Stemming,
    all: String,
    bigrams: String,
    /// The words of each text as written.
    written: Vec<String>,
    /// Characters of scripts without spaces.
    characters: BTreeSet<char>,
    count: usize,
}

impl Terms {
    fn new(stemming: Stemming) -> Self {
        Self {
            stemming,
            all: String::new(),
            bigrams: String::new(),
            written: Vec::new(),
            characters: BTreeSet::new(),
            count: 0,
        }
    }

    fn add_text(&mut self, text: &str, weight: usize) {
        let mut before: Option<String> = None;
        let mut written = String::new();
        for word in words(text) {
            push_term(&mut written, &word.text);
            if is_stop_word(&word.text) {
                continue;
            }
            let Some(stem) = self.add_word(&word.text, weight) else { break };
            if let Some(before) = before {
                push_term(&mut self.bigrams, &bigram(&before, &stem));
            }
            before = Some(stem);
        }
        if !written.is_empty() {
            self.written.push(written);
        }
    }

    /// Adds terms that the capability does not contain, once each, so that searches for them match. Ranking treats them as words of
    /// examples.
    fn add_missing(&mut self, terms: &str) {
        let known: HashSet<&str> = self.all.split(' ').collect();
        let missing: BTreeSet<&str> = terms.split(' ').filter(|term| !known.contains(term)).collect();
        let free = TERMS_MAX.saturating_sub(self.count);
        let missing: Vec<&str> = missing.into_iter().filter(|term| !term.is_empty()).take(free).collect();
        for term in missing {
            push_term(&mut self.all, term);
        }
    }

    /// Adds a word and returns its stem; `None` if the capability has [`TERMS_MAX`] terms already.
    fn add_word(&mut self, word: &str, weight: usize) -> Option<String> {
        if self.count >= TERMS_MAX {
            return None;
        }
        self.count += 1;
        let term = self.stemming.term(word);
        for _ in 0..weight {
            push_term(&mut self.all, &term);
        }
        // single characters can also be searched for
        for character in dense_characters(word) {
            if self.characters.insert(character) {
                push_term(&mut self.all, character.encode_utf8(&mut [0; 4]));
            }
        }
        Some(self.stemming.stem(word).into_owned())
    }
}

/// A name without separators, in lower case: `bookFlight` and `book_flight` become equal.
fn without_separators(name: &str) -> String {
    fold_exact(name).chars().filter(|c| c.is_alphanumeric()).collect()
}

fn push_term(joined: &mut String, term: &str) {
    if !joined.is_empty() {
        joined.push(' ');
    }
    joined.push_str(term);
}

/// The description, example requests and tags of a manifest, stemmed.
fn about(manifest: &Manifest, stemming: Stemming) -> String {
    let texts = manifest.description.iter().chain(&manifest.representative_queries).chain(&manifest.tags);
    joined_terms(texts.map(String::as_str), stemming)
}

fn joined_terms<'a>(texts: impl Iterator<Item = &'a str>, stemming: Stemming) -> String {
    let mut joined = String::new();
    let words = texts.flat_map(words).filter(|word| !is_stop_word(&word.text));
    for word in words.take(ABOUT_TERMS_MAX) {
        push_term(&mut joined, &stemming.term(&word.text));
    }
    joined
}

fn shortened(text: &str, bytes_max: usize) -> String {
    if text.len() <= bytes_max {
        return text.to_owned();
    }
    format!("{}…", text.get(..text.floor_char_boundary(bytes_max)).unwrap_or_default())
}

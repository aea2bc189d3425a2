//! Infers the semantic type of a capability (`namespace:type`, ATP section 3.5.2) if none is declared.
//!
//! A type is inferred only from a whole phrase: the id, the title, or the leading words of the description must consist of words of one
//! vocabulary entry, begin and end with such a word, and have at most one other word between. Ambiguous words need evidence: a word of the
//! same field in the capability or in the site's description of itself. A description is used only if the name does not have another
//! meaning. No type is inferred if a text merely contains the words, or if the HTTP method excludes the type. A declared type is never
//! changed.

mod lexicon;
mod phrase;
mod vocabulary;

#[cfg(test)]
mod tests;

use std::cell::RefCell;
use std::collections::HashMap;

use lexicon::Needs;
use phrase::Phrase;
use vocabulary::{Entry, VOCABULARY};

use crate::model::{Capability, Manifest, SemanticType, TypeSource};
use crate::text;

/// Confidence subtracted when the phrase comes from the description.
const DESCRIPTION_PENALTY: f64 = 0.05;
/// Maximum number of characters of a description that are used, because the first sentence describes the capability.
const DESCRIPTION_CHARS: usize = 160;
/// Maximum number of characters of the texts of a site that are searched for evidence.
const SITE_CHARS: usize = 240;
/// Maximum number of parameters of a capability whose names are searched for evidence.
const PARAMETERS_MAX: usize = 48;

/// The site's texts about itself, which are evidence for the meaning of ambiguous words.
#[derive(Debug, Default)]
struct Site {
    /// The words of its name.
    name: Vec<String>,
    texts: String,
    /// Cached evidence of its texts, by vocabulary entry.
    evidence: RefCell<HashMap<usize, Evidence>>,
}

/// Whether words near a phrase are evidence for an entry, and whether others are evidence against it.
#[derive(Debug, Clone, Copy, Default)]
struct Evidence {
    supported: bool,
    contradicted: bool,
}

impl Evidence {
    fn search(&mut self, text: &str, needs: &Needs) {
        text::each_word(text, |word| {
            self.supported = self.supported || needs.within.has(word);
            self.contradicted = self.contradicted || needs.unless.has(word);
        });
    }
}

impl Site {
    fn new(name: &str, description: &str) -> Self {
        let (name, description) = (text::capped(name, SITE_CHARS), text::capped(description, SITE_CHARS));
        let texts = [name, description].join(" ");
        Self { name: text::words(name), texts, evidence: RefCell::default() }
    }

    /// The evidence of its texts for an entry.
    fn evidence(&self, at: usize, needs: &Needs) -> Evidence {
        let mut known = self.evidence.borrow_mut();
        *known.entry(at).or_insert_with(|| {
            let mut evidence = Evidence::default();
            evidence.search(&self.texts, needs);
            evidence
        })
    }

    fn of(manifest: &Manifest) -> Self {
        let name = manifest.title.as_ref().or(manifest.name.as_ref());
        let name = name.map(String::as_str).unwrap_or_default();
        Self::new(name, manifest.description.as_deref().unwrap_or_default())
    }
}

/// Sets the type of each capability without one, if its texts imply a type.
pub(crate) fn infer(manifest: &mut Manifest) {
    if manifest.capabilities.is_empty() {
        return;
    }
    let site = Site::of(manifest);
    for capability in
        manifest.capabilities.iter_mut().filter(|capability| capability.semantic_types.is_empty())
    {
        capability.semantic_types.extend(inferred(capability, &site));
    }
}

fn inferred(capability: &Capability, site: &Site) -> Option<SemanticType> {
    let label = capability.title.as_deref().unwrap_or(&capability.name);
    // A path or a URN is the location of a capability, not a description.
    let id = Some(capability.native_id.as_str()).filter(|id| !id.contains(['/', ':']));
    let (id, label) = (id.map(text::folded_words), text::folded_words(label));
    // A label that repeats the id adds no evidence.
    let id = id.filter(|id| *id != label);
    let names: Vec<Phrase> = id.iter().chain([&label]).map(|words| Phrase::of(words, &site.name)).collect();
    let by_name = names.iter().filter_map(|phrase| best(phrase.entries(), capability, site)).reduce(surer);
    let found = by_name.map(|entry| (entry, 0.0, "semantic.name")).or_else(|| {
        let described = text::capped(capability.description.as_deref()?, DESCRIPTION_CHARS);
        let leading = Phrase::leading(described, &site.name);
        let agreed = leading.entries().filter(|at| names.iter().all(|name| name.agrees_with(*at)));
        let entry = best(agreed, capability, site)?;
        Some((entry, DESCRIPTION_PENALTY, "semantic.description"))
    });
    let (entry, penalty, rule) = found?;
    let confidence = ((entry.confidence - penalty) * 100.0).round() / 100.0;
    Some(implied(entry.name, confidence, rule))
}

/// The entry with the highest confidence that the evidence allows; among equals the first, because the vocabulary lists specific entries
/// first.
fn best(said: impl Iterator<Item = usize>, capability: &Capability, site: &Site) -> Option<&'static Entry> {
    said.fold(None, |best, at| {
        let Some(entry) = VOCABULARY.get(at) else { return best };
        let is_surer = best.is_none_or(|best: &Entry| entry.confidence > best.confidence);
        if is_surer && !is_excluded(entry, capability) && has_evidence(at, capability, site) {
            Some(entry)
        } else {
            best
        }
    })
}

fn surer<'e>(first: &'e Entry, other: &'e Entry) -> &'e Entry {
    if other.confidence > first.confidence { other } else { first }
}

/// Whether the method of a call excludes a type: a GET changes nothing that exists, and a DELETE only removes (RFC 9110 section 9). A GET
/// may create something: for example a page that accepts an order, or a resource that must be paid.
fn is_excluded(entry: &Entry, capability: &Capability) -> bool {
    let act = entry.name.rsplit(['-', ':']).next().unwrap_or_default();
    match capability.invocation.method.as_deref() {
        Some("GET" | "HEAD") => matches!(act, "cancel" | "delete" | "remove" | "update"),
        Some("DELETE") => matches!(act, "add" | "create" | "list" | "read" | "search" | "update" | "view"),
        _ => false,
    }
}

fn has_evidence(at: usize, capability: &Capability, site: &Site) -> bool {
    let Some(needs) = lexicon::needs(at) else { return false };
    if needs.within.is_empty() && needs.unless.is_empty() {
        return true;
    }
    let mut evidence = site.evidence(at, needs);
    if evidence.contradicted {
        return false;
    }
    let mut search = |text: &str| evidence.search(text, needs);
    search(&capability.native_id);
    search(capability.title.as_deref().unwrap_or(&capability.name));
    search(text::capped(capability.description.as_deref().unwrap_or_default(), DESCRIPTION_CHARS));
    capability.tags.iter().for_each(|tag| search(tag));
    let properties = capability.parameters.as_ref().and_then(|schema| schema.get("properties")?.as_object());
    properties.into_iter().flatten().take(PARAMETERS_MAX).for_each(|(name, _)| search(name));
    (evidence.supported || needs.within.is_empty()) && !evidence.contradicted
}

/// The namespace of a type: the part before the colon, or for an IRI everything before its last part. A publisher's
/// `https://acme.example/travel:book` is not in `travel`.
pub fn semantic_namespace(name: &str) -> Option<&str> {
    let is_iri = name.contains("://") || name.starts_with("urn:");
    let at = if is_iri { name.rfind(['#', '/', ':']) } else { name.find(':') };
    name.get(..at?)
}

/// A declared type.
pub(crate) fn declared(name: &str) -> SemanticType {
    SemanticType {
        name: text::capped(name, 100).to_ascii_lowercase(),
        source: TypeSource::Declared,
        confidence: 1.0,
        rule: None,
    }
}

/// A type that a dialect's own vocabulary implies.
pub(crate) fn implied(name: &str, confidence: f64, rule: &str) -> SemanticType {
    SemanticType {
        name: name.to_owned(),
        source: TypeSource::Inferred,
        confidence,
        rule: Some(rule.to_owned()),
    }
}

/// Every entry of the vocabulary, a type and the words that imply it: for documentation.
pub fn known_types() -> impl Iterator<Item = (&'static str, String)> {
    VOCABULARY.iter().map(|entry| (entry.name, entry.described()))
}

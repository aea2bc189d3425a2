//! Checks whether the example requests of a publisher find their capabilities.
//!
//! The index also contains the examples, so it finds a capability by the same request. This check tests whether the other texts of the
//! capability are enough, because people phrase the same request differently.

use std::collections::{BTreeSet, HashMap};

use chrono::DateTime;
use manifest::model::{Capability, Manifest, NamedBy, PolicyChoice, Publisher};
use policy::Status;
use serde::Serialize;
use store::StoredManifest;

use super::{CapabilityText, ManifestText};
use crate::analysis::{Stemming, is_chat_verb, is_stop_word, words};

/// Maximum number of checked examples of one manifest, and of one capability.
const EXAMPLES_MAX: usize = 100;
const EXAMPLES_OF_ONE_MAX: usize = 10;
/// Maximum number of capabilities of one manifest that are compared, and their terms.
const CAPABILITIES_MAX: usize = 500;
const TERMS_MAX: usize = 100_000;
/// Parameters of BM25.
const K1: f64 = 1.2;
const B: f64 = 0.75;

/// The result of a check.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ExampleCheck {
    /// How many examples were checked.
    pub checked: usize,
    /// Examples whose first result is not their capability.
    pub unfound: Vec<UnfoundExample>,
}

/// An example that does not find its capability before the other capabilities of its manifest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UnfoundExample {
    pub example: String,
    /// Name of its capability.
    pub capability: String,
    /// Rank of the capability, from 1; `None` if it contains no word of the example.
    pub place: Option<usize>,
    /// Name of the capability that is found first, if one is.
    pub first: Option<String>,
}

/// Checks the examples of a manifest without those in its capabilities' texts.
pub fn check_examples(manifest: &Manifest) -> ExampleCheck {
    let mut check = ExampleCheck::default();
    if manifest.capabilities.iter().all(|capability| capability.examples.is_empty()) {
        return check;
    }
    let seen = DateTime::UNIX_EPOCH;
    let stored = StoredManifest {
        manifest: manifest.clone(),
        training: PolicyChoice::Unset,
        named_by: NamedBy::Site,
        publisher: Publisher::Site,
        status: Status::Fresh,
        first_seen_at: seen,
        last_seen_at: seen,
        changed_at: seen,
        versions: 1,
        body_kept: false,
    };
    let Some(text) = ManifestText::of(&stored) else { return check };
    let compared = Compared::of(&text, &stored.manifest.capabilities);
    for (at, capability) in stored.manifest.capabilities.iter().take(compared.texts.len()).enumerate() {
        for example in capability.examples.iter().take(EXAMPLES_OF_ONE_MAX) {
            if check.checked >= EXAMPLES_MAX {
                return check;
            }
            check.checked += 1;
            let (place, first) = compared.place(at, example);
            if place != Some(1) {
                let name = |at: usize| stored.manifest.capabilities.get(at).map(|of| of.name.clone());
                let (example, capability) = (example.clone(), capability.name.clone());
                let first = first.and_then(name);
                check.unfound.push(UnfoundExample { example, capability, place, first });
            }
        }
    }
    check
}

/// The terms of one capability.
struct Counted {
    stemming: Stemming,
    counts: HashMap<String, u32>,
    length: u32,
}

/// The capabilities of a manifest.
struct Compared {
    texts: Vec<Counted>,
    /// Number of capabilities that contain each term.
    frequencies: HashMap<String, u32>,
    length: f64,
}

impl Compared {
    fn of(manifest: &ManifestText<'_>, capabilities: &[Capability]) -> Self {
        let (mut texts, mut frequencies, mut total) = (Vec::new(), HashMap::new(), 0);
        for capability in capabilities.iter().take(CAPABILITIES_MAX) {
            if total >= TERMS_MAX {
                break;
            }
            let text = CapabilityText::of(manifest, capability);
            let (mut counts, mut length) = (HashMap::new(), 0);
            for term in text.terms(manifest).all.split(' ').filter(|term| !term.is_empty()) {
                *counts.entry(term.to_owned()).or_insert(0) += 1;
                length += 1;
            }
            for term in counts.keys() {
                *frequencies.entry(term.clone()).or_insert(0) += 1;
            }
            total += usize::try_from(length).unwrap_or(usize::MAX);
            texts.push(Counted { stemming: Stemming::for_language(&text.language), counts, length });
        }
        let sum: f64 = texts.iter().map(|text| f64::from(text.length)).sum();
        let count = u32::try_from(texts.len().max(1)).unwrap_or(u32::MAX);
        Self { texts, frequencies, length: (sum / f64::from(count)).max(1.0) }
    }

    /// The rank of a capability for a request, and the index of the first result.
    fn place(&self, at: usize, request: &str) -> (Option<usize>, Option<usize>) {
        let scores: Vec<f64> = self.texts.iter().map(|text| self.score(text, request)).collect();
        let best = scores.iter().copied().fold(0.0, f64::max);
        let first = scores.iter().position(|score| best > 0.0 && *score >= best);
        let own = scores.get(at).copied().unwrap_or_default();
        let place = (own > 0.0).then(|| 1 + scores.iter().filter(|score| **score > own).count());
        (place, first)
    }

    fn score(&self, text: &Counted, request: &str) -> f64 {
        let wanted = words(request).filter(|word| !is_stop_word(&word.text) && !is_chat_verb(&word.text));
        let terms: BTreeSet<String> =
            wanted.map(|word| text.stemming.term(&word.text).into_owned()).collect();
        let all = f64::from(u32::try_from(self.texts.len()).unwrap_or(u32::MAX));
        let score = |term: &String| {
            let count = f64::from(*text.counts.get(term)?);
            let frequency = f64::from(*self.frequencies.get(term)?);
            let rarity = (1.0 + (all - frequency + 0.5) / (frequency + 0.5)).ln();
            let length = K1 * (1.0 - B + B * f64::from(text.length) / self.length);
            Some(rarity * count * (K1 + 1.0) / (count + length))
        };
        terms.iter().filter_map(score).sum()
    }
}

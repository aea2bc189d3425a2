//! The plan of a request: its words as terms, with the words of the index, and its filters, phrases and exclusions as conditions.

use super::admitted::Admitted;
use super::conditions::Conditions;
use super::deadline::Deadline;
use super::opened::OpenedIndex;
use super::phrasings::conditions;
use super::term_scores::rarity_of;
use crate::error::{IndexError, SearchError};
use crate::filter::Filters;
use crate::query::{Correction, ParsedQuery, Plan, REQUEST_ATTEMPTS_MAX, corrections};

/// What planning needs to know of the documents.
pub(super) trait Lookup {
    /// Number of documents with a term of the field `all`.
    fn word_count(&self, text: &str) -> tantivy::Result<u64>;

    /// Number of documents with a term of the field `bigram`.
    fn pair_count(&self, text: &str) -> tantivy::Result<u64>;

    fn documents(&self) -> u64;

    /// Whether any document satisfies some conditions.
    fn has_any(&self, conditions: &Conditions) -> Result<bool, SearchError>;
}

/// Looks up in an index on this machine.
pub(super) struct LocalLookup<'a> {
    pub(super) opened: &'a OpenedIndex,
    pub(super) deadline: Deadline,
}

impl Lookup for LocalLookup<'_> {
    fn word_count(&self, text: &str) -> tantivy::Result<u64> {
        Ok(self.opened.words.term(&self.opened.searcher, text)?.frequency)
    }

    fn pair_count(&self, text: &str) -> tantivy::Result<u64> {
        Ok(self.opened.bigrams.term(&self.opened.searcher, text)?.frequency)
    }

    fn documents(&self) -> u64 {
        self.opened.statistics.documents()
    }

    fn has_any(&self, conditions: &Conditions) -> Result<bool, SearchError> {
        let admitted = Admitted::of(self.opened, conditions, None, || self.deadline.tantivy_check());
        Ok(admitted.map_err(IndexError::engine("look a phrase up"))?.has_any(self.opened))
    }
}

/// A planned request.
pub(super) struct PlannedQuery {
    pub(super) phrasings: Vec<ParsedQuery>,
    /// The plans of the phrasings that have terms.
    pub(super) plans: Vec<Plan>,
    /// Corrections of the words of each plan.
    pub(super) corrections: Vec<Vec<Correction>>,
    pub(super) conditions: Conditions,
}

impl PlannedQuery {
    /// `dictionary` has the words, types and languages of the documents that are looked up.
    pub(super) fn of(
        dictionary: &OpenedIndex,
        lookup: &dyn Lookup,
        filters: &Filters,
        phrasings: Vec<ParsedQuery>,
        deadline: Deadline,
    ) -> Result<Self, SearchError> {
        let attempts_max = REQUEST_ATTEMPTS_MAX;
        let (plans, corrections) = plans(dictionary, lookup, &phrasings, attempts_max, deadline)?;
        let conditions = conditions(dictionary, lookup, filters, &phrasings, deadline)?;
        Ok(Self { phrasings, plans, corrections, conditions })
    }

    /// Whether the request has text, but no word that capabilities are searched by: punctuation, stop words and words that are too long.
    /// Such a request finds capabilities with exactly this name, and nothing else.
    pub(super) fn has_only_unsearchable_words(&self) -> bool {
        self.plans.is_empty() && self.phrasings.iter().any(|phrasing| !phrasing.text.trim().is_empty())
    }
}

/// The plans of the phrasings that have terms, and the corrections of each. Corrections are searched for at most this many words.
pub(super) fn plans(
    dictionary: &OpenedIndex,
    lookup: &dyn Lookup,
    phrasings: &[ParsedQuery],
    mut attempts_left: usize,
    deadline: Deadline,
) -> Result<(Vec<Plan>, Vec<Vec<Correction>>), SearchError> {
    let mut plans = Vec::with_capacity(phrasings.len());
    for phrasing in phrasings {
        let mut plan = Plan::of(&phrasing.text, &dictionary.word_weights);
        if plan.terms.is_empty() {
            continue;
        }
        let count = |text: &str| lookup.word_count(text);
        let documents = lookup.documents();
        let rarity = |frequency| rarity_of(frequency, documents);
        plan.add_variants(&dictionary.languages, count, rarity)
            .map_err(IndexError::engine("look a word up"))?;
        let check = || deadline.check();
        let corrections =
            corrections(&dictionary.searcher, &dictionary.fields, &plan.words, &mut attempts_left, check)?;
        let pairs = |text: &str| lookup.pair_count(text);
        plan.add_spellings(count, pairs).map_err(IndexError::engine("look a word up"))?;
        if corrections.is_empty() {
            plan.add_topical(count).map_err(IndexError::engine("look a word up"))?;
        }
        plan.add_intent(&phrasing.text);
        plan.add_corrections(&corrections);
        plan.add_translations();
        plan.add_synonyms();
        plan.add_times(&phrasing.text);
        plans.push((plan, corrections));
    }
    Ok(plans.into_iter().unzip())
}

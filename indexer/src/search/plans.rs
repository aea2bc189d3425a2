//! The plan of a request: its words as terms, with the words of the index, and its filters, phrases and exclusions as conditions.

use super::conditions::Conditions;
use super::deadline::Deadline;
use super::opened::OpenedIndex;
use super::phrasings::conditions;
use super::term_scores::rarity_of;
use crate::error::{IndexError, SearchError};
use crate::filter::Filters;
use crate::query::{Correction, ParsedQuery, Plan, REQUEST_ATTEMPTS_MAX, corrections};

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
    pub(super) fn of(
        opened: &OpenedIndex,
        filters: &Filters,
        phrasings: Vec<ParsedQuery>,
        deadline: Deadline,
    ) -> Result<Self, SearchError> {
        let (plans, corrections) = plans(opened, &phrasings, deadline)?;
        let conditions = conditions(opened, filters, &phrasings, deadline)?;
        Ok(Self { phrasings, plans, corrections, conditions })
    }

    /// Whether the request has text, but no word that capabilities are searched by: punctuation, stop words and words that are too long.
    /// Such a request finds capabilities with exactly this name, and nothing else.
    pub(super) fn has_only_unsearchable_words(&self) -> bool {
        self.plans.is_empty() && self.phrasings.iter().any(|phrasing| !phrasing.text.trim().is_empty())
    }
}

/// The plans of the phrasings that have terms, and the corrections of each.
fn plans(
    opened: &OpenedIndex,
    phrasings: &[ParsedQuery],
    deadline: Deadline,
) -> Result<(Vec<Plan>, Vec<Vec<Correction>>), SearchError> {
    let mut plans = Vec::with_capacity(phrasings.len());
    let mut attempts_left = REQUEST_ATTEMPTS_MAX;
    for phrasing in phrasings {
        let mut plan = Plan::of(&phrasing.text, &opened.word_weights);
        if plan.terms.is_empty() {
            continue;
        }
        let count = |text: &str| Ok(opened.words.term(&opened.searcher, text)?.frequency);
        let documents = opened.statistics.documents();
        let rarity = |frequency| rarity_of(frequency, documents);
        plan.add_variants(&opened.languages, count, rarity).map_err(IndexError::engine("look a word up"))?;
        let check = || deadline.check();
        let corrections =
            corrections(&opened.searcher, &opened.fields, &plan.words, &mut attempts_left, check)?;
        let pairs = |text: &str| Ok(opened.bigrams.term(&opened.searcher, text)?.frequency);
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

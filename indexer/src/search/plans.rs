//! The plans of the phrasings of a request, with the words of the index.

use super::deadline::Deadline;
use super::opened::OpenedIndex;
use super::term_scores::rarity_of;
use crate::error::{IndexError, SearchError};
use crate::query::{Correction, ParsedQuery, Plan, REQUEST_ATTEMPTS_MAX, corrections};

/// The plans of the phrasings that have terms, and the corrections of each.
pub(super) fn plans(
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

//! Chooses the terms that select candidates, and the documents that become candidates by their words.

use tantivy::{DocAddress, Score};

use super::accumulate::{Collect, TopDocuments, accumulate};
use super::admitted::Admitted;
use super::deadline::Deadline;
use super::opened::OpenedIndex;
use crate::query::{Plan, QueryTerm};
use crate::spam::SPAM_FACTOR;

/// Number of documents that are re-ranked.
pub(super) const WINDOW: usize = 200;
/// Maximum number of terms of a plan that select candidates; further synonyms are left out.
const SELECTING_TERMS_MAX: usize = 160;

pub(super) fn selecting(plan: &Plan) -> impl Iterator<Item = &QueryTerm> {
    plan.terms.iter().filter(|term| term.role.selects()).take(SELECTING_TERMS_MAX)
}

/// Whether the selection scores every term of a plan, and ranking needs only their sum.
pub(super) fn is_scored_by_selection(plan: &Plan) -> bool {
    plan.parts.is_empty() && plan.terms_that_select() <= SELECTING_TERMS_MAX
}

/// The best admitted documents by the words of the plans, best first, with spam after others of the same score, and the number of documents
/// that contain any of the words.
pub(super) fn select(
    opened: &OpenedIndex,
    plans: &[Plan],
    admitted: &Admitted,
    deadline: Deadline,
) -> tantivy::Result<(Vec<(Score, DocAddress)>, u64)> {
    let mut top = WithoutSpamFirst { opened, top: TopDocuments::new(WINDOW) };
    let terms = plans.iter().flat_map(selecting);
    let total = accumulate(opened, terms, admitted, &mut top, || deadline.tantivy_check())?;
    let mut selected = top.top.into_sorted();
    for (score, address) in &mut selected {
        if opened.is_spam(*address) {
            *score /= SPAM_FACTOR;
        }
    }
    Ok((selected, total))
}

/// Lowers the scores of spam during the selection, so that thousands of spam documents do not crowd out other candidates.
struct WithoutSpamFirst<'a> {
    opened: &'a OpenedIndex,
    top: TopDocuments,
}

impl Collect for WithoutSpamFirst<'_> {
    #[inline]
    fn threshold(&self) -> Score {
        self.top.threshold()
    }

    fn add(&mut self, score: Score, address: DocAddress) {
        let score = if self.opened.is_spam(address) { score * SPAM_FACTOR } else { score };
        if score > self.threshold() {
            self.top.add(score, address);
        }
    }
}

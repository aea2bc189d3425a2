//! Chooses the terms that select candidates, and the documents that become candidates by their words.

use tantivy::{DocAddress, Score};

use super::accumulate::{TopDocuments, accumulate};
use super::admitted::Admitted;
use super::deadline::Deadline;
use super::opened::OpenedIndex;
use crate::query::{Plan, QueryTerm};

/// Documents that are re-ranked.
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

/// The best admitted documents by the words of the plans, the best first, and how many documents have any.
pub(super) fn select(
    opened: &OpenedIndex,
    plans: &[Plan],
    admitted: &Admitted,
    deadline: Deadline,
) -> tantivy::Result<(Vec<(Score, DocAddress)>, u64)> {
    let mut top = TopDocuments::new(WINDOW);
    let terms = plans.iter().flat_map(selecting);
    let total = accumulate(opened, terms, admitted, &mut top, || deadline.tantivy_check())?;
    Ok((top.into_sorted(), total))
}

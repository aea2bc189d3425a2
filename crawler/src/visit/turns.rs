//! Selects the items of a longer list for a visit: each visit begins where the one before ended.

/// The hosts or documents of this visit. Names below a domain cost their owner nothing, so there may be any number of them; each visit
/// takes the next ones.
pub(super) fn in_turn<T: Clone>(items: Vec<T>, max: usize, visits: u32) -> impl Iterator<Item = T> {
    in_turn_by(items, max, max, visits)
}

/// Up to `max` items, each visit beginning `step` items later.
pub(super) fn in_turn_by<T: Clone>(
    items: Vec<T>,
    step: usize,
    max: usize,
    visits: u32,
) -> impl Iterator<Item = T> {
    let count = items.len();
    let turn = usize::try_from(visits).unwrap_or_default().saturating_mul(step);
    let first = if count > step { turn % count } else { 0 };
    items.into_iter().cycle().skip(first).take(count.min(max))
}

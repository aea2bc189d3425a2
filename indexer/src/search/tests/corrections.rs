//! Corrections of the words of a request.

use std::cell::Cell;

use super::sample_index;
use crate::lexicon::WordWeights;
use crate::query::{Plan, REQUEST_ATTEMPTS_MAX, corrections};

#[test]
fn searches_corrections_of_few_words_even_if_none_is_found() {
    let dir = tempfile::tempdir().unwrap();
    let opened = sample_index::opened(dir.path(), 1_000);
    let letter = |at: u32| char::from_u32(u32::from('a') + at).unwrap();
    let unknown = (0..64).map(|at| format!("xq{}{}zvwkj", letter(at / 26), letter(at % 26)));
    let text = unknown.collect::<Vec<_>>().join(" ");
    let plan = Plan::of(&text, &WordWeights::built_in());
    assert!(plan.words.len() > 30, "{}", plan.words.len());
    let mut left = REQUEST_ATTEMPTS_MAX;
    for expected in [4, 0, 0] {
        let checked = Cell::new(0);
        let check = || {
            checked.set(checked.get() + 1);
            Ok(())
        };
        let found = corrections(&opened.searcher, &opened.fields, &plan.words, &mut left, check).unwrap();
        assert!(found.is_empty() && checked.get() <= 4, "{}", checked.get());
        assert_eq!(left, expected);
    }
}

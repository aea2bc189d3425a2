//! A candidate contains all values that determine its rank, so a document without columns cannot shift the values of other documents.

use std::sync::Arc;

use super::super::executor::execute;
use super::super::phrasings::parse_phrasings;
use super::super::source::Source;
use super::sample_index::opened;
use crate::request::SearchRequest;

#[test]
#[expect(
    clippy::redundant_closure_for_method_calls,
    reason = "the method is not general enough over its lifetime"
)]
fn a_document_without_traits_does_not_shift_other_scores() {
    let dir = tempfile::tempdir().unwrap();
    let mut opened = opened(dir.path(), 400);
    let request = SearchRequest { phrasings: vec!["hotel room".to_owned()], ..SearchRequest::default() };
    let phrasings = || parse_phrasings(&request.phrasings).unwrap();
    let whole =
        execute(Source::Local(&opened), None, &request, phrasings(), |search| search.window()).unwrap();

    // in every segment, because documents spread over segments differently in each run
    for columns in &mut opened.columns {
        let traits = &mut Arc::get_mut(columns).unwrap().traits;
        traits.truncate(traits.len() / 4 * 3);
    }

    let window =
        execute(Source::Local(&opened), None, &request, phrasings(), |search| search.window()).unwrap();
    let mut compared = 0;
    for hit in &window.ranked {
        let mut known = whole.ranked.iter();
        if let Some(own) = known.find(|ranked| ranked.candidate.address == hit.candidate.address) {
            assert_eq!(hit.candidate, own.candidate);
            compared += 1;
        }
        let traits =
            opened.columns[hit.candidate.address.segment_ord as usize].traits(hit.candidate.address.doc_id);
        assert_eq!(traits, Some(hit.candidate.traits));
    }
    assert!(compared > 3, "{compared} of {} in both", window.ranked.len());
}

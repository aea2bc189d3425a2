//! Explanations as JSON values.

/// The parts of the score of a result that is explained.
pub(crate) fn explanation(hit: &indexer::Hit) -> serde_json::Value {
    serde_json::from_str(hit.explanation.as_ref().unwrap().as_str()).unwrap()
}

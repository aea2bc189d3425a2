//! Counts and limits of the budget.

use serde_json::{Value, json};

use super::*;

fn limits(depth: usize, nodes: usize, scalar_bytes: usize, tree_bytes: usize) -> Limits {
    Limits { depth, nodes, scalar_bytes, tree_bytes }
}

#[test]
fn counts_values_depth_and_text() {
    let text = json!({"a": [1, "two", null, {"b": "\\\"x"}], "c": true}).to_string();
    let spent = check_json(text.as_bytes(), DOCUMENT).unwrap().spent;
    assert_eq!(spent.nodes, 8);
    let measure = |limits| check_json(text.as_bytes(), limits).unwrap_err().measure;
    assert_eq!(measure(limits(2, 100, 1_000, 10_000)), Measure::Depth);
    assert_eq!(measure(limits(3, 7, 1_000, 10_000)), Measure::Nodes);
    assert_eq!(measure(limits(3, 8, 10, 10_000)), Measure::ScalarBytes);
    assert_eq!(measure(limits(3, 8, 1_000, 500)), Measure::TreeBytes);
    check_json(text.as_bytes(), limits(3, 8, 1_000, 10_000)).unwrap();
}

#[test]
fn error_names_the_limit_and_the_measured_value() {
    let over = check_json(b"[1, 2, 3]", limits(1, 3, 100, 10_000)).unwrap_err();
    assert_eq!(over.to_string(), "the document has at least 4 values; the limit is 3");
}

#[test]
fn accepts_any_bytes() {
    for text in ["", "]]]]", "\"", "\"\\", "{\"a", "nul", "\u{0}", "[1 2 \"x\" : }"] {
        check_json(text.as_bytes(), DOCUMENT).unwrap();
    }
}

#[test]
fn stops_counting_a_copy_at_the_limit() {
    let value = json!({"a": vec!["x".repeat(100); 1_000]});
    let all = bytes_of(&value, usize::MAX);
    assert!(all > 100 * 1_000, "{all}");
    assert!(bytes_of(&value, 1_000) < 2_000);
}

#[test]
fn distinguishes_over_budget_bodies_from_invalid_json() {
    let deep = "[".repeat(200);
    assert!(matches!(parse_within_budget::<Value>(deep.as_bytes(), &BODY), Err(BodyError::OverBudget(_))));
    assert!(matches!(parse_within_budget::<Value>(b"[1,]", &BODY), Err(BodyError::Json(_))));
    assert_eq!(parse_within_budget::<Value>(b"[1]", &BODY).unwrap(), json!([1]));
}

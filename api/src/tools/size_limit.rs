//! Limits results to a size that a model can read.

use serde_json::Value;

/// Maximum number of bytes of JSON in one result: about four thousand tokens, a small part of any model's context window.
pub(super) const ANSWER_BYTES_MAX: usize = 16_000;

/// Size of a value as compact JSON, in bytes.
pub(super) fn size(value: &Value) -> usize {
    serde_json::to_vec(value).map_or(usize::MAX, |bytes| bytes.len())
}

/// Keeps the rows that fit, at least the first; true if some were removed.
pub(super) fn keep_fitting(rows: &mut Vec<Value>, bytes_max: usize) -> bool {
    let mut used = 0;
    let fitting = rows.iter().take_while(|row| {
        used += size(row) + 1;
        used <= bytes_max
    });
    let count = fitting.count().max(1);
    let is_cut = count < rows.len();
    rows.truncate(count);
    is_cut
}

/// Removes members in the given order until the object fits; returns the removed ones.
pub(super) fn drop_members(
    object: &mut Value,
    members: &[&'static str],
    bytes_max: usize,
) -> Vec<&'static str> {
    let mut gone = Vec::new();
    for member in members {
        if size(object) <= bytes_max {
            break;
        }
        if let Some(value) = object.get_mut(*member).filter(|value| !value.is_null()) {
            *value = Value::Null;
            gone.push(*member);
        }
    }
    gone
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn keeps_rows_that_fit_and_at_least_one() {
        let mut rows = vec![json!("x".repeat(40)); 5];
        assert!(keep_fitting(&mut rows, 100));
        assert_eq!(rows.len(), 2);
        assert!(!keep_fitting(&mut rows, 100));
        assert!(keep_fitting(&mut rows, 10));
        assert_eq!(rows.len(), 1);
        assert!(!keep_fitting(&mut Vec::new(), 10));
    }

    #[test]
    fn removes_only_as_many_members_as_needed() {
        let mut object = json!({"a": "x".repeat(50), "b": "y".repeat(50), "c": 1});
        assert_eq!(drop_members(&mut object, &["b", "a"], 90), ["b"]);
        assert_eq!(object["b"], Value::Null);
        assert!(drop_members(&mut object, &["b", "a"], 90).is_empty());
    }
}

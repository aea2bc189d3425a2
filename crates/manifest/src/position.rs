//! Line and column of a JSON pointer, computed only when a finding is shown: a second scan that keeps nothing.

use std::collections::HashMap;

use serde_json::value::RawValue;

use crate::bytes::{Decoded, decode};

/// The place of the value that a JSON pointer names: line and column from 1, columns in characters.
///
/// `None` when the bytes are not JSON or the pointer leads nowhere.
pub fn position(bytes: &[u8], pointer: &str) -> Option<(usize, usize)> {
    let Decoded::Text(text, _) = decode(bytes) else { return None };
    let mut raw: &RawValue = serde_json::from_str(text).ok()?;
    for step in pointer.split('/').skip(1) {
        raw = child(raw, &step.replace("~1", "/").replace("~0", "~"))?;
    }
    // The raw value borrows from `text`, so the distance of the two addresses is its offset.
    let offset = raw.get().as_ptr().addr().checked_sub(text.as_ptr().addr())?;
    let before = text.get(..offset)?;
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    let line = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
    Some((line, before.get(line_start..)?.chars().count() + 1))
}

fn child<'t>(raw: &'t RawValue, step: &str) -> Option<&'t RawValue> {
    match raw.get().as_bytes().first()? {
        b'{' => serde_json::from_str::<HashMap<String, &RawValue>>(raw.get()).ok()?.remove(step),
        b'[' => {
            serde_json::from_str::<Vec<&RawValue>>(raw.get()).ok()?.get(step.parse::<usize>().ok()?).copied()
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pointers_lead_to_lines_and_columns() {
        let bytes = "\u{feff}{\n  \"ä\": [1,\n    {\"a/b\": true}]\n}".as_bytes();
        assert_eq!(position(bytes, ""), Some((1, 1)));
        assert_eq!(position(bytes, "/ä/0"), Some((2, 9)));
        assert_eq!(position(bytes, "/ä/1/a~1b"), Some((3, 13)));
        assert_eq!(position(bytes, "/none"), None);
        assert_eq!(position(b"{", ""), None);
    }
}

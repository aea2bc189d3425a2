//! ai.txt: no specification holds it together. What is read are the addresses in it and, in robots-like files, the name.

use crate::draft::{self, Draft};
use crate::format::addresses;

/// Lines that are read.
const LINES_MAX: usize = 5_000;

pub(crate) fn read(text: &str, draft: &mut Draft<'_>) {
    for line in text.lines().take(LINES_MAX).map(str::trim) {
        if draft.manifest.name.is_none() {
            draft.manifest.name = named(line).and_then(|name| draft::name(Some(name)));
        }
        addresses::keep_line(line, draft);
    }
}

fn named(line: &str) -> Option<&str> {
    if let Some(title) = line.strip_prefix("# ") {
        return (!title.contains("://")).then_some(title);
    }
    let (key, value) = line.split_once(':')?;
    matches!(key.to_ascii_lowercase().as_str(), "name" | "product" | "site-name").then_some(value.trim())
}

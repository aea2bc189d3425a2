//! Labelled numbers, and bar charts of counts with links.

use super::labels;

/// A bar of a chart with a link.
#[derive(Debug)]
pub(crate) struct Bar {
    pub(crate) text: String,
    pub(crate) href: String,
    pub(crate) count: u64,
    pub(crate) count_text: String,
    pub(crate) most: u64,
}

/// Bars of counts, scaled to the largest one.
pub(crate) fn bars(rows: impl IntoIterator<Item = (String, String, u64)>) -> Vec<Bar> {
    let rows: Vec<(String, String, u64)> = rows.into_iter().collect();
    let most = rows.iter().map(|(_, _, count)| *count).max().unwrap_or(1).max(1);
    let bar = |(text, href, count)| Bar { text, href, count, count_text: labels::grouped(count), most };
    rows.into_iter().map(bar).collect()
}

/// A labelled number.
pub(crate) struct Number {
    pub(crate) name: &'static str,
    pub(crate) text: String,
}

pub(crate) fn number(name: &'static str, count: u64) -> Number {
    Number { name, text: labels::grouped(count) }
}

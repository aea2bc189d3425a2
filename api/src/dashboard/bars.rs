//! Numbers with a name, and bars of counted values, each with a link.

use super::labels;

/// A bar of a chart that leads somewhere.
#[derive(Debug)]
pub(crate) struct Bar {
    pub(crate) text: String,
    pub(crate) href: String,
    pub(crate) count: u64,
    pub(crate) count_text: String,
    pub(crate) most: u64,
}

/// Bars from counted values; the longest is the largest of them.
pub(crate) fn bars(rows: impl IntoIterator<Item = (String, String, u64)>) -> Vec<Bar> {
    let rows: Vec<(String, String, u64)> = rows.into_iter().collect();
    let most = rows.iter().map(|(_, _, count)| *count).max().unwrap_or(1).max(1);
    let bar = |(text, href, count)| Bar { text, href, count, count_text: labels::grouped(count), most };
    rows.into_iter().map(bar).collect()
}

/// A number with its name.
pub(crate) struct Number {
    pub(crate) name: &'static str,
    pub(crate) text: String,
}

pub(crate) fn number(name: &'static str, count: u64) -> Number {
    Number { name, text: labels::grouped(count) }
}

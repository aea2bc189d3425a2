//! Lines of `Key: value`, grouped by indentation: the common part of the grammars of agents.txt.
//!
//! Follows agents.txt 1.0 §3.1: `#` begins a comment line, keys are case-insensitive, a line indented by two spaces or a
//! tab belongs to the block above it.

use super::LINES_MAX;

/// One line that is neither blank nor a comment.
pub(super) struct Line<'t> {
    /// 0 for the first line of a block, 1 for an indented line.
    pub(super) indent: u8,
    /// Lower case.
    pub(super) key: String,
    pub(super) value: &'t str,
}

/// The lines of a text that have a key.
pub(super) fn lines(text: &str) -> Vec<Line<'_>> {
    text.lines().take(LINES_MAX).filter_map(line).collect()
}

fn line(text: &str) -> Option<Line<'_>> {
    let trimmed = text.trim();
    if trimmed.is_empty() || trimmed.starts_with('#') {
        return None;
    }
    let (key, value) = trimmed.split_once(':')?;
    let plain = key.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
    if key.is_empty() || !plain {
        return None;
    }
    let indent = u8::from(text.starts_with("  ") || text.starts_with('\t'));
    Some(Line { indent, key: key.to_ascii_lowercase(), value: value.trim() })
}

/// A block: its first line, and the indented lines that belong to it.
pub(super) struct Block<'l, 't> {
    pub(super) head: &'l Line<'t>,
    pub(super) body: &'l [Line<'t>],
}

impl<'t> Block<'_, 't> {
    /// The value of a member, the first one where it is repeated.
    pub(super) fn get(&self, key: &str) -> Option<&'t str> {
        self.all(key).next()
    }

    pub(super) fn all(&self, key: &str) -> impl Iterator<Item = &'t str> {
        self.body
            .iter()
            .filter(move |line| line.key == key)
            .map(|line| line.value)
            .filter(|value| !value.is_empty())
    }
}

/// Splits lines into blocks. Indented lines before the first block are dropped.
pub(super) fn blocks<'l, 't>(lines: &'l [Line<'t>]) -> Vec<Block<'l, 't>> {
    let heads: Vec<usize> =
        lines.iter().enumerate().filter(|(_, line)| line.indent == 0).map(|(at, _)| at).collect();
    let ends = heads.iter().skip(1).copied().chain(std::iter::once(lines.len()));
    heads
        .iter()
        .zip(ends)
        .filter_map(|(start, end)| Some(Block { head: lines.get(*start)?, body: lines.get(start + 1..end)? }))
        .collect()
}

/// The parts of a list with commas.
pub(super) fn listed(value: &str) -> impl Iterator<Item = &str> {
    value.split(',').map(str::trim).filter(|part| !part.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_indented_lines_with_the_block_above() {
        let lines = lines(
            "  Stray: 1\n# note\nSite-Name: Shop\nCapability: find\n  Method: GET\n\tParam: a\n  Param: b\n\nno key here\n",
        );
        let blocks = blocks(&lines);
        assert_eq!(blocks.len(), 2);
        let find = &blocks[1];
        assert_eq!((find.head.key.as_str(), find.head.value), ("capability", "find"));
        assert_eq!(find.get("method"), Some("GET"));
        assert_eq!(find.all("param").collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(listed("a, b,,c").collect::<Vec<_>>(), ["a", "b", "c"]);
    }
}

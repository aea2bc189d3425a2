//! Cursors: the start of the next page.
//!
//! The first pages contain the re-ranked documents. Their cursors list the documents that were already returned, so that no document is
//! repeated even if a commit has moved it. Cursors of later pages, and of other sort orders, contain the position of the last document. A
//! cursor is bound to its query, and to the versions of schema and ranking.

use data_encoding::BASE64URL_NOPAD;

use super::order::{Key, Position};
use crate::error::CursorError;
use crate::index::{RANKING_VERSION, SCHEMA_VERSION};

/// Maximum length of a cursor in bytes. It contains the returned documents, or a name of up to 200 characters, each of which takes up to 34
/// bytes when folded.
pub const CURSOR_BYTES_MAX: usize = 10_240;
/// Maximum number of re-ranked documents on all pages of a query. A single commit has fewer, but commits between pages may add some.
/// Documents beyond this number are sorted by their text scores, so that paging ends.
pub(super) const SEEN_MAX: usize = 1_000;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Cursor {
    /// [`short_tie`](super::order::short_tie) of each re-ranked document that was returned.
    pub(super) seen: Vec<u32>,
    /// Position of the last document, once the re-ranked ones are exhausted.
    pub(super) position: Option<Position>,
    /// Whether the re-ranked documents are exhausted.
    pub(super) is_beyond: bool,
}

impl Cursor {
    pub(super) fn write(&self, query: u64) -> String {
        let mut bytes = Vec::with_capacity(32 + self.seen.len() * 4);
        bytes.extend(version());
        bytes.extend(query.to_le_bytes());
        bytes.push(u8::from(self.is_beyond));
        bytes.extend(u16::try_from(self.seen.len()).unwrap_or(u16::MAX).to_le_bytes());
        for tie in self.seen.iter().take(usize::from(u16::MAX)) {
            bytes.extend(tie.to_le_bytes());
        }
        if let Some(Position { key, tie }) = &self.position {
            bytes.extend(tie.to_le_bytes());
            match key {
                Key::Number(number) => {
                    bytes.push(b'n');
                    bytes.extend(number.to_le_bytes());
                }
                Key::Text(text) => {
                    bytes.push(b't');
                    bytes.extend(text.as_bytes());
                }
            }
        }
        BASE64URL_NOPAD.encode(&bytes)
    }

    pub(super) fn read(text: &str, query: u64) -> Result<Self, CursorError> {
        if text.len() > CURSOR_BYTES_MAX {
            return Err(CursorError::Malformed);
        }
        let bytes = BASE64URL_NOPAD.decode(text.as_bytes()).map_err(|_| CursorError::Malformed)?;
        let mut rest = bytes.as_slice();
        if take::<4>(&mut rest)? != version() {
            return Err(CursorError::Expired);
        }
        if u64::from_le_bytes(take(&mut rest)?) != query {
            return Err(CursorError::OtherQuery);
        }
        let [is_beyond] = take(&mut rest)?;
        let count = u16::from_le_bytes(take(&mut rest)?);
        let mut seen = Vec::with_capacity(usize::from(count));
        for _ in 0..count {
            seen.push(u32::from_le_bytes(take(&mut rest)?));
        }
        let position = if rest.is_empty() { None } else { Some(read_position(rest)?) };
        Ok(Self { seen, position, is_beyond: is_beyond != 0 })
    }
}

fn read_position(mut rest: &[u8]) -> Result<Position, CursorError> {
    let tie = u64::from_le_bytes(take(&mut rest)?);
    let key = match take::<1>(&mut rest)? {
        [b'n'] => Key::Number(u64::from_le_bytes(take(&mut rest)?)),
        [b't'] => {
            let text = std::str::from_utf8(rest).map_err(|_| CursorError::Malformed)?;
            Key::Text(text.to_owned())
        }
        _ => return Err(CursorError::Malformed),
    };
    Ok(Position { key, tie })
}

fn version() -> [u8; 4] {
    let [a, b] = RANKING_VERSION.to_le_bytes();
    let [c, d, ..] = SCHEMA_VERSION.to_le_bytes();
    [a, b, c, d]
}

fn take<const N: usize>(rest: &mut &[u8]) -> Result<[u8; N], CursorError> {
    let (head, tail) = rest.split_first_chunk::<N>().ok_or(CursorError::Malformed)?;
    *rest = tail;
    Ok(*head)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_cursor_is_bound_to_its_query_and_version() {
        let position = Some(Position { key: Key::Text("book seat".into()), tie: 7 });
        let cursor = Cursor { seen: vec![1, u32::MAX], position, is_beyond: true };
        let text = cursor.write(42);
        assert_eq!(Cursor::read(&text, 42), Ok(cursor));
        assert_eq!(Cursor::read(&text, 43), Err(CursorError::OtherQuery));
        assert_eq!(Cursor::read("AAAA", 42), Err(CursorError::Malformed));
        let mut bytes = BASE64URL_NOPAD.decode(text.as_bytes()).unwrap();
        bytes[0] ^= 1;
        assert_eq!(Cursor::read(&BASE64URL_NOPAD.encode(&bytes), 42), Err(CursorError::Expired));
    }

    #[test]
    fn cursor_of_any_page_is_accepted() {
        let longest = "\u{fdfa}".repeat(200);
        for (seen, name) in [(SEEN_MAX + 100, "x".to_owned()), (0, crate::analysis::fold_exact(&longest))] {
            let seen = (0..u32::try_from(seen).unwrap()).collect();
            let position = Some(Position { key: Key::Text(name), tie: u64::MAX });
            let cursor = Cursor { seen, position, is_beyond: true };
            let text = cursor.write(42);
            assert!(text.len() <= CURSOR_BYTES_MAX, "{}", text.len());
            assert_eq!(Cursor::read(&text, 42), Ok(cursor));
        }
    }

    proptest! {
        #[test]
        fn rejects_any_other_text(text in "[A-Za-z0-9_-]{0,200}") {
            prop_assert!(Cursor::read(&text, 1).is_err());
        }
    }
}

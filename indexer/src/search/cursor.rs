//! Cursors: where a walk over results goes on.
//!
//! A walk begins among the documents that are looked at closely; a cursor there carries which of them were answered, so
//! that none comes twice even when a commit has moved them. Beyond, and in every other order, it carries the last place.
//! It is bound to the query, and to the versions of schema and ranking.

use data_encoding::BASE64URL_NOPAD;

use super::order::{Key, Place};
use crate::error::CursorProblem;
use crate::index::{RANKING_VERSION, SCHEMA_VERSION};

/// Longest cursor that is read: all documents of the window, or the longest name.
const CURSOR_BYTES_MAX: usize = 8_192;

/// Where a walk stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Cursor {
    /// Short ties of the documents of the window that were answered.
    pub(super) seen: Vec<u32>,
    /// The last place in a total order, once the window is behind.
    pub(super) place: Option<Place>,
    /// Beyond the window.
    pub(super) is_beyond: bool,
}

/// Enough of a tie to tell two hundred documents apart.
#[expect(clippy::cast_possible_truncation, reason = "the low half of a hash is a hash")]
pub(super) fn short_tie(tie: u64) -> u32 {
    (tie ^ (tie >> 32)) as u32
}

impl Cursor {
    pub(super) fn write(&self, query: u64) -> String {
        let mut bytes = Vec::with_capacity(32 + self.seen.len() * 4);
        bytes.extend(version());
        bytes.extend(query.to_le_bytes());
        bytes.push(u8::from(self.is_beyond));
        bytes.push(u8::try_from(self.seen.len()).unwrap_or(u8::MAX));
        for tie in self.seen.iter().take(usize::from(u8::MAX)) {
            bytes.extend(tie.to_le_bytes());
        }
        if let Some(Place { key, tie }) = &self.place {
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

    pub(super) fn read(text: &str, query: u64) -> Result<Self, CursorProblem> {
        if text.len() > CURSOR_BYTES_MAX {
            return Err(CursorProblem::Malformed);
        }
        let bytes = BASE64URL_NOPAD.decode(text.as_bytes()).map_err(|_| CursorProblem::Malformed)?;
        let mut rest = bytes.as_slice();
        if take::<4>(&mut rest)? != version() {
            return Err(CursorProblem::Gone);
        }
        if u64::from_le_bytes(take(&mut rest)?) != query {
            return Err(CursorProblem::OtherQuery);
        }
        let [is_beyond, count] = take(&mut rest)?;
        let mut seen = Vec::with_capacity(usize::from(count));
        for _ in 0..count {
            seen.push(u32::from_le_bytes(take(&mut rest)?));
        }
        let place = if rest.is_empty() { None } else { Some(read_place(rest)?) };
        Ok(Self { seen, place, is_beyond: is_beyond != 0 })
    }
}

fn read_place(mut rest: &[u8]) -> Result<Place, CursorProblem> {
    let tie = u64::from_le_bytes(take(&mut rest)?);
    let key = match take::<1>(&mut rest)? {
        [b'n'] => Key::Number(u64::from_le_bytes(take(&mut rest)?)),
        [b't'] => {
            let text = std::str::from_utf8(rest).map_err(|_| CursorProblem::Malformed)?;
            Key::Text(text.to_owned())
        }
        _ => return Err(CursorProblem::Malformed),
    };
    Ok(Place { key, tie })
}

fn version() -> [u8; 4] {
    let [a, b] = RANKING_VERSION.to_le_bytes();
    let [c, d, ..] = SCHEMA_VERSION.to_le_bytes();
    [a, b, c, d]
}

fn take<const N: usize>(rest: &mut &[u8]) -> Result<[u8; N], CursorProblem> {
    let (head, tail) = rest.split_first_chunk::<N>().ok_or(CursorProblem::Malformed)?;
    *rest = tail;
    Ok(*head)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_cursor_reads_back_and_is_bound_to_its_query_and_version() {
        let place = Place { key: Key::Text("book seat".into()), tie: 7 };
        let cursor = Cursor { seen: vec![1, u32::MAX], place: Some(place), is_beyond: true };
        let text = cursor.write(42);
        assert_eq!(Cursor::read(&text, 42), Ok(cursor));
        assert_eq!(Cursor::read(&text, 43), Err(CursorProblem::OtherQuery));
        assert_eq!(Cursor::read("AAAA", 42), Err(CursorProblem::Malformed));
        let mut bytes = BASE64URL_NOPAD.decode(text.as_bytes()).unwrap();
        bytes[0] ^= 1;
        assert_eq!(Cursor::read(&BASE64URL_NOPAD.encode(&bytes), 42), Err(CursorProblem::Gone));
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "[A-Za-z0-9_-]{0,200}") {
            prop_assert!(Cursor::read(&text, 1).is_err());
        }
    }
}

//! Which capabilities have a word: how many, and where the index lists them. Asked for every word of every request, and the
//! same until the next commit.

use std::sync::{Arc, PoisonError, RwLock};

use rustc_hash::FxHashMap;
use tantivy::postings::TermInfo;
use tantivy::schema::Field;
use tantivy::{Searcher, SegmentOrdinal, Term};

/// Words that are kept: more than people use. Most are in few segments and take some hundred octets; in each of eight, they
/// all would take six megabytes.
const KEPT_MAX: usize = 20_000;

/// What the index has of one term.
#[derive(Debug, Default)]
pub(super) struct KnownTerm {
    /// Capabilities that have it, deleted ones that are still there included.
    pub(super) frequency: u64,
    listed: Vec<Listed>,
}

/// Where the documents of one segment are listed that have a term.
#[derive(Debug)]
struct Listed {
    segment: SegmentOrdinal,
    documents: u32,
    from: usize,
    to: usize,
}

impl KnownTerm {
    fn look_up(searcher: &Searcher, field: Field, text: &str) -> tantivy::Result<Self> {
        let term = Term::from_field_text(field, text);
        let mut known = Self::default();
        for (segment, ordinal) in searcher.segment_readers().iter().zip(0..) {
            let Some(info) = segment.inverted_index(field)?.get_term_info(&term)? else { continue };
            known.frequency += u64::from(info.doc_freq);
            known.listed.push(Listed {
                segment: ordinal,
                documents: info.doc_freq,
                from: info.postings_range.start,
                to: info.postings_range.end,
            });
        }
        Ok(known)
    }

    /// Where its documents of one segment are listed, if any has it. Their places in the text are left out.
    pub(super) fn in_segment(&self, ordinal: SegmentOrdinal) -> Option<TermInfo> {
        let listed = self.listed.iter().find(|listed| listed.segment == ordinal)?;
        Some(TermInfo {
            doc_freq: listed.documents,
            postings_range: listed.from..listed.to,
            positions_range: 0..0,
        })
    }
}

/// The terms of one field.
#[derive(Debug)]
pub(crate) struct Frequencies {
    field: Field,
    kept: RwLock<FxHashMap<String, Arc<KnownTerm>>>,
}

impl Frequencies {
    pub(crate) fn in_field(field: Field) -> Self {
        Self { field, kept: RwLock::default() }
    }

    /// The frequency of each term; none of what is no term.
    pub(crate) fn of<'a>(
        &self,
        searcher: &Searcher,
        terms: impl Iterator<Item = Option<&'a str>>,
    ) -> tantivy::Result<Vec<u64>> {
        let frequency = |term: Option<&str>| {
            term.map_or(Ok(0), |term| self.term(searcher, term).map(|known| known.frequency))
        };
        terms.map(frequency).collect()
    }

    /// What the index has of a term.
    pub(super) fn term(&self, searcher: &Searcher, text: &str) -> tantivy::Result<Arc<KnownTerm>> {
        let has_room = {
            let kept = self.kept.read().unwrap_or_else(PoisonError::into_inner);
            if let Some(known) = kept.get(text) {
                return Ok(Arc::clone(known));
            }
            kept.len() < KEPT_MAX
        };
        let known = Arc::new(KnownTerm::look_up(searcher, self.field, text)?);
        if has_room {
            let mut kept = self.kept.write().unwrap_or_else(PoisonError::into_inner);
            kept.insert(text.to_owned(), Arc::clone(&known));
        }
        Ok(known)
    }
}

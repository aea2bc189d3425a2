//! What ranking reads of every candidate, by segment.

use std::sync::Arc;

use tantivy::columnar::Column;
use tantivy::fieldnorm::FieldNormReader;
use tantivy::index::{InvertedIndexReader, SegmentId};
use tantivy::schema::Field;
use tantivy::{DocId, Searcher, SegmentReader};

use super::admitted::KeptBits;
use crate::index::Fields;
use crate::query::Role;

/// What is known of the documents of one segment beside their text.
pub(crate) struct Columns {
    segment: SegmentId,
    /// Of every document; 32 octets each.
    traits: Vec<KeptTraits>,
    pub(crate) first_seen_ms: Column<i64>,
    /// The stems of each document, as numbers.
    pub(crate) stems: Column<u64>,
    /// The character grams of its names, as numbers.
    pub(crate) grams: Column<u64>,
    /// Which documents have a word, and a pair of words.
    pub(super) words: Lists,
    pub(super) pairs: Lists,
    pub(super) kept_bits: KeptBits,
}

/// The postings of one field, and how long its documents are.
pub(super) struct Lists {
    pub(super) postings: Arc<InvertedIndexReader>,
    pub(super) lengths: FieldNormReader,
}

impl Lists {
    fn of(segment: &SegmentReader, field: Field) -> tantivy::Result<Self> {
        Ok(Self { postings: segment.inverted_index(field)?, lengths: segment.get_fieldnorms_reader(field)? })
    }
}

/// What decides an order beside the text. Kept side by side in memory: as columns of the index they would lie in four places
/// of a file, each of them far from what was read last.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KeptTraits {
    pub(crate) tie: u64,
    pub(crate) site: u64,
    pub(crate) text: u64,
    pub(crate) prior: f32,
}

impl Columns {
    /// The columns of every segment; those of segments that were there before are taken over.
    pub(super) fn of(
        searcher: &Searcher,
        fields: &Fields,
        before: &[Arc<Self>],
    ) -> tantivy::Result<Vec<Arc<Self>>> {
        let of_segment = |segment: &SegmentReader| {
            let known = before.iter().find(|columns| columns.segment == segment.segment_id());
            known.map_or_else(|| Self::open(segment, fields).map(Arc::new), |known| Ok(Arc::clone(known)))
        };
        searcher.segment_readers().iter().map(of_segment).collect()
    }

    /// Where terms of this role are listed.
    pub(super) fn lists(&self, role: Role) -> &Lists {
        if role == Role::Bigram { &self.pairs } else { &self.words }
    }

    /// What is known of one document.
    pub(super) fn traits(&self, document: DocId) -> Option<KeptTraits> {
        self.traits.get(document as usize).copied()
    }

    fn open(segment: &SegmentReader, fields: &Fields) -> tantivy::Result<Self> {
        let fast = segment.fast_fields();
        Ok(Self {
            segment: segment.segment_id(),
            traits: traits(segment)?,
            first_seen_ms: fast.i64("first_seen_ms")?,
            stems: fast.u64("stems")?,
            grams: fast.u64("grams")?,
            words: Lists::of(segment, fields.all)?,
            pairs: Lists::of(segment, fields.bigram)?,
            kept_bits: KeptBits::default(),
        })
    }
}

fn traits(segment: &SegmentReader) -> tantivy::Result<Vec<KeptTraits>> {
    let fast = segment.fast_fields();
    let (tie, site, text) = (fast.u64("tie")?, fast.u64("site_number")?, fast.u64("text_number")?);
    let prior = fast.f64("prior")?;
    let number = |column: &Column<u64>, document: DocId| column.first(document).unwrap_or(0);
    #[expect(clippy::cast_possible_truncation, reason = "a factor near one")]
    let of_document = |document: DocId| KeptTraits {
        tie: number(&tie, document),
        site: number(&site, document),
        text: number(&text, document),
        prior: prior.first(document).unwrap_or(1.0) as f32,
    };
    Ok((0..segment.max_doc()).map(of_document).collect())
}

//! The columns that ranking reads for every candidate, by segment.

use std::sync::Arc;

use fixedbitset::FixedBitSet;
use tantivy::columnar::Column;
use tantivy::fieldnorm::FieldNormReader;
use tantivy::index::{InvertedIndexReader, SegmentId};
use tantivy::schema::Field;
use tantivy::{DocId, Searcher, SegmentReader};

use super::publishers::SegmentPublishers;
use super::term_bits::TermBits;
use crate::index::Fields;
use crate::query::Role;

/// The documents of one segment.
pub(crate) struct Columns {
    segment: SegmentId,
    /// Traits of every document; 48 bytes each.
    pub(super) traits: Vec<DocumentTraits>,
    pub(crate) first_seen_ms: Column<i64>,
    /// Encoded stems of each document.
    pub(crate) stems: Column<u64>,
    /// Hashed character grams of its names.
    pub(crate) grams: Column<u64>,
    /// The bits of the reasons why a document is spam; `None` if none is.
    spam: Option<Column<u64>>,
    /// The documents that are spam.
    pub(super) spam_documents: FixedBitSet,
    pub(super) publishers: SegmentPublishers,
    pub(super) words: FieldPostings,
    pub(super) bigrams: FieldPostings,
    pub(super) term_bits: TermBits,
}

/// The postings of one field, and the lengths of its documents.
pub(super) struct FieldPostings {
    pub(super) postings: Arc<InvertedIndexReader>,
    pub(super) lengths: FieldNormReader,
}

impl FieldPostings {
    fn of(segment: &SegmentReader, field: Field) -> tantivy::Result<Self> {
        Ok(Self { postings: segment.inverted_index(field)?, lengths: segment.get_fieldnorms_reader(field)? })
    }
}

/// Values other than the text that determine the rank of a document. They are adjacent in memory, because reading them from the columns of
/// the index would need four scattered file reads.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct DocumentTraits {
    /// Hash of the id.
    pub(crate) tie: u64,
    /// Hash of the site.
    pub(crate) site: u64,
    /// Hash of the capability's own text.
    pub(crate) text: u64,
    /// Fingerprint of its words and its schema.
    pub(crate) sketch: u64,
    /// Hash of the site that it calls, and whether that site declares it.
    pub(crate) address: u64,
    /// Hash of its name.
    pub(crate) name: u32,
    pub(crate) prior: f32,
}

impl Columns {
    /// The columns of every segment. Unchanged segments share their columns with the previous commit.
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

    /// The field of terms with this role.
    pub(super) fn field(&self, role: Role) -> &FieldPostings {
        if role == Role::Bigram { &self.bigrams } else { &self.words }
    }

    pub(super) fn traits(&self, document: DocId) -> Option<DocumentTraits> {
        self.traits.get(document as usize).copied()
    }

    /// The bits of the reasons why a document is spam.
    pub(super) fn spam_bits(&self, document: DocId) -> u64 {
        self.spam.as_ref().and_then(|column| column.first(document)).unwrap_or_default()
    }

    fn open(segment: &SegmentReader, fields: &Fields) -> tantivy::Result<Self> {
        let fast = segment.fast_fields();
        let spam: Option<Column<u64>> = fast.column_opt("spam")?;
        let is_spam = |document: &DocId| spam.as_ref().is_some_and(|of| of.first(*document).is_some());
        let spam_documents = (0..segment.max_doc()).filter(is_spam).map(|document| document as usize);
        Ok(Self {
            spam_documents: spam_documents.collect(),
            spam,
            publishers: SegmentPublishers::open(segment, fields)?,
            segment: segment.segment_id(),
            traits: traits(segment)?,
            first_seen_ms: fast.i64("first_seen_ms")?,
            stems: fast.u64("stems")?,
            grams: fast.u64("grams")?,
            words: FieldPostings::of(segment, fields.all)?,
            bigrams: FieldPostings::of(segment, fields.bigram)?,
            term_bits: TermBits::default(),
        })
    }
}

fn traits(segment: &SegmentReader) -> tantivy::Result<Vec<DocumentTraits>> {
    let fast = segment.fast_fields();
    let (tie, site, text) = (fast.u64("tie")?, fast.u64("site_number")?, fast.u64("text_number")?);
    let (sketch, name, address) =
        (fast.u64("sketch")?, fast.u64("name_number")?, fast.u64("address_number")?);
    let prior = fast.f64("prior")?;
    let number = |column: &Column<u64>, document: DocId| column.first(document).unwrap_or(0);
    #[expect(clippy::cast_possible_truncation, reason = "a factor near one, and half of a hash")]
    let of_document = |document: DocId| DocumentTraits {
        tie: number(&tie, document),
        site: number(&site, document),
        text: number(&text, document),
        sketch: number(&sketch, document),
        address: number(&address, document),
        name: number(&name, document) as u32,
        prior: prior.first(document).unwrap_or(1.0) as f32,
    };
    Ok((0..segment.max_doc()).map(of_document).collect())
}

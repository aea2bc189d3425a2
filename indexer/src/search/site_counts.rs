//! Counts the sites with a term. One site can repeat a text in thousands of capabilities, so the number of capabilities is a poor measure.

use std::collections::HashSet;
use std::sync::Arc;

use tantivy::columnar::Column;
use tantivy::fastfield::AliveBitSet;
use tantivy::postings::TermInfo;
use tantivy::schema::{Field, IndexRecordOption};
use tantivy::{DocSet, InvertedIndexReader, SegmentReader, TERMINATED, Term};

use crate::index::Fields;

/// Maximum number of sites of one term that are counted. For a term with more sites, its capabilities are counted.
pub(super) const SITES_MAX: usize = 64;

/// Counts the sites of the terms of a field in one segment.
pub(super) struct SiteCounts<'s> {
    inverted: Arc<InvertedIndexReader>,
    sites: Column<u64>,
    /// `None` if every document counts.
    alive: Option<&'s AliveBitSet>,
    /// Number of documents that may still be read.
    work_left: usize,
}

impl<'s> SiteCounts<'s> {
    /// Counts the sites of all documents, including deleted ones, but reads at most `documents_max` documents. After that, a term counts as
    /// one site, or as the sites that were found so far.
    pub(super) fn of(
        segment: &'s SegmentReader,
        fields: &Fields,
        field: Field,
        documents_max: usize,
    ) -> tantivy::Result<Self> {
        let name = segment.schema().get_field_name(fields.site_number);
        let sites = segment.fast_fields().u64(name)?;
        Ok(Self { inverted: segment.inverted_index(field)?, sites, alive: None, work_left: documents_max })
    }

    /// Leaves deleted documents out.
    pub(super) fn without_deleted(self, segment: &'s SegmentReader) -> Self {
        Self { alive: segment.alive_bitset(), ..self }
    }

    /// Number of sites with a term of this segment, at least one. If there are more than 64, the number of capabilities.
    pub(super) fn count(&mut self, info: &TermInfo) -> tantivy::Result<u32> {
        if info.doc_freq <= 1 {
            return Ok(info.doc_freq);
        }
        let mut sites = HashSet::new();
        self.add(info, &mut sites)?;
        let count = u32::try_from(sites.len()).unwrap_or(u32::MAX);
        Ok(if sites.len() < SITES_MAX { count.max(1) } else { info.doc_freq })
    }

    /// Adds the sites that have a term, up to 64. Returns the number of its documents.
    pub(super) fn add_term(&mut self, term: &Term, sites: &mut HashSet<u64>) -> tantivy::Result<u64> {
        let Some(info) = self.inverted.get_term_info(term)? else { return Ok(0) };
        self.add(&info, sites)?;
        Ok(u64::from(info.doc_freq))
    }

    fn add(&mut self, info: &TermInfo, sites: &mut HashSet<u64>) -> tantivy::Result<()> {
        let mut postings = self.inverted.read_postings_from_terminfo(info, IndexRecordOption::Basic)?;
        while postings.doc() != TERMINATED && self.work_left > 0 && sites.len() < SITES_MAX {
            let document = postings.doc();
            self.work_left -= 1;
            if self.alive.is_none_or(|alive| alive.is_alive(document)) {
                sites.extend(self.sites.first(document));
            }
            postings.advance();
        }
        Ok(())
    }
}

/// The popularity of a term with these sites and this many documents.
pub(super) fn popularity(sites: &HashSet<u64>, documents: u64) -> u64 {
    if sites.len() < SITES_MAX { sites.len() as u64 } else { documents }
}

//! Reads ahead what searches read, so that the first ones after a commit are no slower than the next.
//!
//! A closer look touches a few pages of a column for each candidate, somewhere in files of hundreds of megabytes. The
//! first touch of a page that is mapped costs as much as everything that is then done with it, also where the page is in
//! memory already.

use std::collections::HashSet;

use tantivy::directory::Directory;
use tantivy::index::{SegmentComponent, SegmentId};
use tantivy::{Index, Searcher, SegmentReader};

use crate::index::Fields;
use crate::request::FacetKey;

/// Pages of the machine; where they are larger, some are touched more than once.
const PAGE_BYTES: usize = 4_096;
/// Bytes of an index that are read ahead at most: those of two and a half million capabilities. Beyond, pages come as they
/// are asked for.
const BYTES_MAX: usize = 2 << 30;
/// Files that every search reads here and there, the most scattered first. Those of phrases come when they are asked for.
const COMPONENTS: [SegmentComponent; 5] = [
    SegmentComponent::FastFields,
    SegmentComponent::FieldNorms,
    SegmentComponent::Terms,
    SegmentComponent::Store,
    SegmentComponent::Postings,
];

/// Reads ahead the segments that were not there before.
pub(super) fn warm(
    index: &Index,
    searcher: &Searcher,
    fields: &Fields,
    before: Option<&Searcher>,
) -> tantivy::Result<()> {
    let known: HashSet<SegmentId> =
        before.into_iter().flat_map(Searcher::segment_readers).map(SegmentReader::segment_id).collect();
    let new = searcher.segment_readers().iter().filter(|segment| !known.contains(&segment.segment_id()));
    for segment in new.clone() {
        open(segment, fields)?;
    }
    let names: HashSet<SegmentId> = new.map(SegmentReader::segment_id).collect();
    let metas = index.searchable_segment_metas()?;
    let mut room = BYTES_MAX;
    for component in COMPONENTS {
        for meta in metas.iter().filter(|meta| names.contains(&meta.id())) {
            let file = index.directory().open_read(&meta.relative_path(component.clone()))?;
            let bytes = file.read_bytes()?;
            touch(bytes.get(..room.min(bytes.len())).unwrap_or_default());
            room = room.saturating_sub(bytes.len());
        }
    }
    Ok(())
}

/// The dictionaries of the text fields, the columns of facets, the first row.
fn open(segment: &SegmentReader, fields: &Fields) -> tantivy::Result<()> {
    for field in fields.searched() {
        let inverted = segment.inverted_index(field)?;
        inverted.terms().stream()?.advance();
        segment.get_fieldnorms_reader(field).ok();
    }
    for key in FacetKey::ALL {
        segment.fast_fields().str(key.as_str())?;
    }
    if segment.num_docs() > 0 {
        segment.get_store_reader(1)?.get::<tantivy::TantivyDocument>(0)?;
    }
    Ok(())
}

/// Reads an octet of every page.
fn touch(bytes: &[u8]) {
    let sum = bytes.iter().step_by(PAGE_BYTES).fold(0_u8, |sum, byte| sum.wrapping_add(*byte));
    std::hint::black_box(sum);
}

//! Preloads the data that searches read, so that the first searches after a commit are as fast as later ones.
//!
//! Re-ranking reads a few scattered pages of the columns for each candidate. The first access to a mapped page takes as long as all
//! processing of it, even if the page is in memory.

use std::collections::HashSet;

use tantivy::directory::Directory;
use tantivy::index::{SegmentComponent, SegmentId};
use tantivy::{Index, Searcher, SegmentReader};

use crate::filter::FacetKey;
use crate::index::Fields;

/// The smallest page size; larger pages are touched more than once.
const PAGE_BYTES: usize = 4_096;
/// Maximum number of preloaded bytes of an index: the size of two and a half million capabilities.
const BYTES_MAX: usize = 2 << 30;
/// Files that every search reads, the most scattered ones first. Positions are not included, because only phrases need them.
const COMPONENTS: [SegmentComponent; 5] = [
    SegmentComponent::FastFields,
    SegmentComponent::FieldNorms,
    SegmentComponent::Terms,
    SegmentComponent::Store,
    SegmentComponent::Postings,
];

/// Preloads a commit that replaces another. If that fails, the commit is served anyway.
pub(super) fn warm(index: &Index, searcher: &Searcher, fields: &Fields, before: &Searcher) {
    if let Err(error) = read_ahead(index, searcher, fields, Some(before)) {
        tracing::warn!(%error, "cannot preload the new commit: the first searches may be slow");
    }
}

/// Preloads the segments that are not in `before`; returns the number of bytes.
pub(super) fn read_ahead(
    index: &Index,
    searcher: &Searcher,
    fields: &Fields,
    before: Option<&Searcher>,
) -> tantivy::Result<usize> {
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
    Ok(BYTES_MAX - room)
}

/// Opens the dictionaries of the text fields, the columns of facets, and the first row.
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

/// Reads a byte of every page.
fn touch(bytes: &[u8]) {
    let sum = bytes.iter().step_by(PAGE_BYTES).fold(0_u8, |sum, byte| sum.wrapping_add(*byte));
    std::hint::black_box(sum);
}

#[cfg(test)]
mod tests {
    use tantivy::directory::RamDirectory;
    use tantivy::{IndexReader, IndexWriter, ReloadPolicy, TantivyDocument};

    use super::*;
    use crate::index::{register_tokenizers, schema};

    /// An index with one segment for each commit.
    struct Commits {
        directory: RamDirectory,
        index: Index,
        fields: Fields,
        writer: IndexWriter,
        reader: IndexReader,
    }

    impl Commits {
        fn new() -> Self {
            let (directory, schema) = (RamDirectory::create(), schema());
            let fields = Fields::of(&schema).unwrap();
            let index = Index::open_or_create(directory.clone(), schema).unwrap();
            register_tokenizers(&index);
            let writer: IndexWriter = index.writer_with_num_threads(1, 15_000_000).unwrap();
            writer.set_merge_policy(Box::new(tantivy::indexer::NoMergePolicy));
            let reader = index.reader_builder().reload_policy(ReloadPolicy::Manual).try_into().unwrap();
            Self { directory, index, fields, writer, reader }
        }

        fn commit(&mut self, word: &str) -> Searcher {
            let mut document = TantivyDocument::default();
            document.add_text(self.fields.all, word);
            document.add_bytes(self.fields.row, word.as_bytes());
            self.writer.add_document(document).unwrap();
            self.writer.commit().unwrap();
            self.reader.reload().unwrap();
            self.reader.searcher()
        }

        fn read_ahead(&self, searcher: &Searcher, before: Option<&Searcher>) -> tantivy::Result<usize> {
            read_ahead(&self.index, searcher, &self.fields, before)
        }
    }

    #[test]
    fn reads_only_new_segments() {
        let mut commits = Commits::new();
        let first = commits.commit("juggle");
        let all = commits.read_ahead(&first, None).unwrap();
        assert!(all > 0);
        assert_eq!(commits.read_ahead(&first, Some(&first)).unwrap(), 0);
        let second = commits.commit("yodel");
        let new = commits.read_ahead(&second, Some(&first)).unwrap();
        assert!(new > 0);
        assert_eq!(commits.read_ahead(&second, None).unwrap(), all + new);
    }

    #[test]
    fn a_missing_file_is_an_error_that_does_not_prevent_a_reload() {
        let mut commits = Commits::new();
        let first = commits.commit("juggle");
        let second = commits.commit("yodel");
        for meta in commits.index.searchable_segment_metas().unwrap() {
            commits.directory.delete(&meta.relative_path(SegmentComponent::Postings)).unwrap();
        }
        assert!(commits.read_ahead(&second, Some(&first)).is_err());
        warm(&commits.index, &second, &commits.fields, &first);
        assert_eq!(second.num_docs(), 2, "it serves");
    }
}

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

/// Reads ahead a commit that is to take the place of another. Where that fails it serves nonetheless: what it lacks, searches
/// will say.
pub(super) fn warm(index: &Index, searcher: &Searcher, fields: &Fields, before: &Searcher) {
    if let Err(error) = read_ahead(index, searcher, fields, Some(before)) {
        tracing::warn!(%error, "the new commit was not read ahead: the first searches may be slow");
    }
}

/// Reads ahead the segments that were not there before. Says how many octets that are.
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

#[cfg(test)]
mod tests {
    use tantivy::directory::RamDirectory;
    use tantivy::{IndexReader, IndexWriter, ReloadPolicy, TantivyDocument};

    use super::*;
    use crate::index::{SchemaParts, register_tokenizers};

    /// An index of which every commit is a segment.
    struct Commits {
        directory: RamDirectory,
        index: Index,
        fields: Fields,
        writer: IndexWriter,
        reader: IndexReader,
    }

    impl Commits {
        fn new() -> Self {
            let (directory, SchemaParts { schema, fields }) =
                (RamDirectory::create(), crate::index::schema());
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
    fn only_what_is_new_is_read() {
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
    fn a_file_that_cannot_be_read_is_told_and_hinders_no_reload() {
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

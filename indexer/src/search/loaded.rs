//! One commit of one generation, opened for searching.

use std::panic::catch_unwind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tantivy::{Index, IndexReader, ReloadPolicy, SegmentReader};

use super::IndexGeneration;
use super::bm25::Statistics;
use super::columns::Columns;
use super::frequencies::{Frequencies, KnownTerm};
use super::suggest::Suggestions;
use super::warm::{read_ahead, warm};
use crate::error::IndexError;
use crate::index::{Fields, Generations, Payload, register_tokenizers};
use crate::query::{Associations, QueryTerm, Role};

/// Times that an opening is tried anew when the writer commits or swaps in the middle of it.
const ATTEMPTS_MAX: u32 = 5;

/// Everything that one search needs; it does not change under a search.
pub(crate) struct Loaded {
    path: PathBuf,
    index: Index,
    reader: IndexReader,
    pub(crate) searcher: tantivy::Searcher,
    pub(crate) fields: Fields,
    pub(crate) generation: IndexGeneration,
    pub(crate) suggestions: Suggestions,
    pub(crate) statistics: Statistics,
    /// How many capabilities have a word, and a pair of words.
    pub(crate) words: Frequencies,
    pub(crate) pairs: Frequencies,
    pub(crate) known: Arc<Associations>,
    /// Columns that every ranking reads, by segment.
    pub(crate) columns: Vec<Arc<Columns>>,
}

impl Loaded {
    pub(crate) fn open(generations: &Generations, known: &Arc<Associations>) -> Result<Self, IndexError> {
        let mut last = None;
        for _ in 0..ATTEMPTS_MAX {
            let path = generations.current()?;
            match Self::open_whole(generations.dir(), &path, known) {
                Ok(loaded) => return Ok(loaded),
                Err(error @ IndexError::SchemaOther { .. }) => return Err(error),
                Err(error) if path == generations.current()? => last = Some(error),
                Err(_) => {}
            }
        }
        Err(last.unwrap_or_else(|| IndexError::Missing { dir: generations.dir().to_owned() }))
    }

    /// The engine panics on files that are shorter than their own footer.
    fn open_whole(dir: &Path, path: &Path, known: &Arc<Associations>) -> Result<Self, IndexError> {
        catch_unwind(|| Self::open_path(dir, path, known)).unwrap_or_else(|_| {
            Err(IndexError::Corrupt { dir: dir.to_owned(), reason: "a file is cut short".to_owned() })
        })
    }

    fn open_path(dir: &Path, path: &Path, known: &Arc<Associations>) -> Result<Self, IndexError> {
        let corrupt = |reason: String| IndexError::Corrupt { dir: dir.to_owned(), reason };
        let index = Index::open_in_dir(path).map_err(|error| corrupt(error.to_string()))?;
        let payload = Payload::read(dir, &index)?;
        let fields = Fields::of(&index.schema()).ok_or_else(|| corrupt("a field is missing".to_owned()))?;
        register_tokenizers(&index);
        let reader = index
            .reader_builder()
            .reload_policy(ReloadPolicy::Manual)
            .try_into()
            .map_err(|error| corrupt(error.to_string()))?;
        let searcher = reader.searcher();
        let generation = generation(payload, opstamp(&index)?);
        read_ahead(&index, &searcher, &fields, None).map_err(|error| corrupt(error.to_string()))?;
        let columns = Columns::of(&searcher, &fields, &[]).map_err(|error| corrupt(error.to_string()))?;
        let statistics = Statistics::of(&searcher, &fields).map_err(|error| corrupt(error.to_string()))?;
        let suggestions = Suggestions::of(&searcher, &fields, &Suggestions::default());
        let suggestions = suggestions.map_err(|error| corrupt(error.to_string()))?;
        Ok(Self {
            path: path.to_owned(),
            index,
            reader,
            searcher,
            fields,
            generation,
            suggestions,
            statistics,
            words: Frequencies::in_field(fields.all),
            pairs: Frequencies::in_field(fields.bigram),
            known: Arc::clone(known),
            columns,
        })
    }

    /// Every segment with its columns.
    pub(super) fn segments(&self) -> impl Iterator<Item = (&SegmentReader, &Arc<Columns>)> {
        self.searcher.segment_readers().iter().zip(&self.columns)
    }

    /// Where the index lists a term of a request.
    pub(super) fn listed(&self, term: &QueryTerm) -> tantivy::Result<Arc<KnownTerm>> {
        let kept = if term.role == Role::Bigram { &self.pairs } else { &self.words };
        kept.term(&self.searcher, &term.text)
    }

    /// The state to use from now on, when there is a newer one.
    pub(crate) fn newer(&self, generations: &Generations) -> Result<Option<Self>, IndexError> {
        if generations.current()? != self.path {
            return Self::open(generations, &self.known).map(Some);
        }
        if opstamp(&self.index)? == self.generation.opstamp {
            return Ok(None);
        }
        let failed = IndexError::engine("reload");
        for _ in 0..ATTEMPTS_MAX {
            let before = opstamp(&self.index)?;
            let payload = Payload::read(generations.dir(), &self.index)?;
            self.reader.reload().map_err(&failed)?;
            if opstamp(&self.index)? == before {
                let searcher = self.reader.searcher();
                warm(&self.index, &searcher, &self.fields, &self.searcher);
                let columns = Columns::of(&searcher, &self.fields, &self.columns).map_err(&failed)?;
                let statistics = Statistics::of(&searcher, &self.fields).map_err(&failed)?;
                let suggestions = Suggestions::of(&searcher, &self.fields, &self.suggestions);
                return Ok(Some(Self {
                    path: self.path.clone(),
                    index: self.index.clone(),
                    reader: self.reader.clone(),
                    searcher,
                    fields: self.fields,
                    generation: generation(payload, before),
                    suggestions: suggestions.map_err(&failed)?,
                    statistics,
                    words: Frequencies::in_field(self.fields.all),
                    pairs: Frequencies::in_field(self.fields.bigram),
                    known: Arc::clone(&self.known),
                    columns,
                }));
            }
        }
        Ok(None)
    }
}

fn generation(payload: Payload, opstamp: u64) -> IndexGeneration {
    let Payload { schema_version, feed_id, position } = payload;
    IndexGeneration { feed_id, position, opstamp, schema_version, vectors: 0 }
}

fn opstamp(index: &Index) -> Result<u64, IndexError> {
    Ok(index.load_metas().map_err(IndexError::engine("read its state"))?.opstamp)
}

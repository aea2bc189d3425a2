//! One commit of one generation, opened for searching.

use std::panic::catch_unwind;
use std::path::{Path, PathBuf};

use tantivy::{Index, IndexReader, ReloadPolicy};

use super::IndexGeneration;
use super::suggest::Kept;
use crate::error::IndexError;
use crate::index::{Fields, Generations, Payload, register_tokenizers};

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
    pub(crate) suggestions: Kept,
}

impl Loaded {
    pub(crate) fn open(generations: &Generations) -> Result<Self, IndexError> {
        let mut last = None;
        for _ in 0..ATTEMPTS_MAX {
            let path = generations.current()?;
            match Self::open_whole(generations.dir(), &path) {
                Ok(loaded) => return Ok(loaded),
                Err(error @ IndexError::SchemaOther { .. }) => return Err(error),
                Err(error) if path == generations.current()? => last = Some(error),
                Err(_) => {}
            }
        }
        Err(last.unwrap_or_else(|| IndexError::Missing { dir: generations.dir().to_owned() }))
    }

    /// The engine panics on files that are shorter than their own footer.
    fn open_whole(dir: &Path, path: &Path) -> Result<Self, IndexError> {
        catch_unwind(|| Self::open_path(dir, path)).unwrap_or_else(|_| {
            Err(IndexError::Corrupt { dir: dir.to_owned(), reason: "a file is cut short".to_owned() })
        })
    }

    fn open_path(dir: &Path, path: &Path) -> Result<Self, IndexError> {
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
        Ok(Self {
            path: path.to_owned(),
            index,
            reader,
            searcher,
            fields,
            generation,
            suggestions: Kept::default(),
        })
    }

    /// The state to use from now on, when there is a newer one.
    pub(crate) fn newer(&self, generations: &Generations) -> Result<Option<Self>, IndexError> {
        if generations.current()? != self.path {
            return Self::open(generations).map(Some);
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
                return Ok(Some(Self {
                    path: self.path.clone(),
                    index: self.index.clone(),
                    reader: self.reader.clone(),
                    searcher: self.reader.searcher(),
                    fields: self.fields,
                    generation: generation(payload, before),
                    suggestions: Kept::default(),
                }));
            }
        }
        Ok(None)
    }
}

fn generation(payload: Payload, opstamp: u64) -> IndexGeneration {
    let Payload { schema_version, feed_id, position } = payload;
    IndexGeneration { feed_id, position, opstamp, schema_version }
}

fn opstamp(index: &Index) -> Result<u64, IndexError> {
    Ok(index.load_metas().map_err(IndexError::engine("read its state"))?.opstamp)
}

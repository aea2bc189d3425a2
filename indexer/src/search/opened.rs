//! One commit of one generation of the index, opened for searching.

use std::panic::catch_unwind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use store::FeedPosition;
#[cfg(feature = "cluster")]
use tantivy::TantivyDocument;
#[cfg(feature = "cluster")]
use tantivy::directory::RamDirectory;
use tantivy::{DocAddress, Index, IndexReader, ReloadPolicy, SegmentReader};

use super::bm25::Statistics;
use super::columns::Columns;
use super::completions::Suggestions;
use super::site_endpoints::SiteEndpoints;
use super::spam_sites::SpamSites;
#[cfg(feature = "cluster")]
use super::term_cache::Frequencies;
use super::term_cache::{TermCache, TermLocations};
use super::warm::{read_ahead, warm};
use crate::analysis::Stemming;
use crate::config::Contents;
use crate::error::IndexError;
use crate::filter::FacetKey;
use crate::index::{Fields, Generations, Payload, register_tokenizers};
#[cfg(feature = "cluster")]
use crate::index::{schema, tokenizers};
use crate::lexicon::WordWeights;
use crate::query::{QueryTerm, Role};

/// Maximum number of language tags read per segment, because publishers may declare any text as a language.
const LANGUAGE_TAGS_MAX: usize = 1_000;
/// Determines the first size of the hash table of an index in memory, which grows with its terms.
#[cfg(feature = "cluster")]
const IN_MEMORY_BYTES: usize = 4 << 20;
/// Maximum number of attempts at opening an index while the writer commits or swaps it.
const ATTEMPTS_MAX: u32 = 5;

/// Identifies the state of the index that produced an answer; changes with every visible commit.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct IndexGeneration {
    pub feed_id: String,
    pub position: FeedPosition,
    pub opstamp: u64,
    pub schema_version: u32,
    /// Identifies the vectors next to the index; 0 if searches use none.
    pub vectors: u64,
}

/// All data that a search reads; immutable.
pub(crate) struct OpenedIndex {
    path: PathBuf,
    contents: Contents,
    index: Index,
    reader: IndexReader,
    pub(crate) searcher: tantivy::Searcher,
    pub(crate) fields: Fields,
    pub(crate) generation: IndexGeneration,
    pub(crate) suggestions: Suggestions,
    pub(crate) statistics: Statistics,
    pub(crate) words: TermCache,
    pub(crate) bigrams: TermCache,
    pub(crate) word_weights: Arc<WordWeights>,
    /// The languages of its capabilities that have a stemmer, except English.
    pub(crate) languages: Vec<Stemming>,
    /// One entry for each segment.
    pub(crate) columns: Vec<Arc<Columns>>,
    pub(super) site_endpoints: Arc<SiteEndpoints>,
    pub(super) spam_sites: Arc<SpamSites>,
}

impl OpenedIndex {
    pub(crate) fn open(
        generations: &Generations,
        contents: Contents,
        word_weights: &Arc<WordWeights>,
    ) -> Result<Self, IndexError> {
        let mut last = None;
        for _ in 0..ATTEMPTS_MAX {
            let path = generations.current()?;
            match Self::open_path(generations.dir(), &path, contents, word_weights) {
                Ok(opened) => return Ok(opened),
                Err(error @ IndexError::SchemaOther { .. }) => return Err(error),
                Err(error) if path == generations.current()? => last = Some(error),
                Err(_) => {}
            }
        }
        Err(last.unwrap_or_else(|| IndexError::Missing { dir: generations.dir().to_owned() }))
    }

    fn open_path(
        dir: &Path,
        path: &Path,
        contents: Contents,
        word_weights: &Arc<WordWeights>,
    ) -> Result<Self, IndexError> {
        let corrupt = |reason: String| IndexError::Corrupt { dir: dir.to_owned(), reason };
        let open = || {
            let index = Index::open_in_dir(path).map_err(|error| IndexError::opening(dir, &error))?;
            let payload = Payload::read(dir, &index)?;
            payload.check_contents(dir, contents)?;
            let opstamp = opstamp(&index)?;
            Self::first(path, index, (contents, generation(payload, opstamp)), word_weights)
                .map_err(|error| IndexError::opening(dir, &error))
        };
        // tantivy panics if a file is shorter than its footer
        catch_unwind(open).unwrap_or_else(|_| Err(corrupt("a file is cut short".to_owned())))
    }

    fn first(
        path: &Path,
        index: Index,
        (contents, generation): (Contents, IndexGeneration),
        word_weights: &Arc<WordWeights>,
    ) -> tantivy::Result<Self> {
        register_tokenizers(&index);
        let fields = Fields::of(&index.schema())?;
        let reader: IndexReader = index.reader_builder().reload_policy(ReloadPolicy::Manual).try_into()?;
        let searcher = reader.searcher();
        read_ahead(&index, &searcher, &fields, None)?;
        let columns = Columns::of(&searcher, &fields, &[])?;
        Ok(Self {
            suggestions: Suggestions::of(&searcher, &fields, &Suggestions::default())?,
            statistics: Statistics::of(&searcher, &fields)?,
            words: TermCache::of(fields.all),
            bigrams: TermCache::of(fields.bigram),
            languages: languages(&searcher, &fields)?,
            site_endpoints: Arc::new(SiteEndpoints::of(&searcher, &fields, &columns)?),
            spam_sites: Arc::new(SpamSites::of(&searcher, &columns, (&SpamSites::default(), &[]))?),
            columns,
            path: path.to_owned(),
            contents,
            word_weights: Arc::clone(word_weights),
            index,
            reader,
            searcher,
            fields,
            generation,
        })
    }

    /// The newer commit or generation, if there is one.
    pub(crate) fn newer(&self, generations: &Generations) -> Result<Option<Self>, IndexError> {
        if generations.current()? != self.path {
            return Self::open(generations, self.contents, &self.word_weights).map(Some);
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
                return self.next(generation(payload, before)).map(Some).map_err(&failed);
            }
        }
        Ok(None)
    }

    /// The commit to which the reader was reloaded. Data of unchanged segments is shared.
    fn next(&self, generation: IndexGeneration) -> tantivy::Result<Self> {
        let (searcher, fields) = (self.reader.searcher(), self.fields);
        warm(&self.index, &searcher, &fields, &self.searcher);
        let columns = Columns::of(&searcher, &fields, &self.columns)?;
        Ok(Self {
            suggestions: Suggestions::of(&searcher, &fields, &self.suggestions)?,
            statistics: Statistics::of(&searcher, &fields)?,
            words: TermCache::of(fields.all),
            bigrams: TermCache::of(fields.bigram),
            languages: languages(&searcher, &fields)?,
            site_endpoints: Arc::new(SiteEndpoints::of(&searcher, &fields, &columns)?),
            spam_sites: Arc::new(SpamSites::of(&searcher, &columns, (&self.spam_sites, &self.columns))?),
            columns,
            path: self.path.clone(),
            contents: self.contents,
            word_weights: Arc::clone(&self.word_weights),
            index: self.index.clone(),
            reader: self.reader.clone(),
            searcher,
            fields,
            generation,
        })
    }

    /// An index in memory with some documents of a cluster. This is the vocabulary of the cluster, which has the facts of sites;
    /// `statistics` and `frequencies` are those of the whole cluster.
    #[cfg(feature = "cluster")]
    pub(super) fn of_documents(
        &self,
        documents: Vec<TantivyDocument>,
        statistics: Statistics,
        frequencies: &Frequencies,
    ) -> tantivy::Result<Self> {
        let index = in_memory(documents)?;
        let reader: IndexReader = index.reader_builder().reload_policy(ReloadPolicy::Manual).try_into()?;
        let (searcher, fields) = (reader.searcher(), self.fields);
        Ok(Self {
            suggestions: Suggestions::default(),
            words: TermCache::with_frequencies(&searcher, fields.all, &frequencies.words)?,
            bigrams: TermCache::with_frequencies(&searcher, fields.bigram, &frequencies.bigrams)?,
            languages: self.languages.clone(),
            site_endpoints: Arc::new(self.site_endpoints.of_other_documents(&searcher, &fields)?),
            spam_sites: Arc::clone(&self.spam_sites),
            columns: Columns::of(&searcher, &fields, &[])?,
            path: self.path.clone(),
            contents: self.contents,
            word_weights: Arc::clone(&self.word_weights),
            generation: self.generation.clone(),
            statistics,
            index,
            reader,
            searcher,
            fields,
        })
    }

    /// The directory of the generation.
    #[cfg(feature = "cluster")]
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Every segment with its columns.
    pub(super) fn segments(&self) -> impl Iterator<Item = (&SegmentReader, &Arc<Columns>)> {
        self.searcher.segment_readers().iter().zip(&self.columns)
    }

    /// Whether a document ranks lower because it or its site is spam.
    pub(super) fn is_spam(&self, address: DocAddress) -> bool {
        let document = address.doc_id as usize;
        self.columns.get(address.segment_ord as usize).is_some_and(|columns| {
            columns.spam_documents.contains(document)
                || columns.traits(address.doc_id).is_some_and(|traits| self.spam_sites.is_spam(traits.site))
        })
    }

    /// The dictionary entries of a term of a request.
    pub(super) fn locate(&self, term: &QueryTerm) -> tantivy::Result<Arc<TermLocations>> {
        let cache = if term.role == Role::Bigram { &self.bigrams } else { &self.words };
        cache.term(&self.searcher, &term.text)
    }
}

/// An index in memory, with one segment.
#[cfg(feature = "cluster")]
fn in_memory(documents: Vec<TantivyDocument>) -> tantivy::Result<Index> {
    let (terms, values) = tokenizers();
    let builder = Index::builder().schema(schema()).tokenizers(terms).fast_field_tokenizers(values);
    let mut writer = builder.single_segment_index_writer(RamDirectory::create(), IN_MEMORY_BYTES)?;
    for document in documents {
        writer.add_document(document)?;
    }
    writer.finalize()
}

/// The stemmings of the languages of an index, except English.
fn languages(searcher: &tantivy::Searcher, fields: &Fields) -> tantivy::Result<Vec<Stemming>> {
    let mut found = Vec::new();
    for segment in searcher.segment_readers() {
        let inverted = segment.inverted_index(fields.facet(FacetKey::Language))?;
        let mut tags = inverted.terms().stream()?;
        for _ in 0..LANGUAGE_TAGS_MAX {
            let Some((tag, _)) = tags.next() else { break };
            let stemming = Stemming::for_language(std::str::from_utf8(tag).unwrap_or_default());
            if matches!(stemming, Stemming::Other(_)) && !found.contains(&stemming) {
                found.push(stemming);
            }
        }
    }
    Ok(found)
}

fn generation(payload: Payload, opstamp: u64) -> IndexGeneration {
    let Payload { schema_version, feed_id, position, examples: _, contents: _ } = payload;
    IndexGeneration { feed_id, position, opstamp, schema_version, vectors: 0 }
}

fn opstamp(index: &Index) -> Result<u64, IndexError> {
    Ok(index.load_metas().map_err(IndexError::engine("read its state"))?.opstamp)
}

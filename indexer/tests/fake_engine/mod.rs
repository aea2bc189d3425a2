//! A distributed engine in this process: several tantivy indexes with the statistics of all.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use indexer::cluster::{
    Engine, EngineCondition, EngineDocument, EngineError, EngineResults, EngineSearch, EngineStatistics,
    EngineTerm, EngineWriter, TEXT_FIELDS, TIME_FIELDS, whole_fields,
};
use tantivy::collector::{Count, DocSetCollector, TopDocs};
use tantivy::query::{
    AllQuery, Bm25StatisticsProvider, BooleanQuery, BoostQuery, ConstScoreQuery, Occur, PhraseQuery, Query,
    RangeQuery, TermQuery,
};
use tantivy::schema::{
    FAST, Field, INDEXED, IndexRecordOption, STORED, STRING, Schema, TextFieldIndexing, TextOptions,
    Value as _,
};
use tantivy::{DocAddress, Index, IndexReader, IndexWriter, ReloadPolicy, Searcher, TantivyDocument, Term};

/// Memory of the writer of a shard, the minimum of tantivy.
const WRITER_BYTES: usize = 15_000_000;

pub(crate) struct FakeEngine {
    shards: usize,
    indexes: Mutex<HashMap<String, Arc<Vec<Shard>>>>,
    /// Numbers of the shards that do not answer.
    away: Mutex<BTreeSet<usize>>,
    /// Whether the next commit fails.
    fails_to_commit: Arc<AtomicBool>,
}

struct Shard {
    schema: Schema,
    writer: Mutex<IndexWriter>,
    reader: IndexReader,
}

struct FakeWriter {
    shards: Arc<Vec<Shard>>,
    fails_to_commit: Arc<AtomicBool>,
}

/// The statistics of the shards that answer.
struct Shared<'a>(&'a [Searcher]);

impl Bm25StatisticsProvider for Shared<'_> {
    fn total_num_tokens(&self, field: Field) -> tantivy::Result<u64> {
        self.0.iter().map(|searcher| searcher.total_num_tokens(field)).sum()
    }

    fn total_num_docs(&self) -> tantivy::Result<u64> {
        self.0.iter().map(Bm25StatisticsProvider::total_num_docs).sum()
    }

    fn doc_freq(&self, term: &Term) -> tantivy::Result<u64> {
        self.0.iter().map(|searcher| searcher.doc_freq(term)).sum()
    }
}

fn schema() -> Schema {
    let mut builder = Schema::builder();
    for name in whole_fields() {
        builder.add_text_field(name, STRING | FAST);
    }
    for name in TEXT_FIELDS {
        let positions = IndexRecordOption::WithFreqsAndPositions;
        let indexing = TextFieldIndexing::default().set_tokenizer("whitespace").set_index_option(positions);
        builder.add_text_field(name, TextOptions::default().set_indexing_options(indexing));
    }
    for name in TIME_FIELDS {
        builder.add_i64_field(name, FAST | INDEXED);
    }
    builder.add_bytes_field("stored", STORED);
    builder.build()
}

impl Shard {
    fn new() -> Self {
        let schema = schema();
        let index = Index::create_in_ram(schema.clone());
        let writer = Mutex::new(index.writer_with_num_threads(1, WRITER_BYTES).unwrap());
        let reader = index.reader_builder().reload_policy(ReloadPolicy::Manual).try_into().unwrap();
        Self { schema, writer, reader }
    }

    fn term(&self, term: &EngineTerm) -> Term {
        Term::from_field_text(self.schema.get_field(term.field).unwrap(), &term.text)
    }

    fn query_of_term(&self, term: &EngineTerm) -> Box<dyn Query> {
        let is_text = TEXT_FIELDS.contains(&term.field);
        let record = if is_text { IndexRecordOption::WithFreqs } else { IndexRecordOption::Basic };
        Box::new(TermQuery::new(self.term(term), record))
    }

    fn all_or_any(&self, occur: Occur, terms: &[EngineTerm]) -> Box<dyn Query> {
        Box::new(BooleanQuery::new(terms.iter().map(|term| (occur, self.query_of_term(term))).collect()))
    }

    fn condition(&self, condition: &EngineCondition) -> Box<dyn Query> {
        let query: Box<dyn Query> = match condition {
            EngineCondition::AnyOf(terms) => self.all_or_any(Occur::Should, terms),
            EngineCondition::AllOf(terms) => self.all_or_any(Occur::Must, terms),
            EngineCondition::Phrase(terms) => {
                Box::new(PhraseQuery::new(terms.iter().map(|term| self.term(term)).collect()))
            }
            EngineCondition::Since { field, from_ms } => {
                let from = Term::from_field_i64(self.schema.get_field(field).unwrap(), *from_ms);
                Box::new(RangeQuery::new(std::ops::Bound::Included(from), std::ops::Bound::Unbounded))
            }
        };
        Box::new(ConstScoreQuery::new(query, 0.0))
    }

    fn query(&self, search: &EngineSearch) -> BooleanQuery {
        let scored = search.scored.iter().map(|(term, weight)| -> (Occur, Box<dyn Query>) {
            (Occur::Should, Box::new(BoostQuery::new(self.query_of_term(term), *weight)))
        });
        let scored: Box<dyn Query> = if search.scored.is_empty() {
            Box::new(ConstScoreQuery::new(Box::new(AllQuery), 0.0))
        } else {
            Box::new(BooleanQuery::new(scored.collect()))
        };
        let mut clauses = vec![(Occur::Must, scored)];
        clauses.extend(search.required.iter().map(|condition| (Occur::Must, self.condition(condition))));
        clauses.extend(search.excluded.iter().map(|condition| (Occur::MustNot, self.condition(condition))));
        BooleanQuery::new(clauses)
    }
}

impl FakeEngine {
    pub(crate) fn new(shards: usize) -> Arc<Self> {
        let (indexes, away) = (Mutex::default(), Mutex::default());
        Arc::new(Self { shards, indexes, away, fails_to_commit: Arc::default() })
    }

    /// Sets the numbers of the shards that do not answer.
    pub(crate) fn set_away(&self, shards: &[usize]) {
        *self.away.lock().unwrap() = shards.iter().copied().collect();
    }

    pub(crate) fn fail_next_commit(&self) {
        self.fails_to_commit.store(true, Ordering::SeqCst);
    }

    pub(crate) fn index_names(&self) -> BTreeSet<String> {
        self.indexes.lock().unwrap().keys().cloned().collect()
    }

    /// The shards of an index, which of them answer, and the names of the others.
    fn shards(&self, index: &str) -> Result<Answering, EngineError> {
        let found = self.indexes.lock().unwrap().get(index).map(Arc::clone);
        let shards = found.ok_or_else(|| EngineError::Rejected { reason: format!("no index {index}") })?;
        let away = self.away.lock().unwrap();
        let present: Vec<usize> = (0..shards.len()).filter(|shard| !away.contains(shard)).collect();
        if present.is_empty() {
            return Err(EngineError::Unavailable { reason: "no shard answers".to_owned() });
        }
        Ok((shards, present, away.iter().map(|shard| format!("shard {shard}")).collect()))
    }
}

type Answering = (Arc<Vec<Shard>>, Vec<usize>, Vec<String>);

impl Engine for FakeEngine {
    fn statistics(
        &self,
        index: &str,
        terms: &[EngineTerm],
        _: Duration,
    ) -> Result<EngineStatistics, EngineError> {
        let (shards, present, missing) = self.shards(index)?;
        let searchers: Vec<Searcher> = present.iter().map(|at| shards[*at].reader.searcher()).collect();
        let (shared, first) = (Shared(&searchers), &shards[0]);
        let documents = shared.total_num_docs().unwrap();
        #[expect(clippy::cast_precision_loss, reason = "a mean")]
        let mean = |name: &str| {
            let field = first.schema.get_field(name).unwrap();
            shared.total_num_tokens(field).unwrap() as f32 / documents.max(1) as f32
        };
        Ok(EngineStatistics {
            documents,
            all_length: mean("all"),
            bigram_length: mean("bigram"),
            frequencies: terms.iter().map(|term| shared.doc_freq(&first.term(term)).unwrap()).collect(),
            missing,
        })
    }

    fn search(
        &self,
        index: &str,
        searches: &[EngineSearch],
        _: Duration,
    ) -> Result<Vec<EngineResults>, EngineError> {
        let (shards, present, missing) = self.shards(index)?;
        let shards: Vec<&Shard> = present.iter().map(|at| &shards[*at]).collect();
        let results =
            searches.iter().map(|search| EngineResults { missing: missing.clone(), ..run(&shards, search) });
        Ok(results.collect())
    }

    fn writer(&self, index: &str) -> Result<Box<dyn EngineWriter>, EngineError> {
        let (shards, _, missing) = self.shards(index)?;
        if !missing.is_empty() {
            return Err(EngineError::MissingShards { missing });
        }
        Ok(Box::new(FakeWriter { shards, fails_to_commit: Arc::clone(&self.fails_to_commit) }))
    }

    fn create(&self, index: &str) -> Result<Box<dyn EngineWriter>, EngineError> {
        let shards: Vec<Shard> = (0..self.shards).map(|_| Shard::new()).collect();
        self.indexes.lock().unwrap().insert(index.to_owned(), Arc::new(shards));
        self.writer(index)
    }

    fn remove_others(&self, index: &str) -> Result<(), EngineError> {
        self.indexes.lock().unwrap().retain(|name, _| name == index);
        Ok(())
    }
}

fn run(shards: &[&Shard], search: &EngineSearch) -> EngineResults {
    let searchers: Vec<Searcher> = shards.iter().map(|shard| shard.reader.searcher()).collect();
    let shared = Shared(&searchers);
    let (mut best, mut total): (Vec<(f32, usize, DocAddress)>, u64) = (Vec::new(), 0);
    let mut facets: Vec<BTreeMap<String, u64>> = vec![BTreeMap::new(); search.facets.len()];
    for (at, (shard, searcher)) in shards.iter().zip(&searchers).enumerate() {
        let query = shard.query(search);
        total += searcher.search(&query, &Count).unwrap() as u64;
        if search.limit > 0 {
            let top = TopDocs::with_limit(search.limit).order_by_score();
            let found = searcher.search_with_statistics_provider(&query, &top, &shared).unwrap();
            best.extend(found.into_iter().map(|(score, address)| (score, at, address)));
        }
        if !search.facets.is_empty() {
            for address in searcher.search(&query, &DocSetCollector).unwrap() {
                for (name, counts) in search.facets.iter().zip(&mut facets) {
                    for value in values(searcher, name, address) {
                        *counts.entry(value).or_default() += 1;
                    }
                }
            }
        }
    }
    best.sort_by(|a, b| b.0.total_cmp(&a.0));
    best.truncate(search.limit);
    let stored = best.into_iter().map(|(_, at, address)| {
        let document: TantivyDocument = searchers[at].doc(address).unwrap();
        let field = shards[at].schema.get_field("stored").unwrap();
        document.get_first(field).unwrap().as_bytes().unwrap().to_vec()
    });
    EngineResults {
        stored: stored.collect(),
        total,
        total_is_exact: true,
        facets: facets.into_iter().map(|counts| Some(counts.into_iter().collect())).collect(),
        missing: Vec::new(),
    }
}

/// The values of a document in a whole field.
fn values(searcher: &Searcher, name: &str, address: DocAddress) -> Vec<String> {
    let segment = searcher.segment_reader(address.segment_ord);
    let Some(column) = segment.fast_fields().str(name).unwrap() else { return Vec::new() };
    let text = |ordinal| {
        let mut text = String::new();
        column.ord_to_str(ordinal, &mut text).unwrap();
        text
    };
    column.term_ords(address.doc_id).map(text).collect()
}

impl FakeWriter {
    fn shard_of(&self, id: &str) -> &Shard {
        let hash = id.bytes().fold(0_usize, |hash, byte| hash.wrapping_mul(31) + usize::from(byte));
        &self.shards[hash % self.shards.len()]
    }

    fn delete_one(&self, id: &str) {
        let shard = self.shard_of(id);
        let term = shard.term(&EngineTerm { field: "id", text: id.to_owned() });
        shard.writer.lock().unwrap().delete_term(term);
    }
}

impl EngineWriter for FakeWriter {
    fn upsert(&self, documents: Vec<EngineDocument>) -> Result<(), EngineError> {
        for EngineDocument { id, whole, texts, times, stored } in documents {
            self.delete_one(&id);
            let shard = self.shard_of(&id);
            let field = |name: &str| shard.schema.get_field(name).unwrap();
            let mut document = TantivyDocument::default();
            for (name, text) in whole.iter().chain(&texts) {
                document.add_text(field(name), text);
            }
            for (name, time) in times {
                document.add_i64(field(name), time);
            }
            document.add_bytes(field("stored"), &stored);
            shard.writer.lock().unwrap().add_document(document).unwrap();
        }
        Ok(())
    }

    fn delete(&self, ids: &[String]) -> Result<(), EngineError> {
        for id in ids {
            self.delete_one(id);
        }
        Ok(())
    }

    fn delete_manifests(&self, manifests: &[String]) -> Result<(), EngineError> {
        for shard in self.shards.iter() {
            for id in manifests {
                let term = shard.term(&EngineTerm { field: "manifest", text: id.clone() });
                shard.writer.lock().unwrap().delete_term(term);
            }
        }
        Ok(())
    }

    fn commit(&self) -> Result<(), EngineError> {
        if self.fails_to_commit.swap(false, Ordering::SeqCst) {
            return Err(EngineError::Unavailable { reason: "the network is down".to_owned() });
        }
        for shard in self.shards.iter() {
            shard.writer.lock().unwrap().commit().unwrap();
            shard.reader.reload().unwrap();
        }
        Ok(())
    }
}

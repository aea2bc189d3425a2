//! The calls of one request to the engine.

use std::cell::RefCell;
use std::collections::BTreeSet;

use super::super::deadline::Deadline;
use super::ClusterSource;
use crate::cluster::{
    Cluster, EngineError, EngineResults, EngineSearch, EngineStatistics, EngineTerm, MissingShards,
    index_name,
};

pub(super) struct Calls<'a> {
    cluster: &'a Cluster,
    /// The engine's index of the vocabulary.
    index: String,
    missing_shards: MissingShards,
    deadline: Deadline,
    /// The shards that did not answer, if this is allowed.
    missing: RefCell<BTreeSet<String>>,
}

impl<'a> Calls<'a> {
    pub(super) fn of(source: ClusterSource<'a>, missing_shards: MissingShards, deadline: Deadline) -> Self {
        let ClusterSource { cluster, vocabulary } = source;
        let index = index_name(vocabulary.path());
        Self { cluster, index, missing_shards, deadline, missing: RefCell::default() }
    }

    pub(super) fn statistics(&self, terms: &[EngineTerm]) -> Result<EngineStatistics, EngineError> {
        let found = self.cluster.engine.statistics(&self.index, terms, self.deadline.left())?;
        if found.frequencies.len() != terms.len() {
            return Err(unexpected("frequencies"));
        }
        self.note_missing(&found.missing)?;
        Ok(found)
    }

    /// The results of each search.
    pub(super) fn search(&self, searches: &[EngineSearch]) -> Result<Vec<EngineResults>, EngineError> {
        let found = self.cluster.engine.search(&self.index, searches, self.deadline.left())?;
        let is_complete = |(search, results): (&EngineSearch, &EngineResults)| {
            results.facets.len() == search.facets.len() && results.stored.len() <= search.limit
        };
        if found.len() != searches.len() || !searches.iter().zip(&found).all(is_complete) {
            return Err(unexpected("results"));
        }
        for results in &found {
            self.note_missing(&results.missing)?;
        }
        Ok(found)
    }

    fn note_missing(&self, shards: &[String]) -> Result<(), EngineError> {
        if !shards.is_empty() && self.missing_shards == MissingShards::Fail {
            return Err(EngineError::MissingShards { missing: shards.to_vec() });
        }
        self.missing.borrow_mut().extend(shards.iter().cloned());
        Ok(())
    }

    pub(super) fn missing(&self) -> Vec<String> {
        self.missing.borrow().iter().cloned().collect()
    }
}

fn unexpected(what: &str) -> EngineError {
    EngineError::Rejected { reason: format!("the number of {what} is not the requested one") }
}

//! The frequencies of the words of a request. They are fetched together, because each call takes about as long as a search.

use std::cell::RefCell;
use std::collections::HashSet;

use super::super::conditions::Conditions;
use super::super::deadline::Deadline;
use super::super::opened::OpenedIndex;
use super::super::plans::{Lookup, plans};
use super::super::term_cache::Frequencies;
use super::calls::Calls;
use super::shortlist::EngineConditions;
use crate::cluster::{EngineSearch, EngineTerm};
use crate::error::{IndexError, SearchError};
use crate::query::{ParsedQuery, Plan, Role};

/// What the engine has said about the words of a request.
#[derive(Debug, Default)]
pub(super) struct Known {
    pub(super) documents: u64,
    pub(super) all_length: f32,
    pub(super) bigram_length: f32,
    pub(super) frequencies: Frequencies,
}

pub(super) struct ClusterLookup<'a> {
    vocabulary: &'a OpenedIndex,
    calls: &'a Calls<'a>,
    known: RefCell<Known>,
    /// The terms that were looked up and are not known.
    unknown: RefCell<HashSet<EngineTerm>>,
}

impl<'a> ClusterLookup<'a> {
    pub(super) fn of(vocabulary: &'a OpenedIndex, calls: &'a Calls<'a>) -> Self {
        Self { vocabulary, calls, known: RefCell::default(), unknown: RefCell::default() }
    }

    /// Fetches the frequencies of all words that plans of these phrasings may look up: those that a plan looks up if it finds none.
    pub(super) fn learn(&self, phrasings: &[ParsedQuery], deadline: Deadline) -> Result<(), SearchError> {
        let (plans, _) = plans(self.vocabulary, self, phrasings, 0, deadline)?;
        self.learn_terms(&plans)
    }

    /// Fetches the frequencies of the terms of some plans.
    pub(super) fn learn_terms(&self, plans: &[Plan]) -> Result<(), SearchError> {
        for term in plans.iter().flat_map(|plan| &plan.terms) {
            self.frequency(if term.role == Role::Bigram { "bigram" } else { "all" }, &term.text);
        }
        let terms: Vec<EngineTerm> = self.unknown.take().into_iter().collect();
        if terms.is_empty() {
            return Ok(());
        }
        let found = self.calls.statistics(&terms).map_err(IndexError::from)?;
        let mut known = self.known.borrow_mut();
        known.documents = found.documents;
        (known.all_length, known.bigram_length) = (found.all_length, found.bigram_length);
        for (term, frequency) in terms.into_iter().zip(found.frequencies) {
            let Frequencies { words, bigrams } = &mut known.frequencies;
            let of_field = if term.field == "bigram" { bigrams } else { words };
            of_field.insert(term.text, frequency);
        }
        Ok(())
    }

    pub(super) fn into_known(self) -> Known {
        self.known.into_inner()
    }

    /// 0 until it is known.
    fn frequency(&self, field: &'static str, text: &str) -> u64 {
        let known = self.known.borrow();
        let Frequencies { words, bigrams } = &known.frequencies;
        let frequency = if field == "bigram" { bigrams } else { words }.get(text).copied();
        if frequency.is_none() {
            self.unknown.borrow_mut().insert(EngineTerm { field, text: text.to_owned() });
        }
        frequency.unwrap_or_default()
    }
}

impl Lookup for ClusterLookup<'_> {
    fn word_count(&self, text: &str) -> tantivy::Result<u64> {
        Ok(self.frequency("all", text))
    }

    fn pair_count(&self, text: &str) -> tantivy::Result<u64> {
        Ok(self.frequency("bigram", text))
    }

    fn documents(&self) -> u64 {
        self.known.borrow().documents
    }

    fn has_any(&self, conditions: &Conditions) -> Result<bool, SearchError> {
        let EngineConditions { required, excluded, .. } =
            EngineConditions::of(&self.vocabulary.fields, conditions, None);
        let search = EngineSearch { required, excluded, ..EngineSearch::default() };
        let found = self.calls.search(&[search]).map_err(IndexError::from)?;
        Ok(found.iter().any(|results| results.total > 0))
    }
}

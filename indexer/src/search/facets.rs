//! Counts results by the values of a field: beside a search each facet as if its own filter were not there, for an
//! exploration over exactly what matches.

use std::collections::BTreeMap;

use fixedbitset::FixedBitSet;
use tantivy::columnar::StrColumn;
use tantivy::{DocId, SegmentReader};

use super::admitted::{admitted, numbered};
use super::candidates::Conditions;
use super::counts::Counts;
use super::deadline::Deadline;
use super::loaded::Loaded;
use crate::answer::{FacetBuckets, FacetCount};
use crate::error::IndexError;
use crate::request::{FacetKey, FacetWanted};

/// Values of one facet that are answered: more is not a choice any more.
const VALUES_MAX: usize = 50;
/// Documents whose values are read at once.
const DOCUMENTS_AT_ONCE: usize = 1_024;

/// What is counted: the documents that have the words of a request, by segment, under the conditions beside them.
pub(super) struct Counted<'a> {
    pub(super) loaded: &'a Loaded,
    pub(super) with_words: Vec<FixedBitSet>,
    pub(super) conditions: &'a Conditions,
    pub(super) deadline: Deadline,
}

impl Counted<'_> {
    /// The facets that were asked for, each counted as if its own filter were not there.
    pub(super) fn beside(
        &self,
        wanted: &[FacetKey],
    ) -> Result<BTreeMap<FacetKey, Vec<FacetCount>>, IndexError> {
        let has_filter = |key: &FacetKey| self.conditions.filters.iter().any(|part| part.facet == Some(*key));
        let mut keys = wanted.to_vec();
        keys.sort_unstable();
        keys.dedup();
        let (filtered, free): (Vec<FacetKey>, Vec<FacetKey>) = keys.into_iter().partition(has_filter);
        let mut counts = if free.is_empty() { Vec::new() } else { self.pass(free, None)? };
        for key in filtered {
            counts.extend(self.pass(vec![key], Some(key))?);
        }
        Ok(counts.into_iter().map(|(key, counts)| (key, cut(counts, VALUES_MAX, 1).values)).collect())
    }

    /// What matches, every filter in place.
    pub(super) fn within(&self, wanted: &[FacetWanted]) -> Result<Vec<FacetBuckets>, IndexError> {
        let counted = self.pass(wanted.iter().map(|facet| facet.key).collect(), None)?;
        let cut = |(wanted, (_, counts)): (&FacetWanted, _)| cut(counts, wanted.values_max, wanted.count_min);
        Ok(wanted.iter().zip(counted).map(cut).collect())
    }

    fn pass(
        &self,
        keys: Vec<FacetKey>,
        without: Option<FacetKey>,
    ) -> Result<Vec<(FacetKey, Counts)>, IndexError> {
        let counts = self.count(&keys, without).map_err(IndexError::engine("count facets"))?;
        Ok(keys.into_iter().zip(counts).collect())
    }

    fn count(&self, keys: &[FacetKey], without: Option<FacetKey>) -> tantivy::Result<Vec<Counts>> {
        let admitted = admitted(self.loaded, self.conditions, without, || self.deadline.pass())?;
        let mut counts = vec![Counts::default(); keys.len()];
        let segments = self.loaded.searcher.segment_readers().iter().zip(&self.with_words);
        for ((segment, with_words), at) in segments.zip(0..) {
            let admitted = admitted.as_ref().and_then(|all| all.get(at));
            let documents = documents(segment, with_words, admitted);
            if documents.is_empty() {
                continue;
            }
            for (key, counts) in keys.iter().zip(&mut counts) {
                self.deadline.pass()?;
                // The fields of the facets are named like the facets.
                if let Some(column) = segment.fast_fields().str(key.as_str())? {
                    add_names(&column, &ordinals(&column, &documents), counts)?;
                }
            }
        }
        Ok(counts)
    }
}

/// The documents of a segment that are not deleted, of those that have the words and are admitted.
fn documents(
    segment: &SegmentReader,
    with_words: &FixedBitSet,
    admitted: Option<&FixedBitSet>,
) -> Vec<DocId> {
    let alive = segment.alive_bitset();
    let is_alive = |document: &DocId| alive.is_none_or(|alive| alive.is_alive(*document));
    match admitted {
        Some(admitted) => with_words.intersection(admitted).map(numbered).filter(is_alive).collect(),
        None => with_words.ones().map(numbered).filter(is_alive).collect(),
    }
}

/// How many of some documents have each value of a column, by its ordinal.
fn ordinals(column: &StrColumn, documents: &[DocId]) -> Vec<u64> {
    let mut counts = vec![0; column.num_terms()];
    let ordinals = column.ords();
    let (mut owners, mut rows, mut values) = (Vec::new(), Vec::new(), Vec::new());
    for documents in documents.chunks(DOCUMENTS_AT_ONCE) {
        owners.clear();
        rows.clear();
        ordinals.row_ids_for_docs(documents, &mut owners, &mut rows);
        values.resize(rows.len(), 0);
        ordinals.values.get_vals(&rows, &mut values);
        for value in &values {
            if let Some(count) = usize::try_from(*value).ok().and_then(|at| counts.get_mut(at)) {
                *count += 1;
            }
        }
    }
    counts
}

/// Adds what was counted to the values by their names.
fn add_names(column: &StrColumn, by_ordinal: &[u64], counts: &mut Counts) -> tantivy::Result<()> {
    let (ordinals, of_each): (Vec<u64>, Vec<u64>) =
        (0..).zip(by_ordinal.iter().copied()).filter(|(_, count)| *count > 0).unzip();
    let mut of_each = of_each.into_iter();
    column.dictionary().sorted_ords_to_term_cb(&ordinals, |name| {
        if let (Ok(name), Some(count)) = (std::str::from_utf8(name), of_each.next()) {
            counts.add(name, count);
        }
    })?;
    Ok(())
}

/// The largest values that reach `count_min`, and how much lies beyond them.
fn cut(counts: Counts, values_max: usize, count_min: u64) -> FacetBuckets {
    let mut values: Vec<FacetCount> =
        counts.0.into_iter().map(|(value, count)| FacetCount { value, count }).collect();
    values.retain(|value| value.count >= count_min);
    values.sort_unstable_by(|a, b| b.count.cmp(&a.count).then_with(|| a.value.cmp(&b.value)));
    let beyond = values.split_off(values.len().min(values_max));
    FacetBuckets { values, beyond: beyond.iter().map(|value| value.count).sum() }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::admitted::with_words;
    use super::super::made::{is_deleted, is_said, methods, opened, terms};
    use super::*;
    use crate::query::{Admits, FilterPart};

    const COUNT: u64 = 30_000;

    fn conditions(loaded: &Loaded, method: Option<&str>) -> Conditions {
        let term = |text| tantivy::Term::from_field_text(loaded.fields.method, text);
        let part =
            |text| FilterPart { facet: Some(FacetKey::Method), admits: Admits::AnyOf(vec![term(text)]) };
        Conditions { filters: method.map(part).into_iter().collect(), ..Conditions::default() }
    }

    /// How many of the made documents have each method, of those that are admitted.
    fn expected(is_admitted: impl Fn(u64) -> bool) -> Vec<FacetCount> {
        let alive = |number: &u64| !is_deleted(*number) && is_admitted(*number);
        let has = |number: &u64, name: &str| methods(*number).contains(&name);
        let count = |value: &str| FacetCount {
            value: value.to_owned(),
            count: (0..COUNT).filter(|number| alive(number) && has(number, value)).count() as u64,
        };
        let mut counts: Vec<FacetCount> = ["get", "post", "put"].map(count).to_vec();
        counts.sort_by_key(|of| std::cmp::Reverse(of.count));
        counts
    }

    #[test]
    fn every_document_that_matches_is_counted_once_for_each_of_its_values() {
        let dir = tempfile::tempdir().unwrap();
        let loaded = opened(dir.path(), COUNT);
        let deadline = Deadline::after(Duration::from_mins(10));
        let said = terms(&[("book", 1.0), ("hotel", 1.0)]);
        let is_with_words = |number| is_said(number, "book") || is_said(number, "hotel");
        for method in [None, Some("post")] {
            let conditions = conditions(&loaded, method);
            let counted = |said: &[crate::query::QueryTerm]| Counted {
                loaded: &loaded,
                with_words: with_words(&loaded, said.iter(), || Ok(())).unwrap(),
                conditions: &conditions,
                deadline,
            };
            let has_method = |number: u64| method.is_none_or(|method| methods(number).contains(&method));
            // Beside a search a facet leaves its own filter out; an exploration does not.
            let beside = counted(&said).beside(&[FacetKey::Method, FacetKey::Method]).unwrap();
            assert_eq!(beside[&FacetKey::Method], expected(is_with_words));
            let wanted = FacetWanted { key: FacetKey::Method, values_max: 10, count_min: 1 };
            let within = counted(&said).within(std::slice::from_ref(&wanted)).unwrap();
            assert_eq!(within[0].values, expected(|number| is_with_words(number) && has_method(number)));
            let without_words = counted(&[]).within(&[wanted]).unwrap();
            assert_eq!(without_words[0].values, expected(has_method));
        }
    }
}

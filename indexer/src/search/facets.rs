//! Counts results by the values of a filter: for a search each facet as if its own filter were not set, for an exploration
//! exactly what matches.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use fixedbitset::FixedBitSet;
use tantivy::columnar::StrColumn;
use tantivy::{DocAddress, DocId};

use super::admitted::{Admitted, matching};
use super::conditions::Conditions;
use super::counts::Counts;
use super::deadline::Deadline;
use super::opened::OpenedIndex;
use crate::answer::{FacetBuckets, FacetCount};
use crate::filter::FacetKey;
use crate::request::FacetRequest;

/// Maximum number of values of one facet in a search response.
const VALUES_MAX: usize = 50;
/// Maximum number of values of one segment whose names are read: publishers invent values freely. The rarest beyond are counted
/// together.
const NAMES_MAX: usize = 10_000;
/// Documents whose values are read at once.
const DOCUMENTS_AT_ONCE: usize = 1_024;

/// The documents to count, by segment: those that have the words of a request and satisfy its conditions.
pub(super) struct FacetCounter<'a> {
    pub(super) opened: &'a OpenedIndex,
    pub(super) with_words: &'a [FixedBitSet],
    pub(super) conditions: &'a Conditions,
    /// The documents that satisfy all conditions.
    pub(super) admitted: &'a Admitted,
    pub(super) deadline: Deadline,
}

impl FacetCounter<'_> {
    /// Counts each facet as if its own filter were not set. The values of the `relevant` documents come first, since the others
    /// may only share a word with the request.
    pub(super) fn count_without_own_filter(
        &self,
        keys: &[FacetKey],
        relevant: Option<&[DocAddress]>,
    ) -> tantivy::Result<BTreeMap<FacetKey, Vec<FacetCount>>> {
        let has_filter = |key: &FacetKey| self.conditions.filters.iter().any(|part| part.facet == Some(*key));
        let mut keys = keys.to_vec();
        keys.sort_unstable();
        keys.dedup();
        let (filtered, free): (Vec<FacetKey>, Vec<FacetKey>) = keys.into_iter().partition(has_filter);
        let mut facets = BTreeMap::new();
        for (key, counts) in free.iter().zip(self.count(&free, self.admitted)?) {
            let values = match relevant {
                Some(documents) => relevant_first(counts, &self.count_few(*key, documents)?),
                None => most_frequent(counts, VALUES_MAX, 1).values,
            };
            facets.insert(*key, values);
        }
        for key in filtered {
            let admitted =
                Admitted::of(self.opened, self.conditions, Some(key), || self.deadline.tantivy_check())?;
            for counts in self.count(&[key], &admitted)? {
                facets.insert(key, most_frequent(counts, VALUES_MAX, 1).values);
            }
        }
        Ok(facets)
    }

    /// Counts with all filters.
    pub(super) fn count_with_filters(&self, facets: &[FacetRequest]) -> tantivy::Result<Vec<FacetBuckets>> {
        let keys: Vec<FacetKey> = facets.iter().map(|facet| facet.key).collect();
        let counts = self.count(&keys, self.admitted)?;
        let cut =
            |(facet, counts): (&FacetRequest, _)| most_frequent(counts, facet.values_max, facet.count_min);
        Ok(facets.iter().zip(counts).map(cut).collect())
    }

    /// Counts a few documents, such as the relevant results of a search.
    pub(super) fn count_among(
        &self,
        facets: &[FacetRequest],
        documents: &[DocAddress],
    ) -> tantivy::Result<Vec<FacetBuckets>> {
        let counted = facets.iter().map(|facet| {
            let counts = self.count_few(facet.key, documents)?;
            Ok(most_frequent(counts, facet.values_max, facet.count_min))
        });
        counted.collect()
    }

    /// The counts of each key.
    fn count(&self, keys: &[FacetKey], admitted: &Admitted) -> tantivy::Result<Vec<Counts>> {
        let mut counts = vec![Counts::default(); keys.len()];
        let segments = self.opened.searcher.segment_readers().iter().zip(self.with_words);
        for ((segment, with_words), ordinal) in segments.zip(0..) {
            let documents = matching(segment, with_words, admitted.segment(ordinal));
            if documents.is_empty() {
                continue;
            }
            for (key, counts) in keys.iter().zip(&mut counts) {
                self.deadline.tantivy_check()?;
                if let Some(column) = segment.fast_fields().str(key.as_str())? {
                    let found = (0..).zip(count_ordinals(&column, &documents));
                    let found = found.filter(|(_, count)| *count > 0).collect();
                    add_by_name(&column, found, NAMES_MAX, counts)?;
                }
            }
        }
        Ok(counts)
    }

    /// The counts of a key over a few documents.
    fn count_few(&self, key: FacetKey, documents: &[DocAddress]) -> tantivy::Result<Counts> {
        let mut counts = Counts::default();
        for (segment, ordinal) in self.opened.searcher.segment_readers().iter().zip(0..) {
            let mut of_segment = documents.iter().filter(|at| at.segment_ord == ordinal).peekable();
            if of_segment.peek().is_none() {
                continue;
            }
            if let Some(column) = segment.fast_fields().str(key.as_str())? {
                let mut found: BTreeMap<u64, u64> = BTreeMap::new();
                for value in of_segment.flat_map(|at| column.term_ords(at.doc_id)) {
                    *found.entry(value).or_default() += 1;
                }
                add_by_name(&column, found.into_iter().collect(), NAMES_MAX, &mut counts)?;
            }
        }
        Ok(counts)
    }
}

/// How many of some documents have each value of a column, by ordinal.
fn count_ordinals(column: &StrColumn, documents: &[DocId]) -> Vec<u64> {
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

/// Adds counts by ordinal, in order, to counts by name: the most frequent ones up to `names_max`.
fn add_by_name(
    column: &StrColumn,
    mut found: Vec<(u64, u64)>,
    names_max: usize,
    counts: &mut Counts,
) -> tantivy::Result<()> {
    if found.len() > names_max {
        found.select_nth_unstable_by_key(names_max, |(ordinal, count)| (Reverse(*count), *ordinal));
        counts.others += found.drain(names_max..).map(|(_, count)| count).sum::<u64>();
        found.sort_unstable();
    }
    let (ordinals, of_each): (Vec<u64>, Vec<u64>) = found.into_iter().unzip();
    let mut of_each = of_each.into_iter();
    column.dictionary().sorted_ords_to_term_cb(&ordinals, |name| {
        if let (Ok(name), Some(count)) = (std::str::from_utf8(name), of_each.next()) {
            counts.add(name, count);
        }
    })?;
    Ok(())
}

/// The values of relevant documents first, then the most frequent others.
fn relevant_first(counts: Counts, relevant: &Counts) -> Vec<FacetCount> {
    let count = |(value, count): (String, u64)| {
        // Documents that were found by meaning alone are not counted.
        let relevant = relevant.by_name.get(&value).copied().unwrap_or_default().min(count);
        FacetCount { value, count, relevant: Some(relevant) }
    };
    let mut values: Vec<FacetCount> = counts.by_name.into_iter().map(count).collect();
    let key = |value: &FacetCount| (Reverse(value.relevant), Reverse(value.count));
    values.sort_unstable_by(|a, b| key(a).cmp(&key(b)).then_with(|| a.value.cmp(&b.value)));
    values.into_iter().filter(is_shown).take(VALUES_MAX).collect()
}

/// Whether a value is listed. Some are texts of publishers, such as tags, and nothing can be said beside a value.
fn is_shown(value: &FacetCount) -> bool {
    !manifest::addresses_reader(&value.value)
}

/// The most frequent values with at least `count_min` documents, and the sum of the others.
fn most_frequent(counts: Counts, values_max: usize, count_min: u64) -> FacetBuckets {
    let mut values: Vec<FacetCount> = counts
        .by_name
        .into_iter()
        .map(|(value, count)| FacetCount { value, count, relevant: None })
        .collect();
    values.retain(|value| value.count >= count_min);
    let unnamed = if count_min <= 1 { counts.others } else { 0 };
    values.sort_unstable_by(|a, b| b.count.cmp(&a.count).then_with(|| a.value.cmp(&b.value)));
    let mut buckets = FacetBuckets { values: Vec::new(), other_count: unnamed };
    for value in values {
        if buckets.values.len() < values_max && is_shown(&value) {
            buckets.values.push(value);
        } else {
            buckets.other_count += value.count;
        }
    }
    buckets
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::admitted::with_words;
    use super::super::tests::sample_index::{any_of, has_word, is_deleted, methods, opened, terms};
    use super::*;
    use crate::query::QueryTerm;

    const COUNT: u64 = 30_000;

    /// How many of the sample documents have each method, of those that are admitted.
    fn expected(is_admitted: impl Fn(u64) -> bool) -> Vec<FacetCount> {
        let alive = |number: &u64| !is_deleted(*number) && is_admitted(*number);
        let has = |number: &u64, name: &str| methods(*number).contains(&name);
        let count = |value: &str| FacetCount {
            value: value.to_owned(),
            count: (0..COUNT).filter(|number| alive(number) && has(number, value)).count() as u64,
            relevant: None,
        };
        let mut counts: Vec<FacetCount> = ["get", "post", "put"].map(count).to_vec();
        counts.sort_by_key(|value| Reverse(value.count));
        counts
    }

    /// A value that relevant documents have comes first, and no count changes.
    #[track_caller]
    fn assert_relevant_first(counter: &FacetCounter<'_>, has_own_filter: bool) {
        let rows_of = |relevant: Option<&[DocAddress]>| {
            let facets = counter.count_without_own_filter(&[FacetKey::Method], relevant).unwrap();
            facets[&FacetKey::Method].clone()
        };
        let plain = rows_of(None);
        let second = plain[1].value.clone();
        let mut relevant: Vec<DocAddress> = Vec::new();
        for (segment, ordinal) in counter.opened.searcher.segment_readers().iter().zip(0..) {
            let column = segment.fast_fields().str(FacetKey::Method.as_str()).unwrap().unwrap();
            let has_only_second = |document: &DocId| {
                let names = column.term_ords(*document).map(|value| {
                    let mut name = String::new();
                    column.ord_to_str(value, &mut name).unwrap();
                    name
                });
                names.collect::<Vec<_>>() == [second.as_str()]
            };
            let found = segment.doc_ids_alive().filter(has_only_second).take(2);
            relevant.extend(found.map(|document| DocAddress::new(ordinal, document)));
        }
        assert!(!relevant.is_empty());
        let ordered = rows_of(Some(&relevant));
        if has_own_filter {
            assert_eq!(ordered, plain, "the relevant results have only the value of the filter");
            return;
        }
        assert_eq!(ordered[0].value, second);
        assert_eq!(ordered[0].relevant, Some(relevant.len() as u64));
        assert!(ordered[1..].iter().all(|value| value.relevant == Some(0)), "{ordered:?}");
        for value in plain {
            assert!(ordered.iter().any(|other| (&other.value, other.count) == (&value.value, value.count)));
        }
    }

    #[test]
    fn reads_the_names_of_the_most_frequent_values_only() {
        let dir = tempfile::tempdir().unwrap();
        let opened = opened(dir.path(), COUNT);
        let largest =
            opened.searcher.segment_readers().iter().max_by_key(|segment| segment.num_docs()).unwrap();
        let column = largest.fast_fields().str(FacetKey::Method.as_str()).unwrap().unwrap();
        let by_ordinal = count_ordinals(&column, &largest.doc_ids_alive().collect::<Vec<_>>());
        let counted = |names_max| {
            let mut counts = Counts::default();
            let found = (0..).zip(by_ordinal.iter().copied()).collect();
            add_by_name(&column, found, names_max, &mut counts).unwrap();
            counts
        };
        let (all, two) = (counted(3), counted(2));
        assert_eq!((all.by_name.len(), all.others), (3, 0));
        assert_eq!((two.by_name.len(), two.others), (2, all.by_name["put"]), "the rarest value has no name");
        assert_eq!(most_frequent(two, 1, 1).other_count, most_frequent(all, 1, 1).other_count);
    }

    #[test]
    fn counts_every_matching_document_once_for_each_of_its_values() {
        let dir = tempfile::tempdir().unwrap();
        let opened = opened(dir.path(), COUNT);
        let deadline = Deadline::after(Duration::from_mins(10));
        let words = terms(&[("book", 1.0), ("hotel", 1.0)]);
        let has_words = |number| has_word(number, "book") || has_word(number, "hotel");
        for method in [None, Some("post")] {
            let filters = method.map(|method| any_of(&opened, &[method])).into_iter().collect();
            let conditions = Conditions { filters, ..Conditions::default() };
            let admitted = Admitted::of(&opened, &conditions, None, || Ok(())).unwrap();
            let of = |words: &[QueryTerm]| with_words(&opened, words.iter(), || Ok(())).unwrap();
            let (some, all) = (of(&words), of(&[]));
            let counter = |with_words| FacetCounter {
                opened: &opened,
                with_words,
                conditions: &conditions,
                admitted: &admitted,
                deadline,
            };
            let has_method = |number: u64| method.is_none_or(|method| methods(number).contains(&method));
            let keys = [FacetKey::Method, FacetKey::Method];
            let beside = counter(&some).count_without_own_filter(&keys, None);
            assert_eq!(beside.unwrap()[&FacetKey::Method], expected(has_words));
            let facets = [FacetRequest { key: FacetKey::Method, values_max: 10, count_min: 1 }];
            let within = counter(&some).count_with_filters(&facets).unwrap();
            assert_eq!(within[0].values, expected(|number| has_words(number) && has_method(number)));
            assert_relevant_first(&counter(&some), method.is_some());
            let without_words = counter(&all).count_with_filters(&facets).unwrap();
            assert_eq!(without_words[0].values, expected(has_method));
        }
    }
}

//! Counts results by the values of a field: beside a search each facet as if its own filter were not there, for an
//! exploration over exactly what matches.

use std::collections::{BTreeMap, HashMap};

use tantivy::collector::{Collector, SegmentCollector};
use tantivy::columnar::StrColumn;
use tantivy::query::Query;
use tantivy::{DocId, Score, SegmentOrdinal, SegmentReader};

use super::candidates::Conditions;
use super::loaded::Loaded;
use crate::answer::{FacetBuckets, FacetCount};
use crate::error::IndexError;
use crate::request::{FacetKey, FacetWanted};

/// Values of one facet that are answered: more is not a choice any more.
const VALUES_MAX: usize = 50;

/// Results of each value.
type Counts = HashMap<String, u64>;

/// Counts the facets that were asked for.
pub(super) fn count(
    loaded: &Loaded,
    wanted: &[FacetKey],
    query: Option<&dyn Query>,
    conditions: &Conditions,
) -> Result<BTreeMap<FacetKey, Vec<FacetCount>>, IndexError> {
    let has_filter = |key: &FacetKey| conditions.filters.iter().any(|part| part.facet == Some(*key));
    let mut keys = wanted.to_vec();
    keys.sort_unstable();
    keys.dedup();
    let (filtered, free): (Vec<FacetKey>, Vec<FacetKey>) = keys.into_iter().partition(has_filter);
    let mut counts = BTreeMap::new();
    let cut = |counts: Vec<(FacetKey, Counts)>| {
        counts.into_iter().map(|(key, counts)| (key, cut(counts, VALUES_MAX, 1).values))
    };
    if !free.is_empty() {
        counts.extend(cut(pass(loaded, free, conditions.apply(query, None).as_ref())?));
    }
    for key in filtered {
        counts.extend(cut(pass(loaded, vec![key], conditions.apply(query, Some(key)).as_ref())?));
    }
    Ok(counts)
}

/// Counts what matches, every filter in place.
pub(super) fn explore(
    loaded: &Loaded,
    wanted: &[FacetWanted],
    query: Option<&dyn Query>,
    conditions: &Conditions,
) -> Result<Vec<FacetBuckets>, IndexError> {
    let keys = wanted.iter().map(|facet| facet.key).collect();
    let counted = pass(loaded, keys, conditions.apply(query, None).as_ref())?;
    let cut = |(wanted, (_, counts)): (&FacetWanted, _)| cut(counts, wanted.values_max, wanted.count_min);
    Ok(wanted.iter().zip(counted).map(cut).collect())
}

fn pass(
    loaded: &Loaded,
    keys: Vec<FacetKey>,
    query: &dyn Query,
) -> Result<Vec<(FacetKey, Counts)>, IndexError> {
    let collector = Counter { keys: keys.clone() };
    let counts = loaded.searcher.search(query, &collector).map_err(IndexError::engine("count facets"))?;
    Ok(keys.into_iter().zip(counts).collect())
}

/// The largest values that reach `count_min`, and how much lies beyond them.
fn cut(counts: Counts, values_max: usize, count_min: u64) -> FacetBuckets {
    let mut values: Vec<FacetCount> =
        counts.into_iter().map(|(value, count)| FacetCount { value, count }).collect();
    values.retain(|value| value.count >= count_min);
    values.sort_unstable_by(|a, b| b.count.cmp(&a.count).then_with(|| a.value.cmp(&b.value)));
    let beyond = values.split_off(values.len().min(values_max));
    FacetBuckets { values, beyond: beyond.iter().map(|value| value.count).sum() }
}

struct Counter {
    keys: Vec<FacetKey>,
}

impl Collector for Counter {
    type Fruit = Vec<Counts>;
    type Child = SegmentCounter;

    fn for_segment(&self, _: SegmentOrdinal, segment: &SegmentReader) -> tantivy::Result<SegmentCounter> {
        let columns = self.keys.iter().map(|key| {
            // The fields of the facets are named like the facets.
            let column = segment.fast_fields().str(key.as_str())?;
            let counts = vec![0; column.as_ref().map_or(0, |column| column.dictionary().num_terms())];
            Ok((column, counts))
        });
        Ok(SegmentCounter { columns: columns.collect::<tantivy::Result<_>>()? })
    }

    fn requires_scoring(&self) -> bool {
        false
    }

    fn merge_fruits(&self, fruits: Vec<Self::Fruit>) -> tantivy::Result<Self::Fruit> {
        let mut merged = vec![HashMap::new(); self.keys.len()];
        for fruit in fruits {
            for (into, counts) in merged.iter_mut().zip(fruit) {
                for (value, count) in counts {
                    *into.entry(value).or_insert(0) += count;
                }
            }
        }
        Ok(merged)
    }
}

struct SegmentCounter {
    columns: Vec<(Option<StrColumn>, Vec<u64>)>,
}

impl SegmentCollector for SegmentCounter {
    type Fruit = Vec<Counts>;

    fn collect(&mut self, document: DocId, _: Score) {
        for (column, counts) in &mut self.columns {
            let Some(column) = column else { continue };
            for ordinal in column.term_ords(document) {
                if let Some(count) = usize::try_from(ordinal).ok().and_then(|at| counts.get_mut(at)) {
                    *count += 1;
                }
            }
        }
    }

    fn harvest(self) -> Self::Fruit {
        let named = |(column, counts): (Option<StrColumn>, Vec<u64>)| {
            let Some(column) = column else { return Counts::new() };
            let mut by_value = HashMap::new();
            for (ordinal, count) in (0..).zip(counts).filter(|(_, count)| *count > 0) {
                let mut value = String::new();
                if column.ord_to_str(ordinal, &mut value).unwrap_or(false) {
                    by_value.insert(value, count);
                }
            }
            by_value
        };
        self.columns.into_iter().map(named).collect()
    }
}

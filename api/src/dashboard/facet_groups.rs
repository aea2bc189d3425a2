//! The filters next to the results, each with the number of results that it leaves.
//!
//! If the page lists close matches and less related results separately, the numbers count the close matches.

use indexer::{FacetCount, FacetKey, SearchAnswer};

use super::{labels, links};
use crate::parameters::QueryPairs;

/// Maximum number of values shown in one group; the JSON answer has more.
pub(super) const VALUES_MAX: usize = 8;

pub(crate) struct FacetGroup {
    pub(crate) name: &'static str,
    pub(crate) values: Vec<FacetValue>,
    /// Values that occur only in less related results.
    pub(crate) others: Vec<FacetValue>,
}

pub(crate) struct FacetValue {
    pub(crate) text: String,
    pub(crate) href: String,
    /// Empty if it is not known.
    pub(crate) count: String,
    pub(crate) chosen: bool,
}

/// The facets next to the results, in order.
pub(crate) fn facets() -> Vec<FacetKey> {
    let mut keys: Vec<FacetKey> = FacetKey::ALL.to_vec();
    keys.retain(|key| key.filter().dashboard_position.is_some());
    keys.sort_by_key(|key| key.filter().dashboard_position);
    keys
}

/// The groups of filters. Each value leads to results: the counts are those of the search with the filters of the other groups. A group
/// whose filter is set remains if the search found nothing.
pub(super) fn facet_groups(query: &QueryPairs, answer: &SearchAnswer) -> Vec<FacetGroup> {
    let groups = facets().into_iter().map(|key| group(key, query, answer));
    groups.filter(|group| !group.values.is_empty()).collect()
}

fn group(key: FacetKey, query: &QueryPairs, answer: &SearchAnswer) -> FacetGroup {
    let chosen = query.list(key.as_str()).unwrap_or_default();
    let counts = answer.facets.get(&key).map(Vec::as_slice).unwrap_or_default();
    let value = |value: &str, count: Option<u64>| FacetValue {
        text: labels::facet_value(key, value),
        href: links::toggled(query, key.as_str(), value),
        count: count.map(labels::grouped).unwrap_or_default(),
        chosen: chosen.contains(&value),
    };
    // without its own filter, a group may have close matches although the search has none
    let has_close = answer.relevant.is_some_and(|close| close > 0)
        || counts.iter().any(|facet| facet.relevant.is_some_and(|close| close > 0));
    let is_close = |facet: &&FacetCount| !has_close || facet.relevant.is_none_or(|count| count > 0);
    let shown = |facet: &FacetCount| facet.relevant.filter(|_| has_close).unwrap_or(facet.count);
    // filtering by a value that all results have changes nothing
    let narrows = |facet: &&FacetCount| !chosen.is_empty() || facet.count < answer.total;
    let listed = counts.iter().take(VALUES_MAX);
    let (first, others): (Vec<&FacetCount>, Vec<&FacetCount>) = listed.clone().partition(is_close);
    let first = first.into_iter().filter(narrows).map(|facet| value(&facet.value, Some(shown(facet))));
    let missing = chosen.iter().filter(|one| !listed.clone().any(|facet| facet.value == **one));
    let missing = missing.map(|one| value(one, counts.is_empty().then_some(0)));
    FacetGroup {
        name: key.filter().label,
        values: first.chain(missing).collect(),
        others: others.into_iter().map(|facet| value(&facet.value, Some(facet.count))).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(value: &str, count: u64, relevant: Option<u64>) -> FacetCount {
        FacetCount { value: value.to_owned(), count, relevant }
    }

    /// Texts of values and their counts.
    type Counted = Vec<(String, String)>;

    /// The values of the group, and the others.
    fn safety(query: &str, answer: &SearchAnswer) -> (Counted, Counted) {
        let query = QueryPairs::parse(query).unwrap();
        let groups = facet_groups(&query, answer);
        let group = groups.into_iter().find(|group| group.name == FacetKey::Safety.filter().label).unwrap();
        let pairs = |values: Vec<FacetValue>| {
            values.into_iter().map(|value| (value.text, value.count)).collect::<Vec<_>>()
        };
        (pairs(group.values), pairs(group.others))
    }

    fn answer(relevant: Option<u64>, counts: Vec<FacetCount>) -> SearchAnswer {
        let facets = [(FacetKey::Safety, counts)].into();
        SearchAnswer { total: 35, relevant, facets, ..SearchAnswer::default() }
    }

    fn pair(text: &str, count: &str) -> (String, String) {
        (text.to_owned(), count.to_owned())
    }

    #[test]
    fn counts_close_matches_where_the_page_lists_them_separately() {
        let counts = vec![
            counted("read", 15, Some(2)),
            counted("write", 12, Some(3)),
            counted("irreversible", 8, Some(0)),
        ];
        let (values, others) = safety("q=book+flight", &answer(Some(5), counts));
        assert_eq!(values, [pair("only reads", "2"), pair("writes", "3")]);
        assert_eq!(others, [pair("irreversible", "8")], "these are counts of less related results");
    }

    #[test]
    fn counts_all_results_where_none_is_a_close_match_or_all_are_listed() {
        for relevant in [None, Some(0)] {
            let of = |count| relevant.map(|_| 0).filter(|_| count > 0);
            let counts = vec![counted("read", 15, of(15)), counted("write", 20, of(20))];
            let (values, others) = safety("q=book+flight", &answer(relevant, counts));
            assert_eq!((values, others), (vec![pair("only reads", "15"), pair("writes", "20")], Vec::new()));
        }
    }

    #[test]
    fn group_whose_filter_is_set_counts_close_matches_also_if_the_search_has_none() {
        let counts = vec![counted("read", 4, Some(4)), counted("write", 1, Some(1))];
        let (values, others) = safety("q=book+flight&safety=unknown", &answer(Some(0), counts));
        assert_eq!(values, [pair("only reads", "4"), pair("writes", "1"), pair("effect unknown", "")]);
        assert!(others.is_empty());
        let (values, _) = safety("q=book+flight&safety=unknown", &answer(Some(0), Vec::new()));
        assert_eq!(values, [pair("effect unknown", "0")], "it can be removed");
    }

    #[test]
    fn values_of_all_results_are_left_out_unless_they_are_chosen() {
        let counts = || vec![counted("read", 35, Some(5)), counted("write", 12, Some(0))];
        let found = answer(Some(5), counts());
        let query = QueryPairs::parse("q=book").unwrap();
        assert!(facet_groups(&query, &found).is_empty());
        let (values, _) = safety("q=book&safety=read,unknown", &found);
        assert_eq!(values, [pair("only reads", "5"), pair("effect unknown", "")]);
    }
}

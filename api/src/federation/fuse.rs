//! Merges the results of several registries into one list by reciprocal rank fusion (Cormack, Clarke and Büttcher, SIGIR 2009).
//!
//! Scores of different registries cannot be compared, but ranks can: a result gets `1 / (K + rank)` from each registry that lists it.
//! A registry gives a result only one rank: repetitions of an identifier, in any case, add nothing.

use std::collections::HashMap;

use manifest::{Binding, ListedEntry};

/// The constant of the paper: the first ranks of one registry do not outweigh agreement between registries.
const K: f64 = 60.0;

/// One result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fused {
    pub(crate) place: Place,
    /// The positions of the peers that list it.
    pub(crate) listed_by: Vec<usize>,
}

/// The entry that is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// A position among the results of this instance.
    Own(usize),
    Listed {
        peer: usize,
        position: usize,
    },
}

/// The first `limit` results. `own` has the identifiers of this instance's results, and `listed` the results of each peer. Of several
/// entries with the same identifier, the one of this instance is shown, otherwise the first one whose identifier names the site of its
/// address. The best result of this instance is always included, and at least half of the results are its own if it has so many.
pub(crate) fn fuse(own: &[String], listed: &[&[ListedEntry]], limit: usize) -> Vec<Fused> {
    let mut fused: Vec<(f64, Fused)> = Vec::new();
    let mut by_identifier: HashMap<String, usize> = HashMap::new();
    for (position, identifier) in own.iter().enumerate() {
        by_identifier.entry(identifier.to_lowercase()).or_insert(fused.len());
        fused.push((share(position), Fused { place: Place::Own(position), listed_by: Vec::new() }));
    }
    for (peer, entries) in listed.iter().enumerate() {
        for (position, entry) in entries.iter().enumerate() {
            let place = Place::Listed { peer, position };
            let at = *by_identifier.entry(entry.identifier.to_lowercase()).or_insert(fused.len());
            let Some((score, known)) = fused.get_mut(at) else {
                fused.push((share(position), Fused { place, listed_by: vec![peer] }));
                continue;
            };
            if known.listed_by.contains(&peer) {
                continue;
            }
            *score += share(position);
            known.listed_by.push(peer);
            if is_foreign(known.place, listed) && entry.binding != Binding::Foreign {
                known.place = place;
            }
        }
    }
    // stable: of results with equal scores, those of this instance come first, then those of the peers in their order
    fused.sort_by(|(one, _), (other, _)| other.total_cmp(one));
    let mut results: Vec<Fused> = fused.into_iter().map(|(_, result)| result).collect();
    let own_min = own.len().min(limit.div_ceil(2));
    let mut foreign_left = limit - own_min;
    results.retain(|result| {
        let is_own = matches!(result.place, Place::Own(_));
        let is_kept = is_own || foreign_left > 0;
        foreign_left -= usize::from(is_kept && !is_own);
        is_kept
    });
    let best = results.iter().position(|result| result.place == Place::Own(0));
    if let Some(best) = best.filter(|best| *best >= limit && limit > 0) {
        results.swap(best, limit - 1);
    }
    results.truncate(limit);
    results
}

fn is_foreign(place: Place, listed: &[&[ListedEntry]]) -> bool {
    let Place::Listed { peer, position } = place else { return false };
    let entry = listed.get(peer).and_then(|entries| entries.get(position));
    entry.is_some_and(|entry| entry.binding == Binding::Foreign)
}

/// The score that a registry adds to the result at this position.
fn share(position: usize) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "at most a hundred positions")]
    let rank = (position + 1) as f64;
    1.0 / (K + rank)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn entries(identifiers: &[&str]) -> Vec<ListedEntry> {
        let read = |(site, name): (&str, &str)| {
            let identifier = format!("urn:air:a.example:{name}");
            let url = format!("https://{site}.example/card.json");
            ListedEntry::read(&json!({"identifier": identifier, "url": url})).unwrap()
        };
        identifiers.iter().map(|text| read(text.split_once('/').unwrap())).collect()
    }

    fn own(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| format!("urn:air:a.example:{name}")).collect()
    }

    fn listed(peer: usize, position: usize) -> Place {
        Place::Listed { peer, position }
    }

    #[test]
    fn ranks_are_fused_and_own_entries_lead() {
        let (one, two) = (entries(&["a/x", "a/both", "a/mine"]), entries(&["a/y", "a/both"]));
        let fused = fuse(&own(&["first", "mine"]), &[&one, &two], 10);
        let places: Vec<(Place, &[usize])> =
            fused.iter().map(|result| (result.place, &*result.listed_by)).collect();
        assert_eq!(
            places,
            [
                (listed(0, 1), &[0, 1][..]),
                (Place::Own(1), &[0]),
                (Place::Own(0), &[]),
                (listed(0, 0), &[0]),
                (listed(1, 0), &[1]),
            ]
        );
    }

    #[test]
    fn repetitions_do_not_raise_a_rank_and_foreign_identifiers_do_not_lead() {
        let (liar, honest) = (entries(&["evil/x", "evil/x", "evil/X", "evil/x"]), entries(&["a/y", "a/x"]));
        let fused = fuse(&[], &[&liar, &honest], 10);
        assert_eq!(fused[0], Fused { place: listed(1, 1), listed_by: vec![0, 1] });
        assert_eq!(fused.len(), 2);
        let alone = fuse(&[], &[&liar], 10);
        assert_eq!(alone, [Fused { place: listed(0, 0), listed_by: vec![0] }]);
    }

    #[test]
    fn the_best_own_result_is_always_shown() {
        let peer = entries(&["a/x"]);
        let fused = fuse(&own(&["mine"]), &[&peer, &peer], 1);
        assert_eq!(fused, [Fused { place: Place::Own(0), listed_by: vec![] }]);
        assert!(fuse(&[], &[], 10).is_empty());
    }

    #[test]
    fn half_of_the_results_are_own_ones_however_many_peers_there_are() {
        let peers: Vec<Vec<ListedEntry>> = (0..8)
            .map(|peer| {
                let names: Vec<String> = (0..10).map(|at| format!("a/p{peer}-{at}")).collect();
                entries(&names.iter().map(String::as_str).collect::<Vec<_>>())
            })
            .collect();
        let listed: Vec<&[ListedEntry]> = peers.iter().map(Vec::as_slice).collect();
        let names: Vec<String> = (0..10).map(|at| format!("mine{at}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        for (owns, limit, wanted) in [(10, 10, 5), (10, 5, 3), (2, 10, 2), (0, 10, 0)] {
            let fused = fuse(&own(&names[..owns]), &listed, limit);
            let shown = fused.iter().filter(|result| matches!(result.place, Place::Own(_))).count();
            assert_eq!((fused.len(), shown), (limit, wanted), "{owns} of {limit}");
        }
    }
}

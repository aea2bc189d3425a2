//! Groups results under the best one: near copies of a declaration, or all results of a site.
//!
//! Near copies call one site. They are grouped under the declaration of this site, if possible one that the site publishes, or under the
//! best one of the site that serves them. So a copy that calls another site does not hide a capability, and a declaration of a user of the
//! site does not lead a group of the site's own declarations.

use std::cmp::Reverse;

use super::columns::DocumentTraits;
use super::rank::{Candidate, Ranked};
use crate::index::{is_own_address, is_same_address, precedence};
use crate::request::Grouping;

/// Number of best results that are compared with each other.
const COMPARED_MAX: usize = 100;
/// Maximum number of the 64 fingerprint bits in which near copies may differ: with the same name, and with different names. Unrelated texts
/// differ in 32 bits on average.
const SAME_NAME_BITS: u32 = 8;
const OTHER_NAME_BITS: u32 = 3;

/// The best result of each group, in the order of the results, with the other members of its group.
pub(super) fn grouped(ranked: Vec<Ranked>, by: Grouping) -> Vec<Ranked> {
    match by {
        Grouping::None => ranked,
        Grouping::Copies => by_copies(ranked),
        Grouping::Site => by_site(ranked),
    }
}

fn by_site(ranked: Vec<Ranked>) -> Vec<Ranked> {
    let mut leaders: Vec<Ranked> = Vec::with_capacity(ranked.len());
    for hit in ranked {
        let site = hit.candidate.traits.site;
        match leaders.iter_mut().find(|leader| leader.candidate.traits.site == site) {
            Some(leader) => leader.members.push(hit.candidate),
            None => leaders.push(hit),
        }
    }
    leaders
}

fn by_copies(ranked: Vec<Ranked>) -> Vec<Ranked> {
    let traits = ranked.iter().take(COMPARED_MAX).map(|hit| hit.candidate.traits);
    let mut originals: Vec<DocumentTraits> = traits.filter(|traits| is_own_address(traits.address)).collect();
    // a user of the site may have written a better result
    originals.sort_by_key(|original| Reverse(precedence(original.address)));
    let mut leaders: Vec<(Option<u64>, Ranked)> = Vec::with_capacity(ranked.len());
    for (place, hit) in ranked.into_iter().enumerate() {
        let traits = hit.candidate.traits;
        let original =
            originals.iter().find(|original| is_near_copy(original, &traits)).map(|original| original.tie);
        let leader = leaders.iter_mut().filter(|_| place < COMPARED_MAX).find(|(of, leader)| {
            let leader = &leader.candidate.traits;
            *of == original
                && (original.is_some() || (leader.site == traits.site && is_near_copy(leader, &traits)))
        });
        match leader {
            Some((_, leader)) if original == Some(traits.tie) => lead(leader, hit.candidate),
            Some((_, leader)) => leader.members.push(hit.candidate),
            None => leaders.push((original, hit)),
        }
    }
    leaders.into_iter().map(|(_, leader)| leader).collect()
}

/// Replaces a copy that ranks higher by its original.
fn lead(leader: &mut Ranked, original: Candidate) {
    leader.members.insert(0, std::mem::replace(&mut leader.candidate, original));
}

/// Whether two capabilities call one site and have almost the same words and schema.
fn is_near_copy(a: &DocumentTraits, b: &DocumentTraits) -> bool {
    let bits_max = if a.name == b.name { SAME_NAME_BITS } else { OTHER_NAME_BITS };
    is_same_address(a.address, b.address) && (a.sketch ^ b.sketch).count_ones() <= bits_max
}

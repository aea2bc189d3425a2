//! Puts results behind the best of their group: near copies of one declaration, or all results of a site.

use super::columns::DocumentTraits;
use super::rank::Ranked;
use crate::request::Grouping;

/// Best results that are compared with each other.
const COMPARED_MAX: usize = 100;
/// Bits of their fingerprints in which near copies differ at most, of 64: with the same name, and with another one. Texts that
/// have nothing in common differ in 32.
const SAME_NAME_BITS: u32 = 8;
const OTHER_NAME_BITS: u32 = 3;

/// The best result of each group, in the order of the results, with the others behind it.
pub(super) fn grouped(ranked: Vec<Ranked>, by: Grouping) -> Vec<Ranked> {
    let is_of_group = |leader: &Ranked, hit: &Ranked| {
        let (leader, hit) = (&leader.candidate.traits, &hit.candidate.traits);
        match by {
            Grouping::None => false,
            Grouping::Copies => is_near_copy(leader, hit),
            Grouping::Site => leader.site == hit.site,
        }
    };
    let compared_max = if by == Grouping::Copies { COMPARED_MAX } else { usize::MAX };
    let mut leaders: Vec<Ranked> = Vec::with_capacity(ranked.len());
    for (place, hit) in ranked.into_iter().enumerate() {
        let leader = leaders.iter_mut().find(|leader| place < compared_max && is_of_group(leader, &hit));
        match leader {
            Some(leader) => leader.members.push(hit.candidate),
            None => leaders.push(hit),
        }
    }
    leaders
}

/// Whether two capabilities have almost the same words and schema.
fn is_near_copy(a: &DocumentTraits, b: &DocumentTraits) -> bool {
    let bits_max = if a.name == b.name { SAME_NAME_BITS } else { OTHER_NAME_BITS };
    (a.sketch ^ b.sketch).count_ones() <= bits_max
}

//! Pseudo-random numbers from a stable hash of a name, for jitter and spreading.
//!
//! The same name gives the same number on every machine and in every version, so that schedules are reproducible. The numbers are
//! predictable, so do not use them for secrets.

use std::collections::HashMap;
use std::time::Duration;

/// The hash of a name (FNV-1a and a final mix).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Seed(u64);

impl Seed {
    /// The seed of a name: a host, a site, an address group.
    pub fn of(name: &str) -> Self {
        Self::of_bytes(name.as_bytes())
    }

    /// The seed of a name and a counter, which differs for each request or visit.
    #[must_use]
    pub fn with_counter(self, count: u64) -> Self {
        Self(mix(self.0 ^ mix(count)))
    }

    pub(crate) fn of_bytes(bytes: &[u8]) -> Self {
        const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
        const PRIME: u64 = 0x0000_0100_0000_01b3;
        let hash = bytes.iter().fold(OFFSET, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(PRIME));
        Self(mix(hash))
    }

    /// A number below `limit`; 0 if `limit` is 0.
    pub fn below(self, limit: u64) -> u64 {
        self.0.checked_rem(limit).unwrap_or(0)
    }

    /// Between 0 and `percent_max` percent of `base`.
    pub(crate) fn share_of(self, base: Duration, percent_max: u32) -> Duration {
        let steps = u32::try_from(self.below(1_001)).unwrap_or(0);
        base.saturating_mul(percent_max).checked_div(100_000).unwrap_or_default().saturating_mul(steps)
    }
}

/// Orders items of several owners in rounds with one item of each owner, so that an owner of many items does not displace the items of
/// others. The items of one owner keep their order. Within a round, the order is that of the owners' seeds.
pub fn take_turns<T>(items: impl IntoIterator<Item = (Seed, T)>) -> Vec<T> {
    let mut rounds: HashMap<Seed, usize> = HashMap::new();
    let sort_key = |(owner, item): (Seed, T)| {
        let round = rounds.entry(owner).or_default();
        *round += 1;
        ((*round, owner.0), item)
    };
    let mut keyed: Vec<((usize, u64), T)> = items.into_iter().map(sort_key).collect();
    keyed.sort_by_key(|(sort_key, _)| *sort_key);
    keyed.into_iter().map(|(_, item)| item).collect()
}

/// Makes similar hashes differ in all bits (the finaliser of `SplitMix64`).
const fn mix(mut value: u64) -> u64 {
    value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_covers_the_whole_range_up_to_its_percentage() {
        let base = Duration::from_secs(100);
        let shares: Vec<Duration> = (0..2_000)
            .map(|count| Seed::of("skyhop.example").with_counter(count).share_of(base, 20))
            .collect();
        assert!(shares.iter().all(|share| *share <= Duration::from_secs(20)));
        assert!(shares.iter().any(|share| *share < Duration::from_secs(1)));
        assert!(shares.iter().any(|share| *share > Duration::from_secs(19)));
    }

    #[test]
    fn owners_of_many_items_and_of_few_take_turns() {
        let (many, few) = (Seed::of("many.example"), Seed::of("few.example"));
        let items = (0..50).map(|number| (many, number)).chain([(few, 100), (few, 101)]);
        let taken = take_turns(items);
        assert_eq!(taken.len(), 52);
        for (round, item) in [(0, 100), (1, 101)] {
            assert!(taken[2 * round..2 * round + 2].contains(&item), "{taken:?}");
        }
        let of_many: Vec<i32> = taken.into_iter().filter(|item| *item < 50).collect();
        assert!(of_many.is_sorted(), "{of_many:?}");
        let firsts: Vec<&str> = (0..40)
            .map(|visit| {
                let turn = |name| (Seed::of(name).with_counter(visit), name);
                take_turns([turn("a.example"), turn("b.example")])[0]
            })
            .collect();
        assert!(firsts.contains(&"a.example") && firsts.contains(&"b.example"), "no name is always first");
    }

    #[test]
    fn the_same_name_gives_the_same_number() {
        assert_eq!(Seed::of("a.example"), Seed::of("a.example"));
        assert_ne!(Seed::of("a.example"), Seed::of("b.example"));
        assert_eq!(Seed::of("a.example").below(0), 0);
    }
}

//! Markers of commits, at least one on each shard.
//!
//! A server that is killed loses what was staged on it, and its next commit succeeds without it. So a writer stages markers on all shards
//! before anything else, and looks for all of them after the commit.

use crate::proto::IndexTopology;

/// Maximum number of markers, for any weights of shards.
const MARKERS_MAX: u64 = 1_024;
/// Number of keys that are tried: enough to meet every remainder of a division by [`MARKERS_MAX`].
const KEYS_TRIED_MAX: u32 = 100_000;

/// Keys of documents, at least one for each shard of an index.
///
/// The broker divides the hash of a key by the sum of the weights, and each shard has a range of remainders. Keys for all remainders reach
/// every shard, in whatever order the broker lists them.
pub(crate) fn keys(topology: Option<&IndexTopology>) -> Vec<String> {
    // An index on a single shard has the weight 0.
    let weights =
        topology.iter().flat_map(|index| &index.partitions).map(|shard| u64::from(shard.weight.max(1)));
    let weights: Vec<u64> = weights.collect();
    let divisor = weights.iter().copied().fold(0, greatest_common_divisor).max(1);
    let sum = weights.iter().map(|weight| weight / divisor).sum::<u64>().clamp(1, MARKERS_MAX);
    let mut found = vec![None; usize::try_from(sum).unwrap_or(1)];
    let mut left = found.len();
    for key in (0..KEYS_TRIED_MAX).map(|number| format!("marker {number}")) {
        let remainder = usize::try_from(hash(&key) % sum).unwrap_or_default();
        if let Some(free @ None) = found.get_mut(remainder) {
            *free = Some(key);
            left -= 1;
        }
        if left == 0 {
            break;
        }
    }
    found.into_iter().flatten().collect()
}

/// FNV-1a, as the broker hashes keys.
fn hash(key: &str) -> u64 {
    key.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

fn greatest_common_divisor(one: u64, other: u64) -> u64 {
    if other == 0 { one } else { greatest_common_divisor(other, one % other) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::Partition;

    fn keys_of(weights: &[u32]) -> Vec<String> {
        let partitions = weights.iter().map(|weight| Partition { weight: *weight });
        keys(Some(&IndexTopology { partitions: partitions.collect(), ..IndexTopology::default() }))
    }

    #[test]
    fn keys_have_every_remainder() {
        assert_eq!(keys(None).len(), 1);
        let cases = [
            (&[0][..], 1),
            (&[1, 1, 1], 3),
            (&[5, 5, 4], 14),
            (&[2, 4], 3),
            (&[1; 64], 64),
            (&[9_999, 1], 1_024),
        ];
        for (weights, sum) in cases {
            let keys = keys_of(weights);
            let remainders: std::collections::BTreeSet<u64> =
                keys.iter().map(|key| hash(key) % sum).collect();
            assert_eq!((keys.len() as u64, remainders.len() as u64), (sum, sum), "{weights:?}");
        }
    }

    #[test]
    fn the_hash_is_that_of_the_broker() {
        assert_eq!(hash(""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(hash("a"), 0xaf63_dc4c_8601_ec8c);
    }
}

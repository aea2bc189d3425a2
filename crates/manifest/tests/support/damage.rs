//! Damages documents in a way that a seed determines, for the tests that run fuzz targets without a fuzzer.

/// Numbers from a seed (`SplitMix64`).
struct Seeded(u64);

impl Seeded {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end.max(1) as u64).unwrap_or_default()
    }
}

/// The bytes, of which some are changed, removed, repeated or replaced by tokens of the format.
pub(crate) fn damaged(bytes: &[u8], tokens: &[&str], seed: u64) -> Vec<u8> {
    let mut seeded = Seeded(seed);
    let mut damaged = bytes.to_vec();
    for _ in 0..=seeded.below(4) {
        let at = seeded.below(damaged.len() + 1);
        let end = (at + seeded.below(24)).min(damaged.len());
        match seeded.below(4) {
            0 => damaged.drain(at..end).for_each(drop),
            1 => damaged.splice(at..at, bytes.iter().copied().skip(at).take(end - at)).for_each(drop),
            2 => damaged.splice(at..end, tokens[seeded.below(tokens.len())].bytes()).for_each(drop),
            _ => damaged[at..end].iter_mut().for_each(|byte| *byte ^= 1 << (seeded.0 % 8)),
        }
    }
    damaged
}

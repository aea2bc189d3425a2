//! The forward index for re-ranking: the stems of a capability and the character grams of its names, as numbers in columns.
//!
//! A stem is hashed to 24 bits. With a hundred stems and a hundred words of a request, the probability of a collision is about one in a
//! thousand.

use manifest::SiteName;
use sha2::{Digest as _, Sha256};

/// Distinct numbers of stems.
const STEM_BITS: u32 = 24;
const COUNT_BITS: u32 = 6;
const COUNT_MAX: u64 = (1 << COUNT_BITS) - 1;
const PART_BITS: u32 = 2;

/// Maximum weight of one stem in a fingerprint.
const SKETCH_WEIGHT_MAX: u32 = 4;

/// The text of a capability that contains a stem.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// The capability's own text, weighted: the field `all`.
    Own,
    /// Example requests.
    Example,
    /// The description of the manifest.
    About,
}

/// A stem of a capability.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stem {
    pub(crate) number: u32,
    pub(crate) part: Part,
    /// Number of occurrences.
    pub(crate) count: u32,
}

/// Maximum number of stems of one text, including repeats. Texts begin with the most important stems.
const fn stems_max(part: Part) -> usize {
    match part {
        Part::Own => 400,
        Part::Example | Part::About => 80,
    }
}

/// Encodes the distinct stems of a text, which are joined by spaces, for the column.
pub(crate) fn encoded(text: &str, part: Part) -> Vec<u64> {
    let stems = text.split(' ').filter(|stem| !stem.is_empty()).take(stems_max(part));
    let mut numbers: Vec<u32> = stems.map(stem_number).collect();
    numbers.sort_unstable();
    let groups = numbers.chunk_by(|a, b| a == b);
    groups
        .filter_map(|group| {
            let number = u64::from(*group.first()?);
            Some(
                (number << (PART_BITS + COUNT_BITS))
                    | ((part as u64) << COUNT_BITS)
                    | (group.len() as u64).min(COUNT_MAX),
            )
        })
        .collect()
}

/// The fingerprint of a text whose stems are encoded, without some of them (SimHash): the more weight two texts share, the fewer
/// bits differ.
pub(crate) fn sketch(stems: &[u64], left_out: &[u32]) -> u64 {
    let mut sums = [0_i32; 64];
    for stem in stems.iter().copied().map(decoded).filter(|stem| !left_out.contains(&stem.number)) {
        let weight = i32::try_from(stem.count.min(SKETCH_WEIGHT_MAX)).unwrap_or(1);
        let bits = mixed(u64::from(stem.number));
        for (bit, sum) in sums.iter_mut().enumerate() {
            *sum += if (bits >> bit) & 1 == 1 { weight } else { -weight };
        }
    }
    sums.iter().enumerate().filter(|(_, sum)| **sum > 0).fold(0, |bits, (bit, _)| bits | (1 << bit))
}

/// Spreads a number over 64 bits (the finaliser of `MurmurHash3`).
fn mixed(number: u64) -> u64 {
    let number = (number ^ (number >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    let number = (number ^ (number >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    number ^ (number >> 33)
}

/// Decodes a value of the column.
pub(crate) fn decoded(value: u64) -> Stem {
    let part = match (value >> COUNT_BITS) & ((1 << PART_BITS) - 1) {
        0 => Part::Own,
        1 => Part::Example,
        _ => Part::About,
    };
    let number = u32::try_from(value >> (PART_BITS + COUNT_BITS)).unwrap_or(u32::MAX);
    Stem { number, part, count: u32::try_from(value & COUNT_MAX).unwrap_or(1) }
}

/// The number of a stem.
pub(crate) fn stem_number(stem: &str) -> u32 {
    let hash = hash(stem);
    u32::try_from((hash ^ (hash >> STEM_BITS) ^ (hash >> (2 * STEM_BITS))) & ((1 << STEM_BITS) - 1))
        .unwrap_or(0)
}

/// The number of a character gram.
pub(crate) fn gram_number(gram: &str) -> u16 {
    let hash = hash(gram);
    u16::try_from((hash ^ (hash >> 16) ^ (hash >> 32) ^ (hash >> 48)) & 0xffff).unwrap_or(0)
}

/// The bits of the number of an address that contain an [`AddressOf`].
const ADDRESS_OF: u64 = 0b11;

/// Who declares a capability, in order of precedence among near copies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u64)]
pub(crate) enum AddressOf {
    Others = 0,
    /// The site that is called names the document, but its users may have written it.
    Users = 1,
    /// The customer of a host of the site that is called.
    Host = 2,
    /// The site that is called.
    Site = 3,
}

/// The number of the site that a capability calls, and who declares it. Nobody can choose a name with the number of another site, so it is
/// of a cryptographic hash.
pub(crate) fn number_of_address(called: &SiteName, of: AddressOf) -> u64 {
    let digest = Sha256::digest(called.as_str());
    let number = digest.iter().take(8).fold(0, |number, byte| (number << 8) | u64::from(*byte));
    number & !ADDRESS_OF | of as u64
}

/// Whether two numbers belong to addresses of one site.
pub(crate) const fn is_same_address(one: u64, other: u64) -> bool {
    (one ^ other) & !ADDRESS_OF == 0
}

/// The precedence of who declares a capability: the value of its [`AddressOf`].
pub(crate) const fn precedence(number: u64) -> u64 {
    number & ADDRESS_OF
}

/// Whether the site that is called declares the capability.
pub(crate) const fn is_own_address(number: u64) -> bool {
    precedence(number) != AddressOf::Others as u64
}

/// A stable hash of a text (FNV-1a).
pub(crate) fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decodes_stems_with_part_and_count() {
        let values = encoded("flight book flight", Part::Example);
        let mut stems: Vec<Stem> = values.into_iter().map(decoded).collect();
        stems.sort_unstable_by_key(|stem| stem.count);
        let stem = |text, count| Stem { number: stem_number(text), part: Part::Example, count };
        assert_eq!(stems, [stem("book", 1), stem("flight", 2)]);
        assert!(encoded("", Part::Own).is_empty());
    }

    #[test]
    fn near_copies_have_close_fingerprints() {
        let long = |word: &str| {
            let words = (0..60).map(|at| format!("word{at}")).collect::<Vec<_>>().join(" ");
            encoded(&format!("{word} {words}"), Part::Own)
        };
        let distance = |a: &[u64], b: &[u64]| (sketch(a, &[]) ^ sketch(b, &[])).count_ones();
        assert!(distance(&long("skyhop"), &long("cloudline")) <= 8);
        assert!(distance(&long("skyhop"), &encoded("book a seat on a train", Part::Own)) > 16);
        let left_out = [stem_number("skyhop"), stem_number("cloudline")];
        assert_eq!(sketch(&long("skyhop"), &left_out), sketch(&long("cloudline"), &left_out));
    }

    #[test]
    fn bounds_stems_and_counts() {
        let same = "word ".repeat(1_000);
        let stems: Vec<Stem> = encoded(&same, Part::Own).into_iter().map(decoded).collect();
        assert_eq!(stems, [Stem { number: stem_number("word"), part: Part::Own, count: 63 }]);
        let many: Vec<String> = (0..1_000).map(|at| format!("word{at}")).collect();
        assert!(encoded(&many.join(" "), Part::About).len() <= 80);
    }
}

//! Checks that reading costs little more than parsing. Time depends on the machine, so this test counts allocated blocks, which are needed
//! to copy texts, split them into words or build tables. `tests/bench manifest` compares the time in a release build.

#![expect(clippy::unwrap_used, reason = "a failed test should show the line")]

mod support;

use allocation_counter::measure;
use support::Case;

/// Maximum ratio of the blocks of reading to those of parsing, in tenths.
const FACTOR_TENTHS_MAX: u64 = 135;
/// Sizes in bytes of the fixtures that are counted. In shorter ones, the fixed cost of reading dominates; longer ones test limits.
const BYTES: std::ops::Range<usize> = 1_024..65_536;

#[test]
fn reading_takes_few_blocks_beyond_those_of_parsing() {
    let parse = |case: &Case| serde_json::from_slice::<serde_json::Value>(&case.bytes);
    let cases: Vec<Case> = Case::all().into_iter().filter(|case| BYTES.contains(&case.bytes.len())).collect();
    let cases: Vec<&Case> =
        cases.iter().filter(|case| parse(case).is_ok_and(|value| value.is_object())).collect();
    // The first call builds tables that all later calls share.
    for case in &cases {
        drop(case.read());
    }
    let blocks =
        |work: &dyn Fn(&Case)| -> u64 { cases.iter().map(|case| measure(|| work(case)).count_total).sum() };
    let parsed = blocks(&|case| drop(parse(case).unwrap()));
    let read = blocks(&|case| drop(case.read()));
    assert!(
        10 * read <= FACTOR_TENTHS_MAX * parsed,
        "reading {} fixtures takes {read} blocks, parsing them {parsed}",
        cases.len()
    );
}

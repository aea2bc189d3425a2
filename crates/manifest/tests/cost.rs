//! Reading costs little more than parsing. Time depends on the machine, so blocks of memory are counted here: what takes them
//! copies texts, splits them into words or builds tables. `tests/bench manifest` compares the time in a release build.

#![expect(clippy::unwrap_used, reason = "a failed test should show the line")]

mod support;

use allocation_counter::measure;
use support::Case;

/// Blocks that reading may take for each block that parsing takes, in tenths.
const FACTOR_TENTHS_MAX: u64 = 140;
/// Bytes of the fixtures that are counted: for shorter ones, what each reading takes counts more than what is read, and
/// longer ones test limits.
const BYTES: std::ops::Range<usize> = 1_024..65_536;

#[test]
fn reading_takes_few_blocks_beyond_those_of_parsing() {
    let parse = |case: &Case| serde_json::from_slice::<serde_json::Value>(&case.bytes);
    let cases: Vec<Case> = Case::all().into_iter().filter(|case| BYTES.contains(&case.bytes.len())).collect();
    let cases: Vec<&Case> =
        cases.iter().filter(|case| parse(case).is_ok_and(|value| value.is_object())).collect();
    // The first reading builds tables that all readings share.
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

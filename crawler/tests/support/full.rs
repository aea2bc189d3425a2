//! How large a test of faults is: a small measure in every run, the full one by `tests/faults full`.

/// The number that a variable of the environment names, or else the small measure.
#[expect(clippy::disallowed_methods, reason = "the knobs of the fault tests, for their full measure")]
pub(crate) fn wanted(variable: &str, small: usize) -> usize {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(small)
}

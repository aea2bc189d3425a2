//! Size of a fault test: small in every run, full with `tests/faults full`.

/// The number in an environment variable, or the small size.
#[expect(clippy::disallowed_methods, reason = "the settings for the full size of the fault tests")]
pub(crate) fn wanted(variable: &str, small: usize) -> usize {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(small)
}

//! Formats numbers of bytes.

const UNITS: [&str; 4] = ["bytes", "KiB", "MiB", "GiB"];
/// From this number on, the next larger unit is used, in which the number has at least two digits.
const UNIT_MAX: u64 = 10 * 1024;

/// Bytes in the unit in which they have at least two digits, rounded down: `932 KiB`, `58 GiB`.
pub(crate) fn in_words(bytes: u64) -> String {
    let (mut count, mut unit) = (bytes, 0);
    while count >= UNIT_MAX && unit + 1 < UNITS.len() {
        count /= 1024;
        unit += 1;
    }
    format!("{count} {}", UNITS.get(unit).unwrap_or(&"bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_in_the_unit_that_fits() {
        for (bytes, words) in [
            (0, "0 bytes"),
            (10_239, "10239 bytes"),
            (933_888, "912 KiB"),
            (600 * 1024 * 1024, "600 MiB"),
            (59_521 * 1024 * 1024, "58 GiB"),
        ] {
            assert_eq!(in_words(bytes), words);
        }
        assert!(in_words(u64::MAX).ends_with(" GiB"));
    }
}

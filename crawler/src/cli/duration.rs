//! Durations as people type them: `100ms`, `3s`, `10m`, `24h`, `7d`, and sums like `1h30m`.

use std::time::Duration;

/// Parses a duration; a bare `0` is zero, any other number needs a unit.
pub(crate) fn parse(text: &str) -> Result<Duration, String> {
    let wrong = || format!("\"{text}\" is not a duration: write it like 100ms, 3s, 10m, 24h or 7d");
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    let mut rest = text.trim();
    if rest.is_empty() {
        return Err(wrong());
    }
    let mut total = Duration::ZERO;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).ok_or_else(wrong)?;
        let (number, tail) = rest.split_at(digits);
        let letters = tail.find(|c: char| c.is_ascii_digit()).unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(letters);
        let count: u64 = number.parse().map_err(|_| wrong())?;
        total = total.checked_add(length(count, unit.trim()).ok_or_else(wrong)?).ok_or_else(wrong)?;
        rest = tail;
    }
    Ok(total)
}

fn length(count: u64, unit: &str) -> Option<Duration> {
    let seconds = match unit {
        "ms" => return Some(Duration::from_millis(count)),
        "s" => 1,
        "m" | "min" => 60,
        "h" => 3_600,
        "d" => 86_400,
        "w" => 604_800,
        _ => return None,
    };
    count.checked_mul(seconds).map(Duration::from_secs)
}

/// Formats a duration with at most two units: `1 d 4 h`, `3 m 5 s`, `250 ms`.
pub(crate) fn in_words(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        0 => format!("{} ms", duration.as_millis()),
        1..60 => format!("{:.1} s", duration.as_secs_f64()).replace(".0 s", " s"),
        60..3_600 => two_units(seconds, (60, "min"), (1, "s")),
        3_600..86_400 => two_units(seconds, (3_600, "h"), (60, "min")),
        _ => two_units(seconds, (86_400, "d"), (3_600, "h")),
    }
}

fn two_units(seconds: u64, large: (u64, &str), small: (u64, &str)) -> String {
    let (whole, part) = (seconds / large.0, seconds % large.0 / small.0);
    if part == 0 { format!("{whole} {}", large.1) } else { format!("{whole} {} {part} {}", large.1, small.1) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_durations() {
        for (text, seconds) in
            [("0", 0.0), ("0s", 0.0), ("100ms", 0.1), ("3s", 3.0), ("1h30m", 5_400.0), ("7d", 604_800.0)]
        {
            assert_eq!(parse(text).unwrap(), Duration::from_secs_f64(seconds), "{text}");
        }
        for wrong in ["", "3", "s", "3x", "-1s", "1.5s", "99999999999999999999s", "999999999999999999w"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn formats_durations() {
        for (ms, words) in
            [(250, "250 ms"), (3_000, "3 s"), (3_500, "3.5 s"), (185_000, "3 min 5 s"), (86_400_000, "1 d")]
        {
            assert_eq!(in_words(Duration::from_millis(ms)), words);
        }
    }
}

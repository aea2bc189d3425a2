//! Durations and rates as publishers write them: "24h", "900s", "PT1H", "30/minute", "100 per hour".
//!
//! Unreadable texts are `None`; the caller keeps the published text.

use crate::model::RateLimit;

/// Seconds in a unit; `m` means minutes, and a month has 30 days.
fn unit_seconds(unit: &str) -> Option<u64> {
    Some(match unit.trim().to_ascii_lowercase().as_str() {
        "s" | "sec" | "secs" | "second" | "seconds" => 1,
        "m" | "min" | "mins" | "minute" | "minutes" => 60,
        "h" | "hr" | "hrs" | "hour" | "hours" => 3_600,
        "d" | "day" | "days" => 86_400,
        "w" | "week" | "weeks" => 604_800,
        "month" | "months" => 2_592_000,
        "y" | "year" | "years" => 31_536_000,
        _ => return None,
    })
}

/// Seconds of a duration: a number with a unit, a bare number of seconds, or ISO 8601 without years and months.
pub(crate) fn duration_s(text: &str) -> Option<u64> {
    let text = text.trim();
    if let Some(iso) = text.strip_prefix('P').or_else(|| text.strip_prefix('p')) {
        return iso_duration_s(iso);
    }
    let digits = text.len() - text.trim_start_matches(|letter: char| letter.is_ascii_digit()).len();
    let (number, unit) = text.split_at_checked(digits)?;
    let number: u64 = number.parse().ok()?;
    if unit.is_empty() { Some(number) } else { number.checked_mul(unit_seconds(unit)?) }
}

pub(crate) fn is_duration(text: &str) -> bool {
    duration_s(text).is_some()
}

/// Whether a text is a rate that allows a request.
pub(crate) fn is_rate(text: &str) -> bool {
    rate(text).requests.is_some_and(|requests| requests > 0)
}

fn iso_duration_s(text: &str) -> Option<u64> {
    let mut total: u64 = 0;
    let mut number = String::new();
    let mut in_time = false;
    for letter in text.chars() {
        match letter.to_ascii_uppercase() {
            'T' => in_time = true,
            digit @ '0'..='9' => number.push(digit),
            unit => {
                let seconds = match (unit, in_time) {
                    ('W', false) => 604_800,
                    ('D', false) => 86_400,
                    ('H', true) => 3_600,
                    ('M', true) => 60,
                    ('S', true) => 1,
                    _ => return None,
                };
                let count: u64 = number.parse().ok()?;
                total = total.checked_add(count.checked_mul(seconds)?)?;
                number.clear();
            }
        }
    }
    (number.is_empty() && text.len() > 1).then_some(total)
}

/// A rate such as "30/minute", "60 requests per hour", "10 req/s", "120/minute". Always keeps the text.
pub(crate) fn rate(text: &str) -> RateLimit {
    let mut rate = RateLimit { text: Some(text.to_owned()), ..RateLimit::default() };
    let Some((count, unit)) = text.split_once('/').or_else(|| text.split_once(" per ")) else { return rate };
    let digits: String = count
        .trim()
        .chars()
        .take_while(|letter| letter.is_ascii_digit() || matches!(letter, ',' | '_'))
        .collect();
    let requests = digits.replace([',', '_'], "").parse().ok();
    let window_s = unit_seconds(unit).or_else(|| duration_s(unit));
    if let (Some(requests), Some(window_s)) = (requests, window_s) {
        rate.requests = Some(requests);
        rate.window_s = Some(window_s);
    }
    rate
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_durations() {
        for (text, seconds) in [
            ("24h", Some(86_400)),
            ("7d", Some(604_800)),
            ("900s", Some(900)),
            ("15 minutes", Some(900)),
            ("3600", Some(3_600)),
            ("PT1H30M", Some(5_400)),
            ("P1D", Some(86_400)),
            ("soon", None),
            ("", None),
            ("P", None),
            ("99999999999999999999h", None),
        ] {
            assert_eq!(duration_s(text), seconds, "{text}");
        }
    }

    #[test]
    fn parses_rates() {
        for (text, requests, window_s) in [
            ("30/minute", Some(30), Some(60)),
            ("60 req/min", Some(60), Some(60)),
            ("1,000 requests per hour", Some(1_000), Some(3_600)),
            ("10/10s", Some(10), Some(10)),
            ("generous", None, None),
            ("a/b", None, None),
        ] {
            let rate = rate(text);
            assert_eq!((rate.requests, rate.window_s), (requests, window_s), "{text}");
            assert_eq!(rate.text.as_deref(), Some(text));
        }
    }
}

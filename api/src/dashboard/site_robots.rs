//! Texts about the robots.txt of a site.

use policy::RobotsCause;

use crate::text;

/// Maximum length of a repeated text, in characters.
const WORDS_CHARS_MAX: usize = 300;

/// The status and the cause of a verdict, in parentheses.
pub(super) fn details(
    http_status: Option<u16>,
    (cause, redirects_to): (Option<&str>, Option<&str>),
) -> String {
    let status = http_status.map(|status| format!("HTTP {status}"));
    let cause = cause.map(|cause| text::cut(&RobotsCause::in_words(cause), WORDS_CHARS_MAX));
    let cause = cause.into_iter().chain(redirects_to.map(str::to_owned));
    let details: Vec<String> = status.into_iter().chain(cause).collect();
    if details.is_empty() { String::new() } else { format!(" ({})", details.join(", ")) }
}

/// Maximum number of preferences of one host that are shown.
const PREFERENCES_MAX: usize = 10;

/// The Content-Usage and Content-Signal lines of a robots.txt.
pub(super) fn preferences(robots: &str) -> Vec<String> {
    let is_preference = |line: &&str| {
        let name = line.split(':').next().unwrap_or_default().trim();
        name.eq_ignore_ascii_case("content-signal") || name.eq_ignore_ascii_case("content-usage")
    };
    let lines = robots.lines().map(str::trim).filter(is_preference);
    lines.take(PREFERENCES_MAX).map(|line| text::cut(line, WORDS_CHARS_MAX)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cause_of_a_verdict_follows_its_status() {
        assert_eq!(details(Some(503), (Some("rate_limited"), None)), " (HTTP 503, it asked for a delay)");
        assert_eq!(details(None, (Some("dns_failed"), None)), " (name not resolved)");
        let moved = details(Some(301), (Some("redirects_to_other_site"), Some("other.example")));
        assert_eq!(moved, " (HTTP 301, redirect to another site, other.example)");
        assert_eq!(details(Some(200), (None, None)), " (HTTP 200)");
    }

    #[test]
    fn shows_the_preferences_of_a_robots_txt() {
        let robots = "User-agent: *\ncontent-signal: search=no\n Content-Usage: /x train-ai=n\nAllow: /\n";
        assert_eq!(preferences(robots), ["content-signal: search=no", "Content-Usage: /x train-ai=n"]);
        assert_eq!(preferences(&"Content-Signal: search=no\n".repeat(50)).len(), PREFERENCES_MAX);
    }
}

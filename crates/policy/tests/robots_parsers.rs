//! Differential tests of robots.txt against other parsers with random files: if one of them forbids a path, this crate forbids it too.

use policy::robots::{PRODUCT_TOKEN, RobotsDecision, RobotsFile};
use proptest::prelude::*;

fn decide(body: &str, path: &str) -> RobotsDecision {
    RobotsFile::parse(body.as_bytes(), PRODUCT_TOKEN).decide(path)
}

fn robotxt_allows(body: &str, path: &str) -> bool {
    robotxt::Robots::parse(body.as_bytes(), PRODUCT_TOKEN).is_allowed(path)
}

/// `texting_robots` on the file as written.
fn texting_robots_allows(body: &str, path: &str) -> bool {
    texting_robots::Robot::new(PRODUCT_TOKEN, body.as_bytes()).is_ok_and(|robot| robot.allowed(path))
}

/// Complete groups of rules that begin with a slash.
fn any_file() -> impl Strategy<Value = String> {
    let rule = ("(allow|disallow|Disallow)", "/[ab/.*$é~%]{0,6}")
        .prop_map(|(field, path)| format!("{field}: {path}\n"));
    let group = ("(\\*|agentdex|AgentDex|other)", proptest::collection::vec(rule, 1..5))
        .prop_map(|(agent, rules)| format!("User-agent: {agent}\n{}", rules.concat()));
    proptest::collection::vec(group, 0..4).prop_map(|groups| groups.join("\n"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn forbids_what_robotxt_forbids(body in any_file(), path in "/[ab/.é~]{0,8}") {
        if !robotxt_allows(&body, &path) {
            prop_assert!(!decide(&body, &path).is_allowed(), "{path} under\n{body}");
        }
    }

    /// Paths contain no `%`, which the parsers normalise differently, and no `$`, which they interpret differently inside a pattern.
    #[test]
    fn agrees_with_other_parsers_on_plain_files(body in any_file(), path in "/[ab/.~]{0,8}") {
        let body = body.replace(['$', '%', 'é'], "");
        let is_allowed = decide(&body, &path).is_allowed();
        prop_assert_eq!(is_allowed, robotxt_allows(&body, &path), "{} under\n{}", path, body);
        prop_assert_eq!(is_allowed, texting_robots_allows(&body, &path), "{} under\n{}", path, body);
    }

    /// The named rule has the kind of the decision and is in the file.
    #[test]
    fn names_the_rule_that_matched(body in any_file(), path in "/[ab/.é~]{0,8}") {
        let (rule, field) = match decide(&body, &path) {
            RobotsDecision::Allowed(Some(rule)) => (rule, "allow: "),
            RobotsDecision::Disallowed(Some(rule)) => (rule, "disallow: "),
            RobotsDecision::Allowed(None) => return Ok(()),
            other => return Err(TestCaseError::fail(format!("{other:?}: {path} under\n{body}"))),
        };
        let line = body.lines().nth(rule.line as usize - 1).unwrap_or_default();
        prop_assert!(line.eq_ignore_ascii_case(&rule.text), "{rule}: {line}");
        prop_assert!(line.to_ascii_lowercase().starts_with(field), "{rule} decided {path} under\n{body}");
        let other = if field == "allow: " { "Disallow: /\n" } else { "" };
        let alone = decide(&format!("User-agent: *\n{line}\n{other}"), &path);
        prop_assert_eq!(alone.is_allowed(), field == "allow: ", "{} does not match {}", rule, path);
    }
}

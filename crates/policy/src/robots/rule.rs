//! The rules that apply to one crawler, matched by `texting_robots`.
//!
//! That crate matches and ranks rules as specified by RFC 9309 §2.2.2, but it compares percent-encodings as written, compiles a regular
//! expression for each rule with `$` (10 KiB each), and does not report which rule matched. So rules and paths are compared in normal form
//! here, the end of a path is a separate character, and a binary search finds the matching rule.

use std::cmp::Reverse;

use texting_robots::Robot;

use super::decision::{RobotsDecision, RuleLine};
use super::pattern::{NormalPath, Pattern};

/// Number of rules that are matched together while searching for the matching rule. It limits the memory.
const BATCH_RULES: usize = 64;

/// Comparison work of a rule besides its bytes, because it is parsed again to find out whether it matches.
const RULE_WORK: u64 = 256;
/// Comparison work of a wildcard besides the bytes of the path, because each wildcard begins a search.
const WILDCARD_WORK: u64 = 64;

/// The field of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RuleKind {
    Allow,
    Disallow,
}

impl RuleKind {
    const fn field(self) -> &'static str {
        match self {
            Self::Allow => "Allow",
            Self::Disallow => "Disallow",
        }
    }
}

/// One Allow or Disallow line.
#[derive(Debug, Clone)]
pub(super) struct Rule {
    pub(super) kind: RuleKind,
    pub(super) pattern: Pattern,
    pub(super) line: u32,
    pub(super) written: Box<str>,
}

impl Rule {
    const fn pattern(&self) -> &Pattern {
        &self.pattern
    }

    fn line(&self) -> RuleLine {
        RuleLine { line: self.line, text: format!("{}: {}", self.kind.field(), self.written) }
    }
}

/// Rules that apply together.
#[derive(Debug)]
pub(super) struct Rules {
    /// Longest pattern first.
    allows: Vec<Rule>,
    disallows: Vec<Rule>,
    /// `None` if the rules cannot be parsed, which forbids everything.
    robot: Option<Robot>,
    work: Work,
}

/// The comparison work of patterns.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Work {
    /// Patterns with a wildcard, each of which is searched in the whole path.
    with_wildcards: u64,
    /// Work that does not depend on the path.
    fixed: u64,
}

impl Work {
    pub(super) fn of<'p>(patterns: impl Iterator<Item = &'p Pattern>) -> Self {
        patterns.fold(Self::default(), |work, pattern| {
            let wildcards = pattern.wildcards() as u64;
            let fixed = RULE_WORK + pattern.bytes() as u64 + WILDCARD_WORK * wildcards;
            Self {
                with_wildcards: work.with_wildcards + u64::from(wildcards > 0),
                fixed: work.fixed.saturating_add(fixed),
            }
        })
    }

    /// An upper bound of the work on a path of this length, in bytes compared.
    pub(super) const fn on_path(self, path_bytes: usize) -> u64 {
        self.fixed.saturating_add(self.with_wildcards.saturating_mul(path_bytes as u64))
    }
}

impl Rules {
    pub(super) fn new(mut rules: Vec<Rule>) -> Self {
        let robot = robot(rules.iter().map(|rule| (rule.kind, &rule.pattern)));
        let work = Work::of(rules.iter().map(Rule::pattern));
        rules.sort_by_key(|rule| Reverse(rule.pattern.bytes()));
        let (allows, disallows) = rules.into_iter().partition(|rule| rule.kind == RuleKind::Allow);
        Self { allows, disallows, robot, work }
    }

    pub(super) const fn count(&self) -> usize {
        self.allows.len() + self.disallows.len()
    }

    /// An upper bound of the work of a decision on a path of this length, in bytes compared.
    pub(super) const fn comparison_work(&self, path_bytes: usize) -> u64 {
        self.work.on_path(path_bytes)
    }

    /// Decides on a path, and names the matching rule.
    pub(super) fn decide(&self, path: &NormalPath) -> RobotsDecision {
        if self.robot.as_ref().is_some_and(|robot| robot.allowed(path.as_str())) {
            RobotsDecision::Allowed(longest_match(&self.allows, Rule::pattern, path).map(Rule::line))
        } else {
            RobotsDecision::Disallowed(longest_match(&self.disallows, Rule::pattern, path).map(Rule::line))
        }
    }
}

/// The first rule that matches; rules are sorted by decreasing length of their patterns. Finds the first batch with a match, and halves it
/// until one rule is left.
pub(super) fn longest_match<'r, T>(
    rules: &'r [T],
    pattern: impl Fn(&T) -> &Pattern + Copy,
    path: &NormalPath,
) -> Option<&'r T> {
    let mut batch = rules.chunks(BATCH_RULES).find(|batch| any_matches(batch, pattern, path))?;
    while batch.len() > 1 {
        let (first, second) = batch.split_at(batch.len() / 2);
        batch = if any_matches(first, pattern, path) { first } else { second };
    }
    batch.first()
}

fn any_matches<T>(rules: &[T], pattern: impl Fn(&T) -> &Pattern, path: &NormalPath) -> bool {
    let as_disallow = rules.iter().map(|rule| (RuleKind::Disallow, pattern(rule)));
    robot(as_disallow).is_some_and(|robot| !robot.allowed(path.as_str()))
}

/// Needs no User-agent line, because in `texting_robots` rules before any such line apply to every crawler.
fn robot<'r>(rules: impl Iterator<Item = (RuleKind, &'r Pattern)>) -> Option<Robot> {
    let mut text = String::new();
    for (kind, pattern) in rules {
        text.extend([kind.field(), ":", pattern.as_str(), "\n"]);
    }
    Robot::new("*", text.as_bytes()).ok()
}

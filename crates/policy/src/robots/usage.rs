//! The Content-Usage rules and Content-Signal lines of the groups that apply to one crawler.
//!
//! agentdex uses responses only to build a search index. So if the use of a path for search is denied, the path is disallowed and not
//! requested.

use std::cmp::Reverse;

use manifest::model::PolicyChoice;

use super::decision::RuleLine;
use super::pattern::{NormalPath, Pattern};
use super::rule::{Work, longest_match};
use crate::ContentUsage;
use crate::usage::STATEMENT_BYTES_MAX;

/// Maximum number of Content-Usage rules with a path that are kept per group. Denials in further rules apply to every path.
const RULES_MAX: usize = 100;
/// Maximum number of characters of a line that are shown if its statement is too long.
const SHOWN_CHARS_MAX: usize = 60;

/// The preferences that apply to a path.
#[derive(Debug, Clone, Default)]
pub(super) struct Stated {
    pub(super) usage: ContentUsage,
    /// The first line that denies the use for search.
    pub(super) search_denied_by: Option<RuleLine>,
}

impl Stated {
    /// If the statement is too long to be read, the text of the line says so.
    fn new(usage: ContentUsage, statement: &[u8], mut line: RuleLine) -> Self {
        if statement.len() > STATEMENT_BYTES_MAX {
            let start: String = line.text.chars().take(SHOWN_CHARS_MAX).collect();
            line.text =
                format!("{start}… (a statement of more than {STATEMENT_BYTES_MAX} bytes is a denial)");
        }
        let is_denied = usage.search == PolicyChoice::Deny;
        Self { usage, search_denied_by: is_denied.then_some(line) }
    }

    fn add(&mut self, other: &Self) {
        self.usage = self.usage.combined(other.usage);
        if self.search_denied_by.is_none() {
            self.search_denied_by.clone_from(&other.search_denied_by);
        }
    }
}

#[derive(Debug, Clone)]
struct UsageRule {
    pattern: Pattern,
    stated: Stated,
}

impl UsageRule {
    const fn pattern(&self) -> &Pattern {
        &self.pattern
    }
}

/// Preferences by path.
#[derive(Debug, Clone, Default)]
pub(super) struct Usages {
    rules: Vec<UsageRule>,
    /// Preferences of rules without a path, which apply if no path matches.
    elsewhere: Stated,
    /// Preferences of Content-Signal lines, which apply to every path.
    everywhere: Stated,
    work: Work,
}

impl Usages {
    /// Adds a rule. It is either a path that begins with a slash, white space, and a statement, or only a statement.
    pub(super) fn add_rule(&mut self, value: &[u8], line: RuleLine) {
        if !value.starts_with(b"/") {
            self.elsewhere.add(&Stated::new(ContentUsage::of_usage(value), value, line));
            return;
        }
        let path_bytes = value.iter().position(|byte| matches!(byte, b' ' | b'\t')).unwrap_or(value.len());
        let (path, statement) = value.split_at(path_bytes);
        let statement = statement.trim_ascii();
        let stated = Stated::new(ContentUsage::of_usage(statement), statement, line);
        self.push(UsageRule { pattern: Pattern::parse(path), stated });
    }

    fn push(&mut self, rule: UsageRule) {
        if self.rules.len() < RULES_MAX {
            self.rules.push(rule);
        } else {
            self.everywhere.add(&rule.stated);
        }
    }

    pub(super) fn add_signal(&mut self, value: &[u8], line: RuleLine) {
        self.everywhere.add(&Stated::new(ContentUsage::of_signal(value), value, line));
    }

    /// Adds the statements of another group for the same crawler.
    pub(super) fn extend(&mut self, other: &Self) {
        self.elsewhere.add(&other.elsewhere);
        self.everywhere.add(&other.everywhere);
        for rule in &other.rules {
            self.push(rule.clone());
        }
    }

    /// Prepares the rules for [`Self::of`].
    pub(super) fn sorted(mut self) -> Self {
        self.work = Work::of(self.rules.iter().map(UsageRule::pattern));
        self.rules.sort_by_key(|rule| Reverse(rule.pattern.bytes()));
        self
    }

    /// An upper bound of the work of [`Self::of`] on a path of this length, in bytes compared.
    pub(super) const fn comparison_work(&self, path_bytes: usize) -> u64 {
        self.work.on_path(path_bytes)
    }

    /// The preferences of the rules with the longest path that matches, with those that apply to every path.
    pub(super) fn of(&self, path: &NormalPath) -> Stated {
        let longest = longest_match(&self.rules, UsageRule::pattern, path).map(|rule| rule.pattern.as_str());
        let mut stated = Stated::default();
        match longest {
            None => stated.add(&self.elsewhere),
            Some(longest) => {
                let same = self.rules.iter().filter(|rule| rule.pattern.as_str() == longest);
                same.for_each(|rule| stated.add(&rule.stated));
            }
        }
        stated.add(&self.everywhere);
        stated
    }
}

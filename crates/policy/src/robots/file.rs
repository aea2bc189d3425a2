//! One robots.txt, read for one crawler: what it says of a path, and what else.
//!
//! Two matchers are asked, our own, which names the rule that decides, and `texting_robots`. Where they disagree, the
//! stricter answer wins.

use std::sync::Arc;
use std::time::Duration;

use manifest::closed;
use texting_robots::Robot;

use super::pattern::{NormalPath, Pattern};
use super::reader::{self, Said};
use super::second::second_opinion;
use crate::time::DAY;

/// The name that owners write in robots.txt to address us.
pub const PRODUCT_TOKEN: &str = "agentdex";
/// Longest Crawl-delay that is kept to; what asks for more, or for nonsense, gets this.
pub const CRAWL_DELAY_MAX: Duration = DAY;

/// A line of the file that decided something.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct RuleLine {
    /// Counted from 1.
    pub line: u32,
    /// The rule as written: `Disallow: /private`.
    pub text: String,
}

impl std::fmt::Display for RuleLine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "line {}: {}", self.line, self.text)
    }
}

/// What a file says of one path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileDecision {
    /// Allowed, by this rule, or because no rule matches.
    Allowed(Option<RuleLine>),
    /// Disallowed by this rule.
    Disallowed(RuleLine),
    /// The two matchers disagree; counts as disallowed.
    Doubted,
}

/// The wait between two requests that the file asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CrawlDelay {
    /// At most a day.
    pub wait: Duration,
    /// The line it stands on.
    pub line: u32,
}

closed! {
    /// What is worth telling the owner of a file.
    RobotsNoteKind, "robots note" {
        /// The file is an HTML page.
        Html = "html",
        /// The file is longer than what is read.
        Cut = "cut",
        /// The line stands before the first User-agent line and applies to nobody.
        Ungrouped = "ungrouped",
        /// A misspelt field that was understood.
        Misspelt = "misspelt",
        /// A rule without a slash at its beginning, read as if it had one.
        NoSlash = "no_slash",
        /// A Crawl-delay that is no usable number or above a day; a day is kept.
        CrawlDelayClamped = "crawl_delay_clamped",
        /// A Crawl-delay without a number; ignored.
        CrawlDelayGarbled = "crawl_delay_garbled",
        /// A statement on the use of content; noted, not acted upon.
        ContentSignal = "content_signal",
    }
}

/// One thing worth telling the owner.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct RobotsNote {
    /// What it is.
    pub kind: RobotsNoteKind,
    /// Where; absent for what concerns the whole file.
    pub line: Option<u32>,
    /// The value as written, shortened.
    pub text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RuleKind {
    Allow,
    Disallow,
}

#[derive(Debug, Clone)]
pub(super) struct Rule {
    pub(super) kind: RuleKind,
    pub(super) pattern: Pattern,
    pub(super) line: u32,
    pub(super) written: Box<str>,
}

impl Rule {
    fn shown(&self) -> RuleLine {
        let field = match self.kind {
            RuleKind::Allow => "Allow",
            RuleKind::Disallow => "Disallow",
        };
        RuleLine { line: self.line, text: format!("{field}: {}", self.written) }
    }

    /// The more octets, the stronger; at equal length Allow is.
    fn strength(&self) -> (usize, bool) {
        (self.pattern.octets(), self.kind == RuleKind::Allow)
    }
}

/// A robots.txt as it applies to one crawler.
#[derive(Debug, Clone)]
pub struct RobotsFile {
    said: Said,
    second: Option<Arc<Robot>>,
}

impl RobotsFile {
    /// Reads a body for the crawler with this product token. Never fails: every parseable line is used (§2.3.1.5).
    pub fn parse(body: &[u8], product_token: &str) -> Self {
        let said = reader::read(body, product_token);
        Self { second: second_opinion(&said.rules, product_token), said }
    }

    /// Decides on the path and query of a request. `/robots.txt` itself is always allowed.
    pub fn decide(&self, path_and_query: &str) -> FileDecision {
        let path = NormalPath::parse(path_and_query);
        if path.as_str() == "/robots.txt" {
            return FileDecision::Allowed(None);
        }
        let strongest = self
            .said
            .rules
            .iter()
            .filter(|rule| rule.pattern.matches(&path))
            .max_by_key(|rule| rule.strength());
        if let Some(rule) = strongest.filter(|rule| rule.kind == RuleKind::Disallow) {
            return FileDecision::Disallowed(rule.shown());
        }
        if self.second.as_ref().is_some_and(|robot| !robot.allowed(path.as_str())) {
            return FileDecision::Doubted;
        }
        FileDecision::Allowed(strongest.map(Rule::shown))
    }

    /// The Crawl-delay of the groups that apply: the longest, if there are several.
    pub const fn crawl_delay(&self) -> Option<CrawlDelay> {
        self.said.crawl_delay
    }

    /// Values of Sitemap lines, which belong to no group.
    pub fn sitemaps(&self) -> &[String] {
        &self.said.sitemaps
    }

    /// Values of Agentmap lines: where the site keeps its catalogue of agents.
    pub fn agentmaps(&self) -> &[String] {
        &self.said.agentmaps
    }

    /// What is worth telling the owner.
    pub fn notes(&self) -> &[RobotsNote] {
        &self.said.notes
    }

    /// Bytes of the patterns of all rules, which a decision is compared with.
    pub fn pattern_bytes(&self) -> usize {
        self.said.rules.iter().map(|rule| rule.pattern.octets()).sum()
    }

    /// How many rules apply to the crawler.
    pub fn rules_count(&self) -> usize {
        self.said.rules.len()
    }
}

//! One robots.txt as it applies to one crawler.

use std::time::Duration;

use manifest::string_enum;

use super::decision::RobotsDecision;
use super::pattern::NormalPath;
use super::rule::Rules;
use crate::time::DAY;

/// The product token of this crawler.
pub const PRODUCT_TOKEN: &str = "agentdex";
/// Maximum Crawl-delay. Longer, infinite and negative values are clamped to it.
pub(super) const CRAWL_DELAY_MAX: Duration = DAY;

/// The delay between two requests that the file requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CrawlDelay {
    /// At most a day.
    pub wait: Duration,
    /// Line number, counted from 1.
    pub line: u32,
}

string_enum! {
    /// A problem or remark that is reported to the owner of a file.
    RobotsNoteKind, "robots note" {
        /// The file is an HTML page.
        Html = "html",
        /// The file exceeds the size that is read.
        Cut = "cut",
        /// A rule before the first User-agent line, which applies to no crawler.
        Ungrouped = "ungrouped",
        /// A misspelt field that was understood.
        Misspelt = "misspelt",
        /// A rule without a leading slash, read as if it had one.
        NoSlash = "no_slash",
        /// A Crawl-delay above a day or not usable as a number; a day is used.
        CrawlDelayClamped = "crawl_delay_clamped",
        /// A Crawl-delay without a number; ignored.
        CrawlDelayGarbled = "crawl_delay_garbled",
        /// A statement about the use of content; reported, but without effect.
        ContentSignal = "content_signal",
    }
}

/// A note about one line or the whole file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RobotsNote {
    pub kind: RobotsNoteKind,
    /// Counted from 1; absent for the whole file.
    pub line: Option<u32>,
    /// The value as written, shortened.
    pub text: String,
}

/// A robots.txt as it applies to one crawler. Made by [`RobotsFile::parse`].
#[derive(Debug)]
pub struct RobotsFile {
    pub(super) rules: Rules,
    pub(super) crawl_delay: Option<CrawlDelay>,
    pub(super) agentmaps: Vec<String>,
    pub(super) notes: Vec<RobotsNote>,
}

impl RobotsFile {
    /// Decides on the path and query of a request. `/robots.txt` itself is always allowed.
    pub fn decide(&self, path_and_query: &str) -> RobotsDecision {
        let path = NormalPath::parse(path_and_query);
        if path.is_robots() { RobotsDecision::Allowed(None) } else { self.rules.decide(&path) }
    }

    /// The longest Crawl-delay of the groups that apply.
    pub const fn crawl_delay(&self) -> Option<CrawlDelay> {
        self.crawl_delay
    }

    /// Values of Agentmap lines, which belong to no group: URLs of the site's agent catalogues.
    pub fn agentmaps(&self) -> &[String] {
        &self.agentmaps
    }

    pub fn notes(&self) -> &[RobotsNote] {
        &self.notes
    }

    /// Bytes of the patterns of all rules, which bound the cost of a decision.
    pub fn pattern_bytes(&self) -> usize {
        self.rules.pattern_bytes()
    }

    /// The number of rules that apply to the crawler.
    pub const fn rules_count(&self) -> usize {
        self.rules.count()
    }
}

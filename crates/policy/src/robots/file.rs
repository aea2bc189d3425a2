//! One robots.txt as it applies to one crawler.

use std::time::Duration;

use manifest::string_enum;

use super::decision::RobotsDecision;
use super::pattern::NormalPath;
use super::rule::Rules;
use super::usage::Usages;
use crate::ContentUsage;
use crate::time::DAY;

/// The product token of this crawler.
pub const PRODUCT_TOKEN: &str = "agentdex";
/// Maximum Crawl-delay. Longer, infinite and negative values are clamped to it.
pub(super) const CRAWL_DELAY_MAX: Duration = DAY;

/// Maximum work of comparing one path with the rules, in bytes compared: for each rule with a wildcard the length of the path, and for each
/// rule its own length plus a constant. Real files take a hundredth of it. A path that takes more is disallowed without a comparison.
pub const PATH_WORK_MAX: u64 = 16 * 1024 * 1024;
/// Maximum work of comparing several paths together: less than a second of processor time in a release build.
pub const PATHS_WORK_MAX: u64 = 512 * 1024 * 1024;

/// The delay between two requests that the file asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CrawlDelay {
    /// The stated delay, limited to a day.
    pub wait: Duration,
    /// Line number, counted from 1.
    pub line: u32,
}

string_enum! {
    /// A problem or remark that is reported to the site owner.
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
        /// A preference about the use of content.
        ContentSignal = "content_signal",
    }
}

impl RobotsNoteKind {
    /// What was found, and what it means.
    pub const fn in_words(self) -> &'static str {
        match self {
            Self::Html => "an HTML page, not rules",
            Self::Cut => "longer than is read",
            Self::Ungrouped => "before the first User-agent line, so it applies to no crawler",
            Self::Misspelt => "misspelt, and understood",
            Self::NoSlash => "without a leading slash, and read as if it had one",
            Self::CrawlDelayClamped => "a Crawl-delay above a day; a day is used",
            Self::CrawlDelayGarbled => "a Crawl-delay without a number, which is ignored",
            Self::ContentSignal => "a preference about the use of content",
        }
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

/// A robots.txt as it applies to one crawler, created by [`RobotsFile::parse`].
#[derive(Debug)]
pub struct RobotsFile {
    pub(super) rules: Rules,
    pub(super) crawl_delay: Option<CrawlDelay>,
    pub(super) usages: Usages,
    pub(super) agentmaps: Vec<String>,
    pub(super) notes: Vec<RobotsNote>,
}

impl RobotsFile {
    /// Decides on the path and query of a request. `/robots.txt` itself is always allowed.
    pub fn decide(&self, path_and_query: &str) -> RobotsDecision {
        self.decide_within(path_and_query, &mut { PATH_WORK_MAX })
    }

    /// Decides on the path and query of a request, with at most `work_left` of comparison work. Reduces `work_left` by the work done.
    pub(super) fn decide_within(&self, path_and_query: &str, work_left: &mut u64) -> RobotsDecision {
        let path = NormalPath::parse(path_and_query);
        if path.is_robots() {
            return RobotsDecision::Allowed(None);
        }
        let work = self.comparison_work(path.as_str());
        match work_left.checked_sub(work).filter(|_| work <= PATH_WORK_MAX) {
            None => RobotsDecision::TooMuchWork,
            Some(left) => {
                *work_left = left;
                match self.rules.decide(&path) {
                    RobotsDecision::Allowed(rule) => match self.usages.of(&path).search_denied_by {
                        Some(line) => RobotsDecision::Disallowed(Some(line)),
                        None => RobotsDecision::Allowed(rule),
                    },
                    decision => decision,
                }
            }
        }
    }

    /// The longest Crawl-delay of the groups that apply.
    pub const fn crawl_delay(&self) -> Option<CrawlDelay> {
        self.crawl_delay
    }

    /// The preferences on the use of the document at a path and query. None if [`Self::decide`] disallows it.
    pub fn usage(&self, path_and_query: &str) -> ContentUsage {
        if self.comparison_work(path_and_query) > PATH_WORK_MAX {
            return ContentUsage::default();
        }
        self.usages.of(&NormalPath::parse(path_and_query)).usage
    }

    /// Values of Agentmap lines: URLs of the site's agent catalogues. They do not belong to a group.
    pub fn agentmaps(&self) -> &[String] {
        &self.agentmaps
    }

    pub fn notes(&self) -> &[RobotsNote] {
        &self.notes
    }

    /// The approximate work of a decision on a path, in bytes compared.
    pub(super) const fn comparison_work(&self, path_and_query: &str) -> u64 {
        let path_bytes = path_and_query.len();
        self.rules.comparison_work(path_bytes).saturating_add(self.usages.comparison_work(path_bytes))
    }

    /// The number of rules that apply to the crawler.
    pub const fn rules_count(&self) -> usize {
        self.rules.count()
    }
}

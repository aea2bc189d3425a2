//! The result of reading lists of seeds, as text.

use std::collections::HashSet;
use std::fmt;

use manifest::NameError;
use serde::Serialize;

/// Maximum number of skipped lines in one sentence.
const REASONS_MAX: usize = 3;

/// A line that was skipped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Rejected {
    pub source: String,
    pub line: u64,
    pub text: String,
    pub reason: String,
}

impl fmt::Display for Rejected {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}, line {}: {}", self.source, self.line, self.reason)
    }
}

/// Result of reading one source of seeds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SourceReport {
    pub source: String,
    pub kind: &'static str,
    /// Names that were read, duplicates included.
    pub names: u64,
    /// Whether the source has more names or lines than the limits of one source allow.
    pub is_cut: bool,
}

/// The result of reading seeds.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct SeedReport {
    /// Distinct seeds.
    pub read: u64,
    pub sources: Vec<SourceReport>,
    /// Sources that could not be read, each with the reason and what to do.
    pub failed: Vec<String>,
    pub duplicates: u64,
    pub rejected_count: u64,
    /// Rejected lines of plain lists that may be mistyped names. While there are any, `--follow-seeds` deletes no site.
    #[serde(skip)]
    pub mistyped: u64,
    /// The first rejected lines.
    pub rejected: Vec<Rejected>,
    /// Number of seeds that were not added, because their sites have the maximum number of hosts.
    pub refused: u64,
    /// Sites that no list names any more, with `--follow-seeds`.
    pub sites_forgotten: u64,
    /// Sites that only earlier lists named, without `--follow-seeds`: they are visited too. Counted in small databases only.
    pub sites_of_earlier_lists: u64,
}

/// What was read of some sources, so that other sources can be read later.
#[derive(Debug, Default)]
pub(crate) struct SeedsRead {
    /// Fingerprints of the seeds.
    pub(super) seen: HashSet<u64>,
    pub(crate) report: SeedReport,
}

impl SeedReport {
    /// How many seeds were read and, if lines were skipped, how many.
    pub(crate) fn counts(&self) -> String {
        let read = self.count_read();
        match self.rejected_count {
            0 => read,
            1 => format!("{read}, 1 line skipped"),
            lines => format!("{read}, {lines} lines skipped"),
        }
    }

    fn count_read(&self) -> String {
        format!("{} seed{} read", self.read, if self.read == 1 { "" } else { "s" })
    }

    /// Why sources could not be read, if some could not: in one line, with what was read of the others.
    pub(crate) fn failures(&self) -> Option<String> {
        let others = if self.read == 0 {
            String::new()
        } else {
            // the skipped lines are also those of the sources that could not be read
            format!(" ({} from the other sources)", self.count_read())
        };
        (!self.failed.is_empty()).then(|| format!("{}{others}", self.failed.join("; ")))
    }

    /// Says how many lines of a list are skipped, and why the first ones are, if any are.
    pub fn skipped_lines(&self) -> Option<String> {
        let first = self.rejected.first()?;
        let (lines, are) = if self.rejected_count == 1 { ("line", "is") } else { ("lines", "are") };
        let reasons = self.rejected.iter().take(REASONS_MAX);
        let reasons = reasons.map(|line| format!("; line {}: {}", line.line, line.reason));
        let reasons = reasons.collect::<Vec<_>>().concat();
        Some(format!("{} {lines} of {} {are} skipped{reasons}", self.rejected_count, first.source))
    }

    /// Says that sites of earlier lists are visited too, if there are any.
    pub(crate) fn earlier_lists(&self) -> Option<String> {
        let count = self.sites_of_earlier_lists;
        let sites = if count == 1 { "site" } else { "sites" };
        (count > 0).then(|| {
            let is_or_are = if count == 1 { "is" } else { "are" };
            format!("{count} {sites} of earlier lists {is_or_are} visited too; a crawl with --follow-seeds deletes what no list names")
        })
    }
}

/// Whether a line may be a mistyped name of a site. Other lines are names of something else.
pub(super) const fn is_mistyped(error: &NameError) -> bool {
    use NameError as E;
    matches!(error, E::Host(_) | E::Hyphen(..) | E::Control(..) | E::Url(..) | E::Scheme(_) | E::UserInfo(_))
}

//! The page of recent changes: a sentence for each change, grouped by day.

use std::collections::{BTreeSet, HashMap};

use askama::Template;
use chrono::{DateTime, TimeDelta, Utc};
use policy::{AbuseReason, FetchOutcome, VisitEnd};
use store::{FeedChange, FeedEntry, VersionRecord};

use super::change_words::sentences;
use super::frame::{Frame, Section};
use super::time::Moment;
use super::{icons, labels, links};
use crate::answers::version_diff::DiffAnswer;
use crate::page_context::PageContext;
use crate::text;

/// Maximum length of a reason, in characters.
const REASON_CHARS_MAX: usize = 240;

/// Maximum time between the entries of one visit.
const VISIT_MAX: TimeDelta = TimeDelta::hours(1);
/// New manifests of a run that are shown; the others are collapsed. A run that is shorter than twice as many is shown completely.
const NEW_SHOWN: usize = 3;

struct Row {
    at: Moment,
    /// The time of the entry, by which rows are sorted.
    changed_at: DateTime<Utc>,
    change: FeedChange,
    /// Number of entries of the feed that the row combines.
    count: u64,
    /// Number of capabilities that new manifests declare. A capability that several manifests declare is counted once for each.
    capabilities: u64,
    /// What its new documents are.
    published: Published,
    /// For a merge, the number of its capabilities; for new manifests, how many of their capabilities several of them declare.
    shared: u64,
    /// For a merge or a split, the ids of its capabilities. The entries of all affected manifests list the same ids.
    moved: Option<String>,
    what: String,
    class: &'static str,
    icon: &'static str,
    /// The kind of the change in a word.
    word: &'static str,
    site: String,
    site_icon: String,
    /// What changed, sentence by sentence.
    details: Vec<String>,
    /// Whether a caller of the earlier version may fail.
    breaking: bool,
    /// Whether a text of a changed capability addresses the model that reads it.
    addresses_reader: bool,
    /// Link to the comparison of the versions.
    diff_href: Option<String>,
}

impl Row {
    /// Whether an entry repeats the previous one of the same site.
    fn repeats(&self, other: &Self) -> bool {
        self.site == other.site
            && self.change == other.change
            && self.change != FeedChange::Changed
            && self.published == other.published
            && (&self.details, &self.moved) == (&other.details, &other.moved)
    }

    /// Whether a merge is one of the capabilities of the row's new manifests. A visit that finds several manifests reports both.
    fn is_explained_by(&self, merge: &Self) -> bool {
        self.site == merge.site
            && (self.change, merge.change) == (FeedChange::Added, FeedChange::Merged)
            && self.count > 1
            && (merge.changed_at - self.changed_at).abs() <= VISIT_MAX
            && (1..self.capabilities).contains(&merge.shared)
    }

    /// A phrase with the number of capabilities in new manifests.
    fn capabilities_words(&self) -> Option<String> {
        if self.change == FeedChange::Added && self.shared > 0 {
            let capabilities = labels::counted(self.capabilities - self.shared, "capability", "capabilities");
            let shared = labels::grouped(self.shared);
            return Some(format!("with {capabilities}, {shared} of them declared more than once"));
        }
        let capabilities = match self.count {
            1 => labels::counted(self.capabilities, "capability", "capabilities"),
            _ => labels::counted(
                self.capabilities,
                "declaration of a capability",
                "declarations of capabilities",
            ),
        };
        (self.capabilities > 0).then(|| format!("with {capabilities}"))
    }

    /// Whether the row says no more than that a site published manifests.
    fn is_new_site(&self) -> bool {
        self.change == FeedChange::Added && self.details.is_empty() && self.published == Published::Manifest
    }

    fn add(&mut self, other: &Self) {
        self.count += 1;
        self.capabilities += other.capabilities;
        if self.moved.is_none() {
            self.what = what(self.change, self.count, self.published);
        }
    }
}

struct Day {
    name: String,
    rows: Vec<Row>,
}

/// Consecutive rows, and the collapsed ones after them.
#[derive(Default)]
struct Run<'a> {
    shown: Vec<&'a Row>,
    collapsed: Vec<&'a Row>,
}

impl Run<'_> {
    /// `and 29 more sites with new manifests`
    fn collapsed_words(&self) -> String {
        let sites: BTreeSet<&str> = self.collapsed.iter().map(|row| row.site.as_str()).collect();
        format!("and {} with new manifests", labels::counted(sites.len() as u64, "more site", "more sites"))
    }
}

impl Day {
    /// Joins the rows of one visit, and sorts all rows by time, the latest first.
    fn arrange(&mut self) {
        let mut arranged: Vec<Row> = Vec::with_capacity(self.rows.len());
        for mut row in self.rows.drain(..) {
            if let Some(merge) = arranged.pop_if(|merge| row.is_explained_by(merge)) {
                (row.shared, row.at, row.changed_at) = (merge.shared, merge.at, merge.changed_at);
            }
            arranged.push(row);
        }
        arranged.sort_by_key(|row| std::cmp::Reverse(row.changed_at));
        self.rows = arranged;
    }

    /// The rows; of many new manifests in a row, only the first are shown.
    fn runs(&self) -> Vec<Run<'_>> {
        let mut runs = Vec::new();
        for rows in self.rows.chunk_by(|a, b| a.is_new_site() == b.is_new_site()) {
            let is_long = rows.len() > 2 * NEW_SHOWN && rows.iter().all(Row::is_new_site);
            let (shown, collapsed) = rows.split_at(if is_long { NEW_SHOWN } else { rows.len() });
            runs.push(Run { shown: shown.iter().collect(), collapsed: collapsed.iter().collect() });
        }
        runs
    }
}

#[derive(Template)]
#[template(path = "changes.html")]
pub(crate) struct ChangesPage {
    frame: Frame,
    days: Vec<Day>,
    next: Option<String>,
}

/// What a new document is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Published {
    #[default]
    Manifest,
    WithoutCapabilities,
    Unreadable,
}

/// Summary of the version that an entry of the feed added.
#[derive(Debug, Default)]
pub(crate) struct Summary {
    /// What changed, sentence by sentence.
    sentences: Vec<String>,
    breaking: bool,
    addresses_reader: bool,
    /// Number of declared capabilities, if the manifest is new.
    capabilities: u64,
    published: Published,
    /// Parameters of the page that compares the versions.
    versions: Option<[String; 2]>,
}

impl Summary {
    /// The summary of a new manifest. `is_readable` is false for a document of a site whose documents cannot be read.
    pub(crate) fn of_new(version: &VersionRecord, is_readable: bool) -> Self {
        let published = match version.capabilities {
            0 if is_readable => Published::WithoutCapabilities,
            0 => Published::Unreadable,
            _ => Published::Manifest,
        };
        Self { capabilities: u64::from(version.capabilities), published, ..Self::default() }
    }

    /// The summary of a version that replaced another one.
    pub(crate) fn of_difference(answer: &DiffAnswer) -> Self {
        Self {
            sentences: sentences(&answer.difference),
            breaking: answer.difference.breaking,
            addresses_reader: answer.difference.addresses_reader(),
            versions: Some([&answer.from, &answer.to].map(|version| version.hash.as_str().to_owned())),
            ..Self::default()
        }
    }
}

/// Summaries by the position of their entry.
pub(crate) type Summaries = HashMap<i64, Summary>;

/// Changes in the given order, and the link to earlier ones.
pub(crate) fn page(
    entries: &[FeedEntry],
    summaries: &mut Summaries,
    earlier: Option<&str>,
    context: &PageContext,
) -> ChangesPage {
    let mut days: Vec<Day> = Vec::new();
    for entry in entries {
        let name = day(entry.at, context.now);
        let row = row(entry, summaries.remove(&entry.position.0).unwrap_or_default(), context.now);
        match days.last_mut().filter(|day| day.name == name) {
            Some(day) => match day.rows.last_mut().filter(|last| last.repeats(&row)) {
                Some(last) => last.add(&row),
                None => day.rows.push(row),
            },
            None => days.push(Day { name, rows: vec![row] }),
        }
    }
    days.iter_mut().for_each(Day::arrange);
    ChangesPage {
        frame: Frame::new("Changes", Section::Changes)
            .at(context, "/changes")
            .described("What sites added, changed and removed for AI agents, day by day."),
        days,
        next: earlier.map(|cursor| links::with_query("/changes", [("cursor", cursor)])),
    }
}

fn day(at: DateTime<Utc>, now: DateTime<Utc>) -> String {
    match (now.date_naive() - at.date_naive()).num_days() {
        0 => "Today".to_owned(),
        1 => "Yesterday".to_owned(),
        _ => at.format("%A, %-d %B %Y").to_string(),
    }
}

fn row(entry: &FeedEntry, summary: Summary, now: DateTime<Utc>) -> Row {
    let class = match entry.change {
        FeedChange::Added => "found",
        FeedChange::StatusChanged => "stale",
        FeedChange::Removed => "gone",
        FeedChange::Changed | FeedChange::Merged | FeedChange::Split => "type",
    };
    let mut details = summary.sentences;
    let moved = entry.reason.clone().filter(|_| is_move(entry.change));
    if moved.is_none() {
        details.extend(entry.reason.as_deref().map(reason));
    }
    let path = format!("/manifests/{}/diff", entry.manifest_id);
    let diff_href = match &summary.versions {
        Some([from, to]) => links::with_query(&path, [("from", from.as_str()), ("to", to.as_str())]),
        None => path,
    };
    Row {
        at: Moment::new(entry.at, now),
        changed_at: entry.at,
        change: entry.change,
        count: 1,
        capabilities: summary.capabilities,
        published: summary.published,
        shared: match entry.change {
            FeedChange::Merged => entry.reason.as_deref().map(capabilities_in).unwrap_or_default(),
            _ => 0,
        },
        moved,
        what: match (entry.change, entry.reason.as_deref()) {
            (FeedChange::Merged, Some(ids)) => {
                format!("declares {} in several documents", capabilities_of(ids))
            }
            (FeedChange::Split, Some(ids)) => {
                format!("now declares {} separately", capabilities_of(ids))
            }
            (change, _) => what(change, 1, summary.published),
        },
        class,
        icon: icons::change(class),
        word: match entry.change {
            FeedChange::Added => "new",
            FeedChange::StatusChanged => "status",
            FeedChange::Removed => "removed",
            FeedChange::Changed | FeedChange::Merged | FeedChange::Split => "changed",
        },
        site_icon: icons::of_site(entry.site.as_str(), 32),
        site: entry.site.to_string(),
        details,
        breaking: summary.breaking,
        addresses_reader: summary.addresses_reader,
        diff_href: (entry.change == FeedChange::Changed).then_some(diff_href),
    }
}

fn what(change: FeedChange, count: u64, published: Published) -> String {
    let counted = |one: &str, many: &str| {
        if count == 1 { format!("a {one}") } else { labels::counted(count, one, many) }
    };
    let manifests = || counted("manifest", "manifests");
    match change {
        FeedChange::Added => match published {
            Published::Manifest => format!("published {}", manifests()),
            Published::WithoutCapabilities => {
                format!("published {} without capabilities", counted("document", "documents"))
            }
            Published::Unreadable => {
                format!("published {} that cannot be read", counted("document", "documents"))
            }
        },
        FeedChange::Changed => "changed its manifest".to_owned(),
        FeedChange::StatusChanged => "has another status".to_owned(),
        FeedChange::Removed => format!("no longer has {}", manifests()),
        FeedChange::Merged => "declares capabilities in several documents".to_owned(),
        FeedChange::Split => "declares capabilities separately".to_owned(),
    }
}

/// Whether the reason of a change lists ids.
const fn is_move(change: FeedChange) -> bool {
    matches!(change, FeedChange::Merged | FeedChange::Split)
}

/// The capabilities of a merge or a split, as words.
fn capabilities_of(ids: &str) -> String {
    labels::counted(capabilities_in(ids), "capability", "capabilities")
}

/// Number of capabilities in a merge or a split. Its reason is a list of ids; if ids were left out, their number follows the last one.
fn capabilities_in(ids: &str) -> u64 {
    let left_out =
        ids.strip_suffix(" more").and_then(|listed| listed.rsplit(' ').next()?.parse::<u64>().ok());
    ids.split(", ").count() as u64 + left_out.unwrap_or_default()
}

/// The reason of an entry as text.
fn reason(slug: &str) -> String {
    if let Some(reason) = AbuseReason::of_feed_reason(slug) {
        return format!("Suspended: {}", reason.description());
    }
    let outcome = slug.parse::<FetchOutcome>().map(FetchOutcome::label).ok();
    let end = || slug.parse::<VisitEnd>().map(VisitEnd::description).ok();
    let words = match slug {
        "opted_out" => Some("the site is no longer visited; its page says why"),
        "unlisted" => Some("no document links to it any more"),
        "named_by_site" => Some("the site itself now names the document"),
        "named_by_others" => Some("only other sites name the document now"),
        "published_by_site" => Some("the site itself now publishes the document"),
        "published_by_host" => Some("the document counts as that of its host alone now"),
        "published_by_unknown" => Some("users of the host may have written the document"),
        "read_again" => Some("a later version of agentdex read the same document"),
        _ => outcome.or_else(end),
    };
    words.map_or_else(|| text::cut(slug, REASON_CHARS_MAX), labels::capitalised)
}

#[cfg(test)]
mod tests {
    use manifest::{ManifestId, ManifestUrl, SiteName};
    use store::FeedPosition;

    use super::*;

    fn entry(change: FeedChange, path: &str, reason: Option<&str>) -> Row {
        let url = ManifestUrl::parse(&format!("https://a.example{path}")).unwrap();
        let entry = FeedEntry {
            position: FeedPosition(1),
            at: DateTime::UNIX_EPOCH,
            change,
            site: SiteName::parse("a.example").unwrap(),
            manifest_id: ManifestId::of(&url),
            reason: reason.map(str::to_owned),
        };
        let capabilities = if change == FeedChange::Added { 5 } else { 0 };
        row(&entry, Summary { capabilities, ..Summary::default() }, DateTime::UNIX_EPOCH)
    }

    #[test]
    fn the_entries_of_one_merge_are_one_row() {
        let merged = |path: &str, ids: &str| entry(FeedChange::Merged, path, Some(ids));
        let mut row = merged("/one", "c1 into c2, c3 into c4");
        let other = merged("/two", "c1 into c2, c3 into c4");
        assert!(row.repeats(&other) && !row.repeats(&merged("/two", "c5 into c6")));
        row.add(&other);
        assert_eq!(row.what, "declares 2 capabilities in several documents");
        assert_eq!(capabilities_of("c1 into c2, c3 into c4 and 5 more"), "7 capabilities");
        assert_eq!(capabilities_of("c1 out of c2"), "1 capability");
    }

    #[test]
    fn documents_without_capabilities_are_not_called_manifests() {
        let of_version = |capabilities, is_readable| {
            let version = VersionRecord {
                hash: manifest::ContentHash::of(b"x"),
                first_seen_at: DateTime::UNIX_EPOCH,
                last_seen_at: DateTime::UNIX_EPOCH,
                capabilities,
                findings: 1,
            };
            let mut row = entry(FeedChange::Added, "/one", None);
            let summary = Summary::of_new(&version, is_readable);
            (row.published, row.capabilities) = (summary.published, summary.capabilities);
            row.what = what(FeedChange::Added, 1, summary.published);
            row
        };
        let (mut empty, full) = (of_version(0, true), of_version(5, true));
        let unreadable = of_version(0, false);
        assert_eq!(unreadable.what, "published a document that cannot be read");
        assert!(!unreadable.repeats(&empty) && !unreadable.is_new_site());
        assert_eq!(empty.what, "published a document without capabilities");
        assert_eq!(empty.capabilities_words(), None);
        assert_eq!(full.what, "published a manifest");
        assert!(!empty.repeats(&full) && empty.repeats(&of_version(0, true)) && !empty.is_new_site());
        empty.add(&of_version(0, true));
        assert_eq!(empty.what, "published 2 documents without capabilities");
    }

    #[test]
    fn manifests_that_declare_the_same_are_one_row() {
        let mut added = entry(FeedChange::Added, "/one", None);
        added.add(&entry(FeedChange::Added, "/two", None));
        let merged = || entry(FeedChange::Merged, "/one", Some("c1 into c2, c3 into c4"));
        let mut day = Day { name: String::new(), rows: vec![merged(), added] };
        day.arrange();
        let [row] = day.rows.as_slice() else { panic!("{} rows", day.rows.len()) };
        assert_eq!(row.what, "published 2 manifests");
        let words = row.capabilities_words();
        assert_eq!(words.as_deref(), Some("with 8 capabilities, 2 of them declared more than once"));
        let mut day =
            Day { name: String::new(), rows: vec![merged(), entry(FeedChange::Added, "/one", None)] };
        day.arrange();
        assert_eq!(day.rows.len(), 2, "a single manifest says nothing about the merge");
    }

    #[test]
    fn many_new_manifests_are_collapsed_and_rows_are_sorted_by_time() {
        let site = |number: i64| {
            let mut row = entry(FeedChange::Added, "/one", None);
            row.site = format!("site{number}.example");
            row.changed_at += TimeDelta::seconds(number % 7);
            row
        };
        let changed = entry(FeedChange::Changed, "/one", None);
        let rows = std::iter::once(changed).chain((0..10).map(site)).collect();
        let mut day = Day { name: String::new(), rows };
        day.arrange();
        assert!(day.rows.is_sorted_by_key(|row| std::cmp::Reverse(row.changed_at)));
        let runs = day.runs();
        let lengths: Vec<_> = runs.iter().map(|run| (run.shown.len(), run.collapsed.len())).collect();
        assert_eq!(lengths, [(3, 5), (1, 0), (2, 0)]);
        assert_eq!(runs[0].collapsed_words(), "and 5 more sites with new manifests");
    }

    #[test]
    fn capabilities_of_several_manifests_are_declarations() {
        let mut row = entry(FeedChange::Added, "/one", None);
        assert_eq!(row.capabilities_words().as_deref(), Some("with 5 capabilities"));
        row.add(&entry(FeedChange::Added, "/two", None));
        assert_eq!(row.what, "published 2 manifests");
        assert_eq!(row.capabilities_words().as_deref(), Some("with 10 declarations of capabilities"));
    }
}

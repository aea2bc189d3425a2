//! The page of recent changes: what changed in words, grouped by day.

use std::collections::HashMap;

use askama::Template;
use chrono::{DateTime, Utc};
use policy::{FetchOutcome, VisitEnd};
use store::{FeedChange, FeedEntry};

use super::frame::{Frame, Section};
use super::time::Moment;
use super::{icons, labels, links};
use crate::answers::diff::{Changed, Difference};
use crate::page_context::PageContext;
use crate::text;

/// Names in one sentence.
const NAMED_MAX: usize = 3;
/// Sentences about one change.
const SENTENCES_MAX: usize = 4;
/// Maximum length of a name and of a value, in characters.
const NAME_CHARS_MAX: usize = 60;

struct Row {
    at: Moment,
    change: FeedChange,
    /// How many entries of the feed the row stands for.
    count: u64,
    what: String,
    class: &'static str,
    icon: &'static str,
    site: String,
    site_icon: String,
    /// What changed, sentence by sentence.
    details: Vec<String>,
    /// The differences of the versions.
    diff_href: Option<String>,
}

impl Row {
    /// Whether an entry repeats the previous one of the same site.
    fn repeats(&self, other: &Self) -> bool {
        self.site == other.site
            && self.change == other.change
            && self.change != FeedChange::Changed
            && self.details == other.details
    }
}

struct Day {
    name: String,
    rows: Vec<Row>,
}

#[derive(Template)]
#[template(path = "changes.html")]
pub(crate) struct ChangesPage {
    frame: Frame,
    days: Vec<Day>,
    next: Option<String>,
}

/// What changed in the versions behind entries of the feed, by the position of the entry.
pub(crate) type Summaries = HashMap<i64, Vec<String>>;

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
                Some(last) => {
                    last.count += 1;
                    last.what = what(last.change, last.count);
                }
                None => day.rows.push(row),
            },
            None => days.push(Day { name, rows: vec![row] }),
        }
    }
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

fn row(entry: &FeedEntry, mut details: Vec<String>, now: DateTime<Utc>) -> Row {
    let class = match entry.change {
        FeedChange::Added => "found",
        FeedChange::StatusChanged => "stale",
        FeedChange::Removed => "gone",
        FeedChange::Changed | FeedChange::Merged | FeedChange::Split => "type",
    };
    details.extend(entry.reason.as_deref().map(|text| reason(entry.change, text)));
    Row {
        at: Moment::new(entry.at, now),
        change: entry.change,
        count: 1,
        what: what(entry.change, 1),
        class,
        icon: icons::change(class),
        site_icon: icons::of_site(entry.site.as_str(), 32),
        site: entry.site.to_string(),
        details,
        diff_href: (entry.change == FeedChange::Changed)
            .then(|| format!("/manifests/{}/diff", entry.manifest_id)),
    }
}

fn what(change: FeedChange, count: u64) -> String {
    let manifests =
        || if count == 1 { "a manifest".to_owned() } else { labels::counted(count, "manifest", "manifests") };
    match change {
        FeedChange::Added => format!("published {}", manifests()),
        FeedChange::Changed => "changed its manifest".to_owned(),
        FeedChange::StatusChanged => "has another status".to_owned(),
        FeedChange::Removed => format!("no longer has {}", manifests()),
        FeedChange::Merged => "declares capabilities in several documents".to_owned(),
        FeedChange::Split => "declares capabilities apart that were one".to_owned(),
    }
}

/// The reason of an entry in words. Of a merge and a split it is a list of ids, which are counted.
fn reason(change: FeedChange, slug: &str) -> String {
    if matches!(change, FeedChange::Merged | FeedChange::Split) {
        let count = slug.split(", ").count() as u64;
        return labels::counted(count, "capability", "capabilities");
    }
    let outcome = slug.parse::<FetchOutcome>().map(labels::outcome).ok();
    let end = || slug.parse::<VisitEnd>().map(VisitEnd::description).ok();
    let words = match slug {
        "unlisted" => Some("no document names it any more"),
        _ => outcome.or_else(end),
    };
    words.map_or_else(|| text::cut(slug, NAME_CHARS_MAX * 4), labels::capitalised)
}

/// The difference of two versions in a few sentences.
pub(crate) fn summary(difference: &Difference) -> Vec<String> {
    let mut sentences = Vec::new();
    for (list, verb) in [(&difference.added, "added"), (&difference.removed, "removed")] {
        if !list.is_empty() {
            let names = list.iter().take(NAMED_MAX).map(|named| text::cut(&named.name, NAME_CHARS_MAX));
            let names = names.collect::<Vec<_>>().join(", ");
            let more = if list.len() > NAMED_MAX { ", …" } else { "" };
            let count = labels::counted(list.len() as u64, "capability", "capabilities");
            sentences.push(format!("{count} {verb}: {names}{more}"));
        }
    }
    sentences.extend(difference.changed.iter().flat_map(in_words).take(SENTENCES_MAX));
    sentences.truncate(SENTENCES_MAX);
    if difference.breaking {
        sentences.push("A caller of the earlier version may fail.".to_owned());
    }
    sentences
}

/// The changed fields of one capability.
fn in_words(changed: &Changed) -> Vec<String> {
    let name = text::cut(&changed.capability.name, NAME_CHARS_MAX);
    let sentence = |field: &crate::answers::diff::FieldChange| {
        let value = field.to.as_str().map(|value| text::cut(value, NAME_CHARS_MAX));
        match (field.field.as_str(), value) {
            ("description", _) => format!("{name}: another description"),
            ("name" | "title", Some(value)) => format!("{name} is now called {value}"),
            (member, _) if member.starts_with("auth") => format!("{name}: needs other credentials"),
            (member, Some(value)) => {
                format!("{name}: {} is now {value}", member.replace(['_', '.', '/'], " "))
            }
            (member, None) => format!("{name}: {} changed", member.replace(['_', '.', '/'], " ")),
        }
    };
    changed.fields.iter().map(sentence).take(SENTENCES_MAX).collect()
}

//! The page of recent changes.

use askama::Template;
use chrono::{DateTime, Utc};
use store::{FeedChange, FeedEntry};

use super::frame::{Frame, Section};
use super::links;
use super::time::Moment;

struct Row {
    at: Moment,
    what: &'static str,
    class: &'static str,
    site: String,
    manifest_href: Option<String>,
    diff_href: Option<String>,
    reason: Option<String>,
}

#[derive(Template)]
#[template(path = "changes.html")]
pub(crate) struct ChangesPage {
    frame: Frame,
    rows: Vec<Row>,
    next: Option<String>,
}

/// Changes in the given order, and the link to earlier ones.
pub(crate) fn page(entries: &[FeedEntry], earlier: Option<&str>, now: DateTime<Utc>) -> ChangesPage {
    ChangesPage {
        frame: Frame::new("Changes", Section::Changes),
        rows: entries.iter().map(|entry| row(entry, now)).collect(),
        next: earlier.map(|cursor| links::with_query("/changes", [("cursor", cursor)])),
    }
}

fn row(entry: &FeedEntry, now: DateTime<Utc>) -> Row {
    let (what, class) = match entry.change {
        FeedChange::Added => ("added", "found"),
        FeedChange::Changed => ("changed", "type"),
        FeedChange::StatusChanged => ("status changed", "stale"),
        FeedChange::Removed => ("removed", "gone"),
        FeedChange::Merged => ("merged", "type"),
        FeedChange::Split => ("split", "type"),
    };
    let is_there = entry.change != FeedChange::Removed;
    let manifest = format!("/manifests/{}", entry.manifest_id);
    Row {
        at: Moment::new(entry.at, now),
        what,
        class,
        site: entry.site.to_string(),
        diff_href: (entry.change == FeedChange::Changed).then(|| format!("{manifest}/diff")),
        manifest_href: is_there.then_some(manifest),
        reason: entry.reason.clone(),
    }
}

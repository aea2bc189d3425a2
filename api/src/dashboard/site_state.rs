//! The current state of a site: its status as text, a visit that is in progress or due, and a suspension.

use chrono::{DateTime, Utc};
use policy::Status;

use super::links::Link;
use super::time::Moment;
use super::{labels, links};
use crate::answers::site::{SiteAnswer, Suspension};
use crate::answers::submit::{wait_after, wait_of_delay, wait_words};

/// Maximum number of displayed findings of one manifest; the JSON response has all.
pub(super) const FINDINGS_MAX: usize = 50;
/// Maximum number of displayed characters of a URL. A URL may have 2,048 bytes, and five times as many in HTML.
pub(super) const URL_CHARS_MAX: usize = 200;
/// Maximum length of a displayed name, reason or address, in characters.
pub(super) const WORDS_CHARS_MAX: usize = 300;

/// Why the site is suspended, and how its owner can contact the operator.
pub(super) struct SuspendedView {
    pub(super) at: Moment,
    pub(super) meaning: &'static str,
    pub(super) note: String,
    pub(super) contact: Option<Link>,
}

impl SuspendedView {
    pub(super) fn new(suspension: &Suspension, now: DateTime<Utc>) -> Self {
        Self {
            at: Moment::new(suspension.at, now),
            meaning: suspension.meaning,
            note: suspension.note.clone(),
            contact: suspension.contact.as_deref().map(links::contact),
        }
    }
}

/// The time until a visit can be requested.
pub(super) struct RecheckWait {
    pub(super) seconds: u32,
    /// `43 minutes`
    pub(super) words: String,
    /// Whether the site asked for it. Otherwise, the site was visited recently.
    pub(super) is_asked_for: bool,
}

impl RecheckWait {
    pub(super) fn of(answer: &SiteAnswer, now: DateTime<Utc>) -> Option<Self> {
        let hosts = answer.hosts.iter().filter(|host| host.seeded);
        let delay = wait_of_delay(answer.not_before, hosts.map(|host| host.next_request_not_before), now);
        let seconds = wait_after(answer.line.last_visit_at, now).max(delay)?;
        Some(Self { seconds, words: wait_words(seconds), is_asked_for: delay == Some(seconds) })
    }
}

/// The status as text, and its CSS class. Distinguishes a site that was visited without a result from one that was never visited, and does
/// not call a site fresh if its documents cannot be read.
pub(super) fn status(answer: &SiteAnswer, now: DateTime<Utc>) -> (String, &'static str) {
    let line = &answer.line;
    let (known, class) = labels::site_status(line.status, line.manifests, &line.formats);
    let words = match (line.status, answer.visits_total) {
        (Status::Fresh, _) if labels::is_unreadable(&line.formats) => {
            let fetched = line.last_visit_at.map(|at| format!("fetched {}, ", Moment::new(at, now).words));
            return (format!("{}not readable", fetched.unwrap_or_default()), Status::Invalid.as_str());
        }
        _ if answer.is_being_visited => "being visited",
        (Status::Pending, 0) if is_waiting(answer) => "waiting for its first visit",
        (Status::Pending, 0) => "known, without a planned visit",
        _ => known,
    };
    (words.to_owned(), class)
}

/// Whether the first visit of a site is planned and has not begun. Hosts of lists and registries are known without a planned visit.
pub(super) fn is_waiting(answer: &SiteAnswer) -> bool {
    let line = &answer.line;
    let is_new = line.status == Status::Pending && answer.visits_total == 0;
    is_new && line.next_visit_at.is_some() && !answer.is_being_visited
}

/// The progress of the current visit.
pub(super) fn being_visited(answer: &SiteAnswer) -> Option<String> {
    let requests: u64 = answer.hosts.iter().map(|host| u64::from(host.requests_today)).sum();
    answer.is_being_visited.then(|| {
        format!(
            "{} so far today, as its robots.txt and its crawl delay allow.",
            labels::counted(requests, "request", "requests")
        )
    })
}

/// Whether a site that was visited before is due again, for example after "Check again".
pub(super) fn is_due(answer: &SiteAnswer, now: DateTime<Utc>) -> bool {
    let is_due = answer.line.next_visit_at.is_some_and(|at| at <= now);
    is_due && answer.visits_total > 0 && answer.blocked.is_none() && answer.parked.is_none()
}

/// The time of the next visit, unless a visit is in progress.
pub(super) fn next_visit(answer: &SiteAnswer, now: DateTime<Utc>) -> Option<Moment> {
    let planned = answer.line.next_visit_at.filter(|_| !answer.is_being_visited)?;
    Some(Moment::planned(planned, now))
}

//! Limits on the requests of a visit, and on the links that a site keeps for later visits, by who named the URLs. URLs that users of the
//! site and others name are counted separately, so that they do not displace URLs of the site.

use std::collections::BTreeMap;
use std::time::Duration;

use manifest::ManifestUrl;
use serde::{Deserialize, Serialize};

use super::task::{NamedBy, Role, Task};
use crate::seeds::fingerprint;

/// The limits for URLs with the same [`NamedBy`]. Parts are limited per manifest only ([`PARTS_MAX`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct UrlLimits {
    /// Tasks in the plan of a visit. For URLs of the site itself, and for links of its documents, it is the daily request budget of a site.
    pub(super) tasks: usize,
    /// How many of [`Self::tasks`] may be known documents or paths of the table. The rest is reserved for links that no visit has followed.
    pub(super) begun: usize,
    /// How many of [`Self::begun`] may be known documents, which take turns. Documents that may contain no manifest get an additional
    /// eighth of this number.
    pub(super) known: usize,
    /// How many of these may be links of one document.
    pub(super) of_one: usize,
    /// Number of links that are kept for later visits.
    pub(super) left: usize,
    /// Maximum time per visit for these requests, without waits. The limit exists because their servers may be slow on purpose.
    pub(super) time: Duration,
}

/// Maximum number of parts of one manifest: its API description and the documents with keys.
pub(super) const PARTS_MAX: usize = 5;

/// Maximum time that documents of one owner may use of the time for further links, or for URLs that others name.
pub(super) const TIME_OF_ONE_MAX: Duration = Duration::from_secs(5);

impl UrlLimits {
    /// The values of [`NamedBy`] that apply to links.
    pub(super) const LINKS: [NamedBy; 3] = [NamedBy::Document, NamedBy::Further, NamedBy::Others];

    pub(super) const fn of(named_by: NamedBy) -> Self {
        let time = Duration::from_secs;
        match named_by {
            NamedBy::Site | NamedBy::Document => {
                Self { tasks: 120, begun: 90, known: 70, of_one: 120, left: 60, time: time(30) }
            }
            NamedBy::Further => {
                Self { tasks: 60, begun: 45, known: 40, of_one: 10, left: 40, time: time(15) }
            }
            NamedBy::Others => Self { tasks: 100, begun: 70, known: 40, of_one: 60, left: 0, time: time(30) },
        }
    }
}

/// Counts of tasks.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Counts {
    /// Counts by who named the URL.
    named: BTreeMap<NamedBy, usize>,
    /// Counts by the fingerprint of the linking document ([`source_of`]).
    linked: BTreeMap<String, usize>,
}

impl Counts {
    pub(super) fn is_empty(&self) -> bool {
        self.named.is_empty() && self.linked.is_empty()
    }

    /// Whether another task would be within its limits, and within `max` tasks with the same [`NamedBy`].
    pub(super) fn has_room(&self, task: &Task, max: usize) -> bool {
        let of_one = || self.linked.get(&source_of(task)).copied().unwrap_or_default();
        let is_within = |max: usize| task.linked_from.is_none() || of_one() < max;
        match task.role {
            // the file of a claim is one request and is never left out, so that the claim gets a result
            Role::Claim => true,
            Role::Part => is_within(PARTS_MAX),
            _ => {
                let named = self.named.get(&task.named_by).copied().unwrap_or_default();
                named < max && is_within(UrlLimits::of(task.named_by).of_one)
            }
        }
    }

    pub(super) fn add(&mut self, task: &Task) {
        if !matches!(task.role, Role::Claim | Role::Part) {
            *self.named.entry(task.named_by).or_default() += 1;
        }
        if task.linked_from.is_some() {
            *self.linked.entry(source_of(task)).or_default() += 1;
        }
    }
}

/// A fingerprint of the document that links to the URL of a task. It differs for parts and other links. It is short, because it is written
/// with each request.
fn source_of(task: &Task) -> String {
    let from = task.linked_from.as_deref().map(ManifestUrl::as_str).unwrap_or_default();
    let kind = if task.role == Role::Part { "part" } else { "link" };
    format!("{:016x}", fingerprint(&format!("{kind} {from}")))
}

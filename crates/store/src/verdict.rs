//! The meaning of a response, or of the end of a visit, for a known manifest.

use manifest::{Discovery, ManifestId};
use policy::{FetchOutcome, Status, VisitEnd};

use crate::known::Known;
use crate::model::FetchRecord;

/// Number of consecutive visits without the manifest after which it is removed from the index.
const MISSES_TO_REMOVE: u32 = 2;

/// The result of a visit for one manifest in the index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The manifest is there.
    Confirmed,
    /// The visit gave no information about it.
    Unknown,
    /// It stays, with this status.
    StatusOnly(Status),
    /// It stays with this status, and is removed from the index if the next response has no manifest either.
    Missed(Status),
    /// It is removed from the index, with this status.
    Removed(Status),
}

impl Verdict {
    /// The verdict for a first response with this outcome, for a manifest that the last visits found.
    pub fn of_first(outcome: FetchOutcome) -> Self {
        Self::after(outcome, 0)
    }

    /// The verdict for a response with this outcome, after this number of consecutive responses without the manifest.
    pub fn after(outcome: FetchOutcome, misses_in_row: u32) -> Self {
        verdict_of_fetch(outcome, misses_in_row.saturating_add(1))
    }
}

/// Responses without a manifest, and denials.
const fn is_miss(outcome: FetchOutcome) -> bool {
    outcome.is_absent()
        || matches!(
            outcome,
            FetchOutcome::Blocked
                | FetchOutcome::RedirectedAway
                | FetchOutcome::RedirectRefused
                | FetchOutcome::RedirectLoop
        )
}

/// The state of a URL before a fetch.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Earlier {
    misses_in_row: u32,
    was_received: bool,
}

impl Earlier {
    pub(crate) fn of(known: &Known, id: &ManifestId) -> Self {
        let before = known.resources.get(id);
        let of_hint = known.hints.get(id).copied().unwrap_or_default();
        Self {
            misses_in_row: before.map_or(of_hint, |resource| resource.misses_in_row),
            was_received: before.is_some_and(|before| before.content_hash.is_some()),
        }
    }
}

/// The number of consecutive misses after a fetch with this outcome. Errors neither increase nor reset it. Exception: a link to a document
/// that was never received, or that had left the index before it was linked again, is followed only a few times, so every response counts
/// as a miss.
pub(crate) fn misses(fetch: &FetchRecord, outcome: FetchOutcome, earlier: Earlier) -> u32 {
    let Earlier { misses_in_row: so_far, was_received } = earlier;
    let is_link = !matches!(fetch.discovery, Discovery::Listed | Discovery::Submitted);
    let was_asked = !matches!(outcome, FetchOutcome::NotReached | FetchOutcome::OverBudget);
    match outcome {
        outcome if outcome.is_present() => 0,
        outcome if is_miss(outcome) => so_far.saturating_add(1),
        _ if is_link && was_asked && !was_received => so_far.saturating_add(1),
        _ => so_far,
    }
}

pub(crate) fn verdict_of_fetch(outcome: FetchOutcome, misses_in_row: u32) -> Verdict {
    let missed = |status| {
        if misses_in_row >= MISSES_TO_REMOVE {
            Verdict::Removed(status)
        } else {
            Verdict::Missed(Status::Stale)
        }
    };
    match outcome {
        FetchOutcome::Found | FetchOutcome::NotModified => Verdict::Confirmed,
        FetchOutcome::Fresh | FetchOutcome::OverBudget | FetchOutcome::NotReached => Verdict::Unknown,
        FetchOutcome::Gone | FetchOutcome::RobotsDenied => Verdict::Removed(Status::Denied),
        FetchOutcome::Blocked => missed(Status::Denied),
        FetchOutcome::Html => missed(Status::CatchAll),
        FetchOutcome::RateLimited
        | FetchOutcome::ServerError
        | FetchOutcome::TooLarge
        | FetchOutcome::BadEncoding
        | FetchOutcome::Quarantined => Verdict::StatusOnly(Status::Stale),
        FetchOutcome::RobotsUnreachable | FetchOutcome::AddressRefused => {
            Verdict::StatusOnly(Status::Unreachable)
        }
        outcome if outcome.is_transport_error() => Verdict::StatusOnly(Status::Unreachable),
        _ => missed(Status::Gone),
    }
}

/// The effect of a visit's end on manifests that it did not fetch.
pub(crate) const fn verdict_of_end(end: VisitEnd, site: Status) -> Verdict {
    match (end, site) {
        (VisitEnd::RobotsDenied, _) => Verdict::Removed(Status::Denied),
        (VisitEnd::OptedOut, _) => Verdict::Removed(Status::OptedOut),
        (VisitEnd::DnsDead, Status::Gone) => Verdict::Removed(Status::Gone),
        (
            VisitEnd::DnsDead
            | VisitEnd::DnsFailed
            | VisitEnd::Unreachable
            | VisitEnd::TlsFailed
            | VisitEnd::TransportErrors
            | VisitEnd::RobotsUnreachable
            | VisitEnd::AddressRefused,
            _,
        ) => Verdict::StatusOnly(Status::Unreachable),
        (VisitEnd::ServerErrors | VisitEnd::RateLimited | VisitEnd::Blocked, _) => {
            Verdict::StatusOnly(Status::Stale)
        }
        _ => Verdict::Unknown,
    }
}

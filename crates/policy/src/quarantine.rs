//! Decides how a document is read after an attempt that did not finish.
//!
//! An attempt is recorded before a document is read and removed afterwards. A remaining record means that a reader crashed, because of the
//! document or because its process was killed. Reading the document in a separate process shows which of the two it was.

use chrono::{DateTime, TimeDelta, Utc};

/// Maximum time between the start of an attempt and its removal: the deadlines of both readers, and the longest wait for a batch of writes.
const READING_MAX: TimeDelta = TimeDelta::minutes(2);

/// An attempt to read the same document, by the same version of the reader or a newer one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attempt<'a> {
    /// Whether it is the attempt that was just recorded. Then only the confirmation of the write was lost.
    pub is_own: bool,
    /// Whether it belongs to an earlier visit to the same site. A site has one visit at a time, so that visit has ended.
    pub is_of_same_site: bool,
    /// When it started.
    pub began_at: DateTime<Utc>,
    /// Why the document is quarantined, if it is.
    pub quarantined: Option<&'a str>,
}

/// How a document is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReadDecision {
    /// Read it in this process.
    Read,
    /// Read it in this process. The same bytes are being read for another site, whose attempt is recorded.
    ReadConcurrently,
    /// Read it in a process with limits of the operating system, because a reader did not finish.
    Verify,
    /// Do not read it, for this reason.
    Skip(String),
}

/// Decides from the earlier attempt, if there is one. An attempt from before the start of this process never counts as running, so that a
/// document can crash each process at most once.
pub fn decide(
    earlier: Option<Attempt<'_>>,
    process_began_at: DateTime<Utc>,
    now: DateTime<Utc>,
) -> ReadDecision {
    let Some(earlier) = earlier else { return ReadDecision::Read };
    if let Some(reason) = earlier.quarantined {
        return ReadDecision::Skip(reason.to_owned());
    }
    if earlier.is_own {
        return ReadDecision::Read;
    }
    let is_recent = earlier.began_at >= process_began_at && now - earlier.began_at < READING_MAX;
    if is_recent && !earlier.is_of_same_site { ReadDecision::ReadConcurrently } else { ReadDecision::Verify }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn isolates_documents_after_an_unfinished_attempt_and_skips_quarantined_ones() {
        let now = DateTime::from_timestamp(1_800_000_000, 0).unwrap();
        let process_began_at = now - TimeDelta::seconds(100);
        let attempt = |is_of_same_site, seconds, quarantined| Attempt {
            is_own: false,
            is_of_same_site,
            began_at: now - TimeDelta::seconds(seconds),
            quarantined,
        };
        for (earlier, decision) in [
            (None, ReadDecision::Read),
            (Some(Attempt { is_own: true, ..attempt(true, 1, None) }), ReadDecision::Read),
            (Some(attempt(true, 1, None)), ReadDecision::Verify),
            (Some(attempt(false, 1, None)), ReadDecision::ReadConcurrently),
            (Some(attempt(false, 100, None)), ReadDecision::ReadConcurrently),
            (Some(attempt(false, 101, None)), ReadDecision::Verify),
            (Some(attempt(false, 1, Some("it stalled"))), ReadDecision::Skip("it stalled".to_owned())),
            (Some(attempt(true, 9_999, Some("it stalled"))), ReadDecision::Skip("it stalled".to_owned())),
        ] {
            assert_eq!(decide(earlier, process_began_at, now), decision, "{earlier:?}");
        }
        let much_earlier = now - TimeDelta::days(1);
        let attempt = Some(attempt(false, 120, None));
        assert_eq!(decide(attempt, much_earlier, now), ReadDecision::Verify, "reading never takes that long");
    }
}

//! Whether a document may be read in this process, given an earlier attempt that did not end.
//!
//! The attempt is written before a document is read and removed afterwards. One that stands says that a reader ended in
//! the middle: because of the document, or because its process was killed meanwhile. A process of its own tells the two
//! apart.

use chrono::{DateTime, TimeDelta, Utc};

/// Longest time between the begin of an attempt and its removal: the deadline of a reader and the longest wait for a batch
/// of writes, three times over.
const READING_MAX: TimeDelta = TimeDelta::minutes(2);

/// An attempt of the same document by the same version of the reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attempt<'a> {
    /// Whether it was made in a visit of the same site. A site has one visit at a time, so that visit is over.
    pub is_of_same_site: bool,
    /// When it began.
    pub began_at: DateTime<Utc>,
    /// Why the document is quarantined, where a reader said so.
    pub quarantined: Option<&'a str>,
}

/// What becomes of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReadDecision {
    /// It is read, and the attempt is written.
    Read,
    /// It is read beside another worker that reads the same document now; no attempt is written.
    ReadBeside,
    /// An earlier reader did not end: it is read in a process with limits of the operating system.
    Verify,
    /// It is not read, for this reason.
    Skip(String),
}

/// Decides by the earlier attempt, if there is one.
pub fn decide(earlier: Option<Attempt<'_>>, now: DateTime<Utc>) -> ReadDecision {
    let Some(earlier) = earlier else { return ReadDecision::Read };
    if let Some(reason) = earlier.quarantined {
        return ReadDecision::Skip(reason.to_owned());
    }
    let is_under_way = !earlier.is_of_same_site && now - earlier.began_at < READING_MAX;
    if is_under_way { ReadDecision::ReadBeside } else { ReadDecision::Verify }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attempt_that_did_not_end_is_verified_and_a_quarantined_document_is_skipped() {
        let now = DateTime::from_timestamp(1_800_000_000, 0).unwrap();
        let attempt = |is_of_same_site, seconds, quarantined| {
            Some(Attempt { is_of_same_site, began_at: now - TimeDelta::seconds(seconds), quarantined })
        };
        for (earlier, decision) in [
            (None, ReadDecision::Read),
            (attempt(true, 1, None), ReadDecision::Verify),
            (attempt(false, 1, None), ReadDecision::ReadBeside),
            (attempt(false, 119, None), ReadDecision::ReadBeside),
            (attempt(false, 120, None), ReadDecision::Verify),
            (attempt(false, 1, Some("it stalled")), ReadDecision::Skip("it stalled".to_owned())),
            (attempt(true, 9_999, Some("it stalled")), ReadDecision::Skip("it stalled".to_owned())),
        ] {
            assert_eq!(decide(earlier, now), decision, "{earlier:?}");
        }
    }
}

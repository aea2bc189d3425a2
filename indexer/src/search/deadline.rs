//! The time limit of one search, checked between ranges of documents, terms of filters, facets and segments.

use std::time::{Duration, Instant};

use tantivy::TantivyError;

use crate::error::SearchError;

/// Number of documents processed between two checks, which takes some tenths of a millisecond.
const DOCUMENTS_BETWEEN_CHECKS: usize = 4_096;

/// When a search has to end.
#[derive(Debug, Clone, Copy)]
pub(super) struct Deadline {
    until: Option<Instant>,
    time_max: Duration,
}

impl Deadline {
    #[expect(clippy::disallowed_methods, reason = "a time limit needs the clock")]
    pub(super) fn after(time_max: Duration) -> Self {
        Self { until: Instant::now().checked_add(time_max), time_max }
    }

    #[expect(clippy::disallowed_methods, reason = "a time limit needs the clock")]
    pub(super) fn is_over(self) -> bool {
        self.until.is_some_and(|until| Instant::now() >= until)
    }

    pub(super) fn check(self) -> Result<(), SearchError> {
        if self.is_over() { Err(self.error()) } else { Ok(()) }
    }

    /// [`Self::check`] with an error of tantivy, which [`Self::bound`] converts back.
    pub(super) fn tantivy_check(self) -> tantivy::Result<()> {
        if self.is_over() { Err(TantivyError::InternalError("out of time".to_owned())) } else { Ok(()) }
    }

    /// The time that is left; zero after the deadline.
    #[cfg(feature = "cluster")]
    #[expect(clippy::disallowed_methods, reason = "a time limit needs the clock")]
    pub(super) fn left(self) -> Duration {
        self.until.map_or(self.time_max, |until| until.saturating_duration_since(Instant::now()))
    }

    /// Runs a search. Any error after the deadline means that it took too long.
    pub(super) fn bound<T>(self, search: impl FnOnce() -> Result<T, SearchError>) -> Result<T, SearchError> {
        search().map_err(|error| if self.is_over() { self.error() } else { error })
    }

    fn error(self) -> SearchError {
        SearchError::OutOfTime { time_max_ms: self.time_max.as_millis() }
    }
}

/// Processes items, with a check before the first one and after each [`DOCUMENTS_BETWEEN_CHECKS`].
pub(super) fn for_each_checked<T, E>(
    items: impl Iterator<Item = T>,
    mut check: impl FnMut() -> Result<(), E>,
    mut process: impl FnMut(T),
) -> Result<(), E> {
    for (at, item) in items.enumerate() {
        if at.is_multiple_of(DOCUMENTS_BETWEEN_CHECKS) {
            check()?;
        }
        process(item);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::IndexError;

    #[test]
    fn an_error_after_the_deadline_means_out_of_time() {
        let failed = || {
            let error = Deadline::after(Duration::ZERO).tantivy_check().unwrap_err();
            Err::<(), _>(IndexError::engine("count facets")(error).into())
        };
        let over = Deadline::after(Duration::ZERO).bound(failed);
        assert!(matches!(over, Err(SearchError::OutOfTime { time_max_ms: 0 })));
        let before = Deadline::after(Duration::from_hours(1)).bound(failed);
        assert!(matches!(before, Err(SearchError::Index(IndexError::Engine { .. }))));
    }

    #[test]
    fn checks_the_deadline_while_it_processes_documents() {
        let (mut processed, mut checks) = (0, 0);
        for_each_checked(
            0..10_000,
            || {
                checks += 1;
                Ok::<(), ()>(())
            },
            |_| processed += 1,
        )
        .unwrap();
        assert_eq!((processed, checks), (10_000, 3));
        let mut checks = 0;
        let check = || {
            checks += 1;
            if checks < 3 { Ok(()) } else { Err(()) }
        };
        let mut processed = 0;
        assert!(for_each_checked(0..10_000, check, |_| processed += 1).is_err());
        assert_eq!(processed, 2 * DOCUMENTS_BETWEEN_CHECKS);
    }
}

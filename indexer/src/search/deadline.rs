//! The time that one search may take.
//!
//! What adds up words asks after every few thousand documents whether there is time left. The engine, which finds phrases and
//! times and walks through what lies beyond the window and through other orders, cannot be stopped in the middle of a segment,
//! but it passes over several, one after the other, and a search goes on to candidates and facets: before each step the same
//! is asked.

use std::time::{Duration, Instant};

use tantivy::collector::{Collector, SegmentCollector};
use tantivy::query::Weight;
use tantivy::{SegmentOrdinal, SegmentReader, TantivyError};

use crate::error::SearchError;

/// When a search has to be over.
#[derive(Debug, Clone, Copy)]
pub(super) struct Deadline {
    until: Option<Instant>,
    time_max: Duration,
}

impl Deadline {
    #[expect(clippy::disallowed_methods, reason = "the edge: a search is measured where it begins")]
    pub(super) fn after(time_max: Duration) -> Self {
        Self { until: Instant::now().checked_add(time_max), time_max }
    }

    #[expect(clippy::disallowed_methods, reason = "the edge: a search is measured where it goes on")]
    pub(super) fn is_over(self) -> bool {
        self.until.is_some_and(|until| Instant::now() >= until)
    }

    pub(super) fn check(self) -> Result<(), SearchError> {
        if self.is_over() { Err(self.error()) } else { Ok(()) }
    }

    /// The same for what the engine calls or is called by.
    pub(super) fn pass(self) -> tantivy::Result<()> {
        if self.is_over() { Err(TantivyError::InternalError("out of time".to_owned())) } else { Ok(()) }
    }

    /// What comes of a search, whose every error means that it took too long once time is over.
    pub(super) fn bound<T>(self, search: impl FnOnce() -> Result<T, SearchError>) -> Result<T, SearchError> {
        search().map_err(|error| if self.is_over() { self.error() } else { error })
    }

    fn error(self) -> SearchError {
        SearchError::OutOfTime { time_max_ms: self.time_max.as_millis() }
    }
}

/// A collector that takes up no further segment when time is over.
pub(super) struct Timed<C> {
    pub(super) collector: C,
    pub(super) deadline: Deadline,
}

impl<C: Collector> Collector for Timed<C> {
    type Fruit = C::Fruit;
    type Child = C::Child;

    fn for_segment(&self, ordinal: SegmentOrdinal, segment: &SegmentReader) -> tantivy::Result<C::Child> {
        self.collector.for_segment(ordinal, segment)
    }

    fn requires_scoring(&self) -> bool {
        self.collector.requires_scoring()
    }

    fn merge_fruits(&self, fruits: Vec<<C::Child as SegmentCollector>::Fruit>) -> tantivy::Result<C::Fruit> {
        self.collector.merge_fruits(fruits)
    }

    fn collect_segment(
        &self,
        weight: &dyn Weight,
        ordinal: SegmentOrdinal,
        segment: &SegmentReader,
    ) -> tantivy::Result<<C::Child as SegmentCollector>::Fruit> {
        self.deadline.pass()?;
        self.collector.collect_segment(weight, ordinal, segment)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::IndexError;

    #[test]
    fn an_error_means_out_of_time_once_time_is_over_and_itself_before() {
        let failed = || {
            Err::<(), _>(
                IndexError::engine("count facets")(Deadline::after(Duration::ZERO).pass().unwrap_err())
                    .into(),
            )
        };
        let over = Deadline::after(Duration::ZERO).bound(failed);
        assert!(matches!(over, Err(SearchError::OutOfTime { time_max_ms: 0 })));
        let before = Deadline::after(Duration::from_hours(1)).bound(failed);
        assert!(matches!(before, Err(SearchError::Index(IndexError::Engine { .. }))));
    }
}

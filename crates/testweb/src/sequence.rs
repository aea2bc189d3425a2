//! Counts the requests for paths whose answers depend on the count.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use crate::{Answer, answer::Content};

/// The number of requests of each path with a sequence.
#[derive(Default)]
pub(crate) struct Sequences(Mutex<HashMap<(String, String), u32>>);

impl Sequences {
    /// Counts a request, and returns the answer to it.
    pub(crate) fn current(&self, host: &str, path: &str, answer: Arc<Answer>) -> Arc<Answer> {
        let Content::Sequence { first, last } = &answer.content else {
            return answer;
        };
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry((host.to_owned(), path.to_owned())).or_default();
        let mut number = *count;
        *count = count.saturating_add(1);
        drop(counts);
        for (times, answer) in first {
            if number < *times {
                return Arc::new(answer.clone());
            }
            number -= times;
        }
        Arc::new(Answer::clone(last))
    }
}

//! "So many times this, then that": counts how often a path was asked for, where its answer depends on it.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use crate::{Answer, answer::Content};

/// How often each path with a sequence was asked for.
#[derive(Default)]
pub(crate) struct Sequences(Mutex<HashMap<(String, String), u32>>);

impl Sequences {
    /// The answer whose turn it is; asking counts.
    pub(crate) fn current(&self, host: &str, path: &str, answer: Arc<Answer>) -> Arc<Answer> {
        let Content::Sequence { first, last } = &answer.content else {
            return answer;
        };
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let asked = counts.entry((host.to_owned(), path.to_owned())).or_default();
        let mut turn = *asked;
        *asked = asked.saturating_add(1);
        drop(counts);
        for (times, answer) in first {
            if turn < *times {
                return Arc::new(answer.clone());
            }
            turn -= times;
        }
        Arc::new(Answer::clone(last))
    }
}

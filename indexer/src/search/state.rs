//! What answers at one time: a commit, the vectors beside it, and the number that tells its answers from others.
//!
//! Vectors are compared by the texts that they are of. So those in memory stay good where a newer file cannot be read:
//! searches go on with them, and what is newer goes by words.

use std::path::Path;
use std::sync::Arc;

use super::IndexGeneration;
use super::loaded::Loaded;
use super::nearest::{Found, Nearness};
use crate::vectors::{Asked, Stamp, VectorsError, stamp};

/// Everything that a search reads; it does not change under one.
pub(super) struct State {
    pub(super) loaded: Arc<Loaded>,
    pub(super) generation: IndexGeneration,
    near: Near,
}

/// The vectors beside the index, as they were when they were last looked at.
#[derive(Clone, Default)]
struct Near {
    /// The file that was looked at last, whether or not it could be used.
    looked_at: Option<Stamp>,
    /// Reading it failed in a way that may pass: it is read again.
    is_to_retry: bool,
    /// What is searched by, and the file that it came from.
    of: Option<(Stamp, Arc<Nearness>)>,
}

impl State {
    pub(super) fn first(index_dir: &Path, loaded: Loaded, asked: Option<&Arc<Asked>>) -> Self {
        let loaded = Arc::new(loaded);
        let near =
            asked.and_then(|asked| Near::default().next(index_dir, &loaded, asked)).unwrap_or_default();
        Self::of(loaded, near)
    }

    /// The state to use from now on; `None` where nothing has changed.
    pub(super) fn next(
        &self,
        index_dir: &Path,
        newer: Option<Loaded>,
        asked: Option<&Arc<Asked>>,
    ) -> Option<Self> {
        let is_same = newer.is_none();
        let loaded = newer.map_or_else(|| Arc::clone(&self.loaded), Arc::new);
        match asked.and_then(|asked| self.near.next(index_dir, &loaded, asked)) {
            None if is_same => None,
            None => Some(Self::of(loaded, self.near.clone())),
            Some(near) => Some(Self::of(loaded, near)),
        }
    }

    /// None where there are no vectors, or none that can be used.
    pub(super) fn nearness(&self) -> Option<&Nearness> {
        self.near.of.as_ref().map(|(_, nearness)| &**nearness)
    }

    fn of(loaded: Arc<Loaded>, near: Near) -> Self {
        let vectors = near.of.as_ref().map_or(0, |(stamp, _)| stamp.number());
        let generation = IndexGeneration { vectors, ..loaded.generation.clone() };
        Self { loaded, generation, near }
    }
}

impl Near {
    /// Takes up the vectors as they stand beside this commit; `None` where all is as it was.
    fn next(&self, index_dir: &Path, loaded: &Loaded, asked: &Arc<Asked>) -> Option<Self> {
        let now = stamp(index_dir);
        if now == self.looked_at && !self.is_to_retry {
            return self.beside(loaded);
        }
        let found = Nearness::open(index_dir, asked, loaded);
        let mut next = Self { looked_at: now, is_to_retry: false, of: None };
        match (found, now) {
            (Ok(Found::Usable(nearness)), Some(stamp)) => next.of = Some((stamp, Arc::new(nearness))),
            (Ok(Found::OfAnotherModel), _) => {
                tracing::warn!(
                    "the vectors are of another model: searching by words alone until the indexer has made them anew"
                );
            }
            (Ok(_), _) => {
                if self.of.is_some() {
                    tracing::warn!(
                        "the vectors are gone: searching by words alone until the indexer has made them anew"
                    );
                }
            }
            (Err(error), _) => {
                next.is_to_retry = matches!(error, VectorsError::File { .. });
                self.tell_once(&error, next.is_to_retry);
                next.of.clone_from(&self.of);
                return Some(next.beside(loaded).unwrap_or(next));
            }
        }
        Some(next)
    }

    /// The same vectors beside another commit; `None` where they know all of it.
    fn beside(&self, loaded: &Loaded) -> Option<Self> {
        let (stamp, nearness) = self.of.as_ref().filter(|(_, nearness)| !nearness.is_of(loaded))?;
        Some(Self { of: Some((*stamp, Arc::new(nearness.beside(loaded)))), ..self.clone() })
    }

    /// What is tried again is not told again.
    fn tell_once(&self, error: &VectorsError, is_to_retry: bool) {
        let goes_on_by = if self.of.is_some() { "those in memory" } else { "words alone" };
        if is_to_retry && self.is_to_retry {
            tracing::debug!(%error, goes_on_by, "the vectors still cannot be read");
        } else {
            tracing::warn!(%error, goes_on_by, "the vectors cannot be read");
        }
    }
}

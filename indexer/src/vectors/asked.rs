//! Vectors of requests: the next page, a facet that is opened and what many ask are embedded once.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};

use lru::LruCache;

use super::{Code, Embedder, EmbedderError, codes};

/// Requests whose vectors are kept.
const REQUESTS_MAX: NonZeroUsize = NonZeroUsize::new(1_000).expect("is not zero");
/// A longer one is embedded each time: what people type anew is short. With the largest vectors all take two megabytes.
const REQUEST_BYTES_MAX: usize = 1_000;

/// Embeds requests, and keeps the vectors of those that were asked last.
pub(crate) struct Asked {
    embedder: Arc<dyn Embedder>,
    kept: Mutex<LruCache<Box<str>, Code>>,
}

impl Asked {
    pub(crate) fn of(embedder: Arc<dyn Embedder>) -> Self {
        Self { embedder, kept: Mutex::new(LruCache::new(REQUESTS_MAX)) }
    }

    pub(crate) fn embedder(&self) -> &dyn Embedder {
        &*self.embedder
    }

    /// The vectors of some phrasings, in their order. Blocking where one has to be made.
    pub(crate) fn codes(&self, texts: &[&str]) -> Result<Vec<Code>, EmbedderError> {
        let mut found: Vec<Option<Code>> = {
            let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
            texts.iter().map(|text| kept.get(*text).cloned()).collect()
        };
        let missing: Vec<&str> =
            texts.iter().zip(&found).filter(|(_, code)| code.is_none()).map(|(text, _)| *text).collect();
        if !missing.is_empty() {
            let fresh = codes(&*self.embedder, &missing)?;
            self.keep(&missing, &fresh);
            let places = found.iter_mut().filter(|code| code.is_none());
            for (place, code) in places.zip(fresh) {
                *place = Some(code);
            }
        }
        Ok(found.into_iter().flatten().collect())
    }

    fn keep(&self, texts: &[&str], codes: &[Code]) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        for (text, code) in texts.iter().zip(codes).filter(|(text, _)| text.len() <= REQUEST_BYTES_MAX) {
            kept.put((*text).into(), code.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts what it is asked for; its vectors tell the length of a text.
    #[derive(Debug, Default)]
    struct Lengths {
        asked: Mutex<Vec<String>>,
    }

    impl Embedder for Lengths {
        fn dimension(&self) -> usize {
            1
        }

        fn identity(&self) -> [u8; 32] {
            [0; 32]
        }

        #[expect(clippy::cast_precision_loss, reason = "short texts")]
        fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, EmbedderError> {
            let mut asked = self.asked.lock().unwrap();
            asked.extend(texts.iter().map(|text| (*text).to_owned()));
            Ok(texts.iter().map(|text| vec![text.len() as f32]).collect())
        }
    }

    #[test]
    fn a_request_is_embedded_once_and_each_text_gets_its_own() {
        let lengths = Arc::new(Lengths::default());
        let asked = Asked::of(lengths.clone());
        assert_eq!(asked.codes(&["four"]).unwrap(), [Code::of(&[4.0])]);
        let both = asked.codes(&["sixsix", "four", "threes!"]).unwrap();
        assert_eq!(both, [Code::of(&[6.0]), Code::of(&[4.0]), Code::of(&[7.0])]);
        assert_eq!(*lengths.asked.lock().unwrap(), ["four", "sixsix", "threes!"]);
        assert!(asked.codes(&[]).unwrap().is_empty());
    }

    #[test]
    fn what_is_kept_is_bounded_in_number_and_length() {
        let lengths = Arc::new(Lengths::default());
        let asked = Asked::of(lengths.clone());
        let long = "x".repeat(REQUEST_BYTES_MAX + 1);
        for _ in 0..2 {
            asked.codes(&[&long]).unwrap();
        }
        assert_eq!(lengths.asked.lock().unwrap().len(), 2);
        asked.codes(&["first"]).unwrap();
        for at in 0..REQUESTS_MAX.get() {
            asked.codes(&[&at.to_string()]).unwrap();
        }
        assert_eq!(asked.kept.lock().unwrap().len(), REQUESTS_MAX.get());
        asked.codes(&["first"]).unwrap();
        let asked_for_first = lengths.asked.lock().unwrap().iter().filter(|text| *text == "first").count();
        assert_eq!(asked_for_first, 2, "the eldest has gone");
    }
}

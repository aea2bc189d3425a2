//! Embeds requests, with a cache: further pages, other facets and popular requests are embedded only once.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};

use lru::LruCache;

use super::code::Code;
use super::embedder::{Embedder, EmbedderError, codes};

/// Maximum number of cached requests.
const REQUESTS_MAX: NonZeroUsize = NonZeroUsize::new(1_000).expect("is not zero");
/// Longer requests are not cached, because repeated requests are short. With the longest vectors, the cache takes two megabytes.
const REQUEST_BYTES_MAX: usize = 1_000;

pub(crate) struct QueryEmbedder {
    embedder: Arc<dyn Embedder>,
    cached: Mutex<LruCache<Box<str>, Code>>,
}

impl QueryEmbedder {
    pub(crate) fn new(embedder: Arc<dyn Embedder>) -> Self {
        Self { embedder, cached: Mutex::new(LruCache::new(REQUESTS_MAX)) }
    }

    pub(crate) fn embedder(&self) -> &dyn Embedder {
        &*self.embedder
    }

    /// The vectors of some phrasings, in their order. Blocking if one is not cached.
    pub(crate) fn codes(&self, texts: &[&str]) -> Result<Vec<Code>, EmbedderError> {
        let mut found: Vec<Option<Code>> = {
            let mut cached = self.cached.lock().unwrap_or_else(PoisonError::into_inner);
            texts.iter().map(|text| cached.get(*text).cloned()).collect()
        };
        let missing: Vec<&str> =
            texts.iter().zip(&found).filter(|(_, code)| code.is_none()).map(|(text, _)| *text).collect();
        if !missing.is_empty() {
            let fresh = codes(&*self.embedder, &missing)?;
            self.cache(&missing, &fresh);
            let places = found.iter_mut().filter(|code| code.is_none());
            for (place, code) in places.zip(fresh) {
                *place = Some(code);
            }
        }
        Ok(found.into_iter().flatten().collect())
    }

    fn cache(&self, texts: &[&str], codes: &[Code]) {
        let mut cached = self.cached.lock().unwrap_or_else(PoisonError::into_inner);
        for (text, code) in texts.iter().zip(codes).filter(|(text, _)| text.len() <= REQUEST_BYTES_MAX) {
            cached.put((*text).into(), code.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Records its calls. The vector of a text is its length.
    #[derive(Debug, Default)]
    struct Lengths {
        calls: Mutex<Vec<String>>,
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
            let mut calls = self.calls.lock().unwrap();
            calls.extend(texts.iter().map(|text| (*text).to_owned()));
            Ok(texts.iter().map(|text| vec![text.len() as f32]).collect())
        }
    }

    #[test]
    fn embeds_each_request_once() {
        let lengths = Arc::new(Lengths::default());
        let queries = QueryEmbedder::new(lengths.clone());
        assert_eq!(queries.codes(&["four"]).unwrap(), [Code::of(&[4.0])]);
        let both = queries.codes(&["sixsix", "four", "threes!"]).unwrap();
        assert_eq!(both, [Code::of(&[6.0]), Code::of(&[4.0]), Code::of(&[7.0])]);
        assert_eq!(*lengths.calls.lock().unwrap(), ["four", "sixsix", "threes!"]);
        assert!(queries.codes(&[]).unwrap().is_empty());
    }

    #[test]
    fn bounds_the_number_and_length_of_cached_requests() {
        let lengths = Arc::new(Lengths::default());
        let queries = QueryEmbedder::new(lengths.clone());
        let long = "x".repeat(REQUEST_BYTES_MAX + 1);
        for _ in 0..2 {
            queries.codes(&[&long]).unwrap();
        }
        assert_eq!(lengths.calls.lock().unwrap().len(), 2);
        queries.codes(&["first"]).unwrap();
        for at in 0..REQUESTS_MAX.get() {
            queries.codes(&[&at.to_string()]).unwrap();
        }
        assert_eq!(queries.cached.lock().unwrap().len(), REQUESTS_MAX.get());
        queries.codes(&["first"]).unwrap();
        let calls_for_first = lengths.calls.lock().unwrap().iter().filter(|text| *text == "first").count();
        assert_eq!(calls_for_first, 2, "the oldest is evicted");
    }
}

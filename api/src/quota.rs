//! The remaining quota of a rate limit, as sent in the `RateLimit-*` headers.

use axum::http::{HeaderMap, HeaderName, HeaderValue};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RemainingQuota {
    pub(crate) limit: u32,
    pub(crate) remaining: u32,
    /// Seconds until the bucket is full again.
    pub(crate) reset_s: u64,
}

impl RemainingQuota {
    pub(crate) fn write_headers(self, headers: &mut HeaderMap) {
        let values = [
            ("ratelimit-limit", u64::from(self.limit)),
            ("ratelimit-remaining", u64::from(self.remaining)),
            ("ratelimit-reset", self.reset_s),
        ];
        for (name, value) in values {
            headers.insert(HeaderName::from_static(name), HeaderValue::from(value));
        }
    }
}

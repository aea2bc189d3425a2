//! The rules of HTTP caching for a private cache that revalidates (RFC 9111).
//!
//! A fresh response is not requested again, even when a visit is due. A stale one is requested with both validators, byte for byte as they
//! were sent. With `no-store` only a hash is kept. With `no-cache` or `Vary: *` a response is always revalidated. Lifetimes are computed by
//! `http-cache-semantics` from strictly parsed headers, and end at most 30 days after the
//! response, or a day after it for a part of a manifest, such as a key set ([`Use::limit`]).

mod header;
#[cfg(test)]
mod situations_tests;
#[cfg(test)]
mod tests;

use std::time::{Duration, SystemTime};

use chrono::{DateTime, Utc};
use http::header::{
    AGE, CACHE_CONTROL, DATE, ETAG, EXPIRES, HeaderMap, HeaderName, HeaderValue, IF_MODIFIED_SINCE,
    IF_NONE_MATCH, LAST_MODIFIED, PRAGMA, VARY,
};
use http_cache_semantics::{CacheOptions, CachePolicy};
use manifest::string_enum;
use serde::{Deserialize, Serialize};

use self::header::Directives;
use crate::retry::days;
use crate::time::{DAY, later};
use crate::usage::ContentUsage;

/// Maximum lifetime. A domain may have another holder, or other keys, while a copy is fresh.
const LIFETIME_MAX: Duration = days(30);
/// Maximum lifetime of a part of a manifest.
const PART_LIFETIME_MAX: Duration = DAY;
/// Maximum heuristic lifetime from Last-Modified (RFC 9111 §4.2.2).
const HEURISTIC_MAX: Duration = DAY;
/// The heuristic lifetime as a fraction of the time since the last change, as RFC 9111 §4.2.2 suggests.
const HEURISTIC_SHARE: f32 = 0.1;
/// Maximum bytes of a header value that is kept. A longer value is not used as a validator, and makes the response stale.
const VALUE_BYTES_MAX: usize = 2_048;

/// The headers on which freshness and revalidation depend.
const STORED_HEADERS: [HeaderName; 8] =
    [AGE, CACHE_CONTROL, DATE, ETAG, EXPIRES, LAST_MODIFIED, PRAGMA, VARY];

/// The headers that state how the content may be used. A 304 need not repeat them.
const USAGE_HEADERS: [HeaderName; 2] =
    [HeaderName::from_static("content-usage"), HeaderName::from_static("content-signal")];

/// The part of a response that determines whether and how to request it again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CacheRecord {
    status: u16,
    received_at: DateTime<Utc>,
    /// Values as sent, each byte as one character.
    headers: Vec<(String, String)>,
    /// The target of a redirect, if it sent the response. The validators apply to that resource only (RFC 9110 section 8.8).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    redirected_to: Option<String>,
    /// Whether the document has links that no visit has followed. They are read from its stored copy after a 304.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub links_left: bool,
}

/// Whether a stored response may be used without a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Freshness {
    /// The stored response may be used until this time.
    Fresh { until: DateTime<Utc> },
    /// Request it with validators.
    Stale,
    /// Request it with validators, even if it is recent.
    MustRevalidate(RevalidateReason),
    /// Nothing that could be used or validated was stored.
    NoStore,
}

string_enum! {
    /// The reason to revalidate a response before every use.
    RevalidateReason, "reason to revalidate" {
        /// `no-cache`.
        NoCache = "no_cache",
        /// `Vary: *`.
        VaryStar = "vary_star",
    }
}

string_enum! {
    /// The parts of a response that may be stored.
    Retention, "retention" {
        /// The body and its validators.
        Everything = "everything",
        /// `no-store`: only a hash and the time.
        HashOnly = "hash_only",
    }
}

/// What a copy is used for, which limits its lifetime.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// A document of its own.
    Document,
    /// A document that completes a manifest, such as the keys that verify its signatures.
    Part,
}

impl Use {
    /// When a copy that was received or confirmed at `received_at` is requested again at the latest: 30 days later, or a day later for a
    /// part. Returns `until` if that is earlier.
    pub fn limit(self, received_at: DateTime<Utc>, until: DateTime<Utc>) -> DateTime<Utc> {
        let lifetime_max = match self {
            Self::Document => LIFETIME_MAX,
            Self::Part => PART_LIFETIME_MAX,
        };
        until.min(later(received_at, lifetime_max))
    }
}

/// Whether the request carried validators.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestKind {
    /// A request with If-None-Match or If-Modified-Since.
    Conditional,
    /// A request without validators.
    Unconditional,
}

/// The reaction to a 304.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotModified {
    /// The stored response is current, with these headers.
    Valid(CacheRecord),
    /// Repeat the request without validators.
    Repeat(NotModifiedProblem),
}

string_enum! {
    /// Why a 304 cannot be used.
    NotModifiedProblem, "problem with a 304" {
        /// The request carried no validators.
        NotConditional = "not_asked",
        /// There is no stored response.
        NothingStored = "nothing_stored",
        /// Its validators differ from those of the stored response.
        OtherValidator = "other_validator",
    }
}

impl CacheRecord {
    /// The record of a response. Under `no-store` it has no validators.
    pub fn of(status: u16, headers: &HeaderMap, received_at: DateTime<Utc>) -> Self {
        let mut kept = Vec::new();
        for name in &STORED_HEADERS {
            for value in headers.get_all(name) {
                if value.len() <= VALUE_BYTES_MAX {
                    kept.push((name.as_str().to_owned(), to_text(value)));
                } else if *name != ETAG && *name != LAST_MODIFIED {
                    kept.push((CACHE_CONTROL.as_str().to_owned(), "no-cache".to_owned()));
                }
            }
        }
        for name in &USAGE_HEADERS {
            for value in headers.get_all(name) {
                let text = to_text(value).chars().take(VALUE_BYTES_MAX).collect();
                kept.push((name.as_str().to_owned(), text));
            }
        }
        kept.shrink_to_fit();
        Self { status, received_at, headers: kept, redirected_to: None, links_left: false }
            .without_forbidden()
    }

    /// The record of a response that came from the target of a redirect; `None` for one that the URL itself sent.
    #[must_use]
    pub fn redirected_to(self, target: Option<&str>) -> Self {
        Self { redirected_to: target.map(str::to_owned), ..self }
    }

    /// Whether the response came from this target of a redirect or, for `None`, from the URL itself.
    pub fn is_of(&self, target: Option<&str>) -> bool {
        self.redirected_to.as_deref() == target
    }

    fn without_forbidden(mut self) -> Self {
        if self.retention() == Retention::HashOnly {
            self.headers
                .retain(|(name, _)| ![ETAG.as_str(), LAST_MODIFIED.as_str()].contains(&name.as_str()));
        }
        self
    }

    /// The parts of the response that may be stored.
    pub fn retention(&self) -> Retention {
        if self.directives().has("no-store") { Retention::HashOnly } else { Retention::Everything }
    }

    /// Whether the response may be used at `now` without a request.
    pub fn freshness(&self, now: DateTime<Utc>) -> Freshness {
        let directives = self.directives();
        if directives.has("no-store") {
            return Freshness::NoStore;
        }
        if directives.has("no-cache") || self.is_pragma_no_cache() {
            return Freshness::MustRevalidate(RevalidateReason::NoCache);
        }
        if self.values(&VARY).flat_map(|value| value.split(',')).any(|name| name.trim() == "*") {
            return Freshness::MustRevalidate(RevalidateReason::VaryStar);
        }
        let until = self.fresh_until();
        if now < until { Freshness::Fresh { until } } else { Freshness::Stale }
    }

    /// When the lifetime ends; `received_at` if the response has none.
    fn fresh_until(&self) -> DateTime<Utc> {
        let received_at = SystemTime::from(self.received_at);
        let lifetime =
            self.policy(received_at).map_or(Duration::ZERO, |policy| policy.time_to_live(received_at));
        let limit = if self.is_explicit() { LIFETIME_MAX } else { HEURISTIC_MAX };
        later(self.received_at, lifetime.min(limit))
    }

    /// The rest of the lifetime that the publisher stated, from the time of receipt; `None` if none was stated.
    pub fn stated_lifetime(&self) -> Option<Duration> {
        match self.freshness(self.received_at) {
            Freshness::NoStore | Freshness::MustRevalidate(_) => Some(Duration::ZERO),
            _ if !self.is_explicit() => None,
            Freshness::Stale => Some(Duration::ZERO),
            Freshness::Fresh { until } => Some(crate::time::until(self.received_at, until)),
        }
    }

    /// The headers of a conditional request: If-None-Match and If-Modified-Since, both if the response had both validators
    /// (RFC 9110 §13.1.2-3).
    pub fn conditional_headers(&self) -> HeaderMap {
        conditional_headers(self.etag(), self.last_modified())
    }

    /// The ETag as sent; bytes beyond ASCII appear as Latin-1.
    pub fn etag(&self) -> Option<&str> {
        self.value(&ETAG)
    }

    /// Last-Modified as sent.
    pub fn last_modified(&self) -> Option<&str> {
        self.value(&LAST_MODIFIED)
    }

    /// The preferences of the response on the use of its content. A 304 response replaces the headers that it repeats.
    pub fn usage(&self) -> ContentUsage {
        let mut headers = HeaderMap::new();
        for name in &USAGE_HEADERS {
            for value in self.values(name).filter_map(to_value) {
                headers.append(name, value);
            }
        }
        ContentUsage::of_headers(&headers)
    }

    /// The stored headers, for display.
    pub fn headers(&self) -> &[(String, String)] {
        &self.headers
    }

    /// The stored response after a 304 with these headers (RFC 9111 §3.2, §4.3.4). Age and Date are taken from the 304 only.
    fn updated(&self, headers: &HeaderMap, received_at: DateTime<Utc>) -> Self {
        let mut new = Self::of(self.status, headers, received_at);
        for (name, value) in &self.headers {
            let belongs_to_one_response = name == AGE.as_str() || name == DATE.as_str();
            if !belongs_to_one_response && !headers.contains_key(name) {
                new.headers.push((name.clone(), value.clone()));
            }
        }
        new.redirected_to.clone_from(&self.redirected_to);
        new.links_left = self.links_left;
        new.without_forbidden()
    }

    /// Whether the validator of a 304 differs from the stored one; entity tags are compared weakly (RFC 9110 §8.8.3.2).
    fn is_contradicted_by(&self, headers: &HeaderMap) -> bool {
        let opaque = |tag: &str| tag.trim().trim_start_matches("W/").to_owned();
        let sent = |name: &HeaderName| headers.get(name).map(to_text);
        match (self.etag(), sent(&ETAG)) {
            (Some(stored), Some(sent)) => opaque(stored) != opaque(&sent),
            (None, Some(_)) | (Some(_), None) => false,
            (None, None) => match (self.last_modified(), sent(&LAST_MODIFIED)) {
                (Some(stored), Some(sent)) => stored.trim() != sent.trim(),
                _ => false,
            },
        }
    }

    fn values(&self, name: &HeaderName) -> impl Iterator<Item = &str> {
        self.headers.iter().filter(move |(kept, _)| kept == name.as_str()).map(|(_, value)| value.as_str())
    }

    fn value(&self, name: &HeaderName) -> Option<&str> {
        self.values(name).next().filter(|value| !value.is_empty())
    }

    fn directives(&self) -> Directives {
        Directives::parse(self.values(&CACHE_CONTROL))
    }

    /// Whether Pragma requires revalidation. It applies only without Cache-Control (RFC 9111 §5.4).
    fn is_pragma_no_cache(&self) -> bool {
        self.values(&CACHE_CONTROL).next().is_none()
            && Directives::parse(self.values(&PRAGMA)).has("no-cache")
    }

    fn is_explicit(&self) -> bool {
        self.directives().max_age_s().is_some() || self.values(&EXPIRES).next().is_some()
    }

    /// The policy of `http-cache-semantics` for the response, from canonical headers. The request is constant and does not affect the
    /// result.
    fn policy(&self, received_at: SystemTime) -> Option<CachePolicy> {
        let date = self.value(&DATE).and_then(header::date);
        let age = header::age(self.value(&AGE), date, received_at);
        let response = http::Response::builder()
            .status(self.status)
            .header(AGE, age.as_secs())
            .header(CACHE_CONTROL, self.directives().canonical());
        let canonical_dates = [
            (DATE, date),
            (LAST_MODIFIED, self.value(&LAST_MODIFIED).and_then(header::date)),
            (EXPIRES, self.expires()),
        ];
        let response = canonical_dates
            .into_iter()
            .filter_map(|(name, date)| date.map(|date| (name, httpdate::fmt_http_date(date))))
            .fold(response, |response, (name, date)| response.header(name, date));
        let options =
            CacheOptions { shared: false, cache_heuristic: HEURISTIC_SHARE, ..CacheOptions::default() };
        let request = http::Request::new(());
        Some(CachePolicy::new_options(&request, &response.body(()).ok()?, received_at, options))
    }

    /// The Expires header. If its value is invalid, or if several values differ, the response counts as expired.
    fn expires(&self) -> Option<SystemTime> {
        let mut values = self.values(&EXPIRES);
        let first = values.next()?;
        let is_one = values.all(|value| value == first);
        Some(header::date(first).filter(|_| is_one).unwrap_or(SystemTime::UNIX_EPOCH))
    }
}

/// If-None-Match and If-Modified-Since for validators from [`CacheRecord::etag`] and
/// [`CacheRecord::last_modified`], if only these were stored.
pub fn conditional_headers(etag: Option<&str>, last_modified: Option<&str>) -> HeaderMap {
    [(IF_NONE_MATCH, etag), (IF_MODIFIED_SINCE, last_modified)]
        .into_iter()
        .filter_map(|(condition, validator)| Some((condition, to_value(validator?)?)))
        .collect()
}

/// Decides how to handle a 304 response. `stored` is the record of a response whose body or parsed content is still stored.
pub fn on_not_modified(
    stored: Option<&CacheRecord>,
    kind: RequestKind,
    headers: &HeaderMap,
    received_at: DateTime<Utc>,
) -> NotModified {
    match (kind, stored) {
        (RequestKind::Unconditional, _) => NotModified::Repeat(NotModifiedProblem::NotConditional),
        (RequestKind::Conditional, None) => NotModified::Repeat(NotModifiedProblem::NothingStored),
        (RequestKind::Conditional, Some(record)) if record.is_contradicted_by(headers) => {
            NotModified::Repeat(NotModifiedProblem::OtherValidator)
        }
        (RequestKind::Conditional, Some(record)) => NotModified::Valid(record.updated(headers, received_at)),
    }
}

fn to_text(value: &HeaderValue) -> String {
    value.as_bytes().iter().map(|byte| char::from(*byte)).collect()
}

fn to_value(text: &str) -> Option<HeaderValue> {
    let bytes: Option<Vec<u8>> = text.chars().map(|character| u8::try_from(character).ok()).collect();
    HeaderValue::from_bytes(&bytes?).ok()
}

//! What a caller may ask of the index.
//!
//! Values inside one filter mean OR, filters among each other mean AND. Closed vocabularies are parsed here and an
//! unknown value is an error that lists what is known; open ones (sites, types, namespaces, languages) simply match
//! nothing.

use std::time::Duration;

use chrono::{DateTime, Utc};
use manifest::model::{AuthScheme, CapabilityKind, Format, SafetyClass, SourceKind, UnknownValue};
use policy::Status;

manifest::closed! {
    /// The order of the results.
    Sort, "sort order" {
        Relevance = "relevance",
        Updated = "updated",
        FirstSeen = "first_seen",
        Name = "name",
    }
}

manifest::closed! {
    /// What results can be counted by.
    FacetKey, "facet" {
        Format = "format",
        SemanticType = "semantic_type",
        Namespace = "namespace",
        Method = "method",
        Safety = "safety",
        Auth = "auth",
        Site = "site",
        Status = "status",
        Source = "source",
        Kind = "kind",
        Language = "language",
        MediaType = "media_type",
        Publisher = "publisher",
        Tag = "tag",
    }
}

manifest::closed! {
    /// The HTTP verb of a capability (RFC 9110 §9, RFC 5789).
    Method, "method" {
        Get = "GET",
        Head = "HEAD",
        Post = "POST",
        Put = "PUT",
        Patch = "PATCH",
        Delete = "DELETE",
        Options = "OPTIONS",
        Trace = "TRACE",
        Connect = "CONNECT",
    }
}

impl Method {
    /// Parses a verb in any case, as people type it.
    pub fn parse_loosely(text: &str) -> Result<Self, UnknownValue> {
        text.to_ascii_uppercase().parse()
    }
}

/// Results on one page when the caller does not say.
pub const LIMIT_DEFAULT: usize = 20;
/// Most results on one page: what fits a screenful of scrolling and a bounded answer.
pub const LIMIT_MAX: usize = 100;

/// Longest time of a search when the caller does not say: a hundred times what a long request takes over a million
/// capabilities.
pub const TIME_MAX: Duration = Duration::from_secs(2);

/// Restrictions: OR inside one, AND across them. Empty means anything.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Filters {
    pub formats: Vec<Format>,
    /// `namespace:type`; a `*` at the end stands for any continuation.
    pub semantic_types: Vec<String>,
    pub namespaces: Vec<String>,
    pub methods: Vec<Method>,
    pub safety: Vec<SafetyClass>,
    pub auth: Vec<AuthScheme>,
    /// Sites or hosts.
    pub sites: Vec<String>,
    /// Sites of which nothing is wanted.
    pub without_sites: Vec<String>,
    pub statuses: Vec<Status>,
    pub sources: Vec<SourceKind>,
    /// Primary subtags of BCP 47, `en`.
    pub languages: Vec<String>,
    pub updated_since: Option<DateTime<Utc>>,
    pub first_seen_since: Option<DateTime<Utc>>,
    pub invocable: Option<bool>,
    pub kinds: Vec<CapabilityKind>,
    /// Of the capability's entry in a catalog, in any case.
    pub media_types: Vec<String>,
    /// The domain in an entry's identifier, in any case.
    pub publishers: Vec<String>,
    pub tags: Vec<String>,
    /// Whole names, native ids or identifiers, in any case.
    pub names: Vec<String>,
}

impl Filters {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// One search. With neither phrasings nor filters it browses everything.
#[derive(Debug, Clone, PartialEq)]
pub struct SearchRequest {
    /// Several phrasings of one wish; their scores are fused.
    pub phrasings: Vec<String>,
    pub filters: Filters,
    pub sort: Sort,
    /// 1 to [`LIMIT_MAX`]; other values are moved into that range.
    pub limit: usize,
    /// `next_cursor` of the page before.
    pub cursor: Option<String>,
    /// Counted only when asked for.
    pub facets: Vec<FacetKey>,
    /// Whether each hit says how its score came about.
    pub explain: bool,
    /// Longest time that the search may take.
    pub time_max: Duration,
}

impl Default for SearchRequest {
    fn default() -> Self {
        Self {
            phrasings: Vec::new(),
            filters: Filters::default(),
            sort: Sort::Relevance,
            limit: LIMIT_DEFAULT,
            cursor: None,
            facets: Vec::new(),
            explain: false,
            time_max: TIME_MAX,
        }
    }
}

/// One facet of an exploration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FacetWanted {
    pub key: FacetKey,
    /// Most values that are answered.
    pub values_max: usize,
    /// Results below which a value is left out.
    pub count_min: u64,
}

/// Counts over everything that matches, instead of results.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ExploreRequest {
    pub phrasings: Vec<String>,
    pub filters: Filters,
    pub facets: Vec<FacetWanted>,
}

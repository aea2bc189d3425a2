//! Requests to the index, and their limits.

use std::time::Duration;

use manifest::SiteName;

use crate::filter::{FacetKey, Filters};

manifest::string_enum! {
    /// The order of the results.
    Sort, "sort order" {
        Relevance = "relevance",
        Updated = "updated",
        FirstSeen = "first_seen",
        Name = "name",
    }
}

manifest::string_enum! {
    /// Which results are grouped under the best one.
    Grouping, "grouping" {
        /// No grouping: each result is a row.
        None = "none",
        /// Near copies of a declaration that call the same site.
        Copies = "copies",
        /// All results of a site, to show which sites match the request best.
        Site = "site",
    }
}

/// Default number of results per page.
pub const LIMIT_DEFAULT: usize = 20;
/// Maximum number of results per page: a few screens, and a bounded response.
pub const LIMIT_MAX: usize = 100;

/// Default time limit of a search: a hundred times longer than a long request over a million capabilities takes.
pub const TIME_MAX: Duration = Duration::from_secs(2);

/// A search. Without phrasings and filters, it lists all capabilities.
#[derive(Debug, Clone, PartialEq)]
pub struct SearchRequest {
    /// Several phrasings of one request; their scores are averaged.
    pub phrasings: Vec<String>,
    pub filters: Filters,
    pub sort: Sort,
    /// Applies to results by relevance.
    pub group_by: Grouping,
    /// 1 to [`LIMIT_MAX`]; other values are clamped.
    pub limit: usize,
    /// `next_cursor` of the previous page.
    pub cursor: Option<String>,
    pub facets: Vec<FacetKey>,
    /// Whether the first hits include the parts of their scores.
    pub explain: bool,
    /// With `explain`: the best hit of this site also includes them, wherever it is on the page.
    pub explain_best_of: Option<SiteName>,
    /// Whether a search with words has only its relevant results, [`SearchAnswer::relevant`](crate::SearchAnswer::relevant), in any order.
    pub is_relevant_only: bool,
    /// Whether the answer may be without shards of a cluster that are away, if the operator allows it. Set it only if
    /// [`SearchAnswer::completeness`](crate::SearchAnswer::completeness) is shown.
    pub accepts_missing_shards: bool,
    pub time_max: Duration,
}

impl Default for SearchRequest {
    fn default() -> Self {
        Self {
            phrasings: Vec::new(),
            filters: Filters::default(),
            sort: Sort::Relevance,
            group_by: Grouping::None,
            limit: LIMIT_DEFAULT,
            cursor: None,
            facets: Vec::new(),
            explain: false,
            explain_best_of: None,
            is_relevant_only: false,
            accepts_missing_shards: false,
            time_max: TIME_MAX,
        }
    }
}

/// One facet of an exploration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FacetRequest {
    pub key: FacetKey,
    pub values_max: usize,
    /// Values with fewer results are left out.
    pub count_min: u64,
}

/// Requests counts instead of results: of the relevant results of the phrasings, or of all capabilities without phrasings.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ExploreRequest {
    pub phrasings: Vec<String>,
    pub filters: Filters,
    pub facets: Vec<FacetRequest>,
}

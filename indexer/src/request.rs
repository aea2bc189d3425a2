//! The requests to the index, and the limits of each.

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
        /// None: each result is a row.
        None = "none",
        /// Near copies of one declaration that call its site.
        Copies = "copies",
        /// The results of one site: which site answers the request best.
        Site = "site",
    }
}

/// Results of a page by default.
pub const LIMIT_DEFAULT: usize = 20;
/// Largest page: a few screens, and a bounded response.
pub const LIMIT_MAX: usize = 100;

/// Time limit of a search by default: a hundred times what a long request takes over a million capabilities.
pub const TIME_MAX: Duration = Duration::from_secs(2);

/// One search. With neither phrasings nor filters it lists everything.
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
    /// Whether the first hits have the parts of their scores.
    pub explain: bool,
    /// With `explain`: the best hit of this site has them as well, wherever it is on the page.
    pub explain_best_of: Option<SiteName>,
    /// Whether a search by relevance ends with its relevant results, [`SearchAnswer::relevant`](crate::SearchAnswer::relevant).
    pub is_relevant_only: bool,
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

/// Asks for counts instead of for results: over the relevant results of the phrasings, or over all without phrasings.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ExploreRequest {
    pub phrasings: Vec<String>,
    pub filters: Filters,
    pub facets: Vec<FacetRequest>,
}

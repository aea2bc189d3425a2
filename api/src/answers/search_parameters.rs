//! The parameters of a search. Names and values of closed vocabularies are checked; other values are passed to the index.

use chrono::{DateTime, NaiveDate, NaiveTime, Utc};
use indexer::{FacetKey, Filters, Grouping, SearchRequest, Sort};
use manifest::string_enum;

use crate::parameters::{QueryPairs, unknown_value};
use crate::problem::Problem;

/// The filters that are also parameters.
pub(crate) fn filter_keys() -> impl Iterator<Item = FacetKey> {
    FacetKey::ALL.iter().copied().filter(|key| key.filter().parameter.is_some())
}

/// The names of all parameters of a search.
pub(crate) fn known() -> Vec<&'static str> {
    const OTHERS: [&str; 9] =
        ["updated_since", "sort", "group_by", "limit", "cursor", "fields", "facets", "view", "explain"];
    ["q"].into_iter().chain(filter_keys().map(FacetKey::as_str)).chain(OTHERS).collect()
}

const LIMIT_DEFAULT: u32 = 20;
pub(crate) const LIMIT_MAX: u32 = 100;

/// The members of a row, in the order of the response.
const ROW_FIELDS: &[&str] = &[
    "id",
    "key",
    "native_id",
    "name",
    "title",
    "description",
    "kind",
    "site",
    "host",
    "format",
    "manifest_id",
    "semantic_types",
    "protocol",
    "method",
    "endpoint",
    "safety",
    "safety_source",
    "confirmation",
    "handoff",
    "auth",
    "auth_required",
    "invocable",
    "deprecated",
    "degraded",
    "addresses_reader",
    "source",
    "identity_marks",
    "publisher",
    "status",
    "updated_at",
    "group",
    "score",
    "snippet",
    "text_is",
];

/// The members that `view=full` adds.
const FULL_FIELDS: &[&str] = &[
    "parameters",
    "response",
    "invocation",
    "scopes",
    "session_url",
    "authentication",
    "agent_identity",
    "identity",
    "confirmation_message",
    "usage_terms",
    "idempotency",
    "execution",
    "rate_limit",
    "price",
    "other_prices",
    "payments",
    "depends_on",
    "examples",
    "provenance",
    "findings",
];

string_enum! {
    /// How much each result contains.
    View, "view" { Compact = "compact", Full = "full" }
}

/// The parsed parameters of a search.
#[derive(Debug, Clone)]
pub(crate) struct SearchParameters {
    pub(crate) request: SearchRequest,
    pub(crate) view: View,
    /// Requested members of the row; empty means all.
    pub(crate) fields: Vec<String>,
}

impl SearchParameters {
    pub(crate) fn read(query: &QueryPairs) -> Result<Self, Problem> {
        query.only(&known())?;
        let limit = usize::try_from(query.limit(LIMIT_DEFAULT, LIMIT_MAX)?).unwrap_or(usize::MAX);
        let request = SearchRequest {
            phrasings: owned(query.texts("q")),
            filters: filters(query)?,
            sort: query.one_closed("sort")?.unwrap_or(Sort::Relevance),
            group_by: query.one_closed("group_by")?.unwrap_or(Grouping::Copies),
            limit,
            cursor: query.one("cursor")?.map(ToOwned::to_owned),
            facets: query.closed::<FacetKey>("facets")?,
            explain: query.one_parsed("explain")?.unwrap_or(false),
            ..SearchRequest::default()
        };
        if request.group_by == Grouping::Site
            && (request.phrasings.is_empty() || request.sort != Sort::Relevance)
        {
            let detail = "\"group_by=site\" needs \"q\" and the order by relevance";
            return Err(Problem::bad_request(detail).with_parameter("group_by"));
        }
        let view = query.one_closed("view")?.unwrap_or(View::Compact);
        Ok(Self { request, view, fields: fields(query, view)? })
    }

    /// Rejects a request that has neither a query nor a filter.
    pub(crate) fn require_query(&self) -> Result<(), Problem> {
        if self.is_empty() {
            return Err(Problem::bad_request(
                "give \"q\", as in /search?q=book+flight, or at least one filter, as in /search?format=awp",
            ));
        }
        Ok(())
    }

    /// Whether there is neither a query nor a filter.
    pub(crate) fn is_empty(&self) -> bool {
        self.request.phrasings.is_empty() && self.request.filters.is_empty()
    }
}

fn filters(query: &QueryPairs) -> Result<Filters, Problem> {
    let updated_since = query.one("updated_since")?.map(instant).transpose()?;
    let mut filters = Filters { updated_since, ..Filters::default() };
    for key in filter_keys() {
        for value in query.list(key.as_str())? {
            filters.add(key, value).map_err(|error| unknown_value(key.as_str(), &error))?;
        }
    }
    Ok(filters)
}

fn owned(texts: Vec<&str>) -> Vec<String> {
    texts.into_iter().map(ToOwned::to_owned).collect()
}

/// An RFC 3339 time, or a date, which means its first moment in UTC.
pub(crate) fn instant(text: &str) -> Result<DateTime<Utc>, Problem> {
    // A plus sign that was not percent-encoded arrives as a blank.
    let text = text.replace(' ', "+");
    let date = || text.parse::<NaiveDate>().map(|date| date.and_time(NaiveTime::MIN).and_utc());
    DateTime::parse_from_rfc3339(&text).map(|time| time.to_utc()).or_else(|_| date()).map_err(|_| {
        let detail = "\"updated_since\" is a date or a time, like 2026-11-21 or 2026-11-21T07:00:00Z";
        Problem::bad_request(detail).with_parameter("updated_since")
    })
}

fn fields(query: &QueryPairs, view: View) -> Result<Vec<String>, Problem> {
    let known: Vec<&str> = match view {
        View::Compact => ROW_FIELDS.to_vec(),
        View::Full => [ROW_FIELDS, FULL_FIELDS].concat(),
    };
    let requested = query.list("fields")?;
    let Some(unknown) = requested.iter().find(|field| !known.contains(field)) else {
        return Ok(owned(requested));
    };
    let hint = if FULL_FIELDS.contains(unknown) { " without view=full" } else { "" };
    let shown: String = unknown.chars().take(60).collect();
    let detail = format!("\"{shown}\" is not a known field{hint}");
    Err(Problem::bad_request(detail).with_parameter("fields").with_known(known))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(query: &str) -> Result<SearchParameters, Problem> {
        SearchParameters::read(&QueryPairs::parse(query)?)
    }

    #[test]
    fn every_search_parameter_reaches_the_request() {
        let read = read(
            "q=book,+now&q=reserve&format=awp,atp&semantic_type=travel:*&namespace=travel&method=post&safety=write\
             &auth=none&site=SkyHop.example&status=fresh&source=native&language=EN&updated_since=2026-11-21\
             &sort=name&group_by=none&limit=7&facets=format,site&view=full&fields=id,parameters",
        )
        .unwrap();
        insta::assert_debug_snapshot!(read);
    }

    #[test]
    fn times_are_read_with_and_without_an_encoded_plus() {
        for text in
            ["2026-11-21T01:00:00+01:00", "2026-11-21T01:00:00 01:00", "2026-11-21T00:00:00Z", "2026-11-21"]
        {
            assert_eq!(instant(text).unwrap().to_rfc3339(), "2026-11-21T00:00:00+00:00");
        }
        assert!(instant("yesterday").is_err());
    }

    #[test]
    fn sites_are_grouped_by_relevance_alone() {
        assert_eq!(read("q=x").unwrap().request.group_by, Grouping::Copies);
        assert_eq!(read("q=x&group_by=site").unwrap().request.group_by, Grouping::Site);
        for wrong in ["format=awp&group_by=site", "q=x&group_by=site&sort=name", "q=x&group_by=color"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn fields_are_checked_against_the_view() {
        assert!(read("q=x&fields=id,nam").is_err());
        let detail = read("q=x&fields=parameters").unwrap_err().body().detail.clone();
        assert!(detail.contains("without view=full"), "{detail}");
    }
}

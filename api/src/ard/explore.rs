//! `POST /explore`: counts entries by value (ARD 0.91 §5.3.3). With a query text, only relevant entries are counted: those that `POST
//! /search` lists.

use std::collections::{BTreeMap, BTreeSet};

use axum::body::Bytes;
use indexer::{ExploreRequest, FacetBuckets, FacetRequest};
use manifest::term::TermContext;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::filter::{self, EntryFilter, Key, Path};
use super::of_sites;
use super::search::{Query, narrow};
use super::terms::TermFilter;
use crate::answers::search::explore;
use crate::body::{bounded, fresh, parse};
use crate::problem::Problem;
use crate::request::Request;
use crate::response::HttpResult;

/// Maximum number of facets of one request: each needs a pass over all matches.
const FACETS_MAX: usize = 16;
const BUCKETS_DEFAULT: usize = 20;
const BUCKETS_MAX: usize = 1_000;

#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(as = ArdExplore)]
pub(super) struct ExploreBody {
    #[serde(default)]
    query: Query,
    result_type: ResultType,
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ArdResultType)]
struct ResultType {
    #[schema(min_items = 1, max_items = 16)]
    facets: Vec<Facet>,
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(as = ArdFacet)]
struct Facet {
    field: String,
    #[schema(minimum = 1, maximum = 1000)]
    limit: Option<i64>,
    min_count: Option<u64>,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ArdFacets)]
pub(super) struct ExploreAnswer {
    /// Always `facets`.
    result_type: &'static str,
    facets: BTreeMap<String, Buckets>,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ArdBuckets)]
struct Buckets {
    #[schema(value_type = Vec<crate::openapi::schemas::FacetValue>)]
    buckets: Vec<indexer::FacetCount>,
    /// Entries with values that are not listed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    other_count: Option<u64>,
}

impl From<FacetBuckets> for Buckets {
    fn from(counted: FacetBuckets) -> Self {
        let other_count = (counted.other_count > 0).then_some(counted.other_count);
        Self { buckets: counted.values, other_count }
    }
}

/// Counts entries by value, as ARD 0.91 defines it.
#[utoipa::path(
    post,
    path = "/explore",
    tag = "ARD registry",
    request_body = ExploreBody,
    responses((status = 200, description = "Values with counts", body = ExploreAnswer)),
)]
pub(crate) async fn answer(Request { app, client, query, .. }: Request, bytes: Bytes) -> HttpResult {
    query.only(&[])?;
    let FacetQuery { mut request, terms, fields } = parse(&bytes, asked)?;
    narrow(&app, client, &request.phrasings, &mut request.filters, terms.into()).await?;
    let counted = explore(&app.index, client, request).await?;
    let facets = fields.into_iter().zip(counted.into_iter().map(Buckets::from)).collect();
    Ok(fresh(&ExploreAnswer { result_type: "facets", facets }))
}

/// The parsed request body.
struct FacetQuery {
    request: ExploreRequest,
    terms: Vec<TermFilter>,
    /// The names of its fields.
    fields: Vec<String>,
}

fn asked(body: ExploreBody) -> Result<FacetQuery, Problem> {
    let requested = body.result_type.facets;
    if requested.is_empty() || requested.len() > FACETS_MAX {
        let detail = format!("\"resultType.facets\" lists 1 to {FACETS_MAX} fields to count by");
        return Err(Problem::bad_request(detail).with_parameter("resultType.facets"));
    }
    let fields: BTreeSet<&str> = requested.iter().map(|facet| facet.field.as_str()).collect();
    if fields.len() < requested.len() {
        let detail = "\"resultType.facets\" names a field twice";
        return Err(Problem::bad_request(detail).with_parameter("resultType.facets"));
    }
    let context = body.query.context()?;
    let wanted = |facet: &Facet| wanted(facet, &context);
    let facets = requested.iter().map(wanted).collect::<Result<Vec<_>, _>>()?;
    let EntryFilter { filters, terms } = body.query.filter(&context)?;
    let phrasings = body.query.phrasings();
    // All entries would have to be compared.
    if !terms.is_empty() && phrasings.is_empty() {
        let detail = "without \"query.text\", POST /explore filters by the known paths alone";
        return Err(Problem::bad_request(detail).with_parameter("filter").with_known(filter::known_paths()));
    }
    let request = ExploreRequest { phrasings, filters: of_sites(filters)?, facets };
    Ok(FacetQuery { request, terms, fields: requested.into_iter().map(|facet| facet.field).collect() })
}

fn wanted(facet: &Facet, context: &TermContext) -> Result<FacetRequest, Problem> {
    let path = match Key::read(&facet.field, context) {
        Ok(Key::Path(path)) => path.facet(),
        _ => None,
    };
    let key = path.ok_or_else(|| {
        let known: Vec<&str> = filter::facet_paths().map(Path::as_str).collect();
        let detail = format!("\"{}\" has no counts", facet.field);
        Problem::bad_request(detail).with_parameter("resultType.facets.field").with_known(known)
    })?;
    let values_max = bounded("limit", facet.limit, BUCKETS_DEFAULT, BUCKETS_MAX)?;
    Ok(FacetRequest { key, values_max, count_min: facet.min_count.unwrap_or(1) })
}

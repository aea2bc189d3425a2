//! The response of `GET /search` without a server, for the command line.

use async_recursion::async_recursion as boxed;
use axum::http::StatusCode;
use indexer::SearchAnswer;
use manifest::SiteName;

use crate::answers::search::{self, SearchPage};
use crate::answers::search_parameters::SearchParameters;
use crate::client::Client;
use crate::parameters::QueryPairs;
use crate::problem::Problem;
use crate::state::App;

/// Why a search has no answer.
#[derive(Debug, thiserror::Error)]
pub enum LocalSearchError {
    /// The query is invalid; the text describes a valid one.
    #[error("{0}")]
    Query(String),
    /// The index or the database cannot be used.
    #[error("{0}")]
    Unavailable(String),
}

impl From<Problem> for LocalSearchError {
    fn from(problem: Problem) -> Self {
        let body = problem.body();
        if body.status == StatusCode::BAD_REQUEST || body.status == StatusCode::GONE {
            // a command line has no parameter of this name
            Self::Query(body.in_words().replace("\"q\"", "the query"))
        } else {
            Self::Unavailable(body.detail.clone())
        }
    }
}

/// The results of a search.
#[derive(Debug)]
pub struct LocalResults {
    /// The response of `GET /search`.
    pub page: serde_json::Value,
    /// Whether the request has text, but no word that capabilities are searched by.
    pub has_no_words: bool,
}

/// The page of results for the parameters of `GET /search`.
#[boxed]
pub async fn search(app: &App, parameters: Vec<(String, String)>) -> Result<LocalResults, LocalSearchError> {
    let (page, has_no_words) = page(app, parameters).await?;
    let page =
        serde_json::to_value(&page).map_err(|error| LocalSearchError::Unavailable(error.to_string()))?;
    Ok(LocalResults { page, has_no_words })
}

async fn page(app: &App, parameters: Vec<(String, String)>) -> Result<(SearchPage, bool), Problem> {
    let pairs = QueryPairs::checked(parameters.into_iter().map(Ok))?;
    let parameters = SearchParameters::read(&pairs)?;
    parameters.require_query()?;
    let client = Client::on_this_machine();
    let mut results = search::search(&app.index, client, parameters.request.clone()).await?;
    // Indexers remove blocked sites, but none may be running. Near copies on other sites replace their results.
    let mut blocked = app.store.blocked_among(&sites(&results.answer)).await?;
    if !blocked.is_empty() {
        let mut request = parameters.request.clone();
        request.filters.without_sites = blocked.iter().map(ToString::to_string).collect();
        results = search::search(&app.index, client, request).await?;
        blocked.extend(app.store.blocked_among(&sites(&results.answer)).await?);
    }
    search::leave_out(&mut results.answer, |site| blocked.contains(site));
    let has_no_words = results.answer.has_no_words;
    let (page, _) = search::page(app.manifests(client), results, &parameters).await?;
    Ok((page, has_no_words))
}

/// The sites of the results and of those that are grouped with them.
fn sites(answer: &SearchAnswer) -> Vec<SiteName> {
    let grouped = answer.hits.iter().flat_map(|hit| &hit.group).flat_map(|group| &group.members);
    answer.hits.iter().map(|hit| &hit.site).chain(grouped.map(|member| &member.site)).cloned().collect()
}

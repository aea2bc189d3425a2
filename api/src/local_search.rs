//! The answer of `GET /search` without a server, for the command line.

use async_recursion::async_recursion as boxed;
use axum::http::StatusCode;
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
    /// The query is wrong; the text says what would be right.
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
            Self::Query(body.detail.clone())
        } else {
            Self::Unavailable(body.detail.clone())
        }
    }
}

/// The page of results for the parameters of `GET /search`, as its JSON.
#[boxed]
pub async fn search(
    app: &App,
    parameters: Vec<(String, String)>,
) -> Result<serde_json::Value, LocalSearchError> {
    let page = page(app, parameters).await?;
    serde_json::to_value(&page).map_err(|error| LocalSearchError::Unavailable(error.to_string()))
}

async fn page(app: &App, parameters: Vec<(String, String)>) -> Result<SearchPage, Problem> {
    let pairs = QueryPairs::checked(parameters.into_iter().map(Ok))?;
    let parameters = SearchParameters::read(&pairs)?;
    parameters.require_query()?;
    let client = Client::on_this_machine();
    let mut results = search::search(&app.index, client, parameters.request.clone()).await?;
    // an indexer removes blocked sites, and none may be running
    let sites: Vec<SiteName> = results.answer.hits.iter().map(|hit| hit.site.clone()).collect();
    let blocked = app.store.blocked_among(&sites).await?;
    search::leave_out(&mut results.answer, |site| blocked.contains(site));
    search::page(app.manifests(client), results, &parameters).await
}

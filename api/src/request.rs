//! The parts of a request that handlers use.

use axum::Extension;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;

use crate::client::Client;
use crate::parameters::QueryPairs;
use crate::problem::Problem;
use crate::response::RequestContext;
use crate::state::App;

/// The parts of a request that most handlers need, except its path and its body.
pub(crate) struct Request {
    pub(crate) app: App,
    pub(crate) client: Client,
    pub(crate) context: RequestContext,
    pub(crate) query: QueryPairs,
}

impl FromRequestParts<App> for Request {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        let client = Extension::from_request_parts(parts, app).await;
        let Extension(client) = client.map_err(|error| Problem::internal(&error))?;
        let Ok(context) = RequestContext::from_request_parts(parts, app).await;
        let query = QueryPairs::from_request_parts(parts, app).await?;
        Ok(Self { app: app.clone(), client, context, query })
    }
}

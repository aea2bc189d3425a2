//! `GET /metrics`: Prometheus metrics, for programs on this machine and for holders of an admin token.

use axum::http::HeaderMap;
use store::{FeedPosition, StoreError};

use super::health::feed_head;
use crate::clock;
use crate::metrics;
use crate::request::Request;
use crate::response::{Caching, HttpResult};
use crate::state::App;

const MEDIA_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Prometheus metrics.
#[utoipa::path(get, path = "/metrics", tag = "service",
    responses((status = 200, description = "Prometheus text", body = String, content_type = "text/plain")),
    security((), ("admin" = [])))]
pub(crate) async fn show(Request { app, client, context, query }: Request, headers: HeaderMap) -> HttpResult {
    query.only(&[])?;
    if !client.is_local {
        app.admin_tokens.admit_request(&headers).await?;
    }
    measure_lag(&app, app.store.feed_head()).await;
    Ok(context.bytes(metrics::rendered().into_bytes(), MEDIA_TYPE, Caching::Never))
}

/// Measures how far the index lags behind. Keeps the previous numbers if the index or the database is unavailable, or if the database does
/// not respond in time.
async fn measure_lag(app: &App, head: impl Future<Output = Result<FeedPosition, StoreError>>) {
    if let (Ok(head), Ok(searcher)) = (feed_head(head).await, app.index.searcher()) {
        metrics::index_behind(head.0.saturating_sub(searcher.generation().position.0).max(0));
    }
    if let Some(published_at) = app.replica.published_at() {
        metrics::snapshot_age(clock::now() - published_at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::LimitsConfig;
    use crate::test_app;
    use crate::timeouts::ClientTimeouts;

    #[tokio::test]
    async fn metrics_are_served_while_the_database_hangs() {
        let (app, _dir) = test_app::app(LimitsConfig::default(), ClientTimeouts::default()).await;
        metrics::index_behind(7);
        let began = tokio::time::Instant::now();
        measure_lag(&app, std::future::pending()).await;
        assert!(began.elapsed() < std::time::Duration::from_secs(2), "{:?}", began.elapsed());
        let rendered = metrics::rendered();
        assert!(rendered.contains("agentdex_api_index_changes_behind 7"), "{rendered}");
    }
}

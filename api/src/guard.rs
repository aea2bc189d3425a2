//! What stands between the world and the handlers: how often a client may ask, and how much is done at once.
//!
//! A client beyond its limit gets a 429, anybody beyond what this process can do a 503, both at once and with the time
//! to come back: turning away costs little, and what is accepted is answered in time.

use axum::extract::{MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use tokio::time::Instant;

use crate::app::App;
use crate::client::Client;
use crate::metrics;
use crate::problem::Problem;

/// Requests under way at once. A search takes milliseconds and a few run at a time, so that the last in this queue
/// still waits less than a second.
pub(crate) const UNDER_WAY_MAX: usize = 512;
/// Whoever looks after this process has to see it alive while it turns others away.
const ALWAYS_ANSWERED: &str = "/healthz";

pub(crate) async fn guard(State(app): State<App>, mut request: Request, next: Next) -> Response {
    let started = Instant::now();
    let route = request.extensions().get::<MatchedPath>().map(|path| path.as_str().to_owned());
    let method = request.method().clone();
    let client = Client::of(&request, app.trusted_proxies());
    request.extensions_mut().insert(client);
    let response = if route.as_deref() == Some(ALWAYS_ANSWERED) {
        next.run(request).await
    } else {
        guarded(&app, client, request, next).await
    };
    metrics::answered(route.as_deref(), &method, response.status(), started.elapsed());
    response
}

async fn guarded(app: &App, client: Client, request: Request, next: Next) -> Response {
    let left = match app.limits().read(client) {
        Ok(left) => left,
        Err(exhausted) => {
            metrics::turned_away("rate");
            return exhausted.problem("too many requests from this address").into_response();
        }
    };
    let Ok(permit) = app.under_way().try_acquire() else {
        metrics::turned_away("load");
        return Problem::unavailable("too many requests at once; try again in a moment").into_response();
    };
    metrics::under_way(UNDER_WAY_MAX.saturating_sub(app.under_way().available_permits()));
    let mut response = next.run(request).await;
    drop(permit);
    // A route with a bucket of its own tells of that one.
    if !response.headers().contains_key("ratelimit-limit") {
        left.tell(response.headers_mut());
    }
    response
}

//! `GET /.well-known/http-message-signatures-directory`: the keys that our crawler signs its requests with (Web Bot Auth).
//!
//! The crawler writes them to the data directory, next to the index. Without a signing crawler the response is 404.

use axum::extract::State;

use crate::problem::Problem;
use crate::response::{Caching, HttpResult, RequestContext};
use crate::state::App;

/// Name of the file.
const FILE_NAME: &str = "bot-keys.json";
/// Maximum size of the file. A directory with many keys has a few KiB.
const BYTES_MAX: usize = 64 * 1024;
const CONTENT_TYPE: &str = "application/http-message-signatures-directory+json";

pub(crate) async fn show(State(app): State<App>, context: RequestContext) -> HttpResult {
    let path = app.sibling_of_index(FILE_NAME);
    let read = tokio::task::spawn_blocking(move || std::fs::read(path)).await;
    match read {
        Ok(Ok(bytes)) if bytes.len() <= BYTES_MAX => Ok(context.bytes(bytes, CONTENT_TYPE, Caching::Record)),
        _ => Err(Problem::not_found("no crawler of this installation signs its requests")),
    }
}

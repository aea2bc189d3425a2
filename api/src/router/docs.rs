//! `GET /openapi.json`: the OpenAPI document. `GET /docs`: the same as interactive documentation, without external resources.

use std::sync::{Arc, LazyLock};

use axum::extract::Path;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use utoipa_swagger_ui::Config;

use crate::problem::Problem;
use crate::request::Request;
use crate::response::{Caching, HttpResult, RequestContext};

/// The documentation draws its icons from `data:` addresses and sets styles on its elements.
const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; style-src 'self' 'unsafe-inline'; script-src 'self'; \
     img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

static CONFIG: LazyLock<Arc<Config<'static>>> = LazyLock::new(|| {
    let config = Config::from("/openapi.json").validator_url("none").try_it_out_enabled(true);
    Arc::new(config)
});

/// This document.
#[utoipa::path(get, path = "/openapi.json", tag = "service",
    responses((status = 200, description = "An OpenAPI 3.1 document", body = Object)))]
pub(crate) async fn openapi(Request { context, query, .. }: Request) -> HttpResult {
    query.only(&[])?;
    context.json(&*super::DOCUMENT, Caching::Record)
}

/// Relative addresses of the page need the slash.
pub(crate) async fn index() -> Response {
    Redirect::permanent("/docs/index.html").into_response()
}

pub(crate) async fn file(context: RequestContext, Path(name): Path<String>) -> HttpResult {
    let served = utoipa_swagger_ui::serve(&name, Arc::clone(&CONFIG));
    let file = served.ok().flatten().ok_or_else(|| Problem::not_found("there is no such file"))?;
    let mut response = context.bytes(file.bytes.into_owned(), "application/octet-stream", Caching::Record);
    if response.status() == StatusCode::OK
        && let Ok(content_type) = HeaderValue::from_str(&file.content_type)
    {
        response.headers_mut().insert(header::CONTENT_TYPE, content_type);
    }
    let policy = HeaderValue::from_static(CONTENT_SECURITY_POLICY);
    response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, policy);
    Ok(response)
}

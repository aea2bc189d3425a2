//! `GET /openapi.json`: the OpenAPI document. `GET /docs`: the same as a page, without external resources.

use axum::response::{IntoResponse, Redirect, Response};

use crate::dashboard;
use crate::request::Request;
use crate::response::{Caching, HttpResult, RequestContext};

/// This document.
#[utoipa::path(get, path = "/openapi.json", tag = "service",
    responses((status = 200, description = "An OpenAPI 3.1 document", body = Object)))]
pub(crate) async fn openapi(Request { context, query, .. }: Request) -> HttpResult {
    query.only(&[])?;
    context.json(&*super::DOCUMENT, Caching::Record)
}

/// The API reference.
pub(crate) async fn index(Request { app, client, context, query }: Request) -> HttpResult {
    query.only(&[])?;
    let here = app.page_context();
    let render = move |context: &RequestContext| {
        context.page(&dashboard::docs::page(&super::DOCUMENT, &here), Caching::Record)
    };
    app.rendered(client, &context, render).await
}

/// Addresses of earlier versions.
pub(crate) async fn moved() -> Response {
    Redirect::permanent("/docs").into_response()
}

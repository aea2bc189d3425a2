//! `GET /openapi.json`: the OpenAPI document. `GET /docs`: the same as a page, without external resources.

use std::sync::LazyLock;

use axum::body::Bytes;
use axum::response::{IntoResponse, Redirect, Response};

use crate::dashboard;
use crate::request::Request;
use crate::response::{Caching, EntityTag, HttpResult, RequestContext, tagged};

const CONTENT_TYPE: &str = "application/json";
/// The document as JSON with its tag. It never changes while the program runs.
static DOCUMENT_JSON: LazyLock<(Bytes, EntityTag)> = LazyLock::new(|| {
    let body = Bytes::from(super::DOCUMENT.to_string());
    let tag = EntityTag::of(&[CONTENT_TYPE.as_bytes(), &body]);
    (body, tag)
});

/// This document.
#[utoipa::path(get, path = "/openapi.json", tag = "service",
    responses((status = 200, description = "An OpenAPI 3.1 document", body = Object)))]
pub(crate) async fn openapi(Request { context, query, .. }: Request) -> HttpResult {
    query.only(&[])?;
    let (body, tag) = &*DOCUMENT_JSON;
    let unchanged = context.unchanged(tag, Caching::Record);
    Ok(unchanged.unwrap_or_else(|| tagged(body.clone(), CONTENT_TYPE, tag, Caching::Record)))
}

/// The API reference.
pub(crate) async fn index(Request { app, client, context, query }: Request) -> HttpResult {
    query.known(&context, &[])?;
    let here = app.page_context();
    let render = move |context: &RequestContext| {
        context.page(&dashboard::docs::page(&super::DOCUMENT, &here), Caching::Record)
    };
    app.rendered(client, &context, render).await
}

/// An address of earlier versions.
pub(crate) async fn moved() -> Response {
    Redirect::permanent("/docs").into_response()
}

/// Redirects from a path that people guess for the page of types.
pub(crate) async fn types() -> Response {
    Redirect::permanent("/semantic-types").into_response()
}

/// Redirects to the API reference, because there are no pages for operators.
pub(crate) async fn operator() -> Response {
    Redirect::temporary("/docs#admin").into_response()
}

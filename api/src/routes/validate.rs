//! `POST /validate`: reads the document in the body as the crawler would. Reports its format, errors with their lines, how to fix them, and
//! what would be indexed. Nothing is stored and nothing is fetched: without a body, the stored document of the given URL is validated.

use axum::body::Bytes;
use axum::http::HeaderMap;
use manifest::ManifestUrl;

use super::validator;
use crate::answers::validate::{Stored, ValidateAnswer, answer, placeholder_url, read, stored};
use crate::problem::Problem;
use crate::request::Request;
use crate::response::{Caching, HttpResult};

/// Reads a document as the crawler would, and reports its format and its faults.
#[utoipa::path(
    post,
    path = "/validate",
    tag = "site owners",
    params(
        ("url" = Option<String>, Query, description = "URL of the document; without a body, the stored document of this URL is read; 404 if none is stored", max_length = 1024),
        ("as" = inline(Option<crate::openapi::schemas::FormatWord>), Query, description = "Read it as this format instead of detecting one"),
    ),
    request_body(content = Option<Vec<u8>>, content_type = "application/octet-stream", description = "The document, at most 4 MiB; it is not stored"),
    responses((status = 200, description = "Dialect, findings, and what would be indexed", body = ValidateAnswer)),
)]
pub(crate) async fn check(
    Request { app, client, context, query }: Request,
    headers: HeaderMap,
    body: Bytes,
) -> HttpResult {
    query.only(&["url", "as"])?;
    if validator::is_form(&headers, &body) {
        return validator::submitted(&app, client, context, body).await;
    }
    let url: Option<ManifestUrl> = query.one_parsed("url")?;
    let force = query.one_closed("as")?;
    let reader = app.document_readers.reader();
    match url {
        Some(url) if body.is_empty() => {
            // loaded before a reader thread is taken, so that a document that waits for memory occupies no thread
            let Stored { manifest, body, share } = stored(app.manifests(client), &url).await?;
            let judge = move || {
                let answered = if force.is_some() {
                    read(&reader, body, &url, force)?
                } else {
                    answer(manifest, Some(&body))
                };
                let response = context.json(&answered, Caching::Never);
                drop(share);
                response
            };
            app.document_readers.run(client, judge).await?
        }
        None if body.is_empty() => Err(Problem::bad_request(
            "the request has no document: send one as its body, or name the URL of a stored one with \"url\"",
        )),
        url => {
            let url = url.map_or_else(placeholder_url, Ok).map_err(|error| Problem::internal(&error))?;
            let judge = move || context.json(&read(&reader, body.to_vec(), &url, force)?, Caching::Never);
            app.document_readers.run(client, judge).await?
        }
    }
}

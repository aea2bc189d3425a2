//! `GET /manifests/{id}/raw`: the bytes as fetched, if the publisher allows that.
//!
//! They are served as a download in a sandbox, never with a type that browsers execute.

use axum::extract::Path;
use axum::http::{HeaderValue, header};

use super::manifest::find;
use crate::buffers::Reserved;
use crate::permitted::off_runtime;
use crate::request::Request;
use crate::response::{Caching, HttpResult};

/// Content security policy: the document may not load resources, run scripts, submit forms or navigate.
const SANDBOX: &str = "default-src 'none'; sandbox";

/// The bytes of a manifest as fetched, where the publisher allows that.
#[utoipa::path(
    get,
    path = "/manifests/{id}/raw",
    tag = "manifests",
    params(("id" = inline(crate::openapi::schemas::ManifestId), Path, description = "Id of a manifest")),
    responses((status = 200, description = "The bytes, as a download", content(
        (Object = "application/json"), (String = "text/plain"), (Vec<u8> = "application/octet-stream")))),
)]
pub(crate) async fn show(
    Request { app, client, context, query }: Request,
    Path(id): Path<String>,
) -> HttpResult {
    query.only(&[])?;
    let stored = find(&app, client, &id).await?;
    let (body, share) = app.manifests(client).document(&stored).await?;
    let (content_type, extension) = harmless(stored.manifest.served.content_type.as_deref());
    let mut response = off_runtime(move || context.bytes(body, content_type, Caching::Record)).await?;
    response.extensions_mut().insert(Reserved::new(share));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(SANDBOX));
    let disposition = format!("attachment; filename=\"{}.{extension}\"", stored.manifest.id);
    if let Ok(value) = HeaderValue::from_str(&disposition) {
        headers.insert(header::CONTENT_DISPOSITION, value);
    }
    Ok(response)
}

/// The published media type if it is inert, plain text if it could be executed.
fn harmless(content_type: Option<&str>) -> (&'static str, &'static str) {
    let essence =
        content_type.unwrap_or_default().split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    match essence.as_str() {
        "application/json" => ("application/json", "json"),
        json if json.ends_with("+json") => ("application/json", "json"),
        "application/yaml" | "text/yaml" | "application/x-yaml" => ("text/plain; charset=utf-8", "yaml"),
        "text/markdown" => ("text/plain; charset=utf-8", "md"),
        text if text.starts_with("text/") => ("text/plain; charset=utf-8", "txt"),
        _ => ("application/octet-stream", "bin"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn executable_content_types_are_replaced() {
        for (published, served) in [
            (Some("application/json; charset=utf-8"), "application/json"),
            (Some("application/agent-card+json"), "application/json"),
            (Some("text/html"), "text/plain; charset=utf-8"),
            (Some("text/javascript"), "text/plain; charset=utf-8"),
            (Some("image/svg+xml"), "application/octet-stream"),
            (Some("application/xhtml+xml"), "application/octet-stream"),
            (None, "application/octet-stream"),
        ] {
            assert_eq!(harmless(published).0, served, "{published:?}");
        }
    }
}

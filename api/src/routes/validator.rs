//! The validator's form: `GET /validate` shows it, `POST /validate` with a form's body answers with a page.
//!
//! Programs send the document itself as the body (see `validate`); only browsers send forms. Forms are parsed and pages are rendered on the
//! threads that read documents (see `document_readers`), because both take time in proportion to the document.

use axum::body::Bytes;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::Response;
use manifest::{Format, ManifestUrl};
use serde_json::json;
use url::form_urlencoded;

use crate::answers::validate::{Stored, placeholder_url, read, stored};
use crate::buffers::BODY_BYTES_MAX;
use crate::client::Client;
use crate::dashboard::validate::{self as page, FormInput};
use crate::document_readers::DocumentReader;
use crate::problem::Problem;
use crate::request::Request;
use crate::response::{Caching, HttpResult, RequestContext};
use crate::state::App;

const FORM: &str = "application/x-www-form-urlencoded";
/// Maximum number of fields of a body that are searched for fields of the form.
const FIELDS_MAX: usize = 16;
/// Number of bytes of a body that are searched for the fields of the form: a browser sends one of them first.
const SEARCHED_BYTES_MAX: usize = 4 * 1024;

/// The form; for programs, how to send a document.
#[utoipa::path(
    get,
    path = "/validate",
    tag = "site owners",
    responses((status = 200, description = "How to send a document, and which formats are known", body = Object)),
)]
pub(crate) async fn show(Request { app, client, context, query }: Request) -> HttpResult {
    if context.wants_page() {
        let query = query.known(&context, &["url", "as"])?;
        let Some(url) = query.one("url")? else {
            let here = app.page_context();
            let render = move |context: &RequestContext| context.page(&page::blank(&here), Caching::Record);
            return app.rendered(client, &context, render).await;
        };
        let typed = FormInput { url: url.to_owned(), force: query.one_closed("as")?, ..FormInput::default() };
        return match ManifestUrl::parse(url) {
            Ok(url) => of_stored(&app, client, context, typed, url).await,
            Err(error) => refused(&app, client, &context, typed, error.to_string()).await,
        };
    }
    query.only(&[])?;
    let formats: Vec<&str> = Format::ALL.iter().map(|format| format.as_str()).collect();
    let how = json!({
        "how": "POST the document itself to this address",
        "parameters": {"url": "URL of the document", "as": "read it as this format"},
        "formats": formats,
        "bytes_max": BODY_BYTES_MAX,
    });
    context.json(&how, Caching::Record)
}

/// Whether the body was sent by the form in a browser. The content type is not enough, because curl and other programs send documents with
/// this type by default.
pub(super) fn is_form(headers: &HeaderMap, body: &[u8]) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    kind.split(';').next().is_some_and(|essence| essence.trim().eq_ignore_ascii_case(FORM))
        && form_urlencoded::parse(body.get(..SEARCHED_BYTES_MAX).unwrap_or(body))
            .take(FIELDS_MAX)
            .any(|(name, _)| matches!(&*name, "document" | "url" | "as"))
}

/// The validation of the form's document; without one, the stored document of the address is read.
pub(super) async fn submitted(app: &App, client: Client, context: RequestContext, body: Bytes) -> HttpResult {
    let reader = app.document_readers.reader();
    let (of_form, for_form) = (context.clone(), reader.clone());
    let parse = move || submission(&of_form, &for_form, &body);
    let (typed, url) = match app.document_readers.run(client, parse).await?? {
        Submission::Answered(response) => return Ok(response),
        Submission::OfStored(typed, url) => (typed, url),
    };
    of_stored(app, client, context, typed, url).await
}

/// The validation of the stored document of an address.
async fn of_stored(
    app: &App,
    client: Client,
    context: RequestContext,
    typed: FormInput,
    url: ManifestUrl,
) -> HttpResult {
    let reader = app.document_readers.reader();
    let typed = FormInput { is_stored: true, ..typed };
    // only the document is kept while it waits for a thread; its manifest is dropped
    let document = stored(app.manifests(client), &url).await.map(|Stored { body, share, .. }| (body, share));
    match document {
        Ok((body, share)) => {
            let judge = move || {
                let response =
                    judged(&context, &reader, typed, String::from_utf8_lossy(&body).into_owned(), &url);
                drop((body, share));
                response
            };
            app.document_readers.run(client, judge).await?
        }
        Err(problem) if problem.body().status == StatusCode::NOT_FOUND => {
            let show =
                move |context: &RequestContext| context.page(&page::not_stored(typed, &url), Caching::Never);
            app.rendered(client, &context, show).await
        }
        Err(problem) => refused(app, client, &context, typed, problem.body().in_words()).await,
    }
}

/// The form, with the reason why there is no result.
async fn refused(
    app: &App,
    client: Client,
    context: &RequestContext,
    typed: FormInput,
    trouble: String,
) -> HttpResult {
    let render =
        move |context: &RequestContext| context.page(&page::refused(typed, &trouble), Caching::Never);
    app.rendered(client, context, render).await
}

/// The request of a form.
enum Submission {
    Answered(Response),
    /// Validate the stored document of a URL.
    OfStored(FormInput, ManifestUrl),
}

fn submission(context: &RequestContext, reader: &DocumentReader, body: &[u8]) -> Result<Submission, Problem> {
    let refused = |typed, trouble: &str| {
        context.page(&page::refused(typed, trouble), Caching::Never).map(Submission::Answered)
    };
    let mut typed = match typed(body) {
        Ok(typed) => typed,
        Err((typed, trouble)) => return refused(typed, &trouble),
    };
    let url = if typed.url.is_empty() { placeholder_url() } else { ManifestUrl::parse(&typed.url) };
    let url = match url {
        Ok(url) => url,
        Err(error) => return refused(typed, &error.to_string()),
    };
    if typed.document.trim().is_empty() {
        return Ok(Submission::OfStored(typed, url));
    }
    let document = std::mem::take(&mut typed.document);
    judged(context, reader, typed, document, &url).map(Submission::Answered)
}

fn judged(
    context: &RequestContext,
    reader: &DocumentReader,
    typed: FormInput,
    document: String,
    url: &ManifestUrl,
) -> HttpResult {
    match read(reader, document.clone().into_bytes(), url, typed.force) {
        Ok(answer) => context.page(&page::judged(typed, &document, &answer), Caching::Never),
        Err(problem) => context.page(
            &page::refused(FormInput { document, ..typed }, &problem.body().in_words()),
            Caching::Never,
        ),
    }
}

/// Parses the form. An error contains the input, so that the form can show it again.
fn typed(body: &[u8]) -> Result<FormInput, (FormInput, String)> {
    let mut typed = FormInput::default();
    let mut force = String::new();
    for (name, value) in form_urlencoded::parse(body) {
        match &*name {
            "document" => typed.document = value.into_owned(),
            "url" => value.trim().clone_into(&mut typed.url),
            "as" => value.trim().clone_into(&mut force),
            _ => {}
        }
    }
    if typed.document.trim().is_empty() && typed.url.is_empty() {
        let trouble = "There is no document: paste one, or enter the URL of a stored document.";
        return Err((typed, trouble.to_owned()));
    }
    if !force.is_empty() {
        match force.parse() {
            Ok(format) => typed.force = Some(format),
            Err(_) => return Err((typed, format!("No dialect is called \"{force}\"."))),
        }
    }
    Ok(typed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_form_keeps_the_typed_document() {
        let read = typed(b"document=%7B%7D&url=+https%3A%2F%2Fa.example%2F&as=awp").unwrap();
        assert_eq!(
            (read.document.as_str(), read.url.as_str(), read.force),
            ("{}", "https://a.example/", Some(Format::Awp))
        );
        let (kept, trouble) = typed(b"document=%7B%7D&as=nonsense").unwrap_err();
        assert_eq!(kept.document, "{}");
        assert!(trouble.contains("nonsense"));
        assert!(typed(b"document=+&url=").is_err());
    }

    #[test]
    fn detects_form_submissions() {
        let with = |kind: &str| HeaderMap::from_iter([(header::CONTENT_TYPE, kind.parse().unwrap())]);
        let (form, typed) =
            (with("application/x-www-form-urlencoded; charset=utf-8"), b"document=%7B%7D&url=");
        assert!(is_form(&form, typed));
        assert!(!is_form(&form, br#"{"awp_version": "0.1"}"#), "the body that curl sends for a file");
        let late = [vec![b'x'; SEARCHED_BYTES_MAX], b"&url=".to_vec()].concat();
        assert!(!is_form(&form, &late), "a bounded number of bytes is decoded");
        assert!(!is_form(&with("application/json"), typed) && !is_form(&HeaderMap::new(), typed));
    }
}

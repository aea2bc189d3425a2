//! Rate limits and capacity: how often a client may send requests, and how many are handled concurrently.
//!
//! A client beyond its limits gets a 429; a request beyond the capacity of this process gets a 503. Both are sent immediately with a
//! `Retry-After`. The body is read before the request takes a slot, so slow senders do not occupy slots. The memory of responses is
//! counted, too (see `buffers`).

use axum::body::{Body, Bytes};
use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use hyper::body::Body as _;
use manifest::budget::{self, OverBudget};
use tokio::time::Instant;

use crate::buffers::{self, BODY_BYTES_MAX, BodyError};
use crate::client::Client;
use crate::metrics;
use crate::overload::{ALWAYS_ANSWERED, METRICS, Refused, capacity_problem};
use crate::owner::OwnerCredentials;
use crate::permitted::off_runtime;
use crate::problem::Problem;
use crate::quota::RemainingQuota;
use crate::reader_keys::{Admission, Reads};
use crate::state::App;
use runtime::Share;

/// Answered even beyond the rate limit, unless the request has a body, which this route does not read.
const NEVER_LIMITED: &str = "/healthz";
/// The route where the owner of a site requests a visit.
const RECHECK: &str = "/sites/{domain}/recheck";
/// Parsed by the library of the protocol, without a budget; other routes parse bodies within a budget.
const READ_BY_A_LIBRARY: &str = "/mcp";
/// Its body is a document, which is read in a separate process.
const READS_DOCUMENTS: &str = "/validate";
/// Routes whose bodies may contain a document. They have up to [`BODY_BYTES_MAX`].
const TAKE_DOCUMENTS: [&str; 4] = [READS_DOCUMENTS, READ_BY_A_LIBRARY, "/tools/{name}", "/woa/{agent}"];
/// Maximum body size of all other routes: enough for the longest query with every filter several times. Counting its values takes less than
/// a millisecond; the values of larger bodies are counted outside the async runtime.
const QUERY_BYTES_MAX: usize = 64 * 1024;

pub(crate) async fn guard(State(app): State<App>, mut request: Request, next: Next) -> Response {
    let started = Instant::now();
    let route = request.extensions().get::<MatchedPath>().map(|path| path.as_str().to_owned());
    let method = request.method().clone();
    let client = Client::of(&request, &app.config.trusted_proxies, &app.names);
    request.extensions_mut().insert(client);
    let mut response = match request.extensions_mut().remove::<Refused>() {
        Some(Refused(problem)) => read_quota(&app, client).err().unwrap_or(problem).into_response(),
        None if route.as_deref() == Some(NEVER_LIMITED) && request.body().is_end_stream() => {
            next.run(request).await
        }
        None => guarded(&app, client, route.as_deref(), request, next).await.unwrap_or_else(refused),
    };
    if app.config.reads == Reads::Keys {
        keep_private(&mut response);
    }
    metrics::answered(route.as_deref(), &method, response.status(), started.elapsed());
    response
}

async fn guarded(
    app: &App,
    client: Client,
    route: Option<&str>,
    mut request: Request,
    next: Next,
) -> Result<Response, Problem> {
    let (quota, admission) = admit(app, client, route, request.headers()).await?;
    request.extensions_mut().insert(admission);
    let (request, body_share) = with_body(app, client, route, request).await?;
    let compressor_bytes = buffers::compressor_bytes(request.headers());
    let is_watching = match route {
        Some(METRICS) => app.admin_tokens.allow_metrics(client, request.headers()).await,
        route => route.is_some_and(|route| ALWAYS_ANSWERED.contains(&route)),
    };
    let place = if is_watching { None } else { Some(take_slot(app, client)?) };
    let in_progress = (!is_watching).then(|| app.load.begin());
    let response = next.run(request).await;
    drop((in_progress, place, body_share));
    let mut response = if is_watching {
        response
    } else {
        let shares = &app.capacity.buffered_bytes;
        let counted = buffers::counted(response, compressor_bytes, shares, client.address);
        counted.map_err(|full| capacity_problem("bytes", full))?
    };
    metrics::buffered(app.capacity.buffered_bytes.taken());
    // A route with its own bucket has already set the headers for that bucket.
    if !response.headers().contains_key("ratelimit-limit") {
        quota.write_headers(response.headers_mut());
    }
    Ok(response)
}

/// Takes one request from the rate limit of the API key, or else of the client. A wrong key, and a missing key where reads need one, count
/// towards the limit of the client.
async fn admit(
    app: &App,
    client: Client,
    route: Option<&str>,
    headers: &HeaderMap,
) -> Result<(RemainingQuota, Admission), Problem> {
    let refused = |problem| Err(read_quota(app, client).err().unwrap_or(problem));
    match app.reader_keys.admit(&app.store, headers).await {
        Ok(Some(reader)) => {
            let quota = reader.take().map_err(|exhausted| {
                metrics::rejected("rate");
                exhausted.problem("too many requests with this key")
            })?;
            Ok((quota, Some(reader).into()))
        }
        Ok(None) if app.config.reads.admit_without_key(client, route) || is_of_owner(route, headers) => {
            Ok((read_quota(app, client)?, Admission::default()))
        }
        Ok(None) => refused(Problem::unauthenticated(
            "this instance requires a key: send it as Authorization: Bearer KEY, or as the password in a browser; the \
             operator creates keys with agentdex keys add",
        )),
        Err(problem) => refused(problem),
    }
}

/// Whether the owner of a site requests a visit. The route checks the key.
fn is_of_owner(route: Option<&str>, headers: &HeaderMap) -> bool {
    route == Some(RECHECK) && OwnerCredentials::are_in(headers)
}

/// If reads need a key, browsers prompt for it, shared caches store no response (RFC 9111 §3.5), and pages of other origins cannot embed
/// responses, because browsers send the password with every request.
fn keep_private(response: &mut Response) {
    let same_origin = HeaderValue::from_static("same-origin");
    response.headers_mut().insert(HeaderName::from_static("cross-origin-resource-policy"), same_origin);
    if response.status() == StatusCode::UNAUTHORIZED {
        let schemes = HeaderValue::from_static("Bearer, Basic realm=\"agentdex\", charset=\"UTF-8\"");
        response.headers_mut().insert(header::WWW_AUTHENTICATE, schemes);
    }
    let caching = response.headers().get(header::CACHE_CONTROL).and_then(|value| value.to_str().ok());
    let private = caching.and_then(|text| text.strip_prefix("public")).map(|rest| format!("private{rest}"));
    if let Some(Ok(private)) = private.map(HeaderValue::try_from) {
        response.headers_mut().insert(header::CACHE_CONTROL, private);
    }
}

/// One request of the client's rate.
pub(super) fn read_quota(app: &App, client: Client) -> Result<RemainingQuota, Problem> {
    app.limits.read(client).map_err(|exhausted| {
        metrics::rejected("rate");
        exhausted.problem("too many requests from this address")
    })
}

/// A slot for one request in progress.
fn take_slot(app: &App, client: Client) -> Result<Share, Problem> {
    let place =
        app.capacity.requests.take(client.address, 1).map_err(|full| capacity_problem("requests", full))?;
    metrics::requests_in_progress(app.capacity.requests.taken());
    Ok(place)
}

/// The request with its body in memory, and the share for that memory. A JSON body counts with the size of its tree, which may be many
/// times larger.
async fn with_body(
    app: &App,
    client: Client,
    route: Option<&str>,
    request: Request,
) -> Result<(Request, Option<Share>), Problem> {
    let takes_documents = route.is_some_and(|route| TAKE_DOCUMENTS.contains(&route));
    let bytes_max = if takes_documents { BODY_BYTES_MAX } else { QUERY_BYTES_MAX };
    let announced = request.body().size_hint().lower().max(announced_bytes(&request));
    if announced > u64::try_from(bytes_max).unwrap_or(u64::MAX) {
        return Err(body_problem(BodyError::TooLarge, bytes_max));
    }
    if request.body().is_end_stream() {
        return Ok((request, None));
    }
    if let Some(coding) =
        request.headers().get(header::CONTENT_ENCODING).filter(|coding| *coding != "identity")
    {
        let coding = String::from_utf8_lossy(coding.as_bytes());
        let shown: String = coding.chars().filter(|letter| !letter.is_control()).take(40).collect();
        let detail = format!("a body with Content-Encoding \"{shown}\" is not read: send it uncompressed");
        return Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, detail));
    }
    let (parts, body) = request.into_parts();
    let pace = app.config.timeouts.sends;
    let read = buffers::read(body, bytes_max, pace, &app.capacity.buffered_bytes, client.address).await;
    let (bytes, mut share) = read.map_err(|error| body_problem(error, bytes_max))?;
    if route != Some(READS_DOCUMENTS) && is_json_container(&bytes) {
        match checked(bytes.clone()).await? {
            Ok(tree_bytes) => {
                let counted =
                    buffers::enlarge(&mut share, tree_bytes, &app.capacity.buffered_bytes, client.address);
                counted.map_err(|full| body_problem(BodyError::OverCapacity(full), bytes_max))?;
            }
            Err(over) if route == Some(READ_BY_A_LIBRARY) => {
                return Err(Problem::bad_request(over.to_string()));
            }
            // The route also refuses it before it builds a tree.
            Err(_) => {}
        }
    }
    Ok((Request::from_parts(parts, Body::from(bytes)), share))
}

/// Bytes of the tree of a body.
async fn checked(bytes: Bytes) -> Result<Result<usize, OverBudget>, Problem> {
    if bytes.len() <= QUERY_BYTES_MAX {
        return Ok(budget::check(&bytes, &budget::REQUEST));
    }
    off_runtime(move || budget::check(&bytes, &budget::REQUEST)).await
}

/// Whether a body has a tree of values, if it is JSON.
fn is_json_container(body: &[u8]) -> bool {
    body.iter().find(|byte| !byte.is_ascii_whitespace()).is_some_and(|byte| matches!(byte, b'{' | b'['))
}

fn announced_bytes(request: &Request) -> u64 {
    let length = request.headers().get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok());
    length.and_then(|length| length.parse().ok()).unwrap_or(0)
}

fn body_problem(why: BodyError, bytes_max: usize) -> Problem {
    match why {
        BodyError::TooLarge => {
            let detail =
                format!("the body is larger than {bytes_max} bytes, the most that this route accepts");
            Problem::new(StatusCode::PAYLOAD_TOO_LARGE, detail)
        }
        BodyError::TooSlow => {
            metrics::cut("slow_body");
            Problem::new(StatusCode::REQUEST_TIMEOUT, "the body of the request did not arrive in time")
        }
        BodyError::Broken => Problem::bad_request("the body of the request is incomplete"),
        BodyError::OverCapacity(full) => capacity_problem("bytes", full),
    }
}

/// A client whose body was not read cannot send another request on its connection.
fn refused(problem: Problem) -> Response {
    let is_last =
        matches!(problem.body().status, StatusCode::REQUEST_TIMEOUT | StatusCode::PAYLOAD_TOO_LARGE);
    let mut response = problem.into_response();
    if is_last {
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

#[cfg(test)]
#[path = "guard_tests.rs"]
mod tests;

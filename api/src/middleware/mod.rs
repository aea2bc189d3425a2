//! The middleware of every request.
//!
//! From the outside in: request id and log span, security headers, CORS for reads, tags of compressed bodies, compression, error format,
//! limits and the request body (see `guard`), panics, deadline. If a handler fails, panics or hangs, the client still receives a problem
//! response.

mod guard;
mod origin;

use std::any::Any;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, header};
use axum::middleware::{self as layers, Next};
use axum::response::{IntoResponse, Response};
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::compression::{CompressionLayer, CompressionLevel};
use tower_http::cors::{Any as AnyOrigin, CorsLayer};
use tower_http::request_id::{MakeRequestId, PropagateRequestIdLayer, RequestId, SetRequestIdLayer};
use tower_http::timeout::TimeoutLayer;
use tower_http::trace::TraceLayer;
use tracing::Span;
use tracing::field::Empty;

use self::guard::{guard, read_quota};
use self::origin::check_origin_of_changes;
use crate::client::Client;
use crate::config::ApiConfig;
use crate::dashboard::ProblemPage;
use crate::federation::PEERS;
use crate::negotiate::Representation;
use crate::overload::{Refused, RejectionResponse};
use crate::problem::Problem;
use crate::reader_keys::Reads;
use crate::response::page_text;
use crate::state::App;

/// Deadline of a request. A search takes milliseconds, so the deadline is reached only in case of a fault.
const DEADLINE: Duration = Duration::from_secs(10);
/// How long a browser may cache the result of a CORS preflight.
const PREFLIGHT_AGE: Duration = Duration::from_hours(24);

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// Maximum length of a client's request id: twice the length of a trace id and a span id together.
const REQUEST_ID_BYTES_MAX: usize = 128;
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
/// Headers of MCP clients in browsers (MCP 2025-11-25, "Streamable HTTP").
const MCP_PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const MCP_SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
/// Start of the paths of the official MCP registry's API.
const MCP_REGISTRY: &str = "/v0.1/";
/// Required since MCP 2026-07-28.
const MCP_METHOD: HeaderName = HeaderName::from_static("mcp-method");
const MCP_NAME: HeaderName = HeaderName::from_static("mcp-name");
/// Headers that scripts of other origins may read.
const EXPOSED: [HeaderName; 10] = [
    PEERS,
    header::ETAG,
    header::LINK,
    header::LOCATION,
    header::RETRY_AFTER,
    REQUEST_ID,
    HeaderName::from_static("ratelimit-limit"),
    HeaderName::from_static("ratelimit-remaining"),
    HeaderName::from_static("ratelimit-reset"),
    HeaderName::from_static("x-agentdex-hash"),
];

/// Pages load from this origin only, run no inline script or style, and cannot be framed.
const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; \
     connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

const RESOURCE_POLICY: HeaderName = HeaderName::from_static("cross-origin-resource-policy");

/// HSTS for a year; browsers that connect over TLS apply it.
const HSTS: &str = "max-age=31536000";

pub(crate) fn wrapped(routes: Router, app: &App) -> Router {
    routes
        // `guard` has already read the body under the cap.
        .layer(DefaultBodyLimit::disable())
        .layer(TimeoutLayer::with_status_code(StatusCode::SERVICE_UNAVAILABLE, DEADLINE))
        .layer(CatchPanicLayer::custom(on_panic))
        .layer(layers::from_fn_with_state(app.clone(), check_origin_of_changes))
        .layer(layers::from_fn_with_state(app.clone(), guard))
        .layer(layers::from_fn(format_errors))
        .layer(compression())
        .layer(layers::map_response(tag_compressed))
        .layer(cors())
        .layer(layers::from_fn_with_state(app.clone(), guard_preflight))
        .layer(layers::map_response_with_state(HeaderSettings::of(&app.config), add_security_headers))
        .layer(PropagateRequestIdLayer::new(REQUEST_ID))
        .layer(TraceLayer::new_for_http().make_span_with(span).on_response(answered).on_failure(()))
        .layer(SetRequestIdLayer::new(REQUEST_ID, CountedRequestIds::default()))
        .layer(layers::map_request(without_unusable_id))
}

/// Counts `OPTIONS` requests and refuses malformed ones before the CORS layer, which answers every `OPTIONS` request itself.
async fn guard_preflight(State(app): State<App>, request: Request, next: Next) -> Response {
    if request.method() != Method::OPTIONS {
        return next.run(request).await;
    }
    let client = Client::of(&request, &app.config.trusted_proxies, &app.names);
    let refused = request.extensions().get::<Refused>().map(|Refused(problem)| problem.clone());
    match read_quota(&app, client).err().or(refused) {
        Some(problem) => vary_by_accept(problem.into_response()),
        None => next.run(request).await,
    }
}

/// Replaces an unusable request id. The id of a client is logged and sent back, so it must be a single, short value of visible ASCII.
async fn without_unusable_id(mut request: Request) -> Request {
    if usable_id(request.headers()).is_none() {
        request.headers_mut().remove(REQUEST_ID);
    }
    request
}

fn usable_id(headers: &HeaderMap) -> Option<&HeaderValue> {
    let mut ids = headers.get_all(REQUEST_ID).iter();
    let (Some(id), None) = (ids.next(), ids.next()) else { return None };
    let is_usable =
        (1..=REQUEST_ID_BYTES_MAX).contains(&id.len()) && id.as_bytes().iter().all(u8::is_ascii_graphic);
    is_usable.then_some(id)
}

/// Request ids: the start time of this process and a counter.
#[derive(Clone, Default)]
struct CountedRequestIds {
    count: std::sync::Arc<AtomicU64>,
}

impl MakeRequestId for CountedRequestIds {
    fn make_request_id<B>(&mut self, _: &http::Request<B>) -> Option<RequestId> {
        let millis = crate::clock::now().timestamp_millis();
        let count = self.count.fetch_add(1, Ordering::Relaxed);
        HeaderValue::from_str(&format!("{millis:x}-{count:x}")).ok().map(RequestId::new)
    }
}

fn span(request: &Request) -> Span {
    let id = request.headers().get(REQUEST_ID).and_then(|id| id.to_str().ok()).unwrap_or_default();
    let path = request.uri().path();
    // the highest level, so that every log line within the span contains the request
    tracing::error_span!(
        "request",
        request.id = id,
        http.request.method = %request.method(),
        url.path = path,
        http.response.status_code = Empty,
        otel.kind = "server",
    )
}

/// Logs server errors except 503, which is an intended response (not ready, overloaded, stopping) and is counted in the metrics.
fn answered(response: &Response, latency: Duration, span: &Span) {
    let status = response.status();
    span.record("http.response.status_code", status.as_u16());
    if status.is_server_error() && status != StatusCode::SERVICE_UNAVAILABLE {
        tracing::error!(status = status.as_u16(), ms = latency.as_millis(), "the request failed");
    }
}

/// Uses the fastest level, which needs a sixth of the memory of the default level, because a slow client keeps a compressor in use.
fn compression() -> CompressionLayer {
    CompressionLayer::new().quality(CompressionLevel::Fastest)
}

fn cors() -> CorsLayer {
    CorsLayer::new()
        .allow_origin(AnyOrigin)
        .allow_methods([Method::GET, Method::HEAD, Method::POST])
        .allow_headers([
            header::ACCEPT,
            header::AUTHORIZATION,
            header::CONTENT_TYPE,
            header::IF_NONE_MATCH,
            LAST_EVENT_ID,
            MCP_PROTOCOL_VERSION,
            MCP_SESSION_ID,
            MCP_METHOD,
            MCP_NAME,
        ])
        .expose_headers(EXPOSED)
        .max_age(PREFLIGHT_AGE)
}

/// The panic hook of the process has already logged the panic, within the span of the request.
fn on_panic(_: Box<dyn Any + Send + 'static>) -> Response {
    Problem::new(
        StatusCode::INTERNAL_SERVER_ERROR,
        "the request failed because of an internal error, which was logged",
    )
    .into_response()
}

/// Formats every error response: as a page if the client prefers pages, else as JSON.
async fn format_errors(request: Request, next: Next) -> Response {
    let representation = Representation::preferred(request.headers());
    let uri = request.uri().clone();
    let path = uri.path();
    let response = next.run(request).await;
    let status = response.status();
    if !status.is_client_error() && !status.is_server_error() {
        return response;
    }
    // JSON-RPC errors (MCP over HTTP) keep their own format.
    let known = response.extensions().get::<Problem>().cloned();
    let is_json = |value: &HeaderValue| value.as_bytes().starts_with(b"application/json");
    if known.is_none() && response.headers().get(header::CONTENT_TYPE).is_some_and(is_json) {
        return response;
    }
    let is_of_registry = path.starts_with(MCP_REGISTRY);
    let shaped = match (&known, representation) {
        (Some(problem), Representation::Json) if is_of_registry => {
            problem.clone().for_mcp_registry().into_response()
        }
        (Some(_), Representation::Json) => return vary_by_accept(response),
        (_, Representation::Json) => Problem::of_status(status).into_response(),
        (_, Representation::Html) => problem_page(known.unwrap_or_else(|| Problem::of_status(status)), &uri),
    };
    with_headers_of(&response, shaped)
}

fn problem_page(problem: Problem, uri: &Uri) -> Response {
    // The texts of a problem are short, so the page is rendered here without waiting for a permit.
    let page = ProblemPage::new(problem.body(), uri.path(), uri.query().unwrap_or_default());
    let Ok(body) = page_text(&page) else { return problem.into_response() };
    let mut response = problem.into_response();
    *response.body_mut() = Body::from(body);
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    response.headers_mut().remove(header::CONTENT_LENGTH);
    response
}

fn with_headers_of(original: &Response, mut shaped: Response) -> Response {
    for name in [header::ALLOW, header::CONNECTION, header::RETRY_AFTER, header::WWW_AUTHENTICATE] {
        if let Some(value) = original.headers().get(&name) {
            shaped.headers_mut().insert(name, value.clone());
        }
    }
    vary_by_accept(shaped)
}

/// Adds `Vary: Accept`, because the Accept header decides whether an error is JSON or a page.
fn vary_by_accept(mut response: Response) -> Response {
    response.headers_mut().insert(header::VARY, HeaderValue::from_static("accept"));
    response
}

/// Adds the content coding to the strong entity tag of a compressed body, which is a different representation (RFC 9110 §8.8.3.3).
async fn tag_compressed(mut response: Response) -> Response {
    let headers = response.headers_mut();
    let coding = headers.get(header::CONTENT_ENCODING).and_then(|value| value.to_str().ok());
    let tag = headers.get(header::ETAG).and_then(|value| value.to_str().ok());
    if let (Some(coding), Some(tag)) = (coding, tag)
        && let Ok(tag) = HeaderValue::from_str(&format!("{}-{coding}\"", tag.trim_end_matches('"')))
    {
        headers.insert(header::ETAG, tag);
    }
    response
}

/// Settings from the configuration for the headers of every response.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct HeaderSettings {
    is_behind_tls: bool,
    is_private: bool,
}

impl HeaderSettings {
    pub(crate) fn of(config: &ApiConfig) -> Self {
        Self { is_behind_tls: config.is_behind_tls(), is_private: config.reads == Reads::Keys }
    }
}

async fn add_security_headers(State(of): State<HeaderSettings>, mut response: Response) -> Response {
    set_security_headers(response.headers_mut(), of);
    response
}

fn set_security_headers(
    headers: &mut HeaderMap,
    HeaderSettings { is_behind_tls, is_private }: HeaderSettings,
) {
    headers
        .entry(header::CONTENT_SECURITY_POLICY)
        .or_insert(HeaderValue::from_static(CONTENT_SECURITY_POLICY));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    // With `no-referrer`, browsers would omit the origin of this server's own forms.
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("same-origin"));
    if is_behind_tls {
        headers.insert(header::STRICT_TRANSPORT_SECURITY, HeaderValue::from_static(HSTS));
    }
    // Browsers also send the key for images that a page of another origin embeds, and the size of an image reveals its content.
    if is_private {
        headers.insert(RESOURCE_POLICY, HeaderValue::from_static("same-origin"));
    }
}

/// The response to requests that are rejected before routing, with the headers that this middleware would add.
pub(crate) fn rejected(of: HeaderSettings) -> RejectionResponse {
    let problem = Problem::unavailable("too many requests in progress; try again in a moment");
    let body = serde_json::to_vec(problem.body()).unwrap_or_default().into();
    let mut headers = vary_by_accept(problem.into_response()).headers().clone();
    set_security_headers(&mut headers, of);
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    let exposed = EXPOSED.map(|name| name.to_string()).join(",");
    headers
        .extend(HeaderValue::from_str(&exposed).map(|names| (header::ACCESS_CONTROL_EXPOSE_HEADERS, names)));
    RejectionResponse { headers, body }
}

/// Sets the request id of a rejection: the id of the request if it is valid, otherwise one from the time and a number.
pub(crate) fn set_rejection_id(response: &mut HeaderMap, request: &HeaderMap, number: u64) {
    let made = || {
        let millis = crate::clock::now().timestamp_millis();
        HeaderValue::from_str(&format!("{millis:x}-away-{number:x}")).ok()
    };
    if let Some(id) = usable_id(request).cloned().or_else(made) {
        response.insert(REQUEST_ID, id);
    }
}

#[cfg(test)]
mod tests {
    use axum::routing::get;
    use tower::ServiceExt as _;

    use super::*;
    use crate::limits::LimitsConfig;
    use crate::test_app;
    use crate::timeouts::ClientTimeouts;

    async fn app() -> (App, tempfile::TempDir) {
        test_app::app(LimitsConfig::default(), ClientTimeouts::default()).await
    }

    #[tokio::test]
    async fn returns_503_when_a_request_exceeds_its_deadline() {
        let (app, _dir) = app().await;
        let routes = Router::new().route("/hangs", get(std::future::pending::<()>));
        let request = Request::get("/hangs").body(Body::empty()).unwrap();
        let answered = wrapped(routes, &app).oneshot(request);
        let response = tokio::time::timeout(DEADLINE * 3, answered).await.expect("it ends").unwrap();
        assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(response.headers()[header::CONTENT_TYPE], "application/problem+json");
    }

    #[tokio::test]
    async fn refuses_preflight_without_a_valid_host() {
        let (app, _dir) = app().await;
        for (refused, status) in [(true, StatusCode::BAD_REQUEST), (false, StatusCode::OK)] {
            let mut request = Request::builder()
                .method(Method::OPTIONS)
                .uri("/search")
                .header("origin", "https://client.example")
                .header("access-control-request-method", "GET")
                .body(Body::empty())
                .unwrap();
            if refused {
                request.extensions_mut().insert(Refused(Problem::bad_request("no host")));
            }
            let answer = crate::router::router(&app).oneshot(request).await.unwrap();
            assert_eq!(answer.status(), status);
            assert!(answer.headers().contains_key("x-content-type-options"));
        }
    }

    #[tokio::test]
    async fn preflights_and_requests_without_a_valid_host_count_as_requests() {
        for method in [Method::OPTIONS, Method::GET] {
            let few = LimitsConfig { reads_burst: 3.try_into().unwrap(), ..LimitsConfig::default() };
            let (app, _dir) = test_app::app(few, ClientTimeouts::default()).await;
            let router = crate::router::router(&app);
            let mut statuses = Vec::new();
            for number in 0..4 {
                let address = std::net::SocketAddr::from(([192, 0, 2, 1], 4711));
                let request = Request::builder().method(method.clone()).uri("/search");
                let mut request = request.body(Body::empty()).unwrap();
                request.extensions_mut().insert(axum::extract::ConnectInfo(address));
                if number < 3 {
                    request.extensions_mut().insert(Refused(Problem::bad_request("no host")));
                }
                statuses.push(router.clone().oneshot(request).await.unwrap().status());
            }
            let refused = StatusCode::BAD_REQUEST;
            assert_eq!(statuses, [refused, refused, refused, StatusCode::TOO_MANY_REQUESTS], "{method}");
        }
    }

    #[tokio::test]
    async fn rejections_have_the_headers_of_other_responses() {
        let (app, _dir) = app().await;
        let busy = || async { Problem::unavailable("busy") };
        let usual = wrapped(Router::new().route("/busy", get(busy)), &app);
        let usual = usual.oneshot(Request::get("/busy").body(Body::empty()).unwrap()).await.unwrap();
        let RejectionResponse { mut headers, .. } = rejected(HeaderSettings::of(&app.config));
        set_rejection_id(&mut headers, &HeaderMap::new(), 7);
        let own = [header::CONTENT_LENGTH, header::VARY, REQUEST_ID];
        for (name, value) in usual.headers() {
            if !name.as_str().starts_with("ratelimit-") && !own.contains(name) {
                assert_eq!(headers.get(name), Some(value), "{name}");
            }
        }
        assert!(headers[REQUEST_ID].to_str().unwrap().ends_with("-away-7"));
        let own = HeaderMap::from_iter([(REQUEST_ID, HeaderValue::from_static("trace-1"))]);
        set_rejection_id(&mut headers, &own, 8);
        assert_eq!(headers[REQUEST_ID], "trace-1");
    }
}

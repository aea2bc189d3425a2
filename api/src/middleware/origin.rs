//! Protection against cross-site request forgery: only pages of this server may send requests that change state.
//!
//! Reads are open to every page (CORS). [`crate::own_origin`] decides whose page sent a request.

use axum::extract::{MatchedPath, Request, State};
use axum::http::{Method, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::own_origin;
use crate::state::App;
use crate::tools::Tool;

/// Requests with a body that do not change state. `/mcp` checks the host itself, and the origin for each tool.
const READS: [&str; 5] = ["/search", "/explore", "/validate", "/mcp", "/a2a"];
/// Routes whose last segment names a tool. The tool determines whether the request changes state.
const TOOLS: [&str; 2] = ["/tools/{name}", "/woa/{agent}"];

/// Refuses requests of other origins that change state.
pub(crate) async fn check_origin_of_changes(
    State(app): State<App>,
    request: Request,
    next: Next,
) -> Response {
    let route = request.extensions().get::<MatchedPath>().map(MatchedPath::as_str);
    let is_guarded = may_change_state(request.method(), route, request.uri().path())
        // several Origin headers are an error or an attack, so they are refused even for reads
        || (!request.method().is_safe() && request.headers().get_all(header::ORIGIN).iter().nth(1).is_some());
    if is_guarded && let Err(problem) = own_origin::check(&app.config, request.headers()) {
        return problem.into_response();
    }
    next.run(request).await
}

fn may_change_state(method: &Method, route: Option<&str>, path: &str) -> bool {
    if method.is_safe() {
        return false;
    }
    match route {
        Some(route) if READS.contains(&route) => false,
        Some(route) if TOOLS.contains(&route) => {
            let tool = path.rsplit('/').next().and_then(|name| name.parse::<Tool>().ok());
            !tool.is_some_and(Tool::is_read_only)
        }
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_request_but_known_reads_counts_as_a_change() {
        let changes = |method: Method, route, path| may_change_state(&method, Some(route), path);
        assert!(!changes(Method::GET, "/sites", "/sites"));
        assert!(!changes(Method::HEAD, "/sites", "/sites"));
        assert!(changes(Method::POST, "/sites", "/sites"));
        assert!(changes(Method::DELETE, "/admin/feedback", "/admin/feedback"));
        assert!(!changes(Method::POST, "/search", "/search"));
        assert!(!changes(Method::POST, "/a2a", "/a2a"), "this agent only searches");
        assert!(!changes(Method::POST, "/tools/{name}", "/tools/find_capability"));
        for path in ["/tools/submit_site", "/tools/submit%5Fsite", "/tools/another"] {
            assert!(changes(Method::POST, "/tools/{name}", path), "{path}");
        }
        assert!(changes(Method::POST, "/woa/{agent}", "/woa/submit_site"));
        assert!(may_change_state(&Method::POST, None, "/new"), "an unknown route is protected by default");
    }
}

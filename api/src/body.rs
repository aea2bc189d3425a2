//! JSON bodies of requests and of answers to POST. Unknown members are refused (the objects of ARD are closed).

use axum::Json;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::problem::Problem;

/// Largest body of a query: the longest text and every filter several times over.
const BODY_BYTES_MAX: usize = 64 * 1024;

pub(crate) fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    if bytes.len() > BODY_BYTES_MAX {
        return Err(Problem::new(
            http::StatusCode::PAYLOAD_TOO_LARGE,
            format!("the body is larger than the {BODY_BYTES_MAX} bytes that a query may have"),
        ));
    }
    manifest::budget::parse_within_budget(bytes, &manifest::budget::BODY)
        .map_err(|error| Problem::bad_request(format!("the body is not the JSON expected here: {error}")))
}

/// An answer to a POST, which no cache may store.
pub(crate) fn fresh<T: Serialize>(value: &T) -> Response {
    let mut response = Json(value).into_response();
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// A whole number within bounds, or its default.
pub(crate) fn bounded(name: &str, given: Option<i64>, default: usize, max: usize) -> Result<usize, Problem> {
    let Some(given) = given else { return Ok(default) };
    usize::try_from(given).ok().filter(|number| (1..=max).contains(number)).ok_or_else(|| {
        Problem::bad_request(format!("\"{name}\" is a whole number from 1 to {max}")).with_parameter(name)
    })
}

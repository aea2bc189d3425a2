//! JSON bodies of requests, and of responses to POST. Unknown members are rejected (the objects of ARD are closed).

use axum::Json;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::problem::Problem;

/// Parses a body and passes it to `read`. The parsed tree takes many times the memory of the bytes, so it is dropped before the request
/// waits for anything.
pub(crate) fn parse<T: DeserializeOwned, R>(
    bytes: &[u8],
    read: impl FnOnce(T) -> Result<R, Problem>,
) -> Result<R, Problem> {
    let body = manifest::budget::parse_within_budget(bytes, &manifest::budget::REQUEST).map_err(|error| {
        Problem::bad_request(format!(
            "the body is not the JSON expected here: {}",
            expected(&error.to_string())
        ))
    })?;
    read(body)
}

/// The message of the parser without names of types of this program.
pub(crate) fn expected(message: &str) -> String {
    match message.split_once("expected struct ") {
        Some((before, after)) => {
            let rest = after.trim_start_matches(|letter: char| letter.is_alphanumeric() || letter == '_');
            format!("{before}expected an object{rest}")
        }
        None => message.to_owned(),
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_name_no_types_of_the_program() {
        let message = "invalid type: string \"x\", expected struct ArdQuery at line 1 column 9";
        assert_eq!(expected(message), "invalid type: string \"x\", expected an object at line 1 column 9");
        assert_eq!(expected("missing field `query`"), "missing field `query`");
    }
}

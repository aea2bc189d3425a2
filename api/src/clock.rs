//! The only place where the API reads a clock; other functions take `now` as an argument.

use chrono::{DateTime, Utc};

#[expect(clippy::disallowed_methods, reason = "the time of a request is read here, once")]
pub(crate) fn now() -> DateTime<Utc> {
    Utc::now()
}

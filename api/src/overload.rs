//! Rejects requests when there is no capacity, and tells clients when they may retry.

use std::sync::atomic::{AtomicU64, Ordering};

use axum::body::Bytes;
use axum::http::{HeaderMap, StatusCode};
use runtime::LimitReached;

use crate::metrics;
use crate::problem::Problem;

/// Paths that are answered even under overload, so that operators and orchestrators can check whether this process is alive and can search.
pub(crate) const ALWAYS_ANSWERED: [&str; 2] = ["/healthz", "/readyz"];
/// The path of the metrics, which are answered under overload to clients that may read them.
pub(crate) const METRICS: &str = "/metrics";
/// Seconds after which a client with too many requests in progress may retry: its own requests end within moments.
const CLIENT_RETRY_AFTER_S: u32 = 1;
/// Minimum and maximum `Retry-After`.
pub(crate) const RETRY_AFTER_S: (u64, u64) = (1, 5);

/// Marks a rejected request. It still passes through the middleware, so that the response has the usual format.
#[derive(Debug, Clone)]
pub(crate) struct Refused(pub(crate) Problem);

/// The response to a request that is rejected before routing, without `Retry-After`.
#[derive(Debug, Clone)]
pub(crate) struct RejectionResponse {
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

/// The problem of a request without capacity; `reason` is `connections`, `requests`, `bytes` or `documents`.
pub(crate) fn capacity_problem(reason: &'static str, full: LimitReached) -> Problem {
    match full {
        LimitReached::Client => {
            metrics::rejected(reason);
            let detail = "too many requests from this address are in progress; try again in a moment";
            Problem::too_many(detail, CLIENT_RETRY_AFTER_S)
        }
        LimitReached::All => {
            metrics::rejected("load");
            let detail = "too many requests are in progress; try again in a moment";
            Problem::unavailable_for(detail, next_retry_after_s())
        }
        LimitReached::Share => {
            metrics::rejected(reason);
            let detail = "the response is larger than 16 MiB, the maximum size: request a part of it, or use \
                          /manifests/{id}/raw or /export.jsonl";
            Problem::new(StatusCode::UNPROCESSABLE_ENTITY, detail)
        }
    }
}

/// A low-discrepancy sequence within inclusive bounds: multiples of the golden ratio fill an interval evenly.
pub(crate) const fn spread(number: u64, (least, most): (u64, u64)) -> u64 {
    const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;
    let fraction = number.wrapping_mul(GOLDEN) >> 32;
    least + ((fraction * (most - least + 1)) >> 32)
}

/// Seconds after which the next rejected client may retry; successive clients get different values.
fn next_retry_after_s() -> u32 {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let seconds = spread(NUMBER.fetch_add(1, Ordering::Relaxed), RETRY_AFTER_S);
    u32::try_from(seconds).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rejected_clients_get_different_retry_times() {
        let mut counts = [0_usize; 6];
        for number in 0..1_000 {
            counts[usize::try_from(spread(number, RETRY_AFTER_S)).unwrap()] += 1;
        }
        assert_eq!(counts[0], 0);
        assert!(counts[1..].iter().all(|count| (190..=210).contains(count)), "{counts:?}");
    }
}

//! Records which instances have forwarded a search, so that no search is forwarded in a loop.
//!
//! A search that is sent to a peer contains `federation: "none"`, so no registry that follows the standard forwards it. The header protects
//! against registries that forward it nevertheless: it lists the ids of the instances in order, so their number is the number of hops.

use axum::http::{HeaderMap, HeaderName, HeaderValue};
use data_encoding::HEXLOWER;
use sha2::{Digest as _, Sha256};

/// Ids of the instances that passed a search on, separated by commas.
const ASKED_BY: HeaderName = HeaderName::from_static("agentdex-asked-by");
/// Maximum number of hops of a search: one, from the instance that received it from a client to its peers.
const HOPS_MAX: usize = 1;
/// Bytes of the hash in an id.
const ID_BYTES: usize = 16;

/// The id of an installation. All its replicas have the same id, because they share the database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct InstanceId(String);

impl InstanceId {
    /// `feed_id` is the random id of the database, which is kept secret.
    pub(crate) fn of(feed_id: &str) -> Self {
        let hash = Sha256::digest(format!("agentdex federation {feed_id}"));
        Self(HEXLOWER.encode(hash.get(..ID_BYTES).unwrap_or(&hash)))
    }

    fn is_id(text: &str) -> bool {
        text.len() == 2 * ID_BYTES && text.bytes().all(|byte| byte.is_ascii_hexdigit())
    }
}

/// Whether a search may be passed on to peers.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Forwarding {
    /// With these headers.
    Allowed(HeaderMap),
    Refused(Refusal),
}

/// Why a search is answered by this instance alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// This instance has passed it on before.
    Loop,
    HopsUsed,
    Malformed,
}

impl Refusal {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Loop => "loop",
            Self::HopsUsed => "hops_used",
            Self::Malformed => "malformed",
        }
    }
}

/// Decides by the headers of a search.
pub(crate) fn forwarding(headers: &HeaderMap, own: &InstanceId) -> Forwarding {
    let mut passed_on = Vec::new();
    for value in headers.get_all(&ASKED_BY) {
        let Ok(text) = value.to_str() else { return Forwarding::Refused(Refusal::Malformed) };
        passed_on.extend(text.split(',').map(str::trim));
    }
    if passed_on.contains(&own.0.as_str()) {
        return Forwarding::Refused(Refusal::Loop);
    }
    if !passed_on.iter().all(|id| InstanceId::is_id(id)) {
        return Forwarding::Refused(Refusal::Malformed);
    }
    if passed_on.len() >= HOPS_MAX {
        return Forwarding::Refused(Refusal::HopsUsed);
    }
    passed_on.push(&own.0);
    // ids are hexadecimal digits
    let value = HeaderValue::try_from(passed_on.join(", "));
    value.map_or(Forwarding::Refused(Refusal::Malformed), |value| {
        Forwarding::Allowed(HeaderMap::from_iter([(ASKED_BY, value)]))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from(values: &[&str]) -> HeaderMap {
        values.iter().map(|value| (ASKED_BY, HeaderValue::from_str(value).unwrap())).collect()
    }

    #[test]
    fn a_search_is_passed_on_once_and_never_by_the_same_instance() {
        let (own, other) = (InstanceId::of("a"), InstanceId::of("b"));
        let Forwarding::Allowed(headers) = forwarding(&HeaderMap::new(), &own) else {
            panic!("a search of a client is passed on")
        };
        assert_eq!(headers.len(), 1, "no other header of the client is passed on");
        assert_eq!(forwarding(&headers, &other), Forwarding::Refused(Refusal::HopsUsed));
        assert_eq!(forwarding(&headers, &own), Forwarding::Refused(Refusal::Loop));
        let both = format!("{}, {}", other.0, own.0);
        assert_eq!(forwarding(&from(&[&both]), &own), Forwarding::Refused(Refusal::Loop));
        assert_eq!(forwarding(&from(&[&other.0, &own.0]), &own), Forwarding::Refused(Refusal::Loop));
        for value in ["", "x", "ffff", &"g".repeat(32), &"f".repeat(5_000)] {
            assert_eq!(forwarding(&from(&[value]), &own), Forwarding::Refused(Refusal::Malformed), "{value}");
        }
    }

    #[test]
    fn the_id_does_not_reveal_the_id_of_the_database() {
        let id = InstanceId::of("0123456789abcdef0123456789abcdef");
        assert!(InstanceId::is_id(&id.0) && id.0 != "0123456789abcdef0123456789abcdef");
        assert_ne!(id, InstanceId::of("1123456789abcdef0123456789abcdef"));
    }
}

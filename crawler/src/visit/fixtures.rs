//! States of a site that the unit tests of visits build.

use manifest::{Discovery, Host, ManifestId, ManifestUrl};
use policy::FetchOutcome;
use store::{HostOrigin, HostState, ResourceState};

/// A known manifest. Like every response, it is stored with its caching headers.
pub(super) fn manifest(at: &str, discovery: Discovery, linked_from: Option<&str>) -> ResourceState {
    let url = |text: &str| ManifestUrl::parse(text).unwrap();
    ResourceState {
        url: url(at),
        manifest_id: Some(ManifestId::of(&url(at))),
        discovery,
        linked_from: linked_from.map(url),
        outcome: FetchOutcome::Found,
        status: Some(200),
        etag: None,
        last_modified: None,
        cache: Some(serde_json::json!({})),
        fresh_until: None,
        content_hash: None,
        fetched_at: crate::clock::now(),
        changed_at: None,
        misses_in_row: 0,
    }
}

/// A host to which no request was sent.
pub(super) fn host(name: &str, origin: HostOrigin) -> HostState {
    HostState {
        host: Host::parse(name).unwrap(),
        origin,
        robots: None,
        next_ok_at: None,
        requests_today: 0,
        requests_day: 0,
    }
}

//! Tests the limit of open files. The limit applies to the whole process, so this is the only test here.

#![expect(clippy::unwrap_used, reason = "a failing test should show where it failed")]

#[expect(dead_code, reason = "each test program uses its own part")]
mod support;

use chrono::DateTime;
use crawler::egress::{Cause, Egress, LeaveCheck};
use http::HeaderMap;
use manifest::{ManifestUrl, SiteName};
use policy::{BodyKind, FetchOutcome};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use support::{Crawl, shop};

#[tokio::test]
async fn a_reached_limit_of_open_files_is_not_a_failure_of_the_site() {
    let crawl = Crawl::of([shop()]).await;
    let egress = Egress::new(crawl.config.egress.clone(), || DateTime::UNIX_EPOCH).unwrap();
    let session = egress.session(SiteName::parse("shop.example").unwrap());
    let url = ManifestUrl::parse("https://shop.example/agent.json").unwrap();
    session.resolve(&url.host()).await.unwrap();
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: Some(3), maximum: limit.maximum }).unwrap();
    let leave = LeaveCheck::new(|| true);
    let refused =
        session.fetch(&url, BodyKind::Manifest, &HeaderMap::new(), leave.clone()).await.unwrap_err();
    setrlimit(Resource::Nofile, limit).unwrap();
    assert_eq!(
        (refused.cause, refused.cause.outcome()),
        (Cause::Busy, FetchOutcome::NotReached),
        "{refused}"
    );
    assert!(session.fetch(&url, BodyKind::Manifest, &HeaderMap::new(), leave).await.is_ok());
}

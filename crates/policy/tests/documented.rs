//! Tests that docs/POLITENESS.md states the actual limits.

use std::fs;
use std::path::Path;

use policy::delay::Scope;
use policy::plan::{BodyKind, PATHS, PATHS_SPECULATIVE_MAX};

#[test]
fn documented_limits_are_the_actual_limits() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/POLITENESS.md");
    let text = fs::read_to_string(path).unwrap();
    let [host, site, address, suffix] =
        [Scope::Authority, Scope::Site, Scope::Address, Scope::PublicSuffix].map(Scope::limits);
    let kib = |kind: BodyKind| kind.bytes_max() / 1024;
    let mib = |kind: BodyKind| kib(kind) / 1024;
    let paths = PATHS.len();
    for statement in [
        format!("| requests at once to one host | {} |", host.in_flight_max),
        format!("| requests to one host in a day (UTC) | {} |", host.requests_per_day_max.unwrap()),
        format!("of a site together in a day (UTC) | {} |", site.requests_per_day_max.unwrap()),
        format!(
            "to one IP address, for all sites and all crawlers of an operator together | {} s |",
            address.gap.as_secs_f64()
        ),
        format!(
            "all crawlers of an operator together | {}; {} s |",
            suffix.in_flight_max,
            suffix.gap.as_secs_f64()
        ),
        format!(
            "| size of a file | {} MiB (OpenAPI documents {} MiB, llms.txt {} MiB, robots.txt {} KiB, home page {} KiB) |",
            mib(BodyKind::Manifest),
            mib(BodyKind::OpenApi),
            mib(BodyKind::LlmsTxt),
            kib(BodyKind::Robots),
            kib(BodyKind::Homepage),
        ),
        format!("then {PATHS_SPECULATIVE_MAX} well-known paths"),
        format!("{} requests if your site has nothing", PATHS_SPECULATIVE_MAX + 1),
        format!("The other {} well-known paths and the home page", paths - 1 - PATHS_SPECULATIVE_MAX),
        format!("at most {} requests in a first visit", paths + 1),
    ] {
        assert!(text.contains(&statement), "docs/POLITENESS.md does not say {statement:?}");
    }
}

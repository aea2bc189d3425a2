//! What is packed comes back, in few bytes, and nothing else is read.

use super::*;

const DAY_MS: i64 = 24 * 60 * 60 * 1_000;
const NOW_MS: i64 = 20_000 * DAY_MS;

/// A site after some visits that found nothing, each of which looked at other paths.
fn negative() -> SiteAtRest {
    let slot = |index: u8| [4, 0x20, 0x4e + index / 3];
    SiteAtRest {
        status: "fresh".into(),
        last_end: Some("completed".into()),
        next_visit_reason: Some("nothing was found".into()),
        first_seen_at_ms: NOW_MS - 300 * DAY_MS,
        first_visit_at_ms: Some(NOW_MS - 299 * DAY_MS),
        last_visit_at_ms: Some(NOW_MS),
        hinted_at_ms: None,
        visits: 7,
        changes: 0,
        failures_in_row: 0,
        negatives_in_row: 7,
        paths_checked: (0..20).flat_map(slot).collect(),
        hosts: SiteAtRest::pending(
            [("shop.example".into(), HostOrigin::Listed), ("www.shop.example".into(), HostOrigin::Named)],
            0,
        )
        .hosts,
    }
}

#[test]
fn a_site_at_rest_comes_back_as_it_was() {
    let mut site = negative();
    let packed = site.pack("shop.example").unwrap();
    assert!(packed.len() <= 60, "{} bytes", packed.len());
    assert_eq!(SiteAtRest::unpack("shop.example", &packed).unwrap(), site);

    let robots = RobotsAtRest {
        kind: "unreachable".into(),
        cause: Some("a word of its own".into()),
        status: Some(503),
        fetched_at_ms: NOW_MS,
        expires_at_ms: NOW_MS + 3_600_000,
        failures_in_row: 9,
    };
    let clock = ClockAtRest {
        next_ok_at_ms: Some(NOW_MS),
        not_before_ms: Some(NOW_MS + DAY_MS),
        requests_today: 39,
        requests_day: 20_000,
    };
    site.hosts.push(HostAtRest {
        host: "api.shop.example".into(),
        origin: HostOrigin::Met,
        clock: Some(clock),
        robots: Some(robots),
    });
    let packed = site.pack("shop.example").unwrap();
    assert_eq!(SiteAtRest::unpack("shop.example", &packed).unwrap(), site);

    let pending = SiteAtRest::pending([("shop.example".into(), HostOrigin::Named)], NOW_MS);
    let packed = pending.pack("shop.example").unwrap();
    assert!(packed.len() <= 24, "{} bytes", packed.len());
    assert_eq!(SiteAtRest::unpack("shop.example", &packed).unwrap(), pending);
    assert_eq!(status_of_code(&packed[1..2]), Some("pending"));
}

#[test]
fn damaged_bytes_are_an_error_that_names_the_site() {
    let packed = negative().pack("shop.example").unwrap();
    for length in 0..packed.len() {
        let error = SiteAtRest::unpack("shop.example", &packed[..length]).unwrap_err().to_string();
        assert!(error.contains("shop.example") && error.contains("packed"), "{error}");
    }
    let mut other = packed.clone();
    other[0] = 2;
    assert!(SiteAtRest::unpack("shop.example", &other).is_err());
    other = packed;
    other.push(0);
    assert!(SiteAtRest::unpack("shop.example", &other).is_err());
}

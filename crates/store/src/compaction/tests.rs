//! Tests that the encoding is lossless and small, rows of earlier schemas can be read, and invalid bytes are refused.

use super::*;

const DAY_MS: i64 = 24 * 60 * 60 * 1_000;
const NOW_MS: i64 = 20_000 * DAY_MS;
const SITE: &str = "shop.example";

fn named<const N: usize>(hosts: [&str; N]) -> [(&str, HostOrigin); N] {
    hosts.map(|host| (host, HostOrigin::Named))
}

/// A site after some visits that found nothing, each of which requested other paths.
fn negative() -> CompactedSite {
    let slot = |index: u8| [4, 0x20, 0x4e + index / 3];
    let pending = CompactedSite::pending(SITE, named([SITE, "www.shop.example"]), NOW_MS - 300 * DAY_MS);
    let state = StateRow {
        status: "fresh".into(),
        last_end: Some("completed".into()),
        next_visit_reason: Some("nothing was found".into()),
        first_visit_at_ms: Some(NOW_MS - 299 * DAY_MS),
        last_visit_at_ms: Some(NOW_MS),
        visits: 7,
        negatives_in_row: 7,
        paths_checked: Some((0..20).flat_map(slot).collect()),
        ..pending.state
    };
    CompactedSite { state, hosts: pending.hosts }
}

/// A host with a clock that has not passed and a robots.txt that could not be read.
fn unreachable_host() -> HostRow {
    HostRow {
        clock: HostClock {
            next_ok_at_ms: Some(NOW_MS),
            not_before_ms: Some(NOW_MS + DAY_MS),
            requests_today: 39,
            requests_day: 20_000,
        },
        robots: RobotsRow {
            kind: Some("unreachable".into()),
            cause: Some("a word of its own".into()),
            status: Some(503),
            fetched_at_ms: Some(NOW_MS),
            expires_at_ms: Some(NOW_MS + 3_600_000),
            failures_in_row: Some(9),
            ..RobotsRow::default()
        },
        ..HostRow::new("api.shop.example", SITE, HostOrigin::Met)
    }
}

/// The columns that statements write for a site.
fn columns(site: &CompactedSite, packed: Vec<u8>) -> CompactedColumns {
    CompactedColumns {
        packed: Some(packed),
        visits_at_rest: Some(site.state.visits),
        compacted_status: Some(site.state.status.clone()),
        compacted_failures: Some(site.state.failures_in_row).filter(|failures| *failures > 0),
        compacted_last_visit_at_ms: site.state.last_visit_at_ms,
    }
}

fn decoded(site: &CompactedSite, packed: Vec<u8>) -> CompactedSite {
    CompactedSite::decode(SITE, columns(site, packed)).unwrap().unwrap()
}

#[test]
fn reads_a_struct_that_was_encoded_before_its_last_field_was_added() {
    #[derive(Debug, PartialEq, Deserialize)]
    struct Grown {
        first: u16,
        #[serde(default)]
        added: Option<u16>,
    }
    let bytes = postcard::to_extend(&(300_u16, ["next"]), Vec::new()).unwrap();
    let mut from = postcard::Deserializer::from_bytes(&bytes);
    let grown = Grown::deserialize(FirstFields { from: &mut from, count: 1 }).unwrap();
    assert_eq!(grown, Grown { first: 300, added: None });
    assert_eq!(
        <[String; 1]>::deserialize(&mut from).unwrap(),
        ["next"],
        "the following bytes are not decoded as the missing field"
    );
}

#[test]
fn decoding_reverses_encoding() {
    let mut site = negative();
    let packed = site.encode().unwrap();
    assert!(packed.len() <= 65, "{} bytes", packed.len());
    assert_eq!(decoded(&site, packed), site);
    site.hosts.push(unreachable_host());
    let packed = site.encode().unwrap();
    assert_eq!(decoded(&site, packed), site);

    let pending = CompactedSite::pending(SITE, [(SITE, HostOrigin::Listed)], NOW_MS);
    let packed = pending.encode().unwrap();
    assert!(packed.len() <= 20, "{} bytes", packed.len());
    assert_eq!(decoded(&pending, packed), pending);
    assert!(CompactedSite::decode(SITE, CompactedColumns::default()).unwrap().is_none());
}

#[test]
fn does_not_encode_a_host_of_another_site() {
    assert_eq!(CompactedSite::pending(SITE, named(["other.example"]), NOW_MS).encode(), None);
}

#[test]
fn decodes_rows_of_earlier_schemas() {
    let visited = "0101000066ff3000091e81dcceab0681ffd3ab0600070007070304204e0304204f03042050030420510304205203042053020420540304\
                   051a106170692e73686f702e6578616d706c6581e0fcb706818382b80627a09c0103ff116120776f7264206f6620697473206f776ef703\
                   81e0fcb70691fcfcb70609";
    let pending = "0100000000000000fefe81e0fcb7060000000000000104";
    let listed = "0100000000000000fefe81e0fcb7060000000000000124";
    let mut site = negative();
    site.hosts.push(unreachable_host());
    for (hex, site) in [
        (visited, site),
        (pending, CompactedSite::pending(SITE, named([SITE]), NOW_MS)),
        (listed, CompactedSite::pending(SITE, [(SITE, HostOrigin::Collected)], NOW_MS)),
    ] {
        let hex: String = hex.split_whitespace().collect();
        let packed = data_encoding::HEXLOWER.decode(hex.as_bytes()).unwrap();
        assert_eq!(decoded(&site, packed), site);
    }
}

#[test]
fn names_the_site_whose_bytes_are_damaged() {
    let site = negative();
    let packed = site.encode().unwrap();
    let refused =
        |packed: Vec<u8>| CompactedSite::decode(SITE, columns(&site, packed)).unwrap_err().to_string();
    for length in 0..packed.len() {
        let error = refused(packed[..length].to_vec());
        assert!(error.contains(SITE) && error.contains("packed"), "{error}");
    }
    refused([&[9], &packed[1..]].concat());
    refused([&packed[..], &[0]].concat());
}

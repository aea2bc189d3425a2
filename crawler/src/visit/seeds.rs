//! Limits and serialization of the links to other sites that a visit has found.
//!
//! The links of one document share its URL, in memory and in JSON.

use std::sync::Arc;

use manifest::{Host, ManifestUrl};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use store::Seed;

/// Maximum number of seeds that a visit may add: the links of ten large catalogs.
pub(super) const SEEDS_MAX: usize = 10_000;
/// Maximum bytes of their URLs: enough for [`SEEDS_MAX`] URLs of typical length.
pub(super) const SEEDS_BYTES_MAX: usize = 1024 * 1024;

/// Bytes of serialized seeds: their URLs, and the URL of each document once.
pub(super) fn written_bytes(seeds: &[Seed]) -> usize {
    let targets: usize = seeds.iter().map(url_bytes).sum();
    let sources = seeds.chunk_by(have_same_source).filter_map(|group| group.first()?.origin.source());
    targets + sources.map(|from| from.as_str().len()).sum::<usize>()
}

/// Bytes that seeds take in memory.
pub(super) fn held_bytes(seeds: &[Seed]) -> usize {
    let hosts: usize = seeds.iter().map(|seed| seed.host.as_str().len()).sum();
    size_of_val(seeds) + hosts + written_bytes(seeds)
}

/// Adds seeds up to the limits of a visit.
pub(super) fn add(seeds: &mut Vec<Seed>, more: Vec<Seed>) {
    let mut bytes = written_bytes(seeds);
    for seed in more {
        let is_first = seeds.last().is_none_or(|last| !have_same_source(last, &seed));
        let source = seed.origin.source().filter(|_| is_first).map_or(0, |from| from.as_str().len());
        bytes += url_bytes(&seed) + source;
        if seeds.len() >= SEEDS_MAX || bytes > SEEDS_BYTES_MAX {
            return;
        }
        seeds.push(seed);
    }
}

fn url_bytes(seed: &Seed) -> usize {
    seed.url.as_ref().map_or(seed.host.as_str().len(), |url| url.as_str().len())
}

fn have_same_source(one: &Seed, other: &Seed) -> bool {
    match (one.origin.source(), other.origin.source()) {
        (Some(one), Some(other)) => Arc::ptr_eq(one, other) || one == other,
        (one, other) => one.is_none() && other.is_none(),
    }
}

/// The links of one document.
#[derive(Serialize)]
struct Links<'a> {
    from: &'a ManifestUrl,
    to: Vec<&'a ManifestUrl>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    hosts: Vec<&'a Host>,
}

/// The deserialized form of [`Links`].
#[derive(Deserialize)]
struct LinksRead {
    from: ManifestUrl,
    to: Vec<ManifestUrl>,
    #[serde(default)]
    hosts: Vec<Host>,
}

pub(super) fn serialize<S: Serializer>(seeds: &[Seed], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(seeds.chunk_by(have_same_source).filter_map(|group| {
        let from = group.first()?.origin.source()?;
        let hosts = group.iter().filter(|seed| seed.url.is_none()).map(|seed| &seed.host).collect();
        Some(Links { from, to: group.iter().filter_map(|seed| seed.url.as_ref()).collect(), hosts })
    }))
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Seed>, D::Error> {
    let mut seeds = Vec::new();
    for LinksRead { from, to, hosts } in Vec::<LinksRead>::deserialize(from)? {
        let from = Arc::new(from);
        let urls = to.into_iter().map(|url| Seed::linked(url, Arc::clone(&from)));
        let hosts = hosts.into_iter().map(|host| Seed::linked_host(host, Arc::clone(&from)));
        add(&mut seeds, urls.chain(hosts).collect());
    }
    Ok(seeds)
}

//! Facts of a document about its site, for comparing sites with each other.
//!
//! One index document of each manifest contains them, as JSON in the column `site_facts`. Their size is limited, because publishers choose
//! the length of their texts.

use std::collections::{BTreeMap, BTreeSet};

use manifest::{IdentityMark, ManifestUrl, Publisher, SiteName};
use policy::naming::{customer_of, may_speak};
use serde::{Deserialize, Serialize};
use store::StoredManifest;

use super::label::{Label, name_key};
use super::texts::judged_words;
use crate::analysis::{is_stop_word, words};
use crate::lexicon::is_common_word;

/// Maximum number of names of a publisher.
const OWN_NAMES_MAX: usize = 24;
/// Maximum number of words and pairs of words that may be names of other publishers.
const NAMES_MAX: usize = 64;
/// Number of first capabilities whose words are counted.
const COUNTED_MAX: usize = 100;
/// Maximum number of linked sites of a document, and of its addresses that are read to find them.
const LINKS_MAX: usize = 16;
const ADDRESSES_READ_MAX: usize = 200;
/// Maximum number of other sites in a catalog or list whose entries are taken for sites of the publisher. Marketplaces list more.
const LISTED_OWN_MAX: usize = 3;
/// Number of compared fingerprints of capabilities: the smallest ones, which are the same for two copies of a document.
const SKETCHES_MAX: usize = 8;
/// Maximum number of manifests of a site whose facts are joined.
pub(crate) const MANIFESTS_MAX: usize = 64;

/// The facts of a manifest, or of all manifests of a site.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct PublisherFacts {
    pub(crate) site: SiteName,
    pub(crate) capabilities: u32,
    pub(crate) first_seen_ms: i64,
    /// Whether the manifest is at the domain or its `www.` host. Another host may belong to a customer, so its facts count only for a site
    /// without manifests at its domain.
    pub(crate) is_at_domain: bool,
    /// The customers to whom the hosts of the manifests may belong ([`customer_of`]); empty at the domain.
    #[serde(default)]
    pub(crate) customers: BTreeSet<String>,
    /// Number of manifests of the site beyond the limit, which were not read.
    #[serde(skip)]
    pub(crate) unread: usize,
    pub(crate) is_verified: bool,
    /// Keys of the publisher's own names, and of their words.
    pub(crate) own_names: BTreeSet<u32>,
    /// Whether one of its own names is the name of its domain, in exactly these letters.
    pub(crate) has_own_name: bool,
    #[serde(flatten)]
    pub(crate) listing: Listing,
    /// The listings of the other manifests of the site.
    #[serde(skip)]
    pub(crate) listings: Vec<Listing>,
    /// The other sites that its documents link to: its own, and those in catalogs and lists of at most `LISTED_OWN_MAX` sites.
    pub(crate) links: BTreeSet<SiteName>,
    /// The links among these that are not entries of a catalog or a list, which may be about the sites of others.
    pub(crate) links_of_service: BTreeSet<SiteName>,
    pub(crate) sketches: BTreeSet<u64>,
}

/// The words of one manifest that may be a list of names of other publishers. Each manifest is judged alone: the names of one count against
/// its own words.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Listing {
    /// Keys of the words that most capabilities contain, and of pairs of such words, which may be names of other publishers.
    pub(crate) names: BTreeSet<u32>,
    /// Number of distinct words that most capabilities contain.
    pub(crate) words: u32,
}

impl PublisherFacts {
    /// The facts of a manifest whose publisher is known; `None` for other manifests, which users of the site may have written. `sketches`
    /// are the fingerprints of its capabilities.
    pub(crate) fn of(stored: &StoredManifest, sketches: impl Iterator<Item = u64>) -> Option<Self> {
        if !may_speak(stored.named_by, stored.publisher) {
            return None;
        }
        let manifest = &stored.manifest;
        let (names, words) = common_names(stored);
        let (own_names, has_own_name) = own_names(stored);
        let sketches: BTreeSet<u64> = sketches.collect();
        let (site, is_at_domain) = (manifest.url.site(), stored.publisher == Publisher::Site);
        let is_service = manifest.format().describes_one_service();
        let of_provider = sites_of(manifest.provider.url.as_deref().into_iter(), stored);
        let linked = sites_of(links(stored), stored);
        let with_provider =
            |linked: BTreeSet<SiteName>| linked.into_iter().chain(of_provider.clone()).collect();
        let is_own = is_service || linked.len() <= LISTED_OWN_MAX;
        let customer = (!is_at_domain).then(|| customer_of(&manifest.url.host(), &site).to_owned());
        Some(Self {
            site,
            capabilities: u32::try_from(manifest.capabilities.len()).unwrap_or(u32::MAX),
            first_seen_ms: stored.first_seen_at.timestamp_millis(),
            is_at_domain,
            customers: customer.into_iter().collect(),
            unread: 0,
            is_verified: stored.identity().marks().contains(&IdentityMark::Verified),
            own_names,
            has_own_name,
            listing: Listing { names, words },
            listings: Vec::new(),
            links: with_provider(if is_own { linked.clone() } else { BTreeSet::new() }),
            links_of_service: with_provider(if is_service { linked } else { BTreeSet::new() }),
            sketches: sketches.into_iter().take(SKETCHES_MAX).collect(),
        })
    }

    /// Adds the facts of another manifest of the site. If there is a manifest at the domain, manifests at other hosts do not count.
    pub(crate) fn join(&mut self, other: Self) {
        if self.is_at_domain != other.is_at_domain {
            if other.is_at_domain {
                *self = other;
            }
            return;
        }
        self.capabilities = self.capabilities.saturating_add(other.capabilities);
        self.first_seen_ms = self.first_seen_ms.min(other.first_seen_ms);
        self.customers.extend(other.customers);
        self.is_verified |= other.is_verified;
        self.own_names.extend(other.own_names);
        self.has_own_name |= other.has_own_name;
        self.listings.push(other.listing);
        self.listings.extend(other.listings);
        self.links.extend(other.links);
        self.links_of_service.extend(other.links_of_service);
        let sketches = std::mem::take(&mut self.sketches).into_iter().chain(other.sketches);
        self.sketches = sketches.collect::<BTreeSet<u64>>().into_iter().take(SKETCHES_MAX).collect();
    }

    /// Whether all manifests have one publisher, so that the whole site may count as spam because of one of them. Manifests at other hosts
    /// that were not read may belong to other customers.
    pub(crate) fn has_one_publisher(&self) -> bool {
        self.is_at_domain || (self.customers.len() <= 1 && self.unread == 0)
    }
}

/// Keys of the names of a manifest and its provider, joined, and of their words and pairs of words; and whether one of them has exactly the
/// letters of the domain.
fn own_names(stored: &StoredManifest) -> (BTreeSet<u32>, bool) {
    let manifest = &stored.manifest;
    let names = [&manifest.name, &manifest.title, &manifest.provider.name];
    let label: String = words(Label::of(&manifest.url.site()).text()).map(|word| word.text).collect();
    let (mut keys, mut has_own_name) = (BTreeSet::new(), false);
    for name in names.into_iter().flatten() {
        let words: Vec<String> = words(name).map(|word| word.text).take(OWN_NAMES_MAX).collect();
        let parts = words.iter().cloned().chain(pairs(&words)).chain([words.concat()]);
        for part in parts.take(OWN_NAMES_MAX) {
            has_own_name |= part.split(' ').collect::<String>() == label;
            keys.insert(name_key(&part));
        }
    }
    (keys.into_iter().take(OWN_NAMES_MAX * 3).collect(), has_own_name)
}

/// Keys of words that at least half of the first capabilities have, and of their neighbours in pairs; and the number of these words. Two
/// common words are no name: anybody may register domains that are named like the phrases of a text.
fn common_names(stored: &StoredManifest) -> (BTreeSet<u32>, u32) {
    let capabilities = &stored.manifest.capabilities;
    let capabilities = capabilities.get(..COUNTED_MAX).unwrap_or(capabilities);
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for capability in capabilities {
        let words = judged_words(capability);
        let distinct: BTreeSet<String> = words.iter().cloned().chain(pairs(&words)).collect();
        for word in distinct {
            *counts.entry(word).or_default() += 1;
        }
    }
    counts.retain(|_, count| *count * 2 >= capabilities.len());
    let (mut keys, mut single) = (BTreeSet::new(), 0);
    for word in counts.keys() {
        let is_pair = word.contains(' ');
        single += u32::from(!is_pair);
        if keys.len() < NAMES_MAX && !is_stop_word(word) && !(is_pair && word.split(' ').all(is_common_word))
        {
            keys.insert(name_key(word));
        }
    }
    (keys, single)
}

/// Neighbouring words.
fn pairs(words: &[String]) -> Vec<String> {
    words.windows(2).map(|pair| pair.join(" ")).collect()
}

/// The addresses that a document links to.
fn links(stored: &StoredManifest) -> impl Iterator<Item = &str> {
    let manifest = &stored.manifest;
    let links = manifest.links.iter().map(|link| link.url.as_str());
    links.chain(manifest.interfaces.iter().filter_map(|interface| interface.url.as_deref()))
}

/// The other sites at these addresses.
fn sites_of<'s>(addresses: impl Iterator<Item = &'s str>, stored: &StoredManifest) -> BTreeSet<SiteName> {
    let own = stored.manifest.url.site();
    let sites =
        addresses.take(ADDRESSES_READ_MAX).filter_map(|url| Some(ManifestUrl::parse(url).ok()?.site()));
    let mut found = BTreeSet::new();
    for site in sites.filter(|site| *site != own) {
        if found.len() < LINKS_MAX {
            found.insert(site);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use manifest::model::{CapabilityKind, Format, Link, Manifest};
    use manifest::{Capability, ContentHash, ManifestId, NamedBy};
    use serde_json::json;

    use super::*;

    fn stored() -> StoredManifest {
        let url = ManifestUrl::parse("https://a.example/agent.json").unwrap();
        let manifest: Manifest = serde_json::from_value(json!({
            "id": ManifestId::of(&url).as_str(), "content_hash": ContentHash::of(b"").as_str(), "url": url.as_str(),
            "origin": url.origin(), "discovery": "root",
            "detection": {"format": "awp", "strength": "strong", "evidence": []},
        }))
        .unwrap();
        let at = chrono::DateTime::UNIX_EPOCH;
        StoredManifest {
            manifest,
            training: manifest::model::PolicyChoice::Unset,
            named_by: NamedBy::Site,
            publisher: Publisher::Site,
            status: policy::Status::Fresh,
            first_seen_at: at,
            last_seen_at: at,
            changed_at: at,
            versions: 1,
            body_kept: true,
        }
    }

    #[test]
    fn a_document_of_a_customer_does_not_count_beside_one_at_the_domain() {
        let at = |url: &str| {
            let mut stored = stored();
            stored.manifest.url = ManifestUrl::parse(url).unwrap();
            stored.publisher = policy::naming::publisher_by_url(&stored.manifest.url);
            PublisherFacts::of(&stored, [url.len() as u64].into_iter()).unwrap()
        };
        let own = at("https://www.a.example/agent.json");
        let of_customer = at("https://customer.a.example/.well-known/agent-card.json");
        for (mut facts, other) in [(own.clone(), of_customer.clone()), (of_customer.clone(), own.clone())] {
            facts.join(other);
            assert_eq!((&facts.sketches, facts.listings.len()), (&own.sketches, 0));
        }
        let mut alone = of_customer.clone();
        alone.join(of_customer);
        assert_eq!(alone.listings.len(), 1, "a site without documents at its domain is judged, too");
    }

    #[test]
    fn facts_are_limited() {
        let letters = |number: usize| -> String {
            number.to_string().bytes().map(|digit| char::from(digit - b'0' + b'a')).collect()
        };
        let mut stored = stored();
        let many: Vec<String> = (0..5_000).map(|at| format!("word{}", letters(at))).collect();
        stored.manifest.name = Some(many.join(" "));
        let kind = CapabilityKind::Action;
        let url = stored.manifest.url.clone();
        let mut capability = Capability::new(&url, Format::Awp, "a", "a", kind, String::new());
        capability.description = Some(many.join(" "));
        stored.manifest.capabilities = vec![capability];
        let link = |at| Link::new("related", format!("https://s{at}.example/"), None);
        stored.manifest.links = (0..100).map(link).collect();
        let facts = PublisherFacts::of(&stored, 0..1_000).unwrap();
        assert_eq!((facts.links.len(), facts.listing.names.len(), facts.sketches.len()), (16, 64, 8));
        assert!(facts.own_names.len() <= 72, "{}", facts.own_names.len());
        let mut joined = facts.clone();
        joined.join(facts);
        assert_eq!((joined.capabilities, joined.sketches.len()), (2, 8));
        let upload = "https://a.example/u/evil.json";
        let linked = StoredManifest {
            manifest: Manifest { url: ManifestUrl::parse(upload).unwrap(), ..stored.manifest.clone() },
            publisher: Publisher::Unknown,
            ..stored
        };
        assert!(
            PublisherFacts::of(&linked, 0..1).is_none(),
            "users may have written documents to which a catalog links"
        );
        let of_others = StoredManifest {
            manifest: stored.manifest,
            named_by: NamedBy::Others,
            publisher: Publisher::Site,
            ..linked
        };
        assert!(
            PublisherFacts::of(&of_others, 0..1).is_none(),
            "documents that others name are not evidence about a site"
        );
    }
}

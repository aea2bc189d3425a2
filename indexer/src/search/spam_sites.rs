//! Detects spam sites by comparison with others: look-alikes of known publishers, lists of publisher names, and sibling sites.
//!
//! A commit compares the publishers of its new segments with all others. It judges all found pairs again, because a commit may change
//! either site. So the cost is proportional to the changes. Only a site's own documents are used for the comparison.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use manifest::SiteName;
use rustc_hash::{FxHashMap, FxHashSet};
use tantivy::Searcher;

use super::columns::Columns;
use super::publishers::{BRANDS_MIN, Publishers, SegmentPublishers, number_of, pairs_with};
use crate::answer::SpamCause;
use crate::spam::{Label, Listing, PublisherFacts, SpamReason};

/// A publisher is known, compared with another site, if it declares at least this many capabilities and was seen this long before the other
/// site. It is also known if it was seen no later and, unlike the other site, is verified by its signature. Anyone can sign, so a signature
/// does not outweigh age.
const KNOWN_CAPABILITIES_MIN: u32 = 3;
const KNOWN_BEFORE_MS: i64 = 30 * 24 * 60 * 60 * 1_000;
/// A document lists names if it has at least [`BRANDS_MIN`] and at least one in this many words of its capabilities is such a name. An
/// honest integration mentions a few names, in sentences.
const BRAND_WORDS_SHARE: usize = 3;
/// Minimum number of siblings: two domains of one publisher are common.
const SIBLINGS_MIN: usize = 3;
/// Fingerprints of copies differ in at most this many of 64 bits.
const COPY_BITS_MAX: u32 = 3;
/// Maximum number of sites with one key that are compared with a site, in each segment.
const SAME_KEY_MAX: usize = 16;
/// Maximum number of pairs of names that a commit compares letter by letter: one publisher may own thousands of similar names.
const COMPARED_MAX: usize = 100_000;
/// Maximum number of pairs and sites that are judged at each commit; the rest is ignored.
const JUDGED_MAX: usize = 5_000;

/// The spam sites of a commit, and the pairs and sites that the next commit judges again.
#[derive(Default)]
pub(super) struct SpamSites {
    /// Pairs of a site and another site whose name it imitates and uses.
    alike: BTreeSet<(u64, u64)>,
    /// Sites that link to each other; the smaller number first.
    linked: BTreeSet<(u64, u64)>,
    /// Sites that may list names.
    listing: BTreeSet<u64>,
    causes: FxHashMap<u64, (SiteName, Vec<SpamCause>)>,
}

impl SpamSites {
    pub(super) fn of(
        searcher: &Searcher,
        columns: &[Arc<Columns>],
        before: (&Self, &[Arc<Columns>]),
    ) -> tantivy::Result<Self> {
        let segments = searcher.segment_readers().iter().zip(columns);
        let mut all = Publishers::new(segments.map(|(segment, of)| (segment, &of.publishers)).collect());
        let (before, known) = before;
        let is_new = |of: &&Arc<Columns>| !known.iter().any(|known| Arc::ptr_eq(known, of));
        let new: Vec<&SegmentPublishers> = columns.iter().filter(is_new).map(|of| &of.publishers).collect();
        let old: Vec<&SegmentPublishers> =
            columns.iter().filter(|of| !is_new(of)).map(|of| &of.publishers).collect();
        let mut found = Self {
            alike: before.alike.clone(),
            linked: before.linked.clone(),
            listing: before.listing.clone(),
            causes: FxHashMap::default(),
        };
        found.find_alike(&mut all, &new)?;
        found.find_linked(&all, &new);
        let known: Vec<&SegmentPublishers> = known.iter().map(|of| &of.publishers).collect();
        found.find_listing(&all, &new, (&old, &known));
        found.judge_alike(&mut all)?;
        found.judge_linked(&mut all)?;
        found.judge_listing(&mut all)?;
        Ok(found)
    }

    /// Why a site is spam; empty for others.
    pub(super) fn causes(&self, site: u64) -> &[SpamCause] {
        self.causes.get(&site).map(|(_, causes)| causes.as_slice()).unwrap_or_default()
    }

    pub(super) fn is_spam(&self, site: u64) -> bool {
        !self.causes.is_empty() && self.causes.contains_key(&site)
    }

    /// Every spam site.
    pub(super) fn all(&self) -> impl Iterator<Item = (&SiteName, &[SpamCause])> {
        self.causes.values().map(|(site, causes)| (site, causes.as_slice()))
    }

    fn find_alike(&mut self, all: &mut Publishers<'_>, new: &[&SegmentPublishers]) -> tantivy::Result<()> {
        let mut pairs = BTreeSet::new();
        for (key, site) in new.iter().flat_map(|of| &of.near) {
            for (_, of) in &all.segments {
                let others = pairs_with(&of.near, *key).iter().map(|(_, other)| *other).take(SAME_KEY_MAX);
                let others = others.filter(|other| other != site);
                if pairs.len() < COMPARED_MAX {
                    pairs.extend(others.flat_map(|other| [(*site, other), (other, *site)]));
                }
            }
        }
        for (site, known) in pairs {
            if let (Some(of_site), Some(of_known)) = (all.facts(site)?, all.facts(known)?)
                && self.alike.len() < JUDGED_MAX
                && is_alike(&of_site, &of_known)
            {
                self.alike.insert((site, known));
            }
        }
        Ok(())
    }

    fn find_linked(&mut self, all: &Publishers<'_>, new: &[&SegmentPublishers]) {
        for (site, target) in new.iter().flat_map(|of| &of.links) {
            if self.linked.len() < JUDGED_MAX && all.has_link(*target, *site) {
                self.linked.insert((*site.min(target), *site.max(target)));
            }
        }
    }

    /// Documents of earlier commits are judged again if they have a name that is new. `known` are the segments of the previous commit, some
    /// of which may have been merged.
    fn find_listing(
        &mut self,
        all: &Publishers<'_>,
        new: &[&SegmentPublishers],
        (old, known): (&[&SegmentPublishers], &[&SegmentPublishers]),
    ) {
        let is_known = |key: &u32| known.iter().any(|of| !pairs_with(&of.names, *key).is_empty());
        let names = new.iter().flat_map(|of| &of.names).map(|(key, _)| *key);
        let new_names: FxHashSet<u32> = names.filter(|key| !is_known(key)).collect();
        let has_new_name = |names: &[u32]| names.iter().any(|key| new_names.contains(key));
        let again = old.iter().filter(|_| !new_names.is_empty()).flat_map(|of| &of.listed);
        let again = again.filter(|(_, names)| has_new_name(names));
        for (site, names) in new.iter().flat_map(|of| &of.listed).chain(again) {
            let is_of_other = |key: &&u32| all.named(**key).any(|other| other != *site);
            if self.listing.len() < JUDGED_MAX && names.iter().filter(is_of_other).count() >= BRANDS_MIN {
                self.listing.insert(*site);
            }
        }
    }

    fn judge_alike(&mut self, all: &mut Publishers<'_>) -> tantivy::Result<()> {
        for (site, known) in std::mem::take(&mut self.alike) {
            let (Some(of_site), Some(of_known)) = (all.facts(site)?, all.facts(known)?) else { continue };
            if !is_alike(&of_site, &of_known) {
                continue;
            }
            self.alike.insert((site, known));
            if is_known_to(&of_known, &of_site) && !of_known.links.contains(&of_site.site) {
                let known = Some(of_known.site.clone());
                self.add(&of_site, SpamReason::LookAlike, known);
            }
        }
        Ok(())
    }

    /// Of sites that link to each other and have the same texts, the one that was seen first is the original.
    fn judge_linked(&mut self, all: &mut Publishers<'_>) -> tantivy::Result<()> {
        let mut groups = Groups::default();
        for (one, other) in std::mem::take(&mut self.linked) {
            let (Some(of_one), Some(of_other)) = (all.facts(one)?, all.facts(other)?) else { continue };
            let links_to =
                |one: &PublisherFacts, other: &PublisherFacts| one.links_of_service.contains(&other.site);
            if !links_to(&of_one, &of_other) || !links_to(&of_other, &of_one) {
                continue;
            }
            self.linked.insert((one, other));
            if has_same_texts(&of_one, &of_other) {
                groups.join(one, other);
            }
        }
        for group in groups.all().into_values().filter(|group| group.len() >= SIBLINGS_MIN) {
            let mut sites = Vec::with_capacity(group.len());
            for site in group {
                sites.extend(all.facts(site)?);
            }
            let by_name =
                |one: &PublisherFacts, other: &PublisherFacts| one.site.as_str().cmp(other.site.as_str());
            sites.sort_by(|one, other| {
                one.first_seen_ms.cmp(&other.first_seen_ms).then_with(|| by_name(one, other))
            });
            let Some((leader, siblings)) = sites.split_first() else { continue };
            for sibling in siblings {
                self.add(sibling, SpamReason::SiblingSites, Some(leader.site.clone()));
            }
        }
        Ok(())
    }

    fn judge_listing(&mut self, all: &mut Publishers<'_>) -> tantivy::Result<()> {
        for site in std::mem::take(&mut self.listing) {
            let Some(facts) = all.facts(site)? else { continue };
            let listings = std::iter::once(&facts.listing).chain(&facts.listings);
            for listing in listings.filter(|listing| listing.names.len() >= BRANDS_MIN) {
                let (named, known) = names_of_others(all, (site, &facts), listing)?;
                if named >= BRANDS_MIN {
                    self.listing.insert(site);
                }
                if known >= BRANDS_MIN && known * BRAND_WORDS_SHARE >= listing.words as usize {
                    self.add(&facts, SpamReason::BrandNames, None);
                }
            }
        }
        Ok(())
    }

    /// Adds a cause for all documents of a site, unless several customers published those that were compared: one of them must not make
    /// the documents of the others count as spam.
    fn add(&mut self, facts: &PublisherFacts, reason: SpamReason, of: Option<SiteName>) {
        if !facts.has_one_publisher() {
            return;
        }
        let site = &facts.site;
        let (_, causes) = self.causes.entry(number_of(site)).or_insert_with(|| (site.clone(), Vec::new()));
        if causes.iter().all(|cause| cause.reason != reason) {
            causes.push(SpamCause { reason, of });
        }
    }
}

/// How many names of a listing are those of other publishers, and of known ones.
fn names_of_others(
    all: &mut Publishers<'_>,
    (site, facts): (u64, &PublisherFacts),
    listing: &Listing,
) -> tantivy::Result<(usize, usize)> {
    let (mut named, mut known) = (0, 0);
    for key in &listing.names {
        let others: BTreeSet<u64> = all.named(*key).filter(|other| *other != site).collect();
        named += usize::from(!others.is_empty());
        let mut is_known = false;
        for other in others.into_iter().take(SAME_KEY_MAX) {
            is_known |= all
                .facts(other)?
                .is_some_and(|other| is_known_to(&other, facts) && !other.links.contains(&facts.site));
        }
        known += usize::from(is_known);
    }
    Ok((named, known))
}

/// Whether the name of a site looks like that of another site, and the site uses that name as its own.
///
/// For two confusable domains, each name could count as an imitation of the other. So the domain with more unusual characters is the
/// imitation, regardless of which was seen first. If both have the same number, it is the one whose declared name differs from its domain.
/// Otherwise an attacker could register a look-alike early and make a later publisher count as spam.
fn is_alike(site: &PublisherFacts, known: &PublisherFacts) -> bool {
    let (label, known) = (Label::of(&site.site), Label::of(&known.site));
    if !label.looks_like(&known) || !site.own_names.contains(&known.name_key()) {
        return false;
    }
    !label.is_confusable_with(&known)
        || match label.unusual().cmp(&known.unusual()) {
            Ordering::Greater => true,
            Ordering::Equal => !site.has_own_name,
            Ordering::Less => false,
        }
}

/// Whether a publisher is known, compared with another site.
fn is_known_to(publisher: &PublisherFacts, other: &PublisherFacts) -> bool {
    let older_by_ms = other.first_seen_ms - publisher.first_seen_ms;
    let is_verified = publisher.is_verified && !other.is_verified && older_by_ms >= 0;
    publisher.capabilities >= KNOWN_CAPABILITIES_MIN && (is_verified || older_by_ms >= KNOWN_BEFORE_MS)
}

/// Whether two sites have at least half of their compared fingerprints in common. A few copied texts do not make a large site a sibling.
fn has_same_texts(one: &PublisherFacts, other: &PublisherFacts) -> bool {
    let is_there =
        |sketch: &&u64| other.sketches.iter().any(|of| (of ^ **sketch).count_ones() <= COPY_BITS_MAX);
    let same = one.sketches.iter().filter(is_there).count();
    same > 0 && same * 2 >= one.sketches.len().max(other.sketches.len())
}

/// Sites that belong together, by union-find.
#[derive(Default)]
struct Groups {
    parents: BTreeMap<u64, u64>,
}

impl Groups {
    fn root(&mut self, site: u64) -> u64 {
        let mut at = site;
        while let Some(parent) = self.parents.get(&at).copied().filter(|parent| *parent != at) {
            // Halving paths keeps them short.
            let above = self.parents.get(&parent).copied().unwrap_or(parent);
            self.parents.insert(at, above);
            at = above;
        }
        at
    }

    fn join(&mut self, one: u64, other: u64) {
        let (one, other) = (self.root(one), self.root(other));
        self.parents.insert(one, one);
        self.parents.insert(other, one);
    }

    /// The sites of each group, by its root.
    fn all(&mut self) -> BTreeMap<u64, Vec<u64>> {
        let sites: Vec<u64> = self.parents.keys().copied().collect();
        let mut groups: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
        for site in sites {
            groups.entry(self.root(site)).or_default().push(site);
        }
        groups
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(site: &str, first_seen_ms: i64, is_verified: bool) -> PublisherFacts {
        PublisherFacts {
            is_at_domain: true,
            customers: BTreeSet::new(),
            unread: 0,
            site: SiteName::parse(site).unwrap(),
            capabilities: KNOWN_CAPABILITIES_MIN,
            first_seen_ms,
            is_verified,
            own_names: BTreeSet::new(),
            has_own_name: true,
            listing: Listing::default(),
            listings: Vec::new(),
            links: BTreeSet::new(),
            links_of_service: BTreeSet::new(),
            sketches: BTreeSet::new(),
        }
    }

    /// Anyone can sign the documents of a site that imitates an older one.
    #[test]
    fn a_signature_does_not_make_a_site_known_to_an_older_one() {
        let signed = |at| facts("signed.example", at, true);
        let other = |at, is_verified| facts("other.example", at, is_verified);
        assert!(is_known_to(&signed(0), &other(0, false)) && is_known_to(&signed(0), &other(1, false)));
        assert!(!is_known_to(&signed(1), &other(0, false)));
        assert!(!is_known_to(&signed(0), &other(1, true)));
        assert!(is_known_to(&other(0, false), &signed(KNOWN_BEFORE_MS)));
        let small = PublisherFacts { capabilities: KNOWN_CAPABILITIES_MIN - 1, ..signed(0) };
        assert!(!is_known_to(&small, &other(KNOWN_BEFORE_MS, false)));
    }
}

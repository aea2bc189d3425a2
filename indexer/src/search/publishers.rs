//! The publishers of each segment. The data for finding sites that look alike, link to each other or list names is in memory; other facts
//! are read from a column.

use std::sync::Arc;

use manifest::{NamedBy, SiteName};
use rustc_hash::FxHashMap;
use tantivy::columnar::BytesColumn;
use tantivy::{DocId, SegmentReader};

use crate::index::{Fields, site_number};
use crate::lexicon::is_common_word;
use crate::spam::{Label, MANIFESTS_MAX, PublisherFacts};

/// A document counts as a list of names if most of its capabilities contain at least this many names of other publishers.
pub(super) const BRANDS_MIN: usize = 8;

/// Maximum number of sites whose facts are kept in memory while a commit is compared, about 2 KiB each.
const FACTS_KEPT_MAX: usize = 10_000;

/// The manifests of one segment that their sites name. Lists of pairs are sorted.
#[derive(Default)]
pub(super) struct SegmentPublishers {
    facts: Option<BytesColumn>,
    /// Hash of the site, whether the manifest is at another host than its domain, and the document that has the facts.
    manifests: Vec<(u64, (bool, DocId))>,
    /// Key of the name of a site, and the site. Common words are left out, because they do not identify a site.
    pub(super) names: Vec<(u32, u64)>,
    /// Keys of similar-looking names for the name of a site, and the site.
    pub(super) near: Vec<(u32, u64)>,
    /// A site, and a site that it links to.
    pub(super) links: Vec<(u64, u64)>,
    /// Sites with a manifest that may list names of others, and the keys of these names.
    pub(super) listed: Vec<(u64, Box<[u32]>)>,
}

/// The hash that identifies the site of a document.
pub(super) fn number_of(site: &SiteName) -> u64 {
    site_number(site.as_str(), NamedBy::Site)
}

/// The pairs of a sorted list that begin with a value.
pub(super) fn pairs_with<K: Ord + Copy, V>(pairs: &[(K, V)], key: K) -> &[(K, V)] {
    let first = pairs.partition_point(|(of, _)| *of < key);
    let pairs = pairs.get(first..).unwrap_or_default();
    let end = pairs.partition_point(|(of, _)| *of == key);
    pairs.get(..end).unwrap_or_default()
}

impl SegmentPublishers {
    pub(super) fn open(segment: &SegmentReader, fields: &Fields) -> tantivy::Result<Self> {
        let name = segment.schema().get_field_name(fields.site_facts);
        let Some(column) = segment.fast_fields().bytes(name)? else { return Ok(Self::default()) };
        let mut documents: Vec<(u64, DocId)> = Vec::new();
        for document in segment.doc_ids_alive() {
            documents.extend(column.term_ords(document).map(|ordinal| (ordinal, document)));
        }
        documents.sort_unstable();
        let mut ordinals: Vec<u64> = documents.iter().map(|(ordinal, _)| *ordinal).collect();
        ordinals.dedup();
        let (mut read, mut of_each) = (Self::default(), ordinals.iter());
        column.dictionary().sorted_ords_to_term_cb(&ordinals, |bytes| {
            let ordinal = of_each.next();
            if let (Some(ordinal), Ok(facts)) = (ordinal, serde_json::from_slice::<PublisherFacts>(bytes)) {
                let documents = pairs_with(&documents, *ordinal).iter().map(|(_, document)| *document);
                read.add(&facts, documents);
            }
        })?;
        read.facts = Some(column);
        read.sort();
        Ok(read)
    }

    fn add(&mut self, facts: &PublisherFacts, documents: impl Iterator<Item = DocId>) {
        let (site, label) = (number_of(&facts.site), Label::of(&facts.site));
        self.manifests.extend(documents.map(|document| (site, (!facts.is_at_domain, document))));
        if label.is_long() && !is_common_word(label.text()) {
            self.names.push((label.name_key(), site));
            self.near.extend(label.near_keys().into_iter().map(|key| (key, site)));
        }
        self.links.extend(facts.links.iter().map(|target| (site, number_of(target))));
        if facts.listing.names.len() >= BRANDS_MIN {
            self.listed.push((site, facts.listing.names.iter().copied().collect()));
        }
    }

    fn sort(&mut self) {
        self.manifests.sort_unstable();
        for pairs in [&mut self.names, &mut self.near] {
            pairs.sort_unstable();
            pairs.dedup();
            pairs.shrink_to_fit();
        }
        self.links.sort_unstable();
        self.links.dedup();
    }

    /// The facts of a document.
    fn facts(&self, document: DocId) -> tantivy::Result<Option<PublisherFacts>> {
        let Some(column) = &self.facts else { return Ok(None) };
        let Some(ordinal) = column.term_ords(document).next() else { return Ok(None) };
        let mut bytes = Vec::new();
        column.ord_to_bytes(ordinal, &mut bytes)?;
        Ok(serde_json::from_slice(&bytes).ok())
    }
}

/// The publishers of all segments of a commit.
pub(super) struct Publishers<'a> {
    pub(super) segments: Vec<(&'a SegmentReader, &'a SegmentPublishers)>,
    /// Facts of sites that were read.
    known: FxHashMap<u64, Option<Arc<PublisherFacts>>>,
}

impl<'a> Publishers<'a> {
    pub(super) fn new(segments: Vec<(&'a SegmentReader, &'a SegmentPublishers)>) -> Self {
        Self { segments, known: FxHashMap::default() }
    }

    /// The facts of all manifests of a site, up to a limit; `None` if the commit has none. If there are manifests at its domain, those at
    /// other hosts do not count, however many there are.
    pub(super) fn facts(&mut self, site: u64) -> tantivy::Result<Option<Arc<PublisherFacts>>> {
        if let Some(known) = self.known.get(&site) {
            return Ok(known.clone());
        }
        let mut found: Option<PublisherFacts> = None;
        let mut left = MANIFESTS_MAX;
        let both = [false, true]
            .into_iter()
            .flat_map(|elsewhere| self.segments.iter().map(move |of| (elsewhere, of)));
        for (elsewhere, (segment, publishers)) in both {
            if elsewhere && found.as_ref().is_some_and(|found| found.is_at_domain) {
                break;
            }
            let of_site = pairs_with(&publishers.manifests, site).iter().map(|(_, of)| *of);
            let documents = of_site.filter(|(is_elsewhere, _)| *is_elsewhere == elsewhere);
            for (_, document) in documents.filter(|(_, document)| !segment.is_deleted(*document)).take(left) {
                let Some(facts) = publishers.facts(document)? else { continue };
                left -= 1;
                match &mut found {
                    Some(found) => found.join(facts),
                    None => found = Some(facts),
                }
            }
        }
        if self.known.len() >= FACTS_KEPT_MAX {
            self.known.clear();
        }
        if left == 0
            && let Some(found) = &mut found
        {
            let all: usize = self.segments.iter().map(|(_, of)| pairs_with(&of.manifests, site).len()).sum();
            found.unread = all.saturating_sub(MANIFESTS_MAX);
        }
        let found = found.map(Arc::new);
        self.known.insert(site, found.clone());
        Ok(found)
    }

    /// The sites with a name.
    pub(super) fn named(&self, key: u32) -> impl Iterator<Item = u64> {
        self.segments.iter().flat_map(move |(_, of)| pairs_with(&of.names, key).iter().map(|(_, site)| *site))
    }

    /// Whether a site links to another, in a document that may be deleted.
    pub(super) fn has_link(&self, from: u64, to: u64) -> bool {
        self.segments.iter().any(|(_, of)| of.links.binary_search(&(from, to)).is_ok())
    }
}

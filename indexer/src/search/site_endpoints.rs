//! The agent endpoints that each site declares in the indexed documents that speak for it (`policy::naming::speaker`).

use std::sync::Arc;

use fixedbitset::FixedBitSet;
use manifest::Publisher;
use manifest::model::Protocol;
use rustc_hash::FxHashSet;
use tantivy::schema::{Field, IndexRecordOption};
use tantivy::{Searcher, SegmentReader, Term};

use super::columns::Columns;
use super::term_bits::{add, doc_id, empty};
use crate::agent_endpoints::AGENT_PROTOCOLS;
use crate::filter::FacetKey;
use crate::index::Fields;

/// Hashes of sites.
type Sites = FxHashSet<u64>;

pub(super) struct SiteEndpoints {
    /// For each protocol of [`AGENT_PROTOCOLS`], the sites that declare an endpoint of it.
    by_protocol: [Sites; AGENT_PROTOCOLS.len()],
    /// The sites that publish a document at their domain.
    with_own: Sites,
}

impl SiteEndpoints {
    /// Reads the postings of the protocols and of the publishers. Deleted documents are ignored.
    pub(super) fn of(
        searcher: &Searcher,
        fields: &Fields,
        columns: &[Arc<Columns>],
    ) -> tantivy::Result<Self> {
        let mut by_protocol: [Sites; AGENT_PROTOCOLS.len()] = Default::default();
        let mut of_hosts = by_protocol.clone();
        let mut with_own = Sites::default();
        for (segment, columns) in searcher.segment_readers().iter().zip(columns) {
            let published_by = |publisher: Publisher| with_term(segment, fields.speaker, publisher.as_str());
            let [own, of_host] = [published_by(Publisher::Site)?, published_by(Publisher::Host)?];
            with_own.extend(sites_of(&own, segment, columns));
            for (at, protocol) in AGENT_PROTOCOLS.iter().enumerate() {
                let declaring = with_term(segment, fields.facet(FacetKey::AgentEndpoint), protocol.as_str())?;
                for (sites, published) in [(&mut by_protocol[at], &own), (&mut of_hosts[at], &of_host)] {
                    let mut both = declaring.clone();
                    both.intersect_with(published);
                    sites.extend(sites_of(&both, segment, columns));
                }
            }
        }
        for (sites, of_hosts) in by_protocol.iter_mut().zip(&of_hosts) {
            sites.extend(of_hosts.difference(&with_own));
        }
        Ok(Self { by_protocol, with_own })
    }

    /// The protocols of a site, by the hash of its name.
    pub(super) fn of_site(&self, site: u64) -> impl Iterator<Item = Protocol> {
        let has =
            AGENT_PROTOCOLS.iter().zip(&self.by_protocol).filter(move |(_, sites)| sites.contains(&site));
        has.map(|(protocol, _)| *protocol)
    }

    /// Whether a site publishes a document at its domain. If not, documents at its other hosts speak for it.
    pub(super) fn has_own_document(&self, site: u64) -> bool {
        self.with_own.contains(&site)
    }
}

/// The documents of a segment with a term, including deleted ones.
fn with_term(segment: &SegmentReader, field: Field, text: &str) -> tantivy::Result<FixedBitSet> {
    let term = Term::from_field_text(field, text);
    let postings = segment.inverted_index(field)?.read_block_postings(&term, IndexRecordOption::Basic)?;
    let mut found = empty(segment);
    if let Some(postings) = postings {
        add(&mut found, postings);
    }
    Ok(found)
}

/// The sites of the documents that are not deleted.
fn sites_of<'a>(
    documents: &'a FixedBitSet,
    segment: &'a SegmentReader,
    columns: &'a Columns,
) -> impl Iterator<Item = u64> + 'a {
    let indexed = documents.ones().map(doc_id).filter(|document| !segment.is_deleted(*document));
    indexed.filter_map(|document| Some(columns.traits(document)?.site))
}

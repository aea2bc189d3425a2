//! The agent endpoints of documents: those that their site declares in documents at its domain, and those that a document at another host
//! itself declares. Such a host may belong to a customer, so it declares nothing for its site.

use std::sync::Arc;

use fixedbitset::FixedBitSet;
use manifest::Publisher;
use manifest::model::Protocol;
use rustc_hash::FxHashSet;
use tantivy::schema::{Field, IndexRecordOption};
use tantivy::{DocAddress, Searcher, SegmentReader, Term};

use super::columns::Columns;
use super::term_bits::{add, doc_id, empty};
use crate::agent_endpoints::AGENT_PROTOCOLS;
use crate::filter::FacetKey;
use crate::index::Fields;

/// Hashes of sites.
type Sites = FxHashSet<u64>;
/// A value for each protocol of [`AGENT_PROTOCOLS`].
type ByProtocol<T> = [T; AGENT_PROTOCOLS.len()];

pub(super) struct SiteEndpoints {
    /// The sites that declare an endpoint at their domain.
    sites: Arc<ByProtocol<Sites>>,
    /// The documents of each segment that declare an endpoint at another host.
    at_hosts: Vec<ByProtocol<FixedBitSet>>,
}

impl SiteEndpoints {
    /// Reads the postings of the protocols and of the publishers. Deleted documents declare nothing for their site.
    pub(super) fn of(
        searcher: &Searcher,
        fields: &Fields,
        columns: &[Arc<Columns>],
    ) -> tantivy::Result<Self> {
        let mut sites = ByProtocol::<Sites>::default();
        for (segment, columns) in searcher.segment_readers().iter().zip(columns) {
            let at_domains = declared_by(segment, fields, Publisher::Site)?;
            for (at_domain, sites) in at_domains.iter().zip(&mut sites) {
                sites.extend(sites_of(at_domain, segment, columns));
            }
        }
        Ok(Self { sites: Arc::new(sites), at_hosts: at_hosts(searcher, fields)? })
    }

    /// The endpoints of other documents of the same sites.
    #[cfg(feature = "cluster")]
    pub(super) fn of_other_documents(&self, searcher: &Searcher, fields: &Fields) -> tantivy::Result<Self> {
        Ok(Self { sites: Arc::clone(&self.sites), at_hosts: at_hosts(searcher, fields)? })
    }

    /// The protocols of a document of a site, which is named by the hash of its name.
    pub(super) fn of_document(&self, at: DocAddress, site: u64) -> impl Iterator<Item = Protocol> {
        let at_hosts = self.at_hosts.get(at.segment_ord as usize);
        let declares = move |protocol: usize| {
            at_hosts.is_some_and(|at_hosts| at_hosts[protocol].contains(at.doc_id as usize))
        };
        let all = AGENT_PROTOCOLS.iter().zip(&*self.sites).enumerate();
        let found = all.filter(move |(index, (_, sites))| sites.contains(&site) || declares(*index));
        found.map(|(_, (protocol, _))| *protocol)
    }
}

/// The documents of each segment that declare an endpoint at another host than their domain.
fn at_hosts(searcher: &Searcher, fields: &Fields) -> tantivy::Result<Vec<ByProtocol<FixedBitSet>>> {
    let segments = searcher.segment_readers().iter();
    segments.map(|segment| declared_by(segment, fields, Publisher::Host)).collect()
}

/// The documents of a segment that declare an endpoint and have this publisher, including deleted ones.
fn declared_by(
    segment: &SegmentReader,
    fields: &Fields,
    publisher: Publisher,
) -> tantivy::Result<ByProtocol<FixedBitSet>> {
    let of_publisher = with_term(segment, fields.speaker, publisher.as_str())?;
    let mut found = ByProtocol::<FixedBitSet>::default();
    for (protocol, found) in AGENT_PROTOCOLS.iter().zip(&mut found) {
        *found = with_term(segment, fields.facet(FacetKey::AgentEndpoint), protocol.as_str())?;
        found.intersect_with(&of_publisher);
    }
    Ok(found)
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

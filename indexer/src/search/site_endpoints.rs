//! The agent endpoints that each site declares in its indexed documents.

use std::sync::Arc;

use manifest::model::Protocol;
use rustc_hash::FxHashSet;
use tantivy::schema::IndexRecordOption;
use tantivy::{DocSet, Searcher, TERMINATED, Term};

use super::columns::Columns;
use crate::agent_endpoints::AGENT_PROTOCOLS;
use crate::filter::FacetKey;
use crate::index::Fields;

/// For each protocol of [`AGENT_PROTOCOLS`], hashes of the sites that declare an endpoint of it.
pub(super) struct SiteEndpoints([FxHashSet<u64>; AGENT_PROTOCOLS.len()]);

impl SiteEndpoints {
    /// Reads the postings of the protocols. Deleted documents are ignored.
    pub(super) fn of(
        searcher: &Searcher,
        fields: &Fields,
        columns: &[Arc<Columns>],
    ) -> tantivy::Result<Self> {
        let field = fields.facet(FacetKey::AgentEndpoint);
        let mut sites: [FxHashSet<u64>; AGENT_PROTOCOLS.len()] = Default::default();
        for (segment, columns) in searcher.segment_readers().iter().zip(columns) {
            let inverted = segment.inverted_index(field)?;
            for (protocol, sites) in AGENT_PROTOCOLS.iter().zip(&mut sites) {
                let term = Term::from_field_text(field, protocol.as_str());
                let Some(mut postings) = inverted.read_postings(&term, IndexRecordOption::Basic)? else {
                    continue;
                };
                let mut document = postings.doc();
                while document != TERMINATED {
                    let traits = columns.traits(document).filter(|_| !segment.is_deleted(document));
                    sites.extend(traits.map(|traits| traits.site));
                    document = postings.advance();
                }
            }
        }
        Ok(Self(sites))
    }

    /// The protocols of a site, by the hash of its name.
    pub(super) fn of_site(&self, site: u64) -> impl Iterator<Item = Protocol> {
        let has = AGENT_PROTOCOLS.iter().zip(&self.0).filter(move |(_, sites)| sites.contains(&site));
        has.map(|(protocol, _)| *protocol)
    }
}

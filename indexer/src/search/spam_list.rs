//! The causes of a document's spam, and the list of spam sites for operators.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use tantivy::{DocAddress, DocId};

use super::opened::OpenedIndex;
use super::rows;
use crate::answer::{SpamCause, SpamSite};
use crate::error::IndexError;
use crate::spam::SpamReason;

/// Maximum number of listed sites with spam in their own documents. The name of each has to be read from a row.
const SITES_MAX: usize = 1_000;

/// Why a document is spam; empty for others.
pub(super) fn causes(opened: &OpenedIndex, address: DocAddress) -> Vec<SpamCause> {
    let Some(columns) = opened.columns.get(address.segment_ord as usize) else { return Vec::new() };
    let own = SpamReason::of_bits(columns.spam_bits(address.doc_id));
    let own = own.map(|reason| SpamCause { reason, of: None });
    let site = columns.traits(address.doc_id).map_or(0, |traits| traits.site);
    own.chain(opened.spam_sites.causes(site).iter().cloned()).collect()
}

/// The spam sites, sorted by name, at most `max`. The time grows with the number of spam documents.
pub(super) fn list(opened: &OpenedIndex, max: usize) -> Result<Vec<SpamSite>, IndexError> {
    let mut sites = BTreeMap::new();
    for (site, causes) in opened.spam_sites.all() {
        let spam = SpamSite { site: site.clone(), causes: causes.to_vec(), capabilities: 0 };
        sites.insert(site.to_string(), spam);
    }
    for (bits, count, address) in own_spam(opened).into_values() {
        let site = rows::row(opened, address)?.site;
        let of_site = || SpamSite { site: site.clone(), causes: Vec::new(), capabilities: 0 };
        let spam = sites.entry(site.to_string()).or_insert_with(of_site);
        spam.capabilities += count;
        spam.causes.extend(SpamReason::of_bits(bits).map(|reason| SpamCause { reason, of: None }));
    }
    Ok(sites.into_values().take(max).collect())
}

/// The spam of each site, by its number: the bits of the reasons, the number of documents, and the first of them.
fn own_spam(opened: &OpenedIndex) -> FxHashMap<u64, (u64, u64, DocAddress)> {
    let mut sites: FxHashMap<u64, (u64, u64, DocAddress)> = FxHashMap::default();
    for ((segment, columns), ordinal) in opened.segments().zip(0..) {
        let documents = columns.spam_documents.ones().filter_map(|document| DocId::try_from(document).ok());
        for document in documents.filter(|document| !segment.is_deleted(*document)) {
            let Some(traits) = columns.traits(document) else { continue };
            if sites.len() >= SITES_MAX && !sites.contains_key(&traits.site) {
                continue;
            }
            let first = || (0, 0, DocAddress::new(ordinal, document));
            let (bits, count, _) = sites.entry(traits.site).or_insert_with(first);
            *bits |= columns.spam_bits(document);
            *count += 1;
        }
    }
    sites
}

//! Lists the capabilities of the index, without a request.

use std::collections::HashSet;

use chrono::{DateTime, Utc};
use manifest::{CapabilityId, NamedBy};
use tantivy::schema::IndexRecordOption;
use tantivy::{DocAddress, DocSet as _, TERMINATED};

use super::opened::OpenedIndex;
use crate::error::IndexError;
use crate::index::site_number;

/// A capability of the index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedCapability {
    pub id: CapabilityId,
    /// When its manifest changed.
    pub updated_at: Option<DateTime<Utc>>,
}

/// The capabilities that are not spam and not of the sites `without`, at most `max`, in the order of their ids within each segment. Reads only
/// the dictionary of the ids and two columns.
pub(super) fn list(
    opened: &OpenedIndex,
    max: usize,
    without: &[String],
) -> Result<Vec<ListedCapability>, IndexError> {
    read(opened, max, without).map_err(IndexError::engine("list the capabilities"))
}

fn read(opened: &OpenedIndex, max: usize, without: &[String]) -> tantivy::Result<Vec<ListedCapability>> {
    let numbers =
        |site: &String| [NamedBy::Site, NamedBy::Others].map(|named_by| site_number(site, named_by));
    let without: HashSet<u64> = without.iter().flat_map(numbers).collect();
    let mut listed = Vec::new();
    for (segment, ordinal) in opened.searcher.segment_readers().iter().zip(0..) {
        let inverted = segment.inverted_index(opened.fields.id)?;
        let fast = segment.fast_fields();
        let (updated_ms, site) = (fast.i64("updated_ms")?, fast.u64("site_number")?);
        let mut ids = inverted.terms().stream()?;
        while listed.len() < max && ids.advance() {
            let id = std::str::from_utf8(ids.key()).ok().and_then(|id| CapabilityId::parse(id).ok());
            let Some(id) = id else { continue };
            let mut postings = inverted.read_postings_from_terminfo(ids.value(), IndexRecordOption::Basic)?;
            while postings.doc() != TERMINATED && segment.is_deleted(postings.doc()) {
                postings.advance();
            }
            let document = postings.doc();
            if document == TERMINATED || opened.is_spam(DocAddress::new(ordinal, document)) {
                continue;
            }
            if site.first(document).is_some_and(|site| without.contains(&site)) {
                continue;
            }
            let updated_at = updated_ms.first(document).and_then(DateTime::from_timestamp_millis);
            listed.push(ListedCapability { id, updated_at });
        }
    }
    Ok(listed)
}

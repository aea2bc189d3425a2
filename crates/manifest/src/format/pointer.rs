//! A document that only says where others are: its addresses become links to follow once.

use crate::draft::{self, Draft};
use crate::format::addresses;
use crate::model::{Follow, Link};
use crate::object::Object;

/// Every address becomes a link; the capabilities belong to where it leads.
pub(crate) fn read(root: &Object<'_>, draft: &mut Draft<'_>) {
    draft.manifest.name = draft::name(root.text_of(&["name", "title"]));
    draft.manifest.description = draft::description(root.text("description"));
    for key in root.map.keys() {
        if root.text(key).is_some_and(addresses::leads_to_manifest) {
            let url = draft.document_url(root, key);
            draft.manifest.links.extend(url.map(|url| Link::new(key, url, Some(Follow::Manifest))));
        }
    }
}

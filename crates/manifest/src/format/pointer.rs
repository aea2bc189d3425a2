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
        let Some(published) = root.text(key).filter(|text| addresses::leads_to_manifest(text)) else {
            continue;
        };
        let Some(address) = draft.on_document(published, &root.at(key)) else { continue };
        draft.manifest.links.push(Link {
            rel: key.clone(),
            url: address.into_string(),
            media_type: None,
            title: None,
            follow: Some(Follow::Manifest),
        });
    }
}

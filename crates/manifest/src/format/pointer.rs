//! A document that contains only addresses of other documents, which become links.

use crate::draft::{self, Draft};
use crate::format::addresses;
use crate::model::{Follow, Link};
use crate::object::Object;

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

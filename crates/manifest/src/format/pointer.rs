//! A document that declares nothing to call, but contains addresses of other documents and of servers.
//!
//! Documents at the root become links here; all other addresses are read as those of any document without a specification.

use crate::draft::Draft;
use crate::format::{addresses, header, outbound};
use crate::model::{Follow, Link};
use crate::object::Object;

pub(crate) fn read(root: &Object<'_>, draft: &mut Draft<'_>) {
    header::describe(root, draft);
    for key in root.map.keys() {
        if !outbound::is_about_calls(key) && root.text(key).is_some_and(addresses::leads_to_manifest) {
            let url = draft.document_url(root, key);
            draft.keep_all(url.map(|url| Link::new(key, url, Some(Follow::Manifest))));
        }
    }
}

//! Documents that declare no calls. They contain addresses of other documents and of servers, or state the provider of a service and how to
//! authenticate.
//!
//! Documents at the root become links here; all other addresses are read as in any document without a specification.

use crate::document::Body;
use crate::draft::Draft;
use crate::format::generic::access;
use crate::format::{addresses, header, oauth, outbound};
use crate::model::{Follow, Link};
use crate::object::Object;
use crate::text;

pub(crate) fn read(root: &Object<'_>, draft: &mut Draft<'_>) {
    describe(root, draft);
    for key in root.map.keys() {
        if !outbound::is_about_calls(key) && root.text(key).is_some_and(addresses::leads_to_manifest) {
            let url = draft.document_url(root, key);
            let follow = (!is_of_contents(key)).then_some(Follow::Manifest);
            draft.keep_all(url.map(|url| Link::new(key, url, follow)));
        }
    }
}

/// Whether a member contains the address of content of the site, not of a declaration: `data`, `product_feed`.
fn is_of_contents(key: &str) -> bool {
    let words = [
        "data",
        "dataset",
        "datasets",
        "feed",
        "feeds",
        "products",
        "schema",
        "sitemap",
        "robots",
        "humans",
        "security",
        "changelog",
        "license",
    ];
    let mut found = false;
    text::each_word(key, |word| found |= words.contains(&word));
    found
}

/// Reads the members about the service, in a document without an address of a declaration.
pub(crate) fn read_opaque(body: &Body<'_>, draft: &mut Draft<'_>) {
    if let Some(root) = body.root() {
        describe(&root, draft);
    }
}

fn describe(root: &Object<'_>, draft: &mut Draft<'_>) {
    header::describe(root, draft);
    access::read_auth(root, draft);
    oauth::read(root, draft);
}

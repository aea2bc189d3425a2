//! Who declares a document, in words: a host below a domain may belong to a customer, and users of a site may write files on it.

use manifest::{Host, Publisher, SiteName};

/// A phrase that names the author of a document at `host`: the site only if it publishes the document itself.
pub(crate) fn declared_by(publisher: Publisher, host: &Host, site: &SiteName) -> String {
    match publisher {
        Publisher::Site => format!("declared by {site}"),
        Publisher::Host => format!("declared at {host}, a host below {site}"),
        Publisher::Unknown => format!("declared in a file at {host} whose author is unknown"),
    }
}

//! The sitemap: the pages that search engines may list (sitemaps.org 0.9). These are the pages that always exist, and the pages of sites with
//! manifests and of capabilities.

use std::fmt::Write as _;

use chrono::{DateTime, Utc};
use indexer::ListedCapability;

use super::sites::SiteLine;
use crate::xml::escaped;

/// Maximum number of addresses in one file (sitemaps.org).
pub(crate) const ADDRESSES_MAX: usize = 50_000;
const PAGES: [&str; 7] = ["/", "/semantic-types", "/sites", "/changes", "/stats", "/validate", "/docs"];

/// The file. Capabilities beyond the maximum are left out.
pub(crate) fn body(base: &str, sites: &[SiteLine], capabilities: &[ListedCapability]) -> String {
    let pages = PAGES.iter().map(|path| ((*path).to_owned(), None));
    let of_sites = sites.iter().map(|line| (format!("/sites/{}", line.site), line.last_visit_at));
    let of_capabilities =
        capabilities.iter().map(|listed| (format!("/capabilities/{}", listed.id), listed.updated_at));
    let base = escaped(base);
    let mut body = String::from(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\">\n",
    );
    for (path, changed_at) in pages.chain(of_sites).chain(of_capabilities).take(ADDRESSES_MAX) {
        body.push_str(&entry(&base, &path, changed_at));
    }
    body.push_str("</urlset>\n");
    body
}

fn entry(base: &str, path: &str, changed_at: Option<DateTime<Utc>>) -> String {
    let mut entry = format!("<url><loc>{base}{path}</loc>");
    if let Some(at) = changed_at {
        let written = write!(entry, "<lastmod>{}</lastmod>", at.format("%Y-%m-%d"));
        debug_assert!(written.is_ok(), "a String takes any text");
    }
    entry.push_str("</url>\n");
    entry
}

#[cfg(test)]
mod tests {
    use manifest::CapabilityId;

    use super::*;

    #[test]
    fn a_sitemap_has_at_most_fifty_thousand_addresses() {
        let listed = |number: usize| ListedCapability {
            id: CapabilityId::of_key(&number.to_string()),
            updated_at: Some(DateTime::UNIX_EPOCH),
        };
        let capabilities: Vec<ListedCapability> = (0..ADDRESSES_MAX).map(listed).collect();
        let text = body("https://agentdex.example", &[], &capabilities);
        assert_eq!(text.matches("<url>").count(), ADDRESSES_MAX);
        let first = format!(
            "<url><loc>https://agentdex.example/capabilities/{}</loc><lastmod>1970-01-01</lastmod></url>\n",
            capabilities[0].id
        );
        assert!(text.contains(&first), "{text:.2000}");
    }
}

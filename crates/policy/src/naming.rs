//! Decides whether a site itself names a document at one of its URLs.
//!
//! Sites may serve files of their users: raw files of repositories, attachments of a wiki. Others can link to such a file and
//! submit it. It is read as a document of the site, but the site does not stand for it, so what it declares must not
//! become part of what the site declares.

use std::collections::HashMap;

use manifest::{Discovery, ManifestUrl};

use crate::plan;

/// Links that are followed back from a document. Catalogs name catalogs, in practice two or three deep.
const LINKS_MAX: usize = 16;

/// How a document was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundBy {
    pub discovery: Discovery,
    /// The document that links to it, of any site.
    pub linked_from: Option<ManifestUrl>,
}

/// Who named a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Naming {
    Site,
    Others,
    /// Whoever names this document.
    LikeThis,
}

/// Whether a site names the document at `url` itself: by a usual path, in robots.txt, DNS or its home page, or in a document
/// that it names. A list of the operator names documents too. `found` has the documents of the site.
pub fn is_named_by_site(url: &ManifestUrl, found: &HashMap<ManifestUrl, FoundBy>) -> bool {
    let mut current = url;
    for _ in 0..LINKS_MAX {
        if is_usual(current) {
            return true;
        }
        let Some(found_by) = found.get(current) else { return false };
        match (naming(url, found_by), &found_by.linked_from) {
            (Naming::LikeThis, Some(from)) => current = from,
            (naming, _) => return naming == Naming::Site,
        }
    }
    false
}

fn naming(url: &ManifestUrl, found_by: &FoundBy) -> Naming {
    let from = found_by.linked_from.as_ref();
    let is_of_other_site = from.is_some_and(|from| from.site() != url.site());
    match (found_by.discovery, from) {
        (Discovery::Listed, _) => Naming::Site,
        _ if is_of_other_site => Naming::Others,
        (Discovery::WellKnown | Discovery::Root, _)
        | (Discovery::Agentmap | Discovery::Dns | Discovery::HtmlLink | Discovery::LinkHeader, Some(_)) => {
            Naming::Site
        }
        // A document that was linked may be submitted as well.
        (Discovery::CatalogEntry | Discovery::Pointer | Discovery::Submitted, Some(_)) => Naming::LikeThis,
        // Submitted, or the source of the link was too long to be kept.
        _ => Naming::Others,
    }
}

/// Whether only the host itself publishes at a URL: below `/.well-known/`, or at a path that is requested without a link.
pub fn is_usual(url: &ManifestUrl) -> bool {
    url.is_well_known() || plan::find(&url.path_and_query()).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> ManifestUrl {
        ManifestUrl::parse(text).unwrap()
    }

    fn is_named(found: &[(&str, Discovery, Option<&str>)], asked: &str) -> bool {
        let found_by = |(at, discovery, from): &(&str, Discovery, Option<&str>)| {
            (url(at), FoundBy { discovery: *discovery, linked_from: from.map(url) })
        };
        is_named_by_site(&url(asked), &found.iter().map(found_by).collect())
    }

    #[test]
    fn a_site_names_documents_at_usual_paths_and_those_that_they_link_to() {
        let other = Some("https://other.example/");
        for path in ["/agent.json", "/.well-known/mcp.json", "/.well-known/a/b.json"] {
            let at = format!("https://a.example{path}");
            let found = [(at.as_str(), Discovery::CatalogEntry, other)];
            assert!(is_named(&found, &at), "{path}, whoever links to it");
        }
        let (catalog, page) = ("https://a.example/.well-known/ard.json", "https://www.a.example/en/");
        let (one, two) = ("https://a.example/x/one.json", "https://a.example/x/two.json");
        for (discovery, from) in [
            (Discovery::CatalogEntry, catalog),
            (Discovery::Pointer, catalog),
            (Discovery::Submitted, catalog),
            (Discovery::HtmlLink, page),
            (Discovery::Agentmap, two),
        ] {
            let chain = [(one, discovery, Some(from)), (two, Discovery::CatalogEntry, Some(one))];
            assert!(is_named(&chain, one) && is_named(&chain, two), "{discovery}");
        }
        assert!(is_named(&[(one, Discovery::Listed, None)], one), "the operator names it");
    }

    #[test]
    fn what_others_name_does_not_become_the_sites_own_by_links_of_its_own() {
        let (one, two) = ("https://a.example/u/one.json", "https://a.example/u/two.json");
        for (discovery, from) in [
            (Discovery::CatalogEntry, Some("https://evil.example/")),
            (Discovery::Submitted, None),
            (Discovery::CatalogEntry, None),
            (Discovery::CatalogEntry, Some("https://a.example/u/not-found.json")),
            (Discovery::CatalogEntry, Some(two)),
        ] {
            let chain = [(one, discovery, from), (two, Discovery::CatalogEntry, Some(one))];
            assert!(!is_named(&chain, one) && !is_named(&chain, two), "{discovery} {from:?}");
        }
        assert!(!is_named(&[], one));
        for odd in ["/.well-known/..%2Fu/one.json", "/.well-known/x?file=u/one.json"] {
            assert!(!is_named(&[], &format!("https://a.example{odd}")), "{odd}");
        }
    }
}

//! The folder of a service that shares its host with others.

use url::Url;

use super::element::BASE_BYTES_MAX;
use crate::name::{ManifestUrl, parse_url};
use crate::object::{Keys, Object};

/// Members with the address of a service's home page.
const HOME_KEYS: Keys = Keys::of(&["homepage", "home", "url", "website", "site_url", "siteUrl"]);

/// The folder that a document names as the home of its service, if the document is below it.
pub(crate) fn folder_of(root: &Object<'_>, document: &ManifestUrl) -> Option<Url> {
    let homes = HOME_KEYS
        .within(root)
        .iter()
        .filter_map(|key| root.text(key))
        .filter(|home| home.len() <= BASE_BYTES_MAX);
    homes.filter_map(|home| parse_url(home).ok()).find(|home| {
        let folder = home.path().trim_end_matches('/');
        let below = document.path().strip_prefix(folder);
        !folder.is_empty()
            && !folder.contains("/.well-known")
            && home.origin() == document.as_url().origin()
            && below.is_some_and(|below| below.starts_with('/'))
    })
}

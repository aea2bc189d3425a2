//! The names by which a capability and its site are known. Only a document that the site itself publishes gets the names of its site.

use std::collections::BTreeSet;

use manifest::{NamedBy, Publisher};
use policy::naming::may_speak;
use store::StoredManifest;

use super::super::forward::hash;
use crate::analysis::{fold_exact, is_stop_word, words};
use crate::filter::FilterSource;
use crate::named_host::named_host;

/// Maximum number of words of a manifest's name that are used as the name of the site; longer names are slogans.
const SITE_WORDS_MAX: usize = 10;

/// The number of a site for ranking. Documents that only others name have a separate number, so they do not affect the scores of the site,
/// do not count towards its share of results, and do not represent it in a group.
pub(crate) fn site_number(site: &str, named_by: NamedBy) -> u64 {
    match named_by {
        NamedBy::Site => hash(site),
        // The name of a site contains no space, so this cannot be the hash of another site.
        NamedBy::Others => hash(&format!("{site} {named_by}")),
    }
}

/// Ids, keys and names that match a capability exactly. Documents that only others name, and files of unknown authors, may have any name,
/// even the name of the site or its servers, so only their id, key and minted identifier match. A document of the owner of a host has the
/// name of that host, not that of the site.
pub(in crate::index) fn exact_names(source: &FilterSource<'_>) -> BTreeSet<String> {
    let mut exact = BTreeSet::from([source.id.as_str().to_owned(), source.key.to_lowercase()]);
    if source.named_by == NamedBy::Others {
        return exact;
    }
    // in a file of an unknown author, the identifier is minted
    exact.insert(source.urn.to_lowercase());
    if !may_speak(source.named_by, source.published_by) {
        return exact;
    }
    // an id that is written like a host is no name of that host
    let native_id = source.native_id.to_lowercase();
    exact.extend(Some(native_id).filter(|id| named_host(id).is_none()));
    exact.extend([
        source.url.host().as_str().to_owned(),
        fold_exact(source.name),
        fold_exact(source.native_id),
    ]);
    exact.extend((source.published_by == Publisher::Site).then(|| source.url.site().as_str().to_owned()));
    exact.extend(source.title.map(fold_exact));
    exact.extend(source.manifest_name.map(fold_exact));
    exact.remove("");
    exact
}

/// The name of the site: words of the manifest's and the provider's name, unless it is a host of another site, and the label of the domain
/// if the site or the owner of one of its hosts publishes the manifest.
pub(super) fn site_words(stored: &StoredManifest) -> Vec<String> {
    let manifest = &stored.manifest;
    let site = manifest.url.site();
    let label = site.as_str().split('.').next().unwrap_or_default();
    let label = Some(label).filter(|_| may_speak(stored.named_by, stored.publisher));
    let names =
        [manifest.title.as_deref(), manifest.name.as_deref(), manifest.provider.name.as_deref(), label];
    let mut found: Vec<String> = Vec::new();
    let is_of_other = |name: &&str| named_host(&name.to_lowercase()).is_some_and(|host| host.site() != site);
    for name in names.into_iter().flatten().filter(|name| !is_of_other(name)) {
        for word in words(name).take(SITE_WORDS_MAX).filter(|word| !is_stop_word(&word.text)) {
            if !found.contains(&word.text) {
                found.push(word.text);
            }
        }
    }
    found
}

/// An identifier without its scheme, whose words say nothing about a capability: `urn:air:`, `did:web:`, `https://`. A search for the whole
/// identifier matches it in the field `exact`.
pub(super) fn without_scheme(text: &str) -> &str {
    let is_scheme = |text: &&str| text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    let Some((scheme, rest)) = text.split_once(':') else { return text };
    if scheme.eq_ignore_ascii_case("urn") || scheme.eq_ignore_ascii_case("did") {
        return rest.split_once(':').filter(|(space, _)| is_scheme(space)).map_or(text, |(_, name)| name);
    }
    rest.strip_prefix("//").filter(|_| is_scheme(&scheme)).unwrap_or(text)
}

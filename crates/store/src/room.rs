//! Limits on what a site has in the index. Anybody can have documents at a site that takes in those of users, and any site can link to
//! any number of them, so that what the site itself does not name has a limit of its own.

use std::collections::{BTreeMap, HashMap};

use manifest::{ManifestId, NamedBy};
use policy::FetchOutcome;
use policy::naming::SiteNaming;

use crate::known::Known;
use crate::model::FetchRecord;

/// Manifests of a site in the index that the site itself does not name.
const MANIFESTS_OF_OTHERS_MAX: usize = 500;
/// Stored bytes of these, models and documents together, with the documents that complete them.
const BYTES_OF_OTHERS_MAX: u64 = 256 * 1024 * 1024;
/// Stored bytes of those that the site names.
const BYTES_OF_SITE_MAX: u64 = 1024 * 1024 * 1024;

/// Why there is no room for a document.
const TOO_MANY: &str = "the site has 500 manifests that it does not name itself";
const TOO_MANY_BYTES_OF_OTHERS: &str = "the documents that the site does not name itself take 256 MiB";
const TOO_MANY_BYTES: &str = "the documents of the site take 1 GiB";

/// What a site has in the index, of one kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Share {
    manifests: usize,
    bytes: u64,
}

#[derive(Debug, Default)]
struct Room {
    of_site: Share,
    of_others: Share,
}

impl Room {
    /// The room that is taken before a visit, as the site names its documents after it.
    fn taken(known: &Known, naming: &SiteNaming) -> Self {
        let mut room = Self::default();
        for (id, bytes) in &known.bytes {
            room.share(naming_of(known, naming, id)).bytes += bytes;
        }
        for (id, _) in known.manifests.iter().filter(|(_, manifest)| manifest.in_index) {
            room.share(naming_of(known, naming, id)).manifests += 1;
        }
        room
    }

    const fn share(&mut self, named_by: NamedBy) -> &mut Share {
        match named_by {
            NamedBy::Site => &mut self.of_site,
            NamedBy::Others => &mut self.of_others,
        }
    }

    /// Takes room for a document, or says why there is none. What takes no more bytes than before always has room.
    fn take(&mut self, named_by: NamedBy, added: Share) -> Result<(), &'static str> {
        let share = self.share(named_by);
        let after = Share {
            manifests: share.manifests + added.manifests,
            bytes: share.bytes.saturating_add(added.bytes),
        };
        match named_by {
            _ if added == Share::default() => {}
            NamedBy::Site if after.bytes > BYTES_OF_SITE_MAX => return Err(TOO_MANY_BYTES),
            NamedBy::Others if added.manifests > 0 && after.manifests > MANIFESTS_OF_OTHERS_MAX => {
                return Err(TOO_MANY);
            }
            NamedBy::Others if after.bytes > BYTES_OF_OTHERS_MAX => return Err(TOO_MANY_BYTES_OF_OTHERS),
            _ => {}
        }
        *share = after;
        Ok(())
    }
}

fn naming_of(known: &Known, naming: &SiteNaming, id: &ManifestId) -> NamedBy {
    known.resources.get(id).map_or(NamedBy::Others, |resource| naming.named_by(&resource.url))
}

/// The documents of a visit for which its site has no room, with the reason. Those that the site has already come first, so that others
/// do not keep out their changes. `stored_bytes` is what storing a document takes.
pub(crate) fn refused(
    read: &BTreeMap<ManifestId, &FetchRecord>,
    known: &Known,
    naming: &SiteNaming,
    stored_bytes: &dyn Fn(&ManifestId) -> usize,
) -> HashMap<ManifestId, &'static str> {
    let is_in_index = |id: &ManifestId| known.manifests.get(id).is_some_and(|manifest| manifest.in_index);
    let is_unchanged = |id: &ManifestId, fetch: &FetchRecord| {
        is_in_index(id)
            && known.manifests.get(id).map(|manifest| &manifest.hash) == fetch.content_hash.as_ref()
    };
    let is_stored = |fetch: &FetchRecord| {
        fetch.manifest.is_some() || fetch.outcome == FetchOutcome::Found && fetch.content_hash.is_some()
    };
    let stored = read.iter().filter(|(id, fetch)| is_stored(fetch) && !is_unchanged(id, fetch));
    let (first, last): (Vec<_>, Vec<_>) = stored.partition(|(id, _)| known.bytes.contains_key(*id));
    let mut refused = HashMap::new();
    if first.is_empty() && last.is_empty() {
        return refused;
    }
    let mut room = Room::taken(known, naming);
    for (id, fetch) in first.into_iter().chain(last) {
        let before = known.bytes.get(id).copied().unwrap_or_default();
        let is_new = fetch.manifest.is_some() && !is_in_index(id);
        let bytes = (stored_bytes(id) as u64).saturating_sub(before);
        let added = Share { manifests: usize::from(is_new), bytes };
        if let Err(reason) = room.take(naming.named_by(&fetch.url), added) {
            refused.insert(id.clone(), reason);
        }
    }
    refused
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOTHING: Share = Share { manifests: 0, bytes: 0 };

    #[test]
    fn what_others_name_has_a_limit_of_its_own() {
        let one = Share { manifests: 1, bytes: 0 };
        let mut room = Room::default();
        for _ in 0..MANIFESTS_OF_OTHERS_MAX {
            assert_eq!(room.take(NamedBy::Others, one), Ok(()));
        }
        assert_eq!(room.take(NamedBy::Others, one), Err(TOO_MANY));
        assert_eq!(
            room.take(NamedBy::Others, Share { manifests: 0, bytes: 9 }),
            Ok(()),
            "a change of one of them"
        );
        for _ in 0..2 * MANIFESTS_OF_OTHERS_MAX {
            assert_eq!(room.take(NamedBy::Site, one), Ok(()));
        }
    }

    #[test]
    fn bytes_are_bounded_for_the_site_and_for_others() {
        for (named_by, max, reason) in [
            (NamedBy::Site, BYTES_OF_SITE_MAX, TOO_MANY_BYTES),
            (NamedBy::Others, BYTES_OF_OTHERS_MAX, TOO_MANY_BYTES_OF_OTHERS),
        ] {
            let bytes = |bytes| Share { manifests: 1, bytes };
            let mut room = Room::default();
            assert_eq!(room.take(named_by, bytes(max)), Ok(()));
            assert_eq!(room.take(named_by, bytes(1)), Err(reason));
            assert_eq!(room.take(named_by, NOTHING), Ok(()), "it takes no more than before");
        }
    }
}

//! Limits on what a site has in the index. Anybody can have documents at a site that takes in those of users, and any site can link to
//! any number of them, so that what the site itself does not name has a limit of its own.

use std::collections::{BTreeMap, HashMap};

use manifest::{Host, ManifestId, ManifestUrl};
use policy::FetchOutcome;
use policy::naming::SiteNaming;

use crate::known::Known;
use crate::model::FetchRecord;

const MIB: u64 = 1024 * 1024;
/// Stored bytes of what a site itself publishes, models and documents together. Nothing else counts here.
const BYTES_PUBLISHED_MAX: u64 = 256 * MIB;
/// Stored bytes of the other documents that the site names, with those that complete its manifests. Users may have written them.
const BYTES_LINKED_MAX: u64 = 1024 * MIB;
/// Manifests of a site in the index that the site itself does not name. Beyond it, only hosts with less than an equal share have room.
const MANIFESTS_OF_OTHERS_MAX: usize = 500;
/// Manifests that these may reach with such hosts.
const MANIFESTS_OF_OTHERS_MOST: usize = 550;
/// Stored bytes of these, and what they may reach with such hosts.
const BYTES_OF_OTHERS_MAX: u64 = 256 * MIB;
const BYTES_OF_OTHERS_MOST: u64 = 282 * MIB;
/// Bytes by which a document in the index may grow where a new one has no room.
const SMALL_CHANGE_BYTES: u64 = 64 * 1024;

/// Why there is no room for a document.
const TOO_MANY: &str = "the site has 500 manifests that it does not name itself";
const TOO_MANY_BYTES_OF_OTHERS: &str = "the documents that the site does not name itself take 256 MiB";
const TOO_MANY_BYTES_PUBLISHED: &str = "the documents that the site itself publishes take 256 MiB";
const TOO_MANY_BYTES_LINKED: &str = "the documents to which those of the site link take 1 GiB";

/// What a site has in the index, of one kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Share {
    manifests: usize,
    bytes: u64,
}

impl Share {
    const fn plus(self, added: Self) -> Self {
        Self {
            manifests: self.manifests.saturating_add(added.manifests),
            bytes: self.bytes.saturating_add(added.bytes),
        }
    }
}

/// Who stands for a document.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Standing {
    /// The site itself publishes it.
    Published,
    /// A document of the site links to it.
    Linked,
    /// Others name it; it is at this host.
    Others(Host),
}

impl Standing {
    fn of(naming: &SiteNaming, url: &ManifestUrl) -> Self {
        match () {
            () if naming.publishes(url) => Self::Published,
            () if naming.names(url) => Self::Linked,
            () => Self::Others(url.host()),
        }
    }
}

/// What a document adds to the index.
#[derive(Debug, Clone, Copy)]
struct Added {
    share: Share,
    is_in_index: bool,
}

#[derive(Debug, Default)]
struct Room {
    published: Share,
    linked: Share,
    of_others: Share,
    /// Those of others by host.
    hosts: HashMap<Host, Share>,
}

impl Room {
    /// The room that is taken before a visit, as the site names its documents after it.
    fn taken(known: &Known, naming: &SiteNaming) -> Self {
        let mut room = Self::default();
        let of = |id: &ManifestId| known.resources.get(id).map(|known| Standing::of(naming, &known.url));
        for (id, bytes) in &known.bytes {
            if let Some(standing) = of(id) {
                room.add(&standing, Share { manifests: 0, bytes: *bytes });
            }
        }
        for (id, _) in known.manifests.iter().filter(|(_, manifest)| manifest.in_index) {
            if let Some(standing) = of(id) {
                room.add(&standing, Share { manifests: 1, bytes: 0 });
            }
        }
        room
    }

    fn add(&mut self, standing: &Standing, added: Share) {
        let share = match standing {
            Standing::Published => &mut self.published,
            Standing::Linked => &mut self.linked,
            Standing::Others(host) => {
                let of_host = self.hosts.entry(host.clone()).or_default();
                *of_host = of_host.plus(added);
                &mut self.of_others
            }
        };
        *share = share.plus(added);
    }

    /// Takes room for a document, or says why there is none. What takes no more bytes than before always has room.
    fn take(&mut self, standing: &Standing, added: Added) -> Result<(), &'static str> {
        let refusal = match standing {
            _ if added.share == Share::default() => None,
            Standing::Published => {
                let is_full = self.published.plus(added.share).bytes > BYTES_PUBLISHED_MAX;
                is_full.then_some(TOO_MANY_BYTES_PUBLISHED)
            }
            Standing::Linked => {
                let is_full = self.linked.plus(added.share).bytes > BYTES_LINKED_MAX;
                is_full.then_some(TOO_MANY_BYTES_LINKED)
            }
            Standing::Others(host) => self.refusal_of_others(host, added),
        };
        if let Some(reason) = refusal {
            return Err(reason);
        }
        self.add(standing, added.share);
        Ok(())
    }

    /// Why there is no room for a document that others name. No host takes the room of the others: one with less than an equal share
    /// has room up to a tenth beyond the limits, and there for small changes always.
    fn refusal_of_others(&self, host: &Host, added: Added) -> Option<&'static str> {
        let of_host = self.hosts.get(host).copied();
        let hosts = self.hosts.len() + usize::from(of_host.is_none());
        let (of_host, after) = (of_host.unwrap_or_default(), self.of_others.plus(added.share));
        let manifests_share = MANIFESTS_OF_OTHERS_MAX.checked_div(hosts).unwrap_or_default().max(1);
        let has_room = of_host.manifests < manifests_share && after.manifests <= MANIFESTS_OF_OTHERS_MOST;
        if added.share.manifests > 0 && after.manifests > MANIFESTS_OF_OTHERS_MAX && !has_room {
            return Some(TOO_MANY);
        }
        let hosts = u64::try_from(hosts).unwrap_or(u64::MAX);
        let is_below_share = of_host.bytes < BYTES_OF_OTHERS_MAX.checked_div(hosts).unwrap_or_default();
        let is_below_most = after.bytes <= BYTES_OF_OTHERS_MOST;
        let is_small_change = added.is_in_index && added.share.bytes <= SMALL_CHANGE_BYTES;
        let has_room =
            if is_small_change { is_below_share || is_below_most } else { is_below_share && is_below_most };
        (after.bytes > BYTES_OF_OTHERS_MAX && !has_room).then_some(TOO_MANY_BYTES_OF_OTHERS)
    }
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
        let share = Share { manifests: usize::from(is_new), bytes };
        let added = Added { share, is_in_index: known.bytes.contains_key(id) };
        if let Err(reason) = room.take(&Standing::of(naming, &fetch.url), added) {
            refused.insert(id.clone(), reason);
        }
    }
    refused
}

#[cfg(test)]
mod tests {
    use super::*;

    fn others(host: &str) -> Standing {
        Standing::Others(Host::parse(host).unwrap())
    }

    const fn new(bytes: u64) -> Added {
        Added { share: Share { manifests: 1, bytes }, is_in_index: false }
    }

    const fn change(bytes: u64) -> Added {
        Added { share: Share { manifests: 0, bytes }, is_in_index: true }
    }

    #[test]
    fn what_others_name_has_a_limit_of_its_own() {
        let mut room = Room::default();
        let evil = others("evil.a.example");
        for _ in 0..MANIFESTS_OF_OTHERS_MAX {
            assert_eq!(room.take(&evil, new(0)), Ok(()));
        }
        assert_eq!(room.take(&evil, new(0)), Err(TOO_MANY));
        assert_eq!(room.take(&evil, change(9)), Ok(()), "a change of one of them");
        for _ in 0..2 * MANIFESTS_OF_OTHERS_MAX {
            assert_eq!(room.take(&Standing::Published, new(0)), Ok(()));
            assert_eq!(room.take(&Standing::Linked, new(0)), Ok(()));
        }
    }

    #[test]
    fn a_host_with_many_manifests_leaves_room_for_those_of_other_hosts() {
        let mut room = Room::default();
        let (evil, few) = (others("evil.a.example"), others("few.a.example"));
        for _ in 0..MANIFESTS_OF_OTHERS_MAX {
            assert_eq!(room.take(&evil, new(BYTES_OF_OTHERS_MAX / 500)), Ok(()));
        }
        assert_eq!(room.take(&few, new(1)), Ok(()));
        assert_eq!(room.take(&few, change(MIB)), Ok(()));
        assert_eq!(room.take(&evil, new(0)), Err(TOO_MANY));
        for number in 1..MANIFESTS_OF_OTHERS_MOST - MANIFESTS_OF_OTHERS_MAX {
            assert_eq!(room.take(&others(&format!("h{number}.a.example")), new(1)), Ok(()), "{number}");
        }
        assert_eq!(room.take(&others("last.a.example"), new(1)), Err(TOO_MANY));
    }

    #[test]
    fn changes_of_a_host_with_few_bytes_have_room() {
        let mut room = Room::default();
        let (evil, few, late) = (others("evil.a.example"), others("few.a.example"), others("late.a.example"));
        assert_eq!(room.take(&few, new(1)), Ok(()));
        room.add(&evil, Share { manifests: 1, bytes: BYTES_OF_OTHERS_MOST });
        assert_eq!(room.take(&few, change(SMALL_CHANGE_BYTES)), Ok(()));
        for (standing, added) in [(&few, change(SMALL_CHANGE_BYTES + 1)), (&evil, change(1)), (&late, new(1))]
        {
            assert_eq!(room.take(standing, added), Err(TOO_MANY_BYTES_OF_OTHERS), "{standing:?}");
        }
    }

    #[test]
    fn bytes_are_bounded_for_the_site_and_for_others() {
        for (standing, max, reason) in [
            (Standing::Published, BYTES_PUBLISHED_MAX, TOO_MANY_BYTES_PUBLISHED),
            (Standing::Linked, BYTES_LINKED_MAX, TOO_MANY_BYTES_LINKED),
            (others("evil.a.example"), BYTES_OF_OTHERS_MAX, TOO_MANY_BYTES_OF_OTHERS),
        ] {
            let mut room = Room::default();
            assert_eq!(room.take(&standing, new(max)), Ok(()));
            assert_eq!(room.take(&standing, new(1)), Err(reason));
            assert_eq!(room.take(&standing, change(0)), Ok(()), "it takes no more than before");
            for other in
                [Standing::Published, Standing::Linked].into_iter().filter(|other| *other != standing)
            {
                assert_eq!(room.take(&other, new(1)), Ok(()), "{other:?} has room of its own");
            }
        }
    }
}

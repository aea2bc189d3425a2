//! Limits on the indexed documents of a site, and of all sites if the disk of the database is nearly full. Anyone can store documents at a site that hosts content of users, and any site can link to
//! any number of them. So documents that the site itself does not name have a separate limit.

use std::collections::{BTreeMap, HashMap, HashSet};

use chrono::{DateTime, Utc};
use manifest::{ManifestId, ManifestUrl, SiteName};
use policy::FetchOutcome;
use policy::naming::{SiteNaming, customer_of};

use crate::known::{Known, KnownManifest};
use crate::model::FetchRecord;

const MIB: u64 = 1024 * 1024;
/// Maximum stored bytes of the documents that a site itself publishes, with their models. Other documents do not count towards this limit.
const BYTES_PUBLISHED_MAX: u64 = 256 * MIB;
/// Maximum stored bytes of the other documents that the site names, which users may have written, and of documents that complete its
/// manifests. When it is reached, a manifest of an owner with fewer bytes replaces one of the owner with the most.
const BYTES_LINKED_MAX: u64 = 1024 * MIB;
/// Maximum number of manifests in the index that the site itself does not name. When it is reached, a manifest of an owner with fewer
/// manifests replaces one of the owner with the most.
const MANIFESTS_OF_OTHERS_MAX: usize = 500;
/// Maximum stored bytes of these manifests, with the same replacement. Small changes may exceed it by a tenth.
const BYTES_OF_OTHERS_MAX: u64 = 256 * MIB;
const BYTES_OF_OTHERS_MOST: u64 = 282 * MIB;
/// Maximum number of manifests that one document may displace from the index.
const DISPLACED_BY_ONE_MAX: usize = 16;
/// Bytes by which a document in the index may grow when there is no room for new ones.
const SMALL_CHANGE_BYTES: u64 = 64 * 1024;

/// Reason for refusing a document.
const NO_SPACE: &str = "the disk of the database is nearly full: delete other files, or give it more space";
const TOO_MANY: &str = "the site has 500 manifests that it does not name itself";
const TOO_MANY_BYTES_OF_OTHERS: &str = "the documents that the site does not name itself take 256 MiB";
const TOO_MANY_BYTES_PUBLISHED: &str = "the documents that the site itself publishes take 256 MiB";
const TOO_MANY_BYTES_LINKED: &str = "the documents that the documents of the site link to take 1 GiB";

/// The limits that documents of several owners share.
#[derive(Debug)]
struct PoolLimits {
    manifests: usize,
    bytes: u64,
    /// Limit for changes of at most [`Self::small_change_bytes`].
    bytes_most: u64,
    small_change_bytes: u64,
    too_many: &'static str,
    too_many_bytes: &'static str,
}

const OF_OTHERS: PoolLimits = PoolLimits {
    manifests: MANIFESTS_OF_OTHERS_MAX,
    bytes: BYTES_OF_OTHERS_MAX,
    bytes_most: BYTES_OF_OTHERS_MOST,
    small_change_bytes: SMALL_CHANGE_BYTES,
    too_many: TOO_MANY,
    too_many_bytes: TOO_MANY_BYTES_OF_OTHERS,
};
const LINKED: PoolLimits = PoolLimits {
    manifests: usize::MAX,
    bytes: BYTES_LINKED_MAX,
    bytes_most: BYTES_LINKED_MAX,
    small_change_bytes: 0,
    too_many: TOO_MANY_BYTES_LINKED,
    too_many_bytes: TOO_MANY_BYTES_LINKED,
};

/// The number and size of a site's documents of one kind in the index.
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

    const fn minus(self, removed: Self) -> Self {
        Self {
            manifests: self.manifests.saturating_sub(removed.manifests),
            bytes: self.bytes.saturating_sub(removed.bytes),
        }
    }
}

/// Who names a document.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Standing {
    /// The site itself publishes it.
    Published,
    /// A document of the site links to it.
    Linked(Owner),
    /// Others name it.
    Others(Owner),
}

/// The owner of a document that the site does not publish, for fair shares of the limit. The users of a host are unknown, so the site that
/// links to a document counts as the user; all submissions together count as one. What documents of the site link to at its own hosts
/// counts as one owner.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Owner {
    /// The name directly below the domain where the document is ([`customer_of`]): all names below it belong to the same customer. `None`
    /// at the hosts of the site itself, where each linking site is treated like a customer.
    customer: Option<String>,
    linked_by: Option<SiteName>,
}

impl Owner {
    /// The owner with all of its users.
    fn whole(&self) -> Self {
        let linked_by = self.linked_by.clone().filter(|_| self.customer.is_none());
        Self { customer: self.customer.clone(), linked_by }
    }
}

impl Standing {
    fn of(naming: &SiteNaming, url: &ManifestUrl, linked_from: Option<&ManifestUrl>) -> Self {
        if naming.publishes(url) {
            return Self::Published;
        }
        let customer = Some(url.host()).filter(|host| !naming.names_host(host));
        let customer = customer.map(|host| customer_of(&host, &url.site()).to_owned());
        if naming.names(url) {
            Self::Linked(Owner { customer, linked_by: None })
        } else {
            Self::Others(Owner { customer, linked_by: linked_from.map(ManifestUrl::site) })
        }
    }
}

/// The size that a document adds to the index.
#[derive(Debug, Clone, Copy)]
struct Added {
    share: Share,
    is_in_index: bool,
}

/// An indexed manifest of another owner that may be displaced.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Displaceable {
    owner: Owner,
    id: ManifestId,
    /// When its content was stored.
    since: DateTime<Utc>,
    bytes: u64,
}

/// The documents of a visit that exceed the limits of the site, and the manifests that are displaced from the index.
#[derive(Debug, Default)]
pub(crate) struct Allotted {
    /// Refused documents, each with the reason.
    pub(crate) refused: HashMap<ManifestId, &'static str>,
    /// Unchanged documents for whose new reading there is no room. They are kept as an earlier version of the reader read them.
    pub(crate) kept: HashSet<ManifestId>,
    pub(crate) displaced: Vec<ManifestId>,
}

#[derive(Debug, Default)]
struct Room {
    published: Share,
    linked: Pool,
    of_others: Pool,
}

/// Documents that share one limit.
#[derive(Debug, Default)]
struct Pool {
    all: Share,
    owners: BTreeMap<Owner, Share>,
    /// By [`Owner::whole`].
    customers: BTreeMap<Owner, Share>,
    displaceable: Vec<Displaceable>,
}

impl Room {
    /// The usage before a visit, grouped by who names each document after the visit. Documents that the visit has `read` cannot be
    /// displaced.
    fn taken(known: &Known, naming: &SiteNaming, read: &BTreeMap<ManifestId, &FetchRecord>) -> Self {
        let mut room = Self::default();
        for (id, known_as) in &known.resources {
            let standing = Standing::of(naming, &known_as.url, known_as.linked_from.as_ref());
            let bytes = known.bytes.get(id).copied().unwrap_or_default();
            let is_in_index = known.manifests.get(id).is_some_and(|manifest| manifest.in_index);
            let share = Share { manifests: usize::from(is_in_index), bytes };
            let (pool, owner) = match standing {
                Standing::Published => {
                    room.published = room.published.plus(share);
                    continue;
                }
                Standing::Linked(owner) => (&mut room.linked, owner),
                Standing::Others(owner) => (&mut room.of_others, owner),
            };
            pool.add(&owner, share);
            if is_in_index && !read.contains_key(id) {
                let since = known_as.changed_at.unwrap_or(known_as.fetched_at);
                pool.displaceable.push(Displaceable { owner, id: id.clone(), since, bytes });
            }
        }
        room
    }

    /// Takes room for a document and returns the manifests that it displaces, or returns the reason why there is no room. A document that
    /// takes no more bytes than before always has room.
    fn take(&mut self, standing: &Standing, added: Added) -> Result<Vec<ManifestId>, &'static str> {
        match standing {
            _ if added.share == Share::default() => Ok(Vec::new()),
            Standing::Published => {
                let after = self.published.plus(added.share);
                if after.bytes > BYTES_PUBLISHED_MAX {
                    return Err(TOO_MANY_BYTES_PUBLISHED);
                }
                self.published = after;
                Ok(Vec::new())
            }
            Standing::Linked(owner) => self.linked.take(&LINKED, owner, added),
            Standing::Others(owner) => self.of_others.take(&OF_OTHERS, owner, added),
        }
    }
}

impl Pool {
    fn add(&mut self, owner: &Owner, added: Share) {
        if added == Share::default() {
            return;
        }
        let of_owner = self.owners.entry(owner.clone()).or_default();
        *of_owner = of_owner.plus(added);
        let of_customer = self.customers.entry(owner.whole()).or_default();
        *of_customer = of_customer.plus(added);
        self.all = self.all.plus(added);
    }

    fn take(
        &mut self,
        limits: &PoolLimits,
        owner: &Owner,
        added: Added,
    ) -> Result<Vec<ManifestId>, &'static str> {
        let mut displaced = Vec::new();
        while let Some(reason) = self.refusal(limits, owner, added) {
            let may_displace = displaced.len() < DISPLACED_BY_ONE_MAX;
            let manifest = may_displace.then(|| self.displace(limits, owner, added.share)).flatten();
            let Some(manifest) = manifest else {
                for manifest in displaced {
                    self.put_back(manifest);
                }
                return Err(reason);
            };
            displaced.push(manifest);
        }
        self.add(owner, added.share);
        Ok(displaced.into_iter().map(|manifest| manifest.id).collect())
    }

    /// The reason why there is no room for a document. Small changes may have a higher limit.
    fn refusal(&self, limits: &PoolLimits, owner: &Owner, added: Added) -> Option<&'static str> {
        let after = self.all.plus(added.share);
        if added.share.manifests > 0 && after.manifests > limits.manifests {
            return Some(limits.too_many);
        }
        let of_customer = self.customers.get(&owner.whole()).copied().unwrap_or_default();
        let customers = u64::try_from(self.customers.len().max(1)).unwrap_or(u64::MAX);
        let is_below_share = of_customer.bytes < limits.bytes.checked_div(customers).unwrap_or_default();
        let is_small_change = added.is_in_index && added.share.bytes <= limits.small_change_bytes;
        let has_room = is_small_change && (is_below_share || after.bytes <= limits.bytes_most);
        (after.bytes > limits.bytes && !has_room).then_some(limits.too_many_bytes)
    }

    /// Removes the newest manifest of the customer with the most, if this customer still has at least as much afterwards as the customer of
    /// `owner` will have. Within one customer, the same rule applies to linking sites. So no owner can use up the limit, and early owners
    /// keep no more than later ones.
    fn displace(&mut self, limits: &PoolLimits, owner: &Owner, added: Share) -> Option<Displaceable> {
        let is_full = self.all.plus(added).manifests > limits.manifests && added.manifests > 0;
        let size = |share: Share| {
            if is_full { u64::try_from(share.manifests).unwrap_or(u64::MAX) } else { share.bytes }
        };
        let of = |owner: &Owner| self.owners.get(owner).copied().unwrap_or_default();
        let of_whole = |owner: &Owner| self.customers.get(&owner.whole()).copied().unwrap_or_default();
        let order = |manifest: &Displaceable| {
            let Displaceable { owner, id, since, .. } = manifest;
            let whole = (size(of_whole(owner)), owner.whole());
            (whole, size(of(owner)), owner.clone(), *since, id.clone())
        };
        let newest = self.displaceable.iter().enumerate().max_by_key(|(_, manifest)| order(manifest))?.0;
        let manifest = self.displaceable.get(newest)?;
        let is_same_customer = manifest.owner.whole() == owner.whole();
        let share_of = |owner: &Owner| if is_same_customer { of(owner) } else { of_whole(owner) };
        if size(share_of(&manifest.owner).minus(manifest.share())) < size(share_of(owner).plus(added)) {
            return None;
        }
        let displaced = self.displaceable.swap_remove(newest);
        self.all = self.all.minus(displaced.share());
        let minus = |shares: &mut BTreeMap<Owner, Share>, owner: Owner| {
            let share = shares.entry(owner).or_default();
            *share = share.minus(displaced.share());
        };
        minus(&mut self.owners, displaced.owner.clone());
        minus(&mut self.customers, displaced.owner.whole());
        Some(displaced)
    }

    fn put_back(&mut self, manifest: Displaceable) {
        self.add(&manifest.owner, manifest.share());
        self.displaceable.push(manifest);
    }
}

impl Displaceable {
    const fn share(&self) -> Share {
        Share { manifests: 1, bytes: self.bytes }
    }
}

/// Applies the limits of a site to the documents of a visit. Stored documents come first, so that new documents do not prevent their
/// changes. `stored_bytes` returns the bytes that a document takes in the store.
pub(crate) fn allot(
    read: &BTreeMap<ManifestId, &FetchRecord>,
    known: &Known,
    naming: &SiteNaming,
    stored_bytes: &dyn Fn(&ManifestId) -> usize,
) -> Allotted {
    let is_in_index = |id: &ManifestId| known.manifests.get(id).is_some_and(|manifest| manifest.in_index);
    let is_unchanged = |id: &ManifestId, fetch: &FetchRecord| {
        is_in_index(id)
            && known.manifests.get(id).map(|manifest| &manifest.hash) == fetch.content_hash.as_ref()
    };
    let is_stored = |fetch: &FetchRecord| {
        fetch.manifest.is_some() || fetch.outcome == FetchOutcome::Found && fetch.content_hash.is_some()
    };
    let is_read_again = |id: &ManifestId, fetch: &FetchRecord| {
        let is_outdated = known.manifests.get(id).is_some_and(KnownManifest::is_outdated);
        is_outdated && fetch.manifest.is_some() && !fetch.is_stored_reading
    };
    let is_written = |id: &ManifestId, fetch: &FetchRecord| {
        is_stored(fetch) && (!is_unchanged(id, fetch) || is_read_again(id, fetch))
    };
    let stored = read.iter().filter(|(id, fetch)| is_written(id, fetch));
    let (first, last): (Vec<_>, Vec<_>) = stored.partition(|(id, _)| known.bytes.contains_key(*id));
    let mut allotted = Allotted::default();
    if first.is_empty() && last.is_empty() {
        return allotted;
    }
    let mut room = Room::taken(known, naming, read);
    for (id, fetch) in first.into_iter().chain(last) {
        let before = known.bytes.get(id).copied().unwrap_or_default();
        let is_new = fetch.manifest.is_some() && !is_in_index(id);
        let bytes = (stored_bytes(id) as u64).saturating_sub(before);
        let share = Share { manifests: usize::from(is_new), bytes };
        let added = Added { share, is_in_index: known.bytes.contains_key(id) };
        let standing = Standing::of(naming, &fetch.url, fetch.linked_from.as_ref());
        let is_small_change = added.is_in_index && stored_bytes(id) as u64 <= SMALL_CHANGE_BYTES;
        let has_space = !known.is_disk_nearly_full || is_small_change;
        let taken = if has_space { room.take(&standing, added) } else { Err(NO_SPACE) };
        match taken {
            Ok(displaced) => allotted.displaced.extend(displaced),
            Err(_) if is_unchanged(id, fetch) => {
                allotted.kept.insert(id.clone());
            }
            Err(reason) => {
                allotted.refused.insert(id.clone(), reason);
            }
        }
    }
    allotted
}

#[cfg(test)]
#[path = "room_tests.rs"]
mod tests;

//! Limits on the indexed documents of a site. Anyone can store documents at a site that hosts content of users, and any site can link to
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
/// manifests.
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
const TOO_MANY: &str = "the site has 500 manifests that it does not name itself";
const TOO_MANY_BYTES_OF_OTHERS: &str = "the documents that the site does not name itself take 256 MiB";
const TOO_MANY_BYTES_PUBLISHED: &str = "the documents that the site itself publishes take 256 MiB";
const TOO_MANY_BYTES_LINKED: &str = "the documents that the documents of the site link to take 1 GiB";

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
    Linked,
    /// Others name it.
    Others(Owner),
}

/// The owner of a document that only others name, for fair shares of the limit. The users of a host are unknown, so the site that links to
/// a document counts as the user; all submissions together count as one.
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
        match () {
            () if naming.publishes(url) => Self::Published,
            () if naming.names(url) => Self::Linked,
            () => {
                let customer = Some(url.host()).filter(|host| !naming.names_host(host));
                let customer = customer.map(|host| customer_of(&host, &url.site()).to_owned());
                Self::Others(Owner { customer, linked_by: linked_from.map(ManifestUrl::site) })
            }
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
    linked: Share,
    of_others: Share,
    /// Documents that only others name, by owner.
    owners: BTreeMap<Owner, Share>,
    /// Documents that only others name, by [`Owner::whole`].
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
            room.add(&standing, Share { manifests: usize::from(is_in_index), bytes });
            if let Standing::Others(owner) = standing
                && is_in_index
                && !read.contains_key(id)
            {
                let since = known_as.changed_at.unwrap_or(known_as.fetched_at);
                room.displaceable.push(Displaceable { owner, id: id.clone(), since, bytes });
            }
        }
        room
    }

    fn add(&mut self, standing: &Standing, added: Share) {
        if added == Share::default() {
            return;
        }
        let share = match standing {
            Standing::Published => &mut self.published,
            Standing::Linked => &mut self.linked,
            Standing::Others(owner) => {
                let of_owner = self.owners.entry(owner.clone()).or_default();
                *of_owner = of_owner.plus(added);
                let of_customer = self.customers.entry(owner.whole()).or_default();
                *of_customer = of_customer.plus(added);
                &mut self.of_others
            }
        };
        *share = share.plus(added);
    }

    /// Takes room for a document and returns the manifests that it displaces, or returns the reason why there is no room. A document that
    /// takes no more bytes than before always has room.
    fn take(&mut self, standing: &Standing, added: Added) -> Result<Vec<ManifestId>, &'static str> {
        let mut displaced = Vec::new();
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
            Standing::Others(owner) => loop {
                let Some(reason) = self.refusal_of_others(owner, added) else { break None };
                let may_displace = displaced.len() < DISPLACED_BY_ONE_MAX;
                match self.displace(owner, added.share).filter(|_| may_displace) {
                    Some(manifest) => displaced.push(manifest),
                    None => break Some(reason),
                }
            },
        };
        if let Some(reason) = refusal {
            for manifest in displaced {
                self.put_back(manifest);
            }
            return Err(reason);
        }
        self.add(standing, added.share);
        Ok(displaced.into_iter().map(|manifest| manifest.id).collect())
    }

    /// The reason why there is no room for a document that others name. Small changes have a higher limit.
    fn refusal_of_others(&self, owner: &Owner, added: Added) -> Option<&'static str> {
        let after = self.of_others.plus(added.share);
        if added.share.manifests > 0 && after.manifests > MANIFESTS_OF_OTHERS_MAX {
            return Some(TOO_MANY);
        }
        let of_customer = self.customers.get(&owner.whole()).copied().unwrap_or_default();
        let customers = u64::try_from(self.customers.len().max(1)).unwrap_or(u64::MAX);
        let is_below_share =
            of_customer.bytes < BYTES_OF_OTHERS_MAX.checked_div(customers).unwrap_or_default();
        let is_small_change = added.is_in_index && added.share.bytes <= SMALL_CHANGE_BYTES;
        let has_room = is_small_change && (is_below_share || after.bytes <= BYTES_OF_OTHERS_MOST);
        (after.bytes > BYTES_OF_OTHERS_MAX && !has_room).then_some(TOO_MANY_BYTES_OF_OTHERS)
    }

    /// Removes the newest manifest of the customer with the most, if this customer still has at least as much afterwards as the customer of
    /// `owner` will have. Within one customer, the same rule applies to linking sites. So no owner can use up the limit, and early owners
    /// keep no more than later ones.
    fn displace(&mut self, owner: &Owner, added: Share) -> Option<Displaceable> {
        let is_full = self.of_others.plus(added).manifests > MANIFESTS_OF_OTHERS_MAX && added.manifests > 0;
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
        self.of_others = self.of_others.minus(displaced.share());
        let minus = |shares: &mut BTreeMap<Owner, Share>, owner: Owner| {
            let share = shares.entry(owner).or_default();
            *share = share.minus(displaced.share());
        };
        minus(&mut self.owners, displaced.owner.clone());
        minus(&mut self.customers, displaced.owner.whole());
        Some(displaced)
    }

    fn put_back(&mut self, manifest: Displaceable) {
        self.add(&Standing::Others(manifest.owner.clone()), manifest.share());
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
        match room.take(&standing, added) {
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
mod tests {
    use chrono::TimeDelta;

    use super::*;

    fn others(customer: &str) -> Standing {
        Standing::Others(Owner { customer: Some(customer.to_owned()), linked_by: None })
    }

    /// A document that a site links to, at a host of a customer or at one of the site.
    fn linked_at(customer: Option<&str>, from: &str) -> Standing {
        let customer = customer.map(ToOwned::to_owned);
        Standing::Others(Owner { customer, linked_by: SiteName::parse(from).ok() })
    }

    const fn new(bytes: u64) -> Added {
        Added { share: Share { manifests: 1, bytes }, is_in_index: false }
    }

    const fn change(bytes: u64) -> Added {
        Added { share: Share { manifests: 0, bytes }, is_in_index: true }
    }

    #[test]
    fn documents_named_by_others_have_a_separate_limit() {
        let mut room = Room::default();
        let evil = others("evil.a.example");
        for _ in 0..MANIFESTS_OF_OTHERS_MAX {
            assert_eq!(room.take(&evil, new(0)), Ok(Vec::new()));
        }
        assert_eq!(room.take(&evil, new(0)), Err(TOO_MANY));
        assert_eq!(room.take(&evil, change(9)), Ok(Vec::new()), "a change of an indexed document");
        for _ in 0..2 * MANIFESTS_OF_OTHERS_MAX {
            assert_eq!(room.take(&Standing::Published, new(0)), Ok(Vec::new()));
            assert_eq!(room.take(&Standing::Linked, new(0)), Ok(Vec::new()));
        }
    }

    /// Takes room from which a later document may displace this one.
    fn take_displaceable(room: &mut Room, standing: &Standing, number: u32, bytes: u64) {
        assert_eq!(room.take(standing, new(bytes)), Ok(Vec::new()), "{standing:?} {number}");
        let Standing::Others(owner) = standing else { panic!("{standing:?}") };
        let id = ManifestId::of(&url(number));
        let since = DateTime::UNIX_EPOCH + TimeDelta::days(number.into());
        room.displaceable.push(Displaceable { owner: owner.clone(), id, since, bytes });
    }

    fn url(number: u32) -> ManifestUrl {
        ManifestUrl::parse(&format!("https://a.example/{number}")).unwrap()
    }

    fn linked(site: &str) -> Standing {
        linked_at(None, site)
    }

    #[test]
    fn an_owner_cannot_keep_the_room_of_others() {
        for (evil, names) in [("evil.example", false), ("evil.a.example", true)] {
            let of = |name: &str| if names { others(name) } else { linked(name) };
            let (mut room, evil) = (Room::default(), of(evil));
            for number in 0..450 {
                take_displaceable(&mut room, &evil, number, 1);
            }
            for number in 450..500 {
                take_displaceable(&mut room, &of(&format!("h{number}.example")), number, 1);
            }
            assert_eq!(room.take(&evil, new(1)), Err(TOO_MANY));
            let last = of("last.example");
            for number in 1..200 {
                let newest = ManifestId::of(&url(450 - number));
                assert_eq!(room.take(&last, new(1)), Ok(vec![newest]), "{number}");
            }
            for _ in 0..26 {
                assert!(room.take(&last, new(1)).is_ok_and(|displaced| displaced.len() == 1));
            }
            assert_eq!(room.take(&last, new(1)), Err(TOO_MANY), "both owners have the same share");
            let submission = Standing::Others(Owner { customer: None, linked_by: None });
            assert!(room.take(&submission, new(1)).is_ok(), "other owners still have their share");
        }
    }

    #[test]
    fn one_user_of_a_host_does_not_use_up_the_limit_of_others() {
        let api = Some("api");
        let (mut room, evil) = (Room::default(), linked_at(api, "evil.example"));
        for number in 0..500 {
            take_displaceable(&mut room, &evil, number, 1);
        }
        assert_eq!(room.take(&evil, new(1)), Err(TOO_MANY));
        for number in (490..500).rev() {
            let newest = ManifestId::of(&url(number));
            assert_eq!(room.take(&linked_at(api, "good.example"), new(1)), Ok(vec![newest]), "{number}");
        }
        let newest = ManifestId::of(&url(489));
        assert_eq!(room.take(&linked_at(Some("t1"), "good.example"), new(1)), Ok(vec![newest]));
    }

    /// A name directly below the domain and all names below it belong to one customer.
    #[test]
    fn names_below_a_customers_name_belong_to_the_same_owner() {
        let naming = SiteNaming::new(SiteName::parse("a.example").unwrap(), HashMap::new(), []);
        let of = |at: &str| {
            let at = ManifestUrl::parse(&format!("https://{at}/x.json")).unwrap();
            Standing::of(&naming, &at, None)
        };
        for host in ["x.a.example", "a1.x.a.example", "b.a1.x.a.example"] {
            assert_eq!(of(host), others("x"), "{host}");
        }
        assert_eq!(of("www.a.example"), Standing::Others(Owner { customer: None, linked_by: None }));
    }

    #[test]
    fn a_large_document_takes_the_room_of_the_owner_with_the_most_bytes() {
        let mut room = Room::default();
        let (evil, few) = (others("evil.a.example"), others("few.a.example"));
        for number in 0..16 {
            take_displaceable(&mut room, &evil, number, BYTES_OF_OTHERS_MAX / 16);
        }
        let newest = [15, 14].map(|number| ManifestId::of(&url(number)));
        assert_eq!(room.take(&few, new(BYTES_OF_OTHERS_MAX / 16 + 1)), Ok(newest.to_vec()));
        let before = room.of_others;
        assert_eq!(room.take(&few, new(BYTES_OF_OTHERS_MAX)), Err(TOO_MANY_BYTES_OF_OTHERS));
        assert_eq!(room.of_others, before, "a refused document displaces nothing");
        assert_eq!(room.displaceable.len(), 14);
    }

    #[test]
    fn small_changes_have_room() {
        let mut room = Room::default();
        let (evil, few) = (others("evil.a.example"), others("few.a.example"));
        assert_eq!(room.take(&few, new(1)), Ok(Vec::new()));
        room.add(&evil, Share { manifests: 1, bytes: BYTES_OF_OTHERS_MOST });
        assert_eq!(room.take(&few, change(SMALL_CHANGE_BYTES)), Ok(Vec::new()));
        for (standing, added) in [(&few, change(SMALL_CHANGE_BYTES + 1)), (&evil, change(1)), (&few, new(1))]
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
            assert_eq!(room.take(&standing, new(max)), Ok(Vec::new()));
            assert_eq!(room.take(&standing, new(1)), Err(reason));
            assert_eq!(room.take(&standing, change(0)), Ok(Vec::new()), "the size does not grow");
            for other in
                [Standing::Published, Standing::Linked].into_iter().filter(|other| *other != standing)
            {
                assert_eq!(room.take(&other, new(1)), Ok(Vec::new()), "{other:?} has its own limit");
            }
        }
    }
}

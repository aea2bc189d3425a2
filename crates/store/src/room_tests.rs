//! Tests of the limits on the indexed documents of a site.

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

/// A document to which a document of the site links, at a host of a customer or at one of the site.
fn named(customer: Option<&str>) -> Standing {
    Standing::Linked(Owner { customer: customer.map(ToOwned::to_owned), linked_by: None })
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
        assert_eq!(room.take(&named(Some("evil")), new(0)), Ok(Vec::new()));
    }
}

/// Takes room from which a later document may displace this one.
fn take_displaceable(room: &mut Room, standing: &Standing, number: u32, bytes: u64) {
    assert_eq!(room.take(standing, new(bytes)), Ok(Vec::new()), "{standing:?} {number}");
    let (pool, owner) = match standing {
        Standing::Others(owner) => (&mut room.of_others, owner),
        Standing::Linked(owner) => (&mut room.linked, owner),
        Standing::Published => panic!("{standing:?}"),
    };
    let id = ManifestId::of(&url(number));
    let since = DateTime::UNIX_EPOCH + TimeDelta::days(number.into());
    pool.displaceable.push(Displaceable { owner: owner.clone(), id, since, bytes });
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
    let before = room.of_others.all;
    assert_eq!(room.take(&few, new(BYTES_OF_OTHERS_MAX)), Err(TOO_MANY_BYTES_OF_OTHERS));
    assert_eq!(room.of_others.all, before, "a refused document displaces nothing");
    assert_eq!(room.of_others.displaceable.len(), 14);
}

/// The catalog of a platform lists documents of its customers.
#[test]
fn one_customer_does_not_use_up_the_room_of_what_the_site_links_to() {
    for other in [named(Some("few")), named(None)] {
        let (mut room, evil) = (Room::default(), named(Some("evil")));
        for number in 0..16 {
            take_displaceable(&mut room, &evil, number, BYTES_LINKED_MAX / 16);
        }
        for standing in [&evil, &named(Some("evil"))] {
            assert_eq!(room.take(standing, new(1)), Err(TOO_MANY_BYTES_LINKED));
        }
        for number in (8..16).rev() {
            let newest = ManifestId::of(&url(number));
            assert_eq!(room.take(&other, new(BYTES_LINKED_MAX / 16)), Ok(vec![newest]), "{other:?}");
        }
        assert_eq!(room.take(&other, new(1)), Err(TOO_MANY_BYTES_LINKED), "both have the same share");
        assert_eq!(room.take(&evil, change(1)), Err(TOO_MANY_BYTES_LINKED));
        assert_eq!(room.take(&others("third"), new(1)), Ok(Vec::new()));
    }
}

#[test]
fn small_changes_have_room() {
    let mut room = Room::default();
    let (evil, few) = (others("evil.a.example"), others("few.a.example"));
    assert_eq!(room.take(&few, new(1)), Ok(Vec::new()));
    let Standing::Others(owner) = &evil else { panic!("{evil:?}") };
    room.of_others.add(owner, Share { manifests: 1, bytes: BYTES_OF_OTHERS_MOST });
    assert_eq!(room.take(&few, change(SMALL_CHANGE_BYTES)), Ok(Vec::new()));
    for (standing, added) in [(&few, change(SMALL_CHANGE_BYTES + 1)), (&evil, change(1)), (&few, new(1))] {
        assert_eq!(room.take(standing, added), Err(TOO_MANY_BYTES_OF_OTHERS), "{standing:?}");
    }
}

#[test]
fn bytes_are_bounded_for_the_site_and_for_others() {
    for (standing, max, reason) in [
        (Standing::Published, BYTES_PUBLISHED_MAX, TOO_MANY_BYTES_PUBLISHED),
        (named(None), BYTES_LINKED_MAX, TOO_MANY_BYTES_LINKED),
        (others("evil.a.example"), BYTES_OF_OTHERS_MAX, TOO_MANY_BYTES_OF_OTHERS),
    ] {
        let mut room = Room::default();
        assert_eq!(room.take(&standing, new(max)), Ok(Vec::new()));
        assert_eq!(room.take(&standing, new(1)), Err(reason));
        assert_eq!(room.take(&standing, change(0)), Ok(Vec::new()), "the size does not grow");
        for other in [Standing::Published, named(None)].into_iter().filter(|other| *other != standing) {
            assert_eq!(room.take(&other, new(1)), Ok(Vec::new()), "{other:?} has its own limit");
        }
    }
}

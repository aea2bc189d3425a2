//! Entries of other registries: replaced page by page, removed by tombstones and by a reading of all entries, and kept from sites that
//! opted out.

use anyhow::Result;
use chrono::TimeDelta;
use manifest::RegistryEntry;
use store::{RegistryPosition, RowsLeftOut, SITE_ROWS_MAX, Store, UnfinishedReading};

use crate::build::{later, site, start};
use crate::harness::Db;

const REGISTRY: &str = "https://registry.example/";

pub(crate) fn entry(identifier: &str, sites: &[&str], version: &str) -> RegistryEntry {
    RegistryEntry {
        identifier: identifier.to_owned(),
        sites: sites.iter().map(|name| site(name)).collect(),
        name: Some("Näme".to_owned()),
        url: Some("https://a.example/mcp".to_owned()),
        version: Some(version.to_owned()),
        updated_at: Some(start()),
        is_deleted: false,
    }
}

pub(crate) fn unfinished() -> RegistryPosition {
    let unfinished = UnfinishedReading {
        began_at: start(),
        next_page: "2".to_owned(),
        latest: Some(later(1)),
        failures: 2,
        page_entries: Some(10),
    };
    RegistryPosition { changed_until: None, read_whole_at: None, unfinished: Some(unfinished) }
}

async fn versions(store: &Store, name: &str) -> Result<Vec<(String, Option<String>)>> {
    let listings = store.site_listings(&[site(name)], 10).await?;
    Ok(listings.into_iter().map(|listing| (listing.identifier, listing.version)).collect())
}

pub(crate) async fn registry_entries_are_replaced_and_removed(Db { store, .. }: Db) -> Result<()> {
    let first = [
        entry("example.a/mcp", &["a.example", "b.example"], "1"),
        entry("example.gone/mcp", &["a.example"], "1"),
    ];
    assert_eq!(store.registry_position(REGISTRY).await?, None);
    let left_out = store.registry_page_save(REGISTRY, &first, Some(&unfinished()), start()).await?;
    assert_eq!(left_out, RowsLeftOut::default());
    assert_eq!(store.registry_position(REGISTRY).await?, Some(unfinished()));
    let listed = store.site_listings(&[site("a.example")], 1).await?;
    let [listing] = listed.as_slice() else { panic!("{listed:?}") };
    assert_eq!((listing.registry.as_str(), listing.name.as_deref()), (REGISTRY, Some("Näme")));
    assert_eq!((listing.updated_at, listing.seen_at), (Some(start()), start()));

    // a change moves the entry away from a site, and a tombstone removes one; another registry is separate
    let changed = [
        entry("example.a/mcp", &["a.example"], "2"),
        RegistryEntry { is_deleted: true, ..entry("example.gone/mcp", &[], "1") },
    ];
    store.registry_page_save("https://other.example/", &first[1..], None, later(1)).await?;
    store.registry_page_save(REGISTRY, &changed, None, later(1)).await?;
    let expected = [
        ("example.a/mcp".to_owned(), Some("2".to_owned())),
        ("example.gone/mcp".to_owned(), Some("1".to_owned())),
    ];
    assert_eq!(versions(&store, "a.example").await?, expected, "the entry of the site itself is first");
    assert_eq!(versions(&store, "b.example").await?, []);

    // the end of a reading of all entries removes what it did not find
    let done =
        RegistryPosition { changed_until: Some(later(1)), read_whole_at: Some(later(5)), unfinished: None };
    let found = [entry("example.b/mcp", &["b.example"], "1")];
    store.registry_page_save(REGISTRY, &found, Some(&done), later(6)).await?;
    let position = RegistryPosition { read_whole_at: None, ..done };
    assert_eq!(store.registry_position(REGISTRY).await?, Some(position), "an entry at its publisher is gone");
    assert_eq!(versions(&store, "a.example").await?, expected[1..]);
    assert_eq!(versions(&store, "b.example").await?.len(), 1);
    Ok(())
}

/// Entries whose identifier names another site as the publisher are first in the order of identifiers.
pub(crate) async fn entries_of_which_the_site_is_the_publisher_come_first(
    Db { store, .. }: Db,
) -> Result<()> {
    let own = [
        "urn:air:agents.shop.co.uk:cards:buy",
        "uk.co.shop/mcp",
        "uk.co.shop.api/mcp",
        "urn:air:shop.co.uk:a",
    ];
    let others = [
        "a.stranger/mcp",
        "uk.co.shop-other/mcp",
        "uk.co.other/mcp",
        "urn:air:a.example:shop.co.uk",
        "urn:air:other.co.uk:a",
        "io.github.shop/mcp",
    ];
    let listed = others.iter().chain(&own).map(|identifier| entry(identifier, &["shop.co.uk"], "1"));
    store.registry_page_save(REGISTRY, &listed.collect::<Vec<_>>(), None, start()).await?;
    let own_again = [entry("uk.co.shop/mcp", &["shop.co.uk"], "1")];
    store.registry_page_save("https://another.example/", &own_again, None, start()).await?;
    let listings = store.site_listings(&[site("shop.co.uk")], 5).await?;
    let expected = [
        "uk.co.shop/mcp",
        "uk.co.shop/mcp",
        "urn:air:shop.co.uk:a",
        "uk.co.shop.api/mcp",
        "urn:air:agents.shop.co.uk:cards:buy",
    ];
    let found: Vec<&str> = listings.iter().map(|listing| listing.identifier.as_str()).collect();
    assert_eq!(found, expected, "by rank, registry and identifier");
    assert!(listings.iter().all(|listing| listing.publisher == Some(site("shop.co.uk"))), "{listings:?}");
    let all = store.site_listings(&[site("shop.co.uk")], 50).await?;
    assert_eq!(all.len(), own.len() + 1 + others.len());
    assert!(all.iter().skip(5).all(|listing| listing.publisher != Some(site("shop.co.uk"))), "{all:?}");
    Ok(())
}

/// An entry without sites, of which the registry does not state that it is deleted, is removed by the page that has it.
pub(crate) async fn an_entry_that_may_not_be_kept_any_more_is_removed(Db { store, .. }: Db) -> Result<()> {
    let entries = [entry("example.a/mcp", &["a.example"], "1"), entry("example.b/mcp", &["a.example"], "1")];
    store.registry_page_save(REGISTRY, &entries, None, start()).await?;
    store.registry_page_save("https://other.example/", &entries[..1], None, start()).await?;
    store.registry_page_save(REGISTRY, &[entry("example.a/mcp", &[], "2")], None, later(1)).await?;
    let kept = versions(&store, "a.example").await?;
    let identifiers: Vec<&str> = kept.iter().map(|(identifier, _)| identifier.as_str()).collect();
    assert_eq!(identifiers, ["example.a/mcp", "example.b/mcp"], "of the other registry, and the other entry");
    Ok(())
}

fn listed_at(identifier: &str, sites: &[&str], url: &str) -> RegistryEntry {
    RegistryEntry { url: Some(url.to_owned()), ..entry(identifier, sites, "1") }
}

/// The URLs that a registry lists for a site.
async fn urls(store: &Store, name: &str) -> Result<Vec<String>> {
    let listings = store.site_listings(&[site(name)], 10).await?;
    Ok(listings.into_iter().filter_map(|listing| listing.url).collect())
}

/// An identifier of an ARD registry is the text of whoever lists the entry.
pub(crate) async fn others_do_not_replace_an_entry_at_the_site_of_its_publisher(
    Db { store, .. }: Db,
) -> Result<()> {
    const BUY: &str = "urn:air:shop.example:agents:buy";
    let own = listed_at(BUY, &["shop.example"], "https://agents.shop.example/buy.json");
    let moved = listed_at(BUY, &["shop.example"], "https://shop.example/buy.json");
    let evil = listed_at(BUY, &["shop.example", "evil.example"], "https://evil.example/steal.json");
    let gone = RegistryEntry { is_deleted: true, ..listed_at(BUY, &[], "https://evil.example/steal.json") };
    let save = async |page: &[&RegistryEntry], minutes| {
        let page: Vec<RegistryEntry> = page.iter().map(|entry| (*entry).clone()).collect();
        store.registry_page_save(REGISTRY, &page, None, later(minutes)).await?;
        Ok::<_, anyhow::Error>((urls(&store, "shop.example").await?, urls(&store, "evil.example").await?))
    };
    let at = |entry: &RegistryEntry| entry.url.clone().into_iter().collect::<Vec<_>>();
    for page in [[&own, &evil], [&evil, &own]] {
        assert_eq!(save(&page, 0).await?, (at(&own), vec![]), "in one page");
    }
    assert_eq!(save(&[&evil], 1).await?, (at(&own), vec![]), "in a later page");
    assert_eq!(save(&[&moved], 2).await?, (at(&moved), vec![]), "the publisher replaces its own entry");
    assert_eq!(save(&[&gone, &evil], 3).await?, (at(&evil), at(&evil)), "the registry deleted it before");
    assert_eq!(save(&[&own], 4).await?, (at(&own), vec![]), "after an entry of another site");
    assert_eq!(save(&[&gone], 5).await?, (vec![], vec![]));

    // the registry replaced the publisher's entry: the second reading of all entries finds the new one
    save(&[&own], 6).await?;
    let done = |minutes| RegistryPosition {
        changed_until: Some(later(1)),
        read_whole_at: Some(later(minutes)),
        unfinished: None,
    };
    let page = std::slice::from_ref(&evil);
    store.registry_page_save(REGISTRY, page, Some(&done(7)), later(8)).await?;
    assert_eq!(urls(&store, "shop.example").await?, [""; 0]);
    let next = RegistryPosition { read_whole_at: None, ..done(7) };
    assert_eq!(store.registry_position(REGISTRY).await?, Some(next), "the next reading is of all entries");
    store.registry_page_save(REGISTRY, page, Some(&done(9)), later(10)).await?;
    assert_eq!(urls(&store, "shop.example").await?, at(&evil));
    assert_eq!(store.registry_position(REGISTRY).await?, Some(done(9)), "nothing more is missing");
    Ok(())
}

/// A customer of a platform has a host of its own, and other customers are strangers to it.
pub(crate) async fn other_customers_do_not_replace_an_entry_at_the_host_of_its_publisher(
    Db { store, .. }: Db,
) -> Result<()> {
    const BUY: &str = "urn:air:shop.plat.example:agents:buy";
    let at = |host: &str| listed_at(BUY, &["plat.example"], &format!("https://{host}/buy.json"));
    let [own, platform, evil] = ["shop.plat.example", "plat.example", "evil.plat.example"].map(at);
    for (minutes, (page, expected)) in (0..).zip([
        (vec![&evil], &evil),
        (vec![&platform], &platform),
        (vec![&evil], &platform),
        (vec![&own, &evil], &own),
        (vec![&platform, &evil], &own),
        (vec![&own], &own),
    ]) {
        let page: Vec<RegistryEntry> = page.into_iter().cloned().collect();
        store.registry_page_save(REGISTRY, &page, None, later(minutes)).await?;
        let found = urls(&store, "plat.example").await?;
        assert_eq!(found, expected.url.clone().into_iter().collect::<Vec<_>>(), "after {page:?}");
    }
    Ok(())
}

pub(crate) async fn a_withdrawn_entry_removes_the_rows_with_its_url_alone(
    Db { store, .. }: Db,
) -> Result<()> {
    const BUY: &str = "urn:air:shop.example:agents:buy";
    let own = listed_at(BUY, &["shop.example"], "https://shop.example/buy.json");
    let of_stranger = listed_at(BUY, &[], "https://evil.example/steal.json");
    let without_url = RegistryEntry { url: None, ..of_stranger.clone() };
    for others in [&of_stranger, &without_url] {
        store.registry_page_save(REGISTRY, &[own.clone(), others.clone()], None, start()).await?;
        store.registry_page_save(REGISTRY, std::slice::from_ref(others), None, later(1)).await?;
        assert_eq!(urls(&store, "shop.example").await?, ["https://shop.example/buy.json"], "{others:?}");
    }
    let withdrawn = RegistryEntry { sites: Vec::new(), ..own.clone() };
    store.registry_page_save(REGISTRY, &[own.clone(), withdrawn.clone()], None, later(2)).await?;
    assert_eq!(urls(&store, "shop.example").await?, [""; 0], "in one page");
    store.registry_page_save(REGISTRY, &[own], None, later(3)).await?;
    store.registry_page_save(REGISTRY, &[withdrawn], None, later(4)).await?;
    assert_eq!(urls(&store, "shop.example").await?, [""; 0], "in a later page");
    Ok(())
}

pub(crate) async fn registry_entries_of_opted_out_sites_are_not_kept(Db { store, .. }: Db) -> Result<()> {
    let entries = [entry("example.a/mcp", &["a.example", "b.example"], "1")];
    store.registry_page_save(REGISTRY, &entries, None, start()).await?;
    store.site_block(&site("a.example"), "asked", later(1)).await?;
    assert_eq!(versions(&store, "a.example").await?, []);
    store.registry_page_save(REGISTRY, &entries, None, later(2)).await?;
    assert_eq!(versions(&store, "a.example").await?, []);
    assert_eq!(versions(&store, "b.example").await?.len(), 1);
    Ok(())
}

pub(crate) async fn listings_of_several_sites_are_read_at_once(Db { store, .. }: Db) -> Result<()> {
    let sites = ["a.example", "b.example"];
    let listed = ["x.one/mcp", "x.two/mcp", "example.b/mcp"].map(|identifier| entry(identifier, &sites, "1"));
    store.registry_page_save(REGISTRY, &listed, None, start()).await?;
    let asked = ["b.example", "none.example", "a.example"].map(site);
    let found = store.site_listings(&asked, 2).await?;
    let found: Vec<_> =
        found.iter().map(|listing| (listing.site.as_str(), listing.identifier.as_str())).collect();
    let expected = [
        ("a.example", "example.b/mcp"),
        ("a.example", "x.one/mcp"),
        ("b.example", "example.b/mcp"),
        ("b.example", "x.one/mcp"),
    ];
    assert_eq!(found, expected, "the first ones of each site");
    assert_eq!(store.site_listings(&[], 2).await?, []);
    Ok(())
}

pub(crate) async fn registry_entries_expire_without_a_reading(Db { store, .. }: Db) -> Result<()> {
    let entries = [entry("example.a/mcp", &["a.example"], "1")];
    store.registry_page_save(REGISTRY, &entries, Some(&unfinished()), start()).await?;
    store.housekeeping(start() + TimeDelta::days(29)).await?;
    assert_eq!(versions(&store, "a.example").await?.len(), 1);
    store.housekeeping(start() + TimeDelta::days(31)).await?;
    assert_eq!(versions(&store, "a.example").await?, []);
    assert_eq!(store.registry_position(REGISTRY).await?, None);
    Ok(())
}

pub(crate) async fn registry_rows_have_a_cap(Db { store, .. }: Db) -> Result<()> {
    let named = |number: u32| {
        let sites = ["a", "b", "c", "d"].map(|letter| format!("{letter}{number}.example"));
        entry(&format!("example.a/{number}"), &sites.each_ref().map(String::as_str), "1")
    };
    let entries: Vec<RegistryEntry> = (0..store::REGISTRY_ROWS_MAX / 4).map(named).collect();
    let none = RowsLeftOut::default();
    assert_eq!(store.registry_page_save(REGISTRY, &entries, None, start()).await?, none);
    let more = [named(store::REGISTRY_ROWS_MAX)];
    let left_out = store.registry_page_save(REGISTRY, &more, None, start()).await?;
    assert_eq!(left_out, RowsLeftOut { of_registry: 4, of_sites: 0 });
    assert_eq!(store.registry_page_save("https://other.example/", &more, None, start()).await?, none);
    Ok(())
}

/// Anybody can publish entries about a site in a registry, and a customer can prove a name below its domain.
pub(crate) async fn the_rows_about_a_site_have_a_cap_and_its_own_entries_stay(db: Db) -> Result<()> {
    let store = &db.store;
    let about = |identifiers: Vec<String>| -> Vec<RegistryEntry> {
        identifiers.iter().map(|identifier| entry(identifier, &["shop.example"], "1")).collect()
    };
    let strangers = about((0..SITE_ROWS_MAX).map(|number| format!("a.stranger/{number}")).collect());
    let customers = about((0..60).map(|number| format!("example.shop.t1/a{number}")).collect());
    let own = about(vec!["example.shop/pay".to_owned(), "urn:air:shop.example:cards:pay".to_owned()]);
    let save = async |entries: &[RegistryEntry]| {
        anyhow::Ok(store.registry_page_save(REGISTRY, entries, None, start()).await?.of_sites)
    };
    assert_eq!(save(&strangers).await?, 0);
    assert_eq!(save(&own).await?, 2, "the last ones of strangers are removed");
    assert_eq!(save(&customers).await?, 60);
    let more = about(vec!["z.stranger/more".to_owned()]);
    assert_eq!(save(&more).await?, 1, "it is the last one itself");
    let rows = "SELECT COUNT(*) FROM registry_entry WHERE site = 'shop.example'";
    assert_eq!(db.number(rows).await?, i64::from(SITE_ROWS_MAX));
    let other = "https://other.example/";
    assert_eq!(store.registry_page_save(other, &strangers, None, start()).await?, RowsLeftOut::default());
    let shown = store.site_listings(&[site("shop.example")], 50).await?;
    let shown: Vec<&str> = shown.iter().map(|listing| listing.identifier.as_str()).collect();
    assert_eq!(&shown[..2], ["example.shop/pay", "urn:air:shop.example:cards:pay"]);
    assert!(shown[2..].iter().all(|identifier| identifier.starts_with("example.shop.t1/")), "{shown:?}");
    Ok(())
}

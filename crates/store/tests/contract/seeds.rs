//! Seeds.

use anyhow::Result;
use chrono::TimeDelta;
use serde_json::json;
use store::{Hint, ParkedVisit, Seed, SeedOrigin, SeedsAdded};

use crate::build::{later, lease, request, seed, site, start, url, visited};
use crate::harness::Db;

fn added(added: u64, known: u64, blocked: u64) -> SeedsAdded {
    SeedsAdded { added, known, blocked }
}

pub(crate) async fn the_same_seeds_change_nothing(Db { store, .. }: Db) -> Result<()> {
    let with_url = Seed { url: Some(url("https://shop.example/agents.json")), ..seed("shop.example") };
    let seeds = [seed("bücher.example"), seed("www.bücher.example"), with_url, seed("shop.example")];
    assert_eq!(store.seeds_add(&seeds, start()).await?, added(3, 1, 0));
    assert_eq!(store.seeds_add(&seeds, later(5)).await?, added(0, 4, 0));
    assert_eq!(store.seeds_add(&[], later(5)).await?, added(0, 0, 0));
    let books = lease(&store, "bücher.example", later(6)).await?.site;
    let hosts: Vec<&str> = books.hosts.iter().map(|host| host.host.as_str()).collect();
    assert_eq!(hosts, ["www.xn--bcher-kva.example", "xn--bcher-kva.example"]);
    assert!(books.hosts.iter().all(|host| host.seeded) && books.hints.is_empty());
    let shop = lease(&store, "shop.example", later(6)).await?.site;
    assert_eq!(shop.hints, [Hint { url: url("https://shop.example/agents.json"), linked_from: None }]);
    assert!(shop.resources.is_empty(), "a hint is no resource before it was fetched");
    store.site_block(&site("shop.example"), "asked by mail", later(7)).await?;
    assert_eq!(store.seeds_add(&seeds, later(8)).await?, added(0, 2, 2));
    Ok(())
}

pub(crate) async fn a_large_file_is_added_in_batches(Db { store, .. }: Db) -> Result<()> {
    let seeds: Vec<Seed> = (0..12_000).map(|number| seed(&format!("s{number}.example"))).collect();
    assert_eq!(store.seeds_add(&seeds, start()).await?, added(12_000, 0, 0));
    assert_eq!(store.seeds_add(&seeds, start()).await?, added(0, 12_000, 0));
    assert_eq!(store.stats(start()).await?.sites_due, 12_000);
    Ok(())
}

pub(crate) async fn a_new_url_makes_its_site_due_and_a_link_once_a_day(Db { store, .. }: Db) -> Result<()> {
    visited(&store, "shop.example", start(), Vec::new()).await?;
    let due_at = async || store.next_due_at().await;
    let planned = start() + TimeDelta::days(1);
    assert_eq!(due_at().await?, Some(planned));
    let linked = |path: &str| {
        let to = url(&format!("https://shop.example/{path}"));
        Seed::linked(to, url("https://catalog.example/ard.json"))
    };
    assert_eq!(store.seeds_add(&[linked("a")], later(10)).await?, added(1, 0, 0));
    assert_eq!(due_at().await?, Some(later(10)));
    visited(&store, "shop.example", later(11), Vec::new()).await?;
    let planned = later(11) + TimeDelta::days(1);
    assert_eq!(store.seeds_add(&[linked("a")], later(12)).await?, added(0, 1, 0));
    assert_eq!(store.seeds_add(&[linked("b")], later(12)).await?, added(1, 0, 0));
    assert_eq!(due_at().await?, Some(planned), "a second link within a day does not hurry");
    let submitted = Seed { origin: SeedOrigin::Submitted, ..linked("c") };
    assert_eq!(store.seeds_add(&[submitted], later(13)).await?, added(1, 0, 0));
    assert_eq!(due_at().await?, Some(later(13)));
    Ok(())
}

pub(crate) async fn a_revisit_moves_the_next_visit_to_now(Db { store, .. }: Db) -> Result<()> {
    visited(&store, "shop.example", start(), Vec::new()).await?;
    store.seeds_add(&[seed("shop.example")], later(60)).await?;
    assert!(store.sites_lease(&request("w", 9, later(60)), later(60)).await?.is_empty());
    let revisit = Seed { revisit_now: true, ..seed("shop.example") };
    assert_eq!(store.seeds_add(&[revisit], later(60)).await?, added(0, 1, 0));
    assert_eq!(store.sites_lease(&request("w", 9, later(60)), later(60)).await?.len(), 1);
    Ok(())
}

pub(crate) async fn sites_visited_before_a_time_are_visited_again(Db { store, .. }: Db) -> Result<()> {
    visited(&store, "old.example", start(), Vec::new()).await?;
    visited(&store, "new.example", later(50), Vec::new()).await?;
    visited(&store, "left.example", start(), Vec::new()).await?;
    store.site_block(&site("left.example"), "asked by mail", later(1)).await?;
    let parked =
        ParkedVisit { resume_at: later(90), reason: "Crawl-delay: 5400".into(), progress: json!({}) };
    visited(&store, "slow.example", start(), Vec::new()).await?;
    let slow = lease(&store, "slow.example", later(1)).await?.token;
    store.visit_park(&slow, &parked, later(2)).await?;
    assert_eq!(store.sites_revisit(later(49), later(60)).await?, 1);
    let leased = store.sites_lease(&request("w", 9, later(60)), later(60)).await?;
    let names: Vec<&str> = leased.iter().map(|leased| leased.token.site.as_str()).collect();
    assert_eq!(names, ["old.example"], "recent, blocked and parked sites keep their time");
    assert_eq!(store.sites_revisit(later(49), later(61)).await?, 0, "a site that is due stays due");
    Ok(())
}

pub(crate) async fn ranks_decide_who_is_first(Db { store, .. }: Db) -> Result<()> {
    let ranked = |name: &str, rank| Seed { rank: Some(rank), ..seed(name) };
    let linked = Seed::linked(url("https://linked.example/a"), url("https://from.example/a"));
    let submitted = Seed { origin: SeedOrigin::Submitted, ..seed("asked.example") };
    let seeds = [
        ranked("far.example", 5_000_000),
        ranked("first.example", 1),
        ranked("middle.example", 50_000),
        linked,
        submitted,
    ];
    store.seeds_add(&seeds, start()).await?;
    store.seeds_add(&[ranked("risen.example", 900_000)], start()).await?;
    store.seeds_add(&[ranked("risen.example", 20_000)], start()).await?;
    let leased = store.sites_lease(&request("w", 9, later(1)), later(1)).await?;
    let mut names: Vec<&str> = leased.iter().map(|leased| leased.token.site.as_str()).collect();
    names.get_mut(3..5).into_iter().for_each(<[&str]>::sort_unstable);
    let expected = [
        "asked.example",
        "linked.example",
        "first.example",
        "middle.example",
        "risen.example",
        "far.example",
    ];
    assert_eq!(names, expected);
    Ok(())
}

pub(crate) async fn neighbours_in_a_list_are_spread(Db { store, .. }: Db) -> Result<()> {
    // a small batch and a large one take different ways into the database
    for (batch, size) in [("few", 400), ("many", 2_000)] {
        let hosters = ["a", "b", "c", "d"];
        let list: Vec<Seed> = hosters
            .iter()
            .flat_map(|hoster| {
                (0..size / 4).map(move |site| seed(&format!("{batch}{site}-{hoster}.example")))
            })
            .collect();
        store.seeds_add(&list, start()).await?;
        let leased = store.sites_lease(&request(batch, 100, start()), start()).await?;
        for hoster in hosters {
            let suffix = format!("-{hoster}.example");
            let count = leased.iter().filter(|leased| leased.token.site.as_str().ends_with(&suffix)).count();
            assert!((10..=45).contains(&count), "{count} of the first hundred are of {hoster}");
        }
        let rest = store.sites_lease(&request(batch, 2_000, start()), start()).await?;
        assert_eq!(leased.len() + rest.len(), size, "all are due at once");
    }
    Ok(())
}

//! Seeds, links and the sites of lists.

use std::time::Duration;

use anyhow::{Context, Result};
use chrono::TimeDelta;
use manifest::{Discovery, ManifestUrl};
use policy::FetchOutcome;
use serde_json::json;
use store::{
    FetchRecord, HandOver, Hint, HostOrigin, HostState, ParkedVisit, Seed, SeedOrigin, SeedsAdded, Store,
    VisitRecord,
};

use crate::build::{fetch, found, later, lease, leased, request, seed, site, start, url, visit, visited};
use crate::harness::Db;

fn added(added: u64, known: u64, blocked: u64) -> SeedsAdded {
    SeedsAdded { added, known, blocked, refused: 0 }
}

pub(crate) async fn adding_the_same_seeds_changes_nothing(Db { store, .. }: Db) -> Result<()> {
    let with_url = Seed { url: Some(url("https://shop.example/agents.json")), ..seed("shop.example") };
    let seeds = [seed("bücher.example"), seed("www.bücher.example"), with_url, seed("shop.example")];
    assert_eq!(store.seeds_add(&seeds, start()).await?, added(3, 1, 0));
    assert_eq!(store.seeds_add(&seeds, later(5)).await?, added(0, 4, 0));
    assert_eq!(store.seeds_add(&[], later(5)).await?, added(0, 0, 0));
    let books = lease(&store, "bücher.example", later(6)).await?.site;
    let hosts: Vec<&str> = books.hosts.iter().map(|host| host.host.as_str()).collect();
    assert_eq!(hosts, ["www.xn--bcher-kva.example", "xn--bcher-kva.example"]);
    assert!(books.hosts.iter().all(HostState::is_seeded) && books.hints.is_empty());
    let shop = lease(&store, "shop.example", later(6)).await?.site;
    assert_eq!(
        shop.hints,
        [Hint {
            url: url("https://shop.example/agents.json"),
            linked_from: None,
            discovery: Discovery::Listed
        }]
    );
    assert!(shop.resources.is_empty(), "a hint becomes a resource when it is fetched");
    store.site_block(&site("shop.example"), "asked by mail", later(7)).await?;
    assert_eq!(store.seeds_add(&seeds, later(8)).await?, added(0, 2, 2));
    Ok(())
}

pub(crate) async fn adds_a_large_file_in_batches(Db { store, .. }: Db) -> Result<()> {
    let seeds: Vec<Seed> = (0..12_000).map(|number| seed(&format!("s{number}.example"))).collect();
    assert_eq!(store.seeds_add(&seeds, start()).await?, added(12_000, 0, 0));
    assert_eq!(store.seeds_add(&seeds, start()).await?, added(0, 12_000, 0));
    assert_eq!(store.stats(start()).await?.sites_due, 12_000);
    Ok(())
}

pub(crate) async fn new_url_makes_its_site_due_and_a_link_once_a_day(Db { store, .. }: Db) -> Result<()> {
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
    assert_eq!(due_at().await?, Some(planned), "a second link within a day does not make the site due");
    let submitted = Seed { origin: SeedOrigin::Submitted, ..linked("c") };
    assert_eq!(store.seeds_add(&[submitted], later(13)).await?, added(1, 0, 0));
    assert_eq!(due_at().await?, Some(later(13)));
    Ok(())
}

pub(crate) async fn revisit_moves_the_next_visit_to_now(Db { store, .. }: Db) -> Result<()> {
    visited(&store, "shop.example", start(), Vec::new()).await?;
    store.seeds_add(&[seed("shop.example")], later(60)).await?;
    assert!(store.sites_lease(&request("w", 9, later(60)), later(60)).await?.is_empty());
    let revisit = Seed { revisit_now: true, ..seed("shop.example") };
    assert_eq!(store.seeds_add(&[revisit], later(60)).await?, added(0, 1, 0));
    assert_eq!(store.sites_lease(&request("w", 9, later(60)), later(60)).await?.len(), 1);
    Ok(())
}

pub(crate) async fn revisits_sites_visited_before_a_time(Db { store, .. }: Db) -> Result<()> {
    visited(&store, "old.example", start(), Vec::new()).await?;
    visited(&store, "new.example", later(50), Vec::new()).await?;
    visited(&store, "left.example", start(), Vec::new()).await?;
    store.site_block(&site("left.example"), "asked by mail", later(1)).await?;
    let parked = ParkedVisit {
        resume_at: later(90),
        reason: "Crawl-delay: 5400".into(),
        progress: json!({}),
        claim: None,
    };
    visited(&store, "slow.example", start(), Vec::new()).await?;
    let slow = lease(&store, "slow.example", later(1)).await?.token;
    store.visit_park(&slow, &parked, later(2)).await?;
    assert_eq!(store.sites_revisit(later(49), later(60)).await?, 1);
    let leased = store.sites_lease(&request("w", 9, later(60)), later(60)).await?;
    let names: Vec<&str> = leased.iter().map(|leased| leased.token.site.as_str()).collect();
    assert_eq!(names, ["old.example"], "recent, blocked and parked sites keep their time");
    assert_eq!(store.sites_revisit(later(49), later(61)).await?, 0, "a due site is not counted");
    Ok(())
}

pub(crate) async fn leases_sites_by_rank(Db { store, .. }: Db) -> Result<()> {
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
    names.get_mut(2..4).into_iter().for_each(<[&str]>::sort_unstable);
    let expected = [
        "asked.example",
        "first.example",
        "middle.example",
        "risen.example",
        "far.example",
        "linked.example",
    ];
    assert_eq!(names, expected);
    Ok(())
}

pub(crate) async fn refuses_long_links_and_omits_long_sources(db: Db) -> Result<()> {
    let of_length = |site: &str, length: usize| {
        let start = format!("https://{site}/?");
        url(&format!("{start}{}", "a".repeat(length - start.len())))
    };
    let linked =
        |to: usize, from: usize| Seed::linked(of_length("to.example", to), of_length("from.example", from));
    let refused = SeedsAdded { refused: 2, ..added(0, 0, 0) };
    assert_eq!(db.store.seeds_add(&[linked(2_049, 30), linked(30, 2_049)], start()).await?, refused);
    assert_eq!(db.number("SELECT COUNT(*) FROM site").await?, 0);
    assert_eq!(db.store.seeds_add(&[linked(2_048, 2_048)], start()).await?, added(1, 0, 0));
    let mut part = fetch("https://shop.example/part.json", FetchOutcome::Found, start());
    part.linked_from = Some(of_length("shop.example", 2_049));
    visited(&db.store, "shop.example", start(), vec![part]).await?;
    let longest = db.number("SELECT CAST(MAX(LENGTH(linked_from)) AS BIGINT) FROM resource").await?;
    assert_eq!(longest, 2_048, "the store truncates too");
    assert_eq!(db.number("SELECT COUNT(*) FROM resource WHERE site = 'shop.example'").await?, 1);
    Ok(())
}

pub(crate) async fn first_visits_of_a_list_are_shuffled(Db { store, .. }: Db) -> Result<()> {
    // small and large batches use different statements
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
        assert_eq!(leased.len() + rest.len(), size, "all sites are due");
    }
    Ok(())
}

fn linked(to: &str, from: &str) -> Seed {
    Seed::linked(url(&format!("https://{to}/a.json")), url(&format!("https://{from}/catalog.json")))
}

pub(crate) async fn leases_linked_sites_last_with_a_minimum_share(Db { store, .. }: Db) -> Result<()> {
    let listed: Vec<Seed> = (0..200).map(|number| seed(&format!("listed{number}.example"))).collect();
    let links: Vec<Seed> =
        (0..200).map(|number| linked(&format!("linked{number}.example"), "from.example")).collect();
    store.seeds_add(&links, start()).await?;
    store.seeds_add(&listed, start()).await?;
    let count = async |places: u32, now| -> Result<(usize, usize)> {
        let leased = store.sites_lease(&request("w", places, now), now).await?;
        let is_linked = leased.iter().map(|leased| leased.token.site.as_str().starts_with("linked"));
        assert!(is_linked.clone().is_sorted(), "linked sites come after the listed ones");
        let linked = is_linked.filter(|is_linked| *is_linked).count();
        Ok((leased.len() - linked, linked))
    };
    assert_eq!(count(64, later(1)).await?, (56, 8), "one in eight");
    let mut singles = (0, 0);
    for turn in 0..16 {
        let (listed, linked) = count(1, later(1) + TimeDelta::milliseconds(turn)).await?;
        singles = (singles.0 + listed, singles.1 + linked);
    }
    assert_eq!(singles, (14, 2), "batches of one take turns");
    assert_eq!(count(400, later(1)).await?, (130, 190), "linked sites fill the rest of a batch");
    Ok(())
}

pub(crate) async fn submitted_sites_leave_half_of_a_batch_to_lists(Db { store, .. }: Db) -> Result<()> {
    let submitted =
        |number: u32| Seed { origin: SeedOrigin::Submitted, ..seed(&format!("submitted{number}.example")) };
    store.seeds_add(&(0..200).map(submitted).collect::<Vec<_>>(), start()).await?;
    let listed: Vec<Seed> = (0..200).map(|number| seed(&format!("listed{number}.example"))).collect();
    store.seeds_add(&listed, start()).await?;
    let count = async |places: u32, now| -> Result<(usize, usize)> {
        let leased = store.sites_lease(&request("w", places, now), now).await?;
        let is_listed = leased.iter().map(|leased| leased.token.site.as_str().starts_with("listed"));
        assert!(is_listed.clone().is_sorted(), "submitted sites come first");
        let listed = is_listed.filter(|is_listed| *is_listed).count();
        Ok((leased.len() - listed, listed))
    };
    assert_eq!(count(64, later(1)).await?, (32, 32), "a flood of submissions does not starve a list");
    let mut singles = (0, 0);
    for turn in 0..16 {
        let (submitted, listed) = count(1, later(1) + TimeDelta::milliseconds(turn)).await?;
        singles = (singles.0 + submitted, singles.1 + listed);
    }
    assert_eq!(singles, (8, 8), "batches of one take turns");
    assert_eq!(count(400, later(1)).await?, (160, 160), "each kind fills the rest of a batch");
    Ok(())
}

/// Anyone may submit a site and request a visit.
pub(crate) async fn submission_does_not_change_the_priority_of_a_listed_site(db: Db) -> Result<()> {
    let store = &db.store;
    let ranked = |name: &str, rank| Seed { rank: Some(rank), ..seed(name) };
    let submitted = |name: &str| Seed { origin: SeedOrigin::Submitted, revisit_now: true, ..seed(name) };
    store.seeds_add(&[seed("listed.example"), ranked("far.example", 50_000)], start()).await?;
    store.seeds_add(&[linked("linked.example", "from.example")], start()).await?;
    let all = ["listed.example", "far.example", "linked.example", "new.example"].map(submitted);
    store.seeds_add(&all, later(1)).await?;
    let priorities = async || -> Result<[i64; 4]> {
        let mut counts = [0; 4];
        for (priority, count) in counts.iter_mut().enumerate() {
            *count = db.number(&format!("SELECT COUNT(*) FROM site WHERE priority = {priority}")).await?;
        }
        Ok(counts)
    };
    assert_eq!(priorities().await?, [2, 0, 1, 1], "submitted, linked, listed, listed by rank");
    assert!(store.sites_listed(None, 9).await?.is_empty(), "no list removes a submitted site");
    store.seeds_add(&[seed("new.example"), submitted("new.example")], later(2)).await?;
    assert_eq!(priorities().await?, [1, 0, 2, 1], "a list that names a submitted site comes first");
    assert!(store.sites_listed(None, 9).await?.is_empty());
    // many rows use another statement
    let many = (0..1_500).map(|number| format!("many{number}.example"));
    let (lists, clients): (Vec<Seed>, Vec<Seed>) = many.map(|name| (seed(&name), submitted(&name))).unzip();
    store.seeds_add(&clients, later(3)).await?;
    store.seeds_add(&lists, later(4)).await?;
    store.seeds_add(&clients, later(5)).await?;
    assert_eq!(priorities().await?, [1, 0, 1_502, 1]);
    Ok(())
}

pub(crate) async fn a_submission_can_make_a_site_due_later(Db { store, .. }: Db) -> Result<()> {
    let submitted = |host| Seed { origin: SeedOrigin::Submitted, ..seed(host) };
    let due = async |minutes| {
        let now = later(minutes);
        Ok::<_, anyhow::Error>(store.sites_lease(&request("w", 1, now), now).await?.pop())
    };
    let running = leased(&store, "shop.example", start()).await?;
    store.visit_save(&running.token, &visit("shop.example", later(2), Vec::new())).await?;
    let late = [submitted("one.shop.example")];
    assert_eq!(store.seeds_add_due_at(&late, later(3), later(9)).await?, added(1, 0, 0));
    assert_eq!(due(8).await?, None);
    let requested = due(9).await?.context("the requested visit")?;
    assert_eq!(requested.token.due_at, later(9));
    assert!(requested.site.hosts.iter().any(|host| host.host.as_str() == "one.shop.example"));
    let during = [submitted("two.shop.example")];
    assert_eq!(store.seeds_add_due_at(&during, later(10), later(19)).await?, added(1, 0, 0));
    store.visit_save(&requested.token, &visit("shop.example", later(11), Vec::new())).await?;
    assert_eq!(due(18).await?, None);
    assert_eq!(due(19).await?.context("the requested visit follows")?.token.due_at, later(19));
    Ok(())
}

pub(crate) async fn a_visit_requested_during_another_one_follows_it(Db { store, .. }: Db) -> Result<()> {
    let again = || Seed { origin: SeedOrigin::Submitted, revisit_now: true, ..seed("shop.example") };
    let due = async |minutes| {
        let now = later(minutes);
        Ok::<_, anyhow::Error>(store.sites_lease(&request("w", 1, now), now).await?.pop())
    };
    let running = leased(&store, "shop.example", start()).await?;
    assert_eq!(store.seeds_add(&[again()], later(1)).await?, added(0, 1, 0));
    store.visit_save(&running.token, &visit("shop.example", later(2), Vec::new())).await?;
    let requested = due(3).await?.context("the requested visit")?;
    assert_eq!(requested.token.due_at, later(1));
    store.visit_save(&requested.token, &visit("shop.example", later(4), Vec::new())).await?;
    assert_eq!(due(5).await?, None, "one request causes one visit");

    // a parked or handed-over visit reads the request when it is resumed
    let parked = |minutes| ParkedVisit {
        resume_at: later(minutes),
        reason: "Crawl-delay: 3600".into(),
        progress: json!({}),
        claim: None,
    };
    let day = 24 * 60;
    let running = due(4 + day).await?.context("the next day")?;
    store.seeds_add(&[again()], later(5 + day)).await?;
    store.visit_park(&running.token, &parked(70 + day), later(6 + day)).await?;
    let resumed = due(7 + day).await?.context("requested while the visit was open")?;
    assert_eq!(resumed.token.due_at, later(5 + day));
    assert_eq!(resumed.site.parked.as_ref().map(|parked| parked.resume_at), Some(later(70 + day)));
    store.visit_park(&resumed.token, &parked(70 + day), later(8 + day)).await?;
    assert_eq!(due(9 + day).await?, None, "the resumed visit has already handled the request");
    // requests for an overdue visit do not move it back in the queue, which is sorted by these times
    for minutes in [80, 90] {
        store.seeds_add(&[again()], later(minutes + day)).await?;
    }
    let resumed = due(90 + day).await?.context("requested after the wait")?;
    assert_eq!(
        resumed.token.due_at,
        later(70 + day) - TimeDelta::milliseconds(2),
        "the planned time has changed"
    );
    store.seeds_add(&[again()], later(91 + day)).await?;
    let hand_over = HandOver { due_at: resumed.token.due_at, progress: Some(json!({})) };
    assert_eq!(store.visits_hand_over(&[(resumed.token, hand_over)]).await?.len(), 1);
    assert_eq!(due(92 + day).await?.context("handed over")?.token.due_at, later(91 + day));
    Ok(())
}

pub(crate) async fn link_does_not_change_the_priority_of_a_listed_site(db: Db) -> Result<()> {
    let store = &db.store;
    let names = ["before.example", "after.example", "only.example"];
    store.seeds_add(&[seed(names[0]), seed(names[2])], start()).await?;
    let links = [linked(names[0], "from.example"), linked(names[1], "from.example")];
    store.seeds_add(&links, later(1)).await?;
    store.seeds_add(&[seed(names[1])], later(2)).await?;
    let classes = "SELECT COUNT(*) FROM site WHERE priority = 2";
    assert_eq!(db.number(classes).await?, 3, "linked before or after it was listed");
    assert_eq!(
        store.sites_listed(None, 9).await?,
        [site("only.example")],
        "a list removes only listed sites"
    );
    // many rows use another statement
    let many =
        |prefix: &str| (0..1_500).map(|number| format!("{prefix}{number}.example")).collect::<Vec<_>>();
    let (first, second) = (many("first"), many("second"));
    store
        .seeds_add(&first.iter().map(|name| linked(name, "from.example")).collect::<Vec<_>>(), later(3))
        .await?;
    store.seeds_add(&first.iter().map(|name| seed(name)).collect::<Vec<_>>(), later(4)).await?;
    store.seeds_add(&second.iter().map(|name| seed(name)).collect::<Vec<_>>(), later(5)).await?;
    let links: Vec<Seed> = second.iter().map(|name| linked(name, "from.example")).collect();
    store.seeds_add(&links, later(6)).await?;
    assert_eq!(db.number(classes).await?, 3_003);
    assert_eq!(store.sites_listed(None, 9).await?, [site("only.example")]);
    Ok(())
}

pub(crate) async fn bounds_the_sites_that_one_site_adds(db: Db) -> Result<()> {
    let store = &db.store;
    let links = |numbers: std::ops::Range<u32>| -> Vec<Seed> {
        numbers
            .map(|number| linked(&format!("n{number}.example"), &format!("h{}.evil.example", number % 7)))
            .collect()
    };
    assert_eq!(store.seeds_add(&links(0..6_000), start()).await?, added(6_000, 0, 0));
    let most = store.seeds_add(&links(5_000..11_000), start()).await?;
    assert_eq!(most, SeedsAdded { refused: 1_000, ..added(4_000, 1_000, 0) });
    assert_eq!(db.number("SELECT COUNT(*) FROM site").await?, 10_000);
    assert_eq!(store.seeds_add(&[linked("other.example", "honest.example")], start()).await?, added(1, 0, 0));
    let record =
        VisitRecord { new_seeds: links(10_000..10_100), ..visit("evil.example", start(), Vec::new()) };
    let token = leased(store, "evil.example", start()).await?.token;
    assert_eq!(store.visit_save(&token, &record).await?.links_refused, 100, "they are counted");
    visited(store, "n1.example", later(1), Vec::new()).await?;
    store.site_block(&site("n2.example"), "asked by mail", later(1)).await?;
    let room = store.seeds_add(&links(10_000..10_100), later(2)).await?;
    assert_eq!(room, SeedsAdded { refused: 98, ..added(2, 0, 0) }, "one was visited, one is blocked");
    Ok(())
}

pub(crate) async fn bounds_hosts_and_urls_of_a_site(db: Db) -> Result<()> {
    let store = &db.store;
    let hosts = |numbers: std::ops::Range<u32>| numbers.map(|number| format!("h{number}.shop.example"));
    let of_one: Vec<Seed> = hosts(0..400).map(|host| linked(&host, "from.example")).collect();
    let part = SeedsAdded { refused: 100, ..added(300, 0, 0) };
    assert_eq!(store.seeds_add(&of_one, start()).await?, part, "one site leaves room for others");
    let further: Vec<Seed> = hosts(400..500).map(|host| linked(&host, "www.from.example")).collect();
    assert_eq!(store.seeds_add(&further, start()).await?, SeedsAdded { refused: 100, ..added(0, 0, 0) });
    let by_many = (0_u32..).zip(hosts(0..1_500));
    let links: Vec<Seed> =
        by_many.map(|(number, host)| linked(&host, &format!("from{}.example", number % 6))).collect();
    assert_eq!(store.seeds_add(&links, start()).await?, SeedsAdded { refused: 500, ..added(700, 300, 0) });
    let submitted: Vec<Seed> = (0..150)
        .map(|number| Seed { origin: SeedOrigin::Submitted, ..seed(&format!("asked{number}.shop.example")) })
        .collect();
    let room = SeedsAdded { refused: 50, ..added(100, 0, 0) };
    assert_eq!(store.seeds_add(&submitted, start()).await?, room, "links leave room for submissions");
    let link = linked("more.shop.example", "from.example");
    assert_eq!(store.seeds_add(&[link], start()).await?, SeedsAdded { refused: 1, ..added(0, 0, 0) });
    let listed: Vec<Seed> = hosts(0..10_500).map(|host| seed(&host)).collect();
    let taken = store.seeds_add(&listed, start()).await?;
    assert_eq!(taken, SeedsAdded { refused: 600, ..added(8_900, 1_000, 0) });
    assert_eq!(db.number("SELECT COUNT(*) FROM host").await?, 10_000);
    let new: Vec<Seed> = hosts(0..10_500).map(|host| seed(&host.replace("shop", "new"))).collect();
    assert_eq!(store.seeds_add(&new, start()).await?, SeedsAdded { refused: 500, ..added(10_000, 0, 0) });
    let url_of = |number: u32| url(&format!("https://inn.example/{number}.json"));
    let from = |number: u32| url(&format!("https://from{}.example/", number % 3));
    let of_one: Vec<Seed> = (0..500).map(|number| Seed::linked(url_of(3 * number), from(0))).collect();
    let part = SeedsAdded { refused: 200, ..added(300, 0, 0) };
    assert_eq!(store.seeds_add(&of_one, start()).await?, part, "one site leaves room for others");
    let rest: Vec<Seed> = (500..600).map(|number| Seed::linked(url_of(3 * number), from(0))).collect();
    assert_eq!(store.seeds_add(&rest, start()).await?, SeedsAdded { refused: 100, ..added(0, 0, 0) });
    let urls: Vec<Seed> = (0..1_500).map(|number| Seed::linked(url_of(number), from(number))).collect();
    assert_eq!(store.seeds_add(&urls, start()).await?, SeedsAdded { refused: 600, ..added(600, 300, 0) });
    assert_eq!(store.seeds_add(&urls, start()).await?, SeedsAdded { refused: 600, ..added(0, 900, 0) });
    let submitted: Vec<Seed> = (2_000..2_150)
        .map(|number| Seed {
            url: Some(url_of(number)),
            origin: SeedOrigin::Submitted,
            ..seed("inn.example")
        })
        .collect();
    let room = SeedsAdded { refused: 50, ..added(100, 0, 0) };
    assert_eq!(store.seeds_add(&submitted, start()).await?, room, "links leave room for submissions");
    assert_eq!(lease(store, "inn.example", later(1)).await?.site.hints.len(), 1_000);
    Ok(())
}

/// Links to this many URLs of a host, from this site.
fn links_at(host: &str, from: &str, numbers: std::ops::Range<u32>) -> Vec<Seed> {
    let from = url(&format!("https://{from}/agents.json"));
    let to = |number| url(&format!("https://{host}/{}/{number}.json", from.host()));
    numbers.map(|number| Seed::linked(to(number), from.clone())).collect()
}

/// Sites with many links leave a share of the limit to other sites.
pub(crate) async fn sites_share_the_limit_on_urls(Db { store, .. }: Db) -> Result<()> {
    for evil in ["e0.example", "e1.example", "e2.example"] {
        let result = store.seeds_add(&links_at("inn.example", evil, 0..350), start()).await?;
        assert_eq!(result, SeedsAdded { refused: 50, ..added(300, 0, 0) });
    }
    let many = store.seeds_add(&links_at("inn.example", "good.example", 0..300), later(1)).await?;
    assert_eq!(many, SeedsAdded { refused: 75, ..added(225, 0, 0) }, "a quarter");
    let one = store.seeds_add(&links_at("inn.example", "few.example", 0..1), later(2)).await?;
    assert_eq!(one, added(1, 0, 0));
    let again = store.seeds_add(&links_at("inn.example", "e0.example", 0..350), later(3)).await?;
    assert_eq!(again.added, 0, "replaced links are not added again");
    let hints = lease(&store, "inn.example", later(4)).await?.site.hints;
    let of = |site: &str| {
        let is_of = |hint: &&Hint| hint.linked_from.as_ref().is_some_and(|from| from.host().as_str() == site);
        hints.iter().filter(is_of).count()
    };
    let counts = ["e0.example", "e1.example", "e2.example", "good.example", "few.example"].map(of);
    assert_eq!((counts.iter().sum::<usize>(), counts[4]), (900, 1), "{counts:?}");
    assert!(counts[..4].iter().all(|count| (224..=225).contains(count)), "{counts:?}");
    Ok(())
}

/// Whether the catalog of the site `list.example` has links left. Its validators are kept.
async fn has_links_left(store: &Store) -> Result<bool> {
    let known = store.site_report(&site("list.example"), 1).await?.context("the site")?.state.resources;
    let catalog = known.iter().find(|known| known.manifest_id.is_some()).context("the catalog")?;
    anyhow::ensure!(catalog.etag.is_some(), "{catalog:?}");
    Ok(catalog.cache.as_ref().context("a response")?["links_left"] == true)
}

/// A catalog may never change. If some of its links were refused, they are read again from the stored manifest.
pub(crate) async fn refused_links_of_a_manifest_are_read_again(Db { store, .. }: Db) -> Result<()> {
    const CATALOG: &str = "https://list.example/agents.json";
    let read =
        async |minutes: i64, outcome: FetchOutcome, links: std::ops::Range<u32>| -> Result<(u64, bool)> {
            let response = json!({"status": 200, "received_at": later(minutes), "headers": []});
            let catalog =
                FetchRecord { cache: Some(response), ..found(CATALOG, "list", &["book"], later(minutes)) };
            let catalog = match outcome {
                FetchOutcome::Found => catalog,
                _ => FetchRecord { outcome, body: None, manifest: None, ..catalog },
            };
            let token = leased(&store, "list.example", later(minutes)).await?.token;
            let new_seeds = links_at("inn.example", "list.example", links);
            let record = VisitRecord { new_seeds, ..visit("list.example", later(minutes), vec![catalog]) };
            let refused = store.visit_save(&token, &record).await?.links_refused;
            Ok((refused, has_links_left(&store).await?))
        };
    assert_eq!(read(1, FetchOutcome::Found, 0..310).await?, (10, true));
    let is_requested = |hint: Hint| FetchRecord {
        discovery: hint.discovery,
        linked_from: hint.linked_from,
        ..found(hint.url.as_str(), hint.url.as_str(), &["book"], later(2))
    };
    let hints = leased(&store, "inn.example", later(2)).await?;
    let fetches = hints.site.hints.into_iter().take(20).map(is_requested).collect();
    store.visit_save(&hints.token, &visit("inn.example", later(2), fetches)).await?;
    assert_eq!(read(1_500, FetchOutcome::NotModified, 0..310).await?, (0, false), "all of them are known");
    // a link of another site replaces one of them
    for other in ["e0.example", "e1.example"] {
        store.seeds_add(&links_at("inn.example", other, 0..300), later(1_501)).await?;
    }
    store.seeds_add(&links_at("inn.example", "few.example", 0..50), later(1_501)).await?;
    assert!(has_links_left(&store).await?);
    Ok(())
}

/// Hosts that were searched but have no manifest are removed to make room for other links. Nonexistent names are removed immediately.
pub(crate) async fn hosts_without_manifests_make_room_for_links(db: Db) -> Result<()> {
    let store = &db.store;
    visited(store, "inn.example", start(), Vec::new()).await?;
    db.execute(
        "INSERT INTO host (host, site, seeded)
         WITH RECURSIVE number (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < 1001)
         SELECT 'h' || n || '.inn.example', 'inn.example', 1 FROM number",
    )
    .await?;
    let now = later(60);
    let link = |number: u32| linked(&format!("new{number}.inn.example"), "from.example");
    assert_eq!(store.seeds_add(&[link(0)], now).await?.refused, 1, "unsearched hosts are kept");

    let seen = found("https://h4.inn.example/agent.json", "one", &["book"], now);
    let gone =
        |name: &str| fetch(&format!("https://{name}.inn.example/x.json"), FetchOutcome::DnsFailed, now);
    let ms = now.timestamp_millis();
    let before = "requests_day = 1, requests_today = 1";
    for (names, change) in [
        ("'h4.inn.example', 'h5.inn.example', 'h6.inn.example'", "next_ok_at_ms = 1".to_owned()),
        ("'h7.inn.example'", format!("next_ok_at_ms = {ms} + 99999999")),
        ("'h8.inn.example'", format!("next_ok_at_ms = 1, not_before_ms = {ms} + 99999999")),
        ("'h9.inn.example'", "next_ok_at_ms = 1, seeded = 2".to_owned()),
    ] {
        db.execute(&format!("UPDATE host SET {before}, {change} WHERE host IN ({names})")).await?;
    }
    let token = lease(store, "inn.example", later(59)).await?.token;
    let record = visit("inn.example", now, vec![seen, gone("h1"), gone("h2"), gone("h9")]);
    store.visit_save(&token, &record).await?;
    let named = async || db.number("SELECT COUNT(*) FROM host WHERE host LIKE 'h%.inn.example'").await;
    assert_eq!(named().await?, 999, "two names do not exist");
    let links: Vec<Seed> = (1..9).map(link).collect();
    let added = store.seeds_add(&links, later(62)).await?;
    assert_eq!(named().await?, 997, "two searched hosts had no manifest");
    let hosts = db.number("SELECT COUNT(*) FROM host WHERE site = 'inn.example'").await?;
    assert_eq!((hosts, added.added + added.refused), (1_000, 8));
    for kept in ["h3", "h4", "h7", "h8", "h9"] {
        let statement = format!("SELECT COUNT(*) FROM host WHERE host = '{kept}.inn.example'");
        assert_eq!(db.number(&statement).await?, 1, "{kept}");
    }
    Ok(())
}

/// A host keeps the most trusted origin of its sources, whether its site is compacted or not.
pub(crate) async fn host_keeps_its_most_trusted_origin(db: Db) -> Result<()> {
    let store = &db.store;
    let submitted = |name: &str| Seed { origin: SeedOrigin::Submitted, ..seed(name) };
    let linked = |name: &str| linked(name, "from.example");
    store
        .seeds_add(&[linked("a.inn.example"), submitted("b.inn.example"), seed("c.inn.example")], start())
        .await?;
    store
        .seeds_add(&[seed("shop.example"), linked("a.shop.example"), linked("b.shop.example")], start())
        .await?;
    store.seeds_add(&[seed("b.shop.example"), linked("c.inn.example")], later(1)).await?;
    let origins = async |name: &str, at| -> Result<Vec<(String, HostOrigin)>> {
        let leased = lease(store, name, at).await?;
        store.standalone_end(&leased.token, &[]).await?;
        Ok(leased.site.hosts.into_iter().map(|host| (host.host.to_string(), host.origin)).collect())
    };
    let named = |name: &str, origin| (name.to_owned(), origin);
    let of_inn = [
        named("a.inn.example", HostOrigin::Named),
        named("b.inn.example", HostOrigin::Named),
        named("c.inn.example", HostOrigin::Listed),
    ];
    let of_shop = [
        named("a.shop.example", HostOrigin::Named),
        named("b.shop.example", HostOrigin::Listed),
        named("shop.example", HostOrigin::Listed),
    ];
    assert_eq!(origins("inn.example", later(2)).await?, of_inn);
    assert_eq!(origins("shop.example", later(2)).await?, of_shop);
    for name in ["inn.example", "shop.example"] {
        // The seed of this visit lists the site itself.
        visited(store, name, later(3), Vec::new()).await?;
    }
    let after_visit = origins("inn.example", later(100_000)).await?;
    assert_eq!(after_visit[..3], of_inn, "after a visit");
    assert_eq!(origins("shop.example", later(100_000)).await?, of_shop);
    let known = store.seeds_add(&[seed("a.inn.example"), seed("shop.example")], later(100_001)).await?;
    assert_eq!(known, added(0, 2, 0), "listing a known host makes no visit due");
    assert_eq!(origins("inn.example", later(100_002)).await?[0], named("a.inn.example", HostOrigin::Listed));
    let collected = |name: &str| Seed { origin: SeedOrigin::Collected, rank: Some(7), ..seed(name) };
    let list = ["a.inn.example", "b.inn.example", "d.inn.example", "a.new.example"].map(collected);
    store.seeds_add(&list, later(100_003)).await?;
    let of_inn = [
        named("a.inn.example", HostOrigin::Listed),
        named("b.inn.example", HostOrigin::Collected),
        named("c.inn.example", HostOrigin::Listed),
        named("d.inn.example", HostOrigin::Collected),
    ];
    assert_eq!(
        origins("inn.example", later(100_004)).await?[..4],
        of_inn,
        "a collected list is trusted less than the operator's list"
    );
    store.seeds_add(&[seed("a.new.example")], later(100_005)).await?;
    assert_eq!(origins("new.example", later(100_006)).await?, [named("a.new.example", HostOrigin::Listed)]);
    Ok(())
}

pub(crate) async fn site_with_60_000_hosts_is_leased_and_reported_in_linear_time(db: Db) -> Result<()> {
    let store = &db.store;
    visited(store, "shop.example", start(), Vec::new()).await?;
    // a database of an earlier version may contain these rows
    db.execute(
        "INSERT INTO host (host, site, seeded)
         WITH RECURSIVE number (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < 60000)
         SELECT 'h' || n || '.shop.example', 'shop.example', 1 FROM number",
    )
    .await?;
    let name = site("shop.example");
    let report = async {
        assert_eq!(lease(store, "shop.example", later(1)).await?.site.hosts.len(), 60_001);
        assert!(store.site_summary(&name).await?.is_some_and(|summary| summary.name == name));
        store.site_report_brief(&name, 1, 200).await?.context("the report of the site")
    };
    let report = tokio::time::timeout(Duration::from_secs(20), report).await.context("in linear time")??;
    assert_eq!((report.state.hosts.len(), report.hosts_total), (200, 60_001));
    assert!(report.state.hosts.iter().any(|host| host.host.as_str() == "shop.example"));
    assert!(store.site_summary(&site("none.example")).await?.is_none());
    Ok(())
}

/// One site names URLs of a shop; later, other sites name them again.
pub(crate) async fn a_url_without_a_manifest_becomes_a_hint_again(Db { store, .. }: Db) -> Result<()> {
    const SHOP: &str = "shop.example";
    let at = |name: &str| url(&format!("https://shop.example/u/{name}.json"));
    let from = |site: &str| url(&format!("https://{site}/agents.json"));
    let own = url("https://shop.example/agents.json");
    let by = |name: &str, site: &str| Seed::linked(at(name), from(site));
    let submitted = |name: &str| Seed { url: Some(at(name)), origin: SeedOrigin::Submitted, ..seed(SHOP) };
    store.seeds_add(&[by("failed", "evil.example"), by("living", "evil.example")], start()).await?;
    let linked = |name: &str, from: &ManifestUrl, fetch: FetchRecord| FetchRecord {
        url: at(name),
        discovery: Discovery::CatalogEntry,
        linked_from: Some(from.clone()),
        ..fetch
    };
    let evil = from("evil.example");
    let failed = fetch(at("failed").as_str(), FetchOutcome::NotFound, later(1));
    let living = found(at("living").as_str(), "living", &["book"], later(1));
    let part = FetchRecord { manifest: None, ..found(at("part").as_str(), "part", &[], later(1)) };
    let fetches = vec![
        linked("failed", &evil, failed.clone()),
        linked("own", &own, failed),
        linked("living", &evil, living),
        linked("part", &own, part),
    ];
    visited(&store, SHOP, later(1), fetches).await?;
    let day = 24 * 60 + 2;
    for (minutes, seed, added) in [
        (2, by("failed", "evil.example"), false),
        (3, submitted("failed"), false),
        (4, by("own", "evil.example"), false),
        (4, by("living", "good.example"), false),
        (day, submitted("living"), false),
        (5, by("failed", "good.example"), true),
        (6, by("failed", "third.example"), false),
        (day, by("own", "evil.example"), true),
        (7, submitted("part"), true),
        (8, by("part", "good.example"), false),
    ] {
        let result = store.seeds_add(std::slice::from_ref(&seed), later(minutes)).await?;
        assert_eq!((result.added, result.known), (added.into(), (!added).into()), "{minutes}: {seed:?}");
    }
    let state = lease(&store, SHOP, later(day + 1)).await?.site;
    let mut hints: Vec<_> =
        state.hints.iter().map(|hint| (hint.url.to_string(), hint.linked_from.clone())).collect();
    hints.sort();
    let expected = [("failed", from("good.example")), ("own", own.clone())];
    assert_eq!(
        hints,
        expected.map(|(name, from)| (at(name).to_string(), Some(from))),
        "a link of its own site remains the source"
    );
    let part = state.resources.iter().find(|known| known.url == at("part")).context("the part")?;
    assert_eq!((part.discovery, part.linked_from.as_ref()), (Discovery::Submitted, Some(&own)));
    let failed = linked(
        "failed",
        &from("good.example"),
        fetch(at("failed").as_str(), FetchOutcome::NotFound, later(day + 9)),
    );
    visited(&store, SHOP, later(day + 9), vec![failed]).await?;
    let result = store.seeds_add(&[submitted("failed")], later(2 * day + 9)).await?;
    assert_eq!(result.added, 1, "a submission after a day");
    Ok(())
}

/// The first visit requests the URL among the planned paths, so this becomes its source.
pub(crate) async fn a_list_read_again_does_not_repeat_the_request_of_a_planned_path(
    Db { store, .. }: Db,
) -> Result<()> {
    let at = url("https://shop.example/agent.json");
    let listed = [Seed { url: Some(at.clone()), ..seed("shop.example") }];
    assert_eq!(store.seeds_add(&listed, start()).await?.added, 1);
    let failed = fetch(at.as_str(), FetchOutcome::NotFound, later(1));
    let failed = FetchRecord { discovery: Discovery::Root, linked_from: None, ..failed };
    visited(&store, "shop.example", later(1), vec![failed]).await?;
    for (minutes, added) in [(2, 0), (24 * 60 - 1, 0), (24 * 60 + 2, 1)] {
        assert_eq!(store.seeds_add(&listed, later(minutes)).await?.added, added, "after {minutes} min");
    }
    Ok(())
}

/// A site keeps linking to a URL that fails or that has left the index.
pub(crate) async fn a_link_that_its_site_still_has_leads_to_a_few_more_requests(
    Db { store, .. }: Db,
) -> Result<()> {
    const SHOP: &str = "shop.example";
    let at = url("https://shop.example/u/x.json");
    let from = url("https://evil.example/agents.json");
    let linked = |fetch: FetchRecord| FetchRecord {
        discovery: Discovery::CatalogEntry,
        linked_from: Some(from.clone()),
        ..fetch
    };
    let links = [Seed::linked(at.clone(), from.clone())];
    let day = 24 * 60 + 9;
    assert_eq!(store.seeds_add(&links, start()).await?.added, 1);
    let failing = |outcome| {
        let at = at.clone();
        move |minutes| linked(fetch(at.as_str(), outcome, later(minutes)))
    };
    let mut today = 0;
    for outcome in [FetchOutcome::ServerError, FetchOutcome::NotFound, FetchOutcome::RobotsDenied] {
        visited(&store, SHOP, later(today + 1), vec![failing(outcome)(today + 1)]).await?;
        assert_eq!(store.seeds_add(&links, later(today + 2)).await?.added, 0, "{outcome}: on the same day");
        let renewed = store.seeds_add(&links, later(today + day)).await?.added;
        assert_eq!(renewed, u64::from(outcome != FetchOutcome::RobotsDenied), "{outcome}: a day later");
        today += day;
    }
    assert_eq!(store.seeds_add(&links, later(today + 9 * day)).await?.added, 0, "after three requests");

    let submitted = Seed { url: Some(at.clone()), origin: SeedOrigin::Submitted, ..seed(SHOP) };
    assert_eq!(store.seeds_add(&[submitted], later(today + day)).await?.added, 1);
    today += 2 * day;
    visited(&store, SHOP, later(today), vec![linked(found(at.as_str(), "x", &["book"], later(today)))])
        .await?;
    assert_eq!(
        store.seeds_add(&links, later(today + day)).await?.added,
        0,
        "links to an indexed manifest are not hints"
    );
    today += day;
    for left in 0..4 {
        visited(&store, SHOP, later(today), vec![failing(FetchOutcome::Gone)(today)]).await?;
        let renewed = store.seeds_add(&links, later(today + day)).await?.added;
        assert_eq!(renewed, u64::from(left < 3), "{left} requests after it left the index");
        today += day;
    }
    Ok(())
}

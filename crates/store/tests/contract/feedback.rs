//! Feedback about search results: stored once, within caps, listed and removed.

use anyhow::Result;
use manifest::CapabilityId;
use store::{Feedback, FeedbackCap, FeedbackCaps, FeedbackFilter, FeedbackOutcome};

use crate::build::{later, site, start};
use crate::harness::Db;

const WIDE: FeedbackCaps = FeedbackCaps { of_client: 9, of_client_for_site: 9, of_site: 9, of_all: 99 };

fn capability(name: &str) -> CapabilityId {
    CapabilityId::of_key(&format!("https://sky.example/agent.json#awp:{name}"))
}

fn feedback_line(client: &str, query: &str, what: &str, about: &str) -> Feedback {
    Feedback {
        at: start(),
        query: query.into(),
        capability: capability(what),
        site: site(about),
        place: 3,
        client: client.into(),
    }
}

pub(crate) async fn feedback_is_stored_once_listed_and_removed(Db { store, .. }: Db) -> Result<()> {
    let book = feedback_line("a", "näh \u{1f6eb}\0 flight", "book", "sky.example");
    assert_eq!(store.feedback_save(&book, WIDE).await?, FeedbackOutcome::Saved);
    assert_eq!(store.feedback_save(&book, WIDE).await?, FeedbackOutcome::Duplicate);
    for (client, query, what, about) in [
        ("b", "flight", "book", "sky.example"),
        ("a", "flight", "book", "sky.example"),
        ("a", "rain", "rain", "wet.example"),
    ] {
        let line = Feedback { at: later(1), ..feedback_line(client, query, what, about) };
        assert_eq!(store.feedback_save(&line, WIDE).await?, FeedbackOutcome::Saved);
    }

    let all = store.feedback_page(&FeedbackFilter::default(), None, 9).await?;
    let queries: Vec<&str> = all.iter().map(|line| line.feedback.query.as_str()).collect();
    assert_eq!(queries[..3], ["rain", "flight", "flight"]);
    assert!(queries[3].starts_with("näh \u{1f6eb}") && !queries[3].contains('\0'));
    assert_eq!((all[3].feedback.place, all[3].feedback.at), (3, start()));
    let older = store.feedback_page(&FeedbackFilter::default(), Some(all[1].id), 1).await?;
    assert_eq!(older, all[2..3]);
    let about_sky = FeedbackFilter { site: Some(site("sky.example")), ..FeedbackFilter::default() };
    assert_eq!(store.feedback_page(&about_sky, None, 9).await?.len(), 3);

    let pairs = store.feedback_pairs(None, 1, 9).await?;
    let listed: Vec<(&str, u64)> = pairs.iter().map(|pair| (pair.query.as_str(), pair.clients)).collect();
    assert_eq!(listed[..2], [("flight", 2), (queries[3], 1)]);
    assert_eq!(store.feedback_pairs(Some(&pairs[0]), 1, 9).await?, pairs[1..]);
    assert_eq!(store.feedback_pairs(None, 2, 9).await?, pairs[..1]);

    let one = FeedbackFilter { id: Some(all[0].id), ..FeedbackFilter::default() };
    assert_eq!(store.feedback_remove(&one).await?, 1);
    let of_client = FeedbackFilter { client: Some("b".into()), ..FeedbackFilter::default() };
    assert_eq!(store.feedback_remove(&of_client).await?, 1);
    let of_other = FeedbackFilter { capability: Some(capability("rain")), ..FeedbackFilter::default() };
    assert_eq!(store.feedback_remove(&of_other).await?, 0);
    store.site_block(&site("sky.example"), "asked by mail", later(2)).await?;
    assert!(store.feedback_page(&FeedbackFilter::default(), None, 9).await?.is_empty(), "a block purges");
    assert_eq!(store.feedback_remove(&FeedbackFilter::default()).await?, 0);
    Ok(())
}

pub(crate) async fn feedback_has_caps(Db { store, .. }: Db) -> Result<()> {
    let caps = FeedbackCaps { of_client: 3, of_client_for_site: 2, of_site: 3, of_all: 5 };
    let full = |cap| FeedbackOutcome::Full(cap);
    for (client, about, wanted) in [
        ("a", "sky.example", FeedbackOutcome::Saved),
        ("a", "sky.example", FeedbackOutcome::Saved),
        ("a", "sky.example", full(FeedbackCap::ClientForSite)),
        ("a", "wet.example", FeedbackOutcome::Saved),
        ("a", "wet.example", full(FeedbackCap::Client)),
        ("b", "sky.example", FeedbackOutcome::Saved),
        ("b", "sky.example", full(FeedbackCap::Site)),
        ("c", "sky.example", full(FeedbackCap::Site)),
        ("b", "wet.example", FeedbackOutcome::Saved),
        ("c", "wet.example", full(FeedbackCap::All)),
    ] {
        let number = store.feedback_page(&FeedbackFilter::default(), None, 9).await?.len();
        let line = feedback_line(client, &format!("request {number}"), "book", about);
        assert_eq!(store.feedback_save(&line, caps).await?, wanted, "{client} about {about}");
    }
    Ok(())
}

pub(crate) async fn keeps_one_salt_for_today_only(db: Db) -> Result<()> {
    let store = &db.store;
    assert_eq!(store.feedback_salt(7, "one").await?, "one");
    assert_eq!(store.feedback_salt(7, "other").await?, "one");
    assert_eq!(store.feedback_salt(8, "next").await?, "next");
    assert_eq!(db.number("SELECT COUNT(*) FROM feedback_salt").await?, 1);
    Ok(())
}

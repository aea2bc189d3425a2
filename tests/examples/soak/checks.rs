//! Checks after the faults are removed: every declared action is found exactly once, and the feed has no duplicates.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::Context as _;
use serde_json::Value;
use tokio::time::{Instant, sleep};

use crate::fleet::Fleet;
use crate::load::client;
use crate::sites::SoakSites;

const FEED_PAGE: usize = 1_000;
/// Shops with errors that the report explains.
const EXPLAINED_MAX: usize = 3;

/// The result of the search for every shop.
pub(crate) struct ShopCheck {
    pub(crate) shops: usize,
    /// Shops whose robots.txt forbids their manifest.
    pub(crate) closed: usize,
    /// Shops for which an API process does not return exactly the newest manifest.
    pub(crate) wrong: Vec<String>,
    /// The output of `crawler explain` for some of them.
    pub(crate) explained: Vec<String>,
    pub(crate) took: Duration,
}

/// Waits for at most `max` until every API process returns the current actions of every shop.
pub(crate) async fn wait_until_found(
    fleet: &mut Fleet,
    sites: &SoakSites,
    max: Duration,
) -> anyhow::Result<ShopCheck> {
    let began = Instant::now();
    loop {
        fleet.pass_again(sites)?;
        let findable = sites.findable();
        let wrong = wrong(fleet, &findable).await;
        if wrong.is_empty() || began.elapsed() > max {
            let took = began.elapsed();
            let sites: BTreeSet<&str> = wrong.iter().map(|(site, _)| *site).collect();
            let explained = sites.into_iter().take(EXPLAINED_MAX).map(|site| fleet.explain(site)).collect();
            return Ok(ShopCheck {
                shops: findable.len(),
                closed: findable.iter().filter(|(_, actions)| actions.is_empty()).count(),
                explained,
                wrong: wrong.into_iter().map(|(_, text)| text).collect(),
                took,
            });
        }
        sleep(Duration::from_secs(2)).await;
    }
}

/// Sites for which an API process does not return the current actions, with its results.
async fn wrong<'a>(fleet: &Fleet, findable: &[(&'a str, Vec<String>)]) -> Vec<(&'a str, String)> {
    let mut wrong = Vec::new();
    for interface in fleet.interfaces() {
        for (site, actions) in findable {
            let answer = get(&format!("{interface}/search?site={site}&format=awp&limit=10")).await;
            let ids = answer.ok().map(|answer| ids(&answer));
            if ids.as_ref() != Some(actions) {
                wrong.push((*site, format!("{site} on {interface}: {ids:?} instead of {actions:?}")));
            }
        }
    }
    wrong
}

fn ids(answer: &Value) -> Vec<String> {
    let rows = answer["results"].as_array().into_iter().flatten();
    rows.filter_map(|row| row["native_id"].as_str().map(str::to_owned)).collect()
}

/// The feed from its beginning.
#[derive(Default)]
pub(crate) struct Changes {
    pub(crate) entries: usize,
    pub(crate) doubled: usize,
}

pub(crate) async fn changes(fleet: &Fleet) -> anyhow::Result<Changes> {
    let base = fleet.interfaces().into_iter().next().context("the fleet has no API process")?;
    let mut seen = BTreeSet::new();
    let mut changes = Changes::default();
    let mut cursor = None::<String>;
    loop {
        let from = cursor.as_ref().map_or_else(String::new, |cursor| format!("&cursor={cursor}"));
        let page = get(&format!("{base}/changes?limit={FEED_PAGE}{from}")).await?;
        let entries = page["changes"].as_array().context("not a page of the feed")?;
        for entry in entries {
            changes.entries += 1;
            changes.doubled += usize::from(!seen.insert(entry.to_string()));
        }
        match page["next_cursor"].as_str() {
            Some(next) if !entries.is_empty() && cursor.as_deref() != Some(next) => {
                cursor = Some(next.to_owned());
            }
            _ => return Ok(changes),
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "a client of the local api")]
async fn get(url: &str) -> anyhow::Result<Value> {
    let answer = client().get(url).send().await?;
    Ok(serde_json::from_slice(&answer.bytes().await?)?)
}

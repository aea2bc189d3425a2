//! Fifty invented spam sites, the first sites of two of their groups, and published manifests that must not count as spam.
//!
//! `tests/relevance/spam.jsonl` has a line per site: its name, the reason why it is spam (none for the one site of a group that keeps its
//! rank), the labelled requests that it targets, the sites that it links to, and its capabilities. `copies` expands to one capability for
//! each value of `of`.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Context;
use chrono::TimeDelta;
use indexer::SpamSite;
use manifest::model::Link;
use serde::Deserialize;
use store::StoredManifest;

use super::labelled::{self, Judged, Pool, SEEN_LATER};
use super::sets::{Tool, capability, manifest};

/// A line of the file.
#[derive(Debug, Deserialize)]
pub struct SpamLine {
    pub site: String,
    name: String,
    pub reason: Option<String>,
    /// Texts of labelled requests.
    pub requests: Vec<String>,
    #[serde(default)]
    links: Vec<String>,
    #[serde(default)]
    capabilities: Vec<Declared>,
    copies: Option<Copies>,
}

#[derive(Debug, Deserialize)]
struct Declared {
    id: String,
    description: String,
}

#[derive(Debug, Deserialize)]
struct Copies {
    id: String,
    description: String,
    of: Vec<String>,
}

/// The results of the labelled requests over the demo with the spam sites.
pub struct SpamJudged {
    pub lines: Vec<SpamLine>,
    pub judged: Vec<Judged>,
    /// The sites that are ranked lower.
    pub spam: Vec<SpamSite>,
}

/// Ranks the capabilities of the demo and of the spam sites, which were seen later, for the requests about the demo.
pub fn judge_with_spam() -> anyhow::Result<SpamJudged> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("relevance/spam.jsonl");
    let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let lines: Vec<SpamLine> = text.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
    let mut manifests = labelled::demo()?;
    for line in &lines {
        manifests.push((line.site.clone(), stored(line)?));
    }
    let pool = Pool::of(&manifests, &std::sync::Arc::default())?;
    let requests = labelled::requests()?.into_iter().filter(labelled::LabelledRequest::is_of_demo);
    let judged = requests.map(|request| pool.judge(request)).collect::<anyhow::Result<_>>()?;
    Ok(SpamJudged { lines, judged, spam: pool.spam()? })
}

fn stored(line: &SpamLine) -> anyhow::Result<StoredManifest> {
    let mut stored = manifest(&line.site, &line.name)?;
    stored.first_seen_at += SEEN_LATER;
    let links = line.links.iter().map(|site| Link::new("related", format!("https://{site}/"), None));
    stored.manifest.links = links.collect();
    let declared = line.capabilities.iter().map(|of| (of.id.clone(), of.description.clone()));
    let copies = line.copies.iter().flat_map(|copies| {
        let filled = |text: &str, value: &str| text.replace("{}", value);
        copies.of.iter().map(move |value| (filled(&copies.id, value), filled(&copies.description, value)))
    });
    for (id, description) in declared.chain(copies) {
        let tool = Tool { name: id.clone(), id, description, ..Tool::default() };
        let capability = capability(&stored.manifest, &tool);
        stored.manifest.capabilities.push(capability);
    }
    Ok(stored)
}

/// The published manifests that count as spam, at sites with names like those of their publishers; `None` if the files are not present.
/// Half of them, the even or the odd ones, were seen long before the others.
pub fn spam_among_published(is_even_older: bool) -> anyhow::Result<Option<Vec<SpamSite>>> {
    let Some(published) = labelled::published_at_names_of_publishers()? else { return Ok(None) };
    let mut manifests: BTreeMap<String, StoredManifest> = BTreeMap::new();
    for (at, (name, mut stored)) in published.into_iter().enumerate() {
        if (at % 2 == 0) != is_even_older {
            stored.first_seen_at += TimeDelta::days(60);
        }
        manifests.insert(name, stored);
    }
    let manifests: Vec<(String, StoredManifest)> = manifests.into_iter().collect();
    Ok(Some(Pool::of(&manifests, &std::sync::Arc::default())?.spam()?))
}

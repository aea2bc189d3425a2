//! Labelled requests: short ones, over the demo's sites and over published manifests.
//!
//! `tests/relevance/requests.jsonl` has a line per request: `text`, `language` unless it is English, and `grades`, from the key of a
//! capability to 3 (this is it), 2 (does it too), or 1 (helps). A hash of the text selects half of the requests for evaluation; the other
//! half is for choosing rules and weights. A key is `SITE#NATIVE_ID` for a capability of the demo or of one of the twelve invented sites in
//! other languages (`tests/relevance/sites.jsonl`), which share one index with the demo, and `FOLDER/FILE#NATIVE_ID` for a capability of
//! the published files, which are optional and next to the workspace.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use chrono::TimeDelta;
use indexer::{IndexBuilder, SearchRequest, Searcher, SpamSite, WordWeights};
use manifest::{CapabilityId, Discovery, Document, ManifestUrl};
use serde::Deserialize;
use store::{FeedPosition, StoredManifest};

use super::examples::is_judging;
use super::judge::{CUT, Scores, judge};
use super::measures::{Measures, Outcome, is_short, measures};
use super::sets::{Tool, capability, folder, stored};

/// Maximum size of a published file, in bytes: larger files are generated lists of thousands of entries.
const FILE_BYTES_MAX: usize = 1 << 20;
/// The spam sites were first seen this much later than the demo.
pub(super) const SEEN_LATER: TimeDelta = TimeDelta::days(60);
/// Maximum number of sites that are ranked lower.
const SPAM_MAX: usize = 1_000;

/// One labelled request.
#[derive(Debug, Clone, Deserialize)]
pub struct LabelledRequest {
    pub text: String,
    /// Language tag; `None` for English.
    #[serde(default)]
    pub language: Option<String>,
    /// Empty if no capability of the pool answers the request.
    pub grades: BTreeMap<String, u32>,
}

impl LabelledRequest {
    /// Whether it is for evaluation, not for choosing rules and weights.
    pub fn is_judging(&self) -> bool {
        is_judging(&self.text)
    }

    /// Whether the demo contains all of its graded capabilities.
    pub fn is_of_demo(&self) -> bool {
        self.grades.keys().filter_map(|key| key.split('#').next()).all(|place| !place.contains('/'))
    }
}

/// Capabilities by key, and the index over them.
pub struct Pool {
    _dir: tempfile::TempDir,
    searcher: Searcher,
    /// Key of each capability by its public id.
    keys: BTreeMap<String, String>,
}

/// The results of a request.
#[derive(Debug, Clone)]
pub struct Judged {
    pub request: LabelledRequest,
    /// Keys, best first.
    pub found: Vec<String>,
    /// Number of leading results above the relevance cut-off.
    pub relevant: u64,
    /// Graded keys that the pool does not have.
    pub unknown: Vec<String>,
    pub scores: Scores,
}

impl Judged {
    pub fn outcome(&self) -> Outcome {
        Outcome {
            scores: self.scores,
            by_site: None,
            has_relevant: self.relevant > 0,
            has_answer: !self.request.grades.is_empty(),
            is_short: is_short(&self.request.text),
            is_english: self.request.language.is_none(),
        }
    }
}

/// Ranks every request for which there is a pool: requests about the demo only among its capabilities, requests about published files among
/// both, if the files are present.
pub fn judge_all(known: &Arc<WordWeights>) -> anyhow::Result<Vec<Judged>> {
    let demo = Pool::of(&demo()?, known)?;
    let published = match folder("corpus") {
        Some(folder) => Some(Pool::of(&demo_and(of_corpus(&folder)?)?, known)?),
        None => None,
    };
    let mut judged = Vec::new();
    for request in requests()? {
        let pool = if request.is_of_demo() { Some(&demo) } else { published.as_ref() };
        judged.extend(pool.map(|pool| pool.judge(request)).transpose()?);
    }
    Ok(judged)
}

fn demo_and(others: Vec<(String, StoredManifest)>) -> anyhow::Result<Vec<(String, StoredManifest)>> {
    let mut all = demo()?;
    all.extend(others);
    Ok(all)
}

/// Fewer requests are not significant: one of them moves a measure by more than a twentieth.
const PART_MIN: usize = 20;

/// The measures of the requests about the demo, by half, and of those about published files, if there are enough of them.
pub fn parts(judged: &[Judged]) -> Vec<(String, Measures)> {
    let of = |is_in: &dyn Fn(&LabelledRequest) -> bool| -> Vec<Outcome> {
        judged.iter().filter(|of| is_in(&of.request)).map(Judged::outcome).collect()
    };
    let parts = [
        ("labelled, tuning", of(&|request| request.is_of_demo() && !request.is_judging())),
        ("labelled, judging", of(&|request| request.is_of_demo() && request.is_judging())),
        ("labelled, published", of(&|request| !request.is_of_demo())),
    ];
    let present = parts.into_iter().filter(|(_, outcomes)| outcomes.len() >= PART_MIN);
    present.map(|(name, outcomes)| (name.to_owned(), measures(&outcomes))).collect()
}

/// The labelled requests.
pub fn requests() -> anyhow::Result<Vec<LabelledRequest>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("relevance/requests.jsonl");
    let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let read = |(at, line)| {
        serde_json::from_str(line).with_context(|| format!("{} line {}", path.display(), at + 1))
    };
    text.lines().enumerate().map(read).collect()
}

impl Pool {
    pub(super) fn of(
        manifests: &[(String, StoredManifest)],
        known: &Arc<WordWeights>,
    ) -> anyhow::Result<Self> {
        let dir = tempfile::tempdir()?;
        let builder = IndexBuilder::begin(dir.path(), "labelled")?;
        let mut keys = BTreeMap::new();
        for (prefix, stored) in manifests {
            builder.add(stored)?;
            for capability in &stored.manifest.capabilities {
                let key = format!("{prefix}#{}", capability.native_id);
                keys.insert(capability.id.as_str().to_owned(), key);
            }
        }
        builder.finish(FeedPosition(1))?;
        let searcher = Searcher::open_with(dir.path(), known, None)?;
        Ok(Self { _dir: dir, searcher, keys })
    }

    /// The sites that are ranked lower as spam.
    pub(super) fn spam(&self) -> anyhow::Result<Vec<SpamSite>> {
        Ok(self.searcher.spam(SPAM_MAX)?)
    }

    pub(super) fn judge(&self, request: LabelledRequest) -> anyhow::Result<Judged> {
        let phrasings = vec![request.text.clone()];
        let asked = SearchRequest { phrasings, limit: CUT, ..SearchRequest::default() };
        let answer = self.searcher.search(&asked).with_context(|| request.text.clone())?;
        let key = |id: &str| self.keys.get(id).cloned().unwrap_or_default();
        let found: Vec<String> = answer.hits.iter().map(|hit| key(hit.id.as_str())).collect();
        let known: BTreeSet<&String> = self.keys.values().collect();
        let unknown = request.grades.keys().filter(|key| !known.contains(key)).cloned().collect();
        let scores = judge(&found, &request.grades);
        let relevant = answer.relevant.unwrap_or_default();
        Ok(Judged { request, found, relevant, unknown, scores })
    }
}

/// Number of the publishers' own example requests that find their capability among the first ten results, over the demo and the published
/// files that are present.
#[derive(Debug, Clone, Copy)]
pub struct ExamplesFound {
    pub all: usize,
    pub found: usize,
    /// Found without the examples in the index, by the other words of the capability.
    pub found_without: usize,
}

/// Searches for every example request. These have no labels by a person.
pub fn examples_found() -> anyhow::Result<ExamplesFound> {
    let with = present_manifests()?;
    let mut without = with.clone();
    for stored in &mut without {
        stored.manifest.representative_queries.clear();
        stored.manifest.capabilities.iter_mut().for_each(|capability| capability.examples.clear());
    }
    let all = with.iter().flat_map(|stored| &stored.manifest.capabilities);
    let all: Vec<(&CapabilityId, &String)> =
        all.flat_map(|of| of.examples.iter().map(move |example| (&of.id, example))).collect();
    let found = |pool: &[StoredManifest]| -> anyhow::Result<usize> {
        let dir = tempfile::tempdir()?;
        let builder = IndexBuilder::begin(dir.path(), "examples")?;
        for stored in pool {
            builder.add(stored)?;
        }
        builder.finish(FeedPosition(1))?;
        let searcher = Searcher::open_with(dir.path(), &Arc::default(), None)?;
        let mut found = 0;
        for (id, example) in &all {
            let phrasings = vec![(*example).clone()];
            let request = SearchRequest { phrasings, limit: CUT, ..SearchRequest::default() };
            let answer = searcher.search(&request).with_context(|| (*example).clone())?;
            found += usize::from(answer.hits.iter().any(|hit| hit.id == **id));
        }
        Ok(found)
    };
    Ok(ExamplesFound { all: all.len(), found: found(&with)?, found_without: found(&without)? })
}

/// The manifests of the demo, of the sites in other languages, and of the published files that are present.
pub fn present_manifests() -> anyhow::Result<Vec<StoredManifest>> {
    let published = folder("corpus").map(|folder| of_corpus(&folder)).transpose()?.unwrap_or_default();
    Ok(demo_and(published)?.into_iter().map(|(_, stored)| stored).collect())
}

/// The invented sites in other languages (`tests/relevance/sites.jsonl`).
fn sites_in_other_languages() -> anyhow::Result<Vec<(String, StoredManifest)>> {
    #[derive(Deserialize)]
    struct Site {
        #[serde(rename = "site")]
        domain: String,
        name: String,
        language: String,
        capabilities: Vec<Declared>,
    }
    #[derive(Deserialize)]
    struct Declared {
        id: String,
        description: String,
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("relevance/sites.jsonl");
    let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let mut found = Vec::new();
    for line in text.lines() {
        let Site { domain: site, name, language, capabilities } = serde_json::from_str(line)?;
        let mut stored = super::sets::manifest(&site, &name)?;
        stored.manifest.language = Some(language);
        for Declared { id, description } in capabilities {
            let tool = Tool { name: id.clone(), id, description, ..Tool::default() };
            let capability = capability(&stored.manifest, &tool);
            stored.manifest.capabilities.push(capability);
        }
        found.push((site, stored));
    }
    Ok(found)
}

/// Manifests of the demo and of the sites in other languages, each with the site at the start of its keys.
pub(super) fn demo() -> anyhow::Result<Vec<(String, StoredManifest)>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/testweb/demo");
    let mut found = sites_in_other_languages()?;
    for path in files_below(&root)? {
        let below = path.strip_prefix(&root)?;
        let mut parts = below.components();
        let Some(site) = parts.next().and_then(|site| site.as_os_str().to_str()) else { continue };
        let site = format!("{site}.example");
        let served = parts.as_path().to_str().unwrap_or_default();
        if let Some(stored) = read(&path, &format!("https://{site}/{served}"))? {
            found.push((site, stored));
        }
    }
    Ok(found)
}

/// Manifests of the published files, each with the file name at the start of its keys. Each gets a separate site.
fn of_corpus(root: &Path) -> anyhow::Result<Vec<(String, StoredManifest)>> {
    of_corpus_at(root, |at, _| format!("qz{}", super::sets::meaningless(at)))
}

/// The published files, at sites with the names of their repositories, many of which are product names; `None` if the files are not
/// present.
pub(super) fn published_at_names_of_publishers() -> anyhow::Result<Option<Vec<(String, StoredManifest)>>> {
    let name = |_: usize, repository: &str| {
        let name = repository.rsplit('/').next().unwrap_or_default().to_ascii_lowercase();
        let name = name.split('.').next().unwrap_or_default().replace('_', "-");
        name.trim_matches('-').to_owned()
    };
    folder("corpus").map(|folder| of_corpus_at(&folder, name)).transpose()
}

fn of_corpus_at(
    root: &Path,
    name: impl Fn(usize, &str) -> String,
) -> anyhow::Result<Vec<(String, StoredManifest)>> {
    #[derive(Deserialize)]
    struct Entry {
        file: String,
        path: String,
        #[serde(default)]
        repo: String,
    }
    let mut found = Vec::new();
    for (at, line) in std::fs::read_to_string(root.join("index.jsonl"))?.lines().enumerate() {
        let entry: Entry = serde_json::from_str(line)?;
        let path = entry.path.split('#').next().unwrap_or_default();
        let served = path.find(".well-known").and_then(|at| path.get(at..));
        let served = served.or_else(|| path.rsplit('/').next()).unwrap_or_default();
        let url = format!("https://{}.example/{served}", name(at, &entry.repo));
        if let Some(stored) = read(&root.join(&entry.file), &url)? {
            found.push((entry.file, stored));
        }
    }
    Ok(found)
}

fn files_below(root: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
            let path = entry?.path();
            if path.is_dir() { folders.push(path) } else { files.push(path) }
        }
    }
    files.sort();
    Ok(files)
}

/// Reads a file as if it had been fetched; `None` if it has nothing to index.
fn read(path: &Path, url: &str) -> anyhow::Result<Option<StoredManifest>> {
    let bytes = std::fs::read(path).with_context(|| path.display().to_string())?;
    let Ok(url) = ManifestUrl::parse(url) else { return Ok(None) };
    if bytes.len() > FILE_BYTES_MAX {
        return Ok(None);
    }
    let document = Document {
        bytes: &bytes,
        url: &url,
        final_url: None,
        discovery: Discovery::WellKnown,
        served: None,
        linked: &[],
        force: None,
    };
    let manifest = manifest::read(&document);
    if manifest.capabilities.is_empty() {
        return Ok(None);
    }
    Ok(Some(stored(manifest)))
}

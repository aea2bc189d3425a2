//! Draws the sample of capabilities whose semantic types were labelled by hand in `tests/semantic_types/labels.jsonl`.
//!
//! `cargo run -p manifest --example semantic_sample CORPUS [COUNT] [SEED]` reads the files that `CORPUS/index.jsonl` lists and prints a
//! line for each capability drawn: at most six from each file, no two with the same name and description, and none with a declared type.
//! The first half of the sites is for tuning, the second half is held out.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::path::Path;

use manifest::model::TypeSource;
use manifest::{Capability, ContentHash, Discovery, Document, Manifest, ManifestUrl};
use serde_json::{Value, json};

const COUNT: usize = 400;
const OF_A_FILE: usize = 6;
const DESCRIPTION_CHARS: usize = 240;

#[expect(clippy::print_stdout, reason = "an example prints what it draws")]
fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().ok_or("usage: semantic_sample CORPUS [COUNT] [SEED]")?;
    let count = arguments.next().map_or(Ok(COUNT), |count| count.parse())?;
    let seed = arguments.next().unwrap_or_else(|| "agentdex".to_owned());
    let mut drawn = BTreeMap::new();
    let mut texts = BTreeSet::new();
    for line in std::fs::read_to_string(Path::new(&folder).join("index.jsonl"))?.lines() {
        let file: Value = serde_json::from_str(line)?;
        let mut of_file = BTreeMap::new();
        for sample in samples(Path::new(&folder), &file)? {
            of_file.insert(rank(&seed, &[&file["file"], &sample["pointer"], &sample["native_id"]]), sample);
        }
        let fresh = of_file.into_iter().filter(|(_, sample)| {
            texts.insert(format!("{}\n{}", sample["name"], sample["description"]).to_lowercase())
        });
        drawn.extend(fresh.take(OF_A_FILE));
    }
    // Shuffles whole sites, so that no site is in both halves.
    let mut by_site: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for (_, sample) in drawn.into_iter().take(count) {
        by_site.entry(rank(&seed, &[&sample["site"]])).or_default().push(sample);
    }
    let mut printed = 0;
    for site in by_site.into_values() {
        let half = if printed < count / 2 { "tune" } else { "held-out" };
        for mut sample in site {
            printed += 1;
            sample["half"] = json!(half);
            println!("{sample}");
        }
    }
    Ok(())
}

fn rank(seed: &str, parts: &[&Value]) -> String {
    ContentHash::of(format!("{seed} {parts:?}").as_bytes()).to_string()
}

fn samples(folder: &Path, file: &Value) -> Result<Vec<Value>, Box<dyn Error>> {
    let text = |member: &str| file[member].as_str().unwrap_or_default().to_owned();
    let path = text("path");
    let path = path.split('#').next().unwrap_or_default();
    let served = match path.find(".well-known") {
        Some(at) => path.get(at..),
        None => path.rsplit('/').next(),
    };
    let url = ManifestUrl::parse(&format!("https://site.example/{}", served.unwrap_or_default()))?;
    let read = manifest::read(&Document {
        bytes: &std::fs::read(folder.join(text("file")))?,
        url: &url,
        final_url: None,
        discovery: Discovery::WellKnown,
        served: None,
        linked: &[],
        force: None,
    });
    let untyped = read.capabilities.iter().filter(|capability| {
        capability.semantic_types.iter().all(|semantic| semantic.source == TypeSource::Inferred)
    });
    Ok(untyped.map(|capability| sample(&read, capability, &text("repo"))).collect())
}

fn sample(read: &Manifest, capability: &Capability, site: &str) -> Value {
    let capped = |text: &Option<String>| {
        text.as_ref().map(|text| text.chars().take(DESCRIPTION_CHARS).collect::<String>())
    };
    let mut sample = json!({
        "site": site,
        "site_name": read.title.as_ref().or(read.name.as_ref()),
        "site_description": capped(&read.description),
        "format": read.detection.format.to_string(),
        "pointer": capability.pointer,
        "kind": capability.kind,
        "native_id": capability.native_id,
        "name": capability.name,
        "title": capability.title,
        "description": capped(&capability.description),
        "tags": capability.tags,
        "method": capability.invocation.method,
        "endpoint": capability.invocation.endpoint(),
    });
    if let Some(members) = sample.as_object_mut() {
        members.retain(|_, value| !value.is_null() && value.as_array().is_none_or(|list| !list.is_empty()));
    }
    sample
}

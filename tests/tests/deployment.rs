//! What is deployed and what is built agree: facts across files that no validator of a format knows.

#![expect(clippy::unwrap_used, reason = "a test ends where something unexpected happens")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use cargo_metadata::MetadataCommand;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// Every file below a folder, as text.
fn texts(folder: &str) -> Vec<String> {
    let mut texts = Vec::new();
    let mut folders = vec![root().join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                texts.push(std::fs::read_to_string(path).unwrap());
            }
        }
    }
    texts
}

#[test]
fn the_image_builds_every_crate_with_the_toolchain_of_the_workspace() {
    let metadata = MetadataCommand::new().no_deps().other_options(["--locked".to_owned()]).exec().unwrap();
    let dockerfile = std::fs::read_to_string(root().join("deploy/Dockerfile")).unwrap();
    for package in metadata.workspace_packages() {
        let manifest = package.manifest_path.strip_prefix(&metadata.workspace_root).unwrap();
        let folder = manifest.parent().unwrap();
        assert!(
            dockerfile.contains(&format!("COPY {manifest} {folder}/\n")),
            "deploy/Dockerfile does not copy {manifest} before it builds the dependencies"
        );
    }
    let toolchain = metadata.workspace_packages()[0].rust_version.clone().unwrap();
    let from = format!("FROM rust:{}.{}-", toolchain.major, toolchain.minor);
    assert!(dockerfile.contains(&from), "deploy/Dockerfile does not begin with {from}");
}

#[test]
fn every_metric_that_is_watched_is_emitted() {
    let of_a_histogram = |name: &str| name.trim_end_matches("_bucket").to_owned();
    let is_part = |c: char| c.is_ascii_lowercase() || c == '_';
    let mut watched = BTreeSet::new();
    for text in texts("deploy/prometheus").into_iter().chain(texts("deploy/grafana")) {
        for (start, _) in text.match_indices("agentdex_") {
            let rest = text.get(start..).unwrap();
            let name: String = rest.chars().take_while(|c| is_part(*c)).collect();
            watched.insert(of_a_histogram(&name));
        }
    }
    assert!(watched.len() > 10, "{watched:?}");
    let sources: String = ["crawler/src", "indexer/src", "api/src"].into_iter().flat_map(texts).collect();
    for name in watched {
        assert!(
            sources.contains(&format!("\"{name}\"")),
            "{name} is watched below deploy/ and emitted nowhere"
        );
    }
}

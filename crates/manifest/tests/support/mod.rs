//! Reads fixture folders into documents.

#![allow(clippy::allow_attributes, dead_code, reason = "each test uses a part of this module")]

use std::fs;
use std::path::{Path, PathBuf};

use manifest::model::Served;
use manifest::{Discovery, Document, Format, LinkedDocument, Manifest, ManifestUrl};
use serde::Deserialize;

/// How a fixture's document was served. Every field is optional.
#[derive(Debug, Default, Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct About {
    pub url: Option<String>,
    pub final_url: Option<String>,
    pub served: Option<Served>,
    pub linked: Vec<Linked>,
    pub force: Option<Format>,
    /// Repeats a part of the document's bytes, to test caps.
    pub repeat: Option<Repeat>,
}

/// A document that completes the fixture's.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Linked {
    pub url: String,
    pub file: String,
}

/// Replaces every `from` in the document by `times` copies of `text`.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Repeat {
    pub from: String,
    pub text: String,
    pub times: usize,
}

/// One fixture.
pub(crate) struct Case {
    pub folder: PathBuf,
    pub format: String,
    pub bytes: Vec<u8>,
    about: About,
}

impl Case {
    /// Every fixture, in order of their folders.
    pub(crate) fn all() -> Vec<Self> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures");
        let mut cases: Vec<Self> =
            folders(&root).iter().flat_map(|format| folders(format)).map(Self::of).collect();
        cases.sort_by(|a, b| a.folder.cmp(&b.folder));
        assert!(!cases.is_empty(), "no fixtures below {}", root.display());
        cases
    }

    fn of(folder: PathBuf) -> Self {
        let format = folder.parent().and_then(Path::file_name).unwrap().to_string_lossy().into_owned();
        let file = |stem: &str| {
            let named = |path: &PathBuf| path.file_stem().is_some_and(|found| found == stem);
            fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).find(named)
        };
        let mut bytes = fs::read(file("document").unwrap()).unwrap();
        let about: About = file("about")
            .map(|path| serde_json::from_slice(&fs::read(path).unwrap()).unwrap())
            .unwrap_or_default();
        if let Some(repeat) = &about.repeat {
            let text = String::from_utf8(bytes).unwrap();
            bytes = text.replace(&repeat.from, &repeat.text.repeat(repeat.times)).into_bytes();
        }
        Self { folder, format, bytes, about }
    }

    /// This fixture with another document.
    pub(crate) fn with_bytes(&self, bytes: Vec<u8>) -> Self {
        Self { folder: self.folder.clone(), format: self.format.clone(), bytes, about: self.about.clone() }
    }

    /// Reads the fixture's document.
    pub(crate) fn read(&self) -> Manifest {
        let name = self.folder.file_name().unwrap().to_string_lossy();
        let url = |text: &str| ManifestUrl::parse(text).unwrap();
        let fallback = format!("https://{name}.example/.well-known/agent.json");
        let (requested, answered) =
            (url(self.about.url.as_deref().unwrap_or(&fallback)), self.about.final_url.as_deref().map(url));
        let linked: Vec<(ManifestUrl, Vec<u8>)> = self
            .about
            .linked
            .iter()
            .map(|linked| (url(&linked.url), fs::read(self.folder.join(&linked.file)).unwrap()))
            .collect();
        let linked: Vec<LinkedDocument<'_>> =
            linked.iter().map(|(url, bytes)| LinkedDocument { url, bytes }).collect();
        manifest::read(&Document {
            bytes: &self.bytes,
            url: &requested,
            final_url: answered.as_ref(),
            discovery: Discovery::WellKnown,
            served: self.about.served.as_ref(),
            linked: &linked,
            force: self.about.force,
        })
    }
}

fn folders(path: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.is_dir()).collect()
}

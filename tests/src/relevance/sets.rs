//! Sets of tools and requests: the public tool-retrieval sets, if they are present next to the workspace
//! (`shared/relevance/SET/{tools,queries}.jsonl`), or any directory of sets in the same format.
//!
//! Each tool becomes one capability. The tools of one site become one manifest; a tool without a site gets a separate manifest with a
//! meaningless name.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::Context;
use chrono::DateTime;
use manifest::model::{Capability, CapabilityKind, Format, Manifest};
use manifest::{ContentHash, ManifestId, ManifestUrl};
use policy::Status;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use store::StoredManifest;

/// The sets whose mean is computed.
pub const SETS: [&str; 5] = ["metatool", "sealtools", "stabletoolbench", "bfcl", "livemcp"];

/// Prefix of the invented site names; no word starts with it.
const MADE_UP: &str = "qx";

/// A tool in the format of the sets.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct Tool {
    pub id: String,
    pub name: String,
    #[serde(default)]
    pub title: Option<String>,
    #[serde(default)]
    pub description: String,
    #[serde(default)]
    pub extra: String,
    #[serde(default)]
    pub site: String,
    #[serde(default)]
    pub site_description: String,
    #[serde(default)]
    pub category: String,
    #[serde(default)]
    pub method: Option<String>,
    #[serde(default)]
    pub params: Vec<Field>,
    #[serde(default)]
    pub outputs: Vec<Field>,
    /// Example requests.
    #[serde(default)]
    pub examples: Vec<String>,
}

/// A parameter or an output.
#[derive(Debug, Clone, Deserialize)]
pub struct Field {
    pub name: String,
    #[serde(default)]
    pub description: Option<String>,
    #[serde(default, rename = "enum")]
    pub values: Vec<Value>,
}

/// A request and the ids of the tools that answer it.
#[derive(Debug, Clone, Deserialize)]
pub struct Request {
    pub text: String,
    /// Empty if no tool answers the request.
    #[serde(default)]
    pub relevant: Vec<String>,
    /// Language tag; `None` for English.
    #[serde(default)]
    pub language: Option<String>,
}

/// One set.
#[derive(Debug, Clone)]
pub struct PublicSet {
    pub name: String,
    pub tools: Vec<Tool>,
    pub requests: Vec<Request>,
}

/// The directory of a kind of data next to the workspace, if it exists.
pub fn folder(kind: &str) -> Option<PathBuf> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().map(|parent| parent.join("shared").join(kind)).find(|path| path.is_dir())
}

/// All sets, or `None` if they are not present.
pub fn read_all() -> anyhow::Result<Option<Vec<PublicSet>>> {
    let Some(folder) = folder("relevance") else { return Ok(None) };
    SETS.into_iter().map(|name| PublicSet::read(&folder, name)).collect::<anyhow::Result<_>>().map(Some)
}

/// All sets in a directory, by name.
pub fn read_folder(folder: &Path) -> anyhow::Result<Vec<PublicSet>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let entry = entry?;
        if ["tools.jsonl", "queries.jsonl"].iter().all(|file| entry.path().join(file).is_file()) {
            names.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    names.sort();
    anyhow::ensure!(
        !names.is_empty(),
        "{} contains no set: a directory with tools.jsonl and queries.jsonl",
        folder.display()
    );
    names.iter().map(|name| PublicSet::read(folder, name)).collect()
}

impl PublicSet {
    pub fn read(folder: &Path, name: &str) -> anyhow::Result<Self> {
        let folder = folder.join(name);
        let requests = lines(&folder.join("queries.jsonl"))?;
        Ok(Self { name: name.to_owned(), tools: lines(&folder.join("tools.jsonl"))?, requests })
    }

    /// The site of each tool that has one.
    pub fn sites(&self) -> BTreeMap<&str, &str> {
        let named = self.tools.iter().filter(|tool| !tool.site.is_empty());
        named.map(|tool| (tool.id.as_str(), tool.site.as_str())).collect()
    }

    /// The tools as stored manifests.
    pub fn manifests(&self) -> anyhow::Result<Vec<StoredManifest>> {
        let mut by_host: BTreeMap<String, StoredManifest> = BTreeMap::new();
        for (at, tool) in self.tools.iter().enumerate() {
            let host = host_of(at, &tool.site);
            let stored = match by_host.entry(host) {
                std::collections::btree_map::Entry::Occupied(entry) => entry.into_mut(),
                std::collections::btree_map::Entry::Vacant(entry) => {
                    let fresh = manifest(entry.key(), &tool.site)?;
                    entry.insert(fresh)
                }
            };
            let about = format!("{} {}", tool.site_description, tool.extra);
            if !about.trim().is_empty() {
                stored.manifest.description = Some(about.trim().to_owned());
            }
            let capability = capability(&stored.manifest, tool);
            stored.manifest.capabilities.push(capability);
        }
        Ok(by_host.into_values().collect())
    }
}

fn lines<T: for<'a> Deserialize<'a>>(path: &Path) -> anyhow::Result<Vec<T>> {
    let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
    let read = |(at, line)| {
        serde_json::from_str(line).with_context(|| format!("{} line {}", path.display(), at + 1))
    };
    text.lines().enumerate().map(read).collect()
}

fn host_of(at: usize, site: &str) -> String {
    let slug: String =
        site.to_lowercase().chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    match slug.trim_matches('-') {
        "" => format!("{MADE_UP}{}.example", meaningless(at)),
        slug => format!("{slug}.example"),
    }
}

/// A number as letters that form no word.
pub fn meaningless(number: usize) -> String {
    format!("{number:05}").bytes().map(|digit| char::from(b'q' + digit.wrapping_sub(b'0') % 10)).collect()
}

/// A manifest of a host, without capabilities.
pub fn manifest(host: &str, name: &str) -> anyhow::Result<StoredManifest> {
    let url = ManifestUrl::parse(&format!("https://{host}/agent.json"))?;
    let manifest: Manifest = serde_json::from_value(json!({
        "id": ManifestId::of(&url).as_str(), "content_hash": ContentHash::of(b"").as_str(), "url": url.as_str(),
        "origin": url.origin(), "discovery": "root", "name": name,
        "detection": {"format": "awp", "strength": "strong", "evidence": []},
    }))?;
    Ok(stored(manifest))
}

/// A manifest as the store returns it, seen once at a fixed time.
pub(super) fn stored(manifest: Manifest) -> StoredManifest {
    let seen = DateTime::from_timestamp(1_790_000_000, 0).unwrap_or_default();
    StoredManifest {
        manifest,
        training: manifest::model::PolicyChoice::Unset,
        named_by: manifest::NamedBy::Site,
        publisher: manifest::Publisher::Site,
        status: Status::Fresh,
        first_seen_at: seen,
        last_seen_at: seen,
        changed_at: seen,
        versions: 1,
        body_kept: true,
    }
}

/// A tool as a capability of a manifest.
pub fn capability(manifest: &Manifest, tool: &Tool) -> Capability {
    let pointer = format!("/actions/{}", manifest.capabilities.len());
    let (url, kind) = (&manifest.url, CapabilityKind::Action);
    let mut capability = Capability::new(url, Format::Awp, &tool.id, &tool.id, kind, pointer);
    capability.description = Some(tool.description.clone());
    capability.name.clone_from(&tool.name);
    capability.title.clone_from(&tool.title);
    capability.invocation.method.clone_from(&tool.method);
    if !tool.category.is_empty() {
        capability.tags = vec![tool.category.clone()];
    }
    capability.parameters = Some(schema(&tool.params));
    capability.response = Some(schema(&tool.outputs));
    capability.examples.clone_from(&tool.examples);
    capability
}

fn schema(fields: &[Field]) -> Value {
    let property = |field: &Field| {
        let mut property = Map::new();
        property.insert("description".into(), json!(field.description.clone().unwrap_or_default()));
        if !field.values.is_empty() {
            property.insert("enum".into(), json!(field.values));
        }
        (field.name.clone(), Value::Object(property))
    };
    json!({"type": "object", "properties": fields.iter().map(property).collect::<Map<_, _>>()})
}

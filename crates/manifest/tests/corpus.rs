//! Reads a corpus of published files, if it is available, and compares the detected format with the label. Known disagreements are listed
//! with their reason.

#![expect(clippy::unwrap_used, reason = "a file that cannot be read has to fail the test")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use manifest::model::CapabilityKind;
use manifest::{Discovery, Document, Manifest, ManifestUrl};
use serde::Deserialize;

/// One line of the index.
#[derive(Debug, Deserialize)]
struct Entry {
    file: String,
    /// The path in the repository.
    path: String,
    /// The labelled format.
    format: String,
    capabilities: Option<usize>,
}

struct Corpus {
    root: PathBuf,
    entries: Vec<Entry>,
}

impl Corpus {
    fn at_hand() -> Option<Self> {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let root = here.ancestors().map(|folder| folder.join("shared/corpus")).find(|root| root.is_dir())?;
        let index = fs::read_to_string(root.join("index.jsonl")).unwrap();
        let entries = index.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        Some(Self { root, entries })
    }

    fn read(&self, entry: &Entry) -> Manifest {
        let bytes = fs::read(self.root.join(&entry.file)).unwrap();
        let url = ManifestUrl::parse(&format!("https://site.example{}", entry.served_path())).unwrap();
        manifest::read(&Document {
            bytes: &bytes,
            url: &url,
            final_url: None,
            discovery: Discovery::WellKnown,
            served: None,
            linked: &[],
            force: None,
        })
    }
}

impl Entry {
    /// The path below the site's root: everything before `.well-known` or the file name belongs to the repository.
    fn served_path(&self) -> String {
        let path = self.path.split('#').next().unwrap_or_default();
        match path.find(".well-known") {
            Some(at) => format!("/{}", path.get(at..).unwrap_or_default()),
            None => format!("/{}", path.rsplit('/').next().unwrap_or_default()),
        }
    }

    fn slug(&self) -> &str {
        match self.format.as_str() {
            "agents-json-0.1" => "agents_json",
            "agents-txt" | "agents-txt-1.0-json" | "agents-txt-com" => "agents_txt",
            "a2a-card" => "a2a",
            "ai-catalog" => "ard",
            "mcp-server-card" => "mcp_card",
            "mcp-registry-server" => "mcp_registry",
            "mcp-freeform" => "mcp_freeform",
            "mcp-client-config" => "mcp_config",
            "api-catalog" => "api_catalog",
            "ai-plugin" | "ai-plugin-derived" => "ai_plugin",
            "skills-index" => "skills_index",
            "llms-txt" => "llms_txt",
            "wildcard-agents-json" => "wildcard",
            "air-agent-json" => "air",
            "agent-json-facts" => "facts",
            "agent-manifest-v1" => "manifest_v1",
            "ucp-freeform" => "ucp",
            "acp-discovery" | "acp-freeform" => "acp",
            "x402-freeform" => "x402",
            "webmcp-manifest" => "webmcp",
            "web-bot-auth" => "web_bot_auth",
            "agents-json-jm" => "agents_json_jm",
            "ai-txt" => "ai_txt",
            "oddball-list" => "list",
            "other" | "other-text" => "unrelated",
            label if label.starts_with("generic-") => "generic",
            label => label,
        }
    }
}

/// A part of the file name, the format that is detected instead of the label, and the reason.
const DISAGREEMENTS: &[(&str, &str, &str)] = &[
    ("a2a-card/capiscio__capiscio-cli__invalid-missing-required", "opaque", "a name alone is not a card"),
    ("generic-agent-card/Matan-Shabi", "a2a", "it has every member of a card; its `skills` are empty"),
    ("ai-txt/azmartone67__dchub-backend", "generic", "the body is JSON with endpoints, despite the name"),
    (
        "mcp-freeform/TamTunnel__AWAS",
        "awas",
        "it only leads to awas.json; the same file is judged AWAS among the examples",
    ),
    ("mcp-freeform/SebastianBO__quant-platform", "mcp_card", "its `$schema` is that of a server card"),
    ("oddball-list/", "unrelated", "names with rooms and e-mail addresses: nothing that could be called"),
];

/// Whether the file of a label may be read as opaque. Such labels follow the name of the file, detection follows its content.
fn may_be_opaque(entry: &Entry) -> bool {
    let named = entry.format.starts_with("generic-") || entry.format == "other";
    named && entry.capabilities.unwrap_or_default() == 0
}

#[test]
fn detects_the_labelled_format_of_published_files() {
    let Some(corpus) = Corpus::at_hand() else { return };
    let mut wrong = Vec::new();
    for entry in &corpus.entries {
        let found = corpus.read(entry).format().as_str();
        let ruled = DISAGREEMENTS.iter().find(|(file, ..)| entry.file.contains(file));
        let expected = ruled.map_or_else(|| entry.slug(), |(_, slug, _)| slug);
        let empty = matches!(found, "opaque" | "pointer") && may_be_opaque(entry);
        // Files with the name of a manifest and no specification are distinguished by content.
        let unrelated = entry.format == "other" && matches!(found, "opaque" | "generic" | "pointer");
        if found != expected && !empty && !unrelated {
            wrong.push(format!("{} at {}: {found}, judged {expected}", entry.file, entry.served_path()));
        }
    }
    assert!(wrong.is_empty(), "{} of {} disagree:\n{}", wrong.len(), corpus.entries.len(), wrong.join("\n"));
}

#[test]
fn every_published_file_is_read_the_same_way_twice() {
    let Some(corpus) = Corpus::at_hand() else { return };
    for entry in &corpus.entries {
        let (first, second) = (corpus.read(entry), corpus.read(entry));
        assert_eq!(
            serde_json::to_string(&first).unwrap(),
            serde_json::to_string(&second).unwrap(),
            "{}",
            entry.file
        );
    }
}

/// Formats whose capabilities are counted like in the index of the corpus: one for each entry of the format's list.
const COUNTED: &[&str] = &[
    "a2a",
    "ahp",
    "air",
    "atp",
    "awp",
    "manifest_v1",
    "mcp_card",
    "mcp_registry",
    "openapi",
    "skills_index",
    "ucp",
    "w2a",
    "webmcp",
    "wildcard",
    "woa",
    "x402",
];

#[test]
fn capability_counts_match_the_index() {
    let Some(corpus) = Corpus::at_hand() else { return };
    let mut counts: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for entry in corpus.entries.iter().filter(|entry| COUNTED.contains(&entry.slug())) {
        let Some(expected) = entry.capabilities else { continue };
        let found = corpus.read(entry);
        if found.format().as_str() == entry.slug() && !entry.format.ends_with("-freeform") {
            let count = counts.entry(entry.slug()).or_default();
            count.0 += expected;
            // The index counts the listed tools of MCP servers, but not their resources and prompts, nor names elsewhere in a file.
            let is_mcp = entry.slug().starts_with("mcp_");
            let content = [CapabilityKind::Resource, CapabilityKind::Content, CapabilityKind::Unknown];
            let is_listed = |c: &&manifest::Capability| !content.contains(&c.kind) && !c.pointer.is_empty();
            // The index counts the `skills` of a card, but neither operations of a plain API next to them nor names in `capabilities`.
            let is_card = entry.slug() == "a2a";
            // The index counts operations, and not the tools that the description of an operation lists.
            let is_api = entry.slug() == "openapi";
            let counted = found
                .capabilities
                .iter()
                .filter(|c| (!is_mcp || is_listed(c)) && (!is_card || c.pointer.contains("/skills/")))
                .filter(|c| !is_api || c.kind != CapabilityKind::Tool)
                // The index counts members, but neither calls in sentences nor the skills of a card inside another format.
                .filter(|c| !c.pointer.is_empty() && !c.pointer.starts_with("/a2a_profile/"));
            count.1 += counted.count();
        }
    }
    for (slug, (expected, found)) in counts {
        assert_eq!(found, expected, "{slug}");
    }
}

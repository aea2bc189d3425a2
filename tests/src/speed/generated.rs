//! Generates any number of capabilities and requests reproducibly: it cycles through real texts and removes random words.
//!
//! The texts come from the demo's sites, and from the public sets and published manifests if these are present next to the workspace.

use manifest::Manifest;
use manifest::model::{SafetyClass, SemanticType, TypeSource};
use store::StoredManifest;

use crate::relevance::labelled;
use crate::relevance::sets::{self, Field, Request, Tool};

/// Capabilities of one generated site.
pub const CAPABILITIES_PER_SITE: usize = 20;
/// One word in this many is removed.
const DROPPED_ONE_IN: u64 = 7;
/// Maximum length of a request that counts as a sentence; longer ones are pasted documents.
const SENTENCE_BYTES_MAX: usize = 400;

/// A small seeded pseudo-random generator (`SplitMix64`) that returns the same numbers on every machine.
#[derive(Debug, Clone)]
pub struct Seeded(u64);

impl Seeded {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A pseudo-random number below a bound.
    pub fn below(&mut self, bound: usize) -> usize {
        let bound = bound.max(1) as u64;
        usize::try_from(self.number() % bound).unwrap_or_default()
    }

    fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

/// The source texts, and requests about them.
#[derive(Debug, Clone)]
pub struct Texts {
    pub tools: Vec<Tool>,
    pub sentences: Vec<String>,
}

impl Texts {
    pub fn present() -> anyhow::Result<Self> {
        let mut tools = Vec::new();
        let mut requests: Vec<Request> = Vec::new();
        for set in sets::read_all()?.unwrap_or_default() {
            tools.extend(set.tools);
            requests.extend(set.requests);
        }
        for stored in labelled::present_manifests()? {
            tools.extend(tools_of(&stored.manifest));
        }
        let mut sentences: Vec<String> = requests.into_iter().map(|request| request.text).collect();
        sentences.retain(|text| text.len() <= SENTENCE_BYTES_MAX && text.split_whitespace().count() >= 6);
        if sentences.is_empty() {
            sentences = tools.iter().map(|tool| format!("I would like to {}", tool.description)).collect();
        }
        Ok(Self { tools, sentences })
    }

    /// One generated site with its capabilities.
    pub fn site(&self, number: usize) -> anyhow::Result<StoredManifest> {
        let mut seeded = Seeded::new(number as u64 + 1);
        let host = format!("qx{}.example", sets::meaningless(number));
        let mut stored = sets::manifest(&host, "")?;
        for at in number * CAPABILITIES_PER_SITE..(number + 1) * CAPABILITIES_PER_SITE {
            let Some(tool) = self.tools.get(at % self.tools.len().max(1)) else { continue };
            let made = Tool {
                id: format!("{}_{at}", tool.name),
                description: thinned(&tool.description, &mut seeded),
                params: tool.params.iter().map(|field| thinned_field(field, &mut seeded)).collect(),
                ..tool.clone()
            };
            let mut capability = sets::capability(&stored.manifest, &made);
            capability.safety.class = match seeded.below(4) {
                0 => SafetyClass::Write,
                1 => SafetyClass::Irreversible,
                _ => SafetyClass::Read,
            };
            capability.invocation.method = Some(["GET", "POST", "PUT"][seeded.below(3)].to_owned());
            let kind = ["commerce", "travel", "data", "health", "media"][seeded.below(5)];
            capability.semantic_types = vec![SemanticType {
                name: format!("{kind}:{}", ["search", "create", "cancel", "read"][seeded.below(4)]),
                source: TypeSource::Declared,
                confidence: 1.0,
                rule: None,
            }];
            stored.manifest.capabilities.push(capability);
        }
        Ok(stored)
    }

    /// Two or three words of a tool's name and description.
    pub fn keywords(&self, seeded: &mut Seeded) -> String {
        for _ in 0..100 {
            let Some(tool) = self.tools.get(seeded.below(self.tools.len())) else { continue };
            let text = crate::relevance::engines::split(&format!("{} {}", tool.name, tool.description));
            let words: Vec<&str> = text.split_whitespace().filter(|word| word.len() > 3).take(12).collect();
            if words.len() >= 3 {
                let count = 2 + seeded.below(2);
                return (0..count).map(|_| words[seeded.below(words.len())]).collect::<Vec<_>>().join(" ");
            }
        }
        "book flight".to_owned()
    }

    pub fn sentence(&self, seeded: &mut Seeded) -> String {
        self.sentences.get(seeded.below(self.sentences.len())).cloned().unwrap_or_default()
    }

    /// Keywords with two letters of one word swapped.
    pub fn misspelt(&self, seeded: &mut Seeded) -> String {
        let mut letters: Vec<char> = self.keywords(seeded).chars().collect();
        let places: Vec<usize> = (1..letters.len().saturating_sub(2))
            .filter(|at| letters[*at].is_alphabetic() && letters[at + 1].is_alphabetic())
            .collect();
        if let Some(at) = places.get(seeded.below(places.len())) {
            letters.swap(*at, at + 1);
        }
        letters.into_iter().collect()
    }

    /// The first letters of a name, as typed.
    pub fn prefix(&self, seeded: &mut Seeded) -> String {
        let Some(tool) = self.tools.get(seeded.below(self.tools.len())) else { return String::new() };
        let name = crate::relevance::engines::split(&tool.name);
        name.trim().to_lowercase().chars().take(1 + seeded.below(8)).collect()
    }
}

fn tools_of(manifest: &Manifest) -> Vec<Tool> {
    let tool = |capability: &manifest::model::Capability| Tool {
        id: capability.native_id.clone(),
        name: capability.name.clone(),
        title: capability.title.clone(),
        description: capability.description.clone().unwrap_or_default(),
        method: capability.invocation.method.clone(),
        ..Tool::default()
    };
    manifest.capabilities.iter().map(tool).collect()
}

fn thinned(text: &str, seeded: &mut Seeded) -> String {
    let kept: Vec<&str> =
        text.split_whitespace().filter(|_| !seeded.number().is_multiple_of(DROPPED_ONE_IN)).collect();
    kept.join(" ")
}

fn thinned_field(field: &Field, seeded: &mut Seeded) -> Field {
    Field { description: field.description.as_deref().map(|text| thinned(text, seeded)), ..field.clone() }
}

//! The path table: every path that is requested without a link to it.
//!
//! Slots are positions in packed records and never change. [`super::Priors`] determines the order of requests. The expected kind of body
//! determines how much of it is read.

use manifest::{Format, string_enum};

/// Maximum number of bytes that are read from a response other than 2xx, so that the connection can be reused. A longer response closes it.
pub const ERROR_BODY_BYTES_MAX: usize = 16 * 1024;

string_enum! {
    /// The expected kind of a body, which determines how much of it is read.
    BodyKind, "body kind" {
        /// A manifest of any dialect.
        Manifest = "manifest",
        /// An OpenAPI document that a manifest names.
        OpenApi = "openapi",
        /// robots.txt.
        Robots = "robots",
        /// llms.txt.
        LlmsTxt = "llms_txt",
        /// The homepage. Only the links in its head are read.
        Homepage = "homepage",
        /// A page of results of another registry.
        Results = "results",
        /// Anything else.
        Other = "other",
    }
}

impl BodyKind {
    /// Cap of the decoded body, and of the body on the wire. The largest manifest known is 1.9 MB, the largest OpenAPI
    /// documents in use are about 12 MB; RFC 9309 §2.5 demands 500 KiB for robots.txt.
    pub const fn bytes_max(self) -> usize {
        match self {
            Self::Manifest => 4 * 1024 * 1024,
            Self::OpenApi => 16 * 1024 * 1024,
            Self::Robots => 512 * 1024,
            Self::LlmsTxt | Self::Results => 1024 * 1024,
            Self::Homepage => 64 * 1024,
            Self::Other => ERROR_BODY_BYTES_MAX,
        }
    }
}

/// One row of the path table.
#[derive(Debug, PartialEq, Eq)]
pub struct PlannedPath {
    /// Position of the path in packed records; never reused for another path.
    pub slot: u8,
    pub path: &'static str,
    pub body: BodyKind,
    /// The dialects that specify the path, most common first. The dialect of a document is determined by its body only.
    pub formats: &'static [Format],
}

const fn row(slot: u8, path: &'static str, body: BodyKind, formats: &'static [Format]) -> PlannedPath {
    PlannedPath { slot, path, body, formats }
}

/// Every path that is requested without a link to it.
pub const PATHS: &[PlannedPath] = &[
    row(0, "/.well-known/agent-card.json", BodyKind::Manifest, &[Format::A2a, Format::Erc8004]),
    row(
        1,
        "/.well-known/agent.json",
        BodyKind::Manifest,
        &[Format::A2a, Format::Awp, Format::Atp, Format::Ahp, Format::Air, Format::Facts],
    ),
    row(2, "/agent.json", BodyKind::Manifest, &[Format::Awp, Format::A2a]),
    row(3, "/.well-known/ard.json", BodyKind::Manifest, &[Format::Ard]),
    row(4, "/.well-known/ai-catalog.json", BodyKind::Manifest, &[Format::Ard]),
    row(
        5,
        "/.well-known/agents.json",
        BodyKind::Manifest,
        &[Format::AgentsJson, Format::Wildcard, Format::W2a, Format::AgentsJsonLt],
    ),
    row(6, "/agents.json", BodyKind::Manifest, &[Format::AgentsJson, Format::Wildcard, Format::AgentsJsonJm]),
    row(7, "/.well-known/agents.txt", BodyKind::Manifest, &[Format::AgentsTxt]),
    row(8, "/agents.txt", BodyKind::Manifest, &[Format::AgentsTxt]),
    row(9, "/.well-known/agent-manifest.json", BodyKind::Manifest, &[Format::Arws, Format::ManifestV1]),
    row(10, "/.well-known/woa.json", BodyKind::Manifest, &[Format::Woa]),
    row(11, "/.well-known/mcp/server-card.json", BodyKind::Manifest, &[Format::McpCard]),
    row(
        12,
        "/.well-known/mcp.json",
        BodyKind::Manifest,
        &[Format::McpFreeform, Format::McpCard, Format::McpConfig],
    ),
    row(13, "/.well-known/api-catalog", BodyKind::Manifest, &[Format::ApiCatalog]),
    row(14, "/.well-known/agent-skills/index.json", BodyKind::Manifest, &[Format::SkillsIndex]),
    row(15, "/.well-known/ai-plugin.json", BodyKind::Manifest, &[Format::AiPlugin]),
    row(16, "/.well-known/llms.txt", BodyKind::LlmsTxt, &[Format::LlmsTxt, Format::Arws]),
    row(17, "/llms.txt", BodyKind::LlmsTxt, &[Format::LlmsTxt]),
    row(18, "/", BodyKind::Homepage, &[]),
];

/// The row of a path; `None` for paths that are not in the table.
pub fn find(path: &str) -> Option<&'static PlannedPath> {
    PATHS.iter().find(|row| row.path == path)
}

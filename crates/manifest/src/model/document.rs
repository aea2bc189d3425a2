//! A parsed document in a dialect, normalised.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::capability::Capability;
use super::enums::{ConformanceLevel, Discovery, Format, Severity, Source, Strength};
use super::finding::{Conformance, Finding};
use super::parts::{
    Audit, Auth, Contact, ErrorRecovery, Features, Integrity, Interface, Link, Payment, Policies, Provider,
    RateLimit, Sessions, Status, Workflow,
};
use crate::name::{ContentHash, ManifestId, ManifestUrl};

/// Result and evidence of the detection.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Detection {
    pub format: Format,
    pub strength: Strength,
    /// The version of the specification that the document states, or that its shape implies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The variant within the format: `prose`, `schema`, `sdk`…
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dialect: Option<String>,
    /// In words: "`awp_version` is 0.1".
    pub evidence: Vec<String>,
    /// Other formats whose markers the document also has.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub also_matches: Vec<Format>,
}

impl Detection {
    pub(crate) fn new(format: Format, strength: Strength, evidence: impl Into<String>) -> Self {
        let evidence = vec![evidence.into()];
        Self { format, strength, version: None, dialect: None, evidence, also_matches: Vec::new() }
    }
}

/// How the document was served. Times are RFC 3339.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Served {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    pub status: u16,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub etag: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_modified: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content_type: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_control: Option<String>,
    /// `Access-Control-Allow-Origin`, as served.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cors_allow_origin: Option<String>,
    /// `Access-Control-Allow-Methods` and `Access-Control-Allow-Headers`, as served.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cors_allow_methods: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cors_allow_headers: Option<String>,
    /// Decoded size.
    pub bytes: u64,
    /// The body was truncated at the cap.
    pub truncated: bool,
    /// Number of redirects before the final response.
    pub redirects: u8,
}

/// A manifest: everything that one document declares.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    pub id: ManifestId,
    pub content_hash: ContentHash,
    pub url: ManifestUrl,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub final_url: Option<ManifestUrl>,
    /// Scheme, host and port as served.
    pub origin: String,
    /// The origin or domain that the document claims for itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub declared_origin: Option<String>,
    pub discovery: Discovery,
    pub detection: Detection,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub document_version: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// BCP 47, as declared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub language: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub representative_queries: Vec<String>,
    #[serde(default)]
    pub provider: Provider,
    #[serde(default)]
    pub contact: Contact,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub auth: Vec<Auth>,
    #[serde(default)]
    pub features: Features,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<ErrorRecovery>,
    /// Planning hints, raw and untrusted.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub hints: Map<String, Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sessions: Option<Sessions>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audit: Option<Audit>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_limit: Option<RateLimit>,
    #[serde(default)]
    pub policies: Policies,
    #[serde(default)]
    pub status: Status,
    #[serde(default)]
    pub source: Source,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub interfaces: Vec<Interface>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub payments: Vec<Payment>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<Link>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub capabilities: Vec<Capability>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub workflows: Vec<Workflow>,
    /// Named schemas or entities, as JSON Schema 2020-12.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub schemas: Map<String, Value>,
    #[serde(default)]
    pub integrity: Integrity,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conformance: Vec<Conformance>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<Finding>,
    #[serde(default)]
    pub served: Served,
}

impl Manifest {
    pub const fn format(&self) -> Format {
        self.detection.format
    }

    /// The highest severity of the findings.
    pub fn worst(&self) -> Option<Severity> {
        self.findings.iter().map(|finding| finding.severity).max()
    }

    /// Conformance to the main specification of the dialect.
    pub fn level(&self) -> ConformanceLevel {
        self.conformance.first().map_or(ConformanceLevel::Conforms, |conformance| conformance.level)
    }
}

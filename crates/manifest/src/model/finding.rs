//! Findings: where a document deviates from a specification, with what to do about it.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::enums::{ConformanceLevel, Severity};

/// One deviation. The code is stable; the text describes this document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// `awp.action.id.missing`: dialect, place, what is wrong.
    pub code: Cow<'static, str>,
    pub severity: Severity,
    /// Specification and section: `AWP 0.1 §9`.
    pub spec: Cow<'static, str>,
    /// JSON pointer (RFC 6901) into the document as fetched; empty for the whole document.
    pub pointer: String,
    /// URL of the linked document that the pointer points into, when it is not the manifest itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pointer_document: Option<String>,
    /// What is wrong here.
    pub text: String,
    /// How to fix it.
    pub fix: Cow<'static, str>,
}

/// Conformance to one text: a dialect may have several (ATP's prose and its stricter schema), each with its own verdict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Conformance {
    /// `ATP 0.1`, `ATP 0.1 schema.json`.
    pub spec: Cow<'static, str>,
    pub level: ConformanceLevel,
}

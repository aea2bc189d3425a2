//! Findings: deviations of a document from a specification, and how to fix them.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::enums::{ConformanceLevel, Severity};

/// One deviation. The code is stable; the text describes this document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// `awp.action.id.missing`: dialect, location, kind of defect.
    pub code: Cow<'static, str>,
    pub severity: Severity,
    /// Specification and section: `AWP 0.1 §9`.
    pub spec: Cow<'static, str>,
    /// JSON pointer (RFC 6901) into the document as fetched; empty for the whole document.
    pub pointer: String,
    /// URL of the linked document that the pointer refers to, if it is not the manifest itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pointer_document: Option<String>,
    /// What is wrong in this document.
    pub text: String,
    /// How to fix it.
    pub fix: Cow<'static, str>,
}

/// Conformance to one specification. A dialect may have several (ATP's text and its stricter schema), each with its own verdict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Conformance {
    /// `ATP 0.1`, `ATP 0.1 schema.json`.
    pub spec: Cow<'static, str>,
    pub level: ConformanceLevel,
}

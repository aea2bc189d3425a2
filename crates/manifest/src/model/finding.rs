//! Findings: where a document deviates from a specification, with what to do about it.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::closed::UnknownValue;

/// How much a deviation weighs, in the words of RFC 2119.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Worth knowing; no specification is broken.
    Note,
    May,
    Should,
    Must,
}

impl Severity {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::May => "may",
            Self::Should => "should",
            Self::Must => "must",
        }
    }
}

impl std::str::FromStr for Severity {
    type Err = UnknownValue;

    fn from_str(text: &str) -> Result<Self, UnknownValue> {
        [Self::Note, Self::May, Self::Should, Self::Must]
            .into_iter()
            .find(|severity| severity.as_str() == text)
            .ok_or_else(|| UnknownValue {
                what: "severity",
                value: text.chars().take(80).collect(),
                known: "note, may, should, must".to_owned(),
            })
    }
}

/// One deviation. The code is stable; the text speaks of this document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// `awp.action.id.missing`: dialect, place, what is wrong.
    pub code: Cow<'static, str>,
    pub severity: Severity,
    /// Specification and section: `AWP 0.1 §9`.
    pub spec: Cow<'static, str>,
    /// JSON pointer (RFC 6901) into the document as fetched; empty for the whole document.
    pub pointer: String,
    /// What is wrong here.
    pub text: String,
    /// What would be right.
    pub fix: Cow<'static, str>,
}

/// How well a document keeps to its dialect, at one level of strictness.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ConformanceLevel {
    /// No finding above `may`.
    Conforms,
    /// Some `should` is broken.
    Minor,
    /// Some `must` is broken.
    Major,
    Unparseable,
}

impl ConformanceLevel {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Conforms => "conforms",
            Self::Minor => "minor",
            Self::Major => "major",
            Self::Unparseable => "unparseable",
        }
    }
}

/// Conformance to one text: a dialect may have several (ATP's prose and its stricter schema), each with its own verdict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Conformance {
    /// `ATP 0.1`, `ATP 0.1 schema.json`.
    pub spec: Cow<'static, str>,
    pub level: ConformanceLevel,
}

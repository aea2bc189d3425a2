//! The markers of dialects, and the document that they test.

use serde_json::{Map, Value};

use crate::model::{Detection, Format, Strength};
use crate::object::Members;
use crate::text;

/// A test for one dialect, which returns its evidence as text.
pub(crate) struct Marker {
    pub(super) trust: Trust,
    pub(super) test: fn(&Candidate<'_>) -> Option<String>,
}

/// The strength of the evidence of a marker.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Trust {
    Strong,
    Medium,
    /// Medium, and tried only if no other marker decides.
    AtPath,
}

impl Marker {
    pub(super) const fn strength(&self) -> Strength {
        match self.trust {
            Trust::Strong => Strength::Strong,
            Trust::Medium | Trust::AtPath => Strength::Medium,
        }
    }
}

pub(crate) const fn strong(test: fn(&Candidate<'_>) -> Option<String>) -> Marker {
    Marker { trust: Trust::Strong, test }
}

pub(crate) const fn medium(test: fn(&Candidate<'_>) -> Option<String>) -> Marker {
    Marker { trust: Trust::Medium, test }
}

/// A marker that other documents also have. It is tried only if no other marker decides.
pub(crate) const fn at_path(test: fn(&Candidate<'_>) -> Option<String>) -> Marker {
    Marker { trust: Trust::AtPath, test }
}

/// A document to test: the root object and the path of its URL.
pub(crate) struct Candidate<'c> {
    pub(super) root: &'c Map<String, Value>,
    pub(crate) path: &'c str,
    members: Members<'c>,
}

impl<'c> Candidate<'c> {
    pub(crate) fn new(root: &'c Map<String, Value>, path: &'c str) -> Self {
        Self { root, path, members: Members::of(root) }
    }

    pub(crate) fn value(&self, key: &str) -> Option<&'c Value> {
        self.members.get(key)
    }

    /// Number of members of the root.
    pub(crate) fn size(&self) -> usize {
        self.root.len()
    }

    pub(crate) fn text(&self, key: &str) -> Option<&'c str> {
        self.value(key)?.as_str()
    }

    pub(crate) fn object(&self, key: &str) -> Option<&'c Map<String, Value>> {
        self.value(key)?.as_object()
    }

    pub(crate) fn list(&self, key: &str) -> Option<&'c [Value]> {
        self.value(key)?.as_array().map(Vec::as_slice)
    }

    pub(crate) fn has(&self, key: &str) -> bool {
        self.value(key).is_some_and(|value| !value.is_null())
    }

    /// A list whose first element is an object.
    pub(crate) fn objects(&self, key: &str) -> Option<&'c [Value]> {
        self.list(key).filter(|list| list.first().is_some_and(Value::is_object))
    }

    /// Whether the path ends with one of the names.
    pub(crate) fn is_file(&self, names: &[&str]) -> bool {
        names.iter().any(|name| self.path.ends_with(name))
    }

    /// Whether there is at least one member, and all members are in the list.
    pub(crate) fn has_only(&self, known: &[&str]) -> bool {
        !self.root.is_empty() && self.root.keys().all(|key| known.contains(&key.as_str()))
    }

    /// Evidence: the document has one of the members, and its path ends with one of the file names.
    pub(crate) fn agrees(&self, files: &[&str], keys: &[&str]) -> Option<String> {
        let key = keys.iter().find(|key| self.has(key)).filter(|_| self.is_file(files))?;
        Some(format!("`{key}` and the path {} agree", self.path))
    }

    /// Evidence: the document has the version member, `site` and `capabilities`.
    pub(crate) fn with_site(&self, version_key: &str) -> Option<String> {
        let version = self.value(version_key)?;
        let listed = self.object("site").is_some() && self.list("capabilities").is_some();
        listed.then(|| format!("`site` and `capabilities` beside `{version_key}` {version}"))
    }

    /// Evidence: the `$schema` of the document satisfies `is_wanted`.
    pub(crate) fn schema_is(&self, is_wanted: impl Fn(&str) -> bool) -> Option<String> {
        let schema = self.text("$schema").filter(|schema| is_wanted(schema))?;
        Some(format!("`$schema` is {schema}"))
    }
}

/// Maximum number of characters of one piece of evidence, which quotes the document.
const EVIDENCE_CHARS_MAX: usize = 300;

/// A detection with its evidence, truncated to its cap.
pub(super) fn detected(format: Format, strength: Strength, mut evidence: String) -> Detection {
    evidence.truncate(text::capped(&evidence, EVIDENCE_CHARS_MAX).len());
    Detection::new(format, strength, evidence)
}

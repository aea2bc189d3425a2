//! Filter keys and facet fields: paths into a catalog entry, and the fields of the index that support them (ARD 0.9 §7.1).
//!
//! Values of one key mean OR, different keys mean AND. A path that the index does not support is refused with a list of the
//! supported ones, as the standard allows, rather than ignored.

use std::fmt::Display;

use indexer::{FacetKey, Filters};
use serde_json::{Map, Value};

use crate::problem::Problem;

/// Maximum number of values of one key.
const VALUES_MAX: usize = 50;
/// Maximum length of a value in bytes: the longest identifier, with room to spare.
const VALUE_BYTES_MAX: usize = 1_024;

/// A path into a catalog entry that the index supports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Path {
    /// One that a row of the filters names.
    Filter(FacetKey),
    /// The identifier or the whole name of an entry.
    Name(&'static str),
    Invocable,
}

/// Paths of the identifier and of names.
const NAMES: [&str; 3] = ["identifier", "displayName", "capabilities"];
const INVOCABLE: &str = "metadata.invocable";

impl Path {
    fn all() -> impl Iterator<Item = Self> {
        let filters = FacetKey::ALL.iter().copied().filter(|key| !key.filter().entry_path.is_empty());
        filters.map(Self::Filter).chain(NAMES.map(Self::Name)).chain([Self::Invocable])
    }

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Filter(key) => key.filter().entry_path,
            Self::Name(path) => path,
            Self::Invocable => INVOCABLE,
        }
    }

    /// A path as clients write it.
    pub(super) fn read(text: &str) -> Result<Self, Problem> {
        let path = match text {
            "publisherId" => "publisher",
            "name" => "displayName",
            _ => text,
        };
        Self::all().find(|of| of.as_str() == path).ok_or_else(|| {
            let known: Vec<&str> = Self::all().map(Self::as_str).collect();
            let shown: String = text.chars().take(80).collect();
            let detail = format!("\"{shown}\" is not a known field path: one of {}", known.join(", "));
            Problem::bad_request(detail).with_parameter("filter").with_known(known)
        })
    }

    /// The facet that counts by the path, if there is one.
    pub(super) fn facet(self) -> Option<FacetKey> {
        match self {
            Self::Filter(key) => Some(key),
            Self::Name(_) | Self::Invocable => None,
        }
    }
}

/// The paths that entries can be counted by.
pub(super) fn facet_paths() -> impl Iterator<Item = Path> {
    Path::all().filter(|path| path.facet().is_some())
}

/// The filter of a query: a map from paths to a value or a list of values.
pub(crate) fn read(filter: &Map<String, Value>) -> Result<Filters, Problem> {
    let mut filters = Filters::default();
    for (path, values) in filter {
        restrict(&mut filters, Path::read(path)?, texts(path, values)?)?;
    }
    Ok(filters)
}

fn texts(path: &str, values: &Value) -> Result<Vec<String>, Problem> {
    let refused = || {
        let detail = format!("the filter \"{path}\" takes a string or a list of strings");
        Problem::bad_request(detail).with_parameter("filter")
    };
    let scalar = |value: &Value| match value {
        Value::String(text) => Ok(text.clone()),
        Value::Bool(_) | Value::Number(_) => Ok(value.to_string()),
        _ => Err(refused()),
    };
    match values {
        Value::Array(values) if values.is_empty() => Err(refused()),
        Value::Array(values) => values.iter().map(scalar).collect(),
        value => Ok(vec![scalar(value)?]),
    }
}

/// Adds one constraint. A second constraint on the same field would mean AND, which the index cannot express: it is refused.
pub(super) fn restrict(filters: &mut Filters, path: Path, values: Vec<String>) -> Result<(), Problem> {
    let refused = |detail: String| Err(Problem::bad_request(detail).with_parameter("filter"));
    let name = path.as_str();
    if values.len() > VALUES_MAX || values.iter().any(|value| value.len() > VALUE_BYTES_MAX) {
        return refused(format!(
            "the filter \"{name}\" takes at most {VALUES_MAX} values of {VALUE_BYTES_MAX} bytes"
        ));
    }
    let is_restricted = match path {
        Path::Filter(key) => filters.values(key).next().is_some(),
        Path::Name(_) => !filters.names.is_empty(),
        Path::Invocable => false,
    };
    if is_restricted {
        return refused(format!(
            "\"{name}\" restricts a field that another part of the filter already restricts"
        ));
    }
    match path {
        Path::Filter(key) => {
            for value in &values {
                filters.add(key, value).map_err(unknown)?;
            }
        }
        Path::Name(_) => filters.names = values,
        Path::Invocable => filters.invocable = Some(values.first().is_some_and(|value| value == "true")),
    }
    Ok(())
}

fn unknown(error: impl Display) -> Problem {
    Problem::bad_request(error.to_string()).with_parameter("filter")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn filters(filter: &Value) -> Result<Filters, Problem> {
        read(filter.as_object().unwrap())
    }

    #[test]
    fn filters_accept_lists_and_scalars() {
        let read = filters(&json!({"type": "a/b", "tags": ["x", "y"], "metadata.format": ["awp"],
                                   "metadata.safety": "read", "publisherId": "shop.example"}))
        .unwrap();
        assert!(read.values(FacetKey::MediaType).eq(["a/b"]));
        assert!(read.values(FacetKey::Tag).eq(["x", "y"]));
        assert!(read.values(FacetKey::Format).eq(["awp"]));
        assert!(read.values(FacetKey::Safety).eq(["read"]));
        assert!(read.values(FacetKey::Publisher).eq(["shop.example"]));
    }

    #[test]
    fn unsupported_filters_are_refused_with_the_supported_ones() {
        for (filter, word) in [
            (json!({"trustManifest.attestations.type": ["SOC2"]}), "metadata.format"),
            (json!({"metadata.format": "soap"}), "awp"),
            (json!({"tags": []}), "list of strings"),
            (json!({"tags": {"a": 1}}), "list of strings"),
            (json!({"identifier": "a", "displayName": "b"}), "already"),
            (json!({"tags": vec!["x"; 51]}), "at most 50"),
        ] {
            let detail = filters(&filter).unwrap_err().body().detail.clone();
            assert!(detail.contains(word), "{filter}: {detail}");
        }
    }
}

//! Filter keys and facet fields: paths into a catalog entry, and what of the index answers for them (ARD 0.9 §7.1).
//!
//! Values of one key mean OR, keys among each other AND. A path that the index does not answer for is refused with those
//! that it does, as the standard allows, rather than ignored.

use std::fmt::Display;
use std::str::FromStr;

use indexer::{FacetKey, Filters, Method};
use manifest::model::UnknownValue;
use serde_json::{Map, Value};

use crate::problem::Problem;

/// Most values of one key: more than a person or a program means to choose between.
const VALUES_MAX: usize = 50;
/// Longest value in bytes: the longest identifier, with room to spare.
const VALUE_BYTES_MAX: usize = 1_024;

manifest::closed! {
    /// A path into a catalog entry that the index answers for.
    Path, "field path" {
        Type = "type",
        Publisher = "publisher",
        Tags = "tags",
        Identifier = "identifier",
        DisplayName = "displayName",
        Capabilities = "capabilities",
        Format = "metadata.format",
        Kind = "metadata.kind",
        Site = "metadata.site",
        SemanticType = "metadata.semanticType",
        Safety = "metadata.safety",
        Auth = "metadata.auth",
        Method = "metadata.method",
        Status = "metadata.status",
        Source = "metadata.source",
        Invocable = "metadata.invocable",
    }
}

impl Path {
    /// A path as clients write it.
    pub(super) fn read(text: &str) -> Result<Self, Problem> {
        match text {
            "publisherId" => return Ok(Self::Publisher),
            "name" => return Ok(Self::DisplayName),
            _ => {}
        }
        text.parse().map_err(|error: UnknownValue| {
            Problem::bad_request(error.to_string()).with_parameter("filter").with_known(Self::ALL)
        })
    }

    /// What results are counted by, where they are.
    pub(super) fn facet(self) -> Option<FacetKey> {
        Some(match self {
            Self::Type => FacetKey::MediaType,
            Self::Publisher => FacetKey::Publisher,
            Self::Tags => FacetKey::Tag,
            Self::Format => FacetKey::Format,
            Self::Kind => FacetKey::Kind,
            Self::Site => FacetKey::Site,
            Self::SemanticType => FacetKey::SemanticType,
            Self::Safety => FacetKey::Safety,
            Self::Auth => FacetKey::Auth,
            Self::Method => FacetKey::Method,
            Self::Status => FacetKey::Status,
            Self::Source => FacetKey::Source,
            Self::Identifier | Self::DisplayName | Self::Capabilities | Self::Invocable => return None,
        })
    }
}

/// The paths that entries can be counted by.
pub(super) fn facet_paths() -> impl Iterator<Item = Path> {
    Path::ALL.iter().copied().filter(|path| path.facet().is_some())
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

/// Adds one constraint.
pub(super) fn restrict(filters: &mut Filters, path: Path, values: Vec<String>) -> Result<(), Problem> {
    if values.len() > VALUES_MAX || values.iter().any(|value| value.len() > VALUE_BYTES_MAX) {
        let detail =
            format!("the filter \"{path}\" takes at most {VALUES_MAX} values of {VALUE_BYTES_MAX} bytes");
        return Err(Problem::bad_request(detail).with_parameter("filter"));
    }
    match path {
        Path::Type => only_once(path, &mut filters.media_types, values),
        Path::Publisher => only_once(path, &mut filters.publishers, values),
        Path::Tags => only_once(path, &mut filters.tags, values),
        Path::Identifier | Path::DisplayName | Path::Capabilities => {
            only_once(path, &mut filters.names, values)
        }
        Path::Site => only_once(path, &mut filters.sites, values),
        Path::SemanticType => only_once(path, &mut filters.semantic_types, values),
        Path::Format => only_once(path, &mut filters.formats, closed(&values)?),
        Path::Kind => only_once(path, &mut filters.kinds, closed(&values)?),
        Path::Safety => only_once(path, &mut filters.safety, closed(&values)?),
        Path::Auth => only_once(path, &mut filters.auth, closed(&values)?),
        Path::Status => only_once(path, &mut filters.statuses, closed(&values)?),
        Path::Source => only_once(path, &mut filters.sources, closed(&values)?),
        Path::Method => {
            let methods = values.iter().map(|value| Method::parse_loosely(value));
            only_once(path, &mut filters.methods, methods.collect::<Result<_, _>>().map_err(unknown)?)
        }
        Path::Invocable => {
            filters.invocable = Some(values.first().is_some_and(|value| value == "true"));
            Ok(())
        }
    }
}

/// Two constraints on one thing would have to hold at once; the index knows only "any of these".
fn only_once<T>(path: Path, into: &mut Vec<T>, values: Vec<T>) -> Result<(), Problem> {
    if !into.is_empty() {
        let detail = format!("\"{path}\" restricts what another part of the filter restricts already");
        return Err(Problem::bad_request(detail).with_parameter("filter"));
    }
    *into = values;
    Ok(())
}

fn closed<T: FromStr<Err = UnknownValue>>(values: &[String]) -> Result<Vec<T>, Problem> {
    values.iter().map(|value| value.parse().map_err(unknown)).collect()
}

fn unknown(error: impl Display) -> Problem {
    Problem::bad_request(error.to_string()).with_parameter("filter")
}

#[cfg(test)]
mod tests {
    use super::*;
    use manifest::{Format, SafetyClass};
    use serde_json::json;

    fn filters(filter: &Value) -> Result<Filters, Problem> {
        read(filter.as_object().unwrap())
    }

    #[test]
    fn lists_and_scalars_restrict_alike() {
        let read = filters(&json!({"type": "a/b", "tags": ["x", "y"], "metadata.format": ["awp"],
                                   "metadata.safety": "read", "publisherId": "shop.example"}))
        .unwrap();
        assert_eq!(read.media_types, ["a/b"]);
        assert_eq!(read.tags, ["x", "y"]);
        assert_eq!((read.formats, read.safety), (vec![Format::Awp], vec![SafetyClass::Read]));
        assert_eq!(read.publishers, ["shop.example"]);
    }

    #[test]
    fn what_cannot_be_answered_is_refused_with_what_can() {
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

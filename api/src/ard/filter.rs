//! Filter keys and facet fields: paths into a catalog entry, and the fields of the index that support them (ARD 0.91 §5.3.1).
//!
//! Values of one key mean OR, different keys mean AND. A key is resolved to an IRI by the context of the query. A term or a path
//! that the index does not have is compared with the entries themselves (see `terms`).

use std::fmt::Display;

use indexer::{FacetKey, Filters};
use manifest::term::{TermContext, UNEXPANDED};
use serde_json::{Map, Value};

use super::terms::TermFilter;
use crate::problem::Problem;

/// Maximum number of values of one key.
const VALUES_MAX: usize = 50;
/// Maximum length of a value in bytes: more than the longest identifier.
const VALUE_BYTES_MAX: usize = 1_024;
/// Maximum number of terms in one filter that are compared with each entry.
const TERMS_MAX: usize = 8;
/// Maximum number of steps of a path into `trustManifest` or `metadata`. Paths in the examples of the standard have two.
const SEGMENTS_MAX: usize = 8;

/// A path into a catalog entry that the index supports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Path {
    /// The path of a search filter.
    Filter(FacetKey),
    /// The identifier or the whole name of an entry.
    Name(&'static str),
    Invocable,
}

/// Paths of the identifier and of the names of an entry.
pub(super) const NAMES: [&str; 3] = ["identifier", "displayName", "capabilities"];
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

    fn find(text: &str) -> Option<Self> {
        let path = if text == "publisherId" { "publisher" } else { text };
        Self::all().find(|of| of.as_str() == path)
    }

    /// A path as clients write it in an expression. In a query, `name` is a term of its own.
    pub(super) fn read(text: &str) -> Result<Self, Problem> {
        let path = if text == "name" { "displayName" } else { text };
        Self::find(path).ok_or_else(|| {
            let shown: String = text.chars().take(80).collect();
            let detail = format!("\"{shown}\" is not a known field path");
            Problem::bad_request(detail).with_parameter("filter").with_known(known_paths())
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

pub(super) fn known_paths() -> Vec<&'static str> {
    Path::all().map(Path::as_str).collect()
}

/// The paths that entries can be counted by.
pub(super) fn facet_paths() -> impl Iterator<Item = Path> {
    Path::all().filter(|path| path.facet().is_some())
}

/// The filter of a query.
#[derive(Debug, Default)]
pub(super) struct EntryFilter {
    /// Filters that the index applies.
    pub(super) filters: Filters,
    /// Filters that are compared with each entry, because the index does not have their fields.
    pub(super) terms: Vec<TermFilter>,
}

/// The filter of a query: a map from terms and paths to a value or a list of values. `context` is the context of the query.
pub(super) fn read(filter: &Map<String, Value>, context: &TermContext) -> Result<EntryFilter, Problem> {
    let mut read = EntryFilter::default();
    for (key, values) in filter {
        let texts = texts(key, values)?;
        match Key::read(key, context)? {
            Key::Path(path) => restrict(&mut read.filters, path, texts)?,
            Key::Term(term, path) => read.terms.push(TermFilter { term, path, values: checked(key, texts)? }),
        }
    }
    if read.terms.len() > TERMS_MAX {
        let detail = format!("at most {TERMS_MAX} terms of a filter may be other than the known paths");
        return Err(Problem::bad_request(detail).with_parameter("filter").with_known(known_paths()));
    }
    Ok(read)
}

/// A key of a filter, resolved by the context of the query.
pub(super) enum Key {
    /// A path that the index supports.
    Path(Path),
    /// The IRI of another term, and the literal path into its value.
    Term(String, Vec<String>),
}

impl Key {
    pub(super) fn read(key: &str, context: &TermContext) -> Result<Self, Problem> {
        let (term, rest) = match key.split_once('.') {
            Some((term, rest)) if context.core_term(term).is_some_and(|core| UNEXPANDED.contains(&core)) => {
                (term, Some(rest))
            }
            _ => (key, None),
        };
        let core = context.core_term(term);
        if core == Some("data") {
            return Path::read(key).map(Self::Path);
        }
        let usual = core.unwrap_or(term);
        let path = rest.map_or_else(|| usual.to_owned(), |rest| format!("{usual}.{rest}"));
        let is_own = core.is_some() || TermContext::default().resolve(term) == context.resolve(term);
        if let Some(path) = Path::find(&path).filter(|_| is_own) {
            return Ok(Self::Path(path));
        }
        let segments: Vec<String> =
            rest.map(|rest| rest.split('.').map(ToOwned::to_owned).collect()).unwrap_or_default();
        if key.is_empty() || key.len() > VALUE_BYTES_MAX || segments.len() > SEGMENTS_MAX {
            return Path::read(key).map(Self::Path);
        }
        Ok(Self::Term(context.resolve(term), segments))
    }
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

fn checked(name: &str, values: Vec<String>) -> Result<Vec<String>, Problem> {
    if values.len() > VALUES_MAX || values.iter().any(|value| value.len() > VALUE_BYTES_MAX) {
        let detail =
            format!("the filter \"{name}\" takes at most {VALUES_MAX} values of {VALUE_BYTES_MAX} bytes");
        return Err(Problem::bad_request(detail).with_parameter("filter"));
    }
    Ok(values)
}

/// Adds one constraint. Rejects a second constraint on the same field: it would mean AND, which the index does not support within a field.
pub(super) fn restrict(filters: &mut Filters, path: Path, values: Vec<String>) -> Result<(), Problem> {
    let name = path.as_str();
    let values = checked(name, values)?;
    let is_restricted = match path {
        Path::Filter(key) => filters.values(key).next().is_some(),
        Path::Name(_) => !filters.names.is_empty(),
        Path::Invocable => false,
    };
    if is_restricted {
        let detail =
            format!("\"{name}\" restricts a field that another part of the filter already restricts");
        return Err(Problem::bad_request(detail).with_parameter("filter"));
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

    fn filters(filter: &Value) -> Result<EntryFilter, Problem> {
        read(filter.as_object().unwrap(), &TermContext::default())
    }

    #[test]
    fn filters_accept_lists_and_scalars() {
        let read = filters(&json!({"type": "a/b", "tags": ["x", "y"], "metadata.format": ["awp"],
                                   "metadata.safety": "read", "publisherId": "shop.example"}))
        .unwrap();
        assert!(read.terms.is_empty());
        let read = read.filters;
        assert!(read.values(FacetKey::MediaType).eq(["a/b"]));
        assert!(read.values(FacetKey::Tag).eq(["x", "y"]));
        assert!(read.values(FacetKey::Format).eq(["awp"]));
        assert!(read.values(FacetKey::Safety).eq(["read"]));
        assert!(read.values(FacetKey::Publisher).eq(["shop.example"]));
    }

    #[test]
    fn keys_are_resolved_by_the_context_of_the_query() {
        let context = json!({"a": "https://agenticresourcediscovery.org/ns#", "okf": "https://okf.example/ns#",
                             "tags": "https://okf.example/ns#labels"});
        let context = TermContext::of(Some(&context));
        let filter = json!({"a:mediaType": "a/b", "a:tags": "x", "a:metadata.format": "awp", "okf:taxonomy": ["us"], "tags": "y",
                            "trustManifest.attestations.type": "SOC2", "metadata.region": true, "name": "Tools"});
        let read = read(filter.as_object().unwrap(), &context).unwrap();
        assert!(read.filters.values(FacetKey::MediaType).eq(["a/b"]));
        assert!(read.filters.values(FacetKey::Tag).eq(["x"]));
        assert!(read.filters.values(FacetKey::Format).eq(["awp"]));
        let mut terms: Vec<(String, String)> =
            read.terms.iter().map(|filter| (filter.term.clone(), filter.path.join("."))).collect();
        terms.sort();
        let own = |name: &str| format!("https://agenticresourcediscovery.org/ns#{name}");
        let okf = |name: &str| format!("https://okf.example/ns#{name}");
        assert_eq!(
            terms,
            [
                (own("metadata"), "region"),
                (own("name"), ""),
                (own("trustManifest"), "attestations.type"),
                (okf("labels"), ""),
                (okf("taxonomy"), "")
            ]
            .map(|(term, path)| (term, path.to_owned()))
        );
    }

    #[test]
    fn unsupported_filters_are_refused_with_the_supported_ones() {
        let terms: Map<String, Value> = (0..9).map(|number| (format!("a:{number}"), json!("x"))).collect();
        let deep = format!("metadata{}", ".a".repeat(9));
        for (filter, word) in [
            (json!({"data.name": ["x"]}), "metadata.format"),
            (json!({deep: ["x"]}), "metadata.format"),
            (json!({"": ["x"]}), "metadata.format"),
            (Value::Object(terms), "at most 8"),
            (json!({"metadata.format": "soap"}), "awp"),
            (json!({"tags": []}), "list of strings"),
            (json!({"tags": {"a": 1}}), "list of strings"),
            (json!({"identifier": "a", "displayName": "b"}), "already"),
            (json!({"tags": vec!["x"; 51]}), "at most 50"),
            (json!({"a:b": vec!["x"; 51]}), "at most 50"),
        ] {
            let detail = filters(&filter).unwrap_err().body().in_words();
            assert!(detail.contains(word), "{filter}: {detail}");
        }
    }
}

//! Filters as what they admit. None of them scores.

use std::collections::BTreeSet;
use std::ops::Bound;

use tantivy::query::{
    AllQuery, BooleanQuery, ConstScoreQuery, Occur, Query, RangeQuery, TermQuery, TermSetQuery,
};
use tantivy::schema::{Field, IndexRecordOption};
use tantivy::{Searcher, Term};

use crate::analysis::fold_exact;
use crate::error::{IndexError, SearchError};
use crate::index::Fields;
use crate::request::{FacetKey, Filters};

/// Values up to which each is looked up by itself: a set of terms costs the engine a dictionary of its own first.
const TERMS_APART_MAX: usize = 16;

/// Different values of one filter: the API takes fifty, and the operators of a request add theirs.
const VALUES_MAX: usize = 100;

/// Types that all `namespace:*` of one filter stand for at most.
const TYPES_MAX: usize = 1_000;

/// One filter, and the facet that ignores it when it is counted.
pub(crate) struct FilterPart {
    pub(crate) facet: Option<FacetKey>,
    pub(crate) admits: Admits,
}

/// The documents that a filter admits.
pub(crate) enum Admits {
    /// Those that have any of the terms.
    AnyOf(Vec<Term>),
    /// Those that have none of them.
    NoneOf(Vec<Term>),
    /// Those whose time is this one or later.
    Since(Term),
}

impl Admits {
    /// The same as a query of the engine.
    pub(crate) fn query(&self) -> Box<dyn Query> {
        let query: Box<dyn Query> = match self {
            Self::AnyOf(terms) => any_of(terms),
            Self::NoneOf(terms) => {
                let all: Box<dyn Query> = Box::new(AllQuery);
                Box::new(BooleanQuery::new(vec![(Occur::Must, all), (Occur::MustNot, any_of(terms))]))
            }
            Self::Since(from) => Box::new(RangeQuery::new(Bound::Included(from.clone()), Bound::Unbounded)),
        };
        Box::new(ConstScoreQuery::new(query, 0.0))
    }
}

/// The filters one by one; a document has to be admitted by all.
pub(crate) fn filter_parts(
    searcher: &Searcher,
    fields: &Fields,
    filters: &Filters,
) -> Result<Vec<FilterPart>, SearchError> {
    let listed = [
        (FacetKey::Format, fields.format, slugs(filters.formats.iter().map(|value| value.as_str()))?),
        (FacetKey::Namespace, fields.namespace, lower(&filters.namespaces)?),
        (FacetKey::Method, fields.method, slugs(filters.methods.iter().map(|value| value.as_str()))?),
        (FacetKey::Safety, fields.safety, slugs(filters.safety.iter().map(|value| value.as_str()))?),
        (FacetKey::Auth, fields.auth, slugs(filters.auth.iter().map(|value| value.as_str()))?),
        (FacetKey::Status, fields.status, slugs(filters.statuses.iter().map(|value| value.as_str()))?),
        (FacetKey::Source, fields.source, slugs(filters.sources.iter().map(|value| value.as_str()))?),
        (FacetKey::Language, fields.language, lower(&filters.languages)?),
        (FacetKey::Kind, fields.kind, slugs(filters.kinds.iter().map(|value| value.as_str()))?),
        (FacetKey::MediaType, fields.media_type, lower(&filters.media_types)?),
        (FacetKey::Publisher, fields.publisher, lower(&filters.publishers)?),
        (FacetKey::Tag, fields.tag, lower(&filters.tags)?),
    ];
    let mut parts = Vec::new();
    let mut add = |facet: Option<FacetKey>, admits: Admits| parts.push(FilterPart { facet, admits });
    for (facet, field, values) in listed {
        if !values.is_empty() {
            add(Some(facet), Admits::AnyOf(terms(field, &values)));
        }
    }
    if !filters.sites.is_empty() {
        let sites = lower(&filters.sites)?;
        let terms = [terms(fields.site, &sites), terms(fields.host, &sites)].concat();
        add(Some(FacetKey::Site), Admits::AnyOf(terms));
    }
    if !filters.without_sites.is_empty() {
        // These come from who runs the index, however many they are.
        let sites: Vec<String> = filters.without_sites.iter().map(|site| site.to_lowercase()).collect();
        add(None, Admits::NoneOf(terms(fields.site, &sites)));
    }
    if !filters.semantic_types.is_empty() {
        let admits = Admits::AnyOf(types(searcher, fields, &filters.semantic_types)?);
        add(Some(FacetKey::SemanticType), admits);
    }
    if !filters.names.is_empty() {
        let forms = filters.names.iter().flat_map(|name| [name.to_lowercase(), fold_exact(name)]);
        let forms = distinct(forms.filter(|form| !form.is_empty()))?;
        add(None, Admits::AnyOf(terms(fields.exact, &forms)));
    }
    let since =
        [(fields.updated_ms, filters.updated_since), (fields.first_seen_ms, filters.first_seen_since)];
    for (field, since) in since {
        if let Some(since) = since {
            add(None, Admits::Since(Term::from_field_i64(field, since.timestamp_millis())));
        }
    }
    if let Some(invocable) = filters.invocable {
        add(None, Admits::AnyOf(vec![Term::from_field_bool(fields.invocable, invocable)]));
    }
    Ok(parts)
}

fn slugs<'a>(values: impl Iterator<Item = &'a str>) -> Result<Vec<String>, SearchError> {
    distinct(values.map(str::to_owned))
}

fn lower(values: &[String]) -> Result<Vec<String>, SearchError> {
    distinct(values.iter().map(|value| value.to_lowercase()))
}

/// Each value once.
fn distinct(values: impl Iterator<Item = String>) -> Result<Vec<String>, SearchError> {
    let values: BTreeSet<String> = values.collect();
    if values.len() > VALUES_MAX {
        return Err(SearchError::TooManyValues { found: values.len(), max: VALUES_MAX });
    }
    Ok(values.into_iter().collect())
}

fn terms(field: Field, values: &[String]) -> Vec<Term> {
    values.iter().map(|value| Term::from_field_text(field, value)).collect()
}

/// Documents that have any of the terms.
fn any_of(terms: &[Term]) -> Box<dyn Query> {
    let one =
        |term: &Term| -> Box<dyn Query> { Box::new(TermQuery::new(term.clone(), IndexRecordOption::Basic)) };
    match terms {
        [only] => one(only),
        _ if terms.len() > TERMS_APART_MAX => Box::new(TermSetQuery::new(terms.to_vec())),
        _ => Box::new(BooleanQuery::new(terms.iter().map(|term| (Occur::Should, one(term))).collect())),
    }
}

/// `travel:flight-booking` as it is, `travel:*` as every type that begins so.
fn types(searcher: &Searcher, fields: &Fields, types: &[String]) -> Result<Vec<Term>, SearchError> {
    let mut found = BTreeSet::new();
    for name in lower(types)? {
        match name.strip_suffix('*') {
            None => {
                found.insert(Term::from_field_text(fields.semantic_type, &name));
            }
            Some(prefix) => add_types_that_begin(searcher, fields, prefix, &mut found)?,
        }
    }
    Ok(found.into_iter().collect())
}

fn add_types_that_begin(
    searcher: &Searcher,
    fields: &Fields,
    prefix: &str,
    found: &mut BTreeSet<Term>,
) -> Result<(), IndexError> {
    let failed = IndexError::engine("look types up");
    for segment in searcher.segment_readers() {
        let inverted = segment.inverted_index(fields.semantic_type).map_err(&failed)?;
        let mut stream =
            inverted.terms().range().ge(prefix).into_stream().map_err(|error| failed(error.into()))?;
        for _ in 0..TYPES_MAX {
            let Some((key, _)) = stream.next() else { break };
            let name = std::str::from_utf8(key).ok().filter(|name| name.starts_with(prefix));
            let Some(name) = name.filter(|_| found.len() < TYPES_MAX) else { break };
            found.insert(Term::from_field_text(fields.semantic_type, name));
        }
    }
    Ok(())
}

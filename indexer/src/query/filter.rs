//! Filters as what they admit. None of them scores.

use std::ops::Bound;

use tantivy::query::{
    AllQuery, BooleanQuery, ConstScoreQuery, Occur, Query, RangeQuery, TermQuery, TermSetQuery,
};
use tantivy::schema::{Field, IndexRecordOption};
use tantivy::{Searcher, Term};

use crate::analysis::fold_exact;
use crate::error::IndexError;
use crate::index::Fields;
use crate::request::{FacetKey, Filters};

/// Values up to which each is looked up by itself: a set of terms costs the engine a dictionary of its own first.
const TERMS_APART_MAX: usize = 16;

/// Types that one `namespace:*` stands for at most, in one segment of the index.
const PREFIX_TERMS_MAX: usize = 1_000;

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
) -> Result<Vec<FilterPart>, IndexError> {
    let mut parts = Vec::new();
    let mut add = |facet: FacetKey, field: Field, values: Vec<String>| {
        if !values.is_empty() {
            let terms = values.iter().map(|value| Term::from_field_text(field, value)).collect();
            parts.push(FilterPart { facet: Some(facet), admits: Admits::AnyOf(terms) });
        }
    };
    add(FacetKey::Format, fields.format, slugs(filters.formats.iter().map(|value| value.as_str())));
    add(FacetKey::Namespace, fields.namespace, lower(&filters.namespaces));
    add(FacetKey::Method, fields.method, slugs(filters.methods.iter().map(|value| value.as_str())));
    add(FacetKey::Safety, fields.safety, slugs(filters.safety.iter().map(|value| value.as_str())));
    add(FacetKey::Auth, fields.auth, slugs(filters.auth.iter().map(|value| value.as_str())));
    add(FacetKey::Status, fields.status, slugs(filters.statuses.iter().map(|value| value.as_str())));
    add(FacetKey::Source, fields.source, slugs(filters.sources.iter().map(|value| value.as_str())));
    add(FacetKey::Language, fields.language, lower(&filters.languages));
    add(FacetKey::Kind, fields.kind, slugs(filters.kinds.iter().map(|value| value.as_str())));
    add(FacetKey::MediaType, fields.media_type, lower(&filters.media_types));
    add(FacetKey::Publisher, fields.publisher, lower(&filters.publishers));
    add(FacetKey::Tag, fields.tag, lower(&filters.tags));
    if !filters.sites.is_empty() {
        let sites = lower(&filters.sites);
        let terms = sites.iter().flat_map(|site| {
            [Term::from_field_text(fields.site, site), Term::from_field_text(fields.host, site)]
        });
        parts.push(FilterPart { facet: Some(FacetKey::Site), admits: Admits::AnyOf(terms.collect()) });
    }
    if !filters.without_sites.is_empty() {
        let sites = lower(&filters.without_sites);
        let theirs = sites.iter().map(|site| Term::from_field_text(fields.site, site));
        parts.push(FilterPart { facet: None, admits: Admits::NoneOf(theirs.collect()) });
    }
    if !filters.semantic_types.is_empty() {
        let admits = Admits::AnyOf(types(searcher, fields, &filters.semantic_types)?);
        parts.push(FilterPart { facet: Some(FacetKey::SemanticType), admits });
    }
    if !filters.names.is_empty() {
        let forms = filters.names.iter().flat_map(|name| [name.to_lowercase(), fold_exact(name)]);
        let terms =
            forms.filter(|form| !form.is_empty()).map(|form| Term::from_field_text(fields.exact, &form));
        parts.push(FilterPart { facet: None, admits: Admits::AnyOf(terms.collect()) });
    }
    let since =
        [(fields.updated_ms, filters.updated_since), (fields.first_seen_ms, filters.first_seen_since)];
    for (field, since) in since {
        let Some(since) = since else { continue };
        let from = Term::from_field_i64(field, since.timestamp_millis());
        parts.push(FilterPart { facet: None, admits: Admits::Since(from) });
    }
    if let Some(invocable) = filters.invocable {
        let term = Term::from_field_bool(fields.invocable, invocable);
        parts.push(FilterPart { facet: None, admits: Admits::AnyOf(vec![term]) });
    }
    Ok(parts)
}

fn slugs<'a>(values: impl Iterator<Item = &'a str>) -> Vec<String> {
    values.map(str::to_owned).collect()
}

fn lower(values: &[String]) -> Vec<String> {
    values.iter().map(|value| value.to_lowercase()).collect()
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
fn types(searcher: &Searcher, fields: &Fields, types: &[String]) -> Result<Vec<Term>, IndexError> {
    let mut terms = Vec::new();
    for name in lower(types) {
        match name.strip_suffix('*') {
            None => terms.push(Term::from_field_text(fields.semantic_type, &name)),
            Some(prefix) => terms.extend(types_that_begin(searcher, fields, prefix)?),
        }
    }
    terms.sort_unstable();
    terms.dedup();
    Ok(terms)
}

fn types_that_begin(searcher: &Searcher, fields: &Fields, prefix: &str) -> Result<Vec<Term>, IndexError> {
    let failed = IndexError::engine("look types up");
    let mut found = Vec::new();
    for segment in searcher.segment_readers() {
        let inverted = segment.inverted_index(fields.semantic_type).map_err(&failed)?;
        let mut stream =
            inverted.terms().range().ge(prefix).into_stream().map_err(|error| failed(error.into()))?;
        for _ in 0..PREFIX_TERMS_MAX {
            let Some((key, _)) = stream.next() else { break };
            let Some(name) = std::str::from_utf8(key).ok().filter(|name| name.starts_with(prefix)) else {
                break;
            };
            found.push(Term::from_field_text(fields.semantic_type, name));
        }
    }
    Ok(found)
}

//! Filters as restrictions on documents. They do not affect scores.

use std::collections::BTreeSet;

use tantivy::schema::Field;
use tantivy::{Searcher, SegmentReader, Term};

use crate::analysis::fold_exact;
use crate::error::{IndexError, SearchError};
use crate::filter::{FacetKey, Filters};
use crate::index::Fields;

/// Maximum number of distinct values of one filter. The API accepts fifty, and operators in a phrasing may add more.
const VALUES_MAX: usize = 100;

/// Maximum number of types that all `namespace:*` of one filter expand to.
const TYPES_MAX: usize = 1_000;

/// One restriction, and the facet that ignores it when it is counted.
pub(crate) struct FilterPart {
    pub(crate) facet: Option<FacetKey>,
    pub(crate) restriction: Restriction,
}

/// The documents that a filter accepts.
pub(crate) enum Restriction {
    /// Documents that have any of the terms.
    AnyOf(Vec<Term>),
    /// Documents that have none of the terms.
    NoneOf(Vec<Term>),
    /// Documents of sites with an agent endpoint of any of these protocols.
    OfSitesWith(BTreeSet<String>),
    /// Documents with this time or a later one.
    Since(Term),
}

/// The restrictions of some filters; a document has to satisfy all. `check_deadline` is called before each `namespace:*` is looked
/// up in a segment; its error ends the search.
pub(crate) fn restrictions(
    searcher: &Searcher,
    fields: &Fields,
    filters: &Filters,
    check_deadline: impl Fn() -> Result<(), SearchError>,
) -> Result<Vec<FilterPart>, SearchError> {
    let mut parts = Vec::new();
    let mut add = |facet, restriction| parts.push(FilterPart { facet, restriction });
    for (key, values) in filters.iter() {
        check_count(values)?;
        if key == FacetKey::AgentEndpoint {
            add(Some(key), Restriction::OfSitesWith(values.clone()));
            continue;
        }
        let own = fields.facet(key);
        let terms = match key {
            FacetKey::SemanticType => types(searcher, own, values, &check_deadline)?,
            FacetKey::Site => [terms(own, values), terms(fields.host, values)].concat(),
            _ => terms(own, values),
        };
        add(Some(key), Restriction::AnyOf(terms));
    }
    if !filters.without_sites.is_empty() {
        // the operator's blocked sites; there may be many, so the limit on values does not apply
        let sites = filters.without_sites.iter().map(|site| site.to_lowercase()).collect();
        add(None, Restriction::NoneOf(terms(fields.facet(FacetKey::Site), &sites)));
    }
    if !filters.names.is_empty() {
        let forms = filters.names.iter().flat_map(|name| [name.to_lowercase(), fold_exact(name)]);
        let forms: BTreeSet<String> = forms.filter(|form| !form.is_empty()).collect();
        check_count(&forms)?;
        add(None, Restriction::AnyOf(terms(fields.exact, &forms)));
    }
    if let Some(among) = &filters.among {
        let own = among.iter().map(|id| Term::from_field_text(fields.id, id.as_str()));
        add(None, Restriction::AnyOf(own.collect()));
    }
    for (field, since) in
        [(fields.updated_ms, filters.updated_since), (fields.first_seen_ms, filters.first_seen_since)]
    {
        if let Some(since) = since {
            add(None, Restriction::Since(Term::from_field_i64(field, since.timestamp_millis())));
        }
    }
    if let Some(invocable) = filters.invocable {
        add(None, Restriction::AnyOf(vec![Term::from_field_bool(fields.invocable, invocable)]));
    }
    Ok(parts)
}

fn check_count(values: &BTreeSet<String>) -> Result<(), SearchError> {
    if values.len() > VALUES_MAX {
        return Err(SearchError::TooManyValues { found: values.len(), max: VALUES_MAX });
    }
    Ok(())
}

fn terms(field: Field, values: &BTreeSet<String>) -> Vec<Term> {
    values.iter().map(|value| Term::from_field_text(field, value)).collect()
}

/// `travel:flight-booking` stays a single type; `travel:*` becomes all types with this prefix.
fn types(
    searcher: &Searcher,
    field: Field,
    names: &BTreeSet<String>,
    check_deadline: impl Fn() -> Result<(), SearchError>,
) -> Result<Vec<Term>, SearchError> {
    let mut found = BTreeSet::new();
    for name in names {
        match name.strip_suffix('*') {
            Some(prefix) => {
                for segment in searcher.segment_readers() {
                    check_deadline()?;
                    add_types(segment, field, prefix, &mut found)?;
                }
            }
            None => {
                found.insert(Term::from_field_text(field, name));
            }
        }
    }
    Ok(found.into_iter().collect())
}

fn add_types(
    segment: &SegmentReader,
    field: Field,
    prefix: &str,
    found: &mut BTreeSet<Term>,
) -> Result<(), IndexError> {
    let failed = IndexError::engine("look types up");
    let inverted = segment.inverted_index(field).map_err(&failed)?;
    let mut stream =
        inverted.terms().range().ge(prefix).into_stream().map_err(|error| failed(error.into()))?;
    for _ in 0..TYPES_MAX {
        let Some((key, _)) = stream.next() else { break };
        let name = std::str::from_utf8(key).ok().filter(|name| name.starts_with(prefix));
        let Some(name) = name.filter(|_| found.len() < TYPES_MAX) else { break };
        found.insert(Term::from_field_text(field, name));
    }
    Ok(())
}

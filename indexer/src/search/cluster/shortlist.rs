//! The documents of a cluster that are ranked: the best by the words of a request, and those that it names.
//!
//! Spam is selected separately, because the engine does not lower its scores: thousands of spam documents must not crowd out others.

use std::collections::HashSet;

use manifest::{CapabilityId, Host, Publisher};
use tantivy::TantivyDocument;
use tantivy::schema::Value as _;

use super::super::bm25::Statistics;
use super::super::conditions::{Conditions, TextCondition};
use super::super::opened::OpenedIndex;
use super::super::plans::PlannedQuery;
use super::super::selection::{WINDOW, selecting};
use super::calls::Calls;
use super::lookup::Known;
use crate::analysis::fold_exact;
use crate::cluster::{EngineCondition, EngineError, EngineResults, EngineSearch, EngineTerm};
use crate::error::{IndexError, SearchError};
use crate::filter::FacetKey;
use crate::index::{Fields, document_of, engine_term, time_field};
use crate::named_host::{named_host, named_hosts};
use crate::query::{Restriction, Role};

/// Maximum number of documents of a search, and of its spam. Later results of a cluster are only counted.
pub(super) const DOCUMENTS_MAX: usize = 1_000;
/// Maximum number of spam documents that are re-ranked.
const SPAM_MAX: usize = 50;
/// Maximum number of documents with an exact name.
const EXACT_MAX: usize = 50;

/// How many documents are selected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Depth {
    /// Those that are re-ranked.
    Window,
    /// [`DOCUMENTS_MAX`].
    All,
}

impl Depth {
    const fn documents(self) -> usize {
        match self {
            Self::Window => WINDOW,
            Self::All => DOCUMENTS_MAX,
        }
    }
}

pub(super) struct Shortlist {
    pub(super) opened: OpenedIndex,
    /// Number of documents that match, in the cluster.
    pub(super) total: u64,
    pub(super) total_is_exact: bool,
    /// Whether it has all of them.
    pub(super) is_whole: bool,
}

impl Shortlist {
    pub(super) fn of(
        vocabulary: &OpenedIndex,
        calls: &Calls<'_>,
        query: &PlannedQuery,
        known: &Known,
        depth: Depth,
    ) -> Result<Self, SearchError> {
        let fields = &vocabulary.fields;
        let mut searches = by_words(fields, query, depth);
        let counted = searches.len();
        for phrasing in &query.phrasings {
            searches.extend(by_name(fields, query, phrasing.text.trim()));
        }
        let found = calls.search(&searches).map_err(IndexError::from)?;
        let by_words = found.get(..counted).unwrap_or_default();
        let conditions = EngineConditions::of(fields, &query.conditions, None);
        Ok(Self {
            opened: in_memory(vocabulary, &found, known)?,
            total: by_words.iter().map(|results| results.total).sum(),
            total_is_exact: conditions.is_complete && by_words.iter().all(|results| results.total_is_exact),
            is_whole: by_words.iter().all(|results| results.total <= results.stored.len() as u64),
        })
    }
}

/// The documents of some results as an index in memory.
pub(super) fn in_memory(
    vocabulary: &OpenedIndex,
    found: &[EngineResults],
    known: &Known,
) -> Result<OpenedIndex, IndexError> {
    let (mut documents, mut ids) = (Vec::new(), HashSet::new());
    for stored in found.iter().flat_map(|results| &results.stored) {
        let document = document_of(stored)?;
        let id = id_of(&vocabulary.fields, &document).ok_or(EngineError::Document)?;
        if ids.insert(id) {
            documents.push(document);
        }
    }
    let statistics = Statistics::given(known.documents, known.all_length, known.bigram_length);
    vocabulary
        .of_documents(documents, statistics, &known.frequencies)
        .map_err(IndexError::engine("index a shortlist"))
}

fn id_of(fields: &Fields, document: &TantivyDocument) -> Option<String> {
    Some(document.get_first(fields.id)?.as_str()?.to_owned())
}

/// The terms that select documents.
pub(super) fn scored(query: &PlannedQuery) -> Vec<(EngineTerm, f32)> {
    let terms = query.plans.iter().flat_map(selecting);
    let scored = terms.map(|term| {
        let field = if term.role == Role::Bigram { "bigram" } else { "all" };
        (EngineTerm { field, text: term.text.clone() }, term.weight)
    });
    scored.collect()
}

/// The documents with any of the words; all if the request has no text.
fn by_words(fields: &Fields, query: &PlannedQuery, depth: Depth) -> Vec<EngineSearch> {
    let scored = scored(query);
    let lists_all = query.plans.is_empty() && !query.has_only_unsearchable_words();
    if scored.is_empty() && !lists_all {
        return Vec::new();
    }
    let EngineConditions { required, excluded, .. } = EngineConditions::of(fields, &query.conditions, None);
    let all =
        EngineSearch { scored, required, excluded, limit: depth.documents(), ..EngineSearch::default() };
    if all.scored.is_empty() {
        // without scores, documents are only counted or, if there are few, sorted
        return vec![all];
    }
    let spam = EngineCondition::AnyOf(vec![term("spam", &true.to_string())]);
    let (mut honest, mut only_spam) = (all.clone(), all);
    honest.excluded.push(spam.clone());
    only_spam.required.push(spam);
    if depth == Depth::Window {
        only_spam.limit = SPAM_MAX;
    }
    vec![honest, only_spam]
}

/// The documents whose id or name is a whole phrasing, and those of each site that it names: the documents with this name, the best by the
/// words of the request, and one that shows that the site exists.
fn by_name(fields: &Fields, query: &PlannedQuery, text: &str) -> Vec<EngineSearch> {
    if text.is_empty() {
        return Vec::new();
    }
    let EngineConditions { required, excluded, .. } = EngineConditions::of(fields, &query.conditions, None);
    let search = |named: Vec<EngineCondition>| EngineSearch {
        required: required.iter().cloned().chain(named).collect(),
        excluded: excluded.clone(),
        limit: EXACT_MAX,
        ..EngineSearch::default()
    };
    let any_of = EngineCondition::AnyOf;
    let text = text.to_lowercase();
    let forms = vec![term("exact", &text), term("exact", &fold_exact(&text))];
    let mut searches = vec![search(vec![any_of(forms.clone())])];
    let exists = |owner: EngineTerm| EngineSearch {
        required: vec![EngineCondition::AnyOf(vec![owner])],
        limit: 1,
        ..EngineSearch::default()
    };
    if CapabilityId::parse(&text).is_ok() {
        searches.push(exists(term("id", &text)));
        return searches;
    }
    let scored = scored(query);
    let whole = named_host(&text);
    let mut hosts: Vec<Host> = whole.iter().cloned().chain(named_hosts(&text)).collect();
    let mut seen = HashSet::new();
    hosts.retain(|host| seen.insert(host.clone()));
    for host in hosts {
        let site = host.site();
        let owner = any_of(vec![term(FacetKey::Site.as_str(), site.as_str())]);
        let mut names = forms.clone();
        names.extend([term("exact", host.as_str()), term("exact", site.as_str())]);
        searches.push(search(vec![any_of(names), owner.clone()]));
        if whole.as_ref() == Some(&host) {
            let speaker = any_of(vec![term("speaker", Publisher::Host.as_str())]);
            searches.push(search(vec![speaker, owner.clone()]));
        }
        if !scored.is_empty() {
            searches.push(EngineSearch { scored: scored.clone(), ..search(vec![owner]) });
        }
        searches.push(exists(term(FacetKey::Site.as_str(), site.as_str())));
    }
    searches
}

fn term(field: &'static str, text: &str) -> EngineTerm {
    EngineTerm { field, text: text.to_owned() }
}

/// The conditions of a request in the form of an engine.
pub(super) struct EngineConditions {
    pub(super) required: Vec<EngineCondition>,
    pub(super) excluded: Vec<EngineCondition>,
    /// False if the engine does not know a condition, which is then checked among the documents of the shortlist.
    pub(super) is_complete: bool,
}

impl EngineConditions {
    pub(super) fn of(fields: &Fields, conditions: &Conditions, without: Option<FacetKey>) -> Self {
        let mut of = Self { required: Vec::new(), excluded: Vec::new(), is_complete: true };
        let terms = |terms: &[tantivy::Term]| -> Vec<EngineTerm> {
            terms.iter().filter_map(|term| engine_term(fields, term)).collect()
        };
        for restriction in conditions.filters(without) {
            match restriction {
                Restriction::AnyOf(any) => of.required.push(EngineCondition::AnyOf(terms(any))),
                Restriction::NoneOf(none) => of.excluded.push(EngineCondition::AnyOf(terms(none))),
                Restriction::Since(from) => {
                    let time = time_field(fields, from).zip(from.value().as_i64());
                    let since = time.map(|(field, from_ms)| EngineCondition::Since { field, from_ms });
                    of.is_complete &= since.is_some();
                    of.required.extend(since);
                }
                Restriction::OfSitesWith(_) => of.is_complete = false,
            }
        }
        let text = |condition: &TextCondition| match condition {
            TextCondition::AnyOf(any) => {
                EngineCondition::AnyOf(terms(&any.iter().cloned().collect::<Vec<_>>()))
            }
            TextCondition::AllOf(all) => {
                EngineCondition::AllOf(terms(&all.iter().cloned().collect::<Vec<_>>()))
            }
            TextCondition::Phrase(phrase) => EngineCondition::Phrase(terms(phrase)),
        };
        of.required.extend(conditions.required.iter().map(text));
        of.excluded.extend(conditions.excluded.iter().map(text));
        of
    }
}

//! Executes one search, from the request to the response.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use manifest::model::SafetyClass;
use manifest::{CapabilityId, IdentityMark};
use serde_json::value::to_raw_value;
use serde_json::{Value, json};
use tantivy::DocAddress;

#[cfg(feature = "cluster")]
use super::cluster::Depth;
use super::cursor::{Cursor, SEEN_MAX};
use super::deadline::Deadline;
use super::evidence::evidence;
use super::facets::{count_few, listed, most_frequent};
use super::opened::OpenedIndex;
use super::order::{Position, short_tie};
use super::phrasings::{parse_phrasings, query_hash, replace_word};
use super::plans::{LocalLookup, PlannedQuery};
use super::rank::{Ranked, explained_terms};
use super::retrieval::{Among, ColumnPage, CountedUnder, LocalRetrieval, Retrieval};
use super::rows;
use super::snippet::Highlighter;
use super::source::Source;
use super::spam_list;
use super::term_scores::{TermScope, TermScores};
use super::vector_search::VectorSearch;
use super::window::{Window, WindowQuery};
use crate::answer::{Explanation, FacetBuckets, FacetCount, Group, GroupMember, Hit, SearchAnswer};
use crate::error::{IndexError, SearchError};
use crate::filter::FacetKey;
use crate::query::{ParsedQuery, SHORT_WORDS_MAX, is_unknown_short, short_replacement, with_known_operators};
use crate::request::{ExploreRequest, FacetRequest, Grouping, LIMIT_MAX, SearchRequest, Sort};
use crate::spam::SPAM_FACTOR;

/// Below this coverage, the best result is irrelevant. Chosen with the dev queries of the public sets: at 0.05, no correct result is lost;
/// at 0.12, one in twenty is lost in the most conversational set.
const COVERAGE_MIN: f32 = 0.05;
/// Number of first results among which one that only reads, or a reversible one, is looked up; the best of these moves to the front.
const REVERSIBLE_AMONG: usize = 10;
/// Share of the best score that a result that only reads needs to move to the front. Chosen on the tuning half of the labelled requests.
const READER_SHARE_MIN: f32 = 0.6;
/// Maximum number of listed results of a group; the others are only counted.
const MEMBERS_MAX: usize = 5;
/// Maximum number of explained results of a page. Each costs as much as a search over one document, for each phrasing.
const EXPLAINED_MAX: usize = 10;
/// Maximum number of bytes of an explanation, as JSON.
const EXPLANATION_BYTES_MAX: usize = 16 * 1024;
/// Maximum number of bytes of an explanation without the scores of its words; this part contains two site names.
const SCORE_BYTES_MAX: usize = 1_280;
/// Maximum number of characters of a capability's own text that are used to search for similar capabilities.
const SIMILAR_CHARS_MAX: usize = 600;

#[expect(clippy::redundant_closure_for_method_calls, reason = "the method has one lifetime, the closure any")]
pub(super) fn search(
    source: Source<'_>,
    vectors: Option<&VectorSearch>,
    request: &SearchRequest,
) -> Result<SearchAnswer, SearchError> {
    let phrasings = parse_phrasings(&request.phrasings)?;
    execute(source, vectors, request, phrasings, |executor| executor.answer())
}

/// Counts the relevant results of a search with words, or all results of a search without words.
pub(super) fn explore(
    source: Source<'_>,
    request: &ExploreRequest,
) -> Result<Vec<FacetBuckets>, SearchError> {
    let search = SearchRequest {
        phrasings: request.phrasings.clone(),
        filters: request.filters.clone(),
        limit: 0,
        ..SearchRequest::default()
    };
    execute(source, None, &search, parse_phrasings(&search.phrasings)?, |executor| {
        if executor.query.plans.is_empty() && !executor.query.has_only_unsearchable_words() {
            return executor.count_all(&request.facets);
        }
        let window = executor.window()?;
        let relevant =
            if executor.has_good_result(&window) { window.relevant_documents() } else { Vec::new() };
        executor.count_among(&request.facets, &relevant)
    })
}

/// Searches by the name and description of a capability, and excludes this capability.
#[expect(clippy::redundant_closure_for_method_calls, reason = "the method has one lifetime, the closure any")]
pub(super) fn similar(
    source: Source<'_>,
    vectors: Option<&VectorSearch>,
    id: &CapabilityId,
    max: usize,
) -> Result<Option<Vec<Hit>>, SearchError> {
    let Some(own) = source.find(id)? else { return Ok(None) };
    let text = [own.name.as_str(), own.description.as_deref().unwrap_or_default()].join(". ");
    let text = text.chars().take(SIMILAR_CHARS_MAX).collect();
    let phrasing = ParsedQuery { text, ..ParsedQuery::default() };
    let request = SearchRequest { limit: max.saturating_add(1), ..SearchRequest::default() };
    let answer = execute(source, vectors, &request, vec![phrasing], |executor| executor.answer())?;
    let others = answer.hits.into_iter().filter(|hit| hit.id != *id);
    Ok(Some(others.take(max).collect()))
}

/// Prepares a search and runs it within its time limit.
pub(super) fn execute<T>(
    source: Source<'_>,
    vectors: Option<&VectorSearch>,
    request: &SearchRequest,
    phrasings: Vec<ParsedQuery>,
    run: impl Fn(&SearchExecutor<'_>) -> Result<T, SearchError>,
) -> Result<T, SearchError> {
    let deadline = Deadline::after(request.time_max);
    deadline.bound(|| {
        let query_hash = query_hash(request);
        let cursor = request.cursor.as_deref().map(|text| Cursor::read(text, query_hash)).transpose()?;
        let cursor = cursor.unwrap_or_default();
        let limit = request.limit.clamp(1, LIMIT_MAX);
        let executed = |dictionary: &OpenedIndex, retrieval: &dyn Retrieval, query: &PlannedQuery| {
            let cursor = &cursor;
            let of = SearchExecutor {
                dictionary,
                retrieval,
                vectors,
                request,
                deadline,
                limit,
                cursor,
                query_hash,
                query,
            };
            run(&of)
        };
        match source {
            Source::Local(opened) => {
                let lookup = LocalLookup { opened, deadline };
                let query = PlannedQuery::of(opened, &lookup, &request.filters, phrasings, deadline)?;
                executed(opened, &LocalRetrieval::of(opened, &query, deadline)?, &query)
            }
            #[cfg(feature = "cluster")]
            Source::Cluster(cluster) => {
                let planned = cluster.plan(request, phrasings, deadline)?;
                let has_words = !planned.query.plans.is_empty();
                let is_window = has_words && !cursor.is_beyond;
                let depth = if is_window { Depth::Window } else { Depth::All };
                cluster.retrieve(&planned, depth, deadline, |retrieval| {
                    executed(cluster.vocabulary, retrieval, &planned.query)
                })
            }
        }
    })
}

pub(super) struct SearchExecutor<'a> {
    /// The index whose words are looked up.
    dictionary: &'a OpenedIndex,
    retrieval: &'a dyn Retrieval,
    vectors: Option<&'a VectorSearch>,
    request: &'a SearchRequest,
    deadline: Deadline,
    limit: usize,
    cursor: &'a Cursor,
    query_hash: u64,
    pub(super) query: &'a PlannedQuery,
}

impl SearchExecutor<'_> {
    fn opened(&self) -> &OpenedIndex {
        self.retrieval.opened()
    }

    fn answer(&self) -> Result<SearchAnswer, SearchError> {
        let is_ranked = self.request.sort == Sort::Relevance && !self.query.plans.is_empty();
        let (mut answer, relevant) = if is_ranked || self.query.has_only_unsearchable_words() {
            let mut window = self.window()?;
            if self.request.is_relevant_only {
                window.keep_relevant();
            }
            let relevant = window.relevant_documents();
            (self.by_relevance(&mut window)?, Some(relevant))
        } else if self.request.is_relevant_only && !self.query.plans.is_empty() {
            let window = self.window()?;
            let relevant =
                if self.has_good_result(&window) { window.relevant_documents() } else { Vec::new() };
            (self.relevant_by_column(&relevant, window.coverage)?, Some(relevant))
        } else {
            (self.by_column(Among::Matching)?, None)
        };
        if !answer.nothing_good && !self.request.facets.is_empty() {
            answer.facets = self.facets(relevant.as_deref())?;
        }
        answer.completeness = self.retrieval.completeness();
        Ok(answer)
    }

    /// The re-ranked documents first, then the rest by the score of their text.
    fn by_relevance(&self, window: &mut Window) -> Result<SearchAnswer, SearchError> {
        if self.query.plans.iter().any(|plan| plan.only_reads) {
            let relevant = usize::try_from(window.relevant).unwrap_or(usize::MAX).min(window.ranked.len());
            self.put_readers_first(window.ranked.get_mut(..relevant).unwrap_or_default())?;
        }
        let mut answer = SearchAnswer {
            total: window.total,
            relevant: Some(window.relevant),
            coverage: window.coverage,
            did_you_mean: self.did_you_mean()?,
            ..SearchAnswer::default()
        };
        if !self.has_good_result(window) {
            (answer.nothing_good, answer.total, answer.relevant) = (true, 0, Some(0));
            answer.has_no_words = self.query.plans.is_empty();
            return Ok(answer);
        }
        let highlighter = Highlighter::of(self.opened(), &self.query.plans);
        let mut best_of = self.request.explain_best_of.as_ref();
        let mut seen = self.cursor.seen.clone();
        let mut is_beyond = self.cursor.is_beyond;
        if !is_beyond {
            let already: HashSet<u32> = seen.iter().copied().collect();
            let tie = |hit: &Ranked| short_tie(hit.candidate.traits.tie);
            let mut fresh = window.ranked.iter().filter(|hit| !already.contains(&tie(hit)));
            for hit in fresh.by_ref().take(self.limit) {
                let mut found = self.ranked_hit(hit, &highlighter)?;
                let is_best = best_of.is_some_and(|site| *site == found.site && found.is_of_site());
                if self.request.explain && (is_best || answer.hits.len() < EXPLAINED_MAX) {
                    found.explanation = Some(self.explanation(&found, hit)?);
                }
                best_of = best_of.filter(|_| !is_best);
                answer.hits.push(found);
                seen.push(tie(hit));
                seen.extend(hit.members.iter().map(|member| short_tie(member.traits.tie)));
            }
            is_beyond = seen.len() >= SEEN_MAX;
            if !is_beyond && fresh.next().is_some() {
                let cursor = Cursor { seen, ..Cursor::default() };
                answer.next_cursor = Some(cursor.write(self.query_hash));
                return Ok(answer);
            }
        }
        // later documents are not grouped, so with grouping by site, the results end with the candidates
        if self.request.group_by != Grouping::Site && (!window.is_complete || is_beyond) {
            self.add_rest(&mut answer, seen, window, &highlighter)?;
        }
        Ok(answer)
    }

    /// Whether any result covers enough of the request, or has exactly the requested name.
    fn has_good_result(&self, window: &Window) -> bool {
        let is_poor = window.coverage < COVERAGE_MIN && self.query.conditions.required.is_empty();
        !window.ranked.is_empty() && (!is_poor || window.ranked.iter().any(|hit| hit.candidate.is_exact))
    }

    /// If the first result changes something, moves the best of the relevant results that only reads to the front, because the request
    /// only reads. Its score must be close to that of the first. If there is none and the first result cannot be undone, the best
    /// reversible result moves. A document that only others name is not moved before one that a site declares itself, and spam is never
    /// moved.
    fn put_readers_first(&self, ranked: &mut [Ranked]) -> Result<(), IndexError> {
        let Some(first) = ranked.first().filter(|hit| !hit.candidate.is_exact) else { return Ok(()) };
        let best = first.score;
        let first = rows::row(self.opened(), first.candidate.address)?;
        if matches!(first.safety, SafetyClass::Read | SafetyClass::Unknown) {
            return Ok(());
        }
        let mut reversible = None;
        for at in 1..ranked.len().min(REVERSIBLE_AMONG) {
            let Some(hit) = ranked.get(at) else { break };
            let is_near = hit.score >= READER_SHARE_MIN * best;
            if !is_near && (reversible.is_some() || first.safety == SafetyClass::Write) {
                break;
            }
            let row = rows::row(self.opened(), hit.candidate.address)?;
            if hit.candidate.is_spam || (first.is_of_site() && !row.is_of_site()) {
                continue;
            }
            match row.safety {
                SafetyClass::Read if is_near => {
                    move_to_front(ranked, at, best);
                    return Ok(());
                }
                SafetyClass::Irreversible | SafetyClass::Destructive => {}
                SafetyClass::Read | SafetyClass::Write | SafetyClass::Unknown => {
                    reversible = reversible.or(Some(at));
                }
            }
        }
        if let Some(at) = reversible.filter(|_| first.safety != SafetyClass::Write) {
            move_to_front(ranked, at, best);
        }
        Ok(())
    }

    /// Fills the page with documents that are not re-ranked.
    fn add_rest(
        &self,
        answer: &mut SearchAnswer,
        seen: Vec<u32>,
        window: &Window,
        highlighter: &Highlighter,
    ) -> Result<(), SearchError> {
        let room = self.limit - answer.hits.len();
        let skip: HashSet<u32> = seen.iter().copied().collect();
        let page = self.retrieval.by_score(room + 1, self.cursor.position.as_ref(), &skip)?;
        let highest = window.ranked.last().map_or(f32::MAX, |last| last.score);
        for (position, address) in page.iter().take(room) {
            let mut hit = self.hit(*address, highlighter)?;
            hit.score = position.key.score().min(highest);
            answer.hits.push(hit);
        }
        answer.next_cursor = self.cursor_after(&page, room, seen);
        Ok(())
    }

    /// The relevant results in the order of a column.
    fn relevant_by_column(
        &self,
        relevant: &[DocAddress],
        coverage: f32,
    ) -> Result<SearchAnswer, SearchError> {
        let answer = self.by_column(Among::Only(relevant))?;
        let relevant = Some(answer.total);
        Ok(SearchAnswer { relevant, nothing_good: answer.total == 0, coverage, ..answer })
    }

    fn by_column(&self, among: Among<'_>) -> Result<SearchAnswer, SearchError> {
        let after = self.cursor.position.as_ref();
        let page = self.retrieval.by_column(self.request.sort, self.limit + 1, after, among)?;
        let ColumnPage { documents: page, total } = page;
        let highlighter = Highlighter::of(self.opened(), &self.query.plans);
        let hits = page.iter().take(self.limit).map(|(_, address)| self.hit(*address, &highlighter));
        Ok(SearchAnswer {
            hits: hits.collect::<Result<_, _>>()?,
            total,
            coverage: 1.0,
            did_you_mean: self.did_you_mean()?,
            next_cursor: self.cursor_after(&page, self.limit, Vec::new()),
            ..SearchAnswer::default()
        })
    }

    /// The cursor after the first `count` documents of a page; `None` if the page has no more.
    fn cursor_after(&self, page: &[(Position, DocAddress)], count: usize, seen: Vec<u32>) -> Option<String> {
        if page.len() <= count {
            return None;
        }
        let last = count.checked_sub(1).and_then(|at| page.get(at)).map(|(position, _)| position.clone());
        let position = last.or_else(|| self.cursor.position.clone());
        Some(Cursor { seen, position, is_beyond: true }.write(self.query_hash))
    }

    /// The facets of the request, each counted as if its own filter were not set.
    fn facets(
        &self,
        relevant: Option<&[DocAddress]>,
    ) -> Result<BTreeMap<FacetKey, Vec<FacetCount>>, SearchError> {
        let keys: BTreeSet<FacetKey> = self.request.facets.iter().copied().collect();
        let keys: Vec<FacetKey> = keys.into_iter().collect();
        let among = match relevant {
            Some(relevant) if self.query.has_only_unsearchable_words() => Among::Only(relevant),
            _ => Among::Matching,
        };
        let counts = self.retrieval.counts(&keys, CountedUnder::OtherFilters, among)?;
        let counts = keys.into_iter().zip(counts);
        let listed = listed(self.opened(), &self.query.conditions, counts, relevant);
        Ok(listed.map_err(IndexError::engine("count facets"))?)
    }

    /// The counts of all documents that satisfy the conditions.
    fn count_all(&self, facets: &[FacetRequest]) -> Result<Vec<FacetBuckets>, SearchError> {
        let keys: Vec<FacetKey> = facets.iter().map(|facet| facet.key).collect();
        let counts = self.retrieval.counts(&keys, CountedUnder::AllFilters, Among::Matching)?;
        Ok(facets.iter().zip(&counts).map(|(facet, counts)| most_frequent(*facet, counts)).collect())
    }

    /// The counts of a few documents, such as the relevant results of a search.
    fn count_among(
        &self,
        facets: &[FacetRequest],
        documents: &[DocAddress],
    ) -> Result<Vec<FacetBuckets>, SearchError> {
        let counted = facets.iter().map(|facet| {
            let counts = count_few(self.opened(), facet.key, documents);
            Ok(most_frequent(*facet, &counts.map_err(IndexError::engine("count facets"))?))
        });
        counted.collect()
    }

    pub(super) fn window(&self) -> Result<Window, SearchError> {
        let texts = self.query.phrasings.iter().map(|phrasing| phrasing.text.trim());
        let query = WindowQuery {
            retrieval: self.retrieval,
            vectors: self.vectors.filter(|_| !self.query.plans.is_empty()),
            texts: texts.filter(|text| !text.is_empty()).collect(),
            plans: &self.query.plans,
            group_by: self.request.group_by,
            deadline: self.deadline,
        };
        query.window()
    }

    fn hit(&self, address: DocAddress, highlighter: &Highlighter) -> Result<Hit, IndexError> {
        let mut hit = rows::row(self.opened(), address)?;
        hit.snippet = highlighter.snippet(hit.description.as_deref().unwrap_or(&hit.name));
        Ok(hit)
    }

    fn ranked_hit(&self, ranked: &Ranked, highlighter: &Highlighter) -> Result<Hit, IndexError> {
        let mut hit = self.hit(ranked.candidate.address, highlighter)?;
        hit.score = ranked.score;
        hit.group = self.group(ranked)?;
        Ok(hit)
    }

    /// The parts of a score, at most [`EXPLANATION_BYTES_MAX`] bytes.
    fn explanation(&self, hit: &Hit, ranked: &Ranked) -> Result<Explanation, SearchError> {
        self.deadline.check()?;
        let bytes_max = (EXPLANATION_BYTES_MAX - SCORE_BYTES_MAX) / self.query.plans.len().max(1);
        let (mut terms, mut left_out) = (Vec::with_capacity(self.query.plans.len()), 0);
        let mut spoken_of = 0.0_f32;
        for plan in &self.query.plans {
            let scores = TermScores::of(self.opened(), plan, &[ranked.candidate.address], TermScope::All)?;
            spoken_of = spoken_of.max(evidence(plan, &scores, 0));
            let explained = explained_terms(plan, &scores, 0, bytes_max);
            left_out += explained.left_out;
            terms.push(Value::Array(explained.terms));
        }
        let mut explanation = ranked.explanation(spoken_of);
        explanation["terms"] = Value::Array(terms);
        if left_out > 0 {
            explanation["terms_left_out"] = Value::from(left_out);
        }
        if !hit.is_of_site() {
            explanation["demoted"] = Value::from(IdentityMark::NamedByOthers.as_str());
        }
        if ranked.candidate.is_spam {
            let causes = spam_list::causes(self.opened(), ranked.candidate.address);
            explanation["spam"] = json!({"factor": SPAM_FACTOR, "causes": causes});
        }
        let text = to_raw_value(&explanation).map_err(IndexError::Row)?;
        Ok(Explanation(text))
    }

    /// The results that are grouped under a result.
    fn group(&self, ranked: &Ranked) -> Result<Option<Group>, IndexError> {
        if ranked.members.is_empty() {
            return Ok(None);
        }
        let listed = ranked.members.iter().take(MEMBERS_MAX).map(|member| {
            let Hit { id, addresses_reader, name, site, publisher, .. } =
                rows::row(self.opened(), member.address)?;
            Ok(GroupMember { id, addresses_reader, name, site, publisher })
        });
        let members = listed.collect::<Result<_, IndexError>>()?;
        Ok(Some(Group { by: self.request.group_by, others: ranked.members.len() as u64, members }))
    }

    /// The first phrasing with its misspelt operators and words replaced. If there are such words, short unknown words, which a search does
    /// not correct, are also replaced.
    fn did_you_mean(&self) -> Result<Option<String>, IndexError> {
        let Some(phrasing) = self.request.phrasings.first() else { return Ok(None) };
        if let Some(corrected) = with_known_operators(phrasing) {
            return Ok(Some(corrected));
        }
        let (Some(plan), Some(corrections)) = (self.query.plans.first(), self.query.corrections.first())
        else {
            return Ok(None);
        };
        if corrections.is_empty() {
            return Ok(None);
        }
        let mut text = phrasing.clone();
        for correction in corrections {
            let Some(word) = plan.words.get(correction.word) else { continue };
            text = replace_word(&text, &word.text, &correction.replacement);
        }
        for word in plan.words.iter().filter(|word| is_unknown_short(word)).take(SHORT_WORDS_MAX) {
            if let Some(replacement) =
                short_replacement(&self.dictionary.searcher, &self.dictionary.fields, word)?
            {
                text = replace_word(&text, &word.text, &replacement);
            }
        }
        Ok(Some(text))
    }
}

/// Moves a result before all others, with the best score.
fn move_to_front(ranked: &mut [Ranked], at: usize, best: f32) {
    if let Some(leading) = ranked.get_mut(..=at) {
        leading.rotate_right(1);
    }
    if let Some(first) = ranked.first_mut() {
        first.score = best;
    }
}

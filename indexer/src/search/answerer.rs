//! One search from request to answer.

use std::collections::HashSet;
use std::sync::Arc;

use manifest::CapabilityId;
use serde_json::Value;
use tantivy::query::{Query, TermQuery};
use tantivy::schema::IndexRecordOption;
use tantivy::{DocAddress, Term};

use super::accumulate::Accumulated;
use super::admitted::with_words;
use super::bare::BareSearch;
use super::candidates::{Conditions, is_scored_whole, select, selecting, text_query};
use super::columns::KeptTraits;
use super::cursor::{Cursor, short_tie};
use super::deadline::{Deadline, Timed};
use super::facets::Counted;
use super::loaded::Loaded;
use super::matrix::{Look, Matrix};
use super::nearest::{Aim, CANDIDATES_MAX, COSINE_GOOD, Nearness, matching, mixed};
use super::order::{By, Found, TopAfter};
use super::rank::{Ranked, Traits, coverage, explained_terms, rank, text_scores};
use super::rows;
use super::snippet::Marks;
use super::wishes::{conditions, query_number, read_wishes, replace_word};
use crate::analysis::fold_exact;
use crate::answer::{FacetBuckets, Hit, SearchAnswer};
use crate::error::{IndexError, SearchError};
use crate::query::{Correction, Plan, Wish, corrections};
use crate::request::{ExploreRequest, LIMIT_MAX, SearchRequest, Sort};

/// Below this coverage the best result speaks of something else. Chosen on the dev queries of the public sets: at 0.05
/// none of the right results is lost, at 0.12 one in twenty of the most conversational set.
const COVERAGE_MIN: f32 = 0.05;
/// Results of which the best coverage counts.
const COVERAGE_HITS: usize = 10;
/// Characters of a capability's own text that similar ones are searched by.
const SIMILAR_CHARS_MAX: usize = 600;
/// Exact matches that are looked up; a name that more have is no name.
const EXACT_MAX: usize = 50;

pub(super) fn answer(
    loaded: &Loaded,
    nearness: Option<&Nearness>,
    request: &SearchRequest,
) -> Result<SearchAnswer, SearchError> {
    let wishes = read_wishes(&request.phrasings)?;
    let deadline = Deadline::after(request.time_max);
    deadline.bound(|| Answerer::prepare(loaded, nearness, request, wishes)?.answer(deadline))
}

/// The query that the engine would select a request's candidates with; `None` when it has no words.
pub(super) fn bare(loaded: &Loaded, request: &SearchRequest) -> Result<Option<BareSearch>, SearchError> {
    let answerer = Answerer::prepare(loaded, None, request, read_wishes(&request.phrasings)?)?;
    if answerer.plans.is_empty() {
        return Ok(None);
    }
    let query = answerer.query();
    let terms = answerer.plans.iter().map(Plan::terms_that_select).sum();
    Ok(Some(BareSearch { searcher: loaded.searcher.clone(), query, terms }))
}

/// Counts everything that a search would find; where it finds nothing good, there is nothing to count.
pub(super) fn explore(loaded: &Loaded, request: &ExploreRequest) -> Result<Vec<FacetBuckets>, SearchError> {
    let search = SearchRequest {
        phrasings: request.phrasings.clone(),
        filters: request.filters.clone(),
        limit: 1,
        ..SearchRequest::default()
    };
    let answerer = Answerer::prepare(loaded, None, &search, read_wishes(&search.phrasings)?)?;
    let deadline = Deadline::after(search.time_max);
    deadline.bound(|| {
        if answerer.answer(deadline)?.nothing_good {
            return Ok(vec![FacetBuckets::default(); request.facets.len()]);
        }
        Ok(answerer.counted(deadline)?.within(&request.facets)?)
    })
}

/// Searches for what a capability says of itself, and leaves it out.
pub(super) fn similar(
    loaded: &Loaded,
    nearness: Option<&Nearness>,
    id: &CapabilityId,
    max: usize,
) -> Result<Option<Vec<Hit>>, SearchError> {
    let Some(own) = rows::find(loaded, id)? else { return Ok(None) };
    let description = own.description.as_deref().unwrap_or_default();
    let text = [own.name.as_str(), description].join(". ");
    let wish = Wish { text: text.chars().take(SIMILAR_CHARS_MAX).collect(), ..Wish::default() };
    let request = SearchRequest { limit: max.saturating_add(1), ..SearchRequest::default() };
    let answerer = Answerer::prepare(loaded, nearness, &request, vec![wish])?;
    let deadline = Deadline::after(request.time_max);
    let answer = deadline.bound(|| answerer.answer(deadline))?;
    let others = answer.hits.into_iter().filter(|hit| hit.id != *id);
    Ok(Some(others.take(max).collect()))
}

struct Answerer<'a> {
    loaded: &'a Loaded,
    nearness: Option<&'a Nearness>,
    request: &'a SearchRequest,
    limit: usize,
    cursor: Option<Cursor>,
    query_number: u64,
    plans: Vec<Plan>,
    corrections: Vec<Vec<Correction>>,
    wishes: Vec<Wish>,
    conditions: Conditions,
}

impl<'a> Answerer<'a> {
    fn prepare(
        loaded: &'a Loaded,
        nearness: Option<&'a Nearness>,
        request: &'a SearchRequest,
        wishes: Vec<Wish>,
    ) -> Result<Self, SearchError> {
        let query_number = query_number(request);
        let cursor = request.cursor.as_deref().map(|text| Cursor::read(text, query_number)).transpose()?;
        let mut plans: Vec<Plan> = wishes.iter().map(|wish| Plan::of(&wish.text, &loaded.known)).collect();
        plans.retain(|plan| !plan.terms.is_empty());
        let mut found_corrections = Vec::new();
        for plan in &mut plans {
            let stems = plan.words.iter().map(|word| Some(word.stem.as_str()));
            let frequencies = loaded.words.of(&loaded.searcher, stems);
            let frequencies = frequencies.map_err(IndexError::engine("look a word up"))?;
            let found = corrections(&loaded.searcher, &loaded.fields, &plan.words, &frequencies)?;
            plan.add_corrections(&found);
            plan.add_synonyms();
            plan.add_associations(&loaded.known);
            found_corrections.push(found);
        }
        let conditions = conditions(loaded, &request.filters, &wishes)?;
        let limit = request.limit.clamp(1, LIMIT_MAX);
        let corrections = found_corrections;
        Ok(Self {
            loaded,
            nearness,
            request,
            limit,
            cursor,
            query_number,
            plans,
            corrections,
            wishes,
            conditions,
        })
    }

    fn answer(&self, deadline: Deadline) -> Result<SearchAnswer, SearchError> {
        let mut answer = match (self.request.sort, self.plans.is_empty()) {
            (Sort::Relevance, false) => self.by_relevance(deadline)?,
            (sort, _) => self.by_order(sort, deadline)?,
        };
        if answer.nothing_good {
            return Ok(answer);
        }
        if !self.request.facets.is_empty() {
            answer.facets = self.counted(deadline)?.beside(&self.request.facets)?;
        }
        Ok(answer)
    }

    /// The documents of the window, looked at closely; beyond them, the rest by the score of their text.
    fn by_relevance(&self, deadline: Deadline) -> Result<SearchAnswer, SearchError> {
        let window = self.window(deadline)?;
        let mut answer = SearchAnswer {
            total: window.total,
            coverage: window.coverage,
            did_you_mean: self.did_you_mean(),
            ..SearchAnswer::default()
        };
        let is_poor = window.coverage < COVERAGE_MIN && self.conditions.required.is_empty();
        if window.ranked.is_empty() || (is_poor && !window.ranked.iter().any(Ranked::is_exact)) {
            (answer.nothing_good, answer.total) = (true, 0);
            return Ok(answer);
        }
        let mut seen = self.cursor.as_ref().map(|cursor| cursor.seen.clone()).unwrap_or_default();
        let seen_set: HashSet<u32> = seen.iter().copied().collect();
        let is_beyond = self.cursor.as_ref().is_some_and(|cursor| cursor.is_beyond);
        if !is_beyond {
            let fresh: Vec<&Ranked> =
                window.ranked.iter().filter(|hit| !seen_set.contains(&short_tie(hit.tie))).collect();
            let marks = self.marks();
            for hit in fresh.iter().take(self.limit) {
                answer.hits.push(self.hit(hit, &marks)?);
                seen.push(short_tie(hit.tie));
            }
            if fresh.len() > self.limit {
                let cursor = Cursor { seen, place: None, is_beyond: false };
                answer.next_cursor = Some(cursor.write(self.query_number));
                return Ok(answer);
            }
        }
        self.add_rest(&mut answer, (seen, deadline), &window)?;
        Ok(answer)
    }

    /// Fills the page with documents beyond the window.
    fn add_rest(
        &self,
        answer: &mut SearchAnswer,
        (seen, deadline): (Vec<u32>, Deadline),
        window: &Window,
    ) -> Result<(), SearchError> {
        let room = self.limit - answer.hits.len();
        let after = self.cursor.as_ref().and_then(|cursor| cursor.place.clone());
        if window.is_everything && after.is_none() {
            return Ok(());
        }
        let skip = Arc::new(seen.iter().copied().collect::<HashSet<u32>>());
        let collector = TopAfter { by: By::Score, limit: room + 1, after: after.clone(), skip };
        let found = self.collect(collector, deadline)?;
        let highest = window.ranked.last().map_or(f32::MAX, |last| last.score);
        let marks = self.marks();
        for (place, address) in found.documents.iter().take(room) {
            let mut hit = marked(&marks, rows::row(self.loaded, *address)?);
            hit.score = place.key.score().min(highest);
            answer.hits.push(hit);
        }
        if found.documents.len() > room {
            let place = match room {
                0 => after,
                _ => found.documents.get(room - 1).map(|(place, _)| place.clone()),
            };
            let cursor = Cursor { seen, place, is_beyond: true };
            answer.next_cursor = Some(cursor.write(self.query_number));
        }
        Ok(())
    }

    /// Every order that no closer look changes.
    fn by_order(&self, sort: Sort, deadline: Deadline) -> Result<SearchAnswer, SearchError> {
        let by = match sort {
            Sort::Relevance | Sort::Updated => By::Updated,
            Sort::FirstSeen => By::FirstSeen,
            Sort::Name => By::Name,
        };
        let after = self.cursor.as_ref().and_then(|cursor| cursor.place.clone());
        let collector = TopAfter { by, limit: self.limit + 1, after, skip: Arc::default() };
        let found = self.collect(collector, deadline)?;
        let marks = self.marks();
        let mut answer = SearchAnswer {
            total: found.total,
            coverage: 1.0,
            did_you_mean: self.did_you_mean(),
            ..SearchAnswer::default()
        };
        for (_, address) in found.documents.iter().take(self.limit) {
            answer.hits.push(marked(&marks, rows::row(self.loaded, *address)?));
        }
        if found.documents.len() > self.limit {
            let place = found.documents.get(self.limit - 1).map(|(place, _)| place.clone());
            let cursor = Cursor { seen: Vec::new(), place, is_beyond: true };
            answer.next_cursor = Some(cursor.write(self.query_number));
        }
        Ok(answer)
    }

    /// What matches: any of the words, under the conditions.
    fn query(&self) -> Box<dyn Query> {
        self.conditions.apply(text_query(&self.loaded.fields, &self.plans).as_deref())
    }

    /// What facets are counted of.
    fn counted(&self, deadline: Deadline) -> Result<Counted<'_>, SearchError> {
        let failed = IndexError::engine("find what to count");
        let terms = self.plans.iter().flat_map(selecting);
        let with_words = with_words(self.loaded, terms, || deadline.pass()).map_err(failed)?;
        Ok(Counted { loaded: self.loaded, with_words, conditions: &self.conditions, deadline })
    }

    fn collect(&self, collector: TopAfter, deadline: Deadline) -> Result<Found, IndexError> {
        self.loaded
            .searcher
            .search(&self.query(), &Timed { collector, deadline })
            .map_err(IndexError::engine("search"))
    }

    /// Selects and ranks the window.
    fn window(&self, deadline: Deadline) -> Result<Window, SearchError> {
        let Accumulated { best, total } = select(self.loaded, &self.plans, &self.conditions, deadline)?;
        let is_everything = total == best.len() as u64;
        let (mut selected, mut candidates): (Vec<f32>, Vec<DocAddress>) = best.into_iter().unzip();
        let exact = self.exact_documents()?;
        if !exact.is_empty() {
            let known: HashSet<DocAddress> = candidates.iter().copied().collect();
            candidates.extend(exact.iter().filter(|address| !known.contains(*address)));
        }
        let aim = self.aim();
        if let Some(aim) = &aim {
            self.add_nearest(aim, &mut candidates, deadline)?;
        }
        let joined = candidates.get(selected.len()..).unwrap_or_default();
        let is_all_selected = joined.is_empty();
        let total = total + self.beside_words(joined)?;
        let look = match self.plans.as_slice() {
            [only] if is_all_selected && is_scored_whole(only) => Look::Rest,
            _ => {
                selected = vec![0.0; candidates.len()];
                Look::Everything
            }
        };
        let mut fused = vec![0.0_f32; candidates.len()];
        let mut unit = 0.0_f32;
        #[expect(clippy::cast_precision_loss, reason = "a handful of phrasings")]
        let share = 1.0 / self.plans.len() as f32;
        let mut matrices = Vec::with_capacity(self.plans.len());
        for plan in &self.plans {
            deadline.check()?;
            let matrix = Matrix::of(self.loaded, plan, &candidates, look)?;
            let (scores, best) = text_scores(plan, &matrix, &selected);
            unit = unit.max(best);
            for (sum, score) in fused.iter_mut().zip(scores) {
                *sum += share * score;
            }
            matrices.push(matrix);
        }
        let traits = self.traits(&candidates, &exact, aim.as_ref());
        if aim.is_some() {
            let cosines: Vec<Option<f32>> = traits.iter().map(|of| of.cosine).collect();
            fused = mixed(&fused, &cosines);
        }
        let ranked = rank(&candidates, &fused, &traits, unit.max(1.0));
        let coverage = self.coverage(&ranked, &matrices);
        Ok(Window { ranked, total, coverage, is_everything })
    }

    /// Where the request points among the vectors.
    fn aim(&self) -> Option<Aim<'a>> {
        let texts: Vec<&str> = self.wishes.iter().map(|wish| wish.text.trim()).collect();
        let texts: Vec<&str> = texts.into_iter().filter(|text| !text.is_empty()).collect();
        self.nearness?.aim(&texts)
    }

    /// How many of those that joined the candidates the words do not find.
    fn beside_words(&self, joined: &[DocAddress]) -> Result<u64, IndexError> {
        if joined.is_empty() {
            return Ok(0);
        }
        let found = matching(self.loaded, self.query().as_ref(), joined)?;
        Ok((joined.len() as u64).saturating_sub(found))
    }

    /// Lets what is nearest join the candidates.
    fn add_nearest(
        &self,
        aim: &Aim<'_>,
        candidates: &mut Vec<DocAddress>,
        deadline: Deadline,
    ) -> Result<(), SearchError> {
        deadline.check()?;
        let known: HashSet<DocAddress> = candidates.iter().copied().collect();
        let anything = self.conditions.apply(None);
        let mut nearest = aim.nearest(self.loaded, anything.as_ref(), deadline)?;
        nearest.retain(|address| !known.contains(address));
        nearest.truncate(CANDIDATES_MAX.saturating_sub(candidates.len()));
        candidates.extend(&nearest);
        Ok(())
    }

    fn coverage(&self, ranked: &[Ranked], matrices: &[Matrix]) -> f32 {
        if ranked.first().is_some_and(Ranked::is_exact) {
            return 1.0;
        }
        let best = ranked.iter().take(COVERAGE_HITS);
        let of_hit = |hit: &Ranked| {
            let plans = self.plans.iter().zip(matrices);
            let near = if hit.cosine() < COSINE_GOOD { 0.0 } else { hit.cosine() };
            plans.map(|(plan, matrix)| coverage(plan, matrix, hit.candidate)).fold(near, f32::max)
        };
        best.map(of_hit).fold(0.0, f32::max)
    }

    /// Documents whose id, name or site is the whole of a phrasing.
    fn exact_documents(&self) -> Result<HashSet<DocAddress>, IndexError> {
        let failed = IndexError::engine("look an exact name up");
        let mut found = HashSet::new();
        for wish in &self.wishes {
            let text = wish.text.trim().to_lowercase();
            let mut forms = vec![fold_exact(&text), text];
            forms.retain(|form| !form.is_empty());
            forms.dedup();
            for form in forms {
                let term = Term::from_field_text(self.loaded.fields.exact, &form);
                if self.loaded.searcher.doc_freq(&term).map_err(&failed)? == 0 {
                    continue;
                }
                let query = TermQuery::new(term, IndexRecordOption::Basic);
                let query = self.conditions.apply(Some(&query));
                let top = tantivy::collector::TopDocs::with_limit(EXACT_MAX).order_by_score();
                let documents = self.loaded.searcher.search(query.as_ref(), &top).map_err(&failed)?;
                found.extend(documents.into_iter().map(|(_, address)| address));
            }
        }
        Ok(found)
    }

    fn traits(
        &self,
        candidates: &[DocAddress],
        exact: &HashSet<DocAddress>,
        aim: Option<&Aim<'_>>,
    ) -> Vec<Traits> {
        let traits = |address: &DocAddress| {
            let columns = self.loaded.columns.get(address.segment_ord as usize)?;
            let KeptTraits { tie, site, text, prior } = columns.traits(address.doc_id)?;
            let cosine = aim.and_then(|aim| aim.cosine(self.loaded, *address));
            Some(Traits { tie, site, text, prior, is_exact: exact.contains(address), cosine })
        };
        candidates.iter().filter_map(traits).collect()
    }

    fn hit(&self, ranked: &Ranked, marks: &Marks) -> Result<Hit, IndexError> {
        let mut hit = marked(marks, rows::row(self.loaded, ranked.address)?);
        hit.score = ranked.score;
        if self.request.explain {
            let mut terms = Vec::with_capacity(self.plans.len());
            for plan in &self.plans {
                let matrix = Matrix::of(self.loaded, plan, &[ranked.address], Look::Everything)?;
                terms.push(explained_terms(plan, &matrix, 0));
            }
            hit.explanation = Some(ranked.explanation(&Value::Array(terms)));
        }
        Ok(hit)
    }

    fn marks(&self) -> Marks {
        Marks::of(self.loaded, &self.plans)
    }

    /// The first phrasing with its misspelt words replaced.
    fn did_you_mean(&self) -> Option<String> {
        let (plan, corrections) = (self.plans.first()?, self.corrections.first()?);
        if corrections.is_empty() {
            return None;
        }
        let mut text = self.request.phrasings.first()?.clone();
        for correction in corrections {
            let said = &plan.words.get(correction.word)?.said;
            text = replace_word(&text, said, &correction.meant);
        }
        Some(text)
    }
}

/// The window, ranked.
struct Window {
    ranked: Vec<Ranked>,
    total: u64,
    coverage: f32,
    /// Nothing matches beyond the window.
    is_everything: bool,
}

fn marked(marks: &Marks, mut hit: Hit) -> Hit {
    hit.snippet = marks.snippet(hit.description.as_deref().unwrap_or(&hit.name));
    hit
}

//! The candidates of a search by relevance: selected by words, exact names and vectors, and re-ranked.

use std::collections::{HashMap, HashSet};

use manifest::{CapabilityId, Host, is_main_host};
use tantivy::schema::IndexRecordOption;
use tantivy::{DocAddress, DocId, DocSet, TERMINATED, Term};

use super::deadline::Deadline;
use super::evidence::{coverage, evidence, evidence_of, relevant};
use super::opened::OpenedIndex;
use super::postings::{count_with_any, documents_with};
use super::rank::{Candidate, Ranked, rank, text_scores};
use super::retrieval::{Best, Retrieval};
use super::selection::{is_scored_by_selection, selecting};
use super::term_scores::{TermScope, TermScores};
use super::vector_search::{CANDIDATES_MAX, COSINE_GOOD, QueryVector, VectorSearch, mix_cosines};
use crate::analysis::{fold_exact, words};
use crate::error::{IndexError, SearchError};
use crate::filter::FacetKey;
use crate::named_host::{named_host, named_hosts};
use crate::query::Plan;
use crate::request::Grouping;

/// Number of first results whose best coverage is used.
const COVERAGE_HITS: usize = 10;
/// Share of the best evidence for the other words of a request that a result of a named site needs to lead.
const NAMED_EVIDENCE_MIN: f32 = 0.6;
/// Maximum number of exact matches of one phrasing, and how many of a site come before those of other sites. A site may give its own name to
/// any number of capabilities.
const EXACT_MAX: usize = 50;
const EXACT_OF_SITE_FIRST: usize = 10;

pub(super) struct WindowQuery<'a> {
    pub(super) retrieval: &'a dyn Retrieval,
    pub(super) vectors: Option<&'a VectorSearch>,
    /// The phrasings without operators; none is empty.
    pub(super) texts: Vec<&'a str>,
    pub(super) plans: &'a [Plan],
    pub(super) group_by: Grouping,
    pub(super) deadline: Deadline,
}

/// The ranked candidates.
pub(super) struct Window {
    pub(super) ranked: Vec<Ranked>,
    /// All results, including those that are not candidates.
    pub(super) total: u64,
    pub(super) coverage: f32,
    /// Number of first results that are relevant.
    pub(super) relevant: u64,
    /// Whether all documents that contain the words are candidates.
    pub(super) is_complete: bool,
}

impl Window {
    /// The relevant documents.
    pub(super) fn relevant_documents(&self) -> Vec<DocAddress> {
        let relevant = usize::try_from(self.relevant).unwrap_or(usize::MAX);
        self.ranked.iter().take(relevant).map(|hit| hit.candidate.address).collect()
    }

    /// Removes the results that only share a word with the request.
    pub(super) fn keep_relevant(&mut self) {
        self.ranked.truncate(usize::try_from(self.relevant).unwrap_or(usize::MAX));
        self.total = self.relevant;
        self.is_complete = true;
    }
}

/// What the phrasings name.
#[derive(Default)]
struct Named {
    /// Documents whose id, name or site equals a whole phrasing. If the phrasing is a known id or names hosts of known sites, alone or among
    /// other words, these are only documents of their owners, because anyone can choose a name.
    documents: HashSet<DocAddress>,
    /// For each host that a phrasing names among other words: the term of its site, and the exact names of what the site publishes at its
    /// domain and of what is published at the host. Others may choose these names, too.
    hosts: Vec<(Term, [Term; 2])>,
    /// The words of these hosts, and of the addresses and identifiers that contain them.
    words: HashSet<String>,
}

/// The text scores of all phrasings.
struct TextScores {
    /// Averaged, by row.
    average: Vec<f32>,
    /// The best raw score.
    best: f32,
    by_plan: Vec<TermScores>,
}

impl WindowQuery<'_> {
    fn opened(&self) -> &OpenedIndex {
        self.retrieval.opened()
    }

    pub(super) fn window(&self) -> Result<Window, SearchError> {
        let Best { documents: selected, total: matching } = self.retrieval.best()?;
        let is_complete = matching == selected.len() as u64;
        let mut addresses: Vec<DocAddress> = selected.iter().map(|(_, address)| *address).collect();
        let named = self.named()?;
        join(&mut addresses, named.documents.iter().copied(), usize::MAX);
        let vector = self.vectors.and_then(|vectors| vectors.embed(&self.texts));
        if let Some(vector) = &vector {
            let nearest = vector.nearest(self.opened(), self.retrieval.admitted(), self.deadline)?;
            join(&mut addresses, nearest.into_iter(), CANDIDATES_MAX);
        }
        let joined = addresses.get(selected.len()..).unwrap_or_default();
        let total = matching + self.count_without_words(joined)?;
        let scores: Vec<f32> = selected.into_iter().map(|(score, _)| score).collect();
        let texts = self.score_texts(&addresses, &scores, &named)?;
        let candidates = self.candidates(&addresses, &texts.average, &named, vector.as_ref());
        let mut candidates = candidates.map_err(IndexError::engine("look the named sites up"))?;
        if vector.is_some() {
            mix_cosines(&mut candidates);
        }
        if candidates.iter().any(|candidate| candidate.is_of_named_site) {
            self.compare_with_others(&mut candidates, &named, &texts.by_plan);
        }
        let ranked = rank(&candidates, texts.best.max(1.0), self.group_by);
        let coverage = self.coverage(&ranked, &texts.by_plan);
        let relevant = relevant(self.plans, &ranked, |hit| self.evidence(hit, &texts.by_plan));
        Ok(Window { ranked, total, coverage, relevant, is_complete })
    }

    /// Scores the documents by words. `selected` contains the scores of the first documents, which the selection has computed; they suffice
    /// unless the results of a named site are compared with the others.
    fn score_texts(
        &self,
        addresses: &[DocAddress],
        selected: &[f32],
        named: &Named,
    ) -> Result<TextScores, SearchError> {
        let unscored = vec![0.0; addresses.len()];
        let (scope, selected) = match self.plans {
            [only]
                if named.hosts.is_empty()
                    && addresses.len() == selected.len()
                    && is_scored_by_selection(only) =>
            {
                (TermScope::Unscored, selected)
            }
            _ => (TermScope::All, unscored.as_slice()),
        };
        #[expect(clippy::cast_precision_loss, reason = "a few phrasings")]
        let share = 1.0 / self.plans.len() as f32;
        let mut texts = TextScores { average: vec![0.0; addresses.len()], best: 0.0, by_plan: Vec::new() };
        for plan in self.plans {
            self.deadline.check()?;
            let term_scores = TermScores::of(self.opened(), plan, addresses, scope)?;
            let (scores, best) = text_scores(plan, &term_scores, selected);
            texts.best = texts.best.max(best);
            for (sum, score) in texts.average.iter_mut().zip(scores) {
                *sum += share * score;
            }
            texts.by_plan.push(term_scores);
        }
        Ok(texts)
    }

    /// The documents with all values that determine their rank. A document without columns is left out completely.
    fn candidates(
        &self,
        addresses: &[DocAddress],
        text_scores: &[f32],
        named: &Named,
        vector: Option<&QueryVector<'_>>,
    ) -> tantivy::Result<Vec<Candidate>> {
        let mut of_named = HashSet::new();
        for (of_site, names) in &named.hosts {
            let of_site = documents_with(self.opened(), of_site, addresses)?;
            for name in names {
                of_named.extend(documents_with(self.opened(), name, &of_site)?);
            }
        }
        let candidate = |(row, (address, text_score)): (usize, (&DocAddress, &f32))| {
            let columns = self.opened().columns.get(address.segment_ord as usize)?;
            let traits = columns.traits(address.doc_id)?;
            Some(Candidate {
                row,
                address: *address,
                text_score: *text_score,
                traits,
                is_exact: named.documents.contains(address),
                is_of_named_site: of_named.contains(address),
                is_spam: self.opened().is_spam(*address),
                cosine: vector.and_then(|vector| vector.cosine(self.opened(), *address)),
            })
        };
        Ok(addresses.iter().zip(text_scores).enumerate().filter_map(candidate).collect())
    }

    /// The results of a named site lead only if they are about the other words of the request, too: a word with a dot, such as `SKILL.md`, can
    /// be the name of a file or a tool, and then those of other sites are.
    fn compare_with_others(&self, candidates: &mut [Candidate], named: &Named, by_plan: &[TermScores]) {
        let evidence = |candidate: &Candidate| {
            let scored =
                self.plans.iter().zip(by_plan).filter(|(_, scores)| scores.has_scored(candidate.row));
            let of_plan =
                |(plan, scores)| evidence_of(plan, scores, candidate.row, |word| !named.words.contains(word));
            scored.map(of_plan).reduce(f32::max)
        };
        let least = NAMED_EVIDENCE_MIN * candidates.iter().filter_map(evidence).fold(0.0, f32::max);
        for candidate in candidates.iter_mut().filter(|candidate| candidate.is_of_named_site) {
            candidate.is_of_named_site = evidence(candidate).is_some_and(|evidence| evidence >= least);
        }
    }

    /// The number of added candidates that contain none of the words.
    fn count_without_words(&self, joined: &[DocAddress]) -> Result<u64, IndexError> {
        if joined.is_empty() {
            return Ok(0);
        }
        let found = count_with_any(self.opened(), self.plans.iter().flat_map(selecting), joined);
        Ok((joined.len() as u64).saturating_sub(found.map_err(IndexError::engine("search"))?))
    }

    fn coverage(&self, ranked: &[Ranked], by_plan: &[TermScores]) -> f32 {
        if ranked.first().is_some_and(|first| first.candidate.is_exact) {
            return 1.0;
        }
        let of_hit = |hit: &Ranked| {
            let plans = self.plans.iter().zip(by_plan);
            let of_plans = plans.map(|(plan, scores)| coverage(plan, scores, hit.candidate.row));
            of_plans.fold(good_cosine(hit), f32::max)
        };
        ranked.iter().take(COVERAGE_HITS).map(of_hit).fold(0.0, f32::max)
    }

    /// How much of the request a result covers; `None` if its words have not been scored.
    fn evidence(&self, hit: &Ranked, by_plan: &[TermScores]) -> Option<f32> {
        let row = hit.candidate.row;
        let plans = self.plans.iter().zip(by_plan);
        let scored = plans.filter(|(_, scores)| scores.has_scored(row));
        scored.map(|(plan, scores)| evidence(plan, scores, row).max(good_cosine(hit))).reduce(f32::max)
    }

    fn named(&self) -> Result<Named, IndexError> {
        let mut named = Named::default();
        for text in &self.texts {
            let added = self.add_named(&text.to_lowercase(), &mut named);
            added.map_err(IndexError::engine("look an exact name up"))?;
        }
        Ok(named)
    }

    fn add_named(&self, text: &str, named: &mut Named) -> tantivy::Result<()> {
        let fields = &self.opened().fields;
        let exact = |form: &str| Term::from_field_text(fields.exact, form);
        if CapabilityId::parse(text).is_ok() {
            let owned = self.first_with(&[exact(text), Term::from_field_text(fields.id, text)])?;
            if !owned.is_empty() {
                named.documents.extend(owned);
                return Ok(());
            }
        }
        let folded = fold_exact(text);
        let forms: Vec<&str> = if text == folded { vec![text] } else { vec![folded.as_str(), text] };
        let whole = named_host(text);
        let known = self.known_hosts(whole.iter().cloned().chain(named_hosts(text)))?;
        for (host, of_site) in &known {
            let site = host.site();
            let domain = is_main_host(&site, host).then_some(site.as_str());
            if whole.as_ref() == Some(host) {
                for form in [text, host.as_str()].into_iter().chain(domain) {
                    let owned = self.first_with(&[exact(form), of_site.clone()])?;
                    if !owned.is_empty() {
                        named.documents.extend(owned);
                        return Ok(());
                    }
                }
            } else {
                // every document has the name of its host, or of the domain if the site publishes it there
                let of_host = exact(domain.unwrap_or(host.as_str()));
                for form in forms.iter().filter(|form| !form.is_empty()) {
                    let owned = self.first_with(&[exact(form), of_host.clone(), of_site.clone()])?;
                    named.documents.extend(owned);
                }
                let identifiers = text.split_whitespace().filter(|part| named_hosts(part).contains(host));
                named.words.extend(identifiers.flat_map(words).map(|word| word.text));
                named.hosts.push((of_site.clone(), [exact(site.as_str()), exact(host.as_str())]));
            }
        }
        // the names that others chose do not match a text that names a known site
        if known.is_empty() {
            for form in forms.iter().filter(|form| !form.is_empty()) {
                named.documents.extend(self.first_with(&[exact(form)])?);
            }
        }
        Ok(())
    }

    /// The hosts among these whose sites have documents in the index, each once, with the term of its site.
    fn known_hosts(&self, hosts: impl Iterator<Item = Host>) -> tantivy::Result<Vec<(Host, Term)>> {
        let mut known: Vec<(Host, Term)> = Vec::new();
        for host in hosts {
            let field = self.opened().fields.facet(FacetKey::Site);
            let of_site = Term::from_field_text(field, host.site().as_str());
            let is_listed = known.iter().any(|(listed, _)| *listed == host);
            if !is_listed && self.opened().searcher.doc_freq(&of_site)? > 0 {
                known.push((host, of_site));
            }
        }
        Ok(known)
    }

    /// The first admitted documents with all terms, at most [`EXACT_MAX`].
    fn first_with(&self, terms: &[Term]) -> tantivy::Result<Vec<DocAddress>> {
        let (mut found, mut further) = (Vec::new(), Vec::new());
        let mut of_sites: HashMap<u64, usize> = HashMap::new();
        for (segment, ordinal) in self.opened().searcher.segment_readers().iter().zip(0..) {
            let mut postings = Vec::with_capacity(terms.len());
            for term in terms {
                let inverted = segment.inverted_index(term.field())?;
                postings.extend(inverted.read_postings(term, IndexRecordOption::Basic)?);
            }
            if postings.len() < terms.len() {
                continue;
            }
            let mut document = 0;
            while found.len() < EXACT_MAX {
                self.deadline.tantivy_check()?;
                let reached = postings.iter_mut().map(|postings| seek_from(postings, document));
                let (first, last) =
                    reached.fold((TERMINATED, 0), |(first, last), at| (first.min(at), last.max(at)));
                if last == TERMINATED {
                    break;
                }
                if first == last && self.retrieval.admitted().has(segment, ordinal, last) {
                    let columns = self.opened().columns.get(ordinal as usize);
                    let site = columns.and_then(|of| of.traits(last)).map_or(0, |traits| traits.site);
                    let of_site = of_sites.entry(site).or_default();
                    *of_site += 1;
                    let is_first = *of_site <= EXACT_OF_SITE_FIRST;
                    let target = if is_first { &mut found } else { &mut further };
                    if target.len() < EXACT_MAX {
                        target.push(DocAddress::new(ordinal, last));
                    }
                }
                document = if first == last { last + 1 } else { last };
            }
        }
        further.truncate(EXACT_MAX.saturating_sub(found.len()));
        found.extend(further);
        Ok(found)
    }
}

/// The first document of the postings from this one on.
fn seek_from(postings: &mut impl DocSet, document: DocId) -> DocId {
    if postings.doc() < document { postings.seek(document) } else { postings.doc() }
}

/// The cosine of a result that is relevant by its cosine alone; 0 for others.
fn good_cosine(hit: &Ranked) -> f32 {
    hit.candidate.cosine.filter(|cosine| *cosine >= COSINE_GOOD).unwrap_or(0.0)
}

/// Adds documents that are not in the list yet, until it has `count_max`.
fn join(addresses: &mut Vec<DocAddress>, others: impl Iterator<Item = DocAddress>, count_max: usize) {
    let known: HashSet<DocAddress> = addresses.iter().copied().collect();
    let room = count_max.saturating_sub(addresses.len());
    addresses.extend(others.filter(|address| !known.contains(address)).take(room));
}

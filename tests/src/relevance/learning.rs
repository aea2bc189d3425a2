//! Learns [`Associations`] from requests with known results.
//!
//! A stem is associated with a word if the expected capabilities of requests with the word have it more often than other capabilities. The
//! weight of a word follows from the same count of the word itself: a word that is hardly more frequent in the expected
//! capability than in others is unspecific.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use indexer::{Association, Associations, stems_of, terms_of};
use store::StoredManifest;

use super::sets::MADE_UP;

/// Minimum number of requests with a word to learn from.
const REQUESTS_MIN: f32 = 3.0;
/// Minimum number of requests with a word whose capability has an associated stem.
const TOGETHER_MIN: f32 = 2.0;
/// Added to every count, so that rare pairs are not strong.
const SMOOTHING: f32 = 1.0;
/// Strength of a stem that is e times as frequent as on average. These numbers were chosen on held-out halves of the requests
/// of the public sets.
const STRENGTH: f32 = 0.6;
const STRENGTH_MIN: f32 = 0.3;
const STRENGTH_MAX: f32 = 2.0;
/// Maximum number of stems of one word; the strongest are taken.
const STEMS_MAX: usize = 12;
/// Weight of a word that is no more frequent in the expected capability than elsewhere, and its increase for each power of e.
const WEIGHT_BASE: f32 = 0.5;
const WEIGHT_GAIN: f32 = 0.17;
const WEIGHT_MIN: f32 = 0.3;
const WEIGHT_MAX: f32 = 1.2;
/// Number of requests at which a weight reaches half of its value.
const WEIGHT_REQUESTS: f32 = 6.0;

/// The candidate capabilities, each as its distinct terms.
#[derive(Debug, Clone, Default)]
pub struct Pool {
    capabilities: HashMap<String, BTreeSet<String>>,
    /// Number of capabilities with each term.
    frequency: HashMap<String, u32>,
}

impl Pool {
    /// Reads the capabilities of manifests as the index does, by their native ids.
    pub fn of(manifests: &[StoredManifest]) -> Self {
        let mut pool = Self::default();
        for stored in manifests {
            for (native_id, mut terms) in terms_of(stored) {
                // Tools without a site have a made-up one, of which nothing can be learnt.
                terms.retain(|term| !term.starts_with(MADE_UP));
                for term in &terms {
                    *pool.frequency.entry(term.clone()).or_default() += 1;
                }
                pool.capabilities.insert(native_id, terms);
            }
        }
        pool
    }

    #[expect(clippy::cast_precision_loss, reason = "counts of capabilities are small")]
    fn share(&self, term: &str) -> f32 {
        let found = self.frequency.get(term).copied().unwrap_or_default();
        (found as f32 + 0.5) / (self.capabilities.len() as f32 + 1.0)
    }
}

/// A request and the native ids of its expected capabilities.
#[derive(Debug, Clone, Copy)]
pub struct Lesson<'a> {
    pub request: &'a str,
    pub meant: &'a [String],
    pub pool: &'a Pool,
}

/// Counts of one word over the requests that have it.
#[derive(Default)]
struct WordCounts {
    requests: f32,
    /// Requests whose capability has the word itself, and the number expected by chance.
    itself: f32,
    itself_by_chance: f32,
    with: BTreeMap<String, (f32, f32)>,
}

/// Learns from requests of one or more pools.
pub fn learn(lessons: &[Lesson<'_>]) -> Associations {
    let mut seen: BTreeMap<String, WordCounts> = BTreeMap::new();
    for lesson in lessons {
        for word in stems_of(lesson.request) {
            seen.entry(word.clone()).or_default().add(&word, lesson);
        }
    }
    seen.into_iter().filter_map(|(word, seen)| Some((word, seen.association()?))).collect()
}

impl WordCounts {
    fn add(&mut self, word: &str, lesson: &Lesson<'_>) {
        let meant: Vec<&BTreeSet<String>> =
            lesson.meant.iter().filter_map(|id| lesson.pool.capabilities.get(id)).collect();
        if meant.is_empty() {
            return;
        }
        #[expect(clippy::cast_precision_loss, reason = "a few capabilities")]
        let share = 1.0 / meant.len() as f32;
        self.requests += 1.0;
        self.itself_by_chance += lesson.pool.share(word);
        for terms in meant {
            for term in terms {
                if term == word {
                    self.itself += share;
                } else {
                    let (together, by_chance) = self.with.entry(term.clone()).or_default();
                    *together += share;
                    *by_chance += share * lesson.pool.share(term);
                }
            }
        }
    }

    fn association(self) -> Option<Association> {
        if self.requests < REQUESTS_MIN {
            return None;
        }
        let lift = ((self.itself + 0.3) / (self.itself_by_chance + 0.3)).ln();
        let raw = (WEIGHT_BASE + WEIGHT_GAIN * lift).clamp(WEIGHT_MIN, WEIGHT_MAX);
        let trust = self.requests / (self.requests + WEIGHT_REQUESTS);
        let weight = 1.0 + (raw - 1.0) * trust;
        let requests = self.requests;
        let strength = |together: f32, by_chance: f32| {
            // The number of requests that would expect a capability with this stem by chance.
            let expected = requests * (by_chance / together);
            ((together + SMOOTHING * expected / requests) / (expected + SMOOTHING)).ln()
        };
        let mut stems: Vec<(String, f32)> = self
            .with
            .into_iter()
            .filter(|(_, (together, _))| *together >= TOGETHER_MIN)
            .map(|(stem, (together, by_chance))| {
                (stem, (STRENGTH * strength(together, by_chance)).min(STRENGTH_MAX))
            })
            .filter(|(_, strength)| *strength >= STRENGTH_MIN)
            .collect();
        stems.sort_by(|(a, strong), (b, stronger)| stronger.total_cmp(strong).then_with(|| a.cmp(b)));
        stems.truncate(STEMS_MAX);
        Some(Association { weight, stems })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool(capabilities: &[(&str, &[&str])]) -> Pool {
        let mut pool = Pool::default();
        for (id, terms) in capabilities {
            for term in *terms {
                *pool.frequency.entry((*term).to_owned()).or_default() += 1;
            }
            pool.capabilities.insert((*id).to_owned(), terms.iter().map(|term| (*term).to_owned()).collect());
        }
        pool
    }

    #[test]
    fn learns_the_stems_of_the_expected_capabilities() {
        let mut capabilities: Vec<(String, Vec<String>)> =
            (0..40).map(|at| (format!("other{at}"), vec![format!("thing{at}"), "good".to_owned()])).collect();
        capabilities
            .push(("jobs".to_owned(), vec!["job".to_owned(), "search".to_owned(), "good".to_owned()]));
        let borrowed: Vec<(&str, Vec<&str>)> = capabilities
            .iter()
            .map(|(id, terms)| (id.as_str(), terms.iter().map(String::as_str).collect()))
            .collect();
        let borrowed: Vec<(&str, &[&str])> =
            borrowed.iter().map(|(id, terms)| (*id, terms.as_slice())).collect();
        let pool = pool(&borrowed);
        let meant = ["jobs".to_owned()];
        let requests = ["vacancies for a nurse", "nurse openings", "a job as a nurse", "nurse jobs"];
        let lessons: Vec<Lesson<'_>> =
            requests.iter().map(|request| Lesson { request, meant: &meant, pool: &pool }).collect();
        let known = learn(&lessons);
        let nurse = known.get("nurs").unwrap();
        let stems: Vec<&str> = nurse.stems.iter().map(|(stem, _)| stem.as_str()).collect();
        assert_eq!(stems, ["job", "search"], "a stem of every capability is associated with no word");
        assert!(nurse.weight < 1.0, "no capability has the word itself");
        assert!(known.get("vacanc").is_none(), "one request is not enough");
    }
}

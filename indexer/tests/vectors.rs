//! Vectors for a small index, from an embedder with a few concepts: search results, and updates of the file.

#![expect(clippy::unwrap_used, reason = "a failed step fails the test")]

mod explained;
mod support;

use explained::explanation;
use std::collections::HashSet;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use indexer::vectors::{VectorUpdate, catch_up, keep_current};
use indexer::{
    Embedder, EmbedderError, FacetKey, Filters, IndexBuilder, SearchAnswer, SearchRequest, Searcher,
    WordWeights,
};
use store::{BackgroundTask, FeedPosition, Store, StoredManifest, TaskMonitor};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

/// Groups of synonyms, one dimension each; other words share the last dimension.
const CONCEPTS: [&[&str]; 4] = [
    &["usufruct", "hire"],
    &["jalopy", "vehicle"],
    &["flight", "seat", "fly"],
    &["money", "transfer", "pay"],
];

/// An embedder that counts the texts that it embeds.
#[derive(Debug, Default)]
struct Concepts {
    model: u8,
    embedded: AtomicUsize,
    fails: bool,
    /// Rejects every batch that contains a text with this word.
    rejected_word: Option<&'static str>,
    /// Fails after this many texts.
    fails_after: Option<usize>,
    wrong_dimension: Option<usize>,
}

impl Embedder for Concepts {
    fn dimension(&self) -> usize {
        self.wrong_dimension.unwrap_or(CONCEPTS.len() + 1)
    }

    fn identity(&self) -> [u8; 32] {
        [self.model; 32]
    }

    fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, EmbedderError> {
        let is_over = self.fails_after.is_some_and(|max| self.embedded.load(Ordering::Relaxed) >= max);
        if self.fails || is_over {
            return Err(EmbedderError::Model("out of order".into()));
        }
        if let Some(word) = self.rejected_word
            && texts.iter().any(|text| text.contains(word))
        {
            assert!(word != "panic", "a library may panic");
            return Err(EmbedderError::Model("cannot say that".into()));
        }
        self.embedded.fetch_add(texts.len(), Ordering::Relaxed);
        Ok(texts.iter().map(|text| direction(text)).collect())
    }
}

fn direction(text: &str) -> Vec<f32> {
    let mut vector = vec![0.0_f32; CONCEPTS.len() + 1];
    for word in text.to_lowercase().split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
        match CONCEPTS.iter().position(|words| words.contains(&word)) {
            Some(concept) => vector[concept] += 1.0,
            None => vector[CONCEPTS.len()] += 0.1,
        }
    }
    let length = vector.iter().map(|number| number * number).sum::<f32>().sqrt();
    vector.iter().map(|number| number / length).collect()
}

fn web() -> Vec<StoredManifest> {
    let mut garage = support::manifest("wheels.example", "Wheels");
    support::add(&mut garage, "hire_vehicle", "Hire a vehicle by the day.");
    support::add(&mut garage, "wash", "Cleans windows and seats thoroughly.");
    let mut airline = support::manifest("skyhop.example", "SkyHop");
    support::add(&mut airline, "book_seat", "Book a flight and reserve a seat.");
    let mut bank = support::manifest("coinbank.example", "Coin Bank");
    support::add(&mut bank, "transfer", "Transfer money to another account.");
    vec![garage, airline, bank]
}

fn index(dir: &Path, manifests: &[StoredManifest], position: i64) {
    let builder = IndexBuilder::begin(dir, "feed").unwrap();
    for stored in manifests {
        builder.add(stored).unwrap();
    }
    builder.finish(FeedPosition(position)).unwrap();
}

fn catch_up_once(dir: &Path, embedder: &Concepts) -> VectorUpdate {
    catch_up(dir, embedder, &CancellationToken::new()).unwrap()
}

fn open(dir: &Path, embedder: Concepts) -> Searcher {
    Searcher::open_with(dir, &WordWeights::built_in(), Some(Arc::new(embedder))).unwrap()
}

/// An index with its vectors, opened for searching.
fn searcher(manifests: &[StoredManifest]) -> (TempDir, Searcher) {
    let dir = tempfile::tempdir().unwrap();
    index(dir.path(), manifests, 1);
    catch_up_once(dir.path(), &Concepts::default());
    let searcher = open(dir.path(), Concepts::default());
    (dir, searcher)
}

/// Captures the log while `done` runs on this thread.
fn log_of(done: impl FnOnce()) -> String {
    let file = tempfile::NamedTempFile::new().unwrap();
    let subscriber = tracing_subscriber::fmt().with_ansi(false).with_writer(file.reopen().unwrap()).finish();
    tracing::subscriber::with_default(subscriber, done);
    fs::read_to_string(file.path()).unwrap()
}

fn request(query: &str) -> SearchRequest {
    SearchRequest { phrasings: vec![query.to_owned()], explain: true, ..SearchRequest::default() }
}

fn names(answer: &SearchAnswer) -> Vec<&str> {
    answer.hits.iter().map(|hit| hit.native_id.as_str()).collect()
}

#[test]
fn finds_and_explains_a_request_in_other_words() {
    let (dir, searcher) = searcher(&web());
    let words_alone = Searcher::open(dir.path()).unwrap();
    let request_in_other_words = request("usufruct jalopy");
    assert!(
        words_alone.search(&request_in_other_words).unwrap().nothing_good,
        "no word of it is in the index"
    );
    let answer = searcher.search(&request_in_other_words).unwrap();
    assert_eq!(names(&answer), ["hire_vehicle"]);
    assert_eq!(answer.total, 1);
    assert!(answer.coverage > 0.9, "{}", answer.coverage);
    let explained = explanation(&answer.hits[0]);
    assert!(explained["cosine"].as_f64().unwrap() > 0.9, "{explained}");
    let answer = words_alone.search(&request("flight")).unwrap();
    assert!(explanation(&answer.hits[0]).get("cosine").is_none());
}

#[test]
fn returns_no_results_when_no_vector_is_near() {
    let mut bank = support::manifest("coinbank.example", "Coin Bank");
    support::add(&mut bank, "transfer", "Transfer money.");
    let (_dir, searcher) = searcher(&[bank]);
    assert!(searcher.search(&request("usufruct jalopy")).unwrap().nothing_good);
}

#[test]
fn filters_and_exclusions_apply_to_vector_search() {
    let (_dir, searcher) = searcher(&web());
    let filters = Filters::default().with(FacetKey::Site, ["skyhop.example"]).unwrap();
    let elsewhere = SearchRequest { filters, ..request("usufruct jalopy") };
    assert!(searcher.search(&elsewhere).unwrap().hits.is_empty());
    for query in [
        "usufruct jalopy -vehicle",
        "usufruct jalopy -\"hire a vehicle\"",
        "usufruct jalopy site:coinbank.example",
    ] {
        assert!(!names(&searcher.search(&request(query)).unwrap()).contains(&"hire_vehicle"), "{query}");
    }
    let required = searcher.search(&request("jalopy \"hire a vehicle\"")).unwrap();
    assert_eq!(names(&required), ["hire_vehicle"]);
}

#[test]
fn ranks_an_exact_name_above_near_vectors() {
    let (_dir, searcher) = searcher(&web());
    let mut manifests = web();
    support::add(&mut manifests[2], "jalopy", "Shows pictures of the office.");
    assert_eq!(names(&searcher.search(&request("wash")).unwrap()).first(), Some(&"wash"));
    let (_dir, searcher) = self::searcher(&manifests);
    let answer = searcher.search(&request("jalopy")).unwrap();
    assert_eq!(names(&answer).first(), Some(&"jalopy"));
    assert!(names(&answer).contains(&"hire_vehicle"), "similar meanings rank below it");
}

#[test]
fn paging_returns_everything_once() {
    let mut manifests = web();
    for at in 0..80 {
        let mut garage = support::manifest(&format!("garage{at}.example"), "Garage");
        support::add(&mut garage, &format!("take{at}"), &format!("Hire a vehicle, offer {at}."));
        support::add(&mut garage, &format!("drive{at}"), &format!("Usufruct of a jalopy, tariff {at}."));
        manifests.push(garage);
    }
    let (_dir, searcher) = searcher(&manifests);
    let mut seen = HashSet::new();
    let mut request_in_other_words = SearchRequest { limit: 7, ..request("usufruct jalopy") };
    let total = searcher.search(&request_in_other_words).unwrap().total;
    loop {
        let answer = searcher.search(&request_in_other_words).unwrap();
        assert_eq!(answer.total, total);
        for hit in &answer.hits {
            assert!(seen.insert(hit.id.clone()), "{} came twice", hit.native_id);
        }
        let Some(cursor) = answer.next_cursor else { break };
        request_in_other_words.cursor = Some(cursor);
    }
    assert_eq!(seen.len() as u64, total);
    assert!(total > 80, "matches by words, and the nearest others: {total}");
}

#[test]
fn embeds_only_new_texts_and_removes_obsolete_vectors() {
    let dir = tempfile::tempdir().unwrap();
    let embedder = Concepts::default();
    let mut manifests = web();
    index(dir.path(), &manifests, 1);
    assert_eq!(
        catch_up_once(dir.path(), &embedder),
        VectorUpdate { vectors: 4, embedded: 4, missing: 0, refused: 0 }
    );
    assert_eq!(catch_up_once(dir.path(), &embedder).embedded, 0, "nothing has changed");
    manifests[1].manifest.capabilities[0].description = Some("Book a flight.".to_owned());
    index(dir.path(), &manifests, 2);
    assert_eq!(
        catch_up_once(dir.path(), &embedder),
        VectorUpdate { vectors: 4, embedded: 1, missing: 0, refused: 0 }
    );
    manifests.remove(0);
    index(dir.path(), &manifests, 3);
    assert_eq!(
        catch_up_once(dir.path(), &embedder),
        VectorUpdate { vectors: 2, embedded: 0, missing: 0, refused: 0 }
    );
    assert_eq!(embedder.embedded.load(Ordering::Relaxed), 5);
}

#[test]
fn embeds_everything_again_after_another_model_or_a_damaged_file() {
    let (dir, _) = searcher(&web());
    let path = dir.path().join("vectors");
    assert_eq!(catch_up_once(dir.path(), &Concepts { model: 9, ..Concepts::default() }).embedded, 4);
    assert_eq!(catch_up_once(dir.path(), &Concepts::default()).embedded, 4);
    let mut bytes = fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&path, bytes).unwrap();
    let by_words = open(dir.path(), Concepts::default());
    assert_eq!(names(&by_words.search(&request("flight")).unwrap()), ["book_seat"]);
    assert!(by_words.search(&request("usufruct jalopy")).unwrap().nothing_good);
    assert_eq!(catch_up_once(dir.path(), &Concepts::default()).embedded, 4);
    assert!(by_words.reload().unwrap(), "the new file is loaded");
    assert_eq!(names(&by_words.search(&request("usufruct jalopy")).unwrap()), ["hire_vehicle"]);
}

#[test]
fn searches_by_words_without_usable_vectors() {
    let dir = tempfile::tempdir().unwrap();
    index(dir.path(), &web(), 1);
    let searcher = open(dir.path(), Concepts::default());
    assert_eq!(names(&searcher.search(&request("flight")).unwrap()), ["book_seat"]);
    let before = searcher.generation();
    catch_up_once(dir.path(), &Concepts { model: 9, ..Concepts::default() });
    assert!(!searcher.reload().unwrap(), "vectors of another model change nothing");
    catch_up_once(dir.path(), &Concepts::default());
    assert!(searcher.reload().unwrap());
    assert!(!searcher.reload().unwrap());
    assert_ne!(searcher.generation(), before, "a cached response is no longer valid");
    assert_eq!(names(&searcher.search(&request("usufruct jalopy")).unwrap()), ["hire_vehicle"]);
    // if the index is ahead of its vectors, texts without a vector are still found by words
    let mut manifests = web();
    support::add(&mut manifests[1], "lounge", "A quiet room for travellers.");
    index(dir.path(), &manifests, 2);
    assert!(searcher.reload().unwrap());
    assert_eq!(names(&searcher.search(&request("quiet room")).unwrap()).first(), Some(&"lounge"));
    assert_eq!(names(&searcher.search(&request("usufruct jalopy")).unwrap()), ["hire_vehicle"]);
}

#[test]
fn searches_by_words_when_the_embedder_fails() {
    let (dir, _) = searcher(&web());
    let searcher = open(dir.path(), Concepts { fails: true, ..Concepts::default() });
    assert_eq!(names(&searcher.search(&request("flight")).unwrap()), ["book_seat"]);
    let odd = Concepts { model: 3, wrong_dimension: Some(3), ..Concepts::default() };
    let error = catch_up(dir.path(), &odd, &CancellationToken::new()).unwrap_err().to_string();
    assert!(error.contains("4 vectors of 5 numbers") && error.contains("4 of 3"), "{error}");
    assert_eq!(catch_up_once(dir.path(), &Concepts::default()).embedded, 0, "existing vectors are kept");
}

#[test]
fn a_rejected_text_does_not_affect_other_texts() {
    for word in ["windows", "panic"] {
        let dir = tempfile::tempdir().unwrap();
        let mut manifests = web();
        support::add(&mut manifests[2], "alarm", "In a panic, call us.");
        index(dir.path(), &manifests, 1);
        let embedder = Concepts { rejected_word: Some(word), ..Concepts::default() };
        let logged = log_of(|| {
            let expected = VectorUpdate { vectors: 4, embedded: 4, missing: 1, refused: 1 };
            assert_eq!(catch_up_once(dir.path(), &embedder), expected, "{word}");
        });
        let named = if word == "panic" { "alarm" } else { "wash" };
        assert!(logged.contains("the model rejects") && logged.contains(named), "{logged}");
        let searcher = open(dir.path(), Concepts::default());
        assert_eq!(names(&searcher.search(&request("usufruct jalopy")).unwrap()), ["hire_vehicle"]);
        assert_eq!(names(&searcher.search(&request(named)).unwrap()).first(), Some(&named));
    }
}

#[test]
fn keeps_vectors_embedded_before_a_failure() {
    let dir = tempfile::tempdir().unwrap();
    let mut manifests = web();
    for at in 0..70 {
        support::add(&mut manifests[0], &format!("drive{at}"), &format!("Hire a vehicle, tariff {at}."));
    }
    index(dir.path(), &manifests, 1);
    let breaks = Concepts { fails_after: Some(40), ..Concepts::default() };
    assert!(catch_up(dir.path(), &breaks, &CancellationToken::new()).is_err());
    let went_on = catch_up_once(dir.path(), &Concepts::default());
    assert_eq!(went_on, VectorUpdate { vectors: 74, embedded: 74 - 64, missing: 0, refused: 0 });
}

#[test]
fn retries_a_file_that_is_temporarily_unreadable() {
    let (dir, searcher) = searcher(&web());
    let (path, aside) = (dir.path().join("vectors"), dir.path().join("aside"));
    fs::rename(&path, &aside).unwrap();
    fs::create_dir(&path).unwrap();
    let logged = log_of(|| {
        assert!(!searcher.reload().unwrap(), "the vectors in memory are still searched");
        assert!(!searcher.reload().unwrap());
    });
    assert_eq!(logged.matches("the vectors cannot be read").count(), 1, "{logged}");
    assert_eq!(names(&searcher.search(&request("usufruct jalopy")).unwrap()), ["hire_vehicle"]);
    assert!(catch_up(dir.path(), &Concepts::default(), &CancellationToken::new()).is_err());
    assert!(open(dir.path(), Concepts::default()).search(&request("usufruct jalopy")).unwrap().nothing_good);
    fs::remove_dir(&path).unwrap();
    fs::rename(&aside, &path).unwrap();
    searcher.reload().unwrap();
    assert_eq!(names(&searcher.search(&request("usufruct jalopy")).unwrap()), ["hire_vehicle"]);
    assert_eq!(catch_up_once(dir.path(), &Concepts::default()).embedded, 0, "nothing was lost");
}

#[test]
fn warns_about_vectors_of_another_model() {
    let (dir, _) = searcher(&web());
    let other = || Concepts { model: 9, ..Concepts::default() };
    let logged = log_of(|| {
        let searcher = open(dir.path(), other());
        assert!(searcher.search(&request("usufruct jalopy")).unwrap().nothing_good);
    });
    assert!(logged.contains("from another model: searching by words only"), "{logged}");
    let logged = log_of(|| assert_eq!(catch_up_once(dir.path(), &other()).embedded, 4));
    assert!(logged.contains("from another model: embedding everything again"), "{logged}");
}

#[test]
fn reloads_commit_and_vectors_together() {
    let (dir, searcher) = searcher(&web());
    let request_in_other_words = request("usufruct jalopy");
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                let before = searcher.generation();
                let found = !searcher.search(&request_in_other_words).unwrap().hits.is_empty();
                assert!(
                    found || before.vectors == 0,
                    "{before:?} has vectors, but the search did not use them"
                );
            }
        });
        for position in 2..8 {
            index(dir.path(), &web(), position);
            assert!(searcher.reload().unwrap());
        }
        is_over.store(true, Ordering::Relaxed);
    });
    assert_ne!(searcher.generation().vectors, 0);
}

#[test]
fn distinguishes_capabilities_of_one_name_by_their_titles() {
    let mut garage = support::manifest("wheels.example", "Wheels");
    support::add(&mut garage, "order", "");
    let mut bank = support::manifest("coinbank.example", "Coin Bank");
    support::add(&mut bank, "order", "");
    for (stored, title) in [(&mut garage, "Hire a vehicle"), (&mut bank, "Transfer money")] {
        let capability = &mut stored.manifest.capabilities[0];
        (capability.description, capability.title) = (None, Some(title.to_owned()));
    }
    let (dir, searcher) = searcher(&[garage, bank]);
    assert_eq!(catch_up_once(dir.path(), &Concepts::default()).vectors, 2);
    let answer = searcher.search(&request("usufruct jalopy")).unwrap();
    let sites: Vec<&str> = answer.hits.iter().map(|hit| hit.site.as_str()).collect();
    assert_eq!(sites, ["wheels.example"]);
}

#[test]
fn resumes_a_cancelled_pass() {
    let dir = tempfile::tempdir().unwrap();
    index(dir.path(), &web(), 1);
    let cancel = CancellationToken::new();
    cancel.cancel();
    let stopped = catch_up(dir.path(), &Concepts::default(), &cancel).unwrap();
    assert_eq!(stopped, VectorUpdate { vectors: 0, embedded: 0, missing: 4, refused: 0 });
    assert_eq!(catch_up_once(dir.path(), &Concepts::default()).vectors, 4);
}

/// Waits for a condition; the time limit is generous for slow machines.
async fn until(mut has_happened: impl FnMut() -> bool) {
    let happening = async {
        while !has_happened() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_mins(1), happening).await.unwrap();
}

/// A database, and what reports the failures of computing vectors there.
async fn monitor(dir: &Path) -> (Store, Arc<TaskMonitor>) {
    let store = Store::open_in_data_dir(dir).await.unwrap();
    (store.clone(), Arc::new(TaskMonitor::new(store, BackgroundTask::Vectors)))
}

#[tokio::test]
async fn a_failed_update_of_vectors_is_stored_until_one_succeeds() {
    let dir = tempfile::tempdir().unwrap();
    index(dir.path(), &web(), 1);
    let (store, monitor) = monitor(dir.path()).await;
    for fails in [true, false] {
        let (cancel, embedder) =
            (CancellationToken::new(), Arc::new(Concepts { fails, ..Concepts::default() }));
        let keeping = keep_current(dir.path().to_owned(), embedder, Arc::clone(&monitor), cancel.clone());
        let looking = async {
            let has_ended = async || {
                let failing = store.tasks_failing(10).await.unwrap();
                assert!(
                    failing.iter().all(|failing| failing.reason.contains("agentdex doctor")),
                    "{failing:?}"
                );
                failing.is_empty() != fails
            };
            while !has_ended().await {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            cancel.cancel();
        };
        tokio::time::timeout(Duration::from_mins(1), async { tokio::join!(keeping, looking) }).await.unwrap();
    }
}

#[tokio::test]
async fn updates_vectors_until_cancelled() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("vectors");
    let cancel = CancellationToken::new();
    let embedder = Arc::new(Concepts::default());
    let keeping = keep_current(dir.path().to_owned(), embedder, monitor(dir.path()).await.1, cancel.clone());
    let looking = async {
        index(dir.path(), &web(), 1);
        until(|| path.exists()).await;
        fs::remove_file(&path).unwrap();
        until(|| path.exists()).await;
        cancel.cancel();
    };
    tokio::join!(keeping, looking);
    assert_eq!(catch_up_once(dir.path(), &Concepts::default()).embedded, 0);
}

#[tokio::test]
async fn delays_the_removal_of_few_obsolete_rows() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("vectors");
    let mut manifests = web();
    for at in 0..40 {
        support::add(&mut manifests[0], &format!("drive{at}"), &format!("Hire a vehicle, tariff {at}."));
    }
    index(dir.path(), &manifests, 1);
    catch_up_once(dir.path(), &Concepts::default());
    let written = fs::metadata(&path).unwrap().modified().unwrap();
    let is_other = || fs::metadata(&path).unwrap().modified().unwrap() != written;
    let cancel = CancellationToken::new();
    let embedder = Arc::new(Concepts::default());
    let monitor = monitor(dir.path()).await.1;
    let keeping = keep_current(dir.path().to_owned(), embedder.clone(), monitor, cancel.clone());
    let looking = async {
        manifests.pop();
        index(dir.path(), &manifests, 2);
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert!(!is_other(), "one of 44 can wait");
        manifests[0].manifest.capabilities.truncate(20);
        index(dir.path(), &manifests, 3);
        until(is_other).await;
        cancel.cancel();
    };
    tokio::join!(keeping, looking);
    assert_eq!(embedder.embedded.load(Ordering::Relaxed), 0);
}

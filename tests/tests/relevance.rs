//! The minimum quality of the ranking, for public tool-retrieval sets if they are present next to the workspace, and for labelled requests
//! over the demo's sites.

#![expect(clippy::unwrap_used, reason = "a failed step fails the test")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use agentdex_tests::relevance::engines::OwnIndex;
use agentdex_tests::relevance::labelled::{self, Judged};
use agentdex_tests::relevance::measures::{Measures, mean_of_sets, measures};
use agentdex_tests::relevance::sets;
use agentdex_tests::relevance::spam::{self, SpamJudged};
use indexer::{IndexBuilder, SearchRequest, Searcher, WordWeights, stems_of};
use store::FeedPosition;

/// Minimum mean of nDCG@10 over the five sets.
const MEAN_MIN: f64 = 0.68;
/// Maximum loss of one measure compared with the last recorded run.
const TOLERANCE: f64 = 0.01;
/// Maximum share of the requests with an answer that have no result above the relevance cut-off.
const CUT_OFF_LOSS_MAX: f64 = 0.02;
/// Minimum share of the requests without an answer that have no result above the cut-off. The others share a rare word with a capability
/// ("earthquake alerts", "university admission"), like requests with an answer ("bus departures").
const NO_ANSWER_MIN: f64 = 0.44;
/// Minimum share of requests without an answer among all requests that have no result above the cut-off.
const NO_ANSWER_PRECISION_MIN: f64 = 0.83;
/// Results of a page.
const PAGE: usize = 10;
/// Minimum number of labelled requests.
const LABELLED_MIN: usize = 800;
const NOTHING_LEARNT: &str = "agentdex, nothing learnt";

fn recorded() -> BTreeMap<String, BTreeMap<String, Measures>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("relevance/recorded.json");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// Fails if a measure has lost more than the tolerance.
fn check_losses(set: &str, now: &Measures, before: &Measures) {
    for (measure, before) in before {
        let now = now.get(measure).copied().unwrap_or_default();
        assert!(now >= before - TOLERANCE, "{set}: {measure} is {now:.4}, recorded {before:.4}");
    }
}

#[test]
fn public_sets_rank_above_the_minimum_and_no_worse_than_recorded() {
    let Some(sets) = sets::read_all().unwrap() else {
        println!("skipped: no relevance data next to the workspace");
        return;
    };
    let runs = [("agentdex", WordWeights::built_in()), (NOTHING_LEARNT, Arc::new(WordWeights::default()))];
    let ranked: Vec<[Measures; 2]> = std::thread::scope(|scope| {
        let judge = |set: &sets::PublicSet| {
            let index = OwnIndex::of(set).unwrap();
            runs.each_ref().map(|(_, known)| measures(&index.outcomes(set, known).unwrap()))
        };
        let threads: Vec<_> = sets.iter().map(|set| scope.spawn(move || judge(set))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let recorded = recorded();
    for (run, (engine, _)) in runs.iter().enumerate() {
        println!("{engine}");
        for (set, ranked) in sets.iter().zip(&ranked) {
            let mut before = recorded[*engine][&set.name].clone();
            // Learnt weights may improve one measure and reduce another; without them, no measure may fall.
            before.retain(|measure, _| *engine == NOTHING_LEARNT || measure == "ndcg");
            check_losses(&set.name, &ranked[run], &before);
        }
        let mean = mean_of_sets(ranked.iter().map(|of| &of[run]))["ndcg"];
        assert!(
            mean >= MEAN_MIN,
            "{engine}: the mean of nDCG@10 is {mean:.4} and must be at least {MEAN_MIN}"
        );
    }
}

#[test]
fn any_folder_of_sets_is_read() {
    let dir = tempfile::tempdir().unwrap();
    assert!(sets::read_folder(dir.path()).is_err());
    let set = dir.path().join("mine");
    std::fs::create_dir(&set).unwrap();
    std::fs::write(
        set.join("tools.jsonl"),
        r#"{"id": "a", "name": "book_flight", "description": "Book a flight.", "site": "Sky"}
{"id": "b", "name": "wetter", "description": "Das Wetter von morgen."}"#,
    )
    .unwrap();
    std::fs::write(
        set.join("queries.jsonl"),
        r#"{"text": "book a flight", "relevant": ["a"]}
{"text": "wetter", "relevant": ["b"], "language": "de"}
{"text": "mow my lawn"}"#,
    )
    .unwrap();
    let read = sets::read_folder(dir.path()).unwrap();
    let outcomes = OwnIndex::of(&read[0]).unwrap().outcomes(&read[0], &Arc::default()).unwrap();
    assert!(outcomes[0].by_site.is_some_and(|scores| scores.mrr >= 1.0) && outcomes[1].by_site.is_none());
    assert!(!outcomes[1].is_english && !outcomes[2].has_answer && !outcomes[2].has_relevant);
    let found = measures(&outcomes);
    assert!((found["ndcg"] - 1.0).abs() < 1e-9 && (found["kept"] - 1.0).abs() < 1e-9, "{found:?}");
}

/// Checks how many results of the labelled requests over the demo are above the relevance cut-off.
fn check_cut_off(judged: &[Judged]) {
    #[expect(clippy::cast_precision_loss, reason = "counts of requests are small")]
    let share = |of: &[&Judged], is: &dyn Fn(&Judged) -> bool| {
        of.iter().filter(|of| is(of)).count() as f64 / of.len() as f64
    };
    let of_demo = judged.iter().filter(|of| of.request.is_of_demo());
    let (without, with): (Vec<&Judged>, Vec<&Judged>) = of_demo.partition(|of| of.request.grades.is_empty());
    let empty: Vec<&Judged> = with.iter().chain(&without).copied().filter(|of| of.relevant == 0).collect();
    let precision = share(&empty, &|of| of.request.grades.is_empty());
    let lost = share(&with, &|of| of.relevant == 0);
    let no_answer = share(&without, &|of| of.relevant == 0);
    assert!(lost <= CUT_OFF_LOSS_MAX, "{lost:.3} of the requests with an answer have no relevant result");
    assert!(
        no_answer >= NO_ANSWER_MIN,
        "{no_answer:.3} of the requests without an answer have no relevant result"
    );
    assert!(
        precision >= NO_ANSWER_PRECISION_MIN,
        "{precision:.3} of the requests without a relevant result have no answer"
    );
    let book = with.iter().find(|of| of.request.text == "book flight").unwrap();
    let shown = &book.found[..usize::try_from(book.relevant).unwrap().min(book.found.len())];
    assert!(
        !shown.is_empty() && shown.iter().all(|key| key.starts_with("skyhop.example#")),
        "\"book flight\" must have results, all of them flights: {shown:?}"
    );
}

/// Checks every 17th word of names and descriptions, if at most one page of capabilities contains it.
#[test]
fn published_capabilities_are_found_by_their_own_words() {
    let pool = labelled::present_manifests().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let builder = IndexBuilder::begin(dir.path(), "words").unwrap();
    for stored in &pool {
        builder.add(stored).unwrap();
    }
    builder.finish(FeedPosition(1)).unwrap();
    let searcher = Searcher::open(dir.path()).unwrap();
    let search = |query: String, limit| {
        let request = SearchRequest { phrasings: vec![query], limit, ..SearchRequest::default() };
        searcher.search(&request).unwrap()
    };
    let (mut checked, mut lost) = (0, Vec::new());
    let capabilities = pool.iter().flat_map(|stored| &stored.manifest.capabilities);
    let texts =
        capabilities.map(|of| (of, format!("{} {}", of.name, of.description.as_deref().unwrap_or_default())));
    let words = texts.flat_map(|(of, text)| {
        let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '\'' | '’');
        let words = text.split(|c| !is_part(c)).filter(|word| !stems_of(word).is_empty());
        words.map(|word| (of.id.clone(), word.to_owned())).collect::<Vec<_>>()
    });
    for (id, word) in words.step_by(17) {
        if search(format!("\"{word}\""), 1).total > PAGE as u64 {
            continue;
        }
        checked += 1;
        if !search(word.clone(), PAGE).hits.iter().any(|hit| hit.id == id) {
            lost.push(word);
        }
    }
    println!("{} of {checked} words do not find their capability: {lost:?}", lost.len());
    assert!(lost.len() * 100 <= checked, "{} of {checked}: {lost:?}", lost.len());
}

/// Maximum mean loss of nDCG@10 that spam may cause for the requests about the demo.
const SPAM_LOSS_MAX: f64 = 0.005;

#[test]
fn fifty_spam_sites_do_not_rank_before_the_sites_that_they_imitate() {
    let SpamJudged { lines, judged, spam } = spam::judge_with_spam().unwrap();
    assert_eq!(lines.iter().filter(|line| line.reason.is_some()).count(), 50);
    let marked: BTreeMap<String, Vec<String>> = spam
        .iter()
        .map(|of| (of.site.to_string(), of.causes.iter().map(|cause| cause.reason.to_string()).collect()))
        .collect();
    for line in &lines {
        let reasons = marked.get(&line.site).cloned().unwrap_or_default();
        match &line.reason {
            Some(reason) => {
                assert!(reasons.contains(reason), "{}: {reasons:?} instead of {reason}", line.site);
            }
            None => assert!(reasons.is_empty(), "{}: {reasons:?}", line.site),
        }
    }
    let is_spam = |site: &str| lines.iter().any(|line| line.site == site);
    let honest: Vec<&String> = marked.keys().filter(|site| !is_spam(site)).collect();
    assert!(honest.is_empty(), "honest sites are marked as spam: {honest:?}");

    let before = labelled::judge_all(&Arc::default()).unwrap();
    let aimed_at: BTreeSet<&String> = lines.iter().flat_map(|line| &line.requests).collect();
    let (mut loss, mut count) = (0.0, 0_u32);
    for of in &judged {
        let was = before.iter().find(|was| was.request.text == of.request.text).unwrap();
        (loss, count) = (loss + was.scores.ndcg - of.scores.ndcg, count + 1);
        let first_spam = of.found.iter().position(|key| is_spam(key.split('#').next().unwrap_or_default()));
        let is_best = |key: &String| of.request.grades.get(key) == Some(&3);
        if aimed_at.contains(&of.request.text) {
            let best =
                of.found.iter().position(is_best).unwrap_or_else(|| panic!("{}: lost", of.request.text));
            assert!(first_spam.is_none_or(|spam| best < spam), "{}: {:?}", of.request.text, of.found);
        }
    }
    for request in aimed_at {
        assert!(judged.iter().any(|of| of.request.text == *request), "{request}: not labelled");
    }
    let loss = loss / f64::from(count);
    println!("nDCG@10 over {count} requests falls by {loss:.4}");
    assert!(loss <= SPAM_LOSS_MAX, "spam reduces nDCG@10 by {loss:.4}");
}

#[test]
fn published_manifests_and_tools_are_not_spam() {
    for is_even_older in [true, false] {
        let found = spam::spam_among_published(is_even_older).unwrap().unwrap_or_default();
        assert!(found.is_empty(), "{found:?}");
    }
    for set in sets::read_all().unwrap().unwrap_or_default() {
        let dir = tempfile::tempdir().unwrap();
        let builder = IndexBuilder::begin(dir.path(), "spam").unwrap();
        for stored in set.manifests().unwrap() {
            builder.add(&stored).unwrap();
        }
        builder.finish(FeedPosition(1)).unwrap();
        let found = Searcher::open(dir.path()).unwrap().spam(100).unwrap();
        assert!(found.is_empty(), "{}: {found:?}", set.name);
    }
}

#[test]
fn labelled_requests_find_the_expected_capabilities() {
    assert!(labelled::requests().unwrap().len() >= LABELLED_MIN);
    let judged = labelled::judge_all(&Arc::default()).unwrap();
    let unknown: Vec<&String> = judged.iter().flat_map(|of| &of.unknown).collect();
    assert!(unknown.is_empty(), "graded capabilities do not exist: {unknown:?}");
    for of in judged.iter().filter(|of| of.scores.ndcg < 0.6 && !of.request.grades.is_empty()) {
        println!("{:.2} {:?}: {:?}", of.scores.ndcg, of.request.text, of.found);
    }
    check_cut_off(&judged);
    let recorded = recorded();
    for (name, now) in labelled::parts(&judged) {
        check_losses(&name, &now, &recorded[NOTHING_LEARNT][&name]);
    }
    let of_demo: Vec<Judged> = judged.into_iter().filter(|of| of.request.is_of_demo()).collect();
    for text in api::EXAMPLES {
        let of = of_demo
            .iter()
            .find(|of| of.request.text == text)
            .unwrap_or_else(|| panic!("{text}: not labelled"));
        let first = of.found.first().unwrap_or_else(|| panic!("{text}: no results"));
        assert_eq!(
            of.request.grades.get(first),
            Some(&3),
            "{text}: expected first, but the first result is {first}"
        );
    }
}
